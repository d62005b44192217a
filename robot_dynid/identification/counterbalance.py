"""Choice of counterbalances: which joints a spring relieves, and how it is anchored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.regressor_columns import HISTORY, RegressorColumns
from robot_dynid.effects.counterbalance import Spring
from robot_dynid.effects.effect import Effect
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.feasible.near_nominal import NearNominal, best_of, by_fold
from robot_dynid.estimation.friction_selection.law_selection import GAIN
from robot_dynid.estimation.information import EXTRA, RAW, Information
from robot_dynid.estimation.uncertainty.held_out import falls, folds
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import REVOLUTE, RobotModel
from robot_dynid.types import FloatArray, Samples

#: share by which the held-out error of a joint must fall for a spring, in most folds and by more
#: than its standard error: on robots without one it has been seen to fall by 0.7 %, on the KUKA
#: KR300, which has one, by 10 to 20 %
LESS = 0.05
#: degree of the polynomials that stand for any spring within the range of its joint
DEGREE = 12
#: ratios and angles [rad] that are tried: finer ones fit noise where the motion is short
RATIOS, ANGLES = (0.0, 0.5, 0.8), np.arange(24) * np.pi / 12.0
#: largest torque over that of the nominal weight, which springs relieve; least weight of such a
#: joint over that of the joint that bears most; poses to find them
MOST, LEAST_WEIGHT, POSES = 3.0, 0.2, 500


def with_springs(
    robot: RobotModel, structure: Structure, samples: Sequence[Samples]
) -> Structure:
    """Return ``structure`` with the springs that distinct motion shows, the strongest first."""
    for _ in range(robot.n):
        spring = _Search.of(structure.torque_model(robot), samples).strongest(
            [spring.joint for spring in structure.springs])
        if spring is None:
            break
        structure = replace(structure, springs=(*structure.springs, spring))
    return structure


@dataclass(frozen=True, eq=False)
class _Polynomials(Effect):
    """Chebyshev polynomials of the position of every joint, over its range (n, 2) [rad]."""

    ranges: FloatArray
    nonnegative = ()

    @property
    def names(self) -> tuple[str, ...]:
        """A name for each joint and degree."""
        return tuple(f'p{k}_{j + 1}' for j in range(len(self.ranges)) for k in range(DEGREE + 1))

    def columns(self, joint: int) -> NDArray[np.int64]:
        """Return the places (DEGREE + 1,) of the polynomials of a joint."""
        return joint * (DEGREE + 1) + np.arange(DEGREE + 1)

    def history(self, samples: Samples) -> FloatArray:
        """Return the polynomials (h, N) at the stamps of the effort."""
        low, high = self.ranges.T
        scaled = (2.0 * samples.moved.position[:, :len(low)] - low - high) / np.maximum(
            high - low, 1e-9)
        return np.asarray(chebyshev.chebvander(scaled, DEGREE).transpose(1, 2, 0).reshape(
            -1, len(scaled)))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) polynomials: each is a row of the history."""
        return RegressorColumns(len(chosen), entries=tuple(
            (index // (DEGREE + 1), column, HISTORY, index, 1.0)
            for column, index in enumerate(chosen.tolist())), past=len(self.names))

    def series(self, spring: Spring) -> FloatArray:
        """Return the coefficients (DEGREE + 1,) that make the torque of a spring."""
        low, high = self.ranges[spring.joint]
        nodes = chebyshev.chebpts1(2 * DEGREE)
        torque = spring.torque(0.5 * (low + high + (high - low) * nodes))
        return np.asarray(chebyshev.chebfit(nodes, torque, DEGREE))


@dataclass(frozen=True, eq=False)
class _Search:
    """Fits near the nominal links, by fold of distinct motion, with and without a spring.

    ``information`` is about the base parameters and the ``polynomials`` of all joints, at their
    ``position`` (N, n).
    """

    robot: RobotModel
    near: NearNominal
    information: Information
    polynomials: _Polynomials
    position: FloatArray

    @classmethod
    def of(cls, model: TorqueModel, samples: Sequence[Samples]) -> _Search:
        """Reduce ``samples`` to information about a model, and any spring beside it."""
        n, reduction = model.robot.n, model.reduction
        position = np.vstack([one.moved.position[:, :n] for one in samples])
        block = _Polynomials(np.stack([position.min(axis=0), position.max(axis=0)], axis=1))
        b, p = reduction.matrix.shape
        count = len(block.names)
        matrix = np.zeros((b + count, p + count))
        matrix[:b, :p], matrix[b:, p:] = reduction.matrix, np.eye(count)
        wide = TorqueModel(model.robot, (*model.blocks, block), replace(
            reduction, standard=(*reduction.standard, *block.names), matrix=matrix,
            kept=np.append(reduction.kept, p + np.arange(count))))
        information = by_fold(Experiment.of(wide, samples).information)
        near = NearNominal.of(Experiment(model, information.about(np.arange(b))))
        return cls(model.robot, near, information, block, position)

    @cached_property
    def weight(self) -> FloatArray:
        """The effort (N, n) [N m] of the nominal weight."""
        return rigid_body.gravity_effort(self.robot.rigid, self.position)

    @cached_property
    def heaviest(self) -> FloatArray:
        """The largest effort (n,) [N m] of the nominal weight, in all poses."""
        rng = np.random.default_rng(0)
        poses = rng.uniform(-np.pi, np.pi, (POSES, self.robot.n))
        return np.asarray(np.abs(rigid_body.gravity_effort(self.robot.rigid, poses)).max(axis=0))

    def strongest(self, taken: Sequence[int]) -> Spring | None:
        """Return the spring that takes the largest share off the error of its joint, if any.

        Not of the joints ``taken``.
        """
        base = np.arange(len(self.near.matrix))
        before = best_of(self.near.held_out(self.information.about(base)))
        best, least = None, (1.0 - LESS)**2
        for joint in np.flatnonzero(self.robot.types == REVOLUTE).tolist():
            if joint in taken or not len(before) or (
                    self.heaviest[joint] < LEAST_WEIGHT * self.heaviest.max()):
                continue
            spring, errors = self._simplest(joint)
            share = errors.mean() / max(float(before[:, joint].mean()), 1e-300)
            if share < least and falls(errors, before[:, joint]):
                best, least = spring, share
        return best

    def _simplest(self, joint: int) -> tuple[Spring, FloatArray]:
        """Return the best spring of a joint and its errors (f,) [(N m)^2].

        One of constant tension only where that is better by GAIN.
        """
        springs = [Spring(joint, float(angle), ratio) for ratio, angle in product(RATIOS, ANGLES)
                   if ratio > 0.0 or angle < np.pi]  # beyond, it pushes as the other pulls
        errors = self._errors(joint, springs)
        plain, tense = (min((i for i, spring in enumerate(springs) if (spring.ratio > 0.0) is yes),
                            key=lambda i: float(errors[i].mean())) for yes in (False, True))
        better = errors[tense].mean() < (1.0 - GAIN)**2 * errors[plain].mean()
        best = tense if better and falls(errors[tense], errors[plain]) else plain
        return springs[best], errors[best]

    def _errors(self, joint: int, springs: Sequence[Spring]) -> FloatArray:
        """Return the held-out errors (springs, f) of a joint, links drawn to the nominal ones.

        Least squares do not tell weight from spring: both grow and cancel. Infinite where one does
        not relieve the joint of its weight, or is stronger than any that does.
        """
        series = np.array([self.polynomials.series(spring) for spring in springs])
        own = self.polynomials.columns(joint)
        found = np.array([self._left(fold.fitted, fold.test, joint, series, own)
                          for fold in folds(self.information)])
        torque = self._torques(self.near.responses(self.information)[1], series, own)
        relief = np.array([spring.torque(self.position[:, joint]) @ self.weight[:, joint]
                           for spring in springs])
        wrong = (torque * relief >= 0.0) | (np.abs(torque) > MOST * self.heaviest[joint])
        found[:, wrong] = np.inf
        best = np.argmin(found.mean(axis=0), axis=0)
        return np.asarray(found[:, best, np.arange(len(springs))].T)

    def _left(
        self, fitted: Sequence[int], test: Sequence[int], joint: int, series: FloatArray,
        own: NDArray[np.int64],
    ) -> FloatArray:
        """Return the mean squared errors (PULLS - 1, springs) of a fold with springs."""
        values, products = self.near.responses(self.information.subset(fitted))
        part = self.information.subset(test)
        rows, count = part.expanded(joint), len(self.near.matrix)
        sides = np.column_stack([rows[:, rows.shape[1] - EXTRA + RAW], rows[:, count + own]])
        left = sides - rows[:, :count] @ values[:, :, [0, *(1 + own)]]
        torque = self._torques(products, series, own)
        one = np.ones_like(torque)[:, :, None]
        shares = np.concatenate([one, -torque[:, :, None] * series], axis=2)
        return np.asarray(
            np.sum((left @ shares.swapaxes(1, 2))**2, axis=1) / part.samples)

    @staticmethod
    def _torques(
        products: FloatArray, series: FloatArray, own: NDArray[np.int64]
    ) -> FloatArray:
        """Return the torques (PULLS - 1, springs) [N m] that are fitted with the other parameters.
        """
        along = products[:, 1 + own, 0] @ series.T
        squares = np.einsum('sk,pkl,sl->ps', series, products[:, 1 + own][:, :, 1 + own], series)
        return np.asarray(along / np.maximum(squares, 1e-300))
