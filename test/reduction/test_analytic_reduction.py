"""reduction/analytic.py: theorem 2 of Lin 1991 with all its cases, against the rank of the
regressor and Pinocchio's."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from tolerances import COEFFICIENT, SAME_SPACE

pytest.importorskip('pinocchio')
from chains import chain, dimensionless, pinocchio_regressor, random_chain, stanford_arm
from random_robots import random_urdf

from robot_dynid.effects import JointFriction, RigidLinks, RotorInertia, axes_of
from robot_dynid.errors import UsageError
from robot_dynid.reduction import reduce_analytic, reduce_numeric
from robot_dynid.reduction.analytic import inertia_constants
from robot_dynid.reduction.numeric import length_of, parameter_sizes, random_states
from robot_dynid.robot.inertia import rotation_about
from robot_dynid.robot.model import PRISMATIC, REVOLUTE
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf

X, Y, Z = np.eye(3)
CHAINS = 300


def sine_between(rows, others):
    """Return the sine of the largest principal angle between two row spaces of one dimension."""
    a, b = (np.linalg.qr(matrix.T)[0] for matrix in (rows, others))
    return np.linalg.norm(b - a @ (a.T @ b), 2)


def cases(robot):
    """Return the cases of the theorem a chain shows."""
    names = inertia_constants(robot).names
    revolute = robot.types == REVOLUTE
    first = int(np.argmax(revolute)) if revolute.any() else robot.n
    second = next((int(c[2:c.index(')')]) - 1 for c in names if ')11-' in c), robot.n)
    found = {'no revolute' if first == robot.n else 'no s' if second == robot.n else 'r and s',
             'gravity' if np.any(robot.gravity) else 'no gravity'}
    if first < robot.n and f'(k{first + 1})x' not in names:
        found.add('gravity along r')
    for j in range(robot.n):
        if revolute[j]:
            if first < j < second:
                found.add('sideways' if f'(k{j + 1})x' in names else 'not sideways')
            elif j >= second and f'(k{j + 1})x' not in names:
                found.add('resting point')
            continue
        place = 'before r' if j < first else 'between' if j < second else 'after s'
        own = sum(f'(k{j + 1})' in name for name in names)
        found.add(f'prismatic {place}, {own} of k')
    return found


ALL_CASES = {
    'no revolute', 'no s', 'r and s', 'gravity', 'no gravity', 'gravity along r', 'sideways',
    'not sideways', 'resting point', 'prismatic before r, 0 of k', 'prismatic between, 0 of k',
    'prismatic between, 2 of k', 'prismatic after s, 3 of k',
}


@pytest.mark.parametrize('part', range(6))
def test_reduce_analytic_agrees_with_reduce_numeric_on_random_chains(part):
    """Equal kept sets, equal matrices, equal spaces: 300 chains in six parts."""
    for seed in range(part * CHAINS // 6, (part + 1) * CHAINS // 6):
        robot = random_chain(np.random.default_rng(seed), 1 + seed % 7)
        analytic, numeric = reduce_analytic(robot), reduce_numeric(robot, (RigidLinks(robot),))
        assert analytic.names == numeric.names, seed
        sizes = parameter_sizes(robot.n, length_of(robot))
        assert dimensionless(robot, analytic) == pytest.approx(
            dimensionless(robot, numeric), abs=COEFFICIENT), seed
        rows = inertia_constants(robot).rows
        assert sine_between(rows / sizes, numeric.matrix / sizes) < SAME_SPACE, seed
        assert numeric.gap > 1e6
        assert numeric.warnings + analytic.warnings == ()


def test_the_random_chains_hold_all_cases():
    """Each of them at least five times."""
    counts = Counter(case for seed in range(CHAINS)
                     for case in cases(random_chain(np.random.default_rng(seed), 1 + seed % 7)))
    assert set(counts) == ALL_CASES
    assert min(counts.values()) >= 5, counts


@pytest.mark.parametrize('seed', range(0, CHAINS, 3))
def test_rank_is_that_of_pinocchios_regressor(seed):
    robot = random_chain(np.random.default_rng(seed), 1 + seed % 7)
    states = random_states(robot, 15 + 3 * 10, np.random.default_rng(1))
    tall = pinocchio_regressor(robot, states.position, states.velocity, states.acceleration)
    values = np.linalg.svd(tall / np.sqrt(len(tall)), compute_uv=False)
    rank = len(reduce_analytic(robot).pivots)
    assert values[rank - 1] > 1e-5
    assert np.all(values[rank:] < 1e-10)


def arm(types, axes, offsets=None, gravity=(0.0, 0.0, -9.81)):
    """Return a chain with parallel frames: types such as 'RPR', axes and offsets by joint."""
    n = len(types)
    kinds = [PRISMATIC if t == 'P' else REVOLUTE for t in types]
    places = np.zeros((n, 3)) if offsets is None else offsets
    return chain(kinds, np.tile(np.eye(3), (n, 1, 1)), places, axes, gravity=gravity)


STILL = (0.0, 0.0, 0.0)
CASES = {
    # no revolute joint: masses only, parallel rails or not
    'three rails': (arm('PPP', [X, Y, Z]), 'm^1 m^2 m^3'),
    'two parallel rails': (arm('PP', [X, X], gravity=STILL), 'm^1 m^2'),
    # one joint, gravity along it or not
    'turntable': (arm('R', [Z]), '(U1)33'),
    'pendulum': (arm('R', [X]), '(U1)33 (k1)x (k1)y'),
    'pendulum in space': (arm('R', [X], gravity=STILL), '(U1)33'),
    'pendulum on an asteroid': (arm('R', [X], gravity=(0.0, 0.0, -0.1)), '(U1)33 (k1)x (k1)y'),
    # all axes parallel to gravity (SCARA): the first moment of link 1 does not matter
    'scara': (arm('RRPR', [Z] * 4, [0 * X, X, X, 0 * X]),
              '(U1)33 (U2)33 (k2)x (k2)y m^3 (U4)33 (k4)x (k4)y'),
    'coaxial turntables': (arm('RR', [Z, -Z], [0 * X, 0.4 * Z]), '(U1)33 (U2)33'),
    # a rail before r: moved across r it shows the first moments, moved along it does not
    'turntable on a rail': (arm('PR', [X, Z]), 'm^1 (U2)33 (k2)x (k2)y'),
    'turntable on a lift': (arm('PR', [Z, Z]), 'm^1 (U2)33'),
    # rails between r and s: along r only their mass, across it two more
    'cylindrical': (arm('RPP', [Z, Z, X]), '(U1)33 m^2 m^3 -(k3)y (k3)z'),
    'oblique': (arm('RP', [Z, (X + Z) / np.sqrt(2.0)]),
                '(U1)33 m^2 -0.707107*(k2)y 0.5*(k2)x+0.5*(k2)z'),
    # after s all of k
    'rail after s': (arm('RRP', [Z, X, Z]),
                     '(U1)33 (U2)11-(U2)22 (U2)33 (U2)12 (U2)13 (U2)23 (k2)x (k2)y '
                     'm^3 (k3)x (k3)y (k3)z'),
    # without gravity a wrist about a resting point has no first moments; an offset shows them
    'wrist in space': (arm('RR', [Z, X], [0 * X, 0.5 * X], STILL),
                       '(U1)33 (U2)11-(U2)22 (U2)33 (U2)12 (U2)13-0.5*(k2)x (U2)23-0.5*(k2)y'),
    'offset wrist in space': (arm('RR', [Z, X], [0 * X, 0.5 * Y], STILL),
                              '(U1)33 (U2)11-(U2)22 (U2)33 (U2)12 (U2)13 (U2)23 (k2)x (k2)y'),
}


@pytest.mark.parametrize('name', CASES)
def test_cases_of_the_theorem(name):
    robot, expected = CASES[name]
    constants = inertia_constants(robot)
    assert len(constants.names) == len(expected.split())
    numeric = reduce_numeric(robot, (RigidLinks(robot),))
    assert numeric.names == reduce_analytic(robot).names
    sizes = parameter_sizes(robot.n, length_of(robot))
    assert sine_between(constants.rows / sizes, numeric.matrix / sizes) < SAME_SPACE
    assert ' '.join(constants.names) == expected


def test_stanford_arm_has_the_set_of_the_source():
    """Section 4: 1 + 7 * 4 + 1 + 3 constants."""
    seven = ('(U{0})11-(U{0})22', '(U{0})33', '(U{0})12', '(U{0})13', '(U{0})23', '(k{0})x',
             '(k{0})y')
    expected = {'(U1)33', 'm^3', '(k3)x', '(k3)y', '(k3)z'} | {
        name.format(j) for name in seven for j in (2, 4, 5, 6)}
    robot = stanford_arm()
    constants = inertia_constants(robot)
    assert set(constants.names) == expected
    assert len(constants.names) == 33
    values = dict(zip(constants.names, constants.rows @ robot.nominal.ravel()))
    assert values['(U2)33'] == pytest.approx(4.4053, abs=5e-5)
    assert values['(k3)z'] == pytest.approx(-2.74, abs=5e-5)


def test_wrist_in_space_differs_from_the_theorem_as_printed():
    """Joints 2 and 3 through one resting point: item 2 would count four constants too many."""
    robot = arm('RRR', [Z, X, Y], gravity=STILL)
    numeric = reduce_numeric(robot, (RigidLinks(robot),))
    assert len(numeric.pivots) == len(reduce_analytic(robot).pivots) == 1 + 7 + 7 - 4
    there = robot.with_gravity([0.0, 0.0, -9.81])
    assert len(reduce_numeric(there, (RigidLinks(there),)).pivots) == 1 + 7 + 7


def tilted(angle):
    """Return three parallel axes in gravity of which the second is tilted."""
    upright = arm('RRR', [Z, Z, Z], [0 * X, 0.4 * X, 0.3 * X], -9.81 * Y)
    turns = np.array([np.eye(3), rotation_about([0.6, 0.8, 0.0], angle), np.eye(3)])
    return replace(upright, rotations=turns)


@pytest.mark.parametrize('angle', [3.3e-7, 3.7e-6, 1e-5, 1e-4, 1e-3, 5e-3])
def test_nearly_parallel_axes_are_doubtful_for_both(angle):
    """1.570796 and 1.5708 for pi/2, and what a calibration finds: warnings name what hangs on it.
    """
    robot = tilted(angle)
    numeric, analytic = reduce_numeric(robot, (RigidLinks(robot),)), reduce_analytic(robot)
    for warnings in (numeric.warnings, analytic.warnings):
        (warning,) = warnings
        assert 'uncertain' in warning and '1.57' in warning
    assert '(U2)13' in analytic.warnings[0]
    assert any(f'I{axes}' in numeric.warnings[0] for axes in ('xx', 'xy', 'yy', 'xz', 'yz'))
    if angle < 5e-6:  # rounding of the description: as if parallel
        assert numeric.names == analytic.names == reduce_analytic(tilted(0.0)).names


@pytest.mark.parametrize(('angle', 'size'), [(0.0, 9), (2e-10, 9), (2.7e-8, 9), (0.05, 17)])
def test_parallel_and_tilted_axes_are_not_doubtful(angle, size):
    robot = tilted(angle)
    numeric, analytic = reduce_numeric(robot, (RigidLinks(robot),)), reduce_analytic(robot)
    assert numeric.warnings + analytic.warnings == ()
    assert numeric.names == analytic.names
    assert len(numeric.pivots) == size


def test_further_blocks_are_refused():
    robot = load_robot('planar_3r')
    axes = axes_of(robot)
    with pytest.raises(UsageError, match=r'RotorInertia.*numeric'):
        reduce_analytic(robot, (RigidLinks(robot), RotorInertia(axes)))
    with pytest.raises(UsageError, match=r'JointFriction.*numeric'):
        reduce_analytic(robot, (JointFriction(axes, ()),))


def test_reduce_analytic_agrees_with_reduce_numeric_on_random_trees():
    """URDFs with branches and fixed joints, axes askew, gravity along the base's axes or not."""
    branching = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        robot = robot_from_urdf(random_urdf(rng, 1 + seed % 6, 0.5))
        robot = robot.with_gravity([(0.0, 0.0, -9.81), STILL, (1.0, 2.0, -9.0)][seed % 3])
        branching += bool(np.any(robot.parents != np.arange(robot.n) - 1))
        analytic, numeric = reduce_analytic(robot), reduce_numeric(robot, (RigidLinks(robot),))
        assert analytic.names == numeric.names, seed
        constants = inertia_constants(robot)
        sizes = parameter_sizes(robot.n, length_of(robot))
        assert sine_between(constants.rows / sizes, numeric.matrix / sizes) < SAME_SPACE, seed
    assert branching > 20


