"""Precision of base parameters: before the first swing, and by recordings of single joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DynIdError, reported
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import EXTRA, FILTERED, Information
from robot_dynid.estimation.least_squares import (
    batch_covariance,
    joint_weights,
    residual_noise,
    solve,
)
from robot_dynid.estimation.staged.joint_effort import single_joint_data
from robot_dynid.estimation.staged.procedure import (
    Free,
    LockedJointsMotion,
    Stage,
    centred_rows,
    decompose,
)
from robot_dynid.estimation.staged.stage_fit import coherent
from robot_dynid.excitation.design import DesignCriteria
from robot_dynid.excitation.score import EFFORT_RATE
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Recordings
from robot_dynid.identification.selection import SingleJointExcerpt, choose
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import prepare
from robot_dynid.types import FloatArray, Progress, RawLog

#: relative standard deviation of what nothing is known of: far above any accuracy asked for
UNKNOWN = 1e3


@dataclass(frozen=True, eq=False)
class Precision:
    """Information about base parameters.

    ``names`` (b,) of them, ``sizes`` (b,) to which their deviations are relative; ``density`` (n,)
    N m s^0.5 (N s^0.5) of the noise of efforts, so that T seconds of one value have the deviation
    density / T^0.5; ``held`` (n,) N m (N) is the deviation of what friction takes of the effort of
    a joint at rest while another one moves, which does not average out.

    What was measured: ``information`` (b, b) of efforts that average out, the inverse of a
    covariance; ``resting`` that of joints at rest while each joint swings alone.
    """

    names: tuple[str, ...]
    sizes: FloatArray
    density: FloatArray
    held: FloatArray
    information: FloatArray
    resting: Resting

    @property
    def relative(self) -> FloatArray:
        """Information (b, b) about the parameters in terms of their sizes, UNKNOWN at first."""
        total = self.information + self.resting.information(self.density, self.held)
        scaled = self.sizes[:, None] * total * self.sizes
        return np.asarray(scaled + np.eye(len(scaled)) / UNKNOWN**2)

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations (b,) relative to the sizes."""
        return np.asarray(np.sqrt(np.diag(covariance_of(self.relative))))

    @property
    def worst(self) -> tuple[str, float]:
        """The parameter that is known worst, and its relative deviation."""
        deviations = self.deviations
        i = int(np.argmax(deviations))
        return self.names[i], float(deviations[i])


@dataclass(frozen=True, eq=False)
class Resting:
    """Variations of the efforts of joints at rest while one joint swings.

    ``grams`` (n, n, b, b): their regressor's, integrated over time, by the joint that swings and
    the one at rest; ``seconds`` (n,) that each joint swung. What friction takes of an effort at
    rest does not average out over configurations either: it is always against the load.
    """

    grams: FloatArray
    seconds: FloatArray

    @classmethod
    def none(cls, joints: int, count: int) -> Resting:
        """Return that of ``joints`` that never swung, about ``count`` parameters."""
        return cls(np.zeros((joints, joints, count, count)), np.zeros(joints))

    def information(self, density: FloatArray, held: FloatArray) -> FloatArray:
        """Return the information (b, b) with noise ``density`` (n,) and ``held`` (n,)."""
        variance = density**2 + self.seconds[:, None] * held**2
        return np.asarray(np.einsum('ji,jibc->bc', 1.0 / variance, self.grams))


def covariance_of(information: FloatArray) -> FloatArray:
    """Return the inverse (..., b, b) of positive definite matrices of very different sizes."""
    diagonal = np.diagonal(information, axis1=-2, axis2=-1)
    scale = 1.0 / np.sqrt(diagonal)
    both = scale[..., :, None] * scale[..., None, :]
    inverse = np.linalg.inv(both * information)
    found = both * 0.5 * (inverse + np.swapaxes(inverse, -2, -1))
    rows = np.arange(information.shape[-1])
    found[..., rows, rows] = np.maximum(found[..., rows, rows], scale**2)  # rounding: no less
    return np.asarray(found)


def precision_of(criteria: DesignCriteria) -> Precision:
    """Return the precision of the parameters of a design, by its recordings where it has any.

    Raises DynIdError where there are no nominal parameters to compare with, and what
    `measured_precision` raises.
    """
    model, sizes, noise = criteria.model, criteria.sizes, criteria.noise
    if model is None or sizes is None or noise is None:
        raise DynIdError("procedure 'adaptive' compares with nominal parameters: the robot has "
                         'none; give the links inertials')
    before = Precision(model.reduction.names, sizes, noise / np.sqrt(EFFORT_RATE), noise,
                       np.zeros((len(sizes), len(sizes))), Resting.none(model.robot.n, len(sizes)))
    return before if not criteria.recordings else measured_precision(
        model.robot, criteria.recordings, model, before, criteria.progress)


@reported
@one_blas_thread()
def measured_precision(
    robot: RobotModel, logs: Sequence[RawLog], model: TorqueModel, before: Precision,
    progress: Progress | None = None,
) -> Precision:
    """Return ``before`` with what recordings tell of the base parameters of ``model``.

    The noise of a joint that moved, and what friction takes of the effort of one at rest, are
    those of the fit from then on; those of other joints stay.

    Raises DataError, UsageError for recordings that cannot be used.
    """
    robot = robot.rigid
    recipe = Recipe(friction='coulomb')
    kept, _ = plausible_recordings(robot, Parts.of(logs))
    recordings = Recordings(robot, kept, recipe)
    choice = choose(robot, recordings.excerpt(), recipe, progress or (lambda *_: None),
                    kind=SingleJointExcerpt)
    samples = [prepare(robot, one, choice.preprocessing) for one in recordings]
    step = float(np.median(np.concatenate([np.diff(one.time) for one in samples])))
    told = measured_information(Experiment.of(model, samples), step)

    def known(found: FloatArray, assumed: FloatArray) -> FloatArray:
        return np.where(np.isfinite(found), found, assumed)

    return replace(before, information=before.information + told.information,
                   resting=Resting(before.resting.grams + told.resting,
                                   before.resting.seconds + told.seconds),
                   density=known(told.density, before.density),
                   held=known(told.held, before.held))


