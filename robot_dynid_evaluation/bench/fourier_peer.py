"""Our problem given to IPOPT (PyPI cyipopt) with our exact gradients, from our starts.

The same Fourier series, limits, efforts and objective; only the search differs. IPOPT gets the
gradient of the objective and the sparse Jacobian of all constraints; second derivatives it learns
(limited-memory BFGS), as ours does for the objective and the efforts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.excitation.search.basis import motion_of
from robot_dynid.excitation.search.constraints import Constraint
from robot_dynid.excitation.search.optimise import Problem
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

NAME = 'IPOPT, exact gradients'
#: value of a motion that has none
REFUSED = 1e10
OPTIONS = {'tol': 1e-3, 'acceptable_tol': 1e-2, 'max_iter': 3000, 'mu_strategy': 'adaptive',
           'hessian_approximation': 'limited-memory', 'print_level': 0, 'sb': 'yes'}


def available() -> bool:
    """Return whether the solver can be imported."""
    try:
        import cyipopt  # noqa: F401
    except ImportError:
        return False
    return True


def optimise(problem: Problem, starts: Iterable[FloatArray], budget: float) -> FloatArray:
    """Return the best coefficients (n, P) found from ``starts`` (n, P) within ``budget`` s."""
    begin, best = time.perf_counter(), (np.inf, np.zeros(0))
    for start in starts:
        left = budget - (time.perf_counter() - begin)
        if left <= 0.0 and best[1].size:
            break
        best = min(best, improved(problem, start, left), key=lambda found: found[0])
    return best[1]


def improved(problem: Problem, start: FloatArray, budget: float) -> tuple[float, FloatArray]:
    """Return objective and coefficients (n, P) after at most ``budget`` s from ``start``."""
    import cyipopt

    search = Search(problem)
    low, high = search.bounds()
    solver = cyipopt.Problem(n=start.size, m=len(low), problem_obj=search, cl=low, cu=high)
    for name, value in OPTIONS.items():
        solver.add_option(name, value)
    solver.add_option('max_wall_time', max(budget, 1.0))
    search.best = (np.inf, start)
    solver.solve(start.ravel())
    return search.best


@dataclass(eq=False)
class Search:
    """Callbacks for IPOPT; the best point that keeps all limits is remembered."""

    problem: Problem

    def __post_init__(self) -> None:
        basis = self.problem.basis
        self._shape = (len(basis.joints), basis.size)
        self._bands = self.problem.barrier.bands
        self._kept = basis.matrices(self.problem.instants(2))
        self.best: tuple[float, FloatArray] = (np.inf, np.zeros(self._shape))
        self._count = len(self._nonlinear(np.zeros(self._shape)))
        self._at: FloatArray | None = None
        self._found = (REFUSED, np.zeros(self._shape))

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Return lower and upper bounds of `constraints`."""
        rows = [(np.repeat(b.centre - b.half, len(b.matrix)),
                 np.repeat(b.centre + b.half, len(b.matrix))) for b in self._bands]
        low, high = (np.concatenate(side) for side in zip(*rows, strict=True))
        far = np.full(self._count, 2e19)
        return np.concatenate([low, np.zeros(self._count)]), np.concatenate([high, far])

    def objective(self, x: FloatArray) -> float:
        """Return the objective."""
        coefficients = x.reshape(self._shape)
        value = self._evaluated(coefficients)[0]
        if value < self.best[0] and np.isfinite(self.problem.barrier.value(coefficients)) \
                and np.all(self._nonlinear(coefficients) >= 0.0):
            self.best = (value, coefficients.copy())
        return value

    def gradient(self, x: FloatArray) -> FloatArray:
        """Return the exact gradient of the objective."""
        return self._evaluated(x.reshape(self._shape))[1].ravel()

    def constraints(self, x: FloatArray) -> FloatArray:
        """Return limits and constraints at their instants."""
        coefficients = x.reshape(self._shape)
        linear = [(band.matrix @ coefficients.T).T.ravel() for band in self._bands]
        return np.concatenate([*linear, self._nonlinear(coefficients)])

    def jacobianstructure(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return rows and columns of `jacobian`: limits know one joint, the rest all of them."""
        joints, size = self._shape
        own = sum(len(band.matrix) for band in self._bands) * joints
        rows = np.repeat(np.arange(own + self._count),
                         np.repeat([size, joints * size], [own, self._count]))
        blocks = [np.tile(np.arange(j * size, (j + 1) * size), len(band.matrix))
                  for band in self._bands for j in range(joints)]
        return rows, np.concatenate([*blocks, np.tile(np.arange(joints * size), self._count)])

    def jacobian(self, x: FloatArray) -> FloatArray:
        """Return the exact derivatives of limits and constraints."""
        motion = motion_of(self._kept, x.reshape(self._shape))
        linear = [np.tile(band.matrix.ravel(), self._shape[0]) for band in self._bands]
        rest = [self._rows(constraint, motion).ravel() for constraint in self.problem.constraints]
        return np.concatenate([*linear, *rest])

    def _rows(self, constraint: Constraint, motion: Motion) -> FloatArray:
        """Return the derivatives (T, m, n P) of a constraint's values (T, m)."""
        shape = constraint.values(motion).shape
        rows = np.zeros((*shape, *self._shape))
        for column in range(shape[1]):
            weights = np.zeros(shape)
            weights[:, column] = 1.0
            for slope, matrix in zip(constraint.pullback(motion, weights), self._kept):
                rows[:, column] += slope[:, :, None] * matrix[:, None, :]
        return rows.reshape(*shape, -1)

    def _evaluated(self, coefficients: FloatArray) -> tuple[float, FloatArray]:
        """Return value and gradient (n, P) of the objective; once where asked for one by one."""
        if self._at is None or not np.array_equal(self._at, coefficients):
            value, gradient = self.problem.value(coefficients)
            self._at = coefficients.copy()
            self._found = (float(value) if np.isfinite(value) else REFUSED, gradient)
        return self._found

    def _nonlinear(self, coefficients: FloatArray) -> FloatArray:
        motion = motion_of(self._kept, coefficients)
        values = [c.values(motion).ravel() for c in self.problem.constraints]
        return np.concatenate(values) if values else np.zeros(0)
