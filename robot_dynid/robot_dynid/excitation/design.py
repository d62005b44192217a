"""Design of an excitation, optimised or planned, and review of a given one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.collision.clearance import Clearance
from robot_dynid.errors import DynIdError, UsageError, reported
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.excitation.request import DesignOptions, Request, validation_request
from robot_dynid.excitation.score import Score
from robot_dynid.excitation.search.basis import Basis
from robot_dynid.excitation.search.constraints import Constraint, EffortLimits, RigidEffort
from robot_dynid.excitation.search.objective import Objective
from robot_dynid.excitation.search.optimise import Problem, SearchResult, StartRow, search
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.held_out_motion import STATE_RATE, DistinctMotion
from robot_dynid.trajectories.limits import MotionLimits, fractions_used, motion_limits, violations
from robot_dynid.trajectories.trajectory import Motion, Trajectory
from robot_dynid.types import FloatArray, Progress, RawLog, Samples, frozen

#: step [s] of the grid on which predicted efforts are checked at the end
EFFORT_STEP = 0.001
#: instants of that grid evaluated together: bounds the memory
EFFORT_BATCH = 50_000
#: longest motion [s]: the cost of checking all of it grows with its duration
LONGEST_MOTION = 36_000.0
#: share of the effort limits used on the coarser grid of the search
EFFORT_MARGIN = 0.98
#: condition number above which parameters are not excited
INDISTINCT = 1e6
#: fractions of the way from the start to the optimum: the largest that keeps everything also
#: between the instants of the search is taken
FRACTIONS = (1.0, 0.98, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.0)
#: validation motions designed until one is distinct
ATTEMPTS = 3
#: least share of the range and the speeds of the fit motion that a validation motion must cover
JUDGED_SHARE = 0.6


class Reason(Enum):
    """Reason for which a given motion is refused."""

    JOINTS = 'joints'
    LIMITS = 'limits'
    EFFORT = 'effort'
    CLEARANCE = 'clearance'


class MotionRefused(DynIdError):
    """A motion does not fit the robot; ``reason`` is the first reason, the message names all."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class SessionOver(DynIdError):
    """No further swing is worthwhile: the requested accuracy is ``met``, or out of reach.

    ``worst`` is the least known parameter with its ``deviation``; ``unreachable`` are the
    parameters that miss the accuracy.
    """

    def __init__(self, text: str, worst: tuple[str, float], unreachable: tuple[str, ...] = ()
                 ) -> None:
        super().__init__(text)
        self.met, self.worst, self.unreachable = not unreachable, worst, unreachable
        self.deviation = worst[1]


@dataclass(frozen=True, eq=False)
class DesignCriteria:
    """Objective and checks of a design; everything is optional.

    ``score`` maps a trajectory to a Score; ``objective`` maps a name, a typical motion and the
    duration [s] of the execution to an Objective; ``inverse`` predicts efforts; ``progress`` may
    raise Cancelled; ``elapsed`` returns the seconds that count against the time limit, which has
    no effect without it; ``model`` holds the parameters that planned excitations must identify;
    ``constraints`` hold at every instant; ``proof`` checks the whole continuous motion at the end;
    ``warnings`` are added to every design. ``sizes`` (b,) are the parameter values that deviations
    are relative to, None without nominal ones; ``noise`` (n,) N m (N) of an effort sample; an
    adaptive sequence continues from ``recordings``.
    """

    score: Callable[[Trajectory], Score] | None = None
    inverse: RigidEffort | None = None
    progress: Progress | None = None
    model: TorqueModel | None = None
    constraints: tuple[Constraint, ...] = ()
    proof: Callable[[Trajectory], Clearance] | None = None
    objective: Callable[[str, Motion, float], Objective] | None = None
    elapsed: Callable[[], float] | None = None
    warnings: tuple[str, ...] = ()
    sizes: FloatArray | None = None
    noise: FloatArray | None = None
    recordings: Sequence[RawLog] = ()

    def part(self, done: int, count: int) -> DesignCriteria:
        """Return the criteria of one of ``count`` designs; its time limit begins now."""
        report, clock = self.progress, self.elapsed
        begun = 0.0 if clock is None else clock()
        return replace(
            self, progress=report and (lambda stage, share: report(stage, (done + share) / count)),
            elapsed=clock and (lambda: clock() - begun))


