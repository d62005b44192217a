"""The latched ~/robot_description: the robot's URDF with the inertials of the served model."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.identified.caution import require_every_joint
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import source_text

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class RobotDescription:
    """There while the served model is feasible, without refused joints, and of a known URDF.

    The publisher goes with the model, so that no late subscriber gets the inertials of an
    earlier one.
    """

    def __init__(self, node: Node, robot: RobotModel | None) -> None:
        self._node = node
        self._publisher: Any = None
        self._said: set[str] = set()
        self._urdf = self._missing = ''
        try:
            if robot is None:
                raise UsageError('the parameter robot is empty, so its URDF is not known')
            self._urdf = source_text(robot)
        except DynIdError as error:
            self._missing = str(error)

    def describe(self, model: IdentifiedModel) -> None:
        """Publish the description of ``model``, or say once why there is none."""
        try:
            if self._missing:
                raise UsageError(self._missing)
            export = model.to_urdf(self._urdf)
            require_every_joint(model)
        except DynIdError as error:
            if self._publisher is not None:
                self._node.destroy_publisher(self._publisher)
                self._publisher = None
            self._say(f'no ~/robot_description: {error}')
            return
        if self._publisher is None:
            self._publisher = self._node.create_publisher(String, '~/robot_description', LATCHED)
        self._publisher.publish(String(data=export.text))
        for warning in export.warnings:
            self._say(f'~/robot_description: {warning}')

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._node.get_logger().info(text)
