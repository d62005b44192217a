"""Content of recordings: finds samples that occur in several of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from robot_dynid.types import FloatArray, RawLog

#: digests that represent a recording, and the least shared number that counts
SKETCH, LEAST_SHARED_DIGESTS = 2048, 20
#: the bits of a digest that depend on the first joint
UPPER = np.uint64(0xFFFFFFFF00000000)
#: digests of all recordings compared at once: 20 MB
DIGESTS_AT_ONCE = 1 << 19
#: rows digested at once; significant digits of a value, which every file format holds
DIGEST_ROWS, SIGNIFICANT_DIGITS = 65_536, 4


def digests(log: RawLog) -> NDArray[np.uint64]:
    """Return the SKETCH smallest digests (k,), sorted, of the distinct samples of a recording.

    A sample is a row of position and effort together with the previous, different row, regardless
    of stamps. The smallest digests belong to the same samples in every recording that contains
    them. Their upper half depends on the first joint only, so that most rows are rejected early.
    """
    least = np.empty(0, dtype=np.uint64)
    for first in range(0, max(len(log.time) - 1, 0), DIGEST_ROWS):
        parts = [np.asarray(part[first:first + DIGEST_ROWS + 1], dtype=np.float64)
                 for part in (log.position, log.effort) if part is not None]
        bound = least[-1] if len(least) == SKETCH else np.uint64(2**64 - 1)
        with np.errstate(over='ignore'):
            joint = _hash_rows(np.column_stack([part[:, 0] for part in parts]))
            upper = _scramble(joint[1:] ^ (joint[:-1] * np.uint64(3))) & UPPER
            rows = np.flatnonzero(upper <= bound)
            here, previous = (np.hstack([part[r] for part in parts]) for r in (rows + 1, rows))
            lower = _scramble(_hash_rows(here) ^ (_hash_rows(previous) * np.uint64(3))) & ~UPPER
        moved = np.any(here != previous, axis=1) & np.isfinite(here).all(axis=1)
        least = merge_digests([least, (upper[rows] | lower)[moved]])
    return least


def merge_digests(parts: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the digests of a recording from those (k,) of its parts."""
    return np.asarray(np.unique(np.concatenate([np.empty(0, np.uint64), *parts]))[:SKETCH])


def _hash_rows(table: FloatArray) -> NDArray[np.uint64]:
    """Return one number per row (N, k) of its values, each to SIGNIFICANT_DIGITS."""
    with np.errstate(divide='ignore', invalid='ignore', over='ignore'):
        size = 10.0 ** (np.floor(np.log10(np.abs(table))) - SIGNIFICANT_DIGITS + 1)
        zero = ~(np.abs(table) > 0.0)
        rounded = np.where(zero, 0.0, np.round(table / size))
        exponent = np.where(zero, 0.0, np.round(np.log10(size)))
    mixed = np.full(len(table), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in (rounded * 1024.0 + exponent + 0.0).T:
        mixed = _scramble(mixed ^ np.ascontiguousarray(column).view(np.uint64))
    return mixed


def _scramble(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return 64-bit values with well mixed bits (finaliser of splitmix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)))


def candidates(
    count: int, sketch: Callable[[int], NDArray[np.uint64]]
) -> list[tuple[int, int]]:
    """Return the pairs of ``count`` recordings, in order, that share LEAST_SHARED_DIGESTS.

    ``sketch`` returns the digests (k,) of a recording. If there are many, they are processed in
    several passes of about DIGESTS_AT_ONCE, selected by their lower, well mixed bits.
    """
    common: Counter[tuple[int, int]] = Counter()
    turns = np.uint64(max(1, -(-count * SKETCH // DIGESTS_AT_ONCE)))
    for turn in range(int(turns)):
        sketches = [values[values % turns == np.uint64(turn)]
                    for values in (sketch(i) for i in range(count))]
        owners = np.repeat(np.arange(count), [len(values) for values in sketches])
        common.update(_sharing(np.concatenate([np.empty(0, np.uint64), *sketches]), owners))
    return sorted(pair for pair, number in common.items() if number >= LEAST_SHARED_DIGESTS)


def _sharing(values: NDArray[np.uint64], owners: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the pairs of owners, in order, of every value that occurs more than once."""
    order = np.argsort(values, kind='stable')
    values, owners = values[order], owners[order]
    for ahead in range(1, len(values)):
        same = values[ahead:] == values[:-ahead]
        if not same.any():
            break
        yield from zip(owners[:-ahead][same].tolist(), owners[ahead:][same].tolist(), strict=True)


def shared_share(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> float:
    """Return the share of the samples of ``second`` (k,) that also occur in ``first`` (k,)."""
    bound = min([one[-1] for one in (first, second) if len(one) == SKETCH], default=None)
    if bound is not None:
        first, second = (one[one <= bound] for one in (first, second))
    common = int(np.isin(second, first, assume_unique=True).sum())
    return common / len(second) if common >= LEAST_SHARED_DIGESTS else 0.0
