"""dynamics/rigid_body.py: external wrenches: the torque on the joints against Pinocchio and
MuJoCo, with friction too."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from identified_models import (
    feasible_model,
    model_named,
    random_links,
    random_model,
    with_friction,
)
from tolerances import MUJOCO_ACCELERATION, SAME_FORMULA, SOLVED

pin = pytest.importorskip('pinocchio')

from random_robots import Peer, random_urdf  # noqa: E402

from robot_dynid import external_torque, load_robot  # noqa: E402
from robot_dynid.dynamics.rigid_body import link_poses  # noqa: E402
from robot_dynid.errors import UsageError  # noqa: E402
from robot_dynid.robot.urdf import robot_from_urdf  # noqa: E402
from robot_dynid.types import FloatArray  # noqa: E402


def near(ours: FloatArray, theirs: FloatArray, bound: float = SAME_FORMULA) -> bool:
    return bool(np.abs(ours - theirs).max() <= bound * np.abs(theirs).max())


@pytest.mark.parametrize('seed', range(20))
def test_agrees_with_external_forces_of_pinocchio(seed: int) -> None:
    """Trees and chains that turn and slide; a wrench on any link, in its axes or the base's."""
    rng = np.random.default_rng(seed)
    text = random_urdf(rng, int(rng.integers(2, 8)), 0.5 * (seed % 2))
    robot = robot_from_urdf(text)
    own = pin.buildModelFromXML(text)
    peer = Peer.of(own, robot)
    q, v, a = rng.uniform(-3.0, 3.0, (3, robot.n))
    link = robot.links[rng.integers(len(robot.links))]
    wrench = rng.normal(size=6) * [30.0, 30.0, 30.0, 5.0, 5.0, 5.0]
    forces = pin.StdVec_Force()
    for _ in range(own.njoints):
        forces.append(pin.Force.Zero())
    forces[peer.ids[link.body]] = pin.SE3(np.array(link.placement)).act(pin.Force(wrench))
    state = peer.position(q), peer.tangent(v)
    effort = pin.rnea(own, peer.data, *state, peer.tangent(a), forces)[peer.rows].copy()
    torque = external_torque(robot, link.name, q, wrench)
    both = external_torque(robot, link.name, [v, q], [-wrench, wrench])
    assert (torque.shape, both.shape) == ((robot.n,), (2, robot.n)) and near(both[1], torque)
    assert near(peer.inverse_dynamics(q, v, a) - torque, effort)
    turn = link_poses(robot, q[None]).rotations[0, link.body] @ link.placement[:3, :3]
    turned = np.concatenate([turn @ wrench[:3], turn @ wrench[3:]])
    assert near(external_torque(robot, link.name, q, turned, robot.base_link), torque)
    model = feasible_model(robot, random_links(rng, robot.n))
    assert near(model.inverse(q, v, a, external=torque), model.inverse(q, v, a) - torque)
    mass = model.mass_matrix(q)
    found = model.forward(q, v, model.inverse(q, v, a, external=torque), torque)
    assert near(found, a, SOLVED * 100.0 * np.linalg.cond(mass))


def test_forward_agrees_with_applied_forces_of_mujoco() -> None:
    """At the centre of mass and in the axes of the world, as MuJoCo has them."""
    model = model_named('ur10e')
    robot, rng = model.robot, np.random.default_rng(1)
    mjcf = model.to_mujoco()
    data = mujoco.MjData(mjcf)
    body = mjcf.body(robot.bodies[4]).id
    data.qpos[:], data.qvel[:] = q, v = rng.uniform(-1.0, 1.0, (2, robot.n))
    data.ctrl[:] = effort = rng.uniform(-10.0, 10.0, robot.n)
    data.xfrc_applied[body] = applied = rng.normal(size=6) * [40.0, 40.0, 40.0, 4.0, 4.0, 4.0]
    mjcf.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CLAMPCTRL)
    mujoco.mj_forward(mjcf, data)
    lever = data.xipos[body] - data.xpos[body]
    wrench = np.concatenate([applied[:3], applied[3:] + np.cross(lever, applied[:3])])
    torque = external_torque(robot, robot.bodies[4], q, wrench, robot.base_link)
    assert near(model.forward(q, v, effort, torque), data.qacc, MUJOCO_ACCELERATION)


def test_friction_feels_the_load_that_is_left() -> None:
    """A wrench that carries the links takes the share of the load off the friction."""
    robot, rng = load_robot('planar_3r'), np.random.default_rng(2)
    n = robot.n
    model = with_friction(random_model(robot), ['coulomb+load'] * n, robot.nominal)
    q, v, a = rng.uniform(-1.0, 1.0, (3, 50, n))
    load = model.structure.friction_of(robot).load
    assert load is not None
    carried = load(q, v, a)
    effort = model.inverse(q, v, a, external=carried)
    free = model.axis_friction.torque(v, np.zeros_like(carried))
    assert near(effort, model.frictionless_effort(q, v, a) - carried + free)
    assert not near(model.inverse(q, v, a) - carried, effort, 1e-3)
    for share in (0.3, 1.0, -2.0):
        effort = model.inverse(q, v, a, external=share * carried)
        assert near(model.forward(q, v, effort, share * carried), a, 1e-9)


def test_a_wrench_accelerates_the_links_of_elastic_joints_not_their_motors() -> None:
    model = random_model(load_robot('elastic_2r'))
    q, v, effort, theta, theta_d, pushed = np.random.default_rng(3).uniform(-1.0, 1.0, (6, 2))
    theta = q + 1e-3 * theta
    links, motors = model.forward_elastic(q, v, effort, theta, theta_d)
    more, same = model.forward_elastic(q, v, effort, theta, theta_d, pushed)
    bare = feasible_model(model.robot.rigid, model.feasible_links)
    assert near(more - links, np.linalg.solve(bare.mass_matrix(q), pushed), 1e-8)
    assert near(same, motors)


@pytest.mark.parametrize(('link', 'axes', 'message'), [
    ('hand', '', "'hand' is no moving link: choose one of "),
    ('base_link', '', "'base_link' does not move: choose one of "),
    ('', 'hand', "'hand' is no moving link"),
])
def test_unknown_links_are_named(link: str, axes: str, message: str) -> None:
    robot = load_robot('planar_3r')
    base = 'base_link' if link != 'base_link' else robot.base_link
    with pytest.raises(UsageError, match=message.replace("'base_link'", f"'{base}'")):
        external_torque(robot, {'base_link': base}.get(link, link) or robot.bodies[0],
                        np.zeros(3), np.zeros(6), axes)


@pytest.mark.parametrize(('q', 'wrench'), [
    (np.zeros(2), np.zeros(6)), (np.zeros(3), np.zeros(3)), (np.zeros((2, 3)), np.zeros(6)),
    (np.zeros(3), np.full(6, np.nan))])
def test_wrong_shapes_are_refused(q: FloatArray, wrench: FloatArray) -> None:
    robot = load_robot('planar_3r')
    with pytest.raises(UsageError, match=r'expected positions|must be finite'):
        external_torque(robot, robot.bodies[0], q, wrench)
