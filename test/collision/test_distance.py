"""Distances of shapes against MuJoCo and closed forms; capsules bound them from below."""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from colliding_robots import random_geometry
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import GJK, PEER_DISTANCE, SAME_FORMULA

from robot_dynid.collision.distance import Capsules, Coal, above, capsule_to_box, placed
from robot_dynid.collision.shapes import BASE, Shape, robot_shapes
from robot_dynid.robot.robot_file import load_robot

KINDS = {'box': mujoco.mjtGeom.mjGEOM_BOX, 'sphere': mujoco.mjtGeom.mjGEOM_SPHERE,
         'cylinder': mujoco.mjtGeom.mjGEOM_CYLINDER, 'capsule': mujoco.mjtGeom.mjGEOM_CAPSULE}
NOWHERE = np.zeros((1, 0, 12))  # the pose of no body: all shapes are at rest
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
        return robot_shapes(load_robot(path))
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


def coal_distance(shapes):
    """Return the witness of coal of the first two shapes."""
    pair = np.array([[0, 1]])
    return Coal(shapes, pair)(NOWHERE, np.zeros(1, int), np.zeros(1, int))


@settings(max_examples=150)
@given(seeds, st.sampled_from([0.05, 0.15, 0.4]))
def test_distances_are_those_of_mujoco_and_of_their_points(drawn, seed, spread):
    shapes = drawn(seed, spread)
    found, peer = coal_distance(shapes), peer_distance(shapes)
    distance = float(found.distance[0])
    if peer > 1e-4:
        assert distance == pytest.approx(peer, abs=PEER_DISTANCE)
    else:
        assert distance < 2e-4
    between = (found.second - found.first)[0]
    assert between @ found.normal[0] == pytest.approx(distance, abs=GJK)
    assert np.linalg.norm(found.normal[0]) == pytest.approx(1.0, abs=GJK)
    capsules = float(Capsules(shapes, np.array([[0, 1]]))(NOWHERE)[0, 0])
    assert max(capsules, 0.0) <= max(distance, 0.0) + GJK


@settings(max_examples=100)
@given(seeds)
def test_height_over_the_floor_is_that_of_the_lowest_point(drawn, seed):
    shape = drawn(seed, 0.3)[0]
    found = above(shape, NOWHERE, -0.2)
    ways = np.random.default_rng(seed).normal(size=(4000, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    (turn,), (place,) = placed(shape, NOWHERE)
    points = place + surface(shape, ways) @ turn.T
    assert found.distance[0] <= points[:, 2].min() + 0.2 + SAME_FORMULA
    assert found.distance[0] >= points[:, 2].min() + 0.2 - 0.02
    assert found.first[0, 2] + 0.2 == pytest.approx(found.distance[0], abs=SAME_FORMULA)


def surface(shape, ways):
    """Return points (k, 3) of the surface of a shape, in its frame."""
    across = ways[:, :2] / np.linalg.norm(ways[:, :2], axis=1, keepdims=True)
    disc = np.hstack([shape.disc * across, np.zeros((len(ways), 1))])
    return np.sign(ways) * shape.edges + disc + shape.ball * ways


@settings(max_examples=100)
@given(seeds, st.sampled_from([0.05, 0.15, 0.4]))
def test_capsules_and_boxes_in_closed_form_agree_with_coal(seed, spread):
    rng = np.random.default_rng(seed)
    frames = []
    for _ in range(2):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        frame = np.eye(4)
        frame[:3, :3] = turn * np.sign(np.linalg.det(turn))
        frame[:3, 3] = rng.normal(size=3) * spread
        frames.append(frame)
    capsule = Shape('a', BASE, 'capsule', frames[0], np.array([0, 0, rng.uniform(0.01, 0.2)]),
                    ball=rng.uniform(0.02, 0.1))
    box = Shape('b', BASE, 'box', frames[1], rng.uniform(0.03, 0.2, 3))
    ours, coal = capsule_to_box(capsule, NOWHERE, box), coal_distance((capsule, box))
    if coal.distance[0] > 0.0:
        assert ours.distance[0] == pytest.approx(float(coal.distance[0]), abs=GJK)
        assert np.allclose(ours.first, coal.first, atol=1e-2)
    else:
        assert ours.distance[0] <= GJK
    between = (ours.second - ours.first)[0]
    assert between @ ours.normal[0] == pytest.approx(ours.distance[0], abs=SAME_FORMULA)


def test_parallel_and_pointlike_capsules():
    def rod(x, half, radius):
        frame = np.eye(4)
        frame[0, 3] = x
        return Shape('rod', BASE, 'capsule', frame, np.array([0.0, 0.0, half]), ball=radius)

    rods = (rod(0.0, 0.5, 0.1), rod(1.0, 0.5, 0.2), rod(3.0, 0.0, 0.3))
    found = Capsules(rods, np.array([[0, 1], [0, 2], [2, 1], [2, 2]]))(NOWHERE)[0]
    assert found == pytest.approx([0.7, 2.6, 1.5, -0.6], abs=SAME_FORMULA)
