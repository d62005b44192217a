"""Sections of a document as data: cards, tables, figures; and how numbers are written in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

DASH = '–'


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with few digits, a dash where there is none."""
    if value is None or np.isnan(value):
        return DASH
    return '∞' if np.isinf(value) else f'{value:.{digits}g}'


def percent(share: float | None) -> str:
    """Return a share as per cent."""
    if share is None or np.isnan(share):
        return DASH
    return '∞' if np.isinf(share) else f'{100.0 * share:.1f}'


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
    """A part of a document; everything but the title may be absent."""

    title: str
    text: str = ''
    status: Verdict | None = None
    cards: tuple[Card, ...] = ()
    warnings: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    figures: tuple[Figure, ...] = ()
    beside: bool = False
