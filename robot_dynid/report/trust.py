"""Verdict, next actions and scores of a model: the first two chapters of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dynid.document import (
    DASH,
    Action,
    Card,
    Cell,
    Conclusion,
    Figure,
    Row,
    Section,
    Table,
    number,
    percent,
)
from robot_dynid.estimation import Status
from robot_dynid.identification.identify import IdentificationResult
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.suitability import UseVerdict, Verdict
from robot_dynid.report import figures
from robot_dynid.report.texts import effort_unit, name
from robot_dynid.validation.forward_scores import (
    CONSTANT_VELOCITY,
    CONTROL,
    MODEL,
    ForwardValidation,
    Horizon,
)
from robot_dynid.validation.validate import NEAR, JointScore, Scores, Validation

POOR_ERROR = 0.5  # relative error from which a joint is pointed out
EQUAL_RATIO = 1.02  # ratio of two errors that counts as no difference
WARNINGS_SHOWN = 5  # warnings that are shown at once
PARTS = ('motion', 'rest', NEAR)
PART_COLUMNS = ('in motion [%]', 'at rest [%]', 'near reversals [%]')
FORWARD = (
    'Accelerations that the model gives under the measured effort, against the filtered measured '
    'ones; and motions simulated under the measured effort from measured states. Floor: what the '
    'noise of the recordings makes of the RMSE, with any model. Nominal: the nominal inertials '
    'with fitted friction. Constant velocity: joints that go on as they begin. Friction slides '
    'steadily in all of these: at rest it holds a joint by less or more than the model can know.')


def conclusion(status: Status) -> Conclusion:
    """Return the status of a fit as the report shows it."""
    kind = {Status.OK: 'good', Status.NOT_EXCITED: 'fair'}.get(status, 'poor')
    return Conclusion(kind, f'{name(status.name.lower()).capitalize()}:', f'{status.value}.')


def suitability(verdict: Verdict, below: Sequence[Section] = (), brief: bool = False) -> Section:
    """Return the uses each joint is good for, with numbers, thresholds and reasons.

    Its banner is no better than those of the sections ``below`` it. Of ``brief`` reasons are those
    against a use.
    """
    uses = [(joint, use) for joint in verdict.joints for use in joint.uses]
    kinds = [section.status.kind for section in below if section.status is not None]
    kind = next((kind for kind in ('poor', 'fair') if kind in (_kind(verdict), *kinds)), 'good')
    good_for = Table(('joint', *(use.use for use in verdict.joints[0].uses)), (
        (joint.joint, *map(_use, joint.uses)) for joint in verdict.joints)) if uses else None
    why = Table(('joint', 'use', 'because'), (
        (joint.joint, use.use, _because(use)) for joint, use in uses if use.words and (
            not brief or use.ok is False)),
        'Why: what was measured, against what', words=True, folded=not brief)
    return Section('What it is good for', tables=() if good_for is None else (good_for, why),
                   status=Conclusion(kind, '', verdict.words))


def _kind(verdict: Verdict) -> str:
    """Return 'poor' where a joint or a use is not good at all, 'good' where all are."""
    uses = [[use.ok for use in joint.uses] for joint in verdict.joints]
    if not uses or any(not any(ok is not False for ok in part)
                       for part in (*uses, *zip(*uses, strict=True))):
        return 'poor'
    return 'good' if all(all(joint) for joint in uses) else 'fair'


def _because(use: UseVerdict) -> str:
    """Return the reason: what was measured, and the motion that would show what is not shown."""
    motion = use.shown_by
    return use.words if motion is None else \
        f'{use.words}. {motion.words[:1].upper()}{motion.words[1:]}: {motion.command}'


def _use(use: UseVerdict) -> Cell:
    """Return the verdict with its number and threshold; shares of something in per cent."""
    mark = {None: '', True: 'good', False: 'poor'}[use.ok]
    if use.value is None or use.threshold is None:
        return Cell(use.word, mark)
    share = use.unit.startswith('of ')
    value, most = ((100.0 * one if share else one) for one in (use.value, use.threshold))
    sign, limit = ' %' if share else '', number(most, 2)
    told = next((text for digits in range(2, 7) if (text := number(value, digits)) != limit),
                limit)  # as many digits as show that it is not the threshold
    note = f'{told}{sign} {use.unit}, at most {limit}{sign}'
    beaten = use.ok is False and use.value <= use.threshold
    return Cell(use.word, mark, f'{note}, but nominal inertials do better' if beaten else note)


def actions(verdict: Verdict, most: int | None = None) -> tuple[Section, ...]:
    """Return the section of the ``most`` valuable next actions, none without any."""
    found = tuple(Action(f'{one.words[:1].upper()}{one.words[1:]}', one.command)
                  for one in verdict.actions[:most])
    return (Section('Actions, the most valuable first', actions=found),) if found else ()


def warnings(texts: Sequence[str]) -> tuple[Section, ...]:
    """Return the warnings, folded where they are many."""
    many, texts = len(texts) > WARNINGS_SHOWN, [text.replace(' +- ', ' ± ') for text in texts]
    title = f'{len(texts)} warnings' if many else 'Warnings'
    return (Section(title, warnings=tuple(texts), folded=many),) if texts else ()


def summary(result: IdentificationResult) -> Section:
    """Return the status of a fit with advice, its main numbers and the error to expect."""
    estimate, scores, model = result.estimate, result.training.model['all'], result.model
    cards = (*_errors(scores),
             Card('base parameters', str(len(estimate.values)), f'rank {estimate.rank}'),
             Card('condition number', number(estimate.condition, 3), 'unit columns'),
             Card('samples of the fit', f'{result.experiment.information.samples}'))
    shown = None if estimate.status is Status.OK else conclusion(estimate.status)
    if model.not_identified:  # comes first, whatever else there is
        shown = Conclusion('poor', 'Not identified:', f'{model.status}.')
    held = result.held_out
    expected = () if estimate.shares is not None else (Table(
        ('joint', 'on motion left out', 'on a new motion'),
        zip(model.robot.row_names, np.sqrt(held.raw).tolist(), held.promise.tolist()),
        f'Error to expect [{effort_unit(model.robot)}]', folded=True),)
    return Section('The fit', status=shown, cards=cards, tables=expected)


def validated(model: IdentifiedModel, validation: Validation) -> Section:
    """Return the summary of a validation."""
    scores, control = validation.model['all'], validation.control.get('all', {})
    worse = [j for j in control
             if scores[j].relative_error > EQUAL_RATIO * control[j].relative_error]
    good = not worse and not model.not_identified
    comparison = f'worse in {", ".join(worse)}' if worse else 'no worse in any joint'
    beside = f'{comparison} than nominal inertials with fitted friction. ' if control else ''
    advice = f'{beside}Of the fit: {model.status}.'
    samples = next(iter(scores.values())).samples
    word = 'The model predicts' if good else 'The model predicts with reservations'
    return Section('The prediction', cards=(*_errors(scores), Card('samples', str(samples))),
                   status=Conclusion('good' if good else 'fair', f'{word}:', advice))


def _errors(scores: Mapping[str, JointScore]) -> tuple[Card, Card]:
    joint, score = max(scores.items(), key=lambda item: item[1].relative_error)
    median = float(np.median([s.relative_error for s in scores.values()]))
    return (Card('median relative error', percent(median), '%'),
            Card(f'largest relative error, {joint}', percent(score.relative_error), '%'))


def scores(
    model: IdentifiedModel, validation: Validation, title: str, folded: bool = True
) -> Section:
    """Return the scores of model and control row, joint by joint, motion and rest apart."""
    control = validation.control.get('all', {})
    own, noise = validation.repeatability, validation.noise
    rows = []
    for i, (joint, score) in enumerate(validation.model['all'].items()):
        rows.append(Row((
            joint, score.rmse, *(None if one is None else float(one[i]) for one in (own, noise)),
            percent(score.nrmse), *_shares(validation.model, validation.control, joint),
            f'{score.r2:.3f}', ' / '.join(number(q, 2) for q in score.quartiles),
            percent(score.outliers)), 'poor' if score.relative_error > POOR_ERROR else ''))
    units = effort_unit(model.robot)
    columns = ('joint', f'RMSE [{units}]', f'robot itself [{units}]', f'noise [{units}]',
               'RMSE / std [%]', 'error [%]', 'nominal [%]', *PART_COLUMNS,
               'R²', f'quartiles [{units}]', 'outliers [%]')
    nominal = ('Nominal: the nominal inertials with fitted friction; a model that is not better '
               'has learnt nothing about the links.' if control else
               'The description has no inertials to compare with.')
    text = ('Error: |measured − predicted| / |measured| against the raw effort. '
            f'{nominal} At rest the error is mostly unpredictable static friction; '
            'near reversals, where a joint sticks and turns, it matters most. '
            'Robot itself and noise: RMS deviation from its own repetition, where the motion '
            'repeats, and of single samples; no model can do better than both together.')
    tables = [Table(columns, rows, 'All scores, joint by joint', folded=folded)]
    if validation.rollout is not None:
        found, steady = validation.rollout, validation.steady
        tables.append(_rollouts(model, Horizon(found.seconds, {
            MODEL: found, **({} if steady is None else {CONSTANT_VELOCITY: steady})}), folded))
    repeated = None if own is None or noise is None else np.hypot(own, noise).tolist()
    return Section(title, text=text, tables=tuple(tables), figures=(Figure(error_bars({
        'identified model': validation.model['all'],
        'nominal inertials with fitted friction': control}, repeated)),))


def _shares(model: Scores, control: Scores, joint: str) -> list[str]:
    """Return the relative errors [%] in all samples, of the control row, and by part."""
    found = [model['all'].get(joint), control.get('all', {}).get(joint),
             *(model.get(part, {}).get(joint) for part in PARTS)]
    return [DASH if one is None else percent(one.relative_error) for one in found]


def forward_dynamics(model: IdentifiedModel, found: ForwardValidation) -> Section:
    """Return the section of a validation of forward dynamics."""
    accelerations = Table(
        ('joint', 'RMSE [rad/s², m/s²]', 'floor', 'error [%]', 'nominal [%]', *PART_COLUMNS, 'R²'),
        ((joint, score.rmse, floor, *_shares(found.model, found.control, joint),
          f'{score.r2:.3f}') for (joint, score), floor in zip(
            found.model['all'].items(), found.floor.tolist(), strict=True)), 'Accelerations')
    return Section('Forward dynamics', text=FORWARD, tables=(
        accelerations, *(_rollouts(model, horizon) for horizon in found.horizons)))


def _rollouts(model: IdentifiedModel, horizon: Horizon, folded: bool = False) -> Table:
    """Return the errors of rollouts of one length by what predicts them."""
    words = {MODEL: '', CONTROL: 'nominal', CONSTANT_VELOCITY: 'constant velocity'}
    scores = {words[name]: one for name, one in horizon.scores.items()}
    stopped = ', '.join(f'{one.stopped} of {one.count} stopped' for name, one
                        in horizon.scores.items() if name == MODEL)
    return Table(
        ('joint', *(word or unit for unit in ('position [mrad, mm]', 'velocity [mrad/s, mm/s]')
                    for word in scores)),
        ((joint, *(1e3 * float(getattr(one, what)[j]) if one.stopped < one.count else None
                   for what in ('position', 'velocity') for one in scores.values()))
         for j, joint in enumerate(model.joints)),
        f'Rollouts of {horizon.seconds:g} s, RMS over all their samples ({stopped})',
        folded=folded)


def error_bars(
    by_model: Mapping[str, Mapping[str, JointScore]], repeated: Sequence[float] | None = None
) -> figures.Spec:
    """Return bars of the relative error per joint, predictions by name beside each other.

    ``repeated`` are the deviations of robot and noise, in the unit of the effort.
    """
    colours = (figures.MODEL, figures.CONTROL, *figures.SERIES[2:])
    curves = [figures.bars(list(scores), [100.0 * s.relative_error for s in scores.values()],
                           name, colours[i % len(colours)])
              for i, (name, scores) in enumerate(by_model.items()) if scores]
    if repeated is not None:
        first = next(iter(by_model.values()))
        sizes = [100.0 * own * s.relative_error / s.rmse if s.rmse > 0.0 else np.nan
                 for own, s in zip(repeated, first.values(), strict=True)]
        curves.append(figures.bars(list(first), sizes, 'robot itself and noise',
                                   figures.MEASURED))
    return figures.figure(
        curves, figures.axis(), figures.axis('relative error of the effort [%]',
                                             more={'rangemode': 'tozero'}), more={'height': 300})
