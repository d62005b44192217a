"""Read tables of numbers from text: detect encoding, header and units.

Any format is converted to commas and decimal points piece by piece, and parsed in C.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain

from robot_dynid.errors import DataError, clipped
from robot_dynid.io.tables.form import (
    COMMENTS,
    NAMES,
    SAMPLE,
    Asked,
    Form,
    is_comment,
    is_number,
    is_text,
    separated,
)
from robot_dynid.io.tables.rows import LINE_BYTES, Rows, lines_from, ragged, too_long
from robot_dynid.io.tables.table import COLUMNS, Layout, RowsOf
from robot_dynid.robot.columns import unit_of
from robot_dynid.types import FloatArray

#: beginning of a file [bytes, lines] from which its format is detected
HEAD, LINES = 1 << 18, 500


def read_text_table(
    source: str, pieces: Iterable[bytes], asked: Asked
) -> tuple[Layout, RowsOf]:
    """Return the layout of a text table, and a function that reads its rows.

    The function takes how columns with text are read, by their number. Raises DataError, naming
    file and line, for invalid tables.
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
            raise too_long(source, number)
    form, layout = _recognised(source, lines[:-1][:LINES] or lines, asked)

    def rows(texts: Mapping[int, str]) -> Iterator[FloatArray]:
        reader = Rows(source, form, len(layout.columns), texts, layout.text)
        return reader.rows(lines_from(source, chain((head,), stream), form.first))

    return layout, rows


def _decoded(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Yield pieces in UTF-8 without byte order mark, with line ends normalised."""
    first = next(pieces, b'')
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
        cut = error.reason == 'unexpected end of data'  # within a character
        text = head[:error.start].decode() if cut else head.decode('cp1252', 'replace')
    control = re.search(r'[\0\ufffd]', text)
    if control is not None:
        raise DataError(f'{source}: line {text.count(chr(10), 0, control.start()) + 1} is not '
                        'text; is this a table of numbers?')
    return text


def _recognised(source: str, lines: list[str], asked: Asked) -> tuple[Form, Layout]:
    """Return the format of a text, and the layout from its first lines."""
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    form = separated(source, [line for _, line in filled if not is_comment(line)], asked)
    rows = [(number, form.cells(line)) for number, line in filled
            if not is_comment(line)] or [(1, [''])]
    if len(rows[0][1]) > COLUMNS:
        raise DataError(f'{source}: line {rows[0][0]}: has more than {COLUMNS} columns')
    begin = filled[0][0] if filled and asked.header else 0
    data = next((k for k, (number, cells) in enumerate(rows) if any(map(is_number, cells))
                 and not _is_header(cells, rows[k + 1:], number == begin)
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
    elif len(sample) != len(names):
        raise ragged(f'{source}: line {first}', sample, len(names), form)
    lines_of_names = [number for number, cells in above
                      if head is not None and number <= head and len(cells) == len(names)]
    _require_names(source, names, lines_of_names)
    form = replace(form, first=first)
    text = tuple(cell if is_text(cell) else None for cell in sample[:len(names)])
    details = [str(form)] if str(form) else []
    if len(lines_of_names) > 1 and not units:
        details.append(f'names taken from line {head}')
    return form, Layout(source, names, units or ('',) * len(names), text, tuple(sample),
                        ', '.join(details), head is None)


def _no_rows(source: str, rows: list[tuple[int, list[str]]], asked: Asked) -> DataError:
    if any(cells[0].startswith('---') for _, cells in rows):
        return DataError(f'{source}: is what `ros2 topic echo` prints; record a bag instead, or '
                         'add --csv')
    between = f' with {NAMES[asked.separator]} between them' if asked.separator else ''
    return DataError(f'{source}: has no rows of numbers{between}' + (
        ' below its header' if len(rows[0][1]) > 1 else
        '; it must be text with a number in every cell'))


def _bare(line: str) -> str:
    """Return a line without the mark of a comment."""
    stripped = line.strip()
    mark = next((mark for mark in COMMENTS if stripped.startswith(mark)), '')
    return stripped.lstrip(mark).strip() if mark else stripped


def _is_header(cells: list[str], below: list[tuple[int, list[str]]], first: bool) -> bool:
    """Return True if a line names columns: words above numbers.

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
    """Return the line with the names, None without one, and the units in a row below it."""
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
    """Raise DataError for repeated names; ``lines`` are those that may have the names."""
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice and len(lines) > 1:
        raise DataError(f'{source}: line {lines[-1]} has neither names of columns nor units that '
                        f'are understood ({clipped(", ".join(twice))}): state units in a mapping '
                        'of columns, with skip: 1')
    if twice:
        raise DataError(f'{source}: line {lines[0] if lines else 1}: column '
                        f'{clipped(", ".join(twice))} appears more than once')
