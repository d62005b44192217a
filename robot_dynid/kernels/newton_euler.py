"""Recursive Newton-Euler algorithm for tiles of samples, and the passes of the other recursions.

Samples are worked off in tiles of ``LANES``: every quantity of a joint is a row of a work array
with one column per sample of the tile, so the innermost loops run over contiguous memory and
become vector instructions. All motion is expressed about the base origin in base coordinates: the
recursions then need no transforms between links, trees cost the same as chains, and composite
inertias are plain sums (the recursions are those of Featherstone, Rigid Body Dynamics Algorithms,
2008, chapters 5 and 6).

Numba looks at the file that holds a kernel only: after a change here the caches of the kernels in
other files are renewed by ``python -m robot_dynid.warm_up``, as ``make setup`` does.

Second moments ``SIG`` (integral of r r^T dm) stand in for rotational inertias: they transform like
the pseudo-inertia, and ``I x = trace(SIG) x - SIG x``.
"""

from __future__ import annotations

from functools import partial
from types import FunctionType
from typing import Any

import numpy as np

from robot_dynid.kernels import compilation
from robot_dynid.kernels.compilation import Kernel

LANES = compilation.LANES
#: first row of each quantity in the work array of one joint
ROT, POS, AXIS, VEL, ACC, MC, SIG, FORCE, MOMENT = 0, 9, 12, 18, 24, 30, 33, 39, 42
INPUT, TRIG, ROWS = 45, 48, 50
#: first column of the spring of a joint, behind the ten of its link, where it has one
SPRING = 10
#: first column of each constant of a joint: R(q) = A + B cos q + C sin q, p(q) = P + D q
G_A, G_B, G_C, G_P, G_D, G_AXIS = 0, 9, 18, 27, 30, 33

# No reassociation: the range reduction of the sine depends on the order of its subtractions. No
# contraction into fused operations, which is other bits at another width: a state by itself is
# computed as in a tile.
FAST = {'nsz'}
FLAGS = {'nogil': True, 'fastmath': FAST, 'error_model': 'numpy'}
compiled = partial(Kernel, flags=FLAGS, stored=True)
# Inlining lets the compiler see the constant row length of the work arrays, without which most of
# the lane loops stay scalar; constants of a joint are read before the loops for the same reason.
inlined = partial(Kernel, flags=FLAGS | {'forceinline': True}, stored=False)


def at_width(lanes: int, *passes: Any) -> tuple[Any, ...]:
    """Return ``passes`` for tiles of ``lanes`` samples; those of all modules they call follow.

    Numba compiles globals as constants, so a pass of another width is the same code with another
    LANES. A tile of one sample costs a seventh of a full one.
    """
    made: dict[Any, Any] = {}

    def widened(one: Any) -> Any:
        code = getattr(one, 'py_func', one)
        if not isinstance(code, FunctionType) or not code.__module__.startswith(__package__):
            return one
        if code not in made:
            known = code.__globals__
            used = {name: known[name] for name in code.__code__.co_names if name in known}
            other = {name: lanes if name == 'LANES' else widened(own)
                     for name, own in used.items()}
            same = all(other[name] is own for name, own in used.items())
            made[code] = one if same else Kernel(
                FunctionType(code.__code__, {**known, **other}, code.__name__), one.flags, False)
        return made[code]

    return tuple(widened(one) for one in passes)


@inlined
def _sine_cosine(work):
    """Fill the rows TRIG with sine and cosine (Cody-Waite reduction, Cephes polynomials)."""
    for lane in range(LANES):
        x = work[INPUT, lane]
        k = np.floor(x * 0.6366197723675814 + 0.5)
        r = x - k * 1.5707963267341256
        r = r - k * 6.077100506303966e-11
        r = r - k * 2.0222662487959506e-21
        t = r * r
        s = 2.75573136213857245213e-6 + t * (
            -2.50507477628578072866e-8 + t * 1.58962301576546568060e-10)
        s = 8.33333333332211858878e-3 + t * (-1.98412698295895385996e-4 + t * s)
        sine = r + r * t * (-1.66666666666666307295e-1 + t * s)
        c = -2.75573141792967388112e-7 + t * (
            2.08757008419747316778e-9 - t * 1.13585365213876817300e-11)
        c = -1.38888888888730564116e-3 + t * (2.48015872888517045348e-5 + t * c)
        cosine = 1.0 - 0.5 * t + t * t * (4.16666666666665929218e-2 + t * c)
        quadrant = k - 4.0 * np.floor(k * 0.25)
        odd = quadrant == 1.0 or quadrant == 3.0
        a = cosine if odd else sine
        b = sine if odd else cosine
        work[TRIG, lane] = -a if quadrant >= 2.0 else a
        work[TRIG + 1, lane] = -b if (quadrant == 1.0 or quadrant == 2.0) else b


