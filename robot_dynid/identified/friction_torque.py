"""Friction torque of states taken each by itself, prepared once for many short calls."""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.friction import AxisFriction
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray


class FrictionTorque:
    """Friction of all ``axes`` of a robot, in steady sliding."""

    def __init__(self, robot: RobotModel, axes: AxisFriction) -> None:
        self._robot, self._axes = robot, axes

    def __call__(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray | None = None,
        external: FloatArray | None = None,
    ) -> FloatArray:
        """Return the torque (K, n) [N m, N] on the joints of states (K, n) [rad, m and per s].

        The acceleration (none: zero) and the ``external`` torque (K, n) [N m, N] on the joints,
        which the gears do not carry, matter only where friction depends on the load.
        """
        load = None
        if self.loaded:
            borne = rigid_body.inverse_dynamics(
                self._robot, q, qd, np.zeros_like(q) if qdd is None else qdd, self._axes.links)
            load = (borne if external is None else borne - external) @ self._axes.transmission.T
        return self._axes.torque(qd, load)

    @property
    def loaded(self) -> bool:
        """Whether friction depends on the load."""
        return self._axes.needs_load

    def relief(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray, external: FloatArray
    ) -> FloatArray:
        """Return the friction (K, n) [N m, N] less that there is with ``external`` torque (K, n).

        States as above; zero where friction does not depend on the load.
        """
        if not self.loaded:
            return np.zeros_like(q)
        return np.asarray(self(q, qd, qdd) - self(q, qd, qdd, external))
