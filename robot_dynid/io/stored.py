"""Recordings on disk while they are worked on: columns in scratch space, read by stretches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.io.findings import Tally
from robot_dynid.scratch import Kept, Scratch
from robot_dynid.types import CHANNELS, FloatArray, RawLog

Efforts = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class Piece:
    """Rows that were written together: channels by name, time among them."""

    rows: int
    columns: dict[str, Kept]


@dataclass(frozen=True)
class EffortPiece:
    """Efforts with stamps of their own, the ``first`` and the ``last`` [s] of them."""

    first: float
    last: float
    time: Kept
    values: Kept


@dataclass(frozen=True, eq=False)
class StoredLog:
    """A recording in scratch space, as RawLog has it; see StoredRecording.

    ``began`` [s] is when the recording began of which it is a window, None: with the first row.
    """

    source: str
    joints: tuple[str, ...]
    findings: tuple[str, ...]
    channels: tuple[str, ...]
    scratch: Scratch
    pieces: tuple[Piece, ...]
    efforts: tuple[EffortPiece, ...] = ()
    began: float | None = None
    epoch: float | None = None

    def __len__(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    def read(self, start: int, stop: int) -> RawLog:
        """Return the rows from ``start`` to before ``stop``; findings are those of all rows."""
        values = {name: np.full((max(stop - start, 0), *(
            () if name == 'time' else (len(self.joints),))), np.nan)
            for name in ('time', *self.channels)}
        edges = np.cumsum([0, *(piece.rows for piece in self.pieces)])
        for piece, (low, high) in zip(self.pieces, pairwise(edges.tolist()), strict=True):
            first, last = max(low, start), min(high, stop)
            for name, kept in piece.columns.items() if first < last else ():
                if name in values:
                    values[name][first - start:last - start] = self.scratch.get(
                        kept, first - low, last - low)
        time = values.pop('time')
        known: dict[str, Any] = dict(values)
        return RawLog(self.source, self.joints, time, **known, findings=self.findings,
                      effort_messages=self._efforts(time, len(time) == len(self)),
                      began=self.began, epoch=self.epoch)

    def _efforts(self, time: FloatArray, every: bool) -> Efforts | None:
        """Return the efforts between the rows at ``time``, or ``every`` one."""
        finite = time[np.isfinite(time)]
        if not self.efforts or not len(finite):
            return None
        low, high = (-np.inf, np.inf) if every else (float(finite.min()), float(finite.max()))
        near = [p for p in self.efforts if p.last >= low and p.first <= high]
        stamps = np.concatenate([np.empty(0), *(self.scratch.get(p.time) for p in near)])
        values = np.concatenate([np.empty((0, len(self.joints))),
                                 *(self.scratch.get(p.values) for p in near)])
        rows = (stamps >= low) & (stamps <= high)
        return stamps[rows], values[rows]


class RecordingWriter:
    """Writes a recording into scratch space piece by piece, and tells what is conspicuous."""

    def __init__(self, source: str, joints: tuple[str, ...], scratch: Scratch) -> None:
        self.source, self.joints, self.scratch = source, joints, scratch
        self.tally = Tally(joints)
        self._pieces: list[Piece] = []
        self._efforts: list[EffortPiece] = []

    @property
    def rows(self) -> int:
        """Number of rows so far."""
        return self.tally.rows

    def add(self, time: FloatArray, channels: Mapping[str, FloatArray | None]) -> None:
        """Append ``time`` (T,) s and channels (T, n), None where they were not recorded.

        Raises DataError when the disk is full.
        """
        self.tally.add(time, channels)
        columns = {name: self.scratch.put(values) for name, values in channels.items()
                   if values is not None}
        self._pieces.append(Piece(len(time), {'time': self.scratch.put(time), **columns}))

    def add_efforts(self, time: FloatArray, values: FloatArray) -> None:
        """Append efforts (E, n) at stamps (E,) [s] of their own that come after those so far."""
        after = time > self._efforts[-1].last if self._efforts else np.ones(len(time), dtype=bool)
        if after.any():
            self._efforts.append(EffortPiece(
                float(time[after][0]), float(time[after][-1]), self.scratch.put(time[after]),
                self.scratch.put(values[after])))

    def drop(self, channel: str) -> None:
        """Leave a channel out, as if it had not been recorded."""
        self.tally.channels.pop(channel)

    def finished(self, found: list[str]) -> StoredLog:
        """Return the recording, with what was ``found`` otherwise before its other findings.

        Raises DataError without positions.
        """
        names = [name for name in CHANNELS if name in self.tally.channels]
        if 'position' not in names:
            raise DataError(f'{self.source}: there are no positions')
        return StoredLog(self.source, self.joints, (*found, *self.tally.sentences(self._times)),
                         tuple(names), self.scratch, tuple(self._pieces), tuple(self._efforts))

    def _times(self) -> Iterator[FloatArray]:
        return (self.scratch.get(piece.columns['time']) for piece in self._pieces)


def stored(log: RawLog, scratch: Scratch) -> StoredLog:
    """Bring a recording from memory to scratch space."""
    writer = RecordingWriter(log.source, log.joints, scratch)
    writer.add(log.time, {name: getattr(log, name) for name in CHANNELS})
    if log.effort_messages is not None:
        writer.add_efforts(*log.effort_messages)
    found = writer.finished([])
    return StoredLog(log.source, log.joints, log.findings, tuple(
        name for name in CHANNELS if getattr(log, name) is not None), scratch, found.pieces,
        found.efforts, log.began, log.epoch)
