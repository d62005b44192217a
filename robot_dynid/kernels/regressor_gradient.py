"""Compiled reverse mode of the regressor: gradients of weighted sums of its entries in the motion.

F = sum_ip G_ip Y_ip is a sum over pairs of a joint i and a body j that it carries: the power of
the wrench of a body with the parameters G_ij, which moves like body j, along the screw of joint i.
Backwards, gradients in velocity and acceleration of a body are wrenches; about the base origin
they add up from the last links to the first without transforms, like forces. With the screw S_k,
velocity V_k and acceleration A_k of a body, its gradients v, a (a wrench each, of all it carries):

    v += qd_k S_k x* a,  F_qdd = S_k . a,  F_qd = S_k . v + (V_k x S_k) . a,
    F_q = (V_k x S_k) . v + ((A_k - qd_k V_k x S_k) x S_k) . a + S_k . t

where t are the wrenches turned by the screws before k that they act along.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import (
    ACC,
    AXIS,
    INPUT,
    LANES,
    POS,
    ROWS,
    VEL,
    _base,
    _forward_pass,
    compiled,
    inlined,
)
from robot_dynid.kernels.regressor import (
    ALPHA,
    LINK_ROWS,
    OMEGA,
    ORIGIN,
    _link_motion,
    _screw_in_link,
)

#: gradients in the link frame: of the origin's acceleration, of w, of al
G_ORIGIN, G_OMEGA, G_ALPHA, G_ROWS = 0, 3, 6, 9
#: wrenches (moment, force) of a body: gradients in velocity, in acceleration, turned wrenches
BAR_VEL, BAR_ACC, BAR_TURN, BAR_ROWS = 0, 6, 12, 18


@inlined
def _mass_pair(screw, link, body, grad, wrench):
    """Gradients and wrench (moment, force) of mass and first moments ``body`` rows 0 to 3."""
    for k in range(LANES):
        x, y, z = screw[0, k], screw[1, k], screw[2, k]
        u, v, w = screw[3, k], screw[4, k], screw[5, k]
        m, a, b, c = body[0, k], body[1, k], body[2, k], body[3, k]
        p, q, r = link[OMEGA, k], link[OMEGA + 1, k], link[OMEGA + 2, k]
        ox, oy, oz = link[ORIGIN, k], link[ORIGIN + 1, k], link[ORIGIN + 2, k]
        grad[G_ORIGIN, k] += m * u + y * c - z * b
        grad[G_ORIGIN + 1, k] += m * v + z * a - x * c
        grad[G_ORIGIN + 2, k] += m * w + x * b - y * a
        grad[G_ALPHA, k] += b * w - c * v
        grad[G_ALPHA + 1, k] += c * u - a * w
        grad[G_ALPHA + 2, k] += a * v - b * u
        along, over = p * a + q * b + r * c, p * u + q * v + r * w
        twice = 2.0 * (u * a + v * b + w * c)
        grad[G_OMEGA, k] += u * along + a * over - twice * p
        grad[G_OMEGA + 1, k] += v * along + b * over - twice * q
        grad[G_OMEGA + 2, k] += w * along + c * over - twice * r
        wrench[0, k] = b * oz - c * oy
        wrench[1, k] = c * ox - a * oz
        wrench[2, k] = a * oy - b * ox
        wrench[3, k] = m * ox + link[3, k] * a + link[4, k] * b + link[5, k] * c
        wrench[4, k] = m * oy + link[6, k] * a + link[7, k] * b + link[8, k] * c
        wrench[5, k] = m * oz + link[9, k] * a + link[10, k] * b + link[11, k] * c


@inlined
def _inertia_pair(screw, link, body, grad, wrench):
    """Add those of the inertias xx xy yy xz yz zz, ``body`` rows 4 to 9."""
    for k in range(LANES):
        x, y, z = screw[0, k], screw[1, k], screw[2, k]
        xx, xy, yy = body[4, k], body[5, k], body[6, k]
        xz, yz, zz = body[7, k], body[8, k], body[9, k]
        p, q, r = link[OMEGA, k], link[OMEGA + 1, k], link[OMEGA + 2, k]
        a, b, c = link[ALPHA, k], link[ALPHA + 1, k], link[ALPHA + 2, k]
        hx, hy, hz = xx * p + xy * q + xz * r, xy * p + yy * q + yz * r, xz * p + yz * q + zz * r
        wrench[0, k] += xx * a + xy * b + xz * c + q * hz - r * hy
        wrench[1, k] += xy * a + yy * b + yz * c + r * hx - p * hz
        wrench[2, k] += xz * a + yz * b + zz * c + p * hy - q * hx
        grad[G_ALPHA, k] += xx * x + xy * y + xz * z
        grad[G_ALPHA + 1, k] += xy * x + yy * y + yz * z
        grad[G_ALPHA + 2, k] += xz * x + yz * y + zz * z
        e, f, g = y * r - z * q, z * p - x * r, x * q - y * p
        grad[G_OMEGA, k] += xx * e + xy * f + xz * g + hy * z - hz * y
        grad[G_OMEGA + 1, k] += xy * e + yy * f + yz * g + hz * x - hx * z
        grad[G_OMEGA + 2, k] += xz * e + yz * f + zz * g + hx * y - hy * x


@inlined
def _about_base(work, wrench):
    """Express a wrench (moment, force) of the link frame in the base frame, in place."""
    for k in range(LANES):
        a, b, c = wrench[0, k], wrench[1, k], wrench[2, k]
        u, v, w = wrench[3, k], wrench[4, k], wrench[5, k]
        px, py, pz = work[POS, k], work[POS + 1, k], work[POS + 2, k]
        fx = work[0, k] * u + work[1, k] * v + work[2, k] * w
        fy = work[3, k] * u + work[4, k] * v + work[5, k] * w
        fz = work[6, k] * u + work[7, k] * v + work[8, k] * w
        wrench[0, k] = work[0, k] * a + work[1, k] * b + work[2, k] * c + py * fz - pz * fy
        wrench[1, k] = work[3, k] * a + work[4, k] * b + work[5, k] * c + pz * fx - px * fz
        wrench[2, k] = work[6, k] * a + work[7, k] * b + work[8, k] * c + px * fy - py * fx
        wrench[3, k], wrench[4, k], wrench[5, k] = fx, fy, fz


@inlined
def _turned(screw, wrench, own, other):
    """Add the wrench turned against a screw to the rows of one body, take it from another's."""
    for k in range(LANES):
        x, y, z = screw[0, k], screw[1, k], screw[2, k]
        u, v, w = screw[3, k], screw[4, k], screw[5, k]
        a, b, c = wrench[0, k], wrench[1, k], wrench[2, k]
        f, g, h = wrench[3, k], wrench[4, k], wrench[5, k]
        t0, t1 = y * c - z * b + v * h - w * g, z * a - x * c + w * f - u * h
        t2 = x * b - y * a + u * g - v * f
        t3, t4, t5 = y * h - z * g, z * f - x * h, x * g - y * f
        own[0, k] -= t0
        own[1, k] -= t1
        own[2, k] -= t2
        own[3, k] -= t3
        own[4, k] -= t4
        own[5, k] -= t5
        other[0, k] += t0
        other[1, k] += t1
        other[2, k] += t2
        other[3, k] += t3
        other[4, k] += t4
        other[5, k] += t5


