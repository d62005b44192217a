"""The report of a comparison: what changed from one model to others, and their errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from robot_dynid.document import Figure, Row, Section, Table, Verdict, number, percent
from robot_dynid.identification.validate import Validation
from robot_dynid.identified.comparison import Difference
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report import figures
from robot_dynid.report.html import Report

TEXT = (
    'Weight, friction and inertia of every joint as the models compute them at the same states, '
    'within the ranges both were trained in. "At most" is the difference that is furthest from '
    'zero in terms of its 95 % interval; "chance" is the probability of such a difference where '
    'nothing changed. Of all that is called changed, 5 % are so by chance.')
COLUMNS = ('joint', 'effect', 'rms', 'differs by', 'at most', 'unit', 'chance')


def comparison_report(
    models: Mapping[str, IdentifiedModel], changes: Mapping[str, Sequence[Difference]],
    scores: Mapping[str, Validation],
) -> Report:
    """Return the report on ``models`` by path, of which the first is that of reference.

    ``changes`` and ``scores`` by path, the latter may be empty.
    """
    names = dict(zip(models, _short(list(models)), strict=True))
    first = names[next(iter(models))]
    parts = [_changes(f'{names[path]} beside {first}', found) for path, found in changes.items()]
    if scores:
        parts.append(_errors({names[path]: one for path, one in scores.items()}))
    robot = next(iter(models.values())).robot.name
    return Report(f'{robot}: models compared', ', '.join(names.values()), tuple(parts))


def _changes(title: str, found: Sequence[Difference]) -> Section:
    rows = tuple(
        Row((one.joint, one.effect, number(one.before), number(one.size),
             f'{number(one.most)} ± {number(one.half_interval, 2)}', one.unit,
             number(one.probability, 2)), 'poor' if one.changed else '') for one in found)
    changed = [f'{one.effect} of {one.joint}' for one in found if one.changed]
    status = Verdict('fair', 'Changed:', f'{", ".join(changed)}.') if changed else Verdict(
        'good', 'Nothing changed', 'beyond the intervals of both models.')
    return Section(title, text=TEXT, status=status, tables=(Table(COLUMNS, rows),))


def _errors(scores: Mapping[str, Validation]) -> Section:
    """Return the relative errors of the models on the same recordings."""
    by_model = {name: one.model['all'] for name, one in scores.items()}
    joints = list(next(iter(by_model.values())))
    rows = tuple(Row((joint, *(percent(one[joint].relative_error) for one in by_model.values())))
                 for joint in joints)
    drawn = Figure(figures.as_html(figures.errors(by_model)), 'Relative error')
    return Section('Errors on the same recordings, in %', figures=(drawn,),
                   tables=(Table(('joint', *by_model), rows),))


def _short(paths: Sequence[str]) -> list[str]:
    """Return file names where they differ, else the paths."""
    names = [Path(path).name for path in paths]
    return names if len(set(names)) == len(names) else list(paths)
