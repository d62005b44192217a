"""Tables of numbers in text: separator, decimals, header and units as the file has them.

Whatever they are, a piece of the text becomes commas and decimal points and is parsed in C.
"""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError, clipped
from robot_dynid.io.tables.table import COLUMNS, Layout, RowsOf
from robot_dynid.robot.columns import unit_of
from robot_dynid.types import FloatArray

#: longest line [bytes]
LINE_BYTES = 1 << 20
#: a file is looked at so far [bytes, lines] to see what it is like, and the last ones there
HEAD, LINES, SAMPLE = 1 << 18, 500, 20
#: separators in the order in which one excludes the next: no number has a semicolon in it
SEPARATORS = (';', '\t', '|', ',', ' ')
NAMES = {';': 'semicolons', '\t': 'tabs', '|': 'bars', ',': 'commas', ' ': 'spaces', '': ''}
#: begin lines that are no rows
COMMENTS = ('#', '%', '//')
#: words for a missing number
MISSING = {'', 'na', 'n/a', '#n/a', 'null', 'none', '-', '-nan', 'nan(ind)', '-nan(ind)'}
_DECIMAL_COMMA = re.compile(r'[-+]?\d*,\d+(?:[eE][-+]?\d+)?')
_NUMBER = re.compile(r'[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf|infinity)',
                     re.IGNORECASE)
#: an empty cell
_EMPTY = re.compile(rb'(?<![^,\n])(?=[,\n]|\Z)')
_QUOTED = re.compile(r'"([^"]*)"')
#: how texts in cells are read: not at all, as the same in all rows, as dates
IGNORED, CONSTANT, DATE = 'ignored', 'constant', 'date'


@dataclass(frozen=True)
class Form:
    """The form in which the text of a table is written.

    ``separator`` is one of SEPARATORS, '' for one column; ``decimal`` a point or a comma;
    ``first`` the number of the first line with a row, from 1; ``trailing`` whether rows end with a
    separator that the header has not.
    """

    separator: str = ','
    decimal: str = '.'
    first: int = 2
    trailing: bool = False

    def __str__(self) -> str:
        """Return the unusual in words, '' for commas and decimal points."""
        commas = self.separator in (',', '')
        return ', '.join((*([] if commas else [f'separated by {NAMES[self.separator]}']),
                          *(['decimal commas'] if self.decimal == ',' else [])))

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line, without blanks and quotes around them."""
        if not self.separator:
            return [line.strip().strip('"').strip()]
        if self.separator == ' ':
            return [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', line)]
        held = _QUOTED.sub(lambda text: text[0].replace(self.separator, '\0'), line.strip('\r\n'))
        return [cell.replace('\0', self.separator).strip().strip('"').strip()
                for cell in held.split(self.separator)]

    def with_commas(self, text: bytes) -> bytes:
        """Return whole lines with commas between cells and points in numbers."""
        if b'\r' in text:
            text = text.replace(b'\r', b'')
        if self.separator == ' ':
            text = text.replace(b'\t', b' ')
            while b'  ' in text:
                text = text.replace(b'  ', b' ')
            text = text.replace(b'\n ', b'\n').replace(b' \n', b'\n').strip(b' ')
        if self.separator not in (',', ''):
            other = b'.' if self.decimal == ',' else b'\x1f'
            text = text.translate(bytes.maketrans(
                b',' + self.separator.encode(), other + b','))
        elif not self.separator and self.decimal == ',':
            text = text.replace(b',', b'.')
        if self.trailing:
            text = re.sub(rb',(?=\n|\Z)', b'', text)
        return text


@dataclass(frozen=True)
class Asked:
    """The form of a file as a mapping states it, None where the file is to say it."""

    separator: str | None = None
    decimal: str | None = None
    header: bool = True
    skip: int = 0


def is_number(cell: str) -> bool:
    """Return whether a cell holds a number, with a decimal point or comma."""
    return _NUMBER.fullmatch(cell) is not None


def read_text_table(
    source: str, pieces: Iterable[bytes], asked: Asked
) -> tuple[Layout, RowsOf]:
    """Return the layout of a table in text, and a function that reads its rows.

    The function takes how columns with text are read, by their number. Raises DataError, naming
    file and line, for what is no table.
    """
    stream = _decoded(iter(pieces))
    head = b''
    for piece in stream:
        head += piece
        if (len(head) >= HEAD and head.count(b'\n') > 2) or len(head) > 4 * LINE_BYTES:
            break
    text = _text(source, head)
    lines = text.split('\n')
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_BYTES:
            raise _long(source, number)
    form, layout = _recognised(source, lines[:-1][:LINES] or lines, asked)

    def rows(texts: Mapping[int, str]) -> Iterator[FloatArray]:
        reader = _Rows(source, form, len(layout.columns), texts, layout.text)
        return reader.rows(_lines(source, chain((head,), stream), form.first))

    return layout, rows


def _decoded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces in UTF-8 without a byte order mark; lines of old Macs end as others."""
    first = next(pieces, b'')
    while len(first) < 4 and (more := next(pieces, b'')):
        first += more
    if first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        for text in codecs.iterdecode(chain((first,), pieces), 'utf-16', errors='replace'):
            yield text.encode()
        return
    bare = first.removeprefix(codecs.BOM_UTF8)
    old = b'\r' in bare and b'\n' not in bare
    for piece in chain((bare,), pieces):
        yield piece.replace(b'\r', b'\n') if old else piece


