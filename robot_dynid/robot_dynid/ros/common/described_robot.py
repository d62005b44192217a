"""Robots of nodes: from files, which are read again for every goal, or a URDF on a topic."""

from __future__ import annotations

import atexit
import time
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, partial
from itertools import chain
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from std_msgs.msg import String

from robot_dynid.errors import RobotError
from robot_dynid.files import atomic_write
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.common import process
from robot_dynid.ros.common.rclpy_compat import (
    NO_EVENTS,
    OutsideExecutor,
    SubscriptionWait,
    take,
)
from robot_dynid.settings import setting

#: last part of a parameter robot that names the topic with the URDF
TOPIC = 'robot_description'
WAITING_REPORT = 10.0  # s between log lines while the topic is silent
#: fields of a robot on which subscriptions, recordings and guards depend
CONNECTIONS = ('joints', 'types', 'wrenches', 'drive.elastic', 'drive.torque_sensors')
END_LOOK_NS = 100_000_000  # ns between checks for the end of the node


@dataclass(frozen=True)
class RobotParameters:
    """Parameters that say which robot a node is for."""

    robot: str = setting(
        '', text='name of a robot, robot YAML, URDF or xacro file, or topic robot_description')
    robot_description: str = setting(
        '', text='URDF text, in place of that on the topic robot_description; empty: the topic')


class RobotFiles:
    """The files that describe the robot of a node, which may change while the node runs.

    ``robot`` is the robot at the last reading. A topic is read once, at the start.
    """

    def __init__(self, node: Node, parameters: RobotParameters) -> None:
        """Read the robot that the parameters of ``node`` name; raises DynIdError.

        If its URDF is on a topic, the node waits for it.
        """
        urdf = cache(partial(_urdf_file, node, parameters.robot_description))
        self._name = parameters.robot or TOPIC
        on_topic = self._name.rpartition('/')[2] == TOPIC
        self._read = (lambda: load_robot(urdf(self._name))) if on_topic else \
            partial(load_robot, self._name, urdf)
        self.robot = self._read()

    def read_again(self) -> RobotModel:
        """Return the robot as its files describe it now.

        Raises DynIdError if they cannot be read, or if a field changed on which the connections of
        the node depend.
        """
        robot = self._read()
        changed = [name for name in differences(self.robot, robot)
                   if name.startswith(CONNECTIONS)]
        if changed:
            raise RobotError(f'the robot {self._name} has changed since the node started '
                             f"({', '.join(changed)}): restart the node")
        self.robot = robot
        return robot


def differences(before: Any, after: Any, name: str = '') -> tuple[str, ...]:
    """Return the names of the fields, also nested ones, that differ between two dataclasses."""
    if is_dataclass(before) and type(before) is type(after):
        parts = [(getattr(before, entry.name), getattr(after, entry.name),
                  f'{name}.{entry.name}' if name else entry.name) for entry in fields(before)]
    elif isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        parts = [(one, other, name) for one, other in zip(before, after)]
    elif isinstance(before, np.ndarray) and isinstance(after, np.ndarray):
        return () if np.array_equal(before, after, equal_nan=True) else (name,)
    else:
        return () if type(before) is type(after) and before == after else (name,)
    return tuple(dict.fromkeys(chain.from_iterable(differences(*part) for part in parts)))


def _urdf_file(node: Node, given: str, topic: str) -> Path:
    """Return a file with the URDF, which exists as long as this process."""
    text = given or urdf_on_topic(node, topic)
    folder = mkdtemp(prefix=f'{TOPIC}_')
    atexit.register(partial(rmtree, folder, ignore_errors=True))
    path = Path(folder) / f'{TOPIC}.urdf'
    atomic_write(path, text.encode())
    return path


def urdf_on_topic(node: Node, topic: str) -> str:
    """Return the latched text of a topic; wait for it, with a log line every WAITING_REPORT.

    Raises what `process.refuse_if_asked` raises if the node is told to end while it waits.
    """
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    subscription = node.create_subscription(
        String, topic, print, latched, raw=True, callback_group=OutsideExecutor(),
        event_callbacks=NO_EVENTS)
    name = subscription.topic_name
    node.get_logger().info(f'waiting for the URDF on {name}')
    start = report = time.monotonic()
    try:
        with subscription.handle:
            wait = SubscriptionWait([subscription.handle], node.context)
            while node.context.ok():
                process.refuse_if_asked()
                wait(END_LOOK_NS)
                if (message := take(subscription, String)) is not None:
                    return str(deserialize_message(message[0], String).data)
                if time.monotonic() - report >= WAITING_REPORT:
                    report = time.monotonic()
                    node.get_logger().warning(
                        f'no URDF on {name} for {report - start:.0f} s: start '
                        'robot_state_publisher, remap the topic, or give the parameter '
                        'robot_description or a file')
    finally:
        with suppress(Exception):
            node.destroy_subscription(subscription)
    raise RobotError(f'no URDF came on {name} before the node was shut down')
