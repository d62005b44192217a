"""Inverse and forward dynamics as functions of CasADi."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.errors import MissingDependency
from robot_dynid.export.equations import Equations, Functions, Matrix, Number, Vector
from robot_dynid.types import FloatArray


class SparseAlgebra:
    """Scalar expressions (SX), from which what is zero or one vanishes."""

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

    def solve(self, matrix: Matrix, right: Vector) -> Vector:
        """Eliminate without exchange of rows: a mass matrix is positive definite."""
        found = self._casadi.vertsplit(right)
        count = len(found)
        rows = [[matrix[i, j] for j in range(count)] for i in range(count)]
        for p in range(count):
            for i in range(p + 1, count):
                share = rows[i][p] / rows[p][p]
                for j in range(p + 1, count):
                    rows[i][j] = rows[i][j] - share * rows[p][j]
                found[i] = found[i] - share * found[p]
        for p in range(count - 1, -1, -1):
            for j in range(p + 1, count):
                found[p] = found[p] - rows[p][j] * found[j]
            found[p] = found[p] / rows[p][p]
        return self.vector(found)


def casadi_functions(mechanism: Mechanism) -> Functions:
    """Return ``inverse`` and ``forward`` of a mechanism as casadi.Function, see `Functions`.

    They take and return columns (N,), or matrices (N, K) of K states. Raises MissingDependency
    without CasADi.
    """
    try:
        import casadi
    except ImportError:
        raise MissingDependency('functions of CasADi need CasADi: pip install casadi') from None
    equations = Equations(mechanism, SparseAlgebra(casadi))
    own = equations.coordinates
    symbols = [casadi.SX.sym(name, len(own.names)) for name in ('q', 'qd', 'qdd', 'effort')]
    q, qd, qdd, effort = (casadi.vertsplit(symbol) for symbol in symbols)
    return Functions(
        casadi.Function('inverse', symbols[:3], [equations.inverse(q, qd, qdd)],
                        ['q', 'qd', 'qdd'], ['effort']),
        casadi.Function('forward', [*symbols[:2], symbols[3]], [equations.forward(q, qd, effort)],
                        ['q', 'qd', 'effort'], ['qdd']),
        own.names, own.motors)
