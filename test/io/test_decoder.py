"""io/cdr.py, io/joint_states.py: which messages of a topic are decoded, and how they align."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from bags import START, STORE, raw, store_of
from bags import made as message

from robot_dynid.errors import DataError
from robot_dynid.io.cdr import (
    EffortWriter,
    JointStateDecoder,
    JointStateReader,
    encode_joint_states,
    trajectory_size,
)
from robot_dynid.io.joint_states import Topic, sampled
from robot_dynid.io.messages.definitions import Definitions
from robot_dynid.io.messages.fields import MessageFields
from robot_dynid.io.messages.kinds import Kind, layout_of
from robot_dynid.io.sqlite import joined_batch
from robot_dynid.signals.windows import Window

GOOD, SHORT = raw(('a',), START, [1.5]), b'\0\1\0\0\0\0'
WRONG = raw(('a', 'b'), START, [1.0])


def decoded(*payloads: bytes, received: Any = None, decoder: JointStateDecoder | None = None
            ) -> JointStateDecoder:
    """Return the decoder after one batch of messages, received 1 s apart by default."""
    decoder = decoder or JointStateDecoder()
    times = START + 10**9 * np.arange(len(payloads)) if received is None else received
    decoder.decode(joined_batch(list(times), list(payloads)))
    return decoder


@pytest.mark.parametrize(('short', 'wrong', 'learnt'), [
    (999, 0, True), (1000, 0, False), (500, 499, True), (500, 500, False)])
def test_no_layout_is_learnt_after_a_thousand_failures(
    short: int, wrong: int, learnt: bool
) -> None:
    decoder = decoded(*[SHORT] * short, *[WRONG] * wrong, GOOD)
    assert (decoder.undecodable, decoder.wrong_length) == (short + (not learnt), wrong)
    assert decoder.count == short + wrong + 1


@pytest.mark.parametrize('size', [0, 1, 3, 4, 11, 19, len(GOOD) - 1])
def test_messages_that_are_too_short_are_damaged(size: int) -> None:
    assert decoded(GOOD[:size], GOOD).undecodable == 1


def test_the_middle_message_is_typical() -> None:
    payloads = [bytes([k] * (4 + k)) for k in range(6)]
    assert joined_batch([1, 2, 3], payloads[:3]).typical == payloads[1]
    assert joined_batch([1, 2, 3, 4, 5, 6], payloads).typical == payloads[3]


@pytest.mark.parametrize(('delays', 'steps', 'longest'), [
    ([0.0, 0.999, 0.0], 0, 0.999), ([0.0, 1.001, 1.001], 1, 1.001), ([7.0, 5.0, 2.0], 2, 3.0)])
def test_delays_that_change_by_more_than_a_second_are_steps(
    delays: list[float], steps: int, longest: float
) -> None:
    """Over the batches of a topic, and whatever comes without a stamp."""
    stamps = START + 10**7 * np.arange(3)
    received = stamps + np.round(1e9 * np.array(delays)).astype(np.int64)
    payloads = [raw(('a',), stamp, [1.0]) for stamp in stamps]
    unset = raw(('a',), 0, [1.0])
    decoder = decoded(payloads[0], unset, payloads[1], received=[received[0], 5, received[1]])
    decoded(payloads[2], received=received[2:], decoder=decoder)
    assert (decoder.steps, decoder.longest_step) == (steps, pytest.approx(longest, rel=1e-6))


KIND = 'my_msgs/msg/State'


@pytest.mark.parametrize(('definition', 'stamp', 'values', 'nanoseconds'), [
    ('float64 t\n', ('t',), [0.25], 250_000_000), ('float64 t\n', ('t',), [-1.75], -1_750_000_000),
    ('float64 t\n', ('t',), [1e-9], 1), ('float64 t\n', ('t',), [9.1e9], 91 * 10**17),
    ('float64 t\n', ('t',), [9.3e9], None), ('float64 t\n', ('t',), [-9.3e9], None),
    ('float64 t\n', ('t',), [np.nan], None),
    ('int32 s\nfloat64 n\n', ('s', 'n'), [3, 0.0], 3 * 10**9),
    ('int32 s\nfloat64 n\n', ('s', 'n'), [3, 999_999_999.0], 3_999_999_999),
    ('int32 s\nfloat64 n\n', ('s', 'n'), [3, 1e9], None),
    ('int32 s\nfloat64 n\n', ('s', 'n'), [3, -1.0], None)])
def test_stamps_of_any_type_are_nanoseconds(
    definition: str, stamp: tuple[str, ...], values: list[float], nanoseconds: int | None
) -> None:
    """Beyond 292 years they do not fit into 64 bits."""
    text = f'{definition}string[] name\nfloat64[] position\n'
    known = Definitions()
    known.add(KIND, 'ros2msg', text.encode())
    store = store_of({KIND: text})
    data = bytes(store.serialize_cdr(message(
        store, KIND, **dict(zip(stamp, values)), name=['a'], position=[2.0]), KIND))
    decoder = JointStateDecoder(KIND, Kind('name', {'position': ('position',)}, stamp), known)
    parts = decoder.decode(joined_batch([START], [data]))
    assert [one for part in parts for one in part.stamp.tolist()] == (
        [] if nanoseconds is None else [nanoseconds])
    assert decoder.undecodable == (nanoseconds is None)


def described(**definitions: str) -> Definitions:
    known = Definitions()
    for name, text in definitions.items():
        known.add(f'my_msgs/msg/{name}', 'ros2msg', text.encode())
    return known


def counted(*counts: int, rest: bytes = b'') -> bytes:
    """Return a message of lists, of as many empty texts or single bytes as they say."""
    return b'\0\1\0\0' + b''.join(struct.pack('<I', count) + bytes(4 * count)
                                  for count in counts) + rest


@pytest.mark.parametrize(('data', 'words'), [
    (GOOD + bytes(24), ''), (GOOD + bytes(25), 'the message has 25 extra bytes'),
    (raw(('n' * 1000,), START, [1.0]), ''),
    (raw(('n' * 1001,), START, [1.0]), 'a name has more than 1000 bytes')])
def test_joint_states_have_short_names_and_little_behind_them(data: bytes, words: str) -> None:
    if words:
        with pytest.raises(DataError, match=words):
            layout_of(data)
    else:
        assert layout_of(data).size == len(data)


@pytest.mark.parametrize(('tags', 'names', 'read'), [(5000, 5000, True), (5000, 5001, False)])
def test_messages_have_at_most_ten_thousand_texts(tags: int, names: int, read: bool) -> None:
    known = described(State='string[] tag\nstring[] name\n')
    if read:
        found = MessageFields.of(counted(tags, names), KIND, known)
        assert [len(texts) for texts in found.texts.values()] == [tags, names]
    else:
        with pytest.raises(DataError, match='more than 10000 elements'):
            MessageFields.of(counted(tags, names), KIND, known)


@pytest.mark.parametrize(('depth', 'read'), [(20, True), (21, False)])
def test_messages_are_nested_up_to_twenty_deep(depth: int, read: bool) -> None:
    known = described(**{f'M{k}': f'my_msgs/M{k + 1} m\n' for k in range(depth)},
                      **{f'M{depth}': 'float64 x\n'})
    if read:
        found = MessageFields.of(counted(rest=bytes(8)), 'my_msgs/msg/M0', known)
        assert list(found.numbers) == ['.'.join(['m'] * depth) + '.x']
    else:
        with pytest.raises(DataError, match='messages more than 20 deep'):
            MessageFields.of(counted(rest=bytes(8)), 'my_msgs/msg/M0', known)


MOTORS = {KIND: 'float64[6] data\nmy_msgs/Motor[] states\n',
          'my_msgs/msg/Motor': 'string name\nfloat64[2] torques\n'}


def motors() -> MessageFields:
    """Return the fields of a message with numbers from 0 on and the motors `ab` and `c`."""
    store, known = store_of(MOTORS), Definitions()
    for kind, text in MOTORS.items():
        known.add(kind, 'ros2msg', text.encode())
    return MessageFields.of(bytes(store.serialize_cdr(message(store, KIND, data=np.arange(
        6.0), states=[{'name': 'ab', 'torques': [6.0, 7.0]},
                      {'name': 'c', 'torques': [8.0, 9.0]}]), KIND)), KIND, known)


@pytest.mark.parametrize(('path', 'numbers'), [
    ('data', [0, 1, 2, 3, 4, 5]), ('data[1:3]', [1, 2]), ('data[2]', [2]), ('data[0]', [0]),
    ('data[-1]', [5]), ('data[-2]', [4]), ('data[:2]', [0, 1]), ('data[4:]', [4, 5]),
    ('data[-2:]', [4, 5]), ('data[1:-3]', [1, 2]), ('states.torques', [6, 7, 8, 9]),
    ('states[].torques', [6, 7, 8, 9]), ('states.torques[1:3]', [7, 8]), ('data[6:]', None)])
def test_columns_are_those_of_a_path_and_its_part(path: str, numbers: list[int] | None) -> None:
    found = motors()
    columns = found.columns(path)
    if columns is None:
        assert numbers is None
        return
    rows = np.frombuffer(found.data * 2, np.uint8).reshape(2, -1)
    assert columns.read(rows).tolist() == [numbers] * 2
    assert (columns.start is None) is (path.endswith('torques') or path == 'states.torques[1:3]')


def test_fields_know_their_places_and_arrays() -> None:
    found = motors()
    assert list(found.lengths()) == [('data', 6, 'f8'), ('states.torques', 4, 'f8')]
    assert [(run.place, run.owner) for run in found.numbers['states.torques']] == [
        (68, 0), (92, 1)]
    assert [(text.value, text.start, text.stop, text.owner) for text in found.texts[
        'states.name']] == [(b'ab', 60, 63, 0), (b'c', 88, 90, 1)]
    assert found.fixed == [0, 1, *range(52, 60), *range(84, 88)]
    assert (found.end, found.whole, found.order) == (108, True, '<')
    assert [found.shown(path) for path in ('data', 'states.name')] == ['data', 'states[].name']
    assert found.is_array('data') and found.is_array('states.name')
    with pytest.raises(DataError, match=r'no field states\.name with numbers'):
        found.columns('states.name')


@pytest.mark.parametrize(('extra', 'read'), [(0, True), (1, False)])
def test_messages_have_at_most_a_megabyte(extra: int, read: bool) -> None:
    known, blob = described(State='string[] name\nfloat64[] position\nuint8[] blob\n'), \
        (1 << 20) - 16 + extra
    data = counted(0, 0, rest=struct.pack('<I', blob) + bytes(blob))
    kind = Kind('name', {'position': ('position',)})
    decoder = JointStateDecoder(KIND, kind, known)
    assert len(decoder.decode(joined_batch([START], [data]))) == read
    assert decoder.undecodable == (not read)
    if not read:
        with pytest.raises(DataError, match='the message has more than 1048576 bytes'):
            layout_of(data, KIND, kind, known)


NAMES = (('a',), ('ab', 'c'), ('abc', 'de', 'f'), ('abcd', 'efg', 'h', 'ij'), ())


@pytest.mark.parametrize('names', NAMES, ids=len)
def test_messages_are_written_as_rosbags_writes_them(names: tuple[str, ...]) -> None:
    """Whatever the lengths of names, which shift all that follows."""
    stamps = np.array([START + 7, 12_000_000_034])
    values = np.arange(2.0 * len(names)).reshape(2, -1) - 0.5
    for given in ((values, None, values), (None, None, values), (None, values, None)):
        ours = encode_joint_states(names, stamps, given)
        for k, data in enumerate(ours):
            assert data == raw(names, stamps[k], *(() if one is None else one[k]
                                                   for one in given), frame='')
    if not names:
        return
    write, read = EffortWriter(names), JointStateReader()
    for stamp, row in zip(stamps.tolist(), values):
        assert write(stamp, row) == raw(names, stamp, (), (), row, frame='')
        found, time, channels = read(write(stamp, row))
        assert (found, time, list(channels)) == (names, stamp, ['effort'])
        np.testing.assert_array_equal(channels['effort'], row)


def test_reader_takes_nanoseconds_below_a_second() -> None:
    last = bytearray(GOOD)
    last[8:12] = struct.pack('<I', 999_999_999)
    assert JointStateReader()(bytes(last))[1] % 10**9 == 999_999_999
    last[8:12] = struct.pack('<I', 10**9)
    with pytest.raises(DataError, match='the stamp has 1000000000 nanoseconds'):
        JointStateReader()(bytes(last))


@pytest.mark.parametrize('names', NAMES, ids=len)
@pytest.mark.parametrize('frame', ['', 'b', 'base', 'base_link'])
@pytest.mark.parametrize('lengths', [(), ((1, 1, 0, 0),), ((3, 0, 0, 0), (2, 2, 2, 1))])
def test_size_of_a_trajectory_is_that_of_its_message(
    names: tuple[str, ...], frame: str, lengths: tuple[tuple[int, ...], ...]
) -> None:
    kind, point = 'trajectory_msgs/msg/JointTrajectory', 'trajectory_msgs/msg/JointTrajectoryPoint'
    given = message(STORE, kind, header={'frame_id': frame}, joint_names=list(names), points=[
        dict(zip(('positions', 'velocities', 'accelerations', 'effort'), map(np.ones, counts)))
        for counts in lengths])
    assert point in STORE.fielddefs
    assert trajectory_size([frame, *names], lengths) == len(STORE.serialize_cdr(given, kind))


@pytest.mark.parametrize('stamped', [True, False])
def test_topic_keeps_what_is_in_and_around_a_window(stamped: bool) -> None:
    """By stamps, which run half as fast as the receive times here, or by these without stamps."""
    topic = Topic('/t', window=Window(10.0, 20.0))
    assert (topic.numbers, topic.length, topic.unset, topic.unnamed, topic.delay) == (0,) * 5
    stamps, received = START + 10**9 * np.arange(41), START + 7 + 2 * 10**9 * np.arange(41)
    payloads = [raw(('a', 'b'), int(one) * stamped, [1.0, 2.0]) for one in stamps]
    for rows in (slice(0, 3), slice(3, 41)):
        topic.add(joined_batch(received[rows].tolist(), payloads[rows]))
    assert topic.began == (START * stamped, START + 7)
    assert (topic.counts.total(), topic.unset) == (41, 0 if stamped else 41)
    kept = np.concatenate([part.received for part in topic.parts])
    assert kept.tolist() == received[5:25].tolist() if stamped else received[3:13].tolist()
    assert topic.length == pytest.approx(40.0 if stamped else 80.0)
    assert topic.numbers == 2 * len(kept)
    late = Topic('/t', window=Window(100.0, 101.0))
    late.add(joined_batch(received.tolist(), payloads))
    with pytest.raises(DataError, match='it is 40 s long' if stamped else 'it is 80 s long'):
        late.series(('a', 'b'), [])


@pytest.mark.parametrize(('delays', 'median'), [([20, 1, 3, 2, 10], 3), ([7, 1, 5, 3], 5)])
def test_delay_of_a_topic_is_the_median_of_its_messages(delays: list[int], median: int) -> None:
    topic = Topic('/t')
    stamps = [START + 10**9 * k for k in range(len(delays))]
    topic.add(joined_batch([stamp + 10**6 * one for stamp, one in zip(stamps, delays)],
                           [raw(('a',), stamp, [1.0]) for stamp in stamps]))
    assert topic.series(('a',), []).time.tolist() == stamps
    assert topic.delay == 10**6 * median


TURN = 2.0 * np.pi


@pytest.mark.parametrize(('step', 'positions', 'known'), [
    (TURN - 1.01, True, True), (TURN - 0.99, True, False), (-TURN + 0.99, True, False),
    (TURN + 0.99, True, False), (-TURN - 1.01, True, True), (TURN, False, True)])
def test_sampled_is_no_number_where_an_encoder_may_wrap(
    step: float, positions: bool, known: bool
) -> None:
    stamps, values = np.array([0, 40, 80]), np.array([[0.5], [0.5 + step], [0.5 + 2.0 * step]])
    time = np.array([-1, 0, 10, 40, 60, 80, 81])
    expected = 0.5 + step * time / 40.0
    expected[[0, -1]] = np.nan
    if not known:
        expected[[2, 4]] = np.nan
    found = sampled(time, stamps, values, positions)
    np.testing.assert_allclose(found[:, 0], expected, rtol=1e-12)


@pytest.mark.parametrize(('gap', 'known'), [(25, True), (26, False)])
def test_sampled_is_no_number_in_gaps_longer_than_two_and_a_half_periods(
    gap: int, known: bool
) -> None:
    """The stamps may come in any order; of equal ones the first counts."""
    stamps = np.array([10, 0, 20, 20 + gap, 30 + gap, 10])
    values = np.column_stack([stamps, -2.0 * stamps]).astype(np.float64)
    values[-1] = 77.0
    time = np.array([5, 10, 20, 30, 20 + gap, 25 + gap])
    expected = time.astype(np.float64)
    expected[3] = 30.0 if known else np.nan
    np.testing.assert_allclose(sampled(time, stamps, values),
                               np.column_stack([expected, -2.0 * expected]), rtol=1e-12)


@pytest.mark.parametrize('count', [1, 2])
def test_sampled_copies_the_values_of_few_stamps(count: int) -> None:
    stamps, values = np.array([10, 20])[:count], np.array([[1.0], [3.0]])[:count]
    np.testing.assert_array_equal(
        sampled(np.array([9, 10, 15, 20, 21]), stamps, values)[:, 0],
        [np.nan, 1.0, np.nan, np.nan, np.nan] if count == 1 else [np.nan, 1.0, 2.0, 3.0, np.nan])
