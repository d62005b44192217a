"""ros/excitation/node.py: the excitation node against the simulated robot, separate processes over
real DDS."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from excitation_stage import ABORTED, CANCELED, LONG, PATIENCE, ROBOT, SHORT, SUCCEEDED, Stage
from node_inputs import alias_bomb, many, merge_bomb, nested
from nodes import NodeProcess
from sensor_msgs.msg import JointState, Temperature
from std_msgs.msg import Bool

from robot_dynid.execution.guards import Code
from robot_dynid.robot.robot_file import load_robot
from robot_dynid_interfaces.action import Excite

pytestmark = pytest.mark.ros

ESCALATION = 5.0  # s after which `ros2 launch` sends SIGTERM, unless its file says otherwise


@pytest.fixture(scope='module')
def shared(module_domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp('bags'))
    yield stage
    stage.close()
    assert 'Traceback' not in stage.node.output, stage.node.output
    assert 'unexpected' not in stage.node.output, stage.node.output


@pytest.fixture
def stage(shared: Stage) -> Stage:
    """Return the stage as a test expects it, whatever became of the test before."""
    return shared.reset()


def test_controller_absent_but_dry_run_works(stage: Stage) -> None:
    client = stage.client
    client.wait(client.action.server_is_ready)
    result = client.excite(dry_run=True)
    assert result.code == Code.SUCCESS and 'dry run, nothing was sent' in result.message
    assert result.duration == 1.5
    assert tuple(result.joint_names) == load_robot(ROBOT).joints
    client.wait(lambda: client.trajectories)
    points = client.trajectories[-1].points
    assert len(points) == 76
    assert all(len(p.positions) == len(p.velocities) == len(p.accelerations) == 3 for p in points)
    assert not np.any(points[-1].velocities) and not np.any(points[0].velocities)
    result = client.excite(options='', trajectory=result.plan)
    assert result.code == Code.CONTROLLER_LOST
    assert 'no action server joint_trajectory_controller/follow_joint_trajectory' in result.message


@pytest.mark.parametrize(('goal', 'words'), [
    ({'type': 'spiral'}, "unknown excitation type 'spiral'; choose one of fourier"),
    ({'options': '{duration: ['}, 'not valid YAML'),
    ({'options': 'fast'}, 'must be a mapping'),
    ({'options': '{speed: 3}'}, "unknown option 'speed'"),
    ({'options': '{duration: .nan}'}, "option 'duration'"),
    ({'options': '{limits: {joint_9: {velocity: 1}}}'}, "'joint_9'; the robot has joint_1"),
    ({'options': '{duration: 1000}'}, '(limit 600 s'),
])
def test_wrong_requests_are_answered(stage: Stage, goal: dict[str, str], words: str) -> None:
    client = stage.with_robot()
    result = client.excite(**goal)
    assert result.code == Code.INVALID and words in result.message
    client.stayed()


def test_malformed_messages_and_goals_that_are_traps(stage: Stage) -> None:
    """The node is there after them, and knows nothing of the robot that it did not say."""
    client = stage.client
    publishers = [client.node.create_publisher(kind, topic, 1000) for kind, topic in (
        (JointState, 'joint_states'), (Bool, 'emergency_stop'), (Temperature, 'temperature'))]
    client.wait(lambda: all(p.get_subscription_count() for p in publishers))
    for message in many(2000, list(load_robot(ROBOT).joints)):
        for publisher, size in zip(publishers, (len(message), 8, 64), strict=True):
            publisher.publish(message[:size])
    for options in (nested(30_000), merge_bomb(), alias_bomb(), '!!python/name:os.system', '\1',
                    '{duration: 1e308}', '{harmonics: 1000000000}', 'x' * 100_000):
        result = client.excite(options, dry_run=True)
        assert result.code == Code.INVALID, (options[:30], result.message)
        assert len(result.message) <= 4100
    for path in ('/dev/zero', '../' * 10_000, 'x' * 100_000, '\n', '.'):
        result = client.excite('', trajectory=path, dry_run=True)
        assert result.code == Code.UNKNOWN_TRAJECTORY, result.message
    for publisher in publishers:
        client.node.destroy_publisher(publisher)
    assert client.excite(dry_run=True).code == Code.SUCCESS
    client.emergency.publish(Bool(data=False))  # some of the others were whole
    client.spin(0.5)  # the client hears them, too
    client.state, client.moved_at = JointState(), 0.0


def test_excite_moves_to_the_start_and_through_the_excitation(stage: Stage) -> None:
    client = stage.with_robot()
    status, result = client.result(client.send(SHORT))
    assert (status, result.code) == (SUCCEEDED, Code.SUCCESS), result.message
    seen = [name for _, name in client.segments]
    assert [name for name in ('move_to_start', 'excitation') if name in seen] == [
        'move_to_start', 'excitation']
    client.comes_to_rest()
    end = dict(zip(client.state.name, client.state.position))
    goal = client.trajectories[-1]
    for joint, position in zip(goal.joint_names, goal.points[-1].positions):
        assert abs(end[joint] - position) < 0.02
    assert not client.holds


def test_a_trajectory_the_controller_rejects_ends_the_goal(stage: Stage) -> None:
    client = stage.with_robot()
    client.fault('reject')
    result = client.excite()
    assert result.code == Code.REJECTED and 'rejected the trajectory' in result.message


def test_no_effort_measured(stage: Stage) -> None:
    client = stage.with_robot()
    client.fault('no_effort')
    result = client.excite()
    assert result.code == Code.INVALID
    assert "joint states carry no effort of joints 'joint_1', " in result.message


def test_cancel_and_busy(stage: Stage) -> None:
    client = stage.with_robot()
    handle = client.moving()
    other = client.answer(client.action.send_goal_async(Excite.Goal(options=SHORT)))
    assert client.result(other)[1].code == Code.BUSY
    assert client.answer(handle.cancel_goal_async()).goals_canceling
    status, result = client.result(handle)
    assert (status, result.code) == (CANCELED, Code.CANCELLED), result.message
    client.comes_to_rest()


def test_another_program_takes_over(stage: Stage) -> None:
    """A message on the topic hijacks the goal, which the controller does not tell."""
    client = stage.with_robot()
    handle = client.send(LONG)
    client.wait(lambda: client.segments and client.segments[-1][1] == 'excitation')
    client.hijack()
    _, result = client.result(handle)
    assert result.code == Code.TAKEN_OVER, result.message
    assert 'another program has taken it over' in result.message


def test_diagnostics_tell_the_last_outcome(stage: Stage) -> None:
    client = stage.client
    client.diagnostics.clear()
    client.wait(lambda: client.diagnostics)
    status = client.diagnostics[-1].status[0]
    assert (status.name, status.hardware_id) == ('/excitation: execution', ROBOT)
    values = {v.key: v.value for v in status.values}
    assert values['controller'] == 'present'
    assert values['last outcome'] in Code.__members__


def test_interrupt_stops_the_robot_first(stage: Stage) -> None:
    client = stage.with_robot()
    handle, interrupted = client.moving(), time.monotonic()
    stage.node.process.send_signal(signal.SIGINT)
    status, result = client.result(handle)
    assert (status, result.code) == (ABORTED, Code.CANCELLED), result.message
    assert 'the node is shut down' in result.message
    client.comes_to_rest()
    assert stage.node.process.wait(max(0.0, interrupted + ESCALATION - time.monotonic())) == 0


def test_wrong_parameters_end_the_node(shared: Stage) -> None:
    for name, words in (('', 'parameter robot is empty'), ('no_such_robot', 'no_such_robot')):
        node = NodeProcess('excitation', {'robot': name} if name else {})
        assert node.process.wait(PATIENCE) == 2
        assert words in node.output and 'Traceback' not in node.output


def test_codes_agree_with_the_interface() -> None:
    for code in Code:
        assert getattr(Excite.Result, code.name) == code.value
