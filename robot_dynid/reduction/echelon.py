"""Full-rank decomposition with the semantics of the reduced row echelon form.

H = H_0 K: H_0 are the leftmost independent columns of H, K has full row rank and is the identity
on them. Gram-Schmidt with reorthogonalisation instead of Gaussian elimination, so that a dependent
column leaves no trace in those after it.
Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, section 3.2; Gautier, Numerical calculation
of the base inertial parameters of robots, 1991.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from robot_dynid.types import FloatArray

#: what is less than this share of its size is nothing. Rounding leaves 1e-13; axes closer than
#: 1e-5 rad are parallel in all but the rounding of a description (1.5708 for pi/2)
RANK_TOLERANCE = 1e-5
#: coefficients between columns of their sizes below this share of the largest of their row are
#: rounding: small pivots enlarge both
ZERO = 1e-9


def independent_columns(tall: FloatArray, tolerance: float) -> NDArray[np.int64]:
    """Return the leftmost independent columns (k,) of (N, p).

    A column is kept when its part outside the span of those kept before it is longer than
    ``tolerance``.
    """
    basis = np.empty((len(tall), 0))
    kept = []
    for c in np.flatnonzero(tall.any(axis=0)):
        column = tall[:, c]
        for _ in range(2):
            column = column - basis @ (basis.T @ column)
        new = np.linalg.norm(column)
        if new > tolerance:
            kept.append(int(c))
            basis = np.column_stack([basis, column / new])
    return np.array(kept, dtype=np.int64)


def combinations(
    tall: FloatArray, kept: NDArray[np.int64], sizes: FloatArray, zero: float = ZERO
) -> FloatArray:
    """Return K (k, p) of the columns (N, p) times their ``sizes`` (p,), identity on ``kept``.

    Least squares; coefficients below ``zero`` of the largest of their row, before the sizes come
    in, are dropped.
    """
    matrix = np.linalg.lstsq(tall[:, kept], tall, rcond=None)[0]
    matrix[np.abs(matrix) < zero * np.abs(matrix).max(axis=1, keepdims=True)] = 0.0
    matrix = matrix / sizes[kept][:, None] * sizes
    matrix[:, kept] = np.eye(len(kept))
    return np.asarray(matrix)


def row_echelon(rows: FloatArray, sizes: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
    """Return pivots (b,) and K (b, p), the reduced row echelon form of ``rows * sizes``.

    ``rows`` (b, p) must be independent. Pivots depend on the space they span alone, not on the
    rows themselves.
    """
    with threadpool_limits(limits=1, user_api='blas'):  # the matrices are small
        basis = np.linalg.qr(rows.T)[0].T
        kept = independent_columns(basis, RANK_TOLERANCE)
        return kept, combinations(basis, kept, sizes)


def row_space(tall: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the singular values (p,) of (N, p) from the largest, and their directions (p, p)."""
    with threadpool_limits(limits=1, user_api='blas'):
        _, values, directions = np.linalg.svd(np.linalg.qr(tall, mode='r'))
    return values, directions


def full_rank(
    tall: FloatArray, tolerance: float = RANK_TOLERANCE, zero: float = ZERO
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return leftmost independent columns (k,) of (N, p), and K (k, p): tall = tall[:, kept] K.

    A column is dependent when less than ``tolerance`` of its norm is new, or when its norm is
    less than that of the largest; coefficients between columns of unit norm below ``zero`` of the
    largest of their row are dropped.
    """
    norms = np.linalg.norm(tall, axis=0)
    present = norms > tolerance * norms.max(initial=0.0)
    sizes = np.where(present, norms, 1.0)
    unit = np.where(present, tall / sizes, 0.0)
    kept = independent_columns(unit, tolerance)
    if not len(kept):
        return kept, np.zeros((0, tall.shape[1]))
    return kept, combinations(unit, kept, sizes, zero)
