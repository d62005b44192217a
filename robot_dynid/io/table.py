"""Numeric tables with a header row, in comma-separated text, plain or gzip."""

from __future__ import annotations

import os
import re
import warnings
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import Damaged, TooLarge, budget, open_regular, unpacked
from robot_dynid.types import FloatArray

#: longest line [bytes], most columns, most numbers of a table (2 GB)
LINE_BYTES, COLUMNS, NUMBERS = 1 << 20, 5000, 250_000_000
#: what little compressed text may unpack to [bytes]
FLOOR = 1 << 24
#: an empty cell
_EMPTY = re.compile(rb'(?<![^,\n])(?=[,\n]|\Z)')


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns: ``values`` is (rows, columns), empty cells are NaN."""

    source: str
    columns: tuple[str, ...]
    values: FloatArray

    def column(self, name: str) -> FloatArray:
        """Return one column (rows,)."""
        return self.values[:, self.columns.index(name)]


def read_table(path: str | Path) -> Table:
    """Read a table of numbers.

    Raises DataError, naming file and line, for everything that is not such a table, and for one
    with more than NUMBERS numbers.
    """
    source = str(path)
    parts: deque[FloatArray] = deque()
    with table_pieces(path) as (columns, pieces):
        numbers = 0
        for piece in pieces:
            parts.append(piece)
            numbers += piece.size
            if numbers > NUMBERS:
                raise DataError(f'{source}: has more than {NUMBERS} numbers; split it, or give it '
                                'as a bag')
    values, at = np.empty((sum(len(part) for part in parts), len(columns))), 0
    while parts:  # each is given back once it is copied
        part = parts.popleft()
        values[at:at + len(part)] = part
        at += len(part)
    return Table(source, columns, values)


@contextmanager
def table_pieces(path: str | Path) -> Iterator[tuple[tuple[str, ...], Iterator[FloatArray]]]:
    """Open a table of numbers: names of its columns, and its rows (T, n) piece by piece.

    There is one piece at least. Raises DataError, naming file and line, for everything that is
    not such a table.
    """
    source = str(path)
    if not os.path.lexists(path):
        raise DataError(f'{source}: no such file')
    try:
        with open_regular(path, DataError) as file:
            size = os.fstat(file.fileno()).st_size
            pieces = unpacked(file, 'gz' if source.endswith('.gz') else '', budget(size, FLOOR))
            lines = _lines(source, pieces)
            columns = _header(source, next(lines, (1, b''))[1])
            yield columns, _parsed(source, lines, len(columns))
    except TooLarge as error:
        raise DataError(f'{source}: {error}; unpack it by hand if it is a recording') from None
    except Damaged as damage:
        raise DataError(f'{source}: the file is broken or cut off: {damage}; copy or record it '
                        'again') from None


def _lines(source: str, pieces: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the header line, then pieces of whole lines; with the number of their first line."""
    line, rest = 1, b''
    for piece in chain(pieces, (None,)):
        text = rest + (piece or b'')
        stop = len(text) if piece is None else text.rfind(b'\n') + 1
        if len(text) - stop > LINE_BYTES:
            line += text.count(b'\n', 0, stop)
            raise DataError(f'{source}: line {line} has more than {LINE_BYTES} bytes; is this a '
                            'CSV file?')
        if line == 1 and stop:
            end = text.find(b'\n') + 1 or stop
            yield 1, text[:end]
            text, stop, line = text[end:], stop - end, 2
        if stop:
            yield line, text[:stop]
            line += text.count(b'\n', 0, stop)
        rest = text[stop:]


def _header(source: str, line: bytes) -> tuple[str, ...]:
    if not line.strip():
        raise DataError(f'{source}: the file is empty, expected a header line with column names')
    try:
        text = line.decode('utf-8-sig')
    except UnicodeDecodeError:
        raise DataError(f'{source}: line 1 is not text; is this a CSV file?') from None
    columns = tuple(cell.strip().strip('"') for cell in text.strip().split(',', COLUMNS))
    if len(columns) > COLUMNS:
        raise DataError(f'{source}: line 1: has more than {COLUMNS} columns')
    if len(columns) == 1 and (';' in text or '\t' in text):
        raise DataError(f'{source}: line 1: columns must be separated by commas')
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise DataError(f'{source}: line 1: column {clipped(", ".join(twice))} appears more than '
                        'once')
    return columns


def _parsed(
    source: str, lines: Iterator[tuple[int, bytes]], columns: int
) -> Iterator[FloatArray]:
    """Yield the rows piece by piece, (rows, columns) each; raises DataError without any."""
    there = False
    for line, text in lines:
        body = text.replace(b'\r', b'').rstrip(b'\n ')
        if body:
            rows = _fast(body, columns)
            if rows is None and columns > 1:
                rows = _fast(_EMPTY.sub(b'nan', body), columns)
            yield _slow(source, text, line, columns) if rows is None else rows
            there = True
    if not there:
        raise DataError(f'{source}: has a header but no rows')


def _fast(body: bytes, columns: int) -> FloatArray | None:
    """Parse regular rows in C, or return None when anything is irregular."""
    raw = np.frombuffer(body, np.uint8)
    ends = np.flatnonzero(raw == ord('\n'))
    commas = np.flatnonzero(raw == ord(','))
    rows = len(ends) + 1
    if len(commas) != rows * (columns - 1):
        return None
    before_end = np.searchsorted(commas, ends)
    if not np.array_equal(before_end, np.arange(1, rows) * (columns - 1)):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('error', DeprecationWarning)
            values = np.fromstring(body.replace(b'\n', b',').decode('ascii'), sep=',')
    except (ValueError, DeprecationWarning):
        return None
    return values.reshape(rows, columns) if values.size == rows * columns else None


def _slow(source: str, text: bytes, line: int, columns: int) -> FloatArray:
    """Parse row by row: empty cells become NaN, anything else irregular is named."""
    rows = []
    lines = text.split(b'\n')
    for number, raw in enumerate(lines, start=line):
        if not raw.strip():
            continue
        cells = raw.decode('utf-8', 'replace').strip('\r\n').split(',')
        if len(cells) != columns:
            hint = ''
            if number == line + len(lines) - 1:
                hint = '; the file looks cut off, remove its last line'
            raise DataError(
                f'{source}: line {number} has {len(cells)} cells, expected {columns}{hint}'
            )
        rows.append([_number(source, number, k, cell) for k, cell in enumerate(cells, start=1)])
    return np.array(rows, dtype=np.float64).reshape(len(rows), columns)


def _number(source: str, line: int, column: int, cell: str) -> float:
    stripped = cell.strip()
    if not stripped:
        return float('nan')
    try:
        if '_' not in stripped:  # Python's own, which no CSV has
            return float(stripped)
    except ValueError:
        pass
    raise DataError(f'{source}: line {line}, column {column}: {stripped[:40]!r} is not a number')
