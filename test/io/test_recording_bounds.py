"""io/: recordings that are bombs, devices, links or queries: refused quickly, with little memory.
"""

from __future__ import annotations

import gzip
import os
import sqlite3
import struct
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace

import lz4.frame
import numpy as np
import pytest
from bags import (
    MAGIC,
    START,
    Style,
    announced,
    chunk_of,
    mcap_file,
    mcap_message,
    mcap_record,
    mcap_text,
    raw,
    states,
    storage_file,
    write_topics,
)
from fuzzing import may_refuse
from rosbags.rosbag2 import CompressionMode
from rosbags.rosbag2.storage_mcap import zstd

from robot_dynid.errors import DataError, DynIdError
from robot_dynid.files import TooLarge, unpacked
from robot_dynid.io import mcap
from robot_dynid.io.bag import read_bag
from robot_dynid.io.cdr import JOINT_STATE, JointStateDecoder, encode_joint_states
from robot_dynid.io.csv import read_csv
from robot_dynid.io.log import load_log
from robot_dynid.io.sqlite import joined_batch
from robot_dynid.types import DAMAGE
from robot_dynid.yaml_text import load_yaml, yaml_text

MESSAGES, VALUES = states(count=60)
#: most memory [MB] and time [s] of a refusal; 500 MB and 5 s are promised
MEGABYTES, SECONDS = 300, 5.0


@pytest.fixture(autouse=True)
def bounded() -> Iterator[None]:
    """Let every test fail that takes much memory or time."""
    tracemalloc.start()
    start = time.process_time()
    yield
    assert time.process_time() - start < SECONDS
    assert tracemalloc.get_traced_memory()[1] < MEGABYTES * 1e6
    tracemalloc.stop()


def zeros(pack: Callable[[bytes], bytes], size: int) -> bytes:
    """Return so many zeros, packed."""
    return pack(bytes(size))


def chunk(packed: bytes, claimed: int, compression: str) -> bytes:
    """Return a chunk that claims to unpack to so many bytes."""
    return mcap_record(6, struct.pack('<QQQII', 0, 0, claimed, 0, len(compression))
                  + compression.encode() + struct.pack('<Q', len(packed)) + packed)


def as_mcap(folder: Path, *records: bytes) -> Path:
    path = folder / 'log.mcap'
    path.write_bytes(MAGIC + mcap_record(1, mcap_text('ros2') + mcap_text('')) + b''.join(records))
    return path


MANY = 100_000_000


@pytest.mark.parametrize('compression', ['zstd', 'lz4'])
def test_chunks_that_unpack_to_gigabytes(tmp_path: Path, compression: str) -> None:
    pack = {'zstd': zstd.compress, 'lz4': lz4.frame.compress}[compression]
    packed = zeros(pack, 1 << 25)
    count = 60 if compression == 'zstd' else 1
    bomb = as_mcap(tmp_path, announced(), *[chunk(packed, 1 << 25, compression)] * count)
    with pytest.raises(DataError, match=r'more than 100 times its size|no JointState'):
        read_bag(bomb)


@pytest.mark.parametrize('claimed', [10, (1 << 25) - 1, (1 << 27) + 1, 1 << 40, (1 << 64) - 1])
def test_chunks_that_claim_another_size(tmp_path: Path, claimed: int) -> None:
    good = chunk_of(announced() + b''.join(mcap_message(*one) for one in MESSAGES),
                    (MESSAGES[0][0], MESSAGES[-1][0]))
    bomb = chunk(zeros(zstd.compress, 1 << 25), claimed, 'zstd')
    log = read_bag(as_mcap(tmp_path, bomb, good))
    np.testing.assert_array_equal(log.position, VALUES)
    assert any(f.startswith(DAMAGE) and 'chunk at byte' in f for f in log.findings)


