"""Topics of the emergency stop and of the temperatures of the joints."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy, qos_profile_sensor_data
from sensor_msgs.msg import Temperature
from std_msgs.msg import Bool

from robot_dynid.execution.alarms import Alarms
from robot_dynid.ros.common.rclpy_compat import NO_EVENTS

# A subscription receives from publishers that offer at least the quality it requests: the latched
# one also earlier messages, the last one from all. So no incompatible quality is reported.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
RELIABLE = QoSProfile(depth=10)
ANY = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)


class AlarmTopics:
    """Keeps ``alarms`` up to date; calls ``on_alarm`` at every stop and temperature."""

    def __init__(self, node: Node, alarms: Alarms, on_alarm: Callable[[], None],
                 group: CallbackGroup) -> None:
        self._node, self._alarms, self._on_alarm = node, alarms, on_alarm
        self._topic = node.resolve_topic_name('emergency_stop')
        for qos in (LATCHED, RELIABLE, ANY):
            node.create_subscription(
                Bool, 'emergency_stop', self._on_stop, qos, callback_group=group,
                event_callbacks=NO_EVENTS)
        node.create_subscription(Temperature, 'temperature', self._on_temperature,
                                 qos_profile_sensor_data, callback_group=group)

    def check_publisher(self) -> None:
        """Note whether the emergency stop still has a publisher."""
        self._alarms.present = self._node.count_publishers(self._topic) > 0

    def _on_stop(self, message: Bool) -> None:
        self._alarms.pressed = bool(message.data)
        if message.data:
            self._on_alarm()

    def _on_temperature(self, message: Temperature) -> None:
        self._alarms.note_temperature(
            time.monotonic(), message.header.frame_id, message.temperature)
        self._on_alarm()
