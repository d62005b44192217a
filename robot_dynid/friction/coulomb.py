"""Viscous friction, Coulomb friction with a linear ramp around zero speed, and an offset."""

from __future__ import annotations

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

    def __post_init__(self) -> None:
        if not self.width > 0.0:
            raise UsageError(f'width of the Coulomb ramp must be positive, is {self.width}')

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (3, N): velocity, ramp, one."""
        ramp = np.clip(motion.velocity / self.width, -1.0, 1.0)
        return np.stack([motion.velocity, ramp, np.ones_like(ramp)])

    def settings(self) -> dict[str, float]:
        """Return the width of the ramp."""
        return {'width': self.width}
