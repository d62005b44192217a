"""Documents as data: chapters of sections with cards, tables, figures; how texts are written.

A section is built once; the page, the terminal and, by `plain_document`, JSON render it. Numbers,
shares and lists of names are written by the functions at the top, wherever people read them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

DASH = '–'
#: most digits behind the point
MOST_DECIMALS = 6
#: number from which powers of ten are written
LONGEST_WHOLE = 1e6
#: share from which per cents say no more than that nothing agrees
LARGEST_SHARE = 10.0
#: names of a list in brief
BRIEF_NAMES = 6


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with few digits, all of those before the point; a dash if there is none."""
    if value is None or math.isnan(value):
        return DASH
    if math.isinf(value):
        return '∞' if value > 0.0 else '-∞'
    text = f'{value:.{digits}g}'
    return f'{value:.0f}' if 'e+' in text and abs(value) < LONGEST_WHOLE else text


def percent(share: float | None) -> str:
    """Return a share as per cent, for a column or before ' %'; '> 1000' beyond LARGEST_SHARE."""
    if share is None or math.isnan(share):
        return DASH
    if abs(share) > LARGEST_SHARE:
        return f'{">" if share > 0.0 else "<"} {math.copysign(100.0 * LARGEST_SHARE, share):g}'
    return f'{100.0 * share:.1f}'


def share_of(share: float, whole: str) -> str:
    """Return '6 % of the effort' for a share of a ``whole``, or that it is many times that."""
    if share > LARGEST_SHARE:
        return f'more than {LARGEST_SHARE:g} times {whole}'
    digits = 0 if share >= 0.0995 else 1
    return f'{100.0 * share:.{digits}f} % of {whole}'


def listed(names: Iterable[str], most: int | None = None) -> str:
    """Return 'a, b and c'; of more than ``most`` names the first, and how many more there are."""
    shown = list(names)
    if most is not None and len(shown) > most + 1:
        shown = [*shown[:most], f'{len(shown) - most} more']
    return ' and '.join(filter(None, (', '.join(shown[:-1]), *shown[-1:])))


def joints_named(names: Sequence[str]) -> str:
    """Return 'joint a', 'joints a and b'."""
    return f'joint{"" if len(names) == 1 else "s"} {listed(names)}'


def subject(names: Sequence[str], singular: str = 'is', plural: str = 'are') -> str:
    """Return names and the verb that agrees with them: 'a is', 'a and b are'."""
    return f'{listed(names)} {singular if len(names) == 1 else plural}'


def with_deviation(value: float, deviation: float | None) -> str:
    """Return a number and its standard deviation, both to two digits of the latter."""
    if deviation is None or math.isnan(deviation):
        return number(value, 3)
    digits = (1 - math.floor(math.log10(deviation)) if 0.0 < deviation < math.inf
              else MOST_DECIMALS + 1)
    if digits > MOST_DECIMALS:
        return f'{number(value, 3)} ± {number(deviation, 2)}'
    return f'{value:.{max(digits, 0)}f} ± {deviation:.{max(digits, 0)}f}'


def counted(count: int, noun: str = 'recording') -> str:
    """Return a number of things with its ``noun``, in the plural unless it is one."""
    return f'{count} {noun}' if count == 1 else f'{count} {noun}s'


@dataclass(frozen=True)
class Card:
    """One number of the summary."""

    name: str
    value: str
    unit: str = ''


@dataclass(frozen=True)
class Cell:
    """A cell of a table with a ``mark`` of its own, as of Row or 'good', and a ``note`` below."""

    text: str
    mark: str = ''
    note: str = ''


@dataclass(frozen=True)
class Row:
    """Cells of a table: texts, or values that are written as texts; ``mark``: '', 'fair', 'poor'.
    """

    cells: tuple[Any, ...]
    mark: str = ''

    def __post_init__(self) -> None:
        object.__setattr__(self, 'cells', tuple(map(_cell, self.cells)))


def _cell(value: Any) -> str | Cell:
    if isinstance(value, (str, Cell)):
        return value
    if str(value) in ('True', 'False'):  # NumPy's, too
        return 'yes' if value else 'no'
    return str(value) if isinstance(value, Integral) else number(value)


