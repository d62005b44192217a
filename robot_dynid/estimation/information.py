"""Square-root information: samples reduced at once to small triangular factors.

One factor per joint and *batch*, a contiguous stretch of time. The factor of joint i is the R of
the QR decomposition of ``[A_i, 1, y, z]``: its regressor columns, ones, the filtered and the raw
effort. Everything an estimator needs is in the factors: least squares with any weights per joint,
residuals against either effort, covariance over batches, held-out errors, control fits.
QR, not the normal equations, because those square the condition number.
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

#: columns behind the regressor: ones, filtered effort, raw effort
EXTRA, ONE, FILTERED, RAW = 3, 0, 1, 2
MAX_BATCHES = 128
#: most cells of distinct motion of a recording, before neighbours become one; of several
#: recordings twice as many
MAX_CELLS = 64


def triangle(rows: FloatArray) -> FloatArray:
    """Return the square R (k, k) of the QR decomposition of ``rows`` (N, k)."""
    r = np.zeros((rows.shape[1], rows.shape[1]))
    add_rows(r, np.array(rows.T, order='C'))
    return r


def merged(factors: Sequence[FloatArray]) -> FloatArray:
    """Return the upper triangle (k, k) of all the data behind ``factors`` (m, k) each.

    First rows first, then second ones: of triangles, rows that begin with as many zeros are
    reflected together, and these cost nothing.
    """
    if len(factors) == 1:
        return factors[0]
    if len({len(factor) for factor in factors}) > 1:
        return triangle(np.concatenate(factors))
    return triangle(np.stack(factors, axis=1).reshape(-1, factors[0].shape[1]))


@dataclass(frozen=True, eq=False)
class Batch:
    """Factors of one stretch of time: one per joint, and the number of samples behind them.

    ``recording`` is the number of the recording it begins in.
    """

    factors: tuple[FloatArray, ...]
    samples: int
    recording: int = 0


def merged_batch(batches: Sequence[Batch]) -> Batch:
    """Return the batch of all the data behind ``batches``."""
    joints = range(len(batches[0].factors))
    return Batch(tuple(merged([b.factors[i] for b in batches]) for i in joints),
                 sum(b.samples for b in batches), batches[0].recording)


@dataclass(frozen=True, eq=False)
class ByMotion:
    """Data by cells of distinct motion, beside the same data by stretches of time.

    ``batches`` (C,), one of every cell of ``motion``, from all stretches of time and recordings;
    ``rows`` (N,) is the cell of every sample.
    """

    motion: DistinctMotion
    batches: tuple[Batch, ...]
    rows: NDArray[np.int32]

    def merged(self, other: ByMotion) -> ByMotion:
        """Return the data of both."""
        motion, places = self.motion.merged(other.motion)
        groups: list[list[Batch]] = [[] for _ in motion.seconds]
        for place, batch in [*enumerate(self.batches), *zip(places, other.batches, strict=True)]:
            groups[place].append(batch)
        rows = np.append(self.rows, places[other.rows].astype(np.int32))
        found = ByMotion(motion, tuple(map(merged_batch, groups)), rows)
        while len(found.batches) > 2 * MAX_CELLS:
            found = found.coarser()
        return found

    def coarser(self) -> ByMotion:
        """Return it with every two cells made one."""
        pairs = [self.batches[i:i + 2] for i in range(0, len(self.batches), 2)]
        return ByMotion(self.motion.coarser(), tuple(map(merged_batch, pairs)), self.rows // 2)


def _without_mean(wide: FloatArray) -> FloatArray:
    """Return an expanded factor of the same samples, less their mean."""
    one = wide[:, ONE - EXTRA]
    return wide - np.outer(one, one @ wide) / (one @ one)


@dataclass(frozen=True, eq=False)
class Information:
    """Square-root information of a set of samples about b parameters of n joints.

    ``names`` (b,) of the columns; ``structure`` (n, b) true where a parameter enters the effort of
    a joint; ``batches`` in order of time; ``noise`` (n,) [N m] of the effort where it is known
    from a motion that was repeated. ``by_motion`` is the same by cells of distinct motion, where
    the motion is known.
    """

    names: tuple[str, ...]
    structure: NDArray[np.bool_]
    batches: tuple[Batch, ...]
    noise: FloatArray | None = None
    by_motion: ByMotion | None = None

    @property
    def samples(self) -> int:
        """Number of samples behind the factors."""
        return sum(b.samples for b in self.batches)

    @cached_property
    def total(self) -> Batch:
        """All batches merged."""
        return merged_batch(self.batches)

    @cached_property
    def distinct(self) -> Information:
        """The information in cells of distinct motion; as it is where no motion is known."""
        return self if self.by_motion is None else replace(self, batches=self.by_motion.batches)

    @property
    def seconds(self) -> FloatArray:
        """The lengths (C,) of the batches of `distinct` [s]; infinite where no motion is known."""
        return np.full(len(self.batches), np.inf) if self.by_motion is None else \
            self.by_motion.motion.seconds

    def subset(self, chosen: Sequence[int]) -> Information:
        """Return the information of some batches only."""
        return replace(self, batches=tuple(self.batches[i] for i in chosen), by_motion=None)

    def grouped(self, groups: Sequence[Sequence[int]]) -> Information:
        """Return the information in longer batches, each made of a group of these."""
        return replace(self, by_motion=None, batches=tuple(
            merged_batch([self.batches[i] for i in group]) for group in groups))

    def about(self, columns: Sequence[int] | NDArray[np.int64]) -> Information:
        """Return the information about the parameters ``columns`` (k,), the others being zero."""
        chosen = np.zeros(len(self.names), dtype=bool)
        chosen[columns] = True
        kept = [np.concatenate([chosen[row], np.ones(EXTRA, dtype=bool)])
                for row in self.structure]

        def less(batches: Sequence[Batch]) -> tuple[Batch, ...]:
            return tuple(replace(batch, factors=tuple(
                factor[:, own] for factor, own in zip(batch.factors, kept, strict=True)))
                for batch in batches)

        names = tuple(name for name, own in zip(self.names, chosen, strict=True) if own)
        found, by_motion = less(self.batches), self.by_motion
        if by_motion is not None:
            by_motion = replace(by_motion, batches=found if by_motion.batches is self.batches
                                else less(by_motion.batches))
        return replace(self, names=names, structure=self.structure[:, chosen], batches=found,
                       by_motion=by_motion)

    def merge(self, other: Information) -> Information:
        """Return the information of both; raises UsageError when the columns differ."""
        if self.names != other.names or not np.array_equal(self.structure, other.structure):
            raise UsageError('information of different parameter sets cannot be merged')
        noise = None
        if self.noise is not None and other.noise is not None:
            noise = np.sqrt(np.average(np.square([self.noise, other.noise]), axis=0,
                                       weights=[self.samples, other.samples]))
        first = 1 + max((b.recording for b in self.batches), default=-1)
        later = tuple(replace(b, recording=first + b.recording) for b in other.batches)
        by_motion = self.by_motion and other.by_motion and self.by_motion.merged(other.by_motion)
        return replace(self, batches=self.batches + later, noise=noise, by_motion=by_motion)

    def condensed(self, most: int = MAX_BATCHES) -> Information:
        """Return the information in about ``most`` batches where there are more.

        Neighbours of the same recording merge; where there are more recordings than ``most``,
        neighbours of any.
        """
        if len(self.batches) <= most:
            return self
        shortest = self.samples / most
        across = len({batch.recording for batch in self.batches}) > most
        groups: list[list[int]] = []
        for number, batch in enumerate(self.batches):
            before = groups[-1] if groups else []
            held = sum(self.batches[i].samples for i in before)
            same = before and self.batches[before[0]].recording == batch.recording
            if before and held < shortest and (same or across):
                before.append(number)
            else:
                groups.append([number])
        return replace(self.grouped(groups), by_motion=self.by_motion)

    def expanded(self, joint: int, batch: Batch | None = None) -> FloatArray:
        """Return the factor (m, b + 3) of one joint with all columns (rows unchanged)."""
        factor = (batch or self.total).factors[joint]
        active = np.flatnonzero(self.structure[joint])
        b = len(self.names)
        wide = np.zeros((len(factor), b + EXTRA))
        wide[:, np.concatenate([active, b + np.arange(EXTRA)])] = factor
        return wide

    def projected(
        self, rows: Sequence[int], present: NDArray[np.bool_], directions: FloatArray,
        known: FloatArray, centred: Sequence[int] = (),
    ) -> Information:
        """Return the information of joints ``rows`` about x, where parameters = known + D x.

        ``directions`` D is (b, f), ``known`` (b,); a parameter counts in a row only where
        ``present`` (n, b). Of the joints ``centred`` only the variation within each batch is
        used. The rows of the factors stay, so they are no longer triangular.
        """
        structure = np.array([np.any(directions[present[j]] != 0.0, axis=0) for j in rows])
        counting = np.where(present[:, :, None], directions, 0.0)
        own = [counting[j][self.structure[j]][:, structure[row]] for row, j in enumerate(rows)]
        held = np.where(present, known, 0.0)
        batches = []
        for batch in self.batches:
            factors = []
            for row, j in enumerate(rows):
                factor = _without_mean(batch.factors[j]) if j in centred else batch.factors[j]
                columns, extra = factor[:, :-EXTRA], factor[:, -EXTRA:].copy()
                extra[:, [FILTERED, RAW]] -= (columns @ held[j][self.structure[j]])[:, None]
                factors.append(np.concatenate([columns @ own[row], extra], axis=1))
            batches.append(replace(batch, factors=tuple(factors)))
        names = tuple(f'x{i + 1}' for i in range(directions.shape[1]))
        noise = None if self.noise is None else self.noise[list(rows)]
        return Information(names, structure, tuple(batches), noise)

    def residual_energy(
        self, parameters: FloatArray, effort: int = RAW, batch: Batch | None = None
    ) -> FloatArray:
        """Return the sum (n,) of squared residuals of each joint [(N m)^2]."""
        chosen = batch or self.total
        energy = np.empty(len(self.structure))
        for i, factor in enumerate(chosen.factors):
            k = factor.shape[1] - EXTRA
            residual = factor[:, k + effort] - factor[:, :k] @ parameters[self.structure[i]]
            energy[i] = residual @ residual
        return energy

    def size(self, effort: int = RAW) -> FloatArray:
        """Return the root mean square (n,) of the effort [N m]."""
        norms = [np.linalg.norm(f[:, f.shape[1] - EXTRA + effort]) for f in self.total.factors]
        return np.asarray(norms / np.sqrt(self.samples))

    def spread(self, effort: int = RAW, batch: Batch | None = None) -> FloatArray:
        """Return the standard deviation (n,) of the effort about its mean [N m]."""
        chosen = batch or self.total
        found = np.empty(len(self.structure))
        for i, factor in enumerate(chosen.factors):
            k = factor.shape[1] - EXTRA
            one, values = factor[:, k + ONE], factor[:, k + effort]
            mean = (one @ values) / chosen.samples
            found[i] = max(float(values @ values) / chosen.samples - float(mean) ** 2, 0.0)
        return np.sqrt(found)


def _paired(effort: FloatArray, measured: FloatArray) -> FloatArray:
    """Return both kinds of effort (N, n) joint by joint, (n, 2, N)."""
    return np.ascontiguousarray(np.stack([effort, measured]).transpose(2, 0, 1))


@dataclass
class Accumulator:
    """Builds Information from chunks, in constant memory.

    Batches are ``batch_samples`` long; when there are more than MAX_BATCHES, neighbours merge and
    the length doubles. Where so many samples are ``expected``, it is doubled before. Where
    ``sizes`` are given, batches are as long as these, one after another; ``cells`` are those of
    distinct motion that all rows are in, where these are known before.
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
        self._done: list[Batch] = []
        self._open: Batch | None = None
        self._noises: list[tuple[int, tuple[float, ...] | None]] = []
        self._recording = 0
        self._motion = None if self.cells is None else self.cells.motion
        self._rows: list[NDArray[Any]] = [] if self.cells is None else [self.cells.rows]
        self._cells = self._rows[0] if self._rows else None
        self._row = 0
        self._by_cell: dict[int, Batch] = {}

    @property
    def room(self) -> int:
        """Samples that still fit into the open batch; a chunk must not be longer."""
        return self.batch_samples - (self._open.samples if self._open else 0)

    def begin(self, samples: Samples | None = None, goes_on: bool = False) -> None:
        """Begin a recording, or a part of one that ``goes_on``.

        Where ``samples`` are given, they are those whose rows follow.
        """
        self._recording += not goes_on
        self._noises.append((len(samples or ()), samples.noise if samples else None))
        if samples is not None:
            self._motion = self._motion or DistinctMotion()
            self._cells, self._row = self._motion.add(samples), 0
            self._rows.append(self._cells)
            while len(self._motion.seconds) > MAX_CELLS:
                self._coarser()

    def add(self, columns: FloatArray, effort: FloatArray, measured: FloatArray) -> None:
        """Add a chunk to the open batch: ``columns`` (n, b, N), both kinds of effort (N, n).

        ``effort`` is filtered, ``measured`` raw.
        """
        self._add(columns, _paired(effort, measured), np.array([0, len(effort)]))

    def extend(self, columns: FloatArray, effort: FloatArray, measured: FloatArray) -> None:
        """Add rows as `add` does, cut where batches are full.

        ``columns`` (n, b, N); ``effort`` and ``measured`` (N, n).
        """
        efforts, first = _paired(effort, measured), 0
        while first < len(effort):
            # no further than to where neighbours merge, or another length begins
            whole = 0 if self.sizes else (MAX_BATCHES - len(self._done)) * self.batch_samples
            rows = slice(first, min(first + whole + self.room, len(effort)))
            count = rows.stop - first
            borders = np.array([0, *range(self.room, count, self.batch_samples), count])
            self._add(columns[:, :, rows], efforts[:, :, rows], borders)
            first = rows.stop

    def _add(
        self, columns: FloatArray, efforts: FloatArray, borders: NDArray[np.int64]
    ) -> None:
        """Add stretches from border to border, the first one to the open batch.

        ``efforts`` (n, 2, N).
        """
        before, number = (self._open.samples, self._open.recording) if self._open else \
            (0, self._recording)
        stacks = []
        for i, active in enumerate(self._active):
            k = len(active) + EXTRA
            stack = np.zeros((len(borders) - 1, k, k))
            if self._open:
                stack[0] = self._open.factors[i]
            add_equations(np.ascontiguousarray(columns[i]), active,
                          np.ascontiguousarray(efforts[i]), borders, stack)
            stacks.append(stack)
        sizes = np.diff(borders)
        sizes[0] += before
        for s, factors in enumerate(zip(*stacks, strict=True)):
            self._open = Batch(factors, int(sizes[s]), self._recording if s else number)
            if self._open.samples >= self.batch_samples:
                self._close()
        if self._cells is not None:
            self._add_by_motion(columns, efforts)

    def _coarser(self) -> None:
        """Make every two cells of distinct motion one."""
        assert self._motion is not None
        self._motion = self._motion.coarser()
        self._rows = [cells // 2 for cells in self._rows]
        self._cells = self._rows[-1]
        before, self._by_cell = self._by_cell, {}
        for cell, batch in before.items():
            self._put(cell // 2, batch)

    def _put(self, cell: int, batch: Batch) -> None:
        before = self._by_cell.get(cell)
        self._by_cell[cell] = batch if before is None else merged_batch([before, batch])

    def _add_by_motion(self, columns: FloatArray, efforts: FloatArray) -> None:
        """Add rows to the cells of distinct motion that they are in."""
        assert self._cells is not None
        count = efforts.shape[2]
        cells = self._cells[self._row:self._row + count]
        self._row += count
        borders = np.array([0, *(1 + np.flatnonzero(np.diff(cells))), count])
        passed = cells[borders[:-1]].tolist()
        stacks = []
        for i, active in enumerate(self._active):
            k = len(active) + EXTRA
            stack = np.zeros((len(passed), k, k))
            add_equations(np.ascontiguousarray(columns[i]), active,
                          np.ascontiguousarray(efforts[i]), borders, stack)
            stacks.append(stack)
        for cell, size, factors in zip(
                passed, np.diff(borders).tolist(), zip(*stacks, strict=True), strict=True):
            self._put(cell, Batch(factors, size))

    @cached_property
    def _active(self) -> list[NDArray[np.int64]]:
        return [np.flatnonzero(row) for row in self.structure]

    def _close(self) -> None:
        if self._open is not None:
            self._done.append(self._open)
            self._open = None
        if self.sizes:
            self.batch_samples = self.sizes[min(len(self._done), len(self.sizes) - 1)]
        elif len(self._done) > MAX_BATCHES:
            if len(self._done) % 2:
                self._open = self._done.pop()
            pairs = [self._done[i:i + 2] for i in range(0, len(self._done), 2)]
            self._done = [merged_batch(p) for p in pairs]
            self.batch_samples *= 2

    def information(self) -> Information:
        """Return the accumulated information; a short last batch joins the one before it."""
        batches = list(self._done)
        if self._open is not None:
            if batches and self._open.samples < self.batch_samples // 2:
                batches[-1] = merged_batch([batches[-1], self._open])
            else:
                batches.append(self._open)
        by_motion = None if self._motion is None else ByMotion(self._motion, tuple(
            self._by_cell[cell] for cell in range(len(self._motion.seconds))),
            np.concatenate(self._rows).astype(np.int32))
        return Information(self.names, self.structure, tuple(batches), self._noise(), by_motion)

    def _noise(self) -> FloatArray | None:
        """Return the root mean square over all samples, None when one recording has none."""
        known = [(count, noise) for count, noise in self._noises if noise is not None]
        if not known or len(known) < len(self._noises):
            return None
        counts, noises = zip(*known, strict=True)
        return np.sqrt(np.average(np.square(noises), axis=0, weights=counts))
