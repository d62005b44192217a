"""collision/shapes.py: bounds of shapes in closed form, sizes and places read from a URDF."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from robot_dynid.collision.shapes import (
    BASE,
    Shape,
    collision_ellipsoid,
    environment_shapes,
    floor_shape,
    links_at_rest,
    plain_box,
    robot_shapes,
)
from robot_dynid.robot.inertia import homogeneous, rotation_about
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import parse_urdf

TURN = rotation_about([0.0, 1.0, 0.0], 0.4)
C, S = np.cos(0.4), np.sin(0.4)
PLACE = np.array([0.5, -0.2, 0.3])
#: half edges, radius of the disc and of the ball
SIZES = {'box': ((0.1, 0.2, 0.3), 0.0, 0.0), 'cylinder': ((0.0, 0.0, 0.3), 0.1, 0.0),
         'capsule': ((0.0, 0.0, 0.3), 0.0, 0.1), 'sphere': ((0.0, 0.0, 0.0), 0.0, 0.2)}
CORNER = 0.1 / np.cos(np.pi / 16.0)  # of a polygon of 16 edges around the disc


def shape(kind: str, turn: np.ndarray = TURN) -> Shape:
    edges, disc, ball = SIZES[kind]
    return Shape('a', BASE, kind, homogeneous(turn, PLACE), np.array(edges), disc, ball)


@pytest.mark.parametrize(('kind', 'expected'), [
    ('box', (0.1 * C + 0.3 * S, 0.2, 0.1 * S + 0.3 * C)),
    ('cylinder', (0.1 * C + 0.3 * S, 0.1, 0.1 * S + 0.3 * C)),
    ('capsule', (0.3 * S + 0.1, 0.1, 0.3 * C + 0.1)), ('sphere', (0.2, 0.2, 0.2))])
def test_the_box_around_a_primitive_in_a_turned_frame(
    kind: str, expected: tuple[float, ...]
) -> None:
    np.testing.assert_allclose(shape(kind).extents(TURN), expected, rtol=1e-12)


@pytest.mark.parametrize(('kind', 'radius', 'half'), [
    ('box', np.sqrt(0.14), (0.1, 0.2, 0.3)),
    ('cylinder', np.hypot(CORNER, 0.3), (CORNER * np.cos(np.pi / 16.0),) * 2 + (0.3,)),
    ('capsule', 0.4, (0.1, 0.1, 0.4)), ('sphere', 0.2, (0.2, 0.2, 0.2))])
def test_the_ball_around_a_primitive_and_its_own_box(
    kind: str, radius: float, half: tuple[float, ...]
) -> None:
    centre, found = shape(kind).sphere()
    np.testing.assert_allclose(centre, PLACE, rtol=1e-12)
    assert found == pytest.approx(radius, rel=1e-12)
    np.testing.assert_allclose(shape(kind).half_edges(), half, rtol=1e-12)


def test_a_disc_lies_within_the_polygon_of_16_corners_around_it() -> None:
    points = shape('cylinder').points()
    assert sorted({round(z, 9) for z in points[:, 2]}) == [-0.3, 0.3]
    assert len(np.unique(np.round(points, 9), axis=0)) == 32
    np.testing.assert_allclose(np.hypot(points[:, 0], points[:, 1]), CORNER, rtol=1e-12)
    corners = np.unique(np.round(np.arctan2(points[:, 1], points[:, 0]) / (np.pi / 16.0), 6))
    assert corners.tolist() == np.arange(-15.0, 16.0, 2.0).tolist()


def test_a_mesh_is_bounded_about_the_middle_of_its_box() -> None:
    vertices = np.array([[0.0, 0.0, 0.0], [0.6, 0.0, 0.0], [0.0, 0.8, 0.0], [0.0, 0.0, 1.0]])
    hull = Shape('a', BASE, 'mesh', homogeneous(TURN, PLACE), np.zeros(3), vertices=vertices)
    centre, radius = hull.sphere()
    np.testing.assert_allclose(centre, PLACE + TURN @ [0.3, 0.4, 0.5], rtol=1e-12)
    assert radius == pytest.approx(np.sqrt(0.5), rel=1e-12)
    np.testing.assert_allclose(hull.half_edges(), [0.3, 0.4, 0.5], rtol=1e-12)
    points = PLACE + vertices @ TURN.T
    assert hull.reach() == pytest.approx(np.linalg.norm(points, axis=1).max(), rel=1e-12)
    assert hull.swing(np.array([0.0, 0.0, 1.0])) == pytest.approx(
        np.hypot(points[:, 0], points[:, 1]).max(), rel=1e-12)


@pytest.mark.parametrize('kind', ['box', 'capsule', 'sphere'])
def test_the_reach_of_a_primitive_is_that_of_its_farthest_corner_and_its_ball(kind: str) -> None:
    edges, _, ball = SIZES[kind]
    corners = PLACE + np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (
        -1, 1)]) * edges @ TURN.T
    assert shape(kind).reach() == pytest.approx(
        np.linalg.norm(corners, axis=1).max() + ball, rel=1e-12)


@pytest.mark.parametrize(('kind', 'size'), [
    ('cylinder', np.hypot(0.1, 0.3)), ('capsule', 0.4), ('sphere', 0.0)])
def test_a_round_shape_swings_by_its_centre_and_its_tilt(kind: str, size: float) -> None:
    """Far from the axis a shape swings by its farthest point, less than by centre and tilt."""
    upright = shape(kind, np.eye(3))
    assert upright.swing(np.array([0.0, 0.0, 1.0])) == pytest.approx(np.hypot(0.5, 0.2))
    assert shape(kind).swing(np.array([0.0, 0.0, 1.0])) <= np.hypot(0.5, 0.2) + S * size + 1e-12
    edges, disc, ball = SIZES[kind]
    near = Shape('a', BASE, kind, homogeneous(rotation_about([0.0, 1.0, 0.0], 0.1), 0.1 * PLACE),
                 np.array(edges), disc, ball)
    assert near.swing(np.array([0.0, 0.0, 1.0])) == pytest.approx(
        0.1 * np.hypot(0.5, 0.2) + np.sin(0.1) * size, rel=1e-12)


def test_fixed_shapes_have_their_place_and_half_of_their_edges() -> None:
    floor = floor_shape('floor', -0.4)
    box = plain_box('b', homogeneous(TURN, PLACE), [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(floor.placement, homogeneous(np.eye(3), [0.0, 0.0, -0.4]))
    assert (floor.body, floor.kind, box.body, box.kind) == (BASE, 'halfspace', BASE, 'box')
    assert box.edges.tolist() == [0.5, 1.0, 1.5] and not floor.edges.any()
    assert (box.disc, box.ball, box.vertices) == (0.0, 0.0, None)


GEOMETRY = {
    'box': '<box size="0.2 0.4 0.6"/>', 'cylinder': '<cylinder radius="0.1" length="0.6"/>',
    'capsule': '<capsule radius="0.1" length="0.6"/>', 'sphere': '<sphere radius="0.2"/>'}
LINKS = """<robot name="r"><link name="base"/><link name="arm">{arm}</link>
    <link name="tool">{tool}</link><link name="stand">{stand}</link>
    <joint name="turn" type="revolute"><parent link="base"/><child link="arm"/>
        <origin xyz="0 0 2"/><axis xyz="0 0 1"/>
        <limit lower="-1" upper="1" velocity="1" effort="1"/></joint>
    <joint name="hold" type="fixed"><parent link="arm"/><child link="tool"/>
        <origin xyz="0 0 1"/></joint>
    <joint name="stand" type="fixed"><parent link="stand"/><child link="base"/>
        <origin xyz="0.5 0 0.7" rpy="0 0 1.5707963267948966"/></joint></robot>"""


def collision(kind: str, xyz: str = '0.5 -0.2 0.3', rpy: str = '0 0.4 0') -> str:
    return (f'<collision><origin xyz="{xyz}" rpy="{rpy}"/><geometry>{GEOMETRY[kind]}</geometry>'
            '</collision>')


def described(folder: Path, arm: str = '', tool: str = '', stand: str = '') -> Path:
    """Return a robot YAML of an arm whose base stands on the root of its URDF."""
    (folder / 'robot.urdf').write_text(LINKS.format(arm=arm, tool=tool, stand=stand))
    path = folder / 'robot.yaml'
    path.write_text('urdf: robot.urdf\nbase_link: base\ntip_link: tool\neffort_kind: torque\n')
    return path


@pytest.mark.parametrize('kind', GEOMETRY)
def test_shapes_are_read_with_their_sizes_and_places(tmp_path: Path, kind: str) -> None:
    robot = load_robot(described(tmp_path, collision(kind), collision(kind), collision(kind)))
    (arm, tool, stand), left_out = robot_shapes(robot)
    frame = homogeneous(TURN, PLACE)
    behind = homogeneous(rotation_about([0.0, 0.0, 1.0], -0.5 * np.pi), [0.0, 0.5, -0.7])
    for found, owner, body, place in (
            (arm, 'arm', 0, frame), (tool, 'arm', 0, homogeneous(np.eye(3), [0., 0., 1.]) @ frame),
            (stand, 'base', BASE, behind @ frame)):
        assert (found.owner, found.body, found.kind) == (owner, body, kind)
        np.testing.assert_allclose(found.placement, place, rtol=1e-12, atol=1e-12)
        assert (tuple(found.edges), found.disc, found.ball) == SIZES[kind]
    assert left_out == ()
    places = links_at_rest(parse_urdf(LINKS, 'here'), robot)
    assert places.keys() == {'base', 'stand'}
    np.testing.assert_allclose(places['stand'], behind, rtol=1e-12, atol=1e-12)


def test_obstacles_are_placed_from_their_root_with_all_joints_at_zero(tmp_path: Path) -> None:
    path = described(tmp_path, collision('box'), '', collision('sphere', '0 0 0', '0 0 0'))
    arm, stand = environment_shapes(str(path.with_suffix('.urdf')))
    turned = homogeneous(rotation_about([0.0, 0.0, 1.0], 0.5 * np.pi), [0.5, 0.0, 2.7])
    assert (arm.owner, stand.owner, arm.body, stand.body) == ('arm', 'stand', BASE, BASE)
    np.testing.assert_allclose(arm.placement, turned @ homogeneous(TURN, PLACE), rtol=1e-12,
                               atol=1e-12)
    np.testing.assert_array_equal(stand.placement, np.eye(4))


@pytest.mark.parametrize(('kind', 'radii'), [
    ('box', np.sqrt(3.0) * np.array([0.1, 0.2, 0.3])),
    ('cylinder', [np.sqrt(1.5) * 0.1, np.sqrt(1.5) * 0.1, np.sqrt(3.0) * 0.3]),
    ('capsule', [np.sqrt(1.5) * 0.1, np.sqrt(1.5) * 0.1, np.sqrt(3.0) * 0.4]),
    ('sphere', [0.2, 0.2, 0.2])])
def test_the_smallest_ellipsoid_around_a_primitive(
    tmp_path: Path, kind: str, radii: list[float]
) -> None:
    robot = load_robot(described(tmp_path, collision(kind)))
    placement, found = collision_ellipsoid(robot, 'arm')
    np.testing.assert_allclose(placement, homogeneous(TURN, PLACE), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found, radii, rtol=1e-12)


def test_the_ellipsoid_around_several_primitives_is_that_of_their_common_box(
        tmp_path: Path) -> None:
    robot = load_robot(described(tmp_path, collision('box', rpy='0 0 0'),
                                 collision('sphere', '0.1 0.4 -0.5')))
    placement, found = collision_ellipsoid(robot, 'arm')
    low, high = np.array([-0.1, -0.4, 0.0]), np.array([0.6, 0.6, 0.7])
    np.testing.assert_allclose(placement, homogeneous(np.eye(3), 0.5 * (low + high)), rtol=1e-12)
    np.testing.assert_allclose(found, np.sqrt(3.0) * 0.5 * (high - low), rtol=1e-12)
