"""ros/identifier/node.py: the identifier as a process of its own, over real DDS: recording,
identifying, serving."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')


from identifier_stage import ABORTED, CANCELED, PATIENCE, ROBOT, Client, Data
from node_inputs import alias_bomb, joint_state, many, merge_bomb, nested, number_of
from nodes import NodeProcess, running
from rosbags.rosbag2 import Reader
from sensor_msgs.msg import JointState

from robot_dynid.dynamics.rigid_body import external_torque
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.io.bag import read_bag
from robot_dynid.ros.identifier.identification import Code

JOINTS = tuple(f'joint_{i}' for i in range(1, 8))
ORDER = np.random.default_rng(7).permutation(7)
PERMUTED = [JOINTS[i] for i in ORDER]


def state(**changes: Any) -> dict[str, Any]:
    """Return two states of a good request, with changes."""
    return {name: np.zeros(14) for name in ('position', 'velocity', 'effort')} | changes


def with_bad(value: float) -> np.ndarray[Any, Any]:
    numbers = np.zeros(14)
    numbers[9] = value
    return numbers


#: requests that must be refused, and words of the refusal
BAD_STATES = [
    (state(position=[]), 'position is empty, expected K*7 numbers'),
    (state(position=np.zeros(13)), 'position has 13 numbers, expected a multiple of 7'),
    (state(velocity=np.zeros(7)), 'velocity has 7 numbers, expected 14 as position: 2 states'),
    (state(effort=[]), 'effort has 0 numbers, expected 14'),
    (state(joint_names=[*JOINTS[:6], 'elbow']), "no joint 'elbow'; the model has joint_1, joint"),
    (state(joint_names=[*JOINTS[:6], 'joint_1']), "joint 'joint_1' is named 2 times"),
    (state(joint_names=list(JOINTS[:6])), 'joint_names: joint_7 is missing'),
    (state(position=with_bad(np.nan)), "position[9] is nan: joint 'joint_3' of state 1"),
    (state(velocity=with_bad(np.inf)), "velocity[9] is inf: joint 'joint_3' of state 1"),
    (state(effort=with_bad(-np.inf), joint_names=PERMUTED),
     f"effort[9] is -inf: joint '{PERMUTED[2]}' of state 1"),
    (state(motor_position=np.zeros(14)), 'motor_position has 14 numbers, but the joints'),
]

BAD_ROLLOUTS = [
    ({'effort': np.zeros(15)}, 'effort has 15 numbers, expected 14*T'),
    ({'effort': []}, 'effort has 0 numbers, expected 14*T'),
    ({'dt': 0.0}, 'dt is 0.0, it must be finite and above zero'),
    ({'dt': float('nan')}, 'dt is nan'),
    ({'dt': 1e6}, 'the step of a rollout must be above zero and at most 60 s, is 1e+06 s'),
    ({'dt': 60.0, 'effort': np.zeros(14 * 20_000)},
     'continue from the last state in another call'),
    ({'velocity': with_bad(np.nan)}, "velocity[9] is nan: joint 'joint_3' of state 1"),
]
pytestmark = pytest.mark.ros
RNG = np.random.default_rng(8)
TEN_THOUSAND = 10_000
#: a recipe that leaves nothing to be chosen: what comes out does not go by the length of the data
GIVEN = '{cutoff: 10, ramp_width: 0.01, effort_lag: 0}'
SCREEN = 12  # lines of a result without verdict and warnings


def lines_of(message: Any) -> int:
    """Return how many lines a message takes as `ros2 action send_goal` prints it."""
    values = (getattr(message, name) for name in message.get_fields_and_field_types())
    return sum(len(value) + 1 if hasattr(value, '__len__') and not isinstance(value, str) else
               lines_of(value) if hasattr(value, 'get_fields_and_field_types') else 1
               for value in values)


@pytest.fixture(scope='module')
def data(tmp_path_factory: pytest.TempPathFactory) -> Data:
    return Data(tmp_path_factory.mktemp('data'))


@pytest.fixture(scope='module')
def client(module_domain: int, data: Data) -> Iterator[Client]:
    (data.folder / 'motion.xyz').touch()
    parameters = {'robot': ROBOT, 'recording_directory': data.folder / 'recordings',
                  'files_directory': data.folder}
    with running('identifier', parameters) as node:
        user = Client()
        yield user
        user.close()
    assert ': unexpected ' not in node.output, node.output
    assert 'Warning:' not in node.output, 'one of Python, with a line of its sources'


@pytest.fixture
def served(client: Client, data: Data) -> Client:
    assert client.call('load_model', path=str(data.model_file)).success
    return client


def test_identifier_refuses_requests_without_model_or_data(client: Client) -> None:
    zeros = np.zeros(7)
    for service in ('forward_dynamics', 'inverse_dynamics', 'rollout'):
        said = client.refusal(service, position=zeros, velocity=zeros)
        assert said.startswith('no model is loaded: identify one')
    assert 'no model is loaded' in client.refusal('save_model', path='model.yaml')
    assert client.identify().code == Code.NO_DATA
    assert client.refusal('stop_recording') == (
        'nothing is being recorded; start a recording first')
    values = client.diagnosis()
    assert values['message'] == 'no messages on /joint_states'
    assert (values['level'], values['model'], values['recording']) == ('1', 'none', 'no')


@pytest.mark.parametrize('count', [1, 1000])
def test_forward_inverse_and_mass_matrix(served: Client, data: Data, count: int) -> None:
    q, qd, effort, qdd = data.states(count)
    response = served.call('forward_dynamics', position=q, velocity=qd, effort=effort,
                           mass_matrix=True)
    assert response.success, response.message
    np.testing.assert_allclose(response.acceleration, qdd.ravel(), rtol=1e-9, atol=1e-9)
    inertia = np.reshape(response.mass_matrix, (count, 7, 7))
    np.testing.assert_array_equal(inertia, data.model.mass_matrix(q))
    response = served.call('inverse_dynamics', position=q, velocity=qd, acceleration=qdd)
    assert response.success, response.message
    np.testing.assert_allclose(response.effort, effort.ravel(), rtol=1e-12)


def test_joints_in_another_order(served: Client, data: Data) -> None:
    q, qd, effort, qdd = data.states(20)
    request = {'joint_names': PERMUTED, 'position': q[:, ORDER], 'velocity': qd[:, ORDER]}
    response = served.call('forward_dynamics', effort=effort[:, ORDER], mass_matrix=True,
                           **request)
    np.testing.assert_allclose(response.acceleration, qdd[:, ORDER].ravel(), rtol=1e-9, atol=1e-9)
    inertia = np.reshape(response.mass_matrix, (20, 7, 7))
    expected = data.model.mass_matrix(q)[:, ORDER][:, :, ORDER]
    np.testing.assert_array_equal(inertia, expected)
    response = served.call('inverse_dynamics', acceleration=qdd[:, ORDER], **request)
    np.testing.assert_allclose(response.effort, effort[:, ORDER].ravel(), rtol=1e-12)


def test_wrenches_push_the_links(served: Client, data: Data) -> None:
    """Sign, frame and sum of several links are those of `external_torque`."""
    model, (q, qd, effort, qdd) = data.model, data.states(5)
    last, other = model.robot.links[-1].name, model.robot.links[3].name
    links = [last, f'{other}@{model.robot.base_link}']
    wrench = RNG.normal(0.0, 20.0, (5, 2, 6))
    pushed = external_torque(model.robot, last, q, wrench[:, 0]) + external_torque(
        model.robot, other, q, wrench[:, 1], model.robot.base_link)
    given = {'joint_names': PERMUTED, 'position': q[:, ORDER], 'velocity': qd[:, ORDER],
             'wrench_links': links, 'wrench': wrench}
    response = served.call('forward_dynamics', effort=effort[:, ORDER], **given)
    assert response.success, response.message
    np.testing.assert_allclose(np.reshape(response.acceleration, q.shape),
                               model.forward(q, qd, effort, pushed)[:, ORDER], rtol=1e-12)
    response = served.call('inverse_dynamics', acceleration=qdd[:, ORDER], **given)
    assert response.success, response.message
    found = np.reshape(response.effort, q.shape)
    np.testing.assert_allclose(
        found, model.inverse(q, qd, qdd, external=pushed)[:, ORDER], rtol=1e-12)
    assert np.abs(found - effort[:, ORDER]).max() > 1.0, 'the wrench is in it'


def test_the_rollout_service_gives_the_motions_of_the_model(served: Client, data: Data) -> None:
    q, qd, _, _ = data.states(3)
    effort = data.model.gravity(q)[:, None] + RNG.normal(size=(3, 5, 7))
    positions, velocities = data.model.rollout(q, qd, effort, 0.002)
    response = served.call('rollout', joint_names=PERMUTED, position=q[:, ORDER],
                           velocity=qd[:, ORDER], effort=effort[:, :, ORDER], dt=0.002)
    assert response.success, response.message
    np.testing.assert_array_equal(response.position, positions[:, :, ORDER].ravel())
    np.testing.assert_array_equal(response.velocity, velocities[:, :, ORDER].ravel())
    # the states of this test are drawn anywhere, those of the training were not
    assert response.message == '; '.join(data.model.trained.warnings(data.model.robot, {
        'position': positions.reshape(-1, 7), 'velocity': velocities.reshape(-1, 7)}))
    assert list(response.limit_step) == list(response.stop_step) == [-1, -1, -1]


def test_motions_that_leave_the_limits_or_stop_are_named(served: Client, data: Data) -> None:
    q, qd = np.zeros((2, 3, 7))
    q[1, 2], qd[1, 2] = data.model.robot.limits.upper[2] - 0.01, 2.0
    effort = np.tile(data.model.gravity(q)[:, None], (1, 30, 1))
    effort[2, 3:] = 1e300
    response = served.call('rollout', joint_names=PERMUTED, position=q[:, ORDER],
                           velocity=qd[:, ORDER], effort=effort[:, :, ORDER], dt=0.001)
    found = data.model.rollout(q, qd, effort, 0.001)
    assert (response.success, response.message) == (True, '; '.join(found.warnings))
    np.testing.assert_array_equal(response.limit_step, found.limit_step)
    np.testing.assert_array_equal(response.stop_step, found.stop_step)
    assert response.limit_joint[:2] == ['', 'joint_3']
    np.testing.assert_array_equal(response.position, found.position[:, :, ORDER].ravel())


@pytest.mark.parametrize(('request_', 'words'), BAD_STATES)
def test_bad_states_are_named(served: Client, request_: dict[str, Any], words: str) -> None:
    assert words in served.refusal('forward_dynamics', **request_)
    if 'effort' not in words and 'motor' not in words:
        request_ = {'acceleration' if k == 'effort' else k: v for k, v in request_.items()}
        assert words in served.refusal('inverse_dynamics', **request_)


@pytest.mark.parametrize(('changes', 'words'), BAD_ROLLOUTS)
def test_bad_rollouts_are_named(served: Client, changes: dict[str, Any], words: str) -> None:
    assert words in served.refusal('rollout', **(state(dt=0.001) | changes))


def test_save_load_and_what_is_wrong_with_files(served: Client, data: Data) -> None:
    path = data.folder / 'new' / 'folder' / 'copy.yaml'
    assert served.call('save_model', path=str(path)).message == f'saved to {path}'
    assert IdentifiedModel.load(path).names == data.model.names
    text = path.read_text()
    path.write_text(text[:len(text) // 2])
    said = served.refusal('load_model', path=str(path))
    assert str(path) in said
    assert 'cut off' in said
    said = served.refusal('load_model', path='nowhere.yaml')
    assert said.startswith("'nowhere.yaml': requests may not read it")
    assert 'path is empty' in served.refusal('load_model', path='')
    assert 'path is empty' in served.refusal('save_model', path='')
    assert 'cannot be written' in served.refusal('save_model', path=str(data.csv / 'model.yaml'))
    zeros = np.zeros(7)
    assert served.call('inverse_dynamics', position=zeros, velocity=zeros,
                       acceleration=zeros).success, 'the served model stays'


def test_model_of_another_robot_is_refused(served: Client, data: Data) -> None:
    path = data.folder / 'moon.yaml'
    replace(data.model, robot=data.model.robot.with_gravity([0.0, 0.0, -1.62])).save(path)
    assert 'joints, geometry or gravity differ' in served.refusal('load_model', path=str(path))


def test_refused_joints_are_named_where_a_model_is_loaded(served: Client, data: Data) -> None:
    path = data.folder / 'refused.yaml'
    replace(data.model, not_identified=('joint_7',)).save(path)
    answer = served.call('load_model', path=str(path))
    assert answer.success and 'joint_7 is refused' in answer.message


def test_late_subscriber_gets_the_model(served: Client, data: Data) -> None:
    late = Client()
    late.listen_to_model()
    late.wait(lambda: late.models)
    message = late.models[-1]
    late.close()
    assert tuple(message.names) == data.model.names
    np.testing.assert_array_equal(message.values, data.model.values)
    np.testing.assert_array_equal(message.std, data.model.std)
    assert (message.robot, message.robot_hash) == (ROBOT, data.model.robot.hash())
    assert tuple(message.joint_names) == JOINTS
    assert message.header.frame_id == 'base_link'
    assert message.header.stamp.sec > 0
    assert IdentifiedModel.from_yaml(message.yaml).names == data.model.names


def test_identify_from_files(client: Client, data: Data) -> None:
    out, report = data.folder / 'out' / 'model.yaml', data.folder / 'out' / 'report.html'
    result = client.identify(files=[str(data.csv)], out=str(out), report=str(report))
    assert result.success, result.message
    assert (result.model_file, result.report_file) == (str(out), str(report))
    assert list(result.payload) == list(result.not_identified) == []
    assert 'Weak evidence' in result.verdict[0]
    assert any(sentence.startswith('next: ') for sentence in result.verdict)
    assert lines_of(result) < SCREEN + len(result.verdict) + len(result.warnings)
    fractions = [fraction for _, fraction in client.feedback]
    assert len({stage for stage, _ in client.feedback}) > 3
    assert fractions == sorted(fractions)
    assert 0.0 <= fractions[0] <= fractions[-1] <= 1.0
    values = client.served_model().values
    np.testing.assert_allclose(values, data.model.values, rtol=1e-9, atol=1e-12)
    assert list(result.warnings) == list(data.model.warnings)
    assert '<html' in report.read_text()
    np.testing.assert_array_equal(IdentifiedModel.load(out).values, values)
    q, qd, effort, qdd = data.states(2)
    response = client.call('forward_dynamics', position=q, velocity=qd, effort=effort)
    np.testing.assert_allclose(response.acceleration, qdd.ravel(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(('goal', 'code', 'words'), [
    ({'method': 'guess'}, Code.INVALID, "method 'guess'"),
    ({'recipe': 'cutof: 3'}, Code.INVALID, 'unknown key cutof'),
    ({'recipe': '['}, Code.INVALID, 'recipe: not valid YAML'),
    ({'files': ['nowhere.csv']}, Code.NO_DATA, "'nowhere.csv': requests may not read"),
    ({'files': ['/etc/passwd']}, Code.NO_DATA, "'/etc/passwd': requests may not read"),
    ({'files': ['motion.xyz']}, Code.NO_DATA, 'motion.xyz: unknown kind of recording'),
])
def test_bad_goals_are_answered(
    client: Client, data: Data, goal: dict[str, Any], code: Code, words: str
) -> None:
    status, result = client.result(client.send(**({'files': [str(data.csv)]} | goal)))
    assert (status, result.code) == (ABORTED, code), result.message
    assert words in result.message
    assert not result.verdict
    assert not result.model_file


def test_model_that_cannot_be_written_is_served(client: Client, data: Data) -> None:
    out = str(data.folder / 'made' / ('long' * 100) / 'model.yaml')
    result = client.identify(files=[str(data.csv)], out=out, recipe=GIVEN)
    assert result.code == Code.NOT_SAVED and 'model.yaml' in result.message
    assert (result.model_file, result.report_file) == ('', '')
    given = Structure.uniform(data.model.robot, True, 'coulomb', {'width': 0.01})
    names = given.torque_model(data.model.robot).reduction.names
    assert tuple(client.served_model().names) == names


def test_cancel_and_one_at_a_time(served: Client, data: Data) -> None:
    handle = served.send(files=[str(data.csv)] * 40)
    served.wait(lambda: served.feedback)
    other = served.identify(files=[str(data.csv)])
    assert other.code == Code.INVALID
    assert 'another identification is running' in other.message
    assert served.diagnosis()['identification'] != 'none'
    assert served.answer(handle.cancel_goal_async()).goals_canceling
    status, result = served.result(handle)
    assert (status, result.code) == (CANCELED, Code.CANCELLED), result.message
    assert served.identify(files=[str(data.csv)], recipe='{cutoff: 10}').success, 'works again'


def test_recorded_buffer_with_two_robots_in_any_order(client: Client, data: Data) -> None:
    started = client.call('start_recording')
    assert started.success, started.message
    assert f'already recording to {started.message[13:]}' in client.refusal('start_recording')
    names = [f'other/{name}' for name in JOINTS] + PERMUTED
    client.publish(names, data.log, [*range(7), *ORDER])
    count = len(data.log.time)
    client.wait(lambda: client.diagnosis()['recorded messages'] == str(count))
    result = client.identify()
    assert result.success, result.message
    np.testing.assert_allclose(
        client.served_model().values, data.model.values, rtol=1e-6, atol=1e-6)
    values = client.diagnosis()
    assert values['recording'] == 'yes', 'identifying does not end the recording'
    stopped = client.call('stop_recording')
    assert stopped.success
    assert f'recorded {count} messages of /joint_states in ' in stopped.message
    folder = Path(started.message.removeprefix('recording to '))
    assert folder.parent == data.folder / 'recordings'
    log = read_bag(folder, JOINTS)
    np.testing.assert_array_equal(log.effort, data.log.effort)
    again = client.identify(recipe=GIVEN)
    assert again.success, 'the buffer stays after the end of the recording'


def test_robot_that_holds_still(client: Client, data: Data) -> None:
    with running('simulated_robot', {'robot': ROBOT}):
        client.wait(lambda: float(client.diagnosis()['/joint_states rate [Hz]']) > 400.0)
        started = client.call('start_recording')
        assert started.success
        assert started.message != client.call('stop_recording').message
        assert client.call('start_recording').success
        client.wait(lambda: int(client.diagnosis()['recorded messages']) > 1000)
        client.wait(lambda: client.diagnosis()['level'] == '0')
        assert client.diagnosis()['recording'] == 'yes'
        status, result = client.result(client.send(recipe=GIVEN))
        assert (status, result.code) == (ABORTED, Code.NOT_IDENTIFIABLE), result.message
        assert 'every joint is refused, so there is no model to serve' in result.message
        assert 'record a motion in which all joints move' in result.message
        assert client.call('stop_recording').success


def test_empty_recording_says_so(client: Client) -> None:
    assert client.call('start_recording').success
    said = client.refusal('stop_recording')
    assert 'recorded 0 messages of /joint_states' in said
    assert 'check the topic and its publisher' in said


def test_malformed_messages_end_neither_node_nor_recording(served: Client, data: Data) -> None:
    """Those that are well formed are all in the bag, however many others come between."""
    states = served.node.create_publisher(JointState, 'joint_states', 10_000)
    served.wait(lambda: states.get_subscription_count() == 1)
    folder = served.call('start_recording').message.removeprefix('recording to ')
    names, good = list(JOINTS), 0
    for k, message in enumerate(many(TEN_THOUSAND, names)):
        states.publish(message)
        if k % 10 == 0:
            good += 1
            states.publish(joint_state(names, float(10**7 + good)))
        if k % 500 == 0:
            assert served.call('inverse_dynamics', position=np.zeros(7), velocity=np.zeros(7),
                               acceleration=np.zeros(7)).success
    count = TEN_THOUSAND + good
    served.wait(lambda: served.diagnosis()['recorded messages'] == str(count))
    stopped = served.call('stop_recording')
    assert stopped.success, stopped.message
    assert f'recorded {count} messages of /joint_states' in stopped.message
    served.node.destroy_publisher(states)
    with Reader(folder) as reader:
        (topic,) = reader.connections
        kept = [number_of(message) for *_, message in reader.messages([topic])]
    assert len(kept) == count
    assert [number for number in kept if 10**7 < number <= 10**7 + good] == [
        10**7 + k for k in range(1, good + 1)]


@pytest.fixture(scope='module')
def traps(data: Data) -> dict[str, str]:
    """Return files that are none, and texts that grow when they are read."""
    folder = data.folder / 'traps'
    folder.mkdir()
    os.mkfifo(folder / 'pipe')
    texts = {'nested': nested(30_000), 'merged': merge_bomb(), 'aliases': alias_bomb(),
             'tagged': '!!python/object/apply:os.system ["true"]', 'binary': '\0\1\2'}
    for name, text in texts.items():
        (folder / name).write_text(text)
    (folder / 'latin').write_bytes(b'name: \xe4\xff')
    return {path.name: str(path) for path in folder.iterdir()} | {
        'zero': '/dev/zero', 'folder': str(folder), 'long': 'x' * 100_000, 'nul': 'a\0b',
        'deep': '../' * 10_000, 'memory': '/proc/self/mem'}


def prompt(client: Client, service: str, **fields: Any) -> str:
    """Return what a refusal says, which comes within the patience of the client."""
    said = client.refusal(service, **fields)
    assert 0 < len(said) <= 4000
    assert 'unexpected' not in said
    return said


def test_files_that_are_traps_are_refused_at_once(served: Client, traps: dict[str, str]) -> None:
    for path in traps.values():
        prompt(served, 'load_model', path=path)
    for name in ('pipe', 'zero', 'folder', 'long', 'latin', 'memory'):
        prompt(served, 'save_model', path=traps[name])
    assert Path(traps['latin']).read_bytes() == b'name: \xe4\xff'
    assert served.call('inverse_dynamics', position=np.zeros(7), velocity=np.zeros(7),
                       acceleration=np.zeros(7)).success, 'the served model stays'


@pytest.mark.parametrize('names', [
    [''], [' '] * 7, ['joint_1'] * 7, [*JOINTS, 'joint_1'], [''] * 100_000, ['x' * 100_000],
    ['joint_1\n'] * 7])
def test_names_of_joints_that_are_none(served: Client, names: list[str]) -> None:
    zeros = np.zeros(7)
    prompt(served, 'forward_dynamics', joint_names=names, position=zeros, velocity=zeros,
           effort=zeros)
    prompt(served, 'rollout', joint_names=names, position=zeros, velocity=zeros, effort=zeros,
           dt=0.001)


def test_requests_of_absurd_size_are_refused_at_once(served: Client) -> None:
    many_states = np.zeros(7 * 150_000)
    for service, more in (('forward_dynamics', 'effort'), ('inverse_dynamics', 'acceleration')):
        said = prompt(served, service, position=many_states, velocity=many_states,
                      **{more: many_states})
        assert 'at most 142857 states of 7 joints' in said
    zeros = np.zeros(7)
    for steps, dt, words in ((1, 1e300, 'at most 60 s, is 1e+300 s'),
                             (1000, 60.0, 's here (limit 10 s per call)')):
        assert words in prompt(served, 'rollout', position=zeros, velocity=zeros,
                               effort=np.zeros(7 * steps), dt=dt)


def test_goals_that_are_traps_are_answered(
    client: Client, data: Data, traps: dict[str, str]
) -> None:
    client.identify(files=['nowhere.csv'])  # answered once the worker has warmed up
    for name in ('pipe', 'zero', 'folder', 'long', 'nul', 'memory'):
        result = client.identify(files=[traps[name]])
        assert result.code == Code.NO_DATA, result.message
        assert 0 < len(result.message) <= 4000
    for name in ('nested', 'merged', 'aliases', 'tagged'):
        result = client.identify(files=[str(data.csv)], recipe=Path(traps[name]).read_text())
        assert result.code == Code.INVALID, result.message


@pytest.mark.parametrize(('parameters', 'code', 'words'), [
    ({'robot': 'nobody'}, 2, "no robot 'nobody'"),
    ({'recipe': 'nowhere.yaml'}, 2, 'parameter recipe: nowhere.yaml'),
    ({'robot': 'planar_3r', 'model': ''}, 1, f'the model was identified for {ROBOT}'),
])
def test_unusable_parameters_end_the_node(
    module_domain: int, data: Data, parameters: dict[str, Any], code: int, words: str
) -> None:
    given = {k: v or data.model_file for k, v in parameters.items()}
    node = NodeProcess('identifier', given)
    assert node.process.wait(PATIENCE) == code
    assert words in node.output
    assert 'Traceback' not in node.output
