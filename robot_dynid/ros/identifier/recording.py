"""Live topics of a node: always watched, and recorded to disk between start and stop.

Messages are taken in a thread of their own, whatever else the node does meanwhile.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
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
from robot_dynid.ros.common.answers import answered
from robot_dynid.ros.common.listener import Listener
from robot_dynid.ros.common.losses import Ending, SequenceGaps
from robot_dynid.ros.common.message_store import Memory, TopicStore
from robot_dynid.ros.identifier.recorder import Recorder
from robot_dynid.types import FIT, VALIDATION

TOPICS = ('joint_states', 'motor_states', 'effort', 'joint_torques')
MOTORS = TOPICS[1]
#: ns by which a message that was sent again may have come in after those behind it: DDS delivers
#: them in their order nevertheless, which is that of a recording, too
SENT_AGAIN = 10**9
#: s without messages from before a stop after which it waits no more for silent publishers: under
#: load they take some tenths; and after which for none: DDS sends lost ones again within 3 s
QUIET, LONGEST_STOP = 0.25, 3.5
STOP_LOOK = 0.002  # s between looks for messages meanwhile


@dataclass(frozen=True)
class TopicStatistics:
    """Statistics of a topic since they were last read; times in s, ``age`` infinite at first.

    ``largest_gap`` is between two messages, ``rate`` per second; ``lost`` messages were sent and
    never came in, as far as `SequenceGaps` knows.
    """

    topic: str
    rate: float
    largest_gap: float
    age: float
    lost: int = 0


class Channel:
    """One subscribed topic: counts what comes in, and hands it to the store of a recording.

    Statistics are of the time of the system; ``dated`` turns it into the date in a recording [ns].
    ``opened``, where there is one, makes the store when the first message comes. With an
    ``ending`` it takes what belongs to the recording; what comes after that is over is counted.
    """

    def __init__(self, topic: str, dated: Callable[[int], int]) -> None:
        self.topic, self._dated = topic, dated
        self.store: TopicStore | None = None
        self.opened: Callable[[], TopicStore] | None = None
        self.ending: Ending | None = None
        self._ended: TopicStore | None = None
        self.listeners: tuple[Callable[[bytes, int, int], None], ...] = ()
        self.gaps = SequenceGaps()
        self._last = self._gap = self._count = self._lost = 0
        self._since = time.time_ns()

    def receive(self, data: bytes, info: Mapping[str, Any]) -> None:
        """Take one serialized message; this is all that happens while recording."""
        received = info['received_timestamp']
        if 0 <= self._last - received < SENT_AGAIN:
            received = self._last + 1
        missing = self.gaps.missing(info)
        self._lost += missing
        if self.ending is None or self.ending.takes(info):
            self._keep(data, received, missing)
        elif self.ending.first_later(info):
            self._miss(missing)
        now = time.time_ns()
        for listener in self.listeners:
            listener(data, now, now - received)
        if self._last and received - self._last > self._gap:
            self._gap = received - self._last
        self._last = received
        self._count += 1

    def begin(self, store: TopicStore | None, opened: Callable[[], TopicStore] | None) -> None:
        """Hand over to ``store``, or to that which ``opened`` makes."""
        self.store, self.opened, self.ending, self._ended = store, opened, None, None

    def close(self, asked: int, present: int) -> Ending:
        """Hand over only what belongs to a recording whose end is ``asked`` for, see `Ending`."""
        self.ending = Ending(asked, self.gaps.last, present)
        return self.ending

    def end(self) -> None:
        """Hand over no more; count what comes too late."""
        self._ended, self.store, self.opened = self.store, None, None

    def _keep(self, data: bytes, received: int, missing: int) -> None:
        if self.opened is not None:
            self.store, self.opened = self.opened(), None
        if self.store is not None:
            self.store.append(data, self._dated(received))
            self._miss(missing)
        else:
            self._miss(missing + 1)

    def _miss(self, missing: int) -> None:
        store = self.store or self._ended
        if store is not None:
            store.lost += missing

    @property
    def silent(self) -> bool:
        """Whether no message has ever come in."""
        return not self._last

    def take_statistics(self) -> TopicStatistics:
        """Return the statistics since the last call."""
        now = time.time_ns()
        span = max(now - self._since, 1) * 1e-9
        age = (now - self._last) * 1e-9 if self._last else float('inf')
        statistics = TopicStatistics(
            self.topic, self._count / span, self._gap * 1e-9, age, self._lost)
        self._since, self._gap, self._count, self._lost = now, 0, 0, 0
        return statistics


class BagSession:
    """Topics of a node, always watched, and the recording of them which runs or ended last.

    ``folder`` receives one bag per recording, named after ``name`` and the time; ``topics`` maps
    names to message types; of those that are ``optional`` nothing is told or recorded before a
    publisher is there. Recordings that the disk did not take whole stay until it does.
    Messages are taken every ``period`` s (0: at once); each has the time at which it came in.
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
        self._channels: dict[str, Channel] = {}
        self._listener = Listener(node, period)
        for topic, kind in topics.items():
            channel = Channel(node.resolve_topic_name(topic), self._dated)
            self._channels[topic] = channel
            self._listener.subscribe(kind, topic, channel.receive, qos)
        self._listener.start()

    def now(self) -> int:
        """Return the time of the node [ns]: that of /clock where use_sim_time is true."""
        return int(self._node.get_clock().now().nanoseconds)

    def _dated(self, received: int) -> int:
        """Return the date of a message that was received at a time of the system [ns]."""
        return self.now() if self._node.get_clock().ros_time_is_active else received

    @property
    def lock(self) -> Lock:
        """Whoever holds it knows that no message is being taken."""
        return self._listener.lock

    @property
    def clock(self) -> Any:
        """Clock of the node."""
        return self._node.get_clock()

    @property
    def path(self) -> Path:
        """Folder of the bag that is being written or was written last."""
        assert self.recorder is not None
        assert self.recorder.path is not None
        return self.recorder.path

    def start(self, purpose: str = FIT, fitted: Path | None = None) -> Path:
        """Begin a new recording and return its folder; raises DynIdError when it cannot.

        One with the ``purpose`` VALIDATION is named after that of the motion ``fitted`` before,
        where there is one.
        """
        if self.running:
            raise UsageError(f'already recording to {self.path}; stop that recording first')
        if not self.now():
            raise UsageError('use_sim_time is true, and nothing has come on /clock yet: start the '
                             'simulation, or set use_sim_time to false')
        name = fitted or self._folder / f'{self._name}_{datetime.now():%Y-%m-%d_%H-%M-%S}'
        recorder = self._new_recorder(name, ENDING if purpose == VALIDATION else '')
        recorder.note(PURPOSE, purpose)
        opened = {topic: partial(recorder.add_topic, channel.topic, *described(self._kinds[topic]))
                  for topic, channel in self._channels.items()}
        stores = {topic: add() for topic, add in opened.items() if topic not in self.optional
                  or self._node.count_publishers(self._channels[topic].topic)}
        with self.lock:
            while self._listener.take():  # what has come in before does not belong to it
                pass
            for topic, channel in self._channels.items():
                channel.begin(stores.get(topic), None if topic in stores else opened[topic])
        self.recorder, self.running = recorder, True
        return self.path

    def stop(self) -> tuple[bool, str]:
        """End the recording; return whether all of it is on the disk, and what it holds.

        What a full disk does not take stays in memory; another call tries again. Raises UsageError
        when no recording runs and none is left to finish.
        """
        if not self.running and not self._ended:
            raise UsageError('nothing is being recorded; start a recording first')
        self._drain(LONGEST_STOP)
        self._end()
        told = [self._told(recorder) for recorder in self._ended]
        self._ended = [recorder for recorder in self._ended if not recorder.finished]
        return all(whole for whole, _ in told), '; '.join(text for _, text in told)

    def discard(self) -> None:
        """End the running recording and remove what it has brought to the disk."""
        self._end()
        self._ended.pop().discard()

    def _drain(self, longest: float) -> None:
        """Take what was sent until now and is under way, for ``longest`` [s], if a recording runs.

        Sent messages are in the bag or counted, but for those behind the last of a publisher that
        is heard no more.
        """
        if not self.running:
            return
        asked, begun, over = time.time_ns(), time.monotonic(), False
        with self.lock:
            endings = [channel.close(asked, self._node.count_publishers(channel.topic))
                       for channel in self._channels.values()]
        while not over and time.monotonic() - begun < longest:
            with self.lock:
                more = self._listener.take()
                over = all(ending.over(QUIET, more) for ending in endings)
            if not more:
                time.sleep(STOP_LOOK)

    def _end(self) -> None:
        """Let the running recording, if there is one, end."""
        if not self.running:
            return
        with self.lock:
            for channel in self._channels.values():
                channel.end()
        self.running = False
        assert self.recorder is not None
        self._ended.append(self.recorder)

    def _told(self, recorder: Recorder) -> tuple[bool, str]:
        """Stop a recorder, or try again; return whether the bag is whole, and what it holds."""
        findings = recorder.stop()
        counts = {s.topic: s.count for s in recorder.statistics()}
        held = ', '.join(f'{count} messages of {topic}' for topic, count in counts.items())
        text = f'recorded {held} in {recorder.path}'
        if not counts[self._channels[TOPICS[0]].topic]:
            text += '; is the topic right, and is somebody publishing reliably?'
            return False, text
        if not recorder.finished:
            findings = (*findings, 'stop again once there is room')
        elif not all(channel.gaps.known for channel in self._channels.values()):
            text += ' (this middleware does not tell whether messages were lost on the way)'
        return not findings, '; '.join((text, *findings))

    @property
    def findings(self) -> tuple[str, ...]:
        """Findings of the present recording, and of earlier ones that are not on the disk yet."""
        recorders = dict.fromkeys((*self._ended, *([self.recorder] if self.recorder else ())))
        return tuple(finding for recorder in recorders for finding in recorder.findings)

    def count(self, topic: str) -> int:
        """Return the number of messages of a topic in the recording."""
        store = self._channels[topic].store
        return 0 if store is None else store.count

    def listen(self, topic: str, listener: Callable[[bytes, int, int], None]) -> None:
        """Hand every message of ``topic`` to ``listener``, too, which is quick and holds `lock`.

        With it the time [ns], and for how long [ns] the message has waited here. A topic that is
        not subscribed stays silent.
        """
        if topic in self._channels:
            self._channels[topic].listeners += (listener,)

    def ignore(self, topic: str, listener: Callable[[bytes, int, int], None]) -> None:
        """Hand no more messages of ``topic`` to ``listener``."""
        if topic in self._channels:
            channel = self._channels[topic]
            channel.listeners = tuple(one for one in channel.listeners if one is not listener)

    def take_statistics(self) -> tuple[TopicStatistics, ...]:
        """Return the statistics of every topic since the last call."""
        with self.lock:
            return tuple(channel.take_statistics() for topic, channel in self._channels.items()
                         if not (topic in self.optional and channel.silent))

    def close(self) -> None:
        """End a running recording, if there is one, and listen no more.

        What the recording's disk does not take goes to the temporary folder, if that takes it.
        """
        self._drain(QUIET)
        self._end()
        for recorder in self._ended:
            recorder.stop()
            if recorder.unsaved:
                self._node.get_logger().error(_rescued(recorder))
        self._ended.clear()
        self._listener.close()

    def _new_recorder(self, base: Path, ending: str) -> Recorder:
        path, number = base.with_name(f'{base.name}{ending}'), 1
        while True:
            while os.path.lexists(path):
                number += 1
                path = base.with_name(f'{base.name}_{number}{ending}')
            try:
                return Recorder(path, memory=self._memory)
            except UsageError:  # another node was faster
                continue


