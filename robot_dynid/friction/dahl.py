"""Presliding by one state: friction builds up over a length of travel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from robot_dynid.friction.hysteresis import dahl_state
from robot_dynid.friction.law import SLIDING_WIDTH, AxisMotion, Shape, ramp, require_positive
from robot_dynid.types import FloatArray


@dataclass(frozen=True)
class Dahl:
    """``fv v + fc z + f0`` with ``dz = (dq - |dq| z) / length``; ``length`` [rad or m].

    A recording begins relaxed, z = 0, or as it slides where it begins in motion; the state forgets
    its beginning over a few lengths of travel. A state without a past slides steadily: ``z =
    clip(v / width, -1, 1)``.
    Source: Dahl 1968, with exponent one.
    """

    length: float = 3e-4
    width: float = SLIDING_WIDTH
    parameters: ClassVar[tuple[str, ...]] = ('fv', 'fc', 'f0')
    holding: ClassVar[tuple[str, ...]] = ('fc',)
    nonnegative: ClassVar[tuple[str, ...]] = ('fv', 'fc')
    odd: ClassVar[tuple[str, ...]] = ('fv', 'fc')
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('length', 2e-5, 2e-2, 10),)

    def __post_init__(self) -> None:
        require_positive('dahl', 'length', self.length)
        require_positive('dahl', 'width', self.width)

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (3, N): velocity, state, one."""
        return np.stack([motion.velocity, self.dry(motion), np.ones_like(motion.velocity)])

    def dry(self, motion: AxisMotion) -> FloatArray:
        """Return the state (N,)."""
        state = dahl_state(motion.position, motion.first, self.length, motion.begin)
        return np.where(motion.single, ramp(motion.velocity, self.width), state)

    def sliding(self, values: FloatArray) -> FloatArray:
        """Return Coulomb's law (1, 4)."""
        return np.array([[*values, self.width]])

    def settings(self) -> dict[str, float]:
        """Return length and width."""
        return {'length': self.length, 'width': self.width}
