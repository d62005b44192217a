"""Derivatives of inverse and forward dynamics by motion and effort."""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.coordinates import Coordinates
from robot_dynid.dynamics.gears import Springs
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rigid_body import _tree, require_solved
from robot_dynid.kernels import derivatives as kernels
from robot_dynid.types import FloatArray, contiguous

#: derivatives (K, N, N) by position, by velocity, and by acceleration or effort
Slopes = tuple[FloatArray, FloatArray, FloatArray]


class Derivatives:
    """Derivatives of a mechanism of N coordinates, prepared for many calls.

    The coordinates are its n joints, then the motors of elastic joints; effort is that of every
    coordinate: drives act on ``motors`` (n,). Friction is that of steady sliding; at its corners
    (ends of the dry ramp, zero load) the slope of one side is used.

    Source: Singh, Russell, Wensing, IEEE RA-L 2022, 7, 1776-1783.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._robot, self._links = mechanism.robot, mechanism.links
        self._coordinates = Coordinates.of(mechanism)
        self.motors, self.count = self._coordinates.motors, len(self._coordinates.names)
        self._constants = (
            _tree(mechanism.robot), (contiguous(mechanism.links), self._coordinates.rotors.tables),
            contiguous(self._coordinates.straight()), self._coordinates.friction.tables)
        self._dynamics = rigid_body.ForwardDynamics(
            mechanism.robot, mechanism.links, self._coordinates.rotors, self._coordinates.friction)

    def effort(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the effort (K, N) [N m, N] of float states (K, N), unchecked."""
        robot, friction, n = self._robot, self._coordinates.friction, self._robot.n
        x, v, a = q[:, :n], qd[:, :n], qdd[:, :n]
        effort = rigid_body.rotor_effort(robot, self._coordinates.rotors, q, qd, qdd)
        effort[:, :n] += rigid_body.inverse_dynamics(robot, x, v, a, self._links)
        load = None
        if friction.needs_load:
            load = rigid_body.inverse_dynamics(robot, x, v, a, friction.links) \
                @ friction.transmission.T
        return effort + friction.torque(qd, load) + _gear_effort(self._coordinates.springs, q, qd)

    def acceleration(self, q: FloatArray, qd: FloatArray, effort: FloatArray) -> FloatArray:
        """Return the acceleration (K, N) of float states (K, N), unchecked.

        Raises ModelError if the mass matrix is not positive definite, or if friction under load
        allows no acceleration.
        """
        acceleration, verdicts = self._dynamics(
            q, qd, effort - _gear_effort(self._coordinates.springs, q, qd))
        require_solved(verdicts, q)
        return acceleration

    def inverse(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> Slopes:
        """Return the derivatives (K, N, N) of the effort by q, qd and qdd, (K, N) each.

        Entry (k, i, j): effort of i by the motion of j [N m/rad, N m s/rad, kg m^2]. States are
        float, unchecked. The derivative by the acceleration is the mass matrix plus the slope of
        load-dependent friction.
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

        States are float, unchecked; ``qdd`` (K, N) their acceleration, computed if None. Follows
        from `inverse` by the implicit function theorem. Raises ModelError if the mass matrix is
        not positive definite.
        """
        if qdd is None:
            qdd = self.acceleration(q, qd, effort)
        slopes, pivots = self.inverse(q, qd, qdd), np.empty(len(q))
        kernels.solved_derivatives(slopes, pivots)
        require_solved(pivots, q)
        return slopes


def _gear_effort(springs: Springs, q: FloatArray, qd: FloatArray) -> FloatArray:
    """Return the effort (K, N) of gears."""
    axes = springs.axes
    return np.asarray((springs.stiffness * (q @ axes.T) + springs.damping * (qd @ axes.T)
            + springs.offset) @ axes)
