"""Raw messages of an mcap file, also of one that was never closed.

The file is read once, from its first byte to its last, never by its index: so a file cut off by a
crash gives everything up to the cut. All that the format offers is held against what was read:
checksums of chunks, data and summary, indices and statistics. A chunk whose checksum is wrong is
left out. Source: MCAP format specification, version 0.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import open_regular
from robot_dynid.io.cdr import MESSAGE_BYTES, Batch, ByteArray
from robot_dynid.io.compressed import PIECE, RATIO, Damaged, budget, unpacked
from robot_dynid.types import DAMAGE

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
ATTACHMENT, STATISTICS, METADATA, SUMMARY_OFFSET, DATA_END = 9, 11, 12, 14, 15
#: records of the summary, which cannot stand among the data
SUMMARY = (CHUNK_INDEX, 10, STATISTICS, 13, SUMMARY_OFFSET)
_RECORD = struct.Struct('<BQ')
_MESSAGE = struct.Struct('<BQHIQQ')
FOOTER_BYTES = 20
#: largest chunk once unpacked [bytes]; rosbag2 closes one at 768 kB unless a message is larger
CHUNK_BYTES = 1 << 27
#: largest other record that is looked into [bytes]
RECORD_BYTES = 1 << 24
#: longest name of a topic or type
NAME = 1000
#: topics with joint states
TOPICS = 256
#: messages that are handed on together
BATCH = 16384
#: sentences about damage; what is more is counted only
SENTENCES = 40
#: channel, received [ns], place, bytes of the message: place of its record in a chunk, or its own
Row = tuple[int, int, int, int]


@dataclass
class Contents:
    """Contents of storage files, as far as they were read.

    ``topics`` type by topic, ``findings`` sentences (those about damage begin with DAMAGE),
    ``counts`` messages by topic that was read, ``messages`` those of all topics, ``first`` and
    ``last`` receive time [ns] of any of them, None before there was one; ``whole``: every file was
    closed and read to its end; ``told`` counts damage.
    """

    topics: dict[str, str] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    first: int | None = None
    last: int | None = None
    whole: bool = True
    told: int = 0

    def damaged(self, what: str) -> None:
        """Note damage; beyond so many SENTENCES only that there is more."""
        self.told += 1
        if self.told <= SENTENCES:
            self.findings.append(f'{DAMAGE}{clipped(what, 400)}')
        elif self.told == SENTENCES + 1:
            self.findings.append(f'{DAMAGE}in more places than are listed here')

    def span(self, first: int, last: int) -> None:
        """Add messages that were received from ``first`` to ``last`` [ns]."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


def mcap_batches(
    path: Path, kinds: Collection[str], contents: Contents
) -> Iterator[tuple[str, Batch]]:
    """Yield (topic, messages) of all topics whose message type is in ``kinds``, in file order.

    Raises DataError when the file is no mcap file, or one that unpacks to far more than it is.
    """
    with open_regular(path, DataError) as file:
        try:
            yield from _Walk(file, path, kinds, contents).batches()
        except OSError as error:
            raise DataError(f'{path}: cannot be read ({error.strerror or error})') from None


class _Source:
    """The bytes of a file in order, and the checksum of all that were taken."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = file.seek(0, io.SEEK_END)
        self.closed = False  # ends as closed files do
        if self.size > 2 * len(MAGIC):
            file.seek(-len(MAGIC), io.SEEK_END)
            self.closed = file.read(len(MAGIC)) == MAGIC
        file.seek(0)
        self.at = 0
        self.checksum = 0

    @property
    def left(self) -> int:
        return self.size - self.at

    def take(self, size: int) -> bytes:
        data = self._file.read(size)
        self.at += len(data)
        self.checksum = zlib.crc32(data, self.checksum)
        if len(data) < size:
            raise Damaged(f'half a record at byte {self.at}')
        return data

    def skip(self, size: int) -> int:
        """Pass over bytes; return the checksum of them."""
        checksum = 0
        while size:
            data = self.take(min(size, PIECE))
            checksum = zlib.crc32(data, checksum)
            size -= len(data)
        return checksum


class _Part:
    """The next bytes of a source, as a file of their own."""

    def __init__(self, source: _Source, size: int) -> None:
        self._source = source
        self.left = size

    def read(self, size: int, /) -> bytes:
        taken = self._source.take(min(size, self.left))
        self.left -= len(taken)
        return taken

    def all(self, size: int) -> bytes:
        if size > self.left:
            raise Damaged('only half of it is there')
        return self.read(size)

    def skip(self) -> None:
        self._source.skip(self.left)
        self.left = 0


class _Body:
    """Fields of a record, one after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def numbers(self, form: str) -> tuple[int, ...]:
        try:
            found = struct.unpack_from(f'<{form}', self.data, self.at)
        except struct.error:
            raise Damaged('a record is too short') from None
        self.at += struct.calcsize(f'<{form}')
        return found

    def text(self) -> str:
        (size,) = self.numbers('I')
        raw = self.data[self.at:self.at + size]
        self.at += size
        if len(raw) < size:
            raise Damaged('a record is too short')
        return raw.decode('utf-8', 'replace')


