"""Tables of numbers as loggers and people write them, of one true recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid import load_robot
from robot_dynid.types import FloatArray, RawLog

ARM = load_robot(Path(__file__).parents[2] / 'examples' / 'arm.yaml')
CURRENT = replace(ARM, drive=replace(ARM.drive, kind='current', gains=np.ones(3)))
JOINTS = ARM.joints
ROWS = 40
_generator = np.random.default_rng(4)
#: rounded as people's loggers do
LOG = RawLog('true', JOINTS, np.arange(ROWS) * 0.004, *(
    np.round(_generator.normal(size=(ROWS, 3)), 7) for _ in range(3)))
CHANNELS = {'position': LOG.position, 'velocity': LOG.velocity, 'effort': LOG.effort}
EPOCH = 1_700_000_000


def columns_of(names: Mapping[str, str], start: int = 0) -> tuple[list[str], FloatArray]:
    """Return names and values of the channels; {i} counts from ``start``, {joint} is the name."""
    found = [(pattern.replace('{i}', str(k + start)).replace('{joint}', joint),
              CHANNELS[channel][:, k])
             for channel, pattern in names.items() for k, joint in enumerate(JOINTS)]
    return [name for name, _ in found], np.stack([values for _, values in found], axis=1)


def as_text(
    names: list[str], values: FloatArray, separator: str = ',', decimal: str = '.',
    mark: str = '', units: list[str] | None = None,
) -> str:
    """Return a table as text."""
    rows = [[f'{value:.12g}'.replace('.', decimal) for value in row] for row in values]
    lines = [mark + separator.join(names), *([separator.join(units)] if units else []),
             *(separator.join(row) for row in rows)]
    return '\n'.join(lines) + '\n'


def table(
    clock: str, names: Mapping[str, str], scale: float = 1.0, start: int = 0, **form: Any
) -> str:
    """Return a table with a column of time, in units of ``scale`` [s]."""
    columns, values = columns_of(names, start)
    return as_text([clock, *columns], np.column_stack([LOG.time / scale, values]), **form)


def ros2_echo(velocity: bool = True) -> str:
    """Return what `ros2 topic echo --csv` prints of joints in another order than the robot's."""
    order = (2, 0, 1)
    names = ','.join(JOINTS[k] for k in order)
    lines = []
    for row in range(ROWS):
        numbers = [','.join(f'{values[row, k]:.12g}' for k in order)
                   if velocity or name != 'velocity' else ''
                   for name, values in CHANNELS.items()]
        lines.append(f'{EPOCH},{row * 4_000_000},base,{names},{",".join(numbers)}')
    return '\n'.join(lines)


def rostopic_echo() -> str:
    """Return what `rostopic echo -p` prints."""
    order = (1, 2, 0)
    head = ['%time', 'field.header.seq', 'field.header.stamp', 'field.header.frame_id',
            *(f'field.{name}{k}' for name in ('name', *CHANNELS) for k in range(3))]
    lines = [','.join(head)]
    for row in range(ROWS):
        stamp = EPOCH * 10**9 + row * 4_000_000
        lines.append(','.join([
            str(stamp + 12_345), str(row), str(stamp), '', *(JOINTS[k] for k in order),
            *(f'{values[row, k]:.12g}' for values in CHANNELS.values() for k in order)]))
    return '\n'.join(lines)


def bagpy() -> str:
    """Return what bagpy writes: names as one list in quotes."""
    head = ['Time', 'header.seq', 'header.stamp.secs', 'header.stamp.nsecs', 'header.frame_id',
            'name', *(f'{name}_{k}' for name in CHANNELS for k in range(3))]
    names = '"' + repr([JOINTS[k] for k in (2, 1, 0)]) + '"'
    lines = [','.join(head)]
    for row in range(ROWS):
        lines.append(','.join([
            f'{EPOCH}.9', str(row), str(EPOCH), str(row * 4_000_000), 'world', names,
            *(f'{values[row, k]:.12g}' for values in CHANNELS.values() for k in (2, 1, 0))]))
    return '\n'.join(lines)


RTDE = {'position': 'actual_q_{i}', 'velocity': 'actual_qd_{i}', 'effort': 'actual_current_{i}'}
OURS = {name: f'{name}.{{joint}}' for name in CHANNELS}
SHORT = {'position': 'q{i}', 'velocity': 'dq{i}', 'effort': 'tau{i}'}
