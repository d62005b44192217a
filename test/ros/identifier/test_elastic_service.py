"""ros/identifier/dynamics_services.py: services of an elastic model over DDS, and `robot-dynid
forward` with the states of motors."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import external_torque

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from elastic_arms import ARM, random_states, start_at_rest, true_model
from identifier_stage import Client
from nodes import running

MODEL = true_model()
STATES = random_states(ARM, np.random.default_rng(0), 4)
NAMES = ('position', 'velocity', 'motor_position', 'motor_velocity', 'effort')
REQUEST = dict(zip(NAMES, STATES, strict=True))


@pytest.fixture(scope='module')
def served(module_domain: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp('elastic')
    MODEL.save(folder / 'model.yaml')
    parameters = {'robot': 'elastic_2r', 'recording_directory': folder / 'recordings',
                  'files_directory': folder}
    with running('identifier', parameters) as node:
        user = Client()
        assert user.call('load_model', path=str(folder / 'model.yaml')).success
        yield user
        user.close()
    assert 'unexpected' not in node.output, node.output


def expected() -> tuple[Any, Any]:
    return MODEL.forward_elastic(STATES[0], STATES[1], STATES[4], STATES[2], STATES[3])


@pytest.mark.ros
def test_accelerations_of_links_and_motors_are_served(served: Client) -> None:
    links, motors = expected()
    response = served.call('forward_dynamics', mass_matrix=True, **REQUEST)
    assert response.success, response.message
    np.testing.assert_array_equal(np.reshape(response.acceleration, links.shape), links)
    np.testing.assert_array_equal(np.reshape(response.motor_acceleration, motors.shape), motors)
    inertia = np.reshape(response.mass_matrix, (4, 2, 2))
    np.testing.assert_array_equal(inertia, MODEL.mass_matrix(STATES[0]))
    turned = {name: values[:, ::-1] for name, values in REQUEST.items()}
    response = served.call('forward_dynamics', joint_names=['joint_2', 'joint_1'], **turned)
    np.testing.assert_array_equal(
        np.reshape(response.motor_acceleration, motors.shape), motors[:, ::-1])


@pytest.mark.ros
def test_motor_states_are_recorded_without_being_asked_for(served: Client) -> None:
    assert served.call('start_recording').success
    held = served.call('stop_recording').message
    assert '0 messages of /joint_states, 0 messages of /motor_states' in held


@pytest.mark.ros
def test_motions_of_links_and_motors_are_served(served: Client) -> None:
    q, qd, motors = start_at_rest(MODEL, np.array([[0.3, -0.5], [0.1, 0.2]]))
    effort = np.tile(MODEL.gravity(q)[:, None] + [30.0, 8.0], (1, 50, 1))
    found = MODEL.rollout(q, qd, effort, 2e-3, motors)
    response = served.call('rollout', position=q, velocity=qd, effort=effort, dt=2e-3,
                           motor_position=motors[0], motor_velocity=motors[1])
    assert response.success, response.message
    for name in NAMES[:4]:
        np.testing.assert_array_equal(
            np.reshape(getattr(response, name), (2, 50, 2)), getattr(found, name))


@pytest.mark.ros
@pytest.mark.parametrize(('changes', 'words'), [
    ({'motor_position': []}, 'motor_position is empty, but joint_1, joint_2 of this model are '
                             'elastic: give 8 numbers as position, on the joint side'),
    ({'motor_velocity': []}, 'motor_velocity is empty, but joint_1, joint_2'),
    ({'motor_velocity': np.zeros(6)}, 'motor_velocity has 6 numbers, expected 8 as position'),
    ({'motor_position': np.array([0, 0, 0, np.nan, 0, 0, 0, 0])},
     "motor_position[3] is nan: joint 'joint_2' of state 1"),
])
def test_bad_motor_states_are_named(served: Client, changes: dict[str, Any], words: str) -> None:
    assert words in served.refusal('forward_dynamics', **(REQUEST | changes))
    assert words in served.refusal('rollout', dt=0.001, **(REQUEST | changes))


def write_states(path: Path, names: tuple[str, ...]) -> None:
    with path.open('w', newline='') as file:
        writer = csv.writer(file)
        writer.writerow([f'{name}.{joint}' for name in names for joint in ARM.joints])
        writer.writerows(np.hstack([REQUEST[name] for name in names]).tolist())


def test_forward_answers_for_links_and_motors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    MODEL.save('model.yaml')
    write_states(Path('states.csv'), NAMES)
    assert main(['forward', 'model.yaml', 'states.csv', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['warnings'] == []
    np.testing.assert_allclose(found['acceleration'], expected()[0], rtol=1e-12)
    np.testing.assert_allclose(found['motor_acceleration'], expected()[1], rtol=1e-12)
    assert main(['forward', 'model.yaml', 'states.csv', '--out', 'result.csv']) == 0
    with open('result.csv', newline='') as file:
        rows = list(csv.DictReader(file))
    assert [float(row['motor_acceleration.joint_2']) for row in rows] == pytest.approx(
        expected()[1][:, 1], rel=1e-12)
    capsys.readouterr()
    write_states(Path('states.csv'), ('position', 'velocity', 'effort'))
    assert main(['forward', 'model.yaml', 'states.csv', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    np.testing.assert_allclose(
        found['acceleration'], MODEL.forward(STATES[0], STATES[1], STATES[4]), rtol=1e-12)
    assert 'motor_acceleration' not in found
    assert 'elastic joints joint_1 and joint_2 are taken as stiff' in found['warnings'][0]
    write_states(Path('states.csv'), NAMES[:3] + NAMES[4:])
    assert main(['forward', 'model.yaml', 'states.csv']) == 1
    assert 'no motor_velocity column' in capsys.readouterr().err
    true_model(ARM.rigid).save('model.yaml')
    write_states(Path('states.csv'), NAMES)
    assert main(['forward', 'model.yaml', 'states.csv', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert 'all joints of the model are rigid' in found['warnings'][0]


@pytest.mark.ros
def test_wrenches_act_on_the_links_of_elastic_joints(served: Client) -> None:
    link = MODEL.robot.links[-1].name
    wrench = np.random.default_rng(1).normal(0.0, 5.0, (4, 6))
    pushed = external_torque(MODEL.robot, link, STATES[0], wrench)
    links, motors = MODEL.forward_elastic(
        STATES[0], STATES[1], STATES[4], STATES[2], STATES[3], pushed)
    response = served.call('forward_dynamics', wrench_links=[link], wrench=wrench, **REQUEST)
    assert response.success, response.message
    np.testing.assert_array_equal(np.reshape(response.acceleration, links.shape), links)
    np.testing.assert_array_equal(np.reshape(response.motor_acceleration, motors.shape), motors)
    assert np.abs(links - expected()[0]).max() > 0.1
