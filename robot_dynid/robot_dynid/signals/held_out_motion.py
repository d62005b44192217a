"""Distinct motion and its folds: the single owner of held-out data.

A model is judged on motion that it was not fitted to. A repeated motion, such as the periods of a
design or a looping program, visits the same states again, so a held-out stretch of time would
still be in the fit. Here a stretch that visits states visited earlier belongs to the same *cell*
as those, within a recording and across recordings. Folds are made of cells, in the order of their
first visit, with a gap in between, because filters and friction have a memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.signals.turns import SLACK, TURN
from robot_dynid.types import FloatArray, Samples

#: folds, each held out in turn
MOTION_FOLDS = 5
#: length [s] of the shortest cells, and of the batches within which nothing is compared, because
#: states of a block are close to each other
SHORTEST_CELL, BLOCK_BATCH = 0.2, 1.0
#: least motion [s] between two folds, and periods of the cut-off in which a filter forgets; the
#: fold of cells that are in none
GUARD, FADES, BETWEEN = 0.2, 0.5, -1
#: rate [1/s] of states, and largest number of those of a recording, which are thinned to the
#: number of stored ones; one of so many is compared with earlier ones
STATE_RATE, MAX_VISITED, MAX_STATES, STATE_THINNING = 100.0, 200_000, 40_000, 4
#: two states are equal if no position and no velocity differs by more than this share of its
#: standard deviation
SAME_STATE_SHARE = 0.05
#: a joint that moves less than this [rad, m] stands; the arm rests if all joints are below this
#: share of the standard deviation of their speeds
STANDING_TRAVEL, REST_SPEED_SHARE = 1e-3, 0.05


@dataclass
class DistinctMotion:
    """The states that recordings visit, each once, and their cells.

    ``states`` (S, 2 n) [rad, m; rad/s, m/s], ``cells`` (S,) their cells, ``seconds`` (C,) the
    duration of each cell at its first visit; ``moments`` (3, 2 n) the number, sum and sum of
    squares of all states, repeated ones included; ``guard`` [s] the memory of filters and
    friction.
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
        visited = np.hstack([samples.position, samples.velocity])
        step = max(1.0 / STATE_RATE, float(since[-1]) / MAX_VISITED)
        at, states = [np.zeros(0)], [visited[:0]]
        for rows in samples.segments:
            at.append(np.arange(since[rows][0], since[rows][-1] + 0.5 * step, step))
            states.append(np.column_stack([
                np.interp(at[-1], since[rows], values) for values in visited[rows].T]))
        inside = np.searchsorted(blocks, np.floor(np.concatenate(at) / SHORTEST_CELL), 'right') - 1
        return self._insert(len(blocks), np.vstack(states), inside, step)[block]

    def merge(self, other: DistinctMotion) -> tuple[DistinctMotion, NDArray[np.int64]]:
        """Return the motion of both, and the cells (C,) of the ``other`` in it."""
        whole = replace(self, guard=max(self.guard, other.guard))
        step = float(other.seconds.sum()) / max(len(other.states), 1)
        again = other.moments - _moments(other.states)
        return whole, whole._insert(len(other.seconds), other.states, other.cells, step, again)

    def coarser(self) -> DistinctMotion:
        """Return the motion with pairs of cells merged."""
        cells = np.arange(len(self.seconds)) // 2
        return replace(self, cells=self.cells // 2, seconds=np.asarray(
            np.bincount(cells, self.seconds), dtype=np.float64))

    def _insert(
        self, count: int, states: FloatArray, block: NDArray[np.int64], step: float,
        again: FloatArray | None = None,
    ) -> NDArray[np.int64]:
        """Insert ``states`` (M, 2 n), ``step`` seconds apart; return the cell of ``count`` blocks.

        ``block`` (M,) numbers the blocks in order of time; ``again`` are the moments of states
        that are not among them.
        """
        if len(self.states):
            states, again = self._remove_turns(states, again)
        else:
            self.states, self.moments = states[:0], np.zeros((3, states.shape[1]))
        self.moments = self.moments + _moments(states) + (0.0 if again is None else again)
        scaled, rest, stored = self._scale_states(states)
        tree = _grow_trees([], stored, 0, len(stored)) if len(stored) else []
        first = _sources(count, block, scaled, rest, (tree, self.cells))
        seen = first < 0  # cells that existed before, from -1 down
        fresh = np.flatnonzero(first == np.arange(len(first)))
        cell = np.empty(len(first), dtype=np.int64)
        cell[fresh] = len(self.seconds) + np.arange(len(fresh))
        cell[~seen] = cell[first[~seen]]
        cell[seen] = -1 - first[seen]
        is_new = np.isin(block, fresh)
        self.states = np.vstack([self.states, states[is_new]])
        self.cells = np.append(self.cells, cell[block[is_new]])
        self.seconds = np.append(self.seconds, step * np.bincount(block, minlength=len(first))[
            fresh])
        while len(self.states) > MAX_STATES:
            self.states, self.cells = self.states[::2], self.cells[::2]
        return cell

    def _remove_turns(
        self, states: FloatArray, again: FloatArray | None
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return ``states`` and moments less the whole turns between them and the stored states.

        Drivers that wrap may begin the same motion a turn apart.
        """
        if not len(states):
            return states, again
        low, high = states.min(axis=0), states.max(axis=0)
        least, greatest = self.states.min(axis=0), self.states.max(axis=0)
        turns = TURN * np.rint(0.5 * (low + high - least - greatest) / TURN)
        shared, moved = (np.minimum(high - by, greatest) - np.maximum(low - by, least)
                         for by in (0.0, turns))
        turns[(moved < shared + SLACK) | (np.arange(len(turns)) >= len(turns) // 2)] = 0.0
        if again is not None:
            count, total, squares = again
            again = np.stack([count, total - turns * count,
                              squares - 2.0 * turns * total + turns**2 * count])
        return states - turns, again

    def _scale_states(
        self, states: FloatArray
    ) -> tuple[FloatArray, NDArray[np.bool_], FloatArray]:
        """Return ``states`` in standard deviations of moving joints, which rest, and stored ones.
"""
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
    """Return the fold (C,) of every cell, BETWEEN if it separates two of them.

    ``seconds`` (C,) are the lengths of the cells, infinite if unknown. Distinct motion is dealt
    out in order of time, not by whole recordings: a single one may contain all motion of a joint.
    The first cells of a fold, as long as the ``guard`` [s], separate it from the previous fold;
    cells longer than that are their own guard.
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
    stored: tuple[list[tuple[int, Any]], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Return for each of ``count`` blocks the earlier one whose states it revisits, or itself.

    ``number`` (N,) is the block of every state; ``stored`` is a tree of states, and the cell (S,)
    of each: a block that revisits those gets -1 minus the cell. A block at rest belongs to the
    previous one.
    """
    source = np.arange(count)
    moving = np.flatnonzero(~rest)
    moving = moving[:: max(1, -(-len(moving) // MAX_STATES))]
    batch = number[moving] // round(BLOCK_BATCH / SHORTEST_CELL)
    edges = np.append(np.flatnonzero(np.diff(batch, prepend=-1)), len(moving))
    trees, cells = stored
    seen = np.full(len(states), -1)
    if trees and len(moving):
        compared = np.concatenate([moving[a:b:STATE_THINNING] for a, b in pairwise(edges)])
        seen[compared] = _nearest(trees[0][1], states[compared], cells)
    # trees of 1, 2, 4, ... batches, as in a binary counter: each state is inserted into few of
    # them
    trees = []
    for k, (start, stop) in enumerate(pairwise(edges)):
        rows = moving[start:stop:STATE_THINNING]
        nearest, distance = np.full(len(rows), -1), np.full(len(rows), np.inf)
        for first, tree in trees:
            away, at = tree.query(states[rows], p=np.inf, distance_upper_bound=SAME_STATE_SHARE)
            better = away < distance
            distance[better], nearest[better] = away[better], moving[first + at[better]]
        passed = np.where(seen[rows] >= 0, -1 - seen[rows], source[number[nearest]])
        is_known = (seen[rows] >= 0) | (nearest >= 0)
        _take(source, number[rows], passed, is_known)
        if k:  # the previous batch is close in time and is compared from the next one on
            trees = _grow_trees(trees, states[moving], edges[k - 1], edges[k])
    moved = np.zeros(count, dtype=np.bool_)
    moved[number[moving]] = True
    still = np.flatnonzero(~moved)
    last = np.searchsorted(np.flatnonzero(moved), still) - 1
    if moved.any():
        source[still] = source[np.flatnonzero(moved)[np.maximum(last, 0)]]
    return source


def _take(
    source: NDArray[np.int64], number: NDArray[np.int64], passed: NDArray[np.int64],
    is_known: NDArray[np.bool_],
) -> None:
    """Set the ``source`` of blocks most of whose states were visited before.

    ``number`` (M,) is the block of every state, in order, ``passed`` (M,) its earlier block or
    cell, where ``is_known`` (M,): the majority of the states of a block decides.
    """
    first, last = number[0], number[-1]
    size, hits = (np.bincount(one - first, minlength=last - first + 1)
                  for one in (number, number[is_known]))
    again = np.flatnonzero(2 * hits > size)
    if not len(again):
        return
    low = passed.min()
    wide = int(passed.max() - low) + 1
    votes = np.bincount((number[is_known] - first) * wide + passed[is_known] - low,
                        minlength=(last - first + 1) * wide).reshape(-1, wide)
    source[first + again] = low + votes[again].argmax(axis=1)


def _nearest(tree: Any, states: FloatArray, cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cell (N,) of the nearest equal state, -1 if there is none."""
    away, at = tree.query(states, p=np.inf, distance_upper_bound=SAME_STATE_SHARE)
    return np.where(np.isfinite(away), np.append(cells, -1)[at], -1)


def _grow_trees(trees: list[tuple[int, Any]], states: FloatArray, start: int, stop: int
           ) -> list[tuple[int, Any]]:
    """Return the trees with states ``start`` to before ``stop`` inserted."""
    from scipy.spatial import cKDTree

    while trees and trees[-1][1].n <= stop - start:
        start = trees.pop()[0]
    return [*trees, (start, cKDTree(states[start:stop]))]
