"""Forward kinematics: poses of the links, points along a chain, the tip."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.dynamics.rigid_body import _states
from robot_dynid.kernels import kinematics
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray


class LinkPoses(NamedTuple):
    """Frames of the moving links in the base frame.

    ``rotations`` (N, n, 3, 3) from the frame of the link to that of the base, ``origins``
    (N, n, 3) m.
    """

    rotations: FloatArray
    origins: FloatArray


def link_poses(robot: RobotModel, q: ArrayLike) -> LinkPoses:
    """Return the poses of all links at positions ``q`` (N, n) rad (m).

    Raises UsageError when ``q`` has another shape.
    """
    (positions,) = _states(robot, q)
    count, n = positions.shape
    poses = LinkPoses(np.empty((count, n, 3, 3)), np.empty((count, n, 3)))
    parents = np.array(robot.parents, dtype=np.int64)
    kinematics.link_poses(parents, robot.geometry, positions, *poses)
    return poses


def chain_points(robot: RobotModel, q: ArrayLike) -> FloatArray:
    """Return base, joint origins and tip (N, k, 3) m of the longest chain at ``q`` (N, n).

    In the base frame. Raises UsageError when ``q`` has another shape.
    """
    poses, chain = link_poses(robot, q), list(robot.longest_chain)
    base = np.zeros((len(poses.origins), 1, 3))
    tip = poses.origins[:, chain[-1]] + poses.rotations[:, chain[-1]] @ robot.tip
    return np.concatenate([base, poses.origins[:, chain], tip[:, None]], axis=1)


def tip_positions(robot: RobotModel, q: ArrayLike) -> FloatArray:
    """Return the tip positions (N, 3) m at ``q`` (N, n) rad (m), see `RobotModel.tip`."""
    return chain_points(robot, q)[:, -1]
