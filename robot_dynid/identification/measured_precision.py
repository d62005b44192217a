"""Precision of base parameters from recordings of single joints, to choose the next swing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import reported
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.staged.measured_information import measured_information
from robot_dynid.excitation.design import DesignCriteria
from robot_dynid.excitation.score import Precision, Resting
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Recordings
from robot_dynid.identification.selection import SingleJointExcerpt, choose
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import prepare
from robot_dynid.types import FloatArray, Progress, RawLog


@one_blas_thread()
def after_recordings(
    criteria: DesignCriteria, robot: RobotModel, logs: Sequence[RawLog], progress: Progress
) -> DesignCriteria:
    """Return the criteria of the next swings, with what recordings of those before them tell.

    Raises as `measured_precision` does.
    """
    if criteria.model is None or criteria.precision is None:
        return criteria  # the design says what is missing
    return replace(criteria, precision=measured_precision(
        robot, logs, criteria.model, criteria.precision, progress))


@reported
@one_blas_thread()
def measured_precision(
    robot: RobotModel, logs: Sequence[RawLog], model: TorqueModel, before: Precision,
    progress: Progress | None = None,
) -> Precision:
    """Return ``before`` with what recordings tell of the base parameters of ``model``.

    The noise of a joint that moved, and what friction takes of the effort of one at rest, are
    those of the fit from then on; those of other joints stay.

    Raises DataError, UsageError for recordings that cannot be used.
    """
    robot = robot.rigid
    recipe = Recipe(friction='coulomb')
    kept, _ = plausible_recordings(robot, Parts.of(logs))
    recordings = Recordings(robot, kept, recipe)
    choice = choose(robot, recordings.excerpt(), recipe, progress or (lambda *_: None),
                    kind=SingleJointExcerpt)
    samples = [prepare(robot, one, choice.preprocessing) for one in recordings]
    step = float(np.median(np.concatenate([np.diff(one.time) for one in samples])))
    told = measured_information(Experiment.of(model, samples), step)

    def known(found: FloatArray, assumed: FloatArray) -> FloatArray:
        return np.where(np.isfinite(found), found, assumed)

    return replace(before, information=before.information + told.information,
                   resting=Resting(before.resting.grams + told.resting,
                                   before.resting.seconds + told.seconds),
                   density=known(told.density, before.density),
                   held=known(told.held, before.held))
