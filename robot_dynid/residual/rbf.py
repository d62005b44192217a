"""The normalised network of radial basis functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.plain import from_plain
from robot_dynid.residual.model import Moments, ResidualModel, checked, faded, knowledge
from robot_dynid.types import FloatArray, frozen

#: weight of the ridge, relative to the mean square of a column: centres without data get nothing
RIDGE = 1e-3


@dataclass(frozen=True, eq=False)
class RadialModel(Moments):
    """Gaussian bumps on a grid over the range of the features, normalised to sum one.

    ``lower``, ``upper`` (k,) the range of the training data, ``count`` centres along each feature,
    ``weights`` (count^k,) [N m]; ``spread`` (count^k,) [(N m)^2] the mean squared error about each
    centre; ``blank`` [(N m)^2] the mean squared residual.
    """

    lower: FloatArray
    upper: FloatArray
    count: int
    weights: FloatArray
    spread: FloatArray
    blank: float

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""
        bumps = normalised(features, self.lower, self.upper, self.count)
        spacing = (self.upper - self.lower) / (self.count - 1)
        outside = np.maximum(np.maximum(self.lower - features, features - self.upper), 0.0)
        known = knowledge(np.linalg.norm(outside / spacing, axis=1))
        return faded(known, bumps @ self.weights, bumps @ self.spread, self.blank)

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {'kind': 'rbf', 'count': self.count, 'blank': float(self.blank),
                **{name: getattr(self, name).tolist()
                   for name in ('lower', 'upper', 'weights', 'spread')}}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any]) -> RadialModel:
        """Return the model of `plain`. Raises ValueError when the shapes do not agree."""
        found = from_plain(cls, content, 'residual')
        size = found.lower.size
        shapes = {'lower': (size,), 'upper': (size,), 'weights': (found.count**size,),
                  'spread': (found.count**size,), 'blank': ()}
        for name, shape in shapes.items():
            array = np.asarray(getattr(found, name))
            if array.shape != shape or not np.isfinite(array).all():
                raise ValueError(f'{name} of radial basis functions')
        if found.count < 2 or not np.all(found.lower < found.upper):
            raise ValueError('grid of radial basis functions')
        return found


def normalised(
    features: FloatArray, lower: FloatArray, upper: FloatArray, count: int
) -> FloatArray:
    """Return the bumps (N, count^k) of features (N, k), each row with the sum one.

    Centres are spaced evenly from ``lower`` to ``upper``, widths are half their spacing.
    """
    spacing = (upper - lower) / (count - 1)
    exponent = np.zeros((len(features), 1))
    for j, low in enumerate(lower):
        steps = (features[:, j, None] - low) / spacing[j] - np.arange(count)
        own = -0.5 * (2.0 * steps) ** 2
        exponent = (exponent[:, :, None] + own[:, None, :]).reshape(len(features), -1)
    bumps = np.exp(exponent - exponent.max(axis=1, keepdims=True))
    return np.asarray(bumps / bumps.sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class RadialBasis:
    """Fit the weights of ``count`` centres along each feature by least squares with a small ridge.

    Centres and widths are those of the paper; the text gives the widths as one over the square of
    half a spacing, which is the factor of the exponent, and its matrix of weights as a projection,
    which is not the least-squares solution. Over two features the centres form a grid.
    Source: Actuators 2023, 12, 454, section 5, the equations of the network.
    """

    count: int = 9

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k) and residual (N,) [N m].

        Raises DataError for fewer points than centres or a feature that does not vary.
        """
        checked(features, residual, self.count ** features.shape[1])
        lower, upper = features.min(axis=0), features.max(axis=0)
        bumps = normalised(features, lower, upper, self.count)
        square = bumps.T @ bumps
        ridge = RIDGE * float(np.trace(square)) / len(square)
        weights = np.linalg.solve(square + ridge * np.eye(len(square)), bumps.T @ residual)
        blank = float(np.mean(residual**2))
        error = (residual - bumps @ weights) ** 2
        density = bumps.sum(axis=0)
        spread = (bumps.T @ error + ridge * blank) / (density + ridge)  # no data: all is open
        return RadialModel(frozen(lower), frozen(upper), self.count, frozen(weights),
                           frozen(spread), blank)
