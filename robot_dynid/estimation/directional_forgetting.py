"""Recursive least squares with directional forgetting, on square-root information.

Unknowns x of prior N(0, P_0) are seen through equations ``A x = y + e`` with e ~ N(0, I), batch
by batch. With the information Lambda so far, a batch has directions d_i in the row space of A with

    d_i^T Lambda d_j = delta_ij,    d_i^T A^T A d_j = mu_i delta_ij.

Before it is added, information gives way along them, and nowhere else:

    Lambda - sum_i f_i Lambda d_i d_i^T Lambda,    f_i = min(forgetting, mu_i),

by which the covariance grows by f_i / (1 - f_i) d_i d_i^T. So unknowns that do not enter a batch
keep value and uncertainty; what is known along d_i, all else held, never becomes less than it was
(no windup); and directions that are excited well remember about 1 / forgetting batches.

Source: Kulhavy 1987 (forgetting along the data only); Cao, Schwartz 2000, Automatica 36 (this
split of the information, for one row); Goel, Bruce, Bernstein 2020 (many rows at a time).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.estimation.information import triangle
from robot_dynid.types import FloatArray

#: singular values of the rows below this share of the largest are rounding
ROUNDING = 1e-10


@dataclass(frozen=True, eq=False)
class Followed:
    """Knowledge of unknowns x (b,) after some batches.

    ``prior`` F (b, b) is a root of the covariance before them, F^T F; ``root`` R (b, b) the upper
    triangle of the information R^T R now, ``target`` (b,) R times the estimate. Were x the same
    all the time, the estimate would be ``share`` x plus noise of the covariance ``scatter``,
    (b, b) each: what an estimate does where nothing changes.
    """

    prior: FloatArray
    root: FloatArray
    target: FloatArray
    share: FloatArray
    scatter: FloatArray

    @classmethod
    def before(cls, prior: FloatArray) -> Followed:
        """Return the knowledge before the first batch, from a regular ``prior`` F (b, b)."""
        none = np.zeros_like(prior)
        root = triangle(np.asarray(np.linalg.inv(prior).T, np.float64))
        return cls(prior, root, none[0], none, none)

    @cached_property
    def inverse(self) -> FloatArray:
        """R^-1 (b, b), a root of the covariance: R^-1 R^-T."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.root, np.eye(len(self.root))))

    @cached_property
    def values(self) -> FloatArray:
        """The estimate (b,)."""
        return np.asarray(self.inverse @ self.target)

    @property
    def covariance(self) -> FloatArray:
        """Covariance (b, b) of what x is now, given all batches."""
        return np.asarray(self.inverse @ self.inverse.T)

    @property
    def unchanged(self) -> FloatArray:
        """Covariance (b, b) that the estimate has where x stays as it was drawn from the prior."""
        drawn = self.share @ self.prior.T
        return np.asarray(drawn @ drawn.T + self.scatter)

    @one_blas_thread()
    def forgotten(self, rows: FloatArray, forgetting: float) -> Followed:
        """Return the knowledge that stays when equations with ``rows`` A (m, b) come in.

        ``forgetting`` is the share, 0 to below 1, that a well excited direction loses. The
        estimate is the same.
        """
        rows = triangle(rows)
        _, s, vt = np.linalg.svd(rows)
        within = vt[s > ROUNDING * s[0]].T if s[0] > 0.0 else vt[:0].T
        basis, scale = np.linalg.qr(self.root @ within)
        _, s, vt = np.linalg.svd(np.linalg.solve(scale.T, (rows @ within).T).T,
                                 full_matrices=False)
        along = basis @ vt.T
        kept = np.sqrt(1.0 - np.minimum(forgetting, s ** 2))
        left = self.root - (along * (1.0 - kept)) @ (along.T @ self.root)
        return self._of(np.column_stack([left, left @ self.values]))

    @one_blas_thread()
    def updated(self, rows: FloatArray, values: FloatArray) -> Followed:
        """Return the knowledge with equations of ``rows`` A (m, b) and ``values`` y (m,)."""
        after = self._of(np.vstack([np.column_stack([self.root, self.target]),
                                    np.column_stack([rows, values])]))
        gained = after.inverse @ (after.inverse.T @ (rows.T @ rows))
        stays = np.eye(len(gained)) - gained
        return replace(after, share=stays @ self.share + gained, scatter=(
            stays @ self.scatter @ stays.T + gained @ after.covariance))

    def _of(self, equations: FloatArray) -> Followed:
        """Return it with other ``equations`` (m, b + 1) of unit noise for what is known."""
        made = triangle(equations)
        return replace(self, root=made[:-1, :-1], target=made[:-1, -1])
