"""Plans of constant-velocity sweeps: friction over speed, free of inertia.

Every joint runs through a ladder of speeds, there and back through the same positions, while the
others hold in several configurations that load it differently.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.excitation.design import DesignCriteria, Planned, StageRow
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.numbers import SPEED, NumberRange, shown
from robot_dynid.settings import require_allowed, setting
from robot_dynid.trajectories.limits import HEADROOM, MotionLimits
from robot_dynid.trajectories.single_joint import Plateau, Sweep, shortest_ramp
from robot_dynid.types import FloatArray, Samples, frozen

PLATEAU = NumberRange(1e-3, 600.0, 's')
#: slow plateaus last until they cover this share of the joint's range
LEAST_PATH = 0.02
#: candidate configurations
SWEEP_CONFIGURATIONS = 24
#: bisections for the highest speed that the range allows
SPEED_HALVINGS = 60


@dataclass(frozen=True)
class ConstantVelocityOptions:
    """Settings of constant-velocity sweeps.

    ``joints`` that sweep (empty: all); number of ``speeds`` in a geometric ladder from
    ``slowest``, a share of the velocity limit; or a ``ladder`` (joint -> speeds, rad/s or m/s).
    Every plateau lasts at least ``plateau`` s. ``configurations`` of the other joints.
    """

    joints: Sequence[str] = ()
    speeds: int = setting(6, NumberRange(1, 100, whole=True))
    slowest: float = setting(0.05, NumberRange(1e-4, 0.999, note='it is a part of the velocity '
                                              'limit'))
    plateau: float = setting(0.5, PLATEAU)
    configurations: int = setting(2, NumberRange(1, 100, whole=True))
    ladder: Mapping[str, Sequence[float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_allowed(self, "option '{}'")
        if isinstance(self.joints, str) or not isinstance(self.joints, Sequence):
            raise UsageError(f"option 'joints' must be a list of joint names, got "
                             f'{shown(self.joints)}')
        if not isinstance(self.ladder, Mapping):
            raise UsageError("option 'ladder' must map joints to speeds such as "
                             '{joint_1: [0.1, 0.5, 1.0]}')
        for joint, speeds in dict[str, Any](self.ladder).items():
            where = f"option 'ladder': speeds of joint '{joint}'"
            if isinstance(speeds, str) or not isinstance(speeds, Sequence) or not (
                    0 < len(speeds) <= 100):
                raise UsageError(f'{where} must be a list of 1 to 100 positive numbers, got '
                                 f'{shown(speeds)}')
            SPEED.array(list(speeds), (len(speeds),), where)

    def check_joints(self, joints: tuple[str, ...]) -> tuple[str, ...]:
        """Return those of ``joints`` that sweep; raises UsageError if the robot lacks one."""
        for option, names in (('joints', self.joints), ('ladder', self.ladder)):
            for name in names:
                if name not in joints:
                    raise UsageError(f"option '{option}' names joint '{name}'; the robot has "
                                     f'{", ".join(joints)}')
        return tuple(j for j in joints if j in self.joints) if self.joints else joints


def plan_sweeps(
    criteria: DesignCriteria, limits: MotionLimits, options: ConstantVelocityOptions,
    generator: np.random.Generator,
) -> Planned:
    """Return the sweeps of all joints, joined by slow moves.

    A ladder is shortened, with a warning, if the range of a joint, an effort limit or a constraint
    allows less. Raises UsageError with the nearest possible value if a requested speed or plateau
    is impossible, DynIdError naming a joint that cannot sweep at all.
    """
    limits.require('lower', 'upper', 'velocity', 'acceleration')
    planner, warnings = Planner(criteria, limits), []
    sweeps: list[Sweep] = []
    joints = options.check_joints(limits.joints)
    for done, name in enumerate(joints):
        if criteria.progress is not None:
            criteria.progress('design', done / len(joints))
        ladder = Ladder(limits, limits.joints.index(name), options.plateau)
        speeds, notes = ladder.speeds(options)
        chosen, more = _sweeps(planner, ladder, (speeds, options.configurations), generator)
        sweeps += chosen
        warnings += notes + more
    path = planner.joined(sweeps)
    rows = () if criteria.model is None else friction_row(criteria.model, sweeps)
    return Planned(path, rows, tuple(warnings))


@dataclass(frozen=True, eq=False)
class Ladder:
    """The speeds that joint number ``joint`` can hold for ``plateau`` s within its range."""

    limits: MotionLimits
    joint: int
    plateau: float

    @property
    def name(self) -> str:
        """Name of the joint."""
        return self.limits.joints[self.joint]

    @property
    def usable_range(self) -> float:
        """Usable range of the joint, rad (m)."""
        return 2.0 * (1.0 - HEADROOM) * float(self.limits.half_range[self.joint])

    def sweep(self, position: FloatArray, speed: float) -> Sweep:
        """Return the sweep at ``speed`` about ``position`` (n,)."""
        ramp = shortest_ramp(self.limits, self.joint, speed)
        lasting = min(max(self.plateau, LEAST_PATH * self.usable_range / speed),
                      self.usable_range / speed - ramp)
        return Sweep(self.limits.joints, self.name, frozen(position), speed, ramp, lasting)

    def path(self, speed: float) -> float:
        """Return the length [rad, m] that a plateau at ``speed`` needs with its ramps."""
        return speed * (self.plateau + shortest_ramp(self.limits, self.joint, speed))

    def highest(self) -> float:
        """Return the highest speed that velocity limit and range allow."""
        low, high = 0.0, (1.0 - HEADROOM) * float(self.limits.velocity[self.joint])
        if self.path(high) <= self.usable_range:
            return high
        for _ in range(SPEED_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.path(middle) <= self.usable_range else (low, middle)
        return low

    def speeds(self, options: ConstantVelocityOptions) -> tuple[list[float], list[str]]:
        """Return the ladder, slowest first, and a warning if it had to be shortened."""
        highest, limit = self.highest(), float(self.limits.velocity[self.joint])
        if self.name in options.ladder:
            ladder = sorted(float(speed) for speed in options.ladder[self.name])
            if ladder[-1] > highest:
                raise UsageError(
                    f"option 'ladder': joint '{self.name}' cannot hold {ladder[-1]:.4g} for "
                    f'{self.plateau:.4g} s within its limits; at most {highest:.4g}')
            return ladder, []
        slowest = options.slowest * limit
        if slowest > highest or (slowest == highest and options.speeds > 1):
            longest = self.usable_range / slowest - shortest_ramp(self.limits, self.joint, slowest)
            raise UsageError(
                f"option 'plateau': joint '{self.name}' cannot hold even its slowest speed "
                f'{slowest:.4g} for {self.plateau:.4g} s within its range: give at most '
                f'{longest:.4g} s, or a smaller slowest')
        count = options.speeds
        speeds = np.geomspace(slowest, highest, count) if count > 1 else np.array([highest])
        notes = [] if highest >= (1.0 - 2.0 * HEADROOM) * limit else [
            f"joint '{self.name}' sweeps only up to {highest:.4g}, below its limit "
            f'{limit:.4g}: its range is too short for faster plateaus of {self.plateau:.4g} s']
        return [float(speed) for speed in speeds], notes


def _sweeps(
    planner: Planner, ladder: Ladder, requested: tuple[list[float], int],
    generator: np.random.Generator,
) -> tuple[list[Sweep], list[str]]:
    """Return the sweeps of a joint at ``requested`` speeds and number of configurations."""
    speeds, count = requested
    candidates = [planner.limits.centre,
                  *(planner.somewhere(generator) for _ in range(SWEEP_CONFIGURATIONS - 1))]
    reason: str | None = None
    for count_used in range(len(speeds), 0, -1):
        allowed = []
        for candidate in candidates:
            sweeps = [ladder.sweep(_inside(ladder, candidate, speeds[:count_used]), speed)
                      for speed in speeds[:count_used]]
            broken = next(filter(None, map(planner.overloaded, reversed(sweeps))), None)
            broken = broken or planner.blocked(_widest(sweeps))
            if broken is None:
                allowed.append(sweeps)
            else:
                reason = broken
        chosen, unproven = _choose_different(planner, ladder.joint, allowed, count)
        reason = unproven or reason
        if chosen:
            notes = [] if count_used == len(speeds) else [
                f"joint '{ladder.name}' sweeps only up to {speeds[count_used - 1]:.4g}: "
                f'faster {reason}']
            if len(chosen) < count:
                notes.append(f"joint '{ladder.name}' sweeps in {len(chosen)} of {count} "
                             f'configurations: elsewhere {reason}')
            return [sweep for sweeps in chosen for sweep in sweeps], notes
    raise DynIdError(
        f"joint '{ladder.name}' cannot sweep in any of {SWEEP_CONFIGURATIONS} configurations, "
        f"because {reason}; omit it with option 'joints', or change the range with option "
        "'limits: {joint: {position: [lower, upper]}}'")


def _inside(ladder: Ladder, candidate: FloatArray, speeds: Sequence[float]) -> FloatArray:
    """Return the configuration shifted so that the longest path of the joint fits its range."""
    position, j = np.array(candidate), ladder.joint
    reach = 0.5 * max(ladder.sweep(candidate, speed).travel for speed in speeds)
    centre, slack = ladder.limits.centre[j], 0.5 * ladder.usable_range - reach
    position[j] = np.clip(position[j], centre - slack, centre + slack)
    return position


def _widest(sweeps: Sequence[Sweep]) -> Sweep:
    """Return the sweep whose path covers those of the others, about the same position."""
    return max(sweeps, key=lambda sweep: sweep.travel)


def _choose_different(
    planner: Planner, joint: int, allowed: list[list[Sweep]], count: int
) -> tuple[list[list[Sweep]], str | None]:
    """Choose up to ``count`` configurations: the first, then those most unlike the chosen ones.

    Unlike in the gravity load of the joint if an inverse model is given, else in the
    configuration. Also returns why the last refused one cannot be proven: the widest sweep covers
    all paths.
    """
    marks = positions = np.array([sweeps[0].position for sweeps in allowed])
    if planner.criteria.inverse is not None and allowed:
        still = np.zeros_like(positions)
        marks = planner.criteria.inverse(positions, still, still)[:, [joint]]
    left, chosen, reason = list(range(len(allowed))), list[int](), None
    while left and len(chosen) < count:
        apart = [min((float(np.linalg.norm(marks[i] - marks[c])) for c in chosen), default=0.0)
                 for i in left]
        best = left.pop(int(np.argmax(apart)))
        widest = _widest(allowed[best])
        refused = planner.unproven(widest)
        if refused is None and not planner.reachable(widest.sample(0.0).position[0]):
            refused = 'no path leads to them'
        if refused is None:
            chosen.append(best)
        else:
            reason = refused
    return [allowed[i] for i in chosen], reason


def friction_row(model: TorqueModel, sweeps: Sequence[Sweep]) -> tuple[StageRow, ...]:
    """Return the stage in which half differences of both directions contain friction only.

    Its parameters are those whose torque changes sign with the speed.
    """
    plateaus = [p for sweep in sweeps for p in sweep.plateaus(0.0) if p.speed > 0.0]
    columns = _half_differences(model, sweeps, plateaus)
    solved = np.flatnonzero(np.any(columns != 0.0, axis=0))
    if not len(solved):
        return ()
    tall = columns[:, solved] / np.linalg.norm(columns[:, solved], axis=0)
    names = tuple(model.reduction.names[i] for i in solved)
    moving = tuple(dict.fromkeys(p.joint for p in plateaus))
    return (StageRow('friction', moving, len(sweeps), names, float(np.linalg.cond(tall))),)


def _half_differences(
    model: TorqueModel, sweeps: Sequence[Sweep], plateaus: Sequence[Plateau]
) -> FloatArray:
    """Return half the difference (rows, b) of the base regressor of both directions at mid-sweep.
"""
    q = np.array([sweep.position for sweep in sweeps])
    qd = np.zeros_like(q)
    for row, plateau in enumerate(plateaus):
        qd[row, sweeps[row].index] = plateau.speed
    parts = []
    for velocity in (qd, -qd):
        samples = Samples(model.robot.joints, np.arange(float(len(q))), q, velocity,
                          np.zeros_like(q), starts=tuple(range(len(q))))
        parts.append(model.columns(samples).copy())
    half = 0.5 * (parts[0] - parts[1])
    return np.asarray(half.transpose(0, 2, 1).reshape(-1, half.shape[1]))
