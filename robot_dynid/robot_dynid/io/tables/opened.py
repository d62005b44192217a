"""Open tables of numbers by file type, and join those of several files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.files import Damaged, TooLarge, budget, open_regular, unpacked
from robot_dynid.io.findings import joined, require_memory
from robot_dynid.io.tables.arrays import READERS, read_array_table
from robot_dynid.io.tables.columns import plan_of
from robot_dynid.io.tables.form import Asked
from robot_dynid.io.tables.plan import Plan
from robot_dynid.io.tables.table import Layout, RowsOf
from robot_dynid.io.tables.text import read_text_table
from robot_dynid.robot.columns import TIME, ColumnMapping
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: endings of text tables, optionally followed by .gz
TEXTS = ('.csv', '.txt', '.tsv', '.dat', '.log', '.asc')
#: endings of all files that are read as tables
TABLE_FILES = (*TEXTS, *(f'{ending}.gz' for ending in TEXTS), *READERS)
#: smallest limit of unpacked text [bytes]
TEXT_FLOOR = 1 << 24


@contextmanager
def open_table(path: str | Path, asked: Asked | None = None) -> Iterator[tuple[Layout, RowsOf]]:
    """Open a table of numbers: its layout, and a function that reads its rows.

    ``asked`` is the stated text format. Raises DataError, naming file and line, for invalid
    tables.
    """
    source = str(path)
    if not os.path.lexists(path):
        raise DataError(f'{source}: no such file')
    if source.endswith(tuple(READERS)):
        yield read_array_table(source)
        return
    try:
        with open_regular(path, DataError) as file:
            size = os.fstat(file.fileno()).st_size
            pieces = unpacked(file, 'gz' if source.endswith('.gz') else '',
                              budget(size, TEXT_FLOOR))
            yield read_text_table(source, pieces, asked or Asked())
    except TooLarge as error:
        raise DataError(f'{source}: {error}; unpack it by hand if it is a recording') from None
    except Damaged as damage:
        raise DataError(f'{source}: the file is broken or cut off: {damage}; copy or record it '
                        'again') from None


@contextmanager
def recording_table(
    path: str | Path, mapping: ColumnMapping | None, joints: tuple[str, ...] | None,
    robot: RobotModel | None,
) -> Iterator[tuple[Plan, Iterator[FloatArray]]]:
    """Open a recording: what its columns are taken for, and our columns (T, n) piece by piece.

    Raises DataError as `open_table` and `plan_of`, and where files cannot be joined.
    """
    with open_table(path, _asked(mapping)) as (layout, rows):
        plan = plan_of(layout, mapping, joints, robot)
        pieces = plan.rows(layout.source, rows(plan.texts))
        if mapping is None or not mapping.files:
            yield plan, pieces
            return
        values = _whole(pieces)
    for name, other in mapping.files:
        place = Path(path).parent / name
        with recording_table(place, other, joints, robot) as (part, pieces):
            plan, values = _joined(str(path), (plan, values), (part, _whole(pieces)), name)
    yield plan, iter([values])


def _asked(mapping: ColumnMapping | None) -> Asked:
    return Asked() if mapping is None else Asked(
        mapping.separator, mapping.decimal, mapping.header, mapping.skip)


def _whole(pieces: Iterator[FloatArray]) -> FloatArray:
    parts, numbers = list[FloatArray](), 0
    for piece in pieces:
        numbers += piece.size
        require_memory(numbers)
        parts.append(piece)
    return joined(parts)


def _joined(
    source: str, first: tuple[Plan, FloatArray], second: tuple[Plan, FloatArray], name: str
) -> tuple[Plan, FloatArray]:
    """Join two tables: by time if both have it, else row by row."""
    (plan, values), (part, more) = first, second
    if TIME in plan.columns and TIME in part.columns:
        time, other = values[:, plan.columns.index(TIME)], more[:, part.columns.index(TIME)]
        if np.any(np.diff(other) <= 0.0) or not np.isfinite(other).all():
            raise DataError(f'{source}: files: {name}: its time goes back or repeats, so it '
                            'cannot be aligned with the recording: correct its time')
        taken = [k for k, column in enumerate(part.columns) if column != TIME]
        brought = [np.interp(time, other, more[:, k], np.nan, np.nan) for k in taken]
        part = replace(part, taken=tuple(one for one in part.taken if one.name != TIME))
        how, more = 'by time', np.stack(brought, axis=1)
    else:
        how = 'row by row'
        if len(values) != len(more):
            raise DataError(f'{source}: files: {name} has {len(more)} rows and the recording '
                            f'{len(values)}, so they cannot be joined row by row; give time in '
                            'both, or reshape where a file has several values of a row in as many '
                            'lines')
    twice = set(plan.columns) & set(part.columns)
    if twice:
        raise DataError(f'{source}: files: {name} has {", ".join(sorted(twice))} again; give each '
                        'once')
    summary = f'{plan.summary}; {how} with {name}: {part.summary.partition(": ")[2]}'
    whole = np.hstack([values, more])
    both = replace(plan, taken=tuple(chain(plan.taken, part.taken)), summary=summary)
    rated = part.mapping.rate is not None and plan.mapping.rate is None
    if rated:
        raise DataError(f'{source}: files: {name}: rate belongs to the recording itself; move it '
                        'there')
    return both, whole
