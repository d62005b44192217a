"""Recordings that are too long for memory: read in windows they are what they are in one piece."""

import numpy as np
import pytest
from bags import PLUGINS, START, motion, raw, states, write_topics

from robot_dynid import scratch
from robot_dynid.errors import DataError
from robot_dynid.io import bag_windows, compressed, mcap
from robot_dynid.io import csv as csv_module
from robot_dynid.io.bag import Topics, read_bag
from robot_dynid.io.bag_windows import open_bag
from robot_dynid.io.csv import open_csv, read_csv, write_csv
from robot_dynid.io.stored import StoredLog, stored
from robot_dynid.scratch import NoRoom, Scratch
from robot_dynid.types import CHANNELS, RawLog

PERIOD = 2_000_000  # ns


@pytest.fixture
def small_windows(monkeypatch):
    """Read bags in windows of 300 messages that overlap by 0.1 s, 50 messages at a time."""
    monkeypatch.setattr(mcap, 'BATCH', 50)
    monkeypatch.setattr(bag_windows, 'WINDOW', 300)
    monkeypatch.setattr(bag_windows, 'OVERLAP', 100_000_000)
    monkeypatch.setattr(bag_windows, 'MOST_OVERLAP', 100)


def apart(names, count=1500, seed=3):
    """Return messages that bring two joints in turn, each in messages of its own."""
    values = motion(count, 2, seed)
    return [(START + k * PERIOD, raw((names[k % 2],), START + k * PERIOD, [values[k, k % 2]], (),
                                     [values[k, 0]])) for k in range(count)]


def mixed(count=1500):
    """Return messages of which every third lacks a joint, and some are no messages at all."""
    values = motion(count, 2)
    found = []
    for k, row in enumerate(values):
        names = ('a', 'b') if k % 3 else ('a',)
        data = b'\0\1\0\0 nonsense' if k % 400 == 399 else raw(
            names, START + k * PERIOD, row[:len(names)], (), row[:len(names)])
        found.append((START + k * PERIOD, data))
    return found


def unset(count=1500):
    """Return messages of which one late in the bag has no header stamp."""
    return [(START + k * PERIOD, raw(('a', 'b'), 0 if k == 1300 else START + k * PERIOD + 500,
                                     row, (), row)) for k, row in enumerate(motion(count, 2))]


def defects(count=1500):
    """Return messages with a gap, repeated and backward stamps, NaN, and velocity never known."""
    values = motion(count, 2)
    values[700, 1] = np.nan
    stamps = START + np.arange(count) * PERIOD
    stamps[900:] += 50 * PERIOD
    stamps[400] = stamps[399]
    stamps[1200] -= 3 * PERIOD
    return [(START + k * PERIOD, raw(('a', 'b'), int(stamp), row, [np.nan] * 2, row))
            for k, (stamp, row) in enumerate(zip(stamps, values, strict=True))]


def late(messages, share=0.6):
    return messages[int(share * len(messages)):]


PLAIN = states(count=1500)[0]
TAU = states(('b', 'a'), count=1000, period=3_100_000, offset=700_000, seed=9)[0]
BAGS = {
    'plain': ({'/joint_states': PLAIN}, None),
    'motors and torques': ({'/joint_states': PLAIN, '/motor_states': states(
        count=1500, offset=300_000, seed=5)[0], '/joint_torques': TAU}, None),
    'efforts that begin late': ({'/joint_states': PLAIN, '/effort': late(TAU)}, None),
    'a topic asked for that begins late': (
        {'/joint_states': PLAIN, '/arm/tau': late(TAU)}, Topics(effort='/arm/tau')),
    'joints apart': ({'/joint_states': apart(('a', 'b'))}, None),
    'mixed and damaged': ({'/joint_states': mixed()}, None),
    'a stamp unset late': ({'/joint_states': unset()}, None),
    'defects': ({'/joint_states': defects()}, None),
}


