"""Figures in Plotly's schema, as plain data: curves, bars, markers, axes in words.

The page knows the colours of both themes, so a colour here is a name in its palette (see
`report/templates/report.css`), with its opacity in per cent where there is one: @model/20. Curves
are packed as 32-bit numbers, which the page unpacks.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.types import FloatArray

MEASURED, MODEL, CONTROL, RESIDUAL = '@measured', '@model', '@control', '@residual'
GOOD, POOR = '@good', '@poor'
INK, SOFT, LINE = '@ink', '@soft', '@line'
#: colours of joints and other sets, which differ for the colour-blind, too
SERIES = tuple(f'@series{i}' for i in range(8))
#: an axis that shows zero
FROM_ZERO: dict[str, Any] = {'rangemode': 'tozero'}
#: a bar of colours beside a figure, and small figures beside each other
COLOUR_BAR: dict[str, Any] = {'thickness': 10, 'len': 0.6, 'outlinewidth': 0}
SMALL: dict[str, Any] = {'height': 200, 'margin': {'t': 6}}

#: space between panes, as a share of the height
GAP = 0.06
#: samples that a bin must hold
LEAST_BIN_SAMPLES = 12

Spec = dict[str, Any]


def packed(values: ArrayLike) -> dict[str, str]:
    """Return numbers ``values`` (N,) as the 32-bit ones of a page; those beyond them are gaps."""
    numbers = np.asarray(values, dtype=np.float64)
    drawn = np.where(np.abs(numbers) <= np.finfo('f4').max, numbers, np.nan).astype('<f4')
    return {'packed': base64.b64encode(drawn.tobytes()).decode('ascii')}


def series(index: int) -> str:
    """Return the colour of one of a set."""
    return SERIES[index % len(SERIES)]


def line(
    x: ArrayLike, y: ArrayLike, name: str, colour: str, width: float = 1.4,
    more: Spec | None = None,
) -> Spec:
    """Return a curve through ``x`` and ``y`` (N,); ``more`` are other keys of the schema."""
    options = {**(more or {})}
    drawn = {'color': colour, 'width': width, **options.pop('line', {})}
    return {'type': 'scatter', 'mode': 'lines', 'x': packed(x), 'y': packed(y), 'name': name,
            'line': drawn, **options}


def points(
    x: ArrayLike, y: ArrayLike, name: str, colour: str, more: Spec | None = None
) -> Spec:
    """Return markers at ``x`` and ``y`` (N,); ``more`` are other keys of the schema."""
    options = {**(more or {})}
    marker = {'color': colour, 'size': 6, **options.pop('marker', {})}
    return {'type': 'scatter', 'mode': 'markers', 'x': packed(x), 'y': packed(y), 'name': name,
            'marker': marker, **options}


def bars(names: Sequence[str], values: ArrayLike, name: str, colour: str) -> Spec:
    """Return a bar of one of the ``values`` (N,) for each of ``names``."""
    return {'type': 'bar', 'x': list(names), 'y': packed(values), 'name': name,
            'marker': {'color': colour}}


def band(x: FloatArray, low: FloatArray, high: FloatArray, name: str, colour: str) -> Spec:
    """Return the area between two curves (N,)."""
    return {'type': 'scatter', 'mode': 'lines', 'fill': 'toself', 'fillcolor': f'{colour}/18',
            'x': packed(np.concatenate([x, x[::-1]])),
            'y': packed(np.concatenate([low, high[::-1]])),
            'name': name, 'line': {'width': 0}, 'hoverinfo': 'skip'}


def shade(start: float, stop: float, colour: str) -> Spec:
    """Return a shape over the whole height of a figure, from ``start`` to ``stop`` of its x."""
    return {'type': 'rect', 'x0': start, 'x1': stop, 'y0': 0, 'y1': 1, 'yref': 'paper',
            'fillcolor': colour, 'line': {'width': 0}}


def mark(x: float, colour: str, dash: str) -> Spec:
    """Return a line over the whole height of a figure at ``x``."""
    return {'type': 'line', 'x0': x, 'x1': x, 'y0': 0, 'y1': 1, 'yref': 'paper',
            'line': {'color': colour, 'dash': dash}}


def axis(title: str = '', more: Spec | None = None) -> Spec:
    """Return an axis with a title in words and unit; ``more`` are other keys of the schema."""
    return {**({'title': {'text': title}} if title else {}), **(more or {})}


def figure(curves: Sequence[Spec], x: Spec, y: Spec, more: Spec | None = None) -> Spec:
    """Return a figure with one pair of axes; ``more`` are other keys of the schema."""
    return {'data': list(curves), 'layout': {'xaxis': x, 'yaxis': y, **(more or {})}}


def on(curve: Spec, pane: int) -> Spec:
    """Return a curve on the pane with that number, counted from 1."""
    return curve if pane == 1 else {**curve, 'yaxis': f'y{pane}'}


def stacked(
    curves: Sequence[Spec], x: Spec, panes: Sequence[tuple[Spec, float]],
    more: Spec | None = None,
) -> Spec:
    """Return two or more panes above each other over one horizontal axis.

    ``panes`` are vertical axes with their shares of the height, from the top; `on` puts a curve
    on one of them; ``more`` are other keys of the schema.
    """
    free, top = 1.0 - GAP * (len(panes) - 1), 1.0
    total = sum(share for _, share in panes)
    spec: Spec = {}
    for number, (pane, share) in enumerate(panes, start=1):
        height = free * share / total
        spec[f'yaxis{number if number > 1 else ""}'] = {
            **pane, 'domain': [max(top - height, 0.0), top]}
        top -= height + GAP
    return {'data': list(curves), 'layout': {
        'xaxis': {**x, 'anchor': f'y{len(panes)}'}, **spec, **(more or {})}}


def tick_names(low: float, high: float) -> Mapping[str, list[Any]]:
    """Return 1, 2, 5 in every decade within and about a range, as ticks of a logarithmic axis."""
    decades = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    ticks = [float(f'{digit}e{d}') for d in decades for digit in (1, 2, 5)]
    return {'tickvals': ticks, 'ticktext': [f'{t:g}' for t in ticks]}


def quartiles(
    x: FloatArray, y: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean x and the quartiles of y in each bin that holds enough, (k,) each."""
    bins = np.searchsorted(edges[1:-1], x)
    order = np.argsort(bins, kind='stable')
    bounds = np.searchsorted(bins[order], np.arange(len(edges)))
    rows = [(float(np.mean(x[members])), *np.percentile(y[members], (25, 50, 75)))
            for members in (order[a:b] for a, b in pairwise(bounds))
            if len(members) >= LEAST_BIN_SAMPLES]
    return tuple(np.array(rows).reshape(-1, 4).T)  # type: ignore[return-value]
