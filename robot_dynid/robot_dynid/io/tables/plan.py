"""Column plan of a table: standard columns as functions of those of the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.robot.columns import TIME, UNITS, ColumnMapping
from robot_dynid.types import FloatArray
from robot_dynid.yaml_text import one_line

#: preset of tables written by this package
OWN = 'robot_dynid'
#: plausible sample intervals [s]; others indicate another unit
STEPS = (5e-5, 1.0)


@dataclass(frozen=True)
class Taken:
    """A standard column: the sum of ``factors`` times columns by ``indices``, and ``offset``."""

    name: str
    indices: tuple[int, ...]
    factors: tuple[float, ...] = (1.0,)
    offset: float = 0.0


@dataclass(frozen=True)
class Plan:
    """Standard columns of a table as functions of those of the file.

    ``texts`` are the columns with text and how they are read; ``summary`` describes the
    assignment, '' if there is nothing to report; ``unused`` are columns of the file; ``written``
    is a mapping of the matched columns.
    """

    mapping: ColumnMapping
    taken: tuple[Taken, ...]
    texts: Mapping[int, str]
    summary: str
    unused: tuple[str, ...] = ()
    written: Mapping[str, Any] = field(default_factory=dict)

    @property
    def plain(self) -> bool:
        """True if the columns are those of the file unchanged."""
        return self.mapping.name == OWN and all(
            one.factors == (1.0,) and one.offset == 0.0 for one in self.taken)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the standard columns."""
        rate = (TIME,) if self.mapping.rate is not None else ()
        return (*rate, *(one.name for one in self.taken))

    def rows(self, source: str, pieces: Iterator[FloatArray]) -> Iterator[FloatArray]:
        """Yield the standard columns (T, n) of pieces (T, m) of the table.

        Rows in which a mapping finds no number are left out.
        """
        if self.plain:
            yield from pieces
            return
        count, data = 0, [k for k, name in enumerate(self.columns) if name != TIME]
        drops = data and self.mapping.name != OWN and TIME in self.columns \
            and not self.mapping.files
        for piece in pieces:
            if self.mapping.reshape:
                if piece.size % self.mapping.reshape:
                    raise DataError(f'{source}: {piece.size} numbers do not fill rows of '
                                    f'{self.mapping.reshape} (reshape)')
                piece = piece.reshape(-1, self.mapping.reshape)
            standard = np.empty((len(piece), len(self.columns)))
            start = len(self.columns) - len(self.taken)
            if self.mapping.rate is not None:
                standard[:, 0] = (count + np.arange(len(piece))) / self.mapping.rate
            for k, one in enumerate(self.taken, start=start):
                standard[:, k] = one.offset
                for index, factor in zip(one.indices, one.factors, strict=True):
                    standard[:, k] += factor * piece[:, index]
            if not count and self.mapping.name not in ('', OWN):
                self._check_time(source, standard)
            count += len(piece)
            there = np.isfinite(standard[:, data]).any(axis=1)
            yield standard[there] if drops and not there.all() else standard

    def _check_time(self, source: str, rows: FloatArray) -> None:
        """Raise DataError if steps of time indicate another unit than that of the preset."""
        time = rows[:, self.columns.index(TIME)]
        steps = np.diff(time[np.isfinite(time)])
        step = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0
        if not step or STEPS[0] <= step <= STEPS[1]:
            return
        taken = next(one for one in self.taken if one.name == TIME)
        raw = step / taken.factors[0]
        able = [unit for unit in ('s', 'ms', 'us', 'ns')
                if STEPS[0] <= raw * UNITS[unit][1] <= STEPS[1]]
        entry = self.written[TIME]
        column = entry['column'] if isinstance(entry, dict) else entry
        mapping = {**self.written, TIME: {'column': column, 'unit': able[0] if able else 's'}}
        raise DataError(
            f'{source}: time advances by {raw:.6g} per row, which would be {step:.6g} s; state '
            f'its unit: --columns "{one_line(mapping)}"')
