"""Records live topics: callbacks append to memory, a thread brings everything to a bag on disk.

Scheme: every ``period`` the thread writes what came in since as one chunk of an mcap file and
waits until it is on the disk (fsync). An mcap file only ever grows at its end, and its data
section can be read without the index that is written at the close; so after a crash, a SIGKILL or
a power cut ``read_bag`` finds everything but the last ``period``. (sqlite3 would rewrite pages and
leave a journal behind.) Messages leave the memory only once they are on the disk: when it is full,
they stay, and the next period tries again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from robot_dynid.errors import UsageError
from robot_dynid.io.bag import Topics, log_from_topics
from robot_dynid.io.bag_writer import BagWriter
from robot_dynid.io.cdr import JOINT_STATE, Batch
from robot_dynid.io.joint_states import decode_topics
from robot_dynid.io.mcap import Contents, mcap_batches
from robot_dynid.ros.common.message_store import Statistics, TopicStore
from robot_dynid.types import RawLog

if TYPE_CHECKING:
    from rosbags.interfaces import Connection

PERIOD = 0.25  # s between commits: a crash loses at most this much plus the time of one write


class Recorder:
    """Records serialized messages of any number of topics into a new bag.

    Usage: ``store = recorder.add_topic('/joint_states', JOINT_STATE)``, and a raw subscription
    whose callback is ``store.append``. ``path`` None keeps everything in memory only.

    Raises UsageError when ``path`` exists, DataError when it cannot be created.
    """

    def __init__(self, path: str | Path | None, period: float = PERIOD) -> None:
        self.path = None if path is None else Path(path)
        self._bag = None if path is None else BagWriter(path)
        self._file = None if self._bag is None else self._bag.storage_file
        self._period = period
        self._stores: dict[str, TopicStore] = {}
        self._connections: dict[str, Connection] = {}
        self._handed: dict[str, int] = {}  # counts that count once they are on the disk
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._problem = ''
        self._thread = threading.Thread(target=self._run, name='recorder', daemon=True)
        self._thread.start()

    def add_topic(self, name: str, message_type: str = JOINT_STATE, definition: str = ''
                  ) -> TopicStore:
        """Return the store of a topic; its ``append`` is the subscription callback.

        ``definition`` is the text of the message type, for types the bag library does not know.
        Raises UsageError for an unknown message type or after ``stop``.
        """
        with self._lock:
            if self._stop.is_set():
                raise UsageError(f'topic {name}: the recording has ended, start a new one')
            if name not in self._stores:
                if self._bag is not None:
                    self._connections[name] = self._bag.add_topic(
                        name, message_type, definition)
                self._stores[name] = TopicStore(name, message_type)
            return self._stores[name]

    def statistics(self, now: int | None = None) -> tuple[Statistics, ...]:
        """Return count, rate, largest gap and age of every topic; ``now`` in ns since epoch."""
        now = time.time_ns() if now is None else now
        with self._lock:
            return tuple(store.statistics(now) for store in self._stores.values())

    @property
    def storage_file(self) -> Path | None:
        """The growing file on the disk, which can be read at any time."""
        return self._file

    @property
    def received(self) -> int:
        """Number of messages of all topics so far."""
        with self._lock:
            return sum(store.count for store in self._stores.values())

    @property
    def saved(self) -> int:
        """Number of messages of all topics that are on the disk."""
        with self._lock:
            return sum(store.saved for store in self._stores.values())

    @property
    def findings(self) -> tuple[str, ...]:
        """Failures of the disk; no received message is lost by them."""
        waiting = self.received - self.saved
        if not self._problem:
            return ()
        if not waiting:
            return (self._problem,)
        return (f'{self._problem}; {waiting} messages are kept in memory only',)

    def snapshot(
        self, joints: tuple[str, ...] | None = None, topics: Topics | None = None
    ) -> RawLog:
        """Return the messages recorded so far, without disturbing the recording.

        Raises DataError when nothing usable was received yet.
        """
        contents = Contents(findings=list(self.findings))
        with self._lock:
            contents.topics = {s.name: s.kind for s in self._stores.values()}
            stores = [s for s in self._stores.values() if s.kind == JOINT_STATE]
            dropped = {store.name: store.dropped.count for store in stores}
            memory = {s.name: [block.batch() for block in tuple(s.blocks)] for s in stores}
        source = 'the recording' if self.path is None else str(self.path)
        decoded = decode_topics(self._all(dropped, memory))
        return log_from_topics(source, decoded, joints, topics, contents)

    def _all(
        self, dropped: dict[str, int], memory: dict[str, list[Batch]]
    ) -> Iterator[tuple[str, Batch]]:
        """Yield the messages on disk, then those in memory."""
        left = dict(dropped)
        if self._file is not None and any(left.values()):
            for name, batch in mcap_batches(self._file, (JOINT_STATE,), Contents()):
                part = _first(batch, left[name])
                left[name] -= len(part.received)
                yield name, part
                if not any(left.values()):
                    break
        for name, batches in memory.items():
            for batch in batches:
                if len(batch.received):
                    yield name, batch

    def stop(self) -> tuple[str, ...]:
        """Write the rest, close the bag and return the findings; ``snapshot`` still works."""
        if not self._stop.is_set():
            self._stop.set()
            self._thread.join()
            if self._bag is not None and self._save(self._bag) and self._save(self._bag):
                self._closed(self._bag)
        return self.findings

    def __enter__(self) -> Recorder:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop."""
        self.stop()

    def _run(self) -> None:
        while self._bag is not None and not self._stop.wait(self._period):
            try:
                self._save(self._bag)
            except Exception as error:  # a dead thread would go unseen
                self._problem = f'{self.path}: writing has ended: {error!r}'
                return

    def _save(self, bag: BagWriter) -> bool:
        """Bring new messages to the disk; on failure they stay in memory for the next time."""
        with self._lock:
            if not self._handed:  # else the last hand-over must reach the disk first
                for store in self._stores.values():
                    self._handed[store.name] = store.saved + self._hand_over(bag, store)
                bag.seal()
        try:
            bag.sync()  # without the lock: the disk must not hold up snapshots and statistics
        except OSError as error:
            self._problem = f'{self.path}: cannot be written: {error.strerror or error}'
            return False
        with self._lock:
            for name, count in self._handed.items():
                self._stores[name].saved = count
                self._stores[name].release()
            self._handed.clear()
            self._problem = ''
        return True

    def _hand_over(self, bag: BagWriter, store: TopicStore) -> int:
        """Give the messages that came in since the last time to the writer; return how many."""
        connection = self._connections[store.name]
        count = 0
        for batch in store.unsaved():
            data = batch.buffer.data
            places = zip(
                batch.received.tolist(), batch.starts.tolist(), batch.sizes.tolist(), strict=True
            )
            for received, start, size in places:
                bag.write(connection, received, data[start:start + size])
            count += len(batch.received)
        return count

    def _closed(self, bag: BagWriter) -> None:
        try:
            bag.close()
        except OSError as error:
            self._problem = (
                f'{self.path}: all messages are on the disk, but the index could not be written '
                f'({error.strerror or error})'
            )


def _first(batch: Batch, count: int) -> Batch:
    rows = slice(0, count)
    return Batch(batch.received[rows], batch.buffer, batch.starts[rows], batch.sizes[rows])
