"""Compiled recursions for one state at a time; rows of the work arrays as in _kernels.

The tiles of _kernels pay off for many states; one state alone costs a tile as much as all of it.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import (
    ACC,
    AXIS,
    FORCE,
    G_A,
    G_B,
    G_C,
    G_D,
    G_P,
    MC,
    MOMENT,
    POS,
    ROT,
    ROWS,
    SIG,
    VEL,
    compiled,
    inlined,
)


@inlined
def _cross(a, b, out, i):
    """Add a x b to ``out`` from index ``i`` on; both are of three numbers."""
    out[i] += a[1] * b[2] - a[2] * b[1]
    out[i + 1] += a[2] * b[0] - a[0] * b[2]
    out[i + 2] += a[0] * b[1] - a[1] * b[0]


@inlined
def _pose_of(parent, own, g, q, local):
    """Fill ROT, POS and AXIS of a link; ``local`` (12,) receives its pose in the parent."""
    sine, cosine = np.sin(q), np.cos(q)
    for i in range(9):
        local[i] = g[G_A + i] + g[G_B + i] * cosine + g[G_C + i] * sine
    for i in range(3):
        local[9 + i] = g[G_P + i] + g[G_D + i] * q
    for row in range(3):
        a, b, c = parent[3 * row], parent[3 * row + 1], parent[3 * row + 2]
        for i in range(3):
            own[3 * row + i] = a * local[i] + b * local[3 + i] + c * local[6 + i]
        own[POS + row] = parent[POS + row] + a * local[9] + b * local[10] + c * local[11]
        a, b, c = own[3 * row], own[3 * row + 1], own[3 * row + 2]
        own[AXIS + row] = a * g[33] + b * g[34] + c * g[35]
        own[AXIS + 3 + row] = a * g[36] + b * g[37] + c * g[38]
    _cross(own[POS:], own[AXIS:], own, AXIS + 3)


@inlined
def _motion_of(parent, own, qd, qdd):
    """Fill VEL and ACC of a link, gravity included."""
    for i in range(6):
        own[VEL + i] = parent[VEL + i] + own[AXIS + i] * qd
        own[ACC + i] = 0.0
    _turned_axis(parent, own, own[ACC:])
    for i in range(6):
        own[ACC + i] = parent[ACC + i] + own[AXIS + i] * qdd + own[ACC + i] * qd


@inlined
def _turned_axis(parent, own, out):
    """Add the motion cross product of the parent's twist and AXIS to ``out`` (6,)."""
    _cross(parent[VEL:], own[AXIS:], out, 0)
    _cross(parent[VEL:], own[AXIS + 3:], out, 3)
    _cross(parent[VEL + 3:], own[AXIS:], out, 3)


@inlined
def place(tree, q, qd, qdd, work):
    """Fill pose and motion of all links in ``work`` (n + 1, ROWS), which was zero once."""
    geometry, parents, gravity = tree
    local = np.empty(12)
    base = work[0]
    for i in range(3):
        base[ROT + 4 * i] = 1.0
        base[ACC + 3 + i] = -gravity[i]
    for j in range(parents.shape[0]):
        own, parent = work[j + 1], work[parents[j] + 1]
        _pose_of(parent, own, geometry[j], q[j], local)
        _motion_of(parent, own, qd[j], qdd[j])


@inlined
def _inertia_of(own, p, turned):
    """Fill MC and SIG of a link about the base origin; ``turned`` (9,) is room to work."""
    half = 0.5 * (p[4] + p[6] + p[9])
    sxx, syy, szz, sxy, sxz, syz = half - p[4], half - p[6], half - p[9], -p[5], -p[7], -p[8]
    for i in range(3):
        x, y, z = own[3 * i], own[3 * i + 1], own[3 * i + 2]
        own[MC + i] = x * p[1] + y * p[2] + z * p[3]
        turned[3 * i] = x * sxx + y * sxy + z * sxz
        turned[3 * i + 1] = x * sxy + y * syy + z * syz
        turned[3 * i + 2] = x * sxz + y * syz + z * szz
    row = SIG
    for i in range(3):
        for j in range(i + 1):
            central = 0.0
            for k in range(3):
                central += own[3 * j + k] * turned[3 * i + k]
            pi, pj = own[POS + i], own[POS + j]
            own[row] = central + own[MC + i] * pj + (own[MC + j] + p[0] * pj) * pi
            row += 1
    for i in range(3):
        own[MC + i] += p[0] * own[POS + i]


@inlined
def _wrench_of(own, motion, mass, out):
    """Fill ``out`` (linear, angular) with inertia times the motion of six rows."""
    w, v = own[motion:], own[motion + 3:]
    xx, xy, yy = own[SIG], own[SIG + 1], own[SIG + 2]
    xz, yz, zz = own[SIG + 3], own[SIG + 4], own[SIG + 5]
    out[0], out[1], out[2] = mass * v[0], mass * v[1], mass * v[2]
    out[3] = (yy + zz) * w[0] - xy * w[1] - xz * w[2]
    out[4] = (xx + zz) * w[1] - xy * w[0] - yz * w[2]
    out[5] = (xx + yy) * w[2] - xz * w[0] - yz * w[1]
    _cross(w, own[MC:], out, 0)
    _cross(own[MC:], v, out, 3)


@inlined
def _power(axis, wrench):
    """Return the power of a wrench (linear, angular) along a screw."""
    linear = axis[3] * wrench[0] + axis[4] * wrench[1] + axis[5] * wrench[2]
    return linear + axis[0] * wrench[3] + axis[1] * wrench[4] + axis[2] * wrench[5]


