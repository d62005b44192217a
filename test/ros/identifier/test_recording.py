"""ros/recording/session.py: recordings of live topics: stopped again and again, what never came
in, names of folders."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')

import burst_publishers
from bags import full_disk
from diagnostic_msgs.msg import DiagnosticStatus
from nodes import Spinner
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import JointState

from robot_dynid.errors import UsageError
from robot_dynid.io.bag import read_bag
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.common import listener
from robot_dynid.ros.identifier.messages import diagnosis
from robot_dynid.ros.recording import recorder, session
from robot_dynid.ros.recording.channel import (
    MOST_PUBLISHERS,
    Channel,
    SequenceGaps,
    TopicStatistics,
)
from robot_dynid.ros.recording.recorder import TopicStore
from robot_dynid.ros.recording.session import Recording, folder_name
from robot_dynid.signals.prepare import repair

UNNUMBERED = ' (this middleware does not report lost messages)'
NOT_RECORDING = 'nothing is being recorded; start a recording first'


class Stage:
    """A recording in a bare node that also publishes the joint states."""

    def __init__(self, node: Any, folder: Path) -> None:
        self.node, self.folder = node, folder
        self.recording = Recording(node, folder, 'arm', (), 1000)
        self.publisher = node.create_publisher(JointState, 'joint_states', QoSProfile(depth=1000))
        Spinner(node).wait(lambda: self.publisher.get_subscription_count() == 1)
        self.sent = 0

    def publish(self, count: int) -> None:
        """Publish so many joint states, numbered by their positions."""
        for _ in range(count):
            self.sent += 1
            message = JointState(name=['joint_1'], position=[float(self.sent)], effort=[1.0])
            message.header.stamp.sec, message.header.stamp.nanosec = divmod(
                self.sent * 1_000_000, 10**9)
            self.publisher.publish(message)

    def record(self, count: int) -> Path:
        """Record so many joint states; the recording still runs."""
        path = self.recording.start()
        self.publish(count)
        Spinner(self.node).wait(lambda: self.recording.count('joint_states') == count)
        return path

    def needs_numbers(self) -> None:
        """Skip where the middleware does not say which message is which."""
        self.record(1)
        if UNNUMBERED in self.recording.stop()[1]:
            pytest.skip('messages have no numbers: a ROS before Kilted')

    def level(self) -> tuple[int, str]:
        """Return level and message of the diagnostics."""
        status = diagnosis('node', self.recording.take_statistics(), self.recording, None, '')
        return int.from_bytes(status.level, 'little'), status.message


@pytest.fixture
def stage(node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setattr(recorder, 'RETRY', 60.0)
    made = Stage(node, tmp_path / 'bags')
    yield made
    made.recording.close()


@pytest.mark.ros
def test_a_second_stop_finishes_what_a_full_disk_did_not_take(stage: Stage) -> None:
    """The recordings that began meanwhile lose nothing either."""
    first = stage.record(300)
    with full_disk(first):
        whole, said = stage.recording.stop()
        assert not whole
        assert f'recorded 300 messages of /joint_states in {first}' in said
        assert '300 messages are kept in memory only: free space on that disk' in said
        assert 'stop again when space is free' in said
        assert stage.level() == (2, said.split('; ', 1)[1].removesuffix(
            '; stop again when space is free'))
        assert stage.recording.stop() == (False, said), 'it still is full'
        second = stage.record(200)
        assert stage.level()[0] == 2, 'the earlier one is not forgotten'
        whole, both = stage.recording.stop()
        assert not whole
        assert said in both
        assert f'recorded 200 messages of /joint_states in {second}' in both
    whole, last = stage.recording.stop()
    assert whole and last.removesuffix(UNNUMBERED) == \
        f'recorded 300 messages of /joint_states in {first}'
    assert stage.level()[0] == 0
    with pytest.raises(UsageError, match=NOT_RECORDING):
        stage.recording.stop()
    np.testing.assert_array_equal(read_bag(first).position[:, 0], np.arange(1, 301))
    np.testing.assert_array_equal(read_bag(second).position[:, 0], np.arange(301, 501))


@pytest.mark.ros
def test_a_node_that_ends_says_where_the_messages_are(
    stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(stage.node, 'get_logger', lambda: SimpleNamespace(error=said.append))
    monkeypatch.setattr(session, 'gettempdir', lambda: str(tmp_path / 'temporary'))
    path = stage.record(300)
    with full_disk(path):
        stage.recording.close()
    rest = tmp_path / 'temporary' / f'{path.name}_rest'
    assert len(said) == 1
    assert f'these 300 messages were written to {rest}' in said[0]
    assert read_bag(rest).position.shape == (300, 1)


@pytest.mark.ros
def test_messages_that_never_came_in_are_counted(stage: Stage) -> None:
    """Nobody takes them for a while, so that the queue of 1000 runs over, as under load."""
    stage.needs_numbers()
    path = stage.record(100)
    with stage.recording.lock:
        stage.publish(3500)
        Spinner(stage.node).wait(stage.publisher.wait_for_all_acked)
    # all that was in the queue, which is full until then
    Spinner(stage.node).wait(lambda: stage.recording.count('joint_states') >= 1100)
    assert stage.level()[0] == 2
    stage.publish(10)
    Spinner(stage.node).wait(lambda: stage.recording.count('joint_states') >= 1110)
    whole, said = stage.recording.stop()
    assert not whole
    log = read_bag(path)
    lost = 3610 - len(log.position)
    assert 0 < lost <= 2500
    assert f'{lost} messages of /joint_states were lost while recording' in said
    assert any(f'{lost} messages of /joint_states were lost' in f for f in log.findings)
    missing = np.diff(log.position[:, 0]) - 1.0
    assert missing.sum() == lost
    stage.record(5)
    assert stage.recording.stop()[0], 'the next one lacks nothing'


@pytest.mark.ros
def test_losses_of_a_best_effort_publisher_are_told_and_no_failure(
    node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It sends nothing again; that it is lossy is said where the recording is listed."""
    recording = Recording(node, tmp_path / 'bags', 'arm', (), 1000)
    publisher = node.create_publisher(JointState, 'joint_states', QoSProfile(
        depth=1000, reliability=ReliabilityPolicy.BEST_EFFORT))
    spinner = Spinner(node)
    spinner.wait(lambda: publisher.get_subscription_count() == 1)
    path = recording.start()

    def heard() -> bool:
        publisher.publish(JointState(name=['joint_1'], position=[0.5], effort=[1.0]))
        return recording.count('joint_states') >= 3

    spinner.wait(heard)
    take, dropped = listener.take, list[Any]()

    def lossy(*given: Any) -> Any:
        """Drop two messages, as a network does."""
        found = take(*given)
        if found is not None and len(dropped) < 2:
            dropped.append(found)
            return None
        return found

    monkeypatch.setattr(listener, 'take', lossy)
    count = recording.count('joint_states')

    def more() -> bool:
        publisher.publish(JointState(name=['joint_1'], position=[0.5], effort=[1.0]))
        return len(dropped) == 2 and recording.count('joint_states') > count

    spinner.wait(more)
    statistics = recording.take_statistics()
    whole, said = recording.stop()
    recording.close()
    assert whole and recording.intact, said
    if UNNUMBERED not in said:  # from Kilted on
        assert statistics[0].lost == 2
        assert ('2 messages of /joint_states were lost while recording: it is published as best '
                'effort, so they were not sent again') in said
        assert any('2 messages of /joint_states' in found for found in read_bag(path).findings)
        status = diagnosis('node', statistics, recording, None, '')
        assert status.level == DiagnosticStatus.WARN


