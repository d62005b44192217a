"""Recordings of a fleet reduced with common choices, and models of its arms."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation.uncertainty.stretches import STRETCHES
from robot_dynid.fleet.changes import STEP
from robot_dynid.fleet.fleet import Arm, Fleet, ReducedRecording
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recorded_information import (
    RecordedInformation,
    identify_information,
    information,
)
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uncertainty import correlation_factor
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import Progress, RawLog

#: recordings, evenly from all arms and times, that decide filters and friction laws for all
CHOOSING = 6


@dataclass(frozen=True)
class ArmRecording:
    """A recording at ``source`` of an ``arm``.

    ``time`` [s since 1970] is known from a list, ``named`` from the name of the file: the former
    counts before the stamps of the recording, the latter where these are no times of day.
    """

    source: str
    arm: str
    time: float | None = None
    named: float | None = None


@dataclass(frozen=True, eq=False)
class Reduced:
    """Information of the recordings of a fleet, and ``left_out`` with the reason, by source.

    ``parts`` in the order of ``recordings``.
    """

    recordings: tuple[ReducedRecording, ...]
    parts: tuple[RecordedInformation, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)


@one_blas_thread()
def reduced(
    robot: RobotModel, listed: Sequence[ArmRecording],
    read: Callable[[str], Sequence[RawLog]], recipe: Recipe | None = None,
    progress: Progress | None = None,
) -> Reduced:
    """Return the information of the ``listed`` recordings, which ``read`` reads by source.

    Cut-off, lag and friction are chosen from CHOOSING recordings. A recording
    that cannot be used is left out. Raises UsageError for one without time, DataError where all
    are left out.
    """
    tell = progress or (lambda *_: None)
    ordered = sorted(listed, key=lambda one: (one.arm, one.time or one.named or 0.0))
    chosen = [ordered[i] for i in np.unique(np.linspace(0, len(listed) - 1, CHOOSING, dtype=int))]
    tell('choosing filters and friction laws', 0.0)
    like = information(
        robot, [log for one in chosen for log in read(one.source)], recipe)
    found, parts, left_out = [], [], {}
    for i, one in enumerate(listed):
        tell(f'{one.arm}: recording {i + 1} of {len(listed)}', 0.2 + 0.7 * i / len(listed))
        try:
            logs = read(one.source)
            part = information(robot, logs, recipe, like)
        except DataError as error:
            left_out[one.source] = str(error)
            continue
        found.append(ReducedRecording(one.arm, _time(one, logs[0]),
                              part.information.condensed(STRETCHES), one.source))
        parts.append(part)
    if not found:
        raise DataError(f'no recording of the fleet can be used: {next(iter(left_out.values()))}')
    return Reduced(tuple(found), tuple(parts), left_out)


def _time(one: ArmRecording, log: RawLog) -> float:
    """Return the time of a recording [s since 1970]; raises UsageError where nothing tells."""
    if one.time is not None:
        return one.time
    if log.epoch is not None:
        return log.epoch + float(log.time[0])
    if one.named is not None:
        return one.named
    raise UsageError(f'{one.source}: when was it recorded? Its stamps are no times of day, and '
                     'its name has no date (2024-06-25); put either right, or give a list of the '
                     'recordings with path, robot and time')


@one_blas_thread()
def models(
    fleet: Fleet, made: Reduced, recipe: Recipe | None = None,
) -> Iterator[tuple[str, IdentifiedModel]]:
    """Yield name and model of every arm as it is since the last step that was found.

    Parameters are those pooled with the fleet.
    """
    for arm in fleet.arms:
        since = max((one.since or -np.inf for one in fleet.findings
                     if one.arm == arm.name and one.pattern == STEP), default=-np.inf)
        own = [part for one, part in zip(made.recordings, made.parts, strict=True)
               if one.arm == arm.name and one.time >= since]
        yield arm.name, pooled(identify_information(own, recipe=recipe).model, fleet, arm)


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
