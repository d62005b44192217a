"""Robust fits: samples far from the model are down-weighted, iterated to convergence.

Sources: Huber 1964; Beaton, Tukey 1974; Holland, Welsch 1977 (iteratively reweighted least
squares, tuning constants of 95 % efficiency).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.document import percent
from robot_dynid.estimation.estimate import Details, Estimate, Estimator, Status
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.least_squares import (
    Solution,
    batch_scores,
    estimate_of,
    joint_weights,
    residual_noise,
    rounding,
    solve,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.between_recordings import (
    friction_scales,
    scatter_covariance,
)
from robot_dynid.settings import setting
from robot_dynid.types import FloatArray

#: median of |x| of a standard normal deviate: its quantile at 3/4
MEDIAN_DEVIATION = 0.6744897501960817
#: maximum number of samples, evenly spaced, of which the median is taken
MEDIAN_SAMPLES = 400_000
#: least mean slope of the score; if most samples are rejected there is no curvature
LEAST_SLOPE = 0.05
#: a sample of less weight counts as down-weighted, as 1 % of normal residuals
LOW_WEIGHT = 0.5
#: share of down-weighted samples above which a warning is given
NOTABLE_DOWNWEIGHTED = 0.1


@dataclass(frozen=True)
class Huber:
    """Quadratic up to `bend`, linear beyond: convex, with one optimum."""

    bend: float = 1.345

    def weight(self, x: FloatArray) -> FloatArray:
        """Return ``min(1, bend / |x|)`` (N,)."""
        return np.asarray(self.bend / np.maximum(np.abs(x), self.bend))

    def slope(self, x: FloatArray) -> FloatArray:
        """Return (N,) one inside, zero outside."""
        return np.asarray(np.abs(x) <= self.bend, dtype=np.float64)


@dataclass(frozen=True)
class Tukey:
    """The biweight: zero weight beyond `end`; several optima."""

    end: float = 4.685

    def weight(self, x: FloatArray) -> FloatArray:
        """Return (N,) ``(1 - (x / end)^2)^2``, zero outside."""
        return np.asarray(np.maximum(1.0 - (x / self.end) ** 2, 0.0) ** 2)

    def slope(self, x: FloatArray) -> FloatArray:
        """Return (N,) ``(1 - u)(1 - 5 u)`` with ``u = (x / end)^2``, zero outside."""
        share = np.minimum((x / self.end) ** 2, 1.0)
        return np.asarray((1.0 - share) * (1.0 - 5.0 * share))


Norm = Huber | Tukey
#: Huber weights that are all one: least squares
SQUARES = Huber(float(np.finfo(np.float64).max))
#: norms of a robust fit in order: Tukey starts from the optimum of Huber
NORMS: dict[str, tuple[Norm, ...]] = {'huber': (Huber(),), 'tukey': (Huber(), Tukey())}


@dataclass(frozen=True, eq=False)
class Round:
    """One pass over the recordings, with weights from given parameters and `scale` (n,) [N m].

    `information` of the weighted equations in units of the scales, its `solution`, and the
    `median_scale` (n,) of the residuals; `slope` (n,) mean slope of the score, `low` (n,) share of
    down-weighted samples, `used` (n,) number of samples with weight; `moved` is the change of the
    modelled effort and of the scales, relative to the noise.
    """

    scale: FloatArray
    information: Information
    solution: Solution
    median_scale: FloatArray
    slope: FloatArray
    low: FloatArray
    used: FloatArray
    moved: float


@dataclass(frozen=True, eq=False)
class RobustDetails(Details):
    """Details of a robust fit: weights `robust`, `rounds` and `scale` (n,) [N m] of the residuals.

    `down_weighted` is the share of the samples of every equation with less than half weight.
    """

    robust: str
    rounds: int
    scale: FloatArray
    down_weighted: Mapping[str, float]

    def sentence(self, rows: Sequence[str]) -> str:
        """Return one sentence: the weights, and the share of down-weighted samples."""
        shares = ', '.join(f'{name} {percent(share)} %'
                           for name, share in self.down_weighted.items())
        return (f'{self.robust.capitalize()} weights, converged after {self.rounds} rounds; '
                f'samples with less than half weight: {shares}')


@dataclass(frozen=True)
class RobustLeastSquares(Estimator):
    """M-estimation with a separate scale for every joint (median absolute residual).

    It converges when a round changes parameters and scales by less than `tolerance` of the noise.
    Memory: one number for MEDIAN_SAMPLES and each joint, for the median.
    """

    robust: str = setting('huber', tuple(NORMS), 'weights of the residuals: huber or tukey')
    tolerance: float = 1e-4
    rounds: int = 100
    name = 'irls'
    summary = 'iteratively reweighted least squares: outliers count less'
    details_type = RobustDetails

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters; raises DataError if recordings cannot be read again."""
        information, joints = experiment.information, experiment.model.robot.row_names
        values = solve(information, joint_weights(information)).values
        noise = np.maximum(residual_noise(information, values), rounding(information))
        last, rounds = run_round(experiment, SQUARES, (values, noise)), 0
        least = information.structure.sum(axis=1)
        warnings: list[str] = []
        for norm in NORMS[self.robust]:
            tried, count = last, rounds
            while count < rounds + self.rounds:
                tried = run_round(experiment, norm, (tried.solution.values, tried.median_scale))
                count += 1
                if np.any(tried.used < least) or tried.moved < self.tolerance:
                    break
            if np.any(tried.used < least):
                warnings.append(f'the weights of {type(norm).__name__} leave a joint fewer '
                                'samples than parameters and are not used')
                break
            last, rounds = tried, count
        estimate = estimate_of(experiment, last.solution, _spread(experiment, last), self.name)
        settled = bool(warnings) or last.moved < self.tolerance
        low = dict(zip(joints, last.low.tolist(), strict=True))
        warnings += [f'joint {joint}: {share:.0%} of its samples have less than half weight, '
                     'because they are far from the model' for joint, share in low.items()
                     if share > NOTABLE_DOWNWEIGHTED]
        return replace(
            estimate, warnings=tuple(warnings),
            details=RobustDetails(self.robust, rounds, last.scale, low),
            status=estimate.status if settled or estimate.not_excited else Status.NOT_SETTLED)


