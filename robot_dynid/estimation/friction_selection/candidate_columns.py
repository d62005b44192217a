"""Every candidate friction column of every axis, reduced to small factors.

One pass over the data for every joint; afterwards any law with any of the tried shapes is a choice
of columns, and is fitted and scored from the factors alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import JointFriction
from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import CHUNK, MODERATE_SPEED, Regression, TorqueModel
from robot_dynid.estimation.information import merged, triangle
from robot_dynid.friction import FrictionLaw
from robot_dynid.friction.terms import Parameter, Term
from robot_dynid.kernels.triangle import add_rows
from robot_dynid.reduction.numeric import states_at
from robot_dynid.signals.held_out_motion import DistinctMotion, folds
from robot_dynid.threads import side_by_side
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class Dictionary(FrictionLaw):
    """The different columns of many laws, as one law of the same axis: equal terms are one."""

    laws: tuple[FrictionLaw, ...]

    @cached_property
    def _place(self) -> dict[tuple[Term, ...], int]:
        place: dict[tuple[Term, ...], int] = {}
        for law in self.laws:
            for parameter in law.table:
                place.setdefault(parameter.terms, len(place))
        return place

    @cached_property
    def table(self) -> tuple[Parameter, ...]:
        """Numbered columns."""
        return tuple(Parameter(f'd{i}_', terms, nonnegative=False)
                     for i, terms in enumerate(self._place))

    def place(self, law: FrictionLaw) -> NDArray[np.int64]:
        """Return the columns (k,) of ``law``; raises KeyError when one is missing."""
        return self.known(law)[0]

    def known(self, law: FrictionLaw) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the columns (k,) of ``law``, and which of its parameters are never negative.

        Raises KeyError when one is missing.
        """
        found = self._seen.get(law)
        if found is None:
            table = law.table
            found = self._seen[law] = (np.array([self._place[p.terms] for p in table]),
                                       np.array([p.nonnegative for p in table]))
        return found

    @cached_property
    def _seen(self) -> dict[FrictionLaw, tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        return {}


@dataclass(frozen=True, eq=False)
class Factor:
    """A triangular factor of many columns, most of them zero.

    ``own`` (k, c + 1) are those that are not, and zeros; ``place`` (d,) is where each of all
    columns is among them.
    """

    own: FloatArray
    place: NDArray[np.int64]

    @classmethod
    def of(cls, own: FloatArray, active: NDArray[np.int64], count: int) -> Factor:
        """Return the factor of ``count`` columns; the ``active`` ones (c,) are ``own`` (k, c)."""
        place = np.full(count, len(active))
        place[active] = np.arange(len(active))
        return cls(np.hstack([own, np.zeros((len(own), 1))]), place)

    def columns(self, chosen: Sequence[int] | NDArray[np.int64]) -> FloatArray:
        """Return some of all columns (k, len(chosen)); -2 is the filtered effort, -1 the raw."""
        return self.own[:, self.place[chosen]]

    def equations(self, chosen: NDArray[np.int64]) -> FloatArray:
        """Return a factor (r, len(chosen) + 1) of some columns and the filtered effort.

        It has no more rows than columns that are not zero.
        """
        place = self.place[np.append(chosen, -2)]
        present = np.flatnonzero(place < self.own.shape[1] - 1)
        found = np.zeros((len(present), len(place)))
        found[:, present] = triangle(self.own[:, place[present]])
        return found


@dataclass(frozen=True, eq=False)
class Factors:
    """Triangular factors by part and joint of ``[links and rotors, dictionaries, filtered, raw]``.

    ``parts`` are the folds of distinct motion, and last what is between them. Of these columns
    the factors of joint j hold ``active[j]`` only, the others are zero. ``links`` is the number
    of columns of links and rotors; ``first`` (a + 1,) the first dictionary column of every axis,
    and the end; ``samples`` the count in every part; ``reach`` (rows, d) the effort of each
    dictionary column at one, root mean square at about 1 rad/s.
    """

    friction: JointFriction
    parts: tuple[tuple[FloatArray, ...], ...]
    active: tuple[NDArray[np.int64], ...]
    links: int
    first: NDArray[np.int64]
    samples: NDArray[np.int64]
    reach: FloatArray

    @classmethod
    def of(
        cls, model: TorqueModel, friction: JointFriction, recordings: Sequence[Samples]
    ) -> Factors:
        """Reduce ``recordings``; ``model`` has links and rotors only.

        Raises DataError where no part of the motion can be left out.
        """
        links = len(model.reduction.kept)
        counts = [len(law.parameters) for law in friction.laws]
        first = links + np.concatenate([[0], np.cumsum(counts)])
        active = _active(model, friction, first)
        motion = DistinctMotion()
        cells = [motion.add(samples) for samples in recordings]
        fold = folds(motion.seconds, motion.guard)
        place = [fold[own] for own in cells]  # BETWEEN, the last one, belongs to no fold
        count = int(fold.max(initial=0)) + 2
        if count < 3:
            raise DataError(f'{motion.seconds.sum():.2g} s of motion are too short to choose a '
                            'law of friction by a part left out: record a longer motion, or name '
                            'a law in the recipe')
        regressed = [s.moved for s in recordings]  # once, not for every joint

        def reduced(group: tuple[list[int], list[int]]) -> dict[int, FloatArray]:
            joints, axes = group
            acting = _acting(friction, axes)
            found = {j: np.zeros((count, len(active[j]), len(active[j]))) for j in joints}
            for samples, moved, own in zip(recordings, regressed, place, strict=True):
                regression = Regression(model, moved)  # links and rotors have no history
                history = friction.history(samples, axes)
                for rows, tables in _tables(regression, (joints, acting, history), own):
                    for j, table in zip(joints, tables, strict=True):
                        add_rows(found[j][own[rows.start]], table)
            return found

        by_joint: dict[int, FloatArray] = {}
        for found in side_by_side(reduced, _apart(friction.axes.effort)):
            by_joint |= found
        sizes = np.bincount(np.concatenate(place) % count, minlength=count)
        parts = tuple(tuple(by_joint[j][part] for j in range(len(active)))
                      for part in range(count))
        states = states_at(model.robot, MODERATE_SPEED)
        reach = np.sqrt(np.mean(friction.history(states)**2, axis=1))
        acting = np.abs(np.repeat(friction.axes.effort, counts, axis=0))
        return cls(friction, parts, tuple(active), links, first, sizes,
                   (acting * reach[:, None]).T)

    @cached_property
    def whole(self) -> tuple[Factor, ...]:
        """Factors over all data, one per joint."""
        return self._merged(self.parts)

    @cached_property
    def train(self) -> tuple[tuple[Factor, ...], ...]:
        """Factors by fold left out and joint, over all other folds."""
        return tuple(self._merged([f for i, f in enumerate(self.parts[:-1]) if i != fold])
                     for fold in range(len(self.parts) - 1))

    @cached_property
    def test(self) -> tuple[tuple[Factor, ...], ...]:
        """Factors by fold and joint, over that fold."""
        return tuple(self._merged([fold]) for fold in self.parts[:-1])

    def _merged(self, parts: Sequence[tuple[FloatArray, ...]]) -> tuple[Factor, ...]:
        return tuple(Factor.of(merged([part[j] for part in parts]), columns,
                               int(self.first[-1]) + 2)
                     for j, columns in enumerate(self.active))


def _active(
    model: TorqueModel, friction: JointFriction, first: NDArray[np.int64]
) -> list[NDArray[np.int64]]:
    """Return the columns of every joint that are not zero, and the two of the effort."""
    found = []
    for j, own in enumerate(model.structure):
        acting = [np.arange(first[a], first[a + 1])
                  for a, axis in enumerate(friction.axes.effort) if axis[j] != 0.0]
        found.append(np.concatenate([np.flatnonzero(own), *acting, first[-1] + np.arange(2)]))
    return found


def _apart(effort: FloatArray) -> Iterator[tuple[list[int], list[int]]]:
    """Yield joints and the axes that act on them, apart from all other joints and axes.

    ``effort`` (a, rows) is that of the axes on the joints. The columns of the groups in work, not
    those of all axes, are in memory.
    """
    from scipy.sparse.csgraph import connected_components

    acts = (effort != 0.0).astype(np.int64)
    count, group = connected_components(acts.T @ acts)
    for i in range(count):
        joints = np.flatnonzero(group == i)
        yield joints.tolist(), np.flatnonzero(acts[:, joints].any(axis=1)).tolist()


def _acting(friction: JointFriction, axes: Sequence[int]) -> FloatArray:
    """Return the effort (h, rows) on the joints of a unit torque of each column of ``axes``."""
    return np.vstack([np.zeros((0, friction.axes.effort.shape[1])), *(
        np.tile(friction.axes.effort[a], (len(friction.laws[a].parameters), 1)) for a in axes)])


def _tables(
    regression: Regression, group: tuple[list[int], FloatArray, FloatArray],
    place: NDArray[np.int64],
) -> Iterator[tuple[slice, Iterator[FloatArray]]]:
    """Yield rows within one part and, for every joint of a group, its table (active, rows).

    ``place`` (N,) is the part of every row. ``group`` are joints, the effort (h, rows) that a
    unit torque of each friction column has on all of them, and these columns (h, N).
    """
    samples, structure = regression.samples, regression.model.structure
    assert samples.effort is not None and samples.measured is not None
    effort, measured = samples.effort, samples.measured
    joints, acting, history = group
    cuts = sorted({0, len(samples), *(1 + np.flatnonzero(np.diff(place))).tolist(),
                   *range(0, len(samples), CHUNK)})

    def table(j: int, rows: slice, columns: FloatArray) -> FloatArray:
        own = acting[:, j] != 0.0
        return np.vstack([columns[j, structure[j]], acting[own, j][:, None] * history[own, rows],
                          effort[None, rows, j], measured[None, rows, j]])

    for start, stop in pairwise(cuts):
        rows = slice(start, stop)
        columns = regression.columns(rows)
        yield rows, (table(j, rows, columns) for j in joints)
