"""Simulated arm with position drives and sensors, one control period at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.mujoco_model import TIMESTEP
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import Noise, Truth
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FloatArray, RawLog, frozen


@dataclass(frozen=True, eq=False)
class GravityPD:
    """PD control with gravity: ``stiffness (theta_d - theta) + damping (dtheta_d - dtheta) + g``.

    ``stiffness`` N m/rad and ``damping`` N m s/rad of each motor's loop, (n,) on the joint side; g
    at theta_d. With elastic joints it is stable if the stiffness exceeds the gradient of gravity.
    Raises UsageError for gains that are not positive. Source: Tomei, IEEE Trans. Automatic Control
    1991, 36, 1208-1213; De Luca, Tomei, in Theory of Robot Control, 1996, chapter 5.
    """

    stiffness: FloatArray
    damping: FloatArray

    def __init__(self, stiffness: ArrayLike, damping: ArrayLike) -> None:
        for name, gains in (('stiffness', stiffness), ('damping', damping)):
            values = frozen(np.atleast_1d(np.asarray(gains, dtype=np.float64)))
            if not np.all(np.isfinite(values) & (values > 0.0)):
                raise UsageError(f'PD control: {name} must be positive, is {values.tolist()}')
            object.__setattr__(self, name, values)

    def torque(self, error: FloatArray, rate: FloatArray, gravity: FloatArray) -> FloatArray:
        """Return the torque (n,) for errors of position and velocity (n,) and gravity (n,)."""
        return np.asarray(self.stiffness * error + self.damping * rate + gravity)


STEPS_PER_PERIOD = 4
CONTROL_PERIOD = STEPS_PER_PERIOD * TIMESTEP
NATURAL_FREQUENCY = 75.0  # rad/s of the position loop, critically damped
LARGEST_ERROR = 0.5  # rad or m, saturation of the position error
#: largest inertia, in rotor inertias, for which the loop of a harmonic drive is stable
LOOP_INERTIA = 3.0


@dataclass(frozen=True, eq=False)
class Setpoint:
    """Setpoint of the drives: position, velocity, acceleration, each (n,)."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray


def effort_limit(robot: RobotModel) -> FloatArray:
    """Return the effort limits (n,) in the robot's effort unit; 100 N m if undefined."""
    limit = np.where(np.isfinite(robot.limits.effort), robot.limits.effort, 100.0)
    if robot.drive.kind == 'current' and robot.drive.gains is not None:
        limit = limit / np.abs(robot.drive.gains)
    return limit


class Sensors:
    """Encoders, velocity and effort sensors with noise; ``rng`` is the only randomness.

    Motor encoders have their own resolution.
    """

    def __init__(self, robot: RobotModel, noise: Noise, rng: np.random.Generator) -> None:
        self._noise = noise
        self._rng = rng
        self._effort_noise = noise.effort * effort_limit(robot)

    def position(self, true: FloatArray, motors: bool = False) -> FloatArray:
        """Return position (..., n) with noise, quantised; with ``motors`` at their resolution."""
        noisy = self._spoil(true, self._noise.position)
        step = self._noise.motor_position_step if motors else self._noise.position_step
        return np.round(noisy / step) * step if step > 0.0 else noisy

    def velocity(self, true: FloatArray) -> FloatArray:
        """Return velocity (..., n) with noise."""
        return self._spoil(true, self._noise.velocity)

    def effort(self, true: FloatArray) -> FloatArray:
        """Return effort (..., n) with noise, a fraction of every joint's limit."""
        return self._spoil(true, self._effort_noise)

    def _spoil(self, true: FloatArray, deviation: float | FloatArray) -> FloatArray:
        if not np.any(deviation):
            return true
        return true + deviation * self._rng.standard_normal(np.shape(true))