@inlined
def _pose(parent, work, g, local):
    """Fill ROT and POS, the placement of a link in the base frame.

    ``local`` (12, LANES) receives the rotation and the translation in the parent's frame.
    """
    for i in range(9):
        a, b, c = g[G_A + i], g[G_B + i], g[G_C + i]
        for k in range(LANES):
            local[i, k] = a + b * work[TRIG + 1, k] + c * work[TRIG, k]
    for i in range(3):
        a, b = g[G_P + i], g[G_D + i]
        for k in range(LANES):
            local[9 + i, k] = a + b * work[INPUT, k]
    for row in range(3):
        for k in range(LANES):
            a, b, c = parent[3 * row, k], parent[3 * row + 1, k], parent[3 * row + 2, k]
            for i in range(3):
                work[3 * row + i, k] = a * local[i, k] + b * local[3 + i, k] + c * local[6 + i, k]
            moved = a * local[9, k] + b * local[10, k] + c * local[11, k]
            work[POS + row, k] = parent[POS + row, k] + moved


@inlined
def _screw(work, g):
    """Fill AXIS, the joint screw in base coordinates (angular, linear about the base origin)."""
    ax, ay, az, bx, by, bz = g[33], g[34], g[35], g[36], g[37], g[38]
    for row in range(3):
        for k in range(LANES):
            a, b, c = work[3 * row, k], work[3 * row + 1, k], work[3 * row + 2, k]
            work[AXIS + row, k] = a * ax + b * ay + c * az
            work[AXIS + 3 + row, k] = a * bx + b * by + c * bz
    for k in range(LANES):
        x, y, z = work[AXIS, k], work[AXIS + 1, k], work[AXIS + 2, k]
        px, py, pz = work[POS, k], work[POS + 1, k], work[POS + 2, k]
        work[AXIS + 3, k] += py * z - pz * y
        work[AXIS + 4, k] += pz * x - px * z
        work[AXIS + 5, k] += px * y - py * x


@inlined
def _motion(parent, work):
    """Fill VEL and ACC, spatial velocity and acceleration (gravity included) of a link."""
    for k in range(LANES):
        qd, qdd = work[INPUT + 1, k], work[INPUT + 2, k]
        ax, ay, az = work[AXIS, k], work[AXIS + 1, k], work[AXIS + 2, k]
        bx, by, bz = work[AXIS + 3, k], work[AXIS + 4, k], work[AXIS + 5, k]
        wx, wy, wz = parent[VEL, k], parent[VEL + 1, k], parent[VEL + 2, k]
        vx, vy, vz = parent[VEL + 3, k], parent[VEL + 4, k], parent[VEL + 5, k]
        work[VEL, k] = wx + ax * qd
        work[VEL + 1, k] = wy + ay * qd
        work[VEL + 2, k] = wz + az * qd
        work[VEL + 3, k] = vx + bx * qd
        work[VEL + 4, k] = vy + by * qd
        work[VEL + 5, k] = vz + bz * qd
        cx, cy, cz = wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax
        work[ACC, k] = parent[ACC, k] + ax * qdd + cx * qd
        work[ACC + 1, k] = parent[ACC + 1, k] + ay * qdd + cy * qd
        work[ACC + 2, k] = parent[ACC + 2, k] + az * qdd + cz * qd
        cx = wy * bz - wz * by + vy * az - vz * ay
        cy = wz * bx - wx * bz + vz * ax - vx * az
        cz = wx * by - wy * bx + vx * ay - vy * ax
        work[ACC + 3, k] = parent[ACC + 3, k] + bx * qdd + cx * qd
        work[ACC + 4, k] = parent[ACC + 4, k] + by * qdd + cy * qd
        work[ACC + 5, k] = parent[ACC + 5, k] + bz * qdd + cz * qd


