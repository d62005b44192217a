"""Distances of shapes against MuJoCo and their points; the broad phase bounds them from below."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_robots import random_geometry
from tolerances import GJK, PEER_DISTANCE, SAME_FORMULA

from robot_dynid.collision.distance import BroadPhase, NarrowPhase, shape_poses
from robot_dynid.collision.shapes import BASE, Shape, floor_shape, plain_box, robot_shapes
from robot_dynid.dynamics.rigid_body import LinkPoses
from robot_dynid.robot.inertia import homogeneous
from robot_dynid.robot.robot_file import load_robot

KINDS = {'box': mujoco.mjtGeom.mjGEOM_BOX, 'sphere': mujoco.mjtGeom.mjGEOM_SPHERE,
         'cylinder': mujoco.mjtGeom.mjGEOM_CYLINDER, 'capsule': mujoco.mjtGeom.mjGEOM_CAPSULE}
NOWHERE = LinkPoses(np.zeros((1, 0, 3, 3)), np.zeros((1, 0, 3)))  # all shapes are at rest
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(scope='module')
def drawn(tmp_path_factory):
    """Return a function that draws two shapes at rest, at random places."""
    folder = tmp_path_factory.mktemp('drawn')

    def draw(seed, spread):
        rng = np.random.default_rng(seed)
        parts = ''.join(
            f'<collision><origin xyz="{x} {y} {z}" rpy="{a} {b} {c}"/><geometry>'
            f'{random_geometry(rng)}</geometry></collision>'
            for x, y, z, a, b, c in np.hstack([rng.normal(size=(2, 3)) * spread,
                                               rng.uniform(-3.0, 3.0, (2, 3))]))
        path = folder / 'two.urdf'
        path.write_text(f'<robot name="two"><link name="base">{parts}</link><link name="arm"/>'
                        '<joint name="turn" type="continuous"><parent link="base"/>'
                        '<child link="arm"/></joint></robot>')
        return robot_shapes(load_robot(path))[0]
    return draw


def peer_distance(shapes):
    """Return MuJoCo's distance of two shapes [m]."""
    spec = mujoco.MjSpec()
    for shape in shapes:
        size = {'box': shape.edges, 'sphere': [shape.ball, 0, 0],
                'cylinder': [shape.disc, shape.edges[2], 0],
                'capsule': [shape.ball, shape.edges[2], 0]}[shape.kind]
        quaternion = np.zeros(4)
        mujoco.mju_mat2Quat(quaternion, shape.placement[:3, :3].ravel())
        spec.worldbody.add_geom(type=KINDS[shape.kind], size=size, quat=quaternion,
                                pos=shape.placement[:3, 3])
    model = spec.compile()
    model.opt.ccd_tolerance = 1e-8
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return mujoco.mj_geomDistance(model, data, 0, 1, 10.0, np.zeros(6))


def measured(shapes):
    """Return the witness of the first two shapes and the lower bound of their distance [m]."""
    pair, one = np.array([[0, 1]]), np.zeros(1, int)
    return (NarrowPhase(shapes, pair)(NOWHERE, one, one),
            float(BroadPhase(shapes, pair)(NOWHERE, np.full((1, 1), np.inf))[0, 0]))


@settings(max_examples=150)
@given(seeds, st.sampled_from([0.05, 0.15, 0.4]))
def test_distances_are_those_of_mujoco_and_of_their_points(drawn, seed, spread):
    shapes = drawn(seed, spread)
    (found, bound), peer = measured(shapes), peer_distance(shapes)
    distance = float(found.distance[0])
    if peer > 1e-4:
        assert distance == pytest.approx(peer, abs=PEER_DISTANCE)
    else:
        assert distance < 2e-4
    between = (found.second - found.first)[0]
    assert between @ found.normal[0] == pytest.approx(distance, abs=GJK)
    assert np.linalg.norm(found.normal[0]) == pytest.approx(1.0, abs=GJK)
    assert max(bound, 0.0) <= max(distance, 0.0) + GJK


