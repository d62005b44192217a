"""Accelerations of robots with elastic joints, whose motors move apart from their links.

Coordinates are the positions q of the n joints, then those of the motors of the e elastic ones, on
the joint side: theta, the motor's angle over the gear ratio. With the torque T of the gears, see
`gears`, M(q) qdd + C qd + g = T (the effort of the drive where a joint is rigid), and by the
balance of power J theta_dd = effort - friction - (1 + de/dtheta) T. Source: Spong, ASME J. Dyn.
Syst. Meas. Control 1987, 109, 310-319.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.gears import MOTOR_ROUNDS, Gears
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.friction import AxisFriction
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray

#: part by which the last round in which motors are sought changes them
MOTOR_CHANGE = 1e-14


class ElasticDynamics:
    """Forward and inverse dynamics of one robot with elastic joints, for many states at once.

    ``parameters`` (n, 10) standard parameters; ``rotors`` of the joints, or their inertia (n, n)
    kg m^2, of which those of elastic joints turn by themselves; ``friction``, by default none, of
    the n+e coordinates. Raises ModelError for gears that cannot be.
    """

    def __init__(self, robot: RobotModel, parameters: FloatArray, rotors: Rotors | FloatArray,
                 gears: Gears, friction: AxisFriction | None = None) -> None:
        gears.require_possible(robot.joints)
        self._friction = AxisFriction.none(robot.n + len(gears.joints)) if friction is None \
            else friction
        self.gears, self._robot, self._parameters = gears, robot, parameters
        self.rotors, self._own = all_rotors(rotors, gears), list(gears.joints)
        self._dynamics = rigid_body.ForwardDynamics(robot, parameters, self.rotors, friction)
        self._motors = list(gears.motors(robot.n))

    def __call__(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray,
        external: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return accelerations (K, n+e) and verdicts (K,), as `rigid_body.ForwardDynamics` does.

        ``position`` and ``velocity`` (K, n+e); ``effort`` (K, n) of the drives; ``external``
        (K, n) torque from outside on the links. Gears are without hysteresis: states by
        themselves have no past.
        """
        n, own = self._robot.n, self._own
        motor = np.array([position[:, n:], velocity[:, n:]])
        transmitted = self.gears.torque(self.gears.deflection(
            motor, np.array([position[:, own], velocity[:, own]])))
        slope = self.gears.error(motor[0])[1]
        load = np.hstack([effort, effort[:, own] - (1.0 + slope) * transmitted])
        load[:, own] = transmitted
        if external is not None:
            load[:, :n] += external
        return self._dynamics(position, velocity, load)

    def inverse(
        self, motion: FloatArray, step: float, external: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the motors (3, T, e) and the effort (T, n) of all drives for links in ``motion``.

        ``motion`` (3, T, n) are positions, velocities and accelerations of the links ``step`` [s]
        apart, one after the other, from rest with relaxed gears; motors likewise, on the joint
        side. ``external`` (T, n) is torque from outside on the links. Rates of the deflection are
        differences along the samples, all else is exact.
        """
        own, n = self._own, self._robot.n
        output = motion[:, :, own]  # what gears put out: link and deflection, in motion
        motors, before = output, np.inf
        for _ in range(MOTOR_ROUNDS):
            whole = self._driven(np.concatenate([motion, motors], axis=2))
            torque = whole[:, :n] if external is None else whole[:, :n] - external
            bent, rate = self.gears.bent(torque[:, own], step)
            output = motion[:, :, own] + np.array([bent, rate, np.gradient(
                rate, step, axis=0, edge_order=2) if len(rate) > 2 else 0.0 * rate])
            motors = self.gears.motor(output)
            change, before = np.abs(motors[2]).max() - before, np.abs(motors[2]).max()
            if not self.rotors.coupled or abs(change) <= MOTOR_CHANGE * before:
                break
        whole = self._driven(np.concatenate([motion, motors], axis=2))
        effort = whole[:, :n] if external is None else whole[:, :n] - external
        slope = self.gears.error(motors[0])[1]
        transmitted = effort[:, own].copy()
        effort[:, own] = whole[:, n:] + (1.0 + slope) * transmitted
        return motors, effort

    def _driven(self, motion: FloatArray) -> FloatArray:
        """Return the effort (T, n+e) on all coordinates in ``motion`` (3, T, n+e), without gears.

        Friction included.
        """
        n, friction = self._robot.n, self._friction
        q, qd, qdd = motion
        links = q[:, :n], qd[:, :n], qdd[:, :n]
        effort = rigid_body.rotor_effort(self._robot, self.rotors, q, qd, qdd)
        effort[:, :n] += rigid_body.inverse_dynamics(
            self._robot, links[0], links[1], links[2], self._parameters)
        load = None
        if friction.needs_load:
            pressed = rigid_body.inverse_dynamics(
                self._robot, links[0], links[1], links[2], friction.links)
            load = pressed @ friction.transmission.T
        return np.asarray(effort + friction.torque(qd, load))

    def mass_matrix(self, position: FloatArray) -> FloatArray:
        """Return the inertia (K, n+e, n+e) kg m^2 of positions (K, n+e)."""
        n = self._robot.n
        matrix = rigid_body.rotor_inertia(self._robot, self.rotors, position)
        matrix[:, :n, :n] += rigid_body.mass_matrix(
            self._robot, position[:, :n], self._parameters)
        return matrix

    def bias(self, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return the effort (K, n+e) that keeps the velocity, gears and friction left out."""
        n, still = self._robot.n, np.zeros_like(position)
        effort = rigid_body.rotor_effort(self._robot, self.rotors, position, velocity, still)
        effort[:, :n] += rigid_body.inverse_dynamics(
            self._robot, position[:, :n], velocity[:, :n], still[:, :n], self._parameters)
        return effort

    def per_joint(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the parts of links and of motors, each (..., n), of values (..., n+e)."""
        return values[..., :self._robot.n], values[..., self._motors]


def stiff_rotors(rotors: FloatArray, gears: Gears) -> FloatArray:
    """Return ``rotors`` (n, n) without those of elastic joints, which turn by themselves."""
    kept = rotors.copy()
    kept[list(gears.joints), :] = 0.0
    kept[:, list(gears.joints)] = 0.0
    return kept


def coordinates(position: FloatArray, motor: FloatArray, gears: Gears) -> FloatArray:
    """Return (..., n+e) from what links and motors have, each (..., n)."""
    return np.concatenate([position, motor[..., list(gears.joints)]], axis=-1)


def all_rotors(rotors: Rotors | FloatArray, gears: Gears) -> Rotors:
    """Return ``rotors`` of n joints, or their inertia (n, n), as those of n+e coordinates."""
    given = Rotors.of(rotors)
    n = len(given.inertia)
    full = np.zeros((n + len(gears.joints),) * 2)
    full[:n, :n] = stiff_rotors(given.inertia, gears)
    full[range(n, len(full)), range(n, len(full))] = gears.inertia
    motions = np.zeros((len(given.motions), len(full)))
    motions[:, list(gears.motors(n))] = given.motions
    return Rotors(full, given.carriers, given.axes, motions)
