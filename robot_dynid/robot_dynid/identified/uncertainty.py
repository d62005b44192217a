"""Uncertainty of an identified model: of its parameters, and of the predicted effort."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.identified.states import effort_by_parameters
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: digits of correlations in model files
CORRELATION_FIGURES = 7
#: random states within the training ranges that represent unknown motion
INTERVAL_STATES = 200


def half_intervals(model: IdentifiedModel) -> FloatArray:
    """Return half of the 95 % confidence interval (b,) of every base parameter.

    Without degrees of freedom, as in older files, the normal quantile is used.
    """
    return interval_factor(model.record.degrees_of_freedom or np.inf) * model.std


def effort_intervals(
    model: IdentifiedModel, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> FloatArray:
    """Return half of the 95 % interval (K, n) [N m] of the effort in states (K, n).

    It combines the parameter uncertainty, by Student's quantile, and the model error on motion
    that was not fitted, a random effect per joint and motion.
    """
    left = np.zeros(model.robot.n)
    left[:len(model.record.left_over)] = model.record.left_over
    of_parameters = interval_factor(model.record.degrees_of_freedom or np.inf) * np.sqrt(
        _variance(model, q, qd, qdd))
    return np.asarray(np.hypot(of_parameters, interval_factor(np.inf) * left))


def parameter_variance(model: IdentifiedModel) -> FloatArray:
    """Return the mean variance (n,) [(N m)^2] of the effort by parameter uncertainty.

    Over random states within the training ranges.
    """
    draw = np.random.default_rng(0)
    ranges = [model.trained.quantities[name].T for name in ('position', 'velocity',
                                                            'acceleration')]
    q, qd, qdd = (draw.uniform(low, high, (INTERVAL_STATES, model.robot.n))
                  for low, high in ranges)
    return np.asarray(_variance(model, q, qd, qdd).mean(axis=0))


def _variance(
    model: IdentifiedModel, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> FloatArray:
    return np.asarray(np.sum(
        (effort_by_parameters(model, q, qd, qdd) @ model.covariance_factor.T)**2, axis=2))


def correlation_factor(covariance: FloatArray, std: FloatArray) -> FloatArray:
    """Return an upper triangle U (b, b) with correlations U^T U, to CORRELATION_FIGURES digits.

    ``covariance`` (b, b) with standard deviations ``std`` (b,); parameters whose deviation is zero
    or not finite have a column of zeros.
    """
    determined = np.isfinite(std) & (std > 0.0) & np.isfinite(covariance).all(axis=1) \
        & (np.diag(covariance) > 0.0)
    scale = np.where(determined, std, 1.0)
    correlation = np.where(determined[:, None] & determined, covariance, 0.0)
    correlation /= np.outer(scale, scale)
    values, vectors = np.linalg.eigh(correlation)
    factor = np.linalg.qr(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T, mode='r')
    return np.array([[float(f'{x:.{CORRELATION_FIGURES}g}') for x in row]
                     for row in np.triu(factor) * determined])
