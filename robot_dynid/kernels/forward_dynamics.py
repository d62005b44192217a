"""Compiled mass matrix and forward dynamics; work arrays as of `newton_euler`."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import (
    AXIS,
    FORCE,
    LANES,
    MC,
    ROWS,
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
from robot_dynid.kernels.rotors import ROOM, _rotor_effort, _rotor_inertia


@inlined
def _mass_matrix(work, parents, mass, matrix, wrench):
    """Composite bodies: lower triangle of ``matrix`` (n, n, LANES), and bias torque in place.

    Sums MC, SIG, FORCE and MOMENT towards the base, so it is called once per tile.
    """
    for j in range(parents.shape[0] - 1, -1, -1):
        own = work[j + 1]
        _wrench(own, AXIS, mass[j], wrench)
        for i in range(j):
            matrix[j, i] = 0.0
        i = j
        while i >= 0:
            _project(work[i + 1, AXIS:], wrench, matrix[j, i])
            i = parents[i]
        if parents[j] >= 0:
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
        _mass_matrix(work, parents, parameters[:, 0].copy(), matrix, wrench)
        for j in range(n):
            for i in range(j + 1):
                for k in range(used):
                    out[first + k, i, j] = out[first + k, j, i] = matrix[j, i, k]


@inlined
def _eliminate(matrix, right, pivots):
    """Factorise L D L^T in place, L^-1 times ``right`` (n, LANES); ``pivots`` gets the least D."""
    for j in range(right.shape[0]):
        for i in range(j):
            for h in range(i):
                for k in range(LANES):
                    matrix[j, i, k] -= matrix[j, h, k] * matrix[i, h, k]
        for i in range(j):
            for k in range(LANES):
                scaled = matrix[j, i, k] / matrix[i, i, k]
                matrix[j, j, k] -= scaled * matrix[j, i, k]
                matrix[j, i, k] = scaled
                right[j, k] -= scaled * right[i, k]
        for k in range(LANES):
            pivots[k] = matrix[j, j, k] if j == 0 else min(pivots[k], matrix[j, j, k])


@inlined
def _substitute(matrix, right):
    """Finish the solution that ``_eliminate`` began."""
    n = right.shape[0]
    for j in range(n - 1, -1, -1):
        for k in range(LANES):
            right[j, k] = right[j, k] / matrix[j, j, k]
        for i in range(j + 1, n):
            for k in range(LANES):
                right[j, k] -= matrix[i, j, k] * right[i, k]


@compiled
def forward_dynamics(  # noqa: PLR0913
    geometry, parents, gravity, parameters, rotors, inputs, out, pivots,
):
    """Accelerations ``out`` (N, n) from ``inputs`` (q, qd, effort) and (n, 10) parameters.

    ``rotors`` as of `kernels.rotors`. ``pivots`` (N,) receives the least pivot of the
    factorisation of the mass matrix, which is positive exactly where that is definite.
    """
    q, qd, effort = inputs
    n = parents.shape[0]
    work = np.zeros((n + 1, ROWS, LANES))
    turned = np.empty((9, LANES))
    matrix, wrench = np.zeros((n, n, LANES)), np.empty((6, LANES))
    right, least = np.empty((n, LANES)), np.empty(LANES)
    room, v, rest = np.empty((ROOM, LANES)), np.zeros((n, LANES)), np.zeros((n, LANES))
    still = np.zeros_like(q)
    _base(work, gravity)
    for first in range(0, out.shape[0], LANES):
        used = _forward_pass(work, parents, geometry, (q, qd, still), first)
        for j in range(n):
            _inertia(work[j + 1], parameters[j], turned)
            _inertial_force(work[j + 1], parameters[j, 0], wrench)
        _mass_matrix(work, parents, parameters[:, 0].copy(), matrix, wrench)
        for j in range(n):
            _project(work[j + 1, AXIS:], work[j + 1, FORCE:], right[j])
            for k in range(used):
                v[j, k] = qd[first + k, j]
        _rotor_effort(work, parents, rotors, (v, rest), room, right)
        _rotor_inertia(work, parents, rotors, room, matrix)
        for j in range(n):
            for k in range(used):
                right[j, k] = effort[first + k, j] - right[j, k]
        _eliminate(matrix, right, least)
        _substitute(matrix, right)
        for k in range(used):
            pivots[first + k] = least[k]
            for j in range(n):
                out[first + k, j] = right[j, k]