@inlined
def _body_gradients(work, link, grad, wrench, bar):
    """Add the gradients in velocity and acceleration of a body, as wrenches in the base frame."""
    for k in range(LANES):  # o = acceleration + w x velocity of the origin
        wx, wy, wz = work[VEL, k], work[VEL + 1, k], work[VEL + 2, k]
        px, py, pz = work[POS, k], work[POS + 1, k], work[POS + 2, k]
        vx = work[VEL + 3, k] + wy * pz - wz * py
        vy = work[VEL + 4, k] + wz * px - wx * pz
        vz = work[VEL + 5, k] + wx * py - wy * px
        u = work[0, k] * vx + work[3, k] * vy + work[6, k] * vz
        v = work[1, k] * vx + work[4, k] * vy + work[7, k] * vz
        w = work[2, k] * vx + work[5, k] * vy + work[8, k] * vz
        x, y, z = grad[G_ORIGIN, k], grad[G_ORIGIN + 1, k], grad[G_ORIGIN + 2, k]
        p, q, r = link[OMEGA, k], link[OMEGA + 1, k], link[OMEGA + 2, k]
        wrench[0, k] = grad[G_OMEGA, k] + v * z - w * y
        wrench[1, k] = grad[G_OMEGA + 1, k] + w * x - u * z
        wrench[2, k] = grad[G_OMEGA + 2, k] + u * y - v * x
        wrench[3, k], wrench[4, k], wrench[5, k] = y * r - z * q, z * p - x * r, x * q - y * p
    _about_base(work, wrench)
    for row in range(6):
        for k in range(LANES):
            bar[BAR_VEL + row, k] += wrench[row, k]
    for row in range(3):
        for k in range(LANES):
            wrench[row, k] = grad[G_ALPHA + row, k]
            wrench[3 + row, k] = grad[G_ORIGIN + row, k]
    _about_base(work, wrench)
    for row in range(6):
        for k in range(LANES):
            bar[BAR_ACC + row, k] += wrench[row, k]


