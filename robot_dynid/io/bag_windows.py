"""Bags of any length: decoded window by window, the joint states of which go to scratch space."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.io.bag import (
    Joined,
    Topics,
    assembled,
    chosen_topics,
    log_from_topics,
    not_exported,
)
from robot_dynid.io.cdr import Batch, JointStateDecoder
from robot_dynid.io.joint_states import Topic
from robot_dynid.io.mcap import Contents
from robot_dynid.io.storage import bag_batches
from robot_dynid.io.stored import RecordingWriter, StoredLog
from robot_dynid.scratch import NoRoom, Scratch
from robot_dynid.types import CHANNELS, RawLog

#: messages of the joint states that are decoded together; with fewer a bag stays in memory
WINDOW = 90_000
#: ns by which windows overlap, since topics are brought to one time, and most messages of that
OVERLAP, MOST_OVERLAP = 2_000_000_000, 20_000
#: windows by which a topic may be ahead of the joint states
FAR_AHEAD = 4
#: most passes over a bag; more change nothing unless it grows meanwhile
PASSES = 3
#: after the order of every message
LAST = 1 << 62
NUMBER = re.compile(r'\d+')

#: gives the messages of a bag by topic, as often as it is called
Batches = Callable[[Contents], Iterator[tuple[str, Batch]]]


def open_bag(
    path: str | Path, joints: tuple[str, ...], scratch: Scratch, topics: Topics | None = None
) -> RawLog | StoredLog:
    """Read the joint states of a bag as `read_bag` does, those of a long one to scratch space.

    Raises DataError when nothing usable is there, or the disk is full.
    """
    return open_batches(str(path), lambda contents: bag_batches(Path(path), contents), joints,
                        scratch, topics)


def open_batches(
    source: str, batches: Batches, joints: tuple[str, ...], scratch: Scratch,
    topics: Topics | None = None,
) -> RawLog | StoredLog:
    """Read messages as a recording, of more than WINDOW joint states to scratch space.

    A long bag is gone through again where what comes late shows that another topic, or receive
    times, are to be used. Raises DataError when nothing usable is there, or the disk is full.
    """
    plan: Plan | None = None
    contents = Contents()
    try:
        for left in reversed(range(PASSES)):
            if plan is not None and plan.apart:  # what the pass before has found still holds
                coming = _by_time(batches, contents.topics)
            else:
                contents = Contents()
                coming = batches(contents)
            windows = _Windows(source, joints, scratch, topics, contents, plan)
            for name, batch in coming:
                windows.add(name, batch)
            if not windows.long:
                return log_from_topics(source, windows.seen, joints, topics, contents)
            windows.end()
            if windows.settled or not left:
                return windows.recording()
            plan = windows.final
        raise AssertionError
    except DataError as error:
        said = f' ({"; ".join(contents.findings)})' if contents.findings else ''
        raise DataError(f'{source}: {error}{said}') from None


@dataclass(frozen=True)
class Plan:
    """Choices for the whole bag: topics, and those where receive times are used.

    ``counts`` of the messages by joint names, of topics where these differ. ``apart``: the topics
    are not in the order of time among each other.
    """

    names: Topics
    receive_times: frozenset[str]
    counts: Mapping[str, Mapping[tuple[str, ...], int]]
    apart: bool = False

    def impose(self, topic: Topic) -> None:
        """Let a topic do as was decided."""
        topic.receive_times = topic.name in self.receive_times
        topic.decided = self.counts.get(topic.name)


def _by_time(batches: Batches, topics: Iterable[str]) -> Iterator[tuple[str, Batch]]:
    """Yield the messages of all topics in order of time, from a pass over the bag for each."""
    passes = {topic: _only(topic, batches) for topic in topics}
    first = {topic: batch for topic, own in passes.items() if (batch := next(own, None))}
    while first:
        topic = min(first, key=lambda name: int(first[name].received.min()))
        yield topic, first.pop(topic)
        following = next(passes[topic], None)
        if following is not None:
            first[topic] = following


def _only(topic: str, batches: Batches) -> Iterator[Batch]:
    return (batch for name, batch in batches(Contents()) if name == topic)


class _Windows:
    """State of one pass over a bag."""

    def __init__(
        self, source: str, joints: tuple[str, ...], scratch: Scratch, topics: Topics | None,
        contents: Contents, plan: Plan | None,
    ) -> None:
        self.seen: dict[str, Topic] = {}
        self.long = False
        self._topics, self._contents, self._joints = topics, contents, joints
        self._plan = plan
        self._writer = RecordingWriter(source, joints, scratch)
        self._notes: dict[str, str] = {}
        self._begin: int | None = None
        self._written = 0  # messages of the joint states that are written, by their order
        self._problem: DataError | None = None
        self._horizon: int | None = None  # time of receipt [ns] up to which rows are written
        self._apart = plan is not None and plan.apart
        self._skipped = False  # messages were dropped before it was clear what to make of them

    def add(self, name: str, batch: Batch) -> None:
        """Take messages, and write a window when it is full."""
        if name not in self.seen:
            self.seen[name] = Topic(name, JointStateDecoder(self._contents.topics[name]))
        self.seen[name].add(batch)
        if self._horizon is not None and len(batch.received):
            self._apart |= int(batch.received.min()) < self._horizon
        topic, main = self.seen[name], self._main()
        if (topic if main is None else main).waiting >= WINDOW:
            self.long = True
            self._write(last=False)
        if topic.waiting >= FAR_AHEAD * WINDOW:  # the joint states do not keep up
            self.long = self._apart = True
            topic.drop(0, topic.decoder.count - MOST_OVERLAP)

    def _main(self) -> Topic | None:
        """Return the joint states, as far as it is known which they are."""
        plan = self._plan
        if plan is None:
            with suppress(DataError):  # what is asked for may still come
                plan = self.final
        return None if plan is None else self.seen.get(plan.names.joint_states or '')

    @property
    def final(self) -> Plan:
        """Choices that are right for all messages seen."""
        names = chosen_topics(self._topics, self.seen.values(), self._contents)
        topics = self.seen.values()
        return Plan(names, frozenset(t.name for t in topics if t.unset),
                    {t.name: dict(t.counts) for t in topics if len(t.counts) > 1}, self._apart)

    @property
    def settled(self) -> bool:
        """Whether the pass used what is right for all that was seen."""
        return not self._skipped and self._plan == self.final

    def end(self) -> None:
        """Write what is left."""
        self._write(last=True)

    def recording(self) -> StoredLog:
        """Return the recording that was written; raises DataError for an empty one."""
        if not self._writer.rows:
            raise self._problem or DataError('no usable messages')
        found = [*self._contents.findings, *self._notes.values()]
        for name in CHANNELS:
            if name != 'reference_position' and self._writer.tally.never_measured(name):
                self._writer.drop(name)
                found.append(not_exported(name))
        return self._writer.finished(found)

    def _write(self, last: bool) -> None:
        """Write the window but for its end, which is seen again in the next."""
        main = self._main()
        if main is None:
            self._skipped = True
            for topic in self.seen.values():
                topic.drop(0, topic.decoder.count - MOST_OVERLAP)
            return
        self._plan = self._plan or self.final
        for topic in self.seen.values():
            self._plan.impose(topic)
        stop, received = _cut(main, self._written)
        stop = LAST if last else stop
        found: list[str] = []
        try:
            if main.parts:
                here = {n: t for n, t in self.seen.items() if t.parts}
                self._keep(assembled(here, self._joints, self._plan.names, found), stop)
        except NoRoom:
            raise
        except DataError as error:
            self._problem = error
            found.append(f'{error}; the messages around are left out')
        self._notes |= {NUMBER.sub('#', note): note for note in found}
        self._written, self._horizon = stop, received
        for topic in self.seen.values():
            topic.drop(received - OVERLAP, stop - MOST_OVERLAP if topic is main else 0)

    def _keep(self, joined: Joined, stop: int) -> None:
        """Write the rows of messages that are not written yet, up to before ``stop``."""
        base = joined.base
        rows = (base.order >= self._written) & (base.order < stop)
        if not rows.any():
            return
        if self._begin is None:
            self._begin = int(base.time[rows][0])
        time = np.asarray((base.time[rows] - self._begin) * 1e-9, dtype=np.float64)
        self._writer.add(time, {
            name: None if values is None else values[rows]
            for name, values in joined.channels.items()})
        if joined.efforts is not None:
            stamps, values = joined.efforts
            inside = stamps <= base.time[rows].max()
            self._writer.add_efforts((stamps[inside] - self._begin) * 1e-9, values[inside])


def _cut(main: Topic, written: int) -> tuple[int, int]:
    """Return up to where a window can be written: order, and time of receipt [ns]."""
    order = np.concatenate([part.order for part in main.parts] or [np.empty(0, np.int64)])
    received = np.concatenate([part.received for part in main.parts] or [np.empty(0, np.int64)])
    if not len(order):
        return written, 0
    horizon = int(received.max()) - OVERLAP
    late = order[received > horizon]
    most = int(order.max()) + 1
    stop = max(int(late.min()), most - MOST_OVERLAP)
    return (stop if stop > written else (written + most) // 2), horizon
