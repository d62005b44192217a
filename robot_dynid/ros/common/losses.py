"""Messages that were sent and never came in, by the numbers that publishers give to theirs.

What no reader can know: whether a publisher that falls silent sent more behind the last message
that came, and what was sent before it and the reader knew of each other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

PUBLISHERS = 1000  # whose last numbers are kept; robots have a few
#: ns: a publisher heard for so long, and of late, is expected to go on
STEADY, LATELY = 2_000_000_000, 1_000_000_000


@dataclass
class Publisher:
    """The ``number`` of the last message of a publisher, heard ``since``, ``until`` [ns]."""

    number: int
    since: int
    until: int

    def goes_on(self, asked: int) -> bool:
        """Return whether it is expected to send beyond ``asked`` [ns]."""
        return self.until - self.since > STEADY and asked - self.until < LATELY


class SequenceGaps:
    """Counts gaps in the sequence numbers of every publisher of a topic.

    A publisher overwrites what a slow network does not take, and the reader what nobody takes;
    both leave a gap. ``known`` turns False where the middleware gives no numbers (before Kilted it
    does not name the publisher they belong to). ``last`` holds what came last of each publisher.
    """

    def __init__(self) -> None:
        self.known = True
        self.last: dict[bytes, Publisher] = {}

    def missing(self, info: Mapping[str, Any]) -> int:
        """Return the number of messages missing before the one that ``info`` came with."""
        number, publisher = info.get('publication_sequence_number'), info.get('publisher_gid')
        if number is None or publisher is None:
            self.known = False
            return 0
        key, received = publisher['data'], info['received_timestamp']
        before = self.last.get(key)
        if before is None:
            if len(self.last) == PUBLISHERS:
                del self.last[next(iter(self.last))]
            self.last[key] = Publisher(number, received, received)
            return 0
        missing = max(0, number - before.number - 1)
        before.number, before.until = max(number, before.number), received
        return missing


class Ending:
    """Messages of a topic that belong to a recording whose end was ``asked`` for [ns, system].

    They were sent until then, or have come in. All of them are there, or lost, once every one of
    the ``publishers`` has shown a later one: DDS delivers those of a publisher in order. So many
    are ``present`` now, perhaps unheard.
    """

    def __init__(self, asked: int, publishers: Mapping[bytes, Publisher], present: int) -> None:
        self._asked, self._over = asked, set[bytes]()
        self._open = set(publishers) or ({b''} if present else set[bytes]())
        self._steady = {key for key, one in publishers.items() if present and one.goes_on(asked)}
        self._latest = time.monotonic()

    def takes(self, info: Mapping[str, Any]) -> bool:
        """Return whether the message that ``info`` came with belongs to the recording."""
        if min(info['source_timestamp'], info['received_timestamp']) > self._asked:
            return False
        self._latest = time.monotonic()
        return True

    def first_later(self, info: Mapping[str, Any]) -> bool:
        """Return whether a later message is the first of its publisher.

        What is missing before it was sent while recording, or between both.
        """
        key = (info.get('publisher_gid') or {}).get('data', b'')
        first = key not in self._over
        self._over.add(key)
        self._open.discard(key)
        self._steady.discard(key)
        return first

    def over(self, patience: float, more: bool) -> bool:
        """Return whether all have come, or nothing for longer than ``patience`` [s].

        Steady publishers are waited for longer. Of unknown ones all have come unless there is
        ``more`` to take.
        """
        silent = not self._steady and time.monotonic() - self._latest > patience
        return silent or not (self._open or (more and not self._over))
