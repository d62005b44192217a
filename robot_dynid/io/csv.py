"""Recordings and states as CSV: ``time``, ``position.<joint>``, ``velocity.<joint>``, ..."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import atomic_writer
from robot_dynid.io.findings import findings_of
from robot_dynid.io.stored import RecordingWriter, StoredLog
from robot_dynid.io.table import Table, read_table, table_pieces
from robot_dynid.io.wrenches import CHANNEL, is_wrench, table_torque, unknown_wrench
from robot_dynid.robot.model import RobotModel
from robot_dynid.scratch import Scratch
from robot_dynid.signals.parts import LONGEST
from robot_dynid.types import CHANNELS, FloatArray, RawLog, epoch_of

#: the name that a compressed table has in its head, and which no other file is replaced without
COMPRESSED = 'robot_dynid.csv'
COMPRESSED_MARK = COMPRESSED.encode()
#: so much of a header is compared with that of the table before
HEADER_BYTES = 1000


def read_csv(
    path: str | Path, joints: tuple[str, ...] | None = None, robot: RobotModel | None = None
) -> RawLog:
    """Read a recording; columns may come in any order.

    ``joints`` chooses and orders the joints (None: order of first appearance). A channel that
    only some joints have is NaN for the others. External wrenches become torque on the joints of
    ``robot``, whose joints those are then. Whatever is conspicuous is in ``findings``.

    Raises DataError when the file is damaged, or lacks time or the position of a joint, or a
    wrench cannot be used.
    """
    return _log(read_table(path), robot.joints if robot and joints is None else joints, robot)


def open_csv(
    path: str | Path, joints: tuple[str, ...], scratch: Scratch, robot: RobotModel | None = None
) -> RawLog | StoredLog:
    """Read a recording as `read_csv` does, one of more than LONGEST rows to scratch space.

    Raises DataError when the file is damaged, lacks time or the position of a joint, or the disk
    is full.
    """
    source = str(path)
    with table_pieces(path) as (columns, pieces):
        first: list[FloatArray] = []
        for piece in pieces:
            first.append(piece)
            if sum(map(len, first)) > LONGEST:
                break
        table = Table(source, columns, np.concatenate(first) if len(first) > 1 else first[0])
        if len(table.values) <= LONGEST:
            return _log(table, joints, robot)
        _require_columns(table, joints)
        writer, found = RecordingWriter(source, joints, scratch), list[str]()
        _write(writer, table, (joints, robot), found)
        for piece in pieces:
            _write(writer, Table(source, columns, piece), (joints, robot), [])
        if writer.tally.never_measured(CHANNEL):
            raise DataError(f'{source}: {unknown_wrench()}')
        log = writer.finished(found)
        return replace(log, findings=(*log.findings, *_ignored(columns, joints, robot)))


def _write(
    writer: RecordingWriter, table: Table, of: tuple[tuple[str, ...], RobotModel | None],
    found: list[str],
) -> None:
    for first in range(0, len(table.values), LONGEST):  # a piece at a time, whatever the text's
        rows = Table(table.source, table.columns, table.values[first:first + LONGEST])
        writer.add(rows.column('time'), _channels(rows, *of, [] if first else found))


def _channels(
    table: Table, joints: tuple[str, ...], robot: RobotModel | None, found: list[str]
) -> dict[str, FloatArray | None]:
    """Return all channels (T, n), None for those without a column."""
    channels = {name: _channel(table, name, joints, found) for name in CHANNELS}
    torque = table_torque(table, robot, channels['position'])
    if torque is not None:
        given = channels[CHANNEL]
        channels[CHANNEL] = torque if given is None else torque + given
    return channels


def _require_columns(table: Table, joints: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return the joints of a table; raises DataError without time or the position of a joint."""
    if 'time' not in table.columns:
        raise DataError(
            f'{table.source}: no column time; columns are {_listed(table.columns)}. The header '
            f'must be time, position.<joint>, and optionally velocity.<joint>, effort.<joint>, ...'
        )
    present = joints_of(table.columns, 'position')
    chosen = present if joints is None else joints
    _require(table.source, 'position', chosen, present)
    return chosen


