"""Parts of rosbags that are used beyond its documented interface.

Written for rosbags 0.9.16 to 0.11: another version may move them, which `missing_parts` reports.
"""

from __future__ import annotations

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


class StorageOf:
    """The storage plug-in of an open `rosbags.rosbag2.Writer`."""

    def __init__(self, writer: Writer) -> None:
        self._storage: Any = writer.storage

    @property
    def path(self) -> Path:
        """The file that holds the messages."""
        return Path(self._storage.path)

    def replace_file(self, make: Callable[[Path, bytes], AppendOnly]) -> None:
        """Close the file of an mcap writer; continue in what ``make`` opens of path and start."""
        self._storage.bio.close()
        self._storage.bio = make(self.path, self.path.read_bytes())

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
        """Return the same place."""
        return self

    def write_text(self, text: str, *encoding: str) -> int:
        """Keep the text."""
        return self.text.write(text)

    def replace(self, target: object) -> object:
        """Leave it where it is."""
        return target

    @contextmanager
    def open(self, *mode: str, **options: str) -> Iterator[StringIO]:
        """Keep what is written."""
        yield self.text


def closed(writer: Writer) -> str:
    """Close a writer and its storage; return the text of its metadata, which is not written."""
    place = _InMemory()
    changed: Any = writer
    changed.metapath = place
    writer.close()
    return place.text.getvalue()


def decompressors() -> dict[str, Callable[[bytes, int], bytes]]:
    """Return functions of data and size by the names of mcap's compressions."""
    from rosbags.rosbag2 import storage_mcap  # takes a tenth of a second, and only bags need it

    return dict(storage_mcap.DECOMPRESSORS)


def missing_parts(folder: Path) -> list[str]:
    """Return the parts above that the installed rosbags lacks; writes two bags into ``folder``."""
    from importlib.metadata import version

    from rosbags.rosbag2 import StoragePlugin, Writer, storage_mcap

    wanted = {'MCAP': ('path', 'bio', 'chunk', 'close_chunk'), 'SQLITE3': ('path', 'conn')}
    missing = [] if hasattr(storage_mcap, 'DECOMPRESSORS') else ['storage_mcap.DECOMPRESSORS']
    for plugin, names in wanted.items():
        with Writer(folder / plugin, version=9, storage_plugin=StoragePlugin[plugin]) as writer:
            storage: Any = getattr(writer, 'storage', None)
            missing += [f'{plugin} storage.{name}' for name in names if not hasattr(storage, name)]
            if plugin == 'MCAP' and not hasattr(getattr(storage, 'chunk', None), 'msgs'):
                missing.append('MCAP storage.chunk.msgs')
        writer = Writer(folder / f'{plugin}_text', version=9, storage_plugin=StoragePlugin[plugin])
        writer.open()
        if 'rosbag2_bagfile_information' not in closed(writer):
            missing.append('Writer.metapath')
    return [f'rosbags {version("rosbags")} has no {name}' for name in missing]