@dataclass(frozen=True, eq=False)
class MeasuredInformation:
    """Information (b, b) of single-joint motions, and the noise it counts by.

    ``information`` (b, b) of efforts that average out; ``resting`` (n, n, b, b) the integral of
    what the variations of the others tell while each joint moves, for ``seconds`` (n,).
    ``density`` (n,) N m s^0.5 (N s^0.5) of noise that is white from one stretch of time to the
    next, of every joint while it moves, NaN for those that never do; ``held`` (n,) N m (N) what
    friction takes of the effort of joints at rest, NaN where none moved beside.
    """

    information: FloatArray
    density: FloatArray
    held: FloatArray
    resting: FloatArray
    seconds: FloatArray


def measured_information(experiment: Experiment, step: float) -> MeasuredInformation:
    """Return the information in ``experiment``; ``step`` [s] is that of its samples.

    Raises DataError when no joint moves alone.
    """
    model, data = experiment.model, single_joint_data(experiment)
    n, count = model.robot.n, len(model.reduction.names)
    density, held = np.full((2, n), np.nan)
    information, resting = np.zeros((count, count)), np.zeros((n, n, count, count))
    seconds = np.zeros(n)
    for j in sorted({motion.moving for motion, _ in data}):
        found = [(motion, one) for motion, one in data if motion.moving == j]
        motions = tuple(motion for motion, _ in found)
        whole = reduce(Information.merge, [one for _, one in found])
        own, density[j] = _own(model, (motions, whole), j, step)
        free, resting[j], there = _locked(model, (motions, whole), j, step)
        held = np.where(np.isfinite(there), np.fmax(held, there), held)
        information += own + free
        seconds[j] = step * whole.samples
    return MeasuredInformation(information, density, held, resting, seconds)


def _own(
    model: TorqueModel, data: tuple[tuple[LockedJointsMotion, ...], Information], j: int,
    step: float,
) -> tuple[FloatArray, float]:
    """Return the information (b, b) of the joint that moves, and the density of its noise."""
    reduced, combination = _reduced(model, data, (j,))
    weights = np.ones(1)
    solution = solve(reduced, weights)
    energy = float(reduced.residual_energy(solution.values, FILTERED)[0])
    variance = energy / max(reduced.samples - solution.rank, 1)
    white = variance * np.sum(solution.root**2, axis=1)
    honest = np.diag(batch_covariance(reduced, weights, solution)[0])
    known = np.isfinite(honest) & (white > 0.0)
    colour = max(float(np.median(honest[known] / white[known])), 1.0) if known.any() else 1.0
    least = (1e-6 * float(reduced.size(FILTERED)[0]))**2
    density = np.sqrt(max(variance * colour * step, least, np.finfo(float).tiny))
    (gram,) = _grams(reduced, combination)
    return step / density**2 * gram, float(density)


def _locked(
    model: TorqueModel, data: tuple[tuple[LockedJointsMotion, ...], Information], j: int,
    step: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the information (b, b) of joints at rest that no friction holds, the integrals
    (n, b, b) of the others, and what friction takes of their effort (n,).
    """
    n, count = model.robot.n, len(model.reduction.names)
    others = np.array([i for i in range(n) if i != j], dtype=int)
    information, resting = np.zeros((count, count)), np.zeros((n, count, count))
    found = np.full(n, np.nan)
    if not len(others):
        return information, resting, found
    reduced, combination = _reduced(model, data, tuple(others.tolist()))
    values = solve(reduced, joint_weights(reduced)).values
    found[others] = coherent(reduced, values)
    noise = np.maximum(residual_noise(reduced, values), 1e-6 * reduced.size(FILTERED))
    for i, gram, white in zip(others, _grams(reduced, combination), noise, strict=True):
        if model.held[i]:
            resting[i] = step * gram
        else:
            information += gram / max(white, 1e-12)**2
    return information, resting, found


def _reduced(
    model: TorqueModel, data: tuple[tuple[LockedJointsMotion, ...], Information],
    rows: tuple[int, ...],
) -> tuple[Information, FloatArray]:
    """Return the information of ``rows`` about what they tell apart, combination (s, b) of all."""
    motions, information = data
    names = model.reduction.names
    stage = Stage('', motions, rows, names)
    found = decompose(model, stage, Free.everything(len(names)))
    directions = np.eye(len(names))[:, found.solved]
    reduced = information.projected(rows, found.present, directions, np.zeros(len(names)),
                                    centred_rows(model, stage))
    return reduced, found.combination


def _grams(reduced: Information, combination: FloatArray) -> list[FloatArray]:
    """Return the squared regressor (b, b) of every row."""
    found = []
    for row in range(len(reduced.structure)):
        designs = [reduced.expanded(row, batch)[:, :-EXTRA] @ combination
                   for batch in reduced.batches]
        found.append(sum((design.T @ design for design in designs),
                         np.zeros((combination.shape[1],) * 2)))
    return found
