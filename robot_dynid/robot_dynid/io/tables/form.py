"""Format of text tables: separator and decimals, cells of a line, numbers and words."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from robot_dynid.errors import DataError

#: lines at the beginning that determine the format; the last of them count
SAMPLE = 20
#: separators by precedence: no number contains a semicolon
SEPARATORS = (';', '\t', '|', ',', ' ')
NAMES = {';': 'semicolons', '\t': 'tabs', '|': 'bars', ',': 'commas', ' ': 'spaces', '': ''}
#: comment characters
COMMENTS = ('#', '%', '//')
#: words for a missing number
MISSING = {'', 'na', 'n/a', '#n/a', 'null', 'none', '-', '-nan', 'nan(ind)', '-nan(ind)'}
_DECIMAL_COMMA = re.compile(r'[-+]?\d*,\d+(?:[eE][-+]?\d+)?')
_NUMBER = re.compile(r'[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf|infinity)',
                     re.IGNORECASE)
_QUOTED = re.compile(r'"([^"]*)"')


@dataclass(frozen=True)
class Form:
    """Text format of a table.

    ``separator`` is one of SEPARATORS, '' for one column; ``decimal`` a point or a comma;
    ``first`` the number of the first row's line, from 1; ``trailing``: rows end with a separator
    that the header lacks.
    """

    separator: str = ','
    decimal: str = '.'
    first: int = 2
    trailing: bool = False

    def __str__(self) -> str:
        """Describe deviations from commas and decimal points, else ''."""
        commas = self.separator in (',', '')
        return ', '.join((*([] if commas else [f'separated by {NAMES[self.separator]}']),
                          *(['decimal commas'] if self.decimal == ',' else [])))

    def cells(self, line: str) -> list[str]:
        """Return the cells of a line, without blanks and quotes around them."""
        if not self.separator:
            return [_bare(line)]
        if self.separator == ' ':
            return [quoted or bare for quoted, bare in re.findall(r'"([^"]*)"|(\S+)', line)]
        held = _QUOTED.sub(lambda text: text[0].replace(self.separator, '\0'), line.strip('\r\n'))
        return [_bare(cell.replace('\0', self.separator)) for cell in held.split(self.separator)]

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


def _bare(cell: str) -> str:
    """Return a cell without blanks and quotes around it; a quote within quotes is doubled."""
    bare = cell.strip()
    if '""' in bare[1:-1] and bare[0] == bare[-1] == '"':
        return bare[1:-1].replace('""', '"').strip()
    return bare.strip('"').strip()


@dataclass(frozen=True)
class Asked:
    """Text format as stated by a mapping; None: detected from the file."""

    separator: str | None = None
    decimal: str | None = None
    header: bool = True
    skip: int = 0


def is_number(cell: str) -> bool:
    """Return True if a cell holds a number, with a decimal point or comma."""
    return _NUMBER.fullmatch(cell) is not None


def is_text(cell: str) -> bool:
    """Return True if a cell is neither a number nor a marker of a missing one."""
    return not is_number(cell) and cell.lower() not in MISSING


def is_comment(line: str) -> bool:
    return line.lstrip().startswith(COMMENTS)


def separated(source: str, lines: list[str], asked: Asked) -> Form:
    """Detect separator and decimals of lines, the first of which may be a header."""
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
            raise DataError(f'{source}: {cell!r} has a thousands separator; write numbers without '
                            'it')
    commas = any(',' in cell for cell in cells if is_number(cell))
    if commas and any('.' in cell for cell in cells if is_number(cell)):
        raise DataError(f'{source}: some numbers have a decimal point, others a decimal comma; '
                        'write all with one of them')
    return replace(form, decimal=asked.decimal or (',' if commas else '.'))
