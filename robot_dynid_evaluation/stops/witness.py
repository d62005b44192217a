"""A process that listens to a motion and judges nothing: what came, and when, by the middleware.

It takes the simulated robot's true states, which go on whatever happens to its joint states, or
those of a real robot, the controller's state, and what the excitation node says it sent.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from control_msgs.msg import JointTrajectoryControllerState
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from robot_dynid.ros.common.helper_node import helper_node
from robot_dynid.ros.common.listener import Listener
from robot_dynid_evaluation.stops.account import Record, Track
from robot_dynid_evaluation.stops.cell import Bystander

DEPTH = QoSProfile(depth=5000)
LEAVING = 5.0  # s for it to end by itself
KINDS: dict[str, Any] = {'arm': JointState, 'reference': JointTrajectoryControllerState,
                         'sent': JointTrajectory}
Kept = dict[str, list[tuple[float, bytes]]]  # by name of KINDS: time of reception s, message


@dataclass(frozen=True)
class Topics:
    """Names of the topics of one robot and its excitation node."""

    arm: str
    reference: str
    sent: str


class Witness(Bystander):
    """The handle of the process; ``joints`` in the order of the arrays it returns."""

    def __init__(self, topics: Topics, joints: Sequence[str]) -> None:
        super().__init__(_listen, topics, tuple(joints))
        self.ask('ready')

    def begin(self) -> None:
        """Forget what was received."""
        self.ask('begin')

    def latest(self) -> tuple[float, float]:
        """Return the largest speed [rad/s] in the arm's last message, and its age [s].

        Infinite age when there was none.
        """
        speed, received = self.ask('latest')
        return speed, time.time() - received

    def record(self) -> Record:
        """Return the messages received since ``begin``."""
        record: Record = self.ask('record')
        return record

    def close(self) -> None:
        """End the process."""
        self.tell('end')
        self._process.join(LEAVING)
        if self.alive:
            self.kill()


def _listen(pipe: Connection, topics: Topics, joints: tuple[str, ...]) -> None:
    """Run the process: keep what comes, answer until the pipe is closed or asked to end."""
    with helper_node('witness') as (node, _):
        listener = Listener(node)
        kept: Kept = {name: [] for name in KINDS}
        for name, kind in KINDS.items():
            listener.subscribe(kind, getattr(topics, name), _keeper(kept[name]), DEPTH)
        listener.start()
        try:
            with suppress(EOFError, KeyboardInterrupt):
                while (question := pipe.recv()) != 'end':
                    pipe.send(_answer(question, kept, listener, joints))
        finally:
            listener.close()


def _keeper(messages: list[tuple[float, bytes]]) -> Callable[[bytes, Mapping[str, Any]], None]:
    def keep(data: bytes, info: Mapping[str, Any]) -> None:
        messages.append((1e-9 * info['received_timestamp'], data))

    return keep


def _answer(question: str, kept: Kept, listener: Listener, joints: tuple[str, ...]) -> Any:
    if question == 'begin':
        with listener.lock:
            for messages in kept.values():
                messages.clear()
    if question == 'latest':
        with listener.lock:
            last = kept['arm'][-1] if kept['arm'] else None
        if last is None:
            return 0.0, -np.inf
        velocity = deserialize_message(last[1], JointState).velocity
        return float(np.abs(velocity).max(initial=0.0)), last[0]
    if question == 'record':
        with listener.lock:
            copies = {name: tuple(messages) for name, messages in kept.items()}
        found = {name: [(at, deserialize_message(data, KINDS[name])) for at, data in messages]
                 for name, messages in copies.items()}
        return Record(
            track([(at, m.header.stamp, m.name, m) for at, m in found['arm']], joints,
                  ('position', 'velocity')),
            track([(at, m.header.stamp, m.joint_names, m.reference)
                   for at, m in found['reference']], joints, ('positions', 'velocities')),
            tuple((at, str(m.header.frame_id)) for at, m in found['sent']))
    return None


def track(rows: Sequence[tuple[float, Any, Sequence[str], Any]], joints: tuple[str, ...],
          fields: tuple[str, str]) -> Track:
    """Return messages (time of reception, stamp, names, values) as arrays in order of ``joints``.

    ``fields`` are the names of positions and velocities in the values; NaN where there are none.
    """
    received, stamp = np.empty(len(rows)), np.empty(len(rows))
    values = np.full((2, len(rows), len(joints)), np.nan)
    for i, (at, header, names, message) in enumerate(rows):
        received[i], stamp[i] = at, header.sec + 1e-9 * header.nanosec
        columns = [list(names).index(joint) for joint in joints]
        for k, field in enumerate(fields):
            numbers = getattr(message, field)
            if len(numbers) == len(names):
                values[k, i] = np.asarray(numbers)[columns]
    return Track(received, stamp, values[0], values[1])
