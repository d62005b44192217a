"""Long recordings cut by time into parts with margins, one in memory at a time.

Every row is inside exactly one part, with enough rows on both sides for filters and memory, so a
part gives the samples that the recording in one piece would give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import overload

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.signals.alignment import clock_steps
from robot_dynid.types import FloatArray, Part, RawLog, StoredRecording, take

#: rows of a part, and of the longest recording that stays in one piece: a part of seven joints
#: takes 60 MB to process
PART_ROWS, LONGEST_PART = 45_000, 80_000
#: margin [s] read around a part: filters of 2 Hz and more see no border
PART_MARGIN = 4.0
#: rows of the pieces in which rest is searched
GLANCE = 10_000
#: stamps read for the typical step
STEP_STAMPS = 10_000
#: a stretch rests if all joints travel less than this share of the longest travel within a
#: stretch, or less than this [rad, m]
REST_SHARE, REST_TRAVEL = 0.02, 1e-3
#: most stretches of an excerpt, and the least length [s] of each
MAX_STRETCHES, STRETCH_SECONDS = 12, 8.0
#: note on a part that cannot be used
OMITTED_PART = 'this part of the recording is omitted'
#: most rows of a recording that can be processed in one piece
WHOLE_ROWS = 1_000_000


@dataclass(frozen=True)
class Stretch:
    """Contiguous rows of a recording, by its index, from ``start`` to before ``stop``.

    With its margins the recording is read from ``low`` to before ``high``. Without ``cut`` it is
    the whole recording.
    """

    recording: int
    start: int
    stop: int
    low: int
    high: int
    cut: bool = True


@dataclass(frozen=True)
class Glance:
    """Rows of a recording without rest at its ends and clock steps; ``step`` [s].

    ``began`` is the stamp [s] of the first row. ``moving`` are the first rows of the pieces of
    GLANCE rows in which a joint moves.
    """

    low: int
    high: int
    step: float
    began: float
    moving: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Parts(Sequence[RawLog]):
    """Recordings in order, long ones in parts that are read on access.

    ``recordings`` are in memory or stored, or not read yet; ``part_rows`` is the length of a part.
    Findings of the kinds ``accepted`` are accepted for all, see RawLog.
    """

    recordings: tuple[RawLog | StoredRecording, ...]
    part_rows: int = PART_ROWS
    longest: int = LONGEST_PART
    accepted: tuple[str, ...] = ()

    @classmethod
    def of(cls, logs: Sequence[RawLog]) -> Sequence[RawLog]:
        """Return recordings with long ones in parts; a lazy sequence is returned unchanged."""
        return cls(tuple(logs)) if isinstance(logs, list | tuple) else logs

    @property
    def sources(self) -> tuple[str, ...]:
        """The files, one entry per recording."""
        return tuple(recording.source for recording in self.recordings)

    @property
    def findings(self) -> dict[str, tuple[str, ...]]:
        """Findings about whole recordings, by file."""
        return {r.source: r.findings for r in self.recordings if r.findings}

    @property
    def rows(self) -> int:
        """Number of rows of all recordings."""
        return sum(_rows(recording) for recording in self.recordings)

    @property
    def owners(self) -> tuple[int, ...]:
        """The index of the recording of every part."""
        return tuple(stretch.recording for stretch in self.stretches)

    @property
    def cut(self) -> bool:
        """Whether any recording is in parts."""
        return any(stretch.cut for stretch in self.stretches)

    @cached_property
    def glances(self) -> tuple[tuple[Glance, ...], ...]:
        """Stretches in motion of the recordings, empty for those in one piece."""
        return tuple(find_glances(one, self.longest) for one in self.recordings)

    @cached_property
    def stretches(self) -> tuple[Stretch, ...]:
        """The parts in order."""
        parts: list[Stretch] = []
        for number, (recording, glances) in enumerate(zip(self.recordings, self.glances,
                                                          strict=True)):
            if not glances:
                rows = _rows(recording)
                parts.append(Stretch(number, 0, rows, 0, rows, cut=False))
            for glance in glances:
                rows = glance.high - glance.low
                count = max(1, round(rows / self.part_rows))
                bounds = [glance.low + rows * i // count for i in range(count + 1)]
                parts += [Stretch(number, a, b, glance.low, glance.high)
                          for a, b in pairwise(bounds)]
        return tuple(parts)

    @property
    def by_recording(self) -> tuple[tuple[Stretch, ...], ...]:
        """The parts of every recording."""
        parts: list[list[Stretch]] = [[] for _ in self.recordings]
        for stretch in self.stretches:
            parts[stretch.recording].append(stretch)
        return tuple(map(tuple, parts))

    def __len__(self) -> int:
        return len(self.stretches)

    @overload
    def __getitem__(self, index: int) -> RawLog: ...

    @overload
    def __getitem__(self, index: slice) -> list[RawLog]: ...

    def __getitem__(self, index: int | slice) -> RawLog | list[RawLog]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self.read(self.stretches[index])

    def read(self, stretch: Stretch) -> RawLog:
        """Return the rows of a stretch with their margins."""
        recording = self.recordings[stretch.recording]
        if not stretch.cut:
            return self.whole(stretch.recording)
        glance = next(g for g in self.glances[stretch.recording] if g.low == stretch.low)
        margin = int(np.ceil(PART_MARGIN / glance.step))
        first, last = (max(stretch.low, stretch.start - margin),
                       min(stretch.high, stretch.stop + margin))
        log = take(in_memory(recording), slice(first, last))
        start, stop = (_stamp(log.time, row - first) for row in (stretch.start, stretch.stop))
        named = f'{recording.source}, {start:.6g} to {min(stop, float(log.time[-1])):.6g} s'
        return replace(log, source=named, findings=(), accepted=self._accepted(log), part=Part(
            -np.inf if stretch.start == stretch.low else start,
            np.inf if stretch.stop == stretch.high else stop,
            glance.began if log.began is None else log.began, recording.source))

    def excerpt(self, rows: int) -> list[RawLog]:
        """Return evenly spaced stretches in motion of about ``rows`` rows in total.

        Short recordings are taken whole.
        """
        candidates: list[tuple[int, int, Glance | None]] = []
        for number, glances in enumerate(self.glances):
            for glance in glances:
                candidates += [(number, first, glance) for first in glance.moving]
            if not glances:
                pieces = -(-_rows(self.recordings[number]) // GLANCE)
                candidates += [(number, 0, None)] * pieces
        step = max(g.step for glances in self.glances for g in glances)
        count = int(np.clip(rows * step / STRETCH_SECONDS, 2, MAX_STRETCHES))
        middles = (np.arange(count) + 0.5) / count * len(candidates)
        chosen = dict.fromkeys(candidates[int(i)] for i in middles)
        return [self.read(_stretch(number, first, glance, rows // count)) if glance else
                self.whole(number) for number, first, glance in chosen]

    def select(self, selected: Sequence[bool]) -> Parts:
        """Return the recordings that are ``selected`` (one value each)."""
        return replace(self, recordings=tuple(
            one for one, yes in zip(self.recordings, selected, strict=True) if yes))

    def uncut(self, what: str) -> Parts:
        """Return the recordings uncut, as ``what`` needs them.

        Raises DataError for one that is too long for it.
        """
        for recording in self.recordings:
            if _rows(recording) > WHOLE_ROWS:
                raise DataError(
                    f'{recording.source}: {what} needs a recording in one piece, and '
                    f'{_rows(recording)} rows are too many: cut it into recordings of at most '
                    f'{WHOLE_ROWS} rows (ros2 bag convert), or give a shorter one')
        return replace(self, longest=WHOLE_ROWS)

    def whole(self, number: int) -> RawLog:
        """Return a recording in one piece."""
        log = in_memory(self.recordings[number])
        return replace(log, accepted=self._accepted(log)) if self.accepted else log

    def _accepted(self, log: RawLog) -> tuple[str, ...]:
        return (*log.accepted, *self.accepted)


def in_memory(recording: RawLog | StoredRecording) -> RawLog:
    """Return a recording, read if it is stored."""
    return recording if isinstance(recording, RawLog) else recording.read()


def find_glances(
    recording: RawLog | StoredRecording, longest: int = LONGEST_PART
) -> tuple[Glance, ...]:
    """Return the stretches in motion of a recording, none if it stays in one piece."""
    if _rows(recording) <= longest:
        return ()
    stored: tuple[Glance, ...] | None = getattr(recording, 'glances', None)
    return tuple(_glances(in_memory(recording))) if stored is None else stored


def _stretch(number: int, first: int, glance: Glance, rows: int) -> Stretch:
    """Return a stretch of ``rows`` from ``first``, or to the end of the recording."""
    start = max(glance.low, min(first, glance.high - rows))
    return Stretch(number, start, min(start + rows, glance.high), glance.low, glance.high)


def _rows(recording: RawLog | StoredRecording) -> int:
    return len(recording.time) if isinstance(recording, RawLog) else len(recording)


def _stamp(time: FloatArray, row: int) -> float:
    """Return the first finite stamp from ``row`` on; inf if there is none."""
    finite = time[row:][np.isfinite(time[row:])]
    return float(finite[0]) if len(finite) else np.inf


def _glances(log: RawLog) -> Iterator[Glance]:
    total = len(log.time)
    firsts = np.arange(0, total, GLANCE)
    with np.errstate(invalid='ignore', over='ignore'):
        travels = np.fmax.reduceat(log.position, firsts) - np.fmin.reduceat(log.position, firsts)
        steps = np.diff(log.time[:STEP_STAMPS][np.isfinite(log.time[:STEP_STAMPS])])
    travels[~np.isfinite(travels)] = 0.0
    step = float(np.median(steps[steps > 0.0])) if (steps > 0.0).any() else 1.0
    moves = (travels > np.maximum(REST_SHARE * travels.max(axis=0), REST_TRAVEL)).any(axis=1)
    for low, high in pairwise([0, *clock_steps(log.time).tolist(), total]):
        inside = (firsts + GLANCE > low) & (firsts < high)
        moving = firsts[inside & moves]
        if not moves.any():  # a recording completely at rest stays whole
            moving = firsts[inside]
        elif len(moving):
            low = max(low, int(moving[0]) - GLANCE)
            high = min(high, int(moving[-1]) + 2 * GLANCE)
        if len(moving):
            yield Glance(low, high, step, _stamp(log.time[:high], low),
                         tuple(max(low, int(m)) for m in moving))
