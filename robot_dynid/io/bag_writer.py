"""Writing rosbag2 folders, piece by piece so that a crash loses only the last piece."""

from __future__ import annotations

import os
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from robot_dynid.errors import DataError, DynIdError, UsageError
from robot_dynid.files import atomic_write
from robot_dynid.io.digest import DIGEST, TopicDigest
from robot_dynid.io.rosbags_compat import StorageOf, closed

if TYPE_CHECKING:
    from rosbags.interfaces import Connection

STORAGES = ('mcap', 'sqlite3')
#: key of a bag's custom data whose value says which messages are missing
LOSSES = 'lost_messages'


class Spool:
    """Append-only file whose appends either reach the disk whole or stay in memory.

    The storage writer of rosbags writes into memory; ``commit`` moves that to the disk and waits
    for it. When the disk is full the file is cut back to its last good byte and nothing is lost:
    the next ``commit`` tries again.
    """

    def __init__(self, path: Path, start: bytes) -> None:
        self._file = path.open('r+b', buffering=0)
        self._file.truncate(0)
        self._pending = BytesIO()
        self._pending.write(start)
        self.committed = 0

    def write(self, data: bytes | memoryview) -> int:
        """Append to memory."""
        return self._pending.write(data)

    def tell(self) -> int:
        """Return the length of the file once all is committed."""
        return self.committed + self._pending.tell()

    def commit(self) -> None:
        """Bring everything to the disk. Raises OSError when it does not fit."""
        data = self._pending.getbuffer()
        try:
            done = 0
            while done < len(data):
                done += os.pwrite(self._file.fileno(), data[done:], self.committed + done)
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self.committed)
            raise
        finally:
            size = len(data)
            data.release()
        self.committed += size
        self._pending = BytesIO()

    def close(self) -> None:
        """Do nothing: rosbags cannot try again; `end` does."""

    def end(self) -> None:
        """Commit and close; once it did, nothing more. Raises OSError when it does not fit."""
        if not self._file.closed:
            self.commit()
            self._file.close()


class BagWriter:
    """Writes raw CDR messages into a new bag folder; use as a context manager.

    ``storage`` is 'mcap' (append-only: after a crash everything committed can be read) or
    'sqlite3'. ``commit`` makes durable what was written so far.

    Raises UsageError for an unknown storage or a path that exists, DataError when the folder
    cannot be made.
    """

    def __init__(self, path: str | Path, storage: str = 'mcap') -> None:
        from rosbags.rosbag2 import StoragePlugin, Writer, WriterError
        from rosbags.typesys import Stores, get_typestore

        self.path = Path(path)
        if storage not in STORAGES:
            raise UsageError(f'storage {storage!r}: choose one of {", ".join(STORAGES)}')
        if os.path.lexists(self.path):
            raise UsageError(f'{path}: exists already; bags are not overwritten')
        self._metadata: str | None = None
        self._types = get_typestore(Stores.ROS2_HUMBLE)
        self._writer = Writer(
            self.path, version=9, storage_plugin=StoragePlugin[storage.upper()]
        )
        try:
            self._writer.open()  # makes the folder, and fails where anything has its name
            self._storage = StorageOf(self._writer)
            self._spool: Spool | None = None
            self._digests: dict[str, TopicDigest] = {}
            if storage == 'mcap':
                self._storage.replace_file(self._spooled)
        except WriterError:  # another one was faster
            raise UsageError(f'{path}: exists already; bags are not overwritten') from None
        except OSError as error:
            raise DataError(f'{path}: cannot be created: {error.strerror or error}') from None

    def _spooled(self, path: Path, start: bytes) -> Spool:
        """Return the spool that takes the place of the file of rosbags' mcap writer."""
        self._spool = Spool(path, start)
        self._spool.commit()
        return self._spool

    def add_topic(self, name: str, message_type: str, definition: str = '') -> Connection:
        """Announce a topic, with the text of its type where rosbags may not know it.

        Raises UsageError for an unknown type without a definition.
        """
        from rosbags.typesys import get_types_from_msg

        if message_type not in self._types.fielddefs and definition:
            self._types.register(get_types_from_msg(definition, message_type))
        if message_type not in self._types.fielddefs:
            raise UsageError(f'topic {name}: no definition of message type {message_type} at hand')
        return self._writer.add_connection(name, message_type, typestore=self._types)

    def write(self, topic: Connection, received: int, data: bytes | memoryview) -> None:
        """Append one message; ``received`` in ns."""
        self._writer.write(topic, received, data)
        if self._spool is None:
            self._digests.setdefault(topic.topic, TopicDigest()).add(received, data)

    def commit(self) -> None:
        """Make everything written so far durable. Raises OSError when the disk is full."""
        self.seal()
        self.sync()

    def seal(self) -> None:
        """End the piece in memory that the next ``sync`` brings to the disk."""
        if self._spool is not None:
            self._storage.close_chunk()

    def sync(self) -> None:
        """Bring sealed pieces to the disk; others may write meanwhile. Raises OSError."""
        if self._spool is None:
            self._storage.commit()
        else:
            self._spool.commit()

    @property
    def storage_file(self) -> Path:
        """The file that holds the messages."""
        return self._storage.path

    def note(self, key: str, value: str) -> None:
        """Put a text into the custom data of the bag."""
        self._writer.set_custom_data(key, value)

    def close(self) -> None:
        """Write index and metadata and close.

        Raises OSError or DynIdError when the disk is full; call it again then.
        """
        if self._metadata is None:
            self.commit()
            for name, digest in self._digests.items():
                self._writer.set_custom_data(DIGEST + name, digest.hex)
            self._metadata = closed(self._writer)
        if self._spool is not None:
            self._spool.end()
        atomic_write(self.path / 'metadata.yaml', self._metadata)

    def remove(self) -> None:
        """Close, and remove the files of the bag and its folder, if nothing else is in it."""
        with suppress(OSError, DynIdError):
            self.close()
        for path in (self.storage_file, self.path / 'metadata.yaml'):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def __enter__(self) -> BagWriter:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close, also after an error: what was written stays."""
        self.close()
