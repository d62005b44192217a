"""Compressed recordings, unpacked piece by piece within a budget."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any, Protocol

from robot_dynid.errors import clipped
from robot_dynid.io.rosbags_compat import decompressors

#: bytes unpacked at a time
PIECE = 1 << 20
#: content may be so many times as large as the file that holds it, beyond FLOOR [bytes]
RATIO, FLOOR = 100, 1 << 26


class Packed(Protocol):
    """Compressed data, read from its beginning."""

    def read(self, size: int, /) -> bytes:
        """Return the next bytes, at most ``size``; empty at the end."""


class Damaged(Exception):
    """Data that cannot be what was written; the words say why."""


class TooLarge(Damaged):
    """Compressed data that unpacks to more than is allowed."""


def budget(size: int, floor: int = FLOOR) -> int:
    """Return the most bytes that a file of ``size`` bytes may unpack to."""
    return floor + RATIO * size


def unpacked(packed: Packed, compression: str, limit: int) -> Iterator[bytes]:
    """Yield the content of ``packed`` in pieces of at most PIECE bytes.

    ``compression`` is that of mcap: zstd, lz4, gz, or empty for none. Raises Damaged when it does
    not unpack, TooLarge where it has more than ``limit`` bytes.
    """
    done = 0
    try:
        with _opener(compression)(packed) as opened:
            while piece := opened.read(PIECE):
                done += len(piece)
                if done > limit:
                    break
                yield piece
    except Damaged:
        raise
    except Exception as error:  # the libraries have a family of errors each
        raise Damaged(f'it does not decompress ({clipped(str(error), 200)})') from None
    if done > limit:
        raise TooLarge(f'it unpacks to more than {limit} bytes')


def _opener(compression: str) -> Callable[[Any], Any]:
    known: dict[str, Callable[[Any], Any]] = {'': nullcontext, 'gz': gzip.open}
    if compression not in known:
        known |= decompressors()
    if compression not in known:
        raise Damaged(f'unknown compression {clipped(compression, 20)!r}')
    return known[compression]
