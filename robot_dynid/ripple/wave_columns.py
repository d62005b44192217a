"""The columns of waves, made for few rows at a time: all of them are never in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dynid.ripple.model import COLUMNS
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

    def pieces(self, rows: slice | None = None) -> Iterator[tuple[slice, FloatArray]]:
        """Yield contiguous rows, by default all, and their columns (6 w, M), few at a time."""
        for piece in pieces(slice(0, self.shares.shape[1]) if rows is None else rows):
            yield piece, self.rows(piece)

    def gram(self) -> FloatArray:
        """Return the Gram matrix (6 w, 6 w)."""
        found = np.zeros((self.count, self.count))
        for _, columns in self.pieces():
            found += columns @ columns.T
        return found

    def products(self, values: FloatArray) -> FloatArray:
        """Return the products (6 w, m) with ``values`` (N, m)."""
        found = np.zeros((self.count, values.shape[1]))
        for rows, columns in self.pieces():
            found += columns @ values[rows]
        return found

    def times(self, coefficients: FloatArray) -> FloatArray:
        """Return the columns (N, 6 w) times ``coefficients`` (6 w, m): (N, m)."""
        found = np.empty((self.shares.shape[1], coefficients.shape[1]))
        for rows, columns in self.pieces():
            found[rows] = columns.T @ coefficients
        return found


def pieces(rows: slice) -> Iterator[slice]:
    """Cut contiguous rows into pieces of at most ROWS."""
    for first in range(rows.start, rows.stop, ROWS):
        yield slice(first, min(first + ROWS, rows.stop))
