"""Random robots with collision shapes, and motions for them."""

from __future__ import annotations

import re

import numpy as np
from random_robots import random_urdf, text_of

from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.fourier import FourierTrajectory


def random_geometry(rng: np.random.Generator) -> str:
    """Return a box, cylinder, capsule or sphere of 4 to 12 cm half length."""
    half = [float(v) for v in rng.uniform(0.04, 0.12, 3)]
    return str(rng.choice([
        f'<box size="{text_of(2.0 * np.array(half))}"/>', f'<sphere radius="{half[0]!r}"/>',
        f'<cylinder radius="{half[0]!r}" length="{2.0 * half[1]!r}"/>',
        f'<capsule radius="{half[0]!r}" length="{2.0 * half[1]!r}"/>']))


def random_collision(rng: np.random.Generator) -> str:
    """Return a <collision> near the origin of its link."""
    return (f'<collision><origin xyz="{text_of(rng.normal(size=3) * 0.08)}" '
            f'rpy="{text_of(rng.uniform(-3, 3, 3))}"/><geometry>{random_geometry(rng)}</geometry>'
            '</collision>')


def colliding_urdf(rng: np.random.Generator, moving: int, branching: float = 0.0) -> str:
    """Return a random robot whose links have one or two shapes each."""
    return re.sub(r'(<link name="l\d+">)',
                  lambda m: m[1] + ''.join(random_collision(rng)
                                           for _ in range(rng.integers(1, 3))),
                  random_urdf(rng, moving, branching))


def colliding_robot(path, rng: np.random.Generator, moving: int, branching: float = 0.0):
    """Return the robot of a random URDF written to ``path``."""
    path.write_text(colliding_urdf(rng, moving, branching))
    return load_robot(path)


def random_motion(
    robot: RobotModel, rng: np.random.Generator, size: float, seconds: float = 4.0
) -> FourierTrajectory:
    """Return a Fourier series about a random pose, amplitudes of ``size`` rad (m)."""
    amplitudes = [size * rng.normal(size=(robot.n, 3)) / np.arange(1.0, 4.0) for _ in range(2)]
    return FourierTrajectory(robot.joints, 1.0 / seconds, rng.uniform(-1.0, 1.0, robot.n),
                             *amplitudes)
