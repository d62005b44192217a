"""Viscous and Coulomb friction of their own in each direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dynid.friction.law import AxisMotion, Shape, ramp, require_positive
from robot_dynid.types import FloatArray


@dataclass(frozen=True)
class Asymmetric:
    """``fvp v + fcp r`` forward, ``fvn v + fcn r`` backward, ``r = clip(v / width, -1, 1)``.

    ``width`` [rad/s or m/s]. An offset would only repeat half the difference of the Coulomb terms.
    """

    width: float = 0.01
    parameters: ClassVar[tuple[str, ...]] = ('fvp', 'fvn', 'fcp', 'fcn')
    holding: ClassVar[tuple[str, ...]] = ('fcp', 'fcn')
    nonnegative: ClassVar[tuple[str, ...]] = ('fvp', 'fvn', 'fcp', 'fcn')
    odd: ClassVar[tuple[str, ...]] = ()
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.1, 7),)

    def __post_init__(self) -> None:
        require_positive('asymmetric', 'width', self.width)

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (4, N): velocity forward and backward, ramp forward and backward."""
        v, r = motion.velocity, self.dry(motion)
        return np.stack([np.maximum(v, 0.0), np.minimum(v, 0.0),
                         np.maximum(r, 0.0), np.minimum(r, 0.0)])

    def dry(self, motion: AxisMotion) -> FloatArray:
        """Return the ramp (N,)."""
        return ramp(motion.velocity, self.width)

    def sliding(self, values: FloatArray) -> FloatArray | None:
        """Return None: the directions differ."""
        return None

    def settings(self) -> dict[str, float]:
        """Return the width of the ramp."""
        return {'width': self.width}
