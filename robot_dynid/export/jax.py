"""Inverse and forward dynamics as functions of JAX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.errors import MissingDependency
from robot_dynid.export.equations import Equations, Functions, Matrix, Number, Vector
from robot_dynid.types import FloatArray


class TracedAlgebra:
    """Arrays of jax.numpy."""

    def __init__(self, jnp: Any) -> None:
        self._jnp = jnp
        self.sin, self.cos, self.tanh = jnp.sin, jnp.cos, jnp.tanh
        self.fabs, self.sign = jnp.fabs, jnp.sign
        self.fmin, self.fmax = jnp.minimum, jnp.maximum
        self.cross, self.dot, self.diag, self.where = jnp.cross, jnp.dot, jnp.diag, jnp.where

    def constant(self, values: FloatArray) -> Any:
        """Return constants (m,) or (m, n): arrays of NumPy are some for JAX."""
        return np.asarray(values, dtype=np.float64)

    def vector(self, entries: Sequence[Number]) -> Vector:
        """Return a vector of numbers."""
        return self._jnp.stack([self._jnp.asarray(entry, dtype=float) for entry in entries])

    def matrix(self, rows: Sequence[Sequence[Number]]) -> Matrix:
        """Return a matrix of numbers."""
        return self._jnp.stack([self.vector(row) for row in rows])

    def mirrored(self, matrix: Matrix) -> Matrix:
        """Return the matrix, whose halves agree."""
        return matrix

    def factorised(self, matrix: Matrix) -> Any:
        """Return a function that solves by the library."""
        return partial(self._jnp.linalg.solve, matrix)

    def solve(self, matrix: Matrix, right: Vector) -> Vector:
        """Solve by the library."""
        return self._jnp.linalg.solve(matrix, right)


def jax_functions(mechanism: Mechanism) -> Functions:
    """Return ``inverse`` and ``forward`` of a mechanism as functions of JAX, see `Functions`.

    They take and return arrays (N,), are pure, and made for jit, vmap, grad and the like. Turns on
    double precision of JAX (``jax_enable_x64``) for the process. Raises MissingDependency without
    JAX.
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
        return equations.inverse(*(_numbers(x, count) for x in (q, qd, qdd)))

    def forward(q: Any, qd: Any, effort: Any) -> Any:
        return equations.forward(*(_numbers(x, count) for x in (q, qd, effort))).values

    return Functions(inverse, forward, coordinates.names, coordinates.motors)


def _numbers(values: Any, count: int) -> list[Any]:
    """Return the numbers of an array (count,)."""
    return [values[j] for j in range(count)]
