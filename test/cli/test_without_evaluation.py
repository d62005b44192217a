"""Where the package of experiments is absent, all that is not an experiment runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from nominal import nominal_model
from synthetic_recordings import recording

from robot_dynid.cli.candidates import names
from robot_dynid.cli.verbs import VERBS, verb_module
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.robot_file import load_robot

ROBOT = 'planar_3r'
EVALUATION = 'robot_dynid_evaluation'
EXPERIMENTS = ('bench', 'demo', 'reproduce')
#: runs the commands that it is given as JSON, in one process that cannot import the package
ALONE = f"""
import contextlib, io, json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] == '{EVALUATION}':
            raise ModuleNotFoundError(f'No module named {{name!r}}', name='{EVALUATION}')

sys.meta_path.insert(0, Absent())
from robot_dynid.cli.main import main

answers = []
for words in json.loads(sys.argv[1]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as ended:
            code = ended.code
    answers.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""


def alone(*commands: list[str]) -> list[tuple[int, str, str]]:
    """Return exit code and both outputs of commands without the package."""
    done = subprocess.run([sys.executable, '-c', ALONE, json.dumps(commands)], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def test_all_other_verbs_explain_themselves_and_those_say_how_to_install() -> None:
    help_text, *answers = alone(['--help'], *([verb, '--help'] for verb in VERBS),
                                *([verb, '--list'] for verb in EXPERIMENTS))
    assert help_text[0] == 0 and 'forward' in help_text[1]
    for verb, (code, out, err) in zip([*VERBS, *EXPERIMENTS], answers, strict=True):
        if verb in EXPERIMENTS:
            assert (code, out) == (1, '')
            assert err.startswith(f'robot-dynid: {verb} needs the package {EVALUATION}, which is '
                                  'not installed here: install robot_dynid')
        else:
            assert (code, err) == (0, '') and f'usage: robot-dynid {verb}' in out


def test_models_are_identified_and_used(tmp_path: Path) -> None:
    robot, model = load_robot(ROBOT), tmp_path / 'model.yaml'
    nominal_model(ROBOT).save(model)
    log = recording(robot, 1, 5.0)
    write_csv(tmp_path / 'run.csv', log)
    recipe = tmp_path / 'recipe.yaml'
    recipe.write_text('{friction: coulomb, cutoff: 5.0, effort_lag: 0.0, ripple: none, '
                      'adaptation: none}')
    forward, identified = alone(
        ['forward', str(model), str(tmp_path / 'run.csv'), '--accept-partial', '--json'],
        ['identify', str(tmp_path / 'run.csv'), '--robot', ROBOT, '--recipe', str(recipe),
         '--out', str(tmp_path / 'new.yaml'), '--accept-partial', '--json'])
    assert forward[0] == 0, forward[2]
    assert np.shape(json.loads(forward[1])['acceleration']) == (len(log.time), robot.n)
    assert identified[0] in (0, 1) and json.loads(identified[1])['samples'] > 0, identified[2]


def test_verbs_of_other_packages_are_entry_points_and_tell_their_names() -> None:
    assert {name for name, module in VERBS.items()
            if not module.startswith('robot_dynid.')} == set(EXPERIMENTS)
    assert all(verb_module(name).HELP for name in EXPERIMENTS)
    assert 'stops' in names('bench', 'names') and 'stanford-arm' in names('reproduce', 'name')
    assert names('demo', 'excitation') == ('fourier', 'sine-sequence')


def test_a_fault_inside_of_a_verb_is_not_taken_for_an_absent_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'broken_verb.py').write_text('import nowhere_to_be_found\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(VERBS, 'broken', 'broken_verb')
    with pytest.raises(ModuleNotFoundError, match='nowhere_to_be_found'):
        verb_module('broken')
