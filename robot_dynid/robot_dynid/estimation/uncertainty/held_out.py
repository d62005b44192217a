"""Held-out errors on distinct motion, and the joints that they refuse."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import listed
from robot_dynid.estimation.estimate import student_quantile
from robot_dynid.estimation.information import (
    FILTERED,
    ONE,
    RAW,
    Batch,
    Information,
    merge_batches,
)
from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.signals import held_out_motion
from robot_dynid.types import FloatArray

#: base parameters (b,) from some batches of the information in cells of distinct motion
Fit = Callable[[Sequence[int]], FloatArray]
#: one-sided confidence level of the share of a joint
SHARE_LEVEL = 0.95
#: length [s] from which a fold is a separate motion
MOTION_SECONDS = 3.0
#: an effort that varies by less than this share of its size is constant
EFFORT_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors of every joint on distinct motion that was not used for the fit.

    `raw` and `filtered` (n,) mean squared errors against the raw and the filtered effort [(N
    m)^2]; `share` (n,) of the variance of the filtered effort that is predicted, with `margin`
    (n,) by the scatter of the folds; `constant` (n,) efforts have no variance. `folds` (f, n) are
    the mean squared raw errors of each fold [(N m)^2], `samples` (f,) their sizes; `seconds` of
    distinct motion; `fitted` (n,) the mean squared raw error with all motion in the fit [(N m)^2];
    `spread` (n,) [(N m)^2] the variance of the effort by the parameter covariance on any motion,
    if known. `baseline`: the errors of nominal inertials, with the rest fitted to the same motion.
    """

    raw: FloatArray
    filtered: FloatArray
    share: FloatArray
    margin: FloatArray
    constant: NDArray[np.bool_]
    folds: FloatArray
    samples: FloatArray
    seconds: float
    fitted: FloatArray
    spread: FloatArray | float = 0.0
    baseline: HeldOut | None = None

    @property
    def motions(self) -> int:
        """Number of distinct motions: the folds, one that is cut by phase, or none to hold out."""
        count = len(self.folds)
        return count if self.seconds >= MOTION_SECONDS * count else 1

    @property
    def excess(self) -> FloatArray:
        """Error (n,) [N m] on held-out motion beyond that in the fit, root mean square."""
        return np.sqrt(np.maximum(self.raw - self.fitted, 0.0))

    @property
    def promise(self) -> FloatArray:
        """Root mean square error (n,) [N m] to expect on a new motion.

        A fold is near to the motions of the fit. A new motion is further away: it adds an effect
        as large again, and the parameters that the motion of the fit does not show well.
        """
        return np.asarray(np.sqrt(self.raw + self.filtered + self.spread))

    @property
    def score(self) -> float:
        """Mean logarithm of the raw errors: joints count the same whatever their torque."""
        return float(0.5 * np.mean(np.log(np.maximum(self.raw, 1e-300))))


@dataclass(frozen=True)
class Fold:
    """Indices of the batches (cells of distinct motion) of a fold, and of its fit."""

    test: list[int]
    fitted: list[int]


def folds(information: Information) -> list[Fold]:
    """Return the folds of distinct motion, each left out in turn; empty for a single cell."""
    motion = information.by_motion
    fold = held_out_motion.folds(information.seconds, 0.0 if motion is None else
                                 motion.motion.guard)
    count = int(fold.max(initial=-1)) + 1
    return [Fold(np.flatnonzero(fold == k).tolist(),
                 np.flatnonzero((fold != k) & (fold != held_out_motion.BETWEEN)).tolist())
            for k in range(count)] if count > 1 else []


