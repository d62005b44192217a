"""`robot-dynid design` for all types, with options as text and file."""

import json

import pytest
import yaml

from robot_dynid.cli.main import main
from robot_dynid.cli.option_text import with_text
from robot_dynid.errors import UsageError
from robot_dynid.excitation.static_poses import dwells
from robot_dynid.excitation.sweep import plateaus
from robot_dynid.io.trajectory_file import load_trajectory

ROBOT = 'planar_3r'
COMPOSITE = {'segments': [{'type': 'bspline', 'duration': 6, 'starts': 1},
                          {'type': 'static-poses', 'poses': 4, 'dwell': 0.2}]}


@pytest.fixture
def designed(capsys, tmp_path):
    def run(*words):
        path = tmp_path / 'T.yaml'
        assert main(['design', ROBOT, *map(str, words), '--out', str(path), '--json']) == 0
        return json.loads(capsys.readouterr().out), load_trajectory(path)

    return run


@pytest.mark.parametrize(('kind', 'options'), [
    ('bspline', {'knots': 6, 'duration': 6.0, 'starts': 1}),
    ('constant-velocity', {'speeds': 2, 'joints': ['joint_2']}),
    ('static-poses', {'poses': 4, 'dwell': 0.2}), ('composite', COMPOSITE)])
def test_every_type_is_designed_and_written(designed, kind, options):
    found, trajectory = designed('--type', kind, '--options', json.dumps(options))
    assert found['type'] == kind and found['duration'] == trajectory.duration
    assert all(0.0 < max(used.values()) <= 0.9 for used in found['limits'].values())
    assert found['condition_number'] > 1.0
    if kind == 'constant-velocity':
        assert {p.joint for p in plateaus(trajectory)} == {'joint_2'}
    if kind in ('static-poses', 'composite'):
        assert len(list(dwells(trajectory))) == 8


def test_a_file_of_options_and_flags_go_together(designed, tmp_path):
    path = tmp_path / 'options.yaml'
    path.write_text(yaml.safe_dump({'poses': 4, 'dwell': 0.2}))
    found, _ = designed('--type', 'static-poses', '--options', path, '--seed', 3)
    assert found['stages'][0]['swings'] == 4


@pytest.mark.parametrize(('text', 'words'), [
    ('[1, 2]', 'must be a mapping'), ('{', 'not YAML'), ('nowhere.yaml', 'nowhere.yaml: cannot'),
    ('{seed: 3}', "'seed' is given as --seed and in --options")])
def test_wrong_options_are_explained(text, words):
    with pytest.raises(UsageError, match=words):
        with_text({'seed': 1}, text)