@dataclass(frozen=True, eq=False)
class StageRow:
    """A stage of a planned excitation.

    ``moving`` joints that swing, ``swings`` their number; ``solves`` labels of the parameters it
    identifies; ``condition_number`` of their columns, scaled to unit length.
    """

    name: str
    moving: tuple[str, ...]
    swings: int
    solves: tuple[str, ...]
    condition_number: float


@dataclass(frozen=True, eq=False)
class Planned:
    """A motion, its stages, warnings, and whether a time limit ended its search early.

    ``session`` holds the swings that were chosen one by one, see `ADAPTIVE_PLANNERS`.
    """

    trajectory: Trajectory
    stages: tuple[StageRow, ...] = ()
    warnings: tuple[str, ...] = ()
    ended_early: bool = False
    session: Any = None


@dataclass(frozen=True, eq=False)
class Design:
    """A trajectory with the fraction it uses of the limits.

    ``used`` joint -> limit -> fraction of the full limit, ``effort`` included if an inverse model
    was given; ``stages`` of a planned excitation; ``starts`` results of the starts of an optimised
    one; ``session`` of an adaptive sequence; ``clearance`` result of the proof, None without one.
    The motion is a function of robot, request and seed, unless ``ended_early``: then a time limit
    cut the search, and the result also depends on the machine and its load.
    """

    trajectory: Trajectory
    limits: MotionLimits
    used: dict[str, dict[str, float]]
    score: Score | None
    warnings: tuple[str, ...]
    stages: tuple[StageRow, ...] = ()
    starts: tuple[StartRow, ...] = ()
    clearance: Clearance | None = None
    ended_early: bool = False
    session: Any = None


@reported
@one_blas_thread()
def design(robot: RobotModel, request: Request, criteria: DesignCriteria | None = None) -> Design:
    """Return the best motion of a search; it keeps all limits, whenever the search is ended.

    Raises RobotError if limits are missing, DynIdError if no motion keeps the limits or none
    reaches the requested accuracy, Cancelled if the progress callable asks to stop.
    """
    return design_within(
        motion_limits(robot, request.common.limits), request, criteria or DesignCriteria()
    )


@reported
@one_blas_thread()
def design_pair(
    limits: MotionLimits, request: Request, criteria: DesignCriteria
) -> tuple[Design, Design | None]:
    """Return the best motion within ``limits``, and a distinct validation motion.

    The validation motion is None if the request asks for none, or its kind has none. It stays
    within the range, speeds and accelerations of the fit motion. It is the first of ATTEMPTS that
    covers JUDGED_SHARE of range and speeds and visits no state of the fit motion; otherwise the
    one that visits the fewest, with a warning. Raises what `design_within` raises, for either.
    """
    if validation_request(request) is None:
        return design_within(limits, request, criteria), None
    fit = design_within(limits, request, criteria.part(0, 2))
    reached, scale = _validation_limits(fit, request.common.scale), request.common.scale
    candidates: list[tuple[float, float, Design]] = []
    for attempt in range(ATTEMPTS):
        another = validation_request(request, attempt)
        assert another is not None
        candidate = design_within(reached, another, criteria.part(1, 2))
        coverage = _coverage(fit.trajectory, candidate.trajectory)
        candidates.append((repeated_share(fit.trajectory, candidate.trajectory),
                           max(JUDGED_SHARE - coverage, 0.0), candidate))
        if not any(candidates[-1][:2]):
            break
    share, lack, validation = min(candidates, key=lambda one: one[:2])
    notes = list(validation.warnings)
    if share:
        notes.append(f'{share:.0%} repeats states of the fit motion, '
                     'which is common with few joints: validate on the rest')
    if lack:
        notes.append(f'covers only {JUDGED_SHARE - lack:.0%} of the range '
                     'or the speeds of a joint: design a longer motion, or raise iterations')
    used = fractions_used(validation.trajectory.peaks(), limits)
    for joint, shares in validation.used.items():
        if 'effort' in shares:
            used[joint]['effort'] = scale * shares['effort']
    return fit, replace(validation, limits=limits, used=used, warnings=tuple(notes))