@inlined
def _joint_gradients(work, bar, out):
    """Fill the three rows of ``out``: gradients in q, qd, qdd; complete the one in velocity."""
    for k in range(LANES):
        qd = work[INPUT + 1, k]
        x, y, z = work[AXIS, k], work[AXIS + 1, k], work[AXIS + 2, k]
        u, v, w = work[AXIS + 3, k], work[AXIS + 4, k], work[AXIS + 5, k]
        a0, a1, a2 = bar[BAR_ACC, k], bar[BAR_ACC + 1, k], bar[BAR_ACC + 2, k]
        a3, a4, a5 = bar[BAR_ACC + 3, k], bar[BAR_ACC + 4, k], bar[BAR_ACC + 5, k]
        bar[BAR_VEL, k] += qd * (y * a2 - z * a1 + v * a5 - w * a4)
        bar[BAR_VEL + 1, k] += qd * (z * a0 - x * a2 + w * a3 - u * a5)
        bar[BAR_VEL + 2, k] += qd * (x * a1 - y * a0 + u * a4 - v * a3)
        bar[BAR_VEL + 3, k] += qd * (y * a5 - z * a4)
        bar[BAR_VEL + 4, k] += qd * (z * a3 - x * a5)
        bar[BAR_VEL + 5, k] += qd * (x * a4 - y * a3)
        p, q, r = work[VEL, k], work[VEL + 1, k], work[VEL + 2, k]
        d, e, f = work[VEL + 3, k], work[VEL + 4, k], work[VEL + 5, k]
        c0, c1, c2 = q * z - r * y, r * x - p * z, p * y - q * x
        c3 = q * w - r * v + e * z - f * y
        c4 = r * u - p * w + f * x - d * z
        c5 = p * v - q * u + d * y - e * x
        p, q, r = work[ACC, k] - qd * c0, work[ACC + 1, k] - qd * c1, work[ACC + 2, k] - qd * c2
        d, e = work[ACC + 3, k] - qd * c3, work[ACC + 4, k] - qd * c4
        f = work[ACC + 5, k] - qd * c5
        along = (q * z - r * y) * a0 + (r * x - p * z) * a1 + (p * y - q * x) * a2
        along += (q * w - r * v + e * z - f * y) * a3
        along += (r * u - p * w + f * x - d * z) * a4
        along += (p * v - q * u + d * y - e * x) * a5
        b0, b1, b2 = bar[BAR_VEL, k], bar[BAR_VEL + 1, k], bar[BAR_VEL + 2, k]
        b3, b4, b5 = bar[BAR_VEL + 3, k], bar[BAR_VEL + 4, k], bar[BAR_VEL + 5, k]
        along += c0 * b0 + c1 * b1 + c2 * b2 + c3 * b3 + c4 * b4 + c5 * b5
        along += x * bar[BAR_TURN, k] + y * bar[BAR_TURN + 1, k] + z * bar[BAR_TURN + 2, k]
        along += u * bar[BAR_TURN + 3, k] + v * bar[BAR_TURN + 4, k] + w * bar[BAR_TURN + 5, k]
        out[0, k] = along
        out[1, k] = x * b0 + y * b1 + z * b2 + u * b3 + v * b4 + w * b5
        out[1, k] += c0 * a0 + c1 * a1 + c2 * a2 + c3 * a3 + c4 * a4 + c5 * a5
        out[2, k] = x * a0 + y * a1 + z * a2 + u * a3 + v * a4 + w * a5


@inlined
def _weighted_body(columns, weights, first, used, body):
    """Fill ``body`` (10, LANES) with the weights of a row that belong to the columns of a body."""
    for parameter in range(10):
        column = columns[parameter]
        for k in range(LANES):
            body[parameter, k] = 0.0
        if column >= 0:
            for k in range(used):
                body[parameter, k] = weights[column, first + k]


@compiled
def rigid_pullback(geometry, parents, gravity, columns, inputs, flow):
    """Add to three arrays (N, n) the gradients of sum(weights * regressor) in q, qd, qdd.

    ``flow`` holds the weights (n, k, N), like the output of `rigid_regressor`, then the three;
    ``columns`` (n, 10) as there.
    """
    n = parents.shape[0]
    weights, in_position, in_velocity, in_acceleration = flow
    work, bars = np.zeros((n + 1, ROWS, LANES)), np.zeros((n + 1, BAR_ROWS, LANES))
    link, screw, body = np.empty((LINK_ROWS, LANES)), np.empty((6, LANES)), np.empty((10, LANES))
    grad, wrench, out = np.empty((G_ROWS, LANES)), np.empty((6, LANES)), np.empty((3, LANES))
    _base(work, gravity)
    for first in range(0, weights.shape[2], LANES):
        used = _forward_pass(work, parents, geometry, inputs, first)
        bars[:] = 0.0
        for j in range(n):
            if columns[j].max() < 0:
                continue
            _link_motion(work[j + 1], link)
            grad[:] = 0.0
            i = j
            while i >= 0:
                _weighted_body(columns[j], weights[i], first, used, body)
                _screw_in_link(work[i + 1, AXIS:], work[j + 1], screw)
                _mass_pair(screw, link, body, grad, wrench)
                _inertia_pair(screw, link, body, grad, wrench)
                _about_base(work[j + 1], wrench)
                _turned(work[i + 1, AXIS:], wrench, bars[j + 1, BAR_TURN:], bars[i + 1, BAR_TURN:])
                i = parents[i]
            _body_gradients(work[j + 1], link, grad, wrench, bars[j + 1])
        for j in range(n - 1, -1, -1):
            _joint_gradients(work[j + 1], bars[j + 1], out)
            parent = bars[parents[j] + 1]
            for row in range(BAR_ROWS):
                for k in range(LANES):
                    parent[row, k] += bars[j + 1, row, k]
            for k in range(used):
                in_position[first + k, j] += out[0, k]
                in_velocity[first + k, j] += out[1, k]
                in_acceleration[first + k, j] += out[2, k]