def test_constants_as_combinations():
    """Labels, nominal values and coefficients of the printed constants say the same."""
    robot = stanford_arm()
    constants = inertia_constants(robot)
    values = constants.values(robot)
    known = dict(zip(constants.standard, robot.nominal.ravel()))
    for label, row, value in zip(constants.labels, constants.rows, values):
        told = sum(float(f'{sign or ""}{size or 1.0}') * known[name] for sign, size, name in
                   re.findall(r'(-)? ?(?:\+ )?(?:([\d.e-]+)\*)?([A-Za-z]+\d)', label))
        assert told == pytest.approx(value, abs=1e-5)
        assert row @ robot.nominal.ravel() == pytest.approx(value)


def test_gap_of_the_analytic_reduction_is_not_measured():
    assert reduce_analytic(load_robot('puma560')).gap == float('inf')


def tilted_pair(angle):
    """Return two axes an angle from parallel, half a metre apart, gravity across them."""
    return arm('RR', [Z, [0.0, np.sin(angle), np.cos(angle)]], [0 * X, 0.5 * X], -9.81 * Y)


@pytest.mark.parametrize(('angle', 'parallel', 'doubtful'), [
    (0.9e-7, True, False), (1.2e-7, True, True), (0.9e-5, True, True), (1.1e-5, False, True),
    (0.95e-2, False, True), (1.05e-2, False, False)])
