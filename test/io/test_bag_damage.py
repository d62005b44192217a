"""io/bag.py: bags that a crash left behind, or that were damaged later."""

import shutil
import sqlite3
import zlib

import numpy as np
import pytest
import zstandard
from bags import FILES, PLUGINS, START, motion, raw, states, storage_file, write_topics
from fuzzing import may_refuse
from rosbags.rosbag2 import CompressionMode

from robot_dynid import files
from robot_dynid.errors import DataError
from robot_dynid.io.bag import read_bag
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import JOINT_STATE, encode_joint_states
from robot_dynid.types import DAMAGE


def test_damaged_messages_are_left_out_and_counted(tmp_path):
    messages, values = states()
    messages[3] = (messages[3][0], messages[3][1][:40])
    messages[4] = (messages[4][0], b'\0\1')
    messages[5] = (messages[5][0], raw(('a', 'b'), START, [1, 2, 3]))
    log = read_bag(write_topics(tmp_path / 'b', {'/joint_states': messages}))
    np.testing.assert_array_equal(log.position, np.delete(values, [3, 4, 5], axis=0))
    assert any('2 of 400 messages are damaged' in f for f in log.findings)
    assert any('1 of 400 messages have arrays that do not match' in f for f in log.findings)


@pytest.mark.parametrize('storage', PLUGINS)
@pytest.mark.parametrize('text', [None, 'rosbag2_bagfile_information: {relat'])
def test_without_metadata_the_storage_is_read(tmp_path, storage, text):
    messages, values = states()
    path = write_topics(tmp_path / 'b', {'/joint_states': messages}, storage)
    (path / 'metadata.yaml').unlink()
    if text is not None:
        (path / 'metadata.yaml').write_text(text)
    log = read_bag(path)
    np.testing.assert_array_equal(log.position, values)
    word = 'missing' if text is None else 'damaged'
    assert any(f'metadata.yaml is {word}' in f for f in log.findings)


@pytest.mark.parametrize('share', [0.1, 0.5, 0.8, 0.999])
@pytest.mark.parametrize('storage', PLUGINS)
def test_cut_off_storage_gives_what_it_holds(tmp_path, storage, share):
    messages, values = states(count=9000)
    path = write_topics(tmp_path / 'b', {'/joint_states': messages}, storage)
    file = storage_file(path)
    with file.open('r+b') as opened:
        size = file.stat().st_size
        opened.truncate(int(share * size))
    log = read_bag(path)
    got = len(log.time)
    slack = 0.03 if storage == 'mcap' else 0.1  # sqlite: index pages lie between the rows
    assert got >= (1 - slack) * share * 9000 - 100
    np.testing.assert_array_equal(log.position, values[:got])
    if got < 9000:
        assert any('cut off' in f or 'not closed' in f for f in log.findings), log.findings


def test_sqlite_with_a_write_ahead_log(tmp_path):
    messages, values = states()
    path = write_topics(tmp_path / 'b', {'/joint_states': messages}, 'sqlite3')
    file = storage_file(path)
    base = sqlite3.connect(file)
    base.execute('PRAGMA journal_mode=WAL')
    extra = raw(('a', 'b'), START + 10**9, [7, 8], [7, 8], [7, 8])
    base.execute('INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, ?)',
                 (START + 10**9, extra))
    base.commit()
    shutil.copytree(path, tmp_path / 'crashed')
    base.close()
    before = {f.name: f.read_bytes() for f in (tmp_path / 'crashed').iterdir()}
    log = read_bag(tmp_path / 'crashed')
    np.testing.assert_array_equal(log.position, [*values, [7, 8]])
    assert any('journal' in f for f in log.findings)
    assert before == {f.name: f.read_bytes() for f in (tmp_path / 'crashed').iterdir()}


@pytest.mark.parametrize('content', [b'', b'\x89MCAP0\r\n', b'hello there'])
@pytest.mark.parametrize('suffix', ['.mcap', '.db3'])
def test_files_that_are_no_bags(tmp_path, content, suffix):
    path = tmp_path / f'log{suffix}'
    path.write_bytes(content)
    with pytest.raises(DataError, match='log'):
        read_bag(path)


