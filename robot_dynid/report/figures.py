"""The figures of the report, as Plotly figures that need nothing from outside the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from robot_dynid.identification.validate import JointScore, Trace
from robot_dynid.report import thinning
from robot_dynid.report.libraries import get_plotlyjs, go, make_subplots
from robot_dynid.types import FloatArray

MEASURED, MODEL, CONTROL, RESIDUAL = '#9aa3b2', '#1f5fbf', '#d9822b', '#a8324a'
GOOD, FAIR, POOR = '#2a8c5a', '#d9a32b', '#a8324a'
JOINTS = ('#1f5fbf', '#d9822b', '#2a8c5a', '#a8324a', '#7a4fb5', '#3aa3b0', '#8a6d3b', '#5b6472')
GRID = '#e6e9ef'
FONT = {'family': 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif', 'size': 12,
        'color': '#1d2430'}
WELL, FAIRLY = 0.1, 0.3  # relative standard deviations
CLIP = 1.0  # half width of the forest plot, as a share of the value


def script() -> str:
    """Return plotly.js, to be embedded once."""
    source: str = get_plotlyjs()
    return source


def as_html(figure: Any) -> str:
    """Return a figure as a fragment; the page carries plotly.js."""
    text: str = figure.to_html(full_html=False, include_plotlyjs=False, default_width='100%',
                               config={'displaylogo': False, 'responsive': True})
    return text


def styled(figure: Any, height: int) -> Any:
    """Give a figure the common look and a height [px]; return it."""
    figure.update_layout(
        template='none', height=height, font=FONT, paper_bgcolor='white', plot_bgcolor='white',
        margin={'l': 64, 'r': 16, 't': 28, 'b': 44}, hovermode='x unified',
        legend={'orientation': 'h', 'x': 0.0, 'y': 1.02, 'yanchor': 'bottom'})
    figure.update_xaxes(gridcolor=GRID, zerolinecolor=GRID, linecolor='#b8bfcb', automargin=True)
    figure.update_yaxes(gridcolor=GRID, zerolinecolor='#b8bfcb', automargin=True)
    return figure


def errors(scores: Mapping[str, Mapping[str, JointScore]]) -> Any:
    """Return bars of the relative error per joint, predictions by name beside each other."""
    figure = go.Figure()
    for i, (name, of_joints) in enumerate(scores.items()):
        if of_joints:
            figure.add_bar(x=list(of_joints), name=name, marker_color=JOINTS[i % len(JOINTS)],
                           y=[100.0 * s.relative_error for s in of_joints.values()])
    figure.update_yaxes(title='relative error [%]', rangemode='tozero')
    figure.update_layout(barmode='group', bargap=0.35)
    return styled(figure, 300)


def forest(
    names: Sequence[str], values: FloatArray, spread: tuple[FloatArray, FloatArray]
) -> Any:
    """Return the 95 % interval of every parameter as a share of its value, clipped.

    ``spread`` are deviations and halves of the intervals, (b,) each.
    """
    with np.errstate(divide='ignore', invalid='ignore'):
        relative, reach = (np.where(values != 0.0, part / np.abs(values), np.inf)
                           for part in spread)
    relative, reach = (np.where(np.isnan(part), np.inf, part) for part in (relative, reach))
    figure = go.Figure()
    for name, low, high, colour in (
            ('below 10 %', -1.0, WELL, GOOD), ('10 to 30 %', WELL, FAIRLY, FAIR),
            ('above 30 %: hardly determined', FAIRLY, np.inf, POOR)):
        rows = np.flatnonzero((relative > low) & (relative <= high))
        half = np.minimum(reach[rows], CLIP)
        figure.add_scatter(
            x=np.zeros(len(rows)), y=[names[int(i)] for i in rows], mode='markers', name=name,
            marker={'color': colour, 'size': 6}, customdata=np.minimum(100 * relative[rows], 1e6),
            error_x={'type': 'data', 'array': 100.0 * half, 'thickness': 2, 'width': 0},
            hovertemplate='%{y}: std %{customdata:.3g} % of the value<extra></extra>')
    figure.update_yaxes(categoryorder='array', categoryarray=list(reversed(names)), dtick=1,
                        range=[-0.8, len(names) - 0.2])
    figure.update_xaxes(title='95 % interval about the value [% of the value, clipped at 100]',
                        range=[-105, 105])
    styled(figure, 110 + 15 * len(names)).update_layout(hovermode='closest')
    return figure.update_yaxes(tickfont={'size': 10})


def prediction(traces: Sequence[Trace], joint: int, unit: str) -> Any:
    """Return measured and predicted effort of a joint, and the residual below."""
    curve = thinning.curve(traces, joint)
    figure = make_subplots(rows=2, cols=1, shared_xaxes=True, row_heights=[0.66, 0.34],
                           vertical_spacing=0.06)
    lines: list[tuple[str, FloatArray, str, int, bool | str]] = [
        ('measured', curve.measured, MEASURED, 1, True)]
    if curve.control is not None:
        lines.append(('control', curve.control, CONTROL, 1, 'legendonly'))
    lines += [('model', curve.predicted, MODEL, 1, True),
              ('residual', curve.measured - curve.predicted, RESIDUAL, 2, True)]
    for name, values, colour, row, visible in lines:
        figure.add_scatter(
            x=curve.time.astype(np.float32), y=values.astype(np.float32), name=name, mode='lines',
            line={'color': colour, 'width': 1.2}, visible=visible, row=row, col=1)
    for trace, start in zip(traces, thinning.offsets(traces)):
        if len(traces) > 1:
            figure.add_vline(x=start, line={'color': '#b8bfcb', 'width': 1, 'dash': 'dot'})
            figure.add_annotation(x=start, y=1.0, yref='paper', text=_short(trace.source),
                                  showarrow=False, xanchor='left', yanchor='bottom',
                                  font={'size': 9, 'color': '#5b6472'})
    figure.update_yaxes(title=f'effort [{unit}]', row=1, col=1)
    figure.update_yaxes(title=f'residual [{unit}]', row=2, col=1)
    figure.update_xaxes(title='time [s], recordings one after the other', row=2, col=1)
    styled(figure, 380).update_layout(legend={'y': 1.08}, margin={'t': 48})
    return figure


def correlation(traces: Sequence[Trace], joints: Sequence[str]) -> Any:
    """Return the autocorrelation of all residuals."""
    figure = go.Figure()
    for i, joint in enumerate(joints):
        lag, value = thinning.autocorrelation(traces, i)
        figure.add_scatter(x=lag, y=value, name=joint, mode='lines',
                           line={'color': JOINTS[i % len(JOINTS)], 'width': 1.4})
    figure.update_xaxes(title='lag [s]')
    figure.update_yaxes(title='autocorrelation of the residual', range=[-1.05, 1.05])
    return styled(figure, 340)


def histogram(traces: Sequence[Trace], joints: Sequence[str]) -> Any:
    """Return the densities of the residuals, each in units of its RMS, beside the normal one."""
    edges = np.linspace(-4.0, 4.0, 81)
    middle = 0.5 * (edges[1:] + edges[:-1])
    figure = go.Figure()
    figure.add_scatter(x=middle, y=np.exp(-0.5 * middle**2) / np.sqrt(2 * np.pi), name='normal',
                       mode='lines', fill='tozeroy', line={'color': '#d5d9e2', 'width': 0})
    for i, joint in enumerate(joints):
        error = thinning.residuals(traces, i)
        size = float(np.sqrt(np.mean(error**2))) or 1.0
        density = np.histogram(error / size, edges)[0] / max(len(error), 1) / (edges[1] - edges[0])
        figure.add_scatter(x=middle, y=density, name=joint, mode='lines',
                           line={'color': JOINTS[i % len(JOINTS)], 'width': 1.4, 'shape': 'hvh'})
    figure.update_xaxes(title='residual / RMS')
    figure.update_yaxes(title='density', rangemode='tozero')
    return styled(figure, 340)


def cutoffs(tried: Sequence[tuple[float, float]], chosen: float) -> Any:
    """Return the held-out score of every cut-off that was tried."""
    figure = go.Figure()
    figure.add_scatter(x=[c for c, _ in tried], y=[s for _, s in tried], mode='lines+markers',
                       line={'color': MODEL, 'width': 1.4}, showlegend=False)
    figure.add_vline(x=chosen, line={'color': CONTROL, 'width': 1.5, 'dash': 'dash'})
    figure.add_annotation(x=np.log10(chosen), y=1.0, yref='paper', text=f'chosen: {chosen:g} Hz',
                          showarrow=False, xanchor='left', xshift=6)
    span = np.log10([tried[0][0] / 1.2, tried[-1][0] * 1.2])
    figure.update_xaxes(title='cut-off [Hz]', type='log', range=span.tolist(),
                        tickvals=[c for c, _ in tried], ticktext=[f'{c:g}' for c, _ in tried])
    figure.update_yaxes(title='error on data left out')
    return styled(figure, 260)


def truth(names: Sequence[str], deviations: FloatArray, inside: Sequence[bool]) -> Any:
    """Return the ``deviations`` (b,), (identified - true) / std, coloured by ``inside`` 95 %."""
    colours = [GOOD if held else POOR for held in inside]
    figure = go.Figure()
    figure.add_scatter(x=list(names), y=deviations, mode='markers',
                       marker={'color': colours, 'size': 7}, showlegend=False)
    figure.update_yaxes(title='(identified − true) / std')
    figure.update_xaxes(tickfont={'size': 9}, dtick=1, tickangle=-60)
    return styled(figure, 320).update_layout(hovermode='closest')


def _short(source: str) -> str:
    name = source.rsplit('/', 1)[-1]
    return name if len(name) <= 24 else name[:23] + '…'
