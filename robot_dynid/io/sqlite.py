"""Raw messages of a rosbag2 sqlite3 file, also of one left behind by a crash."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
from collections.abc import Collection, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.io.cdr import Batch
from robot_dynid.io.mcap import Contents

ROWS = 8192  # messages fetched at a time
JOURNALS = ('-wal', '-journal')


def sqlite_batches(
    path: Path, kinds: Collection[str], contents: Contents
) -> Iterator[tuple[str, Batch]]:
    """Yield (topic, messages) of all topics whose type is in ``kinds``, in the order of writing.

    Raises DataError when the file is no rosbag2 database.
    """
    journals = [f'{path}{end}' for end in JOURNALS if Path(f'{path}{end}').exists()]
    whole = _whole_pages(path)
    if not journals and whole is None:
        yield from _read(path, 'mode=ro&immutable=1', kinds, contents)
        return
    reason = 'has a journal beside it (crash while recording?), which was taken in'
    if not journals:
        reason = 'is cut off; what lies before the cut was read'
    contents.findings.append(f'{path.name}: {reason}')
    with TemporaryDirectory() as folder:  # SQLite repairs while opening: never touch the original
        copy = Path(shutil.copy(path, folder))
        for journal in journals:
            shutil.copy(journal, folder)
        if not journals and whole is not None:
            os.truncate(copy, whole)
        yield from _read(copy, 'mode=rw', kinds, contents)


def _whole_pages(path: Path) -> int | None:
    """Return the length of the complete pages of a file that is cut off, else None.

    SQLite fills half a page with zeros without a word, and so would invent numbers.
    Source: SQLite database file format, section 1.3.
    """
    with path.open('rb') as file:
        head = file.read(32)
    if len(head) < 32 or not head.startswith(b'SQLite format 3'):
        return None  # opening it will say so
    (page,) = struct.unpack_from('>H', head, 16)
    page = 65536 if page == 1 else max(page, 512)
    (pages,) = struct.unpack_from('>I', head, 28)
    size = path.stat().st_size
    return None if size >= page * pages else size - size % page


def _read(
    path: Path, options: str, kinds: Collection[str], contents: Contents
) -> Iterator[tuple[str, Batch]]:
    uri = f'file:{quote(str(path.absolute()))}?{options}'
    try:
        with closing(sqlite3.connect(uri, uri=True)) as base:
            base.execute('PRAGMA writable_schema=ON')  # lets SQLite read a file that is cut off
            topics = base.execute('SELECT id, name, type, serialization_format FROM topics')
            wanted: dict[int, str] = {}
            for key, name, message_type, encoding in topics.fetchall():
                contents.topics[name] = message_type
                if message_type in kinds and encoding == 'cdr':
                    wanted[key] = name
            yield from _messages(base, path, wanted, contents)
    except sqlite3.Error as error:
        raise DataError(f'{path}: is no readable rosbag2 sqlite3 file: {error}') from None


def _messages(
    base: sqlite3.Connection, path: Path, wanted: dict[int, str], contents: Contents
) -> Iterator[tuple[str, Batch]]:
    marks = ','.join('?' for _ in wanted)
    rows = base.execute(
        f'SELECT topic_id, timestamp, data FROM messages WHERE topic_id IN ({marks}) '
        f'ORDER BY messages.id',
        tuple(wanted),
    )
    whole = False
    while not whole:
        fetched: list[tuple[int, int, bytes]] = []
        try:
            fetched.extend(islice(rows, ROWS))  # keeps the rows before an error
            whole = len(fetched) < ROWS
        except sqlite3.DatabaseError as error:
            whole = True
            contents.findings.append(
                f'{path.name}: cut off or damaged ({error}); what lies before was read'
            )
        sound = [row for row in fetched if type(row[1]) is int and type(row[2]) is bytes]
        if len(sound) < len(fetched):
            contents.findings.append(
                f'{path.name}: {len(fetched) - len(sound)} rows are damaged and were left out'
            )
        yield from _batches(sound, wanted)


def _batches(
    fetched: list[tuple[int, int, bytes]], wanted: dict[int, str]
) -> Iterator[tuple[str, Batch]]:
    for key in {row[0] for row in fetched}:
        mine = [row for row in fetched if row[0] == key]
        yield wanted[key], joined_batch([row[1] for row in mine], [row[2] for row in mine])


def joined_batch(received: list[int], data: list[bytes]) -> Batch:
    """Return messages as one batch; ``received`` in ns."""
    sizes = np.array([len(one) for one in data], dtype=np.int64)
    buffer = np.frombuffer(b''.join(data), np.uint8)
    return Batch(np.array(received, dtype=np.int64), buffer, np.cumsum(sizes) - sizes, sizes)