@pytest.mark.parametrize('storage', PLUGINS)
@pytest.mark.filterwarnings('error')
def test_scrambled_bytes_never_break_the_reader(tmp_path, storage):
    messages, _ = states(count=300)
    path = write_topics(tmp_path / 'b', {'/joint_states': messages}, storage)
    sound = storage_file(path).read_bytes()
    file = tmp_path / f'x{FILES[storage]}'
    rng = np.random.default_rng(5)
    read = 0
    for _ in range(120):
        data = bytearray(sound)
        reach = min(len(data), 6000) if rng.random() < 0.5 else len(data)
        for at in rng.integers(0, reach, rng.integers(1, 30)):
            data[at] = rng.integers(256)
        file.write_bytes(data)
        with may_refuse():
            read += len(read_bag(file).time) > 0
    assert read > 30


@pytest.mark.parametrize('share', [0.3, 0.9])
def test_what_lies_before_a_damaged_block_of_a_compressed_file_is_read(
    tmp_path, share, monkeypatch
):
    """A block of a type that does not exist follows; counts of the metadata say nothing then."""
    monkeypatch.setattr(files, 'DIGEST_BYTES', 4096)  # bytes that are unpacked at a time
    messages, values = states(count=3000)
    path = write_topics(tmp_path / 'b', {'/joint_states': messages}, 'mcap', CompressionMode.FILE)
    file = next(f for f in path.iterdir() if f.suffix == '.zstd')
    with zstandard.open(file) as packed:
        plain = packed.read()
    packer = zstandard.ZstdCompressor().compressobj()
    good = packer.compress(plain[:int(share * len(plain))])
    good += packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    file.write_bytes(good + b'\x06\0\0')
    log = read_bag(path)
    assert 0.8 * share * 3000 < len(log.time) < 3000
    np.testing.assert_array_equal(log.position, values[:len(log.time)])
    assert any(f'{file.name}: it does not decompress' in f and f.endswith(
        'what lies before was read') for f in log.findings)
    assert not any('metadata' in f for f in log.findings), log.findings


def test_read_bag_leaves_out_only_the_damaged_chunk(tmp_path):
    stamps = START + 10**6 * np.arange(900)
    values = motion(900)
    with BagWriter(tmp_path / 'b') as bag:
        topic = bag.add_topic('/joint_states', JOINT_STATE)
        payloads = encode_joint_states(('a', 'b'), stamps, (values, values, values))
        for k, (stamp, data) in enumerate(zip(stamps.tolist(), payloads, strict=True)):
            bag.write(topic, stamp, data)
            if k % 300 == 299:
                bag.commit()
    file = storage_file(tmp_path / 'b')
    data = bytearray(file.read_bytes())
    at = data.index(payloads[450]) - 31
    data[at:at + 9] = bytes(9)
    file.write_bytes(data)
    log = read_bag(tmp_path / 'b')
    np.testing.assert_array_equal(log.position, np.delete(values, slice(300, 600), axis=0))
    told = [f for f in log.findings if f.startswith(DAMAGE)]
    assert any('its checksum is wrong, its messages were left out' in f for f in told)
    assert any('time: 1 gaps' in f for f in log.findings)


def test_read_bag_leaves_out_a_chunk_with_a_wrong_checksum(tmp_path):
    messages, values = states(count=100)
    path = write_topics(tmp_path / 'b', {'/joint_states': messages})
    file = storage_file(path)
    data = bytearray(file.read_bytes())
    chunk = 8 + 9 + int.from_bytes(data[9:17], 'little')
    assert data[chunk] == 6
    size = int.from_bytes(data[chunk + 25:chunk + 33], 'little')
    records = bytes(data[chunk + 49:chunk + 49 + size])
    data[chunk + 33:chunk + 37] = zlib.crc32(records).to_bytes(4, 'little')
    file.write_bytes(data)
    log = read_bag(path)
    np.testing.assert_array_equal(log.position, values)
    assert log.findings == ()
    data[chunk + 33] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError, match=r'damaged: b\.mcap: chunk at byte .* checksum is wrong'):
        read_bag(path)
