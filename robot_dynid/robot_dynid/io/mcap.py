"""Read raw messages of an mcap file, also of one that was never closed.

The file is read sequentially without its index, so a truncated file yields everything up to the
cut. The mcap library parses the records; the checksums of chunks, data, summary and attachments
and the message counts are verified. Chunks with a wrong checksum are left out. Source: MCAP format
specification, version 0.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import RATIO, Damaged, budget, open_regular, unpacked
from robot_dynid.io.cdr import Batch
from robot_dynid.io.messages.definitions import Definitions
from robot_dynid.io.messages.fields import ByteArray
from robot_dynid.types import DAMAGE

if TYPE_CHECKING:
    from mcap.records import Channel, Chunk, McapRecord

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, MESSAGE_INDEX, CHUNK_INDEX = range(1, 9)
ATTACHMENT, STATISTICS, METADATA, DATA_END = 9, 11, 12, 15
#: records of the summary, not allowed in the data section
SUMMARY = (CHUNK_INDEX, 10, STATISTICS, 13, 14)
RECORD, MESSAGE_HEAD = struct.Struct('<BQ'), struct.Struct('<BQHIQQ')
#: bytes of a message record before its data, without kind and length
MESSAGE_FIELDS = MESSAGE_HEAD.size - RECORD.size
#: largest chunk once unpacked [bytes]; rosbag2 closes one at 768 kB unless a message is larger
CHUNK_BYTES = 1 << 27
#: largest other record that is parsed [bytes]
RECORD_BYTES = 1 << 24
PIECE = 1 << 20  # bytes that are skipped at a time
#: longest name of a topic or type, most topics with joint states
NAME, TOPICS = 1000, 256
#: limit of sentences about damage and losses; more is only counted
SENTENCES = 40
#: messages that are handed on together
BATCH = 16384
ROS1 = 'ros1'  # encoding of messages of ROS 1
LAST_STAMP = (1 << 63) - 1  # ns, largest signed 64-bit number; larger ones are damage


@dataclass
class Contents:
    """Contents of storage files, as far as they were read.

    ``topics`` type by topic, ``findings`` sentences (about damage: starting with DAMAGE),
    ``counts`` messages read by topic, ``messages`` their total, ``first`` and ``last`` receive
    time [ns], None before any; ``whole``: every file was closed and read completely; ``damages``
    counts damage, ``lost`` the bytes lost, described in ``losses``; ``compression`` of the first
    chunk of an mcap file; ``definitions`` of its types. ``wanted`` are topics to read whatever
    their type.
    """

    topics: dict[str, str] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    messages: int = 0
    first: int | None = None
    last: int | None = None
    whole: bool = True
    damages: int = 0
    lost: int = 0
    losses: list[str] = field(default_factory=list)
    compression: str = ''
    definitions: Definitions = field(default_factory=Definitions)
    wanted: frozenset[str] = frozenset()

    def wants(self, topic: str, kind: str, kinds: Collection[str] | None) -> bool:
        """Return True if a topic with messages of ``kinds`` is to be read, None: all."""
        return kinds is None or kind in kinds or topic in self.wanted

    def damaged(self, what: str) -> None:
        """Report damage, up to SENTENCES times."""
        self.damages += 1
        if self.damages <= SENTENCES:
            self.findings.append(f'{DAMAGE}{clipped(what, 400)}')
        elif self.damages == SENTENCES + 1:
            self.findings.append(f'{DAMAGE}in more places than are listed here')

    def lose(self, size: int, why: str) -> None:
        """Count bytes that cannot be read."""
        self.lost += size
        if len(self.losses) < SENTENCES:
            self.losses.append(f'{size} bytes are lost: {why}')

    def span(self, first: int, last: int) -> None:
        """Extend the time range to messages received from ``first`` to ``last`` [ns]."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


