"""Robots whose joints move others, against Pinocchio's model of the same <mimic> joints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from random_robots import Peer, random_urdf
from robot_descriptions import AXIS, INERTIAL, LIMIT, link, robot

from robot_dynid.collision.scene import build_scene
from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import frictionless_blocks
from robot_dynid.errors import RobotError
from robot_dynid.friction import AxisFriction, law_from
from robot_dynid.identified.structure import Structure
from robot_dynid.reduction import METHODS
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.serialization import robot_from_plain, robot_to_plain
from robot_dynid.robot.surroundings import KeepOut, Surroundings
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import FloatArray, frozen

FOLLOWS = '<mimic joint="{}" multiplier="{}" offset="{}"/>'
#: states of a robot
COUNT = 20


def coupled(text: str, rng: np.random.Generator) -> str:
    """Return a URDF of which one or two random joints mimic another one."""
    text = re.sub('type="continuous"(.*?)</joint>', rf'type="revolute"\1{LIMIT}</joint>', text)
    names = sorted(set(re.findall('joint name="(j[0-9]+)" type="(?!fixed)', text)))
    leader, *followers = rng.permutation(names)[:rng.integers(2, 4)]
    for name in followers:
        mark = FOLLOWS.format(leader, *rng.uniform(-2.0, 2.0, 2).round(3))
        text = re.sub(f'(<joint name="{name}".*?)</joint>', rf'\1{mark}</joint>', text)
    return text


def arms() -> Iterator[tuple[str, RobotModel]]:
    """Yield random robots with a linkage, chains and trees."""
    rng, found = np.random.default_rng(7), 0
    while found < 12:
        text = coupled(random_urdf(rng, int(rng.integers(3, 8)), 0.3 * (found % 2)), rng)
        made = robot_from_urdf(text)
        if made.linkage is not None and len(made.linkage.matrix) == text.count('"revolute"') \
                + text.count('"prismatic"'):
            found += 1
            yield text, made


ARMS = list(arms())
WRIST_URDF = robot().replace(
    f'"upper"/>{AXIS}', f'"upper"/>{AXIS}{FOLLOWS.format("turn", -0.7, 0.3)}')
WRIST = robot_from_urdf(WRIST_URDF)


def states(made: RobotModel) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return random positions, velocities and accelerations (N, n)."""
    q, qd, qdd = np.random.default_rng(1).uniform(-2.0, 2.0, (3, COUNT, made.n))
    return q, qd, qdd


def moved_by(text: str, made: RobotModel) -> tuple[FloatArray, FloatArray]:
    """Return matrix (m, n) and offset (m,) of the joints of the tree, from the text alone."""
    matrix, offset = np.zeros((made.tree.n, made.n)), np.zeros(made.tree.n)
    for j, name in enumerate(made.tree.joints):
        mark = re.search(f'name="{name}".*?(?:mimic joint="(.*?)" multiplier="(.*?)" '
                         'offset="(.*?)".*?)?</joint>', text, re.DOTALL)
        assert mark is not None
        leader, factor, shift = mark.groups()
        matrix[j, made.index(leader or name)] = float(factor or 1.0)
        offset[j] = float(shift or 0.0)
    return matrix, offset


@pytest.mark.parametrize('case', range(len(ARMS)))
def test_effort_inertia_and_acceleration_are_those_of_pinocchio(case: int) -> None:
    text, made = ARMS[case]
    peer = Peer.of(pin.buildModelFromXML(text), made.tree)
    matrix, offset = moved_by(text, made)
    motion = states(made)
    whole = [motion[0] @ matrix.T + offset, motion[1] @ matrix.T, motion[2] @ matrix.T]
    expected = np.array([peer.inverse_dynamics(*state) for state in zip(*whole)]) @ matrix
    scale = np.abs(expected).max()
    np.testing.assert_allclose(rigid_body.inverse_dynamics(made, *motion), expected,
                               rtol=0.0, atol=1e-10 * scale)
    columns = rigid_body.regressor(made, motion)
    np.testing.assert_allclose(np.einsum('nkt,k->tn', columns, made.tree.nominal.ravel()),
                               expected, rtol=0.0, atol=1e-10 * scale)
    np.testing.assert_allclose(rigid_body.InverseDynamics(made)(*motion), expected,
                               rtol=0.0, atol=1e-10 * scale)
    inertia = rigid_body.mass_matrix(made, motion[0])
    full = np.array([matrix.T @ peer.mass_matrix(q) @ matrix for q in whole[0]])
    np.testing.assert_allclose(inertia, full, rtol=0.0, atol=1e-10 * np.abs(full).max())
    found, verdicts = rigid_body.ForwardDynamics(made)(motion[0], motion[1], expected)
    definite = verdicts > 1e-6 * np.abs(full).max()
    np.testing.assert_allclose(found[definite], motion[2][definite], rtol=0.0, atol=1e-7)


