"""robot_dynid_evaluation/demo/: the story of the demo without its nodes; and that its processes
end whatever happens."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import yaml

from robot_dynid.cli.main import main
from robot_dynid.errors import DynIdError
from robot_dynid.excitation.design import design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.identification.identify import identify
from robot_dynid.identification.recipe import recipe_from_dict
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import load_truth, true_base
from robot_dynid.types import Samples
from robot_dynid_evaluation.ros_domain import own_domain

pytest.importorskip('rclpy')
from robot_dynid_evaluation.demo import processes

# A node that ignores requests to end, and one that dies at once.
STUBBORN = ['sh', '-c', 'trap "" INT TERM; echo ready; while :; do sleep 0.1; done']
DYING = ['sh', '-c', 'echo out of order; exit 3']


def test_stubborn_nodes_are_ended_when_the_block_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, 'PATIENCE', 0.3)
    monkeypatch.setattr(processes, 'command', lambda name, values: STUBBORN)
    running: list[Any] = []
    with pytest.raises(KeyboardInterrupt), processes.nodes({'a': {}, 'b': {}}, tmp_path) as found:
        running += found
        while not all(node.log.read_text() for node in found):
            time.sleep(0.01)
        raise KeyboardInterrupt
    assert [node.process.returncode for node in running] == [-signal.SIGKILL] * 2


def test_a_node_that_dies_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, 'command', lambda name, values: DYING)
    with processes.nodes({'a': {}}, tmp_path) as running:
        running[0].process.wait(60.0)
        with pytest.raises(DynIdError, match=r'node a .* 3: out of order \(see .*a\.log'):
            running[0].require_alive()


def test_nodes_get_parameter_file_and_parameters() -> None:
    words = processes.command('simulated_robot', {'robot': 'puma560', 'seed': 4})
    assert words[-4:] == ['-p', 'robot:=puma560', '-p', 'seed:=4']
    assert Path(words[words.index('--params-file') + 1]).name == 'simulated_robot.yaml'


def test_domain_is_free_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv('ROS_DOMAIN_ID', raising=False)
    with own_domain() as first:
        assert os.environ['ROS_DOMAIN_ID'] == str(first)
        assert os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] == 'LOCALHOST'
        monkeypatch.delenv('ROS_DOMAIN_ID')
        with own_domain() as second:
            assert second != first
    monkeypatch.setenv('ROS_DOMAIN_ID', '7')
    with own_domain() as domain:
        assert domain == 7
    assert os.environ['ROS_DOMAIN_ID'] == '7'


@pytest.mark.parametrize('name', ['seven_axis', 'tx40'])
def test_true_parameters_give_the_plants_torque(name: str) -> None:
    """Also where a motor turns with two joints."""
    from robot_dynid.simulation.plant import Plant

    robot = load_robot(name)
    truth = load_truth(robot)
    q, qd, qdd = np.random.default_rng(0).uniform(-1.0, 1.0, (3, 20, robot.n))
    model = Structure.uniform(robot, True, 'coulomb', {'width': 0.05}).torque_model(robot)
    values = true_base(robot, truth, model.reduction)
    samples = Samples(robot.joints, np.arange(20.0), q, qd, qdd)
    np.testing.assert_allclose(
        model.effort(samples, values), Plant(robot, truth).inverse(q, qd, qdd, 0.05),
        rtol=1e-9, atol=1e-9)


def test_a_foreign_file_is_refused_before_the_nodes_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(processes, 'nodes', None)
    (tmp_path / 'report.html').write_text('not of this software')
    assert main(['demo', '--robot', 'puma560', '--out', str(tmp_path)]) == 2
    assert 'report.html: exists and is not overwritten' in capsys.readouterr().err


def test_seed_and_robot_reach_the_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []

    def begin(parameters: Any, logs: Path) -> Any:
        told.extend([parameters, logs])
        raise DynIdError('far enough')

    monkeypatch.setattr(processes, 'nodes', begin)
    words = ['demo', '--robot', 'puma560', '--seed', '7', '--out', str(tmp_path / 'here')]
    assert main(words) == 1
    assert told[0]['simulated_robot'] == {'robot': 'puma560', 'seed': 7}
    assert told[0]['identifier']['robot'] == told[0]['excitation']['robot'] == 'puma560'
    assert told[1] == tmp_path / 'here' / 'logs'


class Served:
    """Answers requests as the service of the identifier would, without nodes."""

    def __init__(self, model: IdentifiedModel) -> None:
        self.model = model

    def call(self, name: str, request: Any) -> Any:
        """Return accelerations of the states in a request."""
        assert name == 'identifier/forward_dynamics'
        q, qd, effort, theta, theta_d = (
            np.reshape(getattr(request, key), (-1, self.model.robot.n)) for key in (
                'position', 'velocity', 'effort', 'motor_position', 'motor_velocity'))
        if not len(theta):
            return SimpleNamespace(acceleration=self.model.forward(q, qd, effort))
        links, motors = self.model.forward_elastic(q, qd, effort, theta, theta_d)
        return SimpleNamespace(acceleration=links, motor_acceleration=motors)


def run_without_nodes(name: str, excitation: str) -> tuple[IdentifiedModel, dict[str, Any]]:
    """Return model and errors of the demo's story: its options, but the robot is not real time."""
    from robot_dynid_evaluation.demo import story

    robot = load_robot(name)
    truth = load_truth(robot)
    options = yaml.safe_load(f'{{{story.EXCITATIONS[excitation].options}, seed: 0}}')
    found = design(robot, parse_request(excitation, options), design_criteria(robot))
    log = measured(record(Arm(robot, truth), found.trajectory), robot, truth.noise,
                   np.random.default_rng(0))
    fit = story.fit_options(excitation, robot, truth)
    recipe = recipe_from_dict(yaml.safe_load(fit['recipe']))
    model = identify(robot, [log], fit['method'], recipe).model
    states = story.random_states(robot, truth, model, 0)
    return model, {**story.compare(model, true_base(robot, truth, model.reduction)),
                   **story.served_errors(cast(Any, Served(model)), states)}


def test_the_story_one_joint_at_a_time() -> None:
    model, found = run_without_nodes('planar_3r', 'sine-sequence')
    assert found['forward_dynamics_error'] < 0.05
    assert found['parameters_error'] < 0.02
    assert model.warnings == ()


def test_the_story_with_elastic_joints() -> None:
    """Both encoders are recorded; gears are found, and there is an answer for motors, too."""
    model, found = run_without_nodes('elastic_2r', 'fourier')
    assert found['stiffness_error'] < 0.005
    assert found['parameters_error'] < 0.02
    assert found['forward_dynamics_error'] < 0.005
    assert found['motor_dynamics_error'] < 0.02
    assert {'K1', 'D1', 'Ia1', 'K2', 'D2', 'Ia2'} <= set(model.names)


def test_demo_refuses_an_unknown_excitation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['demo', '--excitation', 'x']) == 2
    assert "option 'excitation' must be one of fourier, sine-sequence" in capsys.readouterr().err
