"""ros/identifier/model_services.py: ~/robot_description over real DDS: with feasible parameters
only, and only of what is served."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identified_models import feasible_model, nominal_model
from recordings import write_recording

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from identifier_stage import Client
from nodes import NodeProcess, running

from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf

pytestmark = pytest.mark.ros
ROBOT = 'ur10e'
BALL = parameters_from_com(1.0, [0.0, 0.0, 0.1], 0.01 * np.eye(3))
FEASIBLE, LIGHTER, PLAIN, LOST = 'feasible.yaml', 'lighter.yaml', 'plain.yaml', 'lost.yaml'
QUIET = 1.0  # s in which a latched message would have come, on this machine within 0.1 s


@pytest.fixture(scope='module')
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with models of the same robot."""
    folder = tmp_path_factory.mktemp('models')
    robot = load_robot(ROBOT)
    rng = np.random.default_rng(0)
    whole = feasible_model(robot, robot.nominal + BALL, rng)
    whole.save(folder / FEASIBLE)
    replace(whole, not_identified=('elbow_joint',)).save(folder / LOST)
    feasible_model(robot, 0.5 * robot.nominal + BALL, rng).save(folder / LIGHTER)
    nominal_model(ROBOT).save(folder / PLAIN)
    return folder


@pytest.fixture
def client(module_domain: int) -> Iterator[Client]:
    user = Client()
    yield user
    user.close()


def load(client: Client, path: Path) -> str:
    response = client.call('load_model', path=str(path))
    assert response.success, response.message
    return str(response.message)


def late_descriptions(count: int) -> list[str]:
    """Return what comes to somebody who subscribes now, waiting for ``count`` messages."""
    late = Client()
    late.listen_to_description()
    if count:
        late.wait(lambda: len(late.descriptions) >= count)
    else:
        late.spin(QUIET)
    found = [message.data for message in late.descriptions]
    late.close()
    return found


def told(node: NodeProcess, words: str) -> int:
    """Return how often the node said something."""
    return node.output.count(words)


def test_description_goes_with_the_served_model(client: Client, models: Path) -> None:
    nominal = load_robot(ROBOT).nominal
    with running('identifier', {'robot': ROBOT, 'model': models / FEASIBLE,
                                'files_directory': models}) as node:
        text, = late_descriptions(1)
        np.testing.assert_allclose(robot_from_urdf(text).nominal, nominal + BALL, rtol=1e-9,
                                   atol=1e-12)
        assert '<dynamics damping=' in text
        client.listen_to_description()
        client.wait(lambda: client.descriptions)
        load(client, models / LIGHTER)
        client.wait(lambda: len(client.descriptions) == 2)
        masses = robot_from_urdf(client.descriptions[-1].data).nominal[:, 0]
        np.testing.assert_allclose(masses, 0.5 * nominal[:, 0] + BALL[0])
        for _ in range(2):
            load(client, models / PLAIN)
        load(client, models / LIGHTER)
        assert load(client, models / LOST).startswith('joint elbow_joint is refused: ')
        client.wait(lambda: 'elbow_joint is refused' in client.diagnosis()['message'])
        assert late_descriptions(0) == [], 'the model before is not served any more'
        load(client, models / FEASIBLE)
        text, = late_descriptions(1)
        assert robot_from_urdf(text).nominal[0, 0] == pytest.approx(nominal[0, 0] + BALL[0])
        assert told(node, 'no ~/robot_description: the model of ur10e has no physically') == 1
        assert told(node, 'no ~/robot_description: all joints move together, and joint elbow') == 1
        assert told(node, '~/robot_description: only in the model file') == 2, 'once for a model'


def test_no_description_without_the_urdf(client: Client, models: Path) -> None:
    with running('identifier', {'model': models / FEASIBLE, 'files_directory': models}) as node:
        load(client, models / FEASIBLE)
        assert late_descriptions(0) == []
        assert told(node, 'no ~/robot_description: the parameter robot is empty') == 1


def test_feasible_identification_is_described(client: Client, tmp_path: Path) -> None:
    robot = load_robot('planar_3r')
    data = write_recording(tmp_path, 'train', robot, 1)
    parameters = {'robot': 'planar_3r', 'recording_directory': tmp_path / 'recordings',
                  'files_directory': tmp_path}
    with running('identifier', parameters):
        client.listen_to_description()
        result = client.identify(files=[str(data)], method='feasible')
        assert result.success, result.message
        client.wait(lambda: client.descriptions)
        masses = robot_from_urdf(client.descriptions[-1].data).nominal[:, 0]
        np.testing.assert_allclose(masses, robot.nominal[:, 0], rtol=0.5)
