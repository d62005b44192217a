"""Finishes a rosbag2 sqlite3 file that was never closed: takes in its journal, or saves its rows.

Source: rosbag2_storage_sqlite3, schemas 1 to 4.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import open_regular
from robot_dynid.io.mcap import Contents
from robot_dynid.io.repair.bag_information import StorageInformation, TopicInformation
from robot_dynid.io.sqlite import recoverable_copy, sqlite_batches

#: tables of rosbag2 beside the messages, which are small
SMALL = ('schema', 'metadata', 'topics', 'message_definitions')
ROWS = 4096


@contextmanager
def finished_sqlite(path: Path) -> Iterator[tuple[Path, StorageInformation]]:
    """Give a whole database with all rows of the one at ``path`` that can be read.

    It is ``path`` itself where nothing has to be changed, else a copy for as long as the block.
    Raises DataError when it is no rosbag2 database.
    """
    found = StorageInformation(path.name)
    contents = Contents()
    for _ in sqlite_batches(path, (), contents):  # checks it, and bounds the work on it
        pass
    if contents.whole and not contents.told:
        with closing(_connected(path, 'mode=ro&immutable=1')) as base:
            _count(base, found)
        yield path, found
        return
    found.sound = False
    with TemporaryDirectory(prefix='robot_dynid_') as folder:
        copy = recoverable_copy(path, Path(folder))
        try:
            with closing(_connected(copy, 'mode=rw')) as base:
                base.execute('PRAGMA writable_schema=ON')  # lets SQLite read what is cut off
                found.lost = _missing(base, copy)
                if not found.lost and base.execute('PRAGMA integrity_check(1)').fetchone() == (
                        'ok',):
                    base.execute('PRAGMA journal_mode=DELETE')
                    _count(base, found)
                else:
                    copy = _saved_rows(base, copy, found)
        except sqlite3.Error as error:
            raise DataError(f'{path}: is no readable rosbag2 sqlite3 file: '
                            f'{clipped(str(error), 200)}') from None
        yield copy, found


def _connected(path: Path, options: str) -> sqlite3.Connection:
    base = sqlite3.connect(f'file:{quote(os.fsencode(path.absolute()))}?{options}', uri=True,
                           isolation_level=None)
    base.text_factory = lambda raw: raw.decode('utf-8', 'replace')
    base.execute('PRAGMA trusted_schema=OFF')
    return base


def _missing(base: sqlite3.Connection, file: Path) -> int:
    """Return the bytes by which a file is shorter than it says."""
    ((page,),) = base.execute('PRAGMA page_size').fetchall()
    with open_regular(file, DataError) as head:
        head.seek(28)  # number of pages. Source: SQLite database file format, section 1.3
        pages = int.from_bytes(head.read(4), 'big')
    return max(0, int(page) * pages - file.stat().st_size)


def _saved_rows(base: sqlite3.Connection, copy: Path, found: StorageInformation) -> Path:
    """Write the rows of a damaged database that can be read into a new one."""
    target = copy.with_name('saved.db3')
    with closing(_connected(target, 'mode=rwc')) as out:
        out.execute('BEGIN')
        names = (*SMALL, 'messages')
        for name, definition in base.execute(
                'SELECT name, sql FROM sqlite_master WHERE type = "table"').fetchall():
            if name in names and str(definition).upper().startswith('CREATE TABLE'):
                out.execute(definition)
                _copy_rows(base, out, name, found)
        if out.execute('SELECT count(*) FROM sqlite_master WHERE name IN ("topics", "messages")'
                       ).fetchone() != (2,):
            raise DataError(f'{found.name}: its tables of topics and messages cannot be read')
        out.execute('CREATE INDEX IF NOT EXISTS timestamp_idx ON messages (timestamp ASC)')
        out.execute('COMMIT')
        _count(out, found)
    return target


def _copy_rows(base: sqlite3.Connection, out: sqlite3.Connection, name: str,
               found: StorageInformation) -> None:
    """Copy the rows of a table up to the first one that cannot be read."""
    rows = base.execute(f'SELECT * FROM {name} NOT INDEXED')
    marks = ','.join('?' for _ in rows.description)
    while True:
        fetched = []
        try:
            for row in rows:
                fetched.append(row)
                if len(fetched) == ROWS:
                    break
            ended = len(fetched) < ROWS
        except sqlite3.DatabaseError as error:
            found.findings.append(f'rows of {name} are lost: {clipped(str(error), 100)}')
            ended = True
        out.executemany(f'INSERT OR IGNORE INTO {name} VALUES ({marks})', fetched)
        if ended:
            return


def _count(base: sqlite3.Connection, found: StorageInformation) -> None:
    """Note topics, numbers and times of messages."""
    columns = {row[1] for row in base.execute('PRAGMA table_info(topics)')}
    more = [name if name in columns else "''"
            for name in ('offered_qos_profiles', 'type_description_hash')]
    for key, name, kind, encoding, qos, type_hash in base.execute(
            f'SELECT id, name, type, serialization_format, {", ".join(more)} FROM topics'):
        found.topics[key] = TopicInformation(
            str(name), str(kind), str(encoding), str(qos), str(type_hash))
    counted = base.execute(
        'SELECT topic_id, count(*), min(timestamp), max(timestamp), '
        "sum(substr(data, 1, 4) = x'28b52ffd') FROM messages GROUP BY topic_id").fetchall()
    for key, count, first, last, packed in counted:
        if key in found.topics:
            found.topics[key].messages, found.topics[key].packed = count, int(packed)
            found.first = first if found.first is None else min(found.first, first)
            found.last = last if found.last is None else max(found.last, last)
