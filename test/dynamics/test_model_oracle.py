"""dynamics/rigid_body.py: the dynamics against Pinocchio on 200 random trees and chains."""

from __future__ import annotations

import numpy as np
import pytest

pin = pytest.importorskip('pinocchio')

from random_robots import Peer, random_urdf  # noqa: E402
from tolerances import SAME_FORMULA, SOLVED  # noqa: E402

from robot_dynid.dynamics import rigid_body  # noqa: E402
from robot_dynid.robot.model import RobotModel  # noqa: E402
from robot_dynid.robot.tree import Selection  # noqa: E402
from robot_dynid.robot.urdf import robot_from_urdf  # noqa: E402
from robot_dynid.types import FloatArray  # noqa: E402

STATES = 5


def pair(seed: int) -> tuple[RobotModel, Peer, np.random.Generator]:
    """Return robot number ``seed``: even ones are chains, odd ones trees."""
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, int(rng.integers(1, 10)), 0.0 if seed % 2 == 0 else 0.5)
    gravity = rng.normal(size=3)
    robot = robot_from_urdf(text).with_gravity(9.81 * gravity / np.linalg.norm(gravity))
    return robot, Peer.of(pin.buildModelFromXML(text), robot), rng


def random_motion(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    return rng.uniform(-4, 4, (STATES, n)), rng.normal(size=(STATES, n)), rng.normal(
        size=(STATES, n)) * 3.0


def difference(ours: FloatArray, theirs: FloatArray) -> float:
    """Return the largest deviation relative to the largest value."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max())


def has_forward_dynamics(robot: RobotModel) -> bool:
    """Return whether every joint moves mass: a last link without inertial has no acceleration."""
    mass = rigid_body.mass_matrix(robot, np.zeros((1, robot.n)))
    return bool(np.linalg.eigvalsh(mass).min() > 1e-9)


@pytest.mark.parametrize('decade', range(20))
def test_rigid_body_dynamics_agree_with_pinocchio(decade: int) -> None:
    for seed in range(10 * decade, 10 * decade + 10):
        robot, peer, rng = pair(seed)
        q, v, a = random_motion(rng, robot.n)
        samples = range(STATES)
        effort = np.array([peer.inverse_dynamics(q[s], v[s], a[s]) for s in samples])
        mass = np.array([peer.mass_matrix(q[s]) for s in samples])
        columns = np.array([peer.regressor(q[s], v[s], a[s]) for s in samples])
        ours = rigid_body.regressor(robot, (q, v, a))
        assert difference(robot.nominal, peer.parameters()) < SAME_FORMULA, seed
        assert difference(rigid_body.inverse_dynamics(robot, q, v, a), effort) < SAME_FORMULA, seed
        assert difference(rigid_body.mass_matrix(robot, q), mass) < SAME_FORMULA, seed
        assert difference(ours.transpose(2, 0, 1), columns) < SAME_FORMULA, seed
        product = np.einsum('ick,c->ki', ours, robot.nominal.ravel())
        assert difference(product, effort) < SAME_FORMULA, seed


@pytest.mark.parametrize('decade', range(20))
def test_forward_dynamics_agrees_with_articulated_bodies(decade: int) -> None:
    for seed in range(10 * decade, 10 * decade + 10):
        robot, peer, rng = pair(seed)
        if not has_forward_dynamics(robot):
            continue
        q, v, effort = random_motion(rng, robot.n)
        ours, pivots = rigid_body.forward_dynamics(robot, (q, v, effort))
        theirs = np.array([peer.forward_dynamics(q[s], v[s], effort[s]) for s in range(STATES)])
        assert np.all(pivots > 0.0)
        again = rigid_body.inverse_dynamics(robot, q, v, ours)
        assert difference(again, effort) < SAME_FORMULA, seed
        condition = float(np.linalg.cond(rigid_body.mass_matrix(robot, q)).max())
        assert difference(ours, theirs) < SAME_FORMULA + condition * SOLVED, (seed, condition)


def test_most_of_the_random_robots_have_forward_dynamics() -> None:
    assert sum(has_forward_dynamics(pair(seed)[0]) for seed in range(200)) > 160


@pytest.mark.parametrize('seed', range(20))
def test_locked_joints_are_those_of_a_reduced_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, 6, 0.0 if seed % 2 == 0 else 0.5)
    whole = pin.buildModelFromXML(text)
    names = [name for name in whole.names if name != 'universe']
    chosen = tuple(sorted(rng.choice(names, 3, replace=False)))
    robot = robot_from_urdf(text, Selection(joints=chosen))
    locked = [whole.getJointId(name) for name in names if name not in chosen]
    peer = Peer.of(pin.buildReducedModel(whole, locked, pin.neutral(whole)), robot)
    q, v, a = random_motion(rng, 3)
    theirs = np.array([peer.inverse_dynamics(q[s], v[s], a[s]) for s in range(STATES)])
    assert set(robot.joints) == set(chosen)
    assert difference(robot.nominal, peer.parameters()) < SAME_FORMULA
    assert difference(rigid_body.inverse_dynamics(robot, q, v, a), theirs) < SAME_FORMULA


@pytest.mark.parametrize('seed', range(6))
def test_link_frames_are_those_of_the_description(seed: int) -> None:
    robot, peer, rng = pair(seed)
    q = rng.uniform(-4, 4, robot.n)
    pin.framesForwardKinematics(peer.model, peer.data, peer.position(q))
    placement: list[FloatArray] = []
    for j in range(robot.n):
        local = np.eye(4)
        geometry = robot.geometry[j].reshape(13, 3)
        constant, cosine, sine = geometry[0:3], geometry[3:6], geometry[6:9]
        local[:3, :3] = constant + cosine * np.cos(q[j]) + sine * np.sin(q[j])
        local[:3, 3] = geometry[9] + geometry[10] * q[j]
        before = np.eye(4) if robot.parents[j] < 0 else placement[robot.parents[j]]
        placement.append(before @ local)
    for link in robot.links:
        theirs = peer.data.oMf[peer.model.getBodyId(link.name)].homogeneous
        assert np.allclose(placement[link.body] @ link.placement, theirs, atol=SAME_FORMULA)


def test_selection_accepts_any_base_and_tip_link() -> None:
    rng = np.random.default_rng(4)
    text = random_urdf(rng, 7, 0.0)
    whole = robot_from_urdf(text)
    part = robot_from_urdf(text, Selection(base_link=whole.bodies[1], tip_link=whole.bodies[4]))
    assert part.joints == whole.joints[2:5]
    assert part.base_link == whole.bodies[1]
    # What lies beyond the tip moves with it.
    beyond = [link.name for link in part.links if link.body == 2]
    assert whole.bodies[6] in beyond
    assert np.isclose(part.nominal[2, 0], whole.nominal[4:, 0].sum())
    assert part.hash() != whole.hash()


def test_limits_are_read() -> None:
    robot = robot_from_urdf(random_urdf(np.random.default_rng(0), 8, 0.3))
    text_kinds = np.isnan(robot.limits.lower)
    assert text_kinds.any() and not text_kinds.all()
    assert np.all(robot.limits.lower[~text_kinds] == -2.5)
    assert np.all(robot.limits.upper[~text_kinds] == 2.0)
    assert np.all(robot.limits.velocity[~text_kinds] == 3.0)
    assert np.all(robot.limits.effort[~text_kinds] == 50.0)
    assert np.all(np.isnan(robot.limits.acceleration))