@dataclass(frozen=True, init=False)
class Table:
    """A table; without columns it lists names and values. ``words``: the last column is text.

    Each of the ``rows`` is given as a Row or as its cells. A page shows the title of a ``folded``
    table, and the rest when it is asked for; a terminal shows neither that nor a table of
    ``detail`` unless it is verbose.
    """

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    title: str
    words: bool
    folded: bool
    detail: bool

    def __init__(
        self, columns: Sequence[str], rows: Iterable[Row | Iterable[Any]], title: str = '',
        words: bool = False, folded: bool = False, detail: bool = False,
    ) -> None:
        whole = tuple(row if isinstance(row, Row) else Row(tuple(row)) for row in rows)
        for name, value in (('columns', tuple(columns)), ('rows', whole), ('title', title),
                            ('words', words), ('folded', folded), ('detail', detail)):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure: ``spec`` has the curves (``data``) and axes (``layout``) of Plotly's schema.

    Colours that begin with @ are names in the palette of the page. Figures of one ``link`` have
    the same horizontal axis and are zoomed together.
    """

    spec: Mapping[str, Any]
    title: str = ''
    text: str = ''
    link: str = ''


@dataclass(frozen=True)
class Conclusion:
    """A sentence that leads a section; ``kind`` is 'good', 'fair' or 'poor'."""

    kind: str
    word: str
    advice: str


@dataclass(frozen=True)
class Action:
    """A cause and its remedy in a sentence; ``command`` to paste, '' where hands are needed."""

    words: str
    command: str = ''


@dataclass(frozen=True)
class Fact:
    """A quantity of a sheet: its value with unit, and its ``origin`` in a word or two."""

    name: str
    value: str
    unit: str = ''
    origin: str = ''
    note: str = ''


@dataclass(frozen=True)
class Sheet:
    """The facts about one thing, such as a link."""

    title: str
    facts: tuple[Fact, ...]
    text: str = ''


@dataclass(frozen=True)
class Section:
    """A part of a document; everything but the title may be absent.

    A page shows figures that are ``beside`` each other in columns, below a ``legend`` of names and
    colours that all of them share; and of a ``folded`` section the title and what it is in
    ``brief``. A terminal shows a section of ``detail`` only if it is verbose.
    """

    title: str
    text: str = ''
    status: Conclusion | None = None
    cards: tuple[Card, ...] = ()
    warnings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    beside: bool = False
    actions: tuple[Action, ...] = ()
    sheets: tuple[Sheet, ...] = ()
    folded: bool = False
    brief: str = ''
    legend: tuple[tuple[str, str], ...] = ()
    detail: bool = False


def tabled(title: str, text: str, *tables: Table, folded: bool = False) -> tuple[Section, ...]:
    """Return one section with those ``tables`` that have rows, none where none has."""
    filled = tuple(table for table in tables if table.rows)
    return (Section(title, text=text, tables=filled, folded=folded),) if filled else ()


@dataclass(frozen=True)
class Chapter:
    """Sections that answer the question in the ``title``."""

    title: str
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Report:
    """A document: its chapters, those without a section left out."""

    title: str
    subtitle: str
    chapters: tuple[Chapter, ...] = field(default=())

    def __post_init__(self) -> None:
        object.__setattr__(self, 'chapters', tuple(c for c in self.chapters if c.sections))

    @property
    def sections(self) -> tuple[Section, ...]:
        """The sections of all chapters."""
        return tuple(section for chapter in self.chapters for section in chapter.sections)


def plain_document(report: Report) -> list[dict[str, Any]]:
    """Return the chapters in plain types; of a figure its titles and the names of its curves."""
    from robot_dynid.plain import to_plain

    return [{'title': chapter.title, 'sections': [
        {name: [_plain_figure(one) for one in value] if name == 'figures' else to_plain(value)
         for name, value in vars(section).items() if value not in ('', None, (), False)}
        for section in chapter.sections]} for chapter in report.chapters]


def _plain_figure(figure: Figure) -> dict[str, Any]:
    axes = {name: axis['title']['text'] for name, axis in figure.spec['layout'].items()
            if 'axis' in name and isinstance(axis, Mapping) and 'title' in axis}
    names = [curve['name'] for curve in figure.spec['data'] if 'name' in curve]
    return {'title': figure.title, 'text': figure.text, 'axes': axes,
            'curves': list(dict.fromkeys(names))}
