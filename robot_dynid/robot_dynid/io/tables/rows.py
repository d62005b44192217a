"""Parse the rows of text tables in C, without the columns that have text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError, clipped
from robot_dynid.io.tables.form import COMMENTS, MISSING, Form
from robot_dynid.types import FloatArray

#: longest line [bytes]
LINE_BYTES = 1 << 20
#: an empty cell
_EMPTY = re.compile(rb'(?<![^,\n])(?=[,\n]|\Z)')
#: how cells with text are read: ignored, constant in all rows, as dates
IGNORED, CONSTANT, DATE = 'ignored', 'constant', 'date'


def too_long(source: str, line: int) -> DataError:
    return DataError(f'{source}: line {line} has more than {LINE_BYTES} bytes; is this a table of '
                     'numbers?')


def ragged(
    place: str, cells: Sequence[str], columns: int, form: Form, hint: str = ''
) -> DataError:
    """Return the error about a row whose number of cells differs from that of the columns."""
    if form.separator == ',' and len(cells) > columns and all(
            cell.lstrip('-+').isdigit() for cell in cells if cell):
        return DataError(
            f'{place} has {len(cells)} cells, expected {columns}, and no decimal point: decimal '
            'commas between commas cannot be told apart; export the file with decimal points, or '
            'with semicolons between the columns')
    return DataError(f'{place} has {len(cells)} cells, expected {columns}{hint}')


def lines_from(source: str, pieces: Iterable[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of whole lines from line ``first`` on, with the number of their first line."""
    line, rest = 1, b''
    for piece in chain(pieces, (None,)):
        text = rest + (piece or b'')
        stop = len(text) if piece is None else text.rfind(b'\n') + 1
        if len(text) - stop > LINE_BYTES:
            line += text.count(b'\n', 0, stop)
            raise too_long(source, line)
        rest = text[stop:]
        start = 0
        while line < first and start < stop:
            start = (text.find(b'\n', start, stop) + 1) or stop
            line += 1
        if start < stop:
            yield line, text[start:stop]
            line += text.count(b'\n', start, stop)


