"""Uncertainty of the base parameters of an identified model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: digits of correlations in model files
SHOWN = 7


def half_intervals(model: IdentifiedModel) -> FloatArray:
    """Return half of the 95 % confidence interval (b,) of every base parameter.

    Models of older files do not know their degrees of freedom, which then count as many.
    """
    return interval_factor(model.record.degrees_of_freedom or np.inf) * model.std


def correlation_factor(covariance: FloatArray, std: FloatArray) -> FloatArray:
    """Return an upper triangle U (b, b): correlations are U^T U, to SHOWN digits.

    ``covariance`` (b, b) with deviations ``std`` (b,); parameters whose deviation is not finite,
    or zero, have a column of zeros.
    """
    known = np.isfinite(std) & (std > 0.0) & np.isfinite(covariance).all(axis=1) \
        & (np.diag(covariance) > 0.0)
    scale = np.where(known, std, 1.0)
    correlation = np.where(known[:, None] & known, covariance, 0.0) / np.outer(scale, scale)
    values, vectors = np.linalg.eigh(correlation)
    factor = np.linalg.qr(np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T, mode='r')
    return np.array([[float(f'{x:.{SHOWN}g}') for x in row] for row in np.triu(factor) * known])
