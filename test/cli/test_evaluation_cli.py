"""cli/evaluation.py: forward and inverse of states in a file, rigid and elastic; their table."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from identified_models import model_named, nominal_model

from robot_dynid.cli.evaluation import RESULTS, run_forward, run_inverse, show, write_rows
from robot_dynid.cli.main import main, parser
from robot_dynid.cli.terminal import Terminal
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray

RIGID = replace(nominal_model('planar_3r'), not_identified=())
STIFF = 'elastic joints joint_1 and joint_2 are taken as stiff without '
UNUSED = 'the columns of motors are not used: all joints of the model are rigid'


@pytest.fixture(scope='module')
def elastic() -> IdentifiedModel:
    return model_named('elastic_2r')


def states(model: IdentifiedModel, *channels: str) -> dict[str, FloatArray]:
    rng = np.random.default_rng(1)
    return {name: rng.uniform(-0.9, 0.9, (4, model.robot.n)) for name in channels}


def evaluated(
    run: Any, folder: Path, model: IdentifiedModel, given: dict[str, FloatArray], *words: str
) -> dict[str, Any]:
    """Return the result of a verb for a model and states in files."""
    model.save(folder / 'M.yaml')
    (folder / 's.csv').unlink(missing_ok=True)
    write_rows(str(folder / 's.csv'), model.joints, given)
    line = ['forward' if run is run_forward else 'inverse', str(folder / 'M.yaml'),
            str(folder / 's.csv'), *words]
    return dict(run(parser(line).parse_args(line), Terminal()))


def test_rigid_joints_accelerate_as_the_model_and_need_no_motors(tmp_path: Path) -> None:
    given = states(RIGID, 'position', 'velocity', 'effort', 'motor_position', 'motor_velocity')
    found = evaluated(run_forward, tmp_path, RIGID, given)
    expected = RIGID.forward(given['position'], given['velocity'], given['effort'])
    np.testing.assert_allclose(found['acceleration'], expected, rtol=1e-12)
    assert found['ok'] and UNUSED in found['warnings'] and 'motor_acceleration' not in found
    plain = {name: given[name] for name in ('position', 'velocity', 'effort')}
    found = evaluated(run_forward, tmp_path, RIGID, plain)
    assert not any('motor' in text or 'stiff' in text for text in found['warnings'])


def test_elastic_joints_are_stiff_without_columns_of_motors(
    elastic: IdentifiedModel, tmp_path: Path
) -> None:
    given = states(elastic, 'position', 'velocity', 'effort')
    found = evaluated(run_forward, tmp_path, elastic, given)
    assert f'{STIFF}columns motor_position.<joint> and motor_velocity.<joint>' in found['warnings']
    np.testing.assert_allclose(found['acceleration'], elastic.forward(*given.values()), rtol=1e-9)
    given |= {'motor_position': given['position'] + 1e-3, 'motor_velocity': given['velocity']}
    found = evaluated(run_forward, tmp_path, elastic, given)
    links, motors = elastic.forward_elastic(*given.values())
    np.testing.assert_allclose(found['acceleration'], links, rtol=1e-9)
    np.testing.assert_allclose(found['motor_acceleration'], motors, rtol=1e-9)
    assert not any('stiff' in text for text in found['warnings'])
    assert [name for name in RESULTS if name in found] == ['acceleration', 'motor_acceleration']


def test_elastic_gears_deflect_along_a_motion_of_a_known_step(
    elastic: IdentifiedModel, tmp_path: Path
) -> None:
    time = 0.01 * np.arange(40.0)[:, None]
    given = {'position': 0.2 * np.sin(2.0 * time + [0.0, 1.0]),
             'velocity': 0.4 * np.cos(2.0 * time + [0.0, 1.0]),
             'acceleration': -0.8 * np.sin(2.0 * time + [0.0, 1.0])}
    found = evaluated(run_inverse, tmp_path, elastic, given)
    assert f'{STIFF}--dt SECONDS' in found['warnings']
    np.testing.assert_allclose(found['effort'], elastic.inverse(*given.values()), rtol=1e-9)
    assert 'motor_position' not in found
    found = evaluated(run_inverse, tmp_path, elastic, given, '--dt', '0.01')
    drive = elastic.inverse_elastic(*given.values(), 0.01)
    for name, expected in (('effort', drive.effort), ('motor_position', drive.position),
                           ('motor_velocity', drive.velocity)):
        np.testing.assert_allclose(found[name], expected, rtol=1e-9)
    assert not any('stiff' in text for text in found['warnings'])


@pytest.mark.filterwarnings('ignore::robot_dynid.errors.RefusedJointWarning')
@pytest.mark.parametrize('accept', [True, False])
def test_refused_joints_have_no_numbers(accept: bool, tmp_path: Path) -> None:
    lost = replace(RIGID, not_identified=('joint_2',))
    words = ['--accept-partial'] if accept else []
    given = states(RIGID, 'position', 'velocity', 'effort')
    found = evaluated(run_forward, tmp_path, lost, given, *words)
    assert (found['ok'], found['not_identified']) == (accept, ('joint_2',))
    assert np.isnan(found['acceleration']).all() == (not accept)
    given = states(RIGID, 'position', 'velocity', 'acceleration')
    found = evaluated(run_inverse, tmp_path, lost, given, *words)
    assert found['ok'] is accept
    assert np.isnan(found['effort']).all(axis=0).tolist() == [False, True, False]
    assert np.isfinite(np.array(found['effort'])[:, [0, 2]]).all()


def test_results_are_a_table_on_paper_or_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = {'not_identified': ('b',), 'warnings': ['fast'], 'out': None, 'joints': ['a', 'b'],
              'motor_velocity': [[5.0, 6.0], [7.0, 8.0]], 'effort': [[1.0 / 3.0, 2.0], [3.0, 4.0]]}
    show(result, Terminal())
    out, err = capsys.readouterr()
    assert out == ('effort.a,effort.b,motor_velocity.a,motor_velocity.b\n'
                   '0.33333333333333331,2,5,6\n3,4,7,8\n')
    assert err == 'not identified: b\nfast\n'
    show({**result, 'out': 'x.csv', 'not_identified': ()}, Terminal())
    assert capsys.readouterr() == ('', 'fast\n')
    RIGID.save(tmp_path / 'M.yaml')
    given = states(RIGID, 'position', 'velocity', 'acceleration')
    write_rows(str(tmp_path / 's.csv'), RIGID.joints, given)
    words = ['inverse', str(tmp_path / 'M.yaml'), str(tmp_path / 's.csv')]
    assert main([*words, '--out', str(tmp_path / 'o.csv')]) == 0
    assert capsys.readouterr().out == ''
    assert main(words) == 0
    assert capsys.readouterr().out == (tmp_path / 'o.csv').read_text()
    assert main([*words, '--out', str(tmp_path / 's.csv')]) == 2
    (tmp_path / 'o.csv').write_text('of others')
    assert main([*words, '--out', str(tmp_path / 'o.csv')]) == 2
