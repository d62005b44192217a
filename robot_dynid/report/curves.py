"""See it: measured and predicted effort over time, friction over speed, ripple over position."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from robot_dynid.document import Figure, Section
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report import figures, thinning
from robot_dynid.report.figures import Spec, axis, line, on, points
from robot_dynid.report.texts import file_names, length, unit
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.types import FloatArray
from robot_dynid.validation.validate import Trace, Validation

#: name of the time axes that are zoomed together
TIME = 'time'
#: recordings whose names stand in the figures
NAMED_RECORDINGS = 6
#: bins of a speed range, finer about zero; samples that a bin must hold; samples drawn as they are
SPEED_BINS, LEAST_BIN_SAMPLES, CLOUD = 33, 12, 1500
#: bins of one wave of ripple; share of the RMS speed from which a joint moves
PHASES, MOVING_RMS_SHARE = 36, 0.05


def predictions(validation: Validation, model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with a figure per equation: joints, then motors of elastic ones."""
    robot = model.robot
    drawn = tuple(
        Figure(prediction(validation.traces, (i, joint), unit(robot, joint)), link=TIME,
               title=name + (' (not identified)' if name in model.not_identified else ''))
        for i, (name, joint) in enumerate(zip(robot.row_names, robot.row_joints, strict=True)))
    text = ('Drag over a part of one figure to zoom all of them, double-click to see everything. '
            'Nominal inertials with fitted friction are hidden at first: a click on "nominal" in '
            'the legend shows them. Strokes below the residual: the joint reverses. Circles: '
            'errors far outside all others. Shaded: nothing was recorded.')
    return (Section('Measured and predicted effort', figures=drawn, text=text),)


def prediction(traces: Sequence[Trace], row: tuple[int, int], unit: str) -> Spec:
    """Return measured and predicted effort of an equation and its joint, the residual below."""
    curve = thinning.curve(traces, *row)
    curves = [line(curve.time, curve.measured, 'measured', figures.MEASURED)]
    if curve.control is not None:
        curves.append(line(curve.time, curve.control, 'nominal', figures.CONTROL,
                           more={'visible': 'legendonly'}))
    residual = curve.measured - curve.predicted
    curves += [line(curve.time, curve.predicted, 'predicted', figures.MODEL),
               on(line(curve.time, residual, 'residual', figures.RESIDUAL), 2)]
    if len(curve.reversals):
        curves.append(on(points(
            curve.reversals, np.zeros(len(curve.reversals)), 'reversal', figures.SOFT,
            more={'hoverinfo': 'skip', 'marker': {'symbol': 'line-ns', 'size': 14, 'line': {
                'width': 1.2, 'color': figures.SOFT}}}), 3))
    if len(curve.outliers):
        ring = {'symbol': 'circle-open', 'size': 8, 'line': {'width': 1.5}}
        curves.append(on(points(curve.outliers[:, 0], curve.outliers[:, 1], 'far outside',
                                figures.POOR, more={'hoverinfo': 'skip', 'marker': ring}), 2))
    several, known = len(traces) > 1, curve.time[np.isfinite(curve.time)]
    span = [float(known[0]), float(known[-1])]
    shapes, notes = _recordings(traces) if several else ([], [])
    shapes += [{'type': 'rect', 'x0': start, 'x1': stop, 'y0': 0, 'y1': 1, 'yref': 'paper',
                'fillcolor': '@measured/25', 'line': {'width': 0}}
               for start, stop in curve.gaps]
    return figures.stacked(
        curves, axis('time [s], recordings one after the other' if several else 'time [s]',
                     more={'range': span}),
        [(axis(f'effort [{unit}]'), 2.0), (axis(f'residual [{unit}]'), 1.0)],
        {'yaxis3': {'overlaying': 'y2', 'range': [0, 1], 'visible': False, 'fixedrange': True},
         'height': 400, 'shapes': shapes, 'annotations': notes,
         'legend': {'y': 1.03 if several else 1.0}})


def _recordings(traces: Sequence[Trace]) -> tuple[list[Spec], list[Spec]]:
    """Return lines where recordings begin, and their names where they are few."""
    starts = thinning.offsets(traces)
    names = file_names([trace.source for trace in traces])
    lines = [{'type': 'line', 'x0': start, 'x1': start, 'y0': 0, 'y1': 1, 'yref': 'paper',
              'line': {'color': figures.SOFT, 'width': 1, 'dash': 'dot'}} for start in starts]
    notes = [{'x': start, 'y': 1.0, 'yref': 'paper', 'text': _short(names[trace.source]),
              'showarrow': False, 'xanchor': 'left', 'yanchor': 'bottom', 'font': {'size': 10},
              'name': 'wide'}  # for wide pages alone
             for trace, start in zip(traces, starts, strict=True)]
    return lines, notes if len(traces) <= NAMED_RECORDINGS else []


def _short(name: str) -> str:
    bare = re.sub(r'\.(csv(\.gz)?|mcap|db3)$', '', name)
    return bare if len(bare) <= 24 else bare[:23] + '…'


