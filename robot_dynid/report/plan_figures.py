"""Figures of a planned excitation: motion with limits, tip path, clearance, search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robot_dynid.collision.shapes import plain_box
from robot_dynid.report.figures import CONTROL, GOOD, MODEL, POOR, styled
from robot_dynid.report.libraries import go, make_subplots
from robot_dynid.robot.surroundings import Surroundings
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

COLUMNS = ('position', 'velocity', 'acceleration', 'effort')
ROW, PATH = 120, 620  # px
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
FACES = np.array([(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7),
                  (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)])


def motion(
    time: FloatArray, planned: Motion, effort: FloatArray | None, limits: MotionLimits
) -> Any:
    """Return position, velocity, acceleration (and effort) of every joint with its limits.

    ``time`` (N,) s, ``effort`` (N, n) N m (N).
    """
    names = COLUMNS if effort is not None else COLUMNS[:3]
    rows, columns = len(limits.joints), len(names)
    figure = make_subplots(rows=rows, cols=columns, shared_xaxes=True, column_titles=list(names),
                           vertical_spacing=0.22 / rows, horizontal_spacing=0.055)
    for column, name in enumerate(names, start=1):
        values: FloatArray = np.asarray(
            effort if name == 'effort' else getattr(planned, name))
        for row in range(rows):
            place = {'row': row + 1, 'col': column}
            figure.add_scatter(x=time.astype(np.float32), y=values[:, row].astype(np.float32),
                               mode='lines', line={'color': MODEL, 'width': 1.3}, **place,
                               name=f'{limits.joints[row]}, {name}', showlegend=False)
            for bound in _bounds(name, limits, row):
                figure.add_scatter(x=[time[0], time[-1]], y=[bound, bound], mode='lines', **place,
                                   line={'color': POOR, 'width': 1, 'dash': 'dash'},
                                   hoverinfo='skip', showlegend=False)
    for row, joint in enumerate(limits.joints, start=1):
        figure.update_yaxes(title=_short(joint), row=row, col=1, title_font={'size': 11})
    figure.update_xaxes(title='time [s]', row=rows)
    styled(figure, 90 + ROW * rows).update_layout(hovermode='x', margin={'t': 56})
    figure.update_annotations(font_size=13)
    return figure.update_yaxes(tickfont={'size': 10}, nticks=5)


def _bounds(name: str, limits: MotionLimits, joint: int) -> tuple[float, ...]:
    if name == 'position':
        pair = (limits.lower[joint], limits.upper[joint])
    else:
        pair = (-getattr(limits, name)[joint], getattr(limits, name)[joint])
    return tuple(float(value) for value in pair if np.isfinite(value))


def _short(joint: str) -> str:
    text = joint.removesuffix('_joint').replace('_', ' ')
    return text if len(text) <= 14 else text[:13] + '…'


def path(
    time: FloatArray, tip: FloatArray, chains: FloatArray, around: Surroundings
) -> Any:
    """Return the way of the tip (T, 3), the arm (k, m, 3) at some instants, floor and boxes."""
    figure = go.Figure()
    if around.floor is not None:
        _floor(figure, around.floor, np.vstack([tip, chains.reshape(-1, 3)]))
    for index, box in enumerate(around.keep_out):
        shape = plain_box('', box.placement, box.size)
        points = CORNERS * shape.edges @ shape.placement[:3, :3].T + shape.placement[:3, 3]
        figure.add_mesh3d(x=points[:, 0], y=points[:, 1], z=points[:, 2], i=FACES[:, 0],
                          j=FACES[:, 1], k=FACES[:, 2], color=POOR, opacity=0.35, flatshading=True,
                          name=f'keep_out[{index}]', showlegend=True, hoverinfo='name')
    for index, chain in enumerate(chains):
        first = index == 0
        figure.add_scatter3d(
            x=chain[:, 0], y=chain[:, 1], z=chain[:, 2], mode='lines+markers',
            line={'color': '#39424f' if first else '#b8bfcb', 'width': 7 if first else 3},
            marker={'size': 4 if first else 2, 'color': '#39424f' if first else '#b8bfcb'},
            name='axes at the start' if first else 'axes on the way', showlegend=index < 2,
            hoverinfo='skip')
    figure.add_scatter3d(
        x=tip[:, 0], y=tip[:, 1], z=tip[:, 2], mode='lines', name='tip',
        line={'color': time, 'colorscale': 'Viridis', 'width': 4, 'showscale': True,
              'colorbar': {'title': 'time [s]', 'len': 0.6, 'thickness': 12}},
        customdata=time, hovertemplate='%{customdata:.2f} s<extra></extra>')
    axis = {'backgroundcolor': 'white', 'gridcolor': '#e6e9ef', 'showbackground': True}
    styled(figure, PATH).update_layout(hovermode='closest', scene={
        'xaxis': {**axis, 'title': 'x [m]'}, 'yaxis': {**axis, 'title': 'y [m]'},
        'zaxis': {**axis, 'title': 'z [m]'}, 'aspectmode': 'data',
        'camera': {'eye': {'x': 1.3, 'y': 1.3, 'z': 0.7},
                   'center': {'x': 0, 'y': 0, 'z': -0.12}}}, margin={'l': 0, 'r': 0, 'b': 0})
    return figure


def _floor(figure: Any, height: float, points: FloatArray) -> None:
    low, high = points.min(axis=0) - 0.1, points.max(axis=0) + 0.1
    figure.add_mesh3d(x=[low[0], high[0], high[0], low[0]], y=[low[1], low[1], high[1], high[1]],
                      z=[height] * 4, i=[0, 0], j=[1, 2], k=[2, 3], color='#9aa3b2', opacity=0.3,
                      name='floor', showlegend=True, hoverinfo='name')


def distances(time: FloatArray, nearest: FloatArray, names: Sequence[str]) -> Any:
    """Return the distances (T, m) of the nearest pairs along the motion."""
    figure = go.Figure()
    colours = (MODEL, CONTROL, GOOD, '#7a4fb5', '#3aa3b0', '#8a6d3b')
    for name, values, colour in zip(names, nearest.T, colours):
        figure.add_scatter(x=time, y=1e3 * values, name=name, mode='lines',
                           line={'color': colour, 'width': 1.4})
    figure.update_xaxes(title='time [s]')
    figure.update_yaxes(title='distance [mm]', type='log', tickvals=[1, 3, 10, 30, 100, 300, 1000])
    styled(figure, 340)
    return figure.update_layout(margin={'t': 60})


def progress(first: FloatArray, last: FloatArray, title: str) -> Any:
    """Return the value of every start of the search at first and in the end, each (k,)."""
    figure = go.Figure()
    for index, (a, b) in enumerate(zip(first, last), start=1):
        figure.add_scatter(x=[index, index], y=[a, b], mode='lines', showlegend=False,
                           line={'color': '#b8bfcb', 'width': 2}, hoverinfo='skip')
    starts = np.arange(1, len(first) + 1)
    figure.add_scatter(x=starts, y=first, mode='markers', name='random start',
                       marker={'color': CONTROL, 'size': 8})
    figure.add_scatter(x=starts, y=last, mode='markers', name='in the end',
                       marker={'color': MODEL, 'size': 8})
    figure.update_xaxes(title='start', dtick=1, range=[0.5, len(first) + 0.5])
    figure.update_yaxes(title=title)
    return styled(figure, 300).update_layout(hovermode='closest')
