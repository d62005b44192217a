"""Probabilities by chance that hold where scatter is not what a test supposes.

Friction of a day resembles that of the day before, days are not normal, sessions differ in what
they know by more than they tell: then steps and trends by chance are larger than Student's t says,
in all arms alike. Most arms of a fleet did not change, so their own probabilities tell what chance
makes: those of one kind of characteristic are compared with what they should be, and widened.

Source: Efron, J. Am. Stat. Assoc. 2004, 99, 96 (the null distribution from the bulk of the tests);
Devlin, Roeder, Biometrics 1999, 55, 997 (its widening alone); Gumbel, Statistics of Extremes,
1958 (the smallest of several probabilities).

The rate of false discoveries is controlled over arms, their parts, and what is said of each part.
The tests are a tree: arms, parts of an arm (friction of a joint, its offset, a link, the load),
numbers of a part. Arms are chosen first, then parts of the arms chosen, then numbers of these,
each time at a rate that pays for the choice before. The rate holds for all: among the arms named,
and, on average over these, among the parts. One rate over everything would not hold for
arms: one with a load changes in many numbers at once, and each of these true ones would let in its
share of false ones about other arms.

Sources: Benjamini, Hochberg, J. R. Stat. Soc. B 1995, 57, 289; Simes, Biometrika 1986, 73, 751;
Benjamini, Bogomolov, J. R. Stat. Soc. B 2014, 76, 297 (choosing families); Bogomolov, Peterson,
Benjamini, Sabatti, Biometrika 2021, 108, 575 (trees); Benjamini, Yekutieli, J. Am. Stat. Assoc.
2005, 100, 71 (intervals of what was chosen). Arms are independent of each other but for the
spreads they share. Numbers of one arm are correlated, by estimates that share sessions; BH and
Simes hold the rate under positive dependence (Benjamini, Yekutieli, Ann. Stat. 2001, 29, 1165),
and for other kinds in practice. The rate that holds under any dependence is lower by the sum of
1/i, a factor of 4 for 30 tests, and was not taken: `robot-dynid bench fleet` counts what is false.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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


def rejected(chances: FloatArray, rate: float) -> NDArray[np.bool_]:
    """Return a mask (m,) of the probabilities that are rejected at a ``rate``."""
    count = len(chances)
    allowed = np.sort(chances) <= rate * np.arange(1, count + 1) / count
    if not allowed.any():
        return np.zeros(count, dtype=bool)
    bound = np.sort(chances)[np.flatnonzero(allowed)[-1]]
    return np.asarray(chances <= bound)


def simes(chances: FloatArray) -> float:
    """Return the probability by chance of probabilities (m,) as small as these together."""
    count = len(chances)
    return float(np.min(np.sort(chances) * count / np.arange(1, count + 1), initial=1.0))


def discovered(
    families: Sequence[Sequence[FloatArray]], rate: float
) -> list[list[tuple[NDArray[np.bool_], float]]]:
    """Return for every part of every arm what is rejected (m,), at a ``rate``.

    ``families`` have, arm by arm and part by part, the probabilities (m,) by chance. With what is
    rejected comes the chance with which its intervals may miss.
    """
    parts = [np.array([simes(part) for part in own]) for own in families]
    chosen = rejected(np.array([simes(own) for own in parts]), rate)
    found = []
    for arm, own, yes in zip(families, parts, chosen, strict=True):
        told = [np.zeros(len(part), dtype=bool) for part in arm]
        if yes:
            within = rate * float(np.mean(chosen))
            said = rejected(own, within)
            inner = within * float(np.mean(said))
            told = [rejected(part, inner) & is_so for part, is_so in zip(arm, said, strict=True)]
        found.append([(one, inner * float(np.mean(one)) if one.any() else rate) for one in told])
    return found
