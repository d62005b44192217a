"""Compiled derivatives of inverse and forward dynamics; work arrays as of `newton_euler`.

In base coordinates, with the screw S_j of a joint, the twist V and acceleration A of its parent,
its rates P_j = V x S_j and Q_j = A x S_j + V x P_j say how what it carries moves on. The wrench
F_i of all that joint i carries has the derivatives

    by q_j:  C_i P_j + I_i Q_j   and for j = i or beyond, S_j x* F_j
    by qd_j: C_i S_j + 2 I_i P_j
    by qdd_j: I_i S_j

with composite inertia I, and C x = sum of m (r x f, f), f = 2 w x v(r), over the particles of the
composite body, which its linear momentum L and the moment N = sum of m v r^T hold. Source: Singh,
Russell, Wensing, IEEE RA-L 2022, 7, 1776-1783; C by particles makes its 36 entries 12 numbers. The
spin of a rotor adds its moment of momentum to N.

Friction and gears are straight lines at a state; load-dependent friction follows the wrench.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.friction import LOAD, ROW, WEIGHT, tangent
from robot_dynid.kernels.newton_euler import (
    ACC,
    AXIS,
    FORCE,
    LANES,
    MC,
    MOMENT,
    ROWS,
    SIG,
    SPRING,
    TRIG,
    VEL,
    _accumulate,
    _base,
    _forward_pass,
    _inertia,
    _inertial_force,
    _project,
    _wrench,
    compiled,
    inlined,
)
from robot_dynid.kernels.rotors import BACK, DRAG, LINE, ROOM, SPIN, _drag, _line, _spin

#: rows of a link after those of `newton_euler`: P and Q of its joint, L, N row by row
FIRST_RATE, SECOND_RATE, LINEAR, SPREAD, LINK_ROWS = (
    ROWS, ROWS + 6, ROWS + 12, ROWS + 15, ROWS + 24)
#: derivatives by position, velocity, acceleration
BY_POSITION, BY_VELOCITY, BY_ACCELERATION = 0, 1, 2
#: rows of the room to work: turned inertia, I S, C^T S, columns by velocity and by position,
#: momentum
TURNED, CARRIED, RETURNED, FASTER, FARTHER, MOMENTUM, SCRATCH = 0, 9, 15, 18, 24, 30, 36


@inlined
def _add_crossed(twist, screw, out):
    """Add the motion cross product of two motions (6, LANES) to ``out``."""
    for k in range(LANES):
        wx, wy, wz = twist[0, k], twist[1, k], twist[2, k]
        vx, vy, vz = twist[3, k], twist[4, k], twist[5, k]
        ax, ay, az = screw[0, k], screw[1, k], screw[2, k]
        bx, by, bz = screw[3, k], screw[4, k], screw[5, k]
        out[0, k] += wy * az - wz * ay
        out[1, k] += wz * ax - wx * az
        out[2, k] += wx * ay - wy * ax
        out[3, k] += wy * bz - wz * by + vy * az - vz * ay
        out[4, k] += wz * bx - wx * bz + vz * ax - vx * az
        out[5, k] += wx * by - wy * bx + vx * ay - vy * ax


@inlined
def _rates(work, parents):
    """Fill both rates of all screws."""
    for j in range(parents.shape[0]):
        own, parent = work[j + 1], work[parents[j] + 1]
        for row in range(12):
            for k in range(LANES):
                own[FIRST_RATE + row, k] = 0.0
        _add_crossed(parent[VEL:], own[AXIS:], own[FIRST_RATE:])
        _add_crossed(parent[ACC:], own[AXIS:], own[SECOND_RATE:])
        _add_crossed(parent[VEL:], own[FIRST_RATE:], own[SECOND_RATE:])


@inlined
def _spread(own, momentum):
    """Fill L and N of a link, whose ``momentum`` (linear first) is given."""
    for row in range(3):
        for k in range(LANES):
            own[LINEAR + row, k] = momentum[row, k]
    for k in range(LANES):
        wx, wy, wz = own[VEL, k], own[VEL + 1, k], own[VEL + 2, k]
        vx, vy, vz = own[VEL + 3, k], own[VEL + 4, k], own[VEL + 5, k]
        hx, hy, hz = own[MC, k], own[MC + 1, k], own[MC + 2, k]
        xx, xy, yy = own[SIG, k], own[SIG + 1, k], own[SIG + 2, k]
        xz, yz, zz = own[SIG + 3, k], own[SIG + 4, k], own[SIG + 5, k]
        own[SPREAD, k] = vx * hx + wy * xz - wz * xy
        own[SPREAD + 1, k] = vx * hy + wy * yz - wz * yy
        own[SPREAD + 2, k] = vx * hz + wy * zz - wz * yz
        own[SPREAD + 3, k] = vy * hx + wz * xx - wx * xz
        own[SPREAD + 4, k] = vy * hy + wz * xy - wx * yz
        own[SPREAD + 5, k] = vy * hz + wz * xz - wx * zz
        own[SPREAD + 6, k] = vz * hx + wx * xy - wy * xx
        own[SPREAD + 7, k] = vz * hy + wx * yy - wy * xy
        own[SPREAD + 8, k] = vz * hz + wx * yz - wy * xz


@inlined
def _links(work, parents, parameters, room):
    """Fill inertia, force, L and N of all links for the motion that was placed."""
    for j in range(parents.shape[0]):
        own = work[j + 1]
        _inertia(own, parameters[j], room[TURNED:])
        _inertial_force(own, parameters[j, 0], room[MOMENTUM:])
        _spread(own, room[MOMENTUM:])


@inlined
def _spinning(own, room):
    """Add to a link what the spin of a rotor gives to its moment and to N."""
    for k in range(LANES):
        half = 0.5 * room[SPIN, k]
        x, y, z = half * room[LINE, k], half * room[LINE + 1, k], half * room[LINE + 2, k]
        own[SPREAD + 1, k] -= z
        own[SPREAD + 2, k] += y
        own[SPREAD + 3, k] += z
        own[SPREAD + 5, k] -= x
        own[SPREAD + 6, k] -= y
        own[SPREAD + 7, k] += x
    for row in range(3):
        for k in range(LANES):
            own[MOMENT + row, k] += room[DRAG + row, k]


@inlined
def _turning(own, room):
    """Fill BACK, three rows, with the velocity of the axis of a rotor."""
    for k in range(LANES):
        x, y, z = room[LINE, k], room[LINE + 1, k], room[LINE + 2, k]
        wx, wy, wz = own[VEL, k], own[VEL + 1, k], own[VEL + 2, k]
        room[BACK, k] = wy * z - wz * y
        room[BACK + 1, k] = wz * x - wx * z
        room[BACK + 2, k] = wx * y - wy * x


@inlined
def _drive_row(own, share, room, rows):
    """Add to ``rows`` (4, LANES) what a joint and the drive of a rotor do to each other."""
    by_position, by_velocity, back, inertia = rows
    for k in range(LANES):
        x, y, z = room[LINE, k], room[LINE + 1, k], room[LINE + 2, k]
        u, v, w = room[BACK, k], room[BACK + 1, k], room[BACK + 2, k]
        turned = own[AXIS, k] * u + own[AXIS + 1, k] * v + own[AXIS + 2, k] * w
        px, py, pz = own[FIRST_RATE, k], own[FIRST_RATE + 1, k], own[FIRST_RATE + 2, k]
        by_position[k] += share * (
            own[SECOND_RATE, k] * x + own[SECOND_RATE + 1, k] * y + own[SECOND_RATE + 2, k] * z
            + px * u + py * v + pz * w)
        by_velocity[k] += share * (turned + 2.0 * (px * x + py * y + pz * z))
        back[k] += share * turned
        inertia[k] += share * (
            own[AXIS, k] * x + own[AXIS + 1, k] * y + own[AXIS + 2, k] * z)


@inlined
def _rotors(work, parents, rotors, motion, room, out):
    """Add rotors to their links, and to ``out`` (3, N, N, LANES) what links and drives share.

    ``motion`` are v and a (N, LANES) of the coordinates. What a rotor turns with comes after the
    joints that carry it: of the inertia the lower triangle is filled.
    """
    _, carriers, axes, motions = rotors
    v, a = motion
    for r in range(carriers.shape[0]):
        own = work[carriers[r] + 1]
        _line(own, axes[r], room)
        _spin(motions[r], v, a, room)
        _drag(own, room)
        _spinning(own, room)
        _turning(own, room)
        j = carriers[r]
        while j >= 0:
            for i in range(motions.shape[1]):
                share = motions[r, i]
                if share != 0.0:
                    _drive_row(work[j + 1], share, room, (
                        out[BY_POSITION, i, j], out[BY_VELOCITY, i, j], out[BY_VELOCITY, j, i],
                        out[BY_ACCELERATION, i, j]))
            j = parents[j]


@inlined
def _returned(own, out):
    """Fill ``out`` (3, LANES) with the angular part of C^T S; its linear part is zero."""
    for k in range(LANES):
        x, y, z = own[AXIS, k], own[AXIS + 1, k], own[AXIS + 2, k]
        u, v, w = own[AXIS + 3, k], own[AXIS + 4, k], own[AXIS + 5, k]
        lx, ly, lz = own[LINEAR, k], own[LINEAR + 1, k], own[LINEAR + 2, k]
        a, b, c = own[SPREAD, k], own[SPREAD + 4, k], own[SPREAD + 8, k]
        out[0, k] = 2.0 * (ly * w - lz * v + (b + c) * x - own[SPREAD + 3, k] * y
                           - own[SPREAD + 6, k] * z)
        out[1, k] = 2.0 * (lz * u - lx * w - own[SPREAD + 1, k] * x + (a + c) * y
                           - own[SPREAD + 7, k] * z)
        out[2, k] = 2.0 * (lx * v - ly * u - own[SPREAD + 2, k] * x - own[SPREAD + 5, k] * y
                           + (a + b) * z)


@inlined
def _add_coupled(own, motion, out):
    """Add C times the motion rows of a link to ``out`` (6, LANES), linear first."""
    for k in range(LANES):
        x, y, z = own[motion, k], own[motion + 1, k], own[motion + 2, k]
        lx, ly, lz = own[LINEAR, k], own[LINEAR + 1, k], own[LINEAR + 2, k]
        a, b, c = own[SPREAD, k], own[SPREAD + 4, k], own[SPREAD + 8, k]
        out[0, k] += 2.0 * (y * lz - z * ly)
        out[1, k] += 2.0 * (z * lx - x * lz)
        out[2, k] += 2.0 * (x * ly - y * lx)
        out[3, k] += 2.0 * ((b + c) * x - own[SPREAD + 1, k] * y - own[SPREAD + 2, k] * z)
        out[4, k] += 2.0 * ((a + c) * y - own[SPREAD + 3, k] * x - own[SPREAD + 5, k] * z)
        out[5, k] += 2.0 * ((a + b) * z - own[SPREAD + 6, k] * x - own[SPREAD + 7, k] * y)


@inlined
def _columns(own, mass, room):
    """Fill CARRIED, RETURNED, FASTER and FARTHER of a composite body."""
    faster, farther = room[FASTER:], room[FARTHER:]
    _wrench(own, AXIS, mass, room[CARRIED:])
    _returned(own, room[RETURNED:])
    _wrench(own, FIRST_RATE, mass, faster)
    for row in range(6):
        for k in range(LANES):
            faster[row, k] *= 2.0
    _add_coupled(own, AXIS, faster)
    _wrench(own, SECOND_RATE, mass, farther)
    _add_coupled(own, FIRST_RATE, farther)
    for k in range(LANES):
        x, y, z = own[AXIS, k], own[AXIS + 1, k], own[AXIS + 2, k]
        u, v, w = own[AXIS + 3, k], own[AXIS + 4, k], own[AXIS + 5, k]
        fx, fy, fz = own[FORCE, k], own[FORCE + 1, k], own[FORCE + 2, k]
        nx, ny, nz = own[MOMENT, k], own[MOMENT + 1, k], own[MOMENT + 2, k]
        farther[0, k] += y * fz - z * fy
        farther[1, k] += z * fx - x * fz
        farther[2, k] += x * fy - y * fx
        farther[3, k] += y * nz - z * ny + v * fz - w * fy
        farther[4, k] += z * nx - x * nz + w * fx - u * fz
        farther[5, k] += x * ny - y * nx + u * fy - v * fx


@inlined
def _add_row(own, room, by_position, by_velocity):
    """Add the derivatives of the effort of a joint by the motion of one that carries it."""
    for k in range(LANES):
        fx, fy, fz = room[CARRIED, k], room[CARRIED + 1, k], room[CARRIED + 2, k]
        nx, ny, nz = room[CARRIED + 3, k], room[CARRIED + 4, k], room[CARRIED + 5, k]
        a, b, c = room[RETURNED, k], room[RETURNED + 1, k], room[RETURNED + 2, k]
        px, py, pz = own[FIRST_RATE, k], own[FIRST_RATE + 1, k], own[FIRST_RATE + 2, k]
        by_position[k] += (
            a * px + b * py + c * pz + nx * own[SECOND_RATE, k] + ny * own[SECOND_RATE + 1, k]
            + nz * own[SECOND_RATE + 2, k] + fx * own[SECOND_RATE + 3, k]
            + fy * own[SECOND_RATE + 4, k] + fz * own[SECOND_RATE + 5, k])
        rate = nx * px + ny * py + nz * pz + fx * own[FIRST_RATE + 3, k]
        rate += fy * own[FIRST_RATE + 4, k] + fz * own[FIRST_RATE + 5, k]
        by_velocity[k] += (
            a * own[AXIS, k] + b * own[AXIS + 1, k] + c * own[AXIS + 2, k] + 2.0 * rate)


@inlined
def _add_column(own, room, into):
    """Add those of the effort of the carrying joint by the motion of what it carries.

    ``into``: rows (LANES,) by position, by velocity, and of the inertia.
    """
    by_position, by_velocity, inertia = into
    for k in range(LANES):
        x, y, z = own[AXIS, k], own[AXIS + 1, k], own[AXIS + 2, k]
        u, v, w = own[AXIS + 3, k], own[AXIS + 4, k], own[AXIS + 5, k]
        by_position[k] += (
            u * room[FARTHER, k] + v * room[FARTHER + 1, k] + w * room[FARTHER + 2, k]
            + x * room[FARTHER + 3, k] + y * room[FARTHER + 4, k] + z * room[FARTHER + 5, k])
        by_velocity[k] += (
            u * room[FASTER, k] + v * room[FASTER + 1, k] + w * room[FASTER + 2, k]
            + x * room[FASTER + 3, k] + y * room[FASTER + 4, k] + z * room[FASTER + 5, k])
        inertia[k] += (
            u * room[CARRIED, k] + v * room[CARRIED + 1, k] + w * room[CARRIED + 2, k]
            + x * room[CARRIED + 3, k] + y * room[CARRIED + 4, k] + z * room[CARRIED + 5, k])


@inlined
def _collect(work, parents, mass, room, out):
    """Add the derivatives of all links to ``out`` (3, N, N, LANES), of the inertia below as above.

    Sums inertia, force, L and N towards the base, so that FORCE and MOMENT are then what each
    joint carries.
    """
    for j in range(parents.shape[0] - 1, -1, -1):
        own = work[j + 1]
        _columns(own, mass[j], room)
        i = j
        while i >= 0:
            _add_column(work[i + 1], room, (
                out[BY_POSITION, i, j], out[BY_VELOCITY, i, j], out[BY_ACCELERATION, j, i]))
            if i != j:
                _add_row(work[i + 1], room, out[BY_POSITION, j, i], out[BY_VELOCITY, j, i])
            i = parents[i]
        if parents[j] >= 0:
            parent = work[parents[j] + 1]
            _accumulate(parent, own, MC, 9)
            _accumulate(parent, own, FORCE, 6)
            _accumulate(parent, own, LINEAR, 12)
            mass[parents[j]] += mass[j]
    for j in range(out.shape[1]):
        for i in range(j):
            for k in range(LANES):
                out[BY_ACCELERATION, i, j, k] = out[BY_ACCELERATION, j, i, k]


@inlined
def _springs(work, parameters, out):
    """Add the slopes of the springs at the joints to ``out`` (N, N, LANES)."""
    if parameters.shape[1] > SPRING:
        for j in range(parameters.shape[0]):
            sine, cosine = parameters[j, SPRING], parameters[j, SPRING + 1]
            x, y = parameters[j, SPRING + 2], parameters[j, SPRING + 3]
            for k in range(LANES):
                s, c = work[j + 1, TRIG, k], work[j + 1, TRIG + 1, k]
                square = 1.0 + x * x + y * y - 2.0 * (x * c - y * s)
                turned = (sine * s + cosine * c) * (x * s + y * c) / square
                out[j, j, k] += (sine * c - cosine * s - turned) / np.sqrt(square)


@inlined
def _efforts(work, effort):
    """Fill ``effort`` (n, LANES) with that of the links whose forces were summed."""
    for j in range(effort.shape[0]):
        _project(work[j + 1, AXIS:], work[j + 1, FORCE:], effort[j])


@inlined
def _slopes(terms, i, speed, load, rows):
    """Fill the slopes (LANES,) of the friction of axis ``i`` by its speed and by its load."""
    by_speed, by_load = rows
    for k in range(LANES):
        by_speed[k] = by_load[k] = 0.0
    for e in range(terms.shape[0]):
        if terms[e, ROW] == i:
            weight, grows = terms[e, WEIGHT], terms[e, LOAD]
            for k in range(LANES):
                value, rise = tangent(terms[e], speed[k])
                by_speed[k] += (weight + grows * abs(load[k])) * rise
                by_load[k] += grows * np.sign(load[k]) * value


@inlined
def _damped(axis, by_speed, out):
    """Add to ``out`` (N, N, LANES) what one axis adds by its speed."""
    for j in range(axis.shape[0]):
        for h in range(axis.shape[0]):
            share = axis[j] * axis[h]
            if share != 0.0:
                for k in range(LANES):
                    out[j, h, k] += share * by_speed[k]


@inlined
def _pressed(axis, transmission, by_load, slopes, out, slope):
    """Add to ``out`` (N, N, LANES) what one axis adds by its load, with ``slopes`` of efforts."""
    for h in range(slopes.shape[1]):
        _sum_rows(transmission, slopes[:, h], slope)
        for j in range(axis.shape[0]):
            share = axis[j]
            if share != 0.0:
                for k in range(LANES):
                    out[j, h, k] += share * by_load[k] * slope[k]


@inlined
def _friction(friction, v, loads, lines, out):
    """Add the friction of all axes at velocity ``v`` (N, LANES) to ``out``."""
    axes, _, terms, transmission, _ = friction
    speed, load, by_speed, by_load, slope = lines[0], lines[1], lines[2], lines[3], lines[4]
    effort, slopes = loads
    for i in range(axes.shape[0]):
        _sum_rows(axes[i], v, speed)
        load[:] = 0.0
        if transmission.shape[0] > 0:
            _sum_rows(transmission[i], effort, load)
        _slopes(terms, i, speed, load, (by_speed, by_load))
        _damped(axes[i], by_speed, out[BY_VELOCITY])
        if transmission.shape[0] > 0:
            for channel in range(3):
                _pressed(axes[i], transmission[i], by_load, slopes[channel], out[channel], slope)


@inlined
def _sum_rows(shares, rows, out):
    """Fill ``out`` (LANES,) with ``shares`` (m,) @ ``rows`` (m, LANES)."""
    for k in range(LANES):
        out[k] = 0.0
    for j in range(shares.shape[0]):
        share = shares[j]
        if share != 0.0:
            for k in range(LANES):
                out[k] += share * rows[j, k]


@inlined
def _begin(inputs, first, used, motion, straight, out):
    """Take velocity and acceleration of a tile, and what no state changes."""
    v, a = motion
    for j in range(v.shape[0]):
        for k in range(used):
            v[j, k], a[j, k] = inputs[1][first + k, j], inputs[2][first + k, j]
    for channel in range(3):
        for i in range(v.shape[0]):
            for j in range(v.shape[0]):
                out[channel, i, j] = straight[channel, i, j]


@inlined
def _put(tile, first, used, out):
    """Write a matrix of a tile into ``out`` (K, N, N)."""
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            for k in range(used):
                out[first + k, i, j] = tile[i, j, k]


@compiled
def inverse_derivatives(tree, links, straight, friction, inputs, outputs):
    """Fill ``outputs``, derivatives (K, N, N) of the effort by ``inputs`` q, qd, qdd (K, N).

    ``tree``: geometry, parents, gravity; ``links``: parameters (n, 10) and rotors as of
    `kernels.rotors`; ``straight`` (3, N, N): constant stiffness, damping, inertia; ``friction``:
    axes (a, N), what is in ``straight`` already, terms without a past (t, COLUMNS), transmission
    (a, n) and links (n, 10) of the load, (0, ..) where nothing depends on it.
    """
    (geometry, parents, gravity), (parameters, rotors) = tree, links
    n, count = parents.shape[0], straight.shape[1]
    work, room = np.zeros((n + 1, LINK_ROWS, LANES)), np.empty((SCRATCH, LANES))
    out, spin = np.empty((3, count, count, LANES)), np.empty((ROOM + 2, LANES))
    v, a, lines = np.zeros((count, LANES)), np.zeros((count, LANES)), np.empty((5, LANES))
    load, slopes = np.zeros((n, LANES)), np.empty((3, n, n, LANES))
    _base(work, gravity)
    for first in range(0, inputs[0].shape[0], LANES):
        used = _forward_pass(work, parents, geometry, inputs, first)
        _begin(inputs, first, used, (v, a), straight, out)
        _rates(work, parents)
        for own in range(0 if friction[3].shape[0] > 0 else 1, 2):  # the links of the load first
            bodies = parameters if own else friction[4]
            found = out if own else slopes
            _links(work, parents, bodies, room)
            if own:
                _springs(work, parameters, out[BY_POSITION])
                _rotors(work, parents, rotors, (v, a), spin, out)
            else:
                slopes[:] = 0.0
            _collect(work, parents, bodies[:, 0].copy(), room, found)
            if not own:
                _efforts(work, load)
        _friction(friction, v, (load, slopes), lines, out)
        for channel in range(3):
            _put(out[channel], first, used, outputs[channel])


@inlined
def _clear(row, p, pivot_row, factor):
    """Take the pivot row off another, whose column ``p`` then is that of the inverse."""
    for k in range(LANES):
        factor[k] = row[p, k]
        row[p, k] = 0.0
    for j in range(row.shape[0]):
        for k in range(LANES):
            row[j, k] -= factor[k] * pivot_row[j, k]


@inlined
def _invert(matrix, pivots, factor):
    """Invert ``matrix`` (N, N, LANES) in place; ``pivots`` gets the least pivot.

    Gauss and Jordan's elimination without exchange of rows: the inertia is positive definite, and
    what friction adds to it is small.
    """
    count = matrix.shape[0]
    for p in range(count):
        for k in range(LANES):
            pivot = matrix[p, p, k]
            pivots[k] = pivot if p == 0 else min(pivots[k], pivot)
            factor[k] = 1.0 / pivot
            matrix[p, p, k] = 1.0
        for j in range(count):
            for k in range(LANES):
                matrix[p, j, k] *= factor[k]
        for i in range(count):
            if i != p:
                _clear(matrix[i], p, matrix[p], factor)


@inlined
def _get(source, first, used, tile):
    """Read a matrix of a tile from ``source`` (K, N, N)."""
    for i in range(tile.shape[0]):
        for j in range(tile.shape[1]):
            for k in range(used):
                tile[i, j, k] = source[first + k, i, j]


@inlined
def _solve(inverse, right, product):
    """Fill ``product`` (N, N, LANES) with minus ``inverse`` @ ``right``."""
    for i in range(inverse.shape[0]):
        for j in range(inverse.shape[0]):
            for k in range(LANES):
                product[i, j, k] = 0.0
            for h in range(inverse.shape[0]):
                for k in range(LANES):
                    product[i, j, k] -= inverse[i, h, k] * right[h, j, k]


@compiled
def solved_derivatives(outputs, pivots):
    """Turn derivatives (K, N, N) of the effort, in place, into those of the acceleration.

    By position and velocity, and by effort in place of acceleration. ``pivots`` (K,) as of
    `forward_dynamics`.
    """
    samples, count, _ = outputs[2].shape
    inverse, right = np.ones((count, count, LANES)), np.zeros((count, count, LANES))
    product, least, factor = np.empty_like(right), np.empty(LANES), np.empty(LANES)
    for first in range(0, samples, LANES):
        used = min(LANES, samples - first)
        _get(outputs[BY_ACCELERATION], first, used, inverse)
        _invert(inverse, least, factor)
        for k in range(used):
            pivots[first + k] = least[k]
        for channel in (BY_POSITION, BY_VELOCITY):
            _get(outputs[channel], first, used, right)
            _solve(inverse, right, product)
            _put(product, first, used, outputs[channel])
        _put(inverse, first, used, outputs[BY_ACCELERATION])
