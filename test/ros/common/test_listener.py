"""The thread that takes messages: order, stopping, what it cannot hear."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

pytest.importorskip('rclpy')

from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Int64

from robot_dynid.io.cdr import FIELDS, JointStateReader
from robot_dynid.ros.common.listener import Listener

pytestmark = pytest.mark.ros
RELIABLE = QoSProfile(depth=10000, reliability=ReliabilityPolicy.RELIABLE)
PATIENCE = 60.0


def until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.01)


def number(data: bytes) -> int:
    return int.from_bytes(data[4:12], 'little', signed=True)


@pytest.mark.parametrize('names', [('a', 'b'), ('ab', 'b'), ('abc', 'bcde'), ('joint_1', 'j')])
def test_joint_states_of_rclpy_are_read_whatever_is_empty(names: tuple[str, ...]) -> None:
    """Behind empty lists it leaves room for numbers that are not there."""
    for bits in range(8):
        given = {f: [1.0, -2.0] for k, f in enumerate(FIELDS) if bits >> k & 1}
        data = bytes(serialize_message(JointState(name=names, **given)))
        found, _, values = JointStateReader()(data)
        assert found == names
        assert {key: list(value) for key, value in values.items()} == given


def test_all_are_heard_in_order_while_the_executor_does_something_else(node: Any) -> None:
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


def test_no_callback_runs_while_the_lock_is_held_or_after_the_end(node: Any) -> None:
    listener, heard = Listener(node), list[int]()
    listener.subscribe(Int64, 'numbers', lambda data, _: heard.append(number(data)), RELIABLE)
    listener.start()
    publisher = node.create_publisher(Int64, 'numbers', RELIABLE)
    until(lambda: publisher.get_subscription_count() == 1)
    with listener.lock:
        publisher.publish(Int64(data=1))
        time.sleep(0.3)
        assert heard == []
        until(listener.take)  # whoever holds the lock may take
        assert heard == [1]
    listener.close()
    publisher.publish(Int64(data=2))
    time.sleep(0.2)
    assert heard == [1]


def test_an_error_in_a_callback_is_survived(node: Any) -> None:
    listener, heard = Listener(node), list[int]()

    def callback(data: bytes, _: Any) -> None:
        if number(data) == 1:
            raise ValueError('one')
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


SCRIPT = """
import time
import rclpy
from rclpy.qos import QoSProfile
from std_msgs.msg import Int64
from robot_dynid.ros.common.listener import Listener
rclpy.init()
node = rclpy.create_node('listening')
listener = Listener(node)
listener.subscribe(Int64, 'numbers', print, QoSProfile(depth=10))
listener.subscribe(Int64, 'nobody', print, QoSProfile(depth=10))
listener.start()
publisher = node.create_publisher(Int64, 'numbers', QoSProfile(depth=10, reliability=2))
time.sleep(2.5)
{end}
"""


@pytest.mark.usefixtures('ros_domain')
@pytest.mark.parametrize(('end', 'code'), [
    ('rclpy.shutdown()', 0), ('raise ValueError', 1), ('', 0),
    ('node.destroy_node()\ntime.sleep(1.5)\nrclpy.shutdown()', 0)])
def test_best_effort_is_told_once_and_every_end_of_the_process_ends_it(
    end: str, code: int
) -> None:
    done = subprocess.run([sys.executable, '-c', SCRIPT.format(end=end)], timeout=PATIENCE,
                          capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert done.stderr.count('/numbers is published as best effort') == 1
    assert ('Traceback' in done.stderr) == bool(code)
