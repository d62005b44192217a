"""effects/counterbalance.py: springs between links: their law, which are tried, and their ranges.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from chains import chain

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.effects.counterbalance import Counterbalance, Spring
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import Samples

#: greatest torque [N m] of the weight of the first link by itself
FIRST = 40.0


def arm(second: float, kinds: tuple[int, int] = (REVOLUTE, REVOLUTE)) -> RobotModel:
    """Return two links in a vertical plane: joints bear up to FIRST + second, and second."""
    nominal = np.zeros((2, 10))
    nominal[0, 1], nominal[1, 1] = FIRST / 9.81, second / 9.81
    return chain(kinds, np.tile(np.eye(3), (2, 1, 1)), np.array([[0.0] * 3, [0.5, 0.0, 0.0]]),
                 np.array([[0.0, 1.0, 0.0]] * 2), nominal, (0.0, 0.0, -9.81))


@pytest.mark.parametrize(('a', 'b'), [(0.3, 0.6), (0.6, 0.3), (0.7, 0.56)])
def test_the_torque_of_a_spring_is_its_tension_times_its_lever(a: float, b: float) -> None:
    """Against the geometry: anchors at ``a`` and ``b``, tension along the line between them."""
    position, angle = np.linspace(-2.0, 2.5, 7), 0.4
    spring = Spring(0, angle, min(a, b) / max(a, b))
    fixed = np.array([a, 0.0])
    for q, torque in zip(position, spring.torque(position), strict=True):
        moving = b * np.array([np.cos(q + angle), np.sin(q + angle)])
        line = (moving - fixed) / np.linalg.norm(moving - fixed)
        lever = moving[0] * line[1] - moving[1] * line[0]
        assert torque == pytest.approx(lever / min(a, b), abs=1e-12)


def test_the_slope_of_a_spring_is_the_derivative_of_its_torque() -> None:
    spring, position = Spring(0, 0.4, 0.7), np.linspace(-2.0, 2.5, 7)
    step = 1e-5
    ends = spring.torque(position + step) - spring.torque(position - step)
    np.testing.assert_allclose(spring.slope(position), ends / (2.0 * step), rtol=0.0, atol=1e-8)


def test_candidates_are_coils_over_half_a_turn_then_two_ratios_over_a_whole_one() -> None:
    coils, others = Counterbalance.candidates(arm(20.0), 1)
    assert [spring.joint for spring in (*coils, *others)] == [1] * 60
    assert [spring.ratio for spring in (*coils, *others)] == [0.0] * 12 + [0.5] * 24 + [0.8] * 24
    degrees = [np.degrees(spring.angle) for spring in (*coils, *others)]
    assert degrees == pytest.approx([*range(0, 180, 15), *range(0, 360, 15), *range(0, 360, 15)])


@pytest.mark.parametrize(('share', 'tried'), [(0.19, False), (0.21, True)])
def test_candidates_are_for_joints_with_a_fifth_of_the_greatest_weight(
    share: float, tried: bool
) -> None:
    robot = arm(share / (1.0 - share) * FIRST)
    assert len(Counterbalance.candidates(robot, 0)) == 2
    assert len(Counterbalance.candidates(robot, 1)) == 2 * tried


def test_candidates_are_not_for_joints_that_slide() -> None:
    robot = arm(20.0, (REVOLUTE, PRISMATIC))
    assert Counterbalance.candidates(robot, 1) == ()


def test_ranges_let_a_spring_relieve_its_joint_of_three_times_its_weight_at_most() -> None:
    robot, position = arm(20.0), np.random.default_rng(1).uniform(-0.5, 0.5, (9, 2))
    down = np.cos(position.sum(axis=1))  # gravity pulls the second link down all over these poses
    torque = np.stack([down / 1e3, -down / 1e3])
    low, high = Counterbalance.ranges(robot, 1, position, torque).tolist()
    assert low == [pytest.approx(0.0), pytest.approx(60.0, rel=0.02)]
    assert high == [pytest.approx(-60.0, rel=0.02), pytest.approx(0.0)]
    first = Counterbalance.ranges(robot, 0, position, down[None])
    assert np.abs(first).max() == pytest.approx(180.0, rel=0.02)


def test_acting_springs_have_their_sizes_in_the_columns_of_their_joints() -> None:
    effect = Counterbalance(load_robot('ur10e'), (Spring(2, 0.4, 0.7), Spring(1, 2.0, 0.5)))
    assert effect.names == ('cb3', 'cb2')
    bare = Mechanism.without_effects(effect.robot)
    links = effect.acting(bare, {'cb2': 30.0, 'cb3': 50.0}).links
    expected = np.zeros((6, 4))
    expected[2] = 50.0 * np.cos(0.4), 50.0 * np.sin(0.4), 0.7 * np.cos(0.4), 0.7 * np.sin(0.4)
    expected[1] = 30.0 * np.cos(2.0), 30.0 * np.sin(2.0), 0.5 * np.cos(2.0), 0.5 * np.sin(2.0)
    np.testing.assert_allclose(links[:, 10:], expected, rtol=1e-12)


def test_history_and_gradients_are_those_of_each_spring_at_its_joint() -> None:
    robot, rng = load_robot('planar_3r'), np.random.default_rng(2)
    effect = Counterbalance(robot, (Spring(2, 0.4, 0.7), Spring(0, 2.0, 0.5)))
    q = rng.normal(size=(5, 3))
    samples = Samples(robot.joints, 0.01 * np.arange(5.0), q, np.zeros_like(q), np.zeros_like(q))
    expected = [spring.torque(q[:, spring.joint]) for spring in effect.parts]
    np.testing.assert_array_equal(effect.history(samples), expected)
    weights = rng.normal(size=(3, 1, 5))
    position, velocity, acceleration = effect.pullback(samples, np.array([1]), weights)
    assert not velocity.any() and not acceleration.any() and not position[:, 1:].any()
    np.testing.assert_allclose(position[:, 0], weights[0, 0] * effect.parts[1].slope(q[:, 0]))


def test_sections_name_the_joint_torque_angle_and_ratio_of_every_spring() -> None:
    robot = load_robot('planar_3r')
    springs = (Spring(2, np.pi / 4.0, 0.5), Spring(0, np.pi / 3.0, 0.0))
    model: Any = SimpleNamespace(robot=robot, standard={'cb1': 12.0, 'cb3': 34.5},
                                 structure=SimpleNamespace(chosen={'counterbalance': springs}))
    (section,) = Counterbalance.sections(model)
    (table,) = section.tables
    assert (section.title, section.text) == ('Counterbalances', Counterbalance.about)
    assert table.columns == (
        'joint', 'largest torque of the counterbalance [N m]', 'angle [deg]', 'ratio')
    assert [row.cells for row in table.rows] == [
        ('joint_3', '34.5', '45', '0.5'), ('joint_1', '12', '60', '0')]
    none: Any = SimpleNamespace(**{**vars(model), 'structure': SimpleNamespace(chosen={})})
    assert Counterbalance.sections(none) == ()
