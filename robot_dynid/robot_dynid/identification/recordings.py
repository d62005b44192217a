"""Preparation of recordings as samples: one in memory at a time, the next one in parallel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.sequential_fit import (
    friction_curves,
    held_notes,
    single_joint_motions_of,
)
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Extent
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.averaging import average
from robot_dynid.signals.parts import OMITTED_PART, Parts
from robot_dynid.signals.prepare import Averaging, Preprocessing, Repaired, prepare, repair
from robot_dynid.signals.single_joint_motion import SingleJointMotion
from robot_dynid.signals.stacked import require_channels
from robot_dynid.signals.unfiltered import AsRecorded, Unfiltered, unfiltered
from robot_dynid.types import Part, Progress, RawLog, Samples

#: most rows of prepared recordings, with their margins, in memory: 400 MB for seven joints
CACHED_ROWS = 1_000_000
#: rows of the recordings that choices are made on; more do not change them
SELECTION_ROWS = 60_000


class Unusable(DataError):
    """A part of a longer recording is unusable; the others are not affected."""


def accepted_kinds(recipe: Recipe, logs: Sequence[RawLog]) -> tuple[str, ...]:
    """Return the kinds of findings accepted for any of the recordings."""
    of_all = (*recipe.accept, *logs.accepted) if isinstance(logs, Parts) else recipe.accept
    recordings = logs.recordings if isinstance(logs, Parts) else ()
    return tuple(dict.fromkeys((*of_all, *(
        kind for log in recordings if isinstance(log, RawLog) for kind in log.accepted))))


@contextmanager
def part_of(place: Part | None) -> Iterator[None]:
    """Turn the DataError of a part of a longer recording into Unusable."""
    try:
        yield
    except DataError as error:
        if place is None:
            raise
        raise Unusable(f'{error} ({OMITTED_PART})') from None


def _rows(samples: Samples) -> int:
    """Return the rows of samples, including those of the whole recording they reference."""
    return len(samples) + (0 if samples.whole is None else len(samples.whole))


@dataclass(frozen=True, eq=False)
class Recordings(Sequence[Repaired]):
    """Repairs or averages recordings on access: one is in memory at a time."""

    robot: RobotModel
    logs: Sequence[RawLog]
    recipe: Recipe

    def __len__(self) -> int:
        return len(self.logs)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._repair(self.logs[index])

    def _repair(self, log: RawLog) -> Repaired:
        periodic = self.recipe.periodic
        with part_of(log.part):
            if periodic is not None:
                return average(self.robot, log, periodic, self.recipe.rate)
            repaired = repair(self.robot, log, self.recipe.rate)
            for part in repaired.parts if log.part is not None else ():
                require_channels(self.robot, part, repaired.notes)
            return repaired

    def excerpt(self, rows: int = SELECTION_ROWS) -> list[Repaired]:
        """Return evenly spaced recordings, or stretches of long ones, of about ``rows`` rows.

        Raises DataError if none is usable.
        """
        if not isinstance(self.logs, Parts) or not self.logs.cut:
            return self._spaced(rows)
        repaired: list[Repaired] = []
        problem: DataError | None = None
        for log in self.logs.excerpt(rows):
            try:
                repaired.append(self._repair(log))
            except Unusable as error:
                problem = error
        if problem is not None and not repaired:
            raise problem
        return repaired

    def _spaced(self, rows: int) -> list[Repaired]:
        """Return evenly spaced recordings (at least one).

        The first one of a lazy sequence gives the length of all, which are not read.
        """
        first: Repaired = self[0]
        whole = self.logs.rows if isinstance(self.logs, Parts) else \
            len(self) * sum(len(p.time) for p in first.parts)
        step = max(1, int(np.ceil(whole / rows)))
        return [first, *(self[i] for i in range(step, len(self), step))]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Prepares recordings, the next one on a second thread while one is processed.

    The first pass notes repairs, averaging, motions of single joints, the extent of the motion,
    and unusable parts of long recordings, which are omitted. For estimators with several passes,
    the first CACHED_ROWS rows stay in memory; the others are prepared again. ``alone``: the fit
    accounts for joints that hold.
    """

    robot: RobotModel
    recordings: Sequence[Repaired]
    settings: Preprocessing
    progress: Progress
    alone: bool = False
    notes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    averaged: dict[int, Averaging] = field(default_factory=dict)
    cache: dict[int, Samples] = field(default_factory=dict)
    motions: dict[int, list[SingleJointMotion]] = field(default_factory=dict)
    extents: dict[int, Extent] = field(default_factory=dict)
    unusable: dict[int, DataError] = field(default_factory=dict)

    def _ready(self, i: int) -> Samples | None:
        """Return the samples of a recording, None for an unusable part."""
        cached = self.cache.get(i)
        if cached is not None or i in self.unusable:
            return cached
        try:
            samples = self._samples(i)
        except Unusable as error:
            self.notes.setdefault(i, (str(error),))
            self.unusable[i] = error
            return None
        if sum(map(_rows, (*self.cache.values(), samples))) <= CACHED_ROWS:
            self.cache[i] = samples
        return samples

    def _samples(self, i: int) -> Samples:
        recording = self.recordings[i]
        if i not in self.motions:
            self.motions[i] = single_joint_motions_of(self.robot, recording, self.settings)
        if recording.averaging is not None:
            self.averaged.setdefault(i, recording.averaging)
        with part_of(recording.place):
            samples = prepare(self.robot, recording, self.settings)
        self.notes.setdefault(i, (*recording.notes, *(() if self.alone else held_notes(
            self.robot, recording, self.motions[i]))))
        self.extents.setdefault(i, Extent.of(self.robot, samples))
        return samples

    def __iter__(self) -> Iterator[Samples]:
        count = len(self.recordings)
        again = len(self.notes) == count
        with ThreadPoolExecutor(max_workers=1) as ahead:
            coming = ahead.submit(self._ready, 0)
            for i in range(count):
                self.progress('going through the recordings again' if again else
                              'reducing the recordings', 0.9 if again else 0.8 + 0.1 * i / count)
                samples = coming.result()
                if i + 1 < count:
                    coming = ahead.submit(self._ready, i + 1)
                if samples is not None:
                    yield samples
        if len(self.unusable) == count:
            raise self.unusable[0]

    @property
    def as_recorded(self) -> AsRecorded:
        """The unfiltered recordings, with the effort lag removed."""
        return AsRecorded(self._unfiltered, lambda stage, share: self.progress(
            stage, 0.9 + 0.02 * share))

    def _unfiltered(self) -> Iterator[tuple[Unfiltered, ...]]:
        for i in range(len(self.recordings)):
            if i not in self.unusable:
                self.progress('going through the recordings again', 0.9)
                yield unfiltered(self.robot, self.recordings[i], self.settings.effort_lag)

    @property
    def all_notes(self) -> tuple[str, ...]:
        """Notes about the recordings, in order, each once."""
        return tuple(dict.fromkeys(note for i in sorted(self.notes) for note in self.notes[i]))

    @property
    def all_motions(self) -> tuple[SingleJointMotion, ...]:
        """Motions of single joints in the recordings, in order."""
        return tuple(motion for i in sorted(self.motions) for motion in self.motions[i])

    def notes_and_record(self, recipe: Recipe) -> tuple[list[str], FitRecord]:
        """Return notes, and the record of averaged recordings and sweeps, after the first pass."""
        curves, more = friction_curves(self.robot, self.all_motions, recipe)
        return [*self.all_notes, *more], FitRecord(
            averaging=tuple(self.averaged[i] for i in sorted(self.averaged)),
            friction_curves=tuple(curve.summary for curve in curves))
