"""Columns of tables from the command line: identified in one go, proposed by `init`, kept."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from synthetic_recordings import recording

from robot_dynid import load_log, load_robot
from robot_dynid.cli.main import main
from robot_dynid.identified.model import IdentifiedModel

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
    capsys.readouterr()
    assert load_robot('arm.yaml').columns.plain == {  # type: ignore[union-attr]
        'time': 'clk', 'position': 'ang{i}', 'effort': 'load{i}'}