def held_out(
    information: Information, scored: Information | None = None, fit: Fit | None = None
) -> HeldOut:
    """Return the errors of cross-validation over folds of distinct motion.

    `scored` is the information for the errors, batch by batch the same motion as the fitted one;
    by default the same information. `fit` returns the base parameters (b,) from some batches of
    the `distinct` information; by default weighted least squares.
    """
    information = information.distinct
    scored = information if scored is None else scored.distinct
    weights = joint_weights(information)
    n = len(information.structure)
    raw, filtered, variations, samples = [], [], [], []
    for fold in folds(information):
        values = solve(information.subset(fold.fitted), weights).values if fit is None else fit(
            fold.fitted)
        test = merge_batches([scored.batches[i] for i in fold.test])
        raw.append(scored.residual_energy(values, RAW, test))
        filtered.append(scored.residual_energy(values, FILTERED, test))
        variations.append(_variation(scored, test))
        samples.append(test.samples)
    every = solve(information, weights).values if fit is None else fit(
        range(len(information.batches)))
    fitted = scored.residual_energy(every, RAW) / scored.samples
    errors, whole = np.array(filtered).reshape(-1, n), max(sum(samples), 1)
    share, margin = _share(errors, np.array(variations).reshape(-1, n))
    constant = scored.spread(FILTERED) <= EFFORT_ROUNDING * scored.size(FILTERED)
    sizes, energy = np.array(samples, dtype=np.float64), np.array(raw).reshape(-1, n)
    return HeldOut(energy.sum(axis=0) / whole, errors.sum(axis=0) / whole, share, margin, constant,
                   energy / sizes[:, None], sizes, float(information.seconds.sum()), fitted)


def errors_by_cell(information: Information, chosen: NDArray[np.int64]) -> FloatArray:
    """Return the sums of squared held-out errors (C, n) [(N m)^2] of each cell of distinct motion.

    Against the raw effort, each cell with the fit of the `chosen` (k,) parameters to the other
    folds.
    """
    about = information.distinct.about(chosen)
    weights = joint_weights(about)
    errors = np.zeros((len(about.batches), len(about.structure)))
    for fold in folds(about):
        values = solve(about.subset(fold.fitted), weights).values
        errors[fold.test] = [about.residual_energy(values, RAW, about.batches[i])
                            for i in fold.test]
    return errors


def falls(errors: FloatArray, others: FloatArray) -> bool:
    """Return True if squared errors (f,) of folds are lower than `others`.

    In most folds, and on average by more than the standard error of the difference.
    """
    if len(errors) < 2 or not np.isfinite([errors, others]).all():
        return False
    gains = others - errors
    return bool(gains.mean() > gains.std(ddof=1) / np.sqrt(len(gains))
                and np.mean(gains > 0.0) > 0.5)


def surely_lower(errors: FloatArray, others: FloatArray, level: float) -> bool:
    """Return True if errors (k,) of stretches are lower than `others`, by Wilcoxon's test.

    A one-sided rank test at `level`: one stretch with slow motion may show more friction than all
    the others together.
    """
    from scipy.stats import wilcoxon

    gains = others - errors
    if not np.mean(gains) > 0.0:
        return False
    return bool(wilcoxon(gains, alternative='greater').pvalue < 1.0 - level)


def _variation(information: Information, part: Batch) -> FloatArray:
    """Return the sum of squares (n,) of the filtered effort of a part about the mean of all."""
    variation = np.empty(len(information.structure))
    for joint in range(len(variation)):
        whole, extra = information.total.split(joint)[1], part.split(joint)[1]
        mean = float(whole[:, ONE] @ whole[:, FILTERED]) / information.samples
        variation[joint] = np.sum((extra[:, FILTERED] - mean * extra[:, ONE])**2)
    return variation


