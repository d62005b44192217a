"""Tests of one characteristic of one arm: against its own earlier sessions, against the others.

Along the sessions of an arm a step at every session, one session off by itself, and a trend are
tested by Student's t from the fit of level and change by weighted least squares; what is left of
such a fit is free of the change, so that a large one does not hide itself. Its variance is
moderated by that of the fleet (`scatter`). The smallest of the probabilities counts, times
their number (Bonferroni): neighbouring steps are correlated, which makes it conservative.

What differs from day to day by itself, friction, is another on some days, by more than normal
deviates are: a cold morning is no change. There a step has sessions enough on both sides, and one
session by itself is not told.

Sources: Hawkins, J. Am. Stat. Assoc. 1977, 72, 180 and Worsley, J. Am. Stat. Assoc. 1979, 74, 365
(steps at unknown times); Smyth 2004 (moderated t).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dynid.estimation.estimate import student_quantile, student_tail
from robot_dynid.types import FloatArray
from robot_dynid_extras.fleet.scatter import TINY, DayToDay, Levels, Path, levels

STEP, PASSING, TREND, OUTLIER = ('step', 'one session', 'trend', 'outlier')
#: arms up to which the others are taken without the one in question; more bound what one adds
LEFT_OUT = 12
#: fewer arms do not tell what is usual
LEAST_ARMS = 4
#: sessions on both sides of a step of what differs from day to day; of few sessions, half of them
BESIDE_STEP = 3
#: sessions up to which is told how many would do
MOST_SESSIONS = 200


@dataclass(frozen=True)
class Evidence:
    """Evidence of a change: its ``pattern``, ``size`` and ``probability`` by chance.

    The probability is an upper bound, of a number of tests times the smallest, and may be above 1.

    ``deviation`` of the size, with ``freedom`` degrees; ``session`` is the number of the first
    session that is changed, and a trend's size is the change from the first session to the last.
    """

    pattern: str
    size: float
    deviation: float
    freedom: float
    probability: float
    session: int = 0

    def half_interval(self, chance: float) -> float:
        """Return half of the interval that misses the size with probability ``chance``."""
        return student_quantile(1.0 - 0.5 * chance, self.freedom) * self.deviation


def change(
    path: Path, time: FloatArray, usual: DayToDay, daily: bool = False
) -> Evidence | None:
    """Return the change along a ``path`` at ``time`` (S,) that is hardest to explain by chance.

    ``daily``: of what differs from day to day by itself. None where there are too few sessions.
    """
    freedom = usual.freedom + len(time) - 2
    if len(time) < 2 or freedom < 1.0 or not np.isfinite(usual.spread):
        return None
    patterns, sessions, shapes = zip(*_shapes(time, daily), strict=True)
    sizes, deviations = _tested(path, usual, np.array(shapes))
    ratios = np.abs(sizes) / np.maximum(deviations, TINY)
    best = int(np.argmax(ratios))
    chance = len(shapes) * student_tail(float(ratios[best]), freedom)
    return Evidence(patterns[best], float(sizes[best]), float(deviations[best]), freedom, chance,
                    sessions[best])


def _shapes(time: FloatArray, daily: bool) -> Iterator[tuple[str, int, FloatArray]]:
    """Yield pattern, first changed session and shape (S,) of all changes that are tested."""
    count = len(time)
    beside = min(BESIDE_STEP, count // 2) if daily else 1
    for first in range(beside, count - beside + 1):
        yield STEP, first, (np.arange(count) >= first).astype(np.float64)
    if not daily:
        for only in range(1, count - 1):
            yield PASSING, only, (np.arange(count) == only).astype(np.float64)
    if count > 2:
        yield TREND, 0, (time - time[0]) / (time[-1] - time[0])


def sessions_needed(
    size: float, path: Path, usual: DayToDay, daily: bool, chance: float
) -> int | None:
    """Return of how many sessions a step of ``size`` in their middle would be one by ``chance``.

    Of sessions that know as much as those of ``path`` do, and scatter from day to day as
    ``usual``. At least BESIDE_STEP on both sides; None above MOST_SESSIONS.
    """
    variance = usual.spread**2 + float(np.mean(path.variances))
    for half in range(BESIDE_STEP, MOST_SESSIONS // 2 + 1):
        tests = sum(1 for _ in _shapes(np.arange(2.0 * half), daily))
        ratio = abs(size) / float(np.sqrt(2.0 * variance / half))
        if tests * student_tail(ratio, usual.freedom + 2 * half - 2) <= chance:
            return 2 * half
    return None


def _tested(
    path: Path, usual: DayToDay, shapes: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the sizes (m,) of changes with ``shapes`` (m, S), and their deviations (m,)."""
    weights = path.weights(usual.spread)
    share = weights / weights.sum()
    x, y = shapes - (shapes @ share)[:, None], path.values - share @ path.values
    squares = x**2 @ weights
    sizes = x @ (weights * y) / squares
    left = np.maximum(weights @ y**2 - sizes**2 * squares, 0.0)
    factor = (usual.freedom + left) / (usual.freedom + len(y) - 2)
    return sizes, np.sqrt(factor / squares)


def level(path: Path, usual: DayToDay) -> tuple[float, float]:
    """Return the level of an arm and its variance."""
    weights = path.weights(usual.spread)
    freedom = usual.freedom + path.freedom
    factor = (usual.freedom + path.scatter(usual.spread)) / freedom if freedom > 0.0 else 1.0
    return float(weights @ path.values / weights.sum()), factor / float(weights.sum())


def outliers(
    values: FloatArray, variances: FloatArray, fleet: Levels
) -> list[Evidence] | None:
    """Return for every arm how far its level is off what the other arms let expect.

    ``values`` (R,) of the levels with ``variances`` (R,); ``fleet`` what all have in common.
    None of fewer than LEAST_ARMS arms.
    """
    count = len(values)
    if count < LEAST_ARMS:
        return None
    found = []
    for r in range(count):
        rest = np.arange(count) != r
        others = levels(values[rest], variances[rest]) if count <= LEFT_OUT else fleet
        deviation = float(np.sqrt(others.spread**2 + others.error**2 + variances[r]))
        size = float(values[r]) - others.mean
        ratio = abs(size) / max(deviation, TINY)
        found.append(Evidence(OUTLIER, size, deviation, count - 2,
                              student_tail(ratio, count - 2)))
    return found
