"""Parts of messages: numbers, times, texts; statuses on /diagnostics."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message

from robot_dynid.errors import MESSAGE, DynIdError, clipped, printable
from robot_dynid.types import FloatArray

NANOSECONDS = 1_000_000_000


class UnreadableMessage(DynIdError):
    """A message does not have its type: it is cut off, or comes from another program."""


def message_of(data: bytes, kind: Any) -> Any:
    """Return a serialized message of type ``kind``; raises UnreadableMessage."""
    try:
        return deserialize_message(data, kind)
    except RuntimeError as error:
        raise UnreadableMessage(f'a message of type {kind.__name__} cannot be read and is left '
                                'out: check its publisher') from error


def sendable(text: str) -> str:
    """Return a text that every message can carry: one line of bounded length in UTF-8.

    Names of files may contain control characters, and bytes that are not text, which Python keeps
    as surrogates.
    """
    return clipped(printable(text).replace('\n', '\\n'), MESSAGE)


def doubles(values: FloatArray) -> array.array[float]:
    """Return ``values`` (...,) as the field of a message, row-major; lists would cost tenfold."""
    field = array.array('d')
    field.frombytes(np.ascontiguousarray(values, dtype=np.float64).data.cast('B'))
    return field


def seconds(duration: Any) -> float:
    """Return a Duration or Time message in s."""
    return float(duration.sec) + 1e-9 * float(duration.nanosec)


class Diagnostics:
    """Publishes the statuses of ``node``, whose hardware is ``robot`` (empty: unknown).

    By default on /diagnostics, which the nodes of all robots share.
    """

    def __init__(self, node: Node, robot: str = '', topic: str = '/diagnostics',
                 quality: QoSProfile | int = 10) -> None:
        self._node, self._robot = node, robot
        self._publisher = node.create_publisher(DiagnosticArray, topic, quality)

    def publish(self, *statuses: DiagnosticStatus) -> None:
        """Publish statuses, each with the prefix ``/namespace/node: `` in its name.

        A status of other hardware keeps its hardware.
        """
        for status in statuses:
            status.name = f'{self._node.get_fully_qualified_name()}: {status.name}'
            status.hardware_id = status.hardware_id or self._robot
        message = DiagnosticArray(status=list(statuses))
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)

    @property
    def heard(self) -> bool:
        """Whether the topic has a subscriber."""
        return bool(self._publisher.get_subscription_count())

    def arrived(self, longest: float) -> bool:
        """Wait at most ``longest`` s; return whether all subscribers received what was sent."""
        return bool(self._publisher.wait_for_all_acked(Duration(seconds=longest)))
