"""ros/simulated_robot/node.py: the simulated robot as a process of its own, over real DDS: its
topics, action and faults."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('control_msgs')

import rclpy
from builtin_interfaces.msg import Duration
from control_msgs.action import FollowJointTrajectory
from control_msgs.msg import JointTolerance, JointTrajectoryControllerState
from nodes import destroy, made, running
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.duration import Duration as RosDuration
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.time import Time as RosTime
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.errors import DynIdError
from robot_dynid.ros.simulated_robot.node import SimulatedRobot

pytestmark = pytest.mark.ros

ROBOT = ('shoulder_pan_joint', 'shoulder_lift_joint', 'elbow_joint',
         'wrist_1_joint', 'wrist_2_joint', 'wrist_3_joint')
CONTROLLER = 'joint_trajectory_controller'
PATIENCE = 60.0  # s: a loaded machine is slow, a broken one never gets there
MOVES = 0.02  # rad/s; less is noise
LONG = 60.0  # s of motions that end before
RESTS = 25  # states in a row without a motion
# A client that is held up loses older states: with more of them it would see what was long ago.
LATE = 50  # states, 0.1 s
BEHIND = 5.0  # s that the stamps of a robot may be behind the clock: more it does not make up
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6


def trajectory(position: float, duration: float) -> JointTrajectory:
    """A quintic move of all joints to one position."""
    whole = int(duration)
    point = JointTrajectoryPoint(
        positions=[position] * 6, velocities=[0.0] * 6, accelerations=[0.0] * 6,
        time_from_start=Duration(sec=whole, nanosec=round((duration - whole) * 1e9)),
    )
    return JointTrajectory(joint_names=list(ROBOT), points=[point])


def stamp_of(state: Any) -> int:
    """Return the stamp of a state [ns]."""
    return int(state.header.stamp.sec * 10**9 + state.header.stamp.nanosec)


def seconds(state: JointState) -> float:
    """Return the stamp of a state [s]."""
    return 1e-9 * stamp_of(state)


class Client:
    """What an excitation node uses of the robot, and what it saw."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node('client', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.states: list[JointState] = []
        self.controller_states: list[JointTrajectoryControllerState] = []
        self.feedback: list[Any] = []
        self.listen(self.states, LATE)
        self.node.create_subscription(JointTrajectoryControllerState,
                                      f'{CONTROLLER}/controller_state',
                                      self.controller_states.append, 100)
        self.topic = self.node.create_publisher(JointTrajectory,
                                                f'{CONTROLLER}/joint_trajectory', 10)
        self.action = ActionClient(self.node, FollowJointTrajectory,
                                   f'{CONTROLLER}/follow_joint_trajectory')
        self.parameters = self.node.create_client(SetParameters,
                                                  'simulated_robot/set_parameters')

    def listen(self, states: list[JointState], depth: int) -> Any:
        """Return a subscription of states, of which so many wait to be taken at most."""
        return self.node.create_subscription(
            JointState, 'joint_states', states.append,
            QoSProfile(depth=depth, durability=DurabilityPolicy.TRANSIENT_LOCAL))

    def wait(self, condition: Any) -> None:
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, 'waited in vain'
            self.executor.spin_once(timeout_sec=0.05)

    @property
    def clock(self) -> float:
        """The robot's time [s]: the stamp of the newest state."""
        return seconds(self.states[-1])

    def later(self, time: float) -> None:
        """Wait until the robot's clock is ``time`` s later."""
        count = len(self.states)
        self.wait(lambda: len(self.states) > count)
        end = self.clock + time
        self.wait(lambda: self.clock >= end)

    def beyond(self, position: float) -> None:
        """Wait until all joints are beyond a position."""
        self.wait(lambda: min(self.states[-1].position) > position)

    def moving(self) -> list[float]:
        """Return the robot's times [s] at which it moved, of all states that came in."""
        return [seconds(s) for s in self.states if np.abs(s.velocity).max() > MOVES]

    def rest(self) -> None:
        """Wait until the robot rests."""
        self.states.clear()
        self.wait(lambda: len(self.states) >= RESTS and max(
            np.abs(s.velocity).max() for s in self.states[-RESTS:]) < MOVES)

    def result(self, future: Any) -> Any:
        self.wait(future.done)
        return future.result()

    def send(self, motion: JointTrajectory, **options: Any) -> Any:
        """Send a goal and return its handle."""
        self.feedback.clear()
        goal = FollowJointTrajectory.Goal(trajectory=motion, **options)
        return self.result(self.action.send_goal_async(
            goal, feedback_callback=lambda m: self.feedback.append(m.feedback)
        ))

    def end_of(self, handle: Any) -> tuple[int, int, str]:
        """Return status, code and text of a goal's result."""
        answer = self.result(handle.get_result_async())
        return answer.status, answer.result.error_code, answer.result.error_string

    def position(self) -> np.ndarray[Any, Any]:
        """Return the newest positions in the robot's order."""
        self.states.clear()
        self.wait(lambda: len(self.states) > 5)
        state = self.states[-1]
        return np.array([state.position[list(state.name).index(name)] for name in ROBOT])

    def set_fault(self, fault: str) -> Any:
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=fault)
        request = SetParameters.Request(parameters=[Parameter(name='fault', value=value)])
        return self.result(self.parameters.call_async(request)).results[0]

    def close(self) -> None:
        destroy(self.node)
        rclpy.shutdown(context=self.context)


