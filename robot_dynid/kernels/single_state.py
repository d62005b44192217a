"""Recursions of one state at a time: the passes of the tiles at a width of one sample.

Work arrays are (n + 1, ROWS, 1), as of `newton_euler`; allocated in the kernel that uses them, so
that the compiler sees their length.
"""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels import forward_dynamics as forward
from robot_dynid.kernels import inverse_dynamics as inverse
from robot_dynid.kernels import newton_euler, rotors
from robot_dynid.kernels import rollout as motions
from robot_dynid.kernels.newton_euler import (
    AXIS,
    FORCE,
    INPUT,
    MC,
    ROWS,
    VEL,
    at_width,
    compiled,
    inlined,
)
from robot_dynid.kernels.rotors import LINE, ROOM, SHARE, SPIN

_base, _place, _inertia, _wrench, _effort, _project, _accumulate, _add_spring = at_width(
    1, newton_euler._base, newton_euler._place, newton_euler._inertia, newton_euler._wrench,
    newton_euler._effort, newton_euler._project, newton_euler._accumulate,
    newton_euler._add_spring)
_line, _spin, _along, _reflected, _rotor_effort = at_width(
    1, rotors._line, rotors._spin, rotors._along, rotors._reflected, rotors._rotor_effort)

_accelerations, _efforts, _rollout = at_width(
    1, forward._accelerations, inverse._efforts, motions._rollout)

#: most states of a call that are faster one by one than as a tile
FEW = 6


@inlined
def place(tree, q, qd, qdd, work):
    """Fill pose and motion of all links in ``work``; ``q``, ``qd``, ``qdd`` (n,)."""
    geometry, parents, gravity = tree
    local = np.empty((12, 1))
    _base(work, gravity)
    for j in range(parents.shape[0]):
        own = work[j + 1]
        own[INPUT, 0], own[INPUT + 1, 0], own[INPUT + 2, 0] = q[j], qd[j], qdd[j]
        _place(work[parents[j] + 1], own, geometry[j], local)


@inlined
def effort_of(parents, parameters, work, out):
    """Fill ``out`` (n,) with the effort of the state that was placed."""
    _effort(work, parents, parameters, out.reshape((out.shape[0], 1)))


@inlined
def _screw_rate(parent, own, out):
    """Fill ``out`` (6, 1) with the motion cross product of the parent's twist and AXIS."""
    ax, ay, az = own[AXIS, 0], own[AXIS + 1, 0], own[AXIS + 2, 0]
    bx, by, bz = own[AXIS + 3, 0], own[AXIS + 4, 0], own[AXIS + 5, 0]
    wx, wy, wz = parent[VEL, 0], parent[VEL + 1, 0], parent[VEL + 2, 0]
    vx, vy, vz = parent[VEL + 3, 0], parent[VEL + 4, 0], parent[VEL + 5, 0]
    out[0, 0], out[1, 0], out[2, 0] = wy * az - wz * ay, wz * ax - wx * az, wx * ay - wy * ax
    out[3, 0] = wy * bz - wz * by + vy * az - vz * ay
    out[4, 0] = wz * bx - wx * bz + vz * ax - vx * az
    out[5, 0] = wx * by - wy * bx + vx * ay - vy * ax