def test_effort_is_that_of_the_joints_that_pinocchio_couples(tmp_path: Path) -> None:
    (tmp_path / 'arm.urdf').write_text(WRIST_URDF)
    peer = Peer.of(pin.buildModelFromUrdf(str(tmp_path / 'arm.urdf'), mimic=True), WRIST)
    motion = states(WRIST)
    expected = [peer.inverse_dynamics(*state) for state in zip(*motion)]
    np.testing.assert_allclose(rigid_body.inverse_dynamics(WRIST, *motion), expected,
                               rtol=0.0, atol=1e-10)


def test_gradients_of_the_regressor_are_its_differences() -> None:
    motion = states(WRIST)
    weights = np.random.default_rng(2).normal(size=rigid_body.regressor(WRIST, motion).shape)
    gradients = rigid_body.regressor_pullback(WRIST, motion, weights)
    step = 1e-6
    for which, joint in np.ndindex(3, WRIST.n):
        totals = []
        for side in (step, -step):
            moved = [one.copy() for one in motion]
            moved[which][:, joint] += side
            totals.append(np.sum(weights * rigid_body.regressor(WRIST, tuple(moved)), (0, 1)))
        np.testing.assert_allclose(gradients[which][:, joint],
                                   (totals[0] - totals[1]) / (2 * step), rtol=0.0, atol=1e-6)


def test_a_minimal_set_gives_the_effort_of_all_links() -> None:
    blocks = frictionless_blocks(WRIST, False)
    reduction = METHODS['numeric'](WRIST, blocks)
    motion, linkage, nominal = states(WRIST), WRIST.linkage, WRIST.tree.nominal.ravel()
    assert linkage is not None
    model = pin.buildModelFromXML(robot())
    tall = np.concatenate([linkage.matrix.T @ pin.computeJointTorqueRegressor(
        model, model.createData(), *state) for state in zip(*linkage.motion(*motion))])
    assert len(reduction.standard) == tall.shape[1] == 30
    assert len(reduction.pivots) == np.linalg.matrix_rank(tall) < tall.shape[1]
    columns = rigid_body.regressor(WRIST, motion)
    np.testing.assert_allclose(
        np.einsum('nkt,k->nt', columns[:, reduction.pivots], reduction.base(nominal)),
        np.einsum('nkt,k->nt', columns, nominal), rtol=0.0, atol=1e-9)


@pytest.mark.parametrize('law', ['coulomb', 'coulomb+load'])
def test_forward_is_the_inverse_of_inverse_with_rotors_and_friction(law: str) -> None:
    motion = states(WRIST)
    laws = [law_from(law)] * 2
    values = [np.full(len(one.parameters), 0.2) for one in laws]
    friction = AxisFriction.of(np.eye(2), laws, values, (np.eye(2), WRIST.tree.nominal))
    rotors = np.diag([0.4, 0.1])
    effort = rigid_body.InverseDynamics(WRIST, None, rotors, friction)(*motion)
    rigid = rigid_body.inverse_dynamics(WRIST, *motion) + motion[2] @ rotors
    assert np.abs(effort - rigid).min() > 1e-3
    found, verdicts = rigid_body.ForwardDynamics(WRIST, None, rotors, friction)(
        motion[0], motion[1], effort)
    assert verdicts.min() > 0.0
    np.testing.assert_allclose(found, motion[2], rtol=0.0, atol=1e-8)


