"""What a report is made of: cards, tables, figures, in sections."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Card:
    """One number of the summary."""

    name: str
    value: str
    unit: str = ''


@dataclass(frozen=True)
class Row:
    """Cells of a table; ``mark`` is '', 'fair' or 'poor'."""

    cells: tuple[str, ...]
    mark: str = ''


@dataclass(frozen=True)
class Table:
    """A table; without columns it lists names and values. ``words``: the last column is text."""

    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    title: str = ''
    words: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure as HTML fragment."""

    html: str
    title: str = ''


@dataclass(frozen=True)
class Verdict:
    """``kind`` is 'good', 'fair' or 'poor'."""

    kind: str
    word: str
    advice: str


@dataclass(frozen=True)
class Section:
    """A part of the report; everything but the title may be absent."""

    title: str
    text: str = ''
    status: Verdict | None = None
    cards: tuple[Card, ...] = ()
    warnings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    beside: bool = False
