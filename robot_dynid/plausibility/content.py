"""Recordings by their content: which samples are in several of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from robot_dynid.types import FloatArray, RawLog

#: so many digests of samples are kept of a recording
KEPT = 2048
#: the bits of a digest that are those of the first joint
UPPER = np.uint64(0xFFFFFFFF00000000)
#: digests of all recordings that are compared at once: 20 MB
AT_ONCE = 1 << 19
#: rows that are digested at once
CHUNK = 65_536
#: significant digits of a value: files keep at least so many
DIGITS = 4
#: least shared digests, and rows of a recording, to say anything
LEAST = 20


def digests(log: RawLog) -> NDArray[np.uint64]:
    """Return the least KEPT digests (k,), in order, of the different samples of a recording.

    A sample is a row of position and effort, with the row before it, that differs from it,
    whatever their stamps. The least digests are those of the same samples in every recording that
    holds them.
    """
    kept = np.empty(0, dtype=np.uint64)
    for first in range(0, max(len(log.time) - 1, 0), CHUNK):
        rows = slice(first, first + CHUNK + 1)
        parts = [np.asarray(part[rows], dtype=np.float64) for part in (log.position, log.effort)
                 if part is not None]
        bound = kept[-1] if len(kept) == KEPT else np.uint64(2**64 - 1)
        kept = np.unique(np.concatenate([kept, _digested(parts, bound)]))[:KEPT]
    return kept


def merged(parts: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the digests of a recording from those (k,) of its parts."""
    return np.asarray(np.unique(np.concatenate([np.empty(0, dtype=np.uint64), *parts]))[:KEPT])


def _digested(parts: list[FloatArray], bound: np.uint64) -> NDArray[np.uint64]:
    """Return digests up to ``bound`` of the rows of tables (N, k) that differ from those before.

    Their upper half is that of the first joint, so that most rows need no look at the others.
    """
    with np.errstate(over='ignore'):
        first = _mixed(np.column_stack([part[:, 0] for part in parts]))
        upper = _scrambled(first[1:] ^ (first[:-1] * np.uint64(3))) & UPPER
        rows = np.flatnonzero(upper <= bound)
        here, before = (np.hstack([part[r] for part in parts]) for r in (rows + 1, rows))
        rest = _scrambled(_mixed(here) ^ (_mixed(before) * np.uint64(3)))
    moved = np.any(here != before, axis=1) & np.isfinite(here).all(axis=1)
    found = upper[rows] | (rest & ~UPPER)
    return np.asarray(np.unique(found[moved]))


def _mixed(table: FloatArray) -> NDArray[np.uint64]:
    """Return one number for the rounded values of every row (N, k)."""
    values = _rounded(table)
    mixed = np.full(len(values), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in values.T:
        mixed = _scrambled(mixed ^ np.ascontiguousarray(column).view(np.uint64))
    return mixed


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


def candidates(
    count: int, sketch: Callable[[int], NDArray[np.uint64]]
) -> list[tuple[int, int]]:
    """Return the pairs of ``count`` recordings, in order, whose sketches share LEAST digests.

    ``sketch`` returns the digests (k,) of a recording. They are gone through several times where
    they are many, about AT_ONCE digests in memory.
    """
    common: Counter[tuple[int, int]] = Counter()
    turns = max(1, -(-count * KEPT // AT_ONCE))
    for turn in range(turns):
        owned = [_of_turn(sketch(i), turn, turns) for i in range(count)]
        owners = np.repeat(np.arange(count), [len(values) for values in owned])
        common.update(_sharing(np.concatenate([np.empty(0, dtype=np.uint64), *owned]), owners))
    return sorted(pair for pair, number in common.items() if number >= LEAST)


def _of_turn(digests: NDArray[np.uint64], turn: int, turns: int) -> NDArray[np.uint64]:
    """Return one of so many parts of digests, told apart by their lower, well mixed bits."""
    return np.asarray(digests[digests % np.uint64(turns) == np.uint64(turn)])


def _sharing(values: NDArray[np.uint64], owners: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of owners, in order, of every value that is there more than once."""
    order = np.argsort(values, kind='stable')
    values, owners = values[order], owners[order]
    for ahead in range(1, len(values)):
        same = values[ahead:] == values[:-ahead]
        if not same.any():
            break
        yield from zip(owners[:-ahead][same].tolist(), owners[ahead:][same].tolist(), strict=True)


def shared(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> float:
    """Return the share of the samples of ``second`` (k,) that are in ``first`` (k,), too."""
    bounds = [d[-1] for d in (first, second) if len(d) == KEPT]
    if bounds:
        first, second = (d[d <= min(bounds)] for d in (first, second))
    if len(second) < LEAST:
        return 0.0
    common = int(np.isin(second, first, assume_unique=True).sum())
    return common / len(second) if common >= LEAST else 0.0
