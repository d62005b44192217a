"""reduction/sensor_configurations.py: what each sensor adds, whatever the order of the effects."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from chains import chain

from robot_dynid.effects import Effect, JointFriction, RigidLinks, RotorInertia, axes_of
from robot_dynid.friction import Coulomb
from robot_dynid.reduction.base import Reduction
from robot_dynid.reduction.identifiability import (
    DEPENDENT,
    INDEPENDENT,
    UNIDENTIFIABLE,
    Category,
    categories,
    lifted_by,
)
from robot_dynid.reduction.numeric import full_regressor, random_states
from robot_dynid.reduction.sensor_configurations import SENSOR_CONFIGURATIONS
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, RobotModel
from robot_dynid.robot.robot_file import load_robot

X, Y, Z = np.eye(3)
#: a turntable with an arm, in gravity along its axis
ARM = chain([REVOLUTE, REVOLUTE], np.tile(np.eye(3), (2, 1, 1)),
            [[0.0, 0.0, 0.0], [0.3, 0.0, 0.4]], [Z, X], np.ones((2, 10)))


def reduced(key: str, robot: RobotModel, blocks: Sequence[Effect]) -> Reduction | None:
    """Return the base parameters with a sensor configuration."""
    states = random_states(robot, 30, np.random.default_rng(0))
    return SENSOR_CONFIGURATIONS[key].reduced(robot, blocks, states)


def blocks_of(robot: RobotModel) -> tuple[Effect, ...]:
    axes = axes_of(robot)
    return RigidLinks(robot), RotorInertia(axes), JointFriction(
        axes, (Coulomb(0.5),) * len(axes.labels))


@pytest.mark.parametrize('key', [key for key in SENSOR_CONFIGURATIONS if key != 'motor encoders'])
def test_categories_do_not_depend_on_the_order_of_effects(key: str) -> None:
    links, rotors, friction = blocks_of(ARM)
    found = [reduced(key, ARM, blocks) for blocks in (
        (links, rotors, friction), (friction, rotors, links))]
    assert found[0] is not None and found[1] is not None
    first, second = ({name: one.category for name, one in categories(r).items()} for r in found)
    assert first == second
    for name in ('fv1', 'fc1', 'f01', 'fv2', 'fc2', 'f02'):
        assert first[name] == INDEPENDENT
    # rotors turn as their links do, unless the base turns too, or the gear is not in between
    assert (first['Ia1'] == INDEPENDENT) is (key != 'mounting')


@pytest.mark.parametrize('gravity', [[0.0, 0.0, -9.81], [1.0, 2.0, -9.0]])
def test_mountings_show_what_gravity_from_three_sides_does(gravity: list[float]) -> None:
    robot = ARM.with_gravity(gravity)
    links = RigidLinks(robot)
    found = reduced('mounting', robot, (links,))
    assert found is not None
    tall = []
    for down in (np.array(gravity), 9.81 * X, 9.81 * Y):
        turned = robot.with_gravity(down)
        columns = full_regressor(turned, (RigidLinks(turned),), random_states(
            turned, 40, np.random.default_rng(1)))
        tall.append(columns.transpose(2, 0, 1).reshape(-1, 20))
    rows = np.concatenate(tall)
    assert len(found.pivots) == np.linalg.matrix_rank(rows, tol=1e-8)
    assert rows[:, found.pivots] @ found.matrix == pytest.approx(rows, abs=1e-8)
    assert {'mx1', 'my1'} <= set(found.names)
    assert reduced('mounting', robot.with_gravity([0.0, 0.0, 0.0]), (links,)) is None


def test_motor_encoders_see_gears_of_joints_that_have_their_own() -> None:
    robot = load_robot('tx40')  # motors 5 and 6 share a joint
    found = reduced('motor encoders', robot, blocks_of(robot))
    assert found is not None
    assert [name for name in found.standard if name[0] in 'KD'] == [
        f'{symbol}{joint}' for joint in (1, 2, 3, 4) for symbol in ('K', 'D')]
    assert categories(found)['Ia1'].category == INDEPENDENT
    assert {'fv1', 'fc6', 'f03'} <= set(found.names)
    assert reduced('motor encoders', robot, blocks_of(robot)[::2]) is None  # without rotors


def test_wrenches_of_joints_show_all_that_moves() -> None:
    """A link that slides shows no inertia, one that turns about x alone none about y and z."""
    sliding = chain([PRISMATIC, REVOLUTE], np.tile(np.eye(3), (2, 1, 1)),
                    [[0.0, 0.0, 0.0], [0.3, 0.0, 0.4]], [Z, X], np.ones((2, 10)))
    for robot, shown, hidden in (
            (ARM, {'m1', 'mx1', 'Izz1', 'm2', 'Iyy2', 'Izz2'}, {'Ixx1', 'Ixy1'}),
            (sliding, {'m1', 'mx1', 'my1', 'm2', 'mx2', 'Ixx2'}, {
                'Ixx1', 'Ixy1', 'Iyy1', 'Ixz1', 'Iyz1', 'Izz1', 'Iyy2', 'Izz2', 'Iyz2'})):
        found = reduced('joint wrenches', robot, (RigidLinks(robot),))
        assert found is not None
        kinds = {name: one.category for name, one in categories(found).items()}
        assert {kinds[name] for name in shown} == {INDEPENDENT}
        assert {kinds[name] for name in hidden} == {UNIDENTIFIABLE}


def test_what_sensors_raise_is_listed_by_category() -> None:
    current = {'a': Category(UNIDENTIFIABLE, (), (('mounting', DEPENDENT),
                                                  ('joint torque', INDEPENDENT))),
               'b': Category(DEPENDENT, ('a',), (('joint torque', INDEPENDENT),)),
               'c': Category(INDEPENDENT)}
    found = lifted_by(current)
    assert found['joint torque'] == {INDEPENDENT: ['a', 'b'], DEPENDENT: []}
    assert found['mounting'] == {INDEPENDENT: [], DEPENDENT: ['a']}
    assert found['base wrench'] == {INDEPENDENT: [], DEPENDENT: []}
    assert current['a'].advice == 'identifiable alone with joint torque sensors behind the gears'
    both = Category(DEPENDENT, ('a',), tuple((key, INDEPENDENT) for key in (
        'mounting', 'joint torque', 'base wrench')))
    assert both.advice == (
        'identifiable alone with the base mounted so that gravity comes from other sides or with '
        'joint torque sensors behind the gears')
    lower = Category(UNIDENTIFIABLE, (), (('base wrench', DEPENDENT),))
    assert lower.plain() == {
        'category': UNIDENTIFIABLE, 'further': {'base wrench': DEPENDENT},
        'advice': 'identifiable in combinations with a six-axis force-torque sensor under the '
                  'base'}
    assert Category(UNIDENTIFIABLE).advice == (
        'not identifiable with any sensor configuration that was tried')
    assert Category(UNIDENTIFIABLE, tried=False).advice == ''
    assert current['b'].plain()['in'] == ['a'] and current['c'].plain() == {
        'category': INDEPENDENT}
