"""robot_dynid_extras/resonance/two_masses.py: gears seen by their motors alone, on the simulated
arm and in made-up responses."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from elastic_arms import NOISE, D, K, elastic_arm
from tolerances import RESONANCE

from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import mass_matrix
from robot_dynid.errors import DataError, UsageError
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_extras.resonance.two_masses import (
    Response,
    motor_resonance,
    two_mass_response,
    two_masses,
)


class Shaken:
    """One joint turns by 0.4 rad/s, with many sines of 1 to 60 Hz on top; the others rest."""

    duration = 10.0

    def __init__(self, robot: RobotModel, joint: int, seed: int, drift: float) -> None:
        self.joints, self.joint, self.drift = robot.joints, joint, drift
        self.rate = 2.0 * np.pi * np.arange(1.0, 60.0, 0.35)
        self.phase = np.random.default_rng(seed).uniform(0.0, 6.0, len(self.rate))
        self.size = 0.12 / self.rate / np.sqrt(len(self.rate))

    def sample(self, time: FloatArray) -> Motion:
        angle, size, rate = np.outer(time, self.rate) + self.phase, self.size, self.rate
        q, qd, qdd = np.zeros((3, len(time), len(self.joints)))
        q[:, self.joint] = np.sin(angle) @ size + self.drift * (time - 0.5 * self.duration)
        qd[:, self.joint] = np.cos(angle) @ (size * rate) + self.drift
        qdd[:, self.joint] = -np.sin(angle) @ (size * rate**2)
        return Motion(q, qd, qdd, np.zeros_like(q))


@cache
def shaken(joint: int, seed: int = 0, drift: float = 0.4) -> tuple[RobotModel, RawLog]:
    """Return the arm with one elastic joint, and what the encoder of its motor sees."""
    robot, truth = elastic_arm()
    name = robot.joints[joint]
    arm = Arm(robot.rigid, replace(truth, drives={name: truth.drives[name]}))
    log = record(arm, Shaken(robot, joint, seed, drift), 1000.0)
    log = measured(log, robot, NOISE, np.random.default_rng(seed))
    assert log.motor_position is not None
    return robot.rigid, RawLog('shaken', log.joints, log.time, log.motor_position,
                               log.motor_velocity, log.effort)


@pytest.mark.parametrize(('joint', 'seed'), [(0, 1), (2, 2)])
def test_stiffness_is_found_without_an_encoder_on_the_link(joint: int, seed: int) -> None:
    robot, log = shaken(joint, seed)
    found, told = motor_resonance(robot, log, robot.joints[joint])
    carried = mass_matrix(robot, np.zeros((1, 3)), robot.nominal)[0, joint, joint]
    rotor = elastic_arm()[1].rotor_inertia[joint]
    for name, value in (('J', rotor), ('M', carried), ('K', K[joint]), ('D', D[joint])):
        estimate, low, high = found.parameters[name]
        assert low < value < high, name
        assert estimate == pytest.approx(value, rel=RESONANCE[name])
    assert found.antiresonance == pytest.approx(np.sqrt(K[joint] / carried) / 2 / np.pi, rel=0.01)
    assert found.band[1] < 100.0, 'the noise of the encoder is no excitation'
    assert len(told) == 1 and told[0].startswith('experimental')


def test_exact_responses_give_exact_parameters() -> None:
    rng = np.random.default_rng(0)
    frequency = np.linspace(0.5, 60.0, 200)
    for _ in range(5):
        inertia, link = rng.uniform(0.05, 1.0, 2)
        anti = 2.0 * np.pi * rng.uniform(4.0, 15.0)
        values = np.array([inertia, link, link * anti**2, 0.02 * anti * link, 0.3])
        exact = Response(frequency, two_mass_response(values, 2j * np.pi * frequency),
                         np.full(200, 0.01))
        if np.sqrt(values[2] * (1 / inertia + 1 / link)) > 2 * np.pi * 50.0:
            continue
        found = two_masses(exact)
        np.testing.assert_allclose([v for v, _, _ in found.parameters.values()], values,
                                   rtol=1e-4)


def test_a_rigid_joint_and_a_motion_without_excitation_are_refused() -> None:
    robot, log = shaken(0, 1)
    with pytest.raises(DataError, match=r'no antiresonance.*take the joint as rigid'):
        motor_resonance(robot, log, 'joint_1', (20.0, 60.0))
    frequency = np.linspace(1.0, 60.0, 200)
    one = 1.0 / (2j * np.pi * frequency * 0.5 + 0.3)
    noisy = one * np.exp(0.01 * np.random.default_rng(0).normal(size=200))
    with pytest.raises(DataError, match='no antiresonance'):
        two_masses(Response(frequency, noisy, np.full(200, 0.01)))
    with pytest.raises(DataError, match=r'coherent at .* too few'):
        noise = np.random.default_rng(0).normal(size=log.position.shape)
        motor_resonance(robot, replace(log, effort=noise), 'joint_1')
    with pytest.raises(UsageError, match='no joint'):
        motor_resonance(robot, log, 'elbow')


def test_the_command_warns_of_what_spoils_it(tmp_path, capsys) -> None:
    _, log = shaken(2, 3)
    turning = log.position.copy()
    turning[:, 0] += np.sin(3.0 * log.time)
    turning[:, 2] -= 0.4 * log.time
    write_csv(tmp_path / 'log.csv', replace(log, position=turning, velocity=None))
    arguments = ['resonance', str(tmp_path / 'log.csv'), '--robot', 'planar_3r', '--joint',
                 'joint_3', '--band', '3', '60']
    assert main([*arguments, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['experimental'] and found['parameters']['K']['low'] < K[2]
    assert any(w.startswith('joint_1 moved, too') for w in found['warnings'])
    assert any('turns back' in w for w in found['warnings'])
    assert main(arguments) == 0
    assert 'experimental' in capsys.readouterr().out
