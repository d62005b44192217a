"""Plans of sine sequences: swings of single joints from which stages identify parameters.

Two procedures: from the last joint to the first with the efforts of all joints (Wang et al.,
Sensors 2025, 25, 5749, section 4), and body by body with only the effort of its joint, where the
first rotational joint swings for the most part (Lin 1991, Algorithm 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.staged.procedure import (
    PROCEDURES,
    Free,
    LockedJointsMotion,
    Stage,
    decompose,
    excitation_of,
    labels,
    names_from,
)
from robot_dynid.excitation.design import DesignCriteria, Planned, StageRow
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.numbers import NumberRange, shown
from robot_dynid.registry import Registry
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.settings import require_allowed, setting
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.single_joint import SineSwing, fastest, unit_peaks
from robot_dynid.types import FloatArray, Samples, concatenate, frozen

#: procedure whose swings are chosen one by one from the current estimate
ADAPTIVE = 'adaptive'
ACCURACY = NumberRange(1e-6, 1e6, note='it is a deviation relative to nominal parameters')
LONGEST = NumberRange(1.0, 36_000.0, 's')
SWINGS = NumberRange(1, 1000, whole=True)
#: periods of the swings of a sequence planned as a whole
PERIODS = 3
#: default relative accuracy and duration [s] of an adaptive sequence
DEFAULT_ACCURACY, DEFAULT_LONGEST = 0.1, 3600.0
#: random configurations tried until one is allowed
CONFIGURATION_PATIENCE = 64
#: another configuration must lower the condition number of its stage by this factor
IMPROVEMENT = 1.5
#: instants of every swing at which its stage is evaluated
SWING_INSTANTS = 200
#: a swing of a quarter turn to both sides shows all of gravity; a larger one would be slower
LARGEST_SWING = 0.5 * np.pi
#: random candidate configurations for every one added
CANDIDATES = 8
#: shares of the largest amplitude tried, and of the highest frequency for a slow swing
WIDTHS, SLOW_FREQUENCY = (1.0, 0.5, 0.25, 0.1), 0.05
#: bisections for the highest allowed frequency
FREQUENCY_HALVINGS = 12
#: the narrow swing is omitted if it is wider than this share of the wide one
NARROW = 0.7


@dataclass(frozen=True)
class AdaptiveGoal:
    """Goal of an adaptive sequence: relative ``accuracy`` within ``longest`` s of swings.

    ``swings`` is the most to return at once, the first of those needed; ``periods`` of the
    shortest swing.
    """

    accuracy: float
    longest: float
    swings: int
    periods: int


#: planners of adaptive sequences, by procedure
ADAPTIVE_PLANNERS: Registry[
    Callable[[DesignCriteria, MotionLimits, AdaptiveGoal, np.random.Generator], Planned]
] = Registry('robot_dynid.adaptive_planners', {})


@dataclass(frozen=True)
class SineSequenceOptions:
    """Settings of a sine sequence.

    ``procedure`` is one of PROCEDURES, or ADAPTIVE; every swing has ``periods`` at full amplitude
    (default PERIODS), at least as many if adaptive (default 1); at most ``configurations`` of the
    locked joints per stage. An adaptive sequence ends at the relative ``accuracy`` (default
    DEFAULT_ACCURACY), after ``longest`` s of swings, or after ``swings``.
    """

    procedure: str = 'distal-to-proximal'
    periods: int | None = setting(None, NumberRange(1, 100, whole=True))
    configurations: int = setting(3, NumberRange(1, 100, whole=True))
    accuracy: float | None = setting(None, ACCURACY)
    longest: float | None = setting(None, LONGEST)
    swings: int | None = setting(None, SWINGS)

    def __post_init__(self) -> None:
        procedures = (*PROCEDURES, *ADAPTIVE_PLANNERS)
        if not isinstance(self.procedure, str) or self.procedure not in procedures:
            ADAPTIVE_PLANNERS.require(str(self.procedure))
            raise UsageError(f"option 'procedure' must be one of {', '.join(procedures)}, got "
                             f'{shown(self.procedure)}')
        require_allowed(self, "option '{}'")
        given = [name for name in ('accuracy', 'longest', 'swings')
                 if getattr(self, name) is not None]
        if given and self.procedure in PROCEDURES:
            raise UsageError(f"option '{given[0]}' has no effect on a sine-sequence that is "
                             f"planned as a whole: omit it, or use procedure {ADAPTIVE}")

    @property
    def goal(self) -> AdaptiveGoal:
        """The goal of an adaptive sequence."""
        return AdaptiveGoal(self.accuracy or DEFAULT_ACCURACY, self.longest or DEFAULT_LONGEST,
                            self.swings or int(SWINGS.high), self.periods or 1)


def plan_motions(
    model: TorqueModel, planner: Planner, options: SineSequenceOptions,
    rng: np.random.Generator,
) -> list[LockedJointsMotion]:
    """Return the swings in the order of execution; additional ones only if they help."""
    swings = Swings(planner)
    if options.procedure == 'distal-to-proximal':
        return _each_joint(model, swings, options.configurations, rng)
    return _first_joint(model, swings, options.configurations, rng)


def _each_joint(
    model: TorqueModel, swings: Swings, max_count: int, rng: np.random.Generator
) -> list[LockedJointsMotion]:
    """Swing every joint, last one first, with the others in up to ``max_count`` configurations."""
    planned: list[LockedJointsMotion] = []
    rows = tuple(range(model.robot.n))
    for j in reversed(range(model.robot.n)):
        places = chain([swings.home], swings.somewhere(rng, CONFIGURATION_PATIENCE))
        chosen = [swings.first(j, places)]

        def stage(motions: list[LockedJointsMotion], joint: int = j) -> Stage:
            return Stage(model.robot.joints[joint], tuple(motions), rows,
                         names_from(model, joint))

        while len(chosen) < max_count and _extend(
            model, stage, chosen, swings.motions(j, swings.somewhere(rng))):
            pass
        planned += chosen
    return planned


def _first_joint(
    model: TorqueModel, swings: Swings, max_count: int, rng: np.random.Generator
) -> list[LockedJointsMotion]:
    """Swing every joint once, and the first rotational one with a body's joint at several angles.

    If a joint before the body (one at a distance, or a prismatic one) identifies more than the
    first rotational joint, it swings, too: cases (b) and (c) of step 3.1.
    """
    robot = model.robot
    rotational = [j for j in range(robot.n) if robot.types[j] != PRISMATIC]
    if not rotational:
        raise UsageError(f'{robot.name} has no rotational joint, which procedure body-by-body '
                         'needs: use distal-to-proximal')
    bent, planned = _choose_bent_pose(swings, rng)
    for j in reversed(range(robot.n)):

        def stage(motions: list[LockedJointsMotion], body: int = j) -> Stage:
            usable = tuple(m for m in motions if robot.carried[m.moving, body])
            return Stage(f'body {robot.joints[body]}', usable, (body,), names_from(model, body))

        predecessors = [i for i in range(j) if robot.carried[i, j]]
        for mover in sorted(predecessors, key=lambda i: i != rotational[0]):
            improvement = IMPROVEMENT if mover == rotational[0] else np.inf
            places = np.tile(bent, (CANDIDATES, 1))
            reach = min(LARGEST_SWING, float(swings.limits.half_range[j]))
            places[:, j] = swings.home[j] + reach * np.linspace(-0.95, 0.95, CANDIDATES)
            turned = list(swings.motions(mover, places))
            for _ in range(max_count - 1):
                if not _extend(model, stage, planned, turned, improvement):
                    break
    return planned


def _choose_bent_pose(
    swings: Swings, rng: np.random.Generator
) -> tuple[FloatArray, list[LockedJointsMotion]]:
    """Return a random configuration in which every joint may swing, and these swings."""
    joints = range(len(swings.home))
    for place in swings.somewhere(rng, CONFIGURATION_PATIENCE):
        planned = [motion for j in reversed(joints) for motion in swings.motions(j, [place])]
        if len(planned) == len(joints):
            return place, planned
    return place, [swings.first(j, [place]) for j in reversed(joints)]


def _extend(
    model: TorqueModel,
    stage: Callable[[list[LockedJointsMotion]], Stage],
    chosen: list[LockedJointsMotion],
    candidates: Iterable[LockedJointsMotion],
    improvement: float = IMPROVEMENT,
) -> bool:
    """Add the best candidate to ``chosen`` and return True, if one qualifies.

    It must let the stage solve more, or lower its condition number by the factor ``improvement``.
    """
    count, condition = excitation_of(model, stage(chosen))
    best, gain = None, (count, condition / improvement)
    for candidate in candidates:
        more, after = excitation_of(model, stage([*chosen, candidate]))
        if more > gain[0] or (more == gain[0] and after < gain[1]):
            best, gain = candidate, (more, after)
    if best is not None:
        chosen.append(best)
    return best is not None


def sine_sequence(
    criteria: DesignCriteria,
    limits: MotionLimits,
    options: SineSequenceOptions,
    rng: np.random.Generator,
) -> Planned:
    """Return the planned swings with slow moves between them, and the stages they serve.

    Swings of an adaptive sequence are chosen one by one, see ADAPTIVE_PLANNERS. Every swing is as
    fast as the limits and ``criteria`` (efforts, constraints) allow. Raises DynIdError naming
    joint and stage if the limits allow no excitation.
    """
    if options.procedure not in PROCEDURES:
        return ADAPTIVE_PLANNERS[options.procedure](criteria, limits, options.goal, rng)
    model = criteria.model
    assert model is not None
    limits.require('lower', 'upper', 'velocity', 'acceleration')
    planner = Planner(criteria, limits)
    swings = [swing for motion in plan_motions(model, planner, options, rng)
              for swing in wide_and_narrow(
                  planner, motion, options.periods or PERIODS)]
    stages = _stage_rows(model, swings, options.procedure)
    return Planned(planner.joined(swings), stages)


def _stage_rows(
    model: TorqueModel, swings: Sequence[SineSwing], procedure: str
) -> tuple[StageRow, ...]:
    """Return the stages that identify a parameter, in order."""
    motions = {LockedJointsMotion(s.index, s.position, s.amplitude): s for s in swings}
    free = Free.everything(len(model.reduction.names))
    rows = []
    for stage in PROCEDURES[procedure](model, tuple(motions)):
        solution = decompose(model, stage, free)
        if not len(solution.solved):
            continue
        tall = _regressor(model, stage, [motions[m] for m in stage.motions])
        fitted = tall @ free.directions[:, solution.fitted]
        condition = np.linalg.cond(fitted / np.linalg.norm(fitted, axis=0))
        moving = tuple(dict.fromkeys(motions[m].moving for m in stage.motions))
        rows.append(StageRow(stage.name, moving, len(stage.motions), labels(model, free, solution),
                             float(condition)))
        free = free.without(solution)
    return tuple(rows)


def _regressor(model: TorqueModel, stage: Stage, swings: Sequence[SineSwing]) -> FloatArray:
    """Return the base regressor (N, b) of the stage's rows during its swings."""
    parts = []
    for swing in swings:
        time = np.linspace(0.0, swing.duration, SWING_INSTANTS)
        motion = swing.sample(time)
        parts.append(Samples(model.robot.joints, time, motion.position, motion.velocity,
                             motion.acceleration))
    columns = model.columns(concatenate(parts))[list(stage.rows)]
    return np.asarray(columns.transpose(0, 2, 1).reshape(-1, columns.shape[1]))


