"""The error of the predicted effort to expect on a planned motion.

The mean squared error of a joint grows with its acceleration. On motion of the recordings it is

    rest + share mean(inertial effort^2).

On a plan, the uncertainty of the parameters and the spread of friction between recordings are
added. The RMSE of one motion scatters log-normally: as the stretches of the recordings do about
their law and, because a new motion is further away, by as much again. Errors of the parameters may
also be small, so the lower end of an interval does without them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import ModelError
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.uncertainty.between_recordings import friction_scales, stretches
from robot_dynid.identified.states import effort_by_parameters
from robot_dynid.numbers import BOUNDS, NumberRange
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: length [s] and least samples of the blocks whose squared errors are averaged
BLOCK_SECONDS, LEAST_SAMPLES = 1.0, 10
#: rounds of weights; a squared error below this share of the median counts as that
ROUNDS, LEAST_ERROR = 8, 0.1
#: a motion scatters by that of stretches and as much again
DISTANCE = np.sqrt(2.0)


@dataclass(frozen=True)
class ErrorLaw:
    """Mean squared error by motion: ``rest`` (n,) [(N m)^2] and ``share`` (n,), see the module.

    ``scatter`` is the deviation of the logarithm of the RMSE between stretches of the recordings,
    ``freedom`` its degrees of freedom.
    """

    rest: tuple[float, ...]
    share: tuple[float, ...]
    scatter: float = field(metadata={BOUNDS: NumberRange(0.0, 100.0)})
    freedom: float = field(metadata={BOUNDS: NumberRange(1.0, 1e6)})


@dataclass(frozen=True)
class ExpectedError:
    """Expected ``rmse`` of the effort of a joint with its 95 % interval, each in its effort unit.

    ``effort`` is the root mean square of the predicted effort.
    """

    joint: str
    rmse: float
    low: float
    high: float
    effort: float


def learn_error_law(
    recordings: Iterable[tuple[FloatArray, FloatArray, FloatArray]]
) -> ErrorLaw | None:
    """Return the law of recordings: time (N,), errors and inertial efforts (N, n).

    None for recordings of less than two blocks.
    """
    blocks = [np.array([np.mean(one[rows] ** 2, axis=0) for one in (error, inertia)])
              for time, error, inertia in recordings for rows in _blocks(time)]
    if len(blocks) < 2:
        return None
    groups = stretches(len(blocks))
    squares, causes = np.stack(blocks, axis=1)
    laws = np.array([_law(causes[:, j], squares[:, j]) for j in range(squares.shape[1])])
    expected = laws[:, 0] + laws[:, 1] * causes
    scatter = np.array([0.5 * np.log(squares[group].mean(axis=0) / expected[group].mean(axis=0))
                        for group in groups])
    rest, share = laws.T.tolist()
    return ErrorLaw(tuple(rest), tuple(share),
                    float(np.sqrt(scatter.var(axis=0, ddof=1).mean())), len(groups) - 1.0)


def _blocks(time: FloatArray) -> list[NDArray[np.int64]]:
    """Return the rows of every block of a recording."""
    number = np.floor((time - time[:1]) / BLOCK_SECONDS)
    rows = np.split(np.arange(len(time), dtype=np.int64), np.flatnonzero(np.diff(number)) + 1)
    return [block for block in rows if len(block) >= LEAST_SAMPLES]


def _law(causes: FloatArray, squares: FloatArray) -> FloatArray:
    """Return rest and share of squared errors (B,), whose deviation is in proportion to them."""
    from scipy.optimize import nnls

    columns = np.stack([np.ones_like(causes), causes], axis=1)
    tiny = np.finfo(float).tiny ** 0.25
    expected = np.maximum(squares, LEAST_ERROR * np.median(squares)) + tiny
    for _ in range(ROUNDS):
        law, _ = nnls(columns / expected[:, None], squares / expected)
        expected = columns @ law + tiny
    return np.asarray(law)


@one_blas_thread()
def expected_errors(
    model: IdentifiedModel, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> tuple[ExpectedError, ...]:
    """Return the errors to expect of the effort in states (K, n) evenly spaced along a motion.

    Refused joints are left out. Raises ModelError for a model without the law of its errors, or
    without covariance.
    """
    law = model.record.error_law
    if law is None:
        raise ModelError(f'the model of {model.robot.name} does not tell how its error depends on '
                         'the motion: identify it again, from at least 2 s of motion')
    still = np.zeros_like(q)
    inertia = model.frictionless_effort(q, qd, qdd) - model.frictionless_effort(q, still, still)
    by_values = effort_by_parameters(model, q, qd, qdd)
    changes = [model.covariance_factor]
    spread = model.record.friction_spread
    scales = friction_scales(model.torque_model, model.values)
    if scales is not None and spread:
        changes.append(scales.directions.T * np.array(
            [[spread.get(kind, 0.0)] for kind in scales.kinds]))
    variance = np.mean(np.sum((by_values @ np.vstack(changes).T) ** 2, axis=2), axis=0)
    least = law.rest + law.share * np.mean(inertia ** 2, axis=0)
    rmse, factor = np.sqrt(least + variance), float(
        np.exp(interval_factor(law.freedom) * DISTANCE * law.scatter))
    effort = np.sqrt(np.mean((model.frictionless_effort(q, qd, qdd)
                              + model.friction(q, qd, qdd)) ** 2, axis=0))
    return tuple(ExpectedError(joint, *values) for joint, *values in zip(
        model.joints, rmse.tolist(), (np.sqrt(least) / factor).tolist(), (rmse * factor).tolist(),
        effort.tolist(), strict=True) if joint not in model.not_identified)
