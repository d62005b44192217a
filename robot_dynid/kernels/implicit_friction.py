"""Compiled steps with friction that acts implicitly, one tile of motions at a time.

Friction of an axis at its speed w at the end of a step is taken on its tangent, found by Newton's
method: the tangent at a speed gives the next one. An axis that would reverse is taken at rest
next, so it passes through the ramp of its dry friction and does not jump to and fro across a
steep one. Friction that falls with the speed is held as it is. Elastic gears act beside it, see
`gears`.
"""

from __future__ import annotations

from robot_dynid.kernels.forward_dynamics import _eliminate, _substitute
from robot_dynid.kernels.friction import (
    HIGHEST,
    LOAD,
    LOWEST,
    ROW,
    SCALE,
    WEIGHT,
    tangent,
)
from robot_dynid.kernels.gears import _begin_gears, _change_gears, _press_gears
from robot_dynid.kernels.newton_euler import LANES, inlined
from robot_dynid.kernels.sliding_friction import _along, _is_ramp

#: columns of what is straight: viscous, offset
VISCOUS, OFFSET = 0, 1
#: most tangents of a step; 300 000 steps of hard-braked arms with ramps took five at most
MOST_CHANGES = 10
#: what is kept of the axes and terms between steps, each (.., LANES): speeds at which tangents are
#: taken, the tangents rest + slope * speed, sizes of all terms of an axis, and of each term; a row
#: with a number above zero where tangents are to be taken again
AT, REST, SLOPE, BOUND, SIZES, STALE = 0, 1, 2, 3, 4, 5
#: share of the friction of an axis by which the tangents of two rounds may differ at the end
SETTLED = 1e-10


@inlined
def _set_sizes(friction, pressed, lines):
    """Fill BOUND and SIZES of ``lines`` under loads ``pressed`` (a, LANES)."""
    lines[STALE][0] = 1.0
    terms, bound, sizes = friction[2], lines[BOUND], lines[SIZES]
    for i in range(bound.shape[0]):
        for k in range(LANES):
            bound[i, k] = 0.0
    for e in range(terms.shape[0]):
        weight, load, i = terms[e, WEIGHT], terms[e, LOAD], int(terms[e, ROW])
        for k in range(LANES):
            sizes[e, k] = weight + load * abs(pressed[i, k])
            bound[i, k] += abs(sizes[e, k])


@inlined
def _explicit_friction(friction, v, sizes, load, row):
    """Take ramps of sizes below zero, which least squares may give, off ``load``."""
    axes, _, terms = friction
    speed, torque = row
    for e in range(terms.shape[0]):
        term = terms[e]
        if not _is_ramp(term) or (term[LOAD] == 0.0 and term[WEIGHT] >= 0.0):
            continue
        axis = axes[int(term[ROW])]
        _along(axis, v, speed)
        for k in range(LANES):
            torque[k] = min(sizes[e, k], 0.0) * tangent(term, speed[k])[0]
        for j in range(load.shape[0]):
            for k in range(LANES):
                load[j, k] -= axis[j] * torque[k]


@inlined
def _tangent_of_axis(terms, sizes, e, at, tangents):
    """Fill rest and slope (LANES,) of the axis of term ``e``, its first, near the speed ``at``.

    Return the first term of the next axis.
    """
    rest, slope = tangents
    i = terms[e, ROW]
    for k in range(LANES):
        rest[k] = slope[k] = 0.0
    falls = False
    while e < terms.shape[0] and terms[e, ROW] == i:
        term, size = terms[e], sizes[e]
        if _is_ramp(term):
            width, low, high = term[SCALE], term[LOWEST], term[HIGHEST]
            for k in range(LANES):
                edge = min(max(at[k], low), high)
                height = max(size[k], 0.0)
                side = 1.0 if edge >= width else (-1.0 if edge <= -width else 0.0)
                rest[k] += height * side
                slope[k] += height / width * (1.0 - abs(side))
        else:
            falls = True
            for k in range(LANES):
                value, rise = tangent(term, at[k])
                rest[k] += size[k] * (value - rise * at[k])
                slope[k] += size[k] * rise
        e += 1
    if falls:
        for k in range(LANES):
            rest[k] += min(slope[k], 0.0) * at[k]
            slope[k] = max(slope[k], 0.0)
    return e


