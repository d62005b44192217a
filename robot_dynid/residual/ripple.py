"""The ripple of harmonic drives, before anything else is learned from the deflection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.numbers import number_array
from robot_dynid.residual.model import Moments, ResidualFit, ResidualModel
from robot_dynid.types import FloatArray, frozen

#: features a residual is learned from, deflection and rate; the others are those of the ripple
LEARNED = 2


@dataclass(frozen=True, eq=False)
class RippleModel(Moments):
    """A residual linear in the features after deflection and rate, and an ``inner`` one of these.

    The features of the ripple are the deflection times sine and cosine of the phase of the wave
    generator: with a kinematic error e the power balance of a gear makes its torque T act on the
    motor as (1 + de/dtheta) T. ``size`` (k - 2,) [N m/rad].
    """

    size: FloatArray
    inner: ResidualModel

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return expected residual [N m] and variance [(N m)^2], (N,) each."""
        mean, variance = self.inner.moments(features[:, :LEARNED])
        return mean + features[:, LEARNED:] @ self.size, variance

    @property
    def blank(self) -> float:
        """Variance [(N m)^2] where nothing is known of the features, the ripple left out."""
        return self.inner.blank

    def plain(self) -> dict[str, Any]:
        """Return everything that has to be stored."""
        return {**self.inner.plain(), 'ripple': self.size.tolist()}

    @classmethod
    def of(cls, content: Mapping[str, Any], inner: ResidualModel) -> RippleModel:
        """Return the model of `plain`. Raises ValueError when there is no ripple."""
        size = number_array(content['ripple'])
        if size is None or size.ndim != 1 or not len(size) or not np.isfinite(size).all():
            raise ValueError('ripple of a gear')
        return cls(frozen(size), inner)


@dataclass(frozen=True)
class Rippling:
    """Fit the ripple by least squares, then ``inner`` to what is left; alone without features."""

    inner: ResidualFit

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        """Fit features (N, k): deflection, rate, those of the ripple; and residual (N,) [N m].

        Raises DataError as ``inner`` does.
        """
        if features.ndim != 2 or features.shape[1] <= LEARNED:
            return self.inner.fit(features, residual)
        waves = features[:, LEARNED:]
        scale = np.linalg.norm(waves, axis=0)
        scale[scale == 0.0] = 1.0
        size = np.linalg.lstsq(waves / scale, residual)[0] / scale
        left = self.inner.fit(features[:, :LEARNED], residual - waves @ size)
        return RippleModel(frozen(size), left)
