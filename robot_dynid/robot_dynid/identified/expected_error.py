"""The error of the predicted effort to expect on a planned motion.

To the error by its law (`error_law`), the uncertainty of the parameters and the change of friction
from day to day are added. The RMSE of one motion scatters log-normally: as the stretches of the
recordings do about their law and, because a new motion is further away, by as much again. What
was added may also be small, so the lower end of an interval does without it; the upper end allows
for dry friction at rest, which may have any value up to its largest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import ModelError
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.experiment import swift
from robot_dynid.estimation.uncertainty.between_recordings import friction_scales
from robot_dynid.identified.comparison import USUAL_SPREAD
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.states import effort_by_parameters, holding_torque
from robot_dynid.types import FloatArray, Samples

#: a motion scatters by that of stretches and as much again
DISTANCE = np.sqrt(2.0)
#: share of its largest speed below which a joint is held
HELD_SPEED = 1e-3


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


@one_blas_thread()
def expected_errors(
    model: IdentifiedModel, time: FloatArray, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> tuple[ExpectedError, ...]:
    """Return the errors to expect of the effort in states (K, n) at even ``time`` (K,) [s].

    Refused joints are left out. Raises ModelError for a model without the law of its errors, or
    without covariance.
    """
    law = model.record.error_law
    if law is None:
        raise ModelError(f'the model of {model.robot.name} does not tell how its error depends on '
                         'the motion: identify it again, from at least 2 s of motion')
    still = np.zeros_like(q)
    smooth = model.frictionless_effort(q, qd, qdd)
    inertia = smooth - model.frictionless_effort(q, still, still)
    near = swift(model.robot.rigid, Samples(
        model.joints, time, q, qd, qdd, cutoff=model.preprocessing.cutoff)) < 0.5
    held = near & (np.abs(qd) <= HELD_SPEED * np.abs(qd).max(axis=0))
    changes = [model.covariance_factor]
    scales = friction_scales(model.torque_model, model.values)
    if scales is not None:
        daily = [model.record.daily_spread(kind, scales.kinds.count(kind), USUAL_SPREAD.get(
            kind, 0.0))[0] for kind in scales.kinds]
        changes.append((scales.directions * daily).T)
    by_values = effort_by_parameters(model, q, qd, qdd) @ np.vstack(changes).T
    variance = np.mean(np.sum(by_values ** 2, axis=2), axis=0)
    least = law.rest + law.share * np.mean(inertia**2, axis=0) + law.slow * near.mean(axis=0)
    # any value up to the largest is as probable
    unknown = np.maximum(holding_torque(model)**2 / 3.0 - law.slow, 0.0) * held.mean(axis=0)
    factor = float(np.exp(interval_factor(law.freedom) * DISTANCE * law.scatter))
    effort = np.sqrt(np.mean((smooth + model.friction(q, qd, qdd)) ** 2, axis=0))
    return tuple(ExpectedError(joint, *values) for joint, *values in zip(
        model.joints, np.sqrt(least + variance).tolist(), (np.sqrt(least) / factor).tolist(),
        (factor * np.sqrt(least + variance + unknown)).tolist(), effort.tolist(), strict=True)
        if joint not in model.not_identified)
