"""Recordings of every format as inputs for the fuzzer, and damage that knows their structure."""

from __future__ import annotations

import gzip
import shutil
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import lz4.frame
import numpy as np
from bags import (
    DEFINITIONS,
    DYNAMIC,
    MAGIC,
    START,
    Style,
    chunk_of,
    header,
    joint_states,
    made,
    mcap_file,
    mcap_record,
    raw,
    states,
    storage_file,
    store_of,
    write,
    write_topics,
)
from fuzzing import Mutator, Reader, mutated
from rosbags.rosbag2 import CompressionMode
from rosbags.rosbag2.storage_mcap import zstd

from robot_dynid.io.bag import read_bag
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import (
    CONTROLLER_STATE,
    JOINT_STATE,
    JointStateDecoder,
    JointStateReader,
    encode_joint_states,
)
from robot_dynid.io.csv import read_csv, write_csv
from robot_dynid.io.messages.survey import survey, uses
from robot_dynid.io.sqlite import joined_batch
from robot_dynid.types import RawLog

UNPACK: dict[bytes, Callable[[bytes], bytes]] = {
    b'': bytes, b'lz4': lz4.frame.decompress, b'zstd': zstd.decompress}


def readers() -> list[Reader]:
    """Return a reader for every kind of recording."""
    messages, values = states(count=60)
    log = RawLog('x', ('a', 'b'), 0.002 * np.arange(60), values, 2 * values, 3 * values)
    with tempfile.TemporaryDirectory() as place:
        return _readers(Path(place), messages, log)


def _readers(place: Path, messages: list[tuple[int, bytes]], log: RawLog) -> list[Reader]:
    topics = {'/joint_states': messages}
    with BagWriter(place / 'ours') as bag:
        topic = bag.add_topic('/joint_states', JOINT_STATE)
        for k, one in enumerate(messages):
            bag.write(topic, *one)
            if k % 20 == 19:
                bag.commit()
    mcaps = {
        'mcap': [storage_file(place / 'ours').read_bytes(),
                 storage_file(write_topics(place / 'theirs', topics)).read_bytes(),
                 mcap_file(messages, Style('', 0)), mcap_file(messages, Style('', 20, False))],
        'mcap lz4': [mcap_file(messages, Style('lz4', 20, check)) for check in (True, False)],
        'mcap zstd': [mcap_file(messages, Style('zstd', 20, check)) for check in (True, False)]}
    db3 = storage_file(write_topics(place / 'db3', topics, 'sqlite3'))
    folders = {name: write_topics(place / name.replace(' ', '_'), topics, storage, mode)
               for name, storage, mode in (
        ('mcap file', 'mcap', CompressionMode.FILE), ('db3 file', 'sqlite3', CompressionMode.FILE),
        ('db3 message', 'sqlite3', CompressionMode.MESSAGE))}
    write_csv(place / 'log.csv', log)
    text = (place / 'log.csv').read_bytes()
    metadata = (place / 'ours' / 'metadata.yaml').read_bytes()
    return [
        *(Reader(name, '.mcap', seeds, read_bag, mcap_mutated) for name, seeds in mcaps.items()),
        Reader('db3', '.db3', [db3.read_bytes()], read_bag, db3_mutated),
        *(_in_folder(name, folder) for name, folder in folders.items()),
        Reader('definitions', '.mcap', [_with_definitions(place)], _survey, mcap_mutated),
        Reader('bag', '.bag', _rosbag1(place, messages), read_bag),
        Reader('csv', '.csv', [text], read_csv),
        Reader('csv.gz', '.csv.gz', [gzip.compress(text, mtime=0)], read_csv,
               _inside(gzip.decompress, lambda data: gzip.compress(data, 1, mtime=0), mutated)),
        Reader('metadata.yaml', '.yaml', [metadata], _ReadMetadata(mcaps['mcap'][0])),
        Reader('CDR', '.cdr', _cdr_messages(), read_cdr, cdr_mutated),
    ]


def _with_definitions(place: Path) -> bytes:
    """Return an mcap file with messages whose definitions are in it."""
    store = store_of(DEFINITIONS)
    values = [{'interface_names': ['position', 'effort'], 'values': [0.1, 2.0]}] * 2
    topics = {'/states': (DYNAMIC, [(START + k, made(
        store, DYNAMIC, header=header(START + k), joint_names=['a', 'b'], interface_values=values))
        for k in range(20)])}
    return storage_file(write(place / 'defined', topics, store)).read_bytes()


