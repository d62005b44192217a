"""Friction of states that slide steadily, one tile at a time, also under the load of their motion.

Friction of the axes, which move at A v, is rest + grows |p|. The load p = T (M qdd + h) is what
the axes transmit of the effort of links with inertia M and bias h. It is linear in the
acceleration, friction therefore piecewise linear: with the accelerations a0 without `grows`, and X
those under a unit of torque on each axis,

    p + N |p| = T (M a0 + h),    N = T M X diag(grows).

It is the solution of a linear system once the signs of p are known. All wrong signs change at
once, while their number falls; else the first of them alone, which ends wherever every right side
has one solution: det(I + N S) > 0 for all signs S, as where friction takes a part of the load.
Source: block principal pivoting, Judice, Pires, Computers & Operations Research 1994, 21; Murty,
Linear Algebra and its Applications 1974, 9.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.friction import (
    ABOVE,
    FADE,
    HIGHEST,
    KIND,
    LOAD,
    LOWEST,
    RAMP,
    ROW,
    SCALE,
    SIDE,
    WEIGHT,
    tangent,
)
from robot_dynid.kernels.newton_euler import LANES, inlined

#: changes of signs at most, one at a time after the first ones; share of the greatest load by
#: which one may be on the other side of zero than its sign
MOST_CHANGES, ROUNDING = 200, 1e-13
#: least pivot of I + N without exchange of rows
LEAST_PIVOT = 0.1


@inlined
def _along(axis, motion, out):
    """Fill ``out`` with the motion of one axis."""
    for k in range(LANES):
        out[k] = 0.0
    for j in range(motion.shape[0]):
        share = axis[j]
        if share != 0.0:
            for k in range(LANES):
                out[k] += share * motion[j, k]


@inlined
def _is_ramp(term):
    return (term[KIND] == RAMP and term[SIDE] == 0.0 and term[FADE] == 0.0
            and term[ABOVE] == 0.0)


@inlined
def _fill_term(term, speed, out):
    """Fill ``out`` with a term of weight one at the speeds of its axis."""
    if _is_ramp(term):
        width, low, high = term[SCALE], term[LOWEST], term[HIGHEST]
        for k in range(LANES):
            edge = min(max(speed[k], low), high)
            side = 1.0 if edge >= width else (-1.0 if edge <= -width else 0.0)
            out[k] = side + (1.0 - abs(side)) / width * speed[k]
    else:
        for k in range(LANES):
            out[k] = tangent(term, speed[k])[0]


@inlined
def _sliding_parts(friction, v, row, rest, grows):
    """Fill ``rest`` and ``grows`` (a, LANES) of axes that move with ``v``."""
    axes, straight, terms = friction[:3]
    speed, shape = row
    e = 0
    for i in range(axes.shape[0]):
        _along(axes[i], v, speed)
        viscous, offset = straight[i, 0], straight[i, 1]
        for k in range(LANES):
            rest[i, k] = viscous * speed[k] + offset
            grows[i, k] = 0.0
        while e < terms.shape[0] and terms[e, ROW] == i:
            weight, load = terms[e, WEIGHT], terms[e, LOAD]
            _fill_term(terms[e], speed, shape)
            for k in range(LANES):
                rest[i, k] += weight * shape[k]
            if load != 0.0:
                for k in range(LANES):
                    grows[i, k] += load * shape[k]
            e += 1


@inlined
def _add_torque(axes, torque, out):
    """Add torques (a, LANES) of axes to ``out`` (N, LANES)."""
    for i in range(axes.shape[0]):
        for j in range(axes.shape[1]):
            share = axes[i, j]
            if share != 0.0:
                for k in range(LANES):
                    out[j, k] += share * torque[i, k]


@inlined
def _sign_of(load):
    return -1.0 if load < 0.0 else 1.0


@inlined
def _eliminate_as_it_is(matrix, p, settled):
    """Bring ``matrix`` (m, m, LANES) p = p to a triangle; 0 in ``settled`` at small pivots."""
    for i in range(p.shape[0]):
        for j in range(i):
            for k in range(LANES):
                matrix[i, j, k] = matrix[i, j, k] / matrix[j, j, k]
                p[i, k] -= matrix[i, j, k] * p[j, k]
            for h in range(j + 1, p.shape[0]):
                for k in range(LANES):
                    matrix[i, h, k] -= matrix[i, j, k] * matrix[j, h, k]
        for k in range(LANES):
            settled[k] = settled[k] if matrix[i, i, k] > LEAST_PIVOT else 0.0


@inlined
def _substitute_back(matrix, p):
    """Finish what `_eliminate_as_it_is` began."""
    for i in range(p.shape[0] - 1, -1, -1):
        for j in range(i + 1, p.shape[0]):
            for k in range(LANES):
                p[i, k] -= matrix[i, j, k] * p[j, k]
        for k in range(LANES):
            p[i, k] = p[i, k] / matrix[i, i, k]


@inlined
def _first_loads(shares, p, scratch, settled):
    """Solve p + N |p| = p0 in place with the signs of p0, which is kept in ``scratch``."""
    matrix, given = scratch
    for k in range(LANES):
        settled[k] = 1.0
    for i in range(p.shape[0]):
        for k in range(LANES):
            given[i, k] = p[i, k]
        for j in range(p.shape[0]):
            one = 1.0 if i == j else 0.0
            for k in range(LANES):
                matrix[i, j, k] = one + shares[i, j, k] * _sign_of(p[j, k])
    _eliminate_as_it_is(matrix, p, settled)
    _substitute_back(matrix, p)
    for i in range(p.shape[0]):
        for k in range(LANES):
            settled[k] = settled[k] if p[i, k] * _sign_of(given[i, k]) >= 0.0 else 0.0


@inlined
def _solve_with_exchange(matrix, p):
    """Solve ``matrix`` (m, m) p = p in place, rows exchanged for the greatest pivots."""
    count = p.shape[0]
    for j in range(count):
        best = j
        for i in range(j + 1, count):
            if abs(matrix[i, j]) > abs(matrix[best, j]):
                best = i
        for h in range(count):
            matrix[j, h], matrix[best, h] = matrix[best, h], matrix[j, h]
        p[j], p[best] = p[best], p[j]
        for i in range(j + 1, count):
            share = matrix[i, j] / matrix[j, j]
            for h in range(j, count):
                matrix[i, h] -= share * matrix[j, h]
            p[i] -= share * p[j]
    for i in range(count - 1, -1, -1):
        for h in range(i + 1, count):
            p[i] -= matrix[i, h] * p[h]
        p[i] = p[i] / matrix[i, i]


@inlined
def settle(shares, given, k, scratch, p):
    """Solve p + N |p| = ``given`` of one lane for ``p`` (m,); return 1 where the signs settled."""
    matrix, sign = scratch
    count, most = p.shape[0], 0.0
    fewest = count + 1
    for i in range(count):
        sign[i] = _sign_of(given[i, k])
        most += abs(given[i, k])
    for _ in range(MOST_CHANGES if np.isfinite(most) else 0):
        for i in range(count):
            p[i] = given[i, k]
            for j in range(count):
                matrix[i, j] = (1.0 if i == j else 0.0) + shares[i, j, k] * sign[j]
        _solve_with_exchange(matrix, p)
        wrong, first = 0, -1
        for i in range(count):
            if not sign[i] * p[i] >= -ROUNDING * most:
                wrong += 1
                first = i if first < 0 else first
        if wrong == 0:
            return 1.0
        for i in range(count):
            turned = not sign[i] * p[i] >= -ROUNDING * most and (wrong < fewest or i == first)
            sign[i] = -sign[i] if turned else sign[i]
        fewest = min(fewest, wrong)
    return 0.0


@inlined
def _settled_loads(shares, used, p, scratch, settled):
    """Solve p + N |p| = p0 in place of p0 ``p`` (m, LANES), N = ``shares`` (m, m, LANES).

    ``settled`` (LANES,) receives 1 where there is a solution, else 0.
    """
    matrix, given, other, sign, own = scratch
    _first_loads(shares, p, (matrix, given), settled)
    for k in range(used):
        if settled[k] == 0.0:
            settled[k] = settle(shares, given, k, (other, sign), own)
            for i in range(own.shape[0]):
                p[i, k] = own[i]
