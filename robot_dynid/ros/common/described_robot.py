"""Robots whose URDF comes from ROS: the topic that robot_state_publisher fills, or a parameter."""

from __future__ import annotations

import atexit
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from robot_dynid.errors import RobotError
from robot_dynid.files import atomic_write
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.common import interrupts
from robot_dynid.ros.common.params import parameter
from robot_dynid.ros.common.rclpy_compat import (
    NO_EVENTS,
    OutsideExecutor,
    SubscriptionWait,
    take,
)

#: a parameter robot whose last part this is names the topic with the URDF
TOPIC = 'robot_description'
PATIENCE = 10.0  # s to wait for the topic
LOOK = 100_000_000  # ns between looks at whether the node shall end


@dataclass(frozen=True)
class RobotParameters:
    """Parameters that say which robot a node is for."""

    robot: str = parameter(
        '', 'name of a robot, robot YAML, URDF or xacro file, or topic robot_description')
    robot_description: str = parameter(
        '', 'URDF text, in place of that on the topic robot_description; empty: the topic')


def described_robot(node: Node, parameters: RobotParameters) -> RobotModel:
    """Return the robot that the parameters of ``node`` name.

    The node waits for the topic where its URDF is on one. Raises DynIdError.
    """
    urdf = partial(_urdf_file, node, parameters.robot_description)
    robot = parameters.robot or TOPIC
    if robot.rpartition('/')[2] == TOPIC:
        return load_robot(urdf(robot))
    return load_robot(parameters.robot, urdf)


def _urdf_file(node: Node, given: str, topic: str) -> Path:
    """Return a file with the URDF, which is there as long as this process."""
    text = given or urdf_on_topic(node, topic)
    folder = mkdtemp(prefix=f'{TOPIC}_')
    atexit.register(partial(rmtree, folder, ignore_errors=True))
    path = Path(folder) / f'{TOPIC}.urdf'
    atomic_write(path, text.encode())
    return path


def urdf_on_topic(node: Node, topic: str, patience: float = PATIENCE) -> str:
    """Return the latched text of a topic; raises RobotError when none comes in ``patience`` s."""
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    subscription = node.create_subscription(
        String, topic, print, latched, raw=True, callback_group=OutsideExecutor(),
        event_callbacks=NO_EVENTS)
    name = subscription.topic_name
    node.get_logger().info(f'waiting for the URDF on {name}')
    deadline = time.monotonic() + patience
    try:
        with subscription.handle:
            wait = SubscriptionWait([subscription.handle], node.context)
            while time.monotonic() < deadline and node.context.ok():
                interrupts.refuse_if_asked()
                wait(LOOK)
                found = take(subscription, String)
                if found is not None:
                    return str(deserialize_message(found[0], String).data)
    finally:
        with suppress(Exception):
            node.destroy_subscription(subscription)
    raise RobotError(f'no URDF came on {name} within {patience:g} s: start robot_state_publisher, '
                     'remap the topic, or give the parameter robot_description or a file')
