"""Live topics of a node: always watched, and recorded to disk between start and stop.

Messages are taken in a separate thread, whatever else the node does.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from typing import Any

from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from robot_dynid.errors import UsageError
from robot_dynid.io.bag import Topics
from robot_dynid.io.recording_names import ENDING, PURPOSE
from robot_dynid.ros.common.listener import Listener
from robot_dynid.ros.common.services import answered
from robot_dynid.ros.recording import channel
from robot_dynid.ros.recording.channel import Channel, TopicStatistics
from robot_dynid.ros.recording.recorder import Memory, Recorder
from robot_dynid.types import FIT, VALIDATION

TOPICS = ('joint_states', 'motor_states', 'effort', 'joint_torques')
MOTORS = TOPICS[1]
#: topic of the readings of a wrist sensor
WRENCH = 'wrench'
#: s without messages from before a stop after which it waits no more for silent publishers: under
#: load they take some tenths; and after which for none: DDS sends lost ones again within 3 s
QUIET_SECONDS, LONGEST_STOP = 0.25, 3.5
STOP_LOOK = 0.002  # s between checks for messages meanwhile


class BagSession:
    """Topics of a node, always watched, and their current or last recording.

    ``folder`` receives one bag per recording, named after ``name`` and the time; ``topics`` maps
    names to message types; those that are ``optional`` are neither reported nor recorded before
    they have a publisher. Recordings that are incomplete on the disk stay in memory until they are
    complete. Messages are taken every ``period`` s (0: at once); each has the time of its arrival.
    """

    optional: frozenset[str] = frozenset()

    def __init__(self, node: Node, folder: Path, name: str, topics: Mapping[str, Any],
                 depth: int, period: float = 0.0) -> None:
        self._node, self._folder, self._name = node, folder, folder_name(name)
        self._memory, self._ended = Memory(), list[Recorder]()
        self.recorder: Recorder | None = None
        self.running = False
        qos = QoSProfile(depth=depth, reliability=ReliabilityPolicy.RELIABLE)
        self._kinds = topics
        self._listener = Listener(node, period)
        self._channels = {topic: Channel(node.resolve_topic_name(topic), self._dated)
                          for topic in topics}
        for topic, kind in topics.items():
            one = self._channels[topic]
            one.inlet = self._listener.subscribe(kind, topic, one.receive, qos, adaptive=True)
        self._listener.start()

    def now(self) -> int:
        """Return the time of the node [ns]: that of /clock where use_sim_time is true."""
        return int(self.clock.now().nanoseconds)

    def _dated(self, received: int) -> int:
        """Return the time of the node [ns] of a message received at a system time."""
        return self.now() if self.clock.ros_time_is_active else received

    @property
    def lock(self) -> Lock:
        """Lock under which messages are taken."""
        return self._listener.lock

    @property
    def clock(self) -> Any:
        """Clock of the node."""
        return self._node.get_clock()

    @property
    def path(self) -> Path:
        """Folder of the bag that is being written or was written last."""
        assert self.recorder is not None
        return self.recorder.path

    def start(self, purpose: str = FIT, fitted: Path | None = None) -> Path:
        """Begin a new recording and return its folder; raises DynIdError if that fails.

        One with the ``purpose`` VALIDATION is named after that of the motion ``fitted`` before, if
        there is one.
        """
        if self.running:
            raise UsageError(f'already recording to {self.path}; stop that recording first')
        if not self.now():
            raise UsageError('use_sim_time is true, and nothing has come on /clock yet: start the '
                             'simulation, or set use_sim_time to false')
        name = fitted or self._folder / f'{self._name}_{datetime.now():%Y-%m-%d_%H-%M-%S}'
        recorder = self._new_recorder(name, ENDING if purpose == VALIDATION else '')
        recorder.note(PURPOSE, purpose)
        opened = {topic: partial(recorder.add_topic, one.topic, *described(self._kinds[topic]))
                  for topic, one in self._channels.items()}
        stores = {topic: add() for topic, add in opened.items() if topic not in self.optional
                  or self._node.count_publishers(self._channels[topic].topic)}
        with self.lock:
            while self._listener.take():  # earlier messages do not belong to it
                pass
            for topic, one in self._channels.items():
                one.begin(stores.get(topic), None if topic in stores else opened[topic])
        self.recorder, self.running = recorder, True
        return self.path

    def _new_recorder(self, base: Path, ending: str) -> Recorder:
        path, number = base.with_name(f'{base.name}{ending}'), 1
        while True:
            while os.path.lexists(path):
                number += 1
                path = base.with_name(f'{base.name}_{number}{ending}')
            try:
                return Recorder(path, memory=self._memory)
            except UsageError:  # another node created it first
                continue

    def stop(self) -> tuple[bool, str]:
        """End the recording; return whether it is complete on the disk, and its content.

        Messages that a full disk cannot store stay in memory; another call tries again. Raises
        UsageError if no recording runs and none is unfinished.
        """
        if not self.running and not self._ended:
            raise UsageError('nothing is being recorded; start a recording first')
        self._drain(LONGEST_STOP)
        self._end()
        stopped = [self._stopped(recorder) for recorder in self._ended]
        self._ended = [recorder for recorder in self._ended if not recorder.finished]
        return all(whole for whole, _ in stopped), '; '.join(text for _, text in stopped)

    def discard(self) -> None:
        """End the running recording and remove its bag."""
        self._end()
        self._ended.pop().discard()

    def _drain(self, longest: float) -> None:
        """Take the messages already sent, for at most ``longest`` [s], if a recording runs.

        Sent messages are in the bag or counted, except those after the last one received from a
        publisher that has fallen silent.
        """
        if not self.running:
            return
        asked, begun, over = time.time_ns(), time.monotonic(), False
        with self.lock:
            endings = [one.close(asked, self._node.count_publishers(one.topic))
                       for one in self._channels.values()]
        while not over and time.monotonic() - begun < longest:
            with self.lock:
                more = self._listener.take()
                over = all(ending.over(QUIET_SECONDS, more) for ending in endings)
            if not more:
                time.sleep(STOP_LOOK)

    def _end(self) -> None:
        """End the running recording, if there is one."""
        if not self.running:
            return
        with self.lock:
            for one in self._channels.values():
                one.end()
        self.running = False
        assert self.recorder is not None
        self._ended.append(self.recorder)

    def _stopped(self, recorder: Recorder) -> tuple[bool, str]:
        """Stop a recorder, or retry; return whether the bag is complete, and its content."""
        findings, counts = recorder.stop(), recorder.counts
        held = ', '.join(f'{count} messages of {topic}' for topic, count in counts.items())
        text = f'recorded {held} in {recorder.path}'
        if not counts[self._channels[TOPICS[0]].topic]:
            return False, f'{text}: check the topic and its publisher'
        if not recorder.finished:
            findings = (*findings, 'stop again when space is free')
        elif not all(one.gaps.numbered for one in self._channels.values()):
            text += ' (this middleware does not report lost messages)'
        return recorder.finished and recorder.intact, '; '.join((text, *findings))

    @property
    def findings(self) -> tuple[str, ...]:
        """Findings of the current recording, and of earlier ones that are not on the disk yet."""
        return tuple(finding for recorder in self._recorders for finding in recorder.findings)

    @property
    def intact(self) -> bool:
        """Whether only messages of best-effort publishers are missing from these recordings."""
        return all(recorder.intact for recorder in self._recorders)

    @property
    def _recorders(self) -> Iterable[Recorder]:
        return dict.fromkeys((*self._ended, *([self.recorder] if self.recorder else ())))

    def count(self, topic: str) -> int:
        """Return the number of messages of a topic in the recording."""
        store = self._channels[topic].store
        return 0 if store is None else store.count

    def listen(self, topic: str, listener: channel.Listener) -> None:
        """Pass every message of ``topic`` also to ``listener``, which is quick and holds `lock`.

        A topic that is not subscribed stays silent.
        """
        if topic in self._channels:
            self._channels[topic].listeners += (listener,)

    def ignore(self, topic: str, listener: channel.Listener) -> None:
        """Stop passing messages of ``topic`` to ``listener``."""
        if topic in self._channels:
            one = self._channels[topic]
            one.listeners = tuple(other for other in one.listeners if other is not listener)

    def take_statistics(self) -> tuple[TopicStatistics, ...]:
        """Return the statistics of every topic since the last call."""
        with self.lock:
            return tuple(one.take_statistics() for topic, one in self._channels.items()
                         if not (topic in self.optional and one.silent))

    def close(self) -> None:
        """End a running recording, if there is one, and stop listening.

        Messages that the disk of the recording cannot store go to the temporary folder, if
        possible.
        """
        self._drain(QUIET_SECONDS)
        self._end()
        for recorder in self._ended:
            recorder.stop()
            if count := recorder.unsaved:
                path = recorder.rescue(Path(gettempdir()))
                rest = f'these {count} messages are lost' if path is None else (
                    f'these {count} messages were written to {path}')
                self._node.get_logger().error(f'{recorder.findings[0]}; the node ends: {rest}')
        self._ended.clear()
        self._listener.close()


class Recording(BagSession):
    """The services ~/start_recording and ~/stop_recording and the recorded buffer.

    The buffer is the last recording, running or not. It includes motor states if they are
    published; ``further`` topics are expected.
    """

    def __init__(self, node: Node, folder: Path, name: str, further: tuple[str, ...],
                 depth: int, wrenches: Iterable[str] = ()) -> None:
        self.optional = frozenset({MOTORS} - set(further))
        topics = {topic: JointState for topic in TOPICS
                  if topic in (TOPICS[0], MOTORS) or topic in further}
        super().__init__(node, folder, name, {
            **topics, **dict.fromkeys(wrenches, WrenchStamped)}, depth)
        def stop(_: Any, response: Any) -> str:
            response.success, text = self.stop()
            return text

        for name, handler in (
                ('start_recording', lambda *_: f'recording to {self.start()}'),
                ('stop_recording', stop)):
            node.create_service(Trigger, f'~/{name}', answered(handler, node.get_logger()))

    def topics(self) -> Topics:
        """Return the topics of the buffer that have messages."""
        counts = {} if self.recorder is None else self.recorder.counts
        names: dict[str, Any] = {
            topic: one.topic for topic in TOPICS
            if (one := self._channels.get(topic)) and counts.get(one.topic)}
        return replace(Topics(), **names)


def folder_name(name: str) -> str:
    """Return the name of a robot as part of the name of a folder, whatever it holds."""
    return re.sub(r'[^\w.+-]+', '_', name, flags=re.ASCII).strip('._')[:80] or 'recording'


def described(kind: Any) -> tuple[str, str]:
    """Return the name of a message type and its installed definition."""
    from ament_index_python.packages import get_package_share_directory

    package, name = kind.__module__.partition('.')[0], kind.__name__
    path = Path(get_package_share_directory(package)) / 'msg' / f'{name}.msg'
    return f'{package}/msg/{name}', path.read_text('utf-8')