@pytest.mark.ros
def test_publishers_that_come_and_go_are_no_losses(stage: Stage) -> None:
    other = stage.node.create_publisher(JointState, 'joint_states', 1000)
    Spinner(stage.node).wait(lambda: other.get_subscription_count() == 1)
    stage.publish(50)
    stage.recording.start()
    for _ in range(20):
        stage.publish(1)
        other.publish(JointState(name=['other'], position=[0.0]))
    stage.node.destroy_publisher(other)
    late = stage.node.create_publisher(JointState, 'joint_states', 1000)
    Spinner(stage.node).wait(lambda: late.get_subscription_count() == 1)
    late.publish(JointState(name=['other'], position=[0.0]))
    Spinner(stage.node).wait(lambda: stage.recording.count('joint_states') == 41)
    whole, said = stage.recording.stop()
    assert whole, said


@pytest.mark.ros
@pytest.mark.parametrize('direction', [1.0, -1.0])
def test_positions_that_turn_over_are_recorded_as_sent_and_identified_as_the_joint_goes(
    stage: Stage, direction: float
) -> None:
    """Messages are lost at one seam, numbers at another, as with a Kinova Gen3 on a busy PC."""
    robot = load_robot('planar_3r')
    path, stamps = stage.recording.start(), 4_000_000 * np.arange(1500)
    truth = direction * 1e-9 * np.outer(stamps, [2.5, 2.0, 1.0])
    sent = np.mod(truth + np.pi, 2.0 * np.pi) - np.pi
    first, second = np.flatnonzero(np.abs(np.diff(sent[:, 0])) > np.pi)[:2]
    sent[second:second + 2, 0] = np.nan
    kept = np.setdiff1d(np.arange(1500), np.arange(first - 2, first + 4))
    for stamp, q in zip(stamps[kept].tolist(), sent[kept].tolist(), strict=True):
        message = JointState(name=robot.joints, position=q, effort=[1.0, 2.0, 3.0])
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(stamp + 1, 10**9)
        stage.publisher.publish(message)
    Spinner(stage.node).wait(lambda: stage.recording.count('joint_states') == len(kept))
    assert stage.recording.recorder is not None
    buffer = stage.recording.recorder.snapshot(robot.joints)
    assert stage.recording.stop()[0]
    for log in (buffer, read_bag(path, robot.joints)):
        np.testing.assert_array_equal(log.position, sent[kept])
        (part,) = repair(robot, log).parts
        np.testing.assert_allclose(part.position - part.position[0],
                                   np.outer(part.time - part.time[0], truth[-1] / (
                                       1e-9 * stamps[-1])), atol=1e-6)


