"""The emergency stop is heard whatever its publisher promises, and nobody is warned of that."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip('rclpy')

from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import Bool

from robot_dynid.execution.alarms import Alarms
from robot_dynid.execution.guards import GuardSettings
from robot_dynid.ros.excitation.alarm_topics import AlarmTopics

pytestmark = pytest.mark.ros
PATIENCE = 60.0  # s: a loaded machine is slow, a broken one never gets there
PUBLISHERS = {
    'latched': QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL),
    'reliable': QoSProfile(depth=10),  # as `ros2 topic pub`
    'best effort': QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT),
}


@pytest.mark.parametrize('kind', PUBLISHERS)
def test_every_publisher_is_heard_without_a_warning(
    node: Any, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    alarms, news = Alarms(('joint_1',), GuardSettings()), list[bool]()
    topics = AlarmTopics(
        node, alarms, lambda: news.append(True), MutuallyExclusiveCallbackGroup())
    executor = SingleThreadedExecutor(context=node.context)
    executor.add_node(node)
    publisher = node.create_publisher(Bool, 'emergency_stop', PUBLISHERS[kind])
    end = time.monotonic() + PATIENCE
    while not alarms.pressed:
        assert time.monotonic() < end, 'not heard'
        publisher.publish(Bool(data=True))
        executor.spin_once(timeout_sec=0.1)
    topics.check_publisher()
    assert alarms.present
    assert news
    for _ in range(5):  # events of the middleware come with the executor
        executor.spin_once(timeout_sec=0.05)
    assert 'New publisher discovered' not in capfd.readouterr().err  # its own side may warn
