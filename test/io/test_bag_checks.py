"""io/bag.py: changed bytes of bags: whatever gives other data is said, as far as the format
allows."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from bags import (
    MAGIC,
    START,
    Style,
    mcap_file,
    mcap_message,
    mcap_record,
    raw,
    states,
    storage_file,
    write_topics,
)
from rosbags.rosbag2.storage_mcap import McapReader

from robot_dynid.errors import DataError
from robot_dynid.io.bag import read_bag
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import (
    JOINT_STATE,
    JointStateDecoder,
    JointStateReader,
    encode_joint_states,
)
from robot_dynid.io.sqlite import joined_batch
from robot_dynid.types import DAMAGE, RawLog
from robot_dynid.yaml_text import load_yaml, yaml_text

MESSAGES, VALUES = states(count=60)


def ours(folder: Path) -> Path:
    """Write the messages with our writer, in three pieces."""
    with BagWriter(folder) as bag:
        topic = bag.add_topic('/joint_states', JOINT_STATE)
        for k, one in enumerate(MESSAGES):
            bag.write(topic, *one)
            if k % 20 == 19:
                bag.commit()
    return folder


def in_folder(style: Style) -> Callable[[Path], Path]:
    """Return what writes the messages as a file in a folder without metadata."""
    def write(folder: Path) -> Path:
        folder.mkdir()
        (folder / 'log.mcap').write_bytes(mcap_file(MESSAGES, style))
        return folder
    return write


WRITERS: dict[str, Callable[[Path], Path]] = {
    'ours': ours,
    'plain': in_folder(Style('', 20)), 'lz4': in_folder(Style('lz4', 20)),
    'zstd': in_folder(Style('zstd', 20)), 'no chunks': in_folder(Style('', 0)),
    'no index': in_folder(Style('zstd', 20, index=False)),
}


def numbers(log: RawLog) -> list[bytes]:
    """Return all that was measured, as bytes."""
    return [array.tobytes() for array in (log.time, log.position, log.velocity, log.effort)
            if array is not None]


def changed(rng: np.random.Generator, sound: bytes) -> bytes:
    """Return the bytes with one bit, some bytes or a stretch changed."""
    data = bytearray(sound)
    at = int(rng.integers(len(data)))
    match int(rng.integers(3)):
        case 0:
            data[at] ^= 1 << int(rng.integers(8))
        case 1:
            for place in rng.integers(0, len(data), int(rng.integers(1, 6))):
                data[place] = int(rng.integers(256))
        case _:
            data[at:at + 8] = rng.bytes(len(data[at:at + 8]))
    return bytes(data)


@pytest.mark.parametrize('writer', WRITERS)
def test_no_change_of_a_file_with_checksums_is_silent(tmp_path: Path, writer: str) -> None:
    path = WRITERS[writer](tmp_path / 'bag')
    sound = read_bag(path)
    np.testing.assert_array_equal(sound.position, VALUES)
    assert not [found for found in sound.findings if found.startswith(DAMAGE)]
    file, rng = storage_file(path), np.random.default_rng(3)
    data, silent, told = file.read_bytes(), 0, 0
    for _ in range(150):
        file.write_bytes(changed(rng, data))
        try:
            log = read_bag(path)
        except DataError:
            continue
        said = set(log.findings) - set(sound.findings)
        told += bool(said)
        silent += numbers(log) != numbers(sound) and not said
    assert silent == 0
    assert told > 20


def test_bag_writer_writes_every_checksum(tmp_path: Path) -> None:
    file = storage_file(ours(tmp_path / 'bag'))
    data = file.read_bytes()
    place, checksums = len(MAGIC), {}
    while data[place] not in MAGIC[:1]:
        op, size = struct.unpack_from('<BQ', data, place)
        field = {6: 33, 15: 9, 2: 25}.get(op)
        if field:
            checksums.setdefault(op, []).append(data[place + field:place + field + 4])
        place += 9 + size
    assert {op: len(found) for op, found in checksums.items()} == {6: 3, 15: 1, 2: 1}
    assert all(found != bytes(4) for some in checksums.values() for found in some)
    reader = McapReader(file)
    reader.open()
    assert len(list(reader.messages(reader.connections))) == 60  # rosbags checks chunks, too
    reader.close()


def test_a_chunk_with_a_wrong_checksum_costs_itself_alone(tmp_path: Path) -> None:
    path = ours(tmp_path / 'bag')
    data = bytearray(storage_file(path).read_bytes())
    data[data.index(MESSAGES[25][1]) + 60] ^= 1
    storage_file(path).write_bytes(data)
    log = read_bag(path)
    np.testing.assert_array_equal(log.position, np.delete(VALUES, slice(20, 40), axis=0))
    assert any(found.startswith(f'{DAMAGE}bag.mcap: chunk at byte') for found in log.findings)
    assert any('time: 1 gaps' in found for found in log.findings)


PLAIN = mcap_file(MESSAGES, Style('', 20, checksums=False))


@pytest.mark.parametrize(('at', 'value', 'words'), [
    ('kind of a chunk', 0x86, 'an index stands before all messages'),
    ('kind of a chunk', 0x09, 'the checksum of the attachment'),
    ('receive time', 7, 'other messages than its index'),
    ('later receive time', 7, 'other messages than its index'),
    ('messages in all', 61, '60 messages in 3 chunks, 61 in 3'),
    ('topic', ord('x'), 'its summary|becomes'),
    ('last byte', 0, 'half a record|last bytes|cut off')])
def test_without_checksums_contradictions_are_told(
    tmp_path: Path, at: str, value: int, words: str
) -> None:
    first = PLAIN.index(mcap_message(*MESSAGES[0]))
    places = {'kind of a chunk': PLAIN.index(b'\x06', 9 + 8 + 12),
              'receive time': first + 15, 'later receive time': first + 15 + len(
                  mcap_message(*MESSAGES[0])) * 3,
              'messages in all': PLAIN.index(mcap_record(11, b'')[:1] + struct.pack('<Q', 56)) + 9,
              'topic': PLAIN.index(b'/joint_states') + 3, 'last byte': len(PLAIN) - 1}
    data = bytearray(PLAIN)
    data[places[at]] = value
    (tmp_path / 'log.mcap').write_bytes(data)
    try:
        said = ' '.join(read_bag(tmp_path / 'log.mcap').findings)
    except DataError as error:
        said = str(error)
    assert any(word in said for word in words.split('|')), said


@pytest.mark.parametrize('change', ['message_count', 'topics_with_message_count'])
@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_counts_of_the_metadata_are_held_against_the_messages(
    tmp_path: Path, storage: str, change: str
) -> None:
    path = write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES}, storage)
    file = path / 'metadata.yaml'
    whole = load_yaml(file.read_text(), 'metadata.yaml', DataError)
    info = whole['rosbag2_bagfile_information']
    if change == 'message_count':
        info['message_count'] = 61
    else:
        info[change][0]['message_count'] = 61
    file.write_text(yaml_text(whole))
    log = read_bag(path)
    np.testing.assert_array_equal(log.position, VALUES)
    assert any(f.startswith(DAMAGE) and 'it has 60 messages' in f for f in log.findings)


def test_a_database_that_contradicts_its_index_is_told(tmp_path: Path) -> None:
    path = write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES}, 'sqlite3')
    data = storage_file(path).read_bytes()
    stamp = struct.pack('>q', MESSAGES[30][0])
    assert data.count(stamp) == 2  # row and index
    storage_file(path).write_bytes(data.replace(stamp, struct.pack('>q', MESSAGES[30][0] + 1), 1))
    assert any(f.startswith(DAMAGE) and 'structure' in f for f in read_bag(path).findings)


GOOD = encode_joint_states(('ab', 'c'), np.array([START]), (np.ones((1, 2)), None, None))[0]
BAD_MESSAGES = {
    'nanoseconds': GOOD[:8] + struct.pack('<I', 10**9) + GOOD[12:],
    'no NUL': GOOD.replace(b'ab\0', b'abx'), 'NUL inside': GOOD.replace(b'ab\0', b'a\0\0'),
    'longer': GOOD + bytes(32), 'no encapsulation': b'\1' + GOOD[1:],
    'another byte order': b'\0\2' + GOOD[2:],
    'many joints': GOOD[:20] + struct.pack('<I', 1 << 20) + GOOD[24:],
    'twice': encode_joint_states(('a', 'a'), np.array([START]), (np.ones((1, 2)), None, None))[0],
    'long name': encode_joint_states(('a' * 10_000, 'b'), np.array([START]),
                                     (np.ones((1, 2)), None, None))[0],
}


@pytest.mark.parametrize('case', BAD_MESSAGES)
def test_messages_that_contradict_themselves_are_left_out(case: str) -> None:
    decoder = JointStateDecoder()
    decoded = decoder.decode(joined_batch([1, 2, 3], [GOOD, BAD_MESSAGES[case], GOOD]))
    assert sum(len(part.stamp) for part in decoded) == 2
    assert decoder.undecodable == 1
    reader = JointStateReader()
    assert reader(GOOD)[1] == START
    with pytest.raises(DataError):
        reader(BAD_MESSAGES[case])
    assert reader(GOOD)[1] == START


def test_header_stamps_that_step_against_the_receive_times_are_told(tmp_path: Path) -> None:
    received = START + 10**7 * np.arange(40)
    stamps = received - 10**6 + np.where(np.arange(40) < 20, 0, 3 * 10**9)
    both = [(int(r), raw(('a',), s, [k], [k], [k]))
            for k, (r, s) in enumerate(zip(received, stamps, strict=True))]
    found = read_bag(write_topics(tmp_path / 'b', {'/joint_states': both})).findings
    assert any('step against the receive times 1 times, most by 3 s' in f for f in found), found


def test_damage_without_end_is_listed_shortly(tmp_path: Path) -> None:
    data = mcap_file(MESSAGES * 2, Style('', 1))
    broken = bytearray(data)
    at = 0
    while (at := broken.find(b'\0\1\0\0', at + 1)) > 0:
        broken[at + 30] ^= 1
    (tmp_path / 'log.mcap').write_bytes(broken)
    with pytest.raises(DataError) as error:
        read_bag(tmp_path / 'log.mcap')
    assert 30 < str(error.value).count('left out') <= 40
    assert 'in more places than are listed' in str(error.value)
