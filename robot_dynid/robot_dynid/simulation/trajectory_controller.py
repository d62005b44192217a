"""Emulation of joint_trajectory_controller of ros2_control, with its rules and quirks.

No ROS, no clock: time is passed in seconds. The behaviour is that observed on ros2_controllers
5.17.0 (Kilted) with position commands and default parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

from robot_dynid.simulation.waypoints import Command, Path, Reference, rejection
from robot_dynid.types import FloatArray

Tolerance = tuple[float, float, float]  # position, velocity, acceleration
State = tuple[FloatArray, FloatArray]  # position and velocity, (n,) each


class Status(IntEnum):
    """Final status of a goal: the codes of action_msgs/GoalStatus."""

    SUCCEEDED = 4
    CANCELED = 5
    ABORTED = 6


class Code(IntEnum):
    """Result codes of control_msgs/FollowJointTrajectory."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


@dataclass(frozen=True)
class Constraints:
    """Default tolerances of the controller; 0 is unchecked.

    ``path`` and ``goal`` rad or m, ``stopped_velocity`` rad/s at the end, ``goal_time`` s.
    """

    path: float = 0.0
    goal: float = 0.0
    stopped_velocity: float = 0.0
    goal_time: float = 0.0


@dataclass(frozen=True)
class Goal:
    """A goal of the action; tolerance 0 is the controller's default, -1 disables the check."""

    command: Command
    path_tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    goal_tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    goal_time_tolerance: float = 0.0