class _Loose:
    """Messages outside of chunks, gathered until they are many."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._pieces: list[bytes] = []
        self._size = 0

    @property
    def full(self) -> bool:
        return len(self.rows) >= BATCH or self._size > RECORD_BYTES

    def add(self, channel: int, received: int, data: bytes) -> None:
        self.rows.append((channel, received, self._size, len(data)))
        self._pieces.append(data)
        self._size += len(data)

    def taken(self) -> tuple[ByteArray, list[Row]]:
        """Return the bytes and rows so far, and begin anew."""
        whole, rows = np.frombuffer(b''.join(self._pieces), np.uint8), self.rows
        self.rows, self._pieces, self._size = [], [], 0
        return whole, rows


@dataclass(eq=False)
class _Chunk:
    """Messages of a chunk by channel (k, 2), received and place in the chunk.

    ``indexed`` is how many of them the indices behind it name, None where there are none.
    """

    place: int
    messages: dict[int, list[NDArray[np.uint64]]] = field(default_factory=dict)
    times: tuple[int, int] = (1 << 64, 0)
    count: int = 0
    sound: bool = True
    indexed: int | None = None


class _Walk:
    """State of one pass over a file."""

    def __init__(
        self, file: BinaryIO, path: Path, kinds: Collection[str], contents: Contents
    ) -> None:
        self.source = _Source(file)
        self.path = path
        self.kinds = kinds
        self.contents = contents
        self.types: dict[int, str] = {}
        self.channels: dict[int, tuple[str, str]] = {}  # topic and type
        self.names: dict[int, str] = {}  # topics of the channels of the wanted types
        self.counts: Counter[int] = Counter()
        self.times = (1 << 64, 0)
        self.chunks: list[int] = []
        self.chunk: _Chunk | None = None  # the last one, whose index comes behind it
        self.budget = budget(self.source.size)
        self.unknown = 0
        self.before = contents.told

    def batches(self) -> Iterator[tuple[str, Batch]]:
        """Yield all messages, then hold what the file says about itself against them."""
        try:
            start = self.source.take(len(MAGIC))
        except Damaged:
            start = b''
        if start != MAGIC:
            raise DataError(f'{self.path}: is empty or no mcap file (its first bytes are wrong)')
        try:
            yield from self._data()
        except Damaged as damage:
            self.contents.whole = False
            words = f'cut off or damaged ({damage}); what lies before was read'
            if self.source.closed:
                self._tell(words)
            else:
                self.contents.findings.append(f'{self.path.name}: {words}')
        for channel, topic in self.names.items():
            self.contents.counts[topic] += self.counts[channel]
        if self.counts:
            self.contents.messages += sum(self.counts.values())
            self.contents.span(*self.times)
        if self.unknown:
            self.contents.findings.append(
                f'{self.path.name}: {self.unknown} records of unknown kinds or of more than '
                f'{RECORD_BYTES} bytes were not looked into')
        if self.counts.keys() - self.channels.keys():
            self._tell('holds messages of topics that it does not name')

    def _tell(self, what: str) -> None:
        self.contents.damaged(f'{self.path.name}: {what}')

    def _data(self) -> Iterator[tuple[str, Batch]]:
        """Yield the messages of the data section; read the summary behind it."""
        loose = _Loose()
        try:
            yield from self._data_records(loose)
        except Damaged:
            yield from self._given(*loose.taken())
            raise

    def _data_records(self, loose: _Loose) -> Iterator[tuple[str, Batch]]:
        while self.source.left:
            place, before = self.source.at, self.source.checksum
            op, size = self._head()
            if op == MESSAGE:
                self._message(size, loose)
            if loose.rows and (op != MESSAGE or loose.full):
                yield from self._given(*loose.taken())
            if op == CHUNK:
                yield from self._chunk(place, size)
            elif op == DATA_END:
                self._data_end(size, before)
                self._summary()
                return
            elif op == FOOTER or op in SUMMARY or (op == HEADER and place > len(MAGIC)):
                raise Damaged(f'a record of kind {op} at byte {place}, where none can be')
            elif op != MESSAGE:
                self._other(op, size, place)
        yield from self._given(*loose.taken())
        self._indexed()
        self.contents.whole = False
        self.contents.findings.append(
            f'{self.path.name}: was not closed (crash while recording?); '
            f'everything up to its last byte was read; robot-dynid repair finishes it')

    def _head(self) -> tuple[int, int]:
        """Return kind and size of the next record."""
        op, size = _RECORD.unpack(self.source.take(_RECORD.size))
        if op == 0 or (size > self.source.left and (op != CHUNK or self.source.closed)):
            raise Damaged(f'half a record at byte {self.source.at - _RECORD.size}')
        return op, size

    def _message(self, size: int, loose: _Loose) -> None:
        if size < 22:
            raise Damaged(f'half a record at byte {self.source.at - _RECORD.size}')
        channel, _, received, _ = struct.unpack('<HIQQ', self.source.take(22))
        wanted = channel in self.names and size - 22 <= MESSAGE_BYTES
        loose.add(channel, received, self.source.take(size - 22) if wanted else b'')
        if not wanted:
            self.source.skip(size - 22)

    def _given(
        self, data: ByteArray, rows: list[Row], chunk: _Chunk | None = None
    ) -> Iterator[tuple[str, Batch]]:
        """Count all messages; yield those of the wanted topics, sorted by channel."""
        if not rows:
            return
        table = np.array(rows, dtype=np.uint64)
        table = table[np.argsort(table[:, 0], kind='stable')]
        channels, starts, counts = np.unique(table[:, 0], return_index=True, return_counts=True)
        self.counts.update(dict(zip(channels.tolist(), counts.tolist(), strict=True)))
        low, high = int(table[:, 1].min()), int(table[:, 1].max())
        self.times = min(self.times[0], low), max(self.times[1], high)
        if chunk is not None:
            chunk.count += len(table)
            chunk.times = min(chunk.times[0], low), max(chunk.times[1], high)
        if high >= 1 << 63:
            self._tell('holds messages that were received beyond the end of time')
        for channel, start, count in zip(
                channels.tolist(), starts.tolist(), counts.tolist(), strict=True):
            part = table[start:start + count]
            if chunk is not None:
                chunk.messages.setdefault(channel, []).append(part[:, 1:3])
            if channel in self.names:
                known = part[part[:, 1] < 1 << 63].astype(np.int64)
                begin = known[:, 2] + (0 if chunk is None else _MESSAGE.size)
                yield self.names[channel], Batch(known[:, 1], data, begin, known[:, 3])

    def _chunk(self, place: int, size: int) -> Iterator[tuple[str, Batch]]:
        """Yield the messages of one chunk; later chunks count whatever happens in this one."""
        self._indexed()
        self.chunks.append(place)
        self.chunk = chunk = _Chunk(place)
        part = _Part(self.source, min(size, self.source.left))
        cut = size > part.left  # at the end of a file that was not closed
        data = np.empty(0, np.uint8)
        try:
            start, end, checksum, data = self._unpacked(part, size, cut)
            if not cut and checksum and checksum != zlib.crc32(data.data):
                chunk.sound = False
                raise Damaged('its checksum is wrong, its messages were left out')
            yield from self._records(data, chunk)
            if not cut and chunk.count and (start, end) != chunk.times:
                raise Damaged('its messages were received at other times than it says')
        except Damaged as damage:
            if not cut:
                self._tell(f'chunk at byte {place} is damaged: {damage}')
            if not chunk.sound:
                self._announced(data)
            chunk.sound = False
        part.skip()
        if cut:
            raise Damaged(f'half a record at byte {place}')

    def _unpacked(self, part: _Part, size: int, cut: bool) -> tuple[int, int, int, ByteArray]:
        """Return times of start and end [ns], checksum (0: none) and records of a chunk."""
        start, end, claimed, checksum, name = struct.unpack('<QQQII', part.all(32))
        compression = part.all(min(name, 20)).decode('latin1')
        (packed,) = struct.unpack('<Q', part.all(8))
        if name > 20 or packed + 40 + name != size or (packed != claimed and not compression):
            raise Damaged('its sizes contradict each other, its messages were left out')
        if claimed > CHUNK_BYTES:
            raise Damaged(f'it claims {claimed} bytes, at most {CHUNK_BYTES} are read; record '
                          'again with smaller chunks')
        self.budget -= claimed
        if self.budget < 0:
            raise DataError(f'{self.path}: unpacks to more than {RATIO} times its size; is it a '
                            'recording?')
        data, at = np.empty(claimed, np.uint8), 0
        with suppress(Damaged) if cut else nullcontext():
            for piece in unpacked(part, compression, claimed):
                data[at:at + len(piece)] = np.frombuffer(piece, np.uint8)
                at += len(piece)
        if at < claimed and not cut:
            raise Damaged('it holds fewer bytes than it says, its messages were left out')
        return start, end, checksum, data[:at]

    def _records(self, data: ByteArray, chunk: _Chunk) -> Iterator[tuple[str, Batch]]:
        """Yield the messages among the records of a chunk, many at a time."""
        rows: list[Row] = []
        raw, at = memoryview(data.data), 0
        found: Damaged | None = None
        try:
            while at < len(raw):
                op, stop = _bounds(raw, at)
                if op == MESSAGE:
                    _, size, channel, _, received, _ = _MESSAGE.unpack_from(raw, at)
                    rows.append((channel, received, at, size - 22))
                    if len(rows) == BATCH:
                        yield from self._given(data, rows, chunk)
                        rows = []
                else:
                    self._definition(op, bytes(raw[at + 9:stop][:RECORD_BYTES]))
                at = stop
        except Damaged as damage:
            found = Damaged(f'{damage}; its messages before that were read')
        yield from self._given(data, rows, chunk)
        if found is not None:
            raise found

    def _announced(self, data: ByteArray) -> None:
        """Take the topics from a chunk whose messages are not used."""
        raw, at = memoryview(data.data), 0
        with suppress(Damaged):
            while at < len(raw):
                op, stop = _bounds(raw, at)
                self._definition(op, bytes(raw[at + 9:stop][:RECORD_BYTES]))
                at = stop

    def _other(self, op: int, size: int, place: int) -> None:
        """Take a record that is no message."""
        if op == ATTACHMENT and size >= 4:
            checksum = self.source.skip(size - 4)
            (stated,) = struct.unpack('<I', self.source.take(4))
            if stated and stated != checksum:
                self._tell(f'the checksum of the attachment at byte {place} is wrong')
        elif size > RECORD_BYTES or op > DATA_END:
            self.source.skip(size)
            self.unknown += 1
        else:
            self._definition(op, self.source.take(size))

    def _definition(self, op: int, data: bytes) -> None:
        """Take a record that names types, topics or the places of messages."""
        body = _Body(data)
        try:
            if op == SCHEMA:
                self._schema(body.numbers('H')[0], body.text())
            elif op == CHANNEL:
                channel, schema = body.numbers('HH')
                self._channel(channel, schema, body.text(), body.text())
            elif op == MESSAGE_INDEX:
                channel, size = body.numbers('HI')
                self._index(channel, size, data[6:])
            elif op == METADATA:
                body.text()
        except Damaged as damage:
            self._tell(str(damage))

    def _schema(self, schema: int, name: str) -> None:
        if len(name) > NAME:
            raise Damaged(f'a type has a name of more than {NAME} characters')
        if self.types.setdefault(schema, name) != name:
            raise Damaged(f'type {schema} is {self.types[schema]} and {name}')

    def _channel(self, channel: int, schema: int, topic: str, encoding: str) -> None:
        if len(topic) > NAME:
            raise Damaged(f'a topic has a name of more than {NAME} characters')
        if schema and schema not in self.types:
            raise Damaged(f'topic {clipped(topic)} has a type that is not described')
        kind = self.types.get(schema, 'unknown')
        if self.channels.setdefault(channel, (topic, kind)) != (topic, kind):
            raise Damaged(f'topic {clipped(self.channels[channel][0])} becomes {clipped(topic)}')
        self.contents.topics[topic] = kind
        if kind in self.kinds and encoding == 'cdr':
            self.names[channel] = topic
        elif kind in self.kinds:
            raise Damaged(f'topic {clipped(topic)} is encoded as {clipped(encoding)}, not as cdr, '
                          'and was not read')
        if len(self.names) > TOPICS:
            raise DataError(f'{self.path}: has more than {TOPICS} topics with joint states; '
                            'record those of one robot')

    def _index(self, channel: int, size: int, entries: bytes) -> None:
        """Hold one index against the messages of the chunk before it."""
        chunk = self.chunk
        if chunk is None:
            raise Damaged('an index stands before all messages')
        if not chunk.sound:
            return
        if size % 16 or size > len(entries):
            raise Damaged(f'an index of the chunk at byte {chunk.place} is damaged')
        stated = np.frombuffer(entries[:size], '<u8').reshape(-1, 2)
        chunk.indexed = (chunk.indexed or 0) + len(stated)
        found = np.concatenate([np.empty((0, 2), np.uint64), *chunk.messages.get(channel, ())])
        stated = stated[np.argsort(stated[:, 1], kind='stable')]
        if not np.array_equal(found, stated):
            raise Damaged(f'chunk at byte {chunk.place} is damaged: it has other messages than '
                          'its index')

    def _indexed(self) -> None:
        """Hold the indices of the last chunk against its messages."""
        chunk, self.chunk = self.chunk, None
        if chunk is not None and chunk.sound and chunk.indexed not in (None, chunk.count):
            self._tell(f'chunk at byte {chunk.place} is damaged: it has other messages than its '
                       'index')

    def _data_end(self, size: int, checksum: int) -> None:
        self._indexed()
        if size != 4:
            raise Damaged(f'half a record at byte {self.source.at}')
        (stated,) = struct.unpack('<I', self.source.take(4))
        if stated and stated != checksum:
            self._tell('the checksum of its data is wrong')

    def _summary(self) -> None:
        """Hold the summary against what was read."""
        source, start = self.source, self.source.at
        source.checksum = 0
        try:
            chunks = self._summary_records()
            place, _ = struct.unpack('<QQ', source.take(16))
            checksum = source.checksum
            (stated,) = struct.unpack('<I', source.take(4))
            if place and (place != start or (stated and stated != checksum)):
                raise Damaged('the checksum or place of its summary is wrong')
            if source.take(len(MAGIC)) != MAGIC or source.left:
                raise Damaged('its last bytes are wrong')
            if chunks and sorted(chunks) != self.chunks:
                raise Damaged('it has other chunks than its summary says')
        except Damaged as damage:
            if source.closed:
                self._tell(str(damage))
            else:
                self.contents.findings.append(
                    f'{self.path.name}: is cut off behind its last message ({damage})')

    def _summary_records(self) -> list[int]:
        """Read up to the fields of the footer; return the places of chunks by the summary."""
        chunks = []
        op, size = self._head()
        while op != FOOTER:
            data = self.source.take(size) if size <= RECORD_BYTES else b''
            self.source.skip(size - len(data))
            if op == STATISTICS:
                self._statistics(_Body(data))
            elif op == CHUNK_INDEX:
                chunks.append(_Body(data).numbers('QQQ')[2])
            elif op in (SCHEMA, CHANNEL):
                self._definition(op, data)
            op, size = self._head()
        if size != FOOTER_BYTES:
            raise Damaged('its footer has a wrong length')
        return chunks

    def _statistics(self, body: _Body) -> None:
        messages, _, _, _, _, chunks, first, last, size = body.numbers('QHIIIIQQI')
        if self.contents.told > self.before:
            return  # what is missing was said
        counts = {}
        for _ in range(size // 10):
            channel, count = body.numbers('HQ')
            counts[channel] = count
        read = sum(self.counts.values())
        if messages != read or chunks != len(self.chunks):
            raise Damaged(f'it has {read} messages in {len(self.chunks)} chunks, {messages} in '
                          f'{chunks} were written')
        if counts and +Counter(counts) != self.counts:
            raise Damaged('its topics have other numbers of messages than were written')
        if read and (first, last) != self.times:
            raise Damaged('its messages were received at other times than it says')


def _bounds(raw: memoryview, at: int) -> tuple[int, int]:
    """Return kind and end of the record that begins ``at`` in a chunk."""
    if at + 9 > len(raw):
        raise Damaged(f'half a record at its byte {at}')
    op, size = _RECORD.unpack_from(raw, at)
    if op == 0 or at + 9 + size > len(raw) or (op == MESSAGE and size < 22):
        raise Damaged(f'half a record at its byte {at}')
    return op, at + 9 + size
