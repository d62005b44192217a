"""Bags: rosbags as oracle, publishers that differ, which topic means what."""

import shutil
from types import SimpleNamespace

import numpy as np
import pytest
from bags import (
    PLUGINS,
    START,
    STORE,
    motion,
    raw,
    states,
    storage_file,
    write_bag,
    write_topics,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from rosbags.rosbag2 import CompressionMode, Reader

from robot_dynid.errors import DataError, UsageError
from robot_dynid.io.bag import Topics, read_bag
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import JOINT_STATE, JointStateDecoder, encode_joint_states
from robot_dynid.io.csv import read_csv, write_csv
from robot_dynid.io.joint_states import sampled
from robot_dynid.io.log import load_log
from robot_dynid.io.sqlite import joined_batch
from robot_dynid.types import CHANNELS, RawLog


@settings(max_examples=60)
@given(st.data())
def test_decoder_agrees_with_rosbags(data):
    decoder = JointStateDecoder()
    payloads = []
    for _ in range(data.draw(st.integers(1, 6))):
        names = data.draw(st.lists(st.text(max_size=9), max_size=4, unique=True))
        names = [name.replace('\0', '') for name in names]
        numbers = [
            data.draw(arrays(np.float64, len(names))) if data.draw(st.booleans()) else ()
            for _ in range(3)
        ]
        stamp = data.draw(st.integers(0, 2**31 * 10**9 - 1))
        frame = data.draw(st.text(max_size=5)).replace('\0', '')
        little = data.draw(st.booleans())
        payloads.append(raw(names, stamp, *numbers, frame=frame, little_endian=little))
    decoded = decoder.decode(joined_batch(list(range(len(payloads))), payloads))
    assert decoder.undecodable == decoder.wrong_length == 0
    seen = []
    for part in decoded:
        for k, index in enumerate(part.order):
            oracle = STORE.deserialize_cdr(payloads[index], JOINT_STATE)
            assert part.names == tuple(oracle.name)
            stamp = oracle.header.stamp
            assert part.stamp[k] == stamp.sec * 10**9 + stamp.nanosec
            for name in ('position', 'velocity', 'effort'):
                values = part.values.get(name)
                np.testing.assert_array_equal(
                    [] if values is None else values[k], getattr(oracle, name))
            seen.append(index)
    assert sorted(seen) == list(range(len(payloads)))


def test_encoder_writes_what_rosbags_writes():
    values = motion(5, 3)
    stamps = START + np.arange(5)
    for velocity in (None, values):
        ours = encode_joint_states(('a', 'bcd', 'ef'), stamps, (values, velocity, values))
        for k, data in enumerate(ours):
            row = () if velocity is None else values[k]
            assert data == raw(('a', 'bcd', 'ef'), stamps[k], values[k], row, values[k], '')


@settings(max_examples=25)
@given(st.data())
def test_round_trip(tmp_path_factory, data):
    count, n = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 3))
    finite = st.floats(-1e6, 1e6)

    def draw():
        return data.draw(arrays(np.float64, (count, n), elements=finite))

    time = np.cumsum(data.draw(arrays(np.int64, count, elements=st.integers(-5, 10**9)))) * 1e-9
    channels = {name: draw() for name in CHANNELS[1:3] if data.draw(st.booleans())}
    if data.draw(st.booleans()):
        channels |= {name: draw() for name in CHANNELS[3:5]}
    log = RawLog('x', tuple('abc'[:n]), time, draw(), **channels)
    path = tmp_path_factory.mktemp('bag') / 'log'
    write_bag(path, log)
    back = read_bag(path)
    order = np.argsort(np.round(time * 1e9), kind='stable')
    np.testing.assert_allclose(back.time, (time - time[order[0]])[order], rtol=0.0, atol=2e-9)
    np.testing.assert_array_equal(back.position, log.position[order])
    for name in ('velocity', 'effort'):
        written, read = getattr(log, name), getattr(back, name)
        assert (written is None) == (read is None), name
        np.testing.assert_array_equal(read, None if written is None else written[order], name)
    if 'motor_position' in channels and len(set(np.round(time * 1e9))) == count:
        np.testing.assert_array_equal(back.motor_position, log.motor_position[order])


