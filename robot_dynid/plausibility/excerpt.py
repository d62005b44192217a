"""Excerpts of recordings: so many rows at most, smoothed, for checks before any fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import GAP_SECONDS, GAP_STEPS
from robot_dynid.signals.external import net_torque
from robot_dynid.signals.filters import derivative, zero_phase_low_pass
from robot_dynid.signals.plausible import plausible
from robot_dynid.types import FloatArray, RawLog, take

#: a recording is looked at in so many windows of so many seconds, and rows, at most
WINDOWS, WINDOW_SECONDS, WINDOW_ROWS = 8, 10.0, 20_000
#: step [s] of the grid, low-pass [Hz] there, and the rows kept of it [Hz]
GRID, CUTOFF, KEPT = 0.01, 4.0, 16.0
#: edge [s] left out at either end of a stretch, where the filter knows only one side
EDGE = 0.25
#: travel and velocity are compared over so long [s]
BLOCK = 0.2
#: what there is for every row
TABLES = ('position', 'velocity', 'acceleration', 'torque')


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Motion and torque of the joints in parts of one recording, or of several.

    ``position``, ``velocity``, ``acceleration`` (N, n) from the measured position alone, and
    ``torque`` (N, n) [N m, N], low-passed. Within (K,) blocks of about BLOCK the position moved by
    ``travel`` (K, n), and measured velocity sums up to ``integrated`` (K, n), NaN without it, in
    ``seconds`` (K,). ``step`` [s] is the typical one of the stamps, NaN for none.
    """

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    torque: FloatArray
    travel: FloatArray
    integrated: FloatArray
    seconds: FloatArray
    step: float

    def __len__(self) -> int:
        return len(self.position)


def excerpt(robot: RobotModel, log: RawLog) -> Excerpt:
    """Return the excerpt of a recording; parts without numbers are left out."""
    pieces = [_piece(robot, part) for window in _windows(log)
              for part in _stretches(plausible(robot, take(log, window))[0])]
    return replace(joined([_empty(robot.n), *pieces]), step=typical_step(log.time))


def joined(parts: list[Excerpt]) -> Excerpt:
    """Return several excerpts as one."""
    steps = [part.step for part in parts if np.isfinite(part.step)]
    whole: dict[str, Any] = {f.name: np.concatenate([getattr(part, f.name) for part in parts])
                             for f in fields(Excerpt) if f.name != 'step'}
    return Excerpt(**whole, step=float(np.median(steps)) if steps else float('nan'))


