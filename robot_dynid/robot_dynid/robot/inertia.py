"""Spatial algebra and inertial parameters as pure functions.

A vector of standard parameters is ``(m, m cx, m cy, m cz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz)`` about
the origin of its frame [kg, kg m, kg m^2], the order Pinocchio uses.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.types import FloatArray

PARAMETERS = ('m', 'mx', 'my', 'mz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
_ROWS, _COLUMNS = (0, 0, 1, 0, 1, 2), (0, 1, 1, 2, 2, 2)


def skew(vector: ArrayLike) -> FloatArray:
    """Return the (3, 3) matrix S with ``S @ x = cross(vector, x)``."""
    x, y, z = np.asarray(vector, dtype=np.float64)
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def rotation_from_rpy(rpy: ArrayLike) -> FloatArray:
    """Return the rotation (3, 3) of fixed-axis roll, pitch, yaw (3,) [rad], as in URDF."""
    r, p, y = np.asarray(rpy, dtype=np.float64)
    cr, sr, cp, sp, cy, sy = np.cos(r), np.sin(r), np.cos(p), np.sin(p), np.cos(y), np.sin(y)
    return np.array([
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ])


def rpy_from_rotation(rotation: ArrayLike) -> FloatArray:
    """Return roll, pitch, yaw (3,) [rad] of a ``rotation`` (3, 3).

    Roll is computed after undoing yaw, so the result is exact at a pitch of 90 degrees, where only
    the sum or difference of both is defined.
    """
    r = np.asarray(rotation, dtype=np.float64)
    yaw = np.arctan2(r[1, 0], r[0, 0])
    cy, sy = np.cos(yaw), np.sin(yaw)
    pitch = np.arctan2(-r[2, 0], cy * r[0, 0] + sy * r[1, 0])
    roll = np.arctan2(sy * r[0, 2] - cy * r[1, 2], cy * r[1, 1] - sy * r[0, 1])
    return np.array([roll, pitch, yaw])


def rotation_about(axis: ArrayLike, angle: float) -> FloatArray:
    """Return the rotation (3, 3) by ``angle`` [rad] about the unit ``axis`` (3,) (Rodrigues)."""
    s = skew(axis)
    return cast(FloatArray, np.eye(3) + np.sin(angle) * s + (1.0 - np.cos(angle)) * (s @ s))


def symmetric(six: ArrayLike) -> FloatArray:
    """Return the symmetric (3, 3) matrix of ``(xx, xy, yy, xz, yz, zz)``."""
    xx, xy, yy, xz, yz, zz = np.asarray(six, dtype=np.float64)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def parameters_from_com(mass: float, com: ArrayLike, inertia: ArrayLike) -> FloatArray:
    """Return the ten parameters of a body.

    ``mass`` [kg], ``com`` (3,) [m], ``inertia`` (3, 3) about the centre of mass, in the axes of
    the frame [kg m^2].
    """
    s = skew(com)
    about_origin = np.asarray(inertia, dtype=np.float64) - mass * (s @ s)
    moments = about_origin[_ROWS, _COLUMNS]
    return np.concatenate([[mass], mass * np.asarray(com, dtype=np.float64), moments])


def com_from_parameters(parameters: ArrayLike) -> tuple[float, FloatArray, FloatArray]:
    """Return mass, centre of mass (3,) and inertia (3, 3) about it.

    Raises ZeroDivisionError if the mass is zero.
    """
    p = np.asarray(parameters, dtype=np.float64)
    mass = float(p[0])
    if mass == 0.0:
        raise ZeroDivisionError('a body without mass has no centre of mass')
    com = p[1:4] / mass
    s = skew(com)
    return mass, com, symmetric(p[4:10]) + mass * (s @ s)


def pseudo_inertia(parameters: ArrayLike) -> FloatArray:
    """Return the (4, 4) matrix ``[[S, h], [h^T, m]]`` with S = 1/2 tr(I) 1 - I.

    It is positive definite exactly when a body with positive density has these parameters.
    Source: Wensing, Kim, Slotine, RA-L 2018, eq. 10.
    """
    p = np.asarray(parameters, dtype=np.float64)
    inertia = symmetric(p[4:10])
    matrix = np.empty((4, 4))
    matrix[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    matrix[:3, 3] = matrix[3, :3] = p[1:4]
    matrix[3, 3] = p[0]
    return matrix


def parameters_from_pseudo_inertia(matrix: ArrayLike) -> FloatArray:
    """Return the ten parameters of a (4, 4) pseudo-inertia."""
    p = np.asarray(matrix, dtype=np.float64)
    inertia = np.trace(p[:3, :3]) * np.eye(3) - p[:3, :3]
    return np.concatenate([[p[3, 3]], p[:3, 3], inertia[_ROWS, _COLUMNS]])


def homogeneous(rotation: ArrayLike, translation: ArrayLike) -> FloatArray:
    """Return the (4, 4) transform of a rotation (3, 3) and a translation (3,) [m]."""
    matrix = np.eye(4)
    matrix[:3, :3] = rotation
    matrix[:3, 3] = translation
    return matrix


def move_parameters(parameters: ArrayLike, a_from_b: ArrayLike) -> FloatArray:
    """Express the parameters of a body given in frame b in frame a.

    ``a_from_b`` (4, 4); the pseudo-inertia transforms by congruence.
    """
    transform = np.asarray(a_from_b, dtype=np.float64)
    moved = transform @ pseudo_inertia(parameters) @ transform.T
    return parameters_from_pseudo_inertia(moved)


def adjoint(a_from_b: ArrayLike) -> FloatArray:
    """Return the (6, 6) matrix that maps twists (angular, linear) from frame b to frame a."""
    transform = np.asarray(a_from_b, dtype=np.float64)
    r = transform[:3, :3]
    matrix = np.zeros((6, 6))
    matrix[:3, :3] = matrix[3:, 3:] = r
    matrix[3:, :3] = skew(transform[:3, 3]) @ r
    return matrix
