"""Friction of all axes of a robot with given parameters, as the tables of the kernels."""

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
    """Friction of a axes whose motion is ``axes`` (a, n) @ that of n coordinates.

    ``straight`` (a, 2): viscous friction [N m s/rad, N s/m] and offset [N m, N]; ``terms`` (t,
    COLUMNS): all else, by axis, see `kernels.friction`. Joints are warm, and have the temperature
    of reference. Where friction grows with load, that is ``transmission`` (a, joints) @ the effort
    of links with parameters ``links`` (joints, 10); both are (0, ...) where nothing does.
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
        """Return the friction of ``laws`` with the ``values`` (k,) of their parameters.

        ``load``: transmission and links, where they are known.
        """
        rows = [_weighted(law, own, i)
                for i, (law, own) in enumerate(zip(laws, values, strict=True))]
        terms = np.concatenate([np.empty((0, COLUMNS)), *rows])
        terms = warm(terms[np.isnan(terms[:, REFERENCE])])
        straight = np.zeros((len(axes), 2))
        plain = (terms[:, SIDE] == 0.0) & (terms[:, FADE] == 0.0) & (terms[:, ABOVE] == 0.0) \
            & (terms[:, LOAD] == 0.0)
        viscous = plain & (terms[:, KIND] == POWER) & (terms[:, SCALE] == 1.0)
        offset = plain & (terms[:, KIND] == CONSTANT)
        for column, own in enumerate((viscous, offset)):
            np.add.at(straight[:, column], terms[own, ROW].astype(np.int64), terms[own, WEIGHT])
        terms = _merged(terms[~viscous & ~offset])
        if load is None or not np.any(terms[:, LOAD]):
            load = np.zeros((0, axes.shape[1])), np.zeros((0, 10))
            terms[:, LOAD] = 0.0
        return cls(np.ascontiguousarray(axes), straight, terms,
                   *(np.ascontiguousarray(part) for part in load))

    @classmethod
    def none(cls, n: int) -> AxisFriction:
        """Return no friction on n coordinates."""
        return cls.of(np.zeros((0, n)), (), ())

    def beside(self, more: AxisFriction) -> AxisFriction:
        """Return this friction and ``more`` on the same coordinates."""
        if not len(self.axes):
            return more
        terms = more.terms.copy()
        terms[:, ROW] += len(self.axes)
        load = [self.transmission, more.transmission]
        if any(map(len, load)):  # axes without load transmit none of it
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
        """The friction of states without a past."""
        terms = slid(self.terms)
        terms[:, [HOLDS, WIDTH]] = 0.0
        return replace(self, terms=_merged(terms))

    @cached_property
    def tables(self) -> FrictionTables:
        """Read-only tables for the kernels of states without a past."""
        own = self.sliding
        return (frozen(own.axes), frozen(own.straight), frozen(own.terms),
                frozen(own.transmission), frozen(own.links))

    def on(self, columns: Sequence[int], count: int) -> AxisFriction:
        """Return the friction on ``count`` coordinates; ``columns`` (n,) turn the axes."""
        axes = np.zeros((len(self.axes), count))
        axes[:, list(columns)] = self.axes
        return replace(self, axes=axes)

    def torque(self, velocity: FloatArray, load: FloatArray | None = None) -> FloatArray:
        """Return the torque (K, n) [N m, N] of states without a past at ``velocity`` (K, n).

        ``load`` (K, a) [N m] of the axes, where friction needs it.
        """
        own, out = self.sliding, np.empty(velocity.shape)
        sliding_torque((own.axes, own.straight, own.terms), contiguous(velocity), contiguous(
            np.zeros((0, len(own.axes))) if load is None else load), out)
        return out


def _weighted(law: FrictionLaw, values: FloatArray, axis: int) -> FloatArray:
    """Return the terms (t, COLUMNS) of a law on one axis."""
    terms = table_of(law.table)
    terms[:, [WEIGHT, LOAD]] *= values[terms[:, ROW].astype(np.int64), None]
    terms[:, ROW] = axis
    return terms


def _merged(terms: FloatArray) -> FloatArray:
    """Return terms (t, COLUMNS) that differ in more than their weights, those of none left out."""
    found: dict[bytes, FloatArray] = {}
    for term in terms:
        key = term.copy()
        key[[WEIGHT, LOAD]] = 0.0
        same = found.setdefault(key.tobytes(), key)
        same[[WEIGHT, LOAD]] += term[[WEIGHT, LOAD]]
    kept = [row for row in found.values() if row[WEIGHT] != 0.0 or row[LOAD] != 0.0]
    return np.array(kept).reshape(-1, COLUMNS)
