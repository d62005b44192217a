"""Held-out data: folds of distinct motion.

A model is judged on motion that it was not fitted to. A motion that repeats, as the periods of a
design or a program that loops do, passes the same states again, so a stretch of time left out is
in the fit all the same. Here a stretch that passes states which were passed before belongs to the
fold of those, within a recording and across recordings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.types import FloatArray, Samples

#: folds of which each is held out in turn
FOLDS = 5
#: length [s] of the blocks that are looked at as one, and of the batches within which nothing is
#: compared: the states of a block are near to each other
BLOCK, BATCH = 0.2, 1.0
#: states are looked at this often [1/s], and at most so many of them
RATE, MOST_STATES = 50.0, 40_000
#: two states are the same where no position and no velocity differs by more than this share of its
#: standard deviation
SAME = 0.05
#: a joint that moves less than this [rad, m] stands; all joints below this share of the standard
#: deviation of their speeds are at rest
STANDS, REST = 1e-3, 0.05


@dataclass
class HeldOutMotion:
    """The states that recordings pass, and the folds that follow from them."""

    _time: list[FloatArray] = field(default_factory=list)
    _states: list[FloatArray] = field(default_factory=list)

    def add(self, samples: Samples) -> None:
        """Add a recording, or the next part of one."""
        time = samples.time
        step = float(np.median(np.diff(time))) if len(time) > 1 else 1.0 / RATE
        every = slice(None, None, max(1, round(1.0 / (RATE * max(step, 1e-9)))))
        self._time.append(np.array(time[every]))
        self._states.append(np.hstack([samples.position[every], samples.velocity[every]]))

    def folds(self) -> Folds:
        """Return the fold of every block of the recordings."""
        number, first = self._blocks()
        labels = _labels(_sources(number, *_scaled(np.vstack(self._states))))
        return Folds(tuple(float(time[0]) if len(time) else 0.0 for time in self._time),
                     tuple(np.split(labels, first[1:-1])))

    def repeated(self) -> tuple[float, ...]:
        """Return the share of every recording's motion that passes states of those before it."""
        number, first = self._blocks()
        states, rest = _scaled(np.vstack(self._states))
        source, moved = _sources(number, states, rest), np.unique(number[~rest])
        blocks = np.split(moved, np.searchsorted(moved, first[1:-1]))
        return tuple(float(np.mean(source[own] < start)) if len(own) else 0.0
                     for own, start in zip(blocks, first))

    def _blocks(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the block of every state, and the first block of every recording and the end."""
        blocks = [np.floor((time - time[0]) / BLOCK).astype(np.int64) if len(time) else
                  np.empty(0, dtype=np.int64) for time in self._time]
        counts = [int(own[-1]) + 1 if len(own) else 0 for own in blocks]
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return np.concatenate([own + start for own, start in zip(blocks, first)]), first


@dataclass(frozen=True, eq=False)
class Folds:
    """Folds of recordings: ``begun`` [s] and the fold of every block of each of them."""

    begun: tuple[float, ...]
    labels: tuple[NDArray[np.int64], ...]

    def at(self, recording: int, time: FloatArray) -> NDArray[np.int64]:
        """Return the folds (N,) of instants ``time`` (N,) [s] of a recording."""
        own = self.labels[recording]
        block = np.floor((time - self.begun[recording]) / BLOCK).astype(np.int64)
        return np.asarray(own[np.clip(block, 0, len(own) - 1)])


def _scaled(states: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the states (N, k) in standard deviations of what moves, and which are at rest."""
    n = states.shape[1] // 2
    spread = states.std(axis=0)
    moves = spread[:n] > STANDS
    spread, states = spread[np.tile(moves, 2)], states[:, np.tile(moves, 2)]
    rest = np.all(np.abs(states[:, len(spread) // 2:]) < REST * spread[len(spread) // 2:], axis=1)
    return states / np.maximum(spread, 1e-12), rest


def _sources(number: NDArray[np.int64], states: FloatArray, rest: NDArray[np.bool_]
             ) -> NDArray[np.int64]:
    """Return for every block the earlier one whose states it passes again, or itself.

    ``number`` (N,) is the block of every state. A block at rest belongs to the one before it.
    """
    count = int(number[-1]) + 1 if len(number) else 0
    source = np.arange(count)
    moving = np.flatnonzero(~rest)
    moving = moving[:: max(1, -(-len(moving) // MOST_STATES))]
    batch = number[moving] // round(BATCH / BLOCK)
    edges = np.append(np.flatnonzero(np.diff(batch, prepend=-1)), len(moving))
    # trees of 1, 2, 4, ... batches, as in a binary counter: each state is put into few of them
    trees: list[tuple[int, Any]] = []
    for k, (start, stop) in enumerate(pairwise(edges)):
        rows = moving[start:stop]
        nearest, distance = np.full(len(rows), -1), np.full(len(rows), np.inf)
        for first, tree in trees:
            away, at = tree.query(states[rows], p=np.inf, distance_upper_bound=SAME)
            better = away < distance
            distance[better], nearest[better] = away[better], moving[first + at[better]]
        for own in np.unique(number[rows]):
            inside = number[rows] == own
            hits = nearest[inside]
            hits = hits[hits >= 0]
            if 2 * len(hits) > np.count_nonzero(inside):
                source[own] = np.argmax(np.bincount(source[number[hits]]))
        if k:  # the batch before this one is near in time: it is compared from the next one on
            trees = _grown(trees, states[moving], edges[k - 1], edges[k])
    moved = np.zeros(count, dtype=np.bool_)
    moved[number[moving]] = True
    still = np.flatnonzero(~moved)
    before = np.searchsorted(np.flatnonzero(moved), still) - 1
    if moved.any():
        source[still] = source[np.flatnonzero(moved)[np.maximum(before, 0)]]
    return source


def _grown(trees: list[tuple[int, Any]], states: FloatArray, start: int, stop: int
           ) -> list[tuple[int, Any]]:
    """Return the trees with states ``start`` to before ``stop`` put in."""
    from scipy.spatial import cKDTree

    while trees and trees[-1][1].n <= stop - start:
        start = trees.pop()[0]
    return [*trees, (start, cKDTree(states[start:stop]))]


def _labels(source: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the fold of every block, of which ``source`` is the first with its states.

    Distinct motion is dealt out in order of time. Not by whole recordings: one of them may be all
    that moves a joint.
    """
    own = np.flatnonzero(source == np.arange(len(source)))
    fold = np.zeros(len(source), dtype=np.int64)
    fold[own] = np.arange(len(own)) * FOLDS // len(own)
    fold[own] = np.unique(fold[own], return_inverse=True)[1]
    return np.asarray(fold[source])
