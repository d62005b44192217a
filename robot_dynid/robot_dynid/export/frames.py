"""Link frames, and inertial parameters in them, that minimise the terms of recursions.

The z axis of a frame is that of its joint; if the next joint is revolute, x is the common normal
of both axes and the origin its foot, so the constant rotation between links is about x. Parameters
that move with the parent as well are moved to it: mass, first and second moment along the axis of
a revolute joint; all second moments of a prismatic one. Sources: Khalil, Kleinfinger 1986;
Gautier, Khalil 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.robot.inertia import homogeneous, pseudo_inertia
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray

#: constants below this, relative to the largest, are zero
CONSTANT_ROUNDING = 5e-16
#: smallest sine of the angle between axes for their common normal, whose foot may be far away
PARALLEL_SINE = 1e-3


@dataclass(frozen=True, eq=False)
class Frames:
    """Frames of the n links of a robot: ``links`` (n, 4, 4) are their poses in the robot's frames.

    ``rotations`` (n, 3, 3) and ``translations`` (n, 3) m place each in that of its parent with its
    joint at minus ``offsets`` (n,) rad; it turns about z, or slides along ``slides`` (n, 3) of the
    parent's frame, zero if it turns.
    """

    parents: tuple[int, ...]
    links: FloatArray
    rotations: FloatArray
    translations: FloatArray
    offsets: FloatArray
    slides: FloatArray

    @classmethod
    def of(cls, robot: RobotModel) -> Frames:
        """Compute the frames of a robot."""
        fixed = np.array([homogeneous(r, t) for r, t in zip(robot.rotations, robot.translations,
                                                            strict=True)])
        links = _chosen(robot, fixed)
        placed = np.empty_like(links)
        offsets, slides = np.zeros(robot.n), np.zeros((robot.n, 3))
        for j, parent in enumerate(robot.parents):
            base = np.eye(4) if parent < 0 else links[parent]
            placed[j] = np.linalg.inv(base) @ fixed[j] @ links[j]
            if robot.types[j] == PRISMATIC:
                slides[j] = rounded(base[:3, :3].T @ robot.rotations[j] @ robot.axes[j], 1.0)
        size = float(np.abs(placed[:, :3, 3]).max())
        rotations = rounded(placed[:, :3, :3], 1.0)
        for j in range(robot.n):
            rotations[j], offsets[j] = _split(rotations[j])
        return cls(tuple(int(p) for p in robot.parents), links, rotations,
                   rounded(placed[:, :3, 3], size), offsets, slides)

    def turns(self, joint: int) -> bool:
        """Return True if a joint turns, False if it slides."""
        return not self.slides[joint].any()

    def moments(self, parameters: FloatArray) -> FloatArray:
        """Return pseudo-inertias (n, 4, 4) in the frames, of the same motion as (n, 10).

        ``parameters`` are standard parameters in the frames of the robot's links.
        """
        pseudo = np.empty((len(self.parents), 4, 4))
        for j, standard in enumerate(parameters):
            back = np.linalg.inv(self.links[j])
            pseudo[j] = back @ pseudo_inertia(standard) @ back.T
        size = np.abs(pseudo).max()
        for j in reversed(range(len(pseudo))):
            moved = np.zeros((4, 4))
            shared = slice(2, None) if self.turns(j) else slice(3)
            moved[shared, shared] = pseudo[j][shared, shared]
            pseudo[j] -= moved
            if self.parents[j] >= 0:
                place = homogeneous(self.rotations[j], self.translations[j])  # at any angle
                pseudo[self.parents[j]] += place @ moved @ place.T
        return rounded(pseudo, size)

    def along(self, vectors: FloatArray, links: Sequence[int]) -> FloatArray:
        """Return vectors (m, 3) in the frames of ``links`` (m,), given in those of the robot."""
        turned = [self.links[link][:3, :3].T @ v for link, v in zip(links, vectors, strict=True)]
        return rounded(np.array(turned).reshape(-1, 3), float(np.abs(vectors).max(initial=0.0)))


def rounded(values: FloatArray, size: float) -> FloatArray:
    """Round ``values`` (..., k) near zero, ``size`` and -``size``."""
    result = np.where(np.abs(values) <= CONSTANT_ROUNDING * size, 0.0, values)
    near = np.abs(np.abs(result) - size) <= CONSTANT_ROUNDING * size
    return np.asarray(np.where(near, np.sign(result) * size, result))


def _split(rotation: FloatArray) -> tuple[FloatArray, float]:
    """Split a rotation (3, 3) into one about x after an angle about z [rad].

    Rotations that are no such product, and quarter turns about z, are unchanged.
    """
    cosine, sine, across = rotation[0]
    if across != 0.0 or cosine == 0.0 or sine == 0.0:
        return rotation, 0.0
    y, z = rotation[1:, 2]
    return np.array([[1.0, 0.0, 0.0], [0.0, z, y], [0.0, -y, z]]), float(np.arctan2(-sine, cosine))


def _chosen(robot: RobotModel, fixed: FloatArray) -> FloatArray:
    """Return the poses (n, 4, 4) of the frames in those of the robot's links."""
    frames = np.empty((robot.n, 4, 4))
    for j, parent in enumerate(robot.parents):
        previous = np.linalg.inv(fixed[j]) @ (np.eye(4) if parent < 0 else frames[parent])
        if robot.types[j] == PRISMATIC:
            frames[j] = previous  # no revolute joint follows
            continue
        axis = robot.axes[j]
        nearest = (previous[:3, 3] @ axis) * axis
        below, place = _next_turning(robot, fixed, j)
        if below < 0:
            lying = [v - (v @ axis) * axis for v in previous[:3, :3].T]
            x = max(lying, key=lambda v: float(np.round(v @ v, 9)))
            frames[j] = _frame(axis, x, nearest)
        else:
            frames[j] = _towards(axis, place[:3, :3] @ robot.axes[below], place[:3, 3], nearest)
    return frames


