"""The report of a comparison: what changed from one model to others, and their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dynid import figures
from robot_dynid.document import (
    Card,
    Chapter,
    Conclusion,
    Figure,
    Report,
    Row,
    Section,
    Table,
    listed,
    number,
    percent,
    share_of,
)
from robot_dynid.figures import FROM_ZERO, Spec, axis
from robot_dynid.identified.comparison import EFFECTS, Difference
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report.texts import file_names
from robot_dynid.report.trust import error_bars
from robot_dynid.validation.validate import Validation

TEXT = (
    'Weight, friction and inertia of every joint at the same states, within the ranges of both '
    'models. Size: RMS by the first model; differs by: RMS of the difference; at most: the most '
    'significant difference with its 95 % interval, that of friction with its usual changes from '
    'day to day; chance: its probability if nothing changed. '
    '5 % of the changes that are reported are chance.')
BARS = ('Differences beyond their 95 % interval are above the dashed line; a few of many are '
        'there by chance')
COLUMNS = ('joint', 'effect', 'size', 'differs by', 'at most', 'unit', 'chance')


def comparison_report(
    models: Mapping[str, IdentifiedModel], changes: Mapping[str, Sequence[Difference]],
    scores: Mapping[str, Validation],
) -> Report:
    """Return the report on ``models`` by path, of which the first is that of reference.

    ``changes`` and ``scores`` by path, the latter may be empty.
    """
    names = file_names(models)
    first = names[next(iter(models))]
    chapters = [Chapter('What changed', tuple(
        _changes(f'{names[path]} against {first}', rows) for path, rows in changes.items()))]
    if scores:
        chapters.append(Chapter('Which predicts better', (
            _errors({names[path]: one for path, one in scores.items()}),)))
    robot = next(iter(models.values())).robot.name
    return Report(f'{robot}: models compared', ', '.join(names.values()), tuple(chapters))


def _changes(title: str, found: Sequence[Difference]) -> Section:
    rows = tuple(
        Row((one.joint, one.effect, number(one.before), number(one.size),
             f'{number(one.most)} ± {number(one.half_interval, 2)}', one.unit.replace('^2', '²'),
             number(one.probability, 2)), 'poor' if one.changed else '') for one in found)
    changed = [row for row, one in zip(rows, found, strict=True) if one.changed]
    joints: dict[str, list[str]] = {}
    for one in found:
        if one.changed:
            joints.setdefault(one.effect, []).append(one.joint)
    status = Conclusion(
        'fair', f'{title}: changes in',
        f'{"; ".join(f"{effect} of {listed(names)}" for effect, names in joints.items())}.') \
        if changed else Conclusion(
            'good', f'{title}: nothing changed', 'beyond the intervals of both models.')
    return Section(title, text=TEXT, status=status, figures=(Figure(changes(found), BARS),),
                   tables=(*([Table(COLUMNS, changed)] if changed else []),
                           Table(COLUMNS, rows, 'All differences', detail=True)))


def changes(found: Sequence[Difference]) -> Spec:
    """Return each difference beside its 95 % interval, as a figure of all joints."""
    curves = []
    for i, effect in enumerate(EFFECTS):
        shown = [one for one in found if one.effect == effect]
        sizes = [abs(one.most) / one.half_interval if one.half_interval > 0.0 else 0.0
                 for one in shown]
        curves.append(figures.bars([one.joint for one in shown], sizes, effect, figures.series(i)))
    line = {'type': 'line', 'x0': 0, 'x1': 1, 'xref': 'paper', 'y0': 1, 'y1': 1,
            'line': {'color': figures.POOR, 'dash': 'dash'}}
    return figures.figure(curves, axis(), axis('difference / its 95 % interval', FROM_ZERO),
                          {'shapes': [line]})


def _errors(scores: Mapping[str, Validation]) -> Section:
    """Return the relative errors of the models on the same recordings."""
    by_model = {name: {joint: score.relative_error for joint, score in one.model['all'].items()}
                for name, one in scores.items()}
    joints = list(next(iter(by_model.values())))
    rows = tuple(Row((joint, *(percent(one[joint]) for one in by_model.values())))
                 for joint in joints)
    drawn = Figure(error_bars(by_model))
    return Section('Relative error of the effort on the same recordings, in %', figures=(drawn,),
                   tables=(Table(('joint', *by_model), rows, detail=True),), cards=tuple(
                       Card(f'median error, {name}', share_of(
                           float(np.median(list(one.values()))), 'the effort'))
                       for name, one in by_model.items()))
