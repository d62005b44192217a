"""Compiled mass matrix and forward dynamics; work arrays as of `newton_euler`."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.friction import LOAD, ROW
from robot_dynid.kernels.newton_euler import (
    AXIS,
    FORCE,
    LANES,
    MC,
    ROWS,
    _accumulate,
    _add_spring,
    _base,
    _forward_pass,
    _inertia,
    _inertial_force,
    _project,
    _wrench,
    compiled,
    inlined,
)
from robot_dynid.kernels.references import borrowed, keep
from robot_dynid.kernels.rotors import ROOM, _rotor_effort, _rotor_inertia
from robot_dynid.kernels.sliding_friction import _add_torque, _settled_loads, _sliding_parts

#: verdict on a state that no acceleration solves: friction that grows faster than its load falls
UNSETTLED = -np.inf


@inlined
def _mass_matrix(work, parents, first, mass, matrix, wrench):
    """Composite bodies: lower triangle of ``matrix`` (n, n, LANES), and bias torque in place.

    Rows from the link ``first`` on. Sums MC, SIG, FORCE and MOMENT towards it, so it is called
    once per tile.
    """
    for j in range(parents.shape[0] - 1, first - 1, -1):
        own = work[j + 1]
        _wrench(own, AXIS, mass[j], wrench)
        for i in range(j):
            matrix[j, i] = 0.0
        i = j
        while i >= 0:
            _project(work[i + 1, AXIS:], wrench, matrix[j, i])
            i = parents[i]
        if parents[j] >= first:
            _accumulate(work[parents[j] + 1], own, MC, 9)
            _accumulate(work[parents[j] + 1], own, FORCE, 6)
            mass[parents[j]] += mass[j]


@compiled
def mass_matrix(geometry, parents, gravity, parameters, q, out):
    """Composite-rigid-body algorithm: ``out`` (N, n, n) from positions ``q`` (N, n)."""
    n = parents.shape[0]
    work = np.zeros((n + 1, ROWS, LANES))
    turned = np.empty((9, LANES))
    matrix, wrench = np.zeros((n, n, LANES)), np.empty((6, LANES))
    _base(work, gravity)
    for first in range(0, out.shape[0], LANES):
        used = _forward_pass(work, parents, geometry, (q, q, q), first)
        for j in range(n):
            _inertia(work[j + 1], parameters[j], turned)
        _mass_matrix(work, parents, 0, parameters[:, 0].copy(), matrix, wrench)
        for j in range(n):
            for i in range(j + 1):
                for k in range(used):
                    out[first + k, i, j] = out[first + k, j, i] = matrix[j, i, k]


@inlined
def _eliminate(matrix, right, pivots):
    """Factorise L D L^T in place, L^-1 times ``right`` (n, LANES); ``pivots`` gets the least D.

    The diagonal then holds the reciprocals of D.
    """
    for j in range(right.shape[0]):
        for i in range(j):
            for h in range(i):
                for k in range(LANES):
                    matrix[j, i, k] -= matrix[j, h, k] * matrix[i, h, k]
        for i in range(j):
            for k in range(LANES):
                scaled = matrix[j, i, k] * matrix[i, i, k]
                matrix[j, j, k] -= scaled * matrix[j, i, k]
                matrix[j, i, k] = scaled
                right[j, k] -= scaled * right[i, k]
        for k in range(LANES):
            pivots[k] = matrix[j, j, k] if j == 0 else min(pivots[k], matrix[j, j, k])
            matrix[j, j, k] = 1.0 / matrix[j, j, k]


@inlined
def _forward_substitute(factor, right):
    """Begin a solution with the ``factor`` of `_eliminate`: L^-1 times ``right`` (n, LANES)."""
    for j in range(right.shape[0]):
        for i in range(j):
            for k in range(LANES):
                right[j, k] -= factor[j, i, k] * right[i, k]


@inlined
def _substitute(matrix, right):
    """Finish the solution that ``_eliminate`` began."""
    n = right.shape[0]
    for j in range(n - 1, -1, -1):
        for k in range(LANES):
            right[j, k] *= matrix[j, j, k]
        for i in range(j + 1, n):
            for k in range(LANES):
                right[j, k] -= matrix[i, j, k] * right[i, k]


@inlined
def _links(work, tree, parameters, first, scratch, equations):
    """Fill ``equations``, the lower triangle of M and the bias (n, LANES), of placed links.

    Only those from the link ``first`` on are looked at, and only their rows are filled.
    """
    turned, wrench, mass = scratch
    matrix, bias = equations
    parents = tree[1]
    for j in range(first, parents.shape[0]):
        _inertia(work[j + 1], parameters[j], turned)
        _inertial_force(work[j + 1], parameters[j, 0], wrench)
        mass[j] = parameters[j, 0]
    _mass_matrix(work, parents, first, mass, matrix, wrench)
    for j in range(first, parents.shape[0]):
        _project(work[j + 1, AXIS:], work[j + 1, FORCE:], bias[j])
        _add_spring(work[j + 1], parameters[j], bias[j])


@inlined
def _loaded_axes(friction):
    """Return the indices of the axes whose friction grows with their load."""
    terms = friction[2]
    loaded = np.zeros(friction[0].shape[0])
    for e in range(terms.shape[0]):
        if terms[e, LOAD] != 0.0:
            loaded[int(terms[e, ROW])] = 1.0
    return np.flatnonzero(loaded)


@inlined
def _first_loading(friction):
    """Return the first link whose effort loads an axis with friction that grows."""
    terms, transmission = friction[2], friction[3]
    first = friction[4].shape[0]
    for e in range(terms.shape[0]):
        for j in range(first):
            if terms[e, LOAD] != 0.0 and transmission[int(terms[e, ROW]), j] != 0.0:
                first = min(first, j)
    return first


@inlined
def _transmit(transmission, loaded, links, loads):
    """Fill the ``loads`` of the loaded axes: rows (m, n, LANES) T M and T h (m, LANES)."""
    (matrix, bias), (rows, still) = links, loads
    n = bias.shape[0]
    rows[:] = 0.0
    still[:] = 0.0
    for m in range(loaded.shape[0]):
        for j in range(n):
            share = transmission[loaded[m], j]
            if share == 0.0:
                continue
            for k in range(LANES):
                still[m, k] += share * bias[j, k]
            for i in range(n):
                for k in range(LANES):
                    rows[m, i, k] += share * (matrix[j, i, k] if i <= j else matrix[i, j, k])


@inlined
def _add_load(rows, a, load):
    """Add what the axis of ``rows`` (n, LANES) transmits under accelerations ``a`` to ``load``."""
    for j in range(rows.shape[0]):
        for k in range(LANES):
            load[k] += rows[j, k] * a[j, k]


@inlined
def _under_load(friction, factor, used, loads, memory, a):
    """Turn accelerations ``a`` (N, LANES) without the friction that grows into those with it.

    ``factor`` is that of `_eliminate`; ``memory`` as of `_load_memory`, with ``grows`` filled.
    """
    axes, (rows, p) = friction[0], loads
    loaded, grows, pushed, shares, scratch, settled = memory
    for m in range(loaded.shape[0]):
        own = loaded[m]
        for j in range(a.shape[0]):
            for k in range(LANES):
                pushed[m, j, k] = axes[own, j] * grows[own, k]
        _forward_substitute(factor, pushed[m])
        _substitute(factor, pushed[m])
        _add_load(rows[m], a, p[m])
    for m in range(loaded.shape[0]):
        for i in range(loaded.shape[0]):
            for k in range(LANES):
                shares[m, i, k] = 0.0
            _add_load(rows[m], pushed[i], shares[m, i])
    _settled_loads(shares, used, p, scratch, settled)
    for m in range(loaded.shape[0]):
        for j in range(a.shape[0]):
            for k in range(LANES):
                a[j, k] -= pushed[m, j, k] * abs(p[m, k])


@inlined
def _load_memory(friction, count):
    """Return the work arrays of `_under_load` for ``count`` coordinates."""
    axes = friction[0].shape[0]
    loaded = _loaded_axes(friction)
    own = loaded.shape[0]
    scratch = (np.empty((own, own, LANES)), np.empty((own, LANES)), np.empty((own, own)),
               np.empty(own), np.empty(own))
    return (loaded, np.zeros((axes, LANES)), np.empty((own, count, LANES)),
            np.empty((own, own, LANES)), scratch, np.ones(LANES))


@inlined
def _rotors(work, parents, rotors, scratch, equations):
    """Add what rotors do to ``equations`` of links, and those of motors apart from their links."""
    room, v, rest = scratch
    matrix, bias = equations
    for j in range(parents.shape[0], bias.shape[0]):
        matrix[j] = 0.0
        bias[j] = 0.0
    _rotor_effort(work, parents, rotors, (v, rest), room, bias)
    _rotor_inertia(work, parents, rotors, room, matrix)


@inlined
def _forward_memory(tree, friction, count):
    """Return the work arrays of `_accelerate` for ``count`` coordinates."""
    n, axes = tree[1].shape[0], friction[0].shape[0]
    work = np.zeros((n + 1, ROWS, LANES))
    _base(work, tree[2])
    loading = _load_memory(friction, count)
    own = loading[0].shape[0]
    return (work, (np.empty((9, LANES)), np.empty((6, LANES)), np.empty(n)),
            (np.zeros((count, count, LANES)), np.empty((count, LANES))), np.empty(LANES),
            (np.empty((ROOM, LANES)), np.zeros((count, LANES)), np.zeros((count, LANES))),
            (np.empty((axes, LANES)), (np.empty(LANES), np.empty(LANES))), loading,
            (np.empty((own, n, LANES)), np.empty((own, LANES))))


@inlined
def _net_effort(effort, first, used, right):
    """Turn the bias ``right`` (N, LANES) into effort minus bias."""
    for j in range(right.shape[0]):
        for k in range(used):
            right[j, k] = effort[first + k, j] - right[j, k]


@inlined
def _accelerate(model, inputs, results, memory):
    """Fill the results of `forward_dynamics`, tile by tile."""
    tree, (parameters, rotors), friction = model
    (q, qd, effort, still), (out, verdicts) = inputs, results
    work, scratch, equations, least, turning, (torque, row), loading, loads = memory
    (matrix, right), v, loaded, settled = equations, turning[1], loading[0], loading[5]
    parents, start = tree[1], _first_loading(friction)
    for first in range(0, out.shape[0], LANES):
        used = _forward_pass(work, parents, tree[0], (q, qd, still), first)
        for j in range(v.shape[0]):
            for k in range(used):
                v[j, k] = qd[first + k, j]
        _sliding_parts(friction, v, row, torque, loading[1])
        if loaded.shape[0] > 0:
            _links(work, tree, friction[4], start, scratch, equations)
            _transmit(friction[3], loaded, (matrix, right[:parents.shape[0]]), loads)
        _links(work, tree, parameters, 0, scratch, equations)
        _rotors(work, parents, rotors, turning, equations)
        _add_torque(friction[0], torque, right)
        _net_effort(effort, first, used, right)
        _eliminate(matrix, right, least)
        _substitute(matrix, right)
        if loaded.shape[0] > 0:
            _under_load(friction, matrix, used, loads, loading, right)
        for k in range(used):
            verdicts[first + k] = least[k] if settled[k] > 0.0 else UNSETTLED
            for j in range(right.shape[0]):
                out[first + k, j] = right[j, k]


@inlined
def _accelerations(tree, links, friction, inputs, out, verdicts):
    """Do what `forward_dynamics` does."""
    q, qd, effort = inputs
    still, memory = np.zeros_like(q), _forward_memory(tree, friction, out.shape[1])
    _accelerate(borrowed((tree, links, friction)), borrowed((q, qd, effort, still)),
                borrowed((out, verdicts)), borrowed(memory))
    keep((still, memory))


@compiled
def forward_dynamics(tree, links, friction, inputs, out, verdicts):
    """Accelerations ``out`` (K, N) from ``inputs`` (q, qd, effort), each (K, N).

    ``tree``: geometry, parents, gravity; ``links``: their parameters (n, 10) and rotors, as of
    `kernels.rotors`, of N coordinates, those beyond the joints move by their rotors alone;
    ``friction``: axes (a, N), straight (a, ..), terms (t, COLUMNS) of steady sliding by axis,
    transmission (a, n) and parameters (n, 10) of the links that load them, or (0, ...).
    ``verdicts`` (K,) receives the least pivot of the factorisation of the mass matrix, which is
    positive exactly where that is definite; UNSETTLED where friction under load leaves no
    acceleration.
    """
    _accelerations(tree, links, friction, inputs, out, verdicts)
