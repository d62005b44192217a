"""io/tables/columns.py: columns of tables from the command line: identified in one go, proposed by
`init`, kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import recording

from robot_dynid import load_log, load_robot
from robot_dynid.cli.main import main
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.tables.columns import NoPreset

ROOT = Path(__file__).parents[2]
RECIPE = '{friction: coulomb, cutoff: 5.0, effort_lag: 0.0, ripple: none, adaptation: none}'
COLUMNS = ("{time: {column: clk, unit: ms}, position: {column: 'ang{i}', unit: deg}, "
           "effort: {column: 'load{i}', unit: N m}}")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with the log of a logger of its own: ms, degrees, semicolons, commas."""
    monkeypatch.chdir(tmp_path)
    robot = load_robot('planar_3r')
    log = recording(robot, 0)
    assert log.effort is not None and log.velocity is not None
    effort = log.effort + 2.0 * np.tanh(log.velocity / 0.02) + log.velocity
    names = ['clk', *(f'{name}{k}' for name in ('ang', 'load') for k in range(robot.n))]
    rows = np.column_stack([log.time * 1000.0, np.rad2deg(log.position), effort])
    text = '\n'.join(';'.join(f'{value:.10g}' for value in row) for row in rows)
    (tmp_path / 'log.csv').write_text(';'.join(names) + '\n' + text.replace('.', ','))
    (tmp_path / 'recipe.yaml').write_text(RECIPE)
    return tmp_path


def test_a_log_is_identified_in_one_go(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The option or the recipe says what the columns are, and the model what they were."""
    words = ['identify', 'log.csv', '--robot', 'planar_3r', '--accept-partial', '--json']
    assert main([*words, '--recipe', 'recipe.yaml', '--columns', COLUMNS, '--out', 'm.yaml']) == 0
    found = json.loads(capsys.readouterr().out)
    assert 'position is ang0 .. ang2 [deg]' in found['findings']['log.csv'][0]
    (folder / 'with.yaml').write_text(f'{RECIPE[:-1]}, columns: {COLUMNS}}}')
    assert main([*words, '--recipe', 'with.yaml', '--out', 'n.yaml']) == 0
    assert json.loads(capsys.readouterr().out)['parameters'] == found['parameters']
    robot = IdentifiedModel.load('m.yaml').robot
    assert np.abs(load_log('log.csv', robot).position).max() < 4.0


def test_init_proposes_the_columns(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are in the robot YAML, to be corrected, and the recording is checked with them."""
    (folder / 'answers.yaml').write_text('{driver: other, effort_kind: torque}')
    main(['init', str(ROOT / 'examples' / 'arm.urdf'), '--answers', 'answers.yaml', '--out',
          'arm.yaml', '--recording', 'log.csv', '--json'])
    told = json.loads(capsys.readouterr().out)
    assert [command.split()[1] for command in told['next']] == [
        'base', 'identify', 'doctor', 'design', 'launch']
    assert told['next'][1].startswith('robot-dynid identify log.csv --robot arm.yaml ')
    assert load_robot('arm.yaml').columns.plain == {  # type: ignore[union-attr]
        'time': 'clk', 'position': 'ang{i}', 'effort': 'load{i}'}


@pytest.mark.parametrize(('clock', 'angle', 'time', 'position'), [
    ('t_ms', 'A{}_ist_deg', {'column': 't_ms', 'unit': 'ms'},
     {'column': 'A{i}_ist_deg', 'unit': 'deg'}),
    ('time [us]', 'ang{} (°)', {'column': 'time [us]', 'unit': 'us'},
     {'column': 'ang{i} (°)', 'unit': 'deg'}),
    ('t_s', 'ang{}_rad', 't_s', 'ang{i}_rad'), ('clk_Nm', 'ang{}_ms', 'clk_Nm', 'ang{i}_ms')])
def test_units_are_proposed_where_the_names_state_them(
    folder: Path, clock: str, angle: str, time: Any, position: Any
) -> None:
    text = (folder / 'log.csv').read_text().replace('clk', clock)
    for k in range(3):
        text = text.replace(f'ang{k}', angle.format(k))
    (folder / 'log.csv').write_text(text)
    with pytest.raises(NoPreset) as refused:
        load_log('log.csv', load_robot('planar_3r'))
    assert refused.value.proposal == {'time': time, 'position': position, 'effort': 'load{i}'}
