"""Fit of a single stage: what it solves, from what earlier stages found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.information import EXTRA, FILTERED, Information
from robot_dynid.estimation.least_squares import (
    RANK_TOLERANCE,
    Solution,
    batch_covariance,
    joint_weights,
    solve,
    weighted_factor,
)
from robot_dynid.estimation.staged.procedure import (
    Decomposition,
    Free,
    Stage,
    centred_rows,
)
from robot_dynid.types import FloatArray


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
