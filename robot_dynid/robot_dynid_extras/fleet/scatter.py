"""Variance components of a fleet: from arm to arm, and of one arm from session to session.

What a session says of a characteristic differs from the level of its arm by an error within the
session, whose variance v the session tells, and by the day: temperature, grease, effects that no
model has. Both make up ``phi (omega^2 + v)``: omega, the spread from day to day, is pooled over
the fleet, and phi, about one, is what this arm has more or less of it. Levels differ from arm to
arm by tau. A few arms changed: they must not count for the spread of the others, so that omega is
taken from the median arm and residuals of arms are bounded for tau.

What days do to all arms alike, a cold week say, is no change of an arm: values of sessions are
taken apart into the level of their arm and what is common to their time, by medians in turns
(Tukey, Exploratory Data Analysis, 1977, chapter 11), which a few changed arms do not move.

Sources: Paule, Mandel, J. Res. Natl. Bur. Stand. 1982, 87, 377 and DerSimonian, Kacker, Contemp.
Clin. Trials 2007, 28, 105 (variances by moments); Huber, Ann. Math. Stat. 1964, 35, 73, proposal 2
(bounded residuals); Smyth, Stat. Appl. Genet. Mol. Biol. 2004, 3, 3 (variances of many units,
moderated by what they have in common).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from robot_dynid.types import FloatArray

#: residual in terms of its deviation from which an arm counts no more for the spread of levels
BOUND = 2.0
#: degrees of freedom that stand for infinitely many
MANY = 1e6
#: fewer units do not tell how their scatter differs
LEAST_UNITS = 10
#: steps of bisection: halves a range of any size to rounding
BISECTIONS = 40
#: variances below count as this: sums of their inverses are finite
TINY = 1e-300
#: rounds of weighting for a mean
MEANS = 6


@dataclass(frozen=True, eq=False)
class Path:
    """One characteristic of one arm along its sessions: ``values`` and ``variances`` (S,)."""

    values: FloatArray
    variances: FloatArray

    @property
    def freedom(self) -> int:
        """Degrees of freedom of the scatter about a level."""
        return len(self.values) - 1

    def weights(self, spread: float) -> FloatArray:
        """Return the inverse variances (S,) of the values, with ``spread`` from day to day."""
        return np.asarray(1.0 / np.maximum(spread**2 + self.variances, TINY))

    def scatter(self, spread: float) -> float:
        """Return the sum of squares about the level, in terms of ``spread``^2 and v."""
        weights = self.weights(spread)
        level = weights @ self.values / weights.sum()
        return float(weights @ (self.values - level) ** 2)


@dataclass(frozen=True)
class DayToDay:
    """Scatter from session to session: ``spread`` omega, and how alike the arms are in it.

    The factor phi of an arm is scaled inverse chi-square with ``freedom`` degrees about one;
    MANY: all arms scatter alike, 0: nothing is known of the others.
    """

    spread: float
    freedom: float


def day_to_day(paths: Sequence[Path]) -> DayToDay:
    """Return the scatter from session to session that ``paths`` have in common.

    That of the median path: the one at which as many paths scatter more than the median of
    chi-square as scatter less. Fewer than LEAST_UNITS paths do not tell how alike they are:
    together they count as much as one path does by itself, and a single one not at all. Without
    two sessions of any arm nothing is known: infinite.
    """
    from scipy.special import chdtri, fdtri

    several = [path for path in paths if path.freedom > 0]
    if not several:
        return DayToDay(np.inf, MANY)
    freedom = np.array([path.freedom for path in several])
    median = chdtri(freedom, 0.5)

    def excess(spread: float) -> float:
        return float(np.median([p.scatter(spread) for p in several] / median)) - 1.0

    spread = _root(excess, 4.0 * max(float(np.ptp(path.values)) for path in several))
    if len(several) < LEAST_UNITS:
        return DayToDay(spread, float(min(freedom.sum() - freedom.max(), freedom.min())))
    ratios = np.array([path.scatter(spread) for path in several]) / freedom
    low, high = np.quantile(np.log(np.maximum(ratios, TINY)), [0.25, 0.75])
    own = float(np.median(freedom))

    def wider(exponent: float) -> float:
        prior = np.exp(exponent)
        return float(np.log(fdtri(own, prior, 0.75) / fdtri(own, prior, 0.25)) - (high - low))

    least, most = 0.0, np.log(MANY)
    if wider(most) >= 0.0:
        return DayToDay(spread, MANY)
    return DayToDay(spread, float(np.exp(_root(wider, most, least))))


@dataclass(frozen=True)
class Levels:
    """Levels of arms: their ``mean`` with deviation ``error``, and their ``spread`` tau."""

    mean: float
    error: float
    spread: float


def levels(values: FloatArray, variances: FloatArray) -> Levels:
    """Return mean and spread of the levels ``values`` (R,) of arms, known with ``variances`` (R,).

    Residuals count up to BOUND deviations.
    """
    count = len(values)
    if count < 2:
        return Levels(float(values[0]), float(np.sqrt(variances[0])), np.inf)
    expected = _bounded_moment(BOUND) * (count - 1) / count

    def excess(spread: float) -> float:
        mean, total = _mean(values, spread**2 + variances)
        return float(np.mean(np.minimum((values - mean) ** 2 / total, BOUND**2))) - expected

    spread = _root(excess, 2.0 * float(np.ptp(values)) + float(np.sqrt(variances.max())))
    mean, total = _mean(values, spread**2 + variances)
    return Levels(mean, float(1.0 / np.sqrt(np.sum(1.0 / total))), spread)


def _mean(values: FloatArray, variances: FloatArray) -> tuple[float, FloatArray]:
    """Return Huber's mean of ``values`` (R,) and their ``variances`` (R,)."""
    deviation = np.sqrt(np.maximum(variances, TINY))
    mean = float(np.median(values))
    for _ in range(MEANS):
        off = np.abs(values - mean) / deviation
        weights = BOUND / np.maximum(off, BOUND) / deviation**2
        mean = float(weights @ values / weights.sum())
    return mean, deviation**2


