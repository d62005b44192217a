"""Compiled generalised momentum and its rate without torques; work arrays as in _kernels."""

from __future__ import annotations

import numpy as np

from robot_dynid.model._kernels import (
    AXIS,
    FORCE,
    LANES,
    MC,
    ROWS,
    VEL,
    _accumulate,
    _base,
    _forward_pass,
    _inertia,
    _project,
    _wrench,
    compiled,
    inlined,
)


@inlined
def _turn_rate(parent, work, axis):
    """Fill ``axis`` (6, LANES) with the motion cross product of the parent's twist and AXIS."""
    for k in range(LANES):
        wx, wy, wz = parent[VEL, k], parent[VEL + 1, k], parent[VEL + 2, k]
        vx, vy, vz = parent[VEL + 3, k], parent[VEL + 4, k], parent[VEL + 5, k]
        ax, ay, az = work[AXIS, k], work[AXIS + 1, k], work[AXIS + 2, k]
        bx, by, bz = work[AXIS + 3, k], work[AXIS + 4, k], work[AXIS + 5, k]
        axis[0, k] = wy * az - wz * ay
        axis[1, k] = wz * ax - wx * az
        axis[2, k] = wx * ay - wy * ax
        axis[3, k] = wy * bz - wz * by + vy * az - vz * ay
        axis[4, k] = wz * bx - wx * bz + vz * ax - vx * az
        axis[5, k] = wx * by - wy * bx + vx * ay - vy * ax


@inlined
def _weight(work, mass, gravity, wrench):
    """Fill ``wrench`` (linear, angular) with the weight of a subtree about the base origin."""
    gx, gy, gz = gravity[0], gravity[1], gravity[2]
    for k in range(LANES):
        x, y, z = work[MC, k], work[MC + 1, k], work[MC + 2, k]
        wrench[0, k], wrench[1, k], wrench[2, k] = mass * gx, mass * gy, mass * gz
        wrench[3, k] = y * gz - z * gy
        wrench[4, k] = z * gx - x * gz
        wrench[5, k] = x * gy - y * gx


@compiled
def momentum(geometry, parents, gravity, parameters, inputs, results):
    """Fill ``results`` with M(q) qd and dL/dq, each (N, n); ``inputs`` are q, qd.

    With the momentum H_i of all links beyond joint i, moving that joint turns them past the twist
    v of its parent, so dT/dq_i = H_i . (v x s_i); the weight adds its power along the screw s_i.
    """
    q, qd = inputs
    out, rate = results
    n = parents.shape[0]
    work = np.zeros((n + 1, ROWS, LANES))
    turned, wrench = np.empty((9, LANES)), np.empty((6, LANES))
    axis, row = np.empty((6, LANES)), np.empty(LANES)
    _base(work, gravity)
    for first in range(0, out.shape[0], LANES):
        used = _forward_pass(work, parents, geometry, (q, qd, qd), first)
        mass = parameters[:, 0].copy()
        for j in range(n):
            _inertia(work[j + 1], parameters[j], turned)
            _wrench(work[j + 1], VEL, mass[j], work[j + 1, FORCE:])
        for j in range(n - 1, -1, -1):
            own, parent = work[j + 1], work[parents[j] + 1]
            _project(own[AXIS:], own[FORCE:], row)
            for k in range(used):
                out[first + k, j] = row[k]
            _turn_rate(parent, own, axis)
            _project(axis, own[FORCE:], row)
            for k in range(used):
                rate[first + k, j] = row[k]
            _weight(own, mass[j], gravity, wrench)
            _project(own[AXIS:], wrench, row)
            for k in range(used):
                rate[first + k, j] += row[k]
            if parents[j] >= 0:
                _accumulate(parent, own, MC, 3)
                _accumulate(parent, own, FORCE, 6)
                mass[parents[j]] += mass[j]
