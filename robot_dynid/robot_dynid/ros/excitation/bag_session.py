"""Recording of an execution: commands and responses in one bag."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from control_msgs.msg import JointTrajectoryControllerState
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.errors import DataError
from robot_dynid.io.cdr import trajectory_size
from robot_dynid.ros.recording.recorder import TopicStore
from robot_dynid.ros.recording.session import TOPICS, BagSession, described
from robot_dynid.types import FIT

SENT = '~/sent'
BAG_DEPTH = 10000
BAG_LOOK = 0.05  # s between checks for topics to record
# Space required on the disk: 7 joints at 1 kHz, joint states and controller state, and as much
# again. With less the recording would still go on, in memory.
BYTES_PER_SECOND = 4_000_000


def serialized(message: JointTrajectory) -> bytes:
    """Return the message in CDR, without trailing bytes.

    rclpy reserves more bytes than it writes, and strict readers refuse the rest.
    """
    size = trajectory_size(
        [message.header.frame_id, *message.joint_names],
        ([len(p.positions), len(p.velocities), len(p.accelerations), len(p.effort)]
         for p in message.points))
    return bytes(serialize_message(message)[:size])


class ExcitationBag(BagSession):
    """Records joint states, motor states, efforts, wrenches, controller state and commands.

    Trajectories sent are also published on ~/sent: their stamp is the time of sending, their
    frame_id the name of the segment.
    """

    def __init__(self, node: Node, where: tuple[Path, str], controller: str,
                 wrenches: Iterable[str] = ()) -> None:
        topics = dict.fromkeys(TOPICS, JointState) | dict.fromkeys(wrenches, WrenchStamped)
        state = {f'{controller}/controller_state': JointTrajectoryControllerState}
        super().__init__(node, *where, {**topics, **state}, BAG_DEPTH, BAG_LOOK)
        self._node = node
        self._sent_topic = node.resolve_topic_name(SENT)
        self._publisher = node.create_publisher(JointTrajectory, SENT, QoSProfile(
            depth=10, durability=DurabilityPolicy.TRANSIENT_LOCAL))
        self._sent: TopicStore | None = None
        self._commanded = False

    def begin(self, seconds: float, purpose: str = FIT, fitted: Path | None = None) -> Path:
        """Start recording a motion of so many seconds; return the folder of the bag.

        ``purpose`` and ``fitted`` are those of `start`. Raises DynIdError if it cannot be written,
        or if the disk is too full.
        """
        path, self._commanded = self.start(purpose, fitted), False
        assert self.recorder is not None
        needed, free = BYTES_PER_SECOND * seconds, shutil.disk_usage(path).free
        if free < needed:
            self.finish()
            raise DataError(f'{path.parent}: the disk has {free / 1e6:.0f} MB left, a recording '
                            f'of {seconds:.0f} s may take {needed / 1e6:.0f} MB: free space, or '
                            'give another recording_directory')
        self._sent = self.recorder.add_topic(self._sent_topic, *described(JointTrajectory))
        return path

    def put(self, segment: str, message: JointTrajectory) -> None:
        """Record and publish a trajectory that is being sent."""
        self._commanded = True
        copy = JointTrajectory(joint_names=message.joint_names, points=message.points)
        copy.header.stamp = self._node.get_clock().now().to_msg()
        copy.header.frame_id = segment
        data = serialized(copy)
        if self._sent is not None and self.running:
            self._sent.append(data, self.now())
        self._publisher.publish(data)

    @property
    def receives_states(self) -> bool:
        """Whether joint states were received since the recording began."""
        return self.count(TOPICS[0]) > 0

    @property
    def losses(self) -> tuple[str, ...]:
        """Sentences about messages missing from the last recording."""
        return () if self.recorder is None else self.recorder.losses

    def finish(self) -> tuple[bool, str]:
        """End the recording, if it runs; return whether it is complete, and its path.

        A recording without commands is removed: the text is empty then.
        """
        if not self.running:
            return True, ''
        self._sent = None
        if not self._commanded:
            self.discard()
            return True, ''
        whole, text = self.stop()
        return whole, f'recorded in {self.path}' if whole else text
