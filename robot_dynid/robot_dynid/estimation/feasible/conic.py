"""Convex conic problems and their solution by Clarabel.

Source: Goulart, Chen, Clarabel: an interior-point solver for conic programs with quadratic
objectives, 2024.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from robot_dynid.errors import MissingDependency
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from scipy import sparse

#: iteration limit of the solver; the problems here take 10 to 40
MAX_ITERATIONS = 200
ROOT_2 = float(np.sqrt(2.0))


class Kind(Enum):
    """Cones of a slack, by their names in Clarabel."""

    ZERO = 'ZeroConeT'
    NONNEGATIVE = 'NonnegativeConeT'
    SEMIDEFINITE = 'PSDTriangleConeT'
    EXPONENTIAL = 'ExponentialConeT'


@dataclass(frozen=True)
class Cone:
    """A cone of `size` rows, or a semidefinite one of matrices of that size.

    Semidefinite slacks are upper triangles, see `vector_of`; exponential ones are all (x, y, z)
    with y exp(x / y) <= z, y > 0.
    """

    kind: Kind
    size: int


@dataclass(frozen=True, eq=False)
class Problem:
    """Minimise ``1/2 x^T P x + q^T x`` subject to ``b - A x`` in the product of `cones`.

    `hessian` P (k, k) positive semidefinite, `linear` q (k,), `matrix` A (m, k) sparse, `offset` b
    (m,).
    """

    hessian: FloatArray
    linear: FloatArray
    matrix: sparse.csc_matrix
    offset: FloatArray
    cones: tuple[Cone, ...]

    def in_terms_of(self, basis: FloatArray) -> Problem:
        """Return the problem in u (k,), where x = ``basis`` (m, k) @ u."""
        return Problem(basis.T @ self.hessian @ basis, basis.T @ self.linear,
                       sparse_matrix(self.matrix @ basis), self.offset, self.cones)


class Outcome(Enum):
    """Final status of the solver."""

    SOLVED = 'solved'
    INACCURATE = 'solved to a reduced accuracy'
    INFEASIBLE = 'no point satisfies all constraints'
    UNBOUNDED = 'the objective is unbounded'
    STALLED = 'stopped before a solution'


@dataclass(frozen=True, eq=False)
class Solution:
    """Result of the solver: `values` (k,); `primal` and `dual` objective."""

    values: FloatArray
    outcome: Outcome
    primal: float
    dual: float

    @property
    def usable(self) -> bool:
        """True if the values are a solution, to the accuracy stated by `outcome`."""
        return self.outcome in (Outcome.SOLVED, Outcome.INACCURATE)

    @property
    def gap(self) -> float:
        """Primal minus dual objective, relative to their size (at least one)."""
        size = max(1.0, min(abs(self.primal), abs(self.dual)))
        return abs(self.primal - self.dual) / size


def solver() -> Any:
    """Return the module of the solver; raises MissingDependency if it is not installed."""
    try:
        import clarabel
    except ImportError:
        raise MissingDependency('feasible identification needs the solver Clarabel: '
                                'pip install clarabel') from None
    return clarabel


def solve(problem: Problem) -> Solution:
    """Solve by Clarabel's interior-point method; raises MissingDependency if it is missing."""
    clarabel = solver()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_iter = MAX_ITERATIONS
    cones = [getattr(clarabel, cone.kind.value)(
        *(() if cone.kind is Kind.EXPONENTIAL else (cone.size,))) for cone in problem.cones]
    upper = sparse_matrix(np.triu(problem.hessian))
    end = clarabel.DefaultSolver(upper, problem.linear, problem.matrix, problem.offset, cones,
                                 settings).solve()
    return Solution(np.asarray(end.x, dtype=np.float64), _outcome(str(end.status)),
                    float(end.obj_val), float(end.obj_val_dual))


def _outcome(status: str) -> Outcome:
    endings = {'Solved': Outcome.SOLVED, 'AlmostSolved': Outcome.INACCURATE}
    if status in endings:
        return endings[status]
    if 'PrimalInfeasible' in status:
        return Outcome.INFEASIBLE
    return Outcome.UNBOUNDED if 'DualInfeasible' in status else Outcome.STALLED


def triangle(size: int) -> list[tuple[int, int]]:
    """Return the (row, column) of every entry of an upper triangle, column by column."""
    return [(row, column) for column in range(size) for row in range(column + 1)]


_FOUR = triangle(4)
_ROWS, _COLUMNS = (np.array(index) for index in zip(*_FOUR, strict=True))
_WEIGHTS = np.where(_ROWS == _COLUMNS, 1.0, ROOT_2)


def vector_of(matrix: FloatArray) -> FloatArray:
    """Return a symmetric (..., 4, 4) as (..., 10), with the same scalar product."""
    return np.asarray(matrix[..., _ROWS, _COLUMNS] * _WEIGHTS)


def matrix_of(vector: FloatArray) -> FloatArray:
    """Return the symmetric (..., 4, 4) of vectors (..., 10); the inverse of `vector_of`."""
    matrix = np.zeros((*vector.shape[:-1], 4, 4))
    matrix[..., _ROWS, _COLUMNS] = matrix[..., _COLUMNS, _ROWS] = vector / _WEIGHTS
    return matrix


#: some rows of a problem: A, b and their cones
Rows: TypeAlias = 'tuple[sparse.csc_matrix, FloatArray, tuple[Cone, ...]]'


def sparse_matrix(content: Any, shape: tuple[int, int] | None = None) -> sparse.csc_matrix:
    """Return a matrix, dense or as (values, (rows, columns)), in the solver's sparse format."""
    from scipy import sparse

    return sparse.csc_matrix(content, shape=shape)


def stack_rows(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all `parts`, stacked."""
    from scipy import sparse

    filled = [part for part in parts if part[0].shape[0]]
    matrix = sparse.vstack([part[0] for part in filled], format='csc')
    return (sparse_matrix(matrix), np.concatenate([part[1] for part in filled]),
            tuple(cone for part in filled for cone in part[2]))