def _text(source: str, head: bytes) -> str:
    if not head.strip():
        raise DataError(f'{source}: the file is empty, expected rows of numbers below a header '
                        'with column names')
    try:
        text = head.decode()
    except UnicodeDecodeError as error:
        cut = error.start > len(head) - 4
        text = head.decode('utf-8' if cut else 'cp1252', 'replace')
    control = re.search(r'[\0\ufffd]', text)
    if control is not None:
        raise DataError(f'{source}: line {text.count(chr(10), 0, control.start()) + 1} is not '
                        'text; is this a table of numbers?')
    return text


def _recognised(source: str, lines: list[str], asked: Asked) -> tuple[Form, Layout]:
    """Return the form of a text, and what its first lines say of the columns."""
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    form = _separated(source, [line for _, line in filled if not _is_comment(line)], asked)
    rows = [(number, form.cells(line)) for number, line in filled
            if not _is_comment(line)] or [(1, [''])]
    if len(rows[0][1]) > COLUMNS:
        raise DataError(f'{source}: line {rows[0][0]}: has more than {COLUMNS} columns')
    data = next((k for k, (_, cells) in enumerate(rows)
                 if any(map(is_number, cells)) and not _is_header(cells, rows[k + 1:], not k)
                 and not (is_text(cells[0]) and len(cells) != len(rows[-1][1]))), None)
    if data is None:
        raise _no_rows(source, rows, asked)
    above = [(number, form.cells(_bare(line))) for number, line in filled
             if number < rows[data][0]]
    head, units = _header(above, len(rows[data][1]), asked)
    if head is not None and dict(above)[head] == [str(k) for k in range(len(rows[data][1]))]:
        head = None  # numbers are no names
    if asked.skip:
        later = [k for k, (number, _) in enumerate(rows)
                 if number > (head if head is not None else 0)][asked.skip:]
        data = later[0] if later else data
    first, sample = rows[data]
    names = tuple(dict(above)[head]) if head is not None else tuple(
        str(k) for k in range(1, len(sample) + 1))
    if len(sample) == len(names) + 1 and not sample[-1]:
        form = replace(form, trailing=True)
    lines_of_names = [number for number, cells in above
                      if head is not None and number <= head and len(cells) == len(names)]
    _require_names(source, names, lines_of_names)
    form = replace(form, first=first)
    text = tuple(cell if is_text(cell) else None for cell in sample[:len(names)])
    said = [str(form)] if str(form) else []
    if len(lines_of_names) > 1 and not units:
        said.append(f'names taken from line {head}')
    return form, Layout(source, names, units or ('',) * len(names), text, tuple(sample),
                        ', '.join(said), head is None)