def motor_states(stage: Stage) -> Any:
    """Return a publisher of motor states that the recording listens to."""
    publisher = stage.node.create_publisher(JointState, 'motor_states', QoSProfile(depth=1000))
    Spinner(stage.node).wait(lambda: publisher.get_subscription_count() == 1)
    return publisher


@pytest.mark.ros
@pytest.mark.parametrize('there', [True, False], ids=['from the start', 'later'])
def test_motor_states_are_recorded_whenever_they_are_published(
    stage: Stage, there: bool
) -> None:
    """The robot does not ask for them; without any nothing is told of them."""
    publisher = motor_states(stage) if there else None
    path = stage.record(20)
    assert len(stage.recording.take_statistics()) == 1, 'none has come'
    publisher = publisher or motor_states(stage)
    for _ in range(30):
        stage.publish(1)
        message = JointState(name=['joint_1'], position=[100.0 + stage.sent], velocity=[2.0])
        message.header.stamp.sec, message.header.stamp.nanosec = divmod(
            stage.sent * 1_000_000, 10**9)
        publisher.publish(message)
    Spinner(stage.node).wait(lambda: stage.recording.count('motor_states') == 30)
    Spinner(stage.node).wait(lambda: stage.recording.count('joint_states') == 50)
    assert stage.recording.topics().motor_states == '/motor_states'
    assert [s.topic for s in stage.recording.take_statistics()] == [
        '/joint_states', '/motor_states']
    whole, said = stage.recording.stop()
    assert whole and '50 messages of /joint_states, 30 messages of /motor_states' in said
    assert stage.recording.recorder is not None
    for log in (read_bag(path), stage.recording.recorder.snapshot()):
        assert log.motor_position is not None and log.motor_velocity is not None
        known = log.motor_position[20:, 0]
        np.testing.assert_array_equal(known, np.arange(121.0, 151.0))
        assert np.isnan(log.motor_position[:20]).all()
    stage.record(5)
    whole, said = stage.recording.stop()
    assert '0 messages of /motor_states' in said, 'a publisher is there'


