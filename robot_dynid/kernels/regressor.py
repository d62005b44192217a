"""Compiled regressor of the rigid-body torque with respect to the standard parameters."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import (
    ACC,
    AXIS,
    LANES,
    POS,
    ROWS,
    VEL,
    _base,
    _forward_pass,
    compiled,
    inlined,
)

#: rows of the link-frame quantities: acceleration of the origin, D = S(al) + S(w)^2, w, al
ORIGIN, DERIVATIVE, OMEGA, ALPHA, LINK_ROWS = 0, 3, 12, 15, 18


@inlined
def _link_motion(work, link):
    """Fill the link-frame motion: classical acceleration of the origin, D, w and al."""
    for k in range(LANES):
        wx, wy, wz = work[VEL, k], work[VEL + 1, k], work[VEL + 2, k]
        ax, ay, az = work[ACC, k], work[ACC + 1, k], work[ACC + 2, k]
        px, py, pz = work[POS, k], work[POS + 1, k], work[POS + 2, k]
        vx = work[VEL + 3, k] + wy * pz - wz * py
        vy = work[VEL + 4, k] + wz * px - wx * pz
        vz = work[VEL + 5, k] + wx * py - wy * px
        ox = work[ACC + 3, k] + ay * pz - az * py + wy * vz - wz * vy
        oy = work[ACC + 4, k] + az * px - ax * pz + wz * vx - wx * vz
        oz = work[ACC + 5, k] + ax * py - ay * px + wx * vy - wy * vx
        for i in range(3):
            a, b, c = work[i, k], work[3 + i, k], work[6 + i, k]
            link[ORIGIN + i, k] = a * ox + b * oy + c * oz
            link[OMEGA + i, k] = a * wx + b * wy + c * wz
            link[ALPHA + i, k] = a * ax + b * ay + c * az
    for k in range(LANES):
        x, y, z = link[OMEGA, k], link[OMEGA + 1, k], link[OMEGA + 2, k]
        ax, ay, az = link[ALPHA, k], link[ALPHA + 1, k], link[ALPHA + 2, k]
        link[DERIVATIVE, k] = -y * y - z * z
        link[DERIVATIVE + 1, k] = x * y - az
        link[DERIVATIVE + 2, k] = x * z + ay
        link[DERIVATIVE + 3, k] = x * y + az
        link[DERIVATIVE + 4, k] = -x * x - z * z
        link[DERIVATIVE + 5, k] = y * z - ax
        link[DERIVATIVE + 6, k] = x * z - ay
        link[DERIVATIVE + 7, k] = y * z + ax
        link[DERIVATIVE + 8, k] = -x * x - y * y


@inlined
def _screw_in_link(axis, work, screw):
    """Express a joint screw (angular, linear about the base origin) in the frame of a link."""
    for k in range(LANES):
        x, y, z = axis[0, k], axis[1, k], axis[2, k]
        px, py, pz = work[POS, k], work[POS + 1, k], work[POS + 2, k]
        u = axis[3, k] + y * pz - z * py
        v = axis[4, k] + z * px - x * pz
        w = axis[5, k] + x * py - y * px
        for i in range(3):
            a, b, c = work[i, k], work[3 + i, k], work[6 + i, k]
            screw[i, k] = a * x + b * y + c * z
            screw[3 + i, k] = a * u + b * v + c * w


@inlined
def _mass_columns(screw, link, block):
    """Rows 0 to 3 of ``block``: power of the force of unit mass and unit first moments."""
    for k in range(LANES):
        x, y, z = screw[0, k], screw[1, k], screw[2, k]
        u, v, w = screw[3, k], screw[4, k], screw[5, k]
        ox, oy, oz = link[ORIGIN, k], link[ORIGIN + 1, k], link[ORIGIN + 2, k]
        block[0, k] = u * ox + v * oy + w * oz
        block[1, k] = u * link[3, k] + v * link[6, k] + w * link[9, k] + z * oy - y * oz
        block[2, k] = u * link[4, k] + v * link[7, k] + w * link[10, k] + x * oz - z * ox
        block[3, k] = u * link[5, k] + v * link[8, k] + w * link[11, k] + y * ox - x * oy


@inlined
def _inertia_columns(screw, link, block):
    """Rows 4 to 9 of ``block``: power of the moment of the unit inertias xx xy yy xz yz zz."""
    for k in range(LANES):
        x, y, z = screw[0, k], screw[1, k], screw[2, k]
        p, q, r = link[OMEGA, k], link[OMEGA + 1, k], link[OMEGA + 2, k]
        a, b, c = link[ALPHA, k], link[ALPHA + 1, k], link[ALPHA + 2, k]
        pq, pr, qr = p * q, p * r, q * r
        block[4, k] = x * a + y * pr - z * pq
        block[5, k] = x * (b - pr) + y * (a + qr) + z * (p * p - q * q)
        block[6, k] = -x * qr + y * b + z * pq
        block[7, k] = x * (c + pq) + y * (r * r - p * p) + z * (a - qr)
        block[8, k] = x * (q * q - r * r) + y * (c - pq) + z * (b + pr)
        block[9, k] = x * qr - y * pr + z * c


@compiled
def rigid_regressor(geometry, parents, gravity, columns, inputs, out):
    """Fill ``out`` (n, k, N); ``columns`` (n, 10) holds the column of each parameter or -1.

    Entries of joints that do not carry a link are left as they are: pass zeros.
    """
    n = parents.shape[0]
    work = np.zeros((n + 1, ROWS, LANES))
    link, screw = np.empty((LINK_ROWS, LANES)), np.empty((6, LANES))
    block = np.empty((10, LANES))
    _base(work, gravity)
    for first in range(0, out.shape[2], LANES):
        used = _forward_pass(work, parents, geometry, inputs, first)
        for j in range(n):
            _link_motion(work[j + 1], link)
            masses, inertias = columns[j, :4].max() >= 0, columns[j, 4:].max() >= 0
            i = j
            while i >= 0:
                _screw_in_link(work[i + 1, AXIS:], work[j + 1], screw)
                if masses:
                    _mass_columns(screw, link, block)
                if inertias:
                    _inertia_columns(screw, link, block)
                for parameter in range(10):
                    column = columns[j, parameter]
                    if column >= 0:
                        for k in range(used):
                            out[i, column, first + k] = block[parameter, k]
                i = parents[i]
