"""ros/simulated_robot/node.py: parameters of the simulated robot: what each of them does, in the
process of the test."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('control_msgs')

import rclpy
from control_msgs.msg import JointTrajectoryControllerState
from nodes import Spinner, destroy, made
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectoryPoint

from robot_dynid.errors import UsageError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.simulated_robot.node import (
    SimulatedRobot,
    SimulatedRobotParameters,
    build_simulator,
    noise_of,
)
from robot_dynid.simulation.simulator import Reading, Simulator
from robot_dynid.simulation.trajectory_controller import Code, Finished, Goal, Status
from robot_dynid.simulation.truth import Noise, Truth
from robot_dynid.simulation.waypoints import Command, Waypoint

ROBOT = load_robot('planar_3r')
EXACT = {'position_step': 0.0, 'position_noise': 0.0, 'velocity_noise': 0.0, 'effort_noise': 0.0}


def simulator(**given: Any) -> Simulator:
    """Return the simulated planar arm with these parameters."""
    return build_simulator(SimulatedRobotParameters(robot='planar_3r', **given), ROBOT)


def spread(**given: Any) -> Reading:
    """Return the standard deviations of what the sensors show of the arm that hangs at rest."""
    arm = simulator(start_position=(np.pi / 2, 0.0, 0.0), **(EXACT | given))
    shown = [arm.advance(1) for _ in range(300)]
    return Reading(0.0, *(np.std([getattr(reading, name) for reading in shown], axis=0)
                          for name in ('position', 'velocity', 'effort')))


def test_sensors_are_as_good_as_asked() -> None:
    """Below 20 % of a deviation is what 300 draws of it may be off."""
    still = spread()
    assert still.position.max() < 1e-9 and still.velocity.max() < 1e-6
    quantities = ('position', 'velocity', 'effort')
    expected = {'position_noise': (1e-3, 0.0, 0.0), 'velocity_noise': (0.0, 1e-3, 0.0),
                'effort_noise': (0.0, 0.0, 1e-3 * ROBOT.limits.effort)}
    for parameter, sizes in expected.items():
        found = spread(**{parameter: 1e-3})
        for name, size in zip(quantities, sizes, strict=True):
            beyond = np.maximum(getattr(found, name) - getattr(still, name), 0.0)
            np.testing.assert_allclose(beyond, size + np.zeros(3), rtol=0.2, atol=1e-6)


def test_an_arm_whose_range_is_without_zero_starts_within_it() -> None:
    lower, upper = np.array([0.5, np.nan, -2.0]), np.array([2.5, np.nan, 0.0])
    robot = replace(ROBOT, limits=replace(ROBOT.limits, lower=lower, upper=upper))
    shown = build_simulator(SimulatedRobotParameters(**EXACT), robot).advance(1).position
    np.testing.assert_allclose(shown, [1.5, 0.0, -1.0], atol=1e-9)


def test_position_step() -> None:
    arm = simulator(**(EXACT | {'position_step': 0.01, 'start_position': (0.118, 0.0, -0.333)}))
    shown = arm.advance(1).position
    np.testing.assert_allclose(shown, np.round(shown, 2), atol=1e-12)
    assert np.abs(shown - [0.118, 0.0, -0.333]).max() < 0.011


def test_negative_noise_leaves_that_of_the_robot() -> None:
    own = Noise(position_step=1.0, motor_position_step=2.0, position=3.0, velocity=4.0, effort=5.0)
    truth = replace(Truth.ideal(3), noise=own)
    assert noise_of(SimulatedRobotParameters(), truth) == own
    given = SimulatedRobotParameters(position_noise=0.0, effort_noise=0.5)
    assert noise_of(given, truth) == replace(own, position=0.0, effort=0.5)


def test_the_seed_decides_the_noise_of_the_simulated_robot() -> None:
    first, again, other = (simulator(seed=s).advance(1).velocity for s in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert np.all(first != other)


def ended(fault: str, seconds: float, **given: Any) -> tuple[list[Finished], float]:
    """Return how a short move ended within ``seconds``, and when, with these parameters."""
    arm = simulator(**EXACT, **given)
    points = (Waypoint(0.1, (0.02,) * 3, (0.0,) * 3, (0.0,) * 3),)
    assert arm.rejection(Command(ROBOT.joints, points)) is None
    arm.start(Goal(Command(ROBOT.joints, points)))
    arm.fault = fault
    for _ in range(round(1e3 * seconds)):
        arm.advance(1)
        finished = arm.take_finished()
        if finished:
            return finished, arm.time
    return [], arm.time


def test_path_tolerance() -> None:
    (end,), _ = ended('tracking_error', 0.3, path_tolerance=0.05)
    assert end.code is Code.PATH_TOLERANCE_VIOLATED
    (end,), _ = ended('tracking_error', 0.3, path_tolerance=0.5)
    assert end.code is Code.SUCCESSFUL


@pytest.mark.parametrize('goal_time', [0.1, 0.3])
def test_goal_tolerance_and_goal_time(goal_time: float) -> None:
    (end,), at = ended('tracking_error', 0.6, goal_tolerance=0.05, goal_time=goal_time)
    assert end.code is Code.GOAL_TOLERANCE_VIOLATED
    assert 0.1 + goal_time <= at <= 0.1 + goal_time + 0.01
    assert ended('tracking_error', 0.5, goal_tolerance=0.05)[0] == [], 'no goal time: for ever'
    assert ended('tracking_error', 0.2, goal_tolerance=0.5)[0][0].code is Code.SUCCESSFUL


def test_stopped_velocity_tolerance() -> None:
    """A step of 0.2 rad at the end of the move still moves then; tolerance 0 does not ask."""
    assert ended('tracking_error', 0.105)[0][0].code is Code.SUCCESSFUL
    assert ended('tracking_error', 0.105, stopped_velocity_tolerance=1e-4)[0] == []


def test_a_deactivated_controller_ends_its_goal_and_takes_no_other() -> None:
    (end,), at = ended('inactive', 0.05)
    assert (end.status, end.code) == (Status.ABORTED, Code.INVALID_GOAL)
    assert at < 0.01 and 'deactivate' in end.text
    arm = simulator(**EXACT)
    command = Command(ROBOT.joints, (Waypoint(0.1, (0.02,) * 3, (0.0,) * 3, (0.0,) * 3),))
    arm.fault = 'inactive'
    assert 'not active' in str(arm.rejection(command)) and not arm.active
    arm.fault = 'none'
    assert arm.rejection(command) is None and arm.active


def test_a_position_that_is_not_a_number() -> None:
    arm = simulator(**EXACT)
    arm.fault = 'nan'
    assert np.isnan(arm.advance(1).position).tolist() == [True, False, False]
    np.testing.assert_array_equal(arm.view()[1][0], 0.0)  # only the sensor


@pytest.mark.parametrize(('name', 'value'), [('state_rate', 2000.0), ('real_time_factor', 0.0)])
def test_impossible_rates_are_named(name: str, value: float) -> None:
    with pytest.raises(UsageError, match=f'parameter {name}'):
        simulator(**{name: value})


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
@pytest.mark.parametrize(('joint_order', 'first'), [
    ('robot', 'shoulder_pan_joint'), ('alphabetical', 'elbow_joint')])
def test_controller_name_joint_order_state_rate_and_real_time_factor(
    joint_order: str, first: str
) -> None:
    """Stamps step by the rate in simulated time, which passes at a tenth of the speed."""
    start, began = [0.1, -1.2, 0.3, 0.4, 0.5, 0.6], time.time_ns()
    with made(SimulatedRobot, robot='ur10e', controller_name='arm', joint_order=joint_order,
              state_rate=250.0, real_time_factor=0.1, start_position=start) as node:
        states: list[JointState] = []
        controller: list[JointTrajectoryControllerState] = []
        user = rclpy.create_node('user')
        durable = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        user.create_subscription(JointState, 'joint_states', states.append, durable)
        user.create_subscription(
            JointTrajectoryControllerState, 'arm/controller_state', controller.append, 10)
        spinner = Spinner(node, user)
        spinner.wait(lambda: len(states) > 8 and controller)
        passed = time.time_ns() - began
        destroy(user)
    assert states[0].name[0] == first
    at = dict(zip(states[0].name, states[0].position, strict=True))
    np.testing.assert_allclose([at[j] for j in load_robot('ur10e').joints], start, atol=2e-3)
    stamps = [s.header.stamp.sec * 10**9 + s.header.stamp.nanosec for s in states]
    assert set(np.diff(stamps)) == {4_000_000}
    assert stamps[-1] - stamps[0] < 0.2 * passed, 'slow motion'


@pytest.mark.ros
@pytest.mark.usefixtures('ros_domain')
def test_setpoints_of_a_topic_take_the_place_of_the_controller() -> None:
    with made(SimulatedRobot, robot='planar_3r', setpoints='commands') as node:
        states: list[JointState] = []
        user = rclpy.create_node('user')
        durable = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        user.create_subscription(JointState, 'joint_states', states.append, durable)
        publisher = user.create_publisher(JointTrajectoryControllerState, 'commands', 10)
        spinner = Spinner(node, user)
        names = ['joint_3', 'joint_1', 'joint_2']
        for joints, positions in ((names[1:2], [9.0]), (names, [np.nan] * 3),
                                  (names, [0.3, 0.1, 0.2])):
            message = JointTrajectoryControllerState(
                joint_names=joints, output=JointTrajectoryPoint(positions=[0.7] * len(joints)),
                reference=JointTrajectoryPoint(
                    positions=positions, velocities=[0.0] * len(joints),
                    accelerations=[0.0] * len(joints)))  # the output is that of a cycle later
            message.header.stamp = user.get_clock().now().to_msg()
            publisher.publish(message)
        spinner.wait(lambda: states and abs(
            states[-1].position[states[-1].name.index('joint_3')] - 0.3) < 5e-3)
        names = [topic for topic, _ in user.get_topic_names_and_types()]
        assert '/commands' in names and not [name for name in names if 'trajectory' in name]
        destroy(user)
    at = dict(zip(states[-1].name, states[-1].position, strict=True))
    np.testing.assert_allclose([at[f'joint_{i}'] for i in (1, 2, 3)], [0.1, 0.2, 0.3], atol=5e-3)
