"""Recordings reduced to information: all that a fit needs of them, without their samples.

Information of recordings that were reduced with the same choices adds up, so a recording joins a
model without the earlier ones being read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import UsageError, reported
from robot_dynid.estimation import ESTIMATORS, Estimator
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Information
from robot_dynid.identification.gathered import Gathered, Like, Request, gather
from robot_dynid.identification.identify import IdentificationResult, fitted
from robot_dynid.identification.recipe import THREE, Recipe
from robot_dynid.identification.recordings import Recordings
from robot_dynid.identification.selection import Choice
from robot_dynid.identification.sequential_fit import Stopwatch
from robot_dynid.identified.record import FitRecord, digest_of
from robot_dynid.identified.trained import Extent
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.serialization import robot_to_plain
from robot_dynid.signals.parts import Parts
from robot_dynid.types import FloatArray, Progress, RawLog

#: rows of recordings that stay with their information, for torque ripple, slow changes, levels of
#: noise and scores
EXCERPT_ROWS = 20_000


@dataclass(frozen=True, eq=False)
class RecordedInformation:
    """Information of recordings about the parameters of one model of a robot.

    ``choice`` of the model and of the filters they were reduced with, and ``reversal_weights``
    (n,); ``extent`` of their motion; ``record`` and ``notes`` of what was done to them;
    ``excerpt`` a few of the recordings, or stretches of them, as they were read.
    """

    robot: RobotModel
    choice: Choice
    information: Information
    reversal_weights: FloatArray | None
    extent: Extent
    record: FitRecord
    notes: tuple[str, ...]
    excerpt: tuple[RawLog, ...]

    @property
    def like(self) -> Like:
        """The choices that others must be reduced with to merge with it."""
        return Like(self.choice, self.reversal_weights)

    def merged(self, other: RecordedInformation) -> RecordedInformation:
        """Return the information of both; raises UsageError where they do not belong together."""
        _check_alike(self, other)
        a, b = self.record, other.record
        record = replace(
            a, recordings=a.recordings + b.recordings,
            recording_digests=a.recording_digests + b.recording_digests,
            averaging=a.averaging + b.averaging,
            friction_curves=a.friction_curves + b.friction_curves)
        return replace(
            self, information=self.information.merge(other.information).condensed(),
            extent=Extent.merged((self.extent, other.extent)), record=record,
            notes=(*self.notes, *other.notes), excerpt=self.excerpt + other.excerpt)


@reported
@one_blas_thread()
def information(
    robot: RobotModel, logs: Sequence[RawLog], recipe: Recipe | None = None,
    like: RecordedInformation | None = None, progress: Progress | None = None,
) -> RecordedInformation:
    """Reduce recordings of ``robot`` to information about its parameters.

    Cut-off, lag and friction are chosen from the recordings, or those of ``like``. ``logs`` and
    ``progress`` are as of `identify`. Raises UsageError (wrong use, such as a recipe whose method
    needs samples), DataError (the data does not allow it).
    """
    recipe, progress = recipe or Recipe(), progress or (lambda *_: None)
    estimator = recipe.estimator_for(None).for_robot(robot)
    check_method(estimator)
    if recipe.loops == THREE:
        raise UsageError('loops: three identifies friction and links from different recordings, '
                         'which information does not tell apart; identify from the recordings')
    request = Request(estimator, recipe, None if like is None else like.like)
    found = gather(robot, logs, request, progress, Stopwatch(None))
    found.release()
    experiment = found.experiment
    made = RecordedInformation(
        found.robot, found.choice, experiment.information, experiment.reversal_weights,
        found.extent, found.record, (*found.findings, *found.notes), _excerpt(found))
    if like is not None:
        _check_alike(like, made)
    return made


@reported
@one_blas_thread()
def identify_information(
    parts: Sequence[RecordedInformation], method: str | None = None,
    recipe: Recipe | None = None, progress: Progress | None = None,
) -> IdentificationResult:
    """Identify a robot from information that belongs together, see `information`.

    Torque ripple, slow changes, levels of noise and scores are those of the excerpts.
    Raises UsageError where it does not belong together, or ``method`` needs samples.
    """
    recipe, progress = recipe or Recipe(), progress or (lambda *_: None)
    if not parts:
        raise UsageError('no information to identify from')
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.merged(part)
    estimator = recipe.estimator_for(method).for_robot(whole.robot)
    check_method(estimator)
    model = whole.choice.structure.torque_model(whole.robot)
    experiment = Experiment(model, whole.information, (), whole.reversal_weights)
    recordings = Recordings(whole.robot, whole.excerpt, recipe)
    gathered = Gathered(
        whole.robot, whole.choice, experiment, whole.extent, whole.record, whole.notes, (),
        whole.excerpt, recordings[:])
    return fitted(gathered, estimator, recipe, progress, Stopwatch(None))


def check_method(estimator: Estimator) -> None:
    """Raise UsageError for a method that needs samples, not only their information."""
    if not estimator.fits_information:
        able = ', '.join(name for name, one in ESTIMATORS.items() if one.fits_information)
        raise UsageError(f'method {estimator.name} goes through the samples of the recordings, '
                         f'which information does not hold; choose one of {able}, or give the '
                         'recordings')


def _excerpt(gathered: Gathered) -> tuple[RawLog, ...]:
    """Return recordings, or stretches of long ones, of about EXCERPT_ROWS rows together."""
    logs = gathered.logs
    if isinstance(logs, Parts) and logs.cut:
        return tuple(logs.excerpt(EXCERPT_ROWS))
    first = logs[0]
    step = max(1, int(np.ceil(len(logs) * len(first.time) / EXCERPT_ROWS)))
    return (first, *(logs[i] for i in range(step, len(logs), step)))


def _check_alike(a: RecordedInformation, b: RecordedInformation) -> None:
    """Raise UsageError where information cannot be merged, naming what differs."""
    names = ', '.join(b.record.recordings)
    if digest_of(robot_to_plain(a.robot)) != digest_of(robot_to_plain(b.robot)):
        raise UsageError(f'information of {names} is of another robot ({b.robot.name}, not '
                         f'{a.robot.name}, or one with other parameters)')
    ours, theirs = (digest_of((one.choice.structure, one.choice.preprocessing)) for one in (a, b))
    weights = a.reversal_weights, b.reversal_weights
    if ours != theirs or not _same(*weights):
        raise UsageError(
            f'information of {names} was made with another choice of filters or friction laws; '
            'make it anew with --like and the other information')
    known = dict(zip(a.record.recording_digests, a.record.recordings, strict=False))
    for digest, name in zip(b.record.recording_digests, b.record.recordings, strict=False):
        if digest and digest in known:
            raise UsageError(f'{name} counts twice: it is in the information of {known[digest]}, '
                             'too; leave one of them out')


def _same(a: FloatArray | None, b: FloatArray | None) -> bool:
    return (a is None) == (b is None) and (a is None or b is None or np.array_equal(a, b))