@dataclass(frozen=True, eq=False)
class Swings:
    """Swings of single joints, the others locked, within what ``planner`` allows."""

    planner: Planner

    @property
    def limits(self) -> MotionLimits:
        """The limits of the motion."""
        return self.planner.limits

    @property
    def home(self) -> FloatArray:
        """The centre (n,) of the position ranges."""
        return self.limits.centre

    def motions(self, joint: int, places: Iterable[FloatArray]) -> Iterator[LockedJointsMotion]:
        """Yield the widest allowed swing of ``joint`` in every locked configuration (n,)."""
        for place in places:
            motion, _ = self._widest(joint, place)
            if motion is not None:
                yield motion

    def first(self, joint: int, places: Iterable[FloatArray]) -> LockedJointsMotion:
        """Return the first of `motions` in locked configurations ``places``, each (n,) rad (m).

        Raises DynIdError naming the joint if there is none.
        """
        reason: str | None = None
        for place in places:
            motion, reason = self._widest(joint, place)
            if motion is not None:
                return motion
        raise _nothing_allowed(self.limits.joints[joint], reason)

    def _widest(
        self, joint: int, locked: FloatArray
    ) -> tuple[LockedJointsMotion | None, str | None]:
        """Return the widest allowed swing about the centre of the range or the locked position.

        None with the reason if not even a narrow one is allowed.
        """
        half, reason = float(self.limits.half_range[joint]), None
        for share in WIDTHS:
            width = share * min(LARGEST_SWING, half)
            for middle in (self.home[joint], locked[joint]):
                position = np.array(locked)
                position[joint] = self.home[joint] + np.clip(
                    middle - self.home[joint], width - half, half - width)
                motion = LockedJointsMotion(joint, position, width)
                reason = self._objection(motion)
                if reason is None:
                    return motion, None
        return None, reason

    def _objection(self, motion: LockedJointsMotion) -> str | None:
        fast = fastest(self.limits, motion.moving, motion.amplitude)
        quick = _swing(self.limits, motion, 1, fast)
        reason = (self.planner.overloaded(_swing(self.limits, motion, 1, SLOW_FREQUENCY * fast))
               or self.planner.blocked(quick) or self.planner.unproven(quick))
        if reason is None and not self.planner.reachable(motion.position):
            return 'no path leads to it'
        return reason

    def somewhere(
        self, rng: np.random.Generator, count: int = CANDIDATES
    ) -> Iterator[FloatArray]:
        """Yield random configurations (n,), at most a quarter turn from the centre."""
        reach = np.minimum(LARGEST_SWING, self.limits.half_range)
        for _ in range(count):
            yield self.home + reach * rng.uniform(-1.0, 1.0, len(reach))


