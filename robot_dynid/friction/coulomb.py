"""Viscous friction, Coulomb friction with a linear ramp around zero speed, and an offset."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dynid.friction.law import AxisMotion, Shape, ramp, require_positive
from robot_dynid.types import FloatArray


@dataclass(frozen=True)
class Coulomb:
    """``fv v + fc clip(v / width, -1, 1) + f0``; ``width`` [rad/s or m/s] must be positive.

    Within the ramp the law stands for the average of sticking and creeping; a plain sign would
    flip with the noise of the velocity.
    """

    width: float = 0.01
    parameters: ClassVar[tuple[str, ...]] = ('fv', 'fc', 'f0')
    holding: ClassVar[tuple[str, ...]] = ('fc',)
    nonnegative: ClassVar[tuple[str, ...]] = ('fv', 'fc')
    odd: ClassVar[tuple[str, ...]] = ('fv', 'fc')
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.1, 7),)

    def __post_init__(self) -> None:
        require_positive('coulomb', 'width', self.width)

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (3, N): velocity, ramp, one."""
        return np.stack([motion.velocity, self.dry(motion), np.ones_like(motion.velocity)])

    def dry(self, motion: AxisMotion) -> FloatArray:
        """Return the ramp (N,)."""
        return ramp(motion.velocity, self.width)

    def sliding(self, values: FloatArray) -> FloatArray:
        """Return the law itself (1, 4)."""
        return np.array([[*values, self.width]])

    def settings(self) -> dict[str, float]:
        """Return the width of the ramp."""
        return {'width': self.width}


class CoulombAxes:
    """Coulomb's law on several axes with given parameters, for many short calls.

    ``table`` (a, 4) of fv, fc, f0, width belongs to the axes.
    """

    def __init__(self, table: FloatArray) -> None:
        self._viscous, self._coulomb, self._offset, width = np.ascontiguousarray(table.T)
        self._slopes = 1.0 / width

    def __call__(self, velocity: FloatArray) -> FloatArray:
        """Return the torque (K, a) at ``velocity`` (K, a)."""
        torque: FloatArray = velocity * self._slopes
        np.minimum(torque, 1.0, out=torque)
        np.maximum(torque, -1.0, out=torque)
        torque *= self._coulomb
        torque += self._offset
        torque += velocity * self._viscous
        return torque
