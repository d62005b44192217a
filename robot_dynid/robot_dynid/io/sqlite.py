"""Read raw messages of a rosbag2 sqlite3 file, also of one left by a crash.

The format has no checksums of its content: SQLite detects damage of the structure, and of times by
their index; numbers in messages may change undetected.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import sys
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import numpy as np

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import open_regular
from robot_dynid.io.cdr import Batch
from robot_dynid.io.mcap import NAME, TOPICS, Contents
from robot_dynid.io.messages.definitions import DEFINITION_BYTES
from robot_dynid.io.messages.kinds import MESSAGE_BYTES

ROWS = 8192  # messages fetched at a time
PART_BYTES = 1 << 24  # bytes fetched at a time
JOURNALS = ('-wal', '-journal')
#: largest number of topics
LISTED = 10_000
#: limit of SQLite's virtual machine steps: constant, and per byte of the file
STEPS, STEPS_PER_BYTE = 20_000_000, 20
#: steps between checks of the limit
STRIDE = 10_000
Row = tuple[int, int, bytes]


def sqlite_batches(
    path: Path, kinds: Collection[str] | None, contents: Contents
) -> Iterator[tuple[str, Batch]]:
    """Yield (topic, messages) of all topics whose type is in ``kinds``, in the order of writing.

    None: of all topics. Raises DataError if the file is not a rosbag2 database.
    """
    journals = journals_of(path)
    if not journals and whole_pages(path) is None:
        yield from _Base(path, 'mode=ro&immutable=1', contents, path).batches(kinds)
        return
    contents.whole = False
    reason = 'is truncated and was read up to the cut'
    if journals:
        reason = ('was read with its journal (crash while recording?); robot-dynid repair merges '
                  'both for every reader')
    contents.findings.append(f'{path.name}: {reason}')
    with TemporaryDirectory(prefix='robot_dynid_') as folder:
        copy = recoverable_copy(path, Path(folder))
        yield from _Base(copy, 'mode=rw', contents, path, cut=not journals).batches(kinds)


def journals_of(path: Path) -> list[Path]:
    """Return the journals that SQLite left next to a database."""
    return [Path(file) for end in JOURNALS if os.path.isfile(file := f'{path}{end}')]


def recoverable_copy(path: Path, folder: Path) -> Path:
    """Return a copy in ``folder`` of a database with its journals: SQLite repairs it on opening.

    An incomplete last page is left out. Raises DataError if the disk is full.
    """
    journals = journals_of(path)
    whole = None if journals else whole_pages(path)
    try:
        for file in (path, *journals):
            with open_regular(file, DataError) as original, \
                    (folder / file.name).open('xb') as out:
                shutil.copyfileobj(original, out)
    except OSError as error:
        raise DataError(f'{path}: cannot be copied to {folder} ({error.strerror})') from None
    if whole is not None:
        os.truncate(folder / path.name, whole)
    return folder / path.name


def whole_pages(path: Path) -> int | None:
    """Return the length of the complete pages of a truncated file, else None.

    SQLite silently fills an incomplete page with zeros, and so would invent numbers. Source:
    SQLite database file format, section 1.3.
    """
    with open_regular(path, DataError) as file:
        head = file.read(32)
        size = os.fstat(file.fileno()).st_size
    if len(head) < 32 or not head.startswith(b'SQLite format 3'):
        return None  # reported on opening
    page, pages = struct.unpack_from('>H', head, 16)[0], struct.unpack_from('>I', head, 28)[0]
    page = 65536 if page == 1 else max(page, 512)
    return None if size >= page * pages else size - size % page


def connected(path: Path, options: str) -> sqlite3.Connection:
    """Open an untrusted database: nothing in it is executed."""
    base = sqlite3.connect(f'file:{quote(os.fsencode(path.absolute()))}?{options}', uri=True,
                           isolation_level=None)
    base.text_factory = lambda raw: raw.decode('utf-8', 'replace')
    for pragma in ('trusted_schema=OFF', 'cell_size_check=ON', 'mmap_size=0'):
        base.execute(f'PRAGMA {pragma}')
    return base


class _Base:
    """One pass over a database; ``path`` is the file reported in messages."""

    def __init__(
        self, file: Path, options: str, contents: Contents, path: Path, cut: bool = False
    ) -> None:
        self.file, self.options, self.path, self.cut = file, options, path, cut
        self.contents = contents
        self.size = file.stat().st_size
        self.steps = STEPS + STEPS_PER_BYTE * self.size
        self.bytes = 0

    def batches(self, kinds: Collection[str] | None) -> Iterator[tuple[str, Batch]]:
        """Yield the messages. Raises DataError."""
        try:
            with closing(connected(self.file, self.options)) as base:
                if sys.version_info >= (3, 11):  # before, SQLite's own limit: size of the file
                    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 1 << 24)
                base.set_progress_handler(self._step, STRIDE)
                base.text_factory = lambda raw: raw[:NAME].decode('utf-8', 'replace')
                if self.cut:  # lets SQLite read truncated files
                    base.execute('PRAGMA writable_schema=ON')
                self._define(base)
                wanted = self._wanted(base, kinds)
                self._check(base)
                yield from self._messages(base, wanted)
                self._count(base)
        except (sqlite3.Error, ValueError, OverflowError, MemoryError) as error:
            why = clipped(str(error) or type(error).__name__, 200)
            if self.steps < 0:
                why = 'reading it takes too much work for its size'
            raise DataError(
                f'{self.path}: not a readable rosbag2 sqlite3 file: {why}') from None

    def _step(self) -> bool:
        self.steps -= STRIDE
        return self.steps < 0

    def _note(self, what: str) -> None:
        self.contents.damaged(f'{self.path.name}: {what}')

    def _define(self, base: sqlite3.Connection) -> None:
        """Read the definitions of types, which ROS 2 Iron and later store."""
        names = base.execute("SELECT type FROM sqlite_master WHERE name = 'message_definitions'")
        if names.fetchone() != ('table',):
            return
        rows = base.execute(
            'SELECT CAST(topic_type AS BLOB), CAST(encoding AS BLOB), '
            'CAST(encoded_message_definition AS BLOB) FROM message_definitions '
            f'WHERE length(encoded_message_definition) <= {DEFINITION_BYTES}').fetchmany(LISTED)
        for row in rows:
            if all(type(one) is bytes for one in row):
                kind, encoding, text = row
                self.contents.definitions.add(
                    kind.decode('utf-8', 'replace'), encoding.decode('utf-8', 'replace'), text)

    def _wanted(
        self, base: sqlite3.Connection, kinds: Collection[str] | None
    ) -> dict[int, str]:
        """Return the topics of the wanted types by number."""
        tables = base.execute("SELECT lower(name), type, sql FROM sqlite_master "
                              "WHERE lower(name) IN ('messages', 'topics')").fetchmany(10)
        for name, kind, definition in tables:
            if kind != 'table' or not str(definition).upper().startswith('CREATE TABLE'):
                raise DataError(f'{self.path}: {name} is a {kind} made by a query, not a table')
        rows = base.execute('SELECT id, name, type, serialization_format FROM topics'
                            ).fetchmany(LISTED + 1)
        if len(rows) > LISTED:
            raise DataError(f'{self.path}: has more than {LISTED} topics')
        wanted: dict[int, str] = {}
        for key, name, kind, encoding in rows:
            if not (type(key) is int and type(name) is type(kind) is str):
                self._note('a row of its table of topics is damaged')
                continue
            self.contents.topics[name] = kind
            if not self.contents.wants(name, kind, kinds):
                continue
            if kinds is None or encoding == 'cdr':
                wanted[key] = name
            else:
                self._note(f'topic {clipped(name)} is encoded as {clipped(str(encoding))}, not '
                           'as cdr, and was not read')
        if kinds is not None and len(wanted) > TOPICS:
            raise DataError(f'{self.path}: has more than {TOPICS} topics with joint states; '
                            'record those of one robot')
        return wanted

    def _check(self, base: sqlite3.Connection) -> None:
        """Check the structure and indices by SQLite."""
        verdict = ('ok',) if self.cut else base.execute('PRAGMA integrity_check(1)').fetchone()
        if verdict is None or verdict[0] != 'ok':
            what = ' '.join(str(verdict and verdict[0]).split())
            self._note(f'its structure is damaged ({clipped(what, 200)})')

    def _messages(
        self, base: sqlite3.Connection, wanted: dict[int, str]
    ) -> Iterator[tuple[str, Batch]]:
        rows = base.execute(
            'SELECT topic_id, timestamp, data FROM messages WHERE topic_id IN '
            f'({",".join("?" for _ in wanted)}) ORDER BY messages.id', tuple(wanted))
        whole = False
        while not whole:
            fetched: list[Row] = []
            try:
                whole = self._fetch(rows, fetched)  # retains the rows before an error
            except sqlite3.DatabaseError as error:
                if self.steps < 0:
                    raise
                whole, self.contents.whole = True, False
                words = f'cut off or damaged ({error}); what lies before was read'
                if self.cut:
                    self.contents.findings.append(f'{self.path.name}: {words}')
                else:
                    self._note(words)
            sound = [row for row in fetched
                     if type(row[1]) is int and row[1] >= 0 and type(row[2]) is bytes]
            if len(sound) < len(fetched):
                self._note(f'{len(fetched) - len(sound)} rows are damaged and were left out')
            for key in dict.fromkeys(row[0] for row in sound):
                part = [row for row in sound if row[0] == key]
                self.contents.counts[wanted[key]] += len(part)
                yield wanted[key], joined_batch([row[1] for row in part],
                                                [row[2] for row in part])

    def _fetch(self, rows: sqlite3.Cursor, fetched: list[Row]) -> bool:
        """Append the next rows; return True if they were the last ones."""
        size = 0
        for row in rows:
            fetched.append(row)
            size += len(row[2]) if type(row[2]) in (bytes, str) else 0
            if len(fetched) == ROWS or size > PART_BYTES:
                self.bytes += size
                if self.bytes > self.size + MESSAGE_BYTES:
                    raise DataError(f'{self.path}: its messages are larger than the file')
                return False
        return True

    def _count(self, base: sqlite3.Connection) -> None:
        """Count all messages, and their time range."""
        if self.contents.whole:
            count, first, last = base.execute(
                'SELECT count(*), min(timestamp), max(timestamp) FROM messages').fetchone()
            self.contents.messages += count
            if type(first) is type(last) is int:
                self.contents.span(first, last)


def joined_batch(received: list[int], data: list[bytes]) -> Batch:
    """Return messages as one batch; ``received`` in ns."""
    sizes = np.array([len(one) for one in data], dtype=np.int64)
    buffer = np.frombuffer(b''.join(data), np.uint8)
    return Batch(np.array(received, dtype=np.int64), buffer, np.cumsum(sizes) - sizes, sizes)
