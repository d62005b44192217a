"""Bags that were never closed, as after a crash: finished so that every rosbag2 reader opens them.

The messages of an mcap file that can be read are written to a new one by the mcap library; those
of an sqlite3 file are taken in from its journal, or saved row by row. The new file grows beside
the old one and takes its name once it is whole and on the disk; the old one stays under a name
that ends with UNREPAIRED.
Source: rosbag2_storage_sqlite3, schemas 1 to 4.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from robot_dynid.errors import DataError, UsageError, clipped
from robot_dynid.files import (
    Damaged,
    atomic_write,
    atomic_writer,
    open_regular,
    read_text,
    set_aside,
)
from robot_dynid.io.bag_writer import (
    LOSSES,
    StorageFile,
    Topic,
    bag_information,
    merged_topics,
)
from robot_dynid.io.mcap import (
    ATTACHMENT,
    CHANNEL,
    CHUNK,
    DATA_END,
    FOOTER,
    HEADER,
    MAGIC,
    MESSAGE,
    MESSAGE_FIELDS,
    MESSAGE_INDEX,
    METADATA,
    RECORD,
    SCHEMA,
    SUMMARY,
    Contents,
    Records,
    chunk_content,
    mcap_batches,
    parsed,
    split,
)
from robot_dynid.io.sqlite import connected, journals_of, recoverable_copy, sqlite_batches
from robot_dynid.io.storage import METADATA_BYTES, SUFFIX, split_number
from robot_dynid.types import Progress
from robot_dynid.yaml_text import load_yaml, yaml_text

if TYPE_CHECKING:
    from mcap.writer import Writer

UNREPAIRED = '.unrepaired'
#: rosbag2's names of the storages, by the end of their files
STORAGES = {'.mcap': 'mcap', '.db3': 'sqlite3'}
#: a file that changed less than RECENT s ago may be growing: it is looked at again after PAUSE s
RECENT, PAUSE = 2.0, 1.0
#: first bytes of messages that were compressed one by one
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
#: tables of rosbag2 beside the messages, which are small; rows that are copied together
SMALL, ROWS = ('schema', 'metadata', 'topics', 'message_definitions'), 4096


@dataclass(frozen=True)
class Repair:
    """Content of a bag after its repair: ``messages`` by topic, ``lost_bytes`` and why.

    ``written`` are the files that were made, ``kept`` the ones they replaced, under new names.
    """

    messages: dict[str, int]
    lost_bytes: int
    findings: tuple[str, ...]
    written: tuple[str, ...]
    kept: tuple[str, ...]


def repair_bag(path: str | Path, progress: Progress | None = None) -> Repair:
    """Finish a bag folder, or a single storage file; nothing is changed where nothing has to be.

    Raises DataError when it is no bag, is still being recorded, or holds files that were
    compressed as a whole; UsageError where an earlier original is in the way; DynIdError when
    the disk is full.
    """
    place, progress = Path(path), progress or (lambda *_: None)
    files = _files(place)
    finish = _finish_mcap if files[0].suffix == '.mcap' else _finish_sqlite
    written, kept, found = list[str](), list[str](), list[StorageFile]()
    for number, file in enumerate(files):
        progress(file.name, number / len(files))
        found.append(finish(file, kept))
        written += [] if found[-1].sound else [str(file)]
    if place.is_dir():
        lost = '; '.join(f'{file.name}: {one}' for file in found for one in file.findings)
        wanted = bag_information(STORAGES[files[0].suffix], found, {LOSSES: lost} if lost else {})
        _write_metadata(place, wanted, written, kept)
    return Repair({topic.name: topic.messages for topic in merged_topics(found)},
                  sum(file.lost for file in found),
                  tuple(f'{file.name}: {one}' for file in found for one in file.findings),
                  tuple(written), tuple(kept))


def _files(place: Path) -> list[Path]:
    """Return the storage files of a bag in order of recording."""
    if not os.path.lexists(place):
        raise DataError(f'{place}: no such file or folder')
    try:
        there = sorted(place.iterdir() if place.is_dir() else [place], key=split_number)
    except OSError as error:
        raise DataError(f'{place}: cannot be read ({error.strerror})') from None
    packed = [file.name for file in there if file.name.endswith(SUFFIX)]
    if packed:
        raise DataError(f'{place}: {packed[0]} is compressed as a whole; unpack such files first '
                        '(zstd -d --rm)')
    files = [file for file in there if file.suffix in STORAGES]
    if not files:
        raise DataError(f'{place}: not a bag; expected a folder with .mcap or .db3 files, or one '
                        'such file')
    if len({file.suffix for file in files}) > 1:
        raise DataError(f'{place}: has .mcap and .db3 files; a bag has one kind, so take the '
                        'others out')
    return files


def _require_rest(file: Path) -> int:
    """Return the size of a file. Raises DataError when it is growing."""
    with open_regular(file, DataError) as opened:
        before = os.fstat(opened.fileno())
    if abs(time.time() - before.st_mtime) < RECENT:
        time.sleep(PAUSE)
    _require_size(file, before.st_size)
    return before.st_size


def _require_size(file: Path, size: int) -> None:
    if file.stat().st_size != size:
        raise DataError(f'{file}: is growing: end the recording first, or the program that writes '
                        'it')


def _backup(file: Path) -> Path:
    """Return the name that the original gets. Raises UsageError when it is taken."""
    backup = file.with_name(f'{file.name}{UNREPAIRED}')
    if os.path.lexists(backup):
        raise UsageError(f'{backup}: is there from an earlier repair; move it away first')
    return backup


def _finish_mcap(file: Path, kept: list[str]) -> StorageFile:
    size, contents = _require_rest(file), Contents()
    for _ in mcap_batches(file, (), contents):
        pass
    with open_regular(file, DataError) as source:
        source.seek(-min(len(MAGIC), size), os.SEEK_END)
        if source.read() == MAGIC and contents.whole and not contents.told:
            return copy_mcap(source, file, None)
        backup = _backup(file)
        with atomic_writer(file, keep=backup.name) as out:
            found = copy_mcap(source, file, out)
            _require_size(file, size)
    found.sound = False
    kept.append(str(backup))
    return found


def copy_mcap(source: BinaryIO, file: Path, out: BinaryIO | None) -> StorageFile:
    """Copy all that can be read of an mcap file to ``out``, and close it with its index.

    None: only count what it holds.
    """
    copy = _McapCopy(source, file, out)
    copy.run()
    return copy.file


class _McapCopy:
    """State of one pass over an mcap file."""

    def __init__(self, source: BinaryIO, file: Path, out: BinaryIO | None) -> None:
        self.records, self.out = Records(source, file), out
        self.file = StorageFile(file.name)
        self.writer: Writer | None = None
        self.compression = ''
        self.kinds: dict[int, str] = {}
        self.schemas: dict[int, int] = {}  # number in the new file by that in the old one
        self.channels: dict[int, int] = {}

    def run(self) -> None:
        """Copy the records of the data section."""
        records, ended = self.records, False
        try:
            for op, body in records:
                ended = op in (DATA_END, FOOTER, *SUMMARY) or (
                    op == HEADER and records.place > len(MAGIC))
                if ended:
                    break
                self._take(op, body)
        except Damaged:
            if records.op not in (CHUNK, MESSAGE_INDEX):  # which was taken, and is made anew
                self.file.lose(records.size - records.place,
                                'the file is cut off inside of a record')
        if self.out is not None:
            self._open_writer().finish()  # type: ignore[no-untyped-call]

    def _open_writer(self) -> Writer:
        from mcap.writer import CompressionType, Writer

        if self.writer is None:
            assert self.out is not None
            kinds = {'zstd': CompressionType.ZSTD, 'lz4': CompressionType.LZ4}
            self.writer = Writer(self.out, compression=kinds.get(
                self.compression, CompressionType.NONE), enable_data_crcs=True)
            self.writer.start('ros2', 'robot_dynid')
        return self.writer

    def _take(self, op: int, body: bytes) -> None:
        from mcap.records import Attachment, Chunk, Metadata

        if op == CHUNK:
            with suppress(Damaged):
                self.compression = self.compression or parsed(Chunk, body).compression
            self._chunk(body)
        elif op == MESSAGE:  # many of them
            self._contents(body)
        elif op in (SCHEMA, CHANNEL):
            self._define(op, body)
        elif op in (ATTACHMENT, METADATA) and self.out is not None:
            with self._losing(len(body)):
                one = vars(parsed(Attachment if op == ATTACHMENT else Metadata, body))
                if op == ATTACHMENT:
                    self._open_writer().add_attachment(**one)
                else:
                    self._open_writer().add_metadata(one['name'], one['metadata'])

    @contextmanager
    def _losing(self, size: int) -> Iterator[None]:
        try:
            yield
        except Damaged as damage:
            self.file.lose(RECORD.size + size, str(damage))

    def _chunk(self, body: bytes) -> None:
        cut = self.records.cut
        try:
            data, sound = chunk_content(body, cut)
        except Damaged as damage:
            self.file.lose(len(body), f'a chunk is damaged: {damage}')
            return
        if not sound:
            self.file.lose(len(body), 'a chunk is damaged: its checksum is wrong')
        left = self._contents(data, sound)
        if cut or left:
            self.file.lose(max(left, 1), 'the last chunk is cut off')

    def _contents(self, raw: bytes, sound: bool = True) -> int:
        """Take the records of a chunk; return the bytes behind the last whole one."""
        stop = 0
        with suppress(Damaged):
            for op, at, stop in split(raw):
                body = raw[at + RECORD.size:stop]
                if op in (SCHEMA, CHANNEL):
                    self._define(op, body)
                elif op == MESSAGE and sound:
                    self._message(body)
        return len(raw) - stop

    def _message(self, body: bytes) -> None:
        number, sequence, received, published = struct.unpack_from('<HIQQ', body)
        topic, data = self.file.topics.get(number), body[MESSAGE_FIELDS:]
        if topic is None:
            self.file.lose(RECORD.size + len(body), 'a message of a topic that is not named')
            return
        topic.messages += 1
        topic.packed += data.startswith(ZSTD_MAGIC)
        self.file.span(received, received)
        if self.out is not None:
            self._open_writer().add_message(self.channels[number], received, data, published,
                                            sequence)

    def _define(self, op: int, body: bytes) -> None:
        """Take a type or a topic, where it is whole."""
        from mcap.records import Channel, Schema

        with suppress(Damaged):
            one = parsed(Schema if op == SCHEMA else Channel, body)
            if op == SCHEMA and one.id not in self.kinds:
                self.kinds[one.id] = one.name
                if self.out is not None:
                    self.schemas[one.id] = self._open_writer().register_schema(
                        one.name, one.encoding, one.data)
            elif op == CHANNEL and one.id not in self.file.topics and (
                    not one.schema_id or one.schema_id in self.kinds):
                self.file.topics[one.id] = Topic(
                    one.topic, self.kinds.get(one.schema_id, 'unknown'), one.message_encoding,
                    one.metadata.get('offered_qos_profiles', ''),
                    one.metadata.get('topic_type_hash', ''))
                if self.out is not None:
                    self.channels[one.id] = self._open_writer().register_channel(
                        one.topic, one.message_encoding, self.schemas.get(one.schema_id, 0),
                        one.metadata)


def _finish_sqlite(file: Path, kept: list[str]) -> StorageFile:
    size, found = _require_rest(file), StorageFile(file.name)
    contents = Contents()
    for _ in sqlite_batches(file, (), contents):  # checks it, and bounds the work on it
        pass
    if contents.whole and not contents.told:
        with closing(connected(file, 'mode=ro&immutable=1')) as base:
            _count(base, found)
        return found
    found.sound = False
    with TemporaryDirectory(prefix='robot_dynid_') as folder:
        made = _whole_database(file, Path(folder), found)
        moved = {journal: _backup(journal) for journal in journals_of(file)}
        backup = _backup(file)
        with open_regular(made, DataError) as source, \
                atomic_writer(file, keep=backup.name) as out:
            shutil.copyfileobj(source, out)
            _require_size(file, size)
    for journal, name in moved.items():  # SQLite would take them for those of the new file
        set_aside(journal, name.name)
    kept += [str(name) for name in (backup, *moved.values())]
    with suppress(FileNotFoundError):
        os.unlink(f'{file}-shm')  # holds places in the -wal only
    return found


def _whole_database(path: Path, folder: Path, found: StorageFile) -> Path:
    """Return a database in ``folder`` with all rows of the one at ``path`` that can be read.

    Raises DataError when it is no rosbag2 database.
    """
    copy = recoverable_copy(path, folder)
    try:
        with closing(connected(copy, 'mode=rw')) as base:
            base.execute('PRAGMA writable_schema=ON')  # lets SQLite read what is cut off
            ((page,),) = base.execute('PRAGMA page_size').fetchall()
            with open_regular(copy, DataError) as head:
                head.seek(28)  # number of pages. Source: SQLite database file format, section 1.3
                pages = int.from_bytes(head.read(4), 'big')
            found.lost = max(0, int(page) * pages - copy.stat().st_size)
            if found.lost or base.execute('PRAGMA integrity_check(1)').fetchone() != ('ok',):
                return _saved_rows(base, folder / 'saved.db3', found)
            base.execute('PRAGMA journal_mode=DELETE')
            _count(base, found)
    except sqlite3.Error as error:
        raise DataError(f'{path}: is no readable rosbag2 sqlite3 file: '
                        f'{clipped(str(error), 200)}') from None
    return copy


def _saved_rows(base: sqlite3.Connection, target: Path, found: StorageFile) -> Path:
    """Write the rows of a damaged database that can be read into a new one."""
    with closing(connected(target, 'mode=rwc')) as out:
        out.execute('BEGIN')
        made = []
        for name, definition in base.execute(
                'SELECT name, sql FROM sqlite_master WHERE type = "table"').fetchall():
            if name in (*SMALL, 'messages') and str(definition).upper().startswith('CREATE TABLE'):
                out.execute(definition)
                made.append(name)
                _copy_rows(base, out, name, found)
        if not {'topics', 'messages'} <= set(made):
            raise DataError(f'{found.name}: its tables of topics and messages cannot be read')
        out.execute('CREATE INDEX IF NOT EXISTS timestamp_idx ON messages (timestamp ASC)')
        out.execute('COMMIT')
        _count(out, found)
    return target


def _copy_rows(
    base: sqlite3.Connection, out: sqlite3.Connection, name: str, found: StorageFile
) -> None:
    """Copy the rows of a table up to the first one that cannot be read."""
    rows = base.execute(f'SELECT * FROM {name} NOT INDEXED')
    marks = ','.join('?' for _ in rows.description)
    fetched: list[Any] = []
    try:
        for row in rows:
            fetched.append(row)
            if len(fetched) == ROWS:
                out.executemany(f'INSERT OR IGNORE INTO {name} VALUES ({marks})', fetched)
                fetched = []
    except sqlite3.DatabaseError as error:
        found.findings.append(f'rows of {name} are lost: {clipped(str(error), 100)}')
    out.executemany(f'INSERT OR IGNORE INTO {name} VALUES ({marks})', fetched)


def _count(base: sqlite3.Connection, found: StorageFile) -> None:
    """Note topics, numbers and times of messages."""
    columns = {row[1] for row in base.execute('PRAGMA table_info(topics)')}
    more = [name if name in columns else "''"
            for name in ('offered_qos_profiles', 'type_description_hash')]
    for key, name, kind, encoding, qos, type_hash in base.execute(
            f'SELECT id, name, type, serialization_format, {", ".join(more)} FROM topics'):
        found.topics[key] = Topic(str(name), str(kind), str(encoding), str(qos), str(type_hash))
    counted = base.execute(
        'SELECT topic_id, count(*), min(timestamp), max(timestamp), '
        "sum(substr(data, 1, 4) = x'28b52ffd') FROM messages GROUP BY topic_id").fetchall()
    for key, count, first, last, packed in counted:
        if key in found.topics:
            found.topics[key].messages, found.topics[key].packed = count, int(packed)
            found.span(first, last)


def _write_metadata(
    folder: Path, wanted: dict[str, Any], written: list[str], kept: list[str]
) -> None:
    """Write metadata.yaml where it is missing, unreadable, or not of these files."""
    file = folder / 'metadata.yaml'
    there = os.path.lexists(file)
    if there and not written and _agrees(file, wanted):
        return
    if there:
        backup = _backup(file)
        with atomic_writer(file, keep=backup.name) as out:
            out.write(yaml_text(wanted).encode())
        kept.append(str(backup))
    else:
        atomic_write(file, yaml_text(wanted))
    written.append(str(file))


def _agrees(file: Path, wanted: dict[str, Any]) -> bool:
    """Return whether metadata.yaml names these files and numbers of messages."""
    try:
        text = read_text(file, DataError, DataError, METADATA_BYTES)
        info = load_yaml(text, str(file), DataError)['rosbag2_bagfile_information']
        names = [Path(str(one)).name for one in info['relative_file_paths']]
        expected = wanted['rosbag2_bagfile_information']
        return bool(names == expected['relative_file_paths']
                    and info['message_count'] == expected['message_count'])
    except (DataError, TypeError, KeyError):
        return False
