"""ros/excitation/runner.py: the excitation node in the process of the test: whom it talks to,
goals given up in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rclpy

pytest.importorskip('robot_dynid_interfaces')

from control_msgs.msg import JointTrajectoryControllerState
from diagnostic_msgs.msg import DiagnosticStatus
from nodes import PATIENCE, Spinner, destroy, made
from rclpy.action import ActionClient
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from robot_dynid.cli.main import main
from robot_dynid.errors import Cancelled
from robot_dynid.execution.guards import Code, JointStates, Outcome
from robot_dynid.ros.excitation import runner
from robot_dynid.ros.excitation.messages import diagnosis
from robot_dynid.ros.excitation.node import ExcitationNode
from robot_dynid_interfaces.action import Check, Excite

pytestmark = pytest.mark.ros

CANCELED, ABORTED = 5, 6
# Long, so that who does not give it up is found out; not for ever, since nothing else ends it.
LONG = '{duration: 12, harmonics: 6, starts: 1000, time_limit: 8}'
QUICK = '{duration: 2, harmonics: 2, starts: 1, iterations: 1, scale: 0.5}'

PARAMETERS = {'robot': 'planar_3r', 'controller': 'arm', 'face': 'topic', 'controller_wait': 0.5,
              'state_timeout': 0.2}


@pytest.fixture
def excitation(ros_domain: int, tmp_path: Path) -> Iterator[Any]:
    with made(ExcitationNode, recording_directory=tmp_path, **PARAMETERS) as node:
        yield node


def test_controller_and_face_decide_the_topics_of_the_node(excitation: Any) -> None:
    controller, own = PARAMETERS['controller'], ('excitation', '/')
    published = [name for name, _ in excitation.get_publisher_names_and_types_by_node(*own)]
    heard = [name for name, _ in excitation.get_subscriber_names_and_types_by_node(*own)]
    assert f'/{controller}/joint_trajectory' in published
    assert f'/{controller}/controller_state' in heard
    assert PARAMETERS['face'] == 'topic', 'where there is no action to be ready'
    assert excitation.runner.controller.name == f'subscriber of {controller}/joint_trajectory'
    assert not excitation.runner.controller.ready()
    excitation.create_subscription(JointTrajectory, f'{controller}/joint_trajectory',
                                   lambda message: None, 1)
    Spinner(excitation).wait(excitation.runner.controller.ready)


ARM = """
urdf: urdf/planar_3r.urdf
effort_kind: torque
limits:
  joint_1: {{acceleration: {0}}}
  joint_2: {{acceleration: {0}}}
  joint_3: {{acceleration: {0}}}
