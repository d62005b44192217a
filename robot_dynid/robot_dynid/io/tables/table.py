"""A table of numbers and its layout, independent of the file type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.types import FloatArray

#: limits of columns, and of nested structures
COLUMNS, DEPTH = 5000, 8
#: returns the rows (T, n) of a table piece by piece, one at least; takes how columns with text are
#: read, by their number
RowsOf = Callable[[Mapping[int, str]], Iterator[FloatArray]]


@dataclass(frozen=True)
class Layout:
    """Names, units and first row of the columns of a table.

    ``columns`` are names, or numbers from 1 if the file has none (``numbered``); ``units`` are
    those of a row of units, '' for none; ``text`` is the first cell of columns with text, None for
    numbers; ``sample`` the cells of the first row, () unless text. ``form`` describes an unusual
    format.
    """

    source: str
    columns: tuple[str, ...]
    units: tuple[str, ...]
    text: tuple[str | None, ...]
    sample: tuple[str, ...] = ()
    form: str = ''
    numbered: bool = False


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns: ``values`` is (rows, columns), empty cells are NaN."""

    source: str
    columns: tuple[str, ...]
    values: FloatArray

    def column(self, name: str) -> FloatArray:
        """Return one column (rows,)."""
        return self.values[:, self.columns.index(name)]


def arrays_of(content: Any, name: str = '', depth: int = 0) -> Iterator[tuple[str, FloatArray]]:
    """Yield the numeric arrays, (N,) or (N, k), with the names of those in structures."""
    if isinstance(content, np.ndarray) and content.dtype.names:
        content = {key: content[key] for key in content.dtype.names}
    if isinstance(content, Mapping):
        for key, value in content.items():
            if depth < DEPTH:
                yield from arrays_of(value, f'{name}.{key}' if name else str(key), depth + 1)
        return
    try:
        array = np.asarray(content)
        if array.dtype.kind == 'M':
            array = (array - np.datetime64(0, 's')) / np.timedelta64(1, 's')
        array = array.astype(np.float64)
    except (ValueError, TypeError):
        return  # texts, objects
    if array.ndim > 2 or (array.ndim == 2 and 1 in array.shape):
        array = np.atleast_1d(np.squeeze(array))
    if array.ndim in (1, 2) and array.size:
        yield name, array
