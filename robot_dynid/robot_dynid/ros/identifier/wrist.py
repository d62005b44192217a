"""The wrist sensor: ~/compensated_wrench at every message on wrench, and ~/zero_wrench.

A controller subscribes to the topic, because a call per sample would cost it more than the sample.
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from std_srvs.srv import Trigger

from robot_dynid.dynamics.wrist import WristCompensation, WristSensor
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.robot.model import RobotModel
from robot_dynid.ros.common.messages import message_of
from robot_dynid.ros.common.services import answered
from robot_dynid.ros.identifier.monitoring import (
    LATE_STATES,
    LISTENER_DEPTH,
    LOG_PERIOD,
    OrderedStates,
)
from robot_dynid.ros.recording.session import TOPICS, WRENCH, Recording
from robot_dynid.types import FloatArray

#: readings that ~/zero_wrench averages, and the travel [rad, m] up to which the arm was at rest
ZERO_READINGS, AT_REST = 100, 2e-3


class WristService:
    """Publishes what the surroundings exert on the tool of the sensor in the file at ``path``.

    Raises UsageError for a file that is unusable, or is that of another robot.
    """

    def __init__(self, node: Node, recording: Recording, robot: RobotModel | None,
                 path: str) -> None:
        if robot is None:
            raise UsageError('parameter wrist_sensor needs the parameter robot: name the robot')
        try:
            self._compensate = WristCompensation(
                robot, WristSensor.load(Path(path).expanduser()))
        except DynIdError as error:
            raise UsageError(f'parameter wrist_sensor: {error}') from None
        self._node, self._recording, self._states = node, recording, OrderedStates(robot.joints)
        self._position, self._seen = np.full(robot.n, np.nan), 0
        self._latest: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=ZERO_READINGS)
        self._publisher = node.create_publisher(
            WrenchStamped, '~/compensated_wrench', LISTENER_DEPTH)
        node.create_service(Trigger, '~/zero_wrench', answered(self._zero, node.get_logger()))
        recording.listen(TOPICS[0], self._receive_states)
        recording.listen(WRENCH, self._receive)

    def close(self) -> None:
        """Stop listening."""
        self._recording.ignore(TOPICS[0], self._receive_states)
        self._recording.ignore(WRENCH, self._receive)

    def _receive_states(self, data: bytes, received: int, waited: int) -> None:
        position = self._states(data)[1].get('position')
        if not self._states.others and position is not None and np.isfinite(position).all():
            self._position, self._seen = position, received

    def _receive(self, data: bytes, received: int, waited: int) -> None:
        if received - self._seen > LATE_STATES:
            self._node.get_logger().warning(
                f'no joint states for {1e-9 * LATE_STATES:g} s: the wrench is not compensated',
                throttle_duration_sec=LOG_PERIOD)
            return
        message = message_of(data, WrenchStamped)
        parts = message.wrench.force, message.wrench.torque
        reading = np.array([[part.x, part.y, part.z] for part in parts]).reshape(1, -1)
        wrench = self._compensate(reading, self._position[None])[0]
        self._latest.append((self._position, wrench))
        message.header.frame_id = self._compensate.sensor.link
        for part, values in zip(parts, wrench.reshape(2, 3).tolist(), strict=True):
            part.x, part.y, part.z = values
        self._publisher.publish(message)

    def _zero(self, request: Any, response: Any) -> str:
        with self._recording.lock:
            if len(self._latest) < ZERO_READINGS:
                raise UsageError(f'only {len(self._latest)} of {ZERO_READINGS} readings were '
                                 'compensated: wait')
            position, wrench = (np.array(part) for part in zip(*self._latest, strict=True))
            if np.ptp(position, axis=0).max() > AT_REST:
                raise UsageError('the arm moves: call again at rest, with nothing touching it')
            sensor = self._compensate.sensor
            changed = sensor.with_change(wrench.mean(axis=0))
            self._compensate = replace(self._compensate, sensor=changed)
            self._latest.clear()
        return f'bias changed by {np.round(changed.bias - sensor.bias, 3).tolist()} N, N m'