def _survey(path: Path) -> object:
    """Read a bag, and look through its topics."""
    for topic in survey(path):
        list(uses(topic, ('a', 'b')))
    return read_bag(path)


def _rosbag1(place: Path, messages: list[tuple[int, bytes]]) -> list[bytes]:
    """Return bags of ROS 1, plain and compressed."""
    store = store_of(ros1=True)
    states = joint_states(store, [t for t, _ in messages], ('a', 'b'), np.ones((60, 2)))
    return [write(place / f'rosbag{k}', {'/joint_states': states}, store, storage).read_bytes()
            for k, storage in enumerate(('ros1', 'ros1 bz2', 'ros1 lz4'))]


def _in_folder(name: str, folder: Path) -> Reader:
    """Return a reader of a compressed bag whose storage file is damaged."""
    file = next(f for f in folder.iterdir() if f.name != 'metadata.yaml')
    inner = mcap_mutated if '.mcap' in file.name else db3_mutated
    mutate = inner if file.suffix != '.zstd' else _inside(zstd.decompress, zstd.compress, inner)
    read = _ReadFolder((folder / 'metadata.yaml').read_bytes(), file.name)
    return Reader(name, file.suffix, [file.read_bytes()], read, mutate)


class _ReadFolder:
    """Reads a file as the storage of a bag."""

    def __init__(self, metadata: bytes, name: str) -> None:
        self.metadata = metadata
        self.name = name

    def __call__(self, path: Path) -> object:
        folder = path.parent / 'bag'
        folder.mkdir(exist_ok=True)
        (folder / 'metadata.yaml').write_bytes(self.metadata)
        shutil.copy(path, folder / self.name)
        return read_bag(folder)


class _ReadMetadata:
    """Reads a file as the metadata of a bag."""

    def __init__(self, storage: bytes) -> None:
        self.storage = storage

    def __call__(self, path: Path) -> object:
        folder = path.parent / 'bag'
        folder.mkdir(exist_ok=True)
        (folder / 'ours.mcap').write_bytes(self.storage)
        shutil.copy(path, folder / 'metadata.yaml')
        return read_bag(folder)


def _cdr_messages() -> list[bytes]:
    values = np.array([[0.1, 0.2, 0.3]])
    ours = encode_joint_states(('a', 'bcd', 'ef'), np.array([START]), (values, None, values))
    long = tuple(f'joint_{k}' for k in range(40))
    many = np.zeros((1, 40))
    return [*ours, *encode_joint_states(long, np.array([START]), (many, many, many)),
            raw(('a', 'b'), START, [1, 2], [3, 4], [5, 6], little_endian=False),
            raw((), 0, []), ours[0] + ours[0]]