@pytest.fixture(scope='module')
def client(module_domain: int) -> Iterator[Client]:
    """A client of one UR10e that all tests of this module move."""
    with running('simulated_robot', {'robot': 'ur10e'}):
        user = Client()
        assert user.action.wait_for_server(PATIENCE)
        assert user.parameters.wait_for_service(PATIENCE)
        user.wait(lambda: user.states and user.controller_states)
        yield user
        user.close()


@pytest.fixture
def robot(client: Client) -> Iterator[Client]:
    """The client, the robot at zero and without faults before and after."""
    yield client
    assert client.set_fault('none').successful
    client.rest()  # a fault that drives it into its effort limits lets it swing
    assert client.end_of(client.send(trajectory(0.0, 0.6)))[0] == SUCCEEDED


def test_states_come_in_order_at_their_rate(robot: Client) -> None:
    """A client that is held up for long loses some: then stamps are several cycles apart."""
    states: list[JointState] = []
    subscription = robot.listen(states, 1000)
    robot.wait(lambda: states)
    states.clear()
    robot.controller_states.clear()
    robot.wait(lambda: states and seconds(states[-1]) > seconds(states[0]) + 1.0)
    robot.node.destroy_subscription(subscription)
    stamps = [stamp_of(state) for state in states]
    for found, cycle in ((stamps, 2_000_000),
                         ([stamp_of(state) for state in robot.controller_states], 10_000_000)):
        steps = np.diff(found)
        assert np.all(steps > 0) and not np.any(steps % cycle)
        assert np.mean(steps == cycle) > 0.9
    assert abs(stamps[-1] * 1e-9 - time.time()) < BEHIND, "the robot's clock is that of the wall"
    assert list(states[0].name) == sorted(ROBOT)
    assert list(robot.controller_states[0].joint_names) == list(ROBOT)
    assert np.std([s.effort[0] for s in states]) > 0.0, 'sensors are noisy'


def test_late_subscriber_gets_the_last_states(robot: Client) -> None:
    received: list[JointState] = []
    durable = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    assert robot.set_fault('stop_states').successful
    subscription = robot.node.create_subscription(
        JointState, 'joint_states', received.append, durable
    )
    robot.wait(lambda: received)
    robot.node.destroy_subscription(subscription)


def test_goal_is_reached_with_feedback_at_20_hz(robot: Client) -> None:
    robot.states.clear()
    handle = robot.send(trajectory(0.2, 1.0))
    assert handle.accepted
    assert robot.end_of(handle) == (SUCCEEDED, 0, 'Goal successfully reached!')
    robot.later(0.2)
    times = robot.moving()
    assert 0.7 < times[-1] - times[0] < 1.5
    assert len(robot.feedback) <= 22  # what nobody has the time to send is left out
    steps = np.diff([stamp_of(one) for one in robot.feedback]) * 1e-9
    assert np.median(steps) == pytest.approx(0.05, abs=0.01) and steps.sum() > 0.7
    feedback = robot.feedback[-1]
    assert list(feedback.joint_names) == list(ROBOT)
    assert np.abs(feedback.error.positions).max() < 0.01
    np.testing.assert_allclose(robot.position(), 0.2, atol=5e-3)


def test_rejected_goal_disturbs_nothing(robot: Client) -> None:
    handle = robot.send(trajectory(0.2, 0.6))
    bad = trajectory(0.5, 1.0)
    bad.points[0].velocities = [0.1] * 6
    assert not robot.send(bad).accepted
    bad = trajectory(0.5, 1.0)
    bad.joint_names[0] = 'nobody'
    assert not robot.send(bad).accepted
    assert robot.end_of(handle)[:2] == (SUCCEEDED, 0)


def test_path_tolerance_aborts_and_holds(robot: Client) -> None:
    bounds = [JointTolerance(name=ROBOT[0], position=0.05)]
    handle = robot.send(trajectory(0.4, LONG), path_tolerance=bounds)
    robot.later(0.1)
    assert robot.set_fault('tracking_error').successful
    status, code, text = robot.end_of(handle)
    assert (status, code) == (ABORTED, -4)
    assert ROBOT[0] in text


