"""Compiled steps with friction that acts implicitly, one tile of motions at a time.

Friction of an axis is piecewise linear: f0 + fv x + fc clip(x / width, -1, 1). Which piece applies
at the end of a step is found by Newton's method on the pieces. An axis may also be a spring: it
acts on the difference of two coordinates, and its torque grows with the position, too.
"""

from __future__ import annotations

from robot_dynid.kernels.forward_dynamics import _eliminate, _substitute
from robot_dynid.kernels.newton_euler import LANES, inlined

#: columns of the friction table: viscous, Coulomb, offset, width of the ramp, stiffness
VISCOUS, COULOMB, OFFSET, WIDTH, STIFFNESS = 0, 1, 2, 3, 4
#: most corrections of the pieces; none of 300 000 steps of hard-braked arms took more than five
MOST_CHANGES = 10


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
def _explicit_friction(friction, v, load, speed):
    """Take Coulomb coefficients below zero, which least squares may give, off ``load``."""
    axes, table = friction
    for i in range(axes.shape[0]):
        height, width = table[i, COULOMB], table[i, WIDTH]
        if height < 0.0:
            _along(axes[i], v, speed)
            for k in range(LANES):
                speed[k] = height * min(max(speed[k] / width, -1.0), 1.0)
            for j in range(load.shape[0]):
                for k in range(LANES):
                    load[j, k] -= axes[i, j] * speed[k]


@inlined
def _first_pieces(friction, v, piece, speed):
    """Fill ``piece`` with -1, 0 (on the ramp) or 1 by the speed of each axis."""
    axes, table = friction
    for i in range(axes.shape[0]):
        width, slides = table[i, WIDTH], 1.0 if table[i, COULOMB] > 0.0 else 0.0
        _along(axes[i], v, speed)
        for k in range(LANES):
            piece[i, k] = slides if speed[k] > width else (-slides if speed[k] < -width else 0.0)


@inlined
def _change_pieces(friction, v, change, piece, scratch):
    """Correct ``piece`` by the speeds that followed from it; return whether any was wrong.

    A sliding axis passes through the ramp, or it would jump to and fro across a steep one.
    """
    axes, table = friction
    speed, step, wrong = scratch
    for k in range(LANES):
        wrong[k] = 0.0
    for i in range(axes.shape[0]):
        if table[i, COULOMB] > 0.0:
            width = table[i, WIDTH]
            _along(axes[i], v, speed)
            _along(axes[i], change, step)
            for k in range(LANES):
                x, old = speed[k] + step[k], piece[i, k]
                left = 1.0 if x > width else (-1.0 if x < -width else 0.0)
                kept = old if old * x >= width else 0.0
                new = left if old == 0.0 else kept
                wrong[k] = wrong[k] if new == old else 1.0
                piece[i, k] = new
    return wrong.max() > 0.0


@inlined
def _damp(axis, torque, damping, load, factor):
    """Take the ``torque`` of one axis off ``load``, add its ``damping`` to the matrix."""
    for j in range(load.shape[0]):
        if axis[j] != 0.0:
            for k in range(LANES):
                load[j, k] -= axis[j] * torque[k]
            for i in range(j + 1):
                share = axis[j] * axis[i]
                for k in range(LANES):
                    factor[j, i, k] += share * damping[k]


@inlined
def _spring(axis, stiffness, start, torque, damping, row):
    """Add to ``torque`` and ``damping`` of an axis what its spring does during a step."""
    v, _, q, reach = start
    _along(axis, q, row)
    for k in range(LANES):
        torque[k] += stiffness * row[k]
        damping[k] += stiffness * reach
    _along(axis, v, row)
    for k in range(LANES):
        torque[k] += stiffness * reach * row[k]


@inlined
def _linear_step(friction, equations, start, piece, scratch, change):
    """Solve M d + duration (F(v + d) - load) = 0 for ``change`` d, F on the given pieces.

    Springs are at the position q + reach (v + d).
    """
    axes, table = friction
    matrix, load = equations
    v, duration = start[0], start[1]
    factor, least, speed, damping, stretch = scratch
    for j in range(load.shape[0]):
        for k in range(LANES):
            change[j, k] = duration * load[j, k]
        for i in range(j + 1):
            for k in range(LANES):
                factor[j, i, k] = matrix[j, i, k]
    for i in range(axes.shape[0]):
        viscous, offset = duration * table[i, VISCOUS], duration * table[i, OFFSET]
        height = duration * max(table[i, COULOMB], 0.0)
        ramp = height / table[i, WIDTH]
        _along(axes[i], v, speed)
        for k in range(LANES):
            damping[k] = viscous + ramp * (1.0 - abs(piece[i, k]))
            speed[k] = offset + height * piece[i, k] + damping[k] * speed[k]
        if table[i, STIFFNESS] > 0.0:
            _spring(axes[i], table[i, STIFFNESS] * duration, start, speed, damping, stretch)
        _damp(axes[i], speed, damping, change, factor)
    _eliminate(factor, change, least)
    _substitute(factor, change)


@inlined
def _implicit_step(friction, equations, start, piece, scratch, change):
    """Solve M d + duration (F(v + d) - load) = 0 for ``change`` d.

    ``start`` is (v, duration, q, reach): springs are at q + reach (v + d). Begins with the pieces
    in ``piece`` and leaves those that apply at v + d.
    """
    _, _, row, other, flags = scratch
    for _ in range(MOST_CHANGES):
        _linear_step(friction, equations, start, piece, scratch, change)
        if not _change_pieces(friction, start[0], change, piece, (row, other, flags)):
            break
