"""Distinct motion, and the folds that are made of it: the one owner of what is held out.

A model is judged on motion that it was not fitted to. A motion that repeats, as the periods of a
design or a program that loops do, passes the same states again, so a stretch of time left out is
in the fit all the same. Here a stretch that passes states which were passed before is the same
*cell* as those, within a recording and across recordings. Folds are made of cells, in the order
in which these were passed first, with a gap between them: filters and friction remember.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.signals.turns import SLACK, TURN
from robot_dynid.types import FloatArray, Samples

#: folds of which each is held out in turn
MOTION_FOLDS = 5
#: length [s] of the shortest cells, and of the batches within which nothing is compared: the
#: states of a block are near to each other
SHORTEST_CELL, BLOCK_BATCH = 0.2, 1.0
#: motion [s] between two folds, at least, and periods of the cut-off in which a filter forgets;
#: the fold of cells that are in none
GUARD, FADES, BETWEEN = 0.2, 0.5, -1
#: states are kept this often [1/s], and at most so many of them; one in so many is compared with
#: those before
STATE_RATE, MOST_STATES, STATE_THINNING = 100.0, 40_000, 4
#: two states are the same where no position and no velocity differs by more than this share of its
#: standard deviation
SAME_STATE_SHARE = 0.05
#: a joint that moves less than this [rad, m] stands; all joints below this share of the standard
#: deviation of their speeds are at rest
STANDING_TRAVEL, REST_SPEED_SHARE = 1e-3, 0.05


@dataclass
class DistinctMotion:
    """The states that recordings pass, each state once, and the cells they are in.

    ``states`` (S, 2 n) [rad, m; rad/s, m/s], ``cells`` (S,) their cells, ``seconds`` (C,) how long
    each cell was when it was passed first; ``moments`` (3, 2 n) the number, sum and sum of squares
    of all states, also of those that were passed again; ``guard`` [s] as long as filters and
    friction remember.
    """

    states: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    cells: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    seconds: FloatArray = field(default_factory=lambda: np.zeros(0))
    moments: FloatArray = field(default_factory=lambda: np.zeros((3, 0)))
    guard: float = GUARD

    def add(self, samples: Samples) -> NDArray[np.int64]:
        """Add a recording, or the next part of one, and return the cell (N,) of every sample."""
        self.guard = max(self.guard, FADES / samples.cutoff if samples.cutoff else 0.0)
        since = samples.time - samples.time[:1]
        blocks, block = np.unique(np.floor(since / SHORTEST_CELL), return_inverse=True)
        passed = np.hstack([samples.position, samples.velocity])
        at, states = [np.zeros(0)], [passed[:0]]
        for rows in samples.segments:
            at.append(np.arange(
                since[rows][0], since[rows][-1] + 0.5 / STATE_RATE, 1.0 / STATE_RATE))
            states.append(np.column_stack([
                np.interp(at[-1], since[rows], values) for values in passed[rows].T]))
        inside = np.searchsorted(blocks, np.floor(np.concatenate(at) / SHORTEST_CELL), 'right') - 1
        return self._put(len(blocks), np.vstack(states), inside, 1.0 / STATE_RATE)[block]

    def merged(self, other: DistinctMotion) -> tuple[DistinctMotion, NDArray[np.int64]]:
        """Return the motion of both, and the cells (C,) that those of the ``other`` are in it."""
        whole = replace(self, guard=max(self.guard, other.guard))
        step = float(other.seconds.sum()) / max(len(other.states), 1)
        again = other.moments - _moments(other.states)
        return whole, whole._put(len(other.seconds), other.states, other.cells, step, again)

    def coarser(self) -> DistinctMotion:
        """Return it with every two cells made one."""
        cells = np.arange(len(self.seconds)) // 2
        return replace(self, cells=self.cells // 2, seconds=np.asarray(
            np.bincount(cells, self.seconds), dtype=np.float64))

    def _put(
        self, count: int, states: FloatArray, block: NDArray[np.int64], step: float,
        again: FloatArray | None = None,
    ) -> NDArray[np.int64]:
        """Put in ``states`` (M, 2 n), ``step`` seconds apart; return the cell of ``count`` blocks.

        ``block`` (M,) numbers the blocks in order of time; ``again`` are the moments of states
        that are not among them.
        """
        if len(self.states):
            states, again = self._turned(states, again)
        else:
            self.states, self.moments = states[:0], np.zeros((3, states.shape[1]))
        self.moments = self.moments + _moments(states) + (0.0 if again is None else again)
        scaled, rest, before = self._scaled(states)
        tree = _grown([], before, 0, len(before)) if len(before) else []
        first = _sources(count, block, scaled, rest, (tree, self.cells))
        seen = first < 0  # cells that were there before, from -1 down
        fresh = np.flatnonzero(first == np.arange(len(first)))
        cell = np.empty(len(first), dtype=np.int64)
        cell[fresh] = len(self.seconds) + np.arange(len(fresh))
        cell[~seen] = cell[first[~seen]]
        cell[seen] = -1 - first[seen]
        kept = np.isin(block, fresh)
        self.states = np.vstack([self.states, states[kept]])
        self.cells = np.append(self.cells, cell[block[kept]])
        self.seconds = np.append(self.seconds, step * np.bincount(block, minlength=len(first))[
            fresh])
        while len(self.states) > MOST_STATES:
            self.states, self.cells = self.states[::2], self.cells[::2]
        return cell

    def _turned(
        self, states: FloatArray, again: FloatArray | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return ``states`` and moments less the whole turns that put them where there are some.

        Drivers that wrap may begin the same motion a turn apart.
        """
        if not len(states):
            return states, again
        low, high = states.min(axis=0), states.max(axis=0)
        least, most = self.states.min(axis=0), self.states.max(axis=0)
        turns = TURN * np.rint(0.5 * (low + high - least - most) / TURN)
        shared, moved = (np.minimum(high - by, most) - np.maximum(low - by, least)
                         for by in (0.0, turns))
        turns[(moved < shared + SLACK) | (np.arange(len(turns)) >= len(turns) // 2)] = 0.0
        if again is not None:
            count, total, squares = again
            again = np.stack([count, total - turns * count,
                              squares - 2.0 * turns * total + turns**2 * count])
        return states - turns, again

    def _scaled(
        self, states: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
        """Return ``states`` in standard deviations of what moves, which rest, and those in it."""
        count, mean, squares = self.moments
        mean, squares = mean / np.maximum(count, 1.0), squares / np.maximum(count, 1.0)
        spread = np.sqrt(np.maximum(squares - mean**2, 0.0))
        n = states.shape[1] // 2
        moves = np.tile(spread[:n] > STANDING_TRAVEL, 2)
        spread, states = spread[moves], states[:, moves]
        half = len(spread) // 2
        rest = np.all(np.abs(states[:, half:]) < REST_SPEED_SHARE * spread[half:], axis=1)
        scale = np.maximum(spread, 1e-12)
        return states / scale, rest, self.states[:, moves] / scale


def folds(seconds: FloatArray, guard: float) -> NDArray[np.int64]:
    """Return the fold (C,) of every cell, BETWEEN where it is between two of them.

    ``seconds`` (C,) are the lengths of the cells, or infinite where these are not known. Distinct
    motion is dealt out in order of time; not by whole recordings: one of them may be all that
    moves a joint. The first cells of a fold, as long as the ``guard`` [s], keep it apart from the
    fold before it; cells longer than that are their own guard.
    """
    lengths = np.where(np.isfinite(seconds), seconds, 1.0)
    begins = np.cumsum(lengths) - lengths
    count = min(MOTION_FOLDS, len(lengths))
    part = (begins + 0.5 * lengths) * count / max(float(lengths.sum()), 1e-12)
    fold = np.unique(part.astype(np.int64), return_inverse=True)[1].astype(np.int64)
    first = begins[np.searchsorted(fold, fold)] if len(fold) else begins
    near = (begins - first < 0.75 * guard) & (seconds < 2.0 * guard) & (fold > 0)
    several = np.bincount(fold[~near], minlength=fold.max(initial=0) + 1) > 0
    return np.where(near & several[fold], BETWEEN, fold)


def _moments(states: FloatArray) -> FloatArray:
    return np.stack([np.full(states.shape[1], float(len(states))), states.sum(axis=0),
                     np.sum(states**2, axis=0)])


def _sources(
    count: int, number: NDArray[np.int64], states: FloatArray, rest: NDArray[np.bool_],
    before: tuple[list[tuple[int, Any]], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Return for each of ``count`` blocks the earlier one whose states it passes again, or itself.

    ``number`` (N,) is the block of every state; ``before`` is a tree of states, and the cell (S,)
    of each: a block that passes those gets -1 less the cell. A block at rest belongs to the one
    before it.
    """
    source = np.arange(count)
    moving = np.flatnonzero(~rest)
    moving = moving[:: max(1, -(-len(moving) // MOST_STATES))]
    batch = number[moving] // round(BLOCK_BATCH / SHORTEST_CELL)
    edges = np.append(np.flatnonzero(np.diff(batch, prepend=-1)), len(moving))
    trees, cells = before
    seen = np.full(len(states), -1)
    if trees and len(moving):
        compared = np.concatenate([moving[a:b:STATE_THINNING] for a, b in pairwise(edges)])
        seen[compared] = _nearest(trees[0][1], states[compared], cells)
    # trees of 1, 2, 4, ... batches, as in a binary counter: each state is put into few of them
    trees = []
    for k, (start, stop) in enumerate(pairwise(edges)):
        rows = moving[start:stop:STATE_THINNING]
        nearest, distance = np.full(len(rows), -1), np.full(len(rows), np.inf)
        for first, tree in trees:
            away, at = tree.query(states[rows], p=np.inf, distance_upper_bound=SAME_STATE_SHARE)
            better = away < distance
            distance[better], nearest[better] = away[better], moving[first + at[better]]
        passed = np.where(seen[rows] >= 0, -1 - seen[rows], source[number[nearest]])
        known = (seen[rows] >= 0) | (nearest >= 0)
        _take(source, number[rows], passed, known)
        if k:  # the batch before this one is near in time: it is compared from the next one on
            trees = _grown(trees, states[moving], edges[k - 1], edges[k])
    moved = np.zeros(count, dtype=np.bool_)
    moved[number[moving]] = True
    still = np.flatnonzero(~moved)
    last = np.searchsorted(np.flatnonzero(moved), still) - 1
    if moved.any():
        source[still] = source[np.flatnonzero(moved)[np.maximum(last, 0)]]
    return source


def _take(
    source: NDArray[np.int64], number: NDArray[np.int64], passed: NDArray[np.int64],
    known: NDArray[np.bool_],
) -> None:
    """Set the ``source`` of blocks most of whose states were passed before.

    ``number`` (M,) is the block of every state, in order, ``passed`` (M,) what it was in before,
    where that is ``known`` (M,): what most states of a block say.
    """
    first, last = number[0], number[-1]
    size, hits = (np.bincount(one - first, minlength=last - first + 1)
                  for one in (number, number[known]))
    again = np.flatnonzero(2 * hits > size)
    if not len(again):
        return
    low = passed.min()
    wide = int(passed.max() - low) + 1
    votes = np.bincount((number[known] - first) * wide + passed[known] - low,
                        minlength=(last - first + 1) * wide).reshape(-1, wide)
    source[first + again] = low + votes[again].argmax(axis=1)


def _nearest(tree: Any, states: FloatArray, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cell (N,) of the state nearest to each, -1 where none is the same."""
    away, at = tree.query(states, p=np.inf, distance_upper_bound=SAME_STATE_SHARE)
    return np.where(np.isfinite(away), np.append(cells, -1)[at], -1)


def _grown(trees: list[tuple[int, Any]], states: FloatArray, start: int, stop: int
           ) -> list[tuple[int, Any]]:
    """Return the trees with states ``start`` to before ``stop`` put in."""
    from scipy.spatial import cKDTree

    while trees and trees[-1][1].n <= stop - start:
        start = trees.pop()[0]
    return [*trees, (start, cKDTree(states[start:stop]))]
