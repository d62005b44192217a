"""The live recorder: nothing lost, readable after a kill, cheap to append to."""

import resource
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from bags import full_disk
from rosbags.rosbag2 import Reader

from robot_dynid.errors import DataError, UsageError
from robot_dynid.io.bag import read_bag
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import JOINT_STATE, encode_joint_states
from robot_dynid.io.repair import repair_bag
from robot_dynid.ros.recording import recorder as recorder_module
from robot_dynid.ros.recording.recorder import OBJECTS, Memory, Recorder

START = 1_700_000_000_000_000_000
MESSAGES = 4096
NAMES = tuple(f'joint_{k}' for k in range(7))


def messages(count, seed=2, names=NAMES):
    """Return stamps, payloads and the numbers in them."""
    values = np.random.default_rng(seed).normal(size=(count, len(names)))
    stamps = START + 1_000_000 * np.arange(count)
    return stamps, encode_joint_states(names, stamps, (values, values, values)), values


def feed(store, stamps, payloads):
    for stamp, data in zip(stamps.tolist(), payloads, strict=True):
        store.append(data, stamp)


@contextmanager
def recording(path, **words):
    recorder = Recorder(path, **words)
    try:
        yield recorder
    finally:
        recorder.stop()


def wait_until(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, 'took too long'
        time.sleep(0.01)


def test_bag_holds_what_was_appended(tmp_path):
    stamps, payloads, values = messages(3 * MESSAGES + 100)
    with recording(tmp_path / 'run', period=0.02) as recorder:
        feed(recorder.add_topic('/joint_states'), stamps, payloads)
        log = recorder.snapshot(NAMES)
        np.testing.assert_array_equal(log.position, values)
    log = read_bag(tmp_path / 'run', NAMES)
    np.testing.assert_array_equal(log.effort, values)
    np.testing.assert_allclose(log.time, 0.001 * np.arange(len(values)), atol=1e-9)
    assert log.findings == ()
    assert (tmp_path / 'run' / 'metadata.yaml').exists()


def test_snapshot_while_recording_joins_disk_and_memory(tmp_path):
    stamps, payloads, values = messages(4 * MESSAGES)
    recorder = Recorder(tmp_path / 'run', period=0.02)
    store = recorder.add_topic('/joint_states')
    for stop in range(1000, len(values), 2500):
        feed(store, stamps[stop - 1000:stop], payloads[stop - 1000:stop])
        expected = np.concatenate([values[s - 1000:s] for s in range(1000, stop + 1, 2500)])
        np.testing.assert_array_equal(recorder.snapshot().position, expected)
        time.sleep(0.03)
    assert store.count == len(expected)
    wait_until(lambda: store.released > 0 and len(store.in_memory()) < 2500)
    np.testing.assert_array_equal(recorder.snapshot().position, expected)
    assert recorder.stop() == ()
    np.testing.assert_array_equal(recorder.snapshot().position, expected)


def test_several_topics_in_one_bag(tmp_path):
    stamps, payloads, values = messages(500)
    _, others, motor = messages(500, seed=9)
    with recording(tmp_path / 'run', period=0.02) as recorder:
        states, motors = recorder.add_topic('/joint_states'), recorder.add_topic('/motor_states')
        feed(states, stamps[:100], payloads[:100])
        time.sleep(0.05)
        plan = recorder.add_topic('/plan', 'trajectory_msgs/msg/JointTrajectory')
        plan.append(bytes(24), int(stamps[0]))
        feed(motors, stamps, others)
        feed(states, stamps[100:], payloads[100:])
        with pytest.raises(UsageError, match='message type nowhere/msg/Thing'):
            recorder.add_topic('/x', 'nowhere/msg/Thing')
        live = recorder.snapshot()
    for log in (live, read_bag(tmp_path / 'run')):
        np.testing.assert_array_equal(log.position, values)
        np.testing.assert_array_equal(log.motor_position, motor)
    with pytest.raises(UsageError, match='recording has ended'):
        recorder.add_topic('/late')


def test_without_messages_there_is_no_snapshot(tmp_path):
    with recording(tmp_path / 'run') as recorder:
        with pytest.raises(DataError, match='no JointState messages'):
            recorder.snapshot()
        recorder.add_topic('/joint_states')
        assert recorder.counts == {'/joint_states': 0}


def test_a_bag_is_never_overwritten(tmp_path):
    with pytest.raises(UsageError, match='exists already'):
        Recorder(tmp_path)
    (tmp_path / 'file').touch()
    with pytest.raises(DataError, match='cannot be created'):
        Recorder(tmp_path / 'file' / 'run')


KILLED = """
import sys, time
import numpy as np
from robot_dynid.io.cdr import encode_joint_states
from robot_dynid.ros.recording.recorder import OBJECTS, Memory, Recorder
store = Recorder(sys.argv[1]).add_topic('/joint_states')
start = time.time()
for k in range(100000):
    time.sleep(max(0, start + 0.001 * k - time.time()))
    now = time.time_ns()
    values = np.full((1, 7), float(k))
    names = tuple(f'joint_{j}' for j in range(7))
    store.append(encode_joint_states(names, [now], (values, values, values))[0], now)
    print(k, now, flush=True)
"""


def test_kill_loses_less_than_a_second(tmp_path):
    process = subprocess.Popen(
        [sys.executable, '-c', KILLED, str(tmp_path / 'run')], stdout=subprocess.PIPE, text=True
    )
    lines = []
    while not lines or int(lines[-1].split()[0]) < 2500:
        lines.append(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    lines += process.stdout.readlines()
    process.wait()
    whole = [line for line in lines if line.endswith('\n')]
    sent = np.array([line.split() for line in whole], dtype=np.int64)
    log = read_bag(tmp_path / 'run')
    got = len(log.time)
    np.testing.assert_array_equal(log.position[:, 0], np.arange(got))
    lost = (sent[-1, 1] - sent[got - 1, 1]) * 1e-9 if got < len(sent) else 0.0
    assert lost < 1.0, f'{lost:.2f} s lost'
    assert any('metadata.yaml is missing' in f for f in log.findings)
    assert any('not closed' in f or 'cut off' in f for f in log.findings)
    assert repair_bag(tmp_path / 'run').messages['/joint_states'] == got
    with Reader(tmp_path / 'run') as reader:
        assert len(list(reader.messages())) == got


def test_full_disk_keeps_everything_in_memory_and_recovers(tmp_path):
    stamps, payloads, values = messages(3 * MESSAGES)
    recorder = Recorder(tmp_path / 'run', period=0.02)
    store = recorder.add_topic('/joint_states')
    feed(store, stamps[:500], payloads[:500])
    wait_until(lambda: store.saved == 500)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    written = max(file.stat().st_size for file in (tmp_path / 'run').iterdir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (written, before[1]))  # the disk is full here
    try:
        feed(store, stamps[500:], payloads[500:])
        wait_until(lambda: any(f'{len(values) - 500} messages are kept in memory only' in one
                               for one in recorder.findings))
        (finding,) = recorder.findings
        assert 'cannot be written' in finding
        log = recorder.snapshot()
        np.testing.assert_array_equal(log.position, values)
        assert finding in log.findings
        np.testing.assert_array_equal(read_bag(tmp_path / 'run').position, values[:500])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    wait_until(lambda: not recorder.findings)
    assert recorder.stop() == ()
    log = read_bag(tmp_path / 'run')
    np.testing.assert_array_equal(log.position, values)
    assert log.findings == ()


@pytest.mark.parametrize('again', [True, False], ids=['stopped again', 'by itself'])
def test_recorder_writes_after_the_stop_what_a_full_disk_refused(tmp_path, monkeypatch, again):
    monkeypatch.setattr(recorder_module, 'RETRY', 60.0 if again else 0.05)
    stamps, payloads, values = messages(3000)
    recorder = Recorder(tmp_path / 'run', period=60)
    feed(recorder.add_topic('/joint_states'), stamps, payloads)
    with full_disk(tmp_path, 10_000):
        (finding,) = recorder.stop()
        assert 'No space left' in finding
        assert '3000 messages are kept in memory only: free space' in finding
        assert not recorder.finished
        assert recorder.stop() == (finding,), 'it still is'
        np.testing.assert_array_equal(recorder.snapshot().position, values)
    if again:
        assert recorder.stop() == ()
    else:
        wait_until(lambda: recorder.finished)
    assert recorder.finished
    assert recorder.findings == ()
    log = read_bag(tmp_path / 'run')
    np.testing.assert_array_equal(log.position, values)
    assert log.findings == ()


def test_an_index_without_room_is_written_later(tmp_path):
    """The messages are on the disk then, and the file is one that strict readers take."""
    stamps, payloads, values = messages(3000)
    recorder = Recorder(tmp_path / 'run', period=0.02)
    store = recorder.add_topic('/joint_states')
    feed(store, stamps, payloads)
    wait_until(lambda: store.saved == 3000)
    for room in (0, 100):
        with full_disk(tmp_path, room):
            (finding,) = recorder.stop()
            assert 'all messages are on the disk, but the index could not be written' in finding
            assert not recorder.finished
            np.testing.assert_array_equal(read_bag(tmp_path / 'run').position, values)
    (tmp_path / 'run' / 'metadata.yaml').mkdir()
    (finding,) = recorder.stop()
    assert 'metadata.yaml: is a folder' in finding
    (tmp_path / 'run' / 'metadata.yaml').rmdir()
    assert recorder.stop() == ()
    assert read_bag(tmp_path / 'run').findings == ()
    with Reader(tmp_path / 'run') as reader:
        stamped = [stamp for _, stamp, _ in reader.messages()]
    np.testing.assert_array_equal(stamped, stamps)


def test_memory_for_a_full_disk_is_bounded_the_first_messages_are_kept_the_rest_counted(tmp_path):
    count = 6 * MESSAGES
    stamps, payloads, values = messages(count)
    kept = 2 * MESSAGES + 7
    memory = Memory(kept * (len(payloads[0]) + OBJECTS))
    recorder = Recorder(tmp_path / 'run', period=0.02, memory=memory)
    store = recorder.add_topic('/joint_states')
    with full_disk(tmp_path):
        feed(store, stamps, payloads)
        assert store.count == kept
        assert store.refused == count - kept
        lost = f'{count - kept} messages of /joint_states are lost: the disk could not store'
        assert any(lost in finding for finding in recorder.findings)
    wait_until(lambda: store.released == kept)  # it is free then
    feed(store, stamps[-10:], payloads[-10:])
    said = recorder.stop()
    assert recorder.finished
    assert len(said) == 1 and lost in said[0], 'told although the rest is saved'
    log = read_bag(tmp_path / 'run')
    np.testing.assert_array_equal(log.position[:kept], values[:kept])
    np.testing.assert_array_equal(log.position[kept:], values[-10:])
    assert any(lost in finding for finding in log.findings), 'who reads the bag is told'


def test_memory_is_given_back_once_it_is_saved(tmp_path):
    stamps, payloads, values = messages(12 * MESSAGES)
    recorder = Recorder(tmp_path / 'run', period=0.01, memory=Memory(
        3 * MESSAGES * (len(payloads[0]) + OBJECTS)))
    store = recorder.add_topic('/joint_states')
    for start in range(0, len(values), 3 * MESSAGES):
        feed(store, stamps[start:start + 3 * MESSAGES], payloads[start:start + 3 * MESSAGES])
        # memory is free some instants after what was in it is on the disk
        wait_until(lambda count=start + 3 * MESSAGES: store.released == count)
    assert recorder.stop() == ()
    np.testing.assert_array_equal(read_bag(tmp_path / 'run').position, values)


def test_pieces_of_what_waits_make_up_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(recorder_module, 'WRITTEN_BYTES', 500_000)
    stamps, payloads, values = messages(3 * MESSAGES)
    _, others, motor = messages(3 * MESSAGES, seed=9)
    recorder = Recorder(tmp_path / 'run', period=60)
    pieces, sync = [], BagWriter.sync
    monkeypatch.setattr(BagWriter, 'sync', lambda self: (pieces.append(1), sync(self)))
    feed(recorder.add_topic('/joint_states'), stamps, payloads)
    feed(recorder.add_topic('/motor_states'), stamps, others)
    feed(recorder.add_topic('/more'), stamps[:5], payloads[:5])
    assert recorder.stop() == ()
    assert len(pieces) > 2
    log = read_bag(tmp_path / 'run')
    np.testing.assert_array_equal(log.position, values)
    np.testing.assert_array_equal(log.motor_position, motor)


def test_messages_only_in_memory_can_be_written_elsewhere(tmp_path):
    stamps, payloads, values = messages(MESSAGES + 500)
    recorder = Recorder(tmp_path / 'full' / 'run', period=0.02)
    store = recorder.add_topic('/joint_states')
    feed(store, stamps[:300], payloads[:300])
    wait_until(lambda: store.saved == 300)
    with full_disk(tmp_path / 'full'):
        feed(store, stamps[300:], payloads[300:])
        recorder.stop()
        with full_disk(tmp_path):
            assert recorder.rescue(tmp_path / 'other') is None
        assert not (tmp_path / 'other' / 'run_rest').exists()
        (tmp_path / 'mine' / 'run_rest').mkdir(parents=True)
        assert recorder.rescue(tmp_path / 'mine') is None
        assert (tmp_path / 'mine' / 'run_rest').is_dir(), 'a folder of somebody else stays'
        assert recorder.rescue(tmp_path / 'other') == tmp_path / 'other' / 'run_rest'
        np.testing.assert_array_equal(
            read_bag(tmp_path / 'other' / 'run_rest').position, values[300:])
        np.testing.assert_array_equal(read_bag(tmp_path / 'full' / 'run').position, values[:300])


def test_append_is_cheap(tmp_path):
    _, payloads, _ = messages(20_000)
    with recording(tmp_path / 'run') as recorder:
        append = recorder.add_topic('/joint_states', JOINT_STATE).append
        costs = np.empty(len(payloads))
        for k, data in enumerate(payloads):
            start = time.perf_counter()
            append(data)
            costs[k] = time.perf_counter() - start
    assert np.median(costs) < 20e-6


PUBLISHER = """
import array, sys, time
import rclpy
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
rclpy.init()
node = rclpy.create_node('publisher')
publisher = node.create_publisher(JointState, 'joint_states', QoSProfile(depth=1000))
while not publisher.get_subscription_count():
    time.sleep(0.01)
message = JointState(name=[f'joint_{j}' for j in range(7)])
message.header.frame_id = 'base'
start = time.time()
for k in range(2000):
    time.sleep(max(0, start + 0.001 * k - time.time()))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(1000000 * k + 10**9, 10**9)
    message.position = array.array('d', [k] * 7)
    message.effort = array.array('d', [-k] * 7)
    publisher.publish(message)
publisher.wait_for_all_acked()
time.sleep(0.2)
"""


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
def test_raw_subscription_over_dds(tmp_path):
    import rclpy
    from rclpy.qos import QoSProfile
    from sensor_msgs.msg import JointState

    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('listener', context=context)
    executor = rclpy.executors.SingleThreadedExecutor(context=context)
    executor.add_node(node)
    publisher = subprocess.Popen([sys.executable, '-c', PUBLISHER])
    try:
        with recording(tmp_path / 'run') as recorder:
            store = recorder.add_topic('/joint_states')
            node.create_subscription(
                JointState, 'joint_states', store.append, QoSProfile(depth=1000), raw=True
            )
            end = time.monotonic() + 60
            while store.count < 2000 and time.monotonic() < end:
                executor.spin_once(timeout_sec=0.1)
    finally:
        publisher.wait(60)
        node.destroy_node()
        rclpy.shutdown(context=context)
    log = read_bag(tmp_path / 'run', NAMES)
    np.testing.assert_array_equal(log.position[:, 3], np.arange(2000))
    np.testing.assert_array_equal(log.effort[:, 6], -np.arange(2000))
    np.testing.assert_allclose(log.time, 0.001 * np.arange(2000), atol=1e-9)
    assert log.velocity is None
    assert log.findings == ()
