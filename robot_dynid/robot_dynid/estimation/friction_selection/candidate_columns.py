"""All candidate friction columns of all axes, reduced to small factors.

The data is read once for every joint; afterwards any law with any candidate shape is a choice of
columns, fitted and scored from the factors alone.
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
from robot_dynid.estimation.experiment import (
    CHUNK_SAMPLES,
    MODERATE_SPEED,
    Regression,
    TorqueModel,
)
from robot_dynid.estimation.information import merge_factors, triangle
from robot_dynid.friction import FrictionLaw
from robot_dynid.friction.terms import Parameter, Term
from robot_dynid.kernels.triangle import add_rows
from robot_dynid.reduction.numeric import states_at
from robot_dynid.signals.held_out_motion import DistinctMotion, folds
from robot_dynid.threads import side_by_side
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class Dictionary(FrictionLaw):
    """The distinct columns of several laws of one axis, as one law: equal terms are one column."""

    laws: tuple[FrictionLaw, ...]

    @cached_property
    def _numbers(self) -> dict[tuple[Term, ...], int]:
        terms = dict.fromkeys(p.terms for law in self.laws for p in law.table)
        return {one: number for number, one in enumerate(terms)}

    @cached_property
    def table(self) -> tuple[Parameter, ...]:
        """Numbered columns."""
        return tuple(Parameter(f'd{i}_', terms, nonnegative=False)
                     for terms, i in self._numbers.items())

    def place(self, law: FrictionLaw) -> NDArray[np.int64]:
        """Return the columns (k,) of `law`; raises KeyError if one is missing."""
        if law not in self._places:
            self._places[law] = np.array([self._numbers[p.terms] for p in law.table])
        return self._places[law]

    @cached_property
    def _places(self) -> dict[FrictionLaw, NDArray[np.int64]]:
        return {}


@dataclass(frozen=True, eq=False)
class Factor:
    """A triangular factor of many columns that are mostly zero.

    `present` (k, c + 1) are the nonzero columns, and a zero one; `place` (d,) is the index of each
    of all columns in them.
    """

    present: FloatArray
    place: NDArray[np.int64]

    @classmethod
    def of(cls, present: FloatArray, active: NDArray[np.int64], count: int) -> Factor:
        """Return the factor of `count` columns, of which `active` (c,) are `present` (k, c)."""
        place = np.full(count, len(active))
        place[active] = np.arange(len(active))
        return cls(np.hstack([present, np.zeros((len(present), 1))]), place)

    def columns(self, chosen: Sequence[int] | NDArray[np.int64]) -> FloatArray:
        """Return some columns (k, len(chosen)); -2 is the filtered effort, -1 the raw one."""
        return self.present[:, self.place[chosen]]

    def equations(self, chosen: NDArray[np.int64]) -> FloatArray:
        """Return a factor (r, len(chosen) + 1) of some columns and the filtered effort.

        It has no more rows than nonzero columns.
        """
        place = self.place[np.append(chosen, -2)]
        inside = np.flatnonzero(place < self.present.shape[1] - 1)
        rows = np.zeros((len(inside), len(place)))
        rows[:, inside] = triangle(self.present[:, place[inside]])
        return rows


@dataclass(frozen=True, eq=False)
class Factors:
    """Triangular factors by part and joint of ``[links and rotors, dictionaries, filtered, raw]``.

    `parts` are the folds of distinct motion, and last the rows between them. The factors of joint
    j contain only the columns `active[j]`; the others are zero. `links` is the number of columns
    of links and rotors; `first` (a + 1,) the first dictionary column of every axis, and the end;
    `samples` the number in every part; `reach` (rows, d) the root mean square effort of each
    dictionary column of value one, at about 1 rad/s.
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
        """Reduce `recordings`; `model` contains links and rotors only.

        Raises DataError if no part of the motion can be left out.
        """
        links, effort = len(model.reduction.pivots), friction.axes.effort
        counts = [len(law.parameters) for law in friction.laws]
        owners = np.repeat(np.arange(len(counts)), counts)
        first = links + np.concatenate([[0], np.cumsum(counts)])
        active = tuple(np.concatenate([
            np.flatnonzero(structure), links + np.flatnonzero(effort[owners, j]),
            first[-1] + np.arange(2)]) for j, structure in enumerate(model.structure))
        motion = DistinctMotion()
        cells = [motion.add(samples) for samples in recordings]
        fold = folds(motion.seconds, motion.guard)
        place = [fold[row_cells]
                 for row_cells in cells]  # BETWEEN, the last one, belongs to no fold
        count = int(fold.max(initial=0)) + 2
        if count < 3:
            raise DataError(f'{motion.seconds.sum():.2g} s of motion are too short to choose a '
                            'friction law by a held-out part: record a longer motion, or name a '
                            'law in the recipe')
        regressed = [s.moved for s in recordings]  # once, not for every joint

        def reduced(group: tuple[list[int], list[int]]) -> dict[int, FloatArray]:
            joints, axes = group
            acting = effort[owners[np.isin(owners, axes)]]
            triangles = {j: np.zeros((count, len(active[j]), len(active[j]))) for j in joints}
            for samples, moved, parts in zip(recordings, regressed, place, strict=True):
                assert moved.effort is not None and moved.measured is not None
                regression = Regression(model, moved)  # links and rotors have no history
                history = friction.history(samples, axes)
                cuts = {0, len(moved), *(1 + np.flatnonzero(np.diff(parts))).tolist(),
                        *range(0, len(moved), CHUNK_SAMPLES)}
                for rows in (slice(*pair) for pair in pairwise(sorted(cuts))):
                    columns = regression.columns(rows)
                    for j in joints:
                        acts = acting[:, j] != 0.0
                        add_rows(triangles[j][parts[rows.start]], np.vstack([
                            columns[j, model.structure[j]],
                            acting[acts, j, None] * history[acts, rows],
                            moved.effort[None, rows, j], moved.measured[None, rows, j]]))
            return triangles

        by_joint: dict[int, FloatArray] = {}
        for triangles in side_by_side(reduced, _apart(effort)):
            by_joint |= triangles
        sizes = np.bincount(np.concatenate(place) % count, minlength=count)
        parts = tuple(tuple(by_joint[j][part] for j in range(len(active)))
                      for part in range(count))
        states = states_at(model.robot, MODERATE_SPEED)
        reach = np.sqrt(np.mean(friction.history(states)**2, axis=1))
        return cls(friction, parts, active, links, first, sizes,
                   np.abs(effort[owners]).T * reach)

    @cached_property
    def whole(self) -> tuple[Factor, ...]:
        """Factors over all data, one per joint."""
        return self._merged(self.parts)

    @cached_property
    def train(self) -> tuple[tuple[Factor, ...], ...]:
        """Factors by left-out fold and joint, over all other folds."""
        return tuple(self._merged([f for i, f in enumerate(self.parts[:-1]) if i != fold])
                     for fold in range(len(self.parts) - 1))

    @cached_property
    def test(self) -> tuple[tuple[Factor, ...], ...]:
        """Factors by fold and joint, over that fold."""
        return tuple(self._merged([fold]) for fold in self.parts[:-1])

    def _merged(self, parts: Sequence[tuple[FloatArray, ...]]) -> tuple[Factor, ...]:
        return tuple(Factor.of(merge_factors([part[j] for part in parts]), columns,
                               int(self.first[-1]) + 2)
                     for j, columns in enumerate(self.active))


def _apart(effort: FloatArray) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the independent groups of joints and of axes that act on them.

    `effort` (a, rows) is that of the axes on the joints. Only the columns of one group are in
    memory.
    """
    from scipy.sparse.csgraph import connected_components

    acts = (effort != 0.0).astype(np.int64)
    count, group = connected_components(acts.T @ acts)
    for i in range(count):
        joints = np.flatnonzero(group == i)
        yield joints.tolist(), np.flatnonzero(acts[:, joints].any(axis=1)).tolist()