@pytest.mark.ros
def test_motor_states_that_never_came_in_are_counted(stage: Stage) -> None:
    stage.needs_numbers()
    publisher = motor_states(stage)
    stage.record(10)
    publisher.publish(JointState(name=['joint_1'], position=[0.0]))
    Spinner(stage.node).wait(lambda: stage.recording.count('motor_states') == 1)
    with stage.recording.lock:
        for _ in range(3500):
            publisher.publish(JointState(name=['joint_1'], position=[1.0]))
        Spinner(stage.node).wait(publisher.wait_for_all_acked)
    Spinner(stage.node).wait(lambda: stage.level()[0] == 2)
    whole, said = stage.recording.stop()
    assert not whole and 'messages of /motor_states were lost while recording' in said


@pytest.mark.ros
def test_a_burst_that_is_stopped_is_in_the_bag_or_told(stage: Stage) -> None:
    """Of every publisher, all messages sent before the stop; what was sent again, too."""
    stage.needs_numbers()
    child = subprocess.Popen(
        [sys.executable, str(Path(burst_publishers.__file__)), stage.node.get_namespace()],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None and child.stdout is not None
    path = stage.recording.start()
    assert child.stdout.readline() == 'ready\n'
    Spinner(stage.node).wait(lambda: stage.recording.count('joint_states') > 2000)
    asked = time.time_ns()
    _, said = stage.recording.stop()
    stopped = time.time_ns()
    sent = np.array(json.loads(child.communicate('\n')[0])).reshape(-1, burst_publishers.COUNT)
    numbers = [set[int]() for _ in range(burst_publishers.COUNT)]
    with Reader(path) as reader:
        for _, _, data in reader.messages():
            message = deserialize_message(data, JointState)
            numbers[int(message.name[0])].add(int(message.position[0]))
    told = re.search(r'(\d+) messages of \S+ were lost while recording', said)
    missing = sum(len(set(range(1, before + 1)) - numbers[k]) for k, before in enumerate(
        (sent < asked).sum(axis=0)))
    straddling = sum(max(0, after - max(numbers[k])) for k, after in enumerate(
        (sent < stopped).sum(axis=0)))
    assert missing <= (int(told[1]) if told else 0) <= missing + straddling
    assert all(max(numbers[k]) <= after for k, after in enumerate((sent < stopped).sum(axis=0)))


def hold_back(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let the middleware keep its messages for so long from now on."""
    take, until = listener.take, time.monotonic() + seconds
    monkeypatch.setattr(
        listener, 'take', lambda *given: take(*given) if time.monotonic() > until else None)


@pytest.mark.ros
def test_messages_under_way_are_waited_for(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher is silent then: nothing shows that these are the last ones."""
    path = stage.record(100)
    hold_back(monkeypatch, 0.1)
    stage.publish(200)
    whole, said = stage.recording.stop()
    assert whole and f'recorded 300 messages of /joint_states in {path}' in said
    assert len(read_bag(path).position) == 300


@pytest.mark.ros
def test_messages_that_come_too_late_are_counted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.needs_numbers()
    monkeypatch.setattr(session, 'QUIET_SECONDS', 0.05)
    stage.record(100)
    with monkeypatch.context() as held:
        held.setattr(listener, 'take', lambda *given: None)
        stage.publish(30)
        whole, said = stage.recording.stop()
    assert whole, said
    assert '100 messages' in said
    Spinner(stage.node).wait(lambda: stage.level()[0] == 2)
    Spinner(stage.node).wait(lambda: '30 messages of /joint_states were' in stage.level()[1])
    stage.publish(5)
    Spinner(stage.node).wait(stage.publisher.wait_for_all_acked)
    stage.recording.take_statistics()
    assert '30 messages of /joint_states were' in stage.level()[1], 'these were sent afterwards'
    stage.record(5)
    assert stage.recording.stop()[0], 'the next one lacks nothing'


@pytest.mark.ros
def test_a_stop_does_not_wait_while_publishers_go_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.needs_numbers()
    for name in ('QUIET_SECONDS', 'LONGEST_STOP'):
        monkeypatch.setattr(session, name, 1e3)
    path, ended = stage.record(10), threading.Event()

    def go_on() -> None:
        while not ended.wait(0.005):
            stage.publish(1)

    thread = threading.Thread(target=go_on)
    thread.start()
    whole, said = stage.recording.stop()
    sent = stage.sent
    ended.set()
    thread.join()
    assert whole, said
    numbers = read_bag(path).position[:, 0]
    np.testing.assert_array_equal(numbers, np.arange(2, len(numbers) + 2))
    assert 10 <= len(numbers) <= sent


def timed(
    number: int, sent: int, publisher: bytes = b'a', came: int | None = None
) -> dict[str, Any]:
    """Return what comes with a message that was ``sent``, and ``came`` then or later [ms]."""
    return {**numbered(number, publisher), 'source_timestamp': 10**6 * sent,
            'received_timestamp': 10**6 * (sent if came is None else came)}


def test_the_end_of_a_recording_is_that_of_each_publisher() -> None:
    channel, other = (Channel('/joint_states', lambda received: received) for _ in range(2))
    store = TopicStore('/joint_states', 'sensor_msgs/msg/JointState')
    channel.begin(store, None)
    for k in range(5):
        channel.receive(b'', timed(k, k))
        channel.receive(b'', timed(k, k, b'b'))
    ending = channel.close(5_000_000, 2)
    assert not ending.over(60.0, False) and ending.over(0.0, False)
    channel.receive(b'', timed(7, 5, came=300))  # 5 and 6 are lost
    assert (store.count, store.lost) == (11, 2)
    channel.receive(b'', timed(9, 6))
    assert (store.count, store.lost) == (11, 3), '8 may have been sent before'
    channel.receive(b'', timed(12, 8))
    assert (store.count, store.lost) == (11, 3), '10 and 11 were not'
    assert not ending.over(60.0, False), 'the other has shown nothing'
    channel.receive(b'', timed(5, 4, b'b', 301))
    channel.receive(b'', timed(6, 9000, b'b', 4))  # its clock is ahead; it came before the stop
    assert not ending.over(60.0, False)
    channel.receive(b'', timed(7, 302, b'b'))
    assert ending.over(60.0, True)
    assert (store.count, store.lost) == (13, 3)
    channel.end()
    channel.receive(b'', timed(6, 5, b'c', 400))
    channel.receive(b'', timed(13, 401))
    assert (store.count, store.lost) == (13, 4)
    channel.begin(None, None)
    channel.receive(b'', timed(14, 402))
    assert other.close(5, 0).over(60.0, False) and not other.close(5, 0).over(60.0, True)
    assert not other.close(5, 1).over(60.0, False), 'one of which nothing has come yet'


@pytest.mark.parametrize(('until', 'waits'), [(3000, True), (1500, False)])
def test_publishers_that_were_steady_are_waited_for(until: int, waits: bool) -> None:
    """They are expected to go on: what they send next shows whether anything is missing."""
    for first, asked, steady in ((0, until + 500, waits), (0, until + 1500, False),
                                 (until - 100, until, False)):
        channel = Channel('/joint_states', lambda received: received)
        for number, sent in enumerate((first, until)):
            channel.receive(b'', timed(number, sent))
        assert channel.close(10**6 * asked, 1).over(0.0, False) != steady
        assert channel.close(10**6 * asked, 0).over(0.0, False), 'they are gone'


def numbered(number: int | None, publisher: bytes = b'a') -> dict[str, Any]:
    return {'publication_sequence_number': number, 'publisher_gid': {'data': publisher},
            'received_timestamp': 0}


def test_a_message_that_was_sent_again_stays_before_those_behind_it() -> None:
    channel = Channel('/joint_states', lambda received: received)
    channel.store = store = TopicStore('/joint_states', 'sensor_msgs/msg/JointState')
    second = 10**9
    for number, came in enumerate((5.0, 5.2, 5.5, 5.3, 5.4, 5.6, 2.0)):  # the clock is set back
        channel.receive(bytes([number]), {'received_timestamp': round(second * came)})
    stamps = [stamp for stamp, _ in store.in_memory()]
    assert stamps[:6] == sorted(stamps[:6]) and len(set(stamps)) == 7
    assert [stamps[k] for k in (0, 1, 2, 5, 6)] == [
        round(second * came) for came in (5.0, 5.2, 5.5, 5.6, 2.0)]


def test_rates_ages_and_gaps_are_those_since_the_last_reading(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 100 * 10**9
    monkeypatch.setattr('robot_dynid.ros.recording.channel.time', SimpleNamespace(
        time_ns=lambda: now, monotonic=lambda: 0.0))
    channel = Channel('/joint_states', lambda received: received)
    assert channel.take_statistics() == TopicStatistics('/joint_states', 0.0, 0.0, np.inf)
    for number, ago in ((1, 1.75), (2, 1.0), (5, 0.25)):
        channel.receive(b'', numbered(number) | {
            'received_timestamp': now + 2 * 10**9 - round(1e9 * ago)})
    now += 2 * 10**9
    assert channel.take_statistics() == TopicStatistics('/joint_states', 1.5, 0.75, 0.25, 2)
    now += 10**9
    assert channel.take_statistics() == TopicStatistics('/joint_states', 0.0, 0.0, 1.25)


def test_gaps_are_those_of_each_publisher() -> None:
    gaps = SequenceGaps()
    steps = [(7, b'a', 0), (8, b'a', 0), (1, b'b', 0), (10, b'a', 1), (5, b'b', 3), (5, b'b', 0),
             (3, b'b', 0), (6, b'b', 0), (11, b'a', 0)]
    assert [gaps.missing(numbered(number, key)) for number, key, _ in steps] == [
        missing for *_, missing in steps]
    for k in range(2 * MOST_PUBLISHERS):
        assert not gaps.missing(numbered(k, str(k).encode()))
    assert gaps.numbered
    assert len(gaps.last) == MOST_PUBLISHERS
    for info in ({}, numbered(None), {'publication_sequence_number': 3}):
        gaps.numbered = True
        assert not gaps.missing(info)
        assert not gaps.numbered


@pytest.mark.ros
def test_a_middleware_that_does_not_tell_is_named(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SequenceGaps, 'missing', lambda self, info: setattr(
        self, 'numbered', False) or 0)
    stage.record(5)
    whole, said = stage.recording.stop()
    assert whole
    assert 'this middleware does not report lost messages' in said


@pytest.mark.parametrize(('name', 'folder'), [
    ('ur10e', 'ur10e'), ('planar_3r', 'planar_3r'), ('arm-2.1+b', 'arm-2.1+b'),
    ('../../etc/x', 'etc_x'), ('/etc/x', 'etc_x'), ('..', 'recording'), ('', 'recording'),
    ('.hidden', 'hidden'), ('a b\n\0c', 'a_b_c'), ('Läufer', 'L_ufer'), ('x' * 300, 'x' * 80),
])
def test_names_of_robots_stay_in_the_folder(name: str, folder: str) -> None:
    assert folder_name(name) == folder


@pytest.mark.ros
def test_recordings_of_one_second_and_of_two_nodes_have_folders_of_their_own(
    node: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Noon(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Noon:
            return cls(2024, 1, 2, 12)

    monkeypatch.setattr(session, 'datetime', Noon)
    base, there = tmp_path / 'arm_2024-01-02_12-00-00', os.path.lexists
    base.symlink_to(tmp_path / 'nowhere')
    recordings = [Recording(node, tmp_path, '../../arm', (), 1000) for _ in range(2)]
    try:
        assert [r.start() for r in recordings] == [
            base.with_name(f'{base.name}_{k}') for k in (2, 3)]
        recordings[0].stop()
        overlooked = [base.with_name(f'{base.name}_{k}') for k in (2, 3)]
        monkeypatch.setattr(session.os.path, 'lexists', lambda path: (
            there(path) and not (overlooked and overlooked.pop(0) == path)))
        assert recordings[0].start() == base.with_name(f'{base.name}_4'), 'another was faster'
    finally:
        for each in recordings:
            each.close()
