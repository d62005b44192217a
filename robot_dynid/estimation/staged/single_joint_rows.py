"""Stretches of recordings in which a single joint moves, and the information they hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import (
    Experiment,
    Regression,
    accumulate,
    row_weights,
    whole_batch,
)
from robot_dynid.estimation.information import (
    EXTRA,
    Accumulator,
    Batch,
    Information,
    merged,
)
from robot_dynid.estimation.staged.procedure import LockedJointsMotion
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.signals.single_joint_motion import least_travel, single_joint_stretches
from robot_dynid.types import FloatArray, Samples

#: motions whose locked joints are this close [rad, m] are in the same configuration
SAME, SAME_PRISMATIC = 0.05, 0.01
#: shorter stretches [s] are the beginning or end of something else
SHORTEST = 0.5


@dataclass(eq=False)
class LockedPlace:
    """One joint moving with the others locked in one configuration, as far as it was seen.

    ``position`` (n,) is the mean of the first stretch, ``lower`` and ``upper`` are the ends of the
    motion.
    """

    moving: int
    position: FloatArray
    lower: float
    upper: float

    @property
    def motion(self) -> LockedJointsMotion:
        """The motion as data of a procedure."""
        position = self.position.copy()
        position[self.moving] = 0.5 * (self.lower + self.upper)
        return LockedJointsMotion(self.moving, position, 0.5 * (self.upper - self.lower))


def single_joint_rows(robot: RobotModel, samples: Samples) -> Iterator[tuple[int, slice]]:
    """Yield (joint, rows) of every stretch in which only that joint moves, at least SHORTEST."""
    for segment in samples.segments:
        time = samples.time[segment]
        for joint, rows in single_joint_stretches(
                time, samples.position[segment], least_travel(robot)):
            if (rows.stop - rows.start) * float(time[1] - time[0]) >= SHORTEST:
                yield joint, slice(segment.start + rows.start, segment.start + rows.stop)


def own_rows(robot: RobotModel, samples: Samples) -> NDArray[np.bool_]:
    """Return a mask (N, n): where each joint moves alone."""
    found = np.zeros((len(samples), robot.n), dtype=bool)
    for joint, rows in single_joint_rows(robot, samples):
        found[rows, joint] = True
    return found


def single_joint_data(experiment: Experiment) -> list[tuple[LockedJointsMotion, Information]]:
    """Return every single-joint motion in the recordings of ``experiment``, its information.

    In batches of BATCH_SECONDS however short a recording is: of a joint at rest only the variation
    within a batch counts, and many short recordings make enough batches together.

    Raises DataError when there is none.
    """
    model = experiment.model
    found: dict[LockedPlace, Accumulator] = {}
    for samples in experiment.recordings:
        regression = Regression(model, samples)
        weights = row_weights(model.robot, samples, experiment.reversal_weights)
        for moving, rows in single_joint_rows(model.robot, samples):
            place = _place(model.robot, found, moving, samples.position[rows])
            if place not in found:
                found[place] = Accumulator(model.reduction.names, model.structure,
                                           whole_batch(samples))
            accumulate(regression, rows, found[place], weights)
    if not found:
        raise DataError('in no stretch of the data one joint moves while all others rest; record '
                        'an excitation of type sine-sequence, or use another method')
    return [(place.motion, data.information()) for place, data in found.items()]


def own_efforts(experiment: Experiment) -> Information:
    """Return the information in which every joint counts while it alone moves.

    Raises DataError when there is none.
    """
    data = single_joint_data(experiment)
    sizes = [EXTRA + int(own.sum()) for own in experiment.model.structure]
    factors = tuple(
        merged([batch.factors[j] for motion, found in data if motion.moving == j
                for batch in found.batches] or [np.zeros((size, size))])
        for j, size in enumerate(sizes))
    samples = sum(found.samples for _, found in data)
    return replace(data[0][1], batches=(Batch(factors, samples),))


def locked_motions(
    robot: RobotModel, recordings: Iterable[Samples]
) -> list[LockedJointsMotion]:
    """Return the single-joint motions in ``recordings``, one per joint and configuration."""
    found: list[LockedPlace] = []
    for samples in recordings:
        for moving, rows in single_joint_rows(robot, samples):
            place = _place(robot, found, moving, samples.position[rows])
            if place not in found:
                found.append(place)
    return [place.motion for place in found]


def _place(
    robot: RobotModel, found: Iterable[LockedPlace], moving: int, position: FloatArray
) -> LockedPlace:
    """Return the place of a stretch with ``position`` (N, n): one that is known, or a new one."""
    near = np.where(np.asarray(robot.types) == PRISMATIC, SAME_PRISMATIC, SAME)
    near[moving] = np.inf
    mean, own = position.mean(axis=0), position[:, moving]
    for place in found:
        if place.moving == moving and np.all(np.abs(place.position - mean) < near):
            place.lower = min(place.lower, float(own.min()))
            place.upper = max(place.upper, float(own.max()))
            return place
    return LockedPlace(moving, mean, float(own.min()), float(own.max()))
