"""Surroundings from options and robot files, meshes of collision shapes, obstacles of a URDF."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from tolerances import GJK

from robot_dynid.collision.scene import build_scene
from robot_dynid.errors import RobotError, UsageError
from robot_dynid.excitation.families import parse_request
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import CLEARANCE, Surroundings, surroundings_from_plain

ARM = """<robot name="arm"><link name="base"/>
    <link name="hand"><collision>{origin}<geometry>{shape}</geometry></collision></link>
    <joint name="x" type="prismatic"><parent link="base"/><child link="hand"/>
    <axis xyz="0.6 0 0.8"/><limit lower="-2" upper="2" velocity="1" effort="1"/></joint></robot>"""
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * 0.1
FACES = [(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1), (2, 3, 7), (2, 7, 6),
         (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]
WALL = """<robot name="cell"><link name="cell"/><link name="wall"><collision><geometry>
    <box size="0.2 2 6"/></geometry></collision></link><joint name="j" type="fixed">
    <parent link="cell"/><child link="wall"/><origin xyz="1.1 0 0"/></joint></robot>"""


def binary_stl():
    """Return a cube with edges of 0.2 m."""
    body = b''.join(struct.pack('<12fH', *np.zeros(3), *CORNERS[list(face)].ravel(), 0)
                    for face in FACES)
    return bytes(80) + struct.pack('<I', len(FACES)) + body


def ascii_stl():
    """Return the same cube as text."""
    lines = [line for face in FACES for line in (
        'facet normal 0 0 0', 'outer loop',
        *(f'vertex {x} {y} {z}' for x, y, z in CORNERS[list(face)]), 'endloop', 'endfacet')]
    return '\n'.join(['solid cube', *lines, 'endsolid']).encode()


def obj():
    """Return the same cube as Wavefront text."""
    vertices = [f'v {x} {y} {z}' for x, y, z in CORNERS]
    return '\n'.join([*vertices, *(f'f {a + 1} {b + 1} {c + 1}' for a, b, c in FACES)]).encode()


def arm(folder: Path, shape: str, origin: str = ''):
    """Return the robot with a hand of the given shape."""
    path = folder / 'arm.urdf'
    path.write_text(ARM.format(shape=shape, origin=origin))
    return load_robot(path)


@pytest.mark.parametrize(('name', 'data'), [('a.stl', binary_stl()), ('b.STL', ascii_stl()),
                                            ('c.obj', obj())])
def test_meshes_are_read_scaled_and_placed(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    robot = arm(tmp_path, f'<mesh filename="{name}" scale="2 1 3"/>', '<origin xyz="0 0 1"/>')
    wall = {'centre': [1.2, 0.0, 1.0], 'size': [0.2, 1.0, 6.0]}
    found = build_scene(robot, surroundings_from_plain({'floor': 0.0, 'keep_out': [wall]}, 'x'))
    table = dict(zip(found.pairs, found.distances(np.array([[0.5]]))[0]))
    assert table['hand', 'floor'] == pytest.approx(0.7 + 0.4, abs=1e-6)
    assert table['hand', 'keep_out[0]'] == pytest.approx(1.1 - 0.3 - 0.2, abs=GJK)


def test_mesh_paths_are_relative_or_of_files_or_packages(tmp_path, monkeypatch):
    share = tmp_path / 'prefix' / 'share' / 'cell_description' / 'meshes'
    share.mkdir(parents=True)
    (share / 'hand.stl').write_bytes(binary_stl())
    beside = tmp_path / 'ws' / 'arm_description' / 'urdf'
    beside.mkdir(parents=True)
    (beside.parent / 'hand.stl').write_bytes(binary_stl())
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path / 'prefix'))
    for name in ('../hand.stl', f'file://{share}/hand.stl', 'package://arm_description/hand.stl',
                 'package://cell_description/meshes/hand.stl'):
        found = build_scene(arm(beside, f'<mesh filename="{name}"/>'), Surroundings(floor=-1.0))
        assert found.distances(np.zeros((1, 1)))[0, 0] == pytest.approx(0.9, abs=1e-6)
    with pytest.raises(RobotError, match=r'collision: mesh file package://nobody/h.stl '
                                         r'is missing \(a package is looked for in'):
        build_scene(arm(beside, '<mesh filename="package://nobody/h.stl"/>'))


@pytest.mark.parametrize('data', [b'', b'solid nothing\nendsolid', b'not a mesh at all' * 20,
                                  b'solid\nvertex 1 x 2\nendsolid'])
def test_files_that_are_no_mesh_are_named(tmp_path, data):
    (tmp_path / 'bad.stl').write_bytes(data)
    with pytest.raises(RobotError, match=r"link 'hand' collision: mesh file .*bad.stl is not a "
                                         'mesh with a volume'):
        build_scene(arm(tmp_path, '<mesh filename="bad.stl"/>'))


def test_an_environment_is_kept_clear_of_by_its_links(tmp_path):
    (tmp_path / 'cell.urdf').write_text(WALL)
    robot = arm(tmp_path, '<sphere radius="0.1"/>')
    found = build_scene(robot, Surroundings(environment=str(tmp_path / 'cell.urdf')))
    assert found.pairs == (('hand', 'wall'),)
    assert found.distances(np.array([[0.5]]))[0, 0] == pytest.approx(0.6, abs=GJK)
    for text, message in ((None, 'cannot be read'), ('<robot', 'not well-formed'),
                          ('<robot name="x"><link name="y"/></robot>', 'has no <collision>')):
        path = tmp_path / 'bad.urdf'
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
        with pytest.raises((RobotError, UsageError), match=f'bad.urdf: {message}'):
            build_scene(robot, Surroundings(environment=str(path)))


@pytest.mark.parametrize(('given', 'message'), [
    ({'clearance': -0.01}, 'clearance must be at least 0, is -0.01: name bodies'),
    ({'clearance': 'much'}, "clearance must be a finite number, is 'much'"),
    ({'floor': float('nan')}, 'floor must be a finite number'),
    ({'keep_out': {'centre': [0, 0, 0]}}, 'keep_out must be a list'),
    ({'keep_out': [{'centre': [0, 0, 0]}]}, r'keep_out\[0\] must be a mapping with centre'),
    ({'keep_out': [{'centre': [0, 0], 'size': [1, 1, 1]}]}, r'keep_out\[0\]: centre must be'),
    ({'keep_out': [{'centre': [0, 0, 0], 'size': [1, 0, 1]}]},
     r'keep_out\[0\]: size must be positive, is 0 .range 1e-06 to 10000 m'),
    ({'environment': 3}, 'environment must be the path of a URDF file'),
    ({'ignore_pairs': ['a', 'b']}, 'ignore_pairs must list pairs of names'),
])
def test_wrong_surroundings_are_refused_in_options_and_robot_files(tmp_path, given, message):
    with pytest.raises(UsageError, match=f'options: {message}'):
        parse_request('fourier', given)
    with pytest.raises(UsageError, match=f'there: {message}'):
        surroundings_from_plain(given, 'there')
    with pytest.raises(UsageError, match=r"unknown key 'flor'; use floor, keep_out"):
        surroundings_from_plain({'flor': 0.0}, 'there')


def test_a_robot_file_says_what_is_around_and_options_say_it_anew(tmp_path):
    arm(tmp_path, '<sphere radius="0.1"/>')
    (tmp_path / 'cell.urdf').write_text(WALL)
    path = tmp_path / 'arm.yaml'
    path.write_text('urdf: arm.urdf\nscene: {floor: -0.5, environment: cell.urdf, '
                    'ignore_pairs: [[hand, floor]]}\n')
    known = load_robot(path).surroundings
    assert known == Surroundings(-0.5, (), str(tmp_path / 'cell.urdf'), CLEARANCE,
                                 (('hand', 'floor'),))
    request = parse_request('fourier', {'floor': -0.7, 'clearance': 0.03, 'ignore_pairs': []})
    assert request.common.surroundings(known) == Surroundings(
        -0.7, (), known.environment, 0.03, ())
    path.write_text('urdf: arm.urdf\nscene: {floor: low}\n')
    with pytest.raises(RobotError, match=r'arm\.yaml: scene: floor must be a finite number'):
        load_robot(path)
    path.write_text('urdf: arm.urdf\nscene: {environment: none.urdf}\n')
    with pytest.raises(UsageError, match=r"'none.urdf' is neither in the folder of this file"):
        load_robot(path)
