"""Data quality, excitation, and provenance: what went in, how, and how to repeat it."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import PurePath

import numpy as np

from robot_dynid import figures
from robot_dynid.document import Action, Cell, Figure, Row, Section, Table, number, percent
from robot_dynid.estimation import Estimate
from robot_dynid.figures import axis
from robot_dynid.identification.selection import Choice
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report.texts import file_names, with_file_names
from robot_dynid.robot.units import effort_unit, length, unit
from robot_dynid.signals.parts import Parts, in_memory
from robot_dynid.signals.prepare import Averaging, late_encoders
from robot_dynid.types import RawLog, StoredRecording
from robot_dynid.version import VERSION

#: share of a limit that a motion should use at least, for its parameters to show
USED_LIMIT_SHARE = 0.3
#: packages whose versions are told
PACKAGES = ('numpy', 'scipy')


def recordings_of(logs: Sequence[RawLog]) -> Sequence[RawLog | StoredRecording]:
    """Return the recordings, whose parts count as one."""
    return logs.recordings if isinstance(logs, Parts) else logs


def data(logs: Sequence[RawLog], model: IdentifiedModel, choice: Choice | None = None) -> Section:
    """Return the files with their findings, and the preprocessing with its reasons."""
    recordings = recordings_of(logs)
    names = file_names([log.source for log in recordings])
    rows = tuple(Row(_recording(log, names)) for log in recordings)
    columns = ('recording', 'samples', 'seconds', 'rate [Hz]', 'channels')
    tables = (Table(columns, rows, words=True),
              Table((), _settings(model), 'Preprocessing and model', words=True, folded=True),
              *(_averaged(model, mean) for mean in model.record.averaging))
    remarks = tuple(f'{names[log.source]}: {text}' for log in recordings
                    for text in with_file_names(log.findings, names))
    drawn: tuple[Figure, ...] = ()
    if choice is not None and len(choice.cutoffs) > 1:
        drawn = (Figure(cutoffs(choice.cutoffs, choice.preprocessing.cutoff,
                                effort_unit(model.robot)),
                        'Choice of the cut-off by the held-out error', 'The lowest point is '
                        'chosen; a flat curve means that the choice hardly matters.'),)
    return Section('Data and preprocessing', warnings=remarks, tables=tables, figures=drawn)


def _settings(model: IdentifiedModel) -> tuple[Row, ...]:
    settings, lag = model.preprocessing, model.record.effort_lag
    measured = '' if lag is None else \
        f' (measured {1e3 * lag.seconds:.3g} ± {1e3 * lag.std:.2g} ms)'
    rate = "the recording's own" if settings.rate is None else f'{number(settings.rate)} Hz'
    pairs = (
        ('low-pass', f'{number(settings.cutoff)} Hz, zero phase, motion and effort alike'),
        *([('low-pass of the prediction, by joint [Hz]', ', '.join(
            number(one) for one in model.record.passbands))] if model.record.passbands else []),
        ('grid', rate), ('effort lag', f'{number(1e3 * settings.effort_lag)} ms, removed'
                         + measured),
        *([('delays of link encoders, removed [ms]', ', '.join(
            f'{model.joints[j]} {number(1e3 * late)}'
            for j, late in late_encoders(settings.encoder_delays)))]
          if settings.encoder_delays else []),
        ('samples reduced to what the cut-off leaves', settings.decimate),
        ('weights of samples near reversals of velocity', ', '.join(
            number(w) for w in model.record.weights_near_reversals) or 'not known'),
        ('rest at both ends dropped', settings.trim_rest),
        ('friction', '; '.join(model.structure.described)),
        ('rotor inertia', model.structure.rotor_inertia),
        ('effort kind', model.robot.drive.kind), ('method', model.method),
        ('findings accepted', ', '.join(model.record.accepted) or 'none'),
    )
    return tuple(Row(pair) for pair in pairs)


def _averaged(model: IdentifiedModel, mean: Averaging) -> Table:
    """Return the noise of an averaged recording: of one period, and of their mean."""
    share = mean.periods ** -0.5
    rows = tuple(
        Row((joint, number(position), number(effort), number(share * position),
             number(share * effort)))
        for joint, position, effort in zip(
            model.joints, mean.position_noise, mean.effort_noise, strict=True))
    title = (f'{PurePath(mean.source).name}: {mean.periods} periods of {mean.period:.7g} s '
             'averaged; noise of one period and of the mean')
    return Table(('joint', 'position', 'effort', 'mean position', 'mean effort'), rows, title)


def _recording(
    recording: RawLog | StoredRecording, names: Mapping[str, str]
) -> tuple[str, ...]:
    log = in_memory(recording)
    steps = np.diff(log.time[np.isfinite(log.time)])
    step = float(np.median(steps)) if len(steps) else np.nan
    present = [c for c in ('position', 'velocity', 'effort', 'motor_position', 'motor_velocity',
                           'joint_torque', 'external_torque') if getattr(log, c) is not None]
    return (names[recording.source], str(len(log.time)), number(float(steps.sum())),
            number(1.0 / step if step > 0.0 else np.nan),
            ', '.join(one.replace('_', ' ') for one in present))


def cutoffs(tried: Sequence[tuple[float, float]], chosen: float, units: str) -> figures.Spec:
    """Return the held-out error of every cut-off that was tried.

    Scores are means of the logarithms of the joints' RMS errors, see `HeldOut`.
    """
    x, score = np.array(tried).T
    curve = figures.line(x, np.exp(score), 'tried', figures.MODEL,
                         more={'mode': 'lines+markers', 'showlegend': False})
    span = np.log10([tried[0][0] / 1.2, tried[-1][0] * 1.2])
    note = {'x': float(np.log10(chosen)), 'y': 1.0, 'yref': 'paper', 'showarrow': False,
            'xanchor': 'left', 'xshift': 6, 'text': f'chosen: {chosen:g} Hz'}
    return figures.figure(
        [curve], axis('cut-off [Hz]', {
            'type': 'log', 'range': span.tolist(), 'tickvals': x.tolist(),
            'ticktext': [f'{c:g}' for c, _ in tried]}),
        axis(f'held-out RMS error,<br>geometric mean of the joints [{units}]'),
        {'shapes': [figures.mark(chosen, figures.CONTROL, 'dash')], 'annotations': [note]})


def excitation(model: IdentifiedModel, estimate: Estimate | None = None) -> Section:
    """Return the ranges of the motion of the fit beside the limits, and what it left open."""
    ranges, robot = model.trained.quantities, model.robot
    text = f'Not excited: {", ".join(estimate.not_excited)}. ' \
        if estimate is not None and estimate.not_excited else ''
    rows = []
    for j, joint in enumerate(robot.joints if ranges else ()):
        at = length(robot, j)
        cells = [joint]
        for name, of in (('position', at), ('velocity', f'{at}/s'), ('acceleration', f'{at}/s²'),
                         ('effort', unit(robot, j))):
            trained = ranges.get(name)
            cells.append('–' if trained is None else
                         f'{number(trained[j, 0], 3)} to {number(trained[j, 1], 3)} {of}')
        rows.append(Row((*cells, _share(model, j, 'position'), _share(model, j, 'velocity'))))
    columns = ('joint', 'position', 'velocity', 'acceleration', 'effort', 'of its range [%]',
               'of its top speed [%]')
    tables = (Table(columns, tuple(rows), 'Motion of the fit'),) if rows else ()
    text += ('Outside these ranges the model extrapolates, with a warning. A joint that uses '
             'little of its range or speed shows little of its parameters.')
    return Section('Excitation', text=text, tables=tables)


def _share(model: IdentifiedModel, j: int, quantity: str) -> str | Cell:
    """Return the share of a limit that the motion of the fit used, marked if it is little."""
    limits, trained = model.robot.limits, model.trained.quantities.get(quantity)
    if trained is None:
        return '–'
    low, high = (float(v) for v in trained[j])
    whole = float(limits.upper[j] - limits.lower[j]) if quantity == 'position' \
        else float(limits.velocity[j])
    used = (high - low if quantity == 'position' else max(-low, high)) / whole \
        if np.isfinite(whole) and whole > 0.0 else np.nan
    if np.isnan(used):
        return '–'
    return Cell(percent(used), 'fair') if used < USED_LIMIT_SHARE else percent(used)


def provenance(
    model: IdentifiedModel, logs: Sequence[RawLog], command: Sequence[str] = ()
) -> Section:
    """Return hashes, versions and the command that repeats the work."""
    record = model.record
    names = file_names(record.recordings)
    rows = [('robot_dynid', VERSION), ('Python', platform.python_version()),
            *((package, metadata.version(package)) for package in PACKAGES),
            ('robot', f'{model.robot.name}, {PurePath(model.robot.source or "").name}'),
            ('robot, geometry and gravity', model.robot.hash()),
            ('robot, SHA-256 of its description', record.robot_digest or 'not known'),
            ('recipe, SHA-256', record.recipe_digest or 'not known')]
    digests = record.recording_digests or ('',) * len(record.recordings)
    rows += [(f'fitted to {names[source]}, SHA-256', digest or 'not a file')
             for source, digest in zip(record.recordings, digests, strict=False)]
    fitted = set(record.recordings)
    others = file_names([log.source for log in recordings_of(logs) if log.source not in fitted])
    rows += [('also shown here', name) for name in others.values()]
    words = command or ('robot-dynid', 'identify', *names, '--robot', model.robot.name,
                        *(('--method', model.method) if model.method else ()),
                        '--out', 'model.yaml')
    return Section('Provenance', actions=(
        Action('The command that repeats this:', shlex.join(words)),),
        tables=(Table((), tuple(Row(pair) for pair in rows), 'Versions and SHA-256 digests',
                      words=True, folded=True),))
