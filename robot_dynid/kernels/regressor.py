"""Compiled regressor of a torque model: links, rotors, and all that is linear in signals."""

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
from robot_dynid.kernels.rotors import BACK, DRAG, RATE, ROOM, SHARE, _along, _drag, _line, _spin

#: kinds of signals: coordinates of position, velocity, acceleration; one; rows of the history
POSITION, VELOCITY, ACCELERATION, ONE, HISTORY = range(5)
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
def _unit_moments(link, moments):
    """Fill ``moments`` (18, LANES): those of the unit inertias xx xy yy xz yz zz."""
    for k in range(LANES):
        x, y, z = link[OMEGA, k], link[OMEGA + 1, k], link[OMEGA + 2, k]
        a, b, c = link[ALPHA, k], link[ALPHA + 1, k], link[ALPHA + 2, k]
        xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
        moments[0, k], moments[1, k], moments[2, k] = a, xz, -xy
        moments[3, k], moments[4, k], moments[5, k] = b - xz, a + yz, xx - yy
        moments[6, k], moments[7, k], moments[8, k] = -yz, b, xy
        moments[9, k], moments[10, k], moments[11, k] = c + xy, zz - xx, a - yz
        moments[12, k], moments[13, k], moments[14, k] = yy - zz, c - xy, b + xz
        moments[15, k], moments[16, k], moments[17, k] = yz, -xz, c


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
def _inertia_columns(screw, moments, block):
    """Rows 4 to 9 of ``block``: power of the moments of the unit inertias."""
    for i in range(6):
        for k in range(LANES):
            block[4 + i, k] = (screw[0, k] * moments[3 * i, k]
                               + screw[1, k] * moments[3 * i + 1, k]
                               + screw[2, k] * moments[3 * i + 2, k])


@inlined
def _store(values, used, out, first):
    """Copy the ``used`` first lanes to ``out`` (M,) from ``first`` on."""
    if used == LANES:
        for k in range(LANES):
            out[first + k] = values[k]
    else:
        for k in range(used):
            out[first + k] = values[k]


@inlined
def _fill_links(work, parents, columns, room, target):
    """Fill the columns of links: ``columns`` (n, 10), -1 for none."""
    link, moments, screw, block = room
    place, at, used, out = target
    for j in range(parents.shape[0]):
        masses, inertias = columns[j, :4].max() >= 0, columns[j, 4:].max() >= 0
        if masses or inertias:
            _link_motion(work[j + 1], link)
        if inertias:
            _unit_moments(link, moments)
        i = j if masses or inertias else -1
        while i >= 0:
            _screw_in_link(work[i + 1, AXIS:], work[j + 1], screw)
            if masses:
                _mass_columns(screw, link, block)
            if inertias:
                _inertia_columns(screw, moments, block)
            for parameter in range(10):
                column = columns[j, parameter]
                if column >= 0 and place[i, column] >= 0:
                    _store(block[parameter], used, out, place[i, column] + at)
            i = parents[i]


@inlined
def _rotor_load(work, parents, rotor, motion, room, load):
    """Fill ``load`` (N, LANES) with the effort of one rotor of inertia one on a moving link."""
    carrier, axis, share = rotor
    own = work[carrier + 1]
    _line(own, axis, room)
    _spin(share, motion[0], motion[1], room)
    _drag(own, room)
    for j in range(load.shape[0]):
        for k in range(LANES):
            load[j, k] = share[j] * (room[RATE, k] + room[BACK, k])
    j = carrier
    while j >= 0:
        _along(work[j + 1, AXIS:], room, DRAG)
        for k in range(LANES):
            load[j, k] += room[SHARE, k]
        j = parents[j]


