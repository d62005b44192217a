"""ros/identifier/node.py: the identifier in the process of the test: what its parameters do, goals
before they begin."""

from __future__ import annotations

import array
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from monitored import model_of
from nodes import Spinner, made
from rclpy.action import ActionClient
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.common.described_robot import RobotFiles, RobotParameters
from robot_dynid.ros.common.files_directory import RequestedFiles
from robot_dynid.ros.identifier import identify_action
from robot_dynid.ros.identifier.identification import Code, Job, Outcome
from robot_dynid.ros.identifier.identify_action import IdentifyAction
from robot_dynid.ros.identifier.model_services import ModelServices
from robot_dynid.ros.identifier.node import Identifier
from robot_dynid.ros.identifier.worker import WorkerProcess
from robot_dynid.ros.recording.recorder import Recorder
from robot_dynid.ros.recording.session import Recording
from robot_dynid.types import RawLog
from robot_dynid_interfaces.action import Identify
from robot_dynid_interfaces.msg import Payload
from robot_dynid_interfaces.srv import (
    LoadModel,
    SaveModel,
)

pytestmark = pytest.mark.ros

CANCELED = 5
ROBOT = 'planar_3r'


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    return model_of(load_robot(ROBOT))


def state(position: float) -> bytes:
    """Return a joint state of the arm."""
    message = JointState(name=list(load_robot(ROBOT).joints))
    message.header.stamp.sec = 1
    message.position = message.velocity = message.effort = array.array('d', [position] * 3)
    return bytes(serialize_message(message))


@pytest.mark.usefixtures('ros_domain')
def test_parameters_of_the_node(tmp_path: Path, model: IdentifiedModel) -> None:
    recipe, file = tmp_path / 'recipe.yaml', tmp_path / 'model.yaml'
    recipe.write_text('cutoff: 7.5\n')
    (tmp_path / 'a.csv').write_text('time\n')
    model.save(file)
    with made(Identifier, robot=ROBOT, model=file, recipe=recipe, monitor=False,
              recording_directory=tmp_path / 'bags', optional_topics='[effort]',
              files_directory=tmp_path, queue_depth=2345) as node:
        assert node.models.served().names == model.names
        depths = {s.topic_name: s.qos_profile.depth for s in node.subscriptions
                  if s.topic_name in ('/joint_states', '/motor_states', '/effort')}
        assert depths == dict.fromkeys(('/joint_states', '/motor_states', '/effort'), 2345)
        own = [name for name, _ in node.get_publisher_names_and_types_by_node('identifier', '/')]
        assert '/identifier/model' in own
        assert '/identifier/predicted_effort' not in own
        assert node.recording.start().parent == tmp_path / 'bags'
        job = node.action.job(Identify.Goal(files=['a.csv']), ('a.csv',))
        assert (job.recipe, job.method) == ('cutoff: 7.5\n', ''), 'the recipe names the method'
        asked = Identify.Goal(recipe='cutoff: 5', method='irls', out='o.yaml', report='r.html')
        job = node.action.job(asked, ('a.csv',))
        assert (job.recipe, job.method, job.out, job.report) == (
            'cutoff: 5', 'irls', 'o.yaml', 'r.html'), 'the goal comes first'
        recipe.write_text('cutoff: 6.5\n')
        job = node.action.job(Identify.Goal(files=['a.csv']), ('a.csv',))
        assert job.recipe == 'cutoff: 6.5\n', 'as it is now'


@pytest.mark.usefixtures('ros_domain')
def test_files_are_written_below_a_folder(tmp_path: Path, model: IdentifiedModel) -> None:
    model.save(tmp_path / 'model.yaml')
    with made(Identifier, robot=ROBOT, model=tmp_path / 'model.yaml', monitor=False,
              files_directory=tmp_path) as node:
        assert node.action.job(Identify.Goal(), ('a.csv',)).root == str(tmp_path)
        spinner, client = Spinner(node), node.create_client(SaveModel, '~/save_model')
        client.wait_for_service(10.0)
        for path, success in (('/tmp/m.yaml', False), (f'{tmp_path}/m.yaml', True)):
            answer = spinner.answer(client.call_async(SaveModel.Request(path=path)))
            assert answer.success == success
            assert success or '(parameter files_directory)' in answer.message
        load = node.create_client(LoadModel, '~/load_model')
        load.wait_for_service(10.0)
        for path, words in (('/tmp/m.yaml', 'parameter files_directory'), ('m.yaml', 'serving')):
            assert words in spinner.answer(
                load.call_async(LoadModel.Request(path=path))).message


