"""Selection of effects of single joints by their error on distinct motion."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.regressor_columns import HISTORY, RegressorColumns
from robot_dynid.effects import CHOSEN, ChosenEffect, Effect
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.feasible.near_nominal import NearNominal, best_of, by_fold
from robot_dynid.estimation.friction_selection.law_selection import LAW_GAIN
from robot_dynid.estimation.information import EXTRA, RAW, Information
from robot_dynid.estimation.uncertainty.held_out import falls, folds
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples

#: share of the largest singular value of the torques of all candidates below which they coincide
ALIKE_TORQUES = 1e-6


def choose_parts(
    key: str, robot: RobotModel, structure: Structure, samples: Sequence[Samples]
) -> Structure:
    """Return ``structure`` with the parts of an effect that distinct motion shows.

    ``key`` is one of CHOSEN. At most one part per joint, largest share of error first; of all
    effects that efforts hardly distinguish from gravity, a joint has at most one.
    """
    rivals = [other for other, kind in CHOSEN.items()
              if other == key or (kind.like_weight and CHOSEN[key].like_weight)]
    for _ in range(robot.n):
        parts = structure.chosen.get(key, ())
        tried = _Search.of(CHOSEN[key], structure.torque_model(robot), samples, [
            part.joint for rival in rivals for part in structure.chosen.get(rival, ())])
        part = None if tried is None else tried.strongest()
        if part is None:
            break
        structure = replace(structure, chosen={**structure.chosen, key: (*parts, part)})
    return structure


@dataclass(frozen=True, eq=False)
class _Basis(Effect):
    """Torques that span all candidates of a joint, joint by joint.

    ``weights`` (r, k): basis = weights @ torques of the k candidates of an effect, and torques =
    weights.T @ basis.
    """

    effects: tuple[ChosenEffect, ...]
    weights: tuple[FloatArray, ...]

    @classmethod
    def of(cls, effects: Sequence[ChosenEffect], samples: Sequence[Samples]) -> _Basis:
        """Return the basis of the torques along ``samples``."""
        weights = []
        for effect in effects:
            torques = [effect.history(one) for one in samples]
            sizes, vectors = np.linalg.eigh(sum(torque @ torque.T for torque in torques))
            weights.append(vectors[:, sizes > ALIKE_TORQUES**2 * sizes[-1]].T)
        return cls(tuple(effects), tuple(weights))

    @property
    def _joints(self) -> list[int]:
        return [effect.parts[0].joint for effect, one in zip(
            self.effects, self.weights, strict=True) for _ in one]

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each joint and torque."""
        return tuple(f'b{i}_{joint + 1}' for i, joint in enumerate(self._joints))

    def columns(self, place: int) -> NDArray[np.int64]:
        """Return the indices (r,) of the torques of an effect."""
        counts = [len(one) for one in self.weights]
        return sum(counts[:place]) + np.arange(counts[place])

    def history(self, samples: Samples) -> FloatArray:
        """Return the torques (h, N) at the stamps of the effort."""
        return np.vstack([one @ effect.history(samples) for effect, one in zip(
            self.effects, self.weights, strict=True)])

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) torques: each is a row of the history."""
        joints = self._joints
        return RegressorColumns(len(chosen), entries=tuple(
            (joints[index], column, HISTORY, index, 1.0)
            for column, index in enumerate(chosen.tolist())), past=len(joints))


@dataclass(frozen=True, eq=False)
class _Search:
    """Fits near the nominal links, by fold of distinct motion, with and without a part.

    ``information`` is about the base parameters and the ``basis`` of all candidates, which are
    ``groups`` of parts of each joint; ``ranges`` (k, 2) those of the parameters of its parts.
    """

    kind: type[ChosenEffect]
    near: NearNominal
    information: Information
    basis: _Basis
    groups: tuple[Sequence[Sequence[Any]], ...]
    ranges: tuple[FloatArray, ...]

    @classmethod
    def of(
        cls, kind: type[ChosenEffect], model: TorqueModel, samples: Sequence[Samples],
        taken: Sequence[int],
    ) -> _Search | None:
        """Reduce ``samples`` to information about a model and any additional part.

        None without candidates at joints that are not ``taken``.
        """
        robot, reduction = model.robot, model.reduction
        groups = [parts for joint in range(robot.n) if joint not in taken
                  and (parts := kind.candidates(robot, joint))]
        if not groups:
            return None
        effects = [kind(robot, tuple(part for group in parts for part in group))
                   for parts in groups]
        position = np.vstack([one.moved.position[:, :robot.n] for one in samples])
        ranges = [kind.ranges(robot, effect.parts[0].joint, position, np.hstack([
            effect.history(one) for one in samples])) for effect in effects]
        basis = _Basis.of(effects, samples)
        b, p = reduction.matrix.shape
        count = len(basis.names)
        matrix = np.zeros((b + count, p + count))
        matrix[:b, :p], matrix[b:, p:] = reduction.matrix, np.eye(count)
        wide = TorqueModel(robot, (*model.blocks, basis), replace(
            reduction, standard=(*reduction.standard, *basis.names), matrix=matrix,
            pivots=np.append(reduction.pivots, p + np.arange(count))))
        information = by_fold(Experiment.of(wide, samples).information)
        near = NearNominal.of(Experiment(model, information.about(np.arange(b))))
        return cls(kind, near, information, basis, tuple(groups), tuple(ranges))

    @cached_property
    def plain_errors(self) -> FloatArray:
        """Held-out errors (f, n) [(N m)^2] without any part."""
        base = np.arange(len(self.near.matrix))
        return best_of(self.near.held_out(self.information.about(base)))

    def strongest(self) -> Any | None:
        """Return the part that removes the largest share of its joint's error, if any."""
        best, lowest = None, (1.0 - self.kind.least)**2
        for place, groups in enumerate(self.groups if len(self.plain_errors) else ()):
            plain = self.plain_errors[:, groups[0][0].joint]
            part, errors = self._simplest(place)
            share = errors.mean() / max(float(plain.mean()), 1e-300)
            if share < lowest and falls(errors, plain):
                best, lowest = part, share
        return best

    def _simplest(self, place: int) -> tuple[Any, FloatArray]:
        """Return the best part of a joint and its errors (f,) [(N m)^2].

        One of a later group only if it is better by LAW_GAIN.
        """
        errors, first, best = self._errors(place), 0, 0
        for number, group in enumerate(self.groups[place]):
            candidate = first + int(np.argmin(errors[first:first + len(group)].mean(axis=1)))
            better = errors[candidate].mean() < (1.0 - LAW_GAIN)**2 * errors[best].mean()
            if not number or (better and falls(errors[candidate], errors[best])):
                best = candidate
            first += len(group)
        return self.basis.effects[place].parts[best], errors[best]

    def _errors(self, place: int) -> FloatArray:
        """Return the held-out errors (k, f) of a joint with each of its candidates.

        Links are drawn to the nominal ones, because least squares do not separate gravity from
        springs. Infinite if the parameter is out of its range.
        """
        series, columns = self.basis.weights[place].T, self.basis.columns(place)
        left = np.array([self._left(fold.fitted, fold.test, place)
                         for fold in folds(self.information)])
        values = _values(self.near.responses(self.information)[1], series, columns)
        low, high = self.ranges[place].T
        left[:, (values <= low) | (values >= high)] = np.inf
        best = np.argmin(left.mean(axis=0), axis=0)
        return np.asarray(left[:, best, np.arange(len(series))].T)

    def _left(self, fitted: Sequence[int], test: Sequence[int], place: int) -> FloatArray:
        """Return the mean squared errors (PULLS - 1, k) of a fold with candidates."""
        series, columns = self.basis.weights[place].T, self.basis.columns(place)
        values, products = self.near.responses(self.information.subset(fitted))
        part = self.information.subset(test)
        joint = self.basis.effects[place].parts[0].joint
        rows, count = part.expanded(joint), len(self.near.matrix)
        sides = np.column_stack([rows[:, rows.shape[1] - EXTRA + RAW], rows[:, count + columns]])
        left = sides - rows[:, :count] @ values[:, :, [0, *(1 + columns)]]
        torque = _values(products, series, columns)[:, :, None]
        shares = np.concatenate([np.ones_like(torque), -torque * series], axis=2)
        return np.asarray(np.sum((left @ shares.swapaxes(1, 2))**2, axis=1) / part.samples)


def _values(products: FloatArray, series: FloatArray, columns: NDArray[np.int64]) -> FloatArray:
    """Return the parameters (PULLS - 1, k) of candidates, fitted with all others."""
    along = products[:, 1 + columns, 0] @ series.T
    block = products[:, 1 + columns][:, :, 1 + columns]
    squares = np.einsum('sk,pkl,sl->ps', series, block, series)
    return np.asarray(along / np.maximum(squares, 1e-300))
