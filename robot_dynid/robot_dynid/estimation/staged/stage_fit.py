"""Fit of a single stage, with the results of earlier stages fixed."""

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

    `held` (n,) [N m] is the friction that may hold each joint while it is locked; `sizes` (n,) [N
    m] are the largest root mean square efforts of the joints in any motion.
    """

    values: FloatArray
    covariance: FloatArray
    free: Free
    held: FloatArray
    sizes: FloatArray

    @classmethod
    def none(cls, count: int, sizes: FloatArray, held: FloatArray | None = None) -> Knowledge:
        """Return the state before the first stage, with all of `count` parameters free.

        `sizes` (n,) [N m] of the efforts; `held` (n,) [N m] is the friction that may hold a
        resting joint.
        """
        friction = np.zeros(len(sizes)) if held is None else held
        return cls(np.zeros(count), np.zeros((count, count)), Free.everything(count), friction,
                   sizes)


@dataclass(frozen=True, eq=False)
class StageFit:
    """Solved combinations (s,): values, covariance, -d values / d known parameters (s, b)."""

    values: FloatArray
    covariance: FloatArray
    sensitivity: FloatArray
    solution: Solution
    degrees: int


def stage_fit(
    model: TorqueModel, what: tuple[Stage, Decomposition], data: Information, state: Knowledge
) -> StageFit:
    """Fit the solved and nuisance parameters of a stage, and return the solved ones."""
    stage, parts = what
    directions = state.free.directions[:, parts.fitted]
    centred = centred_rows(model, stage)
    reduced = data.projected(stage.rows, parts.present, directions, state.values, centred)
    trusted = joint_weights(reduced)
    noise = 1.0 / trusted
    friction = np.array([state.held[j] if j in centred else 0.0 for j in stage.rows])
    held = np.minimum(friction / np.sqrt(3.0), coherent(reduced, solve(reduced, trusted).values))
    weights = 1.0 / np.hypot(noise, held * np.sqrt(data.samples))
    solution = solve(reduced, weights)
    covariance, degrees = batch_covariance(reduced, weights, solution)
    covariance = covariance + _held_covariance((reduced, weights, solution), held)
    solved = slice(len(parts.nuisance), None)
    sensitivity = _sensitivity(what, data, (reduced, weights, solution))
    return StageFit(solution.values[solved], covariance[solved, solved], sensitivity[solved],
                    solution,
                    degrees)


def coherent(information: Information, values: FloatArray) -> FloatArray:
    """Return the deviation (r,) [N m] of the residual that is coherent with the motion.

    It is the part that the regressor of a single batch could explain, beyond its share of white
    noise.
    """
    deviations = np.zeros(len(information.structure))
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
        deviations[row] = np.sqrt(max(explained - used * noise, 0.0) / information.samples)
    return deviations


def _held_covariance(
    fit: tuple[Information, FloatArray, Solution], held: FloatArray
) -> FloatArray:
    """Return the covariance that comes from the friction holding the locked joints.

    Such a joint takes any part of the load up to its static friction, always against it, so the
    error does not average out: it counts as if it had one sign throughout. Its deviation `held`
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
    (stage, parts), (reduced, weights, solution) = what, fit
    count = len(data.names)
    product = np.zeros((len(solution.values), count))
    for batch, small in zip(data.batches, reduced.batches, strict=True):
        rows = [w * np.where(parts.present[j], data.expanded(j, batch)[:, :count], 0.0)
                for w, j in zip(weights, stage.rows, strict=True)]
        design = weighted_factor(reduced, weights, small)[:, :-1]
        product += design.T @ np.vstack(rows)
    return np.asarray(solution.root @ (solution.root.T @ product))