def mcap_batches(
    path: Path, kinds: Collection[str] | None, contents: Contents,
    take: Callable[[Any], None] | None = None,
) -> Iterator[tuple[str, Batch]]:
    """Yield (topic, messages) of all topics whose message type is in ``kinds``, in file order.

    None: of all topics. Types, topics, attachments and metadata are passed to ``take`` as records
    of the mcap library. The MESSAGE_FIELDS precede the data of each message in the buffer.

    Raises DataError if it is not an mcap file, or unpacks to far more than its size.
    """
    with open_regular(path, DataError) as file:
        try:
            yield from _Reading(file, path, kinds, contents, take).batches()
        except OSError as error:
            raise DataError(f'{path}: cannot be read ({error.strerror or error})') from None


class Records:
    """Yield kind and body of every record; messages outside of chunks come in batches.

    ``closed``: the file ends as closed files do. ``before`` is the checksum of the bytes before
    the present record. The body of an oversized record is empty and ``skipped`` is set; a
    truncated last chunk is returned as far as it goes, and ``cut`` is set. Raises Damaged at the
    end if the file ends inside another record.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self.size = file.seek(0, io.SEEK_END)
        file.seek(max(self.size - len(MAGIC), 0))
        self.closed = self.size > 2 * len(MAGIC) and file.read() == MAGIC
        file.seek(0)
        self.at = self.checksum = self.before = self.place = self.op = 0
        self.skipped = self.cut = False
        self.damage = ''
        if self._take(len(MAGIC)) != MAGIC:
            raise DataError(f'{path}: is empty or not an mcap file')

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        loose = bytearray()
        for op, body in self._each():
            if op == MESSAGE:
                loose += RECORD.pack(op, len(body)) + body
            if loose and (op != MESSAGE or len(loose) > RECORD_BYTES):
                yield MESSAGE, bytes(loose)
                loose.clear()
            if op != MESSAGE:
                yield op, body
        if loose:
            yield MESSAGE, bytes(loose)
        if self.damage:
            raise Damaged(self.damage)

    def _each(self) -> Iterator[tuple[int, bytes]]:
        end = self.size - len(MAGIC) * self.closed
        while self.at < end:
            self.place, self.before = self.at, self.checksum
            head = self._take(RECORD.size)
            op, size = RECORD.unpack(head) if len(head) == RECORD.size else (0, 0)
            self.op, self.cut = op, size > end - self.at
            if self.cut or op == 0:
                self.damage = f'half a record at byte {self.place}'
            if op == 0 or (self.cut and (op != CHUNK or self.closed)):
                return
            self.skipped = size > (2 * CHUNK_BYTES if op == CHUNK else RECORD_BYTES)
            size = min(size, end - self.at)
            while self.skipped and size:
                size -= len(self._take(min(size, PIECE)))
            yield op, self._take(size)

    def _take(self, size: int) -> bytes:
        data = self._file.read(size)
        self.at += len(data)
        self.checksum = zlib.crc32(data, self.checksum)
        return data


def parsed(record: type[McapRecord], body: bytes) -> Any:
    """Return the fields of a record; raises Damaged if it is too short or its text is invalid."""
    from mcap.data_stream import ReadDataStream
    from mcap.exceptions import McapError

    try:
        return record.read(ReadDataStream(io.BytesIO(body)))  # type: ignore[attr-defined]
    except (struct.error, McapError, UnicodeDecodeError, OverflowError):
        raise Damaged('a record is too short') from None


def chunk_content(chunk: Chunk, cut: bool) -> tuple[bytes, bool]:
    """Return the records of a chunk, as far as they go if it is ``cut``.

    And whether its checksum is right. Raises Damaged if its sizes are inconsistent.
    """
    claimed, data = chunk.uncompressed_size, chunk.data
    if claimed > CHUNK_BYTES:
        raise Damaged(f'it claims {claimed} bytes, at most {CHUNK_BYTES} are read; record again '
                      'with smaller chunks')
    if chunk.compression:
        content = bytearray()
        try:
            for piece in unpacked(io.BytesIO(data), chunk.compression, claimed):
                content += piece
        except Damaged:
            if not cut:
                raise
        data = bytes(content)
    if not cut and len(data) != claimed:
        raise Damaged('its size differs from the stated one, its messages were left out')
    return data, cut or not chunk.uncompressed_crc or chunk.uncompressed_crc == zlib.crc32(data)


def split(raw: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield kind, place and end of every record of a chunk.

    Raises Damaged where half a record follows.
    """
    at, end = 0, len(raw)
    while at < end:
        op, size = RECORD.unpack_from(raw, at) if at + RECORD.size <= end else (0, 0)
        stop = at + RECORD.size + size
        if op == 0 or stop > end or (op == MESSAGE and size < MESSAGE_FIELDS):
            raise Damaged(f'half a record at its byte {at}')
        yield op, at, stop
        at = stop


