"""Rigid-body dynamics written out per joint in NumPy, from energies: slow, short and independent.

Torque is d/dt (dL/dqd) - dL/dq; with M(q) from Jacobians and its derivatives by complex steps, no
recursion and no spatial acceleration is used.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.robot.inertia import pseudo_inertia, skew
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray

STEP = 1e-30


def poses(robot: RobotModel, q: FloatArray) -> list[FloatArray]:
    """Return the link frames (4, 4) in the base frame; ``q`` may be complex."""
    found: list[FloatArray] = []
    for j in range(robot.n):
        s, local = skew(robot.axes[j]), np.eye(4, dtype=q.dtype)
        rotation = np.eye(3) + np.sin(q[j]) * s + (1.0 - np.cos(q[j])) * (s @ s)
        if robot.types[j] == PRISMATIC:
            local[:3, 3] = robot.axes[j] * q[j]
        else:
            local[:3, :3] = rotation
        home = np.eye(4)
        home[:3, :3], home[:3, 3] = robot.rotations[j], robot.translations[j]
        before = np.eye(4) if robot.parents[j] < 0 else found[robot.parents[j]]
        found.append(before @ home @ local)
    return found


def mass_matrix(robot: RobotModel, q: FloatArray) -> FloatArray:
    """Return M(q) (n, n) = sum of tr(dT/dqi P dT/dqj^T), with pseudo-inertias P."""
    frames = poses(robot, q)
    total = np.zeros((robot.n, robot.n), dtype=q.dtype)
    for j in range(robot.n):
        derivatives = []
        for i in range(robot.n):
            world = np.zeros((4, 4), dtype=q.dtype)
            if robot.carried[i, j]:
                axis = frames[i][:3, :3] @ robot.axes[i]
                if robot.types[i] == PRISMATIC:
                    world[:3, 3] = axis
                else:
                    x, y, z = axis
                    world[:3, :3] = [[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
                    world[:3, 3] = -world[:3, :3] @ frames[i][:3, 3]
            derivatives.append(world @ frames[j])
        inertia = pseudo_inertia(robot.nominal[j])
        for i in range(robot.n):
            for h in range(robot.n):
                total[i, h] += np.trace(derivatives[i] @ inertia @ derivatives[h].T)
    return total


def potential(robot: RobotModel, q: FloatArray) -> FloatArray:
    """Return the potential energy [J]."""
    moments = [f[:3, :3] @ p[1:4] + p[0] * f[:3, 3]
               for f, p in zip(poses(robot, q), robot.nominal, strict=True)]
    return -robot.gravity @ np.sum(moments, axis=0)


def inverse_dynamics(
    robot: RobotModel, q: FloatArray, v: FloatArray, a: FloatArray
) -> FloatArray:
    """Return the effort (n,) of one state by Lagrange's equations."""
    slopes, fall = [], []
    for j in range(robot.n):
        shifted = q.astype(complex)
        shifted[j] += 1j * STEP
        slopes.append(mass_matrix(robot, shifted).imag / STEP)
        fall.append(potential(robot, shifted).imag / STEP)
    rate = np.einsum('kij,k->ij', slopes, v)
    return (mass_matrix(robot, q) @ a + rate @ v
            - 0.5 * np.einsum('kij,i,j->k', slopes, v, v) + np.array(fall))