@settings(max_examples=100)
@given(seeds)
def test_height_over_the_floor_is_that_of_the_lowest_point(drawn, seed):
    shape = drawn(seed, 0.3)[0]
    found, bound = measured((shape, floor_shape('floor', -0.2)))
    ways = np.random.default_rng(seed).normal(size=(4000, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    (turn,), (place,) = shape_poses(shape, NOWHERE)
    points = place + surface(shape, ways) @ turn.T
    height = points[:, 2].min() + 0.2
    assert bound - GJK <= found.distance[0] <= height + SAME_FORMULA
    assert found.distance[0] >= height - 0.02
    assert found.first[0, 2] + 0.2 == pytest.approx(found.distance[0], abs=SAME_FORMULA)
    assert found.normal[0] == pytest.approx([0.0, 0.0, -1.0])


def surface(shape, ways):
    """Return points (k, 3) of the surface of a shape, in its frame."""
    across = ways[:, :2] / np.linalg.norm(ways[:, :2], axis=1, keepdims=True)
    disc = np.hstack([shape.disc * across, np.zeros((len(ways), 1))])
    return np.sign(ways) * shape.edges + disc + shape.ball * ways


def test_spheres_and_boxes_of_the_broad_phase_are_tight():
    """A sphere is its own bound, also over a floor; corners of a box lie on the sphere around.

    A ball beside an edge of a box is as far from it as from the box around it.
    """
    ball = Shape('a', BASE, 'sphere', homogeneous(np.eye(3), [1.0, 0.0, 0.0]), np.zeros(3),
                 ball=0.1)
    box = plain_box('b', homogeneous(np.eye(3), [0.0, 0.0, 2.0]), [0.6, 0.8, 2.4])
    hull = Shape('c', BASE, 'mesh', box.placement, np.zeros(3), vertices=np.array(
        [[0.3, 0.4, 1.2], [-0.3, -0.4, -1.2], [0.3, -0.4, 1.2], [-0.3, 0.4, 1.2]]))
    pairs = np.array([[0, 1], [0, 2], [0, 3], [1, 3]])
    broad = BroadPhase((ball, box, hull, floor_shape('floor', -0.5)), pairs)
    for far, apart in ((-np.inf, np.sqrt(5.0) - 1.4), (np.inf, np.hypot(0.7, 0.8) - 0.1)):
        bounds = broad(NOWHERE, np.full((1, 4), far))[0]
        assert bounds == pytest.approx([apart, apart, 0.4, 1.2], abs=SAME_FORMULA)


def test_a_hundredth_of_a_millimetre_is_taken_off_all_but_distances_to_a_floor():
    """That is the error of coal; of balls and of half-spaces it has none."""
    low, high = (Shape('a', BASE, 'sphere', homogeneous(np.eye(3), [0.0, 0.0, z]), np.zeros(3),
                       ball=radius) for z, radius in ((0.5, 0.1), (2.0, 0.3)))
    narrow = NarrowPhase((low, high, floor_shape('floor', -0.25)), np.array([[0, 1], [0, 2]]))
    found = narrow(NOWHERE, np.zeros(2, int), np.arange(2))
    np.testing.assert_allclose(found.distance, [1.1 - 1e-5, 0.65], rtol=1e-9)
    np.testing.assert_allclose(found.first[:, 2], [0.6, 0.4], rtol=1e-9)
    np.testing.assert_allclose(found.normal, [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]], atol=1e-9,
                               rtol=1e-9)


def test_meshes_with_round_faces_are_hulls():
    """The corner of such a face that its triangles share has more of them than coal counts."""
    angle = 2.0 * np.pi * np.arange(600) / 600
    ring = 0.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    drum = Shape('a', BASE, 'mesh', homogeneous(np.eye(3), [2.0, 0.0, 0.0]), np.zeros(3),
                 vertices=np.vstack([np.column_stack([ring, np.full(600, z)]) for z in (-1, 1)]))
    box = plain_box('b', homogeneous(np.eye(3), [0.0, 0.0, 0.5]), [1.0, 1.0, 0.4])
    found = NarrowPhase((drum, box), np.array([[0, 1]]))(NOWHERE, np.array([0]), np.array([0]))
    assert found.distance == pytest.approx([1.0], abs=PEER_DISTANCE)
