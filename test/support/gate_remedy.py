"""Remedies of findings, read from their sentences, applied to a robot and a recording, and obeyed.

To obey is to identify again: the error on a motion that is held out, before and after.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from gate_rows import ROWS, Case, Spoil, Take
from spoiled_recordings import DEGREES, together

from robot_dynid import identify
from robot_dynid.errors import DynIdError
from robot_dynid.identification.recipe import Recipe
from robot_dynid.plausibility.finding import KINDS, Finding
from robot_dynid.robot.model import EFFORT_KINDS, RobotModel
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.validate import validate

NUMBER = r'([-+]?[\d.]+(?:e[-+]?\d+)?)'
VECTOR = re.compile(rf'gravity: *\[ *{NUMBER}, *{NUMBER}, *{NUMBER} *\]')
KIND = re.compile(rf'effort_kind: ({"|".join(EFFORT_KINDS)})')
FACTOR = re.compile(rf'(divide|multiply) (.*?)\bby {NUMBER}')
ANGLE = re.compile(
    r'(subtract|add) ([-+]?)([\d.e-]*)(pi)?(?:/(\d+))? *(rad|degrees|deg)? (?:from|to)')
ALTERNATIVES = re.compile(r',? or (?=divide|multiply|subtract|add|change|put|state|swap|convert|'
                          r'leave)|; ')
#: how the columns of a recording are called in sentences
CHANNELS = {'position': 'position', 'velocit': 'velocity', 'effort': 'effort'}
#: a recording is put right where what is left is below this share of a channel, and this angle
#: [rad], and the clock is right to this share
LEFT, ANGLE_LEFT, CLOCK_LEFT = 0.25, 0.17, 0.06


def remedies(robot: RobotModel, finding: Finding) -> list[Spoil | None]:
    """Return what the alternatives of a remedy say, None for those that are not in numbers."""
    return [next(_read(robot, finding, part), None) for part in
            ALTERNATIVES.split(finding.remedy)]


def _read(robot: RobotModel, finding: Finding, text: str) -> Iterator[Spoil]:
    """Yield what one alternative says."""
    columns = [robot.joints.index(joint) for joint in finding.joints] or list(range(robot.n))
    channels = [name for word, name in CHANNELS.items() if word in text]
    if vector := VECTOR.search(text):
        gravity = np.array(vector.groups(), dtype=float)
        yield lambda robot, log: (robot.with_gravity(gravity), log)
    elif kind := KIND.search(text):
        if kind[1] != 'current':  # its gains are not in the sentence
            yield _stated(kind[1])
    elif factor := FACTOR.search(text):
        value = float(factor[3]) if factor[1] == 'multiply' else 1.0 / float(factor[3])
        in_time = 'time' in factor[2] or 'stamps' in factor[2]
        yield _time_times(value) if in_time else together(
            *(_times(name, columns, value) for name in channels))
    elif 'sign' in text and channels:
        yield together(*(_times(name, columns, -1.0) for name in channels))
    elif angle := ANGLE.search(text):
        value = float(angle[2] + '1') * float(angle[3] or 1.0) / float(angle[5] or 1.0)
        value *= np.pi if angle[4] else 1.0 / DEGREES if angle[6] in ('degrees', 'deg') else 1.0
        yield _shifted(columns, -value if angle[1] == 'subtract' else value)
    elif 'leave' in text and channels == ['velocity']:
        yield lambda robot, log: (robot, replace(log, velocity=None))
    elif 'convert' in text and 'rad' in text:
        yield together(*(_times(name, columns, 1.0 / DEGREES) for name in channels))
    elif finding.kind == 'joint_order' and len(columns) == 2:
        yield _swapped(columns, ['effort'] if 'effort' in text else list(CHANNELS.values()))


def _stated(kind: str) -> Spoil:
    return lambda robot, log: (replace(robot, drive=replace(robot.drive, kind=kind)), log)


def _time_times(factor: float) -> Spoil:
    return lambda robot, log: (robot, replace(log, time=log.time * factor))


def _times(name: str, columns: Sequence[int], factor: float) -> Spoil:
    def fix(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        values = getattr(log, name)
        if values is not None:
            values = values.copy()
            values[:, columns] *= factor
        return robot, replace(log, **{name: values})
    return fix


def _shifted(columns: Sequence[int], angle: float) -> Spoil:
    def fix(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        position = log.position.copy()
        position[:, columns] += angle
        return robot, replace(log, position=position)
    return fix


def _swapped(columns: Sequence[int], channels: Sequence[str]) -> Spoil:
    def fix(robot: RobotModel, log: RawLog) -> tuple[RobotModel, RawLog]:
        order = np.arange(robot.n)
        order[list(columns)] = list(columns)[::-1]
        return robot, replace(log, **{name: getattr(log, name)[:, order] for name in channels
                                      if getattr(log, name) is not None})
    return fix


def puts_right(
    fixed: tuple[RobotModel, RawLog], right: tuple[RobotModel, RawLog]
) -> bool:
    """Return whether a robot and a recording, after a remedy, are those without the fault."""
    (robot, log), (true_robot, true_log) = fixed, right
    down, true_down = np.array(robot.gravity), np.array(true_robot.gravity)
    if down @ true_down < np.cos(2.0 * ANGLE_LEFT) * np.linalg.norm(down) * np.linalg.norm(
            true_down) or robot.drive.kind != true_robot.drive.kind:
        return False
    if abs(np.ptp(log.time) / np.ptp(true_log.time) - 1.0) > CLOCK_LEFT:
        return False
    for name in CHANNELS.values():
        values, true = getattr(log, name), getattr(true_log, name)
        if values is None or true is None:
            continue
        middle = true.mean(axis=0) if name == 'position' else 0.0
        allowed = LEFT * np.sqrt(np.mean((true - middle)**2, axis=0))
        if name == 'position':
            away = values - true
            away -= 2.0 * np.pi * np.rint(away.mean(axis=0) / (2.0 * np.pi))
            allowed = np.minimum(np.maximum(allowed, ANGLE_LEFT), 2.0 * ANGLE_LEFT)
        else:
            away = values - true
        if (np.sqrt(np.mean(away**2, axis=0)) > allowed).any():
            return False
    return True


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
