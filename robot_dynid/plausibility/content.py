"""Recordings by their content: which samples are in several of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.types import FloatArray, RawLog

#: so many digests of samples are kept of a recording
KEPT = 2048
#: rows that are digested at once
CHUNK = 65_536
#: significant digits of a value: files keep at least so many
DIGITS = 4
#: least shared digests, and rows of a recording, to say anything
LEAST = 20


def digests(log: RawLog) -> NDArray[np.uint64]:
    """Return the least KEPT digests, in order, of the different samples of a recording.

    A sample is one change of position and effort from row to row, whatever its stamp. The least
    digests are the same ones in every recording that holds the sample.
    """
    kept = np.empty(0, dtype=np.uint64)
    for first in range(0, max(len(log.time) - 1, 0), CHUNK):
        rows = slice(first, first + CHUNK + 1)
        table = log.position[rows] if log.effort is None else np.hstack(
            [log.position[rows], log.effort[rows]])
        found = _digested(np.asarray(table, dtype=np.float64))
        kept = np.unique(np.concatenate([kept, found]))[:KEPT]
    return kept


def _digested(table: FloatArray) -> NDArray[np.uint64]:
    """Return digests of the rows (N, k) that differ from the row before, with that row."""
    if len(table) < 2:
        return np.empty(0, dtype=np.uint64)
    values = _rounded(table)
    mixed = np.full(len(values), 0x9E3779B97F4A7C15, dtype=np.uint64)
    with np.errstate(over='ignore'):
        for column in values.T:
            mixed = _scrambled(mixed ^ column.view(np.uint64))
        pairs = _scrambled(mixed[1:] ^ (mixed[:-1] * np.uint64(3)))
    moved = np.any(table[1:] != table[:-1], axis=1) & np.isfinite(table[1:]).all(axis=1)
    return np.asarray(np.unique(pairs[moved]))


def _rounded(table: FloatArray) -> FloatArray:
    """Return values to DIGITS significant digits, zero as one value."""
    with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
        size = 10.0 ** (np.floor(np.log10(np.abs(table))) - DIGITS + 1)
        rounded = np.where(np.abs(table) > 0.0, np.round(table / size), 0.0)
        exponent = np.where(np.abs(table) > 0.0, np.round(np.log10(size)), 0.0)
    return np.ascontiguousarray(rounded * 1024.0 + exponent + 0.0)


def _scrambled(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64-bit values mixed well (finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))


def shared(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> float:
    """Return the share of the samples of the second recording that are in the first, too."""
    bounds = [d[-1] for d in (first, second) if len(d) == KEPT]
    if bounds:
        first, second = (d[d <= min(bounds)] for d in (first, second))
    if len(second) < LEAST:
        return 0.0
    common = int(np.isin(second, first, assume_unique=True).sum())
    return common / len(second) if common >= LEAST else 0.0
