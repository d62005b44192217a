"""identified/model.py: what uses models of elastic joints without asking for their gears: it must
keep working."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from elastic_arms import elastic_arm, recordings
from tolerances import SAME_FORMULA

from robot_dynid import identify
from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.identification.identify import IdentificationResult
from robot_dynid.identification.payload import identify_payload
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identified.expected_error import expected_errors
from robot_dynid.identified.uses import rigid_equivalent
from robot_dynid.io.csv import write_csv
from robot_dynid.reduction.numeric import random_states
from robot_dynid.robot.inertia import PARAMETERS, parameters_from_com
from robot_dynid.signals.prepare import prepare, repair

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / 'robot_dynid'


@cache
def result() -> IdentificationResult:
    """Return the elastic arm identified with feasible parameters."""
    robot, _ = elastic_arm()
    return identify(robot, recordings()[:1], 'feasible', Recipe(
        friction='coulomb', cutoff=30.0, ripple='none'))


@pytest.fixture(scope='module')
def files(tmp_path_factory) -> dict[str, str]:
    """Return paths of robot, model and a recording."""
    folder = tmp_path_factory.mktemp('elastic')
    source = (PACKAGE / 'config' / 'robots' / 'planar_3r.yaml').read_text()
    (folder / 'arm.yaml').write_text(source + 'elastic_joints: [joint_1, joint_2, joint_3]\n')
    result().model.save(folder / 'm.yaml')
    write_csv(folder / 'log.csv', recordings()[1])
    return {name: str(folder / name) for name in ('arm.yaml', 'm.yaml', 'log.csv', 'out.urdf',
                                                  't.yaml', 'states.csv')}


def run(capsys, *arguments: str) -> dict:
    """Run a command with --json and return what it says."""
    assert main([*arguments, '--json']) == 0
    return json.loads(capsys.readouterr().out)


def test_stiffened_is_the_same_robot_without_deflection() -> None:
    model = result().model
    stiff = rigid_equivalent(model)
    assert stiff.robot.drive.elastic == () and rigid_equivalent(stiff) is stiff
    states = random_states(stiff.robot, 20, np.random.default_rng(0))
    motion = states.position, states.velocity, states.acceleration
    np.testing.assert_allclose(stiff.inverse(*motion), model.inverse(*motion),
                               rtol=0.0, atol=SAME_FORMULA * 1e3)
    effort = stiff.inverse(*motion)
    np.testing.assert_allclose(model.forward(*motion[:2], effort), motion[2], rtol=0.0, atol=1e-6)
    assert np.linalg.eigvalsh(model.mass_matrix(motion[0])).min() > 0.0


def test_validation_export_and_contact_take_the_model(files, capsys) -> None:
    scores = run(capsys, 'validate', files['m.yaml'], files['log.csv'])['joints']
    assert set(scores) == {*(f'joint_{i}' for i in (1, 2, 3)),
                           *(f'motor of joint_{i}' for i in (1, 2, 3))}
    assert all(score['relative_error'] < 0.05 for score in scores.values())
    exported = run(capsys, 'export', files['m.yaml'], '--urdf',
                   str(PACKAGE / 'urdf' / 'planar_3r.urdf'), '--out', files['out.urdf'])
    assert exported['feasible'] and any(
        'elastic gears: joint_1, joint_2, joint_3' in w for w in exported['warnings'])
    ET.parse(files['out.urdf'])
    found = run(capsys, 'contact', files['m.yaml'], files['log.csv'])
    (joints,) = (recording['joints'] for recording in found['recordings'].values())
    assert set(joints) == {'joint_1', 'joint_2', 'joint_3'}


def test_motions_are_designed_as_if_rigid(files, capsys) -> None:
    plan = run(capsys, 'design', files['arm.yaml'], '--type', 'fourier', '--duration', '5',
               '--harmonics', '3', '--out', files['t.yaml'])
    assert np.isfinite(plan['condition_number']) and plan['condition_number'] > 1.0


@pytest.mark.always
def test_errors_are_expected_of_joints_and_not_of_motors() -> None:
    model = result().model
    states = random_states(model.robot, 20, np.random.default_rng(0))
    expected = expected_errors(model, np.arange(20.0), *(getattr(states, name)[:, :3] for name in (
        'position', 'velocity', 'acceleration')))
    assert [one.joint for one in expected] == [*model.joints]


def test_a_payload_is_found_with_an_elastic_model() -> None:
    """A recording to which the effort of two kilograms on the last link was added."""
    robot, _ = elastic_arm()
    model, log = result().model, recordings()[1]
    payload = parameters_from_com(2.0, np.array([0.1, 0.02, 0.0]), 0.01 * np.eye(3))
    loaded, bare = robot.nominal.copy(), robot.nominal
    loaded[2] += payload
    moved = prepare(robot.rigid, repair(robot.rigid, log), model.preprocessing)
    motion = [np.stack([np.interp(log.time, moved.time, column) for column in values.T], axis=1)
              for values in (moved.position, moved.velocity, moved.acceleration)]
    extra = inverse_dynamics(robot, *motion, loaded) - inverse_dynamics(robot, *motion, bare)
    assert log.effort is not None
    found = identify_payload(robot, [replace(log, effort=log.effort + extra)], model=model)
    moment = dict(zip(PARAMETERS, found.estimate.parameters, strict=True))
    assert moment['mx'] == pytest.approx(0.2, rel=0.02)
    assert moment['my'] == pytest.approx(0.04, abs=0.01)
    plain = identify_payload(robot, [replace(log, effort=log.effort + extra)], [log])
    assert plain.estimate.parameters[1] == pytest.approx(0.2, rel=0.02)
