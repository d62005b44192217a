"""Square-root information: samples reduced to small triangular factors.

One factor per joint and *batch*, a contiguous stretch of time. The factor of joint i is the R of
the QR decomposition of ``[A_i, 1, y, z]``: its regressor columns, ones, the filtered and the raw
effort. The factors are sufficient for every estimator: least squares with any weights per joint,
residuals against either effort, covariance over batches, held-out errors, comparison fits. QR
rather than normal equations, because those square the condition number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import UsageError
from robot_dynid.kernels.triangle import add_equations, add_rows
from robot_dynid.signals.held_out_motion import DistinctMotion
from robot_dynid.types import FloatArray, Samples

#: columns after the regressor: ones, filtered effort, raw effort
EXTRA, ONE, FILTERED, RAW = 3, 0, 1, 2
MAX_BATCHES = 128
#: largest number of cells of distinct motion of a recording, before neighbours merge; of several
#: recordings twice as many
MAX_CELLS = 64


def triangle(rows: FloatArray) -> FloatArray:
    """Return the square R (k, k) of the QR decomposition of ``rows`` (N, k)."""
    r = np.zeros((rows.shape[1], rows.shape[1]))
    add_rows(r, np.array(rows.T, order='C'))
    return r


def merge_factors(factors: Sequence[FloatArray]) -> FloatArray:
    """Return the upper triangle (k, k) of the stacked data of all `factors` (m, k).

    Rows are interleaved, first rows first: rows of triangles with equally many leading zeros are
    then reflected together, at no extra cost.
    """
    if len(factors) == 1:
        return factors[0]
    if len({len(factor) for factor in factors}) > 1:
        return triangle(np.concatenate(factors))
    return triangle(np.stack(factors, axis=1).reshape(-1, factors[0].shape[1]))


@dataclass(frozen=True, eq=False)
class Batch:
    """Factors of one stretch of time: one per joint, and the number of samples in them.

    `recording` is the number of the recording it begins in.
    """

    factors: tuple[FloatArray, ...]
    samples: int
    recording: int = 0

    def split(self, joint: int) -> tuple[FloatArray, FloatArray]:
        """Return the columns (m, k) of a joint; and ones, filtered and raw effort (m, 3)."""
        factor = self.factors[joint]
        return factor[:, :-EXTRA], factor[:, -EXTRA:]


def merge_batches(batches: Sequence[Batch]) -> Batch:
    """Return the merged batch of all `batches`."""
    joints = range(len(batches[0].factors))
    return Batch(tuple(merge_factors([b.factors[i] for b in batches]) for i in joints),
                 sum(b.samples for b in batches), batches[0].recording)


def _in_pairs(batches: Sequence[Batch]) -> list[Batch]:
    return [merge_batches(batches[i:i + 2]) for i in range(0, len(batches), 2)]


@dataclass(frozen=True, eq=False)
class ByMotion:
    """Data by cells of distinct motion, in addition to that by stretches of time.

    `batches` (C,), one per cell of `motion`, over all stretches of time and recordings; `rows`
    (N,) is the cell of every sample.
    """

    motion: DistinctMotion
    batches: tuple[Batch, ...]
    rows: NDArray[np.int32]

    def merge(self, other: ByMotion) -> ByMotion:
        """Return the merged data of both."""
        motion, places = self.motion.merge(other.motion)
        groups: list[list[Batch]] = [[] for _ in motion.seconds]
        for place, batch in [*enumerate(self.batches), *zip(places, other.batches, strict=True)]:
            groups[place].append(batch)
        both = ByMotion(motion, tuple(map(merge_batches, groups)),
                        np.append(self.rows, places[other.rows].astype(np.int32)))
        while len(both.batches) > 2 * MAX_CELLS:
            both = ByMotion(both.motion.coarser(), tuple(_in_pairs(both.batches)), both.rows // 2)
        return both


@dataclass(frozen=True, eq=False)
class Information:
    """Square-root information of samples about b parameters of n joints.

    `names` (b,) of the columns; `structure` (n, b) True where a parameter acts on the effort of a
    joint; `batches` in order of time; `noise` (n,) [N m] of the effort, if known from a repeated
    motion. `by_motion` is the same by cells of distinct motion, if the motion is known.
    """

    names: tuple[str, ...]
    structure: NDArray[np.bool_]
    batches: tuple[Batch, ...]
    noise: FloatArray | None = None
    by_motion: ByMotion | None = None

    @property
    def samples(self) -> int:
        """Number of samples in the factors."""
        return sum(b.samples for b in self.batches)

    @cached_property
    def total(self) -> Batch:
        """All batches merged."""
        return merge_batches(self.batches)

    @cached_property
    def distinct(self) -> Information:
        """The information in cells of distinct motion; unchanged if the motion is unknown."""
        return self if self.by_motion is None else replace(self, batches=self.by_motion.batches)

    @property
    def seconds(self) -> FloatArray:
        """Lengths (C,) of the batches of `distinct` [s]; infinite if the motion is unknown."""
        return np.full(len(self.batches), np.inf) if self.by_motion is None else \
            self.by_motion.motion.seconds

    def subset(self, chosen: Sequence[int]) -> Information:
        """Return the information of some batches only."""
        return replace(self, batches=tuple(self.batches[i] for i in chosen), by_motion=None)

    def grouped(self, groups: Sequence[Sequence[int]]) -> Information:
        """Return the information in longer batches, each merged from a group of batches."""
        return replace(self, by_motion=None, batches=tuple(
            merge_batches([self.batches[i] for i in group]) for group in groups))

    def about(self, columns: Sequence[int] | NDArray[np.int64]) -> Information:
        """Return the information about the parameters `columns` (k,), the others being zero."""
        chosen = np.zeros(len(self.names), dtype=bool)
        chosen[columns] = True
        places = [np.append(chosen[row], [True] * EXTRA) for row in self.structure]

        def narrowed(batches: Sequence[Batch]) -> tuple[Batch, ...]:
            return tuple(replace(batch, factors=tuple(
                factor[:, place] for factor, place in zip(batch.factors, places, strict=True)))
                for batch in batches)

        batches, by_motion = narrowed(self.batches), self.by_motion
        if by_motion is not None:
            by_motion = replace(by_motion, batches=batches if by_motion.batches is self.batches
                                else narrowed(by_motion.batches))
        return replace(self, names=tuple(np.array(self.names)[chosen].tolist()), batches=batches,
                       structure=self.structure[:, chosen], by_motion=by_motion)

    def merge(self, other: Information) -> Information:
        """Return the information of both; raises UsageError if the columns differ."""
        if self.names != other.names or not np.array_equal(self.structure, other.structure):
            raise UsageError('information of different parameter sets cannot be merged')
        noise = None
        if self.noise is not None and other.noise is not None:
            noise = _pooled([self.noise, other.noise], [self.samples, other.samples])
        first = 1 + max((b.recording for b in self.batches), default=-1)
        later = tuple(replace(b, recording=first + b.recording) for b in other.batches)
        by_motion = self.by_motion and other.by_motion and self.by_motion.merge(other.by_motion)
        return replace(self, batches=self.batches + later, noise=noise, by_motion=by_motion)

    def condensed(self, limit: int = MAX_BATCHES) -> Information:
        """Return the information in about `limit` batches if there are more.

        Neighbours of the same recording merge; with more recordings than `limit`, neighbours of
        any.
        """
        if len(self.batches) <= limit:
            return self
        shortest = self.samples / limit
        across = len({batch.recording for batch in self.batches}) > limit
        groups: list[list[int]] = []
        size = 0
        for number, batch in enumerate(self.batches):
            if groups and size < shortest and (
                    across or self.batches[groups[-1][0]].recording == batch.recording):
                groups[-1].append(number)
                size += batch.samples
            else:
                groups.append([number])
                size = batch.samples
        return replace(self.grouped(groups), by_motion=self.by_motion)

    def expanded(self, joint: int, batch: Batch | None = None) -> FloatArray:
        """Return the factor (m, b + 3) of one joint with all columns (rows unchanged)."""
        factor = (batch or self.total).factors[joint]
        wide = np.zeros((len(factor), len(self.names) + EXTRA))
        wide[:, np.append(self.structure[joint], [True] * EXTRA)] = factor
        return wide

    def projected(
        self, rows: Sequence[int], present: NDArray[np.bool_], directions: FloatArray,
        offset: FloatArray, centred: Sequence[int] = (),
    ) -> Information:
        """Return the information of joints `rows` about x, for parameters = known + D x.

        `directions` D is (b, f), `known` (b,); a parameter acts on a row only where `present` (n,
        b). Of the joints `centred` only the variation within each batch counts. The rows of the
        factors are unchanged, so they are no longer triangular.
        """
        structure = np.array([np.any(directions[present[j]] != 0.0, axis=0) for j in rows])
        maps = [np.where(present[j, :, None], directions, 0.0)[self.structure[j]][:, active]
                for j, active in zip(rows, structure, strict=True)]
        subtracted = [np.where(present[j], offset, 0.0)[self.structure[j]] for j in rows]

        def factor(batch: Batch, row: int) -> FloatArray:
            wide = batch.factors[rows[row]]
            if rows[row] in centred:
                one = wide[:, ONE - EXTRA]
                wide = wide - np.outer(one, one @ wide) / (one @ one)
            columns, extra = wide[:, :-EXTRA], wide[:, -EXTRA:].copy()
            extra[:, [FILTERED, RAW]] -= (columns @ subtracted[row])[:, None]
            return np.concatenate([columns @ maps[row], extra], axis=1)

        return Information(
            tuple(f'x{i + 1}' for i in range(directions.shape[1])), structure,
            tuple(replace(batch, factors=tuple(factor(batch, row) for row in range(len(rows))))
                  for batch in self.batches),
            None if self.noise is None else self.noise[list(rows)])

    def residual_energy(
        self, parameters: FloatArray, effort: int = RAW, batch: Batch | None = None
    ) -> FloatArray:
        """Return the sum (n,) of squared residuals of each joint [(N m)^2]."""
        energy = np.empty(len(self.structure))
        for i, active in enumerate(self.structure):
            columns, extra = (batch or self.total).split(i)
            residual = extra[:, effort] - columns @ parameters[active]
            energy[i] = residual @ residual
        return energy

    def size(self, effort: int = RAW) -> FloatArray:
        """Return the root mean square (n,) of the effort [N m]."""
        norms = [np.linalg.norm(f[:, effort - EXTRA]) for f in self.total.factors]
        return np.asarray(norms / np.sqrt(self.samples))

    def spread(self, effort: int = RAW, batch: Batch | None = None) -> FloatArray:
        """Return the standard deviation (n,) of the effort about its mean [N m]."""
        part = batch or self.total
        variance = np.empty(len(self.structure))
        for i in range(len(variance)):
            extra = part.split(i)[1]
            one, values = extra[:, ONE], extra[:, effort]
            variance[i] = values @ values / part.samples - (one @ values / part.samples) ** 2
        return np.sqrt(np.maximum(variance, 0.0))


def _pooled(noises: Sequence[Any], samples: Sequence[int]) -> FloatArray:
    """Return the root mean square noise (n,) over all samples of several recordings."""
    return np.asarray(np.sqrt(np.average(np.square(noises), axis=0, weights=samples)))


@dataclass
class Accumulator:
    """Builds Information from chunks, in constant memory.

    Batches have `batch_samples`; with more than MAX_BATCHES, neighbours merge and the length
    doubles, in advance if that many samples are `expected`. If `sizes` are given, batches have
    these lengths, one after another; `cells` are those of distinct motion of all rows, if known.
    """

    names: tuple[str, ...]
    structure: NDArray[np.bool_]
    batch_samples: int
    expected: int = 0
    sizes: tuple[int, ...] = ()
    cells: ByMotion | None = None

    def __post_init__(self) -> None:
        if self.sizes:
            self.batch_samples = self.sizes[0]
        while self.expected >= (MAX_BATCHES + 1) * self.batch_samples:
            self.batch_samples *= 2
        self._active = [np.flatnonzero(row) for row in self.structure]
        self._done: list[Batch] = []
        self._open: Batch | None = None
        self._noises: list[tuple[int, tuple[float, ...] | None]] = []
        self._recording = 0
        self._motion = None if self.cells is None else self.cells.motion
        #: cells of the rows of every part of the recordings; number of rows added of the last part
        self._rows: list[NDArray[Any]] = [] if self.cells is None else [self.cells.rows]
        self._row = 0
        self._by_cell: dict[int, Batch] = {}

    def begin(self, samples: Samples | None = None, goes_on: bool = False) -> None:
        """Begin a recording, or a part of one if `goes_on`, of which `samples` follow."""
        self._recording += not goes_on
        self._noises.append((len(samples or ()), samples.noise if samples else None))
        if samples is None:
            return
        self._motion = self._motion or DistinctMotion()
        self._rows.append(self._motion.add(samples))
        self._row = 0
        while len(self._motion.seconds) > MAX_CELLS:
            self._motion = self._motion.coarser()
            self._rows = [cells // 2 for cells in self._rows]
            finer, self._by_cell = self._by_cell, {}
            for cell, batch in finer.items():
                self._add_to_cell(cell // 2, batch)

    def add(self, columns: FloatArray, effort: FloatArray, measured: FloatArray) -> None:
        """Add rows: ``columns`` (n, b, N), filtered ``effort`` and raw ``measured`` (N, n)."""
        efforts = np.ascontiguousarray(np.stack([effort, measured]).transpose(2, 0, 1))
        first, count = 0, len(effort)
        while first < count:
            free = self.batch_samples - (self._open.samples if self._open else 0)
            # up to where neighbours merge, or the next length begins
            whole = 0 if self.sizes else (MAX_BATCHES - len(self._done)) * self.batch_samples
            last = min(first + whole + free, count)
            borders = np.array([first, *range(first + free, last, self.batch_samples), last])
            for batch in self._reduced(columns, efforts, borders, self._open):
                self._open = batch
                if batch.samples >= self.batch_samples:
                    self._close()
            first = last
        if self._rows and count:
            cells = self._rows[-1][self._row:self._row + count]
            self._row += count
            borders = np.array([0, *(1 + np.flatnonzero(np.diff(cells))), count])
            for first, batch in zip(borders, self._reduced(columns, efforts, borders),
                                    strict=False):
                self._add_to_cell(int(cells[first]), batch)

    def _reduced(
        self, columns: FloatArray, efforts: FloatArray, borders: NDArray[np.int64],
        begun: Batch | None = None,
    ) -> list[Batch]:
        """Return the batches of stretches between `borders`, the first one continuing `begun`.

        `efforts` (n, 2, N).
        """
        stacks = []
        for i, active in enumerate(self._active):
            k = len(active) + EXTRA
            stack = np.zeros((len(borders) - 1, k, k))
            if begun is not None:
                stack[0] = begun.factors[i]
            add_equations(np.ascontiguousarray(columns[i]), active, efforts[i], borders, stack)
            stacks.append(stack)
        batches = [Batch(factors, size, self._recording) for factors, size in zip(
            zip(*stacks, strict=True), np.diff(borders).tolist(), strict=True)]
        if begun is not None:
            batches[0] = replace(batches[0], samples=batches[0].samples + begun.samples,
                                 recording=begun.recording)
        return batches

    def _add_to_cell(self, cell: int, batch: Batch) -> None:
        there = self._by_cell.get(cell)
        self._by_cell[cell] = batch if there is None else merge_batches([there, batch])

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(self._open)
            self._open = None
        if self.sizes:
            self.batch_samples = self.sizes[min(len(self._done), len(self.sizes) - 1)]
        elif len(self._done) > MAX_BATCHES:
            if len(self._done) % 2:
                self._open = self._done.pop()
            self._done = _in_pairs(self._done)
            self.batch_samples *= 2

    def information(self) -> Information:
        """Return the accumulated information; a short last batch is merged with the one before."""
        batches = list(self._done)
        if self._open is not None:
            short = batches and self._open.samples < self.batch_samples // 2
            batches.append(merge_batches([batches.pop(), self._open]) if short else self._open)
        by_motion = None if self._motion is None else ByMotion(
            self._motion, tuple(self._by_cell[i] for i in range(len(self._motion.seconds))),
            np.concatenate(self._rows).astype(np.int32))
        repeated = [(noise, count) for count, noise in self._noises if noise is not None]
        whole = bool(repeated) and len(repeated) == len(self._noises)
        noise = _pooled(*zip(*repeated, strict=True)) if whole else None
        return Information(self.names, self.structure, tuple(batches), noise, by_motion)
