"""Recordings of a fleet reduced with common choices, and models of its arms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.uncertainty.between_recordings import SCATTER_STRETCHES
from robot_dynid.identification.by_recording import (
    Keeper,
    Recorded,
    RecordedInformation,
    contents,
    merge_information,
)
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recorded_information import (
    excerpt,
    identify_information,
    information,
)
from robot_dynid.identification.selection import between
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uncertainty import correlation_factor
from robot_dynid.io.log import RecordingFile, recording_files
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.types import Progress, RawLog
from robot_dynid_extras.fleet.changes import STEP
from robot_dynid_extras.fleet.fleet import Arm, Fleet, ReducedRecording
from robot_dynid_extras.fleet.recordings import ArmRecording

#: recordings, evenly from all arms and times, that decide filters and friction laws for all
CHOOSING = 6
#: recordings of an arm, evenly over time, by which its model is scored
SCORED = 3


@dataclass(frozen=True)
class KeptRecording:
    """A recording of an ``arm`` at ``time`` [s since 1970] whose information is kept.

    ``digest`` of its content and ``key`` of the choices are those of `by_recording.Keeper`.
    """

    arm: str
    time: float
    source: str
    digest: str
    key: str


@dataclass(frozen=True, eq=False)
class ReducedFleet:
    """Information of the recordings of a fleet, kept by ``keeper``, read when it is asked for.

    ``recordings`` of an arm are in a row. ``like`` is information with the choices of all;
    ``left_out`` has the reason by source.
    """

    like: RecordedInformation
    keeper: Keeper
    recordings: tuple[KeptRecording, ...]
    left_out: Mapping[str, str]

    @property
    def model(self) -> TorqueModel:
        """The model that the information is about."""
        return self.like.choice.structure.torque_model(self.like.robot)

    def __iter__(self) -> Iterator[ReducedRecording]:
        for one in self.recordings:
            yield ReducedRecording(one.arm, one.time, self.part(one).information.condensed(
                SCATTER_STRETCHES), one.source)

    def part(self, one: KeptRecording) -> RecordedInformation:
        """Return the information of a recording; raises DataError where it is no longer kept."""
        found, wrong = self.keeper.load(one.source, one.digest, one.key)
        if found is None:
            raise DataError(f'{one.source}: its information was kept, but is not there any more '
                            f'{wrong}'.rstrip())
        return replace(found, record=replace(found.record, recordings=(one.source,)))


@one_blas_thread()
def reduced(
    like: RecordedInformation, listed: tuple[Sequence[ArmRecording], Parts],
    workers: tuple[Recorded, Keeper], recipe: Recipe, progress: Progress,
) -> ReducedFleet:
    """Reduce the ``listed`` recordings, which come with their files, with the choices of ``like``.

    What they are reduced to is in the keeper, which may be that of the workers. A recording that
    cannot be used, or is a copy of another one, is left out. Raises UsageError for one without
    time, DataError where all are left out.
    """
    recorded, keeper = workers
    found, left_out = list[KeptRecording](), dict[str, str]()
    known: dict[tuple[str, ...], str] = {}
    every = recorded.each(like.robot, listed[1], (like.like, recipe), progress)
    for one, made in zip(listed[0], every, strict=True):
        if made.information is None:
            left_out[one.source] = str(made.error)
            continue
        record = made.information.record
        [digest] = record.recording_digests
        first = known.setdefault(contents(made.information.information), one.source)
        if first != one.source:
            left_out[one.source] = f'{one.source}: is a copy of {first}'
            continue
        found.append(KeptRecording(
            one.arm, _time(one, made.began), one.source, digest, record.recipe_digest))
        if keeper is not recorded.keeper:
            keeper.save(made.information, one.source, digest)
    if not found:
        raise DataError(f'no recording of the fleet can be used: {next(iter(left_out.values()))}')
    found.sort(key=lambda one: (one.arm, one.time))
    return ReducedFleet(like, keeper, tuple(found), left_out)


def reduce_fleet(
    robot: RobotModel, listed: Sequence[ArmRecording], workers: tuple[Recorded, Keeper],
    recipe: Recipe, progress: Progress,
) -> ReducedFleet:
    """Choose filters and laws from a few recordings, reduce all with them, see `reduced`."""
    few = recording_files([one.source for one in choosing(listed)], robot)
    like = information(robot, few, recipe, None, between(progress, 0.0, 0.3),
                       replace(workers[0], keeper=None))
    logs = recording_files([one.source for one in listed], robot)
    return reduced(like, (listed, logs), workers, recipe, between(progress, 0.3, 0.9))


def choosing(listed: Sequence[ArmRecording]) -> list[ArmRecording]:
    """Return the recordings from which filters and friction laws are chosen for all."""
    ordered = sorted(listed, key=lambda one: (one.arm, one.time or one.named or 0.0, one.source))
    return [ordered[i] for i in np.unique(np.linspace(0, len(listed) - 1, CHOOSING, dtype=int))]


def _time(one: ArmRecording, began: float | None) -> float:
    """Return the time of a recording [s since 1970]; raises UsageError where nothing tells."""
    if one.time is not None:
        return one.time
    if began is not None:
        return began
    if one.named is not None:
        return one.named
    raise UsageError(f'{one.source}: when was it recorded? Its stamps are no times of day, and '
                     'its name has no date (2024-06-25); put either right, or give a list of the '
                     'recordings with path, robot and time')


@one_blas_thread()
def models(
    fleet: Fleet, made: ReducedFleet, read: Callable[[Sequence[str]], Sequence[RawLog]],
    recipe: Recipe | None = None,
) -> Iterator[tuple[str, IdentifiedModel]]:
    """Yield name and model of every arm as it is since the last step that was found.

    Parameters are those pooled with the fleet; ``read`` reads recordings by which it is scored.
    """
    for arm in fleet.arms:
        since = max((one.since or -np.inf for one in fleet.findings
                     if one.arm == arm.name and one.pattern == STEP), default=-np.inf)
        own = [one for one in made.recordings if one.arm == arm.name and one.time >= since]
        sources = [own[i].source for i in np.unique(np.linspace(
            0, len(own) - 1, SCORED, dtype=int))]
        whole = replace(merge_information(made.part(one) for one in own),
                        excerpt=excerpt(read(sources)))
        yield arm.name, pooled(identify_information([whole], recipe=recipe).model, fleet, arm)


def write_models(
    folder: str, fleet: Fleet, made: ReducedFleet, recipe: Recipe, progress: Progress
) -> dict[str, str]:
    """Write a model of each arm to ``folder``; return their paths by the names of the arms."""
    def read(sources: Sequence[str]) -> Parts:
        return Parts(tuple(RecordingFile(one, made.like.robot).opened()[0] for one in sources))

    Path(folder).mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, model in models(fleet, made, read, recipe):
        progress(f'model of {name}', 0.95)
        paths[name] = str(Path(folder) / f'{name}.model.yaml')
        model.save(paths[name])
    return paths


def pooled(model: IdentifiedModel, fleet: Fleet, arm: Arm) -> IdentifiedModel:
    """Return the ``model`` of an arm with its parameters pooled with the fleet."""
    directions = fleet.characteristics.directions
    known = np.isfinite(np.diag(arm.covariance))
    covariance = np.where(known[:, None] & known, arm.covariance, 0.0)
    covariance = directions @ covariance @ directions.T
    std = np.where(np.any(directions[:, ~known] != 0.0, axis=1), np.inf,
                   np.sqrt(np.diag(covariance)))
    told = f'parameters are pooled with those of {len(fleet.arms)} arms of one type'
    return replace(model, values=fleet.characteristics.base(arm.values), std=std,
                   correlation_factor=correlation_factor(covariance, std), feasible=None,
                   warnings=(*model.warnings, told))
