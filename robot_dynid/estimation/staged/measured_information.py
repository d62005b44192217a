"""Information of single-joint recordings about base parameters, and the fit of a single stage.

The joint that moves counts by its effort, the longer the more. Of those at rest the variations
count: what friction takes of them does not average out, neither over time nor configurations.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import EXTRA, FILTERED, Information
from robot_dynid.estimation.least_squares import (
    RANK_TOLERANCE,
    Solution,
    batch_covariance,
    joint_weights,
    residual_noise,
    solve,
    weighted_factor,
)
from robot_dynid.estimation.staged.own_effort import single_joint_data
from robot_dynid.estimation.staged.procedure import (
    Decomposition,
    Free,
    LockedJointsMotion,
    Stage,
    centred_rows,
    decompose,
)
from robot_dynid.types import FloatArray


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


@dataclass(frozen=True, eq=False)
class Knowledge:
    """Estimate between two stages: base parameters (b,), their covariance, the free directions.

    ``held`` (n,) [N m] is the friction that may hold each joint while it is locked; ``sizes`` (n,)
    [N m] are the efforts of the joints, root mean square in the motion that shows most.
    """

    values: FloatArray
    covariance: FloatArray
    free: Free
    held: FloatArray
    sizes: FloatArray

    @classmethod
    def none(cls, count: int, sizes: FloatArray, held: FloatArray | None = None) -> Knowledge:
        """Return the state before the first stage: nothing is known of ``count`` parameters.

        ``sizes`` (n,) [N m] of the efforts; ``held`` (n,) [N m] is what friction may hold at rest.
        """
        friction = np.zeros(len(sizes)) if held is None else held
        return cls(np.zeros(count), np.zeros((count, count)), Free.everything(count), friction,
                   sizes)


@dataclass(frozen=True, eq=False)
class StageFit:
    """The solved combinations (s,): values, covariance, -d values / d known parameters (s, b)."""

    values: FloatArray
    covariance: FloatArray
    sensitivity: FloatArray
    solution: Solution
    degrees: int


def stage_fit(
    model: TorqueModel, what: tuple[Stage, Decomposition], data: Information, known: Knowledge
) -> StageFit:
    """Fit what a stage solves and its nuisance, and return what it solves."""
    stage, found = what
    directions = known.free.directions[:, found.fitted]
    centred = centred_rows(model, stage)
    reduced = data.projected(stage.rows, found.present, directions, known.values, centred)
    trusted = joint_weights(reduced)
    noise = 1.0 / trusted
    friction = np.array([known.held[j] if j in centred else 0.0 for j in stage.rows])
    held = np.minimum(friction / np.sqrt(3.0), coherent(reduced, solve(reduced, trusted).values))
    weights = 1.0 / np.hypot(noise, held * np.sqrt(data.samples))
    solution = solve(reduced, weights)
    covariance, degrees = batch_covariance(reduced, weights, solution)
    covariance = covariance + _held_covariance((reduced, weights, solution), held)
    own = slice(len(found.nuisance), None)
    sensitivity = _sensitivity(what, data, (reduced, weights, solution))
    return StageFit(solution.values[own], covariance[own, own], sensitivity[own], solution,
                    degrees)


def coherent(information: Information, values: FloatArray) -> FloatArray:
    """Return the deviation (r,) [N m] of the part of the residual that goes with the motion.

    That is what the regressor of a single batch could explain of it, beyond its share of noise
    without any pattern.
    """
    found = np.zeros(len(information.structure))
    for row, active in enumerate(information.structure):
        explained = rest = 0.0
        used = 0
        for batch in information.batches:
            factor = batch.factors[row]
            k = factor.shape[1] - EXTRA
            residual = factor[:, k + FILTERED] - factor[:, :k] @ values[active]
            left, sizes, _ = np.linalg.svd(factor[:, :k], full_matrices=False)
            shares = left[:, sizes > RANK_TOLERANCE * sizes.max(initial=1e-300)].T @ residual
            explained += float(shares @ shares)
            rest += float(residual @ residual - shares @ shares)
            used += len(shares)
        noise = rest / max(information.samples - used, 1)
        found[row] = np.sqrt(max(explained - used * noise, 0.0) / information.samples)
    return found


def _held_covariance(
    fit: tuple[Information, FloatArray, Solution], held: FloatArray
) -> FloatArray:
    """Return the covariance that comes from the friction which holds the locked joints.

    Such a joint takes any part of the load up to its static friction, always against it, so the
    error does not average out: it counts as if it had one sign throughout. Its deviation ``held``
    (r,) [N m] is that of the coherent part of the residual, at most that of a uniform distribution
    within the friction.
    """
    information, weights, solution = fit
    count = len(solution.values)
    spread = np.zeros((count, count))
    for row, (weight, deviation) in enumerate(zip(weights, held, strict=True)):
        factor = information.expanded(row)[:, :count] * (weight**2 * deviation)
        spread += information.samples * factor.T @ factor
    inverse = solution.root @ solution.root.T
    return np.asarray(inverse @ spread @ inverse)


def _sensitivity(
    what: tuple[Stage, Decomposition], data: Information,
    fit: tuple[Information, FloatArray, Solution],
) -> FloatArray:
    """Return the sensitivity (f, b) of fitted to known parameters: pinv(D) A."""
    (stage, found), (reduced, weights, solution) = what, fit
    count = len(data.names)
    product = np.zeros((len(solution.values), count))
    for batch, small in zip(data.batches, reduced.batches, strict=True):
        rows = [w * np.where(found.present[j], data.expanded(j, batch)[:, :count], 0.0)
                for w, j in zip(weights, stage.rows, strict=True)]
        design = weighted_factor(reduced, weights, small)[:, :-1]
        product += design.T @ np.vstack(rows)
    return np.asarray(solution.root @ (solution.root.T @ product))