@inlined
def momentum_of(tree, parameters, work, out, rate):
    """Fill ``out`` and ``rate`` (n,) with M(q) qd and dL/dq of the state that was placed.

    With the momentum H_i of all links beyond joint i, moving that joint turns them past the twist
    v of its parent, so dT/dq_i = H_i . (v x s_i); the weight adds its power along the screw s_i.
    """
    _, parents, gravity = tree
    n = parents.shape[0]
    turned, axis, weight, power = np.empty((9, 1)), np.empty((6, 1)), np.empty((6, 1)), np.empty(1)
    mass, (gx, gy, gz) = parameters[:, 0].copy(), (gravity[0], gravity[1], gravity[2])
    for j in range(n):
        _inertia(work[j + 1], parameters[j], turned)
        _wrench(work[j + 1], VEL, mass[j], work[j + 1, FORCE:])
    for j in range(n - 1, -1, -1):
        own, parent = work[j + 1], work[parents[j] + 1]
        _project(own[AXIS:], own[FORCE:], power)
        out[j] = power[0]
        _screw_rate(parent, own, axis)
        _project(axis, own[FORCE:], power)
        rate[j] = power[0]
        hx, hy, hz = own[MC, 0], own[MC + 1, 0], own[MC + 2, 0]
        weight[0, 0], weight[1, 0], weight[2, 0] = mass[j] * gx, mass[j] * gy, mass[j] * gz
        weight[3, 0], weight[4, 0] = hy * gz - hz * gy, hz * gx - hx * gz
        weight[5, 0] = hx * gy - hy * gx
        _project(own[AXIS:], weight, power)
        rate[j] += power[0]
        power[0] = 0.0
        _add_spring(own, parameters[j], power)
        rate[j] -= power[0]
        if parents[j] >= 0:
            mass[parents[j]] += mass[j]
            _accumulate(parent, own, MC, 3)
            _accumulate(parent, own, FORCE, 6)


@inlined
def add_rotor_effort(parents, rotors, motion, work, out):
    """Add to ``out`` (n,) the effort of rotors, see `kernels.rotors`.

    ``motion`` are qd, qdd (n,) of the state that was placed.
    """
    n, room = out.shape[0], np.empty((ROOM, 1))
    v, a, load = motion[0].reshape((n, 1)), motion[1].reshape((n, 1)), out.reshape((n, 1))
    _reflected(rotors[0], a, load)
    _rotor_effort(work, parents, rotors, (v, a), room, load)


@inlined
def add_rotor_momentum(parents, rotors, qd, work, results):
    """Add what rotors have to M(q) qd and dL/dq, each (n,), of the state that was placed.

    As `momentum_of`, with the momentum that the spin of a rotor gives to its link.
    """
    inertia, carriers, axes, motions = rotors
    out, rate = results
    n, room, axis = out.shape[0], np.empty((ROOM, 1)), np.empty((6, 1))
    v = qd.reshape((n, 1))
    _reflected(inertia, v, out.reshape((n, 1)))
    for r in range(carriers.shape[0]):
        own = work[carriers[r] + 1]
        _line(own, axes[r], room)
        _spin(motions[r], v, v, room)
        _along(own[VEL:], room, LINE)
        for j in range(n):
            out[j] += motions[r, j] * room[SHARE, 0]
        j = carriers[r]
        while j >= 0:
            _along(work[j + 1, AXIS:], room, LINE)
            out[j] += room[SPIN, 0] * room[SHARE, 0]
            _screw_rate(work[parents[j] + 1], work[j + 1], axis)
            _along(axis, room, LINE)
            rate[j] += room[SPIN, 0] * room[SHARE, 0]
            j = parents[j]


@compiled
def momentum(tree, links, inputs, results):
    """Fill ``results`` with M(q) qd and dL/dq, each (N, n); ``inputs`` are q, qd (N, n).

    ``links`` are their parameters (n, 10) and rotors.
    """
    (q, qd), (out, rate), (parameters, rotors) = inputs, results, links
    n = q.shape[1]
    work, still = np.zeros((n + 1, ROWS, 1)), np.zeros(n)
    for k in range(q.shape[0]):
        place(tree, q[k], qd[k], still, work)
        momentum_of(tree, parameters, work, out[k], rate[k])
        add_rotor_momentum(tree[1], rotors, qd[k], work, (out[k], rate[k]))


@compiled
def forward_dynamics(tree, links, friction, inputs, out, verdicts):
    """Fill ``out`` and ``verdicts`` as `forward_dynamics.forward_dynamics`, state by state."""
    _accelerations(tree, links, friction, inputs, out, verdicts)


@compiled
def inverse_dynamics(tree, links, friction, inputs, out):
    """Fill ``out`` as `inverse_dynamics.inverse_dynamics`, state by state."""
    _efforts(tree, links, friction, inputs, out)


@compiled
def rollout(tree, gravity, friction, limits, start, effort, clock, motion, events):  # noqa: PLR0913
    """Integrate motions as `rollout.rollout`, motion by motion."""
    _rollout(tree, gravity, friction, limits, start, effort, clock, motion, events)