def friction_data(validation: Validation, model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the friction of every joint over speed, none where speeds are not known.

    That of a gear that gives is on its motor, and in the whole effort of the joint, too: once.
    """
    robot, traces = model.robot, validation.traces
    if any(t.friction is None or t.velocity is None for t in traces):
        return ()
    drawn: dict[int, Figure] = {}
    for i, (name, joint) in enumerate(zip(robot.row_names, robot.row_joints, strict=True)):
        speed = np.concatenate([t.velocity[:, joint] for t in traces])  # type: ignore[index]
        part = np.concatenate([t.friction[:, i] for t in traces])  # type: ignore[index]
        if joint in drawn or not np.any(part):
            continue
        measured = part + thinning.residuals(traces, i)
        rate = 'm/s' if robot.types[joint] == PRISMATIC else 'rad/s'
        drawn[joint] = Figure(friction(speed, measured, part, (rate, unit(robot, joint))), name)
    text = ('Measured effort less everything of the model but friction. Points: median in bins of '
            'speed, with bars that hold the middle half; dots: single samples. Line: the model, '
            'likewise. Where the points leave the line, the friction law misses something.')
    return (Section('Friction over speed', text=text, beside=True,
                    figures=tuple(drawn.values())),) if drawn else ()


def friction(
    speed: FloatArray, measured: FloatArray, modelled: FloatArray, units: tuple[str, str]
) -> Spec:
    """Return friction over speed, all (N,), as a figure; ``units`` of speed and friction."""
    share = np.linspace(-1.0, 1.0, SPEED_BINS)
    edges = float(np.abs(speed).max()) * np.sign(share) * share**2
    middle, low, data, high = _quartiles(speed, measured, edges)
    _, _, law, _ = _quartiles(speed, modelled, edges)
    thin = slice(None, None, max(1, len(speed) // CLOUD))
    inner = np.percentile(measured, (0.5, 99.5))
    reach = 0.1 * float(inner[1] - inner[0])
    curves = [
        points(speed[thin], measured[thin], 'samples', '@measured/25',
               {'marker': {'size': 3}, 'hoverinfo': 'skip'}),
        points(middle, data, 'measured, median and middle half', figures.CONTROL,
               {'error_y': {'type': 'data', 'symmetric': False, 'width': 0, 'thickness': 1.5,
                            'array': figures.packed(high - data), 'color': figures.CONTROL,
                            'arrayminus': figures.packed(data - low)}}),
        line(middle, law, 'model', figures.MODEL, width=2)]
    return figures.figure(
        curves, axis(f'speed [{units[0]}]'),
        axis(f'friction [{units[1]}]',
             {'range': [float(inner[0]) - reach, float(inner[1]) + reach]}),
        {'height': 320, 'hovermode': 'closest'})


def _quartiles(
    x: FloatArray, y: FloatArray, edges: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return mean x and the quartiles of y in each bin that holds enough, (k,) each."""
    order = np.argsort(np.searchsorted(edges[1:-1], x), kind='stable')
    bounds = np.searchsorted(np.searchsorted(edges[1:-1], x)[order], np.arange(len(edges)))
    found = [(float(np.mean(x[own])), *np.percentile(y[own], (25, 50, 75)))
             for own in (order[a:b] for a, b in pairwise(bounds))
             if len(own) >= LEAST_BIN_SAMPLES]
    return tuple(np.array(found).reshape(-1, 4).T)  # type: ignore[return-value]


def ripple_data(validation: Validation, model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the largest wave of every joint with torque ripple, none without."""
    robot, traces, drawn = model.robot, validation.traces, []
    for joint in model.record.ripple:
        if not joint.waves or any(t.waves is None or t.velocity is None for t in traces):
            continue
        j, order = robot.joints.index(joint.joint), joint.waves[0].order
        phase, part = np.concatenate(
            [t.waves[:, :, j] for t in traces], axis=1)  # type: ignore[index]
        speed = np.abs(np.concatenate([t.velocity[:, j] for t in traces]))  # type: ignore[index]
        moves = speed > MOVING_RMS_SHARE * np.sqrt(np.mean(speed**2))
        measured = part + thinning.residuals(traces, j)
        drawn.append(Figure(_wave(phase[moves], (measured[moves], part[moves]), order, (
            length(robot, j), unit(robot, j))), f'{joint.joint}, {order:.4g} waves per turn'))
    text = ('The largest wave of each joint and what the model leaves of the effort, while the '
            'joint moves, over the position in the wave with twist and delay: median and middle '
            'half. Line: the wave of the model.')
    return (Section('Torque ripple over position', text=text, beside=True,
                    figures=tuple(drawn)),) if drawn else ()


def _wave(
    phase: FloatArray, pair: tuple[FloatArray, FloatArray], order: float, units: tuple[str, str],
) -> Spec:
    """Return measured and modelled torque, each (N,), over one wave."""
    edges = np.linspace(0.0, 2.0 * np.pi, PHASES + 1)
    middle, low, data, high = _quartiles(np.mod(phase, 2.0 * np.pi), pair[0], edges)
    _, _, law, _ = _quartiles(np.mod(phase, 2.0 * np.pi), pair[1], edges)
    scale, name = 1e3 / order, f'm{units[0]}'
    curves = [figures.band(scale * middle, low, high, 'middle half', figures.CONTROL),
              points(scale * middle, data, 'measured, median', figures.CONTROL),
              line(scale * middle, law, 'model', figures.MODEL, width=2)]
    return figures.figure(curves, axis(f'position within a wave [{name}]'),
                          axis(f'torque [{units[1]}]'),
                          {'height': 300, 'hovermode': 'closest'})
