"""Raw messages of an mcap file, also of one that was never closed.

Only the data section is walked, never the index, so a file cut off by a crash gives everything up
to the cut. Source: MCAP format specification, version 0.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.io.cdr import Batch
from robot_dynid.io.rosbags_compat import decompressors

MAGIC = b'\x89MCAP0\r\n'
FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, DATA_END = 2, 3, 4, 5, 6, 15
_RECORD = struct.Struct('<BQ')
_MESSAGE = struct.Struct('<BQHIQQ')
BATCH = 4096  # messages outside chunks that are handed on together
Buffer = bytes | mmap.mmap
Row = tuple[int, int, int, int]  # channel, received [ns], start, size


class _Damaged(Exception):
    """A record reaches beyond the end, or makes no sense."""


@dataclass
class Contents:
    """Contents of a storage file, as far as it was read: type by topic, damage as sentences."""

    topics: dict[str, str] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)


def mcap_batches(
    path: Path, kinds: Collection[str], contents: Contents
) -> Iterator[tuple[str, Batch]]:
    """Yield (topic, messages) of all topics whose message type is in ``kinds``, in file order.

    Raises DataError when the file is no mcap file.
    """
    with path.open('rb') as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise DataError(f'{path}: is empty or no mcap file (its first bytes are wrong)')
        walk = _Walk(path.name, kinds, contents)
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as whole:
            try:
                for buffer, rows in walk.file(whole):
                    yield from walk.batches(buffer, rows)
            except _Damaged as damage:
                contents.findings.append(
                    f'{path.name}: cut off or damaged ({damage}); what lies before was read'
                )
            else:
                if not walk.closed:
                    contents.findings.append(
                        f'{path.name}: was not closed (crash while recording?); '
                        f'everything up to its last byte was read'
                    )


class _Walk:
    """State of one pass over a file."""

    def __init__(self, name: str, kinds: Collection[str], contents: Contents) -> None:
        self.name = name
        self.kinds = kinds
        self.contents = contents
        self.types: dict[int, str] = {}
        self.names: dict[int, str] = {}  # channels of the wanted types
        self.closed = False

    def batches(self, buffer: Buffer, rows: list[Row]) -> Iterator[tuple[str, Batch]]:
        """Sort ``rows`` by channel."""
        if not rows:
            return
        table = np.array(rows, dtype=np.int64)
        low, high = int(table[0, 2]), int(table[-1, 2] + table[-1, 3])
        raw = np.frombuffer(buffer[low:high], np.uint8)  # a copy: nothing keeps the file mapped
        for channel in np.unique(table[:, 0]):
            _, received, starts, sizes = table[table[:, 0] == channel].T
            yield self.names[int(channel)], Batch(received, raw, starts - low, sizes)

    def file(self, whole: mmap.mmap) -> Iterator[tuple[Buffer, list[Row]]]:
        """Yield (buffer, messages) for every chunk and for stretches without chunks."""
        at, rows = len(MAGIC), list[Row]()
        damage: _Damaged | None = None
        while at < len(whole) and not self.closed and damage is None:
            try:
                op, stop = self._bounds(whole, at, len(whole))
            except _Damaged as error:
                damage, op, stop = error, whole[at], len(whole)
            if op == CHUNK:
                yield from self._chunk(whole[at + 9:stop], at)  # half a chunk gives what it has
            elif op in (DATA_END, FOOTER):
                self.closed = True
            elif damage is None:
                self._record(whole, at, op, stop, rows)
            at = stop
            if len(rows) >= BATCH:
                yield whole, rows
                rows = []
        yield whole, rows
        if damage is not None:
            raise damage

    def _chunk(self, body: bytes, place: int) -> Iterator[tuple[Buffer, list[Row]]]:
        """Yield the messages of one chunk up to its first damage; later chunks still count."""
        rows: list[Row] = []
        data = b''
        at = 0
        try:
            data, checksum = _unpacked(body)
            if checksum and checksum != zlib.crc32(data):
                self._tell(place, 'its checksum is wrong, numbers may be too')
            while at < len(data):
                op, stop = self._bounds(data, at, len(data))
                self._record(data, at, op, stop, rows)
                at = stop
        except _Damaged as damage:
            self._tell(place, f'{damage}; its messages before that were read')
        yield data, rows

    def _tell(self, place: int, what: str) -> None:
        self.contents.findings.append(f'{self.name}: chunk at byte {place} is damaged: {what}')

    @staticmethod
    def _bounds(buffer: Buffer, at: int, end: int) -> tuple[int, int]:
        if at + 9 > end:
            raise _Damaged(f'half a record at byte {at}')
        op, size = _RECORD.unpack_from(buffer, at)
        if op == 0 or at + 9 + size > end or (op == MESSAGE and size < 22):
            raise _Damaged(f'half a record at byte {at}')
        return op, at + 9 + size

    def _record(self, buffer: Buffer, at: int, op: int, stop: int, rows: list[Row]) -> None:
        if op == MESSAGE:
            _, _, channel, _, received, _ = _MESSAGE.unpack_from(buffer, at)
            if channel in self.names and received < 1 << 63:
                rows.append((channel, received, at + 31, stop - at - 31))
        elif op == SCHEMA:
            body = buffer[at + 9:stop]
            self.types[int.from_bytes(body[:2], 'little')] = _string(body, 2)[0]
        elif op == CHANNEL:
            body = buffer[at + 9:stop]
            if len(body) < 4:
                raise _Damaged(f'half a record at byte {at}')
            channel, schema = struct.unpack_from('<HH', body)
            topic, after = _string(body, 4)
            kind = self.types.get(schema, 'unknown')
            self.contents.topics[topic] = kind
            if kind in self.kinds and _string(body, after)[0] == 'cdr':
                self.names[channel] = topic


def _string(body: bytes, at: int) -> tuple[str, int]:
    size = int.from_bytes(body[at:at + 4], 'little')
    return body[at + 4:at + 4 + size].decode('utf-8', 'replace'), at + 4 + size


def _unpacked(body: bytes) -> tuple[bytes, int]:
    """Return the records of a chunk and their checksum (0: none given)."""
    if len(body) < 40:
        raise _Damaged('only half of it is there')
    checksum, name_size = struct.unpack_from('<II', body, 24)
    compression = body[32:32 + name_size][:20].decode('latin1')
    data = body[40 + name_size:]
    try:
        unpack = decompressors()[compression]
    except KeyError:
        raise _Damaged(f'unknown compression {compression!r}') from None
    try:
        return unpack(data, len(data)), checksum
    except Exception as error:  # two libraries, each with its own family of errors
        raise _Damaged(f'it does not decompress: {error}') from None
