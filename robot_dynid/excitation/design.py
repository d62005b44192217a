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
from robot_dynid.excitation.search.optimise import Found, Problem, StartRow, search
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.held_out_motion import STATE_RATE, DistinctMotion
from robot_dynid.trajectories.limits import MotionLimits, fractions_used, motion_limits, violations
from robot_dynid.trajectories.trajectory import Motion, Trajectory
from robot_dynid.types import FloatArray, Progress, RawLog, Samples, frozen

#: step [s] of the grid on which predicted efforts are checked in the end
EFFORT_STEP = 0.001
#: instants of that grid looked at together: bounds the memory
EFFORT_BATCH = 50_000
#: the longest motion, s: the work of looking at all of it grows with its length
LONGEST_MOTION = 36_000.0
#: part of the effort limits used on the coarser grid of the search
EFFORT_MARGIN = 0.98
#: condition number above which parameters are not excited
INDISTINCT = 1e6
#: parts of the way from the start to the optimum, of which the largest that keeps everything
#: between the instants of the search, too, is taken
FRACTIONS = (1.0, 0.98, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.0)
#: motions to judge by that are designed until one is distinct
ATTEMPTS = 3
#: share of the range and of the speeds of a motion to fit that one to judge by covers: less shows
#: nothing of the rest
JUDGED_SHARE = 0.6


class Reason(Enum):
    """Why a given motion is refused."""

    JOINTS = 'joints'
    LIMITS = 'limits'
    EFFORT = 'effort'
    CLEARANCE = 'clearance'


class MotionRefused(DynIdError):
    """A motion does not fit the robot; ``reason`` is the first, the message names all."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class SessionOver(DynIdError):
    """No further swing is worth its time: the accuracy asked for is ``met``, or out of reach.

    ``worst`` is the parameter known worst with its ``deviation``, ``unreachable`` the parameters
    that miss the accuracy.
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
    seconds of the execution to what is minimised; ``inverse`` predicts efforts; ``progress`` may
    raise Cancelled; ``elapsed`` returns the seconds that count against the time limit, which has
    no effect without it; ``model`` holds the parameters that planned excitations have to find;
    ``constraints`` are kept at every instant; ``proof`` looks at the whole continuous motion in
    the end; ``warnings`` are those of every design. ``sizes`` (b,) of the parameters of ``model``,
    to which deviations are relative, None where there are no nominal ones; ``noise`` (n,) N m (N)
    of an effort sample; an adaptive sequence goes on from ``recordings``.
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

    ``moving`` joints that swing, ``swings`` their number; ``solves`` labels of what it
    finds; ``condition_number`` of that with unit columns.
    """

    name: str
    moving: tuple[str, ...]
    swings: int
    solves: tuple[str, ...]
    condition_number: float


@dataclass(frozen=True, eq=False)
class Planned:
    """A motion, its stages, warnings, and whether a time limit ended the search for it early.

    ``session`` of swings that were chosen one by one, see `ADAPTIVE_PLANNERS`.
    """

    trajectory: Trajectory
    stages: tuple[StageRow, ...] = ()
    warnings: tuple[str, ...] = ()
    ended_early: bool = False
    session: Any = None


@dataclass(frozen=True, eq=False)
class Design:
    """A trajectory with what it uses of the limits.

    ``used`` joint -> limit -> fraction of the full limit; ``effort`` likewise within it, where an
    inverse model was given; ``stages`` of a planned excitation; ``starts`` what became of every
    start of an optimised one; ``session`` that of an adaptive sequence; ``clearance`` what the
    proof found, None without one. The motion is a function of robot, request and seed, unless
    ``ended_early``: then a time limit cut the search, and another machine, or this one under
    another load, finds another motion.
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
    """Return the best motion found; it keeps all limits, whenever the search is ended.

    Raises RobotError when limits are missing, DynIdError when no motion keeps the limits or none
    reaches the accuracy asked for, Cancelled when the progress callable asks to stop.
    """
    return design_within(
        motion_limits(robot, request.common.limits), request, criteria or DesignCriteria()
    )