def test_columns_of_all_effects_are_the_torque_of_the_mechanism() -> None:
    """Links on the tree, rotors and friction on the joints that have motors."""
    model = Structure.uniform(WRIST, True, 'coulomb', {}).torque_model(WRIST)
    rng = np.random.default_rng(3)
    values = rng.uniform(0.5, 1.0, len(model.reduction.pivots))
    samples = random_states(WRIST, COUNT, rng)
    standard = dict(zip(model.reduction.standard, model.reduction.standard_values(values)))
    mechanism = model.mechanism(standard)
    expected = rigid_body.InverseDynamics(
        WRIST, mechanism.links, mechanism.rotors, mechanism.friction)(
            samples.position, samples.velocity, samples.acceleration)
    np.testing.assert_allclose(np.einsum('nkt,k->tn', model.columns(samples), values), expected,
                               rtol=0.0, atol=1e-9)


def test_distances_change_as_their_gradients_say_and_no_faster_than_levers(tmp_path: Path) -> None:
    box = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
    text = WRIST_URDF
    for name in ('base', 'column', 'upper', 'fore'):
        inside = '' if name == 'base' else INERTIAL
        text = text.replace(link(name, inside), link(name, inside + box))
    (tmp_path / 'arm.urdf').write_text(text)
    around = Surroundings(floor=-0.3, keep_out=(KeepOut((0.5, 0.5, 0.0), (0.1, 0.1, 0.1)),))
    scene = build_scene(load_robot(tmp_path / 'arm.urdf'), around)
    assert ('fore', 'floor') in scene.pairs and ('fore', 'keep_out[0]') in scene.pairs
    q = 0.5 * states(WRIST)[0]
    near = scene.nearest(q, np.inf)
    rows, columns = np.nonzero(near.distance > 0.01)
    rates = scene.rates(q, near, (rows, columns))
    assert np.abs(rates).max(axis=0).min() > 0.01
    step = 1e-6
    for joint in range(2):
        off = step * np.eye(2)[joint]
        change = (scene.distances(q + off) - scene.distances(q - off))[rows, columns]
        np.testing.assert_allclose(rates[:, joint], change / (2 * step), rtol=0.0, atol=1e-3)
    levers = scene.levers(np.full(2, 2.0))
    assert np.all(np.abs(rates) <= levers.T[columns] + 1e-9)


@pytest.mark.parametrize('use', [
    lambda: METHODS['analytic'](WRIST, frictionless_blocks(WRIST, False)),
    lambda: WRIST.carried, lambda: list(WRIST.bodies), lambda: rigid_body.Momentum(WRIST),
    lambda: np.asarray(WRIST.nominal), lambda: WRIST.parents[0], lambda: len(WRIST.links),
    lambda: WRIST.parents == 0, lambda: 2.0 * WRIST.nominal, lambda: WRIST.nominal.sum,
    lambda: 'upper' in WRIST.bodies])
def test_single_joint_functions_refuse_coupled_joints(use: object) -> None:
    with pytest.raises(RobotError, match=r'arm: shoulder with turn \(<mimic>\): coupled joints '
                       'are supported only by'):
        use()  # type: ignore[operator]


def test_a_robot_of_a_model_file_moves_as_before() -> None:
    given = replace(WRIST.with_gravity([0.0, 1.0, -9.0]), limits=replace(
        WRIST.limits, lower=frozen([-0.5, -1.5])))
    found = robot_from_plain(robot_to_plain(given), 'model')
    assert found.joints == given.joints and found.hash() == given.hash() != WRIST.hash()
    np.testing.assert_array_equal(rigid_body.inverse_dynamics(found, *states(given)),
                                  rigid_body.inverse_dynamics(given, *states(given)))
    np.testing.assert_array_equal(found.limits.lower, given.limits.lower)
    other = robot_from_urdf(robot().replace(
        f'"upper"/>{AXIS}', f'"upper"/>{AXIS}{FOLLOWS.format("turn", -0.7, 0.4)}'))
    assert other.hash() != WRIST.hash()


def test_limits_are_those_of_all_joints() -> None:
    assert LIMIT.count('-2') == 1
    np.testing.assert_allclose(WRIST.limits.lower, [-2.0, -2.0])
    np.testing.assert_allclose(WRIST.limits.upper, [2.0, 2.0])
    np.testing.assert_allclose(WRIST.limits.velocity, [3.0, 3.0])
