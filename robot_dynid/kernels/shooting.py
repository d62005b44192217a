"""Compiled stages of simulated intervals, with the derivatives of what is simulated.

The scheme is that of `kernels.rollout`. A stage solves M k + bias + F(before + reach k) = effort
for the acceleration k, and by the theorem of the implicit function its derivatives solve

    (M + reach F') dk = -(d effort of links and rotors) - F' d before - (columns of parameters)

Friction is a table of terms by parameter, see `kernels.friction`, of the speeds of axes.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.friction import LOAD, ROW, WEIGHT, along, tangent
from robot_dynid.kernels.newton_euler import compiled, inlined
from robot_dynid.kernels.rollout import EXPLICIT, IMPLICIT, STAGES

#: most tangents of a stage, and the change of the speeds [rad/s, m/s] that ends them
MOST_CHANGES, SETTLED = 30, 1e-12


@inlined
def _factorise(matrix):
    """Replace the lower triangle of a symmetric matrix (n, n) by L and D of L D L^T."""
    for j in range(matrix.shape[0]):
        for i in range(j):
            for m in range(i):
                matrix[j, i] -= matrix[j, m] * matrix[i, m]
        for i in range(j):
            scaled = matrix[j, i] / matrix[i, i]
            matrix[j, j] -= scaled * matrix[j, i]
            matrix[j, i] = scaled


@inlined
def _substitute(factor, right):
    """Replace ``right`` (n, P) by the solution; ``factor`` is that of `_factorise`."""
    n, count = right.shape
    for j in range(n):
        for i in range(j):
            share = factor[j, i]
            for p in range(count):
                right[j, p] -= share * right[i, p]
    for j in range(n - 1, -1, -1):
        scale = 1.0 / factor[j, j]
        for p in range(count):
            right[j, p] *= scale
        for i in range(j + 1, n):
            share = factor[i, j]
            for p in range(count):
                right[j, p] -= share * right[i, p]


@inlined
def _friction(friction, pressed, speed, torque, slope):
    """Fill ``torque`` and ``slope`` (a,) of the axes at their speeds (a,) under loads (a,)."""
    _, owner, terms, values = friction
    torque[:] = 0.0
    slope[:] = 0.0
    for e in range(terms.shape[0]):
        parameter = int(terms[e, ROW])
        axis = owner[parameter]
        size = values[parameter] * (terms[e, WEIGHT] + terms[e, LOAD] * pressed[axis])
        value, rise = tangent(terms[e], speed[axis])
        torque[axis] += size * value
        slope[axis] += size * rise


@inlined
def _damped(mass, axes, slope, reach, out):
    """Fill ``out`` (n, n) with the mass matrix and what friction adds within a stage."""
    n = mass.shape[0]
    for j in range(n):
        for i in range(n):
            out[j, i] = mass[j, i]
    for a in range(axes.shape[0]):
        for j in range(n):
            if axes[a, j] != 0.0:
                share = reach * slope[a] * axes[a, j]
                for i in range(n):
                    out[j, i] += share * axes[a, i]


@inlined
def _add_effort(axes, torque, sign, out):
    """Add to ``out`` (n,) the effort of the torques (a,) of the axes, times ``sign``."""
    for a in range(axes.shape[0]):
        for j in range(axes.shape[1]):
            out[j] += sign * axes[a, j] * torque[a]


@inlined
def _move(axes, velocity, speed, at):
    """Fill the speeds (a,) of the axes, and where tangents are taken next; return how far."""
    moved = 0.0
    for a in range(axes.shape[0]):
        speed[a] = along(axes[a], velocity)
        there = 0.0 if speed[a] * at[a] < 0.0 else speed[a]
        moved = max(moved, abs(there - at[a]))
        at[a] = there
    return moved


@compiled
def solve_stage(friction, equations, motion, reach, out):
    """Solve a stage of K intervals.

    ``friction``: axes (a, n), the axis of each parameter (k,), terms (t, COLUMNS) by parameter,
    values (k,). ``equations``: mass matrices (K, n, n), and the effort (K, n) less bias and less
    friction at the measured velocity. ``motion``: velocity (K, n) before, that measured (K, n),
    size of the loads (K, a). Fills ``out``: acceleration, velocity (K, n), slope of friction
    (K, a), factor (K, n, n) of the matrix of the derivatives.

    Friction is on its tangents, taken again at the speeds they give; an axis that would reverse is
    taken at rest next, and friction that falls with the speed is held, as in `implicit_friction`.
    """
    axes = friction[0]
    mass, load = equations
    before, measured, pressed = motion
    acceleration, velocity, slopes, factors = out
    count, n = before.shape
    number = axes.shape[0]
    at, speed, torque, slope = (np.empty(number), np.empty(number), np.empty(number),
                                np.empty(number))
    left, right = np.empty(n), np.empty((n, 1))
    for k in range(count):
        for a in range(number):
            at[a] = along(axes[a], measured[k])
        _friction(friction, pressed[k], at, torque, slope)
        for j in range(n):
            left[j] = load[k, j]
        _add_effort(axes, torque, 1.0, left)
        for _ in range(MOST_CHANGES):
            _friction(friction, pressed[k], at, torque, slope)
            for a in range(number):
                slope[a] = max(slope[a], 0.0)
                torque[a] += slope[a] * (along(axes[a], before[k]) - at[a])
            for j in range(n):
                right[j, 0] = left[j]
            _add_effort(axes, torque, -1.0, right[:, 0])
            _damped(mass[k], axes, slope, reach, factors[k])
            _factorise(factors[k])
            _substitute(factors[k], right)
            for j in range(n):
                acceleration[k, j] = right[j, 0]
                velocity[k, j] = before[k, j] + reach * right[j, 0]
            if not _move(axes, velocity[k], speed, at) > SETTLED:
                break
        _friction(friction, pressed[k], speed, torque, slopes[k])
        _damped(mass[k], axes, slopes[k], reach, factors[k])
        _factorise(factors[k])


@inlined
def _arguments(stage, h, k, by, d_at, d_before):
    """Fill the derivatives (n, P) of the arguments of a stage of interval ``k``."""
    state, explicit, _, rate = by
    n, count = d_at.shape
    for j in range(n):
        for p in range(count):
            d_at[j, p] = state[0, k, j, p]
            explicit[stage, k, j, p] = d_before[j, p] = state[1, k, j, p]
        for s in range(stage):
            a, b = h * EXPLICIT[stage, s], h * IMPLICIT[stage, s]
            for p in range(count):
                d_at[j, p] += a * explicit[s, k, j, p]
                explicit[stage, k, j, p] += a * rate[s, k, j, p]
                d_before[j, p] += b * rate[s, k, j, p]


@inlined
def _take_product(matrix, factor, right):
    """Take ``matrix`` (n, n) @ ``factor`` (n, P) off ``right`` (n, P)."""
    n, count = right.shape
    for j in range(n):
        for i in range(n):
            share = matrix[j, i]
            if share != 0.0:
                for p in range(count):
                    right[j, p] -= share * factor[i, p]


@inlined
def _take_columns(columns, place, k, right):
    """Take the columns of all parameters off ``right`` (n, P)."""
    moving, beside, weights = columns
    moving_at, beside_at, first = place
    for j in range(right.shape[0]):
        for c in range(moving_at.shape[0]):
            right[j, moving_at[c]] -= moving[j, c, k]
        for c in range(beside_at.shape[0]):
            total = 0.0
            for x in range(weights.shape[0]):
                total += weights[x] * beside[k, first + x, j, c]
            right[j, beside_at[c]] -= total


@inlined
def _take_friction(friction, speeds, pressed, places, right):
    """Take off ``right`` (n, P) what steady sliding differs between two speeds (a,)."""
    axes, owner, terms, _ = friction
    here, there = speeds
    for e in range(terms.shape[0]):
        parameter = int(terms[e, ROW])
        axis = owner[parameter]
        size = terms[e, WEIGHT] + terms[e, LOAD] * pressed[axis]
        change = size * (tangent(terms[e], here[axis])[0] - tangent(terms[e], there[axis])[0])
        for j in range(right.shape[0]):
            right[j, places[parameter]] -= axes[axis, j] * change


@inlined
def _finish(h, k, state, implicit):
    """Move the derivatives of interval ``k`` to the end of the step."""
    for j in range(state.shape[2]):
        for s in range(STAGES):
            weight = h * IMPLICIT[STAGES - 1, s]
            for p in range(state.shape[3]):
                state[0, k, j, p] += weight * implicit[s, k, j, p]
        for p in range(state.shape[3]):
            state[1, k, j, p] = implicit[STAGES - 1, k, j, p]


@compiled
def stage_gradient(friction, motion, equations, columns, place, clock, by):  # noqa: PLR0913
    """Fill the derivatives in P parameters of a stage of K intervals, after the last its step's.

    ``friction`` as of `solve_stage`; ``motion``: velocity of the end, that measured (K, n), size
    of the loads (K, a); ``equations``: derivatives of the effort of links and rotors in position
    and velocity (K, n, n), then slopes and factors of `solve_stage`; ``columns``: (n, m, K) of
    links and rotors, (K, m + 3, n, c) of all others and weights (4,) of their samples; ``place``
    of these columns among the parameters (m,), (c,), the first sample, and that of friction (k,);
    ``clock``: stage and step [s]. ``by``: derivatives (2, K, n, P) of position and velocity; of
    explicit and implicit velocity and of the rate of all stages (STAGES, K, n, P).
    """
    axes = friction[0]
    velocity, measured, pressed = motion
    by_q, by_v, slopes, factors = equations
    stage, h = clock
    state, explicit, implicit, rate = by
    _, count, n, size = state.shape
    number, reach = axes.shape[0], h * IMPLICIT[stage, stage]
    d_at, d_before = np.empty((n, size)), np.empty((n, size))
    here, there, damping, none = (np.empty(number), np.empty(number), np.empty((n, n)),
                                  np.zeros((n, n)))
    for k in range(count):
        right = rate[stage, k]
        right[:] = 0.0
        _arguments(stage, h, k, by, d_at, d_before)
        _damped(none, axes, slopes[k], 1.0, damping)
        _take_product(by_q[k], d_at, right)
        _take_product(by_v[k], explicit[stage, k], right)
        _take_product(damping, d_before, right)
        _take_columns(columns, (place[0], place[1], place[2]), k, right)
        for a in range(number):
            here[a], there[a] = along(axes[a], velocity[k]), along(axes[a], measured[k])
        _take_friction(friction, (here, there), pressed[k], place[3], right)
        _substitute(factors[k], right)
        for j in range(n):
            for p in range(size):
                implicit[stage, k, j, p] = d_before[j, p] + reach * right[j, p]
        if stage == STAGES - 1:
            _finish(h, k, state, implicit)
