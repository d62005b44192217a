"""Friction torque of states taken each by itself, prepared once for many short calls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from robot_dynid.effects import JointFriction
from robot_dynid.types import FloatArray


class FrictionTorque:
    """The laws of all axes with their parameters, in steady sliding.

    ``values`` holds the standard parameters by name, such as ``fv1``; ``axes`` is the friction
    with them.
    """

    def __init__(self, friction: JointFriction, values: Mapping[str, float]) -> None:
        self.axes, self._load = friction.with_values(values), friction.load

    def __call__(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray | None = None,
        external: FloatArray | None = None,
    ) -> FloatArray:
        """Return the torque (K, n) [N m, N] on the joints of states (K, n) [rad, m and per s].

        The acceleration (none: zero) and the ``external`` torque (K, n) [N m, N] on the joints,
        which the gears do not carry, matter only where friction depends on the load.
        """
        load = None
        if self._load is not None and self.loaded:
            load = self._load(q, qd, np.zeros_like(q) if qdd is None else qdd)
            if external is not None:
                load = load - self._load.transmitted(external)
        return self.axes.torque(qd, load)

    @property
    def loaded(self) -> bool:
        """Whether friction depends on the load."""
        return self._load is not None and self.axes.needs_load

    def relief(
        self, q: FloatArray, qd: FloatArray, qdd: FloatArray, external: FloatArray
    ) -> FloatArray:
        """Return the friction (K, n) [N m, N] less that there is with ``external`` torque (K, n).

        States as above; zero where friction does not depend on the load.
        """
        if not self.loaded:
            return np.zeros_like(q)
        return np.asarray(self(q, qd, qdd) - self(q, qd, qdd, external))
