"""Viscous friction, Coulomb friction with a linear ramp around zero speed, and an offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.friction.law import AxisMotion
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

    def __post_init__(self) -> None:
        if not self.width > 0.0:
            raise UsageError(f'width of the Coulomb ramp must be positive, is {self.width}')

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (3, N): velocity, ramp, one."""
        ramp = np.clip(motion.velocity / self.width, -1.0, 1.0)
        return np.stack([motion.velocity, ramp, np.ones_like(ramp)])

    def slopes(self, velocity: FloatArray) -> FloatArray:
        """Return (3, N): one, the slope of the ramp inside it, zero."""
        steep = (np.abs(velocity) < self.width) / self.width
        return np.stack([np.ones_like(velocity), steep, np.zeros_like(velocity)])

    def settings(self) -> dict[str, float]:
        """Return the width of the ramp."""
        return {'width': self.width}


class CoulombAxes:
    """The Coulomb law of several axes with given parameters, for many short calls.

    ``laws`` and the rows of ``values`` (a, 3) belong to the axes.
    """

    def __init__(self, laws: Sequence[Coulomb], values: FloatArray) -> None:
        self._slopes = 1.0 / np.array([law.width for law in laws])
        self._viscous, self._coulomb, self._offset = np.ascontiguousarray(values.T)

    def __call__(self, velocity: FloatArray) -> FloatArray:
        """Return the torque (K, a) at ``velocity`` (K, a)."""
        torque = velocity * self._slopes
        np.minimum(torque, 1.0, out=torque)
        np.maximum(torque, -1.0, out=torque)
        torque *= self._coulomb
        torque += self._offset
        torque += velocity * self._viscous
        return torque