@pytest.mark.parametrize('content', [b'a' * MANY, b'0,0,0\n' * (MANY // 6), b',' * MANY])
def test_text_that_unpacks_to_gigabytes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / 'log.csv.gz'
    path.write_bytes(gzip.compress(content[:1 << 20], 1) * (MANY >> 20))
    with pytest.raises(DataError, match=r'more than|match no preset'):
        read_csv(path)


@pytest.mark.parametrize(('header', 'words'), [
    (','.join(f'c{k}' for k in range(6000)), '5000 columns'), ('x' * (1 << 21), 'line 1 has more'),
    ('time,position.a\n0,1\n' + '0' * (1 << 21), 'line 3 has more')])
def test_lines_and_columns_without_end(tmp_path: Path, header: str, words: str) -> None:
    (tmp_path / 'log.csv').write_text(header + '\n')
    with pytest.raises(DataError, match=words):
        read_csv(tmp_path / 'log.csv')


@pytest.mark.parametrize('kind', ['pipe', 'device', 'folder', 'long name'])
@pytest.mark.parametrize('name', [
    'log.mcap', 'log.db3', 'log.csv', 'log.csv.gz', 'bag/metadata.yaml', 'bag/bag.mcap',
    'bag/bag.db3.zstd'])
def test_only_regular_files_are_read(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    if kind == 'pipe':
        os.mkfifo(path)
    elif kind == 'device':
        path.symlink_to('/dev/zero')
    elif kind == 'folder':
        path.mkdir()
    else:
        path = path.with_name('x' * 300 + path.name)
    with pytest.raises(DynIdError):
        load_log(path if path.parent == tmp_path else path.parent,
                 SimpleNamespace(joints=('a', 'b')))


@pytest.mark.parametrize('compression', [CompressionMode.FILE, CompressionMode.MESSAGE])
def test_compressed_bags_that_are_cut_off_or_bombs(
    tmp_path: Path, compression: CompressionMode
) -> None:
    path = write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES}, 'sqlite3', compression)
    file = next(f for f in path.iterdir() if f.name != 'metadata.yaml')
    whole = file.read_bytes()
    for size in range(0, len(whole), len(whole) // 10):
        file.write_bytes(whole[:size])
        with may_refuse():
            log = read_bag(path)
            assert len(log.time) == 60 or log.findings
    if compression is CompressionMode.FILE:
        file.write_bytes(zstd.compress(bytes(1 << 25)) * 3)
        with pytest.raises(DataError, match='unpacks to more than'):
            read_bag(path)


def test_messages_that_unpack_to_gigabytes(tmp_path: Path) -> None:
    path = tmp_path / 'bag'
    bomb = zstd.compress(bytes(1 << 25))
    write_topics(path, {'/joint_states': [(START + k, bomb) for k in range(50)]}, 'sqlite3')
    metadata = path / 'metadata.yaml'
    info = load_yaml(metadata.read_text(), 'm', DataError)
    info['rosbag2_bagfile_information'] |= {'compression_mode': 'MESSAGE',
                                            'compression_format': 'zstd'}
    metadata.write_text(yaml_text(info))
    with pytest.raises(DataError, match='50 messages do not decompress'):
        read_bag(path)


def edited(path: Path, **changes: object) -> Path:
    """Change entries of metadata.yaml."""
    file = path / 'metadata.yaml'
    whole = load_yaml(file.read_text(), 'm', DataError)
    whole['rosbag2_bagfile_information'] |= changes
    file.write_text(yaml_text(whole))
    return path


@pytest.mark.parametrize('named', [
    '/etc/passwd', '../other/other.mcap', 'a/b/bag.mcap', '', '.', '..', 7, None, ['x'],
    {'a': 1}, 'bag\0.mcap', 'x' * 5000])
def test_names_of_files_stay_in_the_folder(tmp_path: Path, named: object) -> None:
    write_topics(tmp_path / 'other', {'/joint_states': MESSAGES[:5]})
    path = write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES})
    log = read_bag(edited(path, relative_file_paths=[named]))
    np.testing.assert_array_equal(log.position, VALUES)
    assert any(f.startswith(DAMAGE) for f in log.findings), log.findings


def test_links_that_go_round_are_not_followed(tmp_path: Path) -> None:
    path = write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES})
    (path / 'bag_1.mcap').symlink_to('bag_1.mcap')
    log = read_bag(path)
    np.testing.assert_array_equal(log.position, VALUES)
    assert f'{DAMAGE}bag_1.mcap is a link out of the folder and was not read' in ' '.join(
        log.findings)


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    other = write_topics(tmp_path / 'other', {'/joint_states': MESSAGES[:5]})
    path = write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES})
    (path / 'bag_1.mcap').symlink_to(storage_file(other))
    log = read_bag(path)
    np.testing.assert_array_equal(log.position, VALUES)
    assert any('bag_1.mcap is a link out of the folder' in f for f in log.findings)


@pytest.mark.parametrize('changes', [
    {'compression_mode': 'FILE', 'compression_format': 'lzma'}, {'compression_mode': 7},
    {'compression_mode': ['message'], 'compression_format': 'zstd'}])
def test_unknown_compressions_are_named(tmp_path: Path, changes: dict[str, object]) -> None:
    path = write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES})
    with pytest.raises(DataError, match='zstd by file or message is read'):
        read_bag(edited(path, **changes))


@pytest.mark.parametrize('changes', [
    {'message_count': 'many'}, {'topics_with_message_count': 7}, {'starting_time': None},
    {'duration': {'nanoseconds': 1e308}}, {'custom_data': [1]}, {'custom_data': {1: 2}},
    {'topics_with_message_count': [{'topic_metadata': {'name': []}, 'message_count': 1}]}])
def test_metadata_of_wrong_types_cost_nothing(tmp_path: Path, changes: dict[str, object]) -> None:
    path = write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES})
    np.testing.assert_array_equal(read_bag(edited(path, **changes)).position, VALUES)


def test_folders_with_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr('robot_dynid.io.storage.FILES', 100)
    for k in range(101):
        (tmp_path / f'{k}.txt').touch()
    with pytest.raises(DataError, match='more than 100 files'):
        read_bag(tmp_path)