def _validation_limits(fit: Design, scale: float) -> MotionLimits:
    """Return the limits that confine a validation motion to the range of the fit motion.

    Speeds and accelerations are those reached in both directions, but at least half of the larger.
    """
    limits, peaks = fit.limits, fit.trajectory.peaks()
    motion = _sample_states(fit.trajectory)
    velocity, acceleration = (
        frozen(np.maximum(np.minimum(values.max(axis=0), -values.min(axis=0)), 0.5 * peak))
        for values, peak in ((motion.velocity, peaks.velocity),
                             (motion.acceleration, peaks.acceleration)))
    return replace(limits, lower=peaks.lower, upper=peaks.upper, velocity=velocity,
                   acceleration=acceleration, jerk=frozen(scale * limits.jerk),
                   effort=frozen(scale * limits.effort))


def _coverage(trajectory: Trajectory, other: Trajectory) -> float:
    """Return the least share of a joint's range or speeds that the ``other`` motion covers."""
    whole, part = (np.concatenate([np.ptp(one.position, axis=0), np.ptp(one.velocity, axis=0)])
                   for one in (_sample_states(trajectory), _sample_states(other)))
    return float(np.min(part / np.maximum(whole, 1e-12)))


def _sample_states(trajectory: Trajectory) -> Samples:
    """Return the states of a motion, sampled at STATE_RATE."""
    time = np.arange(0.0, trajectory.duration, 1.0 / STATE_RATE)
    motion = trajectory.sample(time)
    return Samples(trajectory.joints, time, motion.position, motion.velocity, motion.acceleration)


def repeated_share(trajectory: Trajectory, other: Trajectory) -> float:
    """Return the share of the ``other`` motion that visits states of a trajectory."""
    distinct = DistinctMotion()
    first, second = (distinct.add(_sample_states(one)) for one in (trajectory, other))
    return float(np.mean(np.isin(second, first)))


@one_blas_thread()
def review(trajectory: Trajectory, limits: MotionLimits, criteria: DesignCriteria) -> Design:
    """Return the limits used and the excitation of a given motion, which is not changed.

    Raises MotionRefused if it moves other joints, or exceeds a motion limit, an effort limit or a
    clearance.
    """
    if trajectory.joints != limits.joints:
        raise MotionRefused(
            Reason.JOINTS, f'the trajectory moves {", ".join(trajectory.joints)}; the robot has '
            f'{", ".join(limits.joints)}, in this order')
    return _report(Planned(trajectory), limits, criteria)


@one_blas_thread()
def design_within(limits: MotionLimits, request: Request, criteria: DesignCriteria) -> Design:
    """Return the best motion within the given limits, see `design`."""
    common, family = request.common, request.family
    allowed = replace(limits.scaled(common.scale), effort=frozen(common.scale * limits.effort))
    generator = np.random.default_rng(common.seed)
    if family.plan is not None:
        planned = family.plan(criteria, allowed, request.options, generator)
        return _report(planned, limits, criteria)
    assert family.basis is not None
    basis = family.basis(limits.joints, request.options)
    check_length(basis.duration)
    blank = Problem(basis, allowed, _constant_objective)
    optimum, warnings = _search_motion(blank, request, criteria, generator)
    trajectory = _feasible_trajectory(basis, allowed, optimum, criteria)
    planned = Planned(trajectory, (), warnings, bool(warnings))
    result = replace(_report(planned, limits, criteria), starts=optimum.rows)
    _check_accuracy(result.score, basis, common.accuracy)
    return result


