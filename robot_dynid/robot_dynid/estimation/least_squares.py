"""Ordinary and weighted least squares on the information."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import Springs
from robot_dynid.estimation.estimate import Estimate, Estimator, PartSolver, Status
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import (
    FILTERED,
    Batch,
    Information,
    triangle,
)
from robot_dynid.estimation.uncertainty.between_recordings import (
    BatchScores,
    FrictionScales,
    friction_scales,
    scatter_covariance,
)
from robot_dynid.types import FloatArray

#: singular values of the column-scaled regressor below this share of the largest are no excitation
RANK_TOLERANCE = 1e-7
#: parameters with more than this share of a direction without information are not excited
OPEN_PARAMETER_SHARE = 1e-2
#: columns below this share of the largest are rounding of resting joints
COLUMN_ROUNDING = 1e-8
WEIGHT_ROUNDS = 8


@dataclass(frozen=True, eq=False)
class Solution:
    """A weighted least-squares solution and its matrices.

    `values` (b,); `root` (b, rank) of their covariance with unit noise; `design` (k, b) the
    triangle of the weighted columns, negligible ones zero; `open_columns` that the data does not
    determine.
    """

    values: FloatArray
    root: FloatArray
    design: FloatArray
    rank: int
    open_columns: tuple[int, ...]

    @property
    def condition(self) -> float:
        """Condition number of the columns scaled to unit norm."""
        norms = np.linalg.norm(self.design, axis=0)
        return _condition(self.design / np.where(norms > 0.0, norms, 1.0))

    @property
    def condition_raw(self) -> float:
        """Condition number of the unscaled columns."""
        return _condition(self.design)


def _condition(columns: FloatArray) -> float:
    values = np.linalg.svd(columns, compute_uv=False)
    return float(values[0] / values[-1]) if values[-1] > 0.0 else np.inf


@dataclass(frozen=True)
class LeastSquares(Estimator):
    """Least squares; with `weighted` every joint is weighted by its inverse noise.

    Source: Gautier, Poignet 2001 (per-joint weights); Khalil, Dombre 2002, section 12.
    """

    weighted: bool = True
    fits_information = True
    linear = True

    @property
    def name(self) -> str:
        """Name of the method on the command line."""
        return 'wls' if self.weighted else 'ols'

    @property
    def summary(self) -> str:
        """The method in one line."""
        return 'least squares, every joint weighted by its noise' if self.weighted else \
            'ordinary least squares'

    @property
    def sequential(self) -> bool:
        """True if friction and links can be fitted in turn: with weights per joint."""
        return self.weighted

    def part_solver(self, experiment: Experiment, batches: Sequence[int]) -> PartSolver:
        """Return the solver of `batches` for some parameters, joints weighted by their noise.

        Raises UsageError without weights.
        """
        if not self.sequential:
            return super().part_solver(experiment, batches)
        information = experiment.information.subset(batches)
        return partial(solve_part, weighted_factor(information, joint_weights(information)))

    def joint_weights(self, experiment: Experiment) -> FloatArray:
        """Return the weights (n,) of the joints: inverse noise, or ones without weights."""
        information = experiment.information
        return joint_weights(information) if self.weighted else np.ones(len(
            information.structure))

    def fit(self, experiment: Experiment, values: FloatArray | None = None) -> Estimate:
        """Estimate the base parameters; numerical problems are in the status.

        With `values` (b,) of another fit to the same information: those values, with the
        deviations of least squares by their residuals.
        """
        information, weights = experiment.information, self.joint_weights(experiment)
        solution = solve(information, weights)
        if values is not None:
            solution = replace(solution, values=values)
        scales = friction_scales(experiment.model, solution.values)
        return estimate_of(experiment, solution, batch_covariance(
            information, weights, solution, scales), self.name)


def left_open(experiment: Experiment) -> tuple[str, ...]:
    """Return the parameters that weighted `LeastSquares` reports as not excited."""
    return LeastSquares().fit(experiment).not_excited


def estimate_of(
    experiment: Experiment, solution: Solution, spread: tuple[FloatArray, int], method: str,
) -> Estimate:
    """Return the estimate of a `solution` with covariance (b, b) and degrees of `spread`."""
    information = experiment.information
    open_columns = {*solution.open_columns, *unknown_columns(experiment, np.diag(spread[0]))}
    open_names = tuple(information.names[i] for i in sorted(open_columns))
    return Estimate(
        names=information.names, values=solution.values, covariance=spread[0],
        noise=residual_noise(information, solution.values),
        condition_raw=solution.condition_raw, condition=solution.condition,
        rank=solution.rank, degrees_of_freedom=spread[1], method=method,
        status=Status.NOT_EXCITED if open_names else Status.OK, not_excited=open_names,
    )


def unknown_columns(experiment: Experiment, variance: FloatArray) -> list[int]:
    """Return the parameters that could explain, within their deviation, all measured effort.

    `variance` (b,) is that of the base parameters. A resting joint trembles, so its parameters
    always have some information. They count as not excited if one standard deviation of them, in a
    motion at 1 rad/s, makes more effort than was measured, in the joint they act on most. For
    gears the recorded motion counts, because their deflection is not free.
    """
    reach = np.where(experiment.model.base_of(Springs), recorded_effort(experiment.information),
                     experiment.model.moderate_effort)
    size = experiment.information.size()[np.argmax(reach, axis=0)]
    unknown = np.sqrt(variance) * reach.max(axis=0) > size
    return [int(i) for i in np.flatnonzero(unknown)]


def recorded_effort(
    information: Information, directions: FloatArray | None = None
) -> FloatArray:
    """Return the root mean square effort (n, b) of each parameter of value one in the recordings.

    (n, p) of combinations if their `directions` (b, p) are given.
    """
    b = len(information.names)
    columns = [information.expanded(j)[:, :b] for j in range(len(information.structure))]
    if directions is not None:
        columns = [design @ directions for design in columns]
    sizes = [np.linalg.norm(design, axis=0) for design in columns]
    return np.asarray(np.array(sizes) / np.sqrt(information.samples))


def residual_noise(information: Information, values: FloatArray) -> FloatArray:
    """Return the residual deviation (n,) of each joint against the filtered effort [N m]."""
    energy = information.residual_energy(values, FILTERED)
    freedom = np.maximum(information.samples - information.structure.sum(axis=1), 1)
    return np.asarray(np.sqrt(energy / freedom))


def joint_weights(
    information: Information, fit: Callable[[FloatArray], FloatArray] | None = None
) -> FloatArray:
    """Return weights (n,), the inverse residual deviation of each joint, iterated.

    `fit` returns the parameters (b,) by weights, by default least squares, from which other fits
    start. If the noise is known from a repeated motion, its inverse is the weight. The noise has a
    lower bound: rounding, for noise-free data, and a share of the largest effort.
    """
    floor = rounding(information)
    if information.noise is not None:
        return np.asarray(1.0 / np.maximum(information.noise, floor))
    weights = np.ones(len(information.structure)) if fit is None else joint_weights(information)
    for _ in range(WEIGHT_ROUNDS):
        values = solve(information, weights).values if fit is None else fit(weights)
        previous, weights = weights, 1.0 / np.maximum(residual_noise(information, values), floor)
        if np.allclose(weights, previous, rtol=1e-3):
            break
    return weights


def rounding(information: Information) -> FloatArray:
    """Return the residual (n,) of each joint [N m] below which there is only rounding."""
    size = information.size(FILTERED)
    return np.asarray(1e-9 * np.maximum(size, max(1e-3 * size.max(), 1e-12)))


def weighted_factor(
    information: Information, weights: FloatArray, batch: Batch | None = None
) -> FloatArray:
    """Return the factors of all joints times `weights` (n,): [A, y] (m, b + 1), y filtered."""
    rows = [w * information.expanded(i, batch) for i, w in enumerate(weights)]
    tall = np.vstack(rows)
    b = len(information.names)
    return np.hstack([tall[:, :b], tall[:, b + FILTERED:b + FILTERED + 1]])


def solve(information: Information, weights: FloatArray) -> Solution:
    """Solve with columns scaled to unit norm; directions without information get zero.

    `weights` (n,) are those of the joints.
    """
    return solve_rows(weighted_factor(information, weights))


def solve_rows(tall: FloatArray) -> Solution:
    """Solve equations [A, y] (m, b + 1), as `solve` does.

    By the inverse of their triangle, or by its singular values if one is nearly zero.
    """
    tall = triangle(tall)
    design, target = tall[:, :-1], tall[:, -1]
    norms = np.linalg.norm(design, axis=0)
    present = norms > COLUMN_ROUNDING * norms.max(initial=0.0)
    design = np.where(present, design, 0.0)
    scale = np.where(present, norms, 1.0)
    with suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(design[:-1] / scale)
        # bounds of the least and of the largest singular value
        if RANK_TOLERANCE * np.sqrt(len(scale)) * np.linalg.norm(inverse) < 1.0:
            root = inverse / scale[:, None]
            return Solution(root @ target[:-1], root, design, len(scale), ())
    u, s, vt = np.linalg.svd(design / scale, full_matrices=False)
    significant = s > RANK_TOLERANCE * s[0]
    root = vt[significant].T / s[significant] / scale[:, None]
    share = np.sum(vt[~significant] ** 2, axis=0)
    open_columns = tuple(int(i) for i in np.flatnonzero(share > OPEN_PARAMETER_SHARE))
    return Solution(root @ (u[:, significant].T @ target), root, design, int(significant.sum()),
                    open_columns)


def solve_part(
    tall: FloatArray, free: NDArray[np.bool_], values: FloatArray
) -> FloatArray:
    """Return `values` (b,), the `free` ones (b,) solved from [A, y] (m, b + 1)."""
    result = values.copy()
    target = tall[:, -1] - tall[:, :-1][:, ~free] @ values[~free]
    result[free] = solve_rows(np.column_stack([tall[:, :-1][:, free], target])).values
    return result


def batch_covariance(
    information: Information, weights: FloatArray, solution: Solution,
    scales: FrictionScales | None = None,
) -> tuple[FloatArray, int]:
    """Return the covariance (b, b) for coloured residuals, and its degrees of freedom.

    Cluster jackknife over stretches of time and recordings, see `scatter_covariance`: only the
    stretches need to be independent, not the samples, and leverage is accounted for. `weights`
    (n,) are those of the joints; with `scales` of friction, the difference between recordings is a
    separate variance component.

    Source: MacKinnon, Nielsen, Webb 2023 (CR3); Cameron, Miller 2015.
    """
    by_motion = None if information.by_motion is None else batch_scores(
        information.distinct, weights, solution)
    return scatter_covariance(information, batch_scores(information, weights, solution), scales,
                              by_motion)


def batch_scores(
    information: Information, weights: FloatArray, solution: Solution,
    scored: tuple[Information, FloatArray] | None = None,
) -> BatchScores:
    """Return the curvature and the gradient of each batch at the solution.

    `weights` (n,) are those of the joints. `scored` are information and weights of the estimate,
    if other ones give its curvature.
    """

    def whitened(batch: Batch, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return columns (m, r) in whitened directions, and residuals (m,)."""
        white, left = [], []
        for joint, (active, weight) in enumerate(zip(information.structure, weights, strict=True)):
            columns, extra = (weight * part for part in batch.split(joint))
            white.append(columns @ solution.root[active])
            left.append(extra[:, FILTERED] - columns @ solution.values[active])
        return np.vstack(white), np.concatenate(left)

    estimated, used = scored or (information, weights)
    curvature, score = [], []
    for batch, estimate in zip(information.batches, estimated.batches, strict=True):
        white, left = whitened(batch, weights)
        curvature.append(white.T @ white)
        if scored is not None:
            white, left = whitened(estimate, used)
        score.append(white.T @ left)
    return BatchScores(solution.root, np.array(curvature), np.array(score))


def textbook_covariance(
    information: Information, weights: FloatArray, solution: Solution
) -> FloatArray:
    """Return sigma^2 (A^T A)^-1 (b, b), valid only for white residuals; for comparison."""
    tall = weighted_factor(information, weights)
    residual = tall[:, -1] - tall[:, :-1] @ solution.values
    rows = information.samples * len(information.structure)
    variance = float(residual @ residual) / max(rows - solution.rank, 1)
    return variance * (solution.root @ solution.root.T)
