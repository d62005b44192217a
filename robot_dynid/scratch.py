"""Scratch space on disk: arrays in a temporary file that vanishes with the process."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.files import open_regular

#: bytes that are left free on the disk
SPARE = 200_000_000


class NoRoom(DataError):
    """The disk has no room for temporary data."""


@dataclass(frozen=True)
class Kept:
    """Place of an array in the file."""

    offset: int
    shape: tuple[int, ...]
    dtype: str


class Scratch:
    """Arrays that are not in memory: a file without a name in the folder for temporary files.

    What is read is a copy, so no memory stays mapped. Safe for use by several threads. Another
    process of this machine that is sent one opens the same file, to read from it.
    """

    def __init__(self) -> None:
        self._file: Any = None
        self._size = 0
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        own = None if self._file is None else f'/proc/{os.getpid()}/fd/{self._file.fileno()}'
        return {'file': own, 'size': self._size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._file = None if state['file'] is None else _opened(state['file'])
        self._size, self._lock = state['size'], threading.Lock()

    def put(self, array: NDArray[Any]) -> Kept:
        """Write an array (N, ...); raises NoRoom when the disk is full, with the folder."""
        data = np.ascontiguousarray(array)
        with self._lock:
            self._require(data.nbytes)
            offset, self._size = self._size, self._size + data.nbytes
        view, done = data.reshape(-1).view(np.uint8).data, 0
        try:
            while done < len(view):
                done += os.pwrite(self._file.fileno(), view[done:], offset + done)
        except OSError as error:
            raise _full(data.nbytes, error.strerror or str(error)) from None
        return Kept(offset, data.shape, data.dtype.str)

    def get(self, kept: Kept, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return the rows from ``start`` to before ``stop``, (N, ...), of an array."""
        begin, end, _ = slice(start, stop).indices(kept.shape[0])
        shape = (max(end - begin, 0), *kept.shape[1:])
        out = np.empty(shape, np.dtype(kept.dtype))
        row = out.itemsize * int(np.prod(kept.shape[1:], dtype=np.int64))
        view, done = out.reshape(-1).view(np.uint8).data, 0
        while done < len(view):
            got = os.preadv(self._file.fileno(), [view[done:]], kept.offset + begin * row + done)
            if not got:
                raise DataError('the temporary file was cut off by another program')
            done += got
        return out

    def _require(self, size: int) -> None:
        """Open the file and raise NoRoom where it has no room for ``size`` bytes more."""
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(  # noqa: SIM115 - lives as long as self
                    prefix='robot_dynid_', buffering=0)
            free = shutil.disk_usage(tempfile.gettempdir()).free
        except OSError as error:
            raise _full(size, error.strerror or str(error)) from None
        if free < size + SPARE:
            raise _full(size, 'the disk is full')


#: files of other processes that this one reads from, by device and number
_others: dict[tuple[int, int], Any] = {}


def _opened(path: str) -> Any:
    """Open the file of another process, which then lasts as long as this one."""
    file = open_regular(path, DataError)
    status = os.fstat(file.fileno())
    known = _others.setdefault((status.st_dev, status.st_ino), file)
    if known is not file:
        file.close()
    return known


@cache
def process_scratch() -> Scratch:
    """Return the scratch space of this process, for what others read from."""
    return Scratch()


def _full(size: int, reason: str) -> NoRoom:
    return NoRoom(
        f'{tempfile.gettempdir()}: no room for {size / 1e6:.3g} MB more of temporary data of long '
        f'recordings ({reason}); make room, or set TMPDIR to a folder on a larger disk')