@inlined
def _fill_rotors(work, parents, rotors, motion, room, target):
    """Fill the columns of rotors on moving links."""
    columns, carriers, axes, motions, shares = rotors
    place, at, used, out = target
    turning, load = room
    for r in range(columns.shape[0]):
        _rotor_load(work, parents, (carriers[r], axes[r], motions[r]), motion, turning, load)
        for i in range(place.shape[0]):
            begin = place[i, columns[r]]
            if begin >= 0:
                for k in range(LANES):
                    turning[SHARE, k] = 0.0
                for j in range(load.shape[0]):
                    for k in range(LANES):
                        turning[SHARE, k] += shares[j, i] * load[j, k]
                _store(turning[SHARE], used, out, begin + at)


@inlined
def _read(motion, kind, index, tile, out):
    """Fill ``out`` (LANES,) with a coordinate of the motion, or ones."""
    first, used = tile
    if kind == POSITION:
        for k in range(used):
            out[k] = motion[0][first + k, index]
    elif kind == VELOCITY:
        for k in range(used):
            out[k] = motion[1][first + k, index]
    elif kind == ACCELERATION:
        for k in range(used):
            out[k] = motion[2][first + k, index]
    else:
        for k in range(used):
            out[k] = 1.0


@inlined
def _put(values, share, used, more, out):
    """Write ``share`` times ``values`` (M,) to ``out`` (M,), or add it where there is ``more``."""
    if more:
        for k in range(used):
            out[k] += share * values[k]
    else:
        for k in range(used):
            out[k] = share * values[k]


@inlined
def _fill_signals(signals, motion, history, first, target):
    """Fill what is linear in signals; entries of one place follow each other and add up."""
    entries, shares = signals
    place, at, used, out = target
    values, before = np.empty(LANES), -1
    for e in range(entries.shape[0]):
        begin, kind, index = place[entries[e, 0], entries[e, 1]], entries[e, 2], entries[e, 3]
        if begin < 0:
            continue
        own = out[begin + at:begin + at + used]
        if kind == HISTORY:
            _put(history[index, first:first + used], shares[e], used, begin == before, own)
        else:
            _read(motion, kind, index, (first, used), values)
            _put(values, shares[e], used, begin == before, own)
        before = begin


@compiled
def fill_regressor(tree, columns, signals, rows, target):
    """Fill a regressor: the first of ``rows`` is at ``place[i, c]`` in ``out``, others follow.

    ``columns``: links (n, 10) with the column of each parameter or -1; rotors of inertia one on
    moving links with their columns (m,), carriers (m,), axes (m, 3), motions (m, N), and the share
    (N, R) of an effort on a coordinate in each equation; entries (e, 4) of row, column, kind and
    index of a signal, by row and column, and their shares (e,). ``signals``: q, qd, qdd (K, N)
    and history (h, K); ``rows``: first and end. ``target``: ``place`` (R, k), -1 for what is not
    wanted, and ``out`` (M,). Equations of joints that do not carry a link are left as they are.
    """
    geometry, parents, gravity = tree
    links, rotors, entries, shares = columns
    motion, history = signals
    place, out = target
    n, count = parents.shape[0], motion[0].shape[1]
    work = np.zeros((n + 1, ROWS, LANES))
    room = (np.empty((LINK_ROWS, LANES)), np.empty((18, LANES)), np.empty((6, LANES)),
            np.empty((10, LANES)))
    turning = np.empty((ROOM, LANES)), np.empty((count, LANES))
    v, a = np.zeros((count, LANES)), np.zeros((count, LANES))
    _base(work, gravity)
    for first in range(rows[0], rows[1], LANES):
        used = min(LANES, rows[1] - first)
        tile = place, first - rows[0], used, out
        if n > 0:
            _forward_pass(work, parents, geometry, motion, first)
            _fill_links(work, parents, links, room, tile)
        if rotors[0].shape[0] > 0:
            for j in range(count):
                for k in range(used):
                    v[j, k], a[j, k] = motion[1][first + k, j], motion[2][first + k, j]
            _fill_rotors(work, parents, rotors, (v, a), turning, tile)
        _fill_signals((entries, shares), motion, history, first, tile)
