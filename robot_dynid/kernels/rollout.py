"""Compiled integration of many motions: tiles of LANES motions run side by side through time.

A step solves M(q) k = effort - bias(q, v) - F(w) three times: position and velocity in M and the
bias are those of an explicit Runge-Kutta scheme of third order, friction F is taken at the
velocity w of a diagonally implicit one with the same weights, whose last stage is the end of the
step (semi-implicit schemes: Boscarino, Filbet, Russo, J. Sci. Comput. 68, 2016).

With nodes 4/9 and 14/15 of the explicit scheme, third order of its coupling into friction fixes
the implicit one, which is of second order. Of all nodes these were chosen by what follows for an
axis by itself, however large the step: viscous friction damps it without overshoot, and dry
friction never adds energy and brings it to rest under any load it can hold (a table of
`test/dynamics/test_rollout_friction.py`). Schemes that are merely L-stable swing to and fro for
ever.

Coordinates beyond the joints of the tree are motors behind springs, which act at a position with
weights of its own (SPRING): of those that give second order and keep an undamped oscillator from
growing at any stiffness, two that err little where the step resolves it. A motion that the step
does not resolve is damped to nothing (`test/dynamics/test_elastic_rollout.py`).
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.forward_dynamics import _eliminate, _first_loading, _mass_matrix
from robot_dynid.kernels.gears import _carry_gears, _put_gears, _take_gears
from robot_dynid.kernels.implicit_friction import (
    SIZES,
    _explicit_friction,
    _first_speeds,
    _implicit_step,
    _set_sizes,
)
from robot_dynid.kernels.newton_euler import (
    AXIS,
    FORCE,
    INPUT,
    LANES,
    ROWS,
    _accumulate,
    _add_spring,
    _base,
    _inertia,
    _inertial_force,
    _place,
    _project,
    compiled,
    inlined,
)
from robot_dynid.kernels.references import borrowed, keep
from robot_dynid.kernels.rotors import ROOM, _rotor_effort, _rotor_inertia
from robot_dynid.kernels.sliding_friction import _along

STAGES = 3
EXPLICIT = np.array([[0.0, 0.0, 0.0], [4 / 9, 0.0, 0.0], [-91 / 150, 77 / 50, 0.0]])
#: the last row also holds the weights
IMPLICIT = np.array([[1 / 8, 0.0, 0.0], [113 / 504, 83 / 504, 0.0], [1 / 7, 27 / 44, 75 / 308]])
#: the stages' positions of springs from the implicit velocities; its rows add up to second order
SPRING = np.array([[3 / 20, 0.0, 0.0], [1919 / 9450, 9 / 50, 0.0], [1 / 7, 27 / 44, 75 / 308]])
#: why a motion stopped
RUNNING, INDEFINITE, OVERFLOW = 0, 1, 2


@inlined
def _equations(tree, work, state, effort, scratch, equations):
    """Fill ``equations``: lower triangle of M, and effort minus bias, at ``state`` (q, v)."""
    geometry, parents, parameters, rotors = tree
    local, turned, wrench, mass, room, rest = scratch
    matrix, load = equations
    q, v = state
    n = parents.shape[0]
    for j in range(n):
        own = work[j + 1]
        for k in range(LANES):
            own[INPUT, k], own[INPUT + 1, k], own[INPUT + 2, k] = q[j, k], v[j, k], 0.0
        _place(work[parents[j] + 1], own, geometry[j], local)
        _inertia(own, parameters[j], turned)
        _inertial_force(own, parameters[j, 0], wrench)
        mass[j] = parameters[j, 0]
    _mass_matrix(work, parents, 0, mass, matrix, wrench)
    for j in range(n):
        _project(work[j + 1, AXIS:], work[j + 1, FORCE:], load[j])
        _add_spring(work[j + 1], parameters[j], load[j])
    for j in range(n, load.shape[0]):
        matrix[j] = 0.0
        load[j] = 0.0
    _rotor_inertia(work, parents, rotors, room, matrix)
    _rotor_effort(work, parents, rotors, (v, rest), room, load)
    for j in range(load.shape[0]):
        for k in range(LANES):
            load[j, k] = effort[j, k] - load[j, k]


@inlined
def _press(tree, work, load, scratch, pressing):
    """Fill the sizes of the terms of friction at the load of links where `_equations` put them.

    ``load`` is (friction, transmission (a, n) of the axes, parameters (n, 10) of the links).
    """
    friction, transmission, links = load
    _, turned, wrench = scratch[:3]
    effort, pressed, first, lines = pressing
    parents = tree[1]
    n = parents.shape[0]
    for j in range(first, n):
        _inertia(work[j + 1], links[j], turned)
        _inertial_force(work[j + 1], links[j, 0], wrench)
    for j in range(n - 1, first - 1, -1):
        _project(work[j + 1, AXIS:], work[j + 1, FORCE:], effort[j])
        if parents[j] >= first:
            _accumulate(work[parents[j] + 1], work[j + 1], FORCE, 6)
    for i in range(transmission.shape[0]):
        _along(transmission[i], effort, pressed[i])
    _set_sizes(friction, pressed, lines)


@inlined
def _least_pivots(matrix, factor, unused, pivots):
    """Fill ``pivots`` with the least pivot of ``matrix``, friction left out."""
    for j in range(matrix.shape[0]):
        for i in range(j + 1):
            for k in range(LANES):
                factor[j, i, k] = matrix[j, i, k]
    _eliminate(factor, unused, pivots)


@inlined
def _stage_arguments(stage, h, state, stages):
    """Fill the explicit arguments of a stage, and what precedes its implicit velocity."""
    q, v = state
    explicit_q, explicit_v, implicit_v, rate, _ = stages
    for j in range(q.shape[0]):
        for k in range(LANES):
            explicit_q[j, k] = q[j, k]
            explicit_v[stage, j, k] = implicit_v[stage, j, k] = v[j, k]
        for s in range(stage):
            a, b = h * EXPLICIT[stage, s], h * IMPLICIT[stage, s]
            for k in range(LANES):
                explicit_q[j, k] += a * explicit_v[s, j, k]
                explicit_v[stage, j, k] += a * rate[s, j, k]
                implicit_v[stage, j, k] += b * rate[s, j, k]


@inlined
def _spring_arguments(stage, h, q, stages):
    """Fill what precedes the position of springs in a stage."""
    _, _, implicit_v, _, spring_q = stages
    for j in range(q.shape[0]):
        for k in range(LANES):
            spring_q[j, k] = q[j, k]
        for s in range(stage):
            a = h * SPRING[stage, s]
            for k in range(LANES):
                spring_q[j, k] += a * implicit_v[s, j, k]


@inlined
def _finish_stage(stage, h, stages, change):
    """Complete the implicit velocity and fill the ``rate`` of the stage."""
    _, _, implicit_v, rate, _ = stages
    scale = 1.0 / (h * IMPLICIT[stage, stage])
    for j in range(change.shape[0]):
        for k in range(LANES):
            implicit_v[stage, j, k] += change[j, k]
            rate[stage, j, k] = scale * change[j, k]


@inlined
def _advance(h, state, stages):
    """Move the position by the weighted mean of the stages, the velocity to the last of them."""
    q, v = state
    _, _, implicit_v, _, _ = stages
    for j in range(q.shape[0]):
        for s in range(STAGES):
            for k in range(LANES):
                q[j, k] += h * IMPLICIT[STAGES - 1, s] * implicit_v[s, j, k]
        for k in range(LANES):
            v[j, k] = implicit_v[STAGES - 1, j, k]


@inlined
def _step(tree, axes, state, effort, h, memory):
    """Advance ``state`` (q, v) of a tile by ``h``; ``pivots`` get the least of mass matrices."""
    links, passes, stages, equations, change, lines, pivots, scratch, pressing = memory
    friction, transmission, load_links, gears = axes[:3], axes[3], axes[4], axes[5]
    matrix, load = equations
    factor, least, row, other = scratch[0]
    _first_speeds(friction, state[1], lines)
    for stage in range(STAGES):
        _stage_arguments(stage, h, state, stages)
        if load.shape[0] > tree[1].shape[0]:
            _spring_arguments(stage, h, state[0], stages)
        at, moving, before = stages[0], stages[1][stage], stages[2][stage]
        _equations(tree, links, (at, moving), effort, passes, equations)
        if transmission.shape[0] > 0:
            _press(tree, links, (friction, transmission, load_links), passes, (*pressing, lines))
        _explicit_friction(friction, moving, lines[SIZES], load, (row, other))
        if stage == 0:
            _least_pivots(matrix, factor, change, pivots)
        start = before, h * IMPLICIT[stage, stage], stages[4], h * SPRING[stage, stage]
        _implicit_step(friction, equations, start, lines, scratch, change, gears)
        for k in range(LANES):
            pivots[k] = min(pivots[k], least[k])
        _finish_stage(stage, h, stages, change)
    _advance(h, state, stages)
    _carry_gears(gears, state[0], False)


@inlined
def _stop(state, pivots, cause, step, place):
    """Record motions of the tile that cannot go on, and set their state to NaN."""
    q, v = state
    first, used, t = place
    for k in range(used):
        total = 0.0
        for j in range(q.shape[0]):
            total += q[j, k] + v[j, k]
        if pivots[k] > 0.0 and np.isfinite(total):
            continue
        if cause[first + k] == RUNNING:
            cause[first + k] = OVERFLOW if pivots[k] > 0.0 or np.isnan(pivots[k]) else INDEFINITE
            step[first + k] = t
        for j in range(q.shape[0]):
            q[j, k] = v[j, k] = np.nan


@inlined
def _watch_limits(q, limits, joint, step, place):
    """Record where a motion is outside the joint limits for the first time."""
    first, used, t = place
    for k in range(used):
        if step[first + k] >= 0:
            continue
        for j in range(q.shape[0]):
            if q[j, k] < limits[0, j] or q[j, k] > limits[1, j]:
                joint[first + k], step[first + k] = j, t
                break


@inlined
def _memory(joints, n, friction, gravity):
    """Return the work arrays of a tile: links, passes, stages, equations, then those of a step."""
    links = np.zeros((joints + 1, ROWS, LANES))
    _base(links, gravity)
    passes = (np.zeros((12, LANES)), np.zeros((9, LANES)), np.zeros((6, LANES)), np.zeros(joints),
              np.zeros((ROOM, LANES)), np.zeros((n, LANES)))
    stages = (np.zeros((n, LANES)), np.zeros((STAGES, n, LANES)), np.zeros((STAGES, n, LANES)),
              np.zeros((STAGES, n, LANES)), np.zeros((n, LANES)))
    equations = np.zeros((n, n, LANES)), np.zeros((n, LANES))
    change, axes, pivots = np.zeros((n, LANES)), friction[0].shape[0], np.zeros(LANES)
    lines = (np.zeros((axes, LANES)), np.zeros((axes, LANES)), np.zeros((axes, LANES)),
             np.zeros((axes, LANES)), np.zeros((friction[2].shape[0], LANES)),
             np.zeros((1, LANES)))
    scratch = ((np.zeros((n, n, LANES)), np.zeros(LANES), np.zeros(LANES), np.zeros(LANES)),
               np.zeros(LANES), np.zeros(LANES), np.zeros(LANES))
    pressing = np.zeros((joints, LANES)), np.zeros((axes, LANES)), _first_loading(friction)
    _set_sizes(friction, pressing[1], lines)
    return links, passes, stages, equations, change, lines, pivots, scratch, pressing


@inlined
def _take_start(start, place, state, held):
    """Fill a tile with the motions from ``place`` on; lanes beyond the last one rest at zero."""
    q, v = state
    first, used = place
    for k in range(LANES):
        for j in range(q.shape[0]):
            q[j, k] = start[0][first + k, j] if k < used else 0.0
            v[j, k] = start[1][first + k, j] if k < used else 0.0
            held[j, k] = 0.0


@inlined
def _put(rows, place, out):
    """Put the lanes of ``rows`` (m, LANES) that are used into ``out`` (K, m)."""
    first, used = place
    for k in range(used):
        for j in range(rows.shape[0]):
            out[first + k, j] = rows[j, k]


@inlined
def _motions(model, start, effort, clock, results, memory):
    """Integrate the motions of `rollout`, tile by tile; ``memory`` as of `_memory`."""
    tree, friction, limits = model
    motion, (limit_step, limit_joint, stop_step, cause) = results
    h, steps = clock
    count, samples, n = effort.shape
    state, held, step = memory
    (q, v), gears = state, friction[5]
    for first in range(0, count, LANES):
        used = min(LANES, count - first)
        _take_start(start, (first, used), state, held)
        _take_gears(gears, q, motion[2], (first, used))
        for t in range(samples):
            for k in range(used):
                for j in range(n):
                    held[j, k] = effort[first + k, t, j]
            for _ in range(steps):
                _step(tree, friction, state, held, h, step)
                _stop(state, step[6], cause, stop_step, (first, used, t))
                _watch_limits(q, limits, limit_joint, limit_step, (first, used, t))
            _put(q, (first, used), motion[0][:, t])
            _put(v, (first, used), motion[1][:, t])
        _put_gears(gears, (first, used), motion[2])


@inlined
def _rollout(tree, gravity, friction, limits, start, effort, clock, motion, events):  # noqa: PLR0913
    """Do what `rollout` does."""
    n = effort.shape[2]
    memory = ((np.zeros((n, LANES)), np.zeros((n, LANES))), np.zeros((n, LANES)),
              _memory(tree[1].shape[0], n, friction, gravity))
    _motions(borrowed((tree, friction, limits)), borrowed(start), borrowed(effort), clock,
             borrowed((motion, events)), borrowed(memory))
    keep(memory)


@compiled
def rollout(tree, gravity, friction, limits, start, effort, clock, motion, events):  # noqa: PLR0913
    """Integrate K motions of T samples.

    ``tree`` (geometry, parents, parameters (joints, 10), rotors as in _rotor_kernel) with n
    coordinates, those beyond the joints move by their rotors alone; ``friction``: axes (m, n),
    straight (m, 2), terms of steady sliding (t, COLUMNS) by axis, transmission (m, joints) and
    parameters (joints, 10) of the links that load them, or (0, ...), `gears` or None; ``limits``
    (2, n); ``start`` q, v (K, n); ``effort`` (K, T, n), held for ``clock`` (internal step [s],
    internal steps per sample). Fills ``motion`` q, v (K, T, n), moves its states (K, k) of gears
    on, and fills ``events`` (K,) each: sample and joint of the first excess of a limit, sample and
    cause of a stop.
    """
    _rollout(tree, gravity, friction, limits, start, effort, clock, motion, events)