@dataclass(frozen=True)
class Rows:
    """Read the rows of a table; ``texts`` says how columns with text are read, by number.

    ``constant`` has the text of the first row.
    """

    source: str
    form: Form
    columns: int
    texts: Mapping[int, str]
    constant: tuple[str | None, ...]

    def rows(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[FloatArray]:
        """Yield the rows piece by piece, (T, n) each; raises DataError if there are none."""
        there = False
        for line, text in lines:
            body = self.form.with_commas(text).rstrip(b'\n ')
            if body.strip():
                yield self._parsed(body, text, line)
                there = True
        if not there:
            raise DataError(f'{self.source}: has a header but no rows')

    def _parsed(self, body: bytes, text: bytes, line: int) -> FloatArray:
        cut = self._without_text(body) if self.texts or b'"' in body else (body, {})
        if cut is not None:
            numbers = self.columns - len(self.texts)
            rows = _fast(cut[0], numbers)
            if rows is None and numbers > 1:
                rows = _fast(_EMPTY.sub(b'nan', cut[0]), numbers)
            if rows is not None:
                return self._filled(rows, cut[1], line)
        return self.row_by_row(text, line)

    def _filled(
        self, rows: FloatArray, texts: Mapping[int, NDArray[np.bytes_]], line: int
    ) -> FloatArray:
        """Return rows with a column for each of the file, dates as s, other texts as NaN."""
        if not self.texts:
            return rows
        whole = np.full((len(rows), self.columns), np.nan)
        whole[:, [k for k in range(self.columns) if k not in self.texts]] = rows
        for k, cells in texts.items():
            if self.texts[k] == DATE:
                whole[:, k] = self._dates(cells, line)
            elif self.texts[k] == CONSTANT and np.any(
                    other := cells != str(self.constant[k]).encode()):
                at = int(np.argmax(other))
                raise self._changed(line + at, k, cells[at].decode('utf-8', 'replace'))
        return whole

    def _changed(self, line: int, column: int, cell: str) -> DataError:
        return DataError(f'{self.source}: line {line}: column {column + 1} is {clipped(cell)!r}, '
                         f'and {self.constant[column]!r} in the first row: the names of the '
                         'joints must be the same in all rows; record a bag, or split the file')

    def _dates(self, cells: NDArray[np.bytes_], line: int) -> FloatArray:
        texts = np.char.replace(np.char.decode(cells, 'utf-8'), ',', '.')
        zones = {text[re.search(r'(?:Z|[-+]\d\d:?\d\d)?$', text).start():]  # type: ignore[union-attr]
                 for text in (str(texts[0]), str(texts[-1]))}
        zone = zones.pop()
        try:
            shift = 0.0
            if zone:
                shift = datetime.fromisoformat(f'2000-01-01T00:00:00{zone}'.replace(
                    'Z', '+00:00')).utcoffset().total_seconds()  # type: ignore[union-attr]
                if zones or not np.char.endswith(texts, zone).all():
                    raise ValueError
                texts = np.char.replace(texts, zone, '')
            stamps = texts.astype('datetime64[ns]')
        except (ValueError, OverflowError):
            raise DataError(
                f'{self.source}: line {line}: {clipped(str(cells[0].decode()))!r} is neither a '
                'number nor a date and time such as 2026-03-01T12:00:00.004') from None
        return np.asarray((stamps - np.datetime64(0, 's')) / np.timedelta64(1, 's') - shift)

    def _without_text(self, body: bytes) -> tuple[bytes, dict[int, NDArray[np.bytes_]]] | None:
        """Return the text without text columns, and their cells; None if irregular."""
        raw = np.frombuffer(body + b'\n', np.uint8)
        marks = (raw == ord(',')) | (raw == ord('\n'))
        if b'"' in body:
            marks &= ~((np.cumsum(raw == ord('"')) & 1).astype(bool)) | (raw == ord('\n'))
        places = np.flatnonzero(marks)
        if len(places) % self.columns:
            return None
        ends = places.reshape(-1, self.columns)
        if not np.all(raw[ends[:, -1]] == ord('\n')) or np.any(raw[ends[:, :-1]] != ord(',')):
            return None
        starts = np.concatenate([[0], places[:-1] + 1]).reshape(ends.shape)
        change = np.zeros(len(raw) + 1, np.int8)
        for k in self.texts:
            last = k == self.columns - 1
            np.add.at(change, starts[:, k] - last, 1)
            np.add.at(change, ends[:, k] + (not last), -1)
        keep = np.cumsum(change)[:-1] <= 0
        quotes = raw == ord('"')
        if np.any(quotes & keep):
            inside = (np.cumsum(quotes) & 1).astype(bool)
            held = inside & keep & (raw == ord(','))
            if np.any(held) and self.form.decimal != ',':
                return None
            raw, keep = np.where(held, np.uint8(ord('.')), raw), keep & ~quotes
        texts = {k: self._cells(raw, starts[:, k], ends[:, k])
                 for k, how in self.texts.items() if how != IGNORED}
        return raw[keep].tobytes().rstrip(b'\n'), texts

    @staticmethod
    def _cells(
        raw: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.bytes_]:
        """Return cells (rows,) of text, without quotes and blanks around them."""
        longest = int((ends - starts).max(initial=1)) or 1
        at = starts[:, None] + np.arange(longest)
        table = np.where(at < ends[:, None], raw[np.minimum(at, len(raw) - 1)], 0)
        cells = np.frombuffer(table.astype(np.uint8).tobytes(), f'S{longest}')
        return np.asarray(np.char.strip(np.char.strip(np.char.strip(cells), b'"')))

    def row_by_row(self, text: bytes, line: int) -> FloatArray:
        """Return the numbers (N, c), NaN where empty; DataError for other irregularities."""
        rows = []
        lines = text.split(b'\n')
        for number, raw in enumerate(lines, start=line):
            decoded = raw.decode('utf-8', 'replace').strip('\r\n')
            if not decoded.strip() or decoded.lstrip().startswith(COMMENTS):
                continue
            cells = self.form.cells(decoded)
            if self.form.trailing and len(cells) == self.columns + 1 and not cells[-1]:
                cells.pop()
            if len(cells) != self.columns:
                cut = number == line + len(lines) - 1
                raise ragged(f'{self.source}: line {number}', cells, self.columns, self.form,
                             '; the file looks cut off, remove its last line' if cut else '')
            rows.append([self._number(number, k, cell) for k, cell in enumerate(cells)])
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.columns)

    def _number(self, line: int, column: int, cell: str) -> float:
        how = self.texts.get(column)
        if how == DATE:
            return float(self._dates(np.array([cell.encode()]), line)[0])
        if how is not None:
            if how == CONSTANT and cell != self.constant[column]:
                raise self._changed(line, column, cell)
            return float('nan')
        if cell.lower() in MISSING:
            return float('nan')
        try:
            if '_' not in cell:  # Python's digit separator
                return float(cell.replace(',', '.') if self.form.decimal == ',' else cell)
        except ValueError:
            pass
        raise DataError(f'{self.source}: line {line}, column {column + 1}: {cell[:40]!r} is not a '
                        'number')


def _fast(body: bytes, columns: int) -> FloatArray | None:
    """Parse regular rows in C; return None if anything is irregular."""
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