def wide_and_narrow(planner: Planner, motion: LockedJointsMotion, periods: int) -> list[SineSwing]:
    """Return a wide swing, which shows gravity, and a narrow one, which shows inertia.

    The narrow one reaches velocity and acceleration limits together.
    """
    joint, peaks = motion.moving, unit_peaks()
    speed, rate = planner.limits.velocity[joint], planner.limits.acceleration[joint]
    corner = float(speed**2 * peaks[1] / (rate * peaks[0] ** 2))
    widths = [motion.amplitude]
    if corner < NARROW * motion.amplitude:
        widths.append(corner)
    return [_fast_swing(planner, replace(motion, amplitude=a), periods) for a in widths]


def _fast_swing(planner: Planner, motion: LockedJointsMotion, periods: int) -> SineSwing:
    """Return the swing at the highest allowed frequency: speed, acceleration, jerk, effort."""
    highest = fastest(planner.limits, motion.moving, motion.amplitude)
    low, high, frequency, reason = 0.0, highest, highest, None
    for _ in range(FREQUENCY_HALVINGS):
        broken = planner.broken(_swing(planner.limits, motion, periods, frequency))
        if broken is None:
            low = frequency
        else:
            high, reason = frequency, broken
        if low == highest:
            break
        frequency = 0.5 * (low + high)
    if low == 0.0:
        raise _nothing_allowed(planner.limits.joints[motion.moving], reason)
    return _swing(planner.limits, motion, periods, low)


def _swing(
    limits: MotionLimits, motion: LockedJointsMotion, periods: int, frequency: float
) -> SineSwing:
    return SineSwing(limits.joints, limits.joints[motion.moving], frozen(motion.position),
                     motion.amplitude, frequency, periods)


def _nothing_allowed(joint: str, reason: str | None) -> DynIdError:
    return DynIdError(
        f"stage '{joint}': the limits allow no excitation of joint '{joint}', because {reason} "
        "even in slow motion; narrow the positions with option 'limits: "
        "{joint: {position: [lower, upper]}}'")
