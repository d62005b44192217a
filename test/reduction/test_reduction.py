"""reduction/: minimal parameter sets: known sizes, Pinocchio's rank, and the torque they preserve.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tolerances import COEFFICIENT, SAME_FORMULA

pin = pytest.importorskip('pinocchio')
from chains import chain, dimensionless, random_chain  # noqa: E402
from random_robots import Peer, random_urdf  # noqa: E402

from robot_dynid.dynamics import rigid_body  # noqa: E402
from robot_dynid.effects import JointFriction, RigidLinks, RotorInertia, axes_of  # noqa: E402
from robot_dynid.effects.effect import Effect  # noqa: E402
from robot_dynid.errors import RobotError  # noqa: E402
from robot_dynid.estimation.experiment import TorqueModel  # noqa: E402
from robot_dynid.friction import Coulomb  # noqa: E402
from robot_dynid.reduction import METHODS, reduce_numeric  # noqa: E402
from robot_dynid.reduction.base import combination_label  # noqa: E402
from robot_dynid.reduction.numeric import full_regressor, random_states  # noqa: E402
from robot_dynid.robot.inertia import rotation_about  # noqa: E402
from robot_dynid.robot.robot_file import load_robot  # noqa: E402
from robot_dynid.robot.urdf import robot_from_urdf  # noqa: E402

ROBOTS = ('planar_3r', 'puma560', 'stanford_arm', 'ur10e', 'tx40', 'seven_axis')


def all_blocks(robot):
    """Return links, rotors and friction of a robot."""
    axes = axes_of(robot)
    laws = tuple(Coulomb() for _ in axes.labels)
    return RigidLinks(robot), RotorInertia(axes), JointFriction(axes, laws)


def torque(robot, blocks, states, parameters):
    """Return the torque (n, N) of standard parameters."""
    return np.einsum('ikn,k->in', full_regressor(robot, blocks, states), parameters)


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
    np.testing.assert_allclose(model.effort(states, base).T, expected, rtol=0.0, atol=1e-9 * scale)
    again = torque(robot, model.blocks, states, model.reduction.standard_values(base))
    assert again == pytest.approx(expected, abs=1e-9 * scale)
    assert model.reduction.base(model.reduction.standard_values(base)) == pytest.approx(base)


def test_labels_of_a_coupled_angle_have_sensible_digits():
    """A link of 1/3 m at 30 degrees: no rounding shows, no coefficient is longer than six digits.
    """
    turn = np.deg2rad(30.0)
    rotations = [np.eye(3), rotation_about([0.0, 0.0, 1.0], turn)]
    robot = chain([0, 0], rotations, [[0.0] * 3, [1.0 / 3.0, 0.0, 0.0]], [[0.0, 0.0, 1.0]] * 2,
                  gravity=[0.0, -9.81, 0.0])
    for method in METHODS.values():
        assert method(robot, (RigidLinks(robot),)).labels == (
            'mx1 + 0.333333*m2', 'my1', 'Izz1 + 0.111111*m2', 'mx2', 'my2', 'Izz2')


@pytest.mark.parametrize('seed', range(15))
def test_no_rounding_shows_in_labels(seed):
    robot = random_chain(np.random.default_rng(seed), 5)
    for name in (word for label in reduce_numeric(robot, (RigidLinks(robot),)).labels
                 for word in label.split() if '*' in word):
        factor = name.partition('*')[0]
        assert 1e-7 < float(factor) < 1e7
        assert len(factor.replace('.', '').lstrip('0').partition('e')[0]) <= 6


def test_coefficients_below_rounding_are_not_shown():
    """Beside gear ratios of hundreds, rounding leaves coefficients of 1e-9."""
    row = np.array([1.0, -3.1e-9, 1e-6, 0.0])
    assert combination_label(row, ('K1', 'mx1', 'm2', 'm3'), 0) == 'K1 + 1e-06*m2'
    row = np.array([9e-8, -8.0, -1.1e-7, 0.5, -1.0])
    assert combination_label(row, ('a', 'b', 'c', 'd', 'e'), 1) == '-8*b + 9e-08*a - 1.1e-07*c ' \
        '+ 0.5*d - e'
    row[[0, 2]] = 7.5e-8, -8.5e-8
    assert combination_label(row, ('a', 'b', 'c', 'd', 'e'), 3) == \
        '0.5*d - 8*b - 8.5e-08*c - e'


def test_coincident_frames_are_reduced():
    """Two joints on one axis through one point: the inner link adds but its moment about it."""
    robot = chain([0, 0, 0], [np.eye(3)] * 3, np.zeros((3, 3)),
                  [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    numeric = reduce_numeric(robot, (RigidLinks(robot),))
    assert numeric.names[:2] == ('Izz1', 'Izz2')
    assert len(numeric.pivots) == 1 + 1 + 7
    assert numeric.gap > 1e9
    assert METHODS['analytic'](robot, ()).labels == numeric.labels


@pytest.mark.parametrize('name', ['puma560', 'seven_axis', 'tx40'])
def test_choice_does_not_depend_on_the_random_states(name):
    robot = load_robot(name)
    blocks = all_blocks(robot)
    first = reduce_numeric(robot, blocks)
    for seed in range(3):
        other = reduce_numeric(robot, blocks, np.random.default_rng(seed))
        assert np.array_equal(first.pivots, other.pivots)
        assert other.matrix == pytest.approx(first.matrix, abs=1e-8)


FACTORS = (1e-6, 1e-3, 1e3, 1e6)


@pytest.mark.parametrize('factor', FACTORS)
@pytest.mark.parametrize('seed', range(8))
def test_reduction_does_not_depend_on_the_size_of_the_robot(seed, factor):
    """Robots of a micrometre or 1000 km, grams or tons: coefficients are powers of the length."""
    rng = np.random.default_rng(500 + seed)
    robot = random_chain(rng, int(rng.integers(1, 8)))
    scaled = replace(robot, translations=factor * robot.translations,
                     nominal=factor**3 * robot.nominal)
    own = reduce_numeric(robot, (RigidLinks(robot),))
    other = reduce_numeric(scaled, (RigidLinks(scaled),), np.random.default_rng(seed))
    assert own.names == other.names
    assert own.warnings + other.warnings == ()
    assert dimensionless(scaled, other) == pytest.approx(
        dimensionless(robot, own), abs=COEFFICIENT)


@pytest.mark.parametrize('factor', [1e-3, 1e3])
def test_friction_and_rotors_reduce_alike_in_millimetres_and_kilometres(factor):
    robot = load_robot('tx40')
    scaled = replace(robot, translations=factor * robot.translations)
    assert reduce_numeric(scaled, all_blocks(scaled)).names == reduce_numeric(
        robot, all_blocks(robot)).names


def test_place_of_the_base_does_not_matter():
    robot = load_robot('puma560')
    moved = robot.translations.copy()
    moved[0] += [30.0, -20.0, 50.0]
    there = replace(robot, translations=moved)
    own, other = (reduce_numeric(r, (RigidLinks(r),)) for r in (robot, there))
    assert own.names == other.names
    assert own.labels == other.labels


def test_matrix_is_the_identity_on_the_kept_columns():
    robot = load_robot('seven_axis')
    reduction = reduce_numeric(robot, all_blocks(robot))
    assert np.array_equal(reduction.matrix[:, reduction.pivots], np.eye(len(reduction.pivots)))
    # leftmost: a dependent column combines only columns before it
    for i in set(range(len(reduction.standard))) - set(reduction.pivots.tolist()):
        assert np.all(reduction.pivots[np.abs(reduction.matrix[:, i]) > 0.0] < i)


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
    assert len(reduction.pivots) == np.linalg.matrix_rank(unit, tol=1e-7)
    rebuilt = tall[:, reduction.pivots] @ reduction.matrix
    assert rebuilt == pytest.approx(tall, abs=1e-7 * norms.max())


def test_without_gravity_the_masses_of_a_prismatic_axis_stay():
    text = ('<robot name="r"><link name="b"/><link name="s"><inertial><mass value="2"/><inertia '
            'ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" '
            'type="prismatic"><parent link="b"/><child link="s"/><axis xyz="0 0 1"/><limit '
            'lower="0" upper="1" velocity="1" effort="1"/></joint></robot>')
    robot = robot_from_urdf(text).with_gravity(np.zeros(3))
    reduction = reduce_numeric(robot, (RigidLinks(robot),))
    assert reduction.labels == ('m1',)
    with_gravity = rigid_body.inverse_dynamics(robot, [[0.0]], [[0.0]], [[3.0]])
    assert with_gravity == pytest.approx(np.array([[6.0]]), rel=SAME_FORMULA)


def test_robot_that_nothing_moves_is_refused():
    robot = load_robot('planar_3r')
    with pytest.raises(RobotError, match='no parameter affects'):
        reduce_numeric(robot, (Empty(),))


class Empty(Effect):
    """A block whose parameter does nothing."""

    names = ('nothing',)

    def fill(self, samples, history, chosen, out):
        """Leave the columns zero."""


@pytest.mark.parametrize(('tilt', 'size'), [(0.0, 6), (1e-7, 6), (0.01, 10), (1.0, 10)])
def test_axes_count_as_parallel_up_to_the_rounding_of_descriptions(tilt, size):
    """Half a degree from parallel shows every parameter that general axes show."""
    second = [0.0, np.cos(tilt), np.sin(tilt)]
    robot = chain([0, 0], [np.eye(3)] * 2, [[0.0, 0.0, 0.0], [0.5, 0.0, 0.0]],
                  [[0.0, 1.0, 0.0], second])
    assert len(reduce_numeric(robot, (RigidLinks(robot),)).pivots) == size