def _next_turning(robot: RobotModel, fixed: FloatArray, joint: int) -> tuple[int, FloatArray]:
    """Return the next revolute joint, with prismatic ones at zero, and its pose; -1: none."""
    place, at = np.eye(4), joint
    while True:
        sizes = np.where(np.asarray(robot.parents) == at, robot.carried.sum(axis=1), 0)
        if not sizes.any():
            return -1, place
        at = int(np.argmax(sizes))
        place = place @ fixed[at]
        if robot.types[at] != PRISMATIC:
            return at, place


def _towards(
    axis: FloatArray, other: FloatArray, point: FloatArray, nearest: FloatArray
) -> FloatArray:
    """Return the frame (4, 4) with z along ``axis`` and x along the normal to another axis.

    The other axis is along ``other`` (3,) through ``point`` (3,); if both are parallel the origin
    is ``nearest`` (3,).
    """
    normal = np.cross(axis, other)
    if np.linalg.norm(normal) > PARALLEL_SINE:
        # point + s other - t axis is along the normal
        across = np.cross(other, normal)
        return _frame(axis, normal, (across @ point) / (across @ axis) * axis)
    away = point - (point @ axis) * axis
    if np.linalg.norm(away) <= CONSTANT_ROUNDING * np.linalg.norm(point):
        away = np.eye(3)[np.argmin(np.abs(axis))]
    return _frame(axis, away, nearest)


def _frame(axis: FloatArray, normal: FloatArray, origin: FloatArray) -> FloatArray:
    """Return the frame (4, 4) with z along ``axis`` and x in the plane of ``normal`` and it."""
    z = axis / np.linalg.norm(axis)
    x = normal - (normal @ z) * z
    x /= np.linalg.norm(x)
    return homogeneous(np.column_stack([x, np.cross(z, x), z]), origin)
