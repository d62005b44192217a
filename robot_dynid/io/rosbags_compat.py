"""Parts of rosbags that are used beyond its documented interface.

Written for rosbags 0.9.16 to 0.11: another version may move them, which a test notices.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rosbags.rosbag2 import Writer


class AppendOnly(Protocol):
    """Interface of the file that the mcap writer of rosbags writes to."""

    def write(self, data: bytes | memoryview) -> int:
        """Append."""

    def tell(self) -> int:
        """Return the length."""

    def close(self) -> None:
        """Close."""


class Checksums:
    """Puts the checksums, which the mcap writer of rosbags leaves out, into what it writes.

    Records come in pieces and are handed on whole. Source: MCAP format specification, version 0.
    """

    def __init__(self, file: AppendOnly, start: bytes) -> None:
        self._file = file
        self._record = bytearray()
        self._checksum = zlib.crc32(start)  # of the data section, then of the summary
        self._closed = False

    def write(self, data: bytes | memoryview) -> int:
        """Append; what is no whole record yet waits for the rest."""
        self._record += data
        size = 9 + int.from_bytes(self._record[1:9], 'little')
        if self._closed or (len(self._record) >= 9 and len(self._record) == size):
            self._checked()
            self._file.write(bytes(self._record))
            self._record.clear()
        return len(data)

    def _checked(self) -> None:
        """Fill in the checksum of a chunk without compression, of data_end or footer."""
        record, kind = self._record, self._record[0]
        if kind == 6 and record[37:41] == bytes(4):
            self._put(33, zlib.crc32(record[49:]))
        elif kind == 15:
            self._put(9, self._checksum)
        elif kind == 2 and not self._closed:
            self._put(25, zlib.crc32(record[:25], self._checksum))
            self._closed = True
        self._checksum = 0 if kind == 15 else zlib.crc32(record, self._checksum)

    def _put(self, place: int, checksum: int) -> None:
        self._record[place:place + 4] = checksum.to_bytes(4, 'little')

    def tell(self) -> int:
        """Return the length."""
        return self._file.tell() + len(self._record)

    def close(self) -> None:
        """Close."""
        self._file.close()


class StorageOf:
    """The storage plug-in of an open `rosbags.rosbag2.Writer`."""

    def __init__(self, writer: Writer) -> None:
        self._storage: Any = writer.storage

    @property
    def path(self) -> Path:
        """The file that holds the messages."""
        return Path(self._storage.path)

    def replace_file(self, make: Callable[[Path, bytes], AppendOnly]) -> None:
        """Close the file of an mcap writer; continue in what ``make`` opens of path and start.

        From then on every record has its checksum.
        """
        self._storage.bio.close()
        start = self.path.read_bytes()
        self._storage.bio = Checksums(make(self.path, start), start)

    def close_chunk(self) -> None:
        """Write the pending chunk of an mcap file, where it holds messages."""
        if self._storage.chunk.msgs:
            self._storage.close_chunk()

    def commit(self) -> None:
        """End the transaction of an sqlite3 file."""
        self._storage.conn.commit()


class _InMemory:
    """Stands for the path of the metadata of a `Writer`, which writes them at its close."""

    def __init__(self) -> None:
        self.text = StringIO()

    def with_suffix(self, suffix: str) -> _InMemory:
        """Return this place, whatever the suffix."""
        return self

    def write_text(self, text: str, *encoding: str) -> int:
        """Keep the text."""
        return self.text.write(text)

    def replace(self, target: object) -> object:
        """Leave it where it is."""
        return target

    @contextmanager
    def open(self, mode: str = 'w', encoding: str = 'utf8') -> Iterator[StringIO]:
        """Keep what is written."""
        yield self.text


def closed(writer: Writer) -> str:
    """Close a writer and its storage; return the text of its metadata, which is not written."""
    place = _InMemory()
    changed: Any = writer
    changed.metapath = place
    writer.close()
    return place.text.getvalue()
