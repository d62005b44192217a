"""Period of a motion that repeats, and the part of the recording in which it does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.signals.repetition import SAME_MOTION, SHORTEST_PERIOD
from robot_dynid.types import FloatArray, RawLog

#: a period is looked for on this many instants at most, of this many seconds at most
COARSE, EXCERPT = 4000, 600.0
#: instants on which a given period is checked, per period
FINE = 400
#: mean squared difference in shares of the variance that is let pass on the coarse grid
ROUGH = 0.05
#: share of the longest repetition from which a shorter period is preferred to its multiples
ENOUGH = 0.6
#: a pause [s] across which positions are not interpolated
HOLE = 0.5
#: refinements of a period, each on a grid this much finer
REFINED, FINER = 4, 5


@dataclass(frozen=True)
class Stretch:
    """A part of a recording that repeats after ``period`` s, from ``start`` for ``length`` s."""

    period: float
    start: float
    length: float

    @property
    def periods(self) -> float:
        """Number of periods it holds; a recording may stop a sample short of the last one."""
        return self.length / self.period + 1.5 / FINE


def extent_text(stretch: Stretch | None) -> str:
    """Return the number of periods in words."""
    return f'{stretch.periods:.3g} periods' if stretch else 'less than a period'


def longest_repetition(
    log: RawLog, period: float, share: float = SAME_MOTION
) -> Stretch | None:
    """Return the part of the recording that repeats after ``period`` s with most motion in it.

    Two positions are the same when their squared difference, each joint by its own variance, is
    below ``share``. None when the motion repeats nowhere.
    """
    step = max(period / FINE, float(np.median(np.diff(log.time))))
    delay = max(1, round(period / step))
    step = period / delay
    time = np.arange(log.time[0], log.time[-1] + 1e-6 * step, step)
    if len(time) <= delay:
        return None
    run = _longest(_scaled(log, time), delay, share)
    if run is None:
        return None
    return Stretch(period, float(time[run[0]]), float(time[run[1]] - time[run[0]]) + period)


def found_period(log: RawLog) -> Stretch | None:
    """Return the shortest period after which most of the motion repeats, and where; or None."""
    middle = 0.5 * (log.time[0] + log.time[-1])
    half = 0.5 * min(log.time[-1] - log.time[0], EXCERPT)
    step = max(2.0 * half / COARSE, float(np.median(np.diff(log.time))))
    rows = _scaled(log, np.arange(middle - half, middle + half, step))
    delays = np.arange(max(1, int(SHORTEST_PERIOD / step)), len(rows) // 2 + 1)
    moved = np.array([_moved(rows, int(delay)) for delay in delays])
    if not len(delays) or not moved.max() > 0.0:
        return None
    good = np.flatnonzero(moved >= ENOUGH * moved.max())
    last = good[0] + np.argmax(np.diff(np.append(good, len(delays) + 1)) > 1)
    near = delays[good[0]:last + 1]
    period = float(step * near[np.argmin([_difference(rows, int(d)) for d in near])])
    for _ in range(REFINED):
        step /= FINER
        tried = period + step * np.arange(-2 * FINER, 2 * FINER + 1)
        period = min(tried.tolist(), key=lambda t: _misfit(log, t))
    stretch = longest_repetition(log, period)
    return stretch if stretch is not None and stretch.periods >= 2.0 else None


def _scaled(log: RawLog, time: FloatArray) -> FloatArray:
    """Return the positions (N, n) at ``time``, each joint by its deviation; NaN in gaps."""
    columns = []
    for column in log.position.T:
        good = np.isfinite(column)
        if good.sum() < 2:
            columns.append(np.zeros_like(time))
            continue
        t = log.time[good]
        values = np.interp(time, t, column[good])
        after = np.clip(np.searchsorted(t, time), 1, len(t) - 1)
        values[t[after] - t[after - 1] > HOLE] = np.nan
        columns.append((values - np.nanmean(values)) / max(float(np.nanstd(values)), 1e-6))
    return np.stack(columns, axis=1)


def _same(rows: FloatArray, delay: int, share: float) -> NDArray[np.bool_]:
    """Return a mask of repeated positions; true where one of them was not measured."""
    return np.asarray(~(np.mean((rows[delay:] - rows[:-delay]) ** 2, axis=1) >= share))


def _path(rows: FloatArray) -> FloatArray:
    """Return the way (N,) all joints have gone until every instant."""
    steps = np.nan_to_num(np.abs(np.diff(rows, axis=0)))
    return np.concatenate([[0.0], np.cumsum(np.sum(steps, axis=1))])


def _longest(rows: FloatArray, delay: int, share: float) -> tuple[int, int] | None:
    """Return first and last index of the run of equal positions along which most is moved."""
    same = _same(rows, delay, share)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], same.astype(np.int8), [0]])))
    path = _path(rows)
    runs = [(path[b - 1 + delay] - path[a], a, b - 1) for a, b in edges.reshape(-1, 2)]
    if not runs or max(runs)[0] <= 0.0:
        return None
    _, first, last = max(runs)
    return int(first), int(last)


def _moved(rows: FloatArray, delay: int) -> float:
    """Return the path along which the positions repeat after ``delay``, without the last time."""
    run = _longest(rows, delay, ROUGH)
    if run is None or run[1] - run[0] < 0.9 * delay:
        return 0.0
    return float(_path(rows[run[0]:run[1] + 1])[-1])


def _difference(rows: FloatArray, delay: int) -> float:
    run = _longest(rows, delay, ROUGH)
    assert run is not None
    part = slice(run[0], run[1] + 1)
    return float(np.nanmean((rows[delay:][part] - rows[:-delay][part]) ** 2))


def _misfit(log: RawLog, period: float) -> float:
    """Return the mean squared difference along the run that repeats roughly after ``period``."""
    stretch = longest_repetition(log, period, ROUGH)
    if stretch is None:
        return np.inf
    time = stretch.start + np.arange(0.0, stretch.length - period, period / FINE)
    both = _scaled(log, np.concatenate([time, time + period]))
    return float(np.nanmean((both[:len(time)] - both[len(time):]) ** 2)) if len(time) else np.inf