def test_goal_tolerance_aborts_after_the_goal_time(robot: Client) -> None:
    assert robot.set_fault('tracking_error').successful
    bounds = [JointTolerance(name=ROBOT[0], position=0.01)]
    handle = robot.send(trajectory(0.1, 0.2), goal_tolerance=bounds,
                        goal_time_tolerance=Duration(nanosec=300_000_000))
    assert robot.end_of(handle)[:2] == (ABORTED, -5)


def test_new_goal_preempts_the_old_one(robot: Client) -> None:
    old = robot.send(trajectory(0.4, LONG))
    robot.later(0.1)
    new = robot.send(trajectory(0.1, 0.5))
    assert robot.end_of(old)[:2] == (ABORTED, -1)
    assert robot.end_of(new)[:2] == (SUCCEEDED, 0)


def test_cancel_holds_the_position(robot: Client) -> None:
    handle = robot.send(trajectory(1.0, 10.0))
    robot.beyond(0.03)
    assert robot.result(handle.cancel_goal_async()).return_code == 0
    assert robot.end_of(handle) == (CANCELED, 0, '')
    robot.rest()
    held = robot.position()
    assert np.all(held > 0.02)
    assert np.all(held < 0.98)
    robot.later(0.3)
    np.testing.assert_allclose(robot.position(), held, atol=1e-3)
    assert robot.result(handle.cancel_goal_async()).return_code == 3, 'it has ended already'


def test_topic_message_takes_over_and_the_goal_succeeds_at_its_end(robot: Client) -> None:
    robot.wait(lambda: robot.topic.get_subscription_count() == 1)
    handle = robot.send(trajectory(0.5, LONG))
    robot.later(0.1)
    begin = robot.clock
    robot.topic.publish(JointTrajectory())
    robot.topic.publish(trajectory(-0.1, 0.6))
    assert robot.end_of(handle)[:2] == (SUCCEEDED, 0)
    robot.later(0.2)
    assert 0.4 < robot.moving()[-1] - begin < 0.5 * LONG
    np.testing.assert_allclose(robot.position(), -0.1, atol=5e-3)


def test_a_motion_that_is_sent_again_with_its_beginning_goes_on_without_a_step(robot: Client
                                                                               ) -> None:
    command, begun = trajectory(0.2, LONG), list[float]()

    def elapsed() -> float:
        state = robot.controller_states[-1]
        return RosDuration.from_msg(state.reference.time_from_start).nanoseconds * 1e-9

    for later in (0.2, 0.4, 0.6, 0.8):
        assert robot.send(command).accepted
        robot.wait(lambda: later < elapsed() < 0.5 * LONG)  # noqa: B023 - it is called at once
        begun.append(seconds(robot.controller_states[-1]) - elapsed())
        command.header.stamp = RosTime(seconds=begun[-1]).to_msg()
    assert np.ptp(begun) < 1e-5, 'a cycle is 1 ms'


def test_faults_can_be_switched(robot: Client) -> None:
    assert robot.set_fault('reject').successful
    assert not robot.send(trajectory(0.1, 0.5)).accepted
    assert robot.set_fault('effort_spike').successful
    first, limit = sorted(ROBOT).index(ROBOT[0]), 330.0 / 11.976
    robot.wait(lambda: robot.states[-1].effort[first] == pytest.approx(limit))
    assert robot.set_fault('no_effort').successful
    robot.wait(lambda: np.isnan(robot.states[-1].effort).all())
    assert robot.set_fault('stop_states').successful
    truth: list[JointState] = []
    there = robot.node.create_subscription(
        JointState, 'simulated_robot/true_states', truth.append, 10)

    def silent() -> bool:
        robot.states.clear()
        truth.clear()
        robot.wait(lambda: len(truth) > 20)
        return not robot.states

    robot.wait(silent)  # once what was sent before has come
    robot.node.destroy_subscription(there)
    assert np.all(np.isfinite(truth[-1].position))
    refused = robot.set_fault('nonsense')
    assert not refused.successful
    assert 'choose one of' in refused.reason


@pytest.mark.parametrize(('parameter', 'value', 'message'), [
    ('robot', 'nobody', "no robot 'nobody'"),
    ('start_position', '[1.0]', 'start position must have 7 finite values, is [1.0]'),
    ('joint_order', 'random', 'parameter joint_order'),
    ('state_rate', 'fast', "must be a finite number, is 'fast'"),
])
def test_bad_parameters_end_the_node_with_a_message(
    ros_domain: int, parameter: str, value: str, message: str
) -> None:
    """They are raised here; test_motor_states.py has what the process makes of them."""
    with pytest.raises(DynIdError, match=re.escape(message)), \
            made(SimulatedRobot, **{parameter: value}):
        pass
