"""Held-out errors inside the training data, straight from the information."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.information import EXTRA, FILTERED, ONE, RAW, Batch, Information
from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.estimation.quantiles import student_quantile
from robot_dynid.types import FloatArray

#: base parameters (b,) from some batches
Fit = Callable[[Sequence[int]], FloatArray]
FOLDS = 5
#: one-sided level at which the share of a joint is sure
LEVEL = 0.95
#: an effort that varies by less than this share of its size is constant
ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors of every joint on batches that were not used for the fit.

    ``raw`` and ``filtered`` (n,) mean squared errors against the raw and the filtered effort
    [(N m)^2]; ``share`` (n,) of the variance of the filtered effort that is predicted, sure to
    ``margin`` (n,) by the scatter of the folds; ``constant`` (n,) efforts have no variance.
    """

    raw: FloatArray
    filtered: FloatArray
    share: FloatArray
    margin: FloatArray
    constant: NDArray[np.bool_]

    @property
    def score(self) -> float:
        """Mean logarithm of the raw errors: a joint counts the same whatever its torque."""
        return float(0.5 * np.mean(np.log(np.maximum(self.raw, 1e-300))))


def folds(count: int) -> list[list[int]]:
    """Cut ``count`` batches into contiguous folds, so that neighbours do not leak."""
    return [list(map(int, part)) for part in np.array_split(np.arange(count), min(FOLDS, count))]


def held_out(
    information: Information, scored: Information | None = None, fit: Fit | None = None
) -> HeldOut:
    """Return the errors of cross-validation over contiguous stretches of time.

    ``scored`` is the information the errors are counted on, batch by batch the same stretches as
    those fitted; by default the same information. ``fit`` returns the base parameters (b,) from
    some batches of ``information``; by default weighted least squares.
    """
    parts = folds(len(information.batches))
    information = information.grouped(parts)
    scored = information if scored is None else scored.grouped(parts)
    weights = joint_weights(information)
    n = len(information.structure)
    raw = np.zeros(n)
    errors, variations = [], []
    for fold, test in enumerate(scored.batches if len(parts) > 1 else ()):
        rest = [i for i in range(len(parts)) if i != fold]
        values = solve(information.subset(rest), weights).values if fit is None else fit(
            [batch for i in rest for batch in parts[i]])
        raw += scored.residual_energy(values, RAW, test)
        errors.append(scored.residual_energy(values, FILTERED, test))
        variations.append(_variation(scored, test))
    samples = scored.samples
    share, margin = _share(np.array(errors).reshape(-1, n), np.array(variations).reshape(-1, n))
    constant = scored.spread(FILTERED) <= ROUNDING * scored.size(FILTERED)
    return HeldOut(raw / samples, np.sum(errors, axis=0) / samples, share, margin, constant)


def errors_by_stretch(information: Information, chosen: NDArray[np.int64]) -> FloatArray:
    """Return the sums of squares (batches, n) [(N m)^2] of what cross-validation leaves of each.

    Against the raw effort, every batch with the fit of the ``chosen`` (k,) parameters to all folds
    but its own.
    """
    parts = folds(len(information.batches))
    grouped = information.grouped(parts).about(chosen)
    weights = joint_weights(grouped)
    found = np.zeros((len(information.batches), len(information.structure)))
    for fold, own in enumerate(parts if len(parts) > 1 else ()):
        values = np.zeros(len(information.names))
        values[chosen] = solve(
            grouped.subset([i for i in range(len(parts)) if i != fold]), weights).values
        found[own] = [information.residual_energy(values, RAW, information.batches[i])
                      for i in own]
    return found


def surely_lower(errors: FloatArray, others: FloatArray, level: float) -> bool:
    """Return whether errors (k,) of stretches are lower than ``others``, by Wilcoxon's test.

    A test of ranks, one-sided at ``level``: one stretch with slow motion may say more of friction
    than all the others together.
    """
    from scipy.stats import wilcoxon

    gains = others - errors
    if not (np.mean(gains) > 0.0 and np.any(gains != 0.0)):
        return False
    return bool(wilcoxon(gains, alternative='greater').pvalue < 1.0 - level)


def _variation(information: Information, part: Batch) -> FloatArray:
    """Return the sum of squares (n,) of the filtered effort of a part about the mean of all."""
    found = np.empty(len(information.structure))
    for joint, (factor, whole) in enumerate(zip(
            part.factors, information.total.factors, strict=True)):
        k = factor.shape[1] - EXTRA
        one, effort = whole[:, k + ONE], whole[:, k + FILTERED]
        mean = float(one @ effort) / information.samples
        rest = factor[:, k + FILTERED] - mean * factor[:, k + ONE]
        found[joint] = float(rest @ rest)
    return found


def _share(errors: FloatArray, variations: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the share of variance (n,) predicted, and its margin, from sums of folds (f, n).

    The share is one less a ratio of sums, whose deviation is that of the ratio estimator.
    Source: Cochran, Sampling techniques, 1977, section 6.3.
    """
    count = len(errors)
    whole = np.maximum(variations.sum(axis=0), 1e-300)
    ratio = errors.sum(axis=0) / whole
    if count < 2:
        return 1.0 - ratio, np.zeros_like(ratio)
    rest = errors - ratio * variations
    deviation = np.sqrt(count / (count - 1) * np.sum(rest**2, axis=0)) / whole
    return 1.0 - ratio, student_quantile(LEVEL, count - 1) * deviation