@reported
@one_blas_thread()
def design_pair(
    limits: MotionLimits, request: Request, criteria: DesignCriteria
) -> tuple[Design, Design | None]:
    """Return the best motion within ``limits``, and a distinct one to judge a model by.

    The latter is None where the request asks for none, or its kind has none. It stays within the
    range, the speeds and the accelerations of the other, and is the first of a few that covers
    JUDGED_SHARE of the range and the speeds, and passes no states of it; where all do, the one
    that does least, with a warning. Raises what `design_within` raises, for either.
    """
    if validation_request(request) is None:
        return design_within(limits, request, criteria), None
    fit = design_within(limits, request, criteria.part(0, 2))
    reached, scale = _reached(fit, request.common.scale), request.common.scale
    found: list[tuple[float, float, Design]] = []
    for attempt in range(ATTEMPTS):
        another = validation_request(request, attempt)
        assert another is not None
        made = design_within(reached, another, criteria.part(1, 2))
        found.append((repeated(fit.trajectory, made.trajectory),
                      max(JUDGED_SHARE - _covered(fit.trajectory, made.trajectory), 0.0), made))
        if not any(found[-1][:2]):
            break
    share, lack, judge = min(found, key=lambda one: one[:2])
    notes = list(judge.warnings)
    if share:
        notes.append(f'{share:.0%} of the motion to judge by passes states of the motion to fit, '
                     'as those of few joints do: only the rest of it tells something new')
    if lack:
        notes.append(f'the motion to judge by covers {JUDGED_SHARE - lack:.0%} of the range or '
                     'speeds of a joint: a longer motion to fit, or more iterations, give a wider '
                     'one')
    used = fractions_used(judge.trajectory.peaks(), limits)
    for joint, shares in judge.used.items():
        if 'effort' in shares:
            used[joint]['effort'] = scale * shares['effort']
    return fit, replace(judge, limits=limits, used=used, warnings=tuple(notes))


def _reached(fit: Design, scale: float) -> MotionLimits:
    """Return the limits within which a motion to judge by stays in the range of that to fit.

    Speeds and accelerations are those reached both ways, but at least half of the larger ones.
    """
    limits, peaks = fit.limits, fit.trajectory.peaks()
    motion = _sampled(fit.trajectory)
    velocity, acceleration = (
        frozen(np.maximum(np.minimum(values.max(axis=0), -values.min(axis=0)), 0.5 * peak))
        for values, peak in ((motion.velocity, peaks.velocity),
                             (motion.acceleration, peaks.acceleration)))
    return replace(limits, lower=peaks.lower, upper=peaks.upper, velocity=velocity,
                   acceleration=acceleration, jerk=frozen(scale * limits.jerk),
                   effort=frozen(scale * limits.effort))


def _covered(trajectory: Trajectory, other: Trajectory) -> float:
    """Return the least share of a joint's range, or of its speeds, that the ``other`` covers."""
    whole, part = (np.concatenate([np.ptp(one.position, axis=0), np.ptp(one.velocity, axis=0)])
                   for one in (_sampled(trajectory), _sampled(other)))
    return float(np.min(part / np.maximum(whole, 1e-12)))


def _sampled(trajectory: Trajectory) -> Samples:
    """Return the states of a motion as samples at STATE_RATE."""
    time = np.arange(0.0, trajectory.duration, 1.0 / STATE_RATE)
    motion = trajectory.sample(time)
    return Samples(trajectory.joints, time, motion.position, motion.velocity, motion.acceleration)


def repeated(trajectory: Trajectory, other: Trajectory) -> float:
    """Return the share of the ``other`` motion that passes states of a trajectory."""
    distinct = DistinctMotion()
    first, second = (distinct.add(_sampled(one)) for one in (trajectory, other))
    return float(np.mean(np.isin(second, first)))


@one_blas_thread()
def review(trajectory: Trajectory, limits: MotionLimits, criteria: DesignCriteria) -> Design:
    """Return limits used and excitation of a given motion, which is not changed.

    Raises MotionRefused where it moves other joints, or breaks a limit of the motion, the
    predicted effort of a joint or a clearance.
    """
    if trajectory.joints != limits.joints:
        raise MotionRefused(
            Reason.JOINTS, f'the trajectory moves {", ".join(trajectory.joints)}; the robot has '
            f'{", ".join(limits.joints)}, in this order')
    return _report(Planned(trajectory), limits, criteria)


@one_blas_thread()
def design_within(limits: MotionLimits, request: Request, criteria: DesignCriteria) -> Design:
    """Return the best motion within given limits, see `design`."""
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
    found, warnings = _searched(blank, request, criteria, generator)
    planned = Planned(_feasible(basis, allowed, found, criteria), (), warnings, bool(warnings))
    result = replace(_report(planned, limits, criteria), starts=found.rows)
    _check_accuracy(result.score, basis, common.accuracy)
    return result


