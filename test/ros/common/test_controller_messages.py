"""ros/excitation/controller_client.py: messages to and from a trajectory controller: every number
in its own field, in its own unit."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('control_msgs')

from builtin_interfaces.msg import Time
from control_msgs.action import FollowJointTrajectory
from execution_bench import RULES, plan
from nodes import Spinner
from rclpy.action import ActionClient, ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from sensor_msgs.msg import JointState

from robot_dynid.execution.guards import JointStates, Tolerances
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.segment import Commands, Phase
from robot_dynid.execution.supervisor import Execution
from robot_dynid.ros.common.listener import Listener
from robot_dynid.ros.excitation.controller_client import (
    ControllerClient,
    duration_message,
    goal_message,
    trajectory_message,
)
from robot_dynid.ros.simulated_robot.trajectory_server import (
    controller_state_message,
    feedback_message,
    fill,
    goal_from_message,
    seconds,
)
from robot_dynid.simulation.trajectory_controller import Update

JOINTS = ('a', 'b')
RNG = np.random.default_rng(5)
POINTS = SampledTrajectory(
    JOINTS, np.array([0.2, 0.25, 1.5]), *(RNG.normal(size=(3, 2)) for _ in range(3)))
TOLERANCES = Tolerances(*(np.array([k, 2.0 * k]) for k in (0.1, 0.2, 0.3, 0.4)), goal_time=1.25)


@pytest.mark.parametrize(('value', 'parts'), [
    (0.1 + 0.2, (0, 300_000_000)), (1.9999999999, (2, 0)), (2.0, (2, 0)), (1e-9, (0, 1))])
def test_durations_are_rounded_to_nanoseconds(value: float, parts: tuple[int, int]) -> None:
    message = duration_message(value)
    assert (message.sec, message.nanosec) == parts
    assert seconds(message) == pytest.approx(value, abs=1e-9)


def test_a_goal_comes_back_as_it_was_meant() -> None:
    message = goal_message(POINTS, TOLERANCES)
    message.trajectory.header.stamp = Time(sec=7, nanosec=250_000_000)
    goal = goal_from_message(message, 4 * 10**9)
    assert goal.command.joints == JOINTS
    assert goal.command.stamp == 3.25, 'seconds since the epoch'
    for k, point in enumerate(goal.command.points):
        assert point.time == pytest.approx(POINTS.time[k], abs=1e-9)
        for name in ('position', 'velocity', 'acceleration'):
            np.testing.assert_array_equal(getattr(point, name), getattr(POINTS, name)[k], name)
        assert len(point.effort) == 0, 'efforts would be refused'
    assert goal.path_tolerance == {'a': (0.3, 0.0, 0.0), 'b': (0.6, 0.0, 0.0)}
    assert goal.goal_tolerance == {'a': (0.4, 0.0, 0.0), 'b': (0.8, 0.0, 0.0)}
    assert goal.goal_time_tolerance == 1.25
    assert goal_from_message(goal_message(POINTS, TOLERANCES), 10**9).command.stamp == 0.0, 'now'


@pytest.mark.parametrize('make', [feedback_message, controller_state_message])
def test_errors_are_desired_minus_measured(make: Any) -> None:
    wanted, output, measured = RNG.normal(size=(3, 2)), RNG.normal(size=(3, 2)), RNG.normal(
        size=(2, 2))
    stamp = Time(sec=3, nanosec=4)
    scaling = (0.5,) if make is controller_state_message else ()
    message = make(JOINTS, stamp, Update(wanted, output, 1, 0.75), measured, *scaling)
    assert (tuple(message.joint_names), message.header.stamp) == (JOINTS, stamp)
    feedback = make is feedback_message
    desired, actual = (message.desired, message.actual) if feedback else (
        message.reference, message.feedback)
    for point, values in ((desired, wanted), (actual, measured),
                          (message.error, wanted[:2] - measured)):
        np.testing.assert_array_equal(point.positions, values[0])
        np.testing.assert_array_equal(point.velocities, values[1])
    np.testing.assert_array_equal(desired.accelerations, wanted[2])
    if not feedback:
        np.testing.assert_array_equal(message.output.positions, output[0])
        assert seconds(message.reference.time_from_start) == 0.75
        assert message.speed_scaling_factor == 0.5


def test_states_are_written_with_their_stamp() -> None:
    position, effort = RNG.normal(size=(2, 3))
    message = fill(JointState(), 5 * 10**9 + 7, {
        'position': position, 'effort': effort[[2, 0, 1]]})
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (5, 7)
    np.testing.assert_array_equal(message.position, position)
    np.testing.assert_array_equal(message.effort, effort[[2, 0, 1]])
    assert len(message.velocity) == 0


@pytest.mark.ros
def test_a_goal_given_up_before_its_answer_is_cancelled_and_the_new_one_is_not(node: Any) -> None:
    """Both were sent before the controller said anything; the first must not start any more."""
    asked: list[bytes] = []
    received: list[bytes] = []

    def cancel(handle: Any) -> CancelResponse:
        asked.append(bytes(handle.goal_id.uuid))
        return CancelResponse.REJECT

    group = ReentrantCallbackGroup()
    server = ActionServer(
        node, FollowJointTrajectory, 'arm/follow_joint_trajectory',
        execute_callback=lambda handle: FollowJointTrajectory.Result(),
        handle_accepted_callback=lambda handle: received.append(bytes(handle.goal_id.uuid)),
        cancel_callback=cancel, callback_group=group)
    delivered: list[Commands] = []
    client = ControllerClient(
        node, ('arm', 'action'), delivered.append, group, Listener(node))
    spinner = Spinner(node)
    spinner.wait(client.ready)
    execution = Execution(plan(), RULES, JointStates(RULES.limits.joints))
    for _ in range(2):
        client.send(execution, goal_message(POINTS, TOLERANCES), None)
    spinner.wait(lambda: len(received) == 2 and asked and delivered)
    assert asked == [received[0]]
    assert len(delivered) == 1, 'only the answer to the new goal counts'
    asked.clear()
    client.cancel()
    spinner.wait(lambda: len(asked) == 2)
    assert set(asked) == set(received), 'whatever may be under way is cancelled'
    held = client.hold(JOINTS, np.array([0.5, -0.5]), 0.25)
    assert list(held.points[0].positions) == [0.5, -0.5]
    assert list(held.points[0].velocities) == list(held.points[0].accelerations) == [0.0, 0.0]
    assert seconds(held.points[0].time_from_start) == 0.25
    server.destroy()


@pytest.mark.ros
def test_a_goal_of_another_program_is_known_by_the_status_of_the_action(node: Any) -> None:
    group = ReentrantCallbackGroup()
    server = ActionServer(
        node, FollowJointTrajectory, 'arm/follow_joint_trajectory',
        execute_callback=lambda handle: FollowJointTrajectory.Result(),
        handle_accepted_callback=lambda handle: None, callback_group=group)
    listener, answers = Listener(node), list[Commands]()
    client = ControllerClient(node, ('arm', 'action'), answers.append, group, listener)
    other = ActionClient(node, FollowJointTrajectory, 'arm/follow_joint_trajectory',
                         callback_group=group)
    listener.start()
    spinner = Spinner(node)
    spinner.wait(client.ready)
    spinner.wait(other.server_is_ready)
    before = other.send_goal_async(goal_message(POINTS, TOLERANCES))
    spinner.wait(before.done)
    execution = Execution(plan(), RULES, JointStates(RULES.limits.joints))
    execution.phase = Phase.RUNNING
    for sent in (1, 2):
        client.send(execution, goal_message(POINTS, TOLERANCES), None)
        spinner.wait(lambda sent=sent: len(answers) == sent)
    settled = time.monotonic() + 0.2
    spinner.wait(lambda: time.monotonic() > settled)
    assert execution.watchdog.foreign_goal == np.inf, 'a goal of before, and our own'
    other.send_goal_async(goal_message(POINTS, TOLERANCES))
    spinner.wait(lambda: execution.watchdog.foreign_goal < np.inf)
    after = Execution(plan(), RULES, JointStates(RULES.limits.joints))
    after.phase = Phase.RUNNING
    client.send(after, goal_message(POINTS, TOLERANCES), None)
    spinner.wait(lambda: len(answers) == 3)
    settled = time.monotonic() + 0.2
    spinner.wait(lambda: time.monotonic() > settled)
    assert after.watchdog.foreign_goal == np.inf, 'it was before this motion'
    listener.close()
    server.destroy()


def test_trajectories_say_at_once_by_a_stamp_of_zero() -> None:
    message = trajectory_message(POINTS)
    assert (message.header.stamp.sec, message.header.stamp.nanosec) == (0, 0)
