"""robot/model.py, robot/linkage.py, robot/columns.py: rules of drives, orders, units, limits."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from chains import chain

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.robot.columns import UNITS, unit_of
from robot_dynid.robot.inertia import rotation_about
from robot_dynid.robot.linkage import Follower, linkage_of
from robot_dynid.robot.model import Drive, Limits, Link

ONES = np.ones(3)
EYE = np.eye(3)
COUPLED = np.array([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0], [0.0, 0.0, 1.0]])
SERVO: dict[str, Any] = {'kind': 'position_error', 'gains': ONES, 'error_limit': ONES}


@pytest.mark.parametrize(('wrong', 'said'), [
    ({'kind': 'volt'}, "effort kind 'volt': choose one of torque, current"),
    ({'kind': 'current'}, r'effort kind current needs drive_gains \[N m/A, joint side\]'),
    ({**SERVO, 'gains': None}, r'position_error needs drive_gains \[N m/rad, joint side\]'),
    ({**SERVO, 'error_limit': None}, 'needs error_limit'),
    ({**SERVO, 'coupling': EYE}, 'not supported with coupling'),
    ({**SERVO, 'elastic': (0,)}, 'not supported with coupling'),
    ({'torque_sensors': (1,), 'elastic': (0, 2)}, 'joint_torque_sensors must be on elastic'),
    ({'rotor_axes': EYE}, 'rotor_axes need gear_ratios'),
    ({'rotor_axes': EYE, 'gear_ratios': np.array([9.0, 0.0, 9.0])}, 'a gear ratio is zero'),
    ({'coupling': COUPLED, 'elastic': (1,)}, 'elastic_joints: motors that turn with several'),
    ({'coupling': COUPLED, 'elastic': (2,)}, 'elastic_joints: motors that turn with several'),
    ({'sensor': 'wrist'}, "sensor 'wrist': choose motor"),
    ({'sensor': 'link', 'kind': 'current', 'gains': ONES}, 'effort_kind: current is that of'),
    ({'sensor': 'link', 'coupling': EYE}, 'but coupling turns joint effort'),
    ({'sensor': 'link', 'elastic': (0,)}, 'but elastic_joints need the effort of motors')])
def test_drives_that_contradict_themselves_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises((UsageError, RobotError), match=said):
        Drive(**wrong)


@pytest.mark.parametrize('right', [
    {}, {'kind': 'torque'}, {'kind': 'current', 'gains': ONES}, SERVO,
    {'torque_sensors': (2,), 'elastic': (0, 2)}, {'coupling': COUPLED, 'elastic': (0,)},
    {'rotor_axes': np.diag([1.0, 0.0, 1.0]), 'gear_ratios': np.array([9.0, 0.0, 9.0])},
    {'sensor': 'link', 'kind': 'torque'}, {'sensor': 'link', 'rotor_axes': EYE,
                                           'gear_ratios': ONES}])
def test_drives_that_can_be_are_accepted(right: dict[str, Any]) -> None:
    assert Drive(**right).shows_motors is (right.get('sensor') != 'link')


def test_gains_are_uncertain_and_torques_are_not() -> None:
    current = Drive('current', 3.0 * ONES)
    assert (current.gain_uncertainty, Drive('torque').gain_uncertainty) == (0.02, 0.0)
    assert Drive(**SERVO).gain_uncertainty == 0.02
    stated = replace(current, gains_std=0.1 * ONES)
    np.testing.assert_array_equal(stated.gain_uncertainty, 0.1 * ONES)
    robot = replace(chain([0] * 3, 3 * [EYE], np.zeros((3, 3)), EYE), drive=current)
    np.testing.assert_array_equal(robot.torque_factors, 3.0 * ONES)
    torque = replace(robot, drive=Drive('torque', 3.0 * ONES))  # gains of another kind
    np.testing.assert_array_equal(torque.torque_factors, ONES)


def test_equations_are_of_joints_then_motors_then_gears() -> None:
    robot = replace(chain([0] * 3, 3 * [EYE], np.zeros((3, 3)), EYE),
                    drive=Drive(elastic=(0, 2), torque_sensors=(2,)))
    assert (robot.n, robot.coordinates, robot.rows) == (3, 5, 6)
    assert robot.row_joints == (0, 1, 2, 0, 2, 2)
    assert robot.row_names == ('1', '2', '3', 'motor of 1', 'motor of 3', 'gear of 3')
    assert robot.rigid.rows == 3 and robot.rigid.rigid is robot.rigid
    coupled = replace(robot, drive=Drive(coupling=COUPLED))
    assert coupled.drive.coupled == (1,) and robot.drive.coupled == ()
    motors = np.array([[1.0, 2.0, 3.0], [0.5, -1.0, 4.0]])
    np.testing.assert_allclose(coupled.motor_torque(motors @ COUPLED), motors)
    assert robot.motor_torque(motors) is motors
    assert robot.index('3') == 2
    with pytest.raises(UsageError, match="chain has no joint 'x'; it has 1, 2, 3"):
        robot.index('x')


def test_a_tree_carries_its_links_and_ends_at_the_farthest_frame_of_its_longest_chain() -> None:
    robot = replace(chain([0] * 4, 4 * [EYE], np.zeros((4, 3)), np.ones((4, 3))),
                    parents=np.array([-1, 0, 0, 1]))
    np.testing.assert_array_equal(robot.carried, np.array(
        [[1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=bool))
    assert robot.moved is robot.carried and robot.longest_chain == (0, 1, 3)
    assert not robot.tip.any()

    def link(body: int, *place: float) -> Link:
        placement = np.eye(4)
        placement[:3, 3] = place
        return Link('x', body, placement, np.zeros(10), False)

    tools = replace(robot, links=(link(3, 0.0, 0.0, 0.1), link(3, -0.3, 0.0, 0.0),
                                  link(2, 5.0, 0.0, 0.0), link(3, 0.2, 0.1, 0.0)))
    assert tools.tip.tolist() == [-0.3, 0.0, 0.0]


def test_a_hash_is_of_geometry_and_gravity_to_nine_digits() -> None:
    robot = chain([0, 1], 2 * [EYE], np.ones((2, 3)), EYE[:2])
    same = (replace(robot, translations=robot.translations + 1e-11),
            replace(robot, nominal=robot.nominal + 1.0, name='other', drive=Drive('torque')),
            replace(robot, translations=robot.translations.copy()))
    other = (replace(robot, translations=robot.translations + 2e-9),
             robot.with_gravity([0.0, 0.0, 9.81]), replace(robot, joints=('1', 'two')),
             replace(robot, types=np.array([0, 0])), replace(robot, parents=np.array([-1, -1])))
    assert {one.hash() for one in same} == {robot.hash()}
    assert len({robot.hash(), *(one.hash() for one in other)}) == 6
    assert re.fullmatch('[0-9a-f]{16}', robot.hash())
    still = chain([0, 1], 2 * [EYE], np.zeros((2, 3)), EYE[:2])
    assert replace(still, translations=-still.translations).hash() == still.hash()  # -0.0


def test_constants_of_the_kernels_turn_and_move_the_frames() -> None:
    rng = np.random.default_rng(1)
    turns = [rotation_about(rng.normal(size=3), 0.7) for _ in range(2)]
    axes = [axis / np.linalg.norm(axis) for axis in rng.normal(size=(2, 3))]
    table = chain([0, 1], turns, rng.normal(size=(2, 3)), axes).geometry
    robot = chain([0, 1], turns, table[:, 27:30], axes)
    np.testing.assert_array_equal(robot.geometry, table)
    q = 0.4
    for row, turn, axis, slides in zip(table, turns, axes, (False, True)):
        a, b, c = row[:27].reshape(3, 3, 3)
        found = a + b * np.cos(q) + c * np.sin(q)
        np.testing.assert_allclose(found, turn if slides else turn @ rotation_about(axis, q),
                                   rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(row[30:33], turn @ axis if slides else 0.0,
                                   rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(row[33:39], [*(0.0 * axis), *axis] if slides else
                                   [*axis, *(0.0 * axis)])


def test_joints_that_follow_narrow_the_limits_of_those_that_lead() -> None:
    limits = Limits(*(np.array(values) for values in (
        [-3.0, -1.0, -2.0], [3.0, 1.0, 2.0], [2.0, 9.0, 3.0], [np.nan, 9.0, 6.0],
        [7.0, 8.0, 9.0])))
    tree = replace(chain([0] * 3, 3 * [EYE], np.zeros((3, 3)), EYE), limits=limits)
    robot = linkage_of(tree, {'3': Follower('1', -2.0, 1.0)}).robot()
    assert robot.joints == ('1', '2')
    # -2 <= 1 - 2 q <= 2
    assert (robot.limits.lower.tolist(), robot.limits.upper.tolist()) == ([-0.5, -1.0], [1.5, 1.0])
    assert robot.limits.velocity.tolist() == [1.5, 9.0]
    assert robot.limits.acceleration.tolist() == [3.0, 9.0]
    assert robot.limits.effort.tolist() == [7.0, 8.0]
    q, qd = np.array([[0.25, 0.5]]), np.array([[1.0, 2.0]])
    position, velocity = robot.motion(q, qd)
    assert position.tolist() == [[0.25, 0.5, 0.5]] and velocity.tolist() == [[1.0, 2.0, -2.0]]
    assert robot.projected(np.array([1.0, 10.0, 100.0])).tolist() == [-199.0, 10.0]
    np.testing.assert_array_equal(robot.moved, np.array([[1, 1, 1], [0, 1, 1]], dtype=bool))
    with pytest.raises(RobotError, match=re.escape('chain: 3 with 1 (<mimic>): coupled joints')):
        len(robot.axes)


@pytest.mark.parametrize(('text', 'quantity', 'one'), [
    ('s', 'time', 1.0), ('ms', 'time', 1e-3), ('µs', 'time', 1e-6), ('ns', 'time', 1e-9),
    ('rad', 'angle', 1.0), ('mrad', 'angle', 1e-3), ('°', 'angle', np.pi / 180.0),
    ('turns', 'angle', 2.0 * np.pi), ('m', 'length', 1.0), ('mm', 'length', 1e-3),
    ('rad/s', 'angular rate', 1.0), ('deg/s', 'angular rate', np.pi / 180.0),
    ('RPM', 'angular rate', 2.0 * np.pi / 60.0), ('m/s', 'linear rate', 1.0),
    ('mm/s', 'linear rate', 1e-3), ('N m', 'torque', 1.0), ('N-m', 'torque', 1.0),
    ('mN·m', 'torque', 1e-3), ('kN', 'torque', 1e3), ('A', 'current', 1.0),
    ('mA', 'current', 1e-3), ('°C', 'temperature', 1.0), ('K', 'temperature', -272.15)])
def test_one_of_a_unit_is_that_much_in_si(text: str, quantity: str, one: float) -> None:
    name, factor, offset = UNITS[unit_of(text)]
    assert (name, factor + offset) == (quantity, pytest.approx(one))
    assert unit_of('furlong') == ''
