"""Friction of all axes of a robot with fixed parameter values, as tables for the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dynid.friction.law import FrictionLaw
from robot_dynid.friction.terms import CONSTANT, POWER, slid, table_of, warm
from robot_dynid.kernels.friction import (
    ABOVE,
    COLUMNS,
    FADE,
    HOLDS,
    KIND,
    LOAD,
    REFERENCE,
    ROW,
    SCALE,
    SIDE,
    WEIGHT,
    WIDTH,
    sliding_torque,
)
from robot_dynid.types import FloatArray, contiguous, frozen

#: axes, straight, terms, transmission and links
FrictionTables = tuple[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True, eq=False)
class AxisFriction:
    """Friction of a axes whose motion is ``axes`` (a, n) @ the motion of n coordinates.

    ``straight`` (a, 2): viscous friction [N m s/rad, N s/m] and offset [N m, N]; ``terms`` (t,
    COLUMNS): all other terms, by axis, see `kernels.friction`. Joints are warm and at the
    reference temperature. If friction depends on load, the load is ``transmission`` (a, joints) @
    the effort of links with parameters ``links`` (joints, 10); otherwise both are (0, ...).
    """

    axes: FloatArray
    straight: FloatArray
    terms: FloatArray
    transmission: FloatArray
    links: FloatArray

    @classmethod
    def of(
        cls, axes: FloatArray, laws: Sequence[FrictionLaw],
        values: Sequence[FloatArray] | FloatArray,
        load: tuple[FloatArray, FloatArray] | None = None,
    ) -> AxisFriction:
        """Return the friction of ``laws`` with parameter ``values`` (k,), one array per law.

        ``load``: transmission and link parameters; None drops the load-dependent terms.
        """
        rows = [_weight_terms(law, law_values, i)
                for i, (law, law_values) in enumerate(zip(laws, values, strict=True))]
        terms = np.concatenate([np.empty((0, COLUMNS)), *rows])
        terms = warm(terms[np.isnan(terms[:, REFERENCE])])
        straight = np.zeros((len(axes), 2))
        plain = (terms[:, SIDE] == 0.0) & (terms[:, FADE] == 0.0) & (terms[:, ABOVE] == 0.0) \
            & (terms[:, LOAD] == 0.0)
        viscous = plain & (terms[:, KIND] == POWER) & (terms[:, SCALE] == 1.0)
        offset = plain & (terms[:, KIND] == CONSTANT)
        for column, mask in enumerate((viscous, offset)):
            np.add.at(straight[:, column], terms[mask, ROW].astype(np.int64), terms[mask, WEIGHT])
        terms = _merge_terms(terms[~viscous & ~offset])
        if load is None or not np.any(terms[:, LOAD]):
            load = np.zeros((0, axes.shape[1])), np.zeros((0, 10))
            terms[:, LOAD] = 0.0
        return cls(np.ascontiguousarray(axes), straight, terms,
                   *(np.ascontiguousarray(part) for part in load))

    @classmethod
    def none(cls, n: int) -> AxisFriction:
        """Return no friction on n coordinates."""
        return cls.of(np.zeros((0, n)), (), ())

    def combine(self, more: AxisFriction) -> AxisFriction:
        """Return this friction combined with ``more`` on the same coordinates."""
        if not len(self.axes):
            return more
        terms = more.terms.copy()
        terms[:, ROW] += len(self.axes)
        load = [self.transmission, more.transmission]
        if any(map(len, load)):  # axes without load-dependent friction transmit no load
            load = [part if len(part) else np.zeros((len(one.axes), width.shape[1]))
                    for one, part, width in zip((self, more), load, reversed(load), strict=True)]
        return AxisFriction(
            np.vstack([self.axes, more.axes]), np.vstack([self.straight, more.straight]),
            np.vstack([self.terms, terms]), np.vstack(load),
            self.links if len(self.links) else more.links)

    @property
    def needs_load(self) -> bool:
        """Whether friction grows with the load."""
        return len(self.transmission) > 0

    @cached_property
    def sliding(self) -> AxisFriction:
        """The friction in steady sliding, for states without a past."""
        terms = slid(self.terms)
        terms[:, [HOLDS, WIDTH]] = 0.0
        return replace(self, terms=_merge_terms(terms))

    @cached_property
    def tables(self) -> FrictionTables:
        """Read-only tables of the friction in steady sliding."""
        friction = self.sliding
        return (frozen(friction.axes), frozen(friction.straight), frozen(friction.terms),
                frozen(friction.transmission), frozen(friction.links))

    def on(self, columns: Sequence[int], count: int) -> AxisFriction:
        """Return the friction on ``count`` coordinates; coordinate ``columns[i]`` (n,) drives axis
        i.
        """
        axes = np.zeros((len(self.axes), count))
        axes[:, list(columns)] = self.axes
        return replace(self, axes=axes)

    def torque(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Return the steady-sliding torque (K, n) [N m, N] at ``velocity`` (K, n).

        ``load`` (K, a) [N m] of the axes, needed for load-dependent friction.
        """
        friction, out = self.sliding, np.empty(velocity.shape)
        sliding_torque((friction.axes, friction.straight, friction.terms), contiguous(velocity),
                       contiguous(np.zeros((0, len(friction.axes))) if load is None else load),
                       out)
        return out


def _weight_terms(law: FrictionLaw, values: FloatArray, axis: int) -> FloatArray:
    """Return the terms (t, COLUMNS) of a law on one axis, weighted with its parameter ``values``.
"""
    terms = table_of(law.table)
    terms[:, [WEIGHT, LOAD]] *= values[terms[:, ROW].astype(np.int64), None]
    terms[:, ROW] = axis
    return terms


def _merge_terms(terms: FloatArray) -> FloatArray:
    """Return terms (t, COLUMNS) with equal shapes summed and zero terms dropped."""
    merged: dict[bytes, FloatArray] = {}
    for term in terms:
        key = term.copy()
        key[[WEIGHT, LOAD]] = 0.0
        same = merged.setdefault(key.tobytes(), key)
        same[[WEIGHT, LOAD]] += term[[WEIGHT, LOAD]]
    nonzero = [row for row in merged.values() if row[WEIGHT] != 0.0 or row[LOAD] != 0.0]
    return np.array(nonzero).reshape(-1, COLUMNS)
