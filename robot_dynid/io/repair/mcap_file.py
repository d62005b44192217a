"""Finishes an mcap file that was never closed: what is whole is kept, index and summary are made.

Chunks are copied byte by byte; only one that is cut off or holds what cannot be kept is written
anew, without compression. Source: MCAP format specification, version 0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO, Protocol

from robot_dynid.errors import DataError
from robot_dynid.io.compressed import Damaged, unpacked
from robot_dynid.io.mcap import (
    ATTACHMENT,
    CHANNEL,
    CHUNK,
    CHUNK_BYTES,
    CHUNK_INDEX,
    DATA_END,
    FOOTER,
    FOOTER_BYTES,
    HEADER,
    MAGIC,
    MESSAGE,
    MESSAGE_INDEX,
    METADATA,
    SCHEMA,
    SENTENCES,
    STATISTICS,
    SUMMARY,
    SUMMARY_OFFSET,
)
from robot_dynid.io.repair.bag_information import StorageInformation, TopicInformation

ATTACHMENT_INDEX, METADATA_INDEX = 10, 13
#: where a message holds channel, and receive time behind channel and sequence
_HEAD, _MESSAGE = struct.Struct('<BQ'), struct.Struct('<HIQQ')
_CHUNK = struct.Struct('<QQQI')
Record = tuple[int, bytes]


class Output(Protocol):
    """A file that only grows."""

    def write(self, data: bytes, /) -> object:
        """Append."""


@dataclass
class _Out:
    """The new file: what was written is counted and summed up."""

    file: Output
    at: int = 0
    checksum: int = 0

    def write(self, data: bytes) -> None:
        self.file.write(data)
        self.at += len(data)
        self.checksum = zlib.crc32(data, self.checksum)

    def record(self, op: int, body: bytes) -> None:
        self.write(_HEAD.pack(op, len(body)) + body)


@dataclass
class _Chunk:
    """Records of a chunk: ``raw`` its body as it was, None where it has to be made anew."""

    records: list[Record]
    raw: bytes | None
    compression: bytes = b''


@dataclass
class _Finisher:
    """State of one pass over a file."""

    source: BinaryIO
    size: int
    out: _Out
    found: StorageInformation
    schemas: dict[int, tuple[str, bytes]] = field(default_factory=dict)
    channels: dict[int, bytes] = field(default_factory=dict)
    indices: dict[int, list[bytes]] = field(default_factory=lambda: {
        CHUNK_INDEX: [], ATTACHMENT_INDEX: [], METADATA_INDEX: []})

    def run(self) -> None:
        if self.source.read(len(MAGIC)) != MAGIC:
            raise DataError(f'{self.found.name}: is empty or no mcap file (its first bytes are '
                            'wrong)')
        self.out.write(MAGIC)
        for op, size, body in self._records():
            if op == CHUNK:
                self._chunk(body, size)
            elif op in (SCHEMA, CHANNEL):
                if self._defined(op, body):
                    self.out.record(op, body)
            elif op == MESSAGE:
                self._message(body)
            elif op in (ATTACHMENT, METADATA):
                self._listed(op, body)
            elif op != MESSAGE_INDEX:
                self.out.record(op, body)
        self._close()

    def _records(self) -> Iterator[tuple[int, int, bytes]]:
        """Yield kind, stated size and body of what lies before the summary.

        The last body is shorter than its size where the file is cut off.
        """
        while head := self.source.read(_HEAD.size):
            left = self.size - self.source.tell()
            if len(head) < _HEAD.size or head[0] == 0:
                self._lose(len(head) + left, 'the file is cut off inside of a record')
                return
            op, size = _HEAD.unpack(head)
            first = self.source.tell() == len(MAGIC) + _HEAD.size
            if op in (DATA_END, FOOTER, *SUMMARY) or (op == HEADER) != first:
                return
            if size > left and op != CHUNK:
                if op != MESSAGE_INDEX:  # which is made anew
                    self._lose(_HEAD.size + left, 'the file is cut off inside of a record')
                return
            yield op, size, self.source.read(min(size, left))

    def _lose(self, size: int, why: str) -> None:
        self.found.sound = False
        self.found.lost += size
        if len(self.found.findings) < SENTENCES:
            self.found.findings.append(f'{size} bytes are lost: {why}')

    def _chunk(self, body: bytes, size: int) -> None:
        try:
            chunk = self._opened(body, size)
        except Damaged as damage:
            self._lose(_HEAD.size + len(body), f'a chunk is damaged ({damage})')
            return
        known = [one for one in chunk.records if self._kept(*one)]
        if len(known) < len(chunk.records):
            lost = sum(_HEAD.size + len(body) for op, body in chunk.records) - sum(
                _HEAD.size + len(body) for op, body in known)
            self._lose(lost, 'messages of topics that are not named, or half a definition')
            chunk = _Chunk(known, None)
        if chunk.records:
            self._write_chunk(chunk)

    def _opened(self, body: bytes, size: int) -> _Chunk:
        """Return the records of a chunk, those that are whole where it is cut off."""
        cut = len(body) < size
        if len(body) < _CHUNK.size + 4:
            raise Damaged('only half of it is there')
        *_, claimed, checksum = _CHUNK.unpack_from(body)
        (name,) = struct.unpack_from('<I', body, _CHUNK.size)
        place = _CHUNK.size + 4 + name + 8
        if len(body) < place or claimed > CHUNK_BYTES:
            raise Damaged('only half of it is there, or it is too large')
        compression = body[_CHUNK.size + 4:place - 8]
        data = bytearray()
        try:
            for piece in unpacked(BytesIO(body[place:]), compression.decode('latin1'), claimed):
                data += piece
        except Damaged:
            if not cut:
                raise
        if not cut and (len(data) != claimed or (checksum and checksum != zlib.crc32(data))):
            raise Damaged('its length or its checksum is wrong')
        records, rest = _split(bytes(data))
        if cut or rest:
            self._lose(max(0, len(body) - sum(_HEAD.size + len(one) for _, one in records)),
                       'the last chunk is cut off')
        return _Chunk(records, None if cut or rest else body, compression)

    def _kept(self, op: int, body: bytes) -> bool:
        """Take a record of a chunk; return whether it can be kept."""
        if op in (SCHEMA, CHANNEL):
            return self._defined(op, body)
        if op == MESSAGE:
            return len(body) >= _MESSAGE.size and _MESSAGE.unpack_from(body)[0] in self.channels
        return True

    def _write_chunk(self, chunk: _Chunk) -> None:
        """Write a chunk, then the index of its messages."""
        index: dict[int, list[tuple[int, int]]] = {}
        at = 0
        for op, body in chunk.records:
            if op == MESSAGE:
                channel, _, received, _ = _MESSAGE.unpack_from(body)
                index.setdefault(channel, []).append((received, at))
                self.found.add(channel, received, body[_MESSAGE.size:_MESSAGE.size + 4])
            at += _HEAD.size + len(body)
        times = [received for rows in index.values() for received, _ in rows]
        span = (min(times), max(times)) if times else (0, 0)
        raw = chunk.raw
        if raw is None:
            data = b''.join(_HEAD.pack(op, len(body)) + body for op, body in chunk.records)
            chunk.compression = b''
            raw = _CHUNK.pack(*span, len(data), zlib.crc32(data)) + bytes(4) + \
                struct.pack('<Q', len(data)) + data
        place, packed = self.out.at, len(raw) - _CHUNK.size - 12 - len(chunk.compression)
        self.out.record(CHUNK, raw)
        behind, offsets = self.out.at, b''
        for channel, rows in index.items():
            offsets += struct.pack('<HQ', channel, self.out.at)
            entries = b''.join(struct.pack('<QQ', *row) for row in rows)
            self.out.record(MESSAGE_INDEX, struct.pack('<HI', channel, len(entries)) + entries)
        self.indices[CHUNK_INDEX].append(
            struct.pack('<QQQQ', *span, place, behind - place) + _sized(offsets)
            + struct.pack('<Q', self.out.at - behind) + _sized(chunk.compression)
            + struct.pack('<QQ', packed, at))

    def _message(self, body: bytes) -> None:
        """Copy a message that stands outside of chunks."""
        channel = _MESSAGE.unpack_from(body)[0] if len(body) >= _MESSAGE.size else -1
        if channel not in self.channels:
            self._lose(_HEAD.size + len(body), 'a message of a topic that is not named')
            return
        received = _MESSAGE.unpack_from(body)[2]
        self.found.add(channel, received, body[_MESSAGE.size:_MESSAGE.size + 4])
        self.out.record(MESSAGE, body)

    def _listed(self, op: int, body: bytes) -> None:
        """Copy an attachment or metadata, and note its place."""
        place = struct.pack('<QQ', self.out.at, _HEAD.size + len(body))
        try:
            if op == METADATA:
                entry = place + _sized(_text(body, 0)[0])
                self.indices[METADATA_INDEX].append(entry)
            else:
                name, after = _text(body, 16)
                media, after = _text(body, after)
                self.indices[ATTACHMENT_INDEX].append(
                    place + body[:16] + body[after:after + 8] + _sized(name) + _sized(media))
        except Damaged as damage:
            self._lose(_HEAD.size + len(body), str(damage))
            return
        self.out.record(op, body)

    def _defined(self, op: int, body: bytes) -> bool:
        """Take a type or a topic; return whether it is whole."""
        try:
            (number,) = struct.unpack_from('<H', body)
            if op == SCHEMA:
                self.schemas[number] = _text(body, 2)[0].decode('utf-8', 'replace'), body
                return True
            (schema,) = struct.unpack_from('<H', body, 2)
            topic, after = _text(body, 4)
            encoding, after = _text(body, after)
            more = _texts(_text(body, after)[0])
        except (Damaged, struct.error):
            return False
        if schema and schema not in self.schemas:
            return False
        self.channels[number] = body
        kind = self.schemas[schema][0] if schema else 'unknown'
        self.found.topics.setdefault(number, TopicInformation(
            topic.decode('utf-8', 'replace'), kind, encoding.decode('utf-8', 'replace'),
            more.get('offered_qos_profiles', ''), more.get('topic_type_hash', '')))
        return True

    def _close(self) -> None:
        """Write the end of the data, the summary and the footer."""
        out, found = self.out, self.found
        out.record(DATA_END, struct.pack('<I', out.checksum))
        counts = b''.join(struct.pack('<HQ', channel, topic.messages)
                          for channel, topic in found.topics.items() if topic.messages)
        listed = {op: len(entries) for op, entries in self.indices.items()}
        statistics = struct.pack(
            '<QHIIIIQQ', found.messages, len(self.schemas), len(self.channels),
            listed[ATTACHMENT_INDEX], listed[METADATA_INDEX], listed[CHUNK_INDEX],
            found.first or 0, found.last or 0) + _sized(counts)
        start, out.checksum = out.at, 0
        offsets = []
        for op, bodies in ((SCHEMA, [body for _, body in self.schemas.values()]),
                           (CHANNEL, list(self.channels.values())), (STATISTICS, [statistics]),
                           *self.indices.items()):
            begin = out.at
            for body in bodies:
                out.record(op, body)
            if bodies:
                offsets.append(struct.pack('<BQQ', op, begin, out.at - begin))
        places = out.at
        for offset in offsets:
            out.record(SUMMARY_OFFSET, offset)
        out.write(_HEAD.pack(FOOTER, FOOTER_BYTES) + struct.pack('<QQ', start, places))
        out.write(struct.pack('<I', out.checksum) + MAGIC)


def finish_mcap(source: BinaryIO, name: str, out: Output) -> StorageInformation:
    """Copy all that is whole of an mcap file to ``out``, with index and summary, and close it.

    Every message that can be read is kept. Raises DataError when it is no mcap file.
    """
    size = source.seek(0, 2)
    source.seek(0)
    found = StorageInformation(name)
    _Finisher(source, size, _Out(out), found).run()
    return found


def _split(data: bytes) -> tuple[list[Record], int]:
    """Return the whole records of a chunk, and the number of bytes behind them."""
    records, at = [], 0
    while at + _HEAD.size <= len(data):
        op, size = _HEAD.unpack_from(data, at)
        stop = at + _HEAD.size + size
        if op == 0 or stop > len(data):
            break
        records.append((op, data[at + _HEAD.size:stop]))
        at = stop
    return records, len(data) - at


def _sized(data: bytes) -> bytes:
    return struct.pack('<I', len(data)) + data


def _text(body: bytes, at: int) -> tuple[bytes, int]:
    """Return the bytes behind a length, and where they end."""
    if at + 4 > len(body):
        raise Damaged('a record is too short')
    (size,) = struct.unpack_from('<I', body, at)
    if at + 4 + size > len(body):
        raise Damaged('a record is too short')
    return body[at + 4:at + 4 + size], at + 4 + size


def _texts(body: bytes) -> dict[str, str]:
    """Return the pairs of texts of a channel."""
    found, at = {}, 0
    while at < len(body):
        key, at = _text(body, at)
        value, at = _text(body, at)
        found[key.decode('utf-8', 'replace')] = value.decode('utf-8', 'replace')
    return found