@pytest.mark.usefixtures('ros_domain')
def test_by_default_files_are_those_of_the_working_directory(
    tmp_path: Path, model: IdentifiedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not those of the account: its settings, and whether there are any, is nobody's business."""
    folder, home = tmp_path / 'here', tmp_path / 'home'
    for place in (folder, home):
        place.mkdir()
    (home / '.bashrc').touch()
    monkeypatch.chdir(folder)
    monkeypatch.setenv('HOME', str(home))
    model.save(folder / 'model.yaml')
    with made(Identifier, robot=ROBOT, model='model.yaml', monitor=False) as node:
        spinner = Spinner(node)
        save, load = (node.create_client(kind, f'~/{name}') for kind, name in (
            (SaveModel, 'save_model'), (LoadModel, 'load_model')))

        def answer(client: Any, path: str) -> tuple[bool, str]:
            client.wait_for_service(10.0)
            found = spinner.answer(client.call_async(client.srv_type.Request(path=path)))
            return found.success, found.message

        for path in ('~/.bash_profile', f'{home}/.bash_profile', f'{home}/.ssh/authorized_keys',
                     '../home/x', '.model.yaml', f'{home}/model.yaml'):
            success, said = answer(save, path)
            assert not success and 'requests may not write it' in said
        answers = {answer(load, path)[1].partition(': ')[2] for path in (
            '~/.bashrc', f'{home}/.bashrc', f'{home}/.none', 'none.yaml', '/etc/passwd')}
        assert len(answers) == 1 and 'requests may not read it' in answers.pop()
        assert answer(save, 'sub/copy.yaml')[0] and answer(load, 'sub/copy.yaml')[0]
    assert {path.name for path in home.iterdir()} <= {'.bashrc', '.ros'}, 'and the logs of ROS'


@pytest.mark.usefixtures('ros_domain')
def test_file_requests_false_leaves_the_recorded_buffer(
    tmp_path: Path, model: IdentifiedModel
) -> None:
    model.save(tmp_path / 'model.yaml')
    file = f'{tmp_path}/model.yaml'
    with made(Identifier, robot=ROBOT, model=file, monitor=False, file_requests=False) as node:
        spinner = Spinner(node)
        for kind, name in ((SaveModel, 'save_model'), (LoadModel, 'load_model')):
            client = node.create_client(kind, f'~/{name}')
            client.wait_for_service(10.0)
            answer = spinner.answer(client.call_async(kind.Request(path=file)))
            assert not answer.success and 'file_requests is false' in answer.message
        action = ActionClient(node, Identify, '~/identify')
        spinner.wait(action.server_is_ready)
        for given, words in (
                ({'files': [file]}, 'is false'), ({'out': file}, 'is false'),
                ({'report': file}, 'is false'), ({}, 'nothing was recorded'),
                ({'unloaded_files': [file], 'payload': True}, 'is false')):
            handle = spinner.answer(action.send_goal_async(Identify.Goal(**given)))
            result = spinner.answer(handle.get_result_async()).result
            assert words in result.message, result.message
            assert result.code == (Code.INVALID if given else Code.NO_DATA)
        action.destroy()


@pytest.mark.usefixtures('ros_domain')
def test_the_identifier_records_states_of_joints_and_motors_by_default() -> None:
    with made(Identifier) as node:
        own = [name for name, _ in node.get_publisher_names_and_types_by_node('identifier', '/')]
        assert '/identifier/predicted_effort' in own
        assert {s.topic_name for s in node.subscriptions} & {
            '/joint_states', '/motor_states', '/effort', '/joint_torques'} == {
                '/joint_states', '/motor_states'}


@pytest.fixture
def action(node: Any, tmp_path: Path) -> Iterator[tuple[IdentifyAction, Recording]]:
    """The action in a bare node, with a recording that never reaches a disk."""
    files = RobotFiles(node, RobotParameters(ROBOT))
    recording = Recording(node, tmp_path, 'arm', (), 1000)
    recording.recorder = Recorder(tmp_path / 'unsaved', period=600.0)
    recording.recorder.add_topic('/joint_states').append(state(0.1))
    for name in ('other.csv', 'run.csv', 'any.csv', 'b.csv'):
        (tmp_path / name).touch()
    models = ModelServices(node, files.robot, RequestedFiles(print, str(tmp_path)))
    served = IdentifyAction(node, files, recording, models, str)
    yield served, recording
    served.close()
    models.close()
    recording.recorder.stop()
    recording.close()


@pytest.mark.usefixtures('ros_domain')
def test_the_files_of_the_robot_are_read_again_for_every_goal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    jobs: list[Job] = []
    ended: list[Outcome] = []
    monkeypatch.setattr(WorkerProcess, 'submit', lambda self, job: jobs.append(job))
    monkeypatch.setattr(WorkerProcess, 'news', lambda self: (None, ended.pop() if ended else None))
    arm, words = tmp_path / 'arm.yaml', '{{urdf: urdf/planar_3r.urdf, effort_kind: {}{}}}'
    arm.write_text(words.format('torque', ''))
    (tmp_path / 'run.csv').touch()
    with made(Identifier, robot=arm, monitor=False, files_directory=tmp_path) as node:
        client, spinner = ActionClient(node, Identify, '~/identify'), Spinner(node)
        spinner.wait(client.server_is_ready)
        arm.write_text(words.format('gravity_compensated_torque', ''))
        goal = spinner.answer(client.send_goal_async(Identify.Goal(files=['run.csv'])))
        spinner.wait(lambda: jobs)
        assert jobs[0].robot.drive.kind == 'gravity_compensated_torque'
        ended.append(Outcome(Code.ABORTED, 'ended'))
        spinner.answer(goal.get_result_async())
        arm.write_text(words.format('torque', ', joints: [joint_1]'))
        goal = spinner.answer(client.send_goal_async(Identify.Goal(files=['run.csv'])))
        result = spinner.answer(goal.get_result_async()).result
        assert result.code == Code.INVALID and 'restart the node' in result.message
        client.destroy()


def test_windows_of_files_reach_the_worker(
    node: Any, action: tuple[IdentifyAction, Recording], monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    jobs: list[Job] = []
    monkeypatch.setattr(WorkerProcess, 'submit', lambda self, job: jobs.append(job))
    client, spinner = ActionClient(node, Identify, '~/identify'), Spinner(node)
    spinner.wait(client.server_is_ready)
    goal = Identify.Goal(files=['run.csv[1:2.5]'])
    assert spinner.answer(client.send_goal_async(goal)).accepted
    spinner.wait(lambda: jobs)
    assert jobs[0].sources == (f'{tmp_path}/run.csv[1:2.5]',)


def test_a_payload_is_in_the_result_where_one_was_asked_for(
    node: Any, action: tuple[IdentifyAction, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [Outcome(Code.SUCCESS, 'found', payload=object()), Outcome(Code.SUCCESS, 'none')]
    monkeypatch.setattr(identify_action, 'payload_message', lambda found: Payload(mass=2.0))
    monkeypatch.setattr(WorkerProcess, 'submit', lambda self, job: None)
    monkeypatch.setattr(WorkerProcess, 'news', lambda self: (None, answers.pop(0)))
    client, spinner = ActionClient(node, Identify, '~/identify'), Spinner(node)
    spinner.wait(client.server_is_ready)
    masses = []
    while answers:
        handle = spinner.answer(client.send_goal_async(Identify.Goal(files=['any.csv'])))
        result = spinner.answer(handle.get_result_async()).result
        masses.append([payload.mass for payload in result.payload])
    assert masses == [[2.0], []]


def test_a_result_that_names_files_of_any_bytes_is_answered(
    node: Any, action: tuple[IdentifyAction, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [Outcome(code, 'x\udcff', None, '', ('a\nb\udcff',), '/x/\udcff', '/\udcff',
                       ('\udcff',)) for code in (Code.SUCCESS, Code.NOT_SAVED)]
    monkeypatch.setattr(WorkerProcess, 'submit', lambda self, job: None)
    monkeypatch.setattr(WorkerProcess, 'news', lambda self: (None, answers.pop(0)))
    client, spinner = ActionClient(node, Identify, '~/identify'), Spinner(node)
    spinner.wait(client.server_is_ready)
    while answers:
        handle = spinner.answer(client.send_goal_async(Identify.Goal(files=['any.csv'])))
        result = spinner.answer(handle.get_result_async()).result
        assert (result.message, result.verdict) == (r'x\udcff', [r'a\nb\udcff'])
        assert (result.model_file, result.report_file) == (r'/x/\udcff', r'/\udcff')
        assert result.warnings == [r'\udcff']


def test_the_process_begins_with_the_first_goal_that_is_taken_and_stays(
    node: Any, action: tuple[IdentifyAction, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[WorkerProcess] = []
    monkeypatch.setattr(identify_action, 'WorkerProcess', lambda: (
        begun.append(WorkerProcess()), begun[-1])[1])
    monkeypatch.setattr(WorkerProcess, 'submit', lambda self, job: None)
    monkeypatch.setattr(WorkerProcess, 'news', lambda self: (None, Outcome(Code.SUCCESS, '')))
    client, spinner = ActionClient(node, Identify, '~/identify'), Spinner(node)
    spinner.wait(client.server_is_ready)
    counts = []
    for goal in ({'unloaded_files': ['any.csv']}, {'files': ['any.csv']}, {'files': ['b.csv']}):
        handle = spinner.answer(client.send_goal_async(Identify.Goal(**goal)))
        spinner.answer(handle.get_result_async())
        counts.append(len(begun))
    assert counts == [0, 1, 1]
    action[0].close()
    assert not Path(f'/proc/{begun[0].pid}').exists()


def test_cancel_while_the_recording_still_goes_to_the_disk(
    node: Any, action: tuple[IdentifyAction, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The goal has not been handed to the worker, which can therefore not answer."""
    monkeypatch.setattr(identify_action, 'DISK_PATIENCE', 0.5)
    client, spinner = ActionClient(node, Identify, '~/identify'), Spinner(node)
    spinner.wait(client.server_is_ready)
    handle = spinner.answer(client.send_goal_async(Identify.Goal()))
    assert handle.accepted
    assert action[0].stage == 'record'
    assert spinner.answer(handle.cancel_goal_async()).goals_canceling
    answer = spinner.answer(handle.get_result_async())
    assert (answer.status, answer.result.code) == (CANCELED, Code.CANCELLED)
    assert answer.result.message == 'cancelled before it began'
    assert action[0].stage == ''


def test_the_worker_gets_memory_only_when_the_disk_does_not_take_it(
    node: Any, action: tuple[IdentifyAction, Recording], monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: list[Job] = []
    monkeypatch.setattr(identify_action, 'DISK_PATIENCE', 0.5)
    monkeypatch.setattr(WorkerProcess, 'submit', lambda self, job: jobs.append(job))
    client, spinner = ActionClient(node, Identify, '~/identify'), Spinner(node)
    spinner.wait(client.server_is_ready)
    asked = time.monotonic()
    assert spinner.answer(client.send_goal_async(Identify.Goal())).accepted
    spinner.wait(lambda: jobs)
    assert time.monotonic() - asked >= 0.5, 'it waits for the disk'
    (log,) = jobs[0].sources
    assert isinstance(log, RawLog)
    np.testing.assert_array_equal(log.position, [[0.1] * 3])
