"""Topics of the emergency stop and of the temperatures of the joints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import Temperature
from std_msgs.msg import Bool

from robot_dynid.execution.guards import Alarms
from robot_dynid.ros.common.listener import Listener, message_of

#: receives from every publisher, and none is told that its quality is not enough
ANY = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
#: receives what was published before, from publishers that keep it; others would be told
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)


class AlarmTopics:
    """Keeps ``alarms`` up to date; calls ``on_alarm`` at every stop and temperature.

    Messages come through ``listener``, so both happen under its lock.
    """

    def __init__(self, node: Node, alarms: Alarms, on_alarm: Callable[[], None],
                 listener: Listener) -> None:
        self._node, self._alarms, self._on_alarm = node, alarms, on_alarm
        self._listener, self._latched = listener, False
        self._topic = node.resolve_topic_name('emergency_stop')
        listener.subscribe(Bool, 'emergency_stop', self._on_stop, ANY)
        listener.subscribe(Temperature, 'temperature', self._on_temperature, ANY)

    def check_publishers(self) -> None:
        """Note whether the emergency stop has a publisher, and listen for what one has kept."""
        offered = [info.qos_profile
                   for info in self._node.get_publishers_info_by_topic(self._topic)]
        self._alarms.present = bool(offered)
        if not self._latched and any(keeps(qos) for qos in offered):
            self._latched = True
            self._listener.subscribe(Bool, 'emergency_stop', self._on_stop, LATCHED)

    def _on_stop(self, data: bytes, info: Mapping[str, Any]) -> None:
        pressed = bool(message_of(data, Bool).data)
        self._alarms.note_emergency_stop(self._listener.arrival(info), pressed)
        if pressed:
            self._on_alarm()

    def _on_temperature(self, data: bytes, info: Mapping[str, Any]) -> None:
        message = message_of(data, Temperature)
        self._alarms.note_temperature(
            self._listener.arrival(info), message.header.frame_id, message.temperature)
        self._on_alarm()


def keeps(qos: QoSProfile) -> bool:
    """Return whether a publisher hands late subscribers what it published before."""
    return bool(qos.durability == DurabilityPolicy.TRANSIENT_LOCAL
                and qos.reliability == ReliabilityPolicy.RELIABLE)