class Arm:
    """Simulated plant under stiff position control.

    Computed torque control: MuJoCo's inverse dynamics at the measured state for the acceleration
    of the setpoint plus a critically damped correction, clipped to the effort limits. Every period
    is ``control`` (sets the torque), ``effort``, ``advance``. A joint with a harmonic drive is
    controlled at its motor, and its link deflects. With ``control`` all motors are under PD
    control that uses only the gravity model. ``position``, ``velocity`` (n,) are true at the
    beginning of the period, ``motor_position``, ``motor_velocity`` (n,) those of the motors on the
    joint side.
    """

    def __init__(self, robot: RobotModel, truth: Truth | None = None,
                 control: GravityPD | None = None) -> None:
        self.plant = Plant(robot, truth)
        if control is not None and len(control.stiffness) != robot.n:
            raise UsageError(f'PD control of {len(control.stiffness)} motors, {robot.name} has '
                             f'{robot.n} joints')
        self._pd = control
        limit = robot.limits.effort
        self._limit = np.where(np.isfinite(limit), limit, np.inf)
        speed = robot.limits.velocity
        # Twice the velocity limit: the drives follow commands beyond it.
        self._speed = 2.0 * np.where(np.isfinite(speed), speed, 10.0)
        self._gains = robot.drive.gains if robot.drive.kind == 'current' else None
        self._gravity_free = robot.drive.kind == 'gravity_compensated_torque'
        # Inertia of the loop of a harmonic drive; other joints use the rigid model.
        self._rigid = np.where(self.plant.elastic, 0.0, 1.0)
        self._inertia = np.where(self.plant.elastic,
                                 LOOP_INERTIA * self.plant.truth.rotor_inertia, 0.0)
        self._look()
        self._torque = self._before = self._weight(self.position)

    def _look(self) -> None:
        self.position, self.velocity = self.plant.state()
        self.motor_position, self.motor_velocity = self.plant.motor_state()

    def place(self, position: FloatArray) -> None:
        """Put the arm at rest with its motors at ``position`` (n,)."""
        self.plant.set_state(position, np.zeros_like(position))
        self._look()
        self._torque = self._before = self._weight(self.position)

    def control(self, setpoint: Setpoint) -> None:
        """Set the torque of this period."""
        # minimum and maximum, because the overhead of clip is noticeable at 1 kHz
        speed = np.minimum(np.maximum(setpoint.velocity, -self._speed), self._speed)
        error = np.minimum(np.maximum(setpoint.position - self.motor_position, -LARGEST_ERROR),
                           LARGEST_ERROR)
        rate = speed - self.motor_velocity
        torque = self._computed_torque(setpoint, error, rate) if self._pd is None else \
            self._pd.torque(error, rate, self._weight(setpoint.position))
        self._before = self._torque
        self._torque = np.minimum(np.maximum(torque, -self._limit), self._limit)

    def _computed_torque(
        self, setpoint: Setpoint, error: FloatArray, rate: FloatArray
    ) -> FloatArray:
        correction = NATURAL_FREQUENCY**2 * error + 2.0 * NATURAL_FREQUENCY * rate
        wanted = setpoint.acceleration + self._rigid * correction
        torque = self.plant.torque_for(self.motor_position, self.motor_velocity, wanted)
        return torque + self._inertia * correction

    def _weight(self, position: FloatArray) -> FloatArray:
        zero = np.zeros_like(position)
        return self.plant.torque_for(position, zero, zero)

    def effort(self) -> FloatArray:
        """Return the true effort (n,), in the robot's effort unit, at the beginning of the period.

        The torque jumps there, so this is the mean of the torques before and after, as measured by
        a sensor with the bandwidth of the control loop, without delay. Torque sensors behind the
        gears measure the torque transmitted to the links.
        """
        torque = 0.5 * (self._before + self._torque)
        if not self.plant.robot.drive.shows_motors:
            torque = self.plant.transmitted(torque)
        if self._gains is not None:
            return torque / self._gains
        if self._gravity_free:
            return torque - self._weight(self.motor_position)
        return torque

    def advance(self) -> None:
        """Simulate one control period."""
        self.plant.step(self._torque, STEPS_PER_PERIOD)
        self._look()


@dataclass(frozen=True)
class TorqueStep:
    """External torque [N m] on one joint (its index), from ``start`` [s] for ``duration``."""

    joint: int
    start: float
    duration: float
    torque: float


def record(arm: Arm, trajectory: Trajectory, rate: float = 500.0,
           external: Sequence[TorqueStep] = ()) -> RawLog:
    """Simulate ``arm`` on ``trajectory`` from rest; return ideal sensor readings at ``rate`` Hz.

    With harmonic drives position and velocity are those of the links, and the motors have separate
    channels. The rate is rounded to a whole number of control periods of 1 ms. Raises UsageError
    if the trajectory is for other joints.
    """
    if trajectory.joints != arm.plant.joints:
        raise UsageError(f'the trajectory moves {", ".join(trajectory.joints)}, the robot has '
                         f'{", ".join(arm.plant.joints)}')
    periods = round(trajectory.duration / CONTROL_PERIOD) + 1
    every = max(1, round(1.0 / (rate * CONTROL_PERIOD)))
    motion = trajectory.sample(np.arange(periods) * CONTROL_PERIOD)
    arm.place(motion.position[0])
    rows = []
    for i in range(periods):
        if external:
            arm.plant.external = np.zeros(arm.plant.robot.n)
            for step in external:
                if step.start <= i * CONTROL_PERIOD < step.start + step.duration:
                    arm.plant.external[step.joint] += step.torque
        arm.control(Setpoint(motion.position[i], motion.velocity[i], motion.acceleration[i]))
        if i % every == 0:
            rows.append((i * CONTROL_PERIOD, arm.position, arm.velocity, arm.effort(),
                         arm.motor_position, arm.motor_velocity))
        arm.advance()
    time, positions, velocities, efforts, *motors = (
        np.array(column) for column in zip(*rows, strict=True))
    elastic = arm.plant.elastic.any()
    return RawLog(f'simulated {arm.plant.robot.name}', arm.plant.joints, time, positions,
                  velocities, efforts, *(motors if elastic else ()))


def measured(log: RawLog, robot: RobotModel, noise: Noise, rng: np.random.Generator) -> RawLog:
    """Return ``log`` with sensor noise and quantisation."""
    sensors = Sensors(robot, noise, rng)
    sensor_of: dict[str, Callable[[FloatArray], FloatArray]] = {
        'velocity': sensors.velocity, 'effort': sensors.effort, 'position': sensors.position,
        'motor_position': partial(sensors.position, motors=True),
        'motor_velocity': sensors.velocity}
    channels: dict[str, Any] = {name: sensor(true) for name, sensor in sensor_of.items()
                                if (true := getattr(log, name)) is not None}
    return RawLog(log.source, log.joints, log.time, **channels)
