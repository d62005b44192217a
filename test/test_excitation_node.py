"""The excitation node against the simulated robot, separate processes over real DDS."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from conftest import claim_domain

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.action import ActionClient
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
from ros_process import NodeProcess
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.excitation.guards import Code
from robot_dynid.model.robot_file import load_robot
from robot_dynid_interfaces.action import Excite

pytestmark = pytest.mark.ros

ROBOT = 'planar_3r'
PATIENCE = 20.0  # s: a loaded machine is slow, a broken one never gets there
SHORT = '{duration: 1.5, harmonics: 2, scale: 0.4, draws: 1}'
LONG = '{duration: 30, harmonics: 3, scale: 0.4, draws: 1}'
# Wide against a loaded machine; the guards themselves are tested to the cycle without ROS.
PARAMETERS = {'robot': ROBOT, 'approach_scale': 0.6, 'controller_wait': 0.5,
              'state_timeout': 0.25, 'controller_timeout': 0.4}
SIMULATION = {'robot': ROBOT, 'effort_noise': 0.0}
SUCCEEDED, CANCELED, ABORTED = 4, 5, 6


class Client:
    """What a user does with the node, and what there is to be seen."""

    def __init__(self) -> None:
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node('user', context=self.context)
        self.executor = SingleThreadedExecutor(context=self.context)
        self.executor.add_node(self.node)
        self.segments: list[tuple[float, str]] = []
        self.holds: list[JointTrajectory] = []
        self.trajectories: list[JointTrajectory] = []
        self.diagnostics: list[DiagnosticArray] = []
        self.state = JointState()
        self.moved_at = 0.0
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        topics = ((JointState, 'joint_states', self._on_state, qos_profile_sensor_data),
                  (JointTrajectory, 'joint_trajectory_controller/joint_trajectory',
                   self.holds.append, 10),
                  (JointTrajectory, 'excitation/trajectory', self.trajectories.append, latched),
                  (DiagnosticArray, '/diagnostics', self.diagnostics.append, 10))
        for topic in topics:
            self.node.create_subscription(*topic)
        self.action = ActionClient(self.node, Excite, 'excitation/excite')
        self.parameters = self.node.create_client(
            SetParameters, 'simulated_robot/set_parameters')

    def _on_state(self, message: JointState) -> None:
        self.state = message
        if np.abs(message.velocity).max() > 0.05:
            self.moved_at = time.monotonic()

    def _on_feedback(self, message: Any) -> None:
        self.segments.append((time.monotonic(), message.feedback.segment))

    def wait(self, condition: Any, patience: float = PATIENCE) -> None:
        end = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < end, 'waited in vain'
            self.executor.spin_once(timeout_sec=0.02)

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.02)

    def answer(self, future: Any) -> Any:
        self.wait(future.done)
        return future.result()

    def fault(self, name: str) -> None:
        value = ParameterValue(type=ParameterType.PARAMETER_STRING, string_value=name)
        request = SetParameters.Request(parameters=[Parameter(name='fault', value=value)])
        for _ in range(int(PATIENCE)):  # a request may go to a killed server, still in the graph
            future = self.parameters.call_async(request)
            end = time.monotonic() + 1.0
            while not future.done() and time.monotonic() < end:
                self.executor.spin_once(timeout_sec=0.02)
            if future.done():
                assert future.result().results[0].successful
                return
        raise AssertionError('the simulated robot takes no parameter')

    def send(self, options: str = LONG, **goal: Any) -> Any:
        self.segments.clear()
        self.holds.clear()
        handle = self.answer(self.action.send_goal_async(
            Excite.Goal(options=options, **goal), self._on_feedback))
        assert handle.accepted
        return handle

    def result(self, handle: Any) -> tuple[int, Excite.Result]:
        answer = self.answer(handle.get_result_async())
        assert answer.result.success == (answer.result.code == 0)
        return answer.status, answer.result

    def excite(self, options: str = SHORT, **goal: Any) -> Excite.Result:
        return self.result(self.send(options, **goal))[1]

    def moving(self) -> Any:
        """Start a long excitation and return its handle while the robot moves."""
        handle = self.send(LONG)
        self.wait(lambda: self.segments and self.segments[-1][1] == 'excitation')
        self.spin(0.6)
        return handle

    def quiet(self, ready: bool = True) -> None:
        """Wait until the robot is seen, at rest."""
        self.wait(lambda: time.monotonic() - self.moved_at > 0.3 and self.state.name)
        self.wait(self.action.server_is_ready)


class Stage:
    """Robot, node and client of the module; the robot can be lost and replaced."""

    def __init__(self) -> None:
        self.client = Client()
        self.node = NodeProcess('excitation_node', PARAMETERS)
        self.robot: NodeProcess | None = None

    def with_robot(self) -> Client:
        if self.robot is None or self.robot.process.poll() is not None:
            self.robot = NodeProcess('simulated_robot_node', SIMULATION)
            self.client.wait(self.client.parameters.service_is_ready)
        self.client.fault('none')
        self.client.quiet()
        return self.client

    def kill_robot(self) -> None:
        assert self.robot is not None
        self.robot.process.kill()
        self.robot.process.wait()

    def close(self) -> None:
        for process in (self.node, self.robot):
            if process is not None:
                process.stop()
        self.client.node.destroy_node()
        rclpy.shutdown(context=self.client.context)


@pytest.fixture(scope='module')
def stage() -> Iterator[Stage]:
    domain, lock = claim_domain()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv('ROS_DOMAIN_ID', str(domain))
        patch.setenv('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
        stage = Stage()
        yield stage
        stage.close()
    lock.close()
    assert 'Traceback' not in stage.node.output, stage.node.output
    assert 'unexpected' not in stage.node.output, stage.node.output


def test_controller_absent_but_dry_run_works(stage: Stage) -> None:
    client = stage.client
    client.wait(client.action.server_is_ready)
    result = client.excite(dry_run=True)
    assert result.code == Code.SUCCESS and 'dry run, nothing was sent' in result.message
    assert result.duration == 1.5
    assert tuple(result.joint_names) == load_robot(ROBOT).joints
    client.wait(lambda: client.trajectories)
    points = client.trajectories[-1].points
    assert len(points) == 151
    assert all(len(p.positions) == len(p.velocities) == len(p.accelerations) == 3 for p in points)
    assert not np.any(points[-1].velocities) and not np.any(points[0].velocities)
    result = client.excite()
    assert result.code == Code.CONTROLLER_LOST
    assert 'no action server joint_trajectory_controller/follow_joint_trajectory' in result.message


@pytest.mark.parametrize(('goal', 'words'), [
    ({'type': 'spiral'}, "unknown excitation type 'spiral'; known: fourier"),
    ({'options': '{duration: ['}, 'options are not YAML'),
    ({'options': 'fast'}, 'must be a mapping'),
    ({'options': '{speed: 3}'}, "unknown option 'speed'"),
    ({'options': '{duration: .nan}'}, "option 'duration'"),
    ({'options': '{limits: {joint_9: {velocity: 1}}}'}, "'joint_9'; the robot has joint_1"),
    ({'options': '{duration: 1000}'}, 'allowed are 600 s'),
])
def test_wrong_requests_are_answered(stage: Stage, goal: dict[str, str], words: str) -> None:
    client = stage.with_robot()
    result = client.excite(**goal)
    assert result.code == Code.INVALID and words in result.message
    assert time.monotonic() - client.moved_at > 0.3, 'the robot moved'


def test_success(stage: Stage) -> None:
    client = stage.with_robot()
    status, result = client.result(client.send(SHORT))
    assert (status, result.code) == (SUCCEEDED, Code.SUCCESS), result.message
    seen = [name for _, name in client.segments]
    assert [name for name in ('move_to_start', 'excitation') if name in seen] == [
        'move_to_start', 'excitation']
    end = dict(zip(client.state.name, client.state.position))
    goal = client.trajectories[-1]
    for joint, position in zip(goal.joint_names, goal.points[-1].positions):
        assert abs(end[joint] - position) < 0.02
    assert not client.holds


def test_rejected(stage: Stage) -> None:
    client = stage.with_robot()
    client.fault('reject')
    result = client.excite()
    assert result.code == Code.REJECTED and 'rejected the trajectory' in result.message


def test_no_effort_measured(stage: Stage) -> None:
    client = stage.with_robot()
    client.fault('no_effort')
    result = client.excite()
    assert result.code == Code.INVALID
    assert "joint states carry no effort of joint 'joint_1'" in result.message


@pytest.mark.parametrize(('fault', 'code', 'words'), [
    ('effort_spike', Code.EFFORT_LIMIT, "effort of joint 'joint_1' is"),
    ('stop_states', Code.STALE_STATES, 'no state of joint'),
])
def test_guards_stop_the_robot(
    stage: Stage, fault: str, code: Code, words: str, record_property: Any
) -> None:
    client = stage.with_robot()
    handle = client.moving()
    client.fault(fault)
    broken_at = time.monotonic()
    status, result = client.result(handle)
    ended_at = time.monotonic()
    assert (status, result.code) == (ABORTED, code), result.message
    assert words in result.message and 'excitation at ' in result.message
    assert result.message.endswith('motion cancelled, the robot holds')
    held_at = next((at for at, name in client.segments if name == 'hold'), ended_at)
    record_property('from fault to hold [s]', round(min(held_at, ended_at) - broken_at, 3))
    assert ended_at - broken_at < 1.5
    client.fault('none')
    client.spin(0.5)
    assert time.monotonic() - client.moved_at > 0.1, 'the robot still moves'


def test_cancel_and_busy(stage: Stage) -> None:
    client = stage.with_robot()
    handle = client.moving()
    other = client.answer(client.action.send_goal_async(Excite.Goal(options=SHORT)))
    assert client.result(other)[1].code == Code.BUSY
    asked_at = time.monotonic()
    assert client.answer(handle.cancel_goal_async()).goals_canceling
    status, result = client.result(handle)
    assert (status, result.code) == (CANCELED, Code.CANCELLED), result.message
    assert time.monotonic() - asked_at < 1.0
    client.spin(0.4)
    assert time.monotonic() - client.moved_at > 0.2, 'the robot still moves'


def test_another_program_takes_over(stage: Stage) -> None:
    """A message on the topic hijacks the goal, which the controller does not tell."""
    client = stage.with_robot()
    publisher = client.node.create_publisher(
        JointTrajectory, 'joint_trajectory_controller/joint_trajectory', 1)
    handle = client.moving()
    point = JointTrajectoryPoint(positions=[p + 0.5 for p in client.state.position])
    point.velocities, point.time_from_start.sec = [0.0] * 3, 1
    publisher.publish(JointTrajectory(joint_names=client.state.name, points=[point]))
    _, result = client.result(handle)
    assert result.code == Code.TRACKING_ERROR, result.message
    assert 'off its trajectory, allowed are 0.15' in result.message


def test_controller_killed_in_mid_motion_and_replaced(stage: Stage) -> None:
    client = stage.with_robot()
    handle = client.moving()
    stage.kill_robot()
    killed_at = time.monotonic()
    status, result = client.result(handle)
    assert (status, result.code) == (ABORTED, Code.CONTROLLER_LOST), result.message
    assert 'check that the robot stands' in result.message
    assert time.monotonic() - killed_at < 2.5
    client.wait(lambda: client.holds)
    client.state = JointState()
    client = stage.with_robot()
    assert client.excite().code == Code.SUCCESS


def test_diagnostics_tell_the_last_outcome(stage: Stage) -> None:
    client = stage.client
    client.diagnostics.clear()
    client.wait(lambda: client.diagnostics)
    values = {v.key: v.value for v in client.diagnostics[-1].status[0].values}
    assert values['controller'] == 'present'
    assert values['last outcome'] in Code.__members__


def test_interrupt_stops_the_robot_first(stage: Stage) -> None:
    client = stage.with_robot()
    handle = client.moving()
    asked_at = time.monotonic()
    stage.node.process.send_signal(signal.SIGINT)
    status, result = client.result(handle)
    assert (status, result.code) == (ABORTED, Code.CANCELLED), result.message
    assert 'the node is shut down' in result.message
    client.spin(0.4)
    assert time.monotonic() - client.moved_at > 0.2, 'the robot still moves'
    client.wait(lambda: stage.node.process.poll() is not None)
    assert stage.node.process.returncode == 0
    assert time.monotonic() - asked_at < 5.0


def test_wrong_parameters_end_the_node(stage: Stage) -> None:
    for name, words in (('', 'parameter robot is empty'), ('no_such_robot', 'no_such_robot')):
        node = NodeProcess('excitation_node', {'robot': name} if name else {})
        assert node.process.wait(PATIENCE) == 2
        assert words in node.output and 'Traceback' not in node.output


def test_codes_agree_with_the_interface() -> None:
    for code in Code:
        assert getattr(Excite.Result, code.name) == code.value
