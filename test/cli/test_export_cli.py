"""cli/export.py: `robot-dynid export` and `identify --urdf`: a URDF that loads, or one line that
says why not."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exported import ARM, BALL, Export, arm_model, assert_same_dynamics
from identified_models import nominal_model
from recordings import write_recording

from robot_dynid.cli.main import main
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import read_urdf

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a model, its URDF, and what is none."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'arm.urdf').write_bytes(ARM.replace('\n', '\r\n').encode())
    (tmp_path / 'other.urdf').write_text(ARM.replace('xyz="0 0 1"', 'xyz="0 0 2"'))
    arm_model().save(tmp_path / 'm.yaml')
    nominal_model('planar_3r').save(tmp_path / 'plain.yaml')
    return tmp_path


def test_export_writes_the_urdf(folder: Path, capsys: Capture) -> None:
    words = ['export', 'm.yaml', '--urdf', 'arm.urdf', '--out', 'out.urdf']
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['feasible'] is True
    assert found['changed_links'] == ['upper', 'lower']
    assert [b['link'] for b in found['bodies']] == ['upper', 'lower']
    assert found['bodies'][1]['mass'] == pytest.approx(2.0 * BALL[0])
    assert found['bodies'][0]['nominal_mass'] == 2.0
    assert found['bodies'][0]['center_of_mass'] == pytest.approx(BALL[1:4] / BALL[0])
    assert 'rotor inertia [kg m^2]: shoulder' in found['warnings'][0]
    text = (folder / 'out.urdf').read_bytes().decode()
    assert text.count('\r\n') == text.count('\n') > 20
    assert_same_dynamics(Export(text, (), ()), arm_model())
    assert np.allclose(read_urdf('out.urdf').nominal, arm_model().feasible_links, rtol=1e-12)
    assert main([*words, '--verbose']) == 0
    out = capsys.readouterr().out
    for words_out in ('identified bodies', 'upper, lower', 'out.urdf', '! only in the model'):
        assert words_out in out
    assert sorted(p.suffix for p in folder.iterdir()) == ['.urdf'] * 3 + ['.yaml'] * 2


def test_export_writes_mujocos_file(folder: Path, capsys: Capture) -> None:
    words = ['export', 'm.yaml', '--urdf', 'arm.urdf', '--mjcf', 'arm.xml']
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found['out'], found['changed_links'], found['warnings']) == (None, [], [])
    written, = found['files']
    assert (written['target'], written['path']) == ('mjcf', 'arm.xml')
    assert written['error'] < 1e-10 and written['tool'].startswith('MuJoCo ')
    assert [row['axis'] for row in written['friction']] == ['shoulder', 'elbow']
    assert [set(row) for row in written['missing']] == [{'joint', 'rms', 'most', 'ripple'}] * 2
    text = (folder / 'arm.xml').read_text()
    assert 'type="sphere"' in text
    assert main(['export', 'm.yaml', '--mjcf', 'arm.xml', '--verbose']) == 0
    assert 'mjcf: friction as written' in capsys.readouterr().out
    assert 'type="sphere"' not in (folder / 'arm.xml').read_text()


def test_export_writes_samples(folder: Path, capsys: Capture) -> None:
    model = arm_model()
    b = len(model.values)
    replace(model, correlation_factor=np.eye(b)).save('known.yaml')
    assert main(['export', 'known.yaml', '--urdf', 'arm.urdf', '--out', 'o.urdf', '--mjcf',
                 'arm.xml', '--samples', '3', '--json']) == 0
    found = json.loads(capsys.readouterr().out)['samples']
    assert found['paths'] == {'out': [f'o_00{k}.urdf' for k in range(3)],
                              'mjcf': [f'arm_00{k}.xml' for k in range(3)]}
    masses = [read_urdf(path).nominal[0, 0] for path in ('o.urdf', *found['paths']['out'])]
    assert len(set(masses)) == 4 and masses[0] == pytest.approx(BALL[0])
    assert len({Path(p).read_text() for p in found['paths']['mjcf']}) == 3
    assert main(['export', 'm.yaml', '--mjcf', 'other.xml', '--samples', '3']) == 1
    assert 'has no covariance' in capsys.readouterr().err
    assert not Path('other.xml').exists()


def test_export_writes_c_of_any_model(folder: Path, capsys: Capture) -> None:
    assert main(['export', 'plain.yaml', '--c', 'model', '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found['feasible'], found['bodies']) == (False, [])
    warning, = found['warnings']
    assert 'joint_3 is refused' in warning
    digest = hashlib.sha256((folder / 'plain.yaml').read_bytes()).hexdigest()
    written, = found['files']
    assert 'cc' in written.pop('tool')
    assert written == {'target': 'c', 'path': 'model', 'warnings': [warning], 'digest': digest,
                       'names': ['planar_3r.h', 'planar_3r.c']}
    assert digest in (folder / 'model' / 'planar_3r.h').read_text()
    assert main(['export', 'plain.yaml', '--c', 'model']) == 0
    assert digest in capsys.readouterr().out
    (folder / 'model' / 'planar_3r.c').write_text('mine')
    assert main(['export', 'plain.yaml', '--c', 'model']) == 2


def test_a_refused_joint_is_written_only_where_it_is_accepted(
    folder: Path, capsys: Capture
) -> None:
    replace(arm_model(), not_identified=('elbow',)).save('lost.yaml')
    words = ['export', 'lost.yaml', '--out', 'o.urdf', '--mjcf', 'o.xml', '--c', 'code']
    assert main(words) == 1
    error = capsys.readouterr().err
    assert 'all joints move together, and joint elbow is refused' in error
    assert '--accept-partial' in error
    assert not any((folder / name).exists() for name in ('o.urdf', 'o.xml', 'code'))
    assert main([*words, '--accept-partial', '--json']) == 0
    warnings = json.loads(capsys.readouterr().out)['warnings']
    assert 'not identified, do not use: elbow' in warnings
    assert main(['export', 'lost.yaml', '--c', 'code']) == 0  # it has NaN for that joint
    assert 'effort[1] = NAN;' in (folder / 'code' / 'arm.c').read_text()


def test_export_writes_sdf_and_solver_parameters(folder: Path, capsys: Capture) -> None:
    assert main(['export', 'm.yaml', '--sdf', 'arm.sdf', '--inverse-dynamics-solver', 'ids.yaml',
                 '--json']) == 0
    files = {one['target']: one for one in json.loads(capsys.readouterr().out)['files']}
    assert files['sdf']['path'] == 'arm.sdf' and files['sdf']['friction'][0]['damping'] > 0.0
    assert files['inverse_dynamics_solver']['error'] < 1e-10
    assert max(row['rms'] for row in files['inverse_dynamics_solver']['missing']) > 0.1
    assert 'version="1.9"' in (folder / 'arm.sdf').read_text()
    assert 'tip: lower' in (folder / 'ids.yaml').read_text()


def test_c_code_is_written_once_beside_samples_of_other_forms(
    folder: Path, capsys: Capture
) -> None:
    model = arm_model()
    replace(model, correlation_factor=np.eye(len(model.values))).save('known.yaml')
    words = ['export', 'known.yaml', '--mjcf', 'arm.xml', '--c', 'code', '--samples', '2']
    assert main([*words, '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert found['samples']['paths'] == {'mjcf': ['arm_000.xml', 'arm_001.xml'], 'c': []}
    assert found['samples']['count'] == 2
    assert sorted(path.name for path in (folder / 'code').iterdir()) == ['arm.c', 'arm.h']
    replace(model, not_identified=('elbow',)).save('lost.yaml')
    assert main(['export', 'lost.yaml', '--c', 'lost']) == 0, 'it has NaN for that joint'
    assert main(['export', 'lost.yaml', '--mjcf', 'lost.xml']) == 1
    assert 'joint elbow is refused' in capsys.readouterr().err


def test_a_robot_is_exported_as_it_is_described(folder: Path, capsys: Capture) -> None:
    words = ['export', 'planar_3r', '--out', 'a.urdf', '--mjcf', 'a.xml']
    for _ in range(2):  # its own files are replaced
        assert main([*words, '--json']) == 0
        found = json.loads(capsys.readouterr().out)
    assert [(one['target'], one['path']) for one in found['files']] == [
        ('out', 'a.urdf'), ('mjcf', 'a.xml')]
    assert {key: found[key] for key in ('robot', 'model', 'out', 'feasible', 'changed_links',
                                        'bodies', 'samples')} == {
        'robot': 'planar_3r', 'model': 'planar_3r', 'out': 'a.urdf', 'feasible': False,
        'changed_links': [], 'bodies': [], 'samples': {}}
    assert read_urdf('a.urdf').hash() == load_robot('planar_3r').hash()
    assert main(words) == 0
    assert 'changed  no link' in capsys.readouterr().out
    (folder / 'a.xml').write_text('<mujoco/>')
    assert main(words) == 2
    said = 'planar_3r is a robot, not an identified model: give --out OUT.urdf, --mjcf OUT.xml ' \
        'or --sdf OUT.sdf'
    capsys.readouterr()
    for more, end in (((), ''), (('--c', 'code', '--out', 'b.urdf'), ', and not --c'),
                      (('--urdf', 'arm.urdf', '--samples', '2', '--sdf', 'a.sdf'),
                       ', and not --urdf, --samples')):
        assert main(['export', 'planar_3r', *more]) == 2
        assert capsys.readouterr().err == f'robot-dynid: {said}{end}\n'


@pytest.mark.parametrize(('words', 'code', 'message'), [
    ('m.yaml', 2, 'nothing to write: give one of --out OUT.urdf, --mjcf OUT.xml'),
    ('m.yaml --mjcf x.xml --samples -1', 2, 'number of samples'),
    ('m.yaml --urdf arm.urdf', 2, '--out'),
    ('m.yaml --mjcf m.yaml', 2, 'm.yaml'),
    ('m.yaml --urdf none.urdf --out out.urdf', 2, 'none.urdf: cannot be read'),
    ('none.yaml --urdf arm.urdf --out out.urdf', 2, 'none.yaml: cannot be read'),
    ('m.yaml --urdf arm.urdf --out nowhere/out.urdf', 2, 'nowhere'),
    ('m.yaml --urdf other.urdf --out out.urdf', 1, 'geometry or gravity differ'),
    ('m.yaml --urdf m.yaml --out out.urdf', 1, 'm.yaml: not well-formed XML'),
    ('plain.yaml --urdf arm.urdf --out out.urdf', 1, 'identify with --method feasible'),
])
def test_export_refuses_bad_arguments_and_models_in_one_line(
    words: str, code: int, message: str, folder: Path, capsys: Capture
) -> None:
    assert main(['export', *words.split()]) == code
    out, err = capsys.readouterr()
    assert (out, err.count('\n')) == ('', 1)
    assert message in err
    assert not (folder / 'out.urdf').exists()


@pytest.mark.parametrize('method', ['feasible', 'sequential-feasible'])
def test_identify_exports(folder: Path, capsys: Capture, method: str) -> None:
    robot = load_robot('planar_3r')
    data = write_recording(folder, 'train', robot, 1)
    assert main(['identify', str(data), '--robot', 'planar_3r', '--out', 'found.yaml', '--urdf',
                 'found.urdf', '--method', method, '--json']) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert found['urdf'] == 'found.urdf'
    assert found['changed_links'] == list(robot.bodies)
    model = IdentifiedModel.load('found.yaml')
    assert model.feasible_links is not None
    assert np.allclose(model.feasible_links[:, 0], robot.nominal[:, 0], rtol=0.5)
    assert np.allclose(np.linalg.norm(model.covariance_factor, axis=0), model.std, rtol=1e-5)
    assert_same_dynamics(Export((folder / 'found.urdf').read_text(), (), ()), model)


@pytest.mark.parametrize(('robot', 'method', 'message'), [
    ('planar_3r', 'wls', 'method wls does not give; choose --method feasible or sequential-feas'),
    ('screws.yaml', 'irls', 'method irls does not give; choose --method feasible or sequential-'),
])
def test_identify_that_cannot_export_does_not_begin(
    folder: Path, capsys: Capture, robot: str, method: str, message: str
) -> None:
    (folder / 'screws.yaml').write_text(
        'screws: [{name: j, axis: [0, 0, 1], origin: [0, 0, 0]}]\neffort_kind: torque\n')
    assert main(['identify', 'absent.csv', '--robot', robot, '--out', 'x.yaml', '--urdf', 'x.urdf',
                 '--method', method]) == 2
    assert message in capsys.readouterr().err
