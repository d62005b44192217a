"""Precision of base parameters: before the first swing, and by recordings of single joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DynIdError, reported
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.staged.measured_information import measured_information
from robot_dynid.excitation.design import DesignCriteria
from robot_dynid.excitation.score import RATE
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Recordings
from robot_dynid.identification.selection import SingleJointExcerpt, choose
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import prepare
from robot_dynid.types import FloatArray, Progress, RawLog

#: relative standard deviation of what nothing is known of: far above any accuracy asked for
UNKNOWN = 1e3


@dataclass(frozen=True, eq=False)
class Precision:
    """Information about base parameters.

    ``names`` (b,) of them, ``sizes`` (b,) to which their deviations are relative; ``density`` (n,)
    N m s^0.5 (N s^0.5) of the noise of efforts, so that T seconds of one value have the deviation
    density / T^0.5; ``held`` (n,) N m (N) is the deviation of what friction takes of the effort of
    a joint at rest while another one moves, which does not average out.

    What was measured: ``information`` (b, b) of efforts that average out, the inverse of a
    covariance; ``resting`` that of joints at rest while each joint swings alone.
    """

    names: tuple[str, ...]
    sizes: FloatArray
    density: FloatArray
    held: FloatArray
    information: FloatArray
    resting: Resting

    @property
    def relative(self) -> FloatArray:
        """Information (b, b) about the parameters in terms of their sizes, UNKNOWN at first."""
        total = self.information + self.resting.information(self.density, self.held)
        scaled = self.sizes[:, None] * total * self.sizes
        return np.asarray(scaled + np.eye(len(scaled)) / UNKNOWN**2)

    @property
    def deviations(self) -> FloatArray:
        """Standard deviations (b,) relative to the sizes."""
        return np.asarray(np.sqrt(np.diag(covariance_of(self.relative))))

    @property
    def worst(self) -> tuple[str, float]:
        """The parameter that is known worst, and its relative deviation."""
        deviations = self.deviations
        i = int(np.argmax(deviations))
        return self.names[i], float(deviations[i])


@dataclass(frozen=True, eq=False)
class Resting:
    """Variations of the efforts of joints at rest while one joint swings.

    ``grams`` (n, n, b, b): their regressor's, integrated over time, by the joint that swings and
    the one at rest; ``seconds`` (n,) that each joint swung. What friction takes of an effort at
    rest does not average out over configurations either: it is always against the load.
    """

    grams: FloatArray
    seconds: FloatArray

    @classmethod
    def none(cls, joints: int, count: int) -> Resting:
        """Return that of ``joints`` that never swung, about ``count`` parameters."""
        return cls(np.zeros((joints, joints, count, count)), np.zeros(joints))

    def information(self, density: FloatArray, held: FloatArray) -> FloatArray:
        """Return the information (b, b) with noise ``density`` (n,) and ``held`` (n,)."""
        variance = density**2 + self.seconds[:, None] * held**2
        return np.asarray(np.einsum('ji,jibc->bc', 1.0 / variance, self.grams))


def covariance_of(information: FloatArray) -> FloatArray:
    """Return the inverse (..., b, b) of positive definite matrices of very different sizes."""
    diagonal = np.diagonal(information, axis1=-2, axis2=-1)
    scale = 1.0 / np.sqrt(diagonal)
    both = scale[..., :, None] * scale[..., None, :]
    inverse = np.linalg.inv(both * information)
    found = both * 0.5 * (inverse + np.swapaxes(inverse, -2, -1))
    rows = np.arange(information.shape[-1])
    found[..., rows, rows] = np.maximum(found[..., rows, rows], scale**2)  # rounding: no less
    return np.asarray(found)


def precision_of(criteria: DesignCriteria) -> Precision:
    """Return how well the parameters of a design are known: by its recordings, where it has any.

    Raises DynIdError where there are no nominal parameters to compare with, and what
    `measured_precision` raises.
    """
    model, sizes, noise = criteria.model, criteria.sizes, criteria.noise
    if model is None or sizes is None or noise is None:
        raise DynIdError("procedure 'adaptive' compares with nominal parameters: the robot has "
                         'none; give the links inertials')
    before = Precision(model.reduction.names, sizes, noise / np.sqrt(RATE), noise,
                       np.zeros((len(sizes), len(sizes))), Resting.none(model.robot.n, len(sizes)))
    return before if not criteria.recordings else measured_precision(
        model.robot, criteria.recordings, model, before, criteria.progress)


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
