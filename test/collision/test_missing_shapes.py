"""collision/scene.py: shapes that cannot be read: left out and told behind the arm, an error
within it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from robot_descriptions import INERTIAL, joint, link, robot

from robot_dynid.collision.scene import build_scene
from robot_dynid.errors import RobotError, UsageError
from robot_dynid.robot.robot_file import load_robot

BOX = '<collision><geometry><box size="0.1 0.1 0.1"/></geometry></collision>'
MESH = '<collision><geometry><mesh filename="package://hand/{}.stl"/></geometry></collision>'
FINGER = (joint('finger_joint', 'camera', 'finger', 'prismatic'),
          link('finger', INERTIAL + MESH.format('finger')))


def described(folder: Path, text: str, more: str = '') -> Path:
    """Return a robot YAML of a URDF in which all links of the arm are boxes."""
    for name in ('column', 'upper', 'fore'):
        text = text.replace(link(name), link(name, INERTIAL + BOX))
    (folder / 'arm.urdf').write_text(text)
    path = folder / 'arm.yaml'
    path.write_text(f'urdf: arm.urdf\ntip_link: fore\neffort_kind: torque\n{more}')
    return path


@pytest.mark.parametrize('broken', [
    MESH.format('camera'), '<collision><geometry><box size="0 0 0"/></geometry></collision>',
    '<collision><geometry><xacro:box/></geometry></collision>'])
def test_build_scene_reports_unreadable_shapes_behind_the_arm(tmp_path: Path, broken: str) -> None:
    text = robot(*FINGER).replace(link('camera'), link('camera', INERTIAL + broken)).replace(
        link('plate'), link('plate', broken))
    scene = build_scene(load_robot(described(tmp_path, text)))
    assert ('column', 'fore') in scene.pairs + scene.always_separated
    for name in ('finger', 'camera', 'plate'):
        assert [text for text in scene.unchecked
                if text.startswith(f"link '{name}' collision") and 'NOT checked' in text]
    assert scene.blind == scene.unchecked[:3]


def test_a_missing_mesh_of_the_arm_is_an_error_unless_its_link_is_ignored(tmp_path: Path) -> None:
    text = robot().replace(link('upper'), link('upper', INERTIAL + MESH.format('upper')))
    with pytest.raises(RobotError, match=re.escape(
            'mesh file package://hand/upper.stl is missing') + '.*' + re.escape(
            'scene: {ignore_links: [upper]} in the robot YAML')):
        build_scene(load_robot(described(tmp_path, text)))
    scene = build_scene(load_robot(described(tmp_path, text, 'scene: {ignore_links: [upper]}')))
    assert scene.unchecked[0].startswith('upper without collision shape')
    assert 'upper: NOT checked, its shapes are ignored' in scene.unchecked
    with pytest.raises(UsageError, match="ignore_links: the robot has no link 'uper'"):
        build_scene(load_robot(described(tmp_path, text, 'scene: {ignore_links: [uper]}')))


@pytest.mark.parametrize(('content', 'cause'), [
    ('solid of nothing', 'Mesh with invalid primitive type: of'), ('', 'File is empty'),
    ('solid x facet normal 0 0 1 outer loop vertex 0 0 0 vertex 1 0 0 vertex 0 1 0 endloop '
     'endfacet endsolid x', 'QH6214 qhull input error: not enough points')])
def test_a_mesh_that_is_none_is_an_error_with_its_cause(
    tmp_path: Path, content: str, cause: str
) -> None:
    (tmp_path / 'upper.stl').write_text(content)
    text = robot().replace(link('upper'), link('upper', INERTIAL + MESH.format('upper').replace(
        'package://hand/', '')))
    with pytest.raises(RobotError, match=f'upper.stl is not a mesh with a volume .{cause}'):
        build_scene(load_robot(described(tmp_path, text)))