@dataclass(frozen=True)
class Finished:
    """Result of the goal ``number``."""

    number: int
    status: Status
    code: Code
    text: str


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Active tolerances: (3, n) along the path and at the goal, 0 if unchecked; time in s."""

    path: FloatArray
    goal: FloatArray
    time: float


@dataclass(frozen=True, eq=False)
class Update:
    """State of the controller after one cycle; arrays (3, n): position, velocity, acceleration.

    ``reference`` is the trajectory at ``elapsed`` s, ``output`` the command of the drives: a joint
    holds where the reference is NaN.
    """

    reference: FloatArray
    output: FloatArray
    index: int
    elapsed: float = 0.0


class TrajectoryController:
    """State machine behind the topic and the action of one controller.

    ``rejection`` checks a goal, ``start`` begins an accepted one and numbers it, ``follow`` takes
    a message of the topic, ``cancel`` and ``deactivate`` stop; call ``update`` every cycle.
    ``finished`` and ``messages`` collect ended goals and log messages. ``scaling`` is trajectory
    time per real time, as set by a speed slider: a new trajectory starts by the clock and then
    runs at that rate.
    """

    def __init__(self, joints: Sequence[str], constraints: Constraints | None = None) -> None:
        self.joints = tuple(joints)
        self.active = False
        self.scaling = 1.0
        self.finished: list[Finished] = []
        self.messages: list[str] = []
        self._constraints = constraints or Constraints()
        self._path: Path | None = None
        self._goal: int | None = None
        self._time = self._updated = 0.0  # trajectory time and clock time, s
        self._numbers = 0
        self._bounds = self._default_bounds()
        self._held = np.zeros((3, len(self.joints)))

    @property
    def goal(self) -> int | None:
        """Number of the goal being executed, or None."""
        return self._goal

    def activate(self, position: FloatArray) -> None:
        """Activate the controller, holding ``position`` (n,)."""
        self.active = True
        self._hold(position)

    def deactivate(self, position: FloatArray) -> None:
        """Deactivate the controller: abort the active goal and hold ``position`` (n,)."""
        self._finish(Status.ABORTED, Code.INVALID_GOAL,
                     'Current goal cancelled during deactivate transition.')
        self._hold(position)
        self.active = False

    def rejection(self, command: Command, now: float) -> str | None:
        """Return the reason to reject a goal with ``command`` at ``now`` s, or None."""
        if not self.active:
            return 'controller is not active'
        return rejection(command, self.joints, now)

    def start(self, goal: Goal, now: float, measured: State) -> int:
        """Begin an accepted goal from the measured position and velocity; return its number.

        An active goal ends at once with INVALID_GOAL.
        """
        self._finish(Status.ABORTED, Code.INVALID_GOAL,
                     'Current goal preempted by new incoming action.')
        self._numbers += 1
        self._goal = self._numbers
        self._bounds = self._bounds_of(goal)
        self._follow(goal.command, now, measured)
        return self._goal

    def follow(self, command: Command, now: float, measured: State) -> str | None:
        """Take a trajectory from the topic; return the reason if it is ignored, else None.

        An active goal is not aborted: it is reported as reached when this trajectory ends.
        """
        reason = self.rejection(command, now)
        if reason is None:
            self._follow(command, now, measured)
        return reason

    def _follow(self, command: Command, now: float, measured: State) -> None:
        self._path = Path(command, self.joints, measured, now)
        self._time = self._updated = now

    def cancel(self, position: FloatArray) -> bool:
        """Cancel the active goal and hold ``position`` (n,); return True if there was one."""
        if self._goal is None:
            return False
        self._finish(Status.CANCELED, Code.SUCCESSFUL, '')
        self._hold(position)
        return True

    def update(self, now: float, position: FloatArray, velocity: FloatArray) -> Update:
        """Advance to ``now`` s with the measured position and velocity (n,)."""
        if self._path is None:
            return Update(self._held, self._held, 0)
        self._time += self.scaling * (now - self._updated)
        self._updated = now
        with np.errstate(invalid='ignore'):  # NaN and infinity pass, as in the original
            reference = self._path.sample(self._time)
            error = reference.motion[:2] - (position, velocity)
        output, elapsed = self._output(reference.motion), self._path.elapsed(self._time)
        self._criteria(reference, error, self._time, position)
        return Update(reference.motion, output, reference.index, elapsed)

    def _criteria(self, reference: Reference, error: FloatArray, now: float,
               position: FloatArray) -> None:
        """End the trajectory at its end or if a tolerance is violated."""
        if not reference.played:
            joint = self._outside(error, self._bounds.path)
            if joint is not None:
                self._abort(Code.PATH_TOLERANCE_VIOLATED, position,
                            f'Aborted due to path tolerance violation of {joint}')
            return
        joint = self._outside(error, self._bounds.goal)
        late = now - (self._path.end if self._path else now)
        if joint is None:
            self._finish(Status.SUCCEEDED, Code.SUCCESSFUL, 'Goal successfully reached!')
            self._hold(self._held[0])
        elif 0.0 < self._bounds.time < late:
            self._abort(Code.GOAL_TOLERANCE_VIOLATED, position,
                        f'Aborted due to goal_time_tolerance exceeding by '
                        f'{late - self._bounds.time:f} seconds, {joint} outside its goal')

    def _abort(self, code: Code, position: FloatArray, text: str) -> None:
        if self._goal is None:
            self.messages.append(f'Holding position: {text}')
        self._finish(Status.ABORTED, code, text)
        self._hold(position)

    def _finish(self, status: Status, code: Code, text: str) -> None:
        if self._goal is not None:
            self.finished.append(Finished(self._goal, status, code, text))
        self._goal = None
        self._bounds = self._default_bounds()

    def _hold(self, position: FloatArray) -> None:
        self._path = None
        self._held = np.zeros((3, len(self.joints)))
        self._held[0] = position

    def _output(self, motion: FloatArray) -> FloatArray:
        """Return the command: NaN positions are replaced by the last command, at rest."""
        if np.isfinite(motion).all():
            self._held = motion
            return motion
        output = motion.copy()
        held = np.isnan(output[0])
        output[0, held] = self._held[0, held]
        output[1:, held] = 0.0
        output[np.isnan(output)] = 0.0
        self._held = output
        return output

    def _outside(self, error: FloatArray, bounds: FloatArray) -> str | None:
        """Return a joint whose error (2, n) exceeds a checked bound; NaN never does."""
        checked = bounds[:2] > 0.0
        if not checked.any():
            return None
        broken = checked & (np.abs(error) > bounds[:2])
        return self.joints[int(np.argmax(broken.any(axis=0)))] if broken.any() else None

    def _default_bounds(self) -> _Bounds:
        n, default = len(self.joints), self._constraints
        path, goal = np.zeros((3, n)), np.zeros((3, n))
        path[0], goal[0], goal[1] = default.path, default.goal, default.stopped_velocity
        return _Bounds(path, goal, default.goal_time)

    def _bounds_of(self, goal: Goal) -> _Bounds:
        default = self._default_bounds()
        for bounds, asked in ((default.path, goal.path_tolerance),
                              (default.goal, goal.goal_tolerance)):
            for name, values in asked.items():
                if name in self.joints:
                    column = bounds[:, self.joints.index(name)]
                    column[:] = [_in_force(*pair) for pair in zip(values, column, strict=True)]
        return _Bounds(default.path, default.goal,
                       _in_force(goal.goal_time_tolerance, default.time))


def _in_force(asked: float, default: float) -> float:
    """Return the effective tolerance: the requested one, 0 for -1, else the default."""
    if asked > 0.0:
        return asked
    return 0.0 if asked == -1.0 else default
