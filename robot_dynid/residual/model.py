"""Residual model: mean and variance of the effort that the physics leaves over."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.types import FloatArray


class Moments(ABC):
    """Mean and variance of a residual model, of which subclasses say both at once."""

    def mean(self, features: FloatArray) -> FloatArray:
        """Return the expected residual (N,) [N m] of features (N, k)."""
        return self.moments(features)[0]

    def variance(self, features: FloatArray) -> FloatArray:
        """Return its variance (N,) [(N m)^2]."""
        return self.moments(features)[1]

    @abstractmethod
    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""


class ResidualModel(Protocol):
    """A regression of one joint, from features (N, k) to residual effort; see `Moments`."""

    def mean(self, features: FloatArray) -> FloatArray:
        """Return the expected residual (N,) [N m]."""

    def variance(self, features: FloatArray) -> FloatArray:
        """Return its variance (N,) [(N m)^2]."""

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return both (N,) at once."""

    @property
    def blank(self) -> float:
        """Variance [(N m)^2] where nothing is known of the features."""

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored, in plain numbers."""


class ResidualFit(Protocol):
    """Settings of a fit."""

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k) and residual (N,) [N m]; raises DataError for too few points."""


def knowledge(beyond: FloatArray) -> FloatArray:
    """Return (N,) how far a model is believed, ``beyond`` (N,) the edge of its training data.

    One inside; a Gaussian of the distance outside, in the model's own unit of length.
    """
    return np.asarray(np.exp(-0.5 * np.maximum(beyond, 0.0) ** 2))


def faded(
    known: FloatArray, mean: FloatArray, variance: FloatArray, blank: float
) -> tuple[FloatArray, FloatArray]:
    """Return mean and variance (N,) of a model that is believed with probability ``known`` (N,).

    Otherwise the residual has zero mean and the variance ``blank`` it has without the model. So
    far outside the training data nothing is added, and the variance says so.
    """
    second = known * (variance + mean**2) + (1.0 - known) * blank
    expected = known * mean
    return expected, second - expected**2


def checked(features: FloatArray, residual: FloatArray, least: int) -> None:
    """Raise DataError unless there are ``least`` finite points whose features vary.

    ``features`` (N, k), ``residual`` (N,).
    """
    if features.ndim != 2 or residual.shape != features.shape[:1]:
        raise DataError(f'features {features.shape} and residual {residual.shape} do not belong '
                        'together')
    if not (np.isfinite(features).all() and np.isfinite(residual).all()):
        raise DataError('features or residual hold numbers that are not finite')
    if len(residual) < least:
        raise DataError(f'{len(residual)} points are too few for a residual model, which needs '
                        f'{least}; record a longer motion')
    flat = np.ptp(features, axis=0) <= 1e-12 * np.abs(features).max(axis=0)
    if flat.any():
        raise DataError('the deflection is constant, so no residual can be fitted; check that '
                        'motor and link states come from encoders of their own')
