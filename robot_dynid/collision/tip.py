"""Where the tip of a robot goes, for pictures of a plan."""

from __future__ import annotations

import numpy as np

from robot_dynid.collision.distance import body_poses
from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FloatArray

RATE = 50.0
MOST = 4000


def tip_path(
    robot: RobotModel, trajectory: Trajectory, rate: float = RATE
) -> tuple[FloatArray, FloatArray, str]:
    """Return instants (T,) s, positions (T, 3) m of the tip, and the frame they are in.

    The tip is the origin of the last link at the end of the longest chain. ``rate`` points per
    second are given, at most MOST in all.
    """
    count = int(min(np.ceil(rate * trajectory.duration) + 1, MOST))
    time = np.linspace(0.0, trajectory.duration, count)
    positions = chain_points(robot, trajectory.sample(time).position)[:, -1]
    return time, positions, robot.base_link


def chain_points(robot: RobotModel, q: FloatArray) -> FloatArray:
    """Return base, joint origins and tip (T, k, 3) m of the longest chain at ``q`` (T, n)."""
    depth = [0] * robot.n
    for j, parent in enumerate(robot.parents):
        depth[j] = 1 + (depth[parent] if parent >= 0 else 0)
    body = last = int(np.argmax(depth))
    chain = [last]
    while robot.parents[body] >= 0:
        body = int(robot.parents[body])
        chain.insert(0, body)
    poses = body_poses(robot, q)
    fixed = [link.placement[:3, 3] for link in robot.links if link.body == last]
    tip = max(fixed, key=lambda place: float(place @ place), default=np.zeros(3))
    turn = poses[:, last, :9].reshape(-1, 3, 3)
    return np.concatenate([np.zeros((len(q), 1, 3)), poses[:, chain, 9:],
                           (poses[:, last, 9:] + turn @ tip)[:, None]], axis=1)
