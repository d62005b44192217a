"""What an installation can break; ``colcon test`` runs it in seconds, ``make test`` runs the rest.

It needs nothing beyond the packages of package.xml.
"""

from __future__ import annotations

import importlib
import importlib.util

import numpy as np
import pytest

from robot_dynid import IdentifiedModel, identify, load_robot
from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.robot.locate import find
from robot_dynid.types import RawLog

RATE, SECONDS = 200.0, 10.0  # Hz, s
#: RMS [N m] of the noise of the recording, and how close the efforts of its model come
NOISE, CLOSE = 0.05, 0.05


@pytest.fixture(scope='module')
def model() -> IdentifiedModel:
    """Return the model identified from a motion whose efforts are those of the URDF."""
    robot = load_robot('planar_3r')
    time = np.arange(0.0, SECONDS, 1.0 / RATE)[:, None]
    rates = 2.0 * np.pi * np.array([0.3, 0.5, 0.7])
    rng = np.random.default_rng(0)
    q = np.sin(rates * time) + 0.4 * np.sin(2.6 * rates * time)
    qd = rates * np.cos(rates * time) + 0.4 * 2.6 * rates * np.cos(2.6 * rates * time)
    qdd = -rates**2 * np.sin(rates * time) - 0.4 * (2.6 * rates)**2 * np.sin(2.6 * rates * time)
    effort = inverse_dynamics(robot, q, qd, qdd) + 2.0 * qd + 1.5 * np.tanh(qd / 0.02)
    log = RawLog('installation', robot.joints, time[:, 0], q, velocity=qd,
                 effort=effort + NOISE * rng.standard_normal(q.shape))
    return identify(robot, [log]).model


def test_a_model_is_identified_and_predicts(model: IdentifiedModel) -> None:
    robot, rng = load_robot('planar_3r'), np.random.default_rng(1)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 200, 3))
    expected = inverse_dynamics(robot, q, qd, qdd) + 2.0 * qd + 1.5 * np.tanh(qd / 0.02)
    efforts = model.inverse(q, qd, qdd)
    assert np.sqrt(np.mean((efforts - expected)**2)) < CLOSE * np.std(expected)
    np.testing.assert_allclose(model.forward(q, qd, efforts), qdd, atol=1e-8)


@pytest.mark.parametrize('name', ['ur10e', 'seven_axis', 'tx40'])
def test_robots_are_installed(name: str) -> None:
    assert load_robot(name).n >= 6


@pytest.mark.parametrize('name', [
    'launch/bringup.launch.py', 'launch/identify.launch.py', 'config/identifier.yaml',
    'config/controllers.yaml'])
def test_files_are_installed(name: str) -> None:
    assert find(name) is not None


def test_the_command_answers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(['base', 'planar_3r']) == 0
    assert 'Izz1' in capsys.readouterr().out


@pytest.mark.skipif(importlib.util.find_spec('rclpy') is None, reason='rclpy is not installed')
@pytest.mark.parametrize('node', ['identifier', 'excitation', 'simulated_robot'])
def test_nodes_are_loaded(node: str) -> None:
    assert callable(importlib.import_module(f'robot_dynid.ros.{node}.node').main)
