"""The thread that takes messages: order, stopping, what it cannot hear."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

pytest.importorskip('rclpy')

from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64

from robot_dynid.errors import DataError
from robot_dynid.io.cdr import JointStateReader
from robot_dynid.ros.common.listener import Listener
from robot_dynid.ros.common.messages import UnreadableMessage, message_of

pytestmark = pytest.mark.ros
RELIABLE = QoSProfile(depth=10000, reliability=ReliabilityPolicy.RELIABLE)
PATIENCE = 60.0


def until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.01)


def come(publisher: Any) -> None:
    """Wait until what was published has come in."""
    assert publisher.wait_for_all_acked(Duration(seconds=PATIENCE))


def number(data: bytes) -> int:
    return int.from_bytes(data[4:12], 'little', signed=True)


@pytest.mark.parametrize('names', [('a', 'b'), ('ab', 'b'), ('abc', 'bcde'), ('joint_1', 'j')])
def test_joint_states_of_rclpy_are_read_whatever_is_empty(names: tuple[str, ...]) -> None:
    """Behind empty lists it leaves room for numbers that are not there."""
    for bits in range(8):
        given = {field: [1.0, -2.0] for k, field in enumerate(('position', 'velocity', 'effort'))
                 if bits >> k & 1}
        data = bytes(serialize_message(JointState(name=names, **given)))
        found, _, values = JointStateReader()(data)
        assert found == names
        assert {key: list(value) for key, value in values.items()} == given


def test_listener_hears_all_in_order_while_the_executor_is_busy(node: Any) -> None:
    listener, heard = Listener(node), list[int]()
    listener.subscribe(Int64, 'numbers', lambda data, _: heard.append(number(data)), RELIABLE)
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    listener.start()
    publisher = node.create_publisher(Int64, 'numbers', RELIABLE)
    until(lambda: publisher.get_subscription_count() == 1)
    for k in range(5000):
        publisher.publish(serialize_message(Int64(data=k)))
        if k % 1000 == 0:
            executor.spin_once(timeout_sec=0.0)  # must not take any of them
    until(lambda: len(heard) == 5000)
    assert heard == list(range(5000))
    listener.close()


def test_the_executor_sleeps_while_messages_come(node: Any) -> None:
    """Else every message costs the wait set of the whole node."""
    listener, heard = Listener(node), list[int]()
    listener.subscribe(Int64, 'numbers', lambda data, _: heard.append(number(data)), RELIABLE)
    listener.start()
    publisher = node.create_publisher(Int64, 'numbers', RELIABLE)
    until(lambda: publisher.get_subscription_count() == 1)
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    used: list[float] = []

    def spin() -> None:
        executor.spin_once(timeout_sec=3.0)
        used.append(time.thread_time())

    thread = threading.Thread(target=spin)
    thread.start()
    for k in range(1000):
        publisher.publish(serialize_message(Int64(data=k)))
        time.sleep(0.002)
    thread.join()
    until(lambda: len(heard) == 1000)
    listener.close()
    assert used[0] < 0.05  # 1000 wait sets take above 0.2 s


def test_in_a_turn_all_that_came_in_before_was_taken(node: Any) -> None:
    looks = list[int]()
    listener, heard = Listener(node, 10.0, looked=lambda: looks.append(len(heard))), list[int]()
    arrivals = list[float]()

    def take(data: bytes, info: Any) -> None:
        heard.append(number(data))
        arrivals.append(listener.arrival(info))

    listener.subscribe(Int64, 'numbers', take, RELIABLE)
    publisher = node.create_publisher(Int64, 'numbers', RELIABLE)
    until(lambda: publisher.get_subscription_count() == 1)
    for begin in (0, 20):
        for k in range(begin, begin + 20):
            publisher.publish(Int64(data=k))
        come(publisher)
        time.sleep(0.2)
        since = time.monotonic()
        with listener.turn():
            assert heard == list(range(begin + 20)) and looks[-1] == begin + 20
    assert arrivals[-1] < since - 0.1, 'not when it was taken'
    assert listener.arrival({'received_timestamp': 0}) >= since, 'the rest was taken in it'


def test_no_callback_runs_while_the_lock_is_held_or_after_the_end(node: Any) -> None:
    listener, heard = Listener(node), list[int]()
    listener.subscribe(Int64, 'numbers', lambda data, _: heard.append(number(data)), RELIABLE)
    listener.start()
    publisher = node.create_publisher(Int64, 'numbers', RELIABLE)
    until(lambda: publisher.get_subscription_count() == 1)
    with listener.lock:
        publisher.publish(Int64(data=1))
        come(publisher)
        time.sleep(0.1)
        assert heard == []
        until(listener.take)  # whoever holds the lock may take
        assert heard == [1]
    listener.close()
    publisher.publish(Int64(data=2))
    time.sleep(0.2)
    assert heard == [1]


def test_with_a_period_messages_wait_and_keep_the_time_at_which_they_came_in(node: Any) -> None:
    heard = list[tuple[int, float]]()
    listener = Listener(node, 10.0 * PATIENCE)
    listener.subscribe(Int64, 'numbers', lambda data, info: heard.append(
        (number(data), listener.arrival(info))), RELIABLE)
    publisher = node.create_publisher(Int64, 'numbers', RELIABLE)
    until(lambda: publisher.get_subscription_count() == 1)
    listener.start()
    sent = []
    for k in range(2):
        begun = time.monotonic()
        publisher.publish(Int64(data=k))
        come(publisher)
        sent.append((begun, time.monotonic()))
        time.sleep(0.2)
    assert heard == []
    listener.period = 0.0  # at once
    until(lambda: len(heard) == 2)
    for k, ((value, arrival), (begun, there)) in enumerate(zip(heard, sent, strict=True)):
        assert value == k
        assert begun <= arrival < there + 0.1, 'not when it was taken'
    listener.close()


def test_a_stamp_of_another_clock_is_bounded_by_the_looks(node: Any) -> None:
    listener = Listener(node)
    begun = time.monotonic()
    for stamp in (0, 2**62):
        assert begun - 1.0 < listener.arrival({'received_timestamp': stamp}) <= time.monotonic()


def test_after_all_messages_are_taken_there_is_a_look_however_silent_the_topic(node: Any) -> None:
    order = list[str]()
    listener = Listener(node, 0.0, 0.02, lambda: order.append('look'))
    listener.subscribe(Int64, 'numbers', lambda *_: order.append('message'), RELIABLE)
    publisher = node.create_publisher(Int64, 'numbers', RELIABLE)
    until(lambda: publisher.get_subscription_count() == 1)
    for k in range(3):
        publisher.publish(Int64(data=k))
    listener.start()
    until(lambda: order.count('look') > 20)
    assert order[:4] == ['message'] * 3 + ['look']
    assert set(order[4:]) == {'look'}
    listener.close()


@pytest.mark.parametrize(('error', 'level', 'words'), [
    (ValueError, '[ERROR]', 'unexpected ValueError: one'), (DataError, '[WARN]', 'one')])
def test_an_error_in_a_callback_is_survived(
    error: type[Exception], level: str, words: str, node: Any,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """That of a message that cannot be used is no fault of the program."""
    listener, heard = Listener(node), list[int]()

    def callback(data: bytes, _: Any) -> None:
        if number(data) == 1:
            raise error('one')
        heard.append(number(data))

    listener.subscribe(Int64, 'numbers', callback, RELIABLE)
    listener.start()
    publisher = node.create_publisher(Int64, 'numbers', RELIABLE)
    until(lambda: publisher.get_subscription_count() == 1)
    for k in range(3):
        publisher.publish(Int64(data=k))
    until(lambda: len(heard) == 2)
    assert heard == [0, 2]
    listener.close()
    logged = capfd.readouterr().err
    assert logged.startswith(level) and logged.endswith(f'[listening]: {words}\n'), logged


SCRIPT = """
import time
import rclpy
from rclpy.qos import QoSProfile
from std_msgs.msg import Int64
from robot_dynid.ros.common import listener as module
module.CHECK_PERIOD = 0.1
rclpy.init()
node = rclpy.create_node('listening')
listener = module.Listener(node)
inlet = listener.subscribe(Int64, 'numbers', print, QoSProfile(depth=10), adaptive=True)
listener.subscribe(Int64, 'nobody', print, QoSProfile(depth=10), adaptive=True)
listener.start()
publisher = node.create_publisher(Int64, 'numbers', QoSProfile(depth=10, reliability=2))
while not inlet.best_effort:  # until it is told
    time.sleep(0.05)