def read_cdr(path: Path) -> object:
    """Read a message as the live node does, and as bags are read."""
    data = path.read_bytes()
    for kind in (JOINT_STATE, CONTROLLER_STATE):
        batch = joined_batch([START, START + 1, -1], [data, data[:len(data) // 2], data])
        JointStateDecoder(kind).decode(batch)
    return JointStateReader()(data)


def cdr_mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a message with a damaged length or number, or any damage."""
    if rng.random() < 0.4 or len(data) < 12:
        return mutated(rng, data)
    at = 4 + 4 * int(rng.integers((len(data) - 4) // 4))
    value = int(rng.choice([0, 1, 2, 3, 5, 1000, 1001, 1 << 20, 1 << 28, (1 << 31) - 1, 1 << 31,
                            (1 << 32) - 1, 0x7FF00000, 0x7FF80000, 0x7FEFFFFF]))
    return data[:at] + struct.pack(rng.choice(['<I', '>I']), value) + data[at + 4:]


def _inside(
    unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes], inner: Mutator
) -> Mutator:
    """Return damage of compressed bytes, or of what they hold."""
    def mutate(rng: np.random.Generator, data: bytes) -> bytes:
        if rng.random() < 0.5:
            return mutated(rng, data)
        try:
            content = unpack(data)
        except Exception:  # damaged before
            return mutated(rng, data)
        return pack(inner(rng, content))
    return mutate


def mcap_mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a file with any damage, or with a record lost, moved, doubled or made anew."""
    if rng.random() < 0.4:
        return mutated(rng, data)
    records = _records(data[len(MAGIC):])
    if not records:
        return mutated(rng, data)
    k, j = (int(i) for i in rng.integers(len(records), size=2))
    op, body = records[k]
    match int(rng.integers(6)):
        case 0:
            del records[k]
        case 1:
            records.insert(j, records[k])
        case 2:
            records[k], records[j] = records[j], records[k]
        case 3:
            records[k] = int(rng.integers(256)), body
        case 4:
            records[k] = op, mutated(rng, body)
        case _:
            chunks = [i for i, (kind, _) in enumerate(records) if kind == 6]
            if chunks:
                k = int(rng.choice(chunks))
                records[k] = 6, _chunk_mutated(rng, records[k][1])
    return MAGIC + b''.join(mcap_record(*one) for one in records) + MAGIC


def _chunk_mutated(rng: np.random.Generator, body: bytes) -> bytes:
    """Return a chunk with damaged records and the right checksum, or one that claims a size."""
    with suppress(Exception):  # damaged before
        start, end, _, _, size = struct.unpack_from('<QQQII', body)
        name = body[32:32 + size]
        records = mutated(rng, UNPACK[name](body[40 + size:]))
        claimed = None if rng.random() < 0.8 else int(rng.choice([0, 1 << 26, 1 << 33, 1 << 63]))
        return chunk_of(records, (start, end), name.decode(), zlib.crc32(records), claimed)[9:]
    return mutated(rng, body)


def _records(data: bytes) -> list[tuple[int, bytes]]:
    records, at = [], 0
    while at + 9 <= len(data):
        op, size = struct.unpack_from('<BQ', data, at)
        if at + 9 + size > len(data):
            break
        records.append((op, data[at + 9:at + 9 + size]))
        at += 9 + size
    return records


STATEMENTS = (
    'DROP TABLE messages', 'DROP TABLE topics', 'DELETE FROM messages WHERE id % 2',
    'UPDATE topics SET name = NULL', "UPDATE topics SET type = 7, name = x'ff00'",
    "UPDATE topics SET serialization_format = 'json'",
    "UPDATE messages SET timestamp = 'soon' WHERE id % 3 = 0",
    'UPDATE messages SET timestamp = 9223372036854775807 WHERE id = 7',
    'UPDATE messages SET timestamp = -9223372036854775808 WHERE id = 9',
    'UPDATE messages SET data = NULL WHERE id = 5', "UPDATE messages SET data = 'text'",
    'UPDATE messages SET data = zeroblob(3000000) WHERE id = 5',
    'UPDATE messages SET topic_id = 9999999999', 'UPDATE messages SET data = randomblob(200)',
    'ALTER TABLE messages RENAME TO kept; CREATE VIEW messages AS WITH RECURSIVE n(id) AS '
    "(SELECT 1 UNION ALL SELECT id + 1 FROM n) SELECT id, 1 AS topic_id, id AS timestamp, x'00' "
    'AS data FROM n',
    'ALTER TABLE topics RENAME TO kept; CREATE VIEW topics AS SELECT * FROM kept, kept AS k',
    'ALTER TABLE messages RENAME TO kept; CREATE TABLE messages(id INTEGER PRIMARY KEY, '
    'topic_id, timestamp, data AS (zeroblob(16000000))); '
    'INSERT INTO messages(topic_id, timestamp) SELECT topic_id, timestamp FROM kept',
    'WITH RECURSIVE n(i) AS (SELECT 9 UNION ALL SELECT i + 1 FROM n LIMIT 3000) '
    "INSERT INTO topics SELECT i, '/t' || i, 'sensor_msgs/msg/JointState', 'cdr', '', '' FROM n",
    'PRAGMA user_version = 7', 'DROP INDEX timestamp_idx', 'VACUUM')


def db3_mutated(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a database with any damage, or with other rows, types, tables or views."""
    if rng.random() < 0.6:
        return mutated(rng, data)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / 'changed.db3'
        path.write_bytes(data)
        try:
            with closing(sqlite3.connect(path)) as base:
                base.executescript(STATEMENTS[int(rng.integers(len(STATEMENTS)))])
                base.commit()
        except (sqlite3.Error, sqlite3.Warning, ValueError):
            return mutated(rng, data)
        return path.read_bytes()
