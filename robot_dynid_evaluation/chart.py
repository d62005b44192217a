"""Charts over logarithmic axes as SVG: text that is the same for the same numbers."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass

#: size of a panel [inch]
WIDTH, HEIGHT = 4.5, 2.8


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


def _decades(values: Sequence[float]) -> tuple[float, float]:
    """Return the powers of ten around values."""
    low = math.floor(math.log10(min(values)))
    return 10.0**low, 10.0 ** max(math.ceil(math.log10(max(values))), low + 1)


def chart(panels: Sequence[Panel], columns: int, source: str) -> str:
    """Return panels in so many columns as SVG; ``source`` says where it is from."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    rows = -(-len(panels) // columns)
    names = list(dict.fromkeys(curve.name for panel in panels for curve in panel.curves))
    # words as text, and names of marks that do not differ from run to run
    with mpl.rc_context({
            'svg.fonttype': 'none', 'svg.hashsalt': 'robot_dynid', 'font.size': 8.0}):
        figure = Figure(figsize=(columns * WIDTH, rows * HEIGHT), layout='constrained')
        for i, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, i + 1, xscale='log', yscale='log',
                                      xlabel=panel.x, ylabel=panel.y)
            axes.minorticks_off()
            axes.grid(color='0.9')
            x, y = zip(*(point for curve in panel.curves for point in curve.points), strict=True)
            axes.set(xlim=_decades(x), ylim=_decades(y))
            for curve in panel.curves:
                axes.plot(*zip(*curve.points, strict=True), '--' if curve.dashed else 'o',
                          color=f'C{names.index(curve.name)}', clip_on=curve.dashed,
                          label=None if curve.dashed else curve.name)
            axes.legend()
        out = io.StringIO()
        figure.savefig(out, format='svg', metadata={'Date': None, 'Creator': None})
    drawn = out.getvalue()
    lines = [f'<!-- {source} -->', *drawn[drawn.index('<svg'):].splitlines()]
    return '\n'.join(line.rstrip() for line in lines) + '\n'
