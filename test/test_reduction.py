"""Minimal parameter sets: known sizes, Pinocchio's rank, and the torque they preserve."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tolerances import SAME_FORMULA

pin = pytest.importorskip('pinocchio')
from random_robots import Peer, random_urdf  # noqa: E402

from robot_dynid.errors import RobotError  # noqa: E402
from robot_dynid.experiment import TorqueModel  # noqa: E402
from robot_dynid.friction import Coulomb  # noqa: E402
from robot_dynid.model import dynamics  # noqa: E402
from robot_dynid.model.robot_file import load_robot  # noqa: E402
from robot_dynid.model.urdf import robot_from_urdf  # noqa: E402
from robot_dynid.reduction import reduce_numeric  # noqa: E402
from robot_dynid.reduction.numeric import full_regressor, random_states  # noqa: E402
from robot_dynid.regressor import JointFriction, RigidLinks, RotorInertia, axes_of  # noqa: E402

ROBOTS = ('planar_3r', 'puma560', 'stanford_arm', 'ur10e', 'tx40', 'seven_axis')


def all_blocks(robot):
    """Return links, rotors and friction of a robot."""
    axes = axes_of(robot)
    laws = tuple(Coulomb() for _ in axes.labels)
    return RigidLinks(robot), RotorInertia(axes), JointFriction(axes, laws)


def torque(robot, blocks, states, parameters):
    """Return the torque (n, N) of standard parameters."""
    return np.einsum('ikn,k->in', full_regressor(robot, blocks, states), parameters)


@pytest.mark.parametrize(('name', 'size'), [
    ('planar_3r', 9), ('puma560', 36), ('ur10e', 36), ('tx40', 36), ('seven_axis', 43),
])
def test_known_sizes_of_the_links_alone(name, size):
    """Gautier and Khalil 1990: puma560 36; general six axes 36, seven 43 with a vertical first."""
    robot = load_robot(name)
    reduction = reduce_numeric(robot, (RigidLinks(robot),))
    assert len(reduction.kept) == size
    assert reduction.gap > 1e6


def test_planar_arm_without_gravity_has_seven():
    robot = load_robot('planar_3r').with_gravity(np.zeros(3))
    assert len(reduce_numeric(robot, (RigidLinks(robot),)).kept) == 7


def test_labels_of_the_planar_arm():
    """Closed form of three parallel axes at 0.36 m: lumped masses at the joint before."""
    robot = load_robot('planar_3r')
    reduction = reduce_numeric(robot, (RigidLinks(robot),))
    labels = dict(zip(reduction.names, reduction.labels))
    assert labels['Izz1'] == 'Izz1 + 0.1296*m2 + 0.1296*m3'
    assert labels['Izz2'] == 'Izz2 + 0.1296*m3'
    assert labels['Izz3'] == 'Izz3'
    assert labels['mx1'] == 'mx1 + 0.36*m2 + 0.36*m3'
    assert labels['mx2'] == 'mx2 + 0.36*m3'
    assert labels['my3'] == 'my3'
    assert set(labels) == {f'{p}{i}' for p in ('mx', 'my', 'Izz') for i in (1, 2, 3)}


@pytest.mark.parametrize('name', ROBOTS)
def test_base_parameters_make_the_same_torque(name):
    robot = load_robot(name)
    model = TorqueModel.of(robot, all_blocks(robot))
    rng = np.random.default_rng(1)
    standard = rng.normal(size=len(model.reduction.standard))
    states = random_states(robot, 40, rng)
    expected = torque(robot, model.blocks, states, standard)
    base = model.reduction.base(standard)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(model.effort(states, base).T, expected, atol=1e-9 * scale)
    again = torque(robot, model.blocks, states, model.reduction.standard_values(base))
    assert again == pytest.approx(expected, abs=1e-9 * scale)
    assert model.reduction.base(model.reduction.standard_values(base)) == pytest.approx(base)


@pytest.mark.parametrize('name', ['puma560', 'seven_axis', 'tx40'])
def test_choice_does_not_depend_on_the_random_states(name):
    robot = load_robot(name)
    blocks = all_blocks(robot)
    first = reduce_numeric(robot, blocks)
    for seed in range(3):
        other = reduce_numeric(robot, blocks, np.random.default_rng(seed))
        assert np.array_equal(first.kept, other.kept)
        assert other.matrix == pytest.approx(first.matrix, abs=1e-8)


def test_small_robots_reduce_like_large_ones():
    """Lengths in the size of a finger: the scale of the columns must not decide."""
    robot = load_robot('ur10e')
    for factor in (0.01, 100.0):
        scaled = replace(robot, translations=factor * robot.translations)
        reduction = reduce_numeric(scaled, (RigidLinks(scaled),))
        assert len(reduction.kept) == 36
        assert reduction.names == reduce_numeric(robot, (RigidLinks(robot),)).names


def test_matrix_is_the_identity_on_the_kept_columns():
    robot = load_robot('seven_axis')
    reduction = reduce_numeric(robot, all_blocks(robot))
    assert np.array_equal(reduction.matrix[:, reduction.kept], np.eye(len(reduction.kept)))
    # leftmost: a dependent column combines only columns before it
    for i in set(range(len(reduction.standard))) - set(reduction.kept.tolist()):
        assert np.all(reduction.kept[np.abs(reduction.matrix[:, i]) > 0.0] < i)


@pytest.mark.parametrize('seed', range(12))
def test_rank_and_space_are_those_of_pinocchios_regressor(seed):
    rng = np.random.default_rng(300 + seed)
    text = random_urdf(rng, int(rng.integers(1, 8)), 0.0 if seed % 2 == 0 else 0.5)
    robot = robot_from_urdf(text)
    peer = Peer.of(pin.buildModelFromXML(text), robot)
    states = random_states(robot, 60, rng)
    tall = np.concatenate([
        peer.regressor(q, v, a) for q, v, a in
        zip(states.position, states.velocity, states.acceleration)])
    reduction = reduce_numeric(robot, (RigidLinks(robot),))
    norms = np.linalg.norm(tall, axis=0)
    unit = tall / np.where(norms > 1e-9 * norms.max(), norms, np.inf)
    assert len(reduction.kept) == np.linalg.matrix_rank(unit, tol=1e-7)
    rebuilt = tall[:, reduction.kept] @ reduction.matrix
    assert rebuilt == pytest.approx(tall, abs=1e-7 * norms.max())


def test_without_gravity_the_masses_of_a_prismatic_axis_stay():
    text = ('<robot name="r"><link name="b"/><link name="s"><inertial><mass value="2"/><inertia '
            'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" '
            'type="prismatic"><parent link="b"/><child link="s"/><axis xyz="0 0 1"/><limit '
            'lower="0" upper="1" velocity="1" effort="1"/></joint></robot>')
    robot = robot_from_urdf(text).with_gravity(np.zeros(3))
    reduction = reduce_numeric(robot, (RigidLinks(robot),))
    assert reduction.labels == ('m1',)
    with_gravity = dynamics.inverse_dynamics(robot, [[0.0]], [[0.0]], [[3.0]])
    assert with_gravity == pytest.approx(np.array([[6.0]]), rel=SAME_FORMULA)


def test_robot_that_nothing_moves_is_refused():
    robot = load_robot('planar_3r')
    with pytest.raises(RobotError, match='no parameter influences'):
        reduce_numeric(robot, (Empty(),))


class Empty:
    """A block whose parameter does nothing."""

    names = ('nothing',)

    def history(self, samples):
        """Return no signals."""
        return np.empty((0, len(samples)))

    def fill(self, samples, history, chosen, out):
        """Leave the columns zero."""