@inlined
def _take_tangents(friction, lines):
    """Fill the tangents of all axes at the speeds where they are taken."""
    terms, e = friction[2], 0
    while e < terms.shape[0]:
        i = int(terms[e, ROW])
        e = _tangent_of_axis(terms, lines[SIZES], e, lines[AT][i],
                             (lines[REST][i], lines[SLOPE][i]))


@inlined
def _first_speeds(friction, v, lines):
    """Take the tangents of all axes at their speeds at the begin of a step."""
    for i in range(friction[0].shape[0]):
        _along(friction[0][i], v, lines[AT][i])
    lines[STALE][0] = 1.0


@inlined
def _change_tangents(friction, v, change, lines, scratch):
    """Take the tangents at the speeds that followed from them; return whether it matters."""
    axes, _, terms = friction
    at, rest, slope, bound, sizes, stale = lines
    speed, step, wrong, other_rest, other_slope = scratch
    turned = stale[0]
    for k in range(LANES):
        wrong[k] = turned[k] = 0.0
    e = 0
    while e < terms.shape[0]:
        i = int(terms[e, ROW])
        _along(axes[i], v, speed)
        _along(axes[i], change, step)
        for k in range(LANES):
            speed[k] += step[k]
        e = _tangent_of_axis(terms, sizes, e, speed, (other_rest, other_slope))
        for k in range(LANES):
            more = (other_slope[k] - slope[i, k]) * speed[k] + (other_rest[k] - rest[i, k])
            off = 1.0 if abs(more) > SETTLED * bound[i, k] else 0.0
            back = off if at[i, k] * speed[k] < 0.0 else 0.0
            wrong[k] += off
            turned[k] += back
            at[i, k] = speed[k] * (1.0 - back)
            rest[i, k], slope[i, k] = other_rest[k], other_slope[k]
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
def _linear_step(friction, equations, start, lines, scratch, change, gears):  # noqa: PLR0913
    """Solve M d + duration (F(v + d) - load) = 0 for ``change`` d, F on its tangents.

    ``gears`` are at the position q + reach (v + d).
    """
    axes, straight, _ = friction
    matrix, load = equations
    v, duration = start[0], start[1]
    factor, least, speed, damping = scratch
    for j in range(load.shape[0]):
        for k in range(LANES):
            change[j, k] = duration * load[j, k]
        for i in range(j + 1):
            for k in range(LANES):
                factor[j, i, k] = matrix[j, i, k]
    for i in range(axes.shape[0]):
        viscous, offset = duration * straight[i, VISCOUS], duration * straight[i, OFFSET]
        rest, slope = lines[REST][i], lines[SLOPE][i]
        _along(axes[i], v, speed)
        for k in range(LANES):
            damping[k] = viscous + duration * slope[k]
            speed[k] = offset + duration * rest[k] + damping[k] * speed[k]
        _damp(axes[i], speed, damping, change, factor)
    _press_gears(gears, start, change, factor)
    _eliminate(factor, change, least)
    _substitute(factor, change)


@inlined
def _implicit_step(friction, equations, start, lines, scratch, change, gears):  # noqa: PLR0913
    """Solve M d + duration (F(v + d) - load) = 0 for ``change`` d.

    ``start`` is (v, duration, q, reach): ``gears`` are at q + reach (v + d). Begins with the
    tangents at the speeds in ``lines`` and leaves there those at v + d.
    """
    _, _, row, other = scratch[0]
    _begin_gears(gears)
    for _ in range(MOST_CHANGES):
        if lines[STALE].max() > 0.0:
            _take_tangents(friction, lines)
        _linear_step(friction, equations, start, lines, scratch[0], change, gears)
        turned = _change_gears(gears, start, change)
        if not _change_tangents(friction, start[0], change, lines,
                                (row, other, scratch[3], scratch[1], scratch[2])) and not turned:
            break
