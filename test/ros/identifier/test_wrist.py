"""The identifier compensates a wrist sensor, and removes drift of its bias."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')
pytest.importorskip('mujoco')

from geometry_msgs.msg import WrenchStamped
from nodes import Spinner, destroy, made
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from wrist_plant import LINK, Plant, arm

from robot_dynid.dynamics.wrist import WristCompensation
from robot_dynid.errors import UsageError
from robot_dynid.ros.identifier.node import Identifier

pytestmark = pytest.mark.ros
PUSH = np.array([[3.0, -4.0, 5.0, 0.1, 0.2, -0.3]])


def test_the_wrench_of_the_surroundings_is_published(tmp_path: Path, ros_domain: int) -> None:
    sensor, q = Plant().sensor(), np.array([[0.3, -1.2, 1.4, 0.2, 0.5, -0.7]])
    sensor.save(tmp_path / 'sensor.yaml')
    bare = WristCompensation(arm(), replace(sensor, bias=np.zeros(6), rotation=np.eye(3), sign=1))
    parts = (sensor.sign * (PUSH - bare(np.zeros((1, 6)), q))).reshape(2, 3) @ sensor.rotation.T
    reading = parts.ravel() + sensor.bias + 0.5  # its bias has drifted
    heard = list[WrenchStamped]()
    with made(Identifier, robot='ur10e', wrist_sensor=tmp_path / 'sensor.yaml',
              recording_directory=tmp_path) as node:
        user = Node('user')
        states = user.create_publisher(JointState, 'joint_states', 10)
        wrenches = user.create_publisher(WrenchStamped, 'wrench', 10)
        zero = user.create_client(Trigger, 'identifier/zero_wrench')
        user.create_subscription(WrenchStamped, 'identifier/compensated_wrench', heard.append, 10)
        spinner = Spinner(node, user)

        def publish(shift: float | None = 0.0) -> bool:
            if shift is not None:
                state = JointState(name=list(arm().joints), position=(q[0] + shift).tolist())
                state.header.stamp = user.get_clock().now().to_msg()
                states.publish(state)
            message = WrenchStamped()
            message.header.frame_id = 'ft_frame'
            for part, values in zip((message.wrench.force, message.wrench.torque),
                                    np.split(reading, 2), strict=True):
                part.x, part.y, part.z = values.tolist()
            wrenches.publish(message)
            return bool(heard)

        spinner.wait(wrenches.get_subscription_count)
        alone = count()
        spinner.wait(lambda: publish(None) or next(alone) > 30)
        assert not heard  # without joint states nothing is known of the weight
        spinner.wait(publish)
        spinner.wait(zero.service_is_ready)
        assert 'readings were compensated: wait' in spinner.answer(
            zero.call_async(Trigger.Request())).message
        force = heard[-1].wrench.force
        drift = np.linalg.norm(np.array([force.x, force.y, force.z]) - PUSH[0, :3])
        assert heard[-1].header.frame_id == LINK
        assert drift == pytest.approx(0.5 * np.sqrt(3.0), abs=1e-9)
        moving = count()
        spinner.wait(lambda: publish(0.01 * (next(moving) % 2)) and len(heard) > 120)
        assert 'the arm moves: call again at rest' in spinner.answer(
            zero.call_async(Trigger.Request())).message
        heard.clear()
        spinner.wait(lambda: publish() and len(heard) > 120)
        answer = spinner.answer(zero.call_async(Trigger.Request()))
        assert answer.success and answer.message.startswith('bias changed by ')
        heard.clear()
        spinner.wait(lambda: publish() and np.abs(np.array(
            [getattr(heard[-1].wrench.force, axis) for axis in 'xyz'])).max() < 1e-9)
        destroy(user)


@pytest.mark.parametrize(('robot', 'message'), [
    ('', 'wrist_sensor needs the parameter robot'),
    ('tx40', 'parameter wrist_sensor: the wrist sensor was identified on ur10e'),
])
def test_other_robots_are_refused(tmp_path: Path, ros_domain: int, robot: str, message: str
                                  ) -> None:
    Plant().sensor().save(tmp_path / 'sensor.yaml')
    with pytest.raises(UsageError, match=message), made(
            Identifier, wrist_sensor=tmp_path / 'sensor.yaml', recording_directory=tmp_path,
            **({'robot': robot} if robot else {})):
        pass
