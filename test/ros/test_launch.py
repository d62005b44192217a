"""Every launch file describes nodes; loading them needs launch_ros, which comes with ROS 2."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / 'launch').glob('*.launch.py'))


Described = Callable[..., list[dict[str, Any]]]


@pytest.fixture
def described(monkeypatch: pytest.MonkeyPatch) -> Described:
    """Return a function from a launch file and its arguments to the words of every Node."""
    launch_ros = pytest.importorskip('launch_ros.actions')
    launch = importlib.import_module('launch')
    nodes: list[dict[str, Any]] = []

    def node(**words: Any) -> Any:
        nodes.append(words)
        return launch.actions.LogInfo(msg=words['name'])

    def describe(path: Path, **arguments: str) -> list[dict[str, Any]]:
        nodes.clear()
        context = launch.LaunchContext()
        context.launch_configurations.update(arguments)
        for entity in runpy.run_path(str(path))['generate_launch_description']().entities:
            entity.visit(context)
        return nodes

    monkeypatch.setattr(launch_ros, 'Node', node)
    return describe


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_launch_file_describes_nodes(path: Path, described: Described) -> None:
    nodes = described(path, robot='ur10e')
    assert nodes
    assert all(words['package'] == 'robot_dynid' for words in nodes)
    assert all('robot' in words['parameters'][-1] for words in nodes)


@pytest.mark.parametrize('name', ['simulate', 'excite', 'identify'])
def test_arguments_not_given_leave_the_parameter_file_its_say(
    name: str, described: Described
) -> None:
    (words,) = described(ROOT / 'launch' / f'{name}.launch.py')
    assert words['parameters'][-1] == {}


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_launch_file_names_what_is_there(path: Path) -> None:
    """Without launch_ros: executables are installed, parameter files exist, nodes keep names."""
    text = path.read_text()
    names = set(re.findall(r"executable='(\w+)'", text))
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == 'NODES':
            names |= set(ast.literal_eval(node.value))
    assert names or 'IncludeLaunchDescription' in text
    for name in names:
        assert f"'{name} = robot_dynid.ros.{name}.node:main'" in (ROOT / 'setup.py').read_text()
        assert (ROOT / 'config' / f'{name}.yaml').is_file()


def test_demo_starts_the_nodes_of_the_command() -> None:
    text = (ROOT / 'launch' / 'demo.launch.py').read_text()
    assert "NODES = ('simulated_robot', 'excitation', 'identifier')" in text
    story = (ROOT / 'robot_dynid_evaluation' / 'demo' / 'story.py').read_text()
    for name in ('simulated_robot', 'excitation', 'identifier'):
        assert f"'{name}'" in story
