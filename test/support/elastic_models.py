"""Robots with elastic joints for tests: random gears, the integrator, and their energy."""

from __future__ import annotations

import numpy as np
import pinocchio

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.elastic import ElasticDynamics, all_rotors
from robot_dynid.dynamics.gears import Gears
from robot_dynid.dynamics.rollout import Integrator
from robot_dynid.friction import AxisFriction, Coulomb
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray


def gears_of(robot: RobotModel, joints=None, stiffness=2e4, damping=0.0, inertia=0.5) -> Gears:
    """Return the same gear at each of ``joints`` (all)."""
    own = tuple(range(robot.n)) if joints is None else joints
    same = np.ones(len(own))
    return Gears(own, inertia * same, stiffness * same, damping * same, 0.0 * same)


def friction_of(n: int, viscous=0.0, coulomb=0.0, width=0.01) -> AxisFriction:
    """Return the same friction on every joint."""
    values = np.tile([viscous, coulomb, 0.0], (n, 1))
    return AxisFriction.of(np.eye(n), [Coulomb(width)] * n, values)


def integrator_of(robot: RobotModel, gears: Gears, friction: AxisFriction | None = None,
                  rotors: FloatArray | None = None) -> Integrator:
    """Return the compiled integration of the nominal links with ``gears``."""
    rotors = np.zeros((robot.n, robot.n)) if rotors is None else rotors
    own = (friction or friction_of(robot.n)).on(gears.motors(robot.n),
                                                robot.n + len(gears.joints))
    return Integrator(robot, robot.nominal, all_rotors(rotors, gears), own,
                      gears)


def dynamics_of(robot: RobotModel, gears: Gears, rotors: FloatArray | None = None
                ) -> ElasticDynamics:
    """Return the forward dynamics of the nominal links with ``gears``."""
    rotors = np.zeros((robot.n, robot.n)) if rotors is None else rotors
    return ElasticDynamics(robot, robot.nominal, rotors, gears)


def energy(robot: RobotModel, gears: Gears, x: FloatArray, v: FloatArray) -> FloatArray:
    """Return kinetic and potential energy (2, N) of positions and velocities (N, n+e)."""
    n, own = robot.n, list(gears.joints)
    model = pinocchio.buildModelFromUrdf(robot.source)
    data = model.createData()
    mass = rigid_body.mass_matrix(robot, x[:, :n])
    kinetic = 0.5 * np.einsum('ti,tij,tj->t', v[:, :n], mass, v[:, :n])
    kinetic += 0.5 * v[:, n:]**2 @ gears.inertia
    weight = [pinocchio.computePotentialEnergy(model, data, q) for q in x[:, :n]]
    return np.array([kinetic, weight + 0.5 * (x[:, n:] - x[:, own])**2 @ gears.stiffness])