def test_axes_are_parallel_and_doubtful_by_their_angle(angle, parallel, doubtful):
    """Parallel up to 1e-5 rad; doubtful a hundred times below and a thousand times above."""
    robot = tilted_pair(angle)
    assert len(inertia_constants(robot).names) == (6 if parallel else 10)
    found = reduce_analytic(robot).warnings
    names = sorted(['(U2)11-(U2)22', '(U2)12', '(U2)13', '(U2)23'])
    assert found == ((
        'chain: the number of base parameters is uncertain, because axes are nearly parallel or '
        f'nearly intersect and {", ".join(names)} hardly matter: give the angles of the '
        'description with all digits (1.570796, not 1.57)',) if doubtful else ())


@pytest.mark.parametrize(('off', 'coaxial'), [(0.9e-5, True), (1.1e-5, False)])
def test_axes_coincide_by_their_distance_in_lengths_of_the_robot(off, coaxial):
    """Turntables on a column of 2 m, the upper one off its axis: two metres are one length."""
    robot = arm('RRR', [Z, Z, Z], [0 * X, 0.3 * Z + 2.0 * off * X, 2.0 * Z - 2.0 * off * X])
    names = inertia_constants(robot).names
    assert names[0] == '(U1)33' and ('(k2)x' in names) is not coaxial
    assert '(k3)x' not in names[:1]
    assert ('(k2)y' in names) is not coaxial


