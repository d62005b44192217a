"""Recordings on their way to samples: one in memory at a time, the next one prepared beside."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from robot_dynid.identification.friction_curves import friction_curves, single_joint_motions_of
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Extent
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.averaging import average
from robot_dynid.signals.prepare import Averaging, Preprocessing, Repaired, prepare, repair
from robot_dynid.signals.single_joint_motion import SingleJointMotion
from robot_dynid.types import Progress, RawLog, Samples

#: rows of prepared recordings that stay in memory: 40 MB for seven joints
KEPT_ROWS = 100_000


@dataclass(frozen=True, eq=False)
class Recordings(Sequence[Repaired]):
    """Repairs or averages recordings when they are asked for: one is in memory at a time."""

    robot: RobotModel
    logs: Sequence[RawLog]
    recipe: Recipe

    def __len__(self) -> int:
        return len(self.logs)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        log, periodic = self.logs[index], self.recipe.periodic
        if periodic is not None:
            return average(self.robot, log, periodic, self.recipe.rate)
        return repair(self.robot, log, self.recipe.rate)


@dataclass(frozen=True, eq=False)
class Prepared:
    """Prepares recordings, the next one on a second thread while one is worked on.

    What was repaired and averaged, where single joints moved and the extent of the motion is noted
    when the recordings are gone through for the first time. The first KEPT_ROWS rows stay in
    memory, for estimators that go through them again.
    """

    robot: RobotModel
    recordings: Sequence[Repaired]
    settings: Preprocessing
    progress: Progress
    notes: dict[int, tuple[str, ...]] = field(default_factory=dict)
    averaged: dict[int, Averaging] = field(default_factory=dict)
    kept: dict[int, Samples] = field(default_factory=dict)
    motions: dict[int, list[SingleJointMotion]] = field(default_factory=dict)
    extents: dict[int, Extent] = field(default_factory=dict)

    def _ready(self, i: int) -> Samples:
        if i in self.kept:
            return self.kept[i]
        recording = self.recordings[i]
        if i not in self.notes:
            self.notes[i] = recording.notes
            self.motions[i] = single_joint_motions_of(self.robot, recording, self.settings)
        if recording.averaging is not None:
            self.averaged.setdefault(i, recording.averaging)
        samples = prepare(self.robot, recording, self.settings)
        self.extents.setdefault(i, Extent.of(self.robot, samples))
        if sum(map(len, self.kept.values())) + len(samples) <= KEPT_ROWS:
            self.kept[i] = samples
        return samples

    def __iter__(self) -> Iterator[Samples]:
        count = len(self.recordings)
        again = len(self.notes) == count
        with ThreadPoolExecutor(max_workers=1) as ahead:
            coming = ahead.submit(self._ready, 0)
            for i in range(count):
                self.progress('going through the recordings again' if again else
                              'reducing the recordings', 0.9 if again else 0.8 + 0.1 * i / count)
                found = coming.result()
                if i + 1 < count:
                    coming = ahead.submit(self._ready, i + 1)
                yield found

    def found(self, recipe: Recipe) -> tuple[list[str], FitRecord]:
        """Return notes, and the record of averaged recordings and sweeps, once gone through."""
        notes = [note for i in sorted(self.notes) for note in self.notes[i]]
        motions = [motion for i in sorted(self.motions) for motion in self.motions[i]]
        curves, more = friction_curves(self.robot, motions, recipe)
        return [*notes, *more], FitRecord(
            averaging=tuple(self.averaged[i] for i in sorted(self.averaged)),
            friction_curves=tuple(curve.summary for curve in curves))
