"""Simulated robot: arm, sensors and trajectory controller, cycle by cycle."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.arm import CONTROL_PERIOD, Arm, Sensors, Setpoint, effort_limit
from robot_dynid.simulation.trajectory_controller import (
    Constraints,
    Finished,
    Goal,
    TrajectoryController,
    Update,
)
from robot_dynid.simulation.truth import Truth
from robot_dynid.simulation.waypoints import Command
from robot_dynid.types import FloatArray

FAULTS = ('none', 'stop_states', 'nan', 'no_effort', 'effort_spike', 'tracking_error', 'reject',
          'inactive')
TRACKING_FAULT = 0.2  # rad or m, tracking error of the first joint under the fault
#: s by which the drives follow setpoints from outside later than these are stamped, so that there
#: are two to interpolate between: three cycles of a controller at 250 Hz
SETPOINT_DELAY = 0.012
#: setpoints that wait: 4 s at 250 Hz, while simulated time lags behind the clock
SETPOINT_COUNT = 1000


def start_position(robot: RobotModel) -> FloatArray:
    """Return the first positions (n,): zero, or the middle of ranges that leave zero out."""
    lower, upper = robot.limits.lower, robot.limits.upper
    without_zero = (lower >= 0.0) | (upper <= 0.0)  # never where a limit is not known
    return np.asarray(np.where(without_zero, 0.5 * (lower + upper), 0.0))


@dataclass(frozen=True, eq=False)
class Reading:
    """Reading of the sensors at ``time`` s: position, velocity, effort, each (n,).

    With harmonic drives these are of the links, and ``motor_position``, ``motor_velocity`` of the
    motors on the joint side.
    """

    time: float
    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    motor_position: FloatArray | None = None
    motor_velocity: FloatArray | None = None


class Simulator:
    """A robot with its controller; ``advance`` must stay on one thread, the rest is thread-safe.

    ``fault`` is one of FAULTS, injected to test clients of the robot.
    """

    def __init__(self, robot: RobotModel, truth: Truth, constraints: Constraints | None = None,
                 seed: int = 0) -> None:
        self.robot = robot
        self._fault = 'none'
        self._arm = Arm(robot, truth)
        self._sensors = Sensors(robot, truth.noise, np.random.default_rng(seed))
        self._controller = TrajectoryController(robot.joints, constraints)
        self._controller.activate(self._arm.motor_position)
        self._lock = threading.Lock()
        self._cycles = 0
        self._view = Update(np.zeros((3, robot.n)), np.zeros((3, robot.n)), 0)
        self._setpoints: deque[tuple[float, Setpoint]] = deque(maxlen=SETPOINT_COUNT)

    @property
    def has_motor_states(self) -> bool:
        """True if a joint has a harmonic drive, so that motors and links differ."""
        return bool(self._arm.plant.elastic.any())

    @property
    def fault(self) -> str:
        """Fault under way, set at any time; ``inactive``: the controller is deactivated."""
        return self._fault

    @fault.setter
    def fault(self, name: str) -> None:
        with self._lock:
            if name == 'inactive' and self._controller.active:
                self._controller.deactivate(self._arm.motor_position)
            elif name != 'inactive' and not self._controller.active:
                self._controller.activate(self._arm.motor_position)
            self._fault = name

    @property
    def speed_scaling(self) -> float:
        """Time of a trajectory per real time, set at any time: 1 is full speed, 0 a pause."""
        return self._controller.scaling

    @speed_scaling.setter
    def speed_scaling(self, factor: float) -> None:
        with self._lock:
            self._controller.scaling = factor

    @property
    def active(self) -> bool:
        """Whether the controller is active."""
        return self._controller.active

    @property
    def time(self) -> float:
        """Simulated time in s."""
        return self._cycles * CONTROL_PERIOD

    def place(self, position: FloatArray) -> None:
        """Put the robot at rest at ``position`` (n,); raises UsageError for a wrong length."""
        if np.shape(position) != (self.robot.n,) or not np.all(np.isfinite(position)):
            raise UsageError(f'{self.robot.name}: start position must have {self.robot.n} finite '
                             f'values, is {np.asarray(position).tolist()}')
        with self._lock:
            self._arm.place(np.asarray(position, dtype=np.float64))
            self._controller.activate(self._arm.motor_position)

    def command(self, time: float, setpoint: Setpoint) -> None:
        """Let the drives follow setpoints from outside, valid at ``time`` [s].

        They go on from each with accelerations between its own and the next one, SETPOINT_DELAY
        late, and hold the last one. So stamps that are wrong by microseconds make no torque, as
        differences of positions would. The first command puts the robot there at rest; from then
        on the simulator's own controller is not used.
        """
        if not self._setpoints:
            self.place(setpoint.position)
        with self._lock:
            if not self._setpoints or time > self._setpoints[-1][0]:
                self._setpoints.append((time, setpoint))

    def ahead(self, cycles: int) -> bool:
        """Return True where the setpoints from outside end before the last of the next cycles."""
        last = self.time + (cycles - 1) * CONTROL_PERIOD - SETPOINT_DELAY
        with self._lock:
            return bool(self._setpoints) and self._setpoints[-1][0] < last

    def advance(self, cycles: int) -> Reading:
        """Simulate ``cycles`` controller cycles of 1 ms and return the reading at their beginning.
        """
        self._control()
        reading = self._read()
        self._finish_cycle()
        for _ in range(cycles - 1):
            self._control()
            self._finish_cycle()
        return reading

    def view(self) -> tuple[Update, FloatArray]:
        """Return the controller's latest update, and true motor position and velocity (2, n)."""
        with self._lock:
            return self._view, np.array([self._arm.motor_position, self._arm.motor_velocity])

    def goal(self) -> int | None:
        """Return the number of the active goal, or None."""
        return self._controller.goal

    def rejection(self, command: Command) -> str | None:
        """Return the reason to reject a goal with this command now, or None."""
        if self.fault == 'reject':
            return 'fault reject is set'
        with self._lock:
            return self._controller.rejection(command, self.time)

    def start(self, goal: Goal) -> int:
        """Begin an accepted goal and return its number."""
        with self._lock:
            return self._controller.start(goal, self.time, self._measured())

    def follow(self, command: Command) -> str | None:
        """Follow a trajectory of the topic; return the reason if it is ignored, else None."""
        with self._lock:
            return self._controller.follow(command, self.time, self._measured())

    def cancel(self) -> bool:
        """Cancel the active goal and hold; return True if there was one."""
        with self._lock:
            return self._controller.cancel(self._arm.motor_position)

    def take_finished(self) -> list[Finished]:
        """Return and clear the goals that ended since the last call."""
        with self._lock:
            ended, self._controller.finished = self._controller.finished, []
        return ended

    def take_messages(self) -> list[str]:
        """Return and clear the log messages of the controller since the last call."""
        with self._lock:
            texts, self._controller.messages = self._controller.messages, []
        return texts

    def _measured(self) -> tuple[FloatArray, FloatArray]:
        return self._arm.motor_position.copy(), self._arm.motor_velocity.copy()

    def _control(self) -> None:
        with self._lock:
            if not self._setpoints:
                self._view = self._controller.update(self.time, self._arm.motor_position,
                                                     self._arm.motor_velocity)
                setpoint = Setpoint(*self._view.output)
            else:
                setpoint = self._interpolated(self.time - SETPOINT_DELAY)
        if self.fault == 'tracking_error':
            setpoint = replace(setpoint, position=setpoint.position + TRACKING_FAULT * (
                np.arange(self.robot.n) == 0))
        self._arm.control(setpoint)

    def _interpolated(self, time: float) -> Setpoint:
        """Return the setpoint at ``time`` between two from outside."""
        setpoints = self._setpoints
        while len(setpoints) > 1 and setpoints[1][0] <= time:
            setpoints.popleft()
        begin, last = setpoints[0]
        if len(setpoints) == 1 or time <= begin:
            still = np.zeros_like(last.position)
            return Setpoint(last.position, still, still)
        end, following = setpoints[1]
        t, jerk = time - begin, (following.acceleration - last.acceleration) / (end - begin)
        return Setpoint(
            last.position + t * (last.velocity + t * (last.acceleration / 2.0 + t * jerk / 6.0)),
            last.velocity + t * (last.acceleration + t * jerk / 2.0), last.acceleration + t * jerk)

    def _finish_cycle(self) -> None:
        with self._lock:
            self._arm.advance()
            self._cycles += 1

    def _read(self) -> Reading:
        effort = self._sensors.effort(self._arm.effort())
        if self.fault == 'no_effort':
            effort = np.full_like(effort, np.nan)
        elif self.fault == 'effort_spike':
            effort = effort.copy()
            effort[0] = effort_limit(self.robot)[0]
        position = self._sensors.position(self._arm.position)
        if self.fault == 'nan':
            position = position.copy()
            position[0] = np.nan
        reading = Reading(self.time, position, self._sensors.velocity(self._arm.velocity), effort)
        if not self.has_motor_states:
            return reading
        return replace(reading,
                       motor_position=self._sensors.position(
                           self._arm.motor_position, motors=True),
                       motor_velocity=self._sensors.velocity(self._arm.motor_velocity))