def _log(
    table: Table, joints: tuple[str, ...] | None, robot: RobotModel | None
) -> RawLog:
    chosen = _require_columns(table, joints)
    found: list[str] = []
    channels = _channels(table, chosen, robot, found)
    torque = channels[CHANNEL]
    if torque is not None and len(torque) and not np.isfinite(torque).any():
        raise DataError(f'{table.source}: {unknown_wrench()}')
    time = table.column('time').copy()
    found += findings_of(time, chosen, channels) + _ignored(table.columns, chosen, robot)
    known: dict[str, Any] = dict(channels)
    if known['position'] is None:
        raise DataError(f'{table.source}: no joints asked for')
    return RawLog(table.source, chosen, time, **known, findings=tuple(found),
                  epoch=epoch_of(float(time[0])) if len(time) else None)


def write_csv(path: str | Path, log: RawLog) -> None:
    """Write a recording so that ``read_csv`` gives back the same numbers (.gz compresses).

    Raises UsageError for a path where something else than such a table is, DynIdError when the
    file cannot be written.
    """
    channels = {name: getattr(log, name) for name in CHANNELS}
    recorded = {name: c for name, c in channels.items() if c is not None}
    header = ['time', *(f'{name}.{joint}' for name in recorded for joint in log.joints)]
    table = np.column_stack([log.time, *recorded.values()])
    with ExitStack() as opened:
        if str(path).endswith('.gz'):
            file: Any = opened.enter_context(atomic_writer(path, COMPRESSED_MARK))
            file = opened.enter_context(gzip.GzipFile(COMPRESSED, 'wb', fileobj=file))
        else:
            file = opened.enter_context(atomic_writer(path, header_mark(header)))
        np.savetxt(file, table, fmt='%.17g', delimiter=',', header=','.join(header), comments='',
                   encoding='utf-8')


def header_mark(header: Sequence[str]) -> bytes:
    """Return the mark of tables with a header; no other file is replaced by one."""
    return '\n'.join(('', ','.join(header), '')).encode()[:HEADER_BYTES]


def read_states(
    path: str | Path, joints: tuple[str, ...], channels: tuple[str, ...],
    optional: tuple[str, ...] = (),
) -> tuple[FloatArray, ...]:
    """Read states for ``forward`` and ``inverse``: one (K, n) array per channel, in order.

    ``channels`` are e.g. ('position', 'velocity', 'effort') or (..., 'acceleration'), as columns
    ``<channel>.<joint>`` in any order; further columns are not read. The channels in ``optional``
    follow where one of them has a column.

    Raises DataError for a missing column or a number that is not finite.
    """
    table = read_table(path)
    states = []
    given = any(joints_of(table.columns, name) for name in optional)
    for name in (*channels, *(optional if given else ())):
        _require(str(path), name, joints, joints_of(table.columns, name))
        values = _channel(table, name, joints, [])
        if values is None:
            raise DataError(f'{path}: no joints asked for')
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
    table: Table, name: str, joints: tuple[str, ...], found: list[str]
) -> FloatArray | None:
    """Return (T, n) values, NaN for joints without a column; None when no joint has one."""
    have = set(joints_of(table.columns, name)) & set(joints)
    if not have:
        return None
    missing = [joint for joint in joints if joint not in have]
    if missing:
        found.append(f'{name}: no column for {clipped(", ".join(missing), 400)}')
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
    unused = [c for c in columns if c not in used and (robot is None or not is_wrench(c))]
    return (f'columns not used: {clipped(_listed(unused), 400)}',) if unused else ()


def _listed(names: Iterable[str]) -> str:
    return ', '.join(names) or 'none'
