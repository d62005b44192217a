"""Every launch file describes nodes; loading them needs launch_ros, which comes with ROS 2."""

from __future__ import annotations

import ast
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted((ROOT / 'launch').glob('*.launch.py'))


@pytest.mark.parametrize('path', FILES, ids=lambda path: path.name)
def test_launch_file_describes_nodes(path: Path) -> None:
    launch_ros = pytest.importorskip('launch_ros.actions')
    spec = importlib.util.spec_from_file_location(path.stem.replace('.', '_'), path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entities = module.generate_launch_description().entities
    included = any(type(entity).__name__ == 'IncludeLaunchDescription' for entity in entities)
    assert included or any(isinstance(entity, launch_ros.Node) for entity in entities)


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
        assert f"'{name} = robot_dynid.ros.{name}_node:main'" in (ROOT / 'setup.py').read_text()
        assert (ROOT / 'config' / f'{name}.yaml').is_file()


def test_demo_starts_the_nodes_of_the_command() -> None:
    text = (ROOT / 'launch' / 'demo.launch.py').read_text()
    assert "NODES = ('simulated_robot', 'excitation', 'identifier')" in text
    story = (ROOT / 'robot_dynid' / 'cli' / 'demo' / 'story.py').read_text()
    for name in ('simulated_robot', 'excitation', 'identifier'):
        assert f"'{name}'" in story