@pytest.mark.parametrize('name', BAGS)
def test_windows_give_what_one_piece_gives(tmp_path, small_windows, name):
    topics, asked = BAGS[name]
    path = write_topics(tmp_path / 'b', topics)
    log = open_bag(path, ('a', 'b'), Scratch(), asked)
    assert isinstance(log, StoredLog)
    whole = read_bag(path, ('a', 'b'), asked)
    same(log, whole)
    assert set(log.findings) == set(whole.findings)


def same(stored_log, whole):
    """Hold a stored recording, and stretches of it, against the one in memory."""
    assert len(stored_log) == len(whole.time)
    for start, stop in ((0, len(whole.time)), (250, 950), (1499, 1500), (10, 10)):
        part = stored_log.read(start, min(stop, len(whole.time)))
        np.testing.assert_array_equal(part.time, whole.time[start:stop])
        for channel in CHANNELS:
            read, expected = getattr(part, channel), getattr(whole, channel)
            assert (read is None) == (expected is None), channel
            np.testing.assert_array_equal(
                read, None if expected is None else expected[start:stop], channel)
    part = stored_log.read(0, len(whole.time))
    assert (part.effort_messages is None) == (whole.effort_messages is None)
    if whole.effort_messages is not None:
        stamps, values = whole.effort_messages
        for start, stop in ((0, len(whole.time)), (250, 950)):
            first, last = whole.time[start], whole.time[stop - 1]
            read = stored_log.read(start, stop).effort_messages
            chosen, inside = ((t >= first) & (t <= last) for t in (stamps, read[0]))
            np.testing.assert_array_equal(read[0][inside], stamps[chosen])
            np.testing.assert_array_equal(read[1][inside], values[chosen])


@pytest.mark.parametrize('storage', PLUGINS)
def test_a_short_bag_is_read_into_memory(tmp_path, storage):
    path = write_topics(tmp_path / 'b', {'/joint_states': PLAIN}, storage)
    log = open_bag(path, ('a', 'b'), Scratch())
    assert isinstance(log, RawLog)
    np.testing.assert_array_equal(log.position, read_bag(path, ('a', 'b')).position)


def test_pieces_of_csv_give_what_one_piece_gives(tmp_path, monkeypatch):
    values = motion(1500, 2)
    values[700, 1] = np.nan
    log = RawLog('x', ('a', 'b'), 0.002 * np.arange(1500), values, effort=3.0 * values)
    path = tmp_path / 'log.csv.gz'
    write_csv(path, log)
    whole = read_csv(path, ('b', 'a'))
    monkeypatch.setattr(csv_module, 'LONGEST', 400)
    monkeypatch.setattr(compressed, 'PIECE', 20_000)
    found = open_csv(path, ('b', 'a'), Scratch())
    assert isinstance(found, StoredLog)
    same(found, whole)
    assert found.findings == whole.findings


def test_a_recording_from_memory_is_the_same_on_disk():
    values = motion(1500, 2)
    stamps = 0.001 * np.arange(3000)
    log = RawLog('x', ('a', 'b'), 0.002 * np.arange(1500), values, effort=values,
                 findings=('one',), effort_messages=(stamps, np.ones((3000, 2))))
    found = stored(log, Scratch())
    same(found, log)
    assert found.findings == ('one',)
    np.testing.assert_array_equal(found.read(0, 1500).effort_messages[0], stamps)  # the last, too


def test_a_full_disk_names_the_folder(monkeypatch):
    monkeypatch.setattr(scratch, 'SPARE', 1 << 60)
    with pytest.raises(NoRoom, match=r'no room for 8e-05 MB.*TMPDIR'):
        Scratch().put(np.zeros(10))


def test_a_long_bag_without_room_is_refused(tmp_path, small_windows, monkeypatch):
    path = write_topics(tmp_path / 'b', {'/joint_states': PLAIN})
    monkeypatch.setattr(scratch, 'SPARE', 1 << 60)
    with pytest.raises(DataError, match='no room for'):
        open_bag(path, ('a', 'b'), Scratch())
