"""dynamics/rigid_body.py: forward kinematics against products of homogeneous transforms; the tip
of chains and trees."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import slow_dynamics
from hypothesis import given
from hypothesis import strategies as st
from random_robots import random_urdf
from tolerances import SAME_FORMULA

from robot_dynid.dynamics.rigid_body import chain_points, link_poses, tip_positions
from robot_dynid.errors import UsageError
from robot_dynid.robot.model import Link
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf


@given(st.integers(0, 2**32 - 1), st.integers(1, 7), st.sampled_from([0.0, 0.5]))
def test_poses_are_products_of_transforms(seed, joints, branching):
    rng = np.random.default_rng(seed)
    robot = robot_from_urdf(random_urdf(rng, joints, branching))
    q = rng.uniform(-3.0, 3.0, (40, robot.n))  # more than a tile
    poses = link_poses(robot, q)
    for row, rotations, origins in zip(q, *poses):
        frames = np.array(slow_dynamics.poses(robot, row))
        assert rotations == pytest.approx(frames[:, :3, :3], abs=SAME_FORMULA)
        assert origins == pytest.approx(frames[:, :3, 3], abs=SAME_FORMULA)
    with pytest.raises(UsageError, match='must all be'):
        link_poses(robot, q[:, :-1])


def test_the_tip_is_the_end_of_the_chain():
    robot = load_robot('ur10e')
    chain = chain_points(robot, np.zeros((1, 6)))[0]
    assert np.allclose(chain[0], 0.0) and len(chain) == 1 + 6 + 1
    # stretched along x, wrists down and aside: d1, a2 + a3, d4 + d6, d5 of the maker's table
    assert chain[-2] == pytest.approx([1.18425, 0.17415 + 0.11655, 0.1807 - 0.11985], abs=1e-6)


def test_the_tip_of_a_tree_is_at_its_longest_chain():
    """The last joint may belong to a shorter branch; the link farthest out is the tip."""
    robot = load_robot('planar_3r')
    tool = np.eye(4)
    tool[:3, 3] = 0.3, 0.0, 0.1
    links = tuple(Link(name, body, place, np.zeros(10), False) for name, body, place in (
        ('elbow', 1, np.eye(4)), ('tool', 1, tool), ('flange', 1, np.eye(4)),
        ('camera', 2, 4.0 * tool)))
    tree = replace(robot, parents=np.array([-1, 0, -1]), links=links)
    assert tree.longest_chain == (0, 1)
    assert tree.tip == pytest.approx([0.3, 0.0, 0.1])
    q = np.random.default_rng(0).normal(size=(3, 3))
    poses = link_poses(tree, q)
    expected = poses.origins[:, 1] + poses.rotations[:, 1] @ tool[:3, 3]
    assert tip_positions(tree, q) == pytest.approx(expected, abs=SAME_FORMULA)
