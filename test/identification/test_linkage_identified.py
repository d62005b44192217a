"""robot/linkage.py: a robot whose joints move others, from recordings to efforts and
accelerations."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from robot_descriptions import AXIS, robot

from robot_dynid import IdentifiedModel, load_robot
from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.io.csv import write_csv
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a robot and two recordings of it, which lack the joint that follows."""
    path = tmp_path_factory.mktemp('linkage')
    follows = f'"upper"/>{AXIS}<mimic joint="turn" multiplier="-0.7" offset="0.3"/>'
    (path / 'arm.urdf').write_text(robot().replace(f'"upper"/>{AXIS}', follows))
    (path / 'arm.yaml').write_text(
        'urdf: arm.urdf\neffort_kind: torque\n'
        'limits: {turn: {acceleration: 6.0}, elbow: {acceleration: 6.0}}\n')
    (path / 'recipe.yaml').write_text('friction: coulomb\ncutoff: 20.0\neffort_lag: 0.0\n')
    made = load_robot(path / 'arm.yaml')
    for name in ('first', 'second'):
        rng = np.random.default_rng(len(name))
        motion = random_fourier(
            motion_limits(made).scaled(0.9), FourierOptions(10.0, 6), rng).sample(
                np.arange(2000) / 200.0)
        speed = motion.velocity
        effort = inverse_dynamics(made, motion.position, speed, motion.acceleration) \
            + 1.5 * np.tanh(speed / 0.02) + 2.0 * speed
        log = RawLog(name, made.joints, np.arange(2000) / 200.0, motion.position, velocity=speed,
                     effort=effort + 0.05 * rng.standard_normal(effort.shape))
        write_csv(path / f'{name}.csv', log)
        write_csv(path / f'{name}_negated.csv', replace(log, effort=-effort))
    assert main(['identify', str(path / 'first.csv'), '--robot', str(path / 'arm.yaml'),
                 '--recipe', str(path / 'recipe.yaml'), '--out', str(path / 'model.yaml')]) == 0
    return path


def test_linkage_model_predicts_another_motion(folder: Path) -> None:
    model, made = IdentifiedModel.load(folder / 'model.yaml'), load_robot(folder / 'arm.yaml')
    assert model.joints == ('turn', 'elbow')
    rng = np.random.default_rng(0)
    q, qd, qdd = rng.uniform(-1.0, 1.0, (3, 50, 2))
    expected = inverse_dynamics(made, q, qd, qdd) + 1.5 * np.sign(qd) + 2.0 * qd
    found = model.inverse(q, qd, qdd)
    assert np.abs(found - expected).max() < 0.02 * np.abs(expected).max()
    np.testing.assert_allclose(model.forward(q, qd, found), qdd, rtol=0.0, atol=1e-8)


def test_validate_scores_a_linkage_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(['validate', str(folder / 'model.yaml'), str(folder / 'second.csv'),
                 '--json']) == 0
    answer = json.loads(capsys.readouterr().out)
    found = answer['joints']
    assert {*found} == {'turn', 'elbow'}
    assert max(one['relative_error'] for one in found.values()) < 0.02
    # what coupled joints do not support has no remedy
    unsupported = [one for joint in answer['verdict']['joints'] for one in joint['uses']
                   if one['words'].endswith('does not support coupled joints')]
    assert [one['use'] for one in unsupported] == 2 * ['contact detection', 'simulation']
    assert all(one['ok'] is None and one['shown_by'] is None for one in unsupported)


def test_efforts_of_the_other_sign_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(['identify', str(folder / 'first_negated.csv'), '--robot',
                 str(folder / 'arm.yaml'), '--out', str(folder / 'no.yaml')]) == 1
    assert 'effort_sign' in capsys.readouterr().err
