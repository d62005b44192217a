"""A pure emulation of ros2_control's joint_trajectory_controller, its rules and its quirks.

No ROS, no clock: time comes in as seconds. What it does was observed on the controller of
ros2_controllers 5.17.0 (Kilted) with position commands and default parameters.
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
    """Status of a goal at its end: the codes of action_msgs/GoalStatus."""

    SUCCEEDED = 4
    CANCELED = 5
    ABORTED = 6


class Code(IntEnum):
    """The result codes of control_msgs/FollowJointTrajectory."""

    SUCCESSFUL = 0
    INVALID_GOAL = -1
    INVALID_JOINTS = -2
    OLD_HEADER_TIMESTAMP = -3
    PATH_TOLERANCE_VIOLATED = -4
    GOAL_TOLERANCE_VIOLATED = -5


@dataclass(frozen=True)
class Constraints:
    """The controller's defaults where a goal asks for nothing; 0 is unchecked.

    ``path`` and ``goal`` rad or m, ``stopped_velocity`` rad/s at the end, ``goal_time`` s.
    """

    path: float = 0.0
    goal: float = 0.0
    stopped_velocity: float = 0.0
    goal_time: float = 0.0


@dataclass(frozen=True)
class Goal:
    """A goal of the action; per joint tolerances: 0 the controller's default, -1 no check."""

    command: Command
    path_tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    goal_tolerance: Mapping[str, Tolerance] = field(default_factory=dict)
    goal_time_tolerance: float = 0.0


@dataclass(frozen=True)
class Finished:
    """The end of the goal ``number``."""

    number: int
    status: Status
    code: Code
    text: str


@dataclass(frozen=True, eq=False)
class _Bounds:
    """Tolerances in force: (3, n) along the way and at the end, 0 where unchecked; time in s."""

    path: FloatArray
    goal: FloatArray
    time: float


@dataclass(frozen=True, eq=False)
class Update:
    """The controller's view after one cycle; each array (3, n): position, velocity, acceleration.

    ``reference`` is what the trajectory says ``elapsed`` s after its start, ``output`` what the
    drives get: where the reference is NaN the joint holds.
    """

    reference: FloatArray
    output: FloatArray
    index: int
    elapsed: float = 0.0


class TrajectoryController:
    """The state machine behind the topic and the action of one controller.

    ``rejection`` decides about a goal, ``start`` begins an accepted one and numbers it, ``follow``
    takes a message of the topic, ``cancel`` and ``deactivate`` stop; ``update`` is called every
    cycle. ``finished`` and ``messages`` collect ended goals and log texts for the caller to take.
    ``scaling`` is the time of the trajectory per real time, as a speed slider sets it: a new
    trajectory starts by the clock, and from then on its time runs at that rate.
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
        self._time = self._updated = 0.0  # of the trajectory, and by the clock, s
        self._numbers = 0
        self._bounds = self._default_bounds()
        self._held = np.zeros((3, len(self.joints)))

    @property
    def goal(self) -> int | None:
        """Number of the goal being executed, or None."""
        return self._goal

    def activate(self, position: FloatArray) -> None:
        """Start working, holding ``position`` (n,)."""
        self.active = True
        self._hold(position)

    def deactivate(self, position: FloatArray) -> None:
        """Stop working; a goal under way is aborted and the arm holds ``position`` (n,)."""
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

        A goal under way ends at once with INVALID_GOAL.
        """
        self._finish(Status.ABORTED, Code.INVALID_GOAL,
                     'Current goal preempted by new incoming action.')
        self._numbers += 1
        self._goal = self._numbers
        self._bounds = self._bounds_of(goal)
        self._follow(goal.command, now, measured)
        return self._goal

    def follow(self, command: Command, now: float, measured: State) -> str | None:
        """Take a trajectory from the topic; return why it is ignored, or None.

        A goal under way is not aborted: it is reported as reached when this trajectory ends.
        """
        reason = self.rejection(command, now)
        if reason is None:
            self._follow(command, now, measured)
        return reason

    def _follow(self, command: Command, now: float, measured: State) -> None:
        self._path = Path(command, self.joints, measured, now)
        self._time = self._updated = now

    def cancel(self, position: FloatArray) -> bool:
        """Cancel the goal under way and hold ``position`` (n,); return whether there was one."""
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
        """End the trajectory where a tolerance or its end says so."""
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
        """Return the command: NaN positions replaced by the last command, at rest."""
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
    """Return the tolerance in force: the one asked for, 0 for -1, otherwise the default."""
    if asked > 0.0:
        return asked
    return 0.0 if asked == -1.0 else default
