"""Full-rank decomposition with the semantics of the reduced row echelon form.

H = H_0 K: H_0 are the leftmost independent columns of H, K has full row rank and is the identity
on them. Gram-Schmidt with reorthogonalisation instead of Gaussian elimination, so that a dependent
column leaves no trace in those after it. Where axes are nearly parallel, the leftmost columns may
be independent by next to nothing: such a column gives way to one that shows the same more clearly
(strong rank-revealing QR), so that what was neglected of H is not multiplied by K.
Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, section 3.2; Gautier, Numerical calculation
of the base inertial parameters of robots, 1991; Gu, Eisenstat, Efficient algorithms for computing
a strong rank-revealing QR factorization, SIAM J. Sci. Comput. 17(4), 1996, section 3.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.types import FloatArray

#: no coefficient of a minimal set is larger, between columns divided by their sizes: of columns
#: that show the same the leftmost is kept, unless another shows so many times more of it
LARGEST = 100.0
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


def row_echelon(
    tall: FloatArray, directions: FloatArray, sizes: FloatArray
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return pivots (b,) and K (b, p) such that ``tall * sizes`` is its pivot columns times K.

    ``directions`` (b, p) are orthonormal and span the rows of ``tall`` (N, p), but for what is
    neglected. Pivots are their leftmost columns more than 1 / LARGEST of which is new: b of them
    as long as p < LARGEST^2. Those of which ``tall`` shows too little are exchanged.
    """
    with one_blas_thread():
        factor = np.asarray(np.linalg.qr(tall, mode='r'))
        kept = _exchanged(factor, independent_columns(directions, 1.0 / LARGEST))
        return kept, combinations(factor, kept, sizes)


def _exchanged(tall: FloatArray, kept: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return as many columns (b,) of (N, p), such that no exchange of one makes much of a change.

    An exchange multiplies the volume the kept columns span by its ``growth``, the root of the sum
    of squares of a coefficient and of what is left of the new column over what only the old one
    shows. While one exceeds LARGEST the greatest is made; a volume cannot grow for ever.
    """
    while True:
        basis, factor = np.linalg.qr(tall[:, kept])
        inverse, inside = np.linalg.inv(factor), basis.T @ tall
        left = np.linalg.norm(tall - basis @ inside, axis=0)
        growth = np.hypot(inverse @ inside, np.outer(np.linalg.norm(inverse, axis=1), left))
        growth[:, kept] = 0.0
        old, new = np.unravel_index(np.argmax(growth), growth.shape)
        if growth[old, new] <= LARGEST:
            return kept
        kept = np.sort(np.append(np.delete(kept, old), new))


def row_space(tall: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the singular values (p,) of (N, p) from the largest, and their directions (p, p)."""
    from scipy.linalg import svd

    with one_blas_thread():
        # by QR iteration: divide and conquer, which is NumPy's, may not converge at low rank
        _, values, directions = svd(np.linalg.qr(tall, mode='r'), lapack_driver='gesvd')
    return values, directions


def full_rank(
    tall: FloatArray, tolerance: float, zero: float = ZERO
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