def test_our_bags_open_in_rosbags(tmp_path):
    log = RawLog('x', ('a', 'b'), np.arange(9) * 0.01, motion(9), effort=motion(9, seed=4))
    write_bag(tmp_path / 'log', log)
    with Reader(tmp_path / 'log') as reader:
        got = [STORE.deserialize_cdr(d, JOINT_STATE) for _, _, d in reader.messages()]
    np.testing.assert_array_equal([m.effort for m in got], log.effort)
    assert all(len(m.velocity) == 0 for m in got)


@pytest.mark.parametrize('storage', PLUGINS)
def test_folder_and_bare_file_read_the_same(tmp_path, storage):
    messages, values = states()
    chatter = STORE.serialize_cdr(STORE.types['std_msgs/msg/String']('hi'), 'std_msgs/msg/String')
    other = [(START + k * 3_000_000, bytes(chatter)) for k in range(50)]
    path = write_topics(tmp_path / 'b', {'/chatter': other, '/joint_states': messages}, storage)
    robot = SimpleNamespace(joints=('b', 'a'))
    for source in (path, storage_file(path)):
        log = load_log(source, robot)
        np.testing.assert_array_equal(log.position, values[:, ::-1])
        np.testing.assert_array_equal(log.effort, 3 * values[:, ::-1])
        np.testing.assert_allclose(log.time, 0.002 * np.arange(400), rtol=0.0, atol=1e-12)
        assert log.findings == ()


@pytest.mark.parametrize(
    ('storage', 'mode'),
    [('mcap', 'STORAGE'), ('mcap', 'FILE'), ('sqlite3', 'FILE'), ('sqlite3', 'MESSAGE')],
)
def test_compressed_bags(tmp_path, storage, mode):
    messages, values = states()
    path = write_topics(
        tmp_path / 'b', {'/joint_states': messages}, storage, CompressionMode[mode]
    )
    np.testing.assert_array_equal(read_bag(path).position, values)


def test_names_and_order_follow_each_message(tmp_path):
    values = motion(60, 3)
    messages = []
    for k, (a, b, c) in enumerate(values):
        names, row = ('a', 'b', 'c'), (a, b, c)
        if k % 3 == 0:
            names, row = ('c', 'x', 'a', 'b'), (c, 9, a, b)
        messages.append((START + k * 10**6, raw(names, START + k * 10**6, row, row, row)))
    path = write_topics(tmp_path / 'b', {'/joint_states': messages})
    log = read_bag(path, ('a', 'b', 'c'))
    np.testing.assert_array_equal(log.position, values)
    with pytest.raises(DataError, match=r'no joint d; it has c, x, a, b'):
        read_bag(path, ('a', 'd'))


def test_joints_published_apart_with_equal_stamps_are_joined(tmp_path):
    first, a = states(('a', 'b'))
    second, c = states(('c',), seed=5)
    path = write_topics(tmp_path / 'b', {'/joint_states': first + second})
    log = read_bag(path, ('a', 'c', 'b'))
    np.testing.assert_array_equal(log.position, np.column_stack([a[:, 0], c[:, 0], a[:, 1]]))
    assert any('c come in messages of their own; joined by equal' in f for f in log.findings)


