"""Feasible parameters drawn from the uncertainty of an estimate, for domain randomisation.

Base parameters b = b0 + F^T z with z normal and F^T F their covariance. Each draw is completed to
the standard parameters of bodies that can exist: by the smallest change of a feasible robot, in
units of its nominal links, and if that is not feasible by the point closest to the nominal robot
that has these base parameters. If no robot has them, the feasible ones closest in the metric of
the covariance are taken: the draw is moved onto the boundary.

Source: Wensing, Kim, Slotine, RA-L 2018 (pseudo-inertia); Lee, Wensing, Park, T-RO 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import ModelError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.feasible.bounds import Bounds, limits_of
from robot_dynid.estimation.feasible.prior import whitening
from robot_dynid.estimation.feasible.program import FeasibleSet, Program
from robot_dynid.estimation.feasible.simultaneous import check_answer, excited
from robot_dynid.numbers import NumberRange
from robot_dynid.types import FloatArray

#: share of the largest deviation, in units of those of the parameters, that a direction has at
#: least where a draw is moved
LEAST_DEVIATION = 1e-3
#: weight of the nominal robot relative to one square deviation when a draw is moved
NOMINAL_WEIGHT = 1e-3
#: tolerance of the solver, in standard deviations, for a draw that was not moved
SOLVER_DEVIATIONS = 1e-4
#: allowed numbers of draws
SAMPLES = NumberRange(1, 100_000, whole=True)


@dataclass(frozen=True, eq=False)
class FeasibleSamples:
    """N draws of ``standard`` parameters (N, p).

    ``moved`` (N,) is the distance, in the metric of the covariance, by which base parameters were
    moved to become feasible; zero where they are as drawn.
    """

    standard: FloatArray
    moved: FloatArray

    @property
    def warnings(self) -> tuple[str, ...]:
        """A sentence about the draws that were moved, if there are any."""
        count = int(np.count_nonzero(self.moved))
        if not count:
            return ()
        return (f'{count} of {len(self.moved)} samples were not feasible as drawn and were moved '
                'to the nearest feasible parameters (median '
                f'{np.median(self.moved[self.moved > 0.0]):.2g}, maximum {self.moved.max():.2g} '
                'standard deviations), so their spread is not that of the covariance',)


@dataclass(frozen=True, eq=False)
class Posterior:
    """Base parameters of ``model`` with ``mean`` (b,) and covariance ``factor``^T ``factor``.

    ``factor`` (b, b); parameters with a column of zeros stay constant. Undetermined parameters of
    the links are chosen close to the nominal ones of the robot of ``model``.
    """

    model: TorqueModel
    mean: FloatArray
    factor: FloatArray

    @cached_property
    def _feasible(self) -> FeasibleSet:
        robot, reduction = self.model.robot, self.model.reduction
        limits = limits_of(Bounds(), robot, len(reduction.standard))
        size = np.sqrt(self.mean**2 + np.sum(self.factor**2, axis=0))
        reach = np.abs(reduction.matrix) / np.where(size > 0.0, size, np.inf)[:, None]
        return FeasibleSet(whitening(self.model, limits, reach), limits)

    @cached_property
    def _matrix(self) -> FloatArray:
        """Return (b, p): base parameters = matrix @ v."""
        return np.asarray(self.model.reduction.matrix @ self._feasible.whitening.transform)

    def _program(self, prior: str) -> Program:
        return Program(self._feasible, prior, np.arange(self._matrix.shape[1]))

    @cached_property
    def _white(self) -> FloatArray:
        """Return (b, b): standardised draws = white @ difference of base parameters."""
        scale = np.linalg.norm(self.factor, axis=0)
        unit = np.where(scale > 0.0, scale, 1.0)
        _, s, vt = np.linalg.svd(self.factor / unit)
        least = LEAST_DEVIATION * max(float(s.max()), 1e-300)
        return np.asarray(vt / np.maximum(s, least)[:, None] / unit)

    @cached_property
    def _inside(self) -> FloatArray | None:
        """Return feasible v (p,) of the mean, far from the boundary; None if no robot has it."""
        return self._completed(self.mean, 'entropic')

    def _completed(self, base: FloatArray, prior: str) -> FloatArray | None:
        """Return the feasible v (p,) closest to the nominal robot with ``base`` parameters."""
        solution = self._program(prior).nearest(excited(self._matrix, base))
        if not (solution.usable and self._feasible.holds(solution.values)):
            return None
        v = self._feasible.clipped(solution.values)
        return v if self._off(v, base) < SOLVER_DEVIATIONS else None

    def _off(self, v: FloatArray, base: FloatArray) -> float:
        """Return the distance of v (p,) from ``base`` parameters in standard deviations."""
        return float(np.linalg.norm(self._white @ (self._matrix @ v - base)))

    def _moved(self, base: FloatArray) -> FloatArray:
        """Return the feasible v (p,) closest to ``base`` in the metric of the covariance."""
        solution = self._program('euclidean').minimise(
            self._white @ self._matrix, self._white @ base, NOMINAL_WEIGHT)
        answer = check_answer(self._feasible, solution.values, [], NOMINAL_WEIGHT, solution.gap)
        if not solution.usable or answer.trouble:
            raise ModelError('no feasible robot is near these base parameters '
                             f'({solution.outcome.value}); identify with --method feasible')
        return answer.v

    @one_blas_thread()
    def nearest(self) -> FloatArray:
        """Return the feasible standard parameters (p,) of the mean, or the closest ones.

        Raises as `drawn`.
        """
        v = self._completed(self.mean, 'euclidean')
        return np.asarray(self._feasible.whitening.transform @ self._feasible.clipped(
            self._moved(self.mean) if v is None else v))

    @one_blas_thread()
    def drawn(self, count: int, rng: np.random.Generator) -> FeasibleSamples:
        """Return ``count`` feasible draws.

        Raises ModelError if no robot is near one, MissingDependency without Clarabel.
        """
        steps = rng.standard_normal((count, len(self.factor))) @ self.factor
        back = np.linalg.pinv(self._matrix)
        draws, moved = [], np.zeros(count)
        for k, base in enumerate(self.mean + steps):
            v = None if self._inside is None else self._inside + back @ steps[k]
            if v is None or not self._feasible.holds(v):
                v = self._completed(base, 'euclidean')
            if v is None:
                v = self._moved(base)
                moved[k] = self._off(v, base)
            draws.append(self._feasible.whitening.transform @ self._feasible.clipped(v))
        return FeasibleSamples(np.array(draws), moved)
