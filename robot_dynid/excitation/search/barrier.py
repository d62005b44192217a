"""Logarithmic barriers: of limits that are linear in the coefficients, and of constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from robot_dynid.excitation.search.basis import Basis
from robot_dynid.excitation.search.observation import MotionGradient, total
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray


class Constraint(Protocol):
    """A set of m smooth conditions on every instant of a motion of n joints."""

    @property
    def name(self) -> str:
        """Name of what is kept, for messages, such as ``effort``."""

    def values(self, motion: Motion) -> FloatArray:
        """Return (T, m): at least 0 where kept, scaled so that 1 is far from the bound."""

    def worst(self, motion: Motion) -> str:
        """Return a sentence that names what is nearest to its bound in ``motion``, in numbers."""

    def pullback(
        self, motion: Motion, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients (T, n) of sum(weights * values): position, velocity, acceleration.

        ``weights`` (T, m).
        """

    def squares(self, motion: Motion, weights: FloatArray) -> FloatArray | None:
        """Return (T, n, n): the sum over m of weights * gradient gradient^T in the position.

        It is the main part of the curvature of a barrier. None where it is not at hand, or the
        values do not depend on the position alone; then it is learnt from gradients.
        """


@dataclass(frozen=True, eq=False)
class Band:
    """|phi(t_m) C_j - centre_j| <= half_j on the grid: one kind of limit of all joints.

    ``matrix`` (M, P); ``centre``, ``half`` (n,), infinite where there is no limit.
    """

    matrix: FloatArray
    centre: FloatArray
    half: FloatArray

    def share(self, coefficients: FloatArray) -> FloatArray:
        """Return the share used of the limit (M, n), -1 to 1 inside it."""
        return np.asarray((self.matrix @ coefficients.T - self.centre) / self.half)


@dataclass(frozen=True, eq=False)
class LimitBarrier:
    """-mean_t sum_j log(1 - share^2), summed over position, velocity, acceleration, jerk."""

    bands: tuple[Band, ...]

    @classmethod
    def of(cls, basis: Basis, limits: MotionLimits) -> LimitBarrier:
        """Return the barrier on the grid of a basis, with its margin for what is between."""
        matrices, still = basis.matrices(basis.grid()), np.zeros(len(limits.joints))
        ranges = ((limits.centre, limits.half_range), (still, limits.velocity),
                  (still, limits.acceleration), (still, limits.jerk))
        return cls(tuple(
            Band(matrix, centre, np.where(np.isnan(half), np.inf, basis.margin * half))
            for matrix, (centre, half) in zip(matrices, ranges, strict=True)
            if not np.all(np.isnan(half))))

    def largest(self, coefficients: FloatArray) -> float:
        """Return the largest share used of any limit by ``coefficients`` (n, P)."""
        return max(float(np.max(np.abs(band.share(coefficients)))) for band in self.bands)

    def value(self, coefficients: FloatArray) -> float:
        """Return the barrier at ``coefficients`` (n, P), infinite outside."""
        value = 0.0
        for band in self.bands:
            share = band.share(coefficients)
            if np.max(np.abs(share)) >= 1.0:
                return float('inf')
            value -= float(np.sum(np.log1p(-(share**2)))) / len(share)
        return value

    def slopes(self, coefficients: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return gradient (n, P) and Hessian, a block (n, P, P) per joint."""
        n, size = coefficients.shape
        gradient, hessian = np.zeros((n, size)), np.zeros((n, size, size))
        for band in self.bands:
            share = band.share(coefficients)
            inside = 1.0 / (1.0 - share**2)
            gradient += (2.0 * share * inside / band.half).T @ band.matrix / len(share)
            curved = 2.0 * inside * (2.0 * inside - 1.0) / band.half**2 / len(share)
            for j in range(n):
                hessian[j] += band.matrix.T @ (curved[:, j, None] * band.matrix)
        return gradient, hessian

    def longest(self, coefficients: FloatArray, step: FloatArray) -> float:
        """Return the largest factor of ``step`` (n, P) that stays inside."""
        longest = float('inf')
        for band in self.bands:
            share, way = band.share(coefficients), (band.matrix @ step.T) / band.half
            room = np.where(way > 0.0, 1.0 - share, 1.0 + share)
            with np.errstate(divide='ignore'):
                longest = min(longest, float(np.min(room / np.abs(way))))
        return longest


def constraint_barrier(
    constraints: Sequence[Constraint], motion: Motion, values: Sequence[FloatArray]
) -> tuple[float, MotionGradient]:
    """Return -mean_t sum log(values) of all constraints and its gradients (T, n).

    ``values`` (T, m) of each constraint, all positive.
    """
    value = -sum(float(np.sum(np.log(v))) / len(v) for v in values)
    return value, total([constraint.pullback(motion, -1.0 / (len(v) * v))
                         for constraint, v in zip(constraints, values, strict=True)])


def constraint_curvature(
    constraints: Sequence[Constraint], motion: Motion, values: Sequence[FloatArray]
) -> FloatArray | None:
    """Return (T, n, n), the Gauss-Newton curvature of that barrier in the positions.

    That is mean_t sum gradient gradient^T / value^2; None where no constraint has it.
    """
    found = [c.squares(motion, 1.0 / (len(v) * v**2))
             for c, v in zip(constraints, values, strict=True)]
    known = [part for part in found if part is not None]
    return sum(known[1:], start=known[0]) if known else None


def constraint_values(
    constraints: Sequence[Constraint], motion: Motion
) -> tuple[FloatArray, ...]:
    """Return the values (T, m) of all constraints, those after a broken one left out."""
    found: list[FloatArray] = []
    for constraint in constraints:
        found.append(constraint.values(motion))
        if not np.all(found[-1] > 0.0):
            break
    return tuple(found)


def inside(values: Sequence[FloatArray]) -> bool:
    """Return whether all ``values`` (T, m) of every constraint are positive."""
    return all(bool(np.all(v > 0.0)) for v in values)


def share_inside(before: Sequence[FloatArray], values: Sequence[FloatArray]) -> float:
    """Return the share of a step up to the first broken constraint, values taken as linear.

    ``before`` and ``values`` (T, m) of each constraint at the ends of the step.
    """
    share = 1.0
    for old, new in zip(before, values):
        broken = ~(new > 0.0)
        if np.any(broken):
            parts = old[broken] / (old[broken] - new[broken])
            share = min(share, float(np.min(np.nan_to_num(parts, nan=0.0))))
    return share
