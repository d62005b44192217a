"""cli/recordings.py: validation recordings: `identify` leaves them out of the fit, `validate`
takes them alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.excitation.design import DesignCriteria, design_pair
from robot_dynid.excitation.families import parse_request
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.information_file import load_information
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.limits import motion_limits

ROBOT = load_robot('planar_3r')
Said = Callable[..., tuple[dict[str, Any], str]]


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a recording to fit and one for validation."""
    place = tmp_path_factory.mktemp('recordings')
    request = parse_request('fourier', {'duration': 10.0, 'starts': 1})
    header = ['time', *(f'{name}.{joint}' for name in ('position', 'velocity', 'effort')
                        for joint in ROBOT.joints)]
    for name, made in zip(('run', 'run_validation'), design_pair(
            motion_limits(ROBOT), request, DesignCriteria()), strict=True):
        assert made is not None
        time = np.arange(0.0, made.trajectory.duration, 0.01)
        motion = made.trajectory.sample(time)
        effort = inverse_dynamics(ROBOT, motion.position, motion.velocity, motion.acceleration)
        effort += np.sign(motion.velocity)
        effort += 0.02 * np.random.default_rng(0).normal(size=effort.shape)
        np.savetxt(place / f'{name}.csv', np.column_stack([
            time, motion.position, motion.velocity, effort]), delimiter=',', comments='',
            header=','.join(header), fmt='%.9g')
    return place


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Said:
    def run(*words: object) -> tuple[dict[str, Any], str]:
        assert main([*map(str, words), '--json']) == 0
        out, err = capsys.readouterr()
        return json.loads(out), ' '.join(err.split())
    return run


def test_a_folder_with_both_is_fitted_and_judged(folder: Path, tmp_path: Path, said: Said) -> None:
    fit, judge = (str(folder / name) for name in ('run.csv', 'run_validation.csv'))
    model = tmp_path / 'M.yaml'
    found, told = said('identify', folder, '--robot', 'planar_3r', '--out', model)
    assert f'held out for validation: {judge}' in told
    assert list(IdentifiedModel.load(model).record.recordings) == [fit]
    assert found['validation']['recordings'] == [judge]
    assert set(found['validation']['joints']) == set(ROBOT.joints)
    assert 'not used for the fit' in found['verdict']['words']
    titles = [section['title'] for chapter in found['chapters'] for section in chapter['sections']]
    assert 'Scores on held-out recordings' in titles
    again, told = said('validate', model, folder)
    assert f'fit recordings, not scored: {fit}' in told and again['files'] == 1
    assert again['joints'] == found['validation']['joints']
    assert again['verdict']['words'] == found['verdict']['words']
    info = tmp_path / 'run.info'
    _, told = said('information', folder, '--robot', 'planar_3r', '--out', info)
    assert f'held out for validation: {judge}' in told
    assert list(load_information(str(info)).record.recordings) == [fit]


def test_without_another_one_what_is_there_is_fitted_and_scored(
    folder: Path, tmp_path: Path, said: Said
) -> None:
    judge, model = folder / 'run_validation.csv', tmp_path / 'M.yaml'
    found, told = said('identify', judge, '--robot', 'planar_3r', '--out', model)
    assert 'for validation' not in told and found['validation'] is None
    assert list(IdentifiedModel.load(model).record.recordings) == [str(judge)]
    assert said('validate', model, folder / 'run.csv')[0]['files'] == 1


def test_a_recording_to_judge_by_that_cannot_be_read_leaves_the_model(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, model = tmp_path / 'x_validation.csv', tmp_path / 'M.yaml'
    bad.write_text('time\n0\n')
    assert main(['identify', str(folder / 'run.csv'), str(bad), '--robot', 'planar_3r', '--out',
                 str(model)]) == 1
    assert f'({model} is written)' in ' '.join(capsys.readouterr().err.split())
    assert IdentifiedModel.load(str(model)).joints == ROBOT.joints