def _bounded_moment(bound: float) -> float:
    """Return the mean of min(z^2, bound^2) of a standard normal z."""
    from scipy.special import ndtr

    density = np.exp(-0.5 * bound**2) / np.sqrt(2.0 * np.pi)
    inside = 2.0 * ndtr(bound) - 1.0
    return float(inside - 2.0 * bound * density + bound**2 * (1.0 - inside))


def _root(excess: Callable[[float], float], high: float, low: float = 0.0) -> float:
    """Return the root of ``excess``, which falls; ``low`` where it is below zero everywhere."""
    if excess(low + 1e-9 * (high - low)) <= 0.0:
        return low
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return 0.5 * (low + high)


Own = TypeVar('Own', bound=Path)
#: rounds of medians in turns
ROUNDS = 4


def without_season(paths: Sequence[Own], days: Sequence[FloatArray]) -> list[Own]:
    """Return ``paths`` of arms without what they have in common along their ``days`` (S,) each.

    Common to a day is the median of as many sessions next to it in time as there are arms. Fewer
    than LEAST_UNITS arms with several sessions do not tell: they stay as they are.
    """
    several = sum(path.freedom > 0 for path in paths)
    if several < LEAST_UNITS:
        return list(paths)
    arms = np.repeat(np.arange(len(paths)), [len(path.values) for path in paths])
    values, day = np.concatenate([path.values for path in paths]), np.concatenate(days)
    places, inverse = np.unique(day, return_inverse=True)
    near = [_near(day, place, several) for place in places]
    common = np.zeros(len(places))
    for _ in range(ROUNDS):
        left = values - common[inverse]
        levels = np.array([np.median(left[arms == r]) if len(path.values) else 0.0
                           for r, path in enumerate(paths)])
        off = values - levels[arms]
        common = np.array([np.median(off[own]) for own in near])
        common -= np.median(common[inverse])
    return [replace(path, values=path.values - common[inverse[arms == r]])
            for r, path in enumerate(paths)]


def _near(day: FloatArray, place: float, count: int) -> FloatArray:
    """Return a mask of the ``count`` sessions nearest in time, and of others as near."""
    distance = np.abs(day - place)
    return np.asarray(distance <= np.partition(distance, count - 1)[count - 1])
