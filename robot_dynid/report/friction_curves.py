"""Friction over speed as a section: points from sweeps, the law through them, its band."""

from __future__ import annotations

import math
from typing import Any

from robot_dynid.document import DASH, Figure, Row, Section, Table, number
from robot_dynid.estimation.friction_sweeps.friction_curve import CurveSummary
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report import figures
from robot_dynid.report.libraries import go
from robot_dynid.report.sections import unit

FAR = 100  # a law that misses by more deviations has nothing to say at that speed
BAND = 'rgba(31, 95, 191, 0.18)'
TEXT = ('One joint there and back at constant speed while the others rest: half the difference of '
        'the torques at equal positions is friction alone, without gravity and inertia. Bars: '
        '95 % interval of every speed, from stretches of time, so coloured residuals count. Line '
        'and band: the law named and its 95 % band. What laws miss at speeds left out of their '
        'fit counts in deviations of the points, 1 % of the friction added. What friction has in '
        'common forward and backward (an offset) stays with gravity and does not show here.')


def friction_curves(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with the friction of every joint that sweeps, none where none does."""
    curves = model.record.friction_curves
    if not curves:
        return ()
    rows = tuple(Row((c.joint, c.law or 'none', _parameters(c), _shapes(c), _errors(c)))
                 for c in curves)
    columns = ('joint', 'law', 'parameters', 'shapes', 'missed at speeds left out')
    drawn = tuple(Figure(figures.as_html(curve_figure(c, _unit(model, c))), c.joint)
                  for c in curves)
    return (Section('Friction over speed', text=TEXT, beside=True, figures=drawn,
                    tables=(Table(columns, rows, words=True),)),)


def curve_figure(curve: CurveSummary, unit: str) -> Any:
    """Return the points of a curve with their intervals, and the law with its band."""
    figure, points = go.Figure(), curve.points
    line = curve.curve
    if line is not None:
        figure.add_scatter(
            x=[*line.speed, *reversed(line.speed)], fill='toself', fillcolor=BAND,
            y=[*line.upper, *reversed(line.lower)], name='95 % band', hoverinfo='skip',
            mode='lines', line={'width': 0})
        figure.add_scatter(x=line.speed, y=line.friction, name=curve.law, mode='lines',
                           line={'color': figures.MODEL, 'width': 1.6})
    figure.add_scatter(
        x=[p.speed for p in points], y=[p.friction for p in points], mode='markers',
        name='sweeps', marker={'color': figures.CONTROL, 'size': 7},
        error_y={'type': 'data', 'array': [p.upper - p.friction for p in points],
                 'color': figures.CONTROL, 'thickness': 1.6, 'width': 4})
    speed = 'm/s' if unit == 'N' else 'rad/s'
    ticks = _ticks(points[0].speed, points[-1].speed)
    figure.update_xaxes(title=f'speed [{speed}]', type='log', tickvals=ticks,
                        ticktext=[f'{t:g}' for t in ticks])
    figure.update_yaxes(title=f'friction [{unit}]', rangemode='tozero')
    # room for the tools above the legend
    return figures.styled(figure, 340).update_layout(margin={'t': 56})


def _unit(model: IdentifiedModel, curve: CurveSummary) -> str:
    return unit(model, model.joints.index(curve.joint))


def _parameters(curve: CurveSummary) -> str:
    return ', '.join(f'{p.name} {number(p.value)} ± {number(p.std, 2)}'
                     for p in curve.parameters)


def _shapes(curve: CurveSummary) -> str:
    """Return the shapes that matter at the speeds of the sweeps."""
    return ', '.join(f'{name} {number(curve.settings[name], 3)}'
                     for name in curve.shapes) or DASH


def _errors(curve: CurveSummary) -> str:
    errors = curve.errors_at_speeds_left_out
    return ', '.join(f'{law} {number(errors[law], 2) if errors[law] < FAR else f"> {FAR}"}'
                     for law in sorted(errors, key=lambda law: errors[law]))


def _ticks(low: float, high: float) -> list[float]:
    """Return 1, 2, 5 in every decade within and about a range."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [float(f'{digit}e{d}') for d in decades for digit in (1, 2, 5)]
