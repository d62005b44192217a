"""The columns of waves, made for few rows at a time: all of them are never in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dynid.ripple.model import COLUMNS, SHARES
from robot_dynid.types import FloatArray

#: rows of which the columns are in memory, and in the cache of a core
ROWS = 1024


@dataclass(frozen=True, eq=False)
class WaveColumns:
    """Columns (N, 6 w) of the coefficients of waves, see `TorqueRipple.columns`.

    They are products of the amplitudes ``shares`` (3, N) and the ``waves`` (w, 2, N), sine and
    cosine.
    """

    shares: FloatArray
    waves: FloatArray

    @classmethod
    def of(cls, shares: FloatArray, phase: FloatArray) -> WaveColumns:
        """Return those of a ``phase`` (w, N) [rad]."""
        waves = np.empty((len(phase), 2, shares.shape[1]))
        np.sin(phase, out=waves[:, 0])
        np.cos(phase, out=waves[:, 1])
        return cls(shares, waves)

    @property
    def count(self) -> int:
        """Number of columns."""
        return COLUMNS * len(self.waves)

    def beside(self, more: WaveColumns) -> WaveColumns:
        """Return them with ``more`` of the same rows behind."""
        return WaveColumns(self.shares, np.concatenate([self.waves, more.waves]))

    def rows(self, rows: slice) -> FloatArray:
        """Return the columns (6 w, M) of M contiguous rows."""
        found = self.shares[:, None, rows] * self.waves[:, None, :, rows]
        return found.reshape(self.count, found.shape[-1])

    def gram(self) -> FloatArray:
        """Return the Gram matrix (6 w, 6 w)."""
        found = np.zeros((self.count, self.count))
        for rows in pieces(slice(0, self.shares.shape[1])):
            columns = self.rows(rows)
            found += columns @ columns.T
        return found

    def products(self, values: FloatArray) -> FloatArray:
        """Return the products (6 w, m) with ``values`` (N, m)."""
        count, waves = values.shape[1], self._waves
        found = np.zeros((len(waves), SHARES * count))
        for rows in pieces(slice(0, len(values))):
            shared = self.shares[:, None, rows] * values[rows].T
            found += waves[:, rows] @ shared.reshape(len(found.T), -1).T
        return found.reshape(-1, 2, SHARES, count).swapaxes(1, 2).reshape(self.count, count)

    def times(self, coefficients: FloatArray, stretch: slice | None = None) -> FloatArray:
        """Return the columns (N, 6 w) of a stretch, or of all, times ``coefficients`` (6 w, m)."""
        count, waves = coefficients.shape[1], self._waves
        by_share = coefficients.reshape(-1, SHARES, 2, count).transpose(1, 3, 0, 2).reshape(
            SHARES * count, len(waves))
        stretch = slice(0, self.shares.shape[1]) if stretch is None else stretch
        found = np.empty((stretch.stop - stretch.start, count))
        for rows in pieces(stretch):
            shared = (by_share @ waves[:, rows]).reshape(SHARES, count, -1)
            found[rows.start - stretch.start:rows.stop - stretch.start] = np.sum(
                shared * self.shares[:, None, rows], axis=0).T
        return found

    @property
    def _waves(self) -> FloatArray:
        """All sines and cosines (2 w, N)."""
        return self.waves.reshape(2 * len(self.waves), self.shares.shape[1])


def pieces(rows: slice) -> Iterator[slice]:
    """Cut contiguous rows into pieces of at most ROWS."""
    for first in range(rows.start, rows.stop, ROWS):
        yield slice(first, min(first + ROWS, rows.stop))
