"""Friction of axes as expressions: the terms of `kernels.friction`, each with its constants."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.export.c.expressions import Graph, Node
from robot_dynid.friction import AxisFriction
from robot_dynid.kernels.friction import (
    ABOVE,
    CONSTANT,
    DAHL,
    FADE,
    HIGHEST,
    KIND,
    LOAD,
    LOWEST,
    POWER,
    RAMP,
    ROW,
    SCALE,
    SIDE,
    SLIDING,
    STOP,
    TANH,
    WEIGHT,
)
from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class AxisTorque:
    """Friction of one axis: ``plain`` + ``loaded`` times the size of its load."""

    plain: Node
    loaded: Node


@dataclass(frozen=True, eq=False)
class State:
    """A state of friction: its axis, kind and length; terms that agree in these share it."""

    axis: int
    kind: float
    length: float


def states_of(friction: AxisFriction) -> tuple[State, ...]:
    """Return the states of friction with a past, by axis."""
    found = {(int(term[ROW]), float(term[KIND]), float(term[SCALE])): None
             for term in friction.terms if term[KIND] >= STOP}
    return tuple(State(*key) for key in found)


def sliding(friction: AxisFriction, velocity: Sequence[Node]) -> list[AxisTorque]:
    """Return the friction of all axes in steady sliding at the ``velocity`` of each."""
    units = [(term, tangent(term, velocity[int(term[ROW])])) for term in friction.sliding.terms]
    return _summed(friction, velocity, units)


def stepped(
    friction: AxisFriction, velocity: Sequence[Node], states: Sequence[tuple[State, Node]]
) -> list[AxisTorque]:
    """Return the friction of all axes with a past; ``states`` are those at the end of the step."""
    known = {(s.axis, s.kind, s.length): z for s, z in states}
    units = []
    for term in friction.terms:
        axis = int(term[ROW])
        if term[KIND] < STOP:
            units.append((term, tangent(term, velocity[axis])))
            continue
        z = known[axis, float(term[KIND]), float(term[SCALE])]
        units.append((term, z * _share(term, velocity[axis])))
    return _summed(friction, velocity, units)


def begun(velocity: Node) -> Node:
    """Return a state where a motion begins: none at rest, else that of sliding."""
    return clipped(velocity / SLIDING, -1.0, 1.0)


def moved(state: State, z: Node, travel: Node) -> Node:
    """Return a state after a ``travel`` of its axis."""
    graph = z.graph
    if state.kind == DAHL:
        left = graph.call('exp', -(graph.call('fabs', travel) / state.length))
        return z * left + graph.call('copysign', 1.0 - left, travel)
    return clipped(z + travel / state.length, -1.0, 1.0)


def clipped(value: Node, low: float, high: float) -> Node:
    """Return a value within bounds, each of which may be infinite."""
    graph = value.graph
    if math.isfinite(low):
        value = graph.if_less(value, low, low, value)
    return graph.if_less(high, value, high, value) if math.isfinite(high) else value


def tangent(term: FloatArray, velocity: Node) -> Node:
    """Return a term (COLUMNS,) without a past, of weight one, at a velocity."""
    graph = velocity.graph
    edge = clipped(velocity, float(term[LOWEST]), float(term[HIGHEST]))
    value, slope = _shape(term, edge)
    if term[FADE] != 0.0:
        share, falls = _fading(term, edge)
        slope, value = slope * share + value * falls, value * share
    if edge is not velocity:
        value = value + slope * (velocity - edge)
    if term[SIDE] != 0.0:
        value = graph.if_less(float(term[SIDE]) * velocity, 0.0, 0.0, value)
    if term[ABOVE] != 0.0:
        value = graph.if_less(graph.call('fabs', edge), float(term[ABOVE]), 0.0, value)
    return value


def _shape(term: FloatArray, velocity: Node) -> tuple[Node, Node]:
    """Return the shape of a term (COLUMNS,) at a velocity, and its slope."""
    graph, kind, scale = velocity.graph, term[KIND], float(term[SCALE])
    if kind == RAMP:
        inside = graph.if_less(graph.call('fabs', velocity), scale, 1.0 / scale, 0.0)
        return clipped(velocity / scale, -1.0, 1.0), inside
    if kind == TANH:
        steep = graph.call('tanh', velocity / scale)
        return steep, (1.0 - steep * steep) / scale
    if kind == POWER:
        return _power(velocity, scale)
    assert kind == CONSTANT
    return graph.node(1.0), graph.node(0.0)


def _power(velocity: Node, scale: float) -> tuple[Node, Node]:
    """Return v |v|^(scale - 1), and its slope."""
    graph = velocity.graph
    if scale == 1.0:
        return velocity, graph.node(1.0)
    size = graph.call('fabs', velocity)
    if scale != 2.0:
        size = graph.call('pow', size, scale - 1.0)
    return velocity * size, scale * size


def _fading(term: FloatArray, velocity: Node) -> tuple[Node, Node]:
    """Return the share of a term (COLUMNS,) that is left at a velocity, and its slope."""
    graph, over = velocity.graph, float(term[FADE])
    if over == 0.0:
        return graph.node(1.0), graph.node(0.0)
    steep = graph.call('tanh', graph.call('fabs', velocity) / over)
    falls = (1.0 - steep * steep) / over
    return 1.0 - steep, graph.if_less(velocity, 0.0, falls, graph.if_less(
        0.0, velocity, -falls, 0.0))


def _share(term: FloatArray, velocity: Node) -> Node:
    """Return the share of a state of a term (COLUMNS,) that is left at a velocity."""
    edge = clipped(velocity, float(term[LOWEST]), float(term[HIGHEST]))
    share, falls = _fading(term, edge)
    return share if edge is velocity else share + falls * (velocity - edge)


def _summed(
    friction: AxisFriction, velocity: Sequence[Node], units: Sequence[tuple[FloatArray, Node]]
) -> list[AxisTorque]:
    graph: Graph = velocity[0].graph
    found = []
    for i, (viscous, offset) in enumerate(friction.straight):
        plain, loaded = float(viscous) * velocity[i] + float(offset), graph.node(0)
        for term, unit in units:
            if int(term[ROW]) == i:
                plain = plain + float(term[WEIGHT]) * unit
                loaded = loaded + (float(term[LOAD]) * unit if friction.needs_load else 0.0)
        found.append(AxisTorque(plain, loaded))
    return found


def loaded_axes(friction: AxisFriction) -> tuple[int, ...]:
    """Return the axes whose friction grows with their load."""
    if not friction.needs_load:
        return ()
    rows = friction.terms[friction.terms[:, LOAD] != 0.0, ROW]
    return tuple(int(i) for i in np.unique(rows))
