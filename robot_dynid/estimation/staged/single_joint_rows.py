"""Stretches of recordings in which a single joint moves, and the information they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import (
    Experiment,
    Regression,
    TorqueModel,
    accumulate,
    batch_samples,
    row_weights,
)
from robot_dynid.estimation.information import Accumulator, Information
from robot_dynid.estimation.staged.procedure import LockedJointsMotion
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.signals.single_joint_motion import least_travel, single_joint_stretches
from robot_dynid.types import FloatArray, Samples

#: motions whose locked joints are this close [rad, m] are in the same configuration
SAME, SAME_PRISMATIC = 0.05, 0.01
#: shorter stretches [s] are the beginning or end of something else
SHORTEST = 0.5


@dataclass
class SingleJointData:
    """All stretches of one joint in one configuration, and what they hold so far."""

    moving: int
    position: FloatArray
    accumulator: Accumulator
    lower: float = np.inf
    upper: float = -np.inf

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


def single_joint_data(experiment: Experiment) -> list[tuple[LockedJointsMotion, Information]]:
    """Return every single-joint motion in the recordings of ``experiment``, its information.

    Raises DataError when there is none.
    """
    model = experiment.model
    found: list[SingleJointData] = []
    for samples in experiment.recordings:
        regression = Regression(model, samples)
        weights = row_weights(model.robot, samples, experiment.reversal_weights)
        for moving, rows in single_joint_rows(model.robot, samples):
            data = _same(model, found, (moving, samples.position[rows])) \
                or _new(model, found, (moving, samples.position[rows]), samples)
            accumulate(regression, rows, data.accumulator, weights)
    if not found:
        raise DataError('in no stretch of the data one joint moves while all others rest; record '
                        'an excitation of type sine-sequence, or use another method')
    return [(data.motion, data.accumulator.information()) for data in found]


def _same(
    model: TorqueModel, found: list[SingleJointData], stretch: tuple[int, FloatArray]
) -> SingleJointData | None:
    """Return the data of the same motion in the same configuration, or None."""
    moving, position = stretch
    near = np.where(np.asarray(model.robot.types) == PRISMATIC, SAME_PRISMATIC, SAME)
    near[moving] = np.inf
    for data in found:
        if data.moving == moving and np.all(np.abs(data.position - position.mean(axis=0)) < near):
            data.lower = min(data.lower, float(position[:, moving].min()))
            data.upper = max(data.upper, float(position[:, moving].max()))
            return data
    return None


def _new(
    model: TorqueModel,
    found: list[SingleJointData],
    stretch: tuple[int, FloatArray],
    samples: Samples,
) -> SingleJointData:
    moving, position = stretch
    accumulator = Accumulator(model.reduction.names, model.structure, batch_samples(samples))
    own = position[:, moving]
    data = SingleJointData(
        moving, position.mean(axis=0), accumulator, float(own.min()), float(own.max())
    )
    found.append(data)
    return data
