"""Generalised least squares: the residuals of the joints at one instant depend on each other.

Source: Actuators 2023, 12, 454, eqs. 22-25; Zellner 1962 (seemingly unrelated regressions).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.document import Row, Table
from robot_dynid.estimation.estimate import Details, Estimate, Estimator, PartSolver, Status
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Information, triangle
from robot_dynid.estimation.least_squares import (
    LeastSquares,
    batch_covariance,
    estimate_of,
    joint_weights,
    rounding,
    solve,
    solve_rows,
)
from robot_dynid.estimation.uncertainty.between_recordings import friction_scales
from robot_dynid.types import FloatArray

#: least eigenvalue of the correlation of the residuals; below it two joints are dependent
INDEPENDENT = 1e-6
#: share of a joint in the dependent combination from which it is named
NAMED_JOINT_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class CorrelationDetails(Details):
    """Covariance ``omega`` (n, n) [(N m)^2] and ``correlation`` (n, n) of the residuals.

    They were at rest after so many ``rounds``.
    """

    rounds: int
    omega: FloatArray
    correlation: FloatArray

    def sentence(self, rows: Sequence[str]) -> str:
        """Return the size of the correlations, and the largest one."""
        others = np.abs(self.correlation - np.eye(len(self.correlation)))
        i, j = divmod(int(np.argmax(others)), len(others))
        size = float(np.sqrt(np.sum(others**2) / max(len(others) * (len(others) - 1), 1)))
        pair = f'; most, {self.correlation[i, j]:+.2f}, between {rows[i]} and {rows[j]}' \
            if others[i, j] > 0.0 else ''
        return (f'covariance of the residuals of all joints, at rest after {self.rounds} rounds; '
                f'correlations: {size:.2f} root mean square{pair}')

    def tables(self, rows: Sequence[str]) -> tuple[Table, ...]:
        """Return the correlations."""
        cells = tuple(Row((name, *(f'{value:+.2f}' for value in row)))
                      for name, row in zip(rows, self.correlation, strict=True))
        return (Table(('residual of', *rows), cells, 'Correlation of the residuals'),)


@dataclass(frozen=True)
class GeneralisedLeastSquares(Estimator):
    """Least squares with the full covariance of the joints' residuals, iterated to rest.

    Rest means that the modelled effort changes by less than ``tolerance`` of its noise.
    """

    tolerance: float = 1e-4
    rounds: int = 50
    name = 'gls'
    summary = 'least squares with the covariance of the residuals of all joints'
    details_type = CorrelationDetails
    sequential = True

    def part_solver(self, experiment: Experiment, batches: Sequence[int]) -> PartSolver:
        """Return the solver of ``batches`` for some parameters, with the residuals' covariance.

        Raises DataError when recordings cannot be read again.
        """
        information = experiment.information.subset(batches)
        beside = _SideBySide.of(experiment, batches)
        weighted = LeastSquares().part_solver(experiment, batches)
        floor = rounding(information)

        def solved(free: NDArray[np.bool_], values: FloatArray) -> FloatArray:
            found = weighted(free, values)
            degrees = information.samples - int(free.sum())
            found[free] = self._settled(
                beside.given(free, values), found[free], degrees, floor)[0]
            return found

        return solved

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters; raises DataError when recordings cannot be read again."""
        beside = _SideBySide.of(experiment)
        first = solve(experiment.information, joint_weights(experiment.information))
        _, omega, rounds = self._settled(
            beside, first.values, experiment.information.samples - first.rank,
            rounding(experiment.information))
        note = _dependent(omega, experiment.model.robot.row_names)
        if note:
            omega = np.diag(np.diag(omega))
        white = whitened(experiment, omega)
        ones = np.ones(len(omega))
        solution = solve(white, ones)
        scales = friction_scales(experiment.model, solution.values)
        estimate = estimate_of(experiment, solution, batch_covariance(
            white, ones, solution, scales), self.name)
        details = CorrelationDetails(rounds, omega, _correlation(omega))
        settled = rounds <= self.rounds
        return replace(estimate, details=details, warnings=(note,) if note else (),
                       status=estimate.status if settled or estimate.not_excited
                       else Status.NOT_SETTLED)

    def _settled(
        self, beside: _SideBySide, values: FloatArray, degrees: int, floor: FloatArray
    ) -> tuple[FloatArray, FloatArray, int]:
        """Return parameters (b,), covariance (n, n) at rest, rounds; more than allowed: none.

        ``values`` (b,) to begin with; ``degrees`` of freedom of the residuals; ``floor`` (n,).
        """
        for count in range(1, self.rounds + 1):
            omega = beside.covariance(values, degrees, floor)
            if _dependent(omega, tuple(str(i) for i in range(len(omega)))):
                return values, omega, count
            rows = beside.whitened(omega)
            found = solve_rows(rows).values
            change = rows[:, :-1] @ (found - values)
            values = found
            if np.sqrt(np.sum(change**2) / (max(degrees, 1) * len(omega))) < self.tolerance:
                return values, beside.covariance(values, degrees, floor), count
        return values, omega, self.rounds + 1


