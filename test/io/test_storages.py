"""io/mcap.py, sqlite.py, storage.py, messages/survey.py: records, rows and limits of storage
files, by hand."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from bags import (
    MAGIC,
    START,
    Style,
    announced,
    made,
    mcap_file,
    mcap_message,
    mcap_record,
    states,
    storage_file,
    store_of,
    write,
    write_topics,
)

from robot_dynid.errors import DataError
from robot_dynid.files import Damaged
from robot_dynid.io.cdr import JOINT_STATE
from robot_dynid.io.mcap import Contents, chunk_content, mcap_batches
from robot_dynid.io.messages.survey import TopicSummary, proposed_fields, survey
from robot_dynid.io.sqlite import sqlite_batches, whole_pages
from robot_dynid.io.storage import bag_batches, split_number
from robot_dynid.yaml_text import load_yaml, yaml_text

MESSAGES, _ = states(count=60)
PLAIN = mcap_file(MESSAGES, Style('', 20, checksums=False))
#: place of the first record after the header
FIRST = len(MAGIC) + 9 + struct.unpack_from('<Q', PLAIN, 9)[0]


def contents_of(path: Path, data: bytes) -> tuple[Contents, int]:
    """Return the contents of an mcap file, and the number of messages that were read."""
    path.write_bytes(data)
    contents = Contents()
    return contents, sum(len(batch.starts) for _, batch in mcap_batches(path, None, contents))


def with_record(*records: bytes, at: int = FIRST) -> bytes:
    return PLAIN[:at] + b''.join(records) + PLAIN[at:]


def test_damage_and_losses_are_listed_forty_times() -> None:
    contents = Contents()
    for k in range(1, 44):
        contents.damaged(f'{k:02}' + 'x' * (399 if k == 1 else 398))
        contents.lose(k, 'gone')
        assert (len(contents.findings), len(contents.losses)) == (min(k, 41), min(k, 40))
    assert (contents.damages, contents.lost) == (43, 43 * 44 // 2)
    assert contents.losses[39] == '40 bytes are lost: gone'
    assert contents.findings[40].endswith('in more places than are listed here')
    assert ' ... ' in contents.findings[0] and contents.findings[1].endswith('02' + 'x' * 398)
    assert contents.whole and contents.first is contents.last is None


def test_contents_span_all_messages() -> None:
    contents = Contents()
    for first, last in ((5, 9), (7, 8), (3, 4), (6, 11)):
        contents.span(first, last)
    assert (contents.first, contents.last) == (3, 11)


@pytest.mark.parametrize(('names', 'told'), [
    (('/' + 'x' * 999, JOINT_STATE), ''), (('/x', 'y' * 1000), ''),
    (('/' + 'x' * 1000, JOINT_STATE), 'a topic has a name of more than 1000 characters'),
    (('/x', 'y' * 1001), 'a type has a name of more than 1000 characters')])
def test_names_in_mcap_have_a_thousand_characters(
    tmp_path: Path, names: tuple[str, str], told: str
) -> None:
    contents, count = contents_of(tmp_path / 'a.mcap', with_record(announced(*names, channel=2)))
    assert count == 60
    assert (told in ' '.join(contents.findings)) if told else not contents.damages
    assert (names[0] in contents.topics) is not told


def test_messages_beyond_the_end_of_time_are_lost(tmp_path: Path) -> None:
    data = b'\0\1\0\0abc'
    record = mcap_message((1 << 63) - 1, data, 2)
    contents, count = contents_of(tmp_path / 'a.mcap', with_record(announced('/x', channel=2),
                                                                   record))
    assert (count, contents.lost, contents.last) == (61, 0, (1 << 63) - 1)
    record = mcap_message(1 << 63, data, 2)
    contents, count = contents_of(tmp_path / 'b.mcap', with_record(
        announced('/x', channel=2), record, record))
    assert (count, contents.lost) == (60, 2 * len(record))
    assert contents.losses == [f'{2 * len(record)} bytes are lost: messages that were received '
                               'beyond the end of time']
    assert any('messages that were received beyond the end of time' in one
               for one in contents.findings)


def test_messages_of_topics_without_name_are_lost(tmp_path: Path) -> None:
    record = mcap_message(START, b'abc', 9)
    contents, count = contents_of(tmp_path / 'a.mcap', with_record(record, record, record))
    assert (count, contents.lost) == (60, 3 * len(record))
    assert any('holds messages of topics that it does not name' in one
               for one in contents.findings)


@pytest.mark.parametrize('op', [1, 2, 8, 10, 11, 13, 14])
def test_records_that_cannot_stand_among_the_data_are_damage(tmp_path: Path, op: int) -> None:
    contents, count = contents_of(tmp_path / 'a.mcap', with_record(mcap_record(op, bytes(40))))
    assert count == 0 and not contents.whole
    assert f'a record of kind {op} at byte {FIRST}, where none can be' in contents.findings[0]


@pytest.mark.parametrize(('op', 'body', 'told'), [
    (16, b'abc', '1 records of unknown kinds'), (255, b'', '1 records of unknown kinds'),
    (9, struct.pack('<I', 0), ''), (9, struct.pack('<I', 1), f'attachment at byte {FIRST} is'),
    (9, b'abcd' + struct.pack('<I', zlib.crc32(b'abcd') ^ 1), f'attachment at byte {FIRST} is'),
    (7, struct.pack('<HI', 1, 0), 'an index stands before all messages'), (9, b'\1\1\1', ''),
    (0, b'', 'half a record at byte')])
def test_other_records_are_told_if_they_say_anything_of_the_messages(
    tmp_path: Path, op: int, body: bytes, told: str
) -> None:
    contents, count = contents_of(tmp_path / 'a.mcap', with_record(mcap_record(op, body)))
    assert count == (60 if op else 0)
    assert told in ' '.join(contents.findings)
    assert bool(contents.findings) is bool(told)


@pytest.mark.parametrize(('offset', 'told'), [
    (9, 'it has 60 messages in 3 chunks, 61 in 3 were written'),
    (31, 'it has 60 messages in 3 chunks, 60 in 4 were written'),
    (35, 'its messages were received at other times than it says'),
    (43, 'its messages were received at other times than it says'),
    (57, 'its topics have other numbers of messages than were written'), (None, '')])
def test_the_summary_of_an_mcap_file_is_held_against_its_messages(
    tmp_path: Path, offset: int | None, told: str
) -> None:
    data = bytearray(PLAIN)
    statistics = PLAIN.index(struct.pack('<BQQHI', 11, 56, 60, 1, 1))
    if offset is not None:
        data[statistics + offset] += 1
    contents, count = contents_of(tmp_path / 'a.mcap', bytes(data))
    assert count == 60 and contents.damages == bool(told)
    assert told in ' '.join(contents.findings)


@pytest.mark.parametrize(('claimed', 'words'), [
    (1 << 27, 'its size differs from the stated one'), ((1 << 27) + 1, 'it claims 134217729')])
def test_chunks_have_at_most_128_megabytes(claimed: int, words: str) -> None:
    chunk: Any = SimpleNamespace(uncompressed_size=claimed, data=b'ab', compression='',
                                 uncompressed_crc=0)
    with pytest.raises(Damaged, match=words):
        chunk_content(chunk, False)
    chunk.uncompressed_size, crc = 2, zlib.crc32(b'ab')
    for stated, sound in ((0, True), (crc, True), (crc ^ 1, False)):
        chunk.uncompressed_crc = stated
        assert chunk_content(chunk, False) == (b'ab', sound)


def test_the_data_of_an_mcap_file_end_with_four_bytes_of_checksum(tmp_path: Path) -> None:
    end = mcap_record(15, bytes(4))
    for body, damages in ((bytes(4), 0), (bytes(3), 1), (bytes(5), 1), (b'\1\0\0\0', 1)):
        contents, count = contents_of(tmp_path / 'a.mcap', PLAIN.replace(
            end, mcap_record(15, body)))
        assert (count, contents.damages) == (60, damages)
        assert not damages or 'the checksum of its data is wrong' in contents.findings[0]


def test_an_mcap_file_of_nothing_but_its_marks_was_not_closed(tmp_path: Path) -> None:
    assert contents_of(tmp_path / 'a.mcap', MAGIC + MAGIC)[0].whole is False


def database(folder: Path, topics: int, kind: str) -> Path:
    """Return a database with a topic of joint states, and empty ones of a kind."""
    path = storage_file(write_topics(folder / 'bag', {'/a': MESSAGES}, 'sqlite3'))
    with closing(sqlite3.connect(path)) as base:
        base.executemany("INSERT INTO topics VALUES(?, ?, ?, 'cdr', '', '')",
                         ((k, f'/t{k}', kind) for k in range(2, topics + 1)))
        base.commit()
    return path


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_bags_have_at_most_256_topics_with_joint_states(tmp_path: Path, storage: str) -> None:
    for count in (256, 257):
        folder = tmp_path / str(count)
        folder.mkdir()
        if storage == 'mcap':
            path, read = folder / 'a.mcap', mcap_batches
            path.write_bytes(with_record(*(announced(f'/t{k}', JOINT_STATE, k)
                                           for k in range(2, count + 1))))
        else:
            path, read = database(folder, count, JOINT_STATE), sqlite_batches
        every = Contents()
        list(read(path, None, every))
        assert len(every.topics) == count
        if count == 256:
            list(read(path, (JOINT_STATE,), Contents()))
        else:
            with pytest.raises(DataError, match='more than 256 topics with joint states'):
                list(read(path, (JOINT_STATE,), Contents()))


def test_databases_have_at_most_ten_thousand_topics(tmp_path: Path) -> None:
    contents = Contents()
    list(sqlite_batches(database(tmp_path, 10_000, 'x'), (), contents))
    assert len(contents.topics) == 10_000
    with pytest.raises(DataError, match='has more than 10000 topics'):
        list(sqlite_batches(database(tmp_path / 'more', 10_001, 'x'), (), Contents()))


def test_rows_of_negative_times_are_left_out(tmp_path: Path) -> None:
    path, name = database(tmp_path, 1, ''), '/' + 'x' * 1000
    with closing(sqlite3.connect(path)) as base:
        base.execute('INSERT INTO topics VALUES(2, ?, ?, ?, ?, ?)', (name, 'x', 'cdr', '', ''))
        for stamp in (0, -1, -7):
            base.execute("INSERT INTO messages(topic_id, timestamp, data) VALUES(1, ?, x'00')",
                         (stamp,))
        base.commit()
    contents = Contents()
    assert sum(len(batch.starts) for _, batch in sqlite_batches(path, None, contents)) == 61
    assert any('2 rows are damaged and were left out' in one for one in contents.findings)
    assert (contents.messages, contents.counts['/a']) == (63, 61)
    assert (contents.first, contents.last) == (-7, MESSAGES[-1][0])
    assert name[:1000] in contents.topics


@pytest.mark.parametrize(('page', 'pages', 'size', 'whole'), [
    (4096, 3, 12288, None), (4096, 3, 12287, 8192), (4096, 3, 8192, 8192), (4096, 3, 5000, 4096),
    (1, 2, 131072, None), (1, 2, 131071, 65536), (512, 2, 1023, 512), (16, 2, 1023, 512),
    (4096, 3, 31, None), (4096, 1, 32, 0)])
def test_a_database_that_was_cut_off_has_whole_pages(
    tmp_path: Path, page: int, pages: int, size: int, whole: int | None
) -> None:
    """The field of a page size of 65536 is 1, and pages have 512 bytes at least."""
    head = b'SQLite format 3\0' + struct.pack('>H', page) + bytes(10) + struct.pack('>I', pages)
    path = tmp_path / 'a.db3'
    path.write_bytes((head + bytes(max(size - 32, 0)))[:size])
    assert whole_pages(path) == whole


@pytest.mark.parametrize(('name', 'key'), [
    ('bag_10.mcap', 10), ('bag_9.db3', 9), ('run_2_3.db3.zstd', 3), ('bag.mcap', 0),
    ('bag_x.mcap', 0), ('7.mcap', 7)])
def test_files_of_a_bag_are_in_the_order_of_their_numbers(name: str, key: int) -> None:
    assert split_number(Path('folder_5') / name) == (key, name)


@pytest.mark.parametrize(('messages', 'first', 'last', 'rate'), [
    (11, 3, 2_000_000_003, 5.0), (2, 0, 1, 1e9), (1, 5, 5, np.nan), (2, 5, 5, np.nan),
    (0, 0, 0, np.nan)])
def test_rate_of_a_topic_is_that_of_its_receive_times(
    messages: int, first: int, last: int, rate: float
) -> None:
    np.testing.assert_allclose(TopicSummary('/x', 'K', messages, first, last).rate, rate)


def test_survey_counts_messages_and_lists_thirty_texts(tmp_path: Path) -> None:
    kind, names = 'my_msgs/msg/State', [f'j{k}' for k in range(31)]
    store = store_of({kind: 'uint32 sec\nuint32 nanosec\nstring[] name\nfloat64[] angle\n'
                            'float64[2] angle_cmd\n'})
    sent = [made(store, kind, name=names, angle=range(31)) for _ in range(5)]
    path = write(tmp_path / 'bag', {'/s': (kind, list(zip([7, 9, 5, 11, 8], sent))),
                                    '/silent': (kind, [])}, store)
    silent, state = sorted(survey(path), key=lambda one: one.messages)
    assert (state.name, state.messages, state.first, state.last) == ('/s', 5, 5, 11)
    assert state.fields == {'sec': 1, 'nanosec': 1, 'angle': 31, 'angle_cmd': 2}
    assert (state.texts, state.stamp) == ({'name': names[:30]}, ('sec', 'nanosec'))
    assert (state.fitting(31), state.fitting(2)) == (['angle'], ['angle_cmd'])
    assert proposed_fields(state, names[:30]) == {'names': 'name', 'stamp': '[sec, nanosec]'}
    assert proposed_fields(state, names) == {'position': 'angle', 'stamp': '[sec, nanosec]'}
    assert proposed_fields(state, names[:2])['names'] == 'name'
    assert (silent.messages, silent.problem, silent.joints) == (0, 'no messages', ())


DIFFER = 'metadata.yaml and the messages differ in their receive times'


@pytest.mark.parametrize(('change', 'damages', 'told'), [
    ({}, 0, ()), ({'relative_file_paths': ['bag/bag.mcap']}, 0, ()),
    ({'starting_time': {'nanoseconds_since_epoch': MESSAGES[0][0] + 1}}, 0, (DIFFER,)),
    ({'duration': {'nanoseconds': MESSAGES[-1][0] - MESSAGES[0][0] + 1}}, 0, (DIFFER,)),
    ({'duration': {}}, 0, ('metadata.yaml has no message count',)),
    ({'message_count': 61}, 1, ('damaged: it has 60 messages, 61 by metadata.yaml; ',)),
    ({'topics_with_message_count': []}, 1, (
        'damaged: it has 60 messages, 60 by metadata.yaml; other numbers on /joint_states',)),
    ({'custom_data': {'lost_messages': 'x' * 1989}}, 0, ('recording: ' + 'x' * 1989,)),
    ({'custom_data': {'lost_messages': 'x' * 1990}}, 0, (
        'recording: ' + 'x' * 986 + ' ... ' + 'x' * 997,))])
def test_metadata_are_held_against_the_messages(
    tmp_path: Path, change: dict[str, Any], damages: int, told: tuple[str, ...]
) -> None:
    path = write_topics(tmp_path / 'bag', {'/joint_states': MESSAGES})
    whole = load_yaml((path / 'metadata.yaml').read_text(), 'm', DataError)
    whole['rosbag2_bagfile_information'] |= change
    (path / 'metadata.yaml').write_text(yaml_text(whole))
    contents = Contents()
    assert sum(len(batch.starts) for _, batch in bag_batches(path, contents)) == 60
    assert (contents.damages, tuple(contents.findings)) == (damages, told)
