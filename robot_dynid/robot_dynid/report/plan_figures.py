"""Figures of a planned excitation: motion with limits, tip path, clearance, search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robot_dynid import figures
from robot_dynid.collision.shapes import plain_box
from robot_dynid.figures import Spec, axis, line, on, packed, points
from robot_dynid.robot.surroundings import Surroundings
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

PATH = 620  # px
UNITS = {'position': 'rad, m', 'velocity': 'rad/s, m/s', 'acceleration': 'rad/s², m/s²',
         'effort': 'N m, N'}
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
FACES = np.array([(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7),
                  (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)])


def motion(
    time: FloatArray, planned: tuple[Motion, FloatArray | None], limits: MotionLimits, joint: int
) -> Spec:
    """Return position, velocity, acceleration (and effort) of a joint with its limits.

    ``time`` (N,) s; ``planned`` motion with efforts (N, n) N m (N), None where not known.
    """
    moved, effort = planned
    names = [name for name in UNITS if name != 'effort' or effort is not None]
    silent = {'showlegend': False}
    dashed = {**silent, 'hoverinfo': 'skip', 'line': {'dash': 'dash'}}
    curves = []
    for pane, name in enumerate(names, start=1):
        values = np.asarray(effort if name == 'effort' else getattr(moved, name))[:, joint]
        curves.append(on(line(time, values, name, figures.MODEL, more=silent), pane))
        ends = [time[0], time[-1]]
        curves += [on(line(ends, [bound, bound], 'limit', figures.POOR, more=dashed), pane)
                   for bound in _bounds(name, limits, joint)]
    panes = [(axis(f'{name}<br>[{UNITS[name].split(",")[0]}]'), 1.0) for name in names]
    return figures.stacked(curves, axis('time [s]'), panes, {'height': 120 * len(names)})


def _bounds(name: str, limits: MotionLimits, joint: int) -> tuple[float, ...]:
    if name == 'position':
        pair = (limits.lower[joint], limits.upper[joint])
    else:
        pair = (-getattr(limits, name)[joint], getattr(limits, name)[joint])
    return tuple(float(value) for value in pair if np.isfinite(value))


def path(
    time: FloatArray, tip: FloatArray, chains: FloatArray, around: Surroundings
) -> Spec:
    """Return the way of the tip (T, 3), the arm (k, m, 3) at some instants, floor and boxes."""
    curves: list[Spec] = []
    if around.floor is not None:
        curves.append(_floor(around.floor, np.vstack([tip, chains.reshape(-1, 3)])))
    for index, box in enumerate(around.keep_out):
        shape = plain_box('', box.placement, box.size)
        corners = CORNERS * shape.edges @ shape.placement[:3, :3].T + shape.placement[:3, 3]
        curves.append({'type': 'mesh3d', **_xyz(corners), **dict(zip('ijk', map(packed, FACES.T))),
                       'color': figures.POOR, 'opacity': 0.35, 'flatshading': True,
                       'name': f'keep_out[{index}]', 'showlegend': True, 'hoverinfo': 'name'})
    for index, chain in enumerate(chains):
        first = index == 0
        colour = figures.INK if first else figures.MEASURED
        curves.append({
            'type': 'scatter3d', 'mode': 'lines+markers', **_xyz(chain),
            'line': {'color': colour, 'width': 7 if first else 3}, 'marker': {'size': 3},
            'name': 'axes at the start' if first else 'axes on the way', 'showlegend': index < 2,
            'hoverinfo': 'skip'})
    curves.append({
        'type': 'scatter3d', 'mode': 'lines', **_xyz(tip), 'name': 'tip', 'showlegend': False,
        'line': {'color': packed(time), 'colorscale': 'Viridis', 'width': 4, 'showscale': True,
                 'colorbar': {**figures.COLOUR_BAR, 'title': {'text': 'tip at [s]'}}},
        'customdata': packed(time), 'hovertemplate': '%{customdata:.2f} s<extra></extra>'})
    scene: dict[str, Any] = {f'{name}axis': axis(f'{name} [m]') for name in 'xyz'}
    scene |= {'aspectmode': 'data', 'camera': {'eye': {'x': 1.6, 'y': 1.6, 'z': 0.9},
                                               'center': {'x': 0, 'y': 0, 'z': -0.12}}}
    return {'data': curves, 'layout': {'scene': scene, 'height': PATH, 'hovermode': 'closest',
                                       'margin': {'l': 0, 'r': 0, 'b': 0}}}


def _xyz(places: FloatArray) -> Spec:
    return {name: packed(places[:, k]) for k, name in enumerate('xyz')}


def _floor(height: float, places: FloatArray) -> Spec:
    low, high = places.min(axis=0) - 0.1, places.max(axis=0) + 0.1
    corners = np.array([[low[0], low[1], height], [high[0], low[1], height],
                        [high[0], high[1], height], [low[0], high[1], height]])
    return {'type': 'mesh3d', **_xyz(corners), 'i': [0, 0], 'j': [1, 2], 'k': [2, 3],
            'color': figures.MEASURED, 'opacity': 0.3, 'name': 'floor', 'showlegend': True,
            'hoverinfo': 'name'}


def distances(time: FloatArray, nearest: FloatArray, names: Sequence[str]) -> Spec:
    """Return the distances (T, m) of the nearest pairs along the motion."""
    curves = [line(time, 1e3 * values, name, figures.series(i))
              for i, (name, values) in enumerate(zip(names, nearest.T, strict=True))]
    ticks = [1, 3, 10, 30, 100, 300, 1000]
    return figures.figure(curves, axis('time [s]'), axis('distance [mm]', {
        'type': 'log', 'tickvals': ticks, 'ticktext': [str(t) for t in ticks]}))


def progress(first: FloatArray, last: FloatArray, title: str) -> Spec:
    """Return the value of every start of the search at first and in the end, each (k,)."""
    starts = np.arange(1, len(first) + 1)
    ways = np.full(3 * len(first), np.nan)
    values = ways.copy()
    ways[0::3] = ways[1::3] = starts
    values[0::3], values[1::3] = first, last
    curves = [line(ways, values, 'search', figures.MEASURED,
                   more={'showlegend': False, 'hoverinfo': 'skip'}),
              points(starts, first, 'random start', figures.CONTROL),
              points(starts, last, 'in the end', figures.MODEL)]
    return figures.figure(curves, axis('start', {'dtick': 1, 'range': [0.5, len(first) + 0.5]}),
                          axis(title), {'hovermode': 'closest'})