time.sleep(0.3)
{end}
"""


@pytest.mark.usefixtures('ros_domain')
@pytest.mark.parametrize(('end', 'code'), [
    ('rclpy.shutdown()', 0), ('raise ValueError', 1), ('', 0),
    ('node.destroy_node()\ntime.sleep(0.3)\nrclpy.shutdown()', 0)])
def test_best_effort_is_told_once_and_every_end_of_the_process_ends_it(
    end: str, code: int
) -> None:
    done = subprocess.run([sys.executable, '-c', SCRIPT.format(end=end)], timeout=PATIENCE,
                          capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert done.stderr.count('/numbers is published as best effort') == 1
    assert ('Traceback' in done.stderr) == bool(code)


BEST_EFFORT = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)


@pytest.mark.parametrize(('first', 'later'), [
    (RELIABLE, None), (BEST_EFFORT, None), (None, BEST_EFFORT), (RELIABLE, BEST_EFFORT),
    (BEST_EFFORT, RELIABLE)])
def test_an_adaptive_subscription_hears_what_is_offered(
    node: Any, first: QoSProfile | None, later: QoSProfile | None
) -> None:
    """Publishers that were there, and those that come when it has subscribed."""
    heard = list[int]()
    publishers = [] if first is None else [node.create_publisher(Int64, 'numbers', first)]
    listener = Listener(node)
    inlet = listener.subscribe(Int64, 'numbers', lambda data, _: heard.append(
        message_of(data, Int64).data), QoSProfile(depth=1000), adaptive=True)
    listener.start()
    if later is not None:
        if publishers:
            until(lambda: inlet.best_effort == (first is BEST_EFFORT))
        publishers.append(node.create_publisher(Int64, 'numbers', later))
    until(lambda: inlet.best_effort == (BEST_EFFORT in (first, later)))
    for k, publisher in enumerate(publishers):
        until(lambda publisher=publisher: publisher.get_subscription_count() == 1)
        end = time.monotonic() + PATIENCE
        while k not in heard and time.monotonic() < end:
            publisher.publish(Int64(data=k))
            time.sleep(0.02)
    assert set(heard) == set(range(len(publishers)))
    for publisher in publishers[:]:
        if publisher.qos_profile.reliability == ReliabilityPolicy.BEST_EFFORT and later:
            node.destroy_publisher(publisher)
            publishers.remove(publisher)
    if publishers:  # those that are left are as reliable as they say
        until(lambda: inlet.best_effort == (later is None and first is BEST_EFFORT))
    listener.close()


def test_message_of_refuses_data_of_another_type() -> None:
    """Nodes leave it out with a warning: it is no fault of theirs."""
    data = serialize_message(JointState(name=['a'], position=[1.0]))
    assert message_of(bytes(data), JointState).position[0] == 1.0
    with pytest.raises(UnreadableMessage, match='type JointState cannot be read and is left out'):
        message_of(bytes(data)[:9], JointState)
