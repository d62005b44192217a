"""Statuses of a node: on /diagnostics, which the nodes of all robots share, or one of its own."""

from __future__ import annotations

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile


class Diagnostics:
    """Publishes the statuses of ``node``, whose hardware is ``robot`` (empty: not known)."""

    def __init__(self, node: Node, robot: str = '', topic: str = '/diagnostics',
                 quality: QoSProfile | int = 10) -> None:
        self._node, self._robot = node, robot
        self._publisher = node.create_publisher(DiagnosticArray, topic, quality)

    def publish(self, *statuses: DiagnosticStatus) -> None:
        """Publish statuses, each named ``/namespace/node: `` and what it was named.

        A status of other hardware keeps it.
        """
        for status in statuses:
            status.name = f'{self._node.get_fully_qualified_name()}: {status.name}'
            status.hardware_id = status.hardware_id or self._robot
        message = DiagnosticArray(status=list(statuses))
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    @property
    def heard(self) -> bool:
        """Whether somebody listens."""
        return bool(self._publisher.get_subscription_count())

    def arrived(self, longest: float) -> bool:
        """Wait, ``longest`` s at most, and return whether all who listen have what was sent."""
        return bool(self._publisher.wait_for_all_acked(Duration(seconds=longest)))
