"""Compiled effort and inertia of rotors; work arrays as of `newton_euler`.

Rotors are (inertia (N, N), carriers (m,), axes (m, 3), motions (m, N)), see `rotors.Rotors`. The
links must have been placed, which `_forward_pass` does.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import (
    ACC,
    AXIS,
    LANES,
    ROWS,
    VEL,
    _base,
    _forward_pass,
    compiled,
    inlined,
)

#: rows of the room to work: axis in the base frame, torque on the link, that on the motor, spin
#: and its rate, what of it acts on a joint
LINE, DRAG, BACK, SPIN, RATE, SHARE, ROOM = 0, 3, 6, 7, 8, 9, 10


@inlined
def _line(own, axis, room):
    """Fill LINE with a vector of the link in base coordinates."""
    x, y, z = axis[0], axis[1], axis[2]
    for i in range(3):
        for k in range(LANES):
            room[LINE + i, k] = own[3 * i, k] * x + own[3 * i + 1, k] * y + own[3 * i + 2, k] * z


@inlined
def _spin(motion, v, a, room):
    """Fill SPIN and RATE with the motion of a rotor."""
    for k in range(LANES):
        room[SPIN, k] = room[RATE, k] = 0.0
    for j in range(motion.shape[0]):
        share = motion[j]
        if share != 0.0:
            for k in range(LANES):
                room[SPIN, k] += share * v[j, k]
                room[RATE, k] += share * a[j, k]


@inlined
def _drag(own, room):
    """Fill DRAG and BACK from the motion of the link that carries the rotor."""
    for k in range(LANES):
        x, y, z = room[LINE, k], room[LINE + 1, k], room[LINE + 2, k]
        wx, wy, wz = own[VEL, k], own[VEL + 1, k], own[VEL + 2, k]
        speed, rate = room[SPIN, k], room[RATE, k]
        room[DRAG, k] = rate * x + speed * (wy * z - wz * y)
        room[DRAG + 1, k] = rate * y + speed * (wz * x - wx * z)
        room[DRAG + 2, k] = rate * z + speed * (wx * y - wy * x)
        room[BACK, k] = x * own[ACC, k] + y * own[ACC + 1, k] + z * own[ACC + 2, k]


@inlined
def _along(axis, room, first):
    """Fill SHARE with three rows of the room along the rotation of a screw."""
    for k in range(LANES):
        room[SHARE, k] = (axis[0, k] * room[first, k] + axis[1, k] * room[first + 1, k]
                          + axis[2, k] * room[first + 2, k])


@inlined
def _reflected(inertia, a, load):
    """Add ``inertia`` (N, N) times the acceleration (N, LANES) to ``load``."""
    for j in range(load.shape[0]):
        for i in range(load.shape[0]):
            share = inertia[j, i]
            if share != 0.0:
                for k in range(LANES):
                    load[j, k] += share * a[i, k]


@inlined
def _rotor_effort(work, parents, rotors, motion, room, load):
    """Add the coupling of rotors with links to ``load`` (N, LANES).

    ``motion`` are v and a (N, LANES).
    """
    _, carriers, axes, motions = rotors
    v, a = motion
    for r in range(carriers.shape[0]):
        own = work[carriers[r] + 1]
        _line(own, axes[r], room)
        _spin(motions[r], v, a, room)
        _drag(own, room)
        for j in range(load.shape[0]):
            share = motions[r, j]
            if share != 0.0:
                for k in range(LANES):
                    load[j, k] += share * room[BACK, k]
        j = carriers[r]
        while j >= 0:
            _along(work[j + 1, AXIS:], room, DRAG)
            for k in range(LANES):
                load[j, k] += room[SHARE, k]
            j = parents[j]


@inlined
def _rotor_inertia(work, parents, rotors, room, matrix):
    """Add the inertia of rotors to the lower triangle of ``matrix`` (N, N, LANES).

    What a rotor turns with comes after the joints that carry it.
    """
    inertia, carriers, axes, motions = rotors
    for j in range(matrix.shape[0]):
        for i in range(j + 1):
            for k in range(LANES):
                matrix[j, i, k] += inertia[j, i]
    for r in range(carriers.shape[0]):
        _line(work[carriers[r] + 1], axes[r], room)
        i = carriers[r]
        while i >= 0:
            _along(work[i + 1, AXIS:], room, LINE)
            for j in range(matrix.shape[0]):
                share = motions[r, j]
                if share != 0.0:
                    for k in range(LANES):
                        matrix[j, i, k] += share * room[SHARE, k]
            i = parents[i]


@compiled
def rotor_effort(tree, rotors, inputs, out):
    """Fill ``out`` (K, N) with the effort of rotors; ``inputs`` are q, qd, qdd (K, N)."""
    geometry, parents, gravity = tree
    count = out.shape[1]
    work, room = np.zeros((parents.shape[0] + 1, ROWS, LANES)), np.empty((ROOM, LANES))
    v, a, load = np.zeros((count, LANES)), np.zeros((count, LANES)), np.empty((count, LANES))
    _base(work, gravity)
    for first in range(0, out.shape[0], LANES):
        used = _forward_pass(work, parents, geometry, inputs, first)
        load[:] = 0.0
        for j in range(count):
            for k in range(used):
                v[j, k], a[j, k] = inputs[1][first + k, j], inputs[2][first + k, j]
        _reflected(rotors[0], a, load)
        _rotor_effort(work, parents, rotors, (v, a), room, load)
        for j in range(count):
            for k in range(used):
                out[first + k, j] = load[j, k]


@compiled
def rotor_inertia(tree, rotors, q, out):
    """Fill ``out`` (K, N, N) with the inertia of rotors at positions ``q`` (K, N)."""
    geometry, parents, gravity = tree
    count = out.shape[1]
    work, room = np.zeros((parents.shape[0] + 1, ROWS, LANES)), np.empty((ROOM, LANES))
    matrix = np.empty((count, count, LANES))
    _base(work, gravity)
    for first in range(0, out.shape[0], LANES):
        used = _forward_pass(work, parents, geometry, (q, q, q), first)
        matrix[:] = 0.0
        _rotor_inertia(work, parents, rotors, room, matrix)
        for j in range(count):
            for i in range(j + 1):
                for k in range(used):
                    out[first + k, i, j] = out[first + k, j, i] = matrix[j, i, k]
