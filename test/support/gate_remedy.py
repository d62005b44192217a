"""Remedies of findings, read from their sentences and applied to a robot and a recording."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from gate_rows import Spoil
from spoiled_recordings import DEGREES, together

from robot_dynid.plausibility.finding import Finding
from robot_dynid.robot.model import EFFORT_KINDS, RobotModel
from robot_dynid.types import RawLog

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