def test_labels_and_values_are_without_the_rounding_of_angles():
    constants = inertia_constants(load_robot('planar_3r'))
    rows = np.array([[3.0, 2.7e-8, -3.3e-8, 0.0], [-1.0, 0.9e-8, 5.0, -1.0]])
    exact = replace(constants, names=('a', 'b'), rows=rows, joints=np.zeros(2, dtype=np.int64),
                    standard=('p', 'q', 'r', 's'))
    assert exact.clean_rows.tolist() == [[3.0, 0.0, -3.3e-8, 0.0], [-1.0, 0.0, 5.0, -1.0]]
    assert exact.labels == ('3*p - 3.3e-08*r', '5*r - p - s')
    rows = np.zeros((2, 40))  # those of the second and third link begin with one of their own
    rows[:, [3, 10, 14, 20, 24, 30]] = [7.0, 5.0, 1.0, -9.0, 0.5, 11.0]
    own = replace(exact, rows=rows, joints=np.array([1, 2]), standard=tuple(
        f'p{i}' for i in range(40)))
    assert own.labels == ('5*p10 + 7*p3 + p14 - 9*p20 + 0.5*p24 + 11*p30',
                          '-9*p20 + 7*p3 + 5*p10 + p14 + 0.5*p24 + 11*p30')
