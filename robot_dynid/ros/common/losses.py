"""Messages that were sent and never came in, by the numbers that publishers give to theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PUBLISHERS = 1000  # whose last numbers are kept; robots have a few


class SequenceGaps:
    """Counts gaps in the sequence numbers of every publisher of a topic.

    A publisher overwrites what a slow network does not take, and the reader what nobody takes;
    both leave a gap. ``known`` turns False where the middleware gives no numbers (before Kilted it
    does not name the publisher they belong to). ``last`` holds the last number of each publisher.
    """

    def __init__(self) -> None:
        self.known = True
        self.last: dict[bytes, int] = {}

    def missing(self, info: Mapping[str, Any]) -> int:
        """Return the number of messages missing before the one that ``info`` came with."""
        number, publisher = info.get('publication_sequence_number'), info.get('publisher_gid')
        if number is None or publisher is None:
            self.known = False
            return 0
        key = publisher['data']
        before = self.last.get(key)
        if before is None and len(self.last) == PUBLISHERS:
            del self.last[next(iter(self.last))]
        self.last[key] = number if before is None else max(number, before)
        return 0 if before is None else max(0, number - before - 1)
