"""Records live topics: callbacks append to memory, a thread brings everything to a bag on disk.

Scheme: every ``period`` the thread writes what came in since as one chunk of an mcap file and
waits until it is on the disk (fsync). An mcap file only ever grows at its end, and its data
section can be read without the index that is written at the close; so after a crash, a SIGKILL or
a power cut ``read_bag`` finds everything but the last ``period``. (sqlite3 would rewrite pages and
leave a journal behind.) Messages leave the memory only once they are on the disk: when it is full,
they stay, and the next period tries again, also after the recording was stopped.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.io.bag import Topics, log_from_topics
from robot_dynid.io.bag_writer import LOSSES, BagWriter
from robot_dynid.io.cdr import JOINT_STATE, WRENCH, Batch
from robot_dynid.io.joint_states import decode_topics
from robot_dynid.io.mcap import Contents, mcap_batches
from robot_dynid.ros.common.message_store import Memory, Statistics, TopicStore
from robot_dynid.types import RawLog

#: types of messages of which a snapshot is made
READ = (JOINT_STATE, WRENCH)
PERIOD = 0.25  # s between commits: a crash loses at most this much plus the time of one write
RETRY = 1.0  # s between attempts to bring the rest of an ended recording to the disk
PIECE = 16_000_000  # bytes handed to the writer at a time


class Recorder:
    """Records serialized messages of any number of topics into a new bag.

    Usage: ``store = recorder.add_topic('/joint_states', JOINT_STATE)``, and a raw subscription
    whose callback is ``store.append``. ``path`` None keeps everything in memory only. What the
    disk does not take fills ``memory``; beyond that, messages are not kept.

    Raises UsageError when ``path`` exists, DataError when it cannot be created.
    """

    def __init__(self, path: str | Path | None, period: float = PERIOD,
                 memory: Memory | None = None) -> None:
        self.path = None if path is None else Path(path)
        self._memory = memory or Memory()
        self._bag = None if path is None else BagWriter(path)
        self._file = None if self._bag is None else self._bag.storage_file
        self._period = period
        self._stores: dict[str, TopicStore] = {}
        self._connections: dict[str, int] = {}
        self._handed: dict[str, int] = {}  # counts that count once they are on the disk
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._stop = threading.Event()
        self._finished = threading.Event()
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
                self._stores[name] = TopicStore(
                    name, message_type, definition, self._memory)
            return self._stores[name]

    def note(self, key: str, value: str) -> None:
        """Put a text into the custom data of the bag."""
        if self._bag is not None:
            self._bag.note(key, value)

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
    def unsaved(self) -> int:
        """Number of messages that are in memory only."""
        return self.received - self.saved

    @property
    def finished(self) -> bool:
        """Whether the recording was stopped and all of it is on the disk."""
        return self._finished.is_set()

    @property
    def losses(self) -> tuple[str, ...]:
        """Sentences on messages that are not in the recording."""
        found = []
        for store in tuple(self._stores.values()):
            if store.lost:
                found.append(f'{store.lost} messages of {store.name} were sent while recording '
                             'and never came in: the computer or the network was too busy')
            if store.refused:
                found.append(f'{store.refused} messages of {store.name} are lost: the disk did '
                             f'not take them, and {self._memory.size / 1e6:.0f} MB of memory for '
                             'such messages were full')
        return tuple(found)

    @property
    def findings(self) -> tuple[str, ...]:
        """Failures of the disk, by which no received message is lost yet, and losses."""
        problem, waiting = self._problem, self.unsaved
        if problem and waiting:
            problem = (f'{problem}; {waiting} messages are kept in memory only: make room on '
                       'that disk; writing is tried again all the time, until the node ends')
        return (*((problem,) if problem else ()), *self.losses)

    def snapshot(
        self, joints: tuple[str, ...] | None = None, topics: Topics | None = None
    ) -> RawLog:
        """Return the messages recorded so far, without disturbing the recording.

        Raises DataError when nothing usable was received yet.
        """
        contents = Contents(findings=list(self.findings))
        with self._lock:
            contents.topics = {s.name: s.kind for s in self._stores.values()}
            stores = [s for s in self._stores.values() if s.kind in READ]
            dropped = {store.name: store.dropped.count for store in stores}
            memory = {s.name: [block.batch() for block in tuple(s.blocks)] for s in stores}
        source = 'the recording' if self.path is None else str(self.path)
        decoded = decode_topics(self._all(dropped, memory), contents.topics)
        return log_from_topics(source, decoded, joints, topics, contents)

    def _all(
        self, dropped: dict[str, int], memory: dict[str, list[Batch]]
    ) -> Iterator[tuple[str, Batch]]:
        """Yield the messages on disk, then those in memory."""
        left = dict(dropped)
        if self._file is not None and any(left.values()):
            for name, batch in mcap_batches(self._file, READ, Contents()):
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
        """End the recording, write the rest, close the bag and return the findings.

        What the disk does not take stays in memory and is tried again in the background, or by
        another call. ``snapshot`` still works.
        """
        self._stop.set()
        self._finish()
        return self.findings

    def discard(self) -> None:
        """End the recording, forget its messages, and remove the bag."""
        self._stop.set()
        with self._writing:
            self._finished.set()
            if self._bag is not None:
                self._bag.remove()
        with self._lock:
            for store in self._stores.values():
                store.saved = store.count
                store.release()

    def rescue(self, folder: Path) -> Path | None:
        """Write the messages in memory only into a new bag below ``folder``; None: impossible."""
        assert self.path is not None
        path = folder / f'{self.path.name}_rest'
        with self._writing:
            try:
                with BagWriter(path) as bag:
                    for store in self._stores.values():
                        topic = bag.add_topic(store.name, store.kind, store.definition)
                        for batch in store.unsaved():
                            _write(bag, topic, batch)
                            bag.commit()
            except UsageError:  # something is there already, and stays
                return None
            except (OSError, DynIdError):
                shutil.rmtree(path, ignore_errors=True)
                return None
        return path

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
            with self._writing:
                self._save(self._bag)
        while not self._finished.wait(RETRY):
            self._finish()

    def _finish(self) -> None:
        """Write the rest and close the bag, as far as the disk takes it."""
        with self._writing:
            if self.finished:
                return
            bag = self._bag
            if bag is None or ((not self.unsaved or self._save(bag)) and self._closed(bag)):
                self._finished.set()

    def _save(self, bag: BagWriter) -> bool:
        """Bring all messages to the disk; on failure they stay in memory for the next time."""
        more = True
        while more:
            try:
                more = self._save_piece(bag)
            except OSError as error:
                self._problem = f'{self.path}: cannot be written: {error.strerror or error}'
                return False
            except Exception as error:  # a dead thread would go unseen
                self._problem = f'{self.path}: cannot be written: {error!r}'
                return False
        self._problem = ''
        return True

    def _save_piece(self, bag: BagWriter) -> bool:
        """Bring a PIECE to the disk; return whether there is more. Raises OSError."""
        with self._lock:
            more = bool(self._handed)  # the last hand-over must reach the disk first
            if not more:
                left = PIECE
                for store in self._stores.values():
                    left = self._hand_over(bag, store, left)
                more = left <= 0
                bag.seal()
        bag.sync()  # without the lock: the disk must not hold up snapshots and statistics
        with self._lock:
            for name, count in self._handed.items():
                self._stores[name].saved = count
                self._stores[name].release()
            self._handed.clear()
        return more

    def _hand_over(self, bag: BagWriter, store: TopicStore, left: int) -> int:
        """Give messages that came in since to the writer; return how many bytes are ``left``."""
        self._handed[store.name] = store.saved
        if left > 0:
            for batch in store.unsaved():
                _write(bag, self._connections[store.name], batch)
                self._handed[store.name] += len(batch.received)
                left -= int(batch.sizes.sum())
                if left <= 0:
                    break
        return left

    def _closed(self, bag: BagWriter) -> bool:
        """Close the bag; return whether the disk took its index."""
        if self.losses:
            bag.note(LOSSES, '; '.join(self.losses))
        try:
            bag.close()
        except (OSError, DynIdError) as error:
            self._problem = (
                f'{self.path}: all messages are on the disk, but the index could not be written '
                f'({getattr(error, "strerror", None) or error}): make room on that disk'
            )
            return False
        self._problem = ''
        return True


def _write(bag: BagWriter, topic: int, batch: Batch) -> None:
    data = batch.buffer.data
    places = zip(
        batch.received.tolist(), batch.starts.tolist(), batch.sizes.tolist(), strict=True
    )
    for received, start, size in places:
        bag.write(topic, received, data[start:start + size])


def _first(batch: Batch, count: int) -> Batch:
    rows = slice(0, count)
    return Batch(batch.received[rows], batch.buffer, batch.starts[rows], batch.sizes[rows])
