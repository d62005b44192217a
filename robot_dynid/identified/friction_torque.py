"""Friction torque of states taken each by itself, prepared once for many short calls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robot_dynid.regressor import JointFriction
from robot_dynid.types import FloatArray


class FrictionTorque:
    """The laws of all axes with their parameters, in steady sliding.

    ``values`` holds the standard parameters by name, such as ``fv1``; ``axes`` is the friction
    with them.
    """

    def __init__(self, friction: JointFriction, values: Mapping[str, float]) -> None:
        self.axes, self._load = friction.with_values(values), friction.load

    @property
    def needs_acceleration(self) -> bool:
        """Whether friction depends on the load."""
        return self.axes.needs_load

    def __call__(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray | None = None,
        links: tuple[FloatArray, FloatArray] | None = None,
    ) -> FloatArray:
        """Return the torque (K, n) [N m, N] on the joints of states (K, n) [rad, m and per s].

        The acceleration (none: zero) matters only where friction depends on the load, which is
        that of ``links``, their position and velocity (K, n), where these move apart from the
        motors.
        """
        load = None
        if self._load is not None and self.axes.needs_load:
            load = self._load(*(links or (q, qd)), np.zeros_like(q) if qdd is None else qdd)
        return self.axes.torque(qd, load)
