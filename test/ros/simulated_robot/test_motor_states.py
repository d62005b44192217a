"""The simulated robot with harmonic drives over DDS: motors have a topic of their own."""

from __future__ import annotations

import time

import numpy as np
import pytest

pytest.importorskip('rclpy')

import rclpy
from nodes import NodeProcess, running
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState

pytestmark = pytest.mark.ros
PATIENCE = 60.0  # s: a loaded machine is slow, a broken one never gets there


@pytest.mark.usefixtures('ros_domain')
def test_motor_states_stand_beside_joint_states() -> None:
    context = rclpy.Context()
    rclpy.init(context=context)
    node = rclpy.create_node('listener', context=context)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    seen: dict[str, list[JointState]] = {'joint_states': [], 'motor_states': []}
    durable = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    for topic, kept in seen.items():
        node.create_subscription(JointState, topic, kept.append, durable)
    start = [0.0, 0.7, 0.0, -0.8, 0.0, 0.5, 0.0]
    parameters = {'simulation': 'seven_axis_drives', 'start_position': str(start)}
    try:
        with running('simulated_robot', parameters):
            end = time.monotonic() + PATIENCE
            while min(map(len, seen.values())) < 50:
                assert time.monotonic() < end, {k: len(v) for k, v in seen.items()}
                executor.spin_once(timeout_sec=0.1)
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.shutdown(context=context)
    joints = {(m.header.stamp.sec, m.header.stamp.nanosec): m for m in seen['joint_states']}
    pairs = [(joints[key], m) for m in seen['motor_states']
             if (key := (m.header.stamp.sec, m.header.stamp.nanosec)) in joints]
    assert len(pairs) > 20
    for link, motor in pairs:
        assert list(link.name) == list(motor.name)
        assert not motor.effort
        order = [f'joint_{i + 1}' for i in range(7)]
        at = np.array(motor.position)[[motor.name.index(j) for j in order]]
        assert np.abs(at - start).max() < 2e-3
    sag = np.mean([np.subtract(m.position, s.position) for s, m in pairs], axis=0)
    assert 1e-4 < np.abs(sag).max() < 1e-2


@pytest.mark.usefixtures('ros_domain')
def test_unknown_settings_end_the_node_with_a_message() -> None:
    node = NodeProcess('simulated_robot', {'simulation': 'no_such_arm'})
    assert node.process.wait(PATIENCE) == 2
    assert 'no_such_arm' in node.output
    assert 'Traceback' not in node.output
