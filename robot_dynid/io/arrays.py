"""Long recordings as NumPy files that are mapped, not read: a folder with one file per channel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast, overload

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.types import CHANNELS, FloatArray, RawLog

PART_SECONDS = 60.0
#: stamps read to find out the typical step
HEAD = 10_000


@dataclass(frozen=True, eq=False)
class ArrayLogs(Sequence[RawLog]):
    """A recording of any length as recordings of ``rows`` samples, mapped when they are asked for.

    Every part maps the files anew, so memory is given back with it. ``channels`` are the names of
    the files present besides time.npy.
    """

    folder: Path
    joints: tuple[str, ...]
    channels: tuple[str, ...]
    samples: int
    rows: int

    @property
    def sources(self) -> tuple[str, ...]:
        """Sources of the data; one entry for all parts."""
        return (str(self.folder),)

    def __len__(self) -> int:
        return (self.samples + self.rows - 1) // self.rows

    @overload
    def __getitem__(self, index: int) -> RawLog: ...

    @overload
    def __getitem__(self, index: slice) -> list[RawLog]: ...

    def __getitem__(self, index: int | slice) -> RawLog | list[RawLog]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(index)
        part = slice(number * self.rows, min((number + 1) * self.rows, self.samples))
        log = RawLog(f'{self.folder}[{number}]', self.joints, _mapped(self.folder, 'time')[part],
                     _mapped(self.folder, 'position')[part])
        others = {name: _mapped(self.folder, name)[part] for name in self.channels[1:]}
        return replace(log, **cast('dict[str, Any]', others))


def map_arrays(
    folder: str | Path, joints: tuple[str, ...], seconds: float = PART_SECONDS
) -> ArrayLogs:
    """Open time.npy (T,) s and position.npy, velocity.npy, effort.npy, ... (T, n) of a folder.

    The columns are in the order of ``joints``; all but time and position may be absent; parts are
    ``seconds`` long. Raises DataError when a file is missing, damaged or of the wrong shape.
    """
    place = Path(folder)
    present = tuple(c for c in CHANNELS if c == 'position' or (place / f'{c}.npy').exists())
    time = _mapped(place, 'time')
    if time.ndim != 1 or len(time) < 2:
        raise DataError(f'{place}/time.npy: has shape {time.shape}, expected (T,) with T > 1')
    for name in present:
        shape = _mapped(place, name).shape
        if shape != (len(time), len(joints)):
            raise DataError(f'{place}/{name}.npy: has shape {shape}, expected {len(time)} stamps '
                            f'and {len(joints)} joints')
    step = float(np.median(np.diff(time[:HEAD])))
    if not step > 0.0:
        raise DataError(f'{place}/time.npy: the stamps do not increase')
    rows = max(round(seconds / step), 2)
    return ArrayLogs(place, joints, present, len(time), rows)


def _mapped(folder: Path, name: str) -> FloatArray:
    path = folder / f'{name}.npy'
    try:
        array = np.load(path, mmap_mode='r', allow_pickle=False)
    except FileNotFoundError:
        raise DataError(f'{path}: no such file') from None
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f'{path}: is no readable NumPy file: {error}') from None
    if array.dtype != np.float64:
        raise DataError(f'{path}: holds {array.dtype}, expected float64')
    return np.asarray(array)
