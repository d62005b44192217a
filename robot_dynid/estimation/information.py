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

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import UsageError
from robot_dynid.kernels.triangle import add_equations, add_rows
from robot_dynid.types import FloatArray

#: columns behind the regressor: ones, filtered effort, raw effort
EXTRA, ONE, FILTERED, RAW = 3, 0, 1, 2
MAX_BATCHES = 128


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


def _without_mean(wide: FloatArray) -> FloatArray:
    """Return an expanded factor of the same samples, less their mean."""
    one = wide[:, ONE - EXTRA]
    return wide - np.outer(one, one @ wide) / (one @ one)


@dataclass(frozen=True, eq=False)
class Information:
    """Square-root information of a set of samples about b parameters of n joints.

    ``names`` (b,) of the columns; ``structure`` (n, b) true where a parameter enters the effort of
    a joint; ``batches`` in order of time; ``noise`` (n,) [N m] of the effort where it is known
    from a motion that was repeated.
    """

    names: tuple[str, ...]
    structure: NDArray[np.bool_]
    batches: tuple[Batch, ...]
    noise: FloatArray | None = None

    @property
    def samples(self) -> int:
        """Number of samples behind the factors."""
        return sum(b.samples for b in self.batches)

    @cached_property
    def total(self) -> Batch:
        """All batches merged."""
        return merged_batch(self.batches)

    def subset(self, chosen: Sequence[int]) -> Information:
        """Return the information of some batches only."""
        return replace(self, batches=tuple(self.batches[i] for i in chosen))

    def grouped(self, groups: Sequence[Sequence[int]]) -> Information:
        """Return the information in longer batches, each made of a group of these."""
        return replace(self, batches=tuple(
            merged_batch([self.batches[i] for i in group]) for group in groups))

    def about(self, columns: Sequence[int] | NDArray[np.int64]) -> Information:
        """Return the information about the parameters ``columns`` (k,), the others being zero."""
        chosen = np.zeros(len(self.names), dtype=bool)
        chosen[columns] = True
        kept = [np.concatenate([chosen[row], np.ones(EXTRA, dtype=bool)])
                for row in self.structure]
        batches = tuple(replace(batch, factors=tuple(
            factor[:, own] for factor, own in zip(batch.factors, kept, strict=True)))
            for batch in self.batches)
        names = tuple(name for name, own in zip(self.names, chosen, strict=True) if own)
        return replace(self, names=names, structure=self.structure[:, chosen], batches=batches)

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
        return replace(self, batches=self.batches + later, noise=noise)

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
        return self.grouped(groups)

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
    ``sizes`` are given, batches are as long as these, one after another.
    """

    names: tuple[str, ...]
    structure: NDArray[np.bool_]
    batch_samples: int
    expected: int = 0
    sizes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.sizes:
            self.batch_samples = self.sizes[0]
        while self.expected >= (MAX_BATCHES + 1) * self.batch_samples:
            self.batch_samples *= 2
        self._done: list[Batch] = []
        self._open: Batch | None = None
        self._noises: list[tuple[int, tuple[float, ...] | None]] = []
        self._recording = 0

    @property
    def room(self) -> int:
        """Samples that still fit into the open batch; a chunk must not be longer."""
        return self.batch_samples - (self._open.samples if self._open else 0)

    def begin(
        self, samples: int = 0, noise: tuple[float, ...] | None = None, goes_on: bool = False
    ) -> None:
        """Begin a recording, or a part of one that ``goes_on``.

        ``noise`` (n,) [N m] is known where its motion was repeated.
        """
        self._recording += not goes_on
        self._noises.append((samples, noise))

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
        return Information(self.names, self.structure, tuple(batches), self._noise())

    def _noise(self) -> FloatArray | None:
        """Return the root mean square over all samples, None when one recording has none."""
        known = [(count, noise) for count, noise in self._noises if noise is not None]
        if not known or len(known) < len(self._noises):
            return None
        counts, noises = zip(*known, strict=True)
        return np.sqrt(np.average(np.square(noises), axis=0, weights=counts))
