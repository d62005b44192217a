"""Repair bags that were never closed, as after a crash, so that every rosbag2 reader opens them.

Readable messages of an mcap file are copied to a new one by the mcap library; those of an sqlite3
file are recovered from its journal, or row by row. The new file replaces the old one once it is
complete and synced; the old one is renamed to end with UNREPAIRED. Source:
rosbag2_storage_sqlite3, schemas 1 to 4.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import time
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, BinaryIO

from robot_dynid.errors import DataError, UsageError, clipped
from robot_dynid.files import (
    atomic_write,
    atomic_writer,
    open_regular,
    set_aside,
)
from robot_dynid.io.bag_writer import (
    LOSSES,
    StorageFile,
    Topic,
    bag_information,
    merged_topics,
)
from robot_dynid.io.cdr import Batch
from robot_dynid.io.mcap import MESSAGE_FIELDS, Contents, mcap_batches
from robot_dynid.io.recording_names import METADATA, read_metadata
from robot_dynid.io.sqlite import connected, journals_of, recoverable_copy, sqlite_batches
from robot_dynid.io.storage import SUFFIX, split_number
from robot_dynid.types import Progress
from robot_dynid.yaml_text import yaml_text

if TYPE_CHECKING:
    from mcap.writer import Writer

UNREPAIRED = '.unrepaired'
#: rosbag2's names of the storages, by the end of their files
STORAGES = {'.mcap': 'mcap', '.db3': 'sqlite3'}
#: a file changed less than RECENT s ago may be growing: its size is checked again after PAUSE s
RECENT, PAUSE = 2.0, 1.0
#: first bytes of messages that were compressed one by one
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'
#: small tables of rosbag2 other than messages; rows copied at a time
SMALL, ROWS = ('schema', 'metadata', 'message_definitions'), 4096


@dataclass(frozen=True)
class Repair:
    """Content of a bag after its repair: ``messages`` by topic, ``lost_bytes`` and why.

    ``written`` are the new files, ``kept`` the renamed originals.
    """

    messages: dict[str, int]
    lost_bytes: int
    findings: tuple[str, ...]
    written: tuple[str, ...]
    kept: tuple[str, ...]


def repair_bag(path: str | Path, progress: Progress | None = None) -> Repair:
    """Repair a bag folder or a storage file; sound files are not changed.

    Raises DataError if it is not a bag, is still being recorded, or has files compressed as a
    whole; UsageError if an original of an earlier repair exists; DynIdError if the disk is full.
    """
    place, progress = Path(path), progress or (lambda *_: None)
    files = _files(place)
    finish = _finish_mcap if files[0].suffix == '.mcap' else _finish_sqlite
    written, originals, repaired = list[str](), list[str](), list[StorageFile]()
    for number, file in enumerate(files):
        progress(file.name, number / len(files))
        repaired.append(finish(file, originals))
        written += [] if repaired[-1].sound else [str(file)]
    if place.is_dir():
        lost = '; '.join(f'{file.name}: {one}' for file in repaired for one in file.findings)
        wanted = bag_information(STORAGES[files[0].suffix], repaired,
                                 {LOSSES: lost} if lost else {})
        _write_metadata(place, wanted, written, originals)
    return Repair({topic.name: topic.messages for topic in merged_topics(repaired)},
                  sum(file.lost for file in repaired),
                  tuple(f'{file.name}: {one}' for file in repaired for one in file.findings),
                  tuple(written), tuple(originals))


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
    if place.suffix == '.bag':
        raise DataError(f'{place}: is a ROS 1 bag; repair it with rosbag reindex')
    files = [file for file in there if file.suffix in STORAGES]
    if not files:
        raise DataError(f'{place}: not a bag; expected a folder with .mcap or .db3 files, or one '
                        'such file')
    if len({file.suffix for file in files}) > 1:
        raise DataError(f'{place}: has .mcap and .db3 files; a bag has one kind, so remove the '
                        'others')
    return files


def _require_rest(file: Path) -> int:
    """Return the size of a file; raises DataError if it is growing."""
    with open_regular(file, DataError) as opened:
        first = os.fstat(opened.fileno())
    if abs(time.time() - first.st_mtime) < RECENT:
        time.sleep(PAUSE)
    _require_size(file, first.st_size)
    return first.st_size


def _require_size(file: Path, size: int) -> None:
    if file.stat().st_size != size:
        raise DataError(f'{file}: is growing: stop the recording first')


def _backup(file: Path) -> Path:
    """Return the new name of the original; raises UsageError if it exists."""
    backup = file.with_name(f'{file.name}{UNREPAIRED}')
    if os.path.lexists(backup):
        raise UsageError(f'{backup}: exists from an earlier repair; move it away first')
    return backup


def _finish_mcap(file: Path, originals: list[str]) -> StorageFile:
    size, contents = _require_rest(file), Contents()
    copied = copy_mcap(file, contents, None)
    if contents.whole and not contents.damages:
        return copied
    backup = _backup(file)
    with atomic_writer(file, keep=backup.name) as out:
        copied = copy_mcap(file, contents, out)
        _require_size(file, size)
    originals.append(str(backup))
    return copied


def copy_mcap(file: Path, contents: Contents, out: BinaryIO | None) -> StorageFile:
    """Copy all readable records of an mcap file to ``out``, and close it with its index.

    None: only fill ``contents``, which then list the losses of a copy.
    """
    copy = _McapCopy(StorageFile(file.name, sound=out is None), contents.compression, out)
    contents = contents if out is None else Contents()
    for _, batch in mcap_batches(file, None, contents, copy.define):
        copy.add(batch)
    copy.finish()
    copied = copy.file
    copied.lost, copied.findings = contents.lost, contents.losses
    return copied


class _McapCopy:
    """A new mcap file, or none, and its contents."""

    def __init__(self, file: StorageFile, compression: str, out: BinaryIO | None) -> None:
        from mcap.writer import CompressionType, Writer

        self.file = file
        self.kinds: dict[int, str] = {}
        self.schemas: dict[int, int] = {}  # new number by old number
        self.channels: dict[int, int] = {}
        self.writer: Writer | None = None
        if out is not None:
            kinds = {'zstd': CompressionType.ZSTD, 'lz4': CompressionType.LZ4}
            self.writer = Writer(out, enable_data_crcs=True, compression=kinds.get(
                compression, CompressionType.NONE))
            self.writer.start('ros2', 'robot_dynid')

    def define(self, one: Any) -> None:
        """Copy a type, a topic, an attachment or metadata."""
        from mcap.records import Attachment, Channel, Metadata, Schema

        if isinstance(one, Schema):
            self.kinds[one.id] = one.name
        elif isinstance(one, Channel):
            self.file.topics[one.id] = Topic(
                one.topic, self.kinds.get(one.schema_id, 'unknown'), one.message_encoding,
                one.metadata.get('offered_qos_profiles', ''),
                one.metadata.get('topic_type_hash', ''))
        if self.writer is None:
            return
        if isinstance(one, Schema):
            self.schemas[one.id] = self.writer.register_schema(one.name, one.encoding, one.data)
        elif isinstance(one, Channel):
            self.channels[one.id] = self.writer.register_channel(
                one.topic, one.message_encoding, self.schemas.get(one.schema_id, 0), one.metadata)
        elif isinstance(one, Attachment):
            self.writer.add_attachment(**vars(one))
        elif isinstance(one, Metadata):
            self.writer.add_metadata(one.name, one.metadata)

    def add(self, batch: Batch) -> None:
        """Copy messages of one topic."""
        raw = batch.buffer.data
        self.file.span(int(batch.received.min()), int(batch.received.max()))
        for start, size in zip(batch.starts.tolist(), batch.sizes.tolist(), strict=True):
            number, sequence, received, published = struct.unpack_from(
                '<HIQQ', raw, start - MESSAGE_FIELDS)
            data = bytes(raw[start:start + size])
            topic = self.file.topics[number]
            topic.messages += 1
            topic.packed += data.startswith(ZSTD_MAGIC)
            if self.writer is not None:
                self.writer.add_message(self.channels[number], received, data, published, sequence)

    def finish(self) -> None:
        """Write the index."""
        if self.writer is not None:
            self.writer.finish()  # type: ignore[no-untyped-call]


def _finish_sqlite(file: Path, originals: list[str]) -> StorageFile:
    size, repaired = _require_rest(file), StorageFile(file.name)
    contents = Contents()
    for _ in sqlite_batches(file, (), contents):  # checks it with bounded work
        pass
    if contents.whole and not contents.damages:
        with closing(connected(file, 'mode=ro&immutable=1')) as base:
            _count(base, repaired)
        return repaired
    repaired.sound = False
    with TemporaryDirectory(prefix='robot_dynid_') as folder:
        made = _saved_rows(file, Path(folder), repaired)
        moved = {journal: _backup(journal) for journal in journals_of(file)}
        backup = _backup(file)
        with open_regular(made, DataError) as source, \
                atomic_writer(file, keep=backup.name) as out:
            shutil.copyfileobj(source, out)
            _require_size(file, size)
    for journal, name in moved.items():  # SQLite would apply them to the new file
        set_aside(journal, name.name)
    originals += [str(name) for name in (backup, *moved.values())]
    with suppress(FileNotFoundError):
        os.unlink(f'{file}-shm')  # only an index of the -wal
    return repaired


def _saved_rows(path: Path, folder: Path, repaired: StorageFile) -> Path:
    """Return a database in ``folder`` with all readable rows of the one at ``path``.

    Raises DataError if it is not a rosbag2 database.
    """
    copy, saved = recoverable_copy(path, folder), folder / 'saved.db3'
    try:
        with closing(connected(copy, 'mode=rw')) as base, \
                closing(connected(saved, 'mode=rwc')) as out:
            base.execute('PRAGMA writable_schema=ON')  # lets SQLite read truncated files
            ((page,),) = base.execute('PRAGMA page_size').fetchall()
            with open_regular(copy, DataError) as head:
                head.seek(28)  # number of pages. Source: SQLite database file format, section 1.3
                pages = int.from_bytes(head.read(4), 'big')
            repaired.lost = max(0, int(page) * pages - copy.stat().st_size)
            out.execute('BEGIN')
            tables = dict(base.execute('SELECT name, sql FROM sqlite_master WHERE type = "table"'))
            for name in (*SMALL, 'topics', 'messages'):
                if str(tables.get(name)).upper().startswith('CREATE TABLE'):
                    out.execute(tables[name])
                    _copy_rows(base, out, name, repaired)
            out.execute('CREATE INDEX IF NOT EXISTS timestamp_idx ON messages (timestamp ASC)')
            out.execute('COMMIT')
            _count(out, repaired)
    except sqlite3.Error as error:
        raise DataError(f'{path}: not a readable rosbag2 sqlite3 file: '
                        f'{clipped(str(error), 200)}') from None
    return saved


def _copy_rows(
    base: sqlite3.Connection, out: sqlite3.Connection, name: str, repaired: StorageFile
) -> None:
    """Copy the rows of a table up to the first unreadable one."""
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
        repaired.findings.append(f'rows of {name} are lost: {clipped(str(error), 100)}')
    out.executemany(f'INSERT OR IGNORE INTO {name} VALUES ({marks})', fetched)


def _count(base: sqlite3.Connection, repaired: StorageFile) -> None:
    """Count messages by topic, and their time range."""
    columns = {row[1] for row in base.execute('PRAGMA table_info(topics)')}
    more = [name if name in columns else "''"
            for name in ('offered_qos_profiles', 'type_description_hash')]
    for key, name, kind, encoding, qos, type_hash in base.execute(
            f'SELECT id, name, type, serialization_format, {", ".join(more)} FROM topics'):
        repaired.topics[key] = Topic(str(name), str(kind), str(encoding), str(qos), str(type_hash))
    counted = base.execute(
        'SELECT topic_id, count(*), min(timestamp), max(timestamp), '
        "sum(substr(data, 1, 4) = x'28b52ffd') FROM messages GROUP BY topic_id").fetchall()
    for key, count, first, last, packed in counted:
        if key in repaired.topics:
            repaired.topics[key].messages, repaired.topics[key].packed = count, int(packed)
            repaired.span(first, last)


def _write_metadata(
    folder: Path, wanted: dict[str, Any], written: list[str], originals: list[str]
) -> None:
    """Write metadata.yaml if it is missing, unreadable, or of other files."""
    file = folder / METADATA
    there = os.path.lexists(file)
    if not written and _summary(read_metadata(folder)) == _summary(
            wanted['rosbag2_bagfile_information']):
        return
    if there:
        backup = _backup(file)
        with atomic_writer(file, keep=backup.name) as out:
            out.write(yaml_text(wanted).encode())
        originals.append(str(backup))
    else:
        atomic_write(file, yaml_text(wanted))
    written.append(str(file))


def _summary(info: dict[str, Any] | None) -> tuple[list[str], Any]:
    """Return the files and the number of messages in metadata."""
    paths = (info or {}).get('relative_file_paths')
    return ([Path(str(one)).name for one in (paths if isinstance(paths, list) else [])],
            (info or {}).get('message_count'))
