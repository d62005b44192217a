"""io/findings.py, bag_writer.py, mcap.py, messages/fields.py: stamps, metadata, records and
numbers of messages, by hand."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.files import Damaged
from robot_dynid.io.bag_writer import StorageFile, Topic, bag_information, merged_topics
from robot_dynid.io.findings import (
    TooLong,
    findings_of,
    joined,
    require_memory,
    stamp_findings,
)
from robot_dynid.io.mcap import split
from robot_dynid.io.messages.definitions import Definitions
from robot_dynid.io.messages.fields import Columns

JOINTS = ('a', 'b')
TIME = 0.01 * np.arange(6)
MOTION = np.column_stack([np.arange(6.0), -np.arange(6.0)])


def told(time: Any = TIME, **channels: Any) -> tuple[str, ...]:
    given = {'position': MOTION, 'effort': MOTION + 1.5} | channels
    return findings_of(np.asarray(time), JOINTS, given)


def test_nothing_is_said_of_a_recording_in_order() -> None:
    assert told() == ()
    assert told(wrench=np.ones((6, 6)), effort=None) == ()


@pytest.mark.parametrize(('time', 'words'), [
    ([0.0], ('time: only 1 samples',)), ([0.0, 1.0], ()),
    ([0.0, 1.0, 2.0, np.nan, 4.0, np.nan], ('time: 2 stamps are not finite, first at sample 3',)),
    ([0.0, 1.0, 2.0, 1.5, 1.25, 3.0], ('time: goes back 2 times, most by 0.5 s after sample 2 '
                                      '(t = 2 s)',)),
    ([0.0, 1.0, 1.0, 2.0, 2.0, 3.0], ('time: 2 duplicate stamps, first at t = 1 s',)),
    ([0.0, 1.0, 2.0, 4.5, 5.5, 6.5], ()),
    ([0.0, 1.0, 2.0, 4.6, 5.6, 8.6], ('time: 2 gaps longer than 2.5 periods of 1 s, longest 3 s '
                                     'at t = 5.6 s, 5.6 s in all',))])
def test_irregular_stamps_are_counted_and_placed(
    time: list[float], words: tuple[str, ...]
) -> None:
    assert tuple(stamp_findings(np.array(time))) == words


@pytest.mark.parametrize(('count', 'ratio', 'mixed'), [
    (201, 1.51, True), (201, 1.49, False), (200, 1.51, False)])
def test_rates_are_mixed_where_stretches_of_two_hundred_steps_differ_by_half(
    count: int, ratio: float, mixed: bool
) -> None:
    steps = np.full(count - 1, 0.01)
    steps[:20] *= ratio
    found = stamp_findings(np.concatenate([[0.0], np.cumsum(steps)]))
    assert found == (['time: mixed rates, from 66.2252 to 100 Hz'] if mixed else [])


def test_values_that_are_none_are_counted_by_joint() -> None:
    bad = MOTION.copy()
    bad[2, 1] = bad[4, 1] = np.nan
    bad[3, 0] = np.inf
    assert told(effort=bad) == (
        'effort: NaN values: b 2; first at t = 0.02 s',
        'effort: infinite values: a 1; first at t = 0.03 s')
    wrench = np.ones((6, 6))
    wrench[1, 4] = np.nan
    assert told(wrench=wrench) == ('wrench: NaN values: ty 1; first at t = 0.01 s',)


def test_efforts_that_are_absent_or_zero_are_told() -> None:
    zero = MOTION + 1.5
    zero[:, 1] = 0.0
    assert told(effort=zero) == ('effort: exactly zero throughout for b',)
    assert told(effort=0.0 * MOTION) == (
        'effort: exactly zero for every joint throughout: the driver reports no effort, or on '
        'another topic, or in units that round to zero',)
    (absent,) = told(effort=None)
    assert absent.endswith(', the dynamics cannot be identified from this file')
    still = MOTION.copy()
    still[:, 0] = 7.0
    assert told(position=still) == ('position: never changes for a',)


def test_a_recording_has_at_most_150_million_numbers() -> None:
    require_memory(150_000_000)
    with pytest.raises(TooLong, match='has more than 150 million numbers'):
        require_memory(150_000_001)


def test_pieces_are_joined_in_order_and_let_go() -> None:
    parts = [MOTION[:1], MOTION[1:4], MOTION[4:]]
    np.testing.assert_array_equal(joined(parts), MOTION)
    assert parts == []
    only = [MOTION]
    assert joined(only) is MOTION


PROFILE = '- history: {}\n  depth: 5\n'


def stored(name: str, *topics: Topic, first: int | None = None, last: int | None = None
           ) -> StorageFile:
    return StorageFile(name, dict(enumerate(topics)), first, last)


def test_topics_of_several_files_are_merged() -> None:
    files = [stored('a', Topic('/x', 'K', messages=3, packed=1), Topic('/y', 'K', messages=1)),
             stored('b', Topic('/y', 'K', qos='q', type_hash='h', messages=4),
                    Topic('/x', 'L', messages=2), Topic('/x', 'K', 'ros1', messages=7),
                    Topic('/x', 'K', qos='p', type_hash='g', messages=5, packed=2))]
    assert merged_topics(files) == [
        Topic('/x', 'K', qos='p', type_hash='g', messages=8, packed=3),
        Topic('/y', 'K', qos='q', type_hash='h', messages=5), Topic('/x', 'L', messages=2),
        Topic('/x', 'K', 'ros1', messages=7)]


@pytest.mark.parametrize(('history', 'version', 'profiles'), [
    ('keep_last', 9, [{'history': 'keep_last', 'depth': 5}]), ('1', 8, PROFILE.format('1'))])
def test_metadata_count_messages_and_span_the_files(
    history: str, version: int, profiles: Any
) -> None:
    files = [stored('a_0.mcap', Topic('/x', 'K', qos=PROFILE.format(history), messages=3),
                    first=2000, last=5000), stored('a_1.mcap', Topic('/x', 'K', messages=4),
                                                   first=1500, last=4500), stored('a_2.mcap')]
    found = bag_information('mcap', files, {'k': 'v'})['rosbag2_bagfile_information']
    assert (found['version'], found['storage_identifier'], found['custom_data']) == (
        version, 'mcap', {'k': 'v'})
    assert found['starting_time'] == {'nanoseconds_since_epoch': 1500}
    assert (found['duration'], found['message_count']) == ({'nanoseconds': 3500}, 7)
    assert found['relative_file_paths'] == ['a_0.mcap', 'a_1.mcap', 'a_2.mcap']
    assert [(one['path'], one['duration']['nanoseconds'], one['message_count'])
            for one in found['files']] == [('a_0.mcap', 3000, 3), ('a_1.mcap', 3000, 4),
                                           ('a_2.mcap', 0, 0)]
    (topic,) = found['topics_with_message_count']
    assert topic['message_count'] == 7
    assert topic['topic_metadata']['offered_qos_profiles'] == profiles
    assert bag_information('mcap', files)['rosbag2_bagfile_information']['custom_data'] is None


@pytest.mark.parametrize(('packed', 'mode'), [((3, 0), 'MESSAGE'), ((2, 0), ''), ((0, 0), ''),
                                              ((3, 1), '')])
def test_messages_are_compressed_where_all_of_them_are(packed: tuple[int, int], mode: str) -> None:
    files = [stored('a', Topic('/x', 'K', messages=3, packed=packed[0]),
                    Topic('/y', 'K', messages=2 * bool(packed[1]), packed=packed[1]))]
    found = bag_information('mcap', files)['rosbag2_bagfile_information']
    assert (found['compression_mode'], found['compression_format']) == (
        mode, 'zstd' if mode else '')


def record(op: int, size: int) -> bytes:
    return struct.pack('<BQ', op, size) + bytes(size)


def test_records_of_a_chunk_follow_each_other() -> None:
    schema, channel, message = record(3, 5), record(4, 0), record(5, 22)
    raw = schema + channel + message
    assert list(split(raw)) == [(3, 0, 14), (4, 14, 23), (5, 23, 54)]
    assert list(split(channel)) == [(4, 0, 9)] and list(split(b'')) == []


@pytest.mark.parametrize('half', [
    record(4, 6)[:-1], record(4, 0)[:-1], record(5, 21), record(0, 4)])
def test_half_a_record_in_a_chunk_is_damage_at_its_byte(half: bytes) -> None:
    reading = split(record(3, 5) + half)
    assert next(reading) == (3, 0, 14)
    with pytest.raises(Damaged, match='half a record at its byte 14'):
        next(reading)


def test_numbers_are_read_wherever_they_stand() -> None:
    data = np.frombuffer(np.arange(6, dtype='<i2').tobytes() * 2, np.uint8).reshape(2, 12)
    together = Columns(np.array([2, 4, 6]), '<i2')
    assert together.start == 2
    np.testing.assert_array_equal(together.read(data), [[1.0, 2.0, 3.0]] * 2)
    apart = Columns(np.array([8, -1, 0]), '<i2', (10.0, 1.0, -1.0))
    assert apart.start is None
    np.testing.assert_array_equal(apart.read(data), [[40.0, np.nan, 0.0]] * 2)
    assert Columns(np.array([4]), '<i2', (2.0,)).read(data).tolist() == [[4.0]] * 2


def test_the_first_definition_of_a_type_counts_up_to_256_kilobytes() -> None:
    known = Definitions()
    known.add('pkg/Arm', 'ros2msg', b'float64 x\n')
    known.add('pkg/msg/Arm', 'ros2msg', b'float64 y\n')
    assert [name for name, _ in known.fields('pkg/msg/Arm')] == ['x']
    field = b'float64 x\n'
    for size, fits in ((2**18, True), (2**18 + 1, False)):
        large = Definitions()
        large.add('pkg/msg/Arm', 'ros2msg', field + b'#' * (size - len(field)))
        if fits:
            assert [name for name, _ in large.fields('pkg/msg/Arm')] == ['x']
        else:
            with pytest.raises(DataError, match='does not hold the definition of pkg/msg/Arm'):
                large.fields('pkg/msg/Arm')
    empty = Definitions()
    empty.add('pkg/msg/Arm', 'ros2msg', b'')
    with pytest.raises(DataError, match='source a workspace with pkg, or'):
        empty.fields('pkg/msg/Arm')