def folder_name(name: str) -> str:
    """Return the name of a robot as part of the name of a folder, whatever it holds."""
    return re.sub(r'[^\w.+-]+', '_', name, flags=re.ASCII).strip('._')[:80] or 'recording'


def _rescued(recorder: Recorder) -> str:
    """Say where the messages are that the disk of a recording did not take."""
    found, count = recorder.findings[0], recorder.unsaved
    path = recorder.rescue(Path(gettempdir()))
    if path is None:
        return f'{found}; the node ends, and these {count} messages are lost'
    return f'{found}; the node ends: these {count} messages were written to {path}'


class Recording(BagSession):
    """The services ~/start_recording and ~/stop_recording and the recorded buffer.

    The buffer is what the last recording holds, whether it is still running or not. Motor states
    are in it whenever they are published; ``further`` topics are expected.
    """

    def __init__(self, node: Node, folder: Path, name: str, further: tuple[str, ...],
                 depth: int, wrenches: Iterable[str] = ()) -> None:
        self.optional = frozenset({MOTORS} - set(further))
        topics = {topic: JointState for topic in TOPICS
                  if topic in (TOPICS[0], MOTORS) or topic in further}
        super().__init__(node, folder, name, {
            **topics, **dict.fromkeys(wrenches, WrenchStamped)}, depth)
        for verb, handler in (('start', self._on_start), ('stop', self._on_stop)):
            node.create_service(
                Trigger, f'~/{verb}_recording', answered(handler, node.get_logger()))

    def topics(self) -> Topics:
        """Return the topics of the buffer which hold messages."""
        counts = {} if self.recorder is None else {
            s.topic: s.count for s in self.recorder.statistics()}
        names: dict[str, Any] = {
            topic: c.topic for topic in TOPICS
            if (c := self._channels.get(topic)) and counts.get(c.topic)}
        return replace(Topics(), **names)

    def _on_start(self, request: Any, response: Any) -> None:
        response.message = f'recording to {self.start()}'

    def _on_stop(self, request: Any, response: Any) -> None:
        response.success, response.message = self.stop()


def described(kind: Any) -> tuple[str, str]:
    """Return the name of a message type and its definition as it was installed."""
    from ament_index_python.packages import get_package_share_directory

    package, name = kind.__module__.partition('.')[0], kind.__name__
    path = Path(get_package_share_directory(package)) / 'msg' / f'{name}.msg'
    return f'{package}/msg/{name}', path.read_text('utf-8')