def test_positions_that_turn_over_are_not_interpolated_over_the_seam(tmp_path):
    """Halfway between pi and -pi there is nothing; velocity and effort step as they like."""
    stamps = START + 2_000_000 * np.arange(400)
    angle = 3.0 + 2e-3 * np.arange(400)
    turning = [(int(t), raw(['c'], t, [np.mod(q + np.pi, 2 * np.pi) - np.pi], [v], [v]))
               for t, q, v in zip(stamps + 700_000, angle, 6.3 * (np.arange(400) % 2),
                                  strict=True)]
    steady, _ = states()
    write_topics(tmp_path / 'bag', {'/joint_states': [*steady, *turning]})
    log = read_bag(tmp_path / 'bag', joints=('a', 'b', 'c'))
    known = np.isfinite(log.position[:, 2])
    assert np.count_nonzero(~known[1:]) == 1 and np.isfinite(log.velocity[1:]).all()
    assert np.isfinite(log.effort[1:]).all()
    values = np.mod(log.position[known, 2], 2 * np.pi)
    assert (np.diff(values) > 0.0).all() and (np.diff(values) < 5e-3).all()


@pytest.mark.parametrize(('whole', 'told'), [
    (150, '600 messages have only some of the joints and were left out'),
    (149, '149 messages have all joints, the others only some; those with all were left out')])
def test_messages_with_all_joints_are_taken_where_they_are_half_as_many(tmp_path, whole, told):
    """As many as half of the 300 of a, and of b at the same time; between them with all."""
    messages = []
    for k in range(300):
        stamp = START + k * 2_000_000
        messages += [(stamp + 1, raw(('a',), stamp, [k])), (stamp + 2, raw(('b',), stamp, [-k]))]
        if k < whole:
            messages.append((stamp + 10**6, raw(('b', 'a'), stamp + 10**6, [-k - 0.5, k + 0.5])))
    log = read_bag(write_topics(tmp_path / 'b', {'/joint_states': messages}), ('a', 'b'))
    assert f'/joint_states: {told}' in log.findings
    rows = np.arange(150) + 0.5 if whole == 150 else np.arange(300)
    np.testing.assert_array_equal(log.position, np.column_stack([rows, -rows]))


def test_joints_published_at_other_times_are_interpolated_but_not_over_gaps(tmp_path):
    t = START + 2_000_000 * np.arange(400)
    line = (t - START) * 1e-9
    first = [(int(s), raw(('a',), s, [x])) for s, x in zip(t, line, strict=True)]
    second = [
        (int(s) + 500_000, raw(('c',), s + 500_000, [x + 0.0005]))
        for k, (s, x) in enumerate(zip(t, line, strict=True)) if not 100 <= k < 150
    ]
    log = read_bag(write_topics(tmp_path / 'b', {'/joint_states': first + second}))
    assert any('interpolated' in f for f in log.findings)
    assert any('NaN values: c 52' in f for f in log.findings), log.findings
    np.testing.assert_array_equal(np.flatnonzero(np.isnan(log.position[:, 1])),
                                  [0, *range(100, 151)])
    good = ~np.isnan(log.position[:, 1])
    np.testing.assert_allclose(log.position[good, 1], line[good], rtol=0.0, atol=1e-9)


def test_receive_time_without_header_stamps(tmp_path):
    messages = [(START + k * 10**7, raw(('a',), 0, [k])) for k in range(5)]
    log = read_bag(write_topics(tmp_path / 'b', {'/joint_states': messages}))
    np.testing.assert_allclose(log.time, 0.01 * np.arange(5))
    assert any('5 of 5 messages have no header stamp' in f for f in log.findings)


def test_efforts_of_a_topic_of_their_own_stay_as_they_were_measured(tmp_path):
    main, _ = states(seed=3)
    effort, _ = states(('b', 'a'), count=250, period=3_100_000, offset=700_000, seed=9)
    path = write_topics(tmp_path / 'bag', {'/joint_states': main, '/arm/tau': effort})
    log = read_bag(path, ('a', 'b'), Topics(effort='/arm/tau'))
    assert log.effort_messages is not None
    time, values = log.effort_messages
    np.testing.assert_array_equal(values, 3 * motion(250, seed=9)[:, ::-1])
    np.testing.assert_allclose(time, 7e-4 + 3.1e-3 * np.arange(250), rtol=0.0, atol=1e-12)
    assert not np.isin(log.effort, values).any(axis=1).all()


