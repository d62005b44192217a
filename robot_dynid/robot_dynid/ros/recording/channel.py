"""One subscribed topic: statistics, lost messages, and the end of a recording.

Lost messages show in the sequence numbers of publishers. Undetectable losses: messages after the
last one received from a publisher, and messages sent before it and the reader discovered each
other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from robot_dynid.ros.common.listener import Inlet
from robot_dynid.ros.recording.recorder import TopicStore

#: takes a serialized message, the time of the system, and how long the message waited here [ns]
Listener = Callable[[bytes, int, int], None]
MOST_PUBLISHERS = 1000  # publishers whose last numbers are kept; robots have a few
#: ns: a publisher heard for so long, and recently, is expected to continue
STEADY, LATELY = 2_000_000_000, 1_000_000_000
#: ns by which a message that was sent again may arrive after its successors: DDS delivers
#: them in their order nevertheless, which is that of a recording, too
SENT_AGAIN = 10**9


@dataclass
class Publisher:
    """The ``number`` of the last message of a publisher, heard ``since``, ``until`` [ns]."""

    number: int
    since: int
    until: int


class SequenceGaps:
    """Counts gaps in the sequence numbers of every publisher of a topic.

    A publisher overwrites messages that a slow network does not take, and the reader those that
    nobody takes; both leave a gap. ``numbered`` turns False if the middleware gives no numbers
    (before Kilted it does not name their publisher). ``last`` holds the last message of each
    publisher.
    """

    def __init__(self) -> None:
        self.numbered = True
        self.last: dict[bytes, Publisher] = {}

    def missing(self, info: Mapping[str, Any]) -> int:
        """Return the number of messages missing before the one described by ``info``."""
        number, publisher = info.get('publication_sequence_number'), info.get('publisher_gid')
        if number is None or publisher is None:
            self.numbered = False
            return 0
        key, received = publisher['data'], info['received_timestamp']
        latest = self.last.get(key)
        if latest is None:
            if len(self.last) == MOST_PUBLISHERS:
                del self.last[next(iter(self.last))]
            self.last[key] = Publisher(number, received, received)
            return 0
        missing = max(0, number - latest.number - 1)
        latest.number, latest.until = max(number, latest.number), received
        return missing


class Ending:
    """Messages of a topic that belong to a recording whose end was ``asked`` for [ns, system].

    They were sent before that, or have been received. All of them are present, or lost, once every
    one of the ``publishers`` has sent a later one: DDS delivers those of a publisher in order.
    ``present`` is the current number of publishers, perhaps not heard yet; steady ones are
    expected to continue.
    """

    def __init__(self, asked: int, publishers: Mapping[bytes, Publisher], present: int) -> None:
        self._asked, self._over = asked, set[bytes]()
        self._open = set(publishers) or ({b''} if present else set[bytes]())
        self._steady = {key for key, one in publishers.items() if present
                        and one.until - one.since > STEADY and asked - one.until < LATELY}
        self._latest = time.monotonic()

    def takes(self, info: Mapping[str, Any]) -> bool:
        """Return whether the message described by ``info`` belongs to the recording."""
        if min(info['source_timestamp'], info['received_timestamp']) > self._asked:
            return False
        self._latest = time.monotonic()
        return True

    def first_later(self, info: Mapping[str, Any]) -> bool:
        """Return whether a later message is the first of its publisher.

        Messages missing before it were sent during the recording, or after it.
        """
        key = (info.get('publisher_gid') or {}).get('data', b'')
        first = key not in self._over
        self._over.add(key)
        self._open.discard(key)
        self._steady.discard(key)
        return first

    def over(self, patience: float, more: bool) -> bool:
        """Return whether all have arrived, or none for longer than ``patience`` [s].

        Steady publishers are waited for longer. Those of unknown publishers have all arrived
        unless there is ``more`` to take.
        """
        silent = not self._steady and time.monotonic() - self._latest > patience
        return silent or not (self._open or (more and not self._over))


@dataclass(frozen=True)
class TopicStatistics:
    """Statistics of a topic since the last reading; times in s, ``age`` infinite at first.

    ``largest_gap`` is between two messages, ``rate`` per second; ``lost`` messages were sent and
    not received, as far as `SequenceGaps` can tell.
    """

    topic: str
    rate: float
    largest_gap: float
    age: float
    lost: int = 0


class Channel:
    """One subscribed topic: counts messages, and passes them to the store of a recording.

    Statistics are in system time; ``dated`` converts it into the time of a recording [ns].
    ``opened``, if given, makes the store at the first message. With an ``ending`` it takes the
    messages that belong to the recording, and counts later ones. ``inlet`` is the source of the
    messages.
    """

    inlet: Inlet | None

    def __init__(self, topic: str, dated: Callable[[int], int]) -> None:
        self.topic, self._dated = topic, dated
        self.listeners: tuple[Listener, ...] = ()
        self.gaps, self.inlet = SequenceGaps(), None
        self._last = self._gap = self._count = self._lost = 0
        self._since = time.time_ns()
        self.begin(None, None)

    def begin(self, store: TopicStore | None, opened: Callable[[], TopicStore] | None) -> None:
        """Pass messages to ``store``, or to the one that ``opened`` makes."""
        self.store, self.opened = store, opened
        self.ending: Ending | None = None
        self._ended: TopicStore | None = None

    def close(self, asked: int, present: int) -> Ending:
        """Pass on only messages of a recording whose end is ``asked`` for, see `Ending`."""
        self.ending = Ending(asked, self.gaps.last, present)
        return self.ending

    def end(self) -> None:
        """Stop passing messages on; count late ones."""
        self._ended, self.store, self.opened = self.store, None, None

    def receive(self, data: bytes, info: Mapping[str, Any]) -> None:
        """Take one serialized message; the only work while recording."""
        received = info['received_timestamp']
        if 0 <= self._last - received < SENT_AGAIN:
            received = self._last + 1
        missing = self.gaps.missing(info)
        self._lost += missing
        if self.ending is None or self.ending.takes(info):
            if self.opened is not None:
                self.store, self.opened = self.opened(), None
            if self.store is not None:
                self.store.append(data, self._dated(received))
            self._miss(missing + (self.store is None))
        elif self.ending.first_later(info):
            self._miss(missing)
        now = time.time_ns()
        for listener in self.listeners:
            listener(data, now, now - received)
        if self._last:
            self._gap = max(self._gap, received - self._last)
        self._last = received
        self._count += 1

    def _miss(self, missing: int) -> None:
        store = self.store or self._ended
        if store is not None:
            store.lost += missing
            store.best_effort |= self.inlet is not None and self.inlet.best_effort

    @property
    def silent(self) -> bool:
        """Whether no message has ever arrived."""
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
