"""Derivatives of inverse and forward dynamics by motion, effort and parameters."""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.coordinates import Coordinates
from robot_dynid.dynamics.gears import Springs
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rigid_body import _tree, require_solved
from robot_dynid.kernels import derivatives as kernels
from robot_dynid.types import FloatArray, contiguous

#: derivatives (K, N, N) by position, by velocity, and by acceleration or by effort
Slopes = tuple[FloatArray, FloatArray, FloatArray]


class Derivatives:
    """Derivatives of a mechanism of N coordinates, prepared for many calls.

    The coordinates are its n joints; where it has gears then the motors of its elastic joints, and
    effort is that of every coordinate: drives act on ``motors`` (n,). Friction is that of steady
    sliding. Where it has a corner (dry friction at the ends of its ramp, the load at zero) its
    slope is that of one side. Source: Singh, Russell, Wensing, IEEE RA-L 2022, 7, 1776-1783.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._robot, self._links = mechanism.robot, mechanism.links
        self._own = Coordinates.of(mechanism)
        self.motors, self.count = self._own.motors, len(self._own.names)
        self._constants = (
            _tree(mechanism.robot), (contiguous(mechanism.links), self._own.rotors.tables),
            contiguous(self._own.straight()), self._own.friction.tables)
        self._dynamics = rigid_body.ForwardDynamics(
            mechanism.robot, mechanism.links, self._own.rotors, self._own.friction)

    def effort(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the effort (K, N) [N m, N] of float states (K, N), unchecked."""
        robot, friction, n = self._robot, self._own.friction, self._robot.n
        x, v, a = q[:, :n], qd[:, :n], qdd[:, :n]
        found = rigid_body.rotor_effort(robot, self._own.rotors, q, qd, qdd)
        found[:, :n] += rigid_body.inverse_dynamics(robot, x, v, a, self._links)
        load = None
        if friction.needs_load:
            load = rigid_body.inverse_dynamics(robot, x, v, a, friction.links) \
                @ friction.transmission.T
        return found + friction.torque(qd, load) + _pull(self._own.springs, q, qd)

    def acceleration(self, q: FloatArray, qd: FloatArray, effort: FloatArray) -> FloatArray:
        """Return the acceleration (K, N) of float states (K, N), unchecked.

        Raises ModelError where the mass matrix is not positive definite, or friction under load
        leaves no acceleration.
        """
        found, verdicts = self._dynamics(q, qd, effort - _pull(self._own.springs, q, qd))
        require_solved(verdicts, q)
        return found

    def inverse(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> Slopes:
        """Return the derivatives (K, N, N) of the effort by q, qd and qdd, (K, N) each.

        Entry (k, i, j): effort of i by the motion of j [N m/rad, N m s/rad, kg m^2]. States are
        float, unchecked. That by the acceleration is the mass matrix, and what friction adds to
        it where it grows with the load.
        """
        out = (np.empty((*q.shape, q.shape[1])), np.empty((*q.shape, q.shape[1])),
               np.empty((*q.shape, q.shape[1])))
        inputs = (contiguous(q), contiguous(qd), contiguous(qdd))
        kernels.inverse_derivatives(*self._constants, inputs, out)
        return out

    def forward(
        self, q: FloatArray, qd: FloatArray, effort: FloatArray,
        qdd: FloatArray | None = None,
    ) -> Slopes:
        """Return the derivatives (K, N, N) of the acceleration by q, qd and effort, (K, N) each.

        States are float, unchecked; ``qdd`` (K, N) their acceleration where it is known. By the
        theorem of implicit functions from those of `inverse`. Raises ModelError where the mass
        matrix is not positive definite.
        """
        if qdd is None:
            qdd = self.acceleration(q, qd, effort)
        found, pivots = self.inverse(q, qd, qdd), np.empty(len(q))
        kernels.solved_derivatives(found, pivots)
        require_solved(pivots, q)
        return found


def _pull(springs: Springs, q: FloatArray, qd: FloatArray) -> FloatArray:
    """Return the effort (K, N) of gears."""
    axes = springs.axes
    return np.asarray((springs.stiffness * (q @ axes.T) + springs.damping * (qd @ axes.T)
            + springs.offset) @ axes)