def _spread(experiment: Experiment, last: Round) -> tuple[FloatArray, int]:
    """Return the covariance (b, b) of a robust estimate, and its degrees of freedom."""
    bread = np.sqrt(np.maximum(last.slope, LEAST_SLOPE)) / last.scale
    solution = replace(last.solution, root=solve(experiment.information, bread).root)
    by_time, by_motion = (
        batch_scores(information, bread, solution, (weighted, np.ones(len(bread))))
        for information, weighted in ((experiment.information, last.information),
                                (experiment.information.distinct, last.information.distinct)))
    scales = friction_scales(experiment.model, solution.values)
    return scatter_covariance(experiment.information, by_time, scales, by_motion)


def run_round(
    experiment: Experiment, norm: Norm, state: tuple[FloatArray, FloatArray]
) -> Round:
    """Weight every equation by its residual at `state`, parameters (b,) and scales (n,)."""
    values, scale = state
    accumulator = experiment.accumulator()
    sizes, slope, low, used = [], *np.zeros((3, len(scale)))
    stride, done = max(1, -(-experiment.information.samples // MEDIAN_SAMPLES)), 0
    for chunk in experiment.equations(accumulator):
        residual = chunk.residual(values)
        weight = norm.weight(residual / scale)
        sizes.append(np.abs(residual[-done % stride::stride]))
        done += len(residual)
        slope += norm.slope(residual / scale).sum(axis=0)
        low += (weight < LOW_WEIGHT).sum(axis=0)
        used += (weight > 0.0).sum(axis=0)
        factor = np.sqrt(weight) / scale
        accumulator.add(chunk.columns * factor.T[:, None, :], chunk.effort * factor,
                        chunk.measured * factor)
    information, unit = accumulator.information(), np.ones(len(scale))
    solution = solve(information, unit)
    median = np.maximum(np.median(np.concatenate(sizes), axis=0) / MEDIAN_DEVIATION,
                        rounding(experiment.information))
    change = weighted_factor(information, unit)[:, :-1] @ (solution.values - values)
    moved = max(float(np.linalg.norm(change)) / np.sqrt(done * len(scale)),
                float(np.max(np.abs(median / scale - 1.0))))
    return Round(scale, information, solution, median, slope / done, low / done, used, moved)
