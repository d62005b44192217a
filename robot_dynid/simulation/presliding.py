"""Dry friction of the simulated motors that builds up with travel.

Bristles bend before they slip: friction at rest is then a function of where the motor came from,
and its encoder shows it. Source: Dahl 1968, with exponent one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.types import FloatArray


class Bristles:
    """States of the dry friction of n motors, between -1 and 1.

    ``own`` (n,) says which motors have bristles, which bend over ``length`` (n,) [rad or m]; the
    states of the others are zero.
    """

    def __init__(self, length: FloatArray) -> None:
        self.own: NDArray[np.bool_] = length > 0.0
        self.length = np.where(self.own, length, 1.0)
        self._position = np.zeros(len(length))
        self._state = np.zeros(len(length))

    @classmethod
    def of(cls, length: FloatArray | None) -> Bristles | None:
        """Return the bristles that bend over ``length`` (n,) [rad or m]; None where none does."""
        return None if length is None or not np.any(length > 0.0) else cls(length)

    def relax(self, position: FloatArray) -> None:
        """Forget the past: no bristle is bent with the motors at ``position`` (n,)."""
        self._position, self._state = position.copy(), np.zeros_like(position)

    def states(self, position: FloatArray) -> FloatArray:
        """Return the states (n,) at ``position`` (n,); exact while the direction holds."""
        step = position - self._position
        left = np.exp(-np.abs(step) / self.length)
        self._state = np.where(self.own, self._state * left + np.sign(step) * (1.0 - left), 0.0)
        self._position = position
        return self._state
