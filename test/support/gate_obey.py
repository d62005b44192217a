"""Obey a remedy and identify again: the error on a motion that is held out, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from gate_remedy import remedies
from gate_rows import ROWS, Case, Take

from robot_dynid import identify
from robot_dynid.errors import DynIdError
from robot_dynid.identification.recipe import Recipe
from robot_dynid.plausibility.finding import KINDS, Finding
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.validate import validate

#: the laws of friction are not chosen: that takes minutes, and shifts all errors alike
SIMPLE = Recipe(friction='coulomb', ripple='none', adaptation='none', residual='none')
#: rows that are obeyed where none are asked for, and the number of the joint in rows of one joint
CELLS = (
    'mounted: wall x', 'mounted: ceiling', 'mounted: tilted 30 degrees',
    'position x 2, velocity too', 'offset 30 degrees', 'offset 90 degrees',
    'wrist joints swapped', 'efforts swapped', 'sign of a position, velocity too',
    'sign of an effort', 'an effort x 2', 'clock x 0.8', 'clock x 2, no velocity',
    'gravity removed', 'URDF of a UR5', 'one wrap')
JOINT = 1


@dataclass(frozen=True)
class Obeyed:
    """Errors (n,), relative, on the motion held out: accepted as it is, obeyed, without fault."""

    finding: Finding
    before: FloatArray
    after: FloatArray | None
    right: FloatArray | None
    note: str = ''


def case_of_row(take: Take, name: str) -> Case | None:
    """Return a case of a row, that of joint 2 where there is one per joint."""
    cases = list(ROWS[name].make(take, take.draw(name)))
    return cases[min(JOINT, len(cases) - 1)] if cases else None


def errors(
    robot: RobotModel, training: RawLog, test: RawLog, accept: Sequence[str]
) -> FloatArray:
    """Return the relative errors (n,) of a held-out motion; raises DynIdError."""
    result = identify(robot, [training], recipe=replace(SIMPLE, accept=tuple(accept)))
    scores = validate(result.model, [test]).model['all']
    return np.array([scores[joint].relative_error for joint in result.model.joints])


def obey(take: Take, name: str, findings: Sequence[Finding]) -> Iterator[Obeyed]:
    """Yield what each alternative of each remedy leads to; none where nothing is said."""
    case, other = case_of_row(take, name), case_of_row(replace(take, held_out=True), name)
    if case is None or other is None or not findings:
        return
    logs = case.sample.log, other.sample.log
    try:
        before = errors(case.robot, *logs, tuple(KINDS))
    except DynIdError as error:
        before = np.full(take.arm.n, np.nan)
        note = f'as it is: {error}'
    else:
        note = ''
    right = None
    if case.right and other.right:
        right = errors(case.right[0], case.right[1], other.right[1], tuple(KINDS))
    for finding in findings:
        for fix in remedies(case.robot, finding):
            if fix is None:
                yield Obeyed(finding, before, None, right, note or 'cannot be obeyed in numbers')
                continue
            robot, training = fix(case.robot, logs[0])
            try:
                after = errors(robot, training, fix(case.robot, logs[1])[1], ())
            except DynIdError as error:
                yield Obeyed(finding, before, None, right, f'then: {error}')
            else:
                yield Obeyed(finding, before, after, right, note)


def lines_of(take: Take, name: str, obeyed: Obeyed) -> Iterator[str]:
    """Yield the lines about one remedy."""
    def text(values: FloatArray | None) -> str:
        return '-' if values is None else ' '.join(f'{100.0 * one:5.1f}' for one in values)

    better = '' if obeyed.after is None else _verdict(obeyed.before, obeyed.after)
    yield f'{take.name} {take.motion} {take.version} | {name} | {better} {obeyed.note}'.rstrip()
    yield f'    {obeyed.finding.sentence}'
    for label, values in (('as it is', obeyed.before), ('obeyed', obeyed.after),
                          ('without the fault', obeyed.right)):
        yield f'    {label:18} {text(values)} %'


def _verdict(before: FloatArray, after: FloatArray) -> str:
    """Return whether errors are smaller on the whole: by the mean of their logarithms."""
    if not np.isfinite(before).all():
        return 'BETTER: no model before'
    ratio = float(np.exp(np.mean(np.log(after) - np.log(before))))
    word = 'BETTER' if ratio < 0.98 else 'WORSE' if ratio > 1.02 else 'THE SAME'
    return f'{word}: errors {ratio:.2f} times, largest joint {np.max(after / before):.2f}'