def _search_motion(
    blank: Problem, request: Request, criteria: DesignCriteria, generator: np.random.Generator
) -> tuple[SearchResult, tuple[str, ...]]:
    """Return the optimised motion of a ``blank`` problem, and a warning if it ended early."""
    common, allowed = request.common, blank.limits
    constraints = criteria.constraints
    if criteria.inverse is not None and not np.all(np.isnan(allowed.effort)):
        effort = EffortLimits(criteria.inverse, allowed.joints, EFFORT_MARGIN * allowed.effort)
        constraints = (effort, *constraints)
    problem = replace(blank, constraints=constraints)
    if criteria.objective is None:
        return search(problem, 1, generator, lambda start, iteration, value: True), ()
    typical = problem.motion(problem.basis.random(allowed, np.random.default_rng(common.seed)))
    problem = replace(problem, objective=criteria.objective(
        common.objective, typical, problem.basis.duration))
    termination = Termination(common, criteria)
    optimum = search(problem, common.starts, generator, termination)
    return optimum, (termination.warning(optimum),) if termination.ended_early else ()


def _constant_objective(motion: Motion) -> tuple[float, tuple[FloatArray, FloatArray, FloatArray]]:
    """Return zero for every motion, with zero gradients."""
    none = np.zeros_like(motion.position)
    return 0.0, (none, none, none)


class Termination:
    """Progress of a search: reports it, counts the iterations of a start, checks the time limit.

    ``ended_early``: the time limit ended the search before all starts had converged.
    """

    def __init__(self, common: DesignOptions, criteria: DesignCriteria) -> None:
        self.ended_early = False
        self._common, self._criteria = common, criteria

    def __call__(self, start: int, iteration: int, value: float) -> bool:
        """Return True if a start ends at this iteration; ``value`` is the best so far."""
        common, criteria = self._common, self._criteria
        elapsed = criteria.elapsed() if criteria.elapsed is not None else 0.0
        if criteria.progress is not None:
            done = (start + iteration / common.iterations) / common.starts
            used = elapsed / common.time_limit if common.time_limit > 0.0 else 1.0
            best = f', best value {np.exp(value):.4g}' if np.isfinite(value) else ''
            criteria.progress(f'design: start {start + 1} of {common.starts}{best}',
                              min(max(done, used), 1.0))
        if iteration >= common.iterations:
            return True
        self.ended_early |= criteria.elapsed is not None and elapsed >= common.time_limit
        return self.ended_early

    def warning(self, result: SearchResult) -> str:
        """Return the warning about a search that ended early."""
        limit = f'the time limit of {self._common.time_limit:g} s'
        if sum(row.iterations for row in result.rows) == 0:
            return (f'{limit} ended before the motion was improved, so it is random within the '
                    'limits: raise time_limit')
        return (f'{limit} ended the search in start {len(result.rows)} of {self._common.starts}, '
                'so the same seed may give another motion: raise time_limit, or lower starts or '
                'iterations')


def _feasible_trajectory(
    basis: Basis, allowed: MotionLimits, optimum: SearchResult, criteria: DesignCriteria
) -> Trajectory:
    """Return the optimum, or the nearest motion towards its start that keeps everything.

    Raises DynIdError with what is exceeded if not even the start does.
    """
    for way in FRACTIONS:
        mixed = optimum.start + way * (optimum.coefficients - optimum.start)
        trajectory = basis.trajectory(mixed)
        broken, *_ = _check(trajectory, allowed, criteria)
        if not broken:
            return trajectory
    raise DynIdError('no motion satisfies all constraints: '
                     f"{'; '.join((text for _, text in broken))}")


def check_length(duration: float) -> None:
    """Raise UsageError if a motion of ``duration`` s is longer than LONGEST_MOTION."""
    if duration > LONGEST_MOTION:
        raise UsageError(f'the motion takes {duration:.6g} s, more than {LONGEST_MOTION:g} s: '
                         'design a shorter one')


