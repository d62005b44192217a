"""The sections of a report: what the numbers say, in tables, figures and plain sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.document import Card, Figure, Row, Section, Table, Verdict, number, percent
from robot_dynid.estimation import Status
from robot_dynid.identification.identify import IdentificationResult
from robot_dynid.identification.selection import Choice
from robot_dynid.identification.validate import NEAR, JointScore, Validation
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uncertainty import half_intervals
from robot_dynid.report import figures
from robot_dynid.report.texts import name, setting
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.signals.parts import HEAD, Parts
from robot_dynid.signals.prepare import Averaging
from robot_dynid.types import RawLog, StoredRecording

POOR_ERROR = 0.5  # relative error from which a joint is pointed out
EQUAL = 1.02  # ratio of two errors that counts as no difference


def verdict(status: Status) -> Verdict:
    """Return the status of a fit as the report shows it."""
    kind = {Status.OK: 'good', Status.NOT_EXCITED: 'fair'}.get(status, 'poor')
    return Verdict(kind, f'{name(status.name.lower()).capitalize()}:', f'{status.value}.')


def worst(scores: dict[str, JointScore]) -> tuple[str, JointScore]:
    """Return the joint with the largest relative error."""
    return max(scores.items(), key=lambda item: item[1].relative_error)


def summary(result: IdentificationResult) -> Section:
    """Return status with advice, the main numbers, and every warning."""
    estimate, scores = result.estimate, result.training.model['all']
    joint, score = worst(scores)
    cards = (
        Card('base parameters', str(len(estimate.values)), f'rank {estimate.rank}'),
        Card('samples of the fit', f'{result.experiment.information.samples}'),
        Card('condition number', number(estimate.condition, 3), 'unit columns'),
        Card('condition number', number(estimate.condition_raw, 3), 'raw'),
        Card('cut-off', number(result.model.preprocessing.cutoff, 3), 'Hz'),
        Card('median relative error',
             percent(float(np.median([s.relative_error for s in scores.values()]))), '%'),
        Card('largest relative error', percent(score.relative_error), f'% {joint}'),
    )
    shown = verdict(estimate.status)
    if result.model.not_identified:  # comes first, whatever else there is
        shown = Verdict('poor', 'Not identified:', f'{result.model.status}.')
    return Section('Summary', status=shown, cards=cards, warnings=result.warnings)


def validated(model: IdentifiedModel, validation: Validation) -> Section:
    """Return the summary of a validation."""
    scores, control = validation.model['all'], validation.control.get('all', {})
    worse = [j for j in control
             if scores[j].relative_error > EQUAL * control[j].relative_error]
    joint, score = worst(scores)
    good = not worse and not model.not_identified
    comparison = f'worse in {", ".join(worse)}' if worse else 'no worse in any joint'
    advice = (f'{comparison} than nominal inertials with fitted friction. Of the fit: '
              f'{model.status}.')
    cards = (
        Card('median relative error',
             percent(float(np.median([s.relative_error for s in scores.values()]))), '%'),
        Card('largest relative error', percent(score.relative_error), f'% {joint}'),
        Card('samples', str(score.samples)),
    )
    word = 'The model predicts' if good else 'The model predicts with reservations'
    return Section('Summary', cards=cards, warnings=validation.warnings,
                   status=Verdict('good' if good else 'fair', f'{word}:', advice))


def recording_count(logs: Sequence[RawLog]) -> int:
    """Return the number of recordings, whose parts count as one."""
    return len(logs.recordings) if isinstance(logs, Parts) else len(logs)


def data(logs: Sequence[RawLog], model: IdentifiedModel, choice: Choice | None = None) -> Section:
    """Return the files with their findings, and the preprocessing with its reasons."""
    recordings = logs.recordings if isinstance(logs, Parts) else logs
    rows = tuple(Row(_recording(log)) for log in recordings)
    columns = ('recording', 'samples', 'seconds', 'rate [Hz]', 'channels')
    tables = (Table(columns, rows, words=True),
              Table((), _settings(model), 'Preprocessing and model', words=True),
              *(_averaged(model, mean) for mean in model.record.averaging))
    found = tuple(f'{Path(log.source).name}: {text}' for log in recordings
                  for text in log.findings)
    drawn: tuple[Figure, ...] = ()
    if choice is not None and len(choice.cutoffs) > 1:
        drawn = (Figure(figures.as_html(figures.cutoffs(choice.cutoffs,
                                                        choice.preprocessing.cutoff)),
                        'Choice of the cut-off by the error on stretches left out of the fit'),)
    return Section('Data and preprocessing', warnings=found, tables=tables, figures=drawn)


def _settings(model: IdentifiedModel) -> tuple[Row, ...]:
    settings = model.preprocessing
    rate = "the recording's own" if settings.rate is None else f'{number(settings.rate)} Hz'
    pairs = (
        ('low-pass', f'{number(settings.cutoff)} Hz, zero phase, motion and effort alike'),
        ('grid', rate), ('lag of the effort', f'{number(1e3 * settings.effort_lag)} ms, removed'),
        ('thinned to the cut-off', setting(settings.decimate)),
        ('weights near reversals', ', '.join(
            number(w) for w in model.record.weights_near_reversals) or 'not known'),
        ('rest at both ends dropped', setting(settings.trim_rest)),
        ('friction', '; '.join(model.structure.described)),
        ('rotor inertia', setting(model.structure.rotor_inertia)),
        ('effort kind', model.robot.drive.kind),
        ('robot', f'{model.robot.name}, {model.robot.hash()}'), ('method', model.method),
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
    title = (f'{Path(mean.source).name}: {mean.periods} periods of {mean.period:.7g} s '
             'averaged; noise of one period and of the mean')
    return Table(('joint', 'position', 'effort', 'mean position', 'mean effort'), rows, title)


def _recording(recording: RawLog | StoredRecording) -> tuple[str, ...]:
    if isinstance(recording, RawLog):
        head, count = recording, len(recording.time)
        steps = np.diff(head.time[np.isfinite(head.time)])
        seconds = float(steps.sum())
    else:
        count = len(recording)
        head = recording.read(0, min(HEAD, count))
        end = recording.read(max(count - HEAD, 0), count)
        steps = np.diff(head.time[np.isfinite(head.time)])
        known = end.time[np.isfinite(end.time)]
        seconds = float(known[-1] - head.time[0]) if len(known) else np.nan
    step = float(np.median(steps)) if len(steps) else np.nan
    present = [c for c in ('position', 'velocity', 'effort', 'motor_position', 'motor_velocity',
                           'joint_torque', 'external_torque') if getattr(head, c) is not None]
    return (recording.source, str(count), number(seconds),
            number(1.0 / step if step > 0.0 else np.nan), ', '.join(present))


def scores(validation: Validation, title: str) -> Section:
    """Return the scores of model and control row, joint by joint, motion and rest apart."""
    control = validation.control.get('all')
    rows = []
    own = validation.repeatability
    for i, (joint, score) in enumerate(validation.model['all'].items()):
        mark = 'poor' if score.relative_error > POOR_ERROR else ''
        parts = [validation.model.get(part, {}).get(joint) for part in ('motion', 'rest', NEAR)]
        rows.append(Row((
            joint, number(score.rmse), number(None if own is None else float(own[i])),
            percent(score.nrmse), percent(score.relative_error),
            percent(control[joint].relative_error if control else None),
            *(percent(p.relative_error if p else None) for p in parts), f'{score.r2:.3f}',
            ' / '.join(number(q, 2) for q in score.quartiles), percent(score.outliers)), mark))
    columns = ('joint', 'RMSE', 'robot itself', 'RMSE / std [%]', 'error [%]', 'control [%]',
               'in motion [%]', 'at rest [%]', 'near reversals [%]', 'R²', 'quartiles',
               'outliers [%]')
    text = ('Error: |measured − predicted| / |measured| against the raw effort. Control: the '
            'nominal inertials with fitted friction; a model that is not better has learnt '
            'nothing about the links. At rest friction is undetermined and decides the error; '
            'near reversals, where a joint sticks and turns, it matters most. '
            'Robot itself: RMS deviation from its own repetition, where the motion repeats; no '
            'model can do better.')
    bars = figures.as_html(figures.errors({
        'model': validation.model['all'], 'nominal inertials + fitted friction': control or {}}))
    return Section(title, text=text, tables=(Table(columns, tuple(rows)),),
                   figures=(Figure(bars, 'Relative error, model beside control'),))


def parameters(model: IdentifiedModel) -> Section:
    """Return every base parameter with its deviation, as a table and as a forest plot."""
    rows = []
    with np.errstate(divide='ignore', invalid='ignore'):
        shares = model.std / np.abs(model.values)
    for i, (label, relative) in enumerate(zip(model.labels, shares.tolist())):
        mark = 'poor' if relative > figures.FAIRLY else 'fair' if relative > figures.WELL else ''
        cells = (model.names[i], number(float(model.values[i])), number(float(model.std[i]), 2),
                 percent(relative), label)
        rows.append(Row(cells, mark))
    columns = ('parameter', 'value', 'std', 'relative [%]', 'combination')
    text = ('Standard deviations hold for coloured residuals: they are computed from whole '
            'stretches of time, not from single samples. SI units. What friction differs by from '
            f'one recording to the next: {model.record.spread_sentence}.')
    forest = figures.forest(model.names, model.values, (model.std, half_intervals(model)))
    return Section('Base parameters', text=text, tables=(Table(columns, tuple(rows), words=True),),
                   figures=(Figure(figures.as_html(forest), 'Intervals'),))


def method(model: IdentifiedModel) -> tuple[Section, ...]:
    """Return the sections that the method of the fit has of its own."""
    return model.record.details.sections(model.method, model.robot.row_names)


def unit(model: IdentifiedModel, joint: int) -> str:
    """Return the unit of a joint's effort."""
    return 'N' if model.robot.types[joint] == PRISMATIC else 'N m'


