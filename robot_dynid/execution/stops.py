"""Stops along a path, searched at knots all along it before it starts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.execution.pace import FEWEST, Ramp, along_path
from robot_dynid.execution.sampled import SampledTrajectory, columns_within
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.types import FloatArray, frozen

#: s from one knot to the next, and of stops: the first that keeps the limits is taken
SPACING = 0.05
DURATIONS = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.85, 1.0, 1.25, 1.5,
             2.0, 3.0, 5.0)
# Part of the lookahead from when a piece can be sent to the knot where it brakes, at least.
RESERVE = 0.4
AT_ONCE = 500  # knots


@dataclass(frozen=True, eq=False)
class Stops:
    """Stops along a path in the order in which they end, each of which begins later, too.

    ``begin`` (K,) s is the path time at which a stop of ``duration`` (K,) s begins. The last is
    the end of the path, where the robot stops anyway.
    """

    begin: FloatArray
    duration: FloatArray

    @property
    def end(self) -> FloatArray:
        """Time (K,) s at which the robot rests, when the path was followed up to the stop."""
        return self.begin + self.duration

    @property
    def shortest_lookahead(self) -> float:
        """Smallest lookahead s with which there is a stop to send at any time."""
        gaps = self.end[1:] - self.begin[:-1]
        return max(float(self.end[0]), float(np.max(gaps, initial=0.0)) / (1.0 - RESERVE))

    def latest(self, time: float) -> tuple[float, float]:
        """Return begin and duration, s, of the last stop that ends until ``time`` s."""
        i = max(int(np.searchsorted(self.end, time + 1e-9, side='right')) - 1, 0)
        return float(self.begin[i]), float(self.duration[i])

    def onward(self, shift: float, starting: Stops, begin: float) -> Stops:
        """Return the stops of the rest of the path, which is ``shift`` s earlier.

        From ``begin`` s of the rest on they are these, before that those ``starting`` it.
        """
        left = self.begin - shift >= begin
        return _ordered(np.concatenate([starting.begin, self.begin[left] - shift]),
                        np.concatenate([starting.duration, self.duration[left]]))


def stops_of(points: SampledTrajectory, limits: MotionLimits, rate: float,
             until: float = np.inf) -> Stops:
    """Return the shortest stop within the limits at every knot of a path, where there is one.

    ``rate`` points per second of a stop; knots up to the path time ``until`` s.
    """
    knots = _knots(points)
    knots = knots[knots <= until]
    shortest = np.full(len(knots), np.inf)
    for duration in DURATIONS:
        for rows in _chunks(np.flatnonzero(np.isinf(shortest))):
            good = _keep(points, knots[rows], duration, limits, rate)
            shortest[rows[good]] = duration
    found = np.isfinite(shortest)
    begin, length = knots[found], shortest[found]
    if until >= points.duration:
        begin, length = np.append(begin, points.duration), np.append(length, 0.0)
    return _ordered(begin, length)


def _knots(points: SampledTrajectory) -> FloatArray:
    """Return path times (K,) s, about SPACING apart: points of the path where there are some."""
    begin, end = float(points.time[0]), points.duration
    times = np.linspace(begin, end, int(np.ceil((end - begin) / SPACING)) + 1)[:-1]
    near = points.time[np.clip(np.searchsorted(points.time, times - 0.5 * SPACING), 0,
                               len(points.time) - 1)]
    return np.unique(np.where(np.abs(near - times) <= 0.5 * SPACING, near, times))


def _keep(points: SampledTrajectory, knots: FloatArray, duration: float, limits: MotionLimits,
          rate: float) -> NDArray[np.bool_]:
    """Return at which ``knots`` (K,) s a stop of ``duration`` s keeps the limits, (K,)."""
    count, n = int(np.ceil(duration * max(rate, FEWEST / duration) - 1e-9)) + 1, len(limits.joints)
    time = np.linspace(0.0, duration, max(count, 2))
    path_time, *rates = Ramp(0.0, duration, 1.0, 0.0).path_time(time)
    motion = along_path(points, (path_time[:, None] + knots[None, :]).ravel(),
                        *(np.repeat(change, len(knots)) for change in rates))
    rows = [getattr(motion, name).reshape(len(time), len(knots), n)
            for name in ('position', 'velocity', 'acceleration')]
    good = np.ones(len(knots), dtype=np.bool_)
    for values, limit in zip(rows[1:], (limits.velocity, limits.acceleration), strict=True):
        good &= ~np.any(np.abs(values) > limit, axis=(0, 2))
    chosen = np.flatnonzero(good)
    if chosen.size:
        side_by_side = SampledTrajectory(
            limits.joints * len(chosen), time,
            *(values[:, chosen].reshape(len(time), -1) for values in rows))
        good[chosen] = np.all(columns_within(side_by_side, limits).reshape(-1, n), axis=1)
    return good


def _chunks(rows: NDArray[np.intp]
            ) -> Iterator[NDArray[np.intp]]:
    for begin in range(0, len(rows), AT_ONCE):
        yield rows[begin:begin + AT_ONCE]


def _ordered(begin: FloatArray, duration: FloatArray) -> Stops:
    """Return the stops in the order of their ends, without those that begin before another."""
    order = np.lexsort((-begin, begin + duration))
    begin, duration = begin[order], duration[order]
    latest = np.concatenate([[-np.inf], np.maximum.accumulate(begin)[:-1]])
    kept = begin > latest
    return Stops(frozen(begin[kept]), frozen(duration[kept]))
