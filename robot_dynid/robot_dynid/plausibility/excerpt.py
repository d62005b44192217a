"""Excerpts of recordings: a bounded number of smoothed rows for checks before a fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.alignment import GAP_SECONDS, GAP_STEPS, LATEST_STAMP
from robot_dynid.signals.external import net_torque
from robot_dynid.signals.filters import derivative, zero_phase_low_pass
from robot_dynid.signals.plausible import drop_implausible
from robot_dynid.types import FloatArray, RawLog, take

#: most windows of a recording, their length [s], and most rows per window
EXCERPT_WINDOWS, WINDOW_SECONDS, WINDOW_ROWS = 8, 10.0, 20_000
#: step [s] of the grid, low-pass [Hz] there, and the rate [Hz] of the rows taken
EXCERPT_STEP, EXCERPT_CUTOFF, EXCERPT_RATE = 0.01, 4.0, 16.0
#: edge [s] omitted at either end of a stretch, where the filter is one-sided; time [s] over which
#: travel and velocity are compared
EDGE_SECONDS, COMPARED_SECONDS = 0.25, 0.2
#: tables with one row per sample
TABLES = ('position', 'velocity', 'acceleration', 'torque')


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Motion and torque of the joints in parts of one or several recordings.

    ``position``, ``velocity``, ``acceleration`` (N, n) from the measured position only, and
    ``torque`` (N, n) [N m, N], low-passed. In blocks (K,) of about COMPARED_SECONDS the position
    moves by ``travel`` (K, n), and measured velocity integrates to ``integrated`` (K, n), NaN
    without it, in ``seconds`` (K,). ``step`` [s] is the typical step of the stamps, NaN without
    any.
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
    """Return the excerpt of a recording; parts with missing values are omitted."""
    count, step = len(log.time), typical_step(log.time)
    rows = int(min(max(WINDOW_SECONDS / step, 100.0), WINDOW_ROWS)) if step > 0.0 else WINDOW_ROWS
    starts = np.arange(0, count, rows) if count <= EXCERPT_WINDOWS * rows else np.linspace(
        0, count - rows, EXCERPT_WINDOWS).astype(int)
    pieces = [_piece(robot, part) for start in starts.tolist() for part in _stretches(
        drop_implausible(robot, take(log, slice(start, start + rows)))[0])]
    return replace(join_excerpts([_empty(robot.n), *pieces]), step=step)


def join_excerpts(parts: list[Excerpt]) -> Excerpt:
    """Return several excerpts joined into one."""
    steps = [part.step for part in parts if np.isfinite(part.step)]
    whole: dict[str, Any] = {f.name: np.concatenate([getattr(part, f.name) for part in parts])
                             for f in fields(Excerpt) if f.name != 'step'}
    return Excerpt(**whole, step=float(np.median(steps)) if steps else float('nan'))


def thin_excerpt(whole: Excerpt, rows: int) -> Excerpt:
    """Return an excerpt thinned to about ``rows`` at most."""
    every = max(1, -(-len(whole) // rows))
    return replace(whole, **{name: getattr(whole, name)[::every] for name in TABLES})


def sample_excerpts(parts: Sequence[Excerpt], rows: int) -> Excerpt:
    """Return about ``rows`` rows of all parts, without blocks of travel.

    Each part contributes equally, as far as it has enough, and at least one row.
    """
    share, left = 0, rows
    for number, length in enumerate(sorted(len(part) for part in parts)):
        share = left // (len(parts) - number)
        left -= min(length, share)
    few = [thin_excerpt(part, max(share, 1)) for part in parts]
    return join_excerpts([replace(_empty(part.position.shape[1]), step=part.step, **{
        name: getattr(part, name) for name in TABLES}) for part in few])


def _empty(n: int) -> Excerpt:
    none = np.empty((0, n))
    return Excerpt(none, none, none, none, none, none, np.empty(0), float('nan'))


def typical_step(time: FloatArray) -> float:
    """Return the median positive step of stamps (N,) up to LATEST_STAMP; NaN without any."""
    with np.errstate(invalid='ignore', over='ignore'):
        steps = np.diff(time)
        steps = steps[(steps > 0.0) & (steps <= LATEST_STAMP)]
    return float(np.median(steps)) if len(steps) else float('nan')


def _stretches(log: RawLog) -> Iterator[RawLog]:
    """Yield the parts of a window without pauses whose positions and efforts are finite."""
    tables = [table for table in (log.position, log.effort, log.external_torque)
              if table is not None]
    log = take(log, np.flatnonzero(np.isfinite(np.hstack(tables)).all(axis=1)))
    step = typical_step(log.time)
    if log.effort is None or not step > 0.0:
        return
    pauses = np.flatnonzero(np.diff(log.time) > max(GAP_STEPS * step, GAP_SECONDS)) + 1
    for first, last in pairwise([0, *pauses.tolist(), len(log.time)]):
        part = take(log, slice(first, last))
        if len(part.time) >= 10 and part.time[-1] - part.time[0] > 4.0 * EDGE_SECONDS:
            yield part


def _piece(robot: RobotModel, part: RawLog) -> Excerpt:
    """Return the excerpt of a stretch: means of the rows around a grid, low-passed."""
    typical, torque = typical_step(part.time), net_torque(robot, part)
    dt = max(EXCERPT_STEP, typical)
    grid = part.time[0] + dt * np.arange(int((part.time[-1] - part.time[0]) / dt) + 1)
    time, tables = part.time, [part.position, torque]
    if dt > 2.0 * typical:
        bins = np.minimum(np.round((time - time[0]) / dt).astype(int), len(grid) - 1)
        first = np.flatnonzero(np.diff(bins, prepend=-1))
        count = np.diff([*first.tolist(), len(bins)])
        tables = [np.add.reduceat(table, first, axis=0) / count[:, None] for table in tables]
        time = np.add.reduceat(time, first) / count
    q, tau = (zero_phase_low_pass(np.stack(
        [np.interp(grid, time, column) for column in table.T], axis=1),
        min(EXCERPT_CUTOFF, 0.2 / dt), dt)
        for table in tables)
    qd = derivative(q, dt)
    qdd = derivative(qd, dt)
    edge = max(2, round(EDGE_SECONDS / dt))
    rows = slice(edge, len(grid) - edge, max(1, round(1.0 / (EXCERPT_RATE * dt))))
    return Excerpt(q[rows], qd[rows], qdd[rows], tau[rows], *_travel_blocks(part), float('nan'))


def _travel_blocks(part: RawLog) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return travel and integrated velocity (K, n) of blocks, and their durations (K,) s."""
    every = max(1, round(COMPARED_SECONDS / typical_step(part.time)))
    rows = np.arange(0, len(part.time), every)
    travel = np.diff(part.position[rows], axis=0)
    seconds = np.diff(part.time[rows])
    if part.velocity is None:
        return travel, np.full_like(travel, np.nan), seconds
    means = 0.5 * (part.velocity[1:] + part.velocity[:-1]) * np.diff(part.time)[:, None]
    summed = np.concatenate([np.zeros((1, means.shape[1])), np.cumsum(means, axis=0)])
    return travel, np.diff(summed[rows], axis=0), seconds
