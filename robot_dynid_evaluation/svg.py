"""Charts over logarithmic axes as SVG: text that is the same for the same numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

#: size of a panel, and the room about its axes: left, right, top, bottom
WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 44
#: room for the names of the curves above all panels, and for each name
LEGEND, NAME = 30, 160
#: colours that differ for the colour-blind, too (Okabe and Ito 2008)
COLOURS = ('#0072b2', '#d55e00', '#009e73', '#cc79a7')


@dataclass(frozen=True)
class Curve:
    """Points (x, y), all above zero: marks, or a dashed line through them.

    Curves of one ``name`` have one colour; a ``dashed`` one is not measured.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """Curves over one pair of axes, with their titles."""

    x: str
    y: str
    curves: tuple[Curve, ...]


def chart(panels: Sequence[Panel], columns: int, comment: str) -> str:
    """Return panels in so many columns as SVG; ``comment`` says where it is from."""
    rows = -(-len(panels) // columns)
    width, height = columns * WIDTH, LEGEND + rows * HEIGHT
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">',
             f'<!-- {comment} -->', f'<rect width="{width}" height="{height}" fill="white"/>']
    for i, (name, colour) in enumerate(colours.items()):
        x = LEFT + i * NAME
        lines += [_mark(x, LEGEND / 2.0, colour), _text(x + 10.0, LEGEND / 2.0 + 4.0, name)]
    for i, panel in enumerate(panels):
        row, column = divmod(i, columns)
        lines += [f'<g transform="translate({column * WIDTH} {LEGEND + row * HEIGHT})">',
                  *_drawn(panel, colours), '</g>']
    return '\n'.join((*lines, '</svg>', ''))


@dataclass(frozen=True)
class _Axis:
    """Whole decades ``low`` to ``high`` between two places of the picture."""

    low: int
    high: int
    begin: float
    end: float

    @classmethod
    def of(cls, values: Sequence[float], begin: float, end: float) -> _Axis:
        low = math.floor(math.log10(min(values)))
        return cls(low, max(math.ceil(math.log10(max(values))), low + 1), begin, end)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + share * (self.end - self.begin)

    @property
    def ticks(self) -> list[float]:
        """The powers of ten."""
        return [10.0**decade for decade in range(self.low, self.high + 1)]


def _drawn(panel: Panel, colours: dict[str, str]) -> Iterator[str]:
    """Yield grid, titles and curves of a panel."""
    points = [point for curve in panel.curves for point in curve.points]
    x = _Axis.of([a for a, _ in points], LEFT, WIDTH - RIGHT)
    y = _Axis.of([b for _, b in points], HEIGHT - BOTTOM, TOP)
    for value in x.ticks:
        yield _line(((x.at(value), y.begin), (x.at(value), y.end)), '#dddddd')
        yield _text(x.at(value), y.begin + 15.0, f'{value:g}', 'middle')
    for value in y.ticks:
        yield _line(((x.begin, y.at(value)), (x.end, y.at(value))), '#dddddd')
        yield _text(x.begin - 6.0, y.at(value) + 4.0, f'{value:g}', 'end')
    yield _text((x.begin + x.end) / 2.0, y.begin + 34.0, panel.x, 'middle')
    middle = (y.begin + y.end) / 2.0
    yield (f'<g transform="rotate(-90 14 {middle:.1f})">{_text(14.0, middle, panel.y, "middle")}'
           '</g>')
    for curve in panel.curves:
        places = [(x.at(a), y.at(b)) for a, b in curve.points]
        if curve.dashed:
            yield _line(places, colours[curve.name], ' stroke-dasharray="5 3"')
        else:
            yield from (_mark(a, b, colours[curve.name]) for a, b in places)


def _line(places: Sequence[tuple[float, float]], colour: str, more: str = '') -> str:
    joined = ' '.join(f'{a:.1f},{b:.1f}' for a, b in places)
    return f'<polyline points="{joined}" fill="none" stroke="{colour}"{more}/>'


def _mark(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str = 'start') -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
