"""Stretches of recordings in which a single joint moves, and the information they hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d, minimum_filter1d

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
from robot_dynid.estimation.staged.procedure import SingleJointMotion
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, Samples

#: a joint moves while it travels at least this far [rad, m] within WINDOW seconds
WINDOW, TRAVEL, TRAVEL_PRISMATIC = 0.5, 0.01, 0.002
#: the others are locked while they travel less than this share of it
LOCKED_SHARE = 0.1
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
    def motion(self) -> SingleJointMotion:
        """The motion as data of a procedure."""
        position = self.position.copy()
        position[self.moving] = 0.5 * (self.lower + self.upper)
        return SingleJointMotion(self.moving, position, 0.5 * (self.upper - self.lower))


def single_joint_stretches(robot: RobotModel, samples: Samples) -> Iterator[tuple[int, slice]]:
    """Yield (joint, rows) of every stretch in which only that joint moves."""
    least = np.where(np.asarray(robot.types) == PRISMATIC, TRAVEL_PRISMATIC, TRAVEL)
    for segment in samples.segments:
        if segment.stop - segment.start < 2:
            continue
        step = float(samples.time[segment.start + 1] - samples.time[segment.start])
        window = 2 * round(0.5 * WINDOW / step) + 1
        travel = _travel(samples.position[segment], window)
        mover = np.argmax(travel / least, axis=1)
        own = np.take_along_axis(travel, mover[:, None], axis=1)[:, 0]
        others = travel / least
        np.put_along_axis(others, mover[:, None], 0.0, axis=1)
        alone = (own > least[mover]) & (others.max(axis=1) < LOCKED_SHARE * own / least[mover])
        for first, stop in _runs(np.where(alone, mover, -1)):
            if (stop - first) * step >= SHORTEST:
                yield int(mover[first]), slice(segment.start + first, segment.start + stop)


def single_joint_data(experiment: Experiment) -> list[tuple[SingleJointMotion, Information]]:
    """Return every solo motion found in the recordings of ``experiment`` with its information.

    Raises DataError when there is none.
    """
    model = experiment.model
    found: list[SingleJointData] = []
    for samples in experiment.recordings:
        regression = Regression(model, samples)
        weights = row_weights(model.robot, samples, experiment.reversal_weights)
        for moving, rows in single_joint_stretches(model.robot, samples):
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


def _travel(position: FloatArray, window: int) -> FloatArray:
    """Return how far (N, n) every joint travels within ``window`` samples around each one."""
    highest = maximum_filter1d(position, window, axis=0, mode='nearest')
    lowest = minimum_filter1d(position, window, axis=0, mode='nearest')
    return np.asarray(highest - lowest)


def _runs(labels: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield (first, stop) of the runs of equal labels that are not negative."""
    borders = np.flatnonzero(np.diff(labels)) + 1
    for first, stop in zip([0, *borders], [*borders, len(labels)], strict=True):
        if labels[first] >= 0:
            yield int(first), int(stop)
