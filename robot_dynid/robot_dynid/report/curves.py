"""Curves of single joints: effort over time and by cause, friction, ripple, simulated motion."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from robot_dynid import figures
from robot_dynid.document import Figure, Section, Table
from robot_dynid.effects.shown import ByJoint
from robot_dynid.figures import FROM_ZERO, Spec, axis, line, on, points
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report import thinning
from robot_dynid.report.texts import file_names
from robot_dynid.robot.model import POSITION_ERROR
from robot_dynid.robot.units import length, rate, unit
from robot_dynid.types import FloatArray
from robot_dynid.validation.effort_parts import CAUSES
from robot_dynid.validation.rollout_scores import CONTROL, INSTANTS, MODEL
from robot_dynid.validation.validate import Trace, Validation

#: name of the time axes that are zoomed together
TIME = 'time'
#: recordings whose names stand in the figures
NAMED_RECORDINGS = 6
#: points of each curve of the effort by cause
SPLIT_POINTS = 1200
HORIZONS_TITLE = 'Error of open-loop simulation over its horizon'
#: bins of a speed range, finer about zero; samples drawn as they are
SPEED_BINS, CLOUD = 33, 1500


def predictions(validation: Validation, model: IdentifiedModel) -> ByJoint:
    """Return measured and predicted effort of every equation: joints, then their motors."""
    robot = model.robot
    charts: ByJoint = {}
    for i, (name, joint) in enumerate(zip(robot.row_names, robot.row_joints, strict=True)):
        drawn = Figure(
            prediction(validation.traces, (i, joint), unit(robot, joint)), link=TIME,
            title=f'Measured and predicted effort of {name}' + (
                ' (not identified)' if name in model.not_identified else ''),
            text='Peaks of the residual at the tick marks (reversals) are friction; single '
                 'circles are faults of the recording.')
        charts[joint] = (*charts.get(joint, ()), drawn)
    return charts


def split(validation: Validation, model: IdentifiedModel) -> ByJoint:
    """Return the modelled effort of every joint by cause, over time."""
    traces, robot, charts = validation.traces, model.robot, ByJoint()
    if any(t.split is None for t in traces):
        return charts
    for j in range(robot.n):
        time, parts = thinning.joined(traces, [
            {cause: getattr(trace.split, cause)[:, j] for cause in CAUSES} for trace in traces],
            SPLIT_POINTS)
        curves = [line(time, values, cause, figures.series(i))
                  for i, (cause, values) in enumerate(parts.items()) if np.nanmax(np.abs(values))]
        charts[j] = (Figure(figures.figure(
            curves, axis('time [s]'), axis(f'effort [{unit(robot, j)}]')),
            'Where the effort goes', 'The curves add up to the predicted effort; the model '
            'must know the largest best.', link=TIME),)
    return charts


def scatter(validation: Validation, model: IdentifiedModel) -> ByJoint:
    """Return predicted over measured effort of every joint."""
    traces, charts = validation.traces, ByJoint()
    for j in range(model.robot.n):
        measured, predicted = (np.concatenate([getattr(t, name)[:, j] for t in traces])
                               for name in ('measured', 'predicted'))
        thin = _thin(len(measured))
        ends = [float(measured.min()), float(measured.max())]
        of = unit(model.robot, j)
        charts[j] = (Figure(figures.figure(
            [points(measured[thin], predicted[thin], 'samples', f'{figures.MODEL}/45',
                    {'marker': {'size': 3}, 'hoverinfo': 'skip', 'showlegend': False}),
             line(ends, ends, 'equal', figures.INK, more={'showlegend': False})],
            axis(f'measured effort [{of}]'), axis(f'predicted effort [{of}]'),
            {'hovermode': 'closest'}), 'Predicted over measured effort',
            'Points off the line at one end: a wrong scale; a gap about zero: friction.'),)
    return charts


def _thin(count: int) -> slice:
    """Return every sample of a few, fewer of many: less than twice those of a cloud."""
    return slice(None, None, max(1, count // CLOUD))


def simulated(validation: Validation, model: IdentifiedModel) -> ByJoint:
    """Return simulated and measured position of every joint along the longest recording."""
    motions = [t.open_loop for t in validation.traces if t.open_loop is not None]
    if not motions:
        return {}
    one = max(motions, key=lambda own: own.time.shape[0])
    charts = ByJoint()
    for j in range(model.robot.n):
        curves = [line(_with_gaps(one.time), _with_gaps(one.measured[:, :, j]), 'measured',
                       figures.MEASURED, 3.0)]
        for name, words, colour in ((CONTROL, 'baseline', figures.CONTROL),
                                    (MODEL, 'identified', figures.MODEL)):
            if name in one.positions:
                curves.append(line(_with_gaps(one.time), _with_gaps(
                    one.positions[name][:, :, j]), words, colour))
        charts[j] = (Figure(figures.figure(
            curves, axis('time [s]'), axis(f'position [{length(model.robot, j)}]')),
            'Simulated and measured position',
            f'Every piece starts at a measured state and runs under the {_driven_by(model)}; the '
            'gap at its end is the error of the simulation.'),)
    return charts


def _with_gaps(pieces: FloatArray) -> FloatArray:
    """Return pieces (k, P) one after the other, with NaN between them."""
    return np.pad(pieces, ((0, 0), (0, 1)), constant_values=np.nan).ravel()


def _driven_by(model: IdentifiedModel) -> str:
    """Return the input of a simulation; position servos follow their commands."""
    return 'recorded commands' if model.robot.drive.kind == POSITION_ERROR else 'measured effort'


def horizons(validation: Validation, model: IdentifiedModel) -> Section:
    """Return the error of open-loop simulations over their horizon."""
    errors, robot = validation.open_loop, model.robot
    if errors is None:
        reason = validation.not_simulated or 'no recording is long enough'
        return Section(HORIZONS_TITLE, text=f'Nothing was simulated: {reason}.')
    drawn = []
    for j, name in enumerate((*robot.joints, 'tip')):
        scale, of = (1e3, 'mm') if name == 'tip' else (1.0, length(robot, j))
        curves = [line(INSTANTS, scale * values[:, j], words, colour, more={'showlegend': False})
                  for key, words, colour in (
                      (CONTROL, 'baseline', figures.CONTROL),
                      (MODEL, 'identified', figures.MODEL))
                  if (values := errors.errors.get(key)) is not None]
        drawn.append(Figure(figures.figure(curves, axis('horizon [s]'), axis(
            f'RMS error [{of}]', FROM_ZERO), figures.SMALL), name))
    stopped = f', of which {errors.stopped} stopped' if errors.stopped else ''
    reached = np.isfinite(errors.errors[MODEL]).all(axis=1)
    tables: tuple[Table, ...] = ()
    if reached.any():
        over = {words: 1e3 * np.sqrt(np.mean(errors.errors[key][reached]**2, axis=0))
                for key, words in ((MODEL, 'identified'), (CONTROL, 'baseline'))
                if key in errors.errors}
        tables = (Table(('joint', *over), zip((*robot.joints, 'tip'), *(
            one.tolist() for one in over.values())), 'RMS error of simulated motions of '
            f'{INSTANTS[int(reached.sum()) - 1]:g} s [mrad, mm]'),)
    return Section(HORIZONS_TITLE, beside=True, figures=tuple(drawn), tables=tables, text=(
        f'{errors.count} motions from measured states under the {_driven_by(model)}{stopped}. '
        'Where blue lies below orange, the identified model simulates better than the URDF with '
        'fitted friction. Ripple and slow changes are not simulated.'),
        legend=(('identified', 'model'), ('baseline: URDF inertials with fitted friction',
                                          'control')))


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
                'width': 1, 'color': figures.SOFT}}}), 3))
    if len(curve.outliers):
        ring = {'symbol': 'circle-open'}
        curves.append(on(points(curve.outliers[:, 0], curve.outliers[:, 1], 'far outside',
                                figures.POOR, more={'hoverinfo': 'skip', 'marker': ring}), 2))
    several, instants = len(traces) > 1, curve.time[np.isfinite(curve.time)]
    span = [float(instants[0]), float(instants[-1])]
    shapes, notes = _recordings(traces) if several else ([], [])
    shapes += [figures.shade(*gap, '@measured/25') for gap in curve.gaps]
    return figures.stacked(
        curves, axis('time [s], recordings one after the other' if several else 'time [s]',
                     more={'range': span}),
        [(axis(f'effort [{unit}]'), 2.0), (axis(f'residual [{unit}]'), 1.0)],
        {'yaxis3': {'overlaying': 'y2', 'range': [0, 1], 'visible': False, 'fixedrange': True},
         'height': 380, 'shapes': shapes, 'annotations': notes, 'legend': {'y': 1.03}})


def _recordings(traces: Sequence[Trace]) -> tuple[list[Spec], list[Spec]]:
    """Return lines where recordings begin, and their names where they are few."""
    starts = thinning.offsets(traces)
    names = file_names([trace.source for trace in traces])
    lines = [figures.mark(start, figures.SOFT, 'dot') for start in starts]
    notes = [{'x': start, 'y': 1.0, 'yref': 'paper', 'text': _short(names[trace.source]),
              'showarrow': False, 'xanchor': 'left', 'yanchor': 'bottom', 'font': {'size': 10},
              'name': 'wide'}  # for wide pages alone
             for trace, start in zip(traces, starts, strict=True)]
    return lines, notes if len(traces) <= NAMED_RECORDINGS else []


def _short(name: str) -> str:
    bare = re.sub(r'\.(csv(\.gz)?|mcap|db3)$', '', name)
    return bare if len(bare) <= 24 else bare[:23] + '…'


def friction_data(validation: Validation, model: IdentifiedModel) -> ByJoint:
    """Return the friction of every joint over speed, none where speeds are not known.

    That of a gear that gives is on its motor, and in the whole effort of the joint, too: once.
    """
    robot, traces = model.robot, validation.traces
    drawn = ByJoint()
    if any(t.friction is None or t.velocity is None for t in traces):
        return drawn
    for i, joint in enumerate(robot.row_joints):
        speed = np.concatenate([t.velocity[:, joint] for t in traces])  # type: ignore[index]
        part = np.concatenate([t.friction[:, i] for t in traces])  # type: ignore[index]
        if joint in drawn or not np.any(part):
            continue
        measured = part + thinning.residuals(traces, i)
        drawn[joint] = (Figure(
            friction(speed, measured, part, (rate(length(robot, joint)), unit(robot, joint))),
            'Friction over speed', 'Measured effort minus all modelled parts but friction. '
            'Where the points leave the line, the friction law is wrong.'),)
    return drawn


def friction(
    speed: FloatArray, measured: FloatArray, modelled: FloatArray, units: tuple[str, str]
) -> Spec:
    """Return friction over speed, all (N,), as a figure; ``units`` of speed and friction."""
    share = np.linspace(-1.0, 1.0, SPEED_BINS)
    edges = float(np.abs(speed).max()) * np.sign(share) * share**2
    middle, low, data, high = figures.quartiles(speed, measured, edges)
    _, _, law, _ = figures.quartiles(speed, modelled, edges)
    thin = _thin(len(speed))
    inner = np.percentile(measured, (0.5, 99.5))
    reach = 0.1 * float(inner[1] - inner[0])
    curves = [
        points(speed[thin], measured[thin], 'samples', '@measured/25',
               {'marker': {'size': 3}, 'hoverinfo': 'skip'}),
        points(middle, data, 'measured, median and quartiles', figures.CONTROL,
               {'error_y': {'type': 'data', 'symmetric': False, 'width': 0,
                            'array': figures.packed(high - data), 'color': figures.CONTROL,
                            'arrayminus': figures.packed(data - low)}}),
        line(middle, law, 'model', figures.MODEL)]
    return figures.figure(
        curves, axis(f'speed [{units[0]}]'),
        axis(f'friction [{units[1]}]',
             {'range': [float(inner[0]) - reach, float(inner[1]) + reach]}),
        {'hovermode': 'closest'})