def _share(errors: FloatArray, variations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of variance (n,) predicted, and its margin, from sums of folds (f, n).

    The share is one less a ratio of sums, whose deviation is that of the ratio estimator. Source:
    Cochran, Sampling techniques, 1977, section 6.3.
    """
    count = len(errors)
    whole = np.maximum(variations.sum(axis=0), 1e-300)
    ratio = errors.sum(axis=0) / whole
    if count < 2:
        return 1.0 - ratio, np.zeros_like(ratio)
    rest = errors - ratio * variations
    deviation = np.sqrt(count / (count - 1) * np.sum(rest**2, axis=0)) / whole
    return 1.0 - ratio, student_quantile(SHARE_LEVEL, count - 1) * deviation


#: an effort outside by more than this share of its size raises the rank; rounding leaves 1e-14
OUTSIDE_RANK_TOLERANCE = 1e-8
#: share of a joint's effort outside the model above which a warning is given
NOTABLE_OUTSIDE = 0.3


@dataclass(frozen=True, eq=False)
class Consistency:
    """Rank test: `outside` (n,) share of the effort of each joint that no parameters explain.

    `raised` is True if rank [H tau] exceeds rank H: always with noise, never without.
    """

    outside: FloatArray
    raised: bool

    def warnings(self, joints: tuple[str, ...]) -> list[str]:
        """Return a warning per joint with a notable share."""
        return [f'joint {joint}: {share:.0%} of its effort (root mean square) is explained by no '
                'parameters, so rank [H tau] exceeds rank H: noise, or an effect that the model '
                'lacks'
                for joint, share in zip(joints, self.outside, strict=True)
                if self.raised and share > NOTABLE_OUTSIDE]


def consistency(information: Information) -> Consistency:
    """Return the share of the filtered effort outside the column space of each joint's equations.

    Source: Wang et al., Sensors 2025, 25, 5749, section 3.2 (rank of the augmented matrix).
    """
    outside = np.zeros(len(information.structure))
    for row in range(len(outside)):
        columns, extra = information.total.split(row)
        norms, effort = np.linalg.norm(columns, axis=0), extra[:, FILTERED]
        unit = columns[:, norms > 0.0] / norms[norms > 0.0]
        left, sizes, _ = np.linalg.svd(unit, full_matrices=False)
        left = left[:, sizes > OUTSIDE_RANK_TOLERANCE * sizes.max(initial=0.0)]
        size = float(np.linalg.norm(effort))
        if size > 0.0:
            outside[row] = np.linalg.norm(effort - left @ (left.T @ effort)) / size
    return Consistency(outside, bool(outside.max(initial=0.0) > OUTSIDE_RANK_TOLERANCE))


#: a joint is refused unless significantly more than this share of its variance is predicted
PREDICTED_SHARE = 0.02
#: a joint is refused with more than this share of its effort outside the column space
LARGEST_OUTSIDE = 0.5
#: larger shares are clipped in messages
LARGEST_SHOWN = 9.99
REMEDY = 'check its effort signal, and do not use the model for this joint'
REMEDY_OF_SEVERAL = 'check their effort signals, and do not use the model for these joints'


def explained_share(information: Information, values: FloatArray) -> FloatArray:
    """Return the share R^2 (n,) of the variance of each effort that base parameters explain."""
    energy = information.residual_energy(values, FILTERED) / information.samples
    return np.asarray(1.0 - energy / np.maximum(information.spread(FILTERED) ** 2, 1e-300))


def refusals(
    held: HeldOut, rank_test: Consistency | None = None, served: FloatArray | None = None
) -> dict[int, str]:
    """Return the refused equations (row numbers) with the reason.

    The share of variance predicted on held-out folds must exceed PREDICTED_SHARE by the scatter of
    the folds. `served` (n,) is the `explained_share` of the parameters of the model: folds are
    predicted by least squares, but methods with constraints or instruments have other parameters.
    """
    refused = {}
    for row, (share, margin) in enumerate(zip(held.share, held.margin, strict=True)):
        outside = 0.0 if rank_test is None or not rank_test.raised else float(
            rank_test.outside[row])
        if held.constant[row]:
            refused[row] = 'its effort is constant'
        elif share < -LARGEST_SHOWN:
            refused[row] = ('its effort is predicted far worse than by its mean on held-out data '
                            '(too little data for the parameters, or an effect is missing)')
        elif not share - margin > PREDICTED_SHARE:
            low, wide = np.clip([share, margin], -LARGEST_SHOWN, LARGEST_SHOWN)
            refused[row] = ('its effort is predicted no better than by its mean on held-out data '
                            f'({low:.0%} +- {wide:.0%} of its variance)')
        elif served is not None and not served[row] > 0.0:
            refused[row] = ('its effort is explained by this method worse than by its mean, even '
                            'in the training data (--method wls, or more motion, may do better)')
        elif outside > LARGEST_OUTSIDE:
            refused[row] = ('its effort lies mostly outside what any parameters explain '
                            f'({outside:.0%} root mean square: noise, or an effect is missing)')
    return refused


def refusal_sentences(refused: Mapping[str, str]) -> list[str]:
    """Return a sentence for the joints that are ``refused`` for one reason, with the remedy.

    What differs between joints is in parentheses at the end of their reasons.
    """
    joints: dict[str, list[str]] = {}
    for joint, reason in refused.items():
        joints.setdefault(reason.partition(' (')[0], []).append(joint)
    return [f'joint {names[0]} is refused: {refused[names[0]]}; {REMEDY}' if len(names) == 1 else
            f'joints {listed(names)} are refused: {reason.replace("its effort", "their effort")}; '
            f'{REMEDY_OF_SEVERAL}' for reason, names in joints.items()]
