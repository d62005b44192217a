"""robot_dynid/__init__.py: the public names: they resolve late, are documented, and stay few."""

from __future__ import annotations

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import robot_dynid

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / 'docs' / 'api.rst').read_text()
ROOMS = Path(robot_dynid.__file__).parent
#: entry points, and the loops in C++
NOT_PUBLIC = ('robot_dynid.cli', 'robot_dynid.ros', 'robot_dynid.kernels')

#: imported only where they are used: nothing that computes nothing waits for them
HEAVY = {'sklearn', 'clarabel', 'mujoco', 'rclpy', 'rosbags', 'coal', 'rich', 'plotly', 'jinja2',
         'scipy', 'pinocchio', 'casadi', 'jax', 'pydrake', 'cvxpy'}
#: modules that need them: for payloads, periods and one method
RARE = {'signals/alignment.py', 'signals/periodic.py', 'estimation/uncertainty/held_out.py'}
HELP = """
from robot_dynid.cli.main import VERBS, main, parser
for verb in VERBS:
    if verb != 'identify':  # its options are the settings of the estimators
        parser([verb, '--help']).format_help()
assert main(['bse', 'ur10e']) == 2
assert main(['design', 'ur10', '--out', 'T.yaml']) == 2
assert main(['contact', 'M.yaml', 'a.csv', '--robot', 'ur10.yaml']) == 2"""
IDENTIFY = """
from robot_dynid.cli.main import main, parser
parser(['identify', '--help']).format_help()
assert main(['identify', 'a.csv', '--robot', 'ur10', '--out', 'M.yaml']) == 2"""
#: what each must not import beside HEAVY; with numpy half of the time of a start is gone
LIGHT = {
    'import robot_dynid': {'numpy', 'yaml'},
    'from robot_dynid import load_robot; load_robot("ur10e")': set(),
    'from robot_dynid import load_log, load_trajectory, RobotModel, Samples, DynIdError': set(),
    'from robot_dynid import IdentifiedModel, identify, validate, Monitor': set(),
    HELP: {'numpy'}, IDENTIFY: set(),
}

#: what the modules of nodes must not import
NODES = {
    'import robot_dynid.ros.excitation.node, robot_dynid.ros.identifier.node': {
        *HEAVY - {'rclpy', 'scipy', 'coal'}, 'scipy.optimize'},
    'import robot_dynid.ros.simulated_robot.node': HEAVY - {'rclpy', 'mujoco'},
}


@pytest.mark.parametrize('statement', LIGHT)
def test_starting_imports_little(statement: str) -> None:
    """Times are noise, so what they are made of is held: see `robot-dynid bench start`."""
    assert not loaded_by(statement) & (LIGHT[statement] | HEAVY)


@pytest.mark.parametrize('statement', NODES)
def test_nodes_start_without_what_few_goals_need(statement: str) -> None:
    pytest.importorskip('rclpy')
    pytest.importorskip('robot_dynid_interfaces')
    assert not loaded_by(statement) & NODES[statement]


def loaded_by(statement: str) -> set[str]:
    """Return the names of the modules that are loaded in a new process after a statement."""
    program = f'{statement}\nimport json, sys\nprint(json.dumps(list(sys.modules)))'
    done = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True,
                          check=True)
    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert 'robot_dynid' in loaded
    return loaded


def test_scipy_signal_and_stats_are_for_rare_cases() -> None:
    """They take a second to import, as long as a tenth of an identification."""
    found = {str(path.relative_to(ROOMS)) for path in ROOMS.rglob('*.py') if re.search(
        r'^\s*(from scipy import (signal|stats)|from scipy\.(signal|stats) )', path.read_text(),
        re.MULTILINE)}
    assert found == RARE


def test_public_names_resolve_and_are_at_most_fifty() -> None:
    names = robot_dynid.__all__
    assert 30 <= len(names) <= 50
    assert sorted(set(names)) == names == dir(robot_dynid)
    for name in names:
        assert getattr(robot_dynid, name).__class__
    with pytest.raises(AttributeError, match="'robot_dynid' has no attribute 'nothing'"):
        _ = robot_dynid.nothing  # type: ignore[attr-defined]


def test_the_stub_takes_names_from_where_they_are_made() -> None:
    for name in robot_dynid.__all__:
        one = getattr(robot_dynid, name)
        line = re.search(rf'^from (\S+) import {name} as {name}$',
                         (ROOMS / '__init__.pyi').read_text(), re.M)
        assert line is not None, f'{name}: one import a line, as it is named'
        assert not line[1].startswith(NOT_PUBLIC), name
        if inspect.isclass(one) or inspect.isfunction(one):
            assert f'{one.__module__}.'.startswith(f'{line[1]}.'), name


def test_the_page_lists_them_all() -> None:
    listed = re.findall(r'^\.\. (?:autofunction|autoclass|data):: (\w+)$', PAGE, re.M)
    assert sorted(listed) == robot_dynid.__all__
    for name, text in re.findall(r'^\.\. data:: (\w+)\n((?:   .*\n|\n)*)', PAGE, re.M):
        assert len(text.split()) > 5, f'{name}: say what it is'


def documented() -> Iterator[tuple[str, Any]]:
    """Yield every public function, class, and method of a class, but plain data."""
    for name in robot_dynid.__all__:
        one = getattr(robot_dynid, name)
        if inspect.isfunction(one) or inspect.isclass(one):
            yield name, one
        if inspect.isclass(one) and not issubclass(one, BaseException | Warning):
            yield from ((f'{name}.{method}', value) for method, value in vars(one).items()
                        if not method.startswith('_') and (
                            inspect.isfunction(value) or isinstance(value, property)))


@pytest.mark.parametrize(('name', 'one'), list(documented()))
def test_public_names_are_documented(name: str, one: Any) -> None:
    text = one.__doc__ or ''
    assert text, name
    assert not text.startswith(f'{name}('), f'{name}: the text dataclasses make says nothing'
