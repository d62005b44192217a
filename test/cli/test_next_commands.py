"""validation/evidence.py: the commands that verdicts print run as they are pasted, with the
options of the first one."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from monitored import model_of
from recordings import recording

from robot_dynid.cli.main import main
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.validation.evidence import Names

#: a search of any length plans a motion
BRIEF = ('--starts', '1', '--iterations', '2', '--duration', '4', '--harmonics', '3')
RECIPE = '{cutoff: 8.0, effort_lag: 0.0, friction: coulomb, ripple: none, adaptation: none}'


@pytest.fixture(scope='module')
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two recordings and a recipe, names as people type them."""
    path = tmp_path_factory.mktemp('my runs')
    robot = load_robot('planar_3r')
    for seed, name in ((1, 'run 1.csv'), (2, 'test.csv')):
        write_csv(path / name, recording(robot, seed, 10.0))
    (path / 'R.yaml').write_text(RECIPE)
    return path


def printed(capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """Return the words of the commands that were printed."""
    return [shlex.split(line) for line in capsys.readouterr().out.splitlines()
            if line.startswith('    robot-dynid')]


def test_every_printed_command_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = ['identify', 'run 1.csv', '--robot', 'planar_3r', '--recipe', 'R.yaml', '--method',
             'ols', '--out', 'M.yaml']
    assert main(words) == 0
    commands = printed(capsys)
    assert main(['validate', 'M.yaml', 'test.csv']) == 0
    commands += printed(capsys)
    assert main(['validate', 'M.yaml', 'run 1.csv']) == 0
    commands += printed(capsys)
    assert {command[1] for command in commands} == {'design'}
    for command in {tuple(one) for one in commands}:
        kind = command[command.index('--type') + 1]
        assert main([*command[1:], *(BRIEF if kind == 'fourier' else ())]) == 0, command


def test_a_model_names_the_command_that_made_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    assert main(['identify', 'run 1.csv', '--robot', 'planar_3r', '--recipe', 'R.yaml',
                 '--method=ols', '--out', 'again.yaml', '--quiet']) == 0
    model = IdentifiedModel.load('again.yaml')
    again = Names.of(model, 'elsewhere.yaml').identify('', model)
    assert shlex.split(again.command) == list(model.record.command)
    feasible = shlex.split(Names.of(model).identify('', model, 'feasible').command)
    assert feasible[-2:] == ['--method', 'feasible'] and '--method=ols' not in feasible
    assert '--recipe' in feasible and main(feasible[1:]) == 0
    by_hand = replace(model, record=replace(model.record, command=()))
    assert shlex.split(Names.of(by_hand, 'M.yaml').identify('', by_hand).command) == [
        'robot-dynid', 'identify', 'run 1.csv', '--robot', 'planar_3r', '--out', 'M.yaml',
        '--method', 'ols']


def test_printed_commands_name_the_robot_as_the_user_did() -> None:
    model = model_of(load_robot('planar_3r'))
    file = replace(model, record=replace(model.record, command=('robot-dynid', '--robot=my.yaml')))
    assert Names.of(file).robot == 'my.yaml'
    assert Names.of(file, robot='other.yaml').robot == 'other.yaml'
