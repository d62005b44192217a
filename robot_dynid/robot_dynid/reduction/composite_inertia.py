"""Inertia constants of composite bodies, as linear maps of the standard parameters.

Composite body i is link i and all links it carries. Its first moment and inertia about the origin
of link i split into constant parts, k_i and U_i, and parts that vary with the joints after i
(Lemma 1 of the source). Constant is what a joint cannot turn or shift:

- Seen from link i, revolute joint i+1 leaves the mass m^_{i+1}, the moment (k_{i+1})_z along its
  axis, and diag(U_22, U_22, U_33) of the inertia unchanged (eqs. 18, 20): a body that is
  symmetric about the axis, moved rigidly by the placement of the joint.
- Prismatic joint i+1 leaves all of k_{i+1} and U_{i+1} unchanged (eqs. 22, 24), placed where the
  axis comes nearest to the origin of link i; the distance d along the axis varies.

One step inwards is therefore: take what the joint leaves unchanged, move it like the parameters of
a rigid body, add those of the link. Frames are driving-axis frames (eq. 2): the origin of the link
frame, z turned onto the joint axis by the smallest rotation; where the axis is z they are the link
frames. The source writes placements with four numbers, b, beta, d, theta (eqs. 3, 4); here they
are arbitrary, its b and d being the translation across and along the axis.

Source: Lin, An Identification Method for Estimating the Inertia Parameters of a Manipulator, 1991,
Lemma 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.robot.inertia import homogeneous, move_parameters, symmetric
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.robot.screws import rotation_to
from robot_dynid.types import FloatArray

#: the part of m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz that a revolute joint about z leaves
#: unchanged: m, mz, Iyy (U_22) for both Ixx and Iyy, and Izz
_SYMMETRIC = np.zeros((10, 10))
_SYMMETRIC[[0, 3, 4, 6, 9], [0, 3, 6, 6, 9]] = 1.0


def driving_rotations(robot: RobotModel) -> FloatArray:
    """Return the rotations (n, 3, 3) that take driving-axis frames to link frames."""
    return np.array([rotation_to(axis) for axis in robot.axes])


def driving_placements(robot: RobotModel) -> FloatArray:
    """Return the pose (n, 4, 4) of each driving-axis frame in its parent's, at q = 0.

    Frames without a parent are given in the base frame. A joint moves its frame about or along its
    z axis, by Rot(z, q) or by q.
    """
    turns = driving_rotations(robot)
    poses = np.empty((robot.n, 4, 4))
    for j, parent in enumerate(robot.parents):
        back = turns[parent].T if parent >= 0 else np.eye(3)
        poses[j] = homogeneous(back @ robot.rotations[j] @ turns[j],
                               back @ robot.translations[j])
    return poses


def moving_map(a_from_b: ArrayLike) -> FloatArray:
    """Return the (10, 10) matrix that transforms standard parameters from frame b to frame a."""
    return np.array([move_parameters(unit, a_from_b) for unit in np.eye(10)]).T


def composite_map(robot: RobotModel) -> FloatArray:
    """Return (n, 10, 10 n): constants of every composite body = map @ standard parameters.

    The ten rows are m^, k_x, k_y, k_z, U_11, U_12, U_22, U_13, U_23, U_33 in the driving-axis
    frame of the joint; columns are the standard parameters in link frames, link by link. In a tree
    a link carries all its children. Source: Lin 1991, eqs. 14, 16, 18, 20, 22, 24.
    """
    constants = np.zeros((robot.n, 10, 10 * robot.n))
    poses = driving_placements(robot)
    for j, turn in enumerate(driving_rotations(robot)):
        constants[j, :, 10 * j:10 * j + 10] = moving_map(homogeneous(turn.T, np.zeros(3)))
    for j in range(robot.n - 1, -1, -1):
        parent = robot.parents[j]
        if parent >= 0:
            constants[parent] += _unchanged(poses[j], bool(robot.types[j] == PRISMATIC)
                                            ) @ constants[j]
    return constants


def _unchanged(pose: FloatArray, prismatic: bool) -> FloatArray:
    """Return the map (10, 10) from the constants of a body to those that are constant in its
    parent.
    """
    if not prismatic:
        return moving_map(pose) @ _SYMMETRIC
    along, offset = pose[:3, 2], pose[:3, 3]
    return moving_map(homogeneous(pose[:3, :3], offset - (offset @ along) * along))


def composite_constants(
    robot: RobotModel, parameters: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return masses m^ (n,) kg, k (n, 3) kg m and U (n, 3, 3) kg m^2 of the composite bodies.

    ``parameters`` (n, 10) standard parameters in link frames, by default the nominal ones; results
    are in driving-axis frames, about the origins of the link frames.
    """
    chosen = robot.nominal if parameters is None else parameters
    values = composite_map(robot) @ np.asarray(chosen, dtype=np.float64).reshape(10 * robot.n)
    return values[:, 0], values[:, 1:4], np.array([symmetric(six) for six in values[:, 4:]])
