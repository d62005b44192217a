"""Probabilities by chance that hold where scatter is not what a test supposes.

Friction of a day resembles that of the day before, days are not normal, sessions differ in what
they know by more than they tell: then steps and trends by chance are larger than Student's t says,
in all arms alike. Most arms of a fleet did not change, so their own probabilities tell what chance
makes: those of one kind of characteristic are compared with what they should be, and widened.

Source: Efron, J. Am. Stat. Assoc. 2004, 99, 96 (the null distribution from the bulk of the tests);
Devlin, Roeder, Biometrics 1999, 55, 997 (its widening alone); Gumbel, Statistics of Extremes,
1958 (the smallest of several probabilities).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.types import FloatArray
from robot_dynid_extras.fleet.scatter import LEAST_UNITS

#: shares of the tests by which the bulk is told: few of those above have a change
BULK = np.array([0.25, 0.5, 0.75])
#: of Gumbel's distribution
QUANTILES = -np.log(-np.log(BULK))


@dataclass(frozen=True)
class ByChance:
    """Distribution of -log of the smallest probabilities: Gumbel's, with ``place`` and ``width``.

    ``width`` is 1 and ``place`` no more than 0 where the tests hold what they suppose.
    """

    place: float = -np.inf
    width: float = 1.0

    def probability(self, chance: float) -> float:
        """Return a probability, of a smallest one times the number of tests; not below it."""
        if chance <= 0.0:
            return 0.0
        height = (-np.log(chance) - self.place) / self.width
        return max(min(chance, 1.0), float(-np.expm1(-np.exp(-height))))


def by_chance(chances: FloatArray) -> ByChance:
    """Return the distribution of the bulk of ``chances`` (m,), which may be above 1.

    Each is the smallest of several probabilities times their number. Fewer than LEAST_UNITS do
    not tell.
    """
    if len(chances) < LEAST_UNITS:
        return ByChance()
    low, middle, high = np.quantile(-np.log(np.maximum(chances, np.finfo(float).tiny)), BULK)
    width = max((high - low) / (QUANTILES[2] - QUANTILES[0]), 1.0)
    return ByChance(float(middle - width * QUANTILES[1]), float(width))