def truth(parameters: Sequence[Mapping[str, Any]], distance: float, acceleration: float
          ) -> Section:
    """Return identified beside true parameters of a simulated robot.

    ``parameters`` hold name, true, value, std, deviations, and half of the 95 % interval;
    ``distance`` and ``acceleration`` are relative errors of all parameters and of the served
    accelerations.
    """
    off = [float(p['deviations']) for p in parameters]
    inside = [abs(p['value'] - p['true']) <= p['half_interval'] for p in parameters]
    rows = tuple(
        Row((p['name'], number(p['true']), number(p['value']), number(p['std'], 2),
             number(d, 2)), '' if held else 'fair')
        for p, d, held in zip(parameters, off, inside))
    cards = (Card('parameters', percent(distance), '% from the truth'),
             Card('acceleration', percent(acceleration), '% from MuJoCo'),
             Card('inside their 95 % interval', percent(float(np.mean(inside))), '%'))
    plot = figures.truth([p['name'] for p in parameters], np.array(off), inside)
    columns = ('parameter', 'true', 'identified', 'std', 'deviation / std')
    return Section('Against the truth', cards=cards, tables=(Table(columns, rows),),
                   figures=(Figure(figures.as_html(plot), 'Deviation in standard deviations'),))


def predictions(validation: Validation, model: IdentifiedModel) -> tuple[Section, ...]:
    """Return one section with a figure per equation: joints, then motors of elastic ones."""
    robot = model.robot
    drawn = tuple(
        Figure(figures.as_html(figures.prediction(validation.traces, i, unit(model, joint))),
               name + (' (not identified)' if name in model.not_identified else ''))
        for i, (name, joint) in enumerate(zip(robot.row_names, robot.row_joints, strict=True)))
    return (Section('Measured and predicted effort', figures=drawn,
                    text='The control row is hidden at first; a click on its name shows it.'),)


def residuals(validation: Validation, model: IdentifiedModel) -> Section:
    """Return autocorrelation and distribution of the residuals."""
    drawn = (figures.correlation(validation.traces, model.robot.row_names),
             figures.histogram(validation.traces, model.robot.row_names))
    text = ('What the model leaves over. A slow autocorrelation means an effect the model lacks '
            '(friction near zero speed, elasticity, temperature), not noise.')
    return Section('Residuals', text=text, beside=True,
                   figures=tuple(Figure(figures.as_html(f)) for f in drawn))