"""


def test_limits_that_were_tightened_hold_for_dry_runs_files_and_designs(
    ros_domain: int, tmp_path: Path
) -> None:
    arm, file = tmp_path / 'arm.yaml', tmp_path / 'plan.yaml'
    arm.write_text(ARM.format(8.0))
    assert main(['design', str(arm), '--duration', '2', '--harmonics', '2', '--starts', '1',
                 '--iterations', '1', '--out', str(file)]) == 0
    given = PARAMETERS | {'robot': arm, 'recording_directory': tmp_path,
                          'files_directory': tmp_path}
    with made(ExcitationNode, **given) as node:
        user = rclpy.create_node('user')
        client, spinner = ActionClient(user, Excite, 'excitation/excite'), Spinner(node, user)
        spinner.wait(client.server_is_ready)

        def ask(**goal: Any) -> Any:
            handle = spinner.accepted(client, Excite.Goal(dry_run=True, **goal))
            return spinner.answer(handle.get_result_async()).result

        first, of_file = ask(options=QUICK), ask(trajectory=file.name)
        assert (first.code, of_file.code) == (Code.SUCCESS, Code.SUCCESS), of_file.message
        assert ask(trajectory=first.plan).code == Code.SUCCESS
        arm.write_text(ARM.format(0.5))
        for plan in (first.plan, of_file.plan):
            refused = ask(trajectory=plan)
            assert refused.code == Code.UNKNOWN_TRAJECTORY
            assert (f"'{plan}' is out of date (limits.acceleration of the robot {arm} changed): "
                    'request a new dry run') in refused.message
        refused = ask(trajectory=file.name)
        assert refused.code == Code.LIMIT_BROKEN and 'its limit is 0.5' in refused.message
        again = ask(options=QUICK)
        assert again.code == Code.SUCCESS and again.plan != first.plan, again.message
        limits = node.runner.dry_runs.find(again.plan).segments[-1].limits
        assert list(limits.acceleration) == [0.5, 0.5, 0.5]
        arm.write_text('urdf: ')
        assert ask(trajectory=again.plan).code == Code.INVALID
        destroy(user)


def test_a_node_that_ends_does_not_wait_for_what_it_computes(
    excitation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, released = threading.Event(), threading.Event()

    def design(*arguments: Any) -> None:
        begun.set()
        released.wait(PATIENCE)

    monkeypatch.setattr(runner, 'designed', design)
    user = rclpy.create_node('user')
    client, spinner = ActionClient(user, Excite, 'excitation/excite'), Spinner(excitation, user)
    spinner.wait(client.server_is_ready)
    handle = spinner.accepted(client, Excite.Goal())
    spinner.wait(begun.is_set)
    excitation.shut_down()
    answer = spinner.answer(handle.get_result_async())
    assert answer.result.code == Code.CANCELLED and not released.is_set()
    assert answer.result.message == 'cancelled before anything was sent'
    assert not excitation.busy
    released.set()


def test_a_design_is_given_up_when_its_goal_is_cancelled(excitation: Any) -> None:
    user = rclpy.create_node('user')
    client, spinner = ActionClient(user, Excite, 'excitation/excite'), Spinner(excitation, user)
    spinner.wait(client.server_is_ready)
    heard: list[str] = []
    handle = spinner.answer(client.send_goal_async(
        Excite.Goal(options=LONG, dry_run=True),
        lambda message: heard.append(message.feedback.segment)))
    assert handle.accepted
    spinner.wait(lambda: excitation.runner.design[1] > 0.0)
    checks = ActionClient(user, Check, 'excitation/check')
    spinner.wait(checks.server_is_ready)
    busy = spinner.answer(spinner.answer(checks.send_goal_async(Check.Goal())).get_result_async())
    assert (busy.status, busy.result.success) == (ABORTED, False)
    assert busy.result.message.startswith('another goal is being executed')
    assert spinner.answer(handle.cancel_goal_async()).goals_canceling
    answer = spinner.answer(handle.get_result_async())
    assert (answer.status, answer.result.code) == (CANCELED, Code.CANCELLED)
    assert answer.result.message == 'cancelled before anything was sent'
    assert not excitation.busy
    destroy(user)


def test_a_check_after_a_cancelled_goal_listens_as_long_as_any(excitation: Any) -> None:
    excitation.runner.stop.set()
    user = rclpy.create_node('user')
    checks, spinner = ActionClient(user, Check, 'excitation/check'), Spinner(excitation, user)
    spinner.wait(checks.server_is_ready)
    handle = spinner.answer(checks.send_goal_async(Check.Goal()))
    items = spinner.answer(handle.get_result_async()).result.items
    destroy(user)
    (told,) = (item.message for item in items if item.name == 'joint states')
    assert 'for 2.0 s: activate the joint state broadcaster' in told


def test_a_goal_without_controller_ends_after_controller_wait(excitation: Any) -> None:
    user = rclpy.create_node('user')
    client, spinner = ActionClient(user, Excite, 'excitation/excite'), Spinner(excitation, user)
    spinner.wait(client.server_is_ready)
    handle = spinner.answer(client.send_goal_async(Excite.Goal(options=QUICK)))
    result = spinner.answer(handle.get_result_async()).result
    destroy(user)
    assert result.code == Code.CONTROLLER_LOST
    waited = f"after {PARAMETERS['controller_wait']:g} s: load and activate the controller"
    assert result.message.startswith(f'no subscriber of arm/joint_trajectory {waited}')


@pytest.mark.parametrize(('publishing', 'telling', 'code', 'words'), [
    (False, True, Code.STALE_STATES, "no state of joint 'joint_1' was ever received: activate"),
    (True, False, Code.CONTROLLER_LOST, 'no message of arm/controller_state after 2 s'),
])
def test_without_states_to_record_nothing_is_left_behind(
    excitation: Any, tmp_path: Path, publishing: bool, telling: bool, code: Code, words: str
) -> None:
    result = asked(excitation, publishing, telling)
    assert (result.code, result.recording) == (code, ''), result.message
    assert words in result.message and result.message.endswith('; nothing was sent')
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures('ros_domain')
def test_where_nothing_can_be_written_nothing_is_moved(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    bags = tmp_path / 'file' / 'bags'
    with made(ExcitationNode, recording_directory=bags, **PARAMETERS) as excitation:
        result = asked(excitation, qos=QoSProfile(depth=10))
    assert result.code == Code.NOT_RECORDED, result.message
    assert str(bags) in result.message and result.message.endswith('; nothing was sent')


def asked(excitation: Any, publishing: bool = True, telling: bool = True,
          qos: QoSProfile = qos_profile_sensor_data) -> Excite.Result:
    """Return what a goal ends with where a robot is said to stand, by its states and by itself.

    ``publishing``: joint states come, with a quality of service; ``telling``: controller states.
    """
    user = rclpy.create_node('user')
    client, spinner = ActionClient(user, Excite, 'excitation/excite'), Spinner(excitation, user)
    user.create_subscription(JointTrajectory, 'arm/joint_trajectory', lambda message: None, 1)
    states = user.create_publisher(JointState, 'joint_states', qos)
    message = JointState(name=['joint_1', 'joint_2', 'joint_3'], position=[0.0] * 3,
                         velocity=[0.0] * 3, effort=[0.1] * 3)
    state = user.create_publisher(JointTrajectoryControllerState, 'arm/controller_state', 1)
    own_state = JointTrajectoryControllerState(
        joint_names=message.name, speed_scaling_factor=1.0,
        feedback=JointTrajectoryPoint(positions=[0.0] * 3, velocities=[0.0] * 3))
    if publishing:
        user.create_timer(0.02, lambda: states.publish(message))
    if telling:
        user.create_timer(0.02, lambda: state.publish(own_state))
    spinner.wait(lambda: client.server_is_ready() and excitation.runner.controller.ready())
    handle = spinner.answer(client.send_goal_async(Excite.Goal(options=QUICK)))
    result = spinner.answer(handle.get_result_async()).result
    destroy(user)
    return result


def test_a_design_hears_of_the_stop_with_its_next_progress(excitation: Any) -> None:
    runner = excitation.runner
    runner.begin()
    runner.report_progress('design', 0.5)
    runner.stop.set()
    with pytest.raises(Cancelled, match='asked to stop'):
        runner.report_progress('design', 0.6)
    runner.begin()
    runner.report_progress('design', 0.1)
    assert runner.design == ('design', 0.1), 'the next goal starts afresh'


def test_live_parameters_are_taken_over_and_the_others_refused(excitation: Any) -> None:
    def given(name: str, value: Any) -> Any:
        return excitation.set_parameters([Parameter(name, value=value)])[0]

    assert given('first_pass_scale', 0.5).successful
    assert given('return_to_start', False).successful
    settings = excitation.runner.settings
    assert (settings.first_pass_scale, settings.return_to_start) == (0.5, False)
    for beyond, words in ((1.5, 'Max: 1.0, value: 1.5'), (2, 'must be at most 1')):
        refused = given('first_pass_scale', beyond)
        assert not refused.successful
        assert words in refused.reason
    assert not given('trajectory_rate', 10.0).successful
    assert excitation.runner.settings is settings, 'nothing half way'


def test_diagnostics_tell_what_is_missing_first() -> None:
    joints, fine = ('a', 'b'), Outcome(Code.SUCCESS, 'executed')
    failed = Outcome(Code.TRACKING_ERROR, 'a is off')

    def told(age: float, last: Outcome | None, ready: bool = True) -> tuple[bytes, str]:
        states, now = JointStates(joints), time.monotonic()
        for joint, since in (('a', age), ('b', 0.0)):
            states.update(now - since, (joint,), 0.0, ([0.0], [0.0], [0.0]))
        found = diagnosis(None, states, last, ready, ())
        return found.level, found.message

    ok, warn = DiagnosticStatus.OK, DiagnosticStatus.WARN
    assert told(0.0, None) == told(0.0, fine) == (ok, 'ready')
    assert told(0.0, failed) == (warn, 'TRACKING_ERROR: a is off')
    assert told(2.0, fine) == (warn, "no recent state of joint 'a'")
    assert told(2.0, fine, ready=False) == (warn, 'the controller is absent')
