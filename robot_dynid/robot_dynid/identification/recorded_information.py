"""Information of recordings: all that a fit needs of them, without their samples.

Information reduced with the same choices adds up, so a recording joins a model without reading the
earlier ones again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import UsageError, reported
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.by_recording import (
    Recorded,
    RecordedInformation,
    check_alike,
    merge_information,
)
from robot_dynid.identification.gathered import Gathered, Request, check_method, gather
from robot_dynid.identification.identify import IdentificationResult, fit_gathered
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Recordings
from robot_dynid.identification.sequential_fit import Stopwatch
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.types import Progress, RawLog

__all__ = ['EXCERPT_ROWS', 'RecordedInformation', 'excerpt', 'identify_information', 'information']

#: rows of recordings stored with their information, for torque ripple, slow changes, noise levels
#: and scores
EXCERPT_ROWS = 20_000


@reported
@one_blas_thread()
def information(
    robot: RobotModel, logs: Sequence[RawLog], recipe: Recipe | None = None,
    like: RecordedInformation | None = None, progress: Progress | None = None,
    recorded: Recorded | None = None,
) -> RecordedInformation:
    """Reduce recordings of ``robot`` to information about its parameters.

    Cut-off, lag and friction are chosen from the recordings, or taken from ``like``. ``logs`` and
    ``progress`` as in `identify`, ``recorded`` as in `identify_with`. Raises UsageError (wrong
    use, such as a recipe whose method needs samples), DataError (the data does not allow it).
    """
    recipe, progress = recipe or Recipe(), progress or (lambda *_: None)
    estimator = recipe.estimator_for(None).for_robot(robot)
    check_method(estimator, recipe)
    request = Request(estimator, recipe, None if like is None else like.like, recorded)
    recordings = gather(robot, logs, request, progress, Stopwatch(None))
    recordings.release()
    experiment = recordings.experiment
    result = RecordedInformation(
        recordings.robot, recordings.choice, experiment.information, experiment.reversal_weights,
        recordings.extent, recordings.record, (*recordings.findings, *recordings.notes),
        excerpt(recordings.logs))
    if like is not None:
        check_alike(like, result)
    return result


@reported
@one_blas_thread()
def identify_information(
    parts: Sequence[RecordedInformation], method: str | None = None,
    recipe: Recipe | None = None, progress: Progress | None = None,
) -> IdentificationResult:
    """Identify a robot from information that belongs together, see `information`.

    Torque ripple, slow changes, noise levels and scores are those of the excerpts. Raises
    UsageError if it does not belong together, or ``method`` needs samples.
    """
    recipe, progress = recipe or Recipe(), progress or (lambda *_: None)
    whole = merge_information(parts)
    estimator = recipe.estimator_for(method).for_robot(whole.robot)
    check_method(estimator)
    if not whole.excerpt:
        raise UsageError('the information holds no rows of its recordings to score a model by: '
                         'also give one of the recordings, or another one')
    model = whole.choice.structure.torque_model(whole.robot)
    experiment = Experiment.about(model, whole.information, whole.reversal_weights)
    recordings = Recordings(whole.robot, whole.excerpt, recipe)
    gathered = Gathered(
        whole.robot, whole.choice, experiment, whole.extent, whole.record, whole.notes, (),
        whole.excerpt, recordings[:])
    return fit_gathered(gathered, estimator, recipe, progress, Stopwatch(None))


def excerpt(logs: Sequence[RawLog]) -> tuple[RawLog, ...]:
    """Return recordings, or stretches of long ones, of about EXCERPT_ROWS rows in total."""
    if isinstance(logs, Parts) and logs.cut:
        return tuple(logs.excerpt(EXCERPT_ROWS))
    first = logs[0]
    step = max(1, int(np.ceil(len(logs) * len(first.time) / EXCERPT_ROWS)))
    return (first, *(logs[i] for i in range(step, len(logs), step)))
