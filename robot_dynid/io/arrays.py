"""Long recordings as NumPy files that are mapped, not read: a folder with one file per channel."""

from __future__ import annotations

import math
import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import open_regular
from robot_dynid.signals.parts import HEAD, Parts
from robot_dynid.types import CHANNELS, FloatArray, RawLog

PART_SECONDS = 60.0
#: longest header of a file [bytes]
HEADER_BYTES = 1000
#: bytes of the length of a header, and its reader, by the version of the format
READERS: dict[tuple[int, int], tuple[int, Any]] = {
    (1, 0): (2, npy.read_array_header_1_0), (2, 0): (4, npy.read_array_header_2_0)}


@dataclass(frozen=True, eq=False)
class MappedLog:
    """A recording of ``samples`` rows in the files of a folder; see StoredRecording.

    Every stretch is read from files that are mapped anew, so memory is given back with it.
    ``channels`` are the names of the files present besides time.npy.
    """

    folder: Path
    joints: tuple[str, ...]
    channels: tuple[str, ...]
    samples: int
    findings: tuple[str, ...] = ()

    @property
    def source(self) -> str:
        """The folder."""
        return str(self.folder)

    def __len__(self) -> int:
        return self.samples

    def read(self, start: int, stop: int) -> RawLog:
        """Return the rows from ``start`` to before ``stop``."""
        rows = slice(start, stop)
        found: dict[str, Any] = {name: _mapped(self.folder, name)[rows]
                                 for name in ('time', *self.channels)}
        return RawLog(str(self.folder), self.joints, **found)


def map_arrays(
    folder: str | Path, joints: tuple[str, ...], seconds: float = PART_SECONDS
) -> Parts:
    """Open time.npy (T,) s and position.npy, velocity.npy, effort.npy, ... (T, n) of a folder.

    The columns are in the order of ``joints``; all but time and position may be absent; parts are
    ``seconds`` long. Raises DataError when a file is missing, damaged or of the wrong shape.
    """
    place = Path(folder)
    present = tuple(c for c in CHANNELS if c == 'position' or os.path.lexists(place / f'{c}.npy'))
    time = _mapped(place, 'time')
    if time.ndim != 1 or len(time) < 2:
        raise DataError(f'{place}/time.npy: has shape {time.shape}, expected (T,) with T > 1')
    for name in present:
        shape = _mapped(place, name).shape
        if shape != (len(time), len(joints)):
            raise DataError(f'{place}/{name}.npy: has shape {shape}, expected {len(time)} stamps '
                            f'and {len(joints)} joints')
    with np.errstate(invalid='ignore', over='ignore'):  # damaged stamps are data here
        step = float(np.median(np.diff(time[:HEAD])))
    if not 0.0 < step < math.inf:
        raise DataError(f'{place}/time.npy: the stamps do not increase')
    rows = round(min(max(seconds / step, 2.0), len(time)))
    return Parts((MappedLog(place, joints, present, len(time)),), rows, rows)


def _mapped(folder: Path, name: str) -> FloatArray:
    path = folder / f'{name}.npy'
    if not os.path.lexists(path):
        raise DataError(f'{path}: no such file')
    with open_regular(path, DataError) as file:
        try:
            version = npy.read_magic(file)
            if version not in READERS:
                raise ValueError(f'version {version} of the format')
            digits, reader = READERS[version]
            length = int.from_bytes(file.read(digits), 'little')
            if length > HEADER_BYTES:  # NumPy itself looks from 1.24 on only
                raise ValueError(f'a header of {length} bytes')
            file.seek(-digits, os.SEEK_CUR)
            with warnings.catch_warnings():
                warnings.simplefilter('error')  # headers of Python 2
                shape, by_column, dtype = reader(file)
        except Exception as error:  # the header is Python source: many kinds of errors
            raise DataError(f'{path}: is no readable NumPy file: {clipped(str(error), 200)}'
                            ) from None
        start, size = file.tell(), os.fstat(file.fileno()).st_size
        if dtype != np.float64:
            raise DataError(f'{path}: holds {clipped(str(dtype))}, expected float64')
        if not all(isinstance(n, int) and n >= 0 for n in shape) or \
                start + dtype.itemsize * math.prod(shape) != size:
            raise DataError(f'{path}: its {size} bytes do not hold shape {clipped(str(shape))}; '
                            'it is cut off or damaged')
        if not math.prod(shape):
            return np.empty(shape)
        return np.asarray(np.memmap(file, dtype, 'r', start, shape, 'F' if by_column else 'C'))