@inlined
def _base(work, gravity):
    """Set the motion of the fixed base: at rest, accelerated against gravity."""
    work[0] = 0.0
    for k in range(LANES):
        work[0, ROT, k] = work[0, ROT + 4, k] = work[0, ROT + 8, k] = 1.0
        for row in range(3):
            work[0, ACC + 3 + row, k] = -gravity[row]


@inlined
def _place(parent, own, g, local):
    """Fill pose, screw and motion of a link from its rows INPUT and those of its parent."""
    _sine_cosine(own)
    _pose(parent, own, g, local)
    _screw(own, g)
    _motion(parent, own)


@inlined
def _forward_pass(work, parents, geometry, inputs, first):
    """Pose and motion of all links for the tile of samples that begins at ``first``."""
    q, qd, qdd = inputs
    used = min(LANES, q.shape[0] - first)
    local = np.empty((12, LANES))
    for j in range(parents.shape[0]):
        own, parent = work[j + 1], work[parents[j] + 1]
        for k in range(used):
            own[INPUT, k] = q[first + k, j]
            own[INPUT + 1, k] = qd[first + k, j]
            own[INPUT + 2, k] = qdd[first + k, j]
        _place(parent, own, geometry[j], local)
    return used


@inlined
def _inertia(work, p, turned):
    """Fill MC and SIG: first and second moments of a link about the base origin.

    ``turned`` (9, LANES) receives R times the second moments in the link frame.
    """
    half = 0.5 * (p[4] + p[6] + p[9])
    sxx, syy, szz, sxy, sxz, syz = half - p[4], half - p[6], half - p[9], -p[5], -p[7], -p[8]
    mass, mx, my, mz = p[0], p[1], p[2], p[3]
    for i in range(3):
        for k in range(LANES):
            x, y, z = work[3 * i, k], work[3 * i + 1, k], work[3 * i + 2, k]
            work[MC + i, k] = x * mx + y * my + z * mz
            turned[3 * i, k] = x * sxx + y * sxy + z * sxz
            turned[3 * i + 1, k] = x * sxy + y * syy + z * syz
            turned[3 * i + 2, k] = x * sxz + y * syz + z * szz
    for i in range(3):
        for j in range(i + 1):
            for k in range(LANES):
                a, b = work[3 * j, k] * turned[3 * i, k], work[3 * j + 1, k] * turned[3 * i + 1, k]
                central = a + b + work[3 * j + 2, k] * turned[3 * i + 2, k]
                hi, hj = work[MC + i, k], work[MC + j, k]
                pi, pj = work[POS + i, k], work[POS + j, k]
                work[SIG + i * (i + 1) // 2 + j, k] = central + hi * pj + (hj + mass * pj) * pi
    for i in range(3):
        for k in range(LANES):
            work[MC + i, k] += mass * work[POS + i, k]


@inlined
def _wrench(work, motion, mass, out):
    """Fill the six rows of ``out`` (linear, angular) with inertia times the motion rows."""
    for k in range(LANES):
        wx, wy, wz = work[motion, k], work[motion + 1, k], work[motion + 2, k]
        vx, vy, vz = work[motion + 3, k], work[motion + 4, k], work[motion + 5, k]
        hx, hy, hz = work[MC, k], work[MC + 1, k], work[MC + 2, k]
        xx, xy, yy = work[SIG, k], work[SIG + 1, k], work[SIG + 2, k]
        xz, yz, zz = work[SIG + 3, k], work[SIG + 4, k], work[SIG + 5, k]
        out[0, k] = mass * vx + wy * hz - wz * hy
        out[1, k] = mass * vy + wz * hx - wx * hz
        out[2, k] = mass * vz + wx * hy - wy * hx
        out[3, k] = (yy + zz) * wx - xy * wy - xz * wz + hy * vz - hz * vy
        out[4, k] = (xx + zz) * wy - xy * wx - yz * wz + hz * vx - hx * vz
        out[5, k] = (xx + yy) * wz - xz * wx - yz * wy + hx * vy - hy * vx


@inlined
def _inertial_force(work, mass, momentum):
    """Fill FORCE and MOMENT: rate of change of the momentum of a link, about the base origin."""
    _wrench(work, VEL, mass, momentum)
    _wrench(work, ACC, mass, work[FORCE:])
    for k in range(LANES):
        wx, wy, wz = work[VEL, k], work[VEL + 1, k], work[VEL + 2, k]
        vx, vy, vz = work[VEL + 3, k], work[VEL + 4, k], work[VEL + 5, k]
        lx, ly, lz = momentum[0, k], momentum[1, k], momentum[2, k]
        nx, ny, nz = momentum[3, k], momentum[4, k], momentum[5, k]
        work[FORCE, k] += wy * lz - wz * ly
        work[FORCE + 1, k] += wz * lx - wx * lz
        work[FORCE + 2, k] += wx * ly - wy * lx
        work[MOMENT, k] += wy * nz - wz * ny + vy * lz - vz * ly
        work[MOMENT + 1, k] += wz * nx - wx * nz + vz * lx - vx * lz
        work[MOMENT + 2, k] += wx * ny - wy * nx + vx * ly - vy * lx


@inlined
def _accumulate(parent, work, first, count):
    """Add rows of a link to those of its parent."""
    for row in range(first, first + count):
        for k in range(LANES):
            parent[row, k] += work[row, k]


@inlined
def _project(axis, wrench, out):
    """Fill ``out`` with the power of a wrench (linear, angular) along a screw."""
    for k in range(LANES):
        linear = axis[3, k] * wrench[0, k] + axis[4, k] * wrench[1, k] + axis[5, k] * wrench[2, k]
        angular = axis[0, k] * wrench[3, k] + axis[1, k] * wrench[4, k] + axis[2, k] * wrench[5, k]
        out[k] = linear + angular


@inlined
def _add_spring(own, p, load):
    """Add to ``load`` (LANES,) the torque of the spring at a joint, see `counterbalance`."""
    if p.shape[0] > SPRING:
        sine, cosine, x, y = p[SPRING], p[SPRING + 1], p[SPRING + 2], p[SPRING + 3]
        square = 1.0 + x * x + y * y
        for k in range(LANES):
            s, c = own[TRIG, k], own[TRIG + 1, k]
            load[k] += (sine * s + cosine * c) / np.sqrt(square - 2.0 * (x * c - y * s))


@inlined
def _effort(work, parents, parameters, load):
    """Fill ``load`` (n, LANES) with the effort of the motion that was placed."""
    turned, momentum = np.empty((9, LANES)), np.empty((6, LANES))
    for j in range(parents.shape[0]):
        _inertia(work[j + 1], parameters[j], turned)
        _inertial_force(work[j + 1], parameters[j, 0], momentum)
    for j in range(parents.shape[0] - 1, -1, -1):
        _project(work[j + 1, AXIS:], work[j + 1, FORCE:], load[j])
        _add_spring(work[j + 1], parameters[j], load[j])
        _accumulate(work[parents[j] + 1], work[j + 1], FORCE, 6)


@compiled
def inverse_dynamics(geometry, parents, gravity, parameters, inputs, out):
    """Recursive Newton-Euler: ``out`` (N, n) from ``inputs`` q, qd, qdd and parameters (n, 10).

    Those of springs are behind them, (n, 14), where there are any.
    """
    n = parents.shape[0]
    work, load = np.zeros((n + 1, ROWS, LANES)), np.empty((n, LANES))
    _base(work, gravity)
    for first in range(0, out.shape[0], LANES):
        used = _forward_pass(work, parents, geometry, inputs, first)
        _effort(work, parents, parameters, load)
        for j in range(n):
            for k in range(used):
                out[first + k, j] = load[j, k]