class _Reading:
    """State of one pass over a file."""

    def __init__(
        self, file: BinaryIO, path: Path, kinds: Collection[str] | None, contents: Contents,
        take: Callable[[Any], None] | None,
    ) -> None:
        self.records = Records(file, path)
        self.path, self.kinds, self.contents = path, kinds, contents
        self.take = take or (lambda record: None)
        self.types: dict[int, str] = {}
        self.channels: dict[int, tuple[str, str]] = {}  # topic and type
        self.names: dict[int, str] = {}  # topics of the channels of the wanted types
        self.counts: Counter[int] = Counter()
        self.times = (1 << 64, 0)
        self.chunks = self.unknown = 0
        self.rest = 0  # bytes after the last complete record of a chunk
        #: receive time and place of the messages of the last chunk by channel, (k, 2) each
        self.places: dict[int, NDArray[np.uint64]] = {}
        self.ended = False  # True after the data section
        self.budget = budget(self.records.size)
        self.before = contents.damages

    def batches(self) -> Iterator[tuple[str, Batch]]:
        """Yield all messages, then compare their number with the stated one."""
        records = self.records
        try:
            for op, body in records:
                if op in (MESSAGE, CHUNK) and not self.ended:
                    yield from (self._messages if op == MESSAGE else self._chunk)(body)
                elif self.ended:
                    self._summary(op, body)
                else:
                    self._other(op, body)
            if self.ended and not records.closed:
                raise Damaged('its last bytes are wrong')
            if not self.ended:
                self.contents.findings.append(
                    f'{self.path.name}: was not closed (crash while recording?) and was read up '
                    'to its last byte; robot-dynid repair finishes it')
        except Damaged as damage:
            if not self.ended and records.op not in (*SUMMARY, HEADER, FOOTER, CHUNK,
                                                     MESSAGE_INDEX):
                self.contents.lose(records.size - records.place,
                                   'the file is cut off inside of a record')
            words = f'is cut off behind its last message ({damage})' if self.ended else \
                f'cut off or damaged ({damage}); what lies before was read'
            if records.closed:
                self._note(words)
            else:
                self.contents.findings.append(f'{self.path.name}: {words}')
        self.contents.whole &= self.ended and records.closed
        self._count()

    def _count(self) -> None:
        """Report what was read."""
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
            self._note('holds messages of topics that it does not name')

    def _note(self, what: str) -> None:
        self.contents.damaged(f'{self.path.name}: {what}')

    def _chunk(self, body: bytes) -> Iterator[tuple[str, Batch]]:
        """Yield the messages of one chunk; damage does not affect later chunks."""
        self.chunks += 1
        place, cut = self.records.place, self.records.cut
        self.places, self.rest = {}, 0
        try:
            data = self._content(body)
        except Damaged as damage:
            self.contents.lose(self.records.at - place, f'a chunk is damaged: {damage}')
            if not cut:
                self._note(f'chunk at byte {place} is damaged: {damage}')
            return
        try:
            yield from self._messages(data)
        except Damaged as damage:
            self.places = {}
            if not cut:
                self._note(f'chunk at byte {place} is damaged: {damage}')
        if cut or self.rest:
            self.contents.lose(max(self.rest, 1), 'a chunk is cut off')

    def _content(self, body: bytes) -> bytes:
        """Return the records of a chunk. Raises Damaged."""
        from mcap.records import Chunk

        if self.records.skipped:
            raise Damaged(f'it has more than {2 * CHUNK_BYTES} bytes')
        chunk = parsed(Chunk, body)
        self.contents.compression = self.contents.compression or chunk.compression
        data, sound = chunk_content(chunk, self.records.cut)
        self.budget -= len(data)
        if self.budget < 0:
            raise DataError(f'{self.path}: unpacks to more than {RATIO} times its size; is it '
                            'a recording?')
        if not sound:
            with suppress(Damaged):  # takes the topics it names
                list(self._messages(data, left_out=True))
            raise Damaged('its checksum is wrong, its messages were left out')
        return data

    def _messages(self, raw: bytes, left_out: bool = False) -> Iterator[tuple[str, Batch]]:
        """Yield the messages among the records of a chunk, or outside of chunks."""
        rows: list[tuple[int, int, int, int]] = []  # channel, received, place, bytes of the data
        damage, stop = '', 0
        try:
            for op, at, stop in split(raw):
                if op == MESSAGE:
                    _, size, channel, _, received, _ = MESSAGE_HEAD.unpack_from(raw, at)
                    rows.append((channel, received, at + MESSAGE_HEAD.size, size - MESSAGE_FIELDS))
                else:
                    self._definition(op, raw[at + RECORD.size:stop][:RECORD_BYTES])
        except Damaged as error:
            damage = f'{error}; its messages before that were read'
            self.rest = len(raw) - stop
        if rows and not left_out:
            yield from self._sorted(np.array(rows, np.uint64), np.frombuffer(raw, np.uint8))
        if damage:
            raise Damaged(damage)

    def _sorted(
        self, table: NDArray[np.uint64], data: ByteArray
    ) -> Iterator[tuple[str, Batch]]:
        """Count all messages; yield those of the wanted topics by channel, BATCH at a time."""
        low, high = int(table[:, 1].min()), int(table[:, 1].max())
        self.times = min(self.times[0], low), max(self.times[1], high)
        if high > LAST_STAMP:
            self._note('holds messages that were received beyond the end of time')
        for channel in np.unique(table[:, 0]).tolist():
            part = table[table[:, 0] == channel]
            self.counts[channel] += len(part)
            self.places[channel] = part[:, 1:3] - np.array([0, MESSAGE_HEAD.size], np.uint64)
            if channel not in self.channels:
                self.contents.lose(int(part[:, 3].sum()) + MESSAGE_HEAD.size * len(part),
                                   'messages of a topic that is not named')
            sound = part[:, 1] <= LAST_STAMP
            if not sound.all():
                self.contents.lose(int((part[~sound, 3] + MESSAGE_HEAD.size).sum()),
                                   'messages that were received beyond the end of time')
            valid = part[sound].astype(np.int64)
            for first in range(0, len(valid) if channel in self.names else 0, BATCH):
                _, received, starts, sizes = valid[first:first + BATCH].T
                yield self.names[channel], Batch(received, data, starts, sizes)

    def _other(self, op: int, body: bytes) -> None:
        """Process a record that is no message."""
        from mcap.records import Attachment, Metadata

        place = self.records.place
        if op == FOOTER or op in SUMMARY or (op == HEADER and place > len(MAGIC)):
            raise Damaged(f'a record of kind {op} at byte {place}, where none can be')
        if op == DATA_END:
            self.ended = True
            stated = int.from_bytes(body, 'little')
            if len(body) != 4 or (stated and stated != self.records.before):
                self._note('the checksum of its data is wrong')
            self.records.checksum = 0
        elif op == ATTACHMENT and len(body) >= 4:
            stated = int.from_bytes(body[-4:], 'little')
            if stated and stated != zlib.crc32(body[:-4]):
                self._note(f'the checksum of the attachment at byte {place} is wrong')
            self._taken(Attachment, body)
        elif op == METADATA:
            self._taken(Metadata, body)
        elif self.records.skipped or op > DATA_END:
            self.unknown += 1
        else:
            self._definition(op, body)

    def _taken(self, kind: type[McapRecord], body: bytes) -> None:
        """Pass on a record that does not affect messages."""
        try:
            self.take(parsed(kind, body))
        except Damaged as damage:
            self.contents.lose(self.records.at - self.records.place, str(damage))

    def _definition(self, op: int, body: bytes) -> None:
        """Process a type or a topic."""
        from mcap.records import Channel, Schema

        try:
            if op == SCHEMA:
                schema = parsed(Schema, body)
                self._require_name('type', schema.name)
                if schema.id not in self.types:
                    self.take(schema)
                    self.contents.definitions.add(schema.name, schema.encoding, schema.data)
                if self.types.setdefault(schema.id, schema.name) != schema.name:
                    raise Damaged(f'type {schema.id} is {self.types[schema.id]} and {schema.name}')
            elif op == CHANNEL:
                self._channel(parsed(Channel, body))
            elif op == MESSAGE_INDEX:
                self._index(body)
        except Damaged as damage:
            self._note(str(damage))

    def _index(self, body: bytes) -> None:
        """Compare an index with the messages of the preceding chunk."""
        if not self.chunks:
            raise Damaged('an index stands before all messages')
        channel, entries = int.from_bytes(body[:2], 'little'), body[6:]
        if channel in self.places:
            stated = np.frombuffer(entries[:len(entries) // 16 * 16], '<u8').reshape(-1, 2)
            stated = stated[np.argsort(stated[:, 1], kind='stable')]
            if not np.array_equal(stated, self.places[channel]):
                raise Damaged('a chunk has other messages than its index')

    def _require_name(self, what: str, name: str) -> None:
        if len(name) > NAME:
            raise Damaged(f'a {what} has a name of more than {NAME} characters')

    def _channel(self, channel: Channel) -> None:
        topic, encoding = channel.topic, channel.message_encoding
        self._require_name('topic', topic)
        if channel.schema_id and channel.schema_id not in self.types:
            raise Damaged(f'topic {clipped(topic)} has a type that is not described')
        kind = self.types.get(channel.schema_id, 'unknown')
        if encoding == ROS1:  # a ROS 1 bag that was converted to mcap
            kind = kind.replace('/', '/msg/') if kind.count('/') == 1 else kind
            self.contents.definitions.ros1 = True
        if channel.id not in self.channels:
            self.take(channel)
        if self.channels.setdefault(channel.id, (topic, kind)) != (topic, kind):
            raise Damaged(f'topic {clipped(self.channels[channel.id][0])} becomes '
                          f'{clipped(topic)}')
        self.contents.topics[topic] = kind
        wanted = self.contents.wants(topic, kind, self.kinds)
        if wanted and self.kinds is not None and encoding not in ('cdr', ROS1):
            raise Damaged(f'topic {clipped(topic)} is encoded as {clipped(encoding)}, not as cdr, '
                          'and was not read')
        if wanted:
            self.names[channel.id] = topic
        if self.kinds is not None and len(self.names) > TOPICS:
            raise DataError(f'{self.path}: has more than {TOPICS} topics with joint states; '
                            'record those of one robot')

    def _summary(self, op: int, body: bytes) -> None:
        """Compare a record of the summary with the messages read."""
        from mcap.records import Footer, Statistics

        if op in (SCHEMA, CHANNEL):
            self._definition(op, body)
        elif op == FOOTER:
            footer = parsed(Footer, body)
            checksum = zlib.crc32(RECORD.pack(op, len(body)) + body[:16], self.records.before)
            if footer.summary_crc and footer.summary_crc != checksum:
                self._note('the checksum of its summary is wrong')
        elif op == STATISTICS and self.contents.damages == self.before:  # else reported already
            stated = parsed(Statistics, body)
            read = sum(self.counts.values())
            if (stated.message_count, stated.chunk_count) != (read, self.chunks):
                self._note(f'it has {read} messages in {self.chunks} chunks, '
                           f'{stated.message_count} in {stated.chunk_count} were written')
            elif +Counter(stated.channel_message_counts or self.counts) != self.counts:
                self._note('its topics have other numbers of messages than were written')
            elif read and (stated.message_start_time, stated.message_end_time) != self.times:
                self._note('its messages were received at other times than it says')
