"""Generalised least squares: correlated residuals of the joints at one instant.

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

#: least eigenvalue of the residual correlation; below it two joints are dependent
INDEPENDENT = 1e-6
#: share of the dependent combination above which a joint is named
NAMED_JOINT_SHARE = 0.3


@dataclass(frozen=True, eq=False)
class CorrelationDetails(Details):
    """Covariance `omega` (n, n) [(N m)^2] and `correlation` (n, n) of the residuals.

    They converged after `rounds`.
    """

    rounds: int
    omega: FloatArray
    correlation: FloatArray

    def sentence(self, rows: Sequence[str]) -> str:
        """Return one sentence: size of the correlations, and the largest one."""
        others = np.abs(self.correlation - np.eye(len(self.correlation)))
        i, j = divmod(int(np.argmax(others)), len(others))
        size = float(np.sqrt(np.sum(others**2) / max(len(others) * (len(others) - 1), 1)))
        pair = f', the largest {self.correlation[i, j]:+.2f} between {rows[i]} and {rows[j]}' \
            if others[i, j] > 0.0 else ''
        return (f'covariance of the residuals of all joints, converged after {self.rounds} '
                f'rounds; correlations: {size:.2f} root mean square{pair}')

    def tables(self, rows: Sequence[str]) -> tuple[Table, ...]:
        """Return a table of the correlations."""
        cells = tuple(Row((name, *(f'{value:+.2f}' for value in row)))
                      for name, row in zip(rows, self.correlation, strict=True))
        return (Table(('residual of', *rows), cells, 'Correlation of the residuals'),)


@dataclass(frozen=True)
class GeneralisedLeastSquares(Estimator):
    """Least squares with the full residual covariance of the joints, iterated to convergence.

    It converges when the modelled effort changes by less than `tolerance` of its noise.
    """

    tolerance: float = 1e-4
    rounds: int = 50
    name = 'gls'
    summary = 'least squares with the covariance of the residuals of all joints'
    details_type = CorrelationDetails
    sequential = True

    def part_solver(self, experiment: Experiment, batches: Sequence[int]) -> PartSolver:
        """Return the solver of `batches` for some parameters, with the residual covariance.

        Raises DataError if recordings cannot be read again.
        """
        information = experiment.information.subset(batches)
        factor = _SideBySide.of(experiment, batches)
        weighted = LeastSquares().part_solver(experiment, batches)
        floor = rounding(information)

        def solved(free: NDArray[np.bool_], values: FloatArray) -> FloatArray:
            result = weighted(free, values)
            degrees = information.samples - int(free.sum())
            result[free] = self._settled(
                factor.given(free, values), result[free], degrees, floor)[0]
            return result

        return solved

    def fit(self, experiment: Experiment) -> Estimate:
        """Estimate the base parameters; raises DataError if recordings cannot be read again."""
        factor = _SideBySide.of(experiment)
        first = solve(experiment.information, joint_weights(experiment.information))
        _, omega, rounds = self._settled(
            factor, first.values, experiment.information.samples - first.rank,
            rounding(experiment.information))
        note = _dependent(omega, experiment.model.robot.row_names)
        if note:
            omega = np.diag(np.diag(omega))
        white = whiten_equations(experiment, omega)
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
        self, factor: _SideBySide, values: FloatArray, degrees: int, floor: FloatArray
    ) -> tuple[FloatArray, FloatArray, int]:
        """Return parameters (b,), covariance (n, n) and number of rounds until convergence.

        The number exceeds `rounds` without convergence. `values` (b,) are the start; `degrees` of
        freedom of the residuals; `floor` (n,) of the deviations.
        """
        for count in range(1, self.rounds + 1):
            omega = factor.covariance(values, degrees, floor)
            if _dependent(omega, tuple(str(i) for i in range(len(omega)))):
                return values, omega, count
            rows = factor.whitened(omega)
            solution = solve_rows(rows).values
            change = rows[:, :-1] @ (solution - values)
            values = solution
            if np.sqrt(np.sum(change**2) / (max(degrees, 1) * len(omega))) < self.tolerance:
                return values, factor.covariance(values, degrees, floor), count
        return values, omega, self.rounds + 1


@dataclass(frozen=True, eq=False)
class _SideBySide:
    """The triangular factor of [A_1, y_1, A_2, y_2, ...], one row per sample.

    It gives the residual covariance for any parameters and the equations for any covariance, so
    the recordings are read once. `place` (n, b + 1) is the column index of each, -1 if there is
    none.
    """

    factor: FloatArray
    place: NDArray[np.int64]

    @classmethod
    def of(
        cls, experiment: Experiment, batches: Sequence[int] | None = None
    ) -> _SideBySide:
        """Reduce the recordings, chunk by chunk.

        `batches` are cells of distinct motion, see `Experiment.by_motion`; None means all.
        """
        by_motion = experiment.information.by_motion
        selected = np.ones(experiment.information.samples, dtype=bool) if batches is None or \
            by_motion is None else np.isin(by_motion.rows, batches)
        done = 0
        structure = experiment.information.structure
        present = np.hstack([structure, np.ones((len(structure), 1), dtype=bool)])
        place = np.where(present, np.cumsum(present).reshape(present.shape) - 1, -1)
        count = int(present.sum())
        factor = np.zeros((0, count))
        for chunk in experiment.equations():
            chosen = selected[done:done + len(chunk.effort)]
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
        """Return the equations of the `free` parameters (b,), the others fixed at `values`."""
        factor = self.factor.copy()
        for row in self.place:
            fixed = ~free & (row[:-1] >= 0)
            factor[:, row[-1]] -= self.factor[:, row[:-1][fixed]] @ values[fixed]
        columns = self.place[:, [*np.flatnonzero(free), -1]]
        there = columns >= 0
        place = np.where(there, np.cumsum(there).reshape(there.shape) - 1, -1)
        return _SideBySide(factor[:, columns[there]], place)

    def _rows(self, joint: int) -> FloatArray:
        """Return [A_j, y_j] (rows, b + 1) of one joint."""
        place = self.place[joint]
        wide = np.zeros((len(self.factor), len(place)))
        wide[:, place >= 0] = self.factor[:, place[place >= 0]]
        return wide

    def covariance(self, values: FloatArray, degrees: int, floor: FloatArray) -> FloatArray:
        """Return E E^T / degrees (n, n), its deviations at least `floor` (n,) [(N m)^2]."""
        ends = np.append(-values, 1.0)
        residual = np.stack([self._rows(j) @ ends for j in range(len(self.place))])
        omega = residual @ residual.T / max(degrees, 1)
        return np.asarray(omega + np.diag(np.maximum(floor**2 - np.diag(omega), 0.0)))

    def whitened(self, omega: FloatArray) -> FloatArray:
        """Return [A, y] (rows, b + 1) whitened by the residual covariance `omega`."""
        rows = np.stack([self._rows(j) for j in range(len(self.place))])
        white = whiten(omega, rows.reshape(len(rows), -1))
        return np.asarray(white.reshape(-1, rows.shape[2]))


def whiten(omega: FloatArray, rows: FloatArray) -> FloatArray:
    """Return L^-1 rows (n, k) with L L^T = omega."""
    from scipy.linalg import solve_triangular

    scale = np.sqrt(np.diag(omega))
    lower = np.linalg.cholesky(omega / np.outer(scale, scale))
    return np.asarray(solve_triangular(lower, rows / scale[:, None], lower=True))


def whiten_equations(experiment: Experiment, omega: FloatArray) -> Information:
    """Return the information of equations whose residuals have unit covariance.

    `omega` (n, n) is the covariance of the joints' residuals at one instant. Each whitened row
    combines the joints up to one, and has the parameters of all of them.
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
    """Return a warning that names joints with dependent residuals, or ''."""
    values, vectors = np.linalg.eigh(_correlation(omega))
    if values[0] > INDEPENDENT:
        return ''
    dependent = [j for j, share in zip(joints, np.abs(vectors[:, 0]), strict=True)
                 if share > NAMED_JOINT_SHARE]
    return (f'the residuals of {", ".join(dependent)} are linearly dependent, so their covariance '
            'is singular and every joint is weighted by its noise, as with wls; check whether '
            'their effort signals are copies of each other')
