"""A table of numbers and its layout, as all kinds of files give them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from robot_dynid.types import FloatArray

#: most columns
COLUMNS = 5000
#: returns the rows (T, n) of a table piece by piece, one at least; takes how columns with text are
#: read, by their number
RowsOf = Callable[[Mapping[int, str]], Iterator[FloatArray]]


@dataclass(frozen=True)
class Layout:
    """Names, units and first row of the columns of a table.

    ``columns`` are names, or numbers from 1 where the file has none (``numbered``); ``units`` are
    those of a row of units, '' for none; ``text`` is the first cell of columns that have text,
    None for numbers; ``sample`` the cells of the first row, () where they are no text. ``form``
    says in words how the file is written, where that is unusual.
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
