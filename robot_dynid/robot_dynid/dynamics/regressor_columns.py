"""Content of the columns of a regressor, as tables for the kernel that fills them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.kernels import regressor as kernel
from robot_dynid.kernels.newton_euler import LANES
from robot_dynid.robot.model import RobotModel
from robot_dynid.threads import shared_out
from robot_dynid.types import FloatArray, contiguous

#: kinds of signals: coordinates of the motion, one, rows of the history
POSITION, VELOCITY, ACCELERATION = kernel.POSITION, kernel.VELOCITY, kernel.ACCELERATION
ONE, HISTORY = kernel.ONE, kernel.HISTORY
MOTION = POSITION, VELOCITY, ACCELERATION
#: most samples filled at once, and the size of their regressor [bytes]: beyond one core's share of
#: the last-level cache, filling waits for memory
SAMPLES_AT_ONCE, CACHE = 1024, 2**22
#: samples from which on copying a chunk into a longer array is faster than filling it there
LEAST_RUN = 256
#: row, column, kind of a signal, its index, share: column = share * signal in that equation
Entry = tuple[int, int, int, int, float]


@dataclass(frozen=True, eq=False)
class RotorColumns:
    """Columns (m,) of ``rotors`` of inertia one on moving links.

    ``shares`` (N, R): share of the effort on each coordinate in each equation.
    """

    columns: NDArray[np.int64]
    rotors: Rotors
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Signals:
    """Signals of K samples: q, qd, qdd (K, N) and the history (h, K)."""

    motion: tuple[FloatArray, FloatArray, FloatArray]
    history: FloatArray

    @classmethod
    def of(cls, motion: Iterable[FloatArray], histories: Sequence[FloatArray] = ()) -> Signals:
        """Return ``motion`` q, qd, qdd (K, N) and the stacked ``histories`` (h, K).

        Copied only if not contiguous, or if several histories have rows.
        """
        q, qd, qdd = (contiguous(signal) for signal in motion)
        filled = [history for history in histories if len(history)]
        if not filled:
            return cls((q, qd, qdd), contiguous(np.empty((0, len(q)))))
        return cls((q, qd, qdd), contiguous(filled[0] if len(filled) == 1 else np.vstack(filled)))


@dataclass(frozen=True, eq=False)
class RegressorColumns:
    """``count`` columns of a regressor in the form that the kernel fills.

    ``links`` (n, 10) is the column of each standard parameter of the links of ``robot``, -1 if it
    has none; ``rotors`` those on its moving links; ``entries`` everything linear in position,
    velocity, acceleration, one and the ``past`` rows of the history. Entries of the same row and
    column add up.
    """

    count: int
    robot: RobotModel | None = None
    links: NDArray[np.int64] | None = None
    rotors: RotorColumns | None = None
    entries: tuple[Entry, ...] = ()
    past: int = 0

    @classmethod
    def of_links(cls, robot: RobotModel, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return one column for each of the ``chosen`` (k,) of the 10 n standard parameters."""
        table = np.full(10 * robot.tree.n, -1, dtype=np.int64)
        table[chosen] = np.arange(len(chosen))
        return cls(len(chosen), robot, table.reshape(robot.tree.n, 10))

    def append(self, other: RegressorColumns) -> RegressorColumns | None:
        """Return these columns followed by those of ``other``; None if both have links or rotors.

        The rows of its history follow likewise.
        """
        if (self.links is not None and other.links is not None) or (
                self.rotors is not None and other.rotors is not None):
            return None
        links, rotors = self.links, self.rotors
        if other.links is not None:
            links = np.where(other.links < 0, -1, other.links + self.count)
        if other.rotors is not None:
            rotors = RotorColumns(other.rotors.columns + self.count, other.rotors.rotors,
                                  other.rotors.shares)
        moved = tuple(
            (row, self.count + column, kind, index + (self.past if kind == HISTORY else 0), share)
            for row, column, kind, index, share in other.entries)
        robot = other.robot if other.links is not None else self.robot or other.robot
        return RegressorColumns(self.count + other.count, robot, links, rotors,
                                self.entries + moved, self.past + other.past)

    @cached_property
    def _tree(self) -> tuple[FloatArray, NDArray[np.int64], FloatArray]:
        """Return geometry, parents and gravity; without a robot there are no joints."""
        if self.robot is None:
            return (contiguous(np.empty((0, 39))), np.empty(0, dtype=np.int64),
                    contiguous(np.zeros(3)))
        robot = self.robot
        return (contiguous(robot.geometry), np.array(robot.parents, dtype=np.int64),
                contiguous(robot.gravity))

    @cached_property
    def _tables(self) -> tuple[Any, ...]:
        n = len(self._tree[1])
        links = np.full((n, 10), -1, dtype=np.int64) if self.links is None else self.links
        spinning = self.rotors or RotorColumns(
            np.empty(0, dtype=np.int64), Rotors.of(np.empty((0, 0))), np.empty((0, 0)))
        _, carriers, axes, motions = spinning.rotors.tables
        entries = sorted(self.entries)
        places = np.array([entry[:4] for entry in entries], dtype=np.int64).reshape(-1, 4)
        return (links, (spinning.columns, carriers, axes, motions, contiguous(spinning.shares)),
                places, contiguous(np.array([entry[4] for entry in entries])))

    @cached_property
    def _of_tree(self) -> RegressorColumns:
        """The columns of the tree of a robot with a linkage, with entries on the driven joints."""
        assert self.robot is not None and self.robot.linkage is not None
        tree_joints = self.robot.linkage.driven.tolist()
        return replace(self, robot=self.robot.tree, entries=tuple(
            (tree_joints[row], column, kind,
             tree_joints[index] if kind in MOTION else index, share)
            for row, column, kind, index, share in self.entries))

    def fill(self, signals: Signals, rows: slice, place: NDArray[np.int64], out: FloatArray
             ) -> None:
        """Fill memory ``out`` (M,) with the columns of samples ``rows`` of the signals.

        ``place`` (R, k) is the offset of the first sample of each equation and column, -1 to skip
        it; the other samples follow it. Zero entries are not written.
        """
        kernel.fill_regressor(self._tree, self._tables, (signals.motion, signals.history),
                              (rows.start, rows.stop), (place, out))

    def fill_array(self, signals: Signals, rows: slice, out: FloatArray) -> None:
        """Fill ``out`` (R, k, N), contiguous in samples, with ``rows``.

        It must be zero where nothing is written: where a joint does not carry a link. Long arrays
        are filled in chunks, because the kernel writes to all columns in turn, which is slow in
        memory, and copies of longer runs are fast. Chunks are spread over threads.
        """
        robot = self.robot
        if robot is not None and robot.linkage is not None:
            tall = np.zeros((robot.tree.n, *out.shape[1:]))
            q, qd, qdd = robot.motion(*(one[rows] for one in signals.motion))
            moved = Signals((q, qd, qdd), contiguous(signals.history[:, rows]))
            self._of_tree.fill_array(moved, slice(0, out.shape[2]), tall)
            np.einsum('tr,tks->rks', robot.linkage.matrix, tall, out=out)
            return

        def fill_part(part: slice) -> None:
            self._fill_part(signals, slice(rows.start + part.start, rows.start + part.stop),
                            out[:, :, part])

        if out.size:
            shared_out(fill_part, out.shape[2], LANES, chunk_length(*out.shape[:2]))

    def _fill_part(self, signals: Signals, rows: slice, out: FloatArray) -> None:
        """Fill ``out`` (R, k, N) in one thread."""
        length = chunk_length(*out.shape[:2])
        if length < LEAST_RUN or out.shape[2] < 2 * length:
            self.fill(signals, rows, places(out), _memory(out))
            return
        chunk, runs = np.zeros((*out.shape[:2], length)), self._runs(len(out))
        for first in range(0, out.shape[2], length):
            part = slice(first, min(first + length, out.shape[2]))
            size = part.stop - first
            self.fill(signals, slice(rows.start + first, rows.start + part.stop),
                      places(chunk), chunk.reshape(-1))
            for row, run in runs:
                out[row, run, part] = chunk[row, run, :size]

    def _runs(self, rows: int) -> list[tuple[int, slice]]:
        """Return the runs of adjacent columns that are written, by row."""
        written = np.zeros((rows, self.count + 1), dtype=np.int64)
        if self.robot is not None and self.links is not None:
            joint, parameter = np.nonzero(self.links >= 0)
            written[:self.robot.n, self.links[joint, parameter]] = self.robot.carried[:, joint]
        if self.rotors is not None:
            written[:, self.rotors.columns] = 1
        for row, column, *_ in self.entries:
            written[row, column] = 1
        runs = []
        for row, steps in enumerate(np.diff(written, axis=1, prepend=0)):
            runs += [(row, slice(int(first), int(stop))) for first, stop in zip(
                np.flatnonzero(steps == 1), np.flatnonzero(steps == -1), strict=True)]
        return runs


def chunk_length(rows: int, columns: int) -> int:
    """Return the chunk length in samples for ``rows`` equations and ``columns``."""
    tiles = CACHE // max(8 * rows * columns * LANES, 1)
    return int(min(max(tiles, 1) * LANES, SAMPLES_AT_ONCE))


def places(out: FloatArray) -> NDArray[np.int64]:
    """Return the memory offset (R, k) of each row and column of ``out`` (R, k, N)."""
    first, second = (step // out.itemsize for step in out.strides[:2])
    return first * np.arange(out.shape[0])[:, None] + second * np.arange(out.shape[1])


def _memory(out: FloatArray) -> FloatArray:
    """Return the memory (M,) that ``out`` (R, k, N) spans, from its first number on."""
    if out.flags.c_contiguous:
        return out.reshape(-1)
    assert out.shape[2] == 1 or out.strides[2] == out.itemsize, 'samples must lie side by side'
    size = int(places(out)[-1, -1]) + out.shape[2]
    return as_strided(out, (size,), (out.itemsize,))