@dataclass(frozen=True, eq=False)
class _SideBySide:
    """The triangular factor of [A_1, y_1, A_2, y_2, ...], one row per sample.

    It gives the residuals' covariance for any parameters and the equations for any covariance, so
    the recordings are read once. ``place`` (n, b + 1) is the column of each, -1 where there is
    none.
    """

    factor: FloatArray
    place: NDArray[np.int64]

    @classmethod
    def of(
        cls, experiment: Experiment, batches: Sequence[int] | None = None
    ) -> _SideBySide:
        """Reduce the recordings, chunk by chunk.

        ``batches`` are cells of distinct motion, see `Experiment.by_motion`; None stands for all.
        """
        by_motion = experiment.information.by_motion
        own = np.ones(experiment.information.samples, dtype=bool) if batches is None or \
            by_motion is None else np.isin(by_motion.rows, batches)
        done = 0
        structure = experiment.information.structure
        present = np.hstack([structure, np.ones((len(structure), 1), dtype=bool)])
        place = np.where(present, np.cumsum(present).reshape(present.shape) - 1, -1)
        count = int(present.sum())
        factor = np.zeros((0, count))
        for chunk in experiment.equations():
            chosen = own[done:done + len(chunk.effort)]
            done += len(chosen)
            tall = np.empty((count, len(factor) + int(chosen.sum())))
            tall[:, :len(factor)] = factor.T
            for joint, row in enumerate(place):
                tall[row[:-1][structure[joint]], len(factor):] = chunk.columns[
                    joint, structure[joint]][:, chosen]
                tall[row[-1], len(factor):] = chunk.effort[chosen, joint]
            factor = triangle(tall.T)
        return cls(factor, place)

    def given(self, free: NDArray[np.bool_], values: FloatArray) -> _SideBySide:
        """Return the equations of the parameters that are ``free`` (b,), the others as ``values``.
        """
        factor = self.factor.copy()
        for row in self.place:
            known = ~free & (row[:-1] >= 0)
            factor[:, row[-1]] -= self.factor[:, row[:-1][known]] @ values[known]
        kept = self.place[:, [*np.flatnonzero(free), -1]]
        there = kept >= 0
        place = np.where(there, np.cumsum(there).reshape(there.shape) - 1, -1)
        return _SideBySide(factor[:, kept[there]], place)

    def _rows(self, joint: int) -> FloatArray:
        """Return [A_j, y_j] (rows, b + 1) of one joint."""
        place = self.place[joint]
        wide = np.zeros((len(self.factor), len(place)))
        wide[:, place >= 0] = self.factor[:, place[place >= 0]]
        return wide

    def covariance(self, values: FloatArray, degrees: int, floor: FloatArray) -> FloatArray:
        """Return E E^T / degrees (n, n), its deviations at least ``floor`` (n,) [(N m)^2]."""
        ends = np.append(-values, 1.0)
        residual = np.stack([self._rows(j) @ ends for j in range(len(self.place))])
        omega = residual @ residual.T / max(degrees, 1)
        return np.asarray(omega + np.diag(np.maximum(floor**2 - np.diag(omega), 0.0)))

    def whitened(self, omega: FloatArray) -> FloatArray:
        """Return [A, y] (rows, b + 1) with residuals of unit covariance, those of omega given."""
        rows = np.stack([self._rows(j) for j in range(len(self.place))])
        white = whiten(omega, rows.reshape(len(rows), -1))
        return np.asarray(white.reshape(-1, rows.shape[2]))


def whiten(omega: FloatArray, rows: FloatArray) -> FloatArray:
    """Return L^-1 rows (n, k) with L L^T = omega."""
    from scipy.linalg import solve_triangular

    scale = np.sqrt(np.diag(omega))
    lower = np.linalg.cholesky(omega / np.outer(scale, scale))
    return np.asarray(solve_triangular(lower, rows / scale[:, None], lower=True))


def whitened(experiment: Experiment, omega: FloatArray) -> Information:
    """Return the information of equations whose residuals have unit covariance.

    ``omega`` (n, n) is the covariance of the joints' residuals at one instant.

    Each of its rows is made of the joints up to one, so parameters enter where any of them has
    them.
    """
    structure = np.logical_or.accumulate(experiment.information.structure, axis=0)
    accumulator = experiment.accumulator(structure=structure)
    n = len(omega)
    for chunk in experiment.equations(accumulator):
        columns = whiten(omega, chunk.columns.reshape(n, -1)).reshape(chunk.columns.shape)
        effort, measured = (whiten(omega, y.T).T for y in (chunk.effort, chunk.measured))
        accumulator.add(columns, effort, measured)
    return accumulator.information()


def _correlation(omega: FloatArray) -> FloatArray:
    scale = np.sqrt(np.diag(omega))
    return np.asarray(omega / np.outer(scale, scale))


def _dependent(omega: FloatArray, joints: tuple[str, ...]) -> str:
    """Return a warning that names joints with dependent residuals; '' where none are."""
    values, vectors = np.linalg.eigh(_correlation(omega))
    if values[0] > INDEPENDENT:
        return ''
    dependent = [j for j, share in zip(joints, np.abs(vectors[:, 0]), strict=True)
                 if share > NAMED_JOINT_SHARE]
    return (f'the residuals of {", ".join(dependent)} depend on each other completely, so their '
            'covariance has no inverse; every joint counted by its own noise instead, as with '
            'wls. Check whether their effort signals are copies of each other')