def test_stamps_that_are_partly_unset_are_not_mixed_with_others(tmp_path):
    """The clock of the stamps may be any other one: it says nothing of when the rest came in."""
    received = START + 10**7 * np.arange(6)
    stamps = [0 if k % 3 == 0 else k * 10**7 + 5 for k in range(6)]
    messages = [(int(r), raw(('a',), s, [k]))
                for k, (r, s) in enumerate(zip(received, stamps, strict=True))]
    log = read_bag(write_topics(tmp_path / 'b', {'/joint_states': messages}))
    np.testing.assert_allclose(log.time, 0.01 * np.arange(6), rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(log.position[:, 0], np.arange(6))
    assert any('2 of 6 messages have no header stamp' in f for f in log.findings)


def test_motor_and_effort_topics(tmp_path):
    main, values = states()
    motor, _ = states(seed=8)
    effort, _ = states(seed=9)
    topics = {'/joint_states': main, '/motor_states': motor, '/arm/tau': effort}
    path = write_topics(tmp_path / 'b', topics)
    log = read_bag(path, ('a', 'b'), Topics(effort='/arm/tau'))
    np.testing.assert_array_equal(log.position, values)
    np.testing.assert_array_equal(log.motor_velocity, 2 * motion(seed=8))
    np.testing.assert_array_equal(log.effort, 3 * motion(seed=9))
    assert any('effort taken from topic /arm/tau' in f for f in log.findings)
    assert any(f.startswith('motor position and velocity taken from') for f in log.findings)


@pytest.mark.parametrize('write', [write_bag, write_csv])
def test_torque_behind_gears_and_motors_of_some_joints(tmp_path, write):
    motor, torque = motion(seed=8), motion(seed=9)
    torque[:, 1] = np.nan
    log = RawLog('x', ('a', 'b'), 0.01 * np.arange(len(motor)), motion(), motion(seed=6),
                 motion(seed=7), motor_position=motor, joint_torque=torque)
    path = tmp_path / 'log.csv'
    write(path, log)
    again = read_csv(path) if write is write_csv else read_bag(path)
    for name in ('position', 'velocity', 'effort', 'motor_position', 'joint_torque'):
        np.testing.assert_array_equal(getattr(again, name), getattr(log, name), name)


def test_a_further_topic_may_have_some_joints_only(tmp_path):
    main, _ = states()
    messages = [(START + k * 10**7, raw(('b',), START + k * 10**7, [], (), [k]))
                for k in range(50)]
    path = write_topics(tmp_path / 'b', {'/joint_states': main, '/joint_torques': messages})
    log = read_bag(path, ('a', 'b'))
    assert log.joint_torque is not None and np.isnan(log.joint_torque[:, 0]).all()
    assert np.isfinite(log.joint_torque[:, 1]).any()
    assert 'topic /joint_torques does not have a' in log.findings
    assert any(f.startswith('joint torque taken from topic') for f in log.findings)


def test_read_bag_selects_the_topic_of_joint_states(tmp_path):
    messages, values = states()
    one = write_topics(tmp_path / 'one', {'/arm/joint_states': messages})
    log = read_bag(one)
    np.testing.assert_array_equal(log.position, values)
    assert 'joint states are taken from topic /arm/joint_states' in log.findings
    two = write_topics(tmp_path / 'two', {'/l/states': messages, '/r/states': messages})
    with pytest.raises(DataError, match=r'several JointState topics.*: /l/states with a, b; '
                       '/r/states with a, b; select one: --topic /l/states'):
        read_bag(two)
    assert read_bag(two, topics=Topics('/r/states')).position.shape == (400, 2)
    with pytest.raises(DataError, match=r'no JointState messages on topic /x; topics are: /l/'):
        read_bag(two, topics=Topics('/x'))
    none = write_topics(tmp_path / 'none', {'/chatter': [(START, b'\0\1\0\0\1\0\0\0\0')]})
    with pytest.raises(DataError, match=r'topics are: /chatter \(std_msgs/msg/String\)'):
        read_bag(none)


ODD = {
    'empty effort': (lambda q: raw('ab', 0, q, q), 'effort: not recorded'),
    'nan effort': (lambda q: raw('ab', 0, q, q, [np.nan] * 2), 'effort: NaN in every message'),
    'zero effort': (lambda q: raw('ab', 0, q, q, [0, 0]), 'effort: exactly zero for every joint'),
    'nan': (lambda q: raw('ab', 0, [np.nan, q[0]], q, q), 'position: NaN values: a'),
    'inf': (lambda q: raw('ab', 0, q, q, [np.inf, 1]), 'effort: infinite values: a'),
}


@pytest.mark.parametrize('case', ODD)
def test_odd_messages_are_said(tmp_path, case):
    make, sentence = ODD[case]
    messages = [(START + k * 10**6, make(row)) for k, row in enumerate(motion(30))]
    log = read_bag(write_topics(tmp_path / 'b', {'/joint_states': messages}))
    assert any(sentence in f for f in log.findings), log.findings
    assert len(log.time) == 30


def test_stamps_back_and_twice_are_said(tmp_path):
    messages, _ = states()
    messages[50] = (messages[50][0], raw(('a', 'b'), START, [1, 2], [1, 2], [1, 2]))
    messages[60] = (messages[60][0], messages[59][1])
    found = read_bag(write_topics(tmp_path / 'b', {'/joint_states': messages})).findings
    assert any('time: goes back 1 times, most by 0.098 s' in f for f in found)
    assert any('time: 1 duplicate stamps' in f for f in found)


def test_paths_that_are_no_recordings(tmp_path):
    robot = SimpleNamespace(joints=('a',))
    with pytest.raises(UsageError, match=r'unknown kind of recording; give a table .*, a rosbag2 '
                       r'folder, or a \.mcap, \.db3 or \.bag file'):
        load_log(tmp_path / 'log.rst', robot)
    with pytest.raises(DataError, match='no such file'):
        load_log(tmp_path / 'log.mcap', robot)
    with pytest.raises(DataError, match=r'has no \.mcap and no \.db3'):
        load_log(tmp_path, robot)
    with pytest.raises(UsageError, match='exists already'):
        BagWriter(tmp_path)


def test_split_bag_joins_its_files_in_order(tmp_path):
    messages, values = states()
    path = tmp_path / 'b'
    path.mkdir()
    for k in range(11):
        part = write_topics(tmp_path / f'p{k}', {'/joint_states': messages[k * 30:k * 30 + 30]})
        shutil.copy(storage_file(part), path / f'b_{k}.mcap')
    np.testing.assert_array_equal(read_bag(path).position, values[:330])


def test_values_at_the_edges_of_a_gap_are_kept_and_those_inside_unknown():
    stamps = 1000 * np.array([0, 1, 2, 3, 4, 50, 51, 52, 53])
    values = 2.0 * stamps[:, None]
    time = np.array([500, 4000, 20_000, 50_000, 50_500, 53_000, 53_500])
    found = sampled(time, stamps, values)[:, 0]
    np.testing.assert_array_equal(
        found, [1000.0, 8000.0, np.nan, 100_000.0, 101_000.0, 106_000.0, np.nan])


def test_removed_bag_leaves_no_file_and_no_folder(tmp_path):
    bag = BagWriter(tmp_path / 'bag')
    topic = bag.add_topic('/joint_states', JOINT_STATE)
    bag.write(topic, START, raw(['a'], START, [0.0], [0.0], [0.0]))
    bag.remove()
    assert not (tmp_path / 'bag').exists()
    kept = BagWriter(tmp_path / 'other')
    (tmp_path / 'other' / 'notes.txt').write_text('mine')
    kept.remove()
    assert [one.name for one in (tmp_path / 'other').iterdir()] == ['notes.txt']