def _searched(
    blank: Problem, request: Request, criteria: DesignCriteria, generator: np.random.Generator
) -> tuple[Found, tuple[str, ...]]:
    """Return the design of a ``blank`` problem, and a warning where it ended early."""
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
    found = search(problem, common.starts, generator, termination)
    return found, (termination.warning(found),) if termination.ended_early else ()


def _constant_objective(motion: Motion) -> tuple[float, tuple[FloatArray, FloatArray, FloatArray]]:
    """Return one value for all motions."""
    none = np.zeros_like(motion.position)
    return 0.0, (none, none, none)


class Termination:
    """Reports the progress of a search, counts the iterations of a start, looks at the clock.

    ``ended_early``: the time limit was over before all starts had ended by themselves.
    """

    def __init__(self, common: DesignOptions, criteria: DesignCriteria) -> None:
        self.ended_early = False
        self._common, self._criteria = common, criteria

    def __call__(self, start: int, iteration: int, value: float) -> bool:
        """Return whether a start ends at this iteration; ``value`` is the best so far."""
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

    def warning(self, found: Found) -> str:
        """Return the sentence about a search that ended early."""
        limit = f'the time limit of {self._common.time_limit:g} s'
        if sum(row.iterations for row in found.rows) == 0:
            return (f'{limit} was over before the motion could be improved: it keeps all limits, '
                    'but is a random one')
        return (f'{limit} ended the search in start {len(found.rows)} of {self._common.starts}: '
                'the same seed may find another motion next time; raise time_limit, or lower '
                'starts or iterations')


def _feasible(
    basis: Basis, allowed: MotionLimits, found: Found, criteria: DesignCriteria
) -> Trajectory:
    """Return the optimum, or the nearest to it on the way from its start that keeps everything.

    Raises DynIdError with what is broken when not even the start does.
    """
    for way in FRACTIONS:
        mixed = found.start + way * (found.coefficients - found.start)
        trajectory = basis.trajectory(mixed)
        broken, *_ = _check(trajectory, allowed, criteria)
        if not broken:
            return trajectory
    raise DynIdError('no motion was found that keeps everything: '
                     f'{"; ".join(text for _, text in broken)}')


def check_length(duration: float) -> None:
    """Raise UsageError when a motion of ``duration`` s is longer than LONGEST_MOTION."""
    if duration > LONGEST_MOTION:
        raise UsageError(f'the motion takes {duration:.6g} s, at most {LONGEST_MOTION:g} s are '
                         'possible; ask for less of it at once')


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
    """Raise DynIdError when the parameters will not be known as well as asked for."""
    if not np.isfinite(accuracy):
        return
    if score is None or score.largest_deviation is None:
        raise DynIdError("option 'accuracy' compares with nominal parameters: the robot has none; "
                         'leave it out, or give the links inertials')
    reached = score.largest_deviation
    if reached > accuracy:
        times = int(np.ceil(basis.repetitions * (reached / accuracy) ** 2))
        raise DynIdError(
            f'accuracy {accuracy:g} is out of reach: {score.least_known} will have a relative '
            f'standard deviation of {reached:.3g} after {basis.duration:g} s; deviations fall as '
            f'the root of time grows, so {times} periods of {basis.span:g} s would do')


def _check(
    trajectory: Trajectory, limits: MotionLimits, criteria: DesignCriteria
) -> tuple[list[tuple[Reason, str]], FloatArray | None, Clearance | None]:
    """Check limits and efforts at every instant; clearances where these are kept.

    Returns the breaches, sentences by reason, the effort peaks (n,) and the clearance, if known.
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
    """Return the design of a motion; raises MotionRefused when it breaks anything."""
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
    alone = planned.session is None  # a swing of a session is only a part of what excites all
    if alone and score is not None and score.condition_number > INDISTINCT:
        warnings.append(f'the motion does not excite all parameters (condition number '
                        f'{score.condition_number:.3g}): give it more harmonics, knots or poses')
    return Design(trajectory, limits, used, score, tuple(dict.fromkeys(warnings)), planned.stages,
                  clearance=clearance, ended_early=planned.ended_early, session=planned.session)
