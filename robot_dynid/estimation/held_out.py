"""Held-out errors inside the training data, straight from the information."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.information import FILTERED, RAW, Information
from robot_dynid.types import FloatArray

FOLDS = 5
#: a joint counts as identified when at least this share of its effort's variance is predicted
LEAST_SHARE = 0.02


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Errors of every joint on batches that were not used for the fit.

    ``raw`` and ``filtered`` (n,) mean squared errors against the raw and the filtered effort
    [(N m)^2]; ``share`` (n,) of the variance of the filtered effort that is predicted.
    """

    raw: FloatArray
    filtered: FloatArray
    share: FloatArray

    @property
    def score(self) -> float:
        """Mean logarithm of the raw errors: a joint counts the same whatever its torque."""
        return float(0.5 * np.mean(np.log(np.maximum(self.raw, 1e-300))))


def folds(count: int) -> list[list[int]]:
    """Cut ``count`` batches into contiguous folds, so that neighbours do not leak."""
    return [list(map(int, part)) for part in np.array_split(np.arange(count), min(FOLDS, count))]


def held_out(information: Information, scored: Information | None = None) -> HeldOut:
    """Return the errors of cross-validation over contiguous stretches of time.

    ``scored`` is the information the errors are counted on, batch by batch the same stretches as
    those fitted; by default the same information.
    """
    scored = scored or information
    weights = joint_weights(information)
    count = len(information.batches)
    n = len(information.structure)
    raw, filtered = np.zeros(n), np.zeros(n)
    for fold in folds(count):
        rest = [i for i in range(count) if i not in fold]
        if not rest:
            continue
        values = solve(information.subset(rest), weights).values
        test = scored.subset(fold).total
        raw += scored.residual_energy(values, RAW, test)
        filtered += scored.residual_energy(values, FILTERED, test)
    samples = scored.samples
    variance = scored.spread(FILTERED) ** 2
    share = 1.0 - filtered / samples / np.maximum(variance, 1e-300)
    return HeldOut(raw / samples, filtered / samples, share)
