"""Memory of the messages of one topic: appending is cheap and never moves what is there."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from robot_dynid.io.cdr import Batch, IntArray

MESSAGES = 4096  # per block
BYTES = 1 << 21  # per block; a longer message gets a block of its own size
RECENT = 2_000_000_000  # ns: the span over which the present rate is taken
#: that messages may fill while the disk does not take them: half an hour of 14 joints at 1 kHz
MEMORY = 1_000_000_000  # bytes


class Memory:
    """Memory that stores share, some of them of recordings that ended; ``size`` in bytes."""

    def __init__(self, size: int = MEMORY) -> None:
        self.size = size
        self._left, self._lock = size, threading.Lock()

    def take(self, size: int) -> bool:
        """Take so many bytes; False, and nothing is taken, when there are not as many left."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True

    def give_back(self, size: int) -> None:
        """Give back bytes taken."""
        with self._lock:
            self._left += size


@dataclass(frozen=True)
class Statistics:
    """Statistics of a topic; times in seconds, ``age`` is infinite before the first message."""

    topic: str
    count: int
    rate: float
    largest_gap: float
    age: float


class Block:
    """A preallocated stretch of messages; ``count`` grows last, so readers need no lock."""

    def __init__(self, size: int = BYTES) -> None:
        self.data = bytearray(size)
        self.received = np.zeros(MESSAGES, dtype=np.int64)
        self.stops = np.zeros(MESSAGES, dtype=np.int64)
        self.count = 0
        self.used = 0

    def batch(self, start: int = 0, stop: int | None = None) -> Batch:
        """Return the messages from ``start`` to ``stop`` (all that are there) as a copy."""
        stop = self.count if stop is None else stop
        stops = self.stops[:stop].copy()
        starts = np.concatenate([[0], stops[:-1]]) if stop else stops
        used = int(stops[-1]) if stop else 0
        buffer = np.frombuffer(bytes(memoryview(self.data)[:used]), np.uint8)
        rows = slice(start, stop)
        return Batch(
            self.received[rows].copy(), buffer, starts[rows], stops[rows] - starts[rows]
        )


@dataclass
class Summary:
    """Count, first and last stamp and largest gap of messages no longer in memory."""

    count: int = 0
    first: int = 0
    last: int = 0
    gap: int = 0

    def take(self, received: IntArray) -> None:
        """Account for messages that follow."""
        if not len(received):
            return
        steps = np.diff(received, prepend=self.last if self.count else received[0])
        self.gap = max(self.gap, int(steps.max()))
        self.first = self.first if self.count else int(received[0])
        self.last = int(received[-1])
        self.count += len(received)


@dataclass
class TopicStore:
    """The messages of one topic; ``append`` is all that a subscription callback does.

    One thread appends, another saves and releases; everything read is copied. Once ``memory`` is
    full, further messages are not kept, which ``refused`` counts; ``lost`` are those that were
    sent, as far as is known, and never came.
    """

    name: str
    kind: str
    definition: str = ''
    memory: Memory = field(default_factory=Memory)
    refused: int = 0
    lost: int = 0
    blocks: list[Block] = field(default_factory=lambda: [Block()])
    spare: Block | None = field(default_factory=Block)
    dropped: Summary = field(default_factory=Summary)
    recent: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    saved: int = 0

    def append(self, data: bytes, received: int | None = None) -> None:
        """Keep one serialized message; ``received`` in ns since the epoch (None: now)."""
        block = self.blocks[-1]
        start = block.used
        stop = start + len(data)
        k = block.count
        if k == MESSAGES or stop > len(block.data):
            grown = self._grow(len(data))
            if grown is None:
                self.refused += 1
                return
            block = grown
            start, stop, k = 0, len(data), 0
        block.data[start:stop] = data
        block.received[k] = time.time_ns() if received is None else received
        block.stops[k] = stop
        block.used = stop
        block.count = k + 1

    def _grow(self, size: int) -> Block | None:
        """Return a new block, None when the memory is full; the first block is not counted."""
        if not self.memory.take(max(BYTES, size)):
            return None
        block, self.spare = self.spare, None
        if block is None or len(block.data) != max(BYTES, size):
            block = Block(max(BYTES, size))
        self.blocks.append(block)
        return block

    @property
    def count(self) -> int:
        """Number of messages received."""
        blocks = tuple(self.blocks)
        return self.dropped.count + sum(block.count for block in blocks)

    def unsaved(self) -> Iterator[Batch]:
        """Yield the messages not yet on disk, block by block."""
        at = self.dropped.count
        for block in tuple(self.blocks):
            stop = block.count
            if at + stop > self.saved:
                yield block.batch(max(self.saved - at, 0), stop)
            at += stop

    def release(self) -> None:
        """Forget full blocks that are on disk."""
        while len(self.blocks) > 1 and self.dropped.count + self.blocks[0].count <= self.saved:
            block = self.blocks[0]
            self.recent = block.received[: block.count].copy()
            self.dropped.take(self.recent)
            del self.blocks[0]
            self.memory.give_back(len(self.blocks[0].data))  # in place of the one that is gone
            block.count = block.used = 0
            self.spare = block

    def statistics(self, now: int) -> Statistics:
        """Return the statistics of the messages; ``now`` in ns."""
        total = Summary(**vars(self.dropped))
        stamps = [self.recent]
        for block in tuple(self.blocks):
            stamps.append(block.received[: block.count])
            total.take(stamps[-1])
        if not total.count:
            return Statistics(self.name, 0, 0.0, 0.0, float('inf'))
        recent = np.concatenate(stamps)
        recent = recent[recent > total.last - RECENT]
        span = int(recent[-1] - recent[0])
        rate = (len(recent) - 1) / (span * 1e-9) if span > 0 else 0.0
        return Statistics(
            self.name, total.count, rate, total.gap * 1e-9, max(0, now - total.last) * 1e-9
        )
