"""Every launch file describes nodes; needs launch_ros, which comes with ROS 2 only."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).resolve().parents[1] / 'launch').glob('*.launch.py'))


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
