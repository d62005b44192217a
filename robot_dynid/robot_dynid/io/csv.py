"""Recordings and states as CSV: ``time``, ``position.<joint>``, ``velocity.<joint>``, ..."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.errors import DataError, UsageError, clipped
from robot_dynid.files import atomic_writer
from robot_dynid.io.findings import (
    MEMORY_NUMBERS,
    TooLong,
    findings_of,
    joined,
    require_memory,
)
from robot_dynid.io.tables.opened import open_table, recording_table
from robot_dynid.io.tables.rows import IGNORED
from robot_dynid.io.tables.table import Table
from robot_dynid.io.wrenches import CHANNEL, link_torque, unknown_wrench
from robot_dynid.robot.columns import ColumnMapping
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.windows import Window
from robot_dynid.types import CHANNELS, WRENCH_COMPONENTS, FloatArray, RawLog, epoch_of

#: name in the gzip header of tables; other files are not overwritten
COMPRESSED = 'robot_dynid.csv'
COMPRESSED_MARK = COMPRESSED.encode()
#: length of a header that is compared before a table is overwritten
HEADER_BYTES = 1000
#: prefix of wrench columns: ``wrench.<link>.fx``, in axes of another ``<link>@<axes>``
PREFIX = 'wrench.'


def read_csv(
    path: str | Path, joints: tuple[str, ...] | None = None, robot: RobotModel | None = None,
    window: Window | None = None, mapping: ColumnMapping | None = None,
) -> RawLog:
    """Read a recording from a table of numbers; columns may be in any order.

    ``joints`` selects and orders the joints (None: order of first appearance). A channel of only
    some joints is NaN for the others. External wrenches become torque on the joints of ``robot``,
    to whom the joints then belong. ``mapping`` assigns the columns (None: that of the ``robot``,
    else the preset that matches). The assignment and irregularities are listed in ``findings``.
    With a ``window`` rows far from it are left out.

    Raises DataError if the file is damaged, too long, or lacks time or the position of a joint,
    the kind of effort differs from the robot's, or a wrench is unusable.
    """
    source, notes = str(path), list[str]()
    parts: dict[str, list[FloatArray]] = {}
    began: float | None = None
    numbers, last = 0, 0.0
    asked = robot.joints if robot and joints is None else joints
    mapping = robot.columns if robot and mapping is None else mapping
    with recording_table(path, mapping, asked, robot) as (plan, pieces):
        columns = plan.columns
        chosen = _require_columns(source, columns, asked)
        for piece in pieces:
            table = Table(source, columns, piece)
            if window is not None:
                time = table.column('time')
                finite = time[np.isfinite(time)]
                began = float(finite[0]) if began is None and len(finite) else began
                last = float(finite.max(initial=last))
                table = Table(source, columns, piece[window.near(time - (began or 0.0))])
            more = list[str]()
            read = _channels(table, chosen, robot, more)
            notes = notes if parts else more
            read['time'] = table.column('time').copy()
            for name, values in read.items():
                if values is not None:
                    parts.setdefault(name, []).append(values)
                    numbers += values.size
            try:
                require_memory(numbers)
            except TooLong as error:
                raise TooLong(f'{source}: {error}') from None
    channels: dict[str, Any] = {name: joined(parts.pop(name)) if name in parts else None
                                for name in ('time', *CHANNELS, 'wrench')}
    time = channels.pop('time')
    if window is not None and not len(time):
        raise window.empty_error(source, last - (began or 0.0))
    for values in (channels[CHANNEL], channels['wrench']):
        if values is not None and len(values) and not np.isfinite(values).any():
            raise DataError(f'{source}: {unknown_wrench()}')
    notes = [*([plan.summary] if plan.summary else []), *notes,
             *findings_of(time, chosen, channels),
             *_ignored((*columns, *plan.unused), chosen, robot)]
    if channels['position'] is None:
        raise DataError(f'{source}: no joints selected')
    return RawLog(source, chosen, time, **channels, findings=tuple(notes), began=began,
                  epoch=epoch_of(float(time[0])) if len(time) else None,
                  wrench_frame=robot.wrench_sensor if robot else '')


def _channels(
    table: Table, joints: tuple[str, ...], robot: RobotModel | None, notes: list[str]
) -> dict[str, FloatArray | None]:
    """Return all channels (T, n), None for those without a column."""
    channels = {name: _channel(table, name, joints, notes) for name in CHANNELS}
    if robot is not None and robot.wrench_sensor:
        wrenches, sensor = _wrenches(table), robot.wrench_sensor
        if sensor not in wrenches:
            raise DataError(f'{table.source}: no columns {PREFIX}{clipped(sensor)}.fx to .tz; it '
                            f'has wrenches of: {clipped(_listed(wrenches))}')
        return {**channels, 'wrench': wrenches[sensor]}
    torque = table_torque(table, robot, channels['position'])
    if torque is not None:
        given = channels[CHANNEL]
        channels[CHANNEL] = torque if given is None else torque + given
    return channels


def _require_columns(
    source: str, columns: tuple[str, ...], joints: tuple[str, ...] | None
) -> tuple[str, ...]:
    """Return the joints of a table; raises DataError without time or the position of a joint."""
    if 'time' not in columns:
        raise DataError(f'{source}: no column is time; give it, or rate: rows per second')
    present = joints_of(columns, 'position')
    chosen = present if joints is None else joints
    _require(source, 'position', chosen, present)
    return chosen


def write_csv(path: str | Path, log: RawLog) -> None:
    """Write a recording that ``read_csv`` reads back exactly (.gz compresses).

    Raises UsageError if the path holds another file, DynIdError if it cannot be written, as for a
    joint whose name `header_line` refuses.
    """
    recorded = {name: c for name in (*CHANNELS, 'wrench') if (c := getattr(log, name)) is not None}
    columns = {'wrench': [f'{log.wrench_frame}.{c}' for c in WRENCH_COMPONENTS]}
    header = ['time', *(f'{name}.{column}' for name in recorded
                        for column in columns.get(name, log.joints))]
    table = np.column_stack([log.time, *recorded.values()])
    with ExitStack() as opened:
        if str(path).endswith('.gz'):
            file: Any = opened.enter_context(atomic_writer(path, COMPRESSED_MARK))
            file = opened.enter_context(gzip.GzipFile(COMPRESSED, 'wb', fileobj=file))
        else:
            file = opened.enter_context(atomic_writer(path, header_mark(header)))
        np.savetxt(file, table, fmt='%.17g', delimiter=',', header=header_line(header),
                   comments='', encoding='utf-8')


def header_line(columns: Sequence[str]) -> str:
    """Return the header of a table, with names in quotes where they need them.

    Raises DataError for a name that no header holds: of several lines, or ending in a blank.
    """
    for column in columns:
        if column != column.rstrip() or re.search('[\0\n\ufffd]', column):
            raise DataError(f'{clipped(repr(column))} cannot be the name of a column: it ends in '
                            'a blank, or has a line break or a character that is no text; rename '
                            'the joint')
    quoted = ('"' + column.replace('"', '""') + '"' for column in columns)
    return ','.join(name if set(column) & set('",\r') else column
                    for column, name in zip(columns, quoted, strict=True))


def header_mark(columns: Sequence[str]) -> bytes:
    """Return the signature of tables with these columns; other files are not overwritten."""
    return f'\n{header_line(columns)}\n'.encode()[:HEADER_BYTES]


def read_states(
    path: str | Path, joints: tuple[str, ...], channels: tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> tuple[FloatArray, ...]:
    """Read states for ``forward`` and ``inverse``: one (K, n) array per channel, in order.

    ``channels`` are e.g. ('position', 'velocity', 'effort') or (..., 'acceleration'), as columns
    ``<channel>.<joint>`` in any order; other columns are ignored. Channels in ``optional`` are
    appended if they have a column.

    Raises DataError for a missing column or a value that is not finite.
    """
    table = read_table(path)
    states = []
    given = any(joints_of(table.columns, name) for name in optional)
    for name in (*channels, *(optional if given else ())):
        _require(str(path), name, joints, joints_of(table.columns, name))
        values = _channel(table, name, joints, [])
        if values is None:
            raise DataError(f'{path}: no joints selected')
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            row, column = (int(i) for i in bad[0])
            raise DataError(
                f'{path}: state {row + 1}: {name}.{joints[column]} is {values[row, column]}; '
                f'every state must be finite'
            )
        states.append(values)
    return tuple(states)


def joints_of(columns: Iterable[str], channel: str) -> tuple[str, ...]:
    """Return the joints that have a column ``<channel>.<joint>``, in order of appearance."""
    start = channel + '.'
    return tuple(c[len(start):] for c in columns if c.startswith(start) and len(c) > len(start))


def _channel(
    table: Table, name: str, joints: tuple[str, ...], notes: list[str]
) -> FloatArray | None:
    """Return (T, n) values, NaN for joints without a column; None when no joint has one."""
    have = set(joints_of(table.columns, name)) & set(joints)
    if not have:
        return None
    missing = [joint for joint in joints if joint not in have]
    if missing:
        notes.append(f'{name}: no column for {clipped(", ".join(missing), 400)}')
    values = np.full((len(table.values), len(joints)), np.nan)
    for k, joint in enumerate(joints):
        if joint in have:
            values[:, k] = table.column(f'{name}.{joint}')
    return values


def _require(
    source: str, channel: str, wanted: tuple[str, ...], present: tuple[str, ...]
) -> None:
    missing = [joint for joint in wanted if joint not in present]
    if missing:
        raise DataError(
            f'{source}: no {channel} column for {", ".join(missing)}; '
            f'the file has {channel} of: {_listed(present)}'
        )


def _ignored(
    columns: tuple[str, ...], joints: tuple[str, ...], robot: RobotModel | None
) -> tuple[str, ...]:
    used = {'time', *(f'{name}.{joint}' for name in CHANNELS for joint in joints)}
    unused = [c for c in columns if c and c not in used and (robot is None or not is_wrench(c))]
    return (f'columns not used: {clipped(_listed(unused), 400)}',) if unused else ()


def _listed(names: Iterable[str]) -> str:
    return ', '.join(names) or 'none'


def is_wrench(column: str) -> bool:
    """Return True if a column of a table belongs to a wrench."""
    return column.startswith(PREFIX)


def table_torque(
    table: Table, robot: RobotModel | None, position: FloatArray | None
) -> FloatArray | None:
    """Return J^T w (T, n) [N m, N] of the wrenches in a table, at ``position`` (T, n).

    None without wrenches, or without a robot. Raises DataError for an unknown link, component or
    axes, and for a missing component.
    """
    wrenches = {} if robot is None or position is None else _wrenches(table)
    if robot is None or position is None or not wrenches:
        return None
    total = np.zeros((len(table.values), robot.n))
    for head, values in wrenches.items():
        try:
            total += link_torque(robot, head, position, values)
        except UsageError as error:
            raise DataError(f'{table.source}: columns {PREFIX}{head}.*: {error}') from None
    return total


def read_wrenches(path: str | Path, robot: RobotModel, position: FloatArray) -> FloatArray | None:
    """Return J^T w (K, n) [N m, N] of the wrenches in a table of states at ``position`` (K, n).

    None without wrenches. Raises DataError as `table_torque`, and for values that are not finite.
    """
    torque = table_torque(read_table(path), robot, position)
    if torque is not None and not np.isfinite(torque).all():
        row = int(np.argwhere(~np.isfinite(torque))[0, 0])
        raise DataError(f'{path}: state {row + 1}: the wrench is not finite')
    return torque


def _wrenches(table: Table) -> dict[str, FloatArray]:
    """Return the wrenches (T, 6) by name; raises DataError unless all have six components."""
    names, wrenches = ', '.join(WRENCH_COMPONENTS), dict[str, FloatArray]()
    for column in filter(is_wrench, table.columns):
        if column.rpartition('.')[2] not in WRENCH_COMPONENTS or column.count('.') < 2:
            raise DataError(f'{table.source}: column {clipped(column)}: a wrench has the columns '
                            f'{PREFIX}<link>.<component> with {names} [N, N m]')
    for head in dict.fromkeys(c.removeprefix(PREFIX).rpartition('.')[0]
                              for c in table.columns if is_wrench(c)):
        missing = [c for c in WRENCH_COMPONENTS if f'{PREFIX}{head}.{c}' not in table.columns]
        if missing:
            raise DataError(f'{table.source}: {PREFIX}{clipped(head)} lacks {", ".join(missing)}: '
                            f'a wrench has {names} [N, N m]; write zeros for absent components')
        wrenches[head] = np.stack(
            [table.column(f'{PREFIX}{head}.{c}') for c in WRENCH_COMPONENTS], axis=1)
    return wrenches


def read_table(path: str | Path) -> Table:
    """Read a table of numbers.

    Raises DataError, naming file and line, for invalid tables and for more than MEMORY_NUMBERS
    numbers.
    """
    source, parts, numbers = str(path), list[FloatArray](), 0
    with open_table(path) as (layout, rows):
        for piece in rows({k: IGNORED for k, text in enumerate(layout.text) if text is not None}):
            parts.append(piece)
            numbers += piece.size
            if numbers > MEMORY_NUMBERS:
                raise TooLong(f'{source}: has more than {MEMORY_NUMBERS} numbers; split it')
    return Table(source, layout.columns, joined(parts))
