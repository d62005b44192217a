"""Friction of states by themselves, and the motion under torque from outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.errors import ModelError
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


#: passes at most, and the part of the acceleration that the last one may change
PASSES, SETTLED = 100, 1e-12

#: gives accelerations (K, n) of position, velocity, effort, (K, n) each
Accelerations = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


def pushed(
    accelerations: Accelerations, friction: FrictionTorque, states: tuple[FloatArray, ...],
    external: FloatArray,
) -> FloatArray:
    """Return the acceleration (K, n) of ``states`` (q, qd, effort; (K, n) each) under torque.

    ``external`` (K, n) [N m, N] acts on the links: the gears do not carry it, so friction that
    grows with their load is another, which depends on the acceleration that is looked for.
    Raises ModelError where no acceleration fits, or as ``accelerations``.
    """
    q, qd, effort = states
    found = accelerations(q, qd, effort + external)
    if not friction.loaded:
        return found
    for _ in range(PASSES):
        before = found
        found = accelerations(
            q, qd, effort + external + friction.relief(q, qd, before, external))
        if np.abs(found - before).max(initial=0.0) <= SETTLED * np.abs(found).max(initial=1.0):
            return found
    raise ModelError('friction of this model grows so much with the load that no acceleration '
                     'fits the effort and the external torque')
