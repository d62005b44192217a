"""effects/effect.py: axes of joints and motors, and how a chosen effect is shown."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from report_pages import unpacked

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.effects import axes_of
from robot_dynid.effects.effect import ChosenEffect, linear_entries
from robot_dynid.errors import ModelError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True)
class Fan:
    """A part at a ``joint`` with two numbers of its own."""

    joint: int
    blades: int
    power: float


class Drag(ChosenEffect):
    """Air drag: a power of the speed."""

    part = Fan
    symbol = 'ad'
    what = 'drag of the air'

    def history(self, samples: Samples) -> FloatArray:
        return np.array([one.blades * np.abs(samples.velocity[:, one.joint])**one.power
                         + samples.acceleration[:, one.joint] for one in self.parts])


FANS = (Fan(2, 3, 2.0), Fan(0, 5, 1.5))


def model(ranges: dict[str, FloatArray]) -> Any:
    robot = load_robot('stanford_arm')  # its third joint slides
    return SimpleNamespace(
        robot=robot, structure=SimpleNamespace(chosen={'fan': FANS[:1], 'other': (3.0, FANS[1])}),
        standard={'ad1': 12.5, 'ad3': 7.25}, trained=SimpleNamespace(quantities=ranges))


def test_axes_of_elastic_joints_are_motors_that_act_on_joints_without_sensors() -> None:
    robot = load_robot('planar_3r')
    robot = replace(robot, drive=replace(robot.drive, elastic=(0, 2), torque_sensors=(2,)))
    axes = axes_of(robot)
    assert axes.labels == ('1', '2', '3') and axes.parts == robot.joints
    np.testing.assert_array_equal(axes.matrix, np.eye(5)[[3, 1, 4]])
    expected = np.eye(6)[[0, 1, 4]]
    expected[0, 3] = 1.0
    np.testing.assert_array_equal(axes.effort, expected)
    np.testing.assert_array_equal(axes.rigid, np.eye(3))
    single = axes.only(2)
    assert (single.labels, single.parts, single.slides) == (('3',), ('joint_3',), (False,))
    np.testing.assert_array_equal(single.matrix, np.eye(5)[[4]])
    np.testing.assert_array_equal(single.effort, np.eye(6)[[4]])
    np.testing.assert_array_equal(single.rigid, np.eye(3)[[2]])


def test_axes_of_coupled_motors_have_the_motion_of_their_row() -> None:
    robot = load_robot('stanford_arm')
    coupling = np.eye(robot.n)
    coupling[2, 0], coupling[4, 3] = -0.5, 2.0
    robot = replace(robot, drive=replace(robot.drive, elastic=(1,), coupling=coupling))
    axes = axes_of(robot)
    assert axes.labels[6:] == ('m3', 'm5')
    assert axes.slides == (False, False, True, False, False, False, True, False)
    names = robot.joints
    assert axes.parts[6:] == (f'motor of {names[2]} (turns with {names[0]} and {names[2]})',
                              f'motor of {names[4]} (turns with {names[3]} and {names[4]})')
    for found, count in ((axes.matrix, robot.coordinates), (axes.effort, robot.rows),
                         (axes.rigid, robot.n)):
        expected = np.zeros((2, count))
        expected[:, :6] = coupling[[2, 4]]
        np.testing.assert_array_equal(found[6:], expected)


def test_linear_entries_are_nonzero_shares_in_the_selected_equations() -> None:
    effort, shares = np.array([0.0, -2.0, 0.5]), np.array([3.0, 0.0, 4.0])
    expected = [(1, 7, 9, 0, -6.0), (1, 7, 9, 2, -8.0), (2, 7, 9, 0, 1.5), (2, 7, 9, 2, 2.0)]
    assert list(linear_entries(7, effort, 9, shares)) == expected
    assert list(linear_entries(7, effort, 9, {0: 3.0, 1: 0.0, 2: 4.0})) == expected


def test_sections_list_the_parts_of_an_effect_with_all_their_numbers() -> None:
    (section,) = Drag.sections(model({}))
    (table,) = section.tables
    assert section.title == 'Chosen effect'
    assert table.columns == ('joint', 'drag of the air [N m]', 'blades', 'power')
    names = load_robot('stanford_arm').joints
    assert [row.cells for row in table.rows] == [
        (names[2], '7.25', '3', '2'), (names[0], '12.5', '5', '1.5')]


def test_figures_sweep_the_trained_range_there_and_back_in_twenty_seconds() -> None:
    ranges = np.zeros((6, 2))
    ranges[2], ranges[0] = (0.5, 1.5), (-3.0, 1.0)
    drawn = Drag.figures(model({'position': ranges}), ())
    assert list(drawn) == [2, 0]
    for joint, speed, size in ((2, 0.1, 7.25 * 3 * 0.1**2.0), (0, 0.4, 12.5 * 5 * 0.4**1.5)):
        (figure,) = drawn[joint]
        (curve,) = figure.spec['data']
        position, torque = unpacked(curve['x']), unpacked(curve['y'])
        assert len(position) == 201 and curve['name'] == 'drag of the air'
        there = ranges[joint, 0] + 10.0 * speed * np.linspace(0.0, 1.0, 101)
        np.testing.assert_allclose(position, [*there, *there[-2::-1]], rtol=0.0, atol=1e-6)
        np.testing.assert_allclose(torque[[*range(100), *range(101, 201)]], size, rtol=1e-5)
        assert figure.spec['layout']['xaxis']['title']['text'] == (
            'position [m]' if joint == 2 else 'position [rad]')


def test_chosen_effects_take_words_and_rows_of_the_history_from_their_parts() -> None:
    robot = load_robot('stanford_arm')
    effect = Drag(robot, FANS)
    assert [(one.name, one.part, one.words, one.unit) for one in effect.words] == [
        ('ad3', robot.joints[2], 'drag of the air', 'N m'),
        ('ad1', robot.joints[0], 'drag of the air', 'N m')]
    assert next(one.sentence for one in effect.words) == f'{robot.joints[2]}: drag of the air'
    rng = np.random.default_rng(1)
    samples = Samples(robot.joints, 0.1 * np.arange(4.0), *rng.normal(size=(3, 4, 6)))
    history, out = effect.history(samples), np.zeros((6, 1, 4))
    effect.fill(samples, history, np.array([1]), out)
    np.testing.assert_array_equal(out[0, 0], history[1])
    assert not out[1:].any()
    assert not effect.smooth and effect.nonnegative == ()
    with pytest.raises(ModelError) as refused:
        effect.acting(Mechanism.without_effects(robot), {})
    assert str(refused.value) == 'Drag (ad3, ad1) has no torque beyond the recordings of a fit'
