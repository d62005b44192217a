"""Verdict, next actions and scores of a model: the first two chapters of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dynid.document import (
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
from robot_dynid.report.texts import effort_unit, name, without_folders
from robot_dynid.validation.validate import NEAR, JointScore, Validation

POOR_ERROR = 0.5  # relative error from which a joint is pointed out
EQUAL = 1.02  # ratio of two errors that counts as no difference
SHOWN = 5  # warnings that are shown at once


def conclusion(status: Status) -> Conclusion:
    """Return the status of a fit as the report shows it."""
    kind = {Status.OK: 'good', Status.NOT_EXCITED: 'fair'}.get(status, 'poor')
    return Conclusion(kind, f'{name(status.name.lower()).capitalize()}:', f'{status.value}.')


def suitability(verdict: Verdict, below: Sequence[Section] = ()) -> Section:
    """Return the uses each joint is good for, with numbers, thresholds and reasons.

    Its banner is no better than those of the sections ``below`` it.
    """
    uses = [use.use for use in verdict.joints[0].uses] if verdict.joints else []
    rows = tuple(Row((joint.joint, *(_use(use) for use in joint.uses)))
                 for joint in verdict.joints)
    why = tuple(Row((joint.joint, use.use, _because(use)))
                for joint in verdict.joints for use in joint.uses if use.words)
    kinds = [section.status.kind for section in below if section.status is not None]
    kind = next((kind for kind in ('poor', 'fair') if kind in (_kind(verdict), *kinds)), 'good')
    tables = (Table(('joint', *uses), rows),
              Table(('joint', 'use', 'because'), why, 'Why: what was measured, against what',
                    words=True, folded=True)) if rows else ()
    return Section('What it is good for', tables=tables,
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
    mark = {None: '', True: 'good', False: 'poor'}[use.ok]
    numbers = '' if use.value is None or use.threshold is None else \
        f'{_beyond(use.value, use.threshold)} {use.unit}, at most {number(use.threshold, 2)}'
    return Cell(use.word, mark, numbers + _beside(use))


def _beyond(value: float, threshold: float) -> str:
    """Return a number with two digits, or as many as show that it is not the threshold."""
    limit = number(threshold, 2)
    return next((text for digits in range(2, 7) if (text := number(value, digits)) != limit),
                limit)


def _beside(use: UseVerdict) -> str:
    """Return the reason for a verdict that its number alone does not give."""
    if use.ok is not False or use.value is None or use.threshold is None \
            or use.value > use.threshold:
        return ''
    return ', but nominal inertials do better'


def actions(verdict: Verdict) -> tuple[Section, ...]:
    """Return the section of the next actions, none without any."""
    found = tuple(Action(f'{one.words[:1].upper()}{one.words[1:]}',
                         without_folders(one.command))
                  for one in verdict.actions)
    return (Section('Actions, the most valuable first', actions=found),) if found else ()


def warnings(texts: Sequence[str]) -> tuple[Section, ...]:
    """Return the warnings, folded where they are many."""
    many, texts = len(texts) > SHOWN, [text.replace(' +- ', ' ± ') for text in texts]
    title = f'{len(texts)} warnings' if many else 'Warnings'
    return (Section(title, warnings=tuple(texts), folded=many),) if texts else ()


def summary(result: IdentificationResult) -> Section:
    """Return the status of a fit with advice, and its main numbers."""
    estimate, scores = result.estimate, result.training.model['all']
    cards = (*_errors(scores),
             Card('base parameters', str(len(estimate.values)), f'rank {estimate.rank}'),
             Card('condition number', number(estimate.condition, 3), 'unit columns'),
             Card('samples of the fit', f'{result.experiment.information.samples}'))
    shown = None if estimate.status is Status.OK else conclusion(estimate.status)
    if result.model.not_identified:  # comes first, whatever else there is
        shown = Conclusion('poor', 'Not identified:', f'{result.model.status}.')
    return Section('The fit', status=shown, cards=cards)


def validated(model: IdentifiedModel, validation: Validation) -> Section:
    """Return the summary of a validation."""
    scores, control = validation.model['all'], validation.control.get('all', {})
    worse = [j for j in control
             if scores[j].relative_error > EQUAL * control[j].relative_error]
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


def scores(model: IdentifiedModel, validation: Validation, title: str) -> Section:
    """Return the scores of model and control row, joint by joint, motion and rest apart."""
    control = validation.control.get('all', {})
    rows = []
    own, noise = validation.repeatability, validation.noise
    for i, (joint, score) in enumerate(validation.model['all'].items()):
        mark = 'poor' if score.relative_error > POOR_ERROR else ''
        parts = [validation.model.get(part, {}).get(joint) for part in ('motion', 'rest', NEAR)]
        rows.append(Row((
            joint, number(score.rmse), *(number(None if one is None else float(one[i]))
                                         for one in (own, noise)),
            percent(score.nrmse), percent(score.relative_error),
            percent(control[joint].relative_error if joint in control else None),
            *(percent(p.relative_error if p else None) for p in parts), f'{score.r2:.3f}',
            ' / '.join(number(q, 2) for q in score.quartiles), percent(score.outliers)), mark))
    units = effort_unit(model.robot)
    columns = ('joint', f'RMSE [{units}]', f'robot itself [{units}]', f'noise [{units}]',
               'RMSE / std [%]', 'error [%]', 'nominal [%]', 'in motion [%]', 'at rest [%]',
               'near reversals [%]', 'R²', f'quartiles [{units}]', 'outliers [%]')
    nominal = ('Nominal: the nominal inertials with fitted friction; a model that is not better '
               'has learnt nothing about the links.' if control else
               'The description has no inertials to compare with.')
    text = ('Error: |measured − predicted| / |measured| against the raw effort. '
            f'{nominal} At rest friction is undetermined and decides the error; '
            'near reversals, where a joint sticks and turns, it matters most. '
            'Robot itself and noise: RMS deviation from its own repetition, where the motion '
            'repeats, and of single samples; no model can do better than both together.')
    table = Table(columns, tuple(rows), 'All scores, joint by joint', folded=True)
    repeated = None if own is None or noise is None else np.hypot(own, noise).tolist()
    return Section(title, text=text, tables=(table,), figures=(Figure(error_bars({
        'identified model': validation.model['all'],
        'nominal inertials with fitted friction': control}, repeated)),))


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
