"""Pairs of bodies that cannot come near each other in any configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.collision.scene import Scene

# Joints between two bodies up to which all of their positions are gone through, and the most
# configurations looked at for a pair.
JOINTS, MOST = 2, 3000
NEGLIGIBLE = 1e-5  # m, levers that are rounding of the angles in a URDF


def always_separated(scene: Scene) -> bool:
    """Return whether the only pair of a scene keeps its clearance wherever the joints stand.

    The ranges of the joints between both bodies are cut in halves until the distance in the
    middle of every cell is larger than any position in it can change it. False where a position
    is too near, or MOST configurations do not decide.
    """
    lower, upper = _ranges(scene.robot)
    lever = scene.levers(np.fmax(np.abs(lower), np.abs(upper)))[:, 0]
    moves = lever > NEGLIGIBLE
    if moves.sum() > JOINTS or not np.all(np.isfinite(upper[moves] - lower[moves])):
        return False
    required, looked = scene.required[0], 0
    middles = np.where(lever > 0.0, 0.5 * (lower + upper), 0.0)[None, :]
    halves = np.where(lever > 0.0, 0.5 * (upper - lower), 0.0)[None, :]
    while len(middles):
        looked += len(middles)
        if looked > MOST:
            return False
        distance = scene.distances(middles)[:, 0]
        if np.any(distance < required):
            return False
        rows = np.flatnonzero(distance - halves @ lever < required)
        middles, halves = _cut(middles[rows], halves[rows], lever)
    return True


def _cut(
    middles: FloatArray, halves: FloatArray, lever: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return cells cut in two across the joint that moves the bodies most."""
    which = np.eye(len(lever))[np.argmax(halves * lever, axis=1)]
    step = 0.5 * halves * which
    return np.concatenate([middles - step, middles + step]), np.tile(halves - step, (2, 1))


def _ranges(robot: RobotModel) -> tuple[FloatArray, FloatArray]:
    """Return lower and upper positions (n,): one turn at most, infinite for free slides."""
    free = np.where(np.asarray(robot.types) == PRISMATIC, np.inf, np.pi)
    lower = np.where(np.isfinite(robot.limits.lower), robot.limits.lower, -free)
    upper = np.where(np.isfinite(robot.limits.upper), robot.limits.upper, free)
    turns = (np.asarray(robot.types) != PRISMATIC) & (upper - lower > 2.0 * np.pi)
    return np.where(turns, -np.pi, lower), np.where(turns, np.pi, upper)
