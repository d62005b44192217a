"""Accelerations of robots with elastic joints, whose motors move relative to the links.

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

#: relative change of the motor acceleration at which the iteration ends
MOTOR_CHANGE = 1e-14


class ElasticDynamics:
    """Forward and inverse dynamics of one robot with elastic joints, for many states at once.

    ``parameters`` (n, 10) standard parameters; ``rotors`` of the joints, or their inertia (n, n)
    kg m^2, those of elastic joints being coordinates of their own; ``friction``, by default none,
    of the n+e coordinates. Raises ModelError for impossible gears.
    """

    def __init__(self, robot: RobotModel, parameters: FloatArray, rotors: Rotors | FloatArray,
                 gears: Gears, friction: AxisFriction | None = None) -> None:
        gears.require_possible(robot.joints)
        self._friction = AxisFriction.none(robot.n + len(gears.joints)) if friction is None \
            else friction
        self.gears, self._robot, self._parameters = gears, robot, parameters
        self.rotors, self._elastic = all_rotors(rotors, gears), list(gears.joints)
        self._dynamics = rigid_body.ForwardDynamics(robot, parameters, self.rotors, friction)
        self._motors = list(gears.motors(robot.n))

    def __call__(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray,
        external: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return accelerations (K, n+e) and verdicts (K,), as `rigid_body.ForwardDynamics` does.

        ``position`` and ``velocity`` (K, n+e); ``effort`` (K, n) of the drives; ``external`` (K,
        n) external torque on the links. Hysteresis of the gears is omitted: single states have no
        past.
        """
        n, elastic = self._robot.n, self._elastic
        motor = np.array([position[:, n:], velocity[:, n:]])
        transmitted = self.gears.torque(self.gears.deflection(
            motor, np.array([position[:, elastic], velocity[:, elastic]])))
        slope = self.gears.error(motor[0])[1]
        load = np.hstack([effort, effort[:, elastic] - (1.0 + slope) * transmitted])
        load[:, elastic] = transmitted
        if external is not None:
            load[:, :n] += external
        return self._dynamics(position, velocity, load)

    def inverse(
        self, motion: FloatArray, step: float, external: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return the motor motion (3, T, e) and the effort (T, n) of all drives for a link
        ``motion``.

        ``motion`` (3, T, n): positions, velocities and accelerations of the links, ``step`` [s]
        apart, in order, starting at rest with relaxed gears; motors likewise, on the joint side.
        ``external`` (T, n) is the external torque on the links. Rates of the deflection are
        differences of samples; everything else is exact.
        """
        elastic, n = self._elastic, self._robot.n
        output = motion[:, :, elastic]  # gear output: link plus deflection, in motion
        motors, previous = output, np.inf
        for _ in range(MOTOR_ROUNDS):
            whole = self._coordinate_effort(np.concatenate([motion, motors], axis=2))
            torque = whole[:, :n] if external is None else whole[:, :n] - external
            bent, rate = self.gears.bent(torque[:, elastic], step)
            output = motion[:, :, elastic] + np.array([bent, rate, np.gradient(
                rate, step, axis=0, edge_order=2) if len(rate) > 2 else 0.0 * rate])
            motors = self.gears.motor(output)
            change, previous = np.abs(motors[2]).max() - previous, np.abs(motors[2]).max()
            if not self.rotors.coupled or abs(change) <= MOTOR_CHANGE * previous:
                break
        whole = self._coordinate_effort(np.concatenate([motion, motors], axis=2))
        effort = whole[:, :n] if external is None else whole[:, :n] - external
        slope = self.gears.error(motors[0])[1]
        transmitted = effort[:, elastic].copy()
        effort[:, elastic] = whole[:, n:] + (1.0 + slope) * transmitted
        return motors, effort

    def _coordinate_effort(self, motion: FloatArray) -> FloatArray:
        """Return the effort (T, n+e) on all coordinates in ``motion`` (3, T, n+e), without gears.

        Friction is included.
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
        """Return the inertia matrix (K, n+e, n+e) kg m^2 at positions (K, n+e)."""
        n = self._robot.n
        matrix = rigid_body.rotor_inertia(self._robot, self.rotors, position)
        matrix[:, :n, :n] += rigid_body.mass_matrix(
            self._robot, position[:, :n], self._parameters)
        return matrix

    def bias(self, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return the effort (K, n+e) at constant velocity, without gears and friction."""
        n, still = self._robot.n, np.zeros_like(position)
        effort = rigid_body.rotor_effort(self._robot, self.rotors, position, velocity, still)
        effort[:, :n] += rigid_body.inverse_dynamics(
            self._robot, position[:, :n], velocity[:, :n], still[:, :n], self._parameters)
        return effort

    def per_joint(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the link and motor parts, each (..., n), of values (..., n+e)."""
        return values[..., :self._robot.n], values[..., self._motors]


def stiff_rotors(rotors: FloatArray, gears: Gears) -> FloatArray:
    """Return ``rotors`` (n, n) without the rows and columns of elastic joints."""
    stiff = rotors.copy()
    stiff[list(gears.joints), :] = 0.0
    stiff[:, list(gears.joints)] = 0.0
    return stiff


def coordinates(position: FloatArray, motor: FloatArray, gears: Gears) -> FloatArray:
    """Return coordinates (..., n+e) of link and motor values, each (..., n)."""
    return np.concatenate([position, motor[..., list(gears.joints)]], axis=-1)


def all_rotors(rotors: Rotors | FloatArray, gears: Gears) -> Rotors:
    """Return ``rotors`` of n joints, or their inertia (n, n), as rotors of n+e coordinates."""
    given = Rotors.of(rotors)
    n = len(given.inertia)
    full = np.zeros((n + len(gears.joints),) * 2)
    full[:n, :n] = stiff_rotors(given.inertia, gears)
    full[range(n, len(full)), range(n, len(full))] = gears.inertia
    motions = np.zeros((len(given.motions), len(full)))
    motions[:, list(gears.motors(n))] = given.motions
    return Rotors(full, given.carriers, given.axes, motions)