@inlined
def effort_of(parents, parameters, work, out):
    """Fill ``out`` (n,) with the effort of the state that was placed."""
    n = parents.shape[0]
    room, momentum = np.empty(9), np.empty(6)
    for j in range(n):
        own = work[j + 1]
        _inertia_of(own, parameters[j], room)
        _wrench_of(own, VEL, parameters[j, 0], momentum)
        _wrench_of(own, ACC, parameters[j, 0], own[FORCE:])
        _cross(own[VEL:], momentum, own, FORCE)
        _cross(own[VEL:], momentum[3:], own, MOMENT)
        _cross(own[VEL + 3:], momentum, own, MOMENT)
    for j in range(n - 1, -1, -1):
        own, parent = work[j + 1], work[parents[j] + 1]
        out[j] = _power(own[AXIS:], own[FORCE:])
        if parents[j] >= 0:
            for i in range(FORCE, FORCE + 6):
                parent[i] += own[i]


@inlined
def momentum_of(tree, parameters, work, out, rate):
    """Fill ``out`` and ``rate`` (n,) with M(q) qd and dL/dq of the state that was placed.

    With the momentum H_i of all links beyond joint i, moving that joint turns them past the twist
    v of its parent, so dT/dq_i = H_i . (v x s_i); the weight adds its power along the screw s_i.
    """
    _, parents, gravity = tree
    n = parents.shape[0]
    room, axis, weight, mass = np.empty(9), np.empty(6), np.empty(6), parameters[:, 0].copy()
    for j in range(n):
        _inertia_of(work[j + 1], parameters[j], room)
        _wrench_of(work[j + 1], VEL, mass[j], work[j + 1, FORCE:])
    for j in range(n - 1, -1, -1):
        own, parent = work[j + 1], work[parents[j] + 1]
        out[j] = _power(own[AXIS:], own[FORCE:])
        axis[:] = 0.0
        _turned_axis(parent, own, axis)
        weight[3:] = 0.0
        for i in range(3):
            weight[i] = mass[j] * gravity[i]
        _cross(own[MC:], gravity, weight, 3)
        rate[j] = _power(axis, own[FORCE:]) + _power(own[AXIS:], weight)
        if parents[j] >= 0:
            mass[parents[j]] += mass[j]
            for i in range(3):
                parent[MC + i] += own[MC + i]
            for i in range(FORCE, FORCE + 6):
                parent[i] += own[i]


@inlined
def _mounted(own, axis, line):
    """Fill ``line`` (3,) with a vector of the link in base coordinates."""
    for i in range(3):
        line[i] = own[3 * i] * axis[0] + own[3 * i + 1] * axis[1] + own[3 * i + 2] * axis[2]


@inlined
def _dot(a, b):
    """Return a . b of three numbers."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@inlined
def add_rotor_effort(parents, rotors, motion, work, out):
    """Add to ``out`` (n,) the effort of rotors, see _rotor_kernel; ``motion`` are qd, qdd (n,)."""
    inertia, carriers, axes, motions = rotors
    qd, qdd = motion
    line, drag = np.empty(3), np.empty(3)
    for j in range(out.shape[0]):
        for i in range(out.shape[0]):
            out[j] += inertia[j, i] * qdd[i]
    for r in range(carriers.shape[0]):
        own, spin, rate = work[carriers[r] + 1], 0.0, 0.0
        _mounted(own, axes[r], line)
        back = _dot(line, own[ACC:])
        for j in range(out.shape[0]):
            spin += motions[r, j] * qd[j]
            rate += motions[r, j] * qdd[j]
            out[j] += motions[r, j] * back
        drag[:] = 0.0
        _cross(own[VEL:], line, drag, 0)
        for i in range(3):
            drag[i] = spin * drag[i] + rate * line[i]
        j = carriers[r]
        while j >= 0:
            out[j] += _dot(work[j + 1, AXIS:], drag)
            j = parents[j]


@inlined
def add_rotor_momentum(parents, rotors, qd, work, results):
    """Add what rotors have to M(q) qd and dL/dq, each (n,), of the state that was placed.

    As `momentum_of`, with the momentum that the spin of a rotor gives to its link.
    """
    inertia, carriers, axes, motions = rotors
    out, rate = results
    line, turned = np.empty(3), np.empty(3)
    for j in range(out.shape[0]):
        for i in range(out.shape[0]):
            out[j] += inertia[j, i] * qd[i]
    for r in range(carriers.shape[0]):
        own, spin = work[carriers[r] + 1], 0.0
        _mounted(own, axes[r], line)
        turn = _dot(line, own[VEL:])
        for j in range(out.shape[0]):
            spin += motions[r, j] * qd[j]
            out[j] += motions[r, j] * turn
        j = carriers[r]
        while j >= 0:
            turned[:] = 0.0
            _cross(work[parents[j] + 1, VEL:], work[j + 1, AXIS:], turned, 0)
            out[j] += spin * _dot(work[j + 1, AXIS:], line)
            rate[j] += spin * _dot(turned, line)
            j = parents[j]


@compiled
def momentum(tree, links, inputs, results):
    """Fill ``results`` with M(q) qd and dL/dq, each (N, n); ``inputs`` are q, qd (N, n).

    ``links`` are their parameters (n, 10) and rotors.
    """
    (q, qd), (out, rate), (parameters, rotors) = inputs, results, links
    n = q.shape[1]
    work, still = np.zeros((n + 1, ROWS)), np.zeros(n)
    for k in range(q.shape[0]):
        place(tree, q[k], qd[k], still, work)
        momentum_of(tree, parameters, work, out[k], rate[k])
        add_rotor_momentum(tree[1], rotors, qd[k], work, (out[k], rate[k]))
