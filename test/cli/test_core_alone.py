"""registry.py: the core runs where the packages that it finds by entry points are absent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from identified_models import nominal_model
from recordings import recording

from robot_dynid.cli.completion import names_of
from robot_dynid.cli.verbs import GROUP, VERBS
from robot_dynid.errors import MissingDependency
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.io.csv import write_csv
from robot_dynid.registry import Place, Registry
from robot_dynid.robot.robot_file import load_robot

ROBOT = 'planar_3r'
#: verbs by the package that adds them
ADDED = {**dict.fromkeys(('bench', 'demo', 'reproduce'), 'robot_dynid_evaluation'),
         **dict.fromkeys(('calibrate', 'fleet', 'resonance', 'session'), 'robot_dynid_extras')}
METHODS = {'latent', 'trajectory'}
#: runs the commands that it is given as JSON, in one process that cannot import the packages
ALONE = """
import contextlib, io, json, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in ('robot_dynid_extras', 'robot_dynid_evaluation'):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)

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
    """Return exit code and both outputs of commands without the packages."""
    done = subprocess.run([sys.executable, '-c', ALONE, json.dumps(commands)], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def test_verbs_of_the_core_explain_themselves_and_the_others_name_their_package() -> None:
    help_text, *answers = alone(['--help'], *([verb, '--help'] for verb in VERBS))
    listed = help_text[1].partition('examples:')[0]
    assert help_text[0] == 0 and 'forward' in listed
    for verb, (code, out, err) in zip(VERBS, answers, strict=True):
        assert (f'\n    {verb} ' in listed or f'\n    {verb}\n' in listed) == (verb not in ADDED)
        if verb in ADDED:
            assert (code, out) == (1, '')
            assert err.startswith(f'robot-dynid: {verb} needs the package {ADDED[verb]}, which '
                                  'is not installed here')
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
    identify = ['identify', str(tmp_path / 'run.csv'), '--robot', ROBOT, '--recipe', str(recipe),
                '--out', str(tmp_path / 'new.yaml'), '--accept-partial', '--json']
    forward, identified, latent, adaptive = alone(
        ['forward', str(model), str(tmp_path / 'run.csv'), '--accept-partial', '--json'],
        identify, [*identify, '--method', 'latent'],
        ['design', ROBOT, '--type', 'sine-sequence', '--adaptive', '--out',
         str(tmp_path / 'plan.yaml')])
    assert forward[0] == 0, forward[2]
    assert np.shape(json.loads(forward[1])['acceleration']) == (len(log.time), robot.n)
    assert identified[0] in (0, 1) and json.loads(identified[1])['samples'] > 0, identified[2]
    for name, (code, _, message) in (('latent', latent), ('adaptive', adaptive)):
        assert code == 1 and f'{name} needs the package robot_dynid_extras' in message


def test_installed_packages_add_verbs_and_methods() -> None:
    assert set(ADDED) < set(VERBS) and set(ESTIMATORS) >= METHODS
    assert all(VERBS[name].HELP for name in ADDED)
    assert 'stops' in names_of('bench', 'names')
    assert 'stanford-arm' in names_of('reproduce', 'name')
    assert names_of('demo', 'excitation') == ('fourier', 'sine-sequence')
    assert set(names_of('identify', 'method')) > METHODS


def test_a_verb_that_cannot_be_imported_is_named_with_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'broken_verb.py').write_text('import nowhere_to_be_found\n')
    monkeypatch.syspath_prepend(tmp_path)
    broken = Registry[object](GROUP, {'broken': Place('broken_verb')})
    with pytest.raises(MissingDependency, match='broken of broken_verb'):
        _ = broken['broken']


def test_a_verb_imports_no_other_and_looks_for_no_packages() -> None:
    """`stop` is waited for while a robot moves."""
    program = ("import sys\nfrom robot_dynid.cli.main import parser\nparser(['stop'])\n"
               "print(*sorted(sys.modules))")
    done = subprocess.run([sys.executable, '-c', program], check=True, capture_output=True,
                          text=True)
    loaded = set(done.stdout.split())
    assert 'robot_dynid.cli.excite' in loaded
    assert not loaded & {'importlib.metadata', 'numpy', 'yaml', 'robot_dynid.cli.identify'}


def test_a_registry_keeps_its_own_value_against_that_of_a_package() -> None:
    registry = Registry[str](GROUP, {'bench': 'ours'})
    assert registry['bench'] == 'ours'
    assert 'demo' in registry
    assert registry['bench'] == 'ours'
