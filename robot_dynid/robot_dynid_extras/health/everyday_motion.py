"""Everyday motion of a robot reduced to information about the parameters of its model.

A few seconds of joint states pass the filters of the identification, and become one factor per
joint and second. A joint counts where it slides: at rest friction holds it whichever way, and its
effort says nothing about what it carries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import (
    BATCH_SECONDS,
    SWIFT_SHARE,
    Regression,
    accumulate,
    swift,
)
from robot_dynid.estimation.information import FILTERED, ONE, Accumulator, Batch, Information
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.observer import slowest
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.types import FloatArray, RawLog

#: least time [s] that any joint slides in a stretch that is of use
LEAST_SLIDING = 0.5


@dataclass(frozen=True, eq=False)
class EverydayMotion:
    """A stretch of motion: ``information`` in batches of about a second.

    ``sliding`` (batches, n) [s] is how long each joint slid in them, ``step`` [s] the time between
    the rows.
    """

    information: Information
    sliding: FloatArray
    step: float

    @property
    def seconds(self) -> float:
        """Its length [s]."""
        return self.information.samples * self.step

    def equations(
        self, batch: Batch, values: FloatArray, directions: FloatArray
    ) -> list[FloatArray]:
        """Return the equations (k, m + 2) of each joint about changes of ``values`` (b,).

        Columns: effort by ``directions`` (b, m) of changes, ones, and the effort that the values
        leave; times the root of the step, so that squares of sums are densities.
        """
        found = []
        for j, active in enumerate(self.information.structure):
            columns, rest = batch.split(j)
            found.append(np.sqrt(self.step) * np.column_stack([
                columns @ directions[active], rest[:, ONE],
                rest[:, FILTERED] - columns @ values[active]]))
        return found


@one_blas_thread()
def everyday_motion(model: IdentifiedModel, log: RawLog) -> EverydayMotion | None:
    """Return a stretch of joint states as information, None where no joint slides.

    Raises DataError for a stretch with gaps, or of no use otherwise.
    """
    repaired = repair(model.robot, log)
    if len(repaired.parts) != 1:
        raise DataError(f'{log.source}: joint states are missing in it')
    samples = prepare(model.robot, repaired, model.preprocessing.limited_to(repaired))
    torque = model.torque_model
    weights = swift(torque.robot, samples, slowest_sliding(model))
    step = float(np.median(np.diff(samples.time))) if len(samples) > 1 else 0.0
    if not step * weights.sum(axis=0).max(initial=0.0) >= LEAST_SLIDING:
        return None
    size = max(1, round(BATCH_SECONDS / step))
    accumulator = Accumulator(torque.reduction.names, torque.structure, size)
    accumulator.begin()
    regression = Regression(torque, samples)
    for rows in samples.segments:
        accumulate(regression, rows, accumulator, weights)
    information = accumulator.information()
    ends = np.cumsum([0, *(batch.samples for batch in information.batches)])
    sliding = step * np.add.reduceat(weights, ends[:-1], axis=0)
    return EverydayMotion(information, sliding, step)


def slowest_sliding(model: IdentifiedModel) -> FloatArray:
    """Return the speeds (c,) [rad/s, m/s] above which each coordinate slides.

    A share of the greatest in the training, of the limits where that is not known; at least that
    of rest.
    """
    known = model.trained.quantities.get('velocity')
    fastest = model.robot.limits.velocity if known is None else np.abs(known).max(axis=1)
    found = np.fmax(SWIFT_SHARE * fastest, slowest(model))
    return np.asarray(found[[*range(model.robot.n), *model.robot.drive.elastic]])
