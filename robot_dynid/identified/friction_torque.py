"""Friction torque of states taken each by itself, prepared once for many short calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from robot_dynid.friction import AxisMotion, Coulomb, CoulombAxes, FrictionLaw
from robot_dynid.regressor.block import Axes
from robot_dynid.types import FloatArray


class FrictionTorque:
    """The laws of all axes with their parameters.

    ``values`` holds the standard parameters by name, such as ``fv1``.
    """

    def __init__(self, axes: Axes, laws: Sequence[FrictionLaw], values: Mapping[str, float]
                 ) -> None:
        self._laws = tuple(laws)
        self._matrix = axes.matrix
        self._direct = np.array_equal(axes.matrix, np.eye(len(axes.matrix)))
        self._values = [np.array([values[f'{p}{label}'] for p in law.parameters])
                        for label, law in zip(axes.labels, laws, strict=True)]
        coulomb = [law for law in laws if isinstance(law, Coulomb)]
        self._together = CoulombAxes(coulomb, np.array(self._values)) \
            if len(coulomb) == len(self._laws) else None

    def __call__(self, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return the torque (K, n) on the joints of states (K, n)."""
        if self._together is None:
            return self._one_by_one(q @ self._matrix.T, qd @ self._matrix.T) @ self._matrix
        if self._direct:
            return self._together(qd)
        return self._together(qd @ self._matrix.T) @ self._matrix

    def _one_by_one(self, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return the torque (K, a) of axes whose laws differ, or carry a state."""
        time: FloatArray = np.arange(len(velocity), dtype=np.float64)
        starts = tuple(range(len(velocity)))
        torque = np.empty_like(velocity)
        for i, (law, values) in enumerate(zip(self._laws, self._values, strict=True)):
            motion = AxisMotion(time, position[:, i], velocity[:, i], starts)
            torque[:, i] = values @ law.columns(motion)
        return torque
