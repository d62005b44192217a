"""Design of an excitation: the best of several random candidates that keep all limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.errors import DynIdError
from robot_dynid.excitation.basis import Basis
from robot_dynid.excitation.constraint import Clearance, Constraint
from robot_dynid.excitation.limits import MotionLimits, fractions_used, motion_limits, violations
from robot_dynid.excitation.request import Family, Request, parse_request
from robot_dynid.excitation.trajectory import Motion, Trajectory
from robot_dynid.experiment import TorqueModel
from robot_dynid.model.robot import RobotModel
from robot_dynid.types import FloatArray, frozen

SCORE_INSTANTS = 400
EFFORT_STEP = 0.01
# Room kept while searching on the coarse grid; the result is checked on one ten times finer.
EFFORT_MARGIN = 0.98
HALVINGS = 10

Inverse = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]
Progress = Callable[[str, float], None]
Draw = Callable[[MotionLimits], Trajectory]

__all__ = ['Design', 'Family', 'Inverse', 'Judge', 'Planned', 'Progress', 'Request', 'Score',
           'StageRow', 'design', 'design_within', 'effort_peaks', 'parse_request',
           'regressor_score']


@dataclass(frozen=True)
class Score:
    """How well a motion excites the base parameters.

    ``condition_number`` of the column-scaled base regressor (small is good); ``log_det`` of its
    information matrix W^T W (large is good).
    """

    condition_number: float
    log_det: float


@dataclass(frozen=True, eq=False)
class Judge:
    """What candidates are judged by; everything is optional.

    ``score`` maps a motion to a Score; ``inverse`` maps position, velocity, acceleration (K, n) to
    efforts (K, n) N m (N); ``progress`` is told stage and fraction and may raise Cancelled;
    ``model`` holds the parameters that planned excitations have to find; ``constraints`` are kept
    at every instant; ``proof`` looks at the whole continuous motion in the end.
    """

    score: Callable[[Motion], Score] | None = None
    inverse: Inverse | None = None
    progress: Progress | None = None
    model: TorqueModel | None = None
    constraints: tuple[Constraint, ...] = ()
    proof: Callable[[Trajectory], Clearance] | None = None


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
    """What a planned family returns: the motion, its stages, and what could not be had."""

    trajectory: Trajectory
    stages: tuple[StageRow, ...] = ()
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Design:
    """A trajectory with what it uses of the limits.

    ``used`` joint -> limit -> fraction of the full limit; ``effort`` likewise within it, where an
    inverse model was given; ``stages`` of a planned excitation.
    """

    trajectory: Trajectory
    limits: MotionLimits
    used: dict[str, dict[str, float]]
    score: Score | None
    warnings: tuple[str, ...]
    stages: tuple[StageRow, ...] = ()


def design(robot: RobotModel, request: Request, judge: Judge | None = None) -> Design:
    """Return the best of the random candidates; every one of them keeps all limits.

    Raises RobotError when limits are missing, DynIdError when no candidate keeps the effort
    limits, Cancelled when the progress callable asks to stop.
    """
    return design_within(motion_limits(robot, request.common.limits), request, judge or Judge())


def design_within(limits: MotionLimits, request: Request, judge: Judge) -> Design:
    """Return the best candidate within given limits, see `design`."""
    from robot_dynid.excitation import DESIGNS

    common, family = request.common, DESIGNS[request.kind]
    allowed = limits.scaled(common.scale)
    generator = np.random.default_rng(common.seed)
    if family.plan is not None:
        effort = replace(allowed, effort=frozen(common.scale * limits.effort))
        planned = family.plan(judge, effort, request.options, generator)
        score = _score(planned.trajectory, judge)
        found = _report(planned.trajectory, limits, score, judge.inverse)
        warnings = tuple(dict.fromkeys(planned.warnings + found.warnings))
        return replace(found, stages=planned.stages, warnings=warnings)
    assert family.basis is not None
    basis = family.basis(limits.joints, request.options)
    draws = common.starts if judge.score is not None else 1
    best: tuple[float, Trajectory, Score | None] | None = None
    for index, seed in enumerate(generator.integers(2**63, size=draws)):
        if judge.progress is not None:
            judge.progress('design', index / draws)
        candidate = _within_effort(
            _reseeded(basis, int(seed)),
            allowed, limits.effort * common.scale, judge.inverse)
        score = _score(candidate, judge)
        value = score.condition_number if score is not None else 0.0
        if best is None or value < best[0]:
            best = (value, candidate, score)
    assert best is not None
    return _report(best[1], limits, best[2], judge.inverse)


def regressor_score(matrix: FloatArray) -> Score:
    """Score a base regressor (rows, p), rows of all joints and instants stacked.

    QR first: its singular values are those of the triangular factor, at a fraction of the cost.
    """
    factor = np.linalg.qr(matrix, mode='r')
    norms = np.linalg.norm(factor, axis=0)
    diagonal = np.abs(np.diag(factor))
    if np.any(norms == 0.0) or np.any(diagonal == 0.0):
        return Score(float('inf'), float('-inf'))
    values = np.linalg.svd(factor / norms, compute_uv=False)
    return Score(float(values[0] / values[-1]), float(2.0 * np.sum(np.log(diagonal))))


def effort_peaks(trajectory: Trajectory, inverse: Inverse, step: float) -> FloatArray:
    """Return the largest predicted effort of each joint (n,) N m (N) on a grid of ``step`` s."""
    time = np.linspace(0.0, trajectory.duration, int(np.ceil(trajectory.duration / step)) + 1)
    motion = trajectory.sample(time)
    effort = inverse(motion.position, motion.velocity, motion.acceleration)
    return np.asarray(np.max(np.abs(effort), axis=0), dtype=np.float64)


def _score(candidate: Trajectory, judge: Judge) -> Score | None:
    if judge.score is None:
        return None
    return judge.score(candidate.sample(np.linspace(0.0, candidate.duration, SCORE_INSTANTS)))


def _reseeded(basis: Basis, seed: int) -> Draw:
    """Return a draw that repeats the same random shape within whatever limits it is given."""
    return lambda limits: basis.trajectory(basis.random(limits, np.random.default_rng(seed)))


def _within_effort(
    draw: Draw,
    allowed: MotionLimits,
    effort: FloatArray,
    inverse: Inverse | None,
) -> Trajectory:
    """Draw within ``allowed``, narrowed about its centre until ``effort`` (n,) is kept.

    The same seed gives the same shape at every size, so halving the interval is enough.
    """
    candidate = draw(allowed)
    if inverse is None or _keeps(candidate, inverse, effort):
        return candidate
    good: Trajectory | None = None
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        candidate = draw(allowed.scaled(middle))
        if _keeps(candidate, inverse, effort):
            low, good = middle, candidate
        else:
            high = middle
    if good is None:
        peaks = effort_peaks(candidate, inverse, EFFORT_STEP)
        worst = int(np.nanargmax(peaks / effort))
        raise DynIdError(
            f"joint '{allowed.joints[worst]}' needs {peaks[worst]:.4g} to hold the middle of the "
            f'position range, allowed are {effort[worst]:.4g}; move the range with option '
            "'limits: {joint: {position: [lower, upper]}}'")
    return good


def _keeps(candidate: Trajectory, inverse: Inverse, effort: FloatArray) -> bool:
    peaks = effort_peaks(candidate, inverse, EFFORT_STEP)
    return not np.any(peaks > EFFORT_MARGIN * effort)


def _report(
    trajectory: Trajectory, limits: MotionLimits, score: Score | None, inverse: Inverse | None
) -> Design:
    peaks = trajectory.peaks()
    broken = list(violations(peaks, limits))
    used, warnings = fractions_used(peaks, limits), []
    if inverse is None:
        warnings.append('efforts were not predicted: no inverse model given')
    else:
        effort = effort_peaks(trajectory, inverse, 0.1 * EFFORT_STEP)
        for i, joint in enumerate(limits.joints):
            if np.isnan(limits.effort[i]):
                warnings.append(f"effort of joint '{joint}' was not checked: its limit is unknown")
                continue
            used[joint]['effort'] = float(effort[i] / limits.effort[i])
            if effort[i] > limits.effort[i]:
                broken.append(f"effort of joint '{joint}' reaches {effort[i]:.4g}, "
                              f'its limit is {limits.effort[i]:.4g}')
    if broken:
        raise DynIdError('; '.join(broken))
    return Design(trajectory, limits, used, score, tuple(warnings))
