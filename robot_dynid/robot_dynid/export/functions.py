"""Inverse and forward dynamics as functions of CasADi and JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.errors import MissingDependency
from robot_dynid.export.equations import Equations, Functions, Matrix, Number, Vector
from robot_dynid.types import FloatArray


def required_casadi() -> Any:
    """Return the package casadi; raises MissingDependency if it is not installed."""
    try:
        import casadi
    except ImportError:
        raise MissingDependency(
            'functions of CasADi, and C code, need CasADi: pip install casadi') from None
    return casadi


class SparseAlgebra:
    """Scalar expressions (SX) without zero and unit terms."""

    def __init__(self, casadi: Any) -> None:
        self._casadi = casadi
        self.sin, self.cos, self.tanh = casadi.sin, casadi.cos, casadi.tanh
        self.fabs, self.sign = casadi.fabs, casadi.sign
        self.fmin, self.fmax = casadi.fmin, casadi.fmax
        self.cross, self.dot, self.diag = casadi.cross, casadi.dot, casadi.diag
        self.where = casadi.if_else

    def constant(self, values: FloatArray) -> Any:
        """Return constants (m,) or (m, n) without their zeros."""
        return self._casadi.SX(self._casadi.sparsify(self._casadi.DM(np.asarray(values))))

    def vector(self, entries: Sequence[Number]) -> Vector:
        """Return a vector of numbers."""
        return self._casadi.vertcat(*entries)

    def matrix(self, rows: Sequence[Sequence[Number]]) -> Matrix:
        """Return a matrix of numbers."""
        return self._casadi.vertcat(*(self._casadi.horzcat(*row) for row in rows))

    def mirrored(self, matrix: Matrix) -> Matrix:
        """Mirror the upper triangle; the lower one is never computed."""
        return self._casadi.triu2symm(self._casadi.triu(matrix))

    def factorised(self, matrix: Matrix) -> SparseFactors:
        """Return the factors L^T D L."""
        return SparseFactors(self._casadi, matrix)

    def solve(self, matrix: Matrix, right: Vector) -> Vector:
        """Solve by elimination without pivoting."""
        count, solution = matrix.shape[0], self._casadi.vertsplit(right)
        rows = [[matrix[i, j] for j in range(count)] for i in range(count)]
        for p in range(count):
            for i in range(p + 1, count):
                share = rows[i][p] / rows[p][p]
                for j in range(p + 1, count):
                    rows[i][j] = rows[i][j] - share * rows[p][j]
                solution[i] = solution[i] - share * solution[p]
        for p in reversed(range(count)):
            for j in range(p + 1, count):
                solution[p] = solution[p] - rows[p][j] * solution[j]
            solution[p] = solution[p] / rows[p][p]
        return self.vector(solution)


class SparseFactors:
    """Factors L D L^T of a symmetric matrix; ``pivots`` D (n,) are positive if it is definite."""

    def __init__(self, casadi: Any, matrix: Matrix) -> None:
        self._casadi = casadi
        # from the last joint: zeros between branches of a tree stay zeros
        self._last = list(range(matrix.shape[0]))[::-1]
        self._factors = casadi.ldl(casadi.sparsify(matrix[self._last, self._last]), False)
        self.pivots: list[Number] = casadi.vertsplit(self._factors[0])

    def __call__(self, right: Matrix) -> Matrix:
        """Return the solution (n, k) for ``right`` sides (n, k)."""
        solution = self._casadi.ldl_solve(right[self._last, :], *self._factors)
        return solution[self._last, :]


def casadi_functions(mechanism: Mechanism) -> Functions:
    """Return ``inverse`` and ``forward`` of a mechanism as casadi.Function, see `Functions`.

    They take and return columns (N,), or matrices (N, K) of K states. Raises MissingDependency
    without CasADi.
    """
    casadi = required_casadi()
    equations = Equations(mechanism, SparseAlgebra(casadi))
    coordinates = equations.coordinates
    symbols = [casadi.SX.sym(name, len(coordinates.names))
               for name in ('q', 'qd', 'qdd', 'effort')]
    q, qd, qdd, effort = (casadi.vertsplit(symbol) for symbol in symbols)
    acceleration = equations.forward(q, qd, effort).values
    return Functions(
        casadi.Function('inverse', symbols[:3], [equations.inverse(q, qd, qdd)],
                        ['q', 'qd', 'qdd'], ['effort']),
        casadi.Function('forward', [*symbols[:2], symbols[3]], [acceleration],
                        ['q', 'qd', 'effort'], ['qdd']),
        coordinates.names, coordinates.motors)


class TracedAlgebra:
    """Arrays of jax.numpy."""

    def __init__(self, jnp: Any) -> None:
        self._jnp = jnp
        self.sin, self.cos, self.tanh = jnp.sin, jnp.cos, jnp.tanh
        self.fabs, self.sign = jnp.fabs, jnp.sign
        self.fmin, self.fmax = jnp.minimum, jnp.maximum
        self.cross, self.dot, self.diag, self.where = jnp.cross, jnp.dot, jnp.diag, jnp.where

    def constant(self, values: FloatArray) -> Any:
        """Return constants (m,) or (m, n): JAX accepts NumPy arrays."""
        return np.asarray(values, dtype=np.float64)

    def vector(self, entries: Sequence[Number]) -> Vector:
        """Return a vector of numbers."""
        return self._jnp.stack([self._jnp.asarray(entry, dtype=float) for entry in entries])

    def matrix(self, rows: Sequence[Sequence[Number]]) -> Matrix:
        """Return a matrix of numbers."""
        return self._jnp.stack([self.vector(row) for row in rows])

    def mirrored(self, matrix: Matrix) -> Matrix:
        """Return the matrix unchanged."""
        return matrix

    def factorised(self, matrix: Matrix) -> Any:
        """Return a function that solves by the library."""
        return partial(self._jnp.linalg.solve, matrix)

    def solve(self, matrix: Matrix, right: Vector) -> Vector:
        """Solve by the library."""
        return self._jnp.linalg.solve(matrix, right)


def jax_functions(mechanism: Mechanism) -> Functions:
    """Return ``inverse`` and ``forward`` of a mechanism as functions of JAX, see `Functions`.

    They take and return arrays (N,), and are pure, for jit, vmap and grad. Enables double
    precision of JAX (``jax_enable_x64``) for the process. Raises MissingDependency without JAX.
    """
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        raise MissingDependency('functions of JAX need JAX: pip install jax') from None
    jax.config.update('jax_enable_x64', True)
    equations = Equations(mechanism, TracedAlgebra(jnp))
    coordinates = equations.coordinates
    count = len(coordinates.names)

    def inverse(q: Any, qd: Any, qdd: Any) -> Any:
        return equations.inverse(*([x[j] for j in range(count)] for x in (q, qd, qdd)))

    def forward(q: Any, qd: Any, effort: Any) -> Any:
        return equations.forward(*([x[j] for j in range(count)] for x in (q, qd, effort))).values

    return Functions(inverse, forward, coordinates.names, coordinates.motors)
