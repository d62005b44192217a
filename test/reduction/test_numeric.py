"""reduction/numeric.py: its steps against closed forms, and its bounds from both sides."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from chains import chain

from robot_dynid.effects import JointFriction, RigidLinks, axes_of
from robot_dynid.effects.effect import Effect
from robot_dynid.errors import RobotError
from robot_dynid.friction import Coulomb
from robot_dynid.reduction.base import MAX_REDUCED_JOINTS, Reduction, check_size
from robot_dynid.reduction.numeric import (
    COMBINED,
    MEASURED,
    PRIOR,
    combinations,
    entries,
    full_rank,
    full_regressor,
    generic_regressor,
    independent_columns,
    kind_of,
    length_of,
    origins,
    pace_of,
    paced,
    parameter_sizes,
    random_states,
    reduce_columns,
    row_echelon,
    row_space,
    similar_columns,
    states_at,
)
from robot_dynid.robot.model import PRISMATIC, REVOLUTE
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray

X, Y, Z = np.eye(3)
#: the base far away, then 0.5 m to a rail and 0.4 m to a wrist
CRANE = chain([REVOLUTE, PRISMATIC, REVOLUTE], np.tile(np.eye(3), (3, 1, 1)),
              [[7.0, 0.0, 0.0], [0.3, 0.0, 0.4], [0.0, 0.4, 0.0]], [Z, X, Y])
LINKS = (RigidLinks(CRANE),)


def test_length_is_the_longest_distance_between_joints() -> None:
    assert length_of(CRANE) == pytest.approx(0.5)
    alone = chain([REVOLUTE], [np.eye(3)], [[7.0, 0.0, 0.0]], [Z])
    assert length_of(alone) == 1.0
    assert parameter_sizes(2, 0.5).tolist() == 2 * [0.25, *3 * [0.5], *6 * [1.0]]


@pytest.mark.parametrize('gravity', [[0.0, 0.0, -9.81], [3.0, 0.0, -4.0], [0.0, 0.0, 0.0]])
def test_pace_makes_weight_and_inertia_matter_equally(gravity: list[float]) -> None:
    weight = 5.0 if gravity[0] else 9.81  # that of the earth for robots in space, too
    assert pace_of(CRANE.with_gravity(gravity)) == pytest.approx(0.2 * np.sqrt(weight / 0.5))


def test_paced_states_and_columns_are_in_lengths_and_paces_of_the_robot() -> None:
    states = random_states(CRANE, 4, np.random.default_rng(0))
    moved, pace = paced(CRANE, states), pace_of(CRANE)
    size = np.array([1.0, 0.5, 1.0])
    np.testing.assert_allclose(moved.position, size * states.position, rtol=1e-12)
    np.testing.assert_allclose(moved.velocity, pace * size * states.velocity, rtol=1e-12)
    np.testing.assert_allclose(
        moved.acceleration, pace**2 * size * states.acceleration, rtol=1e-12)
    np.testing.assert_allclose(similar_columns(CRANE, LINKS, moved), generic_regressor(
        CRANE, LINKS, moved) * size[:, None, None], rtol=1e-12)


def test_random_states_are_unrelated_and_as_fast_as_stated() -> None:
    states = random_states(CRANE, 500, np.random.default_rng(0))
    assert states.starts == tuple(range(500)) and states.time.tolist() == list(range(500))
    for signal, most in ((states.position, 3.0), (states.velocity, 6.0),
                         (states.acceleration, 12.0)):
        assert signal.shape == (500, 3)
        assert -most <= signal.min() < -0.98 * most and 0.98 * most < signal.max() <= most
    slow = states_at(CRANE, 0.3)
    assert len(slow) == 50
    assert np.sqrt(np.mean(slow.velocity**2)) == pytest.approx(0.3)
    share = slow.acceleration / random_states(CRANE, 50, np.random.default_rng(0)).acceleration
    assert share == pytest.approx(slow.velocity / random_states(
        CRANE, 50, np.random.default_rng(0)).velocity)


def test_entries_are_those_of_the_structure() -> None:
    robot = load_robot('planar_3r')
    blocks = RigidLinks(robot), JointFriction(axes_of(robot), (Coulomb(),) * 3)
    found = entries(robot, blocks)
    shown = full_regressor(robot, blocks, random_states(robot, 5, np.random.default_rng(1)))
    assert found.tolist() == np.any(shown != 0.0, axis=2).tolist()
    assert found[:, 30:].tolist() == np.repeat(np.eye(3, dtype=bool), 3, axis=1).tolist()
    assert found[:, 9:30:10].tolist() == np.triu(np.ones((3, 3), dtype=bool)).tolist()


@pytest.mark.parametrize(('rest', 'independent'), [(0.0012, [1, 3]), (0.0008, [3])])
def test_columns_are_independent_from_their_tolerance_on(
    rest: float, independent: list[int]
) -> None:
    """Beside zeros and a column of length 1000, whose rounding must not count either."""
    rng = np.random.default_rng(0)
    one, other, third = np.linalg.qr(rng.normal(size=(6, 3)))[0].T
    tall = np.column_stack([0.0 * one, 1000.0 * one, 30.0 * one + rest * other,
                            2.0 * third, one - 0.5 * third])
    expected = sorted({1, 3} | ({2} if 1 in independent else set()))
    assert independent_columns(tall, 0.001).tolist() == expected


def test_combinations_have_sizes_and_no_rounding() -> None:
    one, other = np.eye(4)[:2]
    tall = np.column_stack([one, other, 3.0 * one + 1.2e-3 * other, 2.0 * other + 2.2e-3 * one])
    found = combinations(tall, np.array([0, 1]), np.array([2.0, 5.0, 0.5, 10.0]), 1e-3)
    np.testing.assert_allclose(found, [
        [1.0, 0.0, 3.0 * 0.5 / 2.0, 0.0], [0.0, 1.0, 0.0, 2.0 * 10.0 / 5.0]], rtol=1e-9)
    found = combinations(tall, np.array([0, 1]), np.ones(4), 0.5e-3)
    np.testing.assert_allclose(found, [
        [1.0, 0.0, 3.0, 2.2e-3], [0.0, 1.0, 1.2e-3, 2.0]], rtol=1e-9)


def test_full_rank_is_by_shares_of_each_column() -> None:
    one, other, third = np.eye(5)[:3]
    tall = np.column_stack([
        200.0 * one, 0.0 * one, 7.0 * one + 7.7e-3 * other, 0.19 * third,  # 0.95e-3 of the largest
        5.0 * one + 4.5e-3 * third, 0.4 * other])
    pivots, matrix = full_rank(tall, 1e-3)
    assert pivots.tolist() == [0, 2]
    assert matrix[:, pivots].tolist() == np.eye(2).tolist()
    assert matrix[0] == pytest.approx(
        [1.0, 0.0, 0.0, 0.0, 0.025, -0.4 / 7.7e-3 * 7.0 / 200.0], rel=1e-9)
    assert matrix[1] == pytest.approx([0.0, 0.0, 1.0, 0.0, 0.0, 0.4 / 7.7e-3], rel=1e-9)
    none, nothing = full_rank(np.zeros((3, 2)), 1e-3)
    assert none.tolist() == [] and nothing.shape == (0, 2)


class Named(Effect):
    """A block with three parameters."""

    names = ('a', 'b', 'c')


def nearly_dependent(least: float) -> tuple[Reduction, FloatArray]:
    """Return the reduction of unit columns a, b and nearly (a + b) / 2^0.5, and these columns.

    ``least`` is their least singular value.
    """
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 3)))[0]
    angle = 2.0 * np.arcsin(least / np.sqrt(2.0))
    middle = (basis[:, 0] + basis[:, 1]) / np.sqrt(2.0)
    tall = np.column_stack([basis[:, :2], np.cos(angle) * middle + np.sin(angle) * basis[:, 2]])
    columns = (tall * [4.0, 5.0, 0.5]).T[None]
    return reduce_columns(SimpleNamespace(name='arm'), (Named(),), columns), tall  # type: ignore[arg-type]


@pytest.mark.parametrize(('least', 'rank', 'doubt'), [
    (3.2e-3, 3, False), (2.8e-3, 3, True), (1.2e-4, 3, True), (0.85e-4, 2, True),
    (3.6e-6, 2, True), (3.1e-6, 2, False)])
def test_rank_and_doubts_are_by_singular_values(least: float, rank: int, doubt: bool) -> None:
    found, tall = nearly_dependent(least)
    values = np.linalg.svd(tall, compute_uv=False)
    assert values[2] == pytest.approx(least, rel=1e-3)
    assert found.standard == ('a', 'b', 'c') and found.names == ('a', 'b', 'c')[:rank]
    gap = values[2] / np.finfo(float).eps if rank == 3 else values[1] / values[2]
    assert found.gap == pytest.approx(gap, rel=1e-6)
    if rank == 2:
        assert found.matrix[:, 2] == pytest.approx(
            np.sqrt(0.5) * 0.5 / np.array([4.0, 5.0]), rel=1e-3)
    assert found.warnings == ((
        f'arm: the number of base parameters is uncertain (gap {gap:.1g}), because c hardly '
        'affect the efforts: give the angles of the description with all digits (1.570796, not '
        '1.57)',) if doubt else ())


def test_columns_of_links_are_in_lengths_and_paces_and_others_in_their_norms() -> None:
    """Of full rank the gap is the least singular value over rounding."""
    columns = np.random.default_rng(0).normal(size=(3, 33, 20))
    columns[:, 1] *= 50.0
    found = reduce_columns(CRANE, (Named(), *LINKS), columns)
    tall = columns.transpose(0, 2, 1).reshape(60, 33) / np.sqrt(60.0)
    tall[:, :3] /= np.linalg.norm(tall[:, :3], axis=0)
    tall[:, 3:] /= pace_of(CRANE)**2 * parameter_sizes(3, 0.5)
    assert found.pivots.tolist() == list(range(33))
    assert found.gap == pytest.approx(
        np.linalg.svd(tall)[1][-1] / np.finfo(float).eps, rel=1e-6)


@pytest.mark.parametrize(('coefficient', 'pivots'), [(95.0, [0, 1]), (105.0, [0, 2])])
def test_pivots_are_leftmost_up_to_coefficients_of_a_hundred(
    coefficient: float, pivots: list[int]
) -> None:
    """The third column is so many times the difference of the others."""
    tall = np.array([[1.0, 1.0, 0.0], [0.0, 1.0 / coefficient, 1.0]])
    found, matrix = row_echelon(tall, row_space(tall)[1][:2], np.ones(3))
    assert found.tolist() == pivots
    np.testing.assert_allclose(tall[:, found] @ matrix, tall, rtol=0.0, atol=1e-12)


def test_no_effort_is_refused() -> None:
    with pytest.raises(RobotError, match='arm: no parameter affects a joint effort'):
        reduce_columns(SimpleNamespace(name='arm'), (Named(),), np.zeros((2, 3, 4)))  # type: ignore[arg-type]


def test_robots_of_more_than_64_joints_are_refused() -> None:
    assert MAX_REDUCED_JOINTS == 64
    check_size(SimpleNamespace(name='arm', n=64))  # type: ignore[arg-type]
    with pytest.raises(RobotError, match=r'^arm has 65 joints, more than 64: list those that '
                                         r'move under "joints" in a robot YAML, which locks the '
                                         r'others$'):
        check_size(SimpleNamespace(name='arm', n=65))  # type: ignore[arg-type]


def test_origins_name_the_cheapest_measurement_that_separates() -> None:
    """A weighed mass, a balanced first moment, an inertia, another parameter, in this order."""
    names = ('m1', 'Ixx1', 'mx2', 'Iyy2', 'my3', 'Ia3', 'Ib3', 'Izz4', 'fv4', 'm12')
    matrix = np.zeros((5, 10))
    for row, entering in enumerate(([1, 0], [3, 2], [5, 4], [6, 7], [8])):
        matrix[row, entering] = [1.0, -3.0][:len(entering)]
    pivots = np.array([1, 3, 5, 6, 8])
    found = origins(Reduction(names, pivots, matrix, 1.0), {'Ib3'})
    assert [(o.kind, o.base, o.separated_by) for o in found] == [
        (COMBINED, (0,), 'm1'), (COMBINED, (0,), 'm1'), (COMBINED, (1,), 'mx2'),
        (COMBINED, (1,), 'mx2'), (COMBINED, (2,), 'my3'), (COMBINED, (2,), 'my3'),
        (PRIOR, (3,), 'Izz4'), (COMBINED, (3,), 'Izz4'), (MEASURED, (4,), ''), (PRIOR, (), 'm12')]
    assert [kind_of(name) for name in ('m12', 'Ixx3', 'Ia3', 'fv4')] == ['m', 'Ixx', '', '']


#: parameters by what it takes to measure them alone
EFFORTS = (('m',), ('mx', 'my', 'mz'), ('Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz'), ('fc', 'Ia'))


@pytest.mark.parametrize(('kind', 'effort'), [
    (kind, effort) for effort, kinds in enumerate(EFFORTS) for kind in kinds])
def test_of_two_parameters_the_one_of_less_effort_is_measured(kind: str, effort: int) -> None:
    """Of equal effort each by itself."""
    for other, kinds in enumerate(EFFORTS):
        for one in kinds:
            names = (f'{kind}1', f'{one}2')
            found = origins(Reduction(names, np.array([0]), np.array([[1.0, -3.0]]), 1.0))
            assert [o.separated_by for o in found] == [
                names[effort > other], names[effort >= other]]


@pytest.mark.parametrize(('off', 'same'), [(4e-4, True), (5e-4, False)])
def test_rows_of_open_directions_that_differ_are_not_separated_together(
    off: float, same: bool
) -> None:
    """The cosine of directions (1, -3) and (1, -3 - off) is one but for off^2 / 200."""
    matrix = np.array([[1.0, 0.0, 1.0, -3.0], [0.0, 1.0, 1.0, -3.0 - off]])
    found = origins(Reduction(('m1', 'Ixx1', 'Iyy1', 'Izz1'), np.array([0, 1]), matrix, 1.0))
    assert [o.separated_by for o in found] == ['m1', 'm1' if same else 'Ixx1', 'Iyy1', 'Izz1']
