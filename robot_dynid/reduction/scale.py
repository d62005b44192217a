"""The size of a robot, by which reductions become independent of units."""

from __future__ import annotations

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray


def length_of(robot: RobotModel) -> float:
    """Return the longest distance [m] between the frames of neighbouring joints; 1 without any.

    Where the base frame stands does not matter.
    """
    inner = robot.translations[np.asarray(robot.parents) >= 0]
    return float(np.linalg.norm(inner, axis=1).max(initial=0.0)) or 1.0


def parameter_sizes(links: int, length: float) -> FloatArray:
    """Return the torque (10 links,) of standard parameters of one at one rad/s^2.

    That is ``length^2`` for a mass, ``length`` for a first moment, 1 for a moment of inertia.
    """
    return np.tile([length**2] + [length] * 3 + [1.0] * 6, links)
