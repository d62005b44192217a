"""Records live topics: callbacks append to memory, a thread writes everything to a bag on disk.

Every ``period`` the thread writes the new messages as one chunk of an mcap file and waits until it
is on the disk (fsync). An mcap file only grows at its end, and its data section can be read
without the index that is written at the close; so after a crash, a SIGKILL or a power cut
``read_bag`` recovers everything but the last ``period``. (sqlite3 would rewrite pages and leave a
journal.) Messages leave the memory only once they are on the disk: if it is full, they stay, and
the next period tries again, also after the end of the recording.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.io.bag import Topics, decode_topics, log_from_topics
from robot_dynid.io.bag_writer import LOSSES, BagWriter
from robot_dynid.io.cdr import JOINT_STATE, WRENCH, Batch
from robot_dynid.io.mcap import Contents, mcap_batches
from robot_dynid.types import RawLog

#: types of messages of which a snapshot is made
READ = (JOINT_STATE, WRENCH)
#: s between commits: a crash loses at most this plus the time of one write
COMMIT_PERIOD = 0.25
RETRY = 1.0  # s between attempts to write the rest of an ended recording
WRITTEN_BYTES = 16_000_000  # bytes handed to the writer at a time
#: for messages that the disk cannot store yet: half an hour of 14 joints at 1 kHz
MEMORY = 1_000_000_000  # bytes
OBJECTS = 100  # bytes of Python's overhead per message

#: time in ns and data of a message
Message = tuple[int, bytes]


class Memory:
    """Memory of ``size`` [bytes] that recordings share, including ended ones."""

    def __init__(self, size: int = MEMORY) -> None:
        self.size = size
        self._used, self._lock = 0, threading.Lock()

    def take(self, size: int) -> bool:
        """Reserve so many bytes; return False, and reserve nothing, if fewer are left."""
        with self._lock:
            fits = self._used + size <= self.size
            self._used += size if fits else 0
        return fits

    def give_back(self, size: int) -> None:
        """Release reserved bytes."""
        with self._lock:
            self._used -= size


class TopicStore:
    """The messages of one topic; ``append`` is the only work of a subscription callback.

    One thread appends, another saves and releases. ``count`` messages were received; the first
    ``saved`` are on disk; the first ``released`` are on disk only. Once ``memory`` is full,
    further messages are ``refused``; ``lost`` ones were sent, as far as can be known, but not
    received; they were not sent again if the publisher is ``best_effort``.
    """

    def __init__(self, name: str, kind: str, definition: str = '', memory: Memory | None = None
                 ) -> None:
        self.name, self.kind, self.definition = name, kind, definition
        self.refused = self.lost = self.saved = self.released = 0
        self.best_effort = False
        self._memory = memory or Memory()
        self._received, self._data = list[int](), list[bytes]()

    def append(self, data: bytes, received: int | None = None) -> None:
        """Take one serialized message; ``received`` in ns since the epoch (None: now)."""
        if not self._memory.take(len(data) + OBJECTS):
            self.refused += 1
            return
        self._received.append(time.time_ns() if received is None else received)
        self._data.append(data)  # last: it is counted then

    @property
    def count(self) -> int:
        """Number of messages received."""
        return self.released + len(self._data)

    def in_memory(self) -> list[Message]:
        """Return the messages in memory."""
        return list(zip(self._received, self._data))

    def unsaved(self) -> Iterator[Message]:
        """Yield the messages not yet on disk."""
        for k in range(self.saved - self.released, len(self._data)):
            yield self._received[k], self._data[k]

    def release(self) -> None:
        """Remove the messages that are on disk from memory."""
        count = self.saved - self.released
        self._memory.give_back(sum(map(len, self._data[:count])) + count * OBJECTS)
        self.released = self.saved
        del self._received[:count]
        del self._data[:count]


def batch_of(messages: Iterable[Message]) -> Batch:
    """Return messages in the form of the bag readers."""
    received, data = zip(*messages)
    sizes = np.array([len(one) for one in data], dtype=np.int64)
    return Batch(np.array(received, dtype=np.int64), np.frombuffer(b''.join(data), np.uint8),
                 np.cumsum(sizes) - sizes, sizes)


class Recorder:
    """Records serialized messages of any number of topics into a new bag at ``path``.

    Usage: ``store = recorder.add_topic('/joint_states', JOINT_STATE)``, and a raw subscription
    whose callback is ``store.append``. Messages that the disk cannot store fill ``memory``; beyond
    that they are refused. Raises UsageError if ``path`` exists, DataError if it cannot be created.
    """

    def __init__(self, path: str | Path, period: float = COMMIT_PERIOD,
                 memory: Memory | None = None) -> None:
        self.path = Path(path)
        self._memory, self._period = memory or Memory(), period
        self._bag = BagWriter(path)
        #: the growing file on the disk, which can be read at any time
        self.storage_file = self._bag.storage_file
        self._stores: dict[str, TopicStore] = {}
        self._connections: dict[str, int] = {}
        self._handed: dict[str, int] = {}  # counts that are valid once they are on the disk
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._stop, self._finished = threading.Event(), threading.Event()
        self._problem = ''
        threading.Thread(target=self._run, name='recorder', daemon=True).start()

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
                self._connections[name] = self._bag.add_topic(name, message_type, definition)
                self._stores[name] = TopicStore(name, message_type, definition, self._memory)
            return self._stores[name]

    def note(self, key: str, value: str) -> None:
        """Put a text into the custom data of the bag."""
        self._bag.note(key, value)

    @property
    def counts(self) -> dict[str, int]:
        """Number of messages so far, by topic."""
        with self._lock:
            return {name: store.count for name, store in self._stores.items()}

    @property
    def received(self) -> int:
        """Number of messages of all topics so far."""
        return sum(self.counts.values())

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
        """Whether the recording was stopped and is complete on the disk."""
        return self._finished.is_set()

    @property
    def losses(self) -> tuple[str, ...]:
        """Sentences about messages missing from the recording."""
        texts = []
        for store in tuple(self._stores.values()):
            if store.lost:
                why = ('it is published as best effort, so they were not sent again'
                       if store.best_effort else 'the computer or the network was too busy')
                texts.append(f'{store.lost} messages of {store.name} were lost while recording: '
                             f'{why}')
            if store.refused:
                texts.append(f'{store.refused} messages of {store.name} are lost: the disk could '
                             f'not store them, and the buffer of {self._memory.size / 1e6:.0f} MB '
                             'was full')
        return tuple(texts)

    @property
    def intact(self) -> bool:
        """Whether only messages of best-effort publishers are missing."""
        return not self._problem and not any(
            store.refused or (store.lost and not store.best_effort)
            for store in tuple(self._stores.values()))

    @property
    def findings(self) -> tuple[str, ...]:
        """Failures of the disk, by which no received message is lost yet, and losses."""
        problem, waiting = self._problem, self.unsaved
        if problem and waiting:
            problem = (f'{problem}; {waiting} messages are kept in memory only: free space on '
                       'that disk; writing is retried until the node ends')
        return (*((problem,) if problem else ()), *self.losses)

    def snapshot(
        self, joints: tuple[str, ...] | None = None, topics: Topics | None = None
    ) -> RawLog:
        """Return the messages recorded so far, without disturbing the recording.

        Raises DataError if nothing usable was received yet.
        """
        contents = Contents(findings=list(self.findings))
        with self._lock:
            contents.topics = {s.name: s.kind for s in self._stores.values()}
            stores = [s for s in self._stores.values() if s.kind in READ]
            on_disk = {store.name: store.released for store in stores}
            memory = {store.name: store.in_memory() for store in stores}
        decoded = decode_topics(self._all(on_disk, memory), contents)
        return log_from_topics(str(self.path), decoded, joints, topics, contents)

    def _all(self, on_disk: dict[str, int], memory: dict[str, list[Message]]
             ) -> Iterator[tuple[str, Batch]]:
        """Yield the messages released to the disk, by topic, then those in memory."""
        left = {name: count for name, count in on_disk.items() if count}
        for name, batch in mcap_batches(self.storage_file, READ, Contents()) if left else ():
            rows = slice(0, left.get(name, 0))
            part = Batch(batch.received[rows], batch.buffer, batch.starts[rows], batch.sizes[rows])
            left[name] = left.get(name, 0) - len(part.received)
            yield name, part
            if not any(left.values()):
                break
        yield from ((name, batch_of(messages)) for name, messages in memory.items() if messages)

    def stop(self) -> tuple[str, ...]:
        """End the recording, write the rest, close the bag and return the findings.

        Messages that the disk cannot store stay in memory, and writing is retried in the
        background, or by another call. ``snapshot`` still works.
        """
        self._stop.set()
        self._finish()
        return self.findings

    def discard(self) -> None:
        """End the recording, discard its messages, and remove the bag."""
        self._stop.set()
        with self._writing:
            self._finished.set()
            self._bag.remove()
        with self._lock:
            for store in self._stores.values():
                store.saved = store.count
                store.release()

    def rescue(self, folder: Path) -> Path | None:
        """Write the messages in memory only into a new bag below ``folder``; None if that fails.
        """
        path = folder / f'{self.path.name}_rest'
        with self._writing:
            try:
                with BagWriter(path) as bag:
                    for store in self._stores.values():
                        topic = bag.add_topic(store.name, store.kind, store.definition)
                        for received, data in store.unsaved():
                            bag.write(topic, received, data)
                        bag.commit()
            except UsageError:  # something is there already, and stays
                return None
            except (OSError, DynIdError):
                shutil.rmtree(path, ignore_errors=True)
                return None
        return path

    def _run(self) -> None:
        while not self._stop.wait(self._period):
            with self._writing:
                self._save()
        while not self._finished.wait(RETRY):
            self._finish()

    def _finish(self) -> None:
        """Write the rest and close the bag, as far as the disk allows."""
        with self._writing:
            if not self.finished and (not self.unsaved or self._save()) and self._close():
                self._finished.set()

    def _save(self) -> bool:
        """Bring all messages to the disk; on failure they stay in memory for the next time."""
        more = True
        while more:
            try:
                more = self._save_piece()
            except Exception as error:  # a dead thread would not be noticed
                reason = (error.strerror or error) if isinstance(error, OSError) else repr(error)
                self._problem = f'{self.path}: cannot be written: {reason}'
                return False
        self._problem = ''
        return True

    def _save_piece(self) -> bool:
        """Write WRITTEN_BYTES to the disk; return whether there is more. Raises OSError."""
        with self._lock:
            more = bool(self._handed)  # the last hand-over must reach the disk first
            if not more:
                left = WRITTEN_BYTES
                for store in self._stores.values():
                    left = self._hand_over(store, left)
                more = left <= 0
                self._bag.seal()
        self._bag.sync()  # without the lock: the disk must not block snapshots and statistics
        with self._lock:
            for name, count in self._handed.items():
                self._stores[name].saved = count
                self._stores[name].release()
            self._handed.clear()
        return more

    def _hand_over(self, store: TopicStore, left: int) -> int:
        """Pass new messages to the writer; return how many bytes are ``left``."""
        self._handed[store.name] = store.saved
        for received, data in store.unsaved() if left > 0 else ():
            self._bag.write(self._connections[store.name], received, data)
            self._handed[store.name] += 1
            left -= len(data)
            if left <= 0:
                break
        return left

    def _close(self) -> bool:
        """Close the bag; return whether its index was written."""
        if self.losses:
            self._bag.note(LOSSES, '; '.join(self.losses))
        try:
            self._bag.close()
        except (OSError, DynIdError) as error:
            self._problem = (
                f'{self.path}: all messages are on the disk, but the index could not be written '
                f"({getattr(error, 'strerror', None) or error}): free space on that disk"
            )
            return False
        self._problem = ''
        return True