def _no_rows(source: str, rows: list[tuple[int, list[str]]], asked: Asked) -> DataError:
    if any(cells[0].startswith('---') for _, cells in rows):
        return DataError(f'{source}: is what `ros2 topic echo` prints; record a bag instead, or '
                         'add --csv')
    between = f' with {NAMES[asked.separator]} between them' if asked.separator else ''
    return DataError(f'{source}: has no rows of numbers{between}' + (
        ' below its header' if len(rows[0][1]) > 1 else
        '; is it not text with a number in every cell?'))


def is_text(cell: str) -> bool:
    """Return whether a cell is neither a number nor says that there is none."""
    return not is_number(cell) and cell.lower() not in MISSING


def _is_comment(line: str) -> bool:
    return line.lstrip().startswith(COMMENTS)


def _bare(line: str) -> str:
    """Return a line without the mark of a comment."""
    stripped = line.strip()
    mark = next((mark for mark in COMMENTS if stripped.startswith(mark)), '')
    return stripped.lstrip(mark).strip() if mark else stripped


def _is_header(cells: list[str], below: list[tuple[int, list[str]]], first: bool) -> bool:
    """Return whether a line names columns: words where the lines below it have numbers.

    The ``first`` line of a file may have the numbers of the columns, from 0.
    """
    later = [other for _, other in below[:SAMPLE] if len(other) == len(cells)]
    if first and len(cells) > 1 and cells == [str(k) for k in range(len(cells))]:
        return True
    return bool(later) and any(is_text(cell) and all(is_number(other[k]) for other in later)
                               for k, cell in enumerate(cells))


def _header(
    above: list[tuple[int, list[str]]], width: int, asked: Asked
) -> tuple[int | None, tuple[str, ...]]:
    """Return the line with the names, None for none, and the units of a row of them below it."""
    lines = [(number, cells) for number, cells in above if len(cells) > 1 or width == 1]
    if not lines or not asked.header:
        return None, ()
    fitting = [(number, cells) for number, cells in lines if len(cells) == width] or lines
    if asked.skip:
        return fitting[0][0], ()
    number, cells = fitting[-1]
    units = [unit_of(cell.strip('[]() ')) for cell in cells]
    if len(fitting) > 1 and len(fitting[-2][1]) == len(cells) and any(units) and all(
            unit or not cell.strip('[]()- ') for unit, cell in zip(units, cells, strict=True)):
        return fitting[-2][0], tuple(units)
    return number, ()


def _require_names(source: str, names: tuple[str, ...], lines: list[int]) -> None:
    """Raise DataError for names twice; ``lines`` are those that may have the names."""
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice and len(lines) > 1:
        raise DataError(f'{source}: line {lines[-1]} has neither names of columns nor units that '
                        f'are understood ({clipped(", ".join(twice))}): state units in a mapping '
                        'of columns, with skip: 1')
    if twice:
        raise DataError(f'{source}: line {lines[0] if lines else 1}: column '
                        f'{clipped(", ".join(twice))} appears more than once')


