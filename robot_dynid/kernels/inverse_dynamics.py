"""Compiled inverse dynamics of links, rotors and friction; work arrays as of `newton_euler`."""

from __future__ import annotations

import numpy as np

from robot_dynid.kernels.newton_euler import (
    LANES,
    ROWS,
    _base,
    _effort,
    _forward_pass,
    compiled,
    inlined,
)
from robot_dynid.kernels.references import borrowed, keep
from robot_dynid.kernels.rotors import ROOM, _reflected, _rotor_effort
from robot_dynid.kernels.sliding_friction import _add_torque, _along, _sliding_parts


@inlined
def _press(friction, effort, row, grows, torque):
    """Add to ``torque`` (a, LANES) what ``grows`` with the ``effort`` (n, LANES) of the links."""
    transmission = friction[3]
    for i in range(transmission.shape[0]):
        _along(transmission[i], effort, row)
        for k in range(LANES):
            torque[i, k] += grows[i, k] * abs(row[k])


@inlined
def _inverse_memory(tree, friction):
    """Return the work arrays of `_move`."""
    n, axes = tree[1].shape[0], friction[0].shape[0]
    work = np.zeros((n + 1, ROWS, LANES))
    _base(work, tree[2])
    return (work, np.empty((ROOM, LANES)),
            (np.zeros((n, LANES)), np.zeros((n, LANES)), np.empty((n, LANES))),
            (np.empty((axes, LANES)), np.empty((axes, LANES))),
            (np.empty(LANES), np.empty(LANES)))


@inlined
def _move(model, inputs, out, memory):
    """Fill the results of `inverse_dynamics`, tile by tile."""
    tree, (parameters, rotors), friction = model
    work, room, (v, a, load), (torque, grows), row = memory
    parents = tree[1]
    for first in range(0, out.shape[0], LANES):
        used = _forward_pass(work, parents, tree[0], inputs, first)
        for j in range(v.shape[0]):
            for k in range(used):
                v[j, k], a[j, k] = inputs[1][first + k, j], inputs[2][first + k, j]
        _sliding_parts(friction, v, row, torque, grows)
        if friction[3].shape[0] > 0:
            _effort(work, parents, friction[4], load)
            _press(friction, load, row[0], grows, torque)
        _effort(work, parents, parameters, load)
        _reflected(rotors[0], a, load)
        _rotor_effort(work, parents, rotors, (v, a), room, load)
        _add_torque(friction[0], torque, load)
        for j in range(load.shape[0]):
            for k in range(used):
                out[first + k, j] = load[j, k]


@inlined
def _efforts(tree, links, friction, inputs, out):
    """Do what `inverse_dynamics` does."""
    memory = _inverse_memory(tree, friction)
    _move(borrowed((tree, links, friction)), borrowed(inputs), borrowed(out), borrowed(memory))
    keep(memory)


@compiled
def inverse_dynamics(tree, links, friction, inputs, out):
    """Efforts ``out`` (K, n) from ``inputs`` (q, qd, qdd), each (K, n).

    ``tree``, ``links`` and ``friction`` as of `forward_dynamics`, without coordinates beyond the
    joints.
    """
    _efforts(tree, links, friction, inputs, out)
