"""dynamics/rigid_body.py: generalised momentum and its rate against Pinocchio's Coriolis matrix
and energies."""

from __future__ import annotations

import numpy as np
import pytest

pin = pytest.importorskip('pinocchio')

from random_robots import Peer, random_urdf  # noqa: E402
from tolerances import DIFFERENCE, SAME_FORMULA  # noqa: E402

from robot_dynid.dynamics import rigid_body  # noqa: E402
from robot_dynid.dynamics.rigid_body import Momentum  # noqa: E402
from robot_dynid.robot.model import RobotModel  # noqa: E402
from robot_dynid.robot.urdf import robot_from_urdf  # noqa: E402

STATES = 40  # more than one tile of the kernels


def pair(seed: int) -> tuple[RobotModel, Peer, np.random.Generator]:
    """Return a chain (even seeds) or tree with any direction of gravity."""
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, int(rng.integers(1, 10)), 0.0 if seed % 2 == 0 else 0.5)
    gravity = rng.normal(size=3)
    robot = robot_from_urdf(text).with_gravity(9.81 * gravity / np.linalg.norm(gravity))
    return robot, Peer.of(pin.buildModelFromXML(text), robot), rng


@pytest.mark.parametrize('decade', range(10))
def test_agrees_with_the_coriolis_matrix_of_pinocchio(decade: int) -> None:
    for seed in range(10 * decade, 10 * decade + 10):
        robot, peer, rng = pair(seed)
        q, qd = rng.uniform(-4, 4, (STATES, robot.n)), rng.normal(size=(STATES, robot.n))
        rotors = np.diag(rng.uniform(0.0, 1.0, robot.n))
        p, rate = Momentum(robot, None, rotors)(q, qd)
        mass = rigid_body.mass_matrix(robot, q) + rotors
        np.testing.assert_allclose(
            p, np.einsum('kij,kj->ki', mass, qd), rtol=0.0, atol=SAME_FORMULA * np.abs(p).max())
        for k in range(0, STATES, 7):
            at, v = peer.position(q[k]), peer.tangent(qd[k])
            coriolis = pin.computeCoriolisMatrix(peer.model, peer.data, at, v)
            weight = pin.computeGeneralizedGravity(peer.model, peer.data, at)
            theirs = (coriolis.T @ v - weight)[peer.rows]
            assert np.abs(rate[k] - theirs).max() < SAME_FORMULA * np.abs(rate).max(), seed


@pytest.mark.parametrize('seed', range(10))
def test_rate_is_the_gradient_of_kinetic_less_potential_energy(seed: int) -> None:
    robot, peer, rng = pair(seed)
    q, qd = rng.uniform(-2, 2, robot.n), rng.normal(size=robot.n)
    rate = Momentum(robot)(q[None], qd[None])[1][0]

    def lagrangian(at: np.ndarray) -> float:
        position = peer.position(at)
        return float(pin.computeKineticEnergy(peer.model, peer.data, position, peer.tangent(qd))
                     - pin.computePotentialEnergy(peer.model, peer.data, position))

    step = 1e-5
    for j in range(robot.n):
        ahead, behind = q.copy(), q.copy()
        ahead[j] += step
        behind[j] -= step
        slope = (lagrangian(ahead) - lagrangian(behind)) / (2.0 * step)
        assert abs(slope - rate[j]) < 100.0 * DIFFERENCE * max(1.0, np.abs(rate).max())


def test_prepared_inverse_dynamics_is_the_other_one() -> None:
    robot, _, rng = pair(6)
    q, qd, qdd = rng.normal(size=(3, STATES, robot.n))
    np.testing.assert_array_equal(
        rigid_body.InverseDynamics(robot)(q, qd, qdd),
        rigid_body.inverse_dynamics(robot, q, qd, qdd))
