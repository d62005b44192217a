"""Recording of an execution: commands and answers in one bag."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from control_msgs.msg import JointTrajectoryControllerState
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.errors import DataError
from robot_dynid.io.cdr import trajectory_size
from robot_dynid.ros.common.message_store import TopicStore
from robot_dynid.ros.identifier.recording import TOPICS, BagSession, described

SENT = '~/sent'
DEPTH = 10000
# Room asked for on the disk: 7 joints at 1 kHz, joint states and controller state, and as much
# again. With less the recording would still go on, in memory.
BYTES_PER_SECOND = 4_000_000


def serialized(message: JointTrajectory) -> bytes:
    """Return the message in CDR, nothing behind it.

    Here rclpy reserves more bytes than it writes, and strict readers refuse the rest.
    """
    size = trajectory_size(
        [message.header.frame_id, *message.joint_names],
        ([len(p.positions), len(p.velocities), len(p.accelerations), len(p.effort)]
         for p in message.points))
    return bytes(serialize_message(message)[:size])


class ExcitationBag(BagSession):
    """Records joint states, motor states, efforts, the controller's state, and what is sent.

    Trajectories sent are published on ~/sent, too: their stamp is when they were sent, their
    frame_id names the segment.
    """

    def __init__(self, node: Node, where: tuple[Path, str], controller: str) -> None:
        topics = dict.fromkeys(TOPICS, JointState)
        state = {f'{controller}/controller_state': JointTrajectoryControllerState}
        super().__init__(node, *where, {**topics, **state}, DEPTH)
        self._node = node
        self._sent_topic = node.resolve_topic_name(SENT)
        self._publisher = node.create_publisher(JointTrajectory, SENT, QoSProfile(
            depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL))
        self._sent: TopicStore | None = None

    def begin(self, seconds: float) -> Path:
        """Start recording a motion of so many seconds; return the folder of the bag.

        Raises DynIdError when it cannot be written, or when the disk has no room for it.
        """
        path = self.start()
        assert self.recorder is not None
        needed, free = BYTES_PER_SECOND * seconds, shutil.disk_usage(path).free
        if free < needed:
            self.finish()
            raise DataError(f'{path}: the disk has {free / 1e6:.0f} MB left, a recording of '
                            f'{seconds:.0f} s may take {needed / 1e6:.0f} MB; make room, or give '
                            'another recording_directory')
        self._sent = self.recorder.add_topic(self._sent_topic, *described(JointTrajectory))
        return path

    def put(self, segment: str, message: JointTrajectory) -> None:
        """Record and publish a trajectory that is sent now."""
        copy = JointTrajectory(joint_names=message.joint_names, points=message.points)
        copy.header.stamp = self._node.get_clock().now().to_msg()
        copy.header.frame_id = segment
        data = serialized(copy)
        if self._sent is not None and self.running:
            self._sent.append(data, time.time_ns())
        self._publisher.publish(data)

    @property
    def receives_states(self) -> bool:
        """Whether joint states have come in since the recording began."""
        return self.count(TOPICS[0]) > 0

    def finish(self) -> tuple[bool, str]:
        """End the recording, if it runs; return whether it is whole, and where it is."""
        if not self.running:
            return True, 'nothing was recorded'
        self._sent = None
        whole, text = self.stop()
        return whole, f'recorded in {self.path}' if whole else text