QUERIES = {
    'view without end': (
        'CREATE VIEW messages AS WITH RECURSIVE n(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n)'
        " SELECT id, 1 AS topic_id, id AS timestamp, x'00' AS data FROM n", 'not a table'),
    'generated': (
        'CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, '
        'data AS (zeroblob(9000000))); INSERT INTO messages(topic_id, timestamp) '
        'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3000) '
        'SELECT 1, i FROM n', 'larger than the file'),
    'large': ('CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id, timestamp, data); '
              'INSERT INTO messages VALUES(1, 1, 1, zeroblob(20000000))',
              # SQLite itself is told the size from Python 3.11 on
              'too big' if sys.version_info >= (3, 11) else 'no usable messages'),
    'no table': ('SELECT 1', 'no such table: messages'),
}


@pytest.mark.parametrize('case', QUERIES)
def test_databases_that_are_programs(tmp_path: Path, case: str) -> None:
    path = storage_file(write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES}, 'sqlite3'))
    query, words = QUERIES[case]
    with closing(sqlite3.connect(path)) as base:
        base.executescript(f'DROP TABLE messages; {query}')
        base.commit()
    with pytest.raises(DataError, match=words):
        read_bag(path)


def test_topics_without_number(tmp_path: Path) -> None:
    topics = b''.join(announced(f'/t{k}', JOINT_STATE, k) for k in range(1, 3000))
    with pytest.raises(DataError, match='more than 256 topics'):
        read_bag(as_mcap(tmp_path, topics))
    others = b''.join(announced(f'/t{k}', 'std_msgs/msg/String', k) for k in range(2, 3000))
    data = mcap_file(MESSAGES, Style('', 0))
    at = len(MAGIC) + 9 + struct.unpack_from('<Q', data, 9)[0]
    (tmp_path / 'log.mcap').write_bytes(data[:at] + others + data[at:])
    np.testing.assert_array_equal(read_bag(tmp_path / 'log.mcap').position, VALUES)


def test_records_of_unknown_kinds_are_counted(tmp_path: Path) -> None:
    data = mcap_file(MESSAGES, Style('', 0))
    at = len(MAGIC) + 9 + struct.unpack_from('<Q', data, 9)[0]
    (tmp_path / 'log.mcap').write_bytes(data[:at] + mcap_record(0x80, b'') * 1000 + data[at:])
    (found,) = (f for f in read_bag(tmp_path / 'log.mcap').findings if 'unknown' in f)
    assert '1000 records of unknown kinds' in found


def test_records_too_large_for_memory_are_skipped_piece_by_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attachment of 3001 bytes, where 2000 are too many and 700 are skipped at a time."""
    monkeypatch.setattr(mcap, 'RECORD_BYTES', 2000)
    monkeypatch.setattr(mcap, 'PIECE', 700)
    data = mcap_file(MESSAGES, Style('', 0))
    at = len(MAGIC) + 9 + struct.unpack_from('<Q', data, 9)[0]
    large = mcap_record(9, bytes(3001))
    (tmp_path / 'log.mcap').write_bytes(data[:at] + large + data[at:])
    log = read_bag(tmp_path / 'log.mcap')
    np.testing.assert_array_equal(log.position, VALUES)
    assert any('1 records of unknown kinds or of more than 2000 bytes' in f for f in log.findings)


def test_messages_with_ever_new_joints(tmp_path: Path) -> None:
    payloads = [raw((f'j{k}',), START + k, [1.0]) for k in range(3000)]
    decoder = JointStateDecoder()
    decoder.decode(joined_batch(list(range(3000)), payloads))
    assert len(decoder.layouts) == 100 and decoder.undecodable == 2900


@pytest.mark.parametrize('names', [tuple(f'j{k}' for k in range(10_000)), ('a' * 10_000_000,)])
def test_messages_with_names_without_end(tmp_path: Path, names: tuple[str, ...]) -> None:
    values = (np.zeros((1, len(names))), None, None)
    (data,) = encode_joint_states(names, np.array([START]), values)
    path = write_topics(tmp_path / 'bag', {'/joint_states': [(START, data), *MESSAGES]})
    log = read_bag(path)
    np.testing.assert_array_equal(log.position, VALUES)
    assert any(f.startswith(DAMAGE) and '1 of 61 messages' in f for f in log.findings)


@pytest.mark.parametrize('compression', ['gz', 'zstd', 'lz4'])
def test_unpacking_stops_at_its_limit(compression: str) -> None:
    pack = {'gz': gzip.compress, 'zstd': zstd.compress, 'lz4': lz4.frame.compress}[compression]
    pieces = unpacked(BytesIO(zeros(pack, 1 << 24)), compression, 3_000_000)
    got = 0
    with pytest.raises(TooLarge):
        for piece in pieces:
            got += len(piece)
    assert 1 << 20 <= got <= 3_000_000


def test_messages_with_more_joints_than_robots_have() -> None:
    names = tuple(f'j{k}' for k in range(1001))
    values = (np.zeros((1, 1001)), None, None)
    for count, undecodable in ((1000, 0), (1001, 1)):
        one = tuple(None if v is None else v[:, :count] for v in values)
        decoder = JointStateDecoder()
        decoder.decode(joined_batch([1], encode_joint_states(names[:count], np.array([1]), one)))
        assert decoder.undecodable == undecodable