def effort_peaks(trajectory: Trajectory, inverse: RigidEffort, step: float) -> FloatArray:
    """Return the largest predicted effort of each joint (n,) N m (N) on a grid of ``step`` s."""
    count = max(int(np.ceil(trajectory.duration / step)), 1) + 1
    step = trajectory.duration / (count - 1)
    peaks = np.zeros(len(trajectory.joints))
    for first in range(0, count, EFFORT_BATCH):
        motion = trajectory.sample(step * np.arange(first, min(first + EFFORT_BATCH, count)))
        effort = inverse(motion.position, motion.velocity, motion.acceleration)
        peaks = np.maximum(peaks, np.max(np.abs(effort), axis=0))
    return peaks


def _check_accuracy(score: Score | None, basis: Basis, accuracy: float) -> None:
    """Raise DynIdError if the parameters will be less accurate than requested."""
    if not np.isfinite(accuracy):
        return
    if score is None or score.largest_deviation is None:
        raise DynIdError("option 'accuracy' is relative to nominal parameters and the robot has "
                         "none: "
                         'omit it, or give the links inertials')
    reached = score.largest_deviation
    if reached > accuracy:
        times = int(np.ceil(basis.repetitions * (reached / accuracy) ** 2))
        raise DynIdError(
            f'accuracy {accuracy:g} is out of reach: {score.least_known} will have a relative '
            f'standard deviation of {reached:.3g} after {basis.duration:g} s; ask for {times} '
            f'periods of {basis.span:g} s')


def _check(
    trajectory: Trajectory, limits: MotionLimits, criteria: DesignCriteria
) -> tuple[list[tuple[Reason, str]], FloatArray | None, Clearance | None]:
    """Check limits and efforts at every instant, and clearances if these hold.

    Returns the violations (reason, sentence), the effort peaks (n,) and the clearance, None if not
    computed.
    """
    broken = [(Reason.LIMITS, text) for text in violations(trajectory.peaks(), limits)]
    effort = clearance = None
    if criteria.inverse is not None:
        effort = effort_peaks(trajectory, criteria.inverse, EFFORT_STEP)
        broken += [(Reason.EFFORT, f"effort of joint '{joint}' reaches {value:.4g}, its limit is "
                    f'{limit:.4g}')
                   for joint, value, limit in zip(limits.joints, effort, limits.effort)
                   if value > limit]
    if not broken and criteria.proof is not None:
        clearance = criteria.proof(trajectory)
        if not clearance.free:
            broken.append((Reason.CLEARANCE, f'{" and ".join(clearance.pair)} come as near as '
                           f'{clearance.smallest:.4g} m at {clearance.time:.4g} s'))
    return broken, effort, clearance


def _report(planned: Planned, limits: MotionLimits, criteria: DesignCriteria) -> Design:
    """Return the design of a motion; raises MotionRefused if it exceeds anything."""
    trajectory = planned.trajectory
    check_length(trajectory.duration)
    broken, effort, clearance = _check(trajectory, limits, criteria)
    if broken:
        raise MotionRefused(broken[0][0], '; '.join(text for _, text in broken))
    used = fractions_used(trajectory.peaks(), limits)
    warnings = [*criteria.warnings, *planned.warnings]
    if effort is None:
        warnings.append('efforts were not predicted: no inverse model given')
    else:
        for joint, value, limit in zip(limits.joints, effort, limits.effort):
            if np.isnan(limit):
                warnings.append(f"effort of joint '{joint}' was not checked: its limit is unknown")
            else:
                used[joint]['effort'] = float(value / limit)
    warnings += ('collisions were NOT checked',) if clearance is None else clearance.unchecked
    score = criteria.score(trajectory) if criteria.score is not None else None
    alone = planned.session is None  # a swing of a session is only part of the excitation
    if alone and score is not None and score.condition_number > INDISTINCT:
        warnings.append(f'the motion does not excite all parameters (condition number '
                        f'{score.condition_number:.3g}): ask for more harmonics, knots or poses')
    return Design(trajectory, limits, used, score, tuple(dict.fromkeys(warnings)), planned.stages,
                  clearance=clearance, ended_early=planned.ended_early, session=planned.session)