def _separated(source: str, lines: list[str], asked: Asked) -> Form:
    """Return separator and decimals of lines, the first of which may be a header."""
    quoted = any(_DECIMAL_COMMA.fullmatch(cell) for line in lines
                 for cell in _QUOTED.findall(line))
    rows = [_QUOTED.sub(lambda cell: cell[1] if is_number(cell[1]) else 'text', line.strip())
            for line in lines[1:][-SAMPLE:] or lines]
    separator = asked.separator
    if separator is None:
        separator = next((one for one in SEPARATORS if all(one in row for row in rows)), '')
        if separator == ',' and all(' ' in row for row in rows) and all(
                _DECIMAL_COMMA.fullmatch(cell) or cell.lstrip('+-').isdigit()
                for row in rows for cell in row.split()):
            separator = ' '
    form = Form(separator, asked.decimal or ',' if quoted else '.')
    if separator == ',':
        return form
    cells = [cell for row in rows for cell in form.cells(row)]
    for cell in cells:
        if '.' in cell and ',' in cell and re.fullmatch(r'[-+]?[\d.,]+', cell):
            raise DataError(f'{source}: {cell!r} has a mark between thousands; write numbers '
                            'without it')
    commas = any(',' in cell for cell in cells if is_number(cell))
    if commas and any('.' in cell for cell in cells if is_number(cell)):
        raise DataError(f'{source}: some numbers have a decimal point, others a decimal comma; '
                        'write all with one of them')
    return replace(form, decimal=asked.decimal or (',' if commas else '.'))


def _long(source: str, line: int) -> DataError:
    return DataError(f'{source}: line {line} has more than {LINE_BYTES} bytes; is this a table of '
                     'numbers?')


def _lines(source: str, pieces: Iterable[bytes], first: int) -> Iterator[tuple[int, bytes]]:
    """Yield pieces of whole lines from line ``first`` on, with the number of their first line."""
    line, rest = 1, b''
    for piece in chain(pieces, (None,)):
        text = rest + (piece or b'')
        stop = len(text) if piece is None else text.rfind(b'\n') + 1
        if len(text) - stop > LINE_BYTES:
            line += text.count(b'\n', 0, stop)
            raise _long(source, line)
        rest = text[stop:]
        start = 0
        while line < first and start < stop:
            start = (text.find(b'\n', start, stop) + 1) or stop
            line += 1
        if start < stop:
            yield line, text[start:stop]
            line += text.count(b'\n', start, stop)


@dataclass(frozen=True)
class _Rows:
    """Reads the rows of a table: ``texts`` says how columns with text are read, by number.

    ``constant`` has the text of the first row.
    """

    source: str
    form: Form
    columns: int
    texts: Mapping[int, str]
    constant: tuple[str | None, ...]

    def rows(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[FloatArray]:
        """Yield the rows piece by piece, (rows, columns) each; raises DataError without any."""
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
        return self._slow(text, line)

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
                f'{self.source}: line {line}: {clipped(str(cells[0].decode()))!r} is no number, '
                'and no date and time such as 2026-03-01T12:00:00.004') from None
        return np.asarray((stamps - np.datetime64(0, 's')) / np.timedelta64(1, 's') - shift)

    def _without_text(self, body: bytes) -> tuple[bytes, dict[int, NDArray[np.bytes_]]] | None:
        """Return the text without the columns of texts, and their cells; None: irregular."""
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

    def _slow(self, text: bytes, line: int) -> FloatArray:
        """Parse row by row: empty cells become NaN, anything else irregular is named."""
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
                raise self._ragged(number, cells, number == line + len(lines) - 1)
            rows.append([self._number(number, k, cell) for k, cell in enumerate(cells)])
        return np.array(rows, dtype=np.float64).reshape(len(rows), self.columns)

    def _ragged(self, line: int, cells: list[str], last: bool) -> DataError:
        if self.form.separator == ',' and len(cells) > self.columns and all(
                cell.lstrip('-+').isdigit() for cell in cells if cell):
            return DataError(
                f'{self.source}: line {line} has {len(cells)} cells, expected {self.columns}, and '
                'no decimal point: decimal commas between commas cannot be told apart; export the '
                'file with decimal points, or with semicolons between the columns')
        hint = '; the file looks cut off, remove its last line' if last else ''
        return DataError(
            f'{self.source}: line {line} has {len(cells)} cells, expected {self.columns}{hint}')

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
            if '_' not in cell:  # Python's own, which no table has
                return float(cell.replace(',', '.') if self.form.decimal == ',' else cell)
        except ValueError:
            pass
        raise DataError(f'{self.source}: line {line}, column {column + 1}: {cell[:40]!r} is not a '
                        'number')


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