def thinned(whole: Excerpt, rows: int) -> Excerpt:
    """Return an excerpt with about so many ``rows`` at most."""
    every = max(1, -(-len(whole) // rows))
    cut = {f.name: getattr(whole, f.name) for f in fields(Excerpt)}
    for name in TABLES:
        cut[name] = cut[name][::every]
    return Excerpt(**cut)


def spread(lengths: Sequence[int], parts: Iterable[Excerpt], rows: int) -> Excerpt:
    """Return at most so many ``rows`` of all parts of such ``lengths``, one in memory at a time.

    They are those of `thinned` of the parts `joined`, without blocks of travel.
    """
    every = max(1, -(-sum(lengths) // rows))
    found, seen = [], 0
    for length, part in zip(lengths, parts, strict=True):
        few = {name: getattr(part, name)[-seen % every::every].copy() for name in TABLES}
        found.append(replace(_empty(part.position.shape[1]), step=part.step, **few))
        seen += length
    return joined(found)


def _empty(n: int) -> Excerpt:
    none = np.empty((0, n))
    return Excerpt(none, none, none, none, none, none, np.empty(0), float('nan'))


def _windows(log: RawLog) -> list[slice]:
    """Return evenly spread windows of rows; all rows where they are few."""
    count = len(log.time)
    step = typical_step(log.time)
    rows = WINDOW_ROWS if not step > 0.0 else int(min(
        max(WINDOW_SECONDS / step, 100.0), WINDOW_ROWS))
    if count <= WINDOWS * rows:
        return [slice(a, min(a + rows, count)) for a in range(0, count, rows)]
    starts = np.linspace(0, count - rows, WINDOWS).astype(int)
    return [slice(a, a + rows) for a in starts.tolist()]


def typical_step(time: FloatArray) -> float:
    """Return the median step of stamps (N,) that move on; NaN for none."""
    with np.errstate(invalid='ignore', over='ignore'):
        steps = np.diff(time)
        steps = steps[np.isfinite(steps) & (steps > 0.0)]
    return float(np.median(steps)) if len(steps) else float('nan')


def _stretches(log: RawLog) -> list[RawLog]:
    """Return the parts without pause whose positions and efforts are numbers."""
    if log.effort is None or not len(log.time):
        return []
    known = np.isfinite(log.position).all(axis=1) & np.isfinite(log.effort).all(axis=1)
    if log.external_torque is not None:
        known &= np.isfinite(log.external_torque).all(axis=1)
    log = take(log, np.flatnonzero(known))
    step = typical_step(log.time)
    if not step > 0.0:
        return []
    pauses = np.flatnonzero(np.diff(log.time) > max(GAP_STEPS * step, GAP_SECONDS)) + 1
    parts = [take(log, slice(a, b)) for a, b in pairwise([0, *pauses.tolist(), len(log.time)])]
    return [p for p in parts if len(p.time) >= 10 and p.time[-1] - p.time[0] > 4.0 * EDGE]


def _piece(robot: RobotModel, part: RawLog) -> Excerpt:
    time, position, torque = _averaged(part, net_torque(robot, part))
    dt = float(time[1] - time[0])
    cutoff = min(CUTOFF, 0.2 / dt)
    q, tau = (zero_phase_low_pass(values, cutoff, dt) for values in (position, torque))
    qd = derivative(q, dt)
    qdd = derivative(qd, dt)
    edge = max(2, round(EDGE / dt))
    rows = slice(edge, len(time) - edge, max(1, round(1.0 / (KEPT * dt))))
    return Excerpt(q[rows], qd[rows], qdd[rows], tau[rows], *_travelled(part), float('nan'))


def _averaged(part: RawLog, torque: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return time (M,), position and torque (M, n) on a grid: means of the rows around it."""
    step = max(GRID, typical_step(part.time))
    count = int((part.time[-1] - part.time[0]) / step) + 1
    grid = part.time[0] + step * np.arange(count)
    if step > 2.0 * typical_step(part.time):
        bins = np.minimum(np.round((part.time - part.time[0]) / step).astype(int), count - 1)
        first = np.flatnonzero(np.diff(bins, prepend=-1))
        number = np.diff([*first.tolist(), len(bins)])
        time, *tables = (np.add.reduceat(values, first, axis=0) / (
            number if values.ndim == 1 else number[:, None])
            for values in (part.time, part.position, torque))
    else:
        time, tables = part.time, [part.position, torque]
    q, tau = (np.stack([np.interp(grid, time, column) for column in table.T], axis=1)
              for table in tables)
    return grid, q, tau


def _travelled(part: RawLog) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return travel and integrated velocity (K, n) of blocks, and how long they are (K,) s."""
    every = max(1, round(BLOCK / typical_step(part.time)))
    rows = np.arange(0, len(part.time), every)
    travel = np.diff(part.position[rows], axis=0)
    seconds = np.diff(part.time[rows])
    if part.velocity is None:
        return travel, np.full_like(travel, np.nan), seconds
    means = 0.5 * (part.velocity[1:] + part.velocity[:-1]) * np.diff(part.time)[:, None]
    summed = np.concatenate([np.zeros((1, means.shape[1])), np.cumsum(means, axis=0)])
    return travel, np.diff(summed[rows], axis=0), seconds
