"""Numeric tables with a header row, in comma-separated text, plain or gzip."""

from __future__ import annotations

import gzip
import warnings
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.types import FloatArray

PIECE = 1 << 24  # bytes parsed at a time: bounds the memory of long files


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

    Raises DataError, naming file and line, for everything that is not such a table.
    """
    source = str(path)
    try:
        with _opened(Path(path)) as file:
            columns = _header(source, file.readline())
            parts = list(_parsed(source, file, len(columns)))
    except FileNotFoundError:
        raise DataError(f'{source}: no such file') from None
    except IsADirectoryError:
        raise DataError(f'{source}: is a folder, expected a CSV file') from None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise DataError(
            f'{source}: the gzip file is broken or cut off ({error}); copy or record it again'
        ) from None
    except OSError as error:
        raise DataError(f'{source}: cannot be read: {error.strerror or error}') from None
    if not parts:
        raise DataError(f'{source}: has a header but no rows')
    return Table(source, columns, np.concatenate(parts) if len(parts) > 1 else parts[0])


def _opened(path: Path) -> BinaryIO:
    if path.suffix == '.gz':
        return cast('BinaryIO', gzip.open(path, 'rb'))
    return path.open('rb')


def _header(source: str, line: bytes) -> tuple[str, ...]:
    if not line.strip():
        raise DataError(f'{source}: the file is empty, expected a header line with column names')
    try:
        text = line.decode('utf-8-sig')
    except UnicodeDecodeError:
        raise DataError(f'{source}: line 1 is not text; is this a CSV file?') from None
    columns = tuple(cell.strip().strip('"') for cell in text.strip().split(','))
    if len(columns) == 1 and (';' in text or '\t' in text):
        raise DataError(f'{source}: line 1: columns must be separated by commas')
    twice = [name for name, count in Counter(columns).items() if count > 1]
    if twice:
        raise DataError(f'{source}: line 1: column {", ".join(twice)} appears more than once')
    return columns


def _parsed(source: str, file: BinaryIO, columns: int) -> Iterator[FloatArray]:
    """Yield the rows piece by piece, (rows, columns) each."""
    line, rest = 2, b''
    while True:
        piece = file.read(PIECE)
        text = rest + piece
        if piece:
            stop = text.rfind(b'\n') + 1
            text, rest = text[:stop], text[stop:]
        lines = text.count(b'\n')
        body = text.replace(b'\r', b'').rstrip(b'\n ')
        if body:
            rows = _fast(body, columns)
            yield _slow(source, text, line, columns) if rows is None else rows
        line += lines
        if not piece:
            return


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
        return float(stripped)
    except ValueError:
        raise DataError(
            f'{source}: line {line}, column {column}: {stripped[:40]!r} is not a number'
        ) from None
