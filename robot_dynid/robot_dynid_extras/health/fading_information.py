"""Recursive least squares whose data fades, on square-root information.

Unknowns x of prior N(0, P_0) are seen through equations ``A x = y + e`` with e ~ N(0, I), batch
by batch, those of each joint by themselves. What a joint k has shown fades with each of its own
batches t, by what is kept of it, w; the prior never does:

    Lambda = P_0^-1 + sum_k I_k,    I_k(t) = w_t I_k(t-1) + A_t^T A_t.

So a joint that rests keeps what is known by it, what its data no longer shows returns to the prior
(no windup), and a change of x is followed at the same pace however unlike its batches are. To
forget along the directions of each batch only (Kulhavy 1987) is not so: what only unlike batches
tell together, as viscous from dry friction, is then forgotten many times more slowly.

Source: Kulhavy, Zarrop 1993, Int. J. Control 58, 905 (forgetting with a prior that stays).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.estimation.information import triangle
from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class Followed:
    """Knowledge of unknowns x (b,) after some batches.

    ``prior`` F (b, b) is a root of the covariance before them, F^T F, and ``start`` (b, b) one of
    the information. ``seen`` (k, b, b + 1) are triangles of the equations of each joint with their
    values, as far as they have not faded; ``noise`` (k, b, b) those of the covariance of the noise
    in their scores, in which what has faded counts with the square of its weight.
    """

    prior: FloatArray
    start: FloatArray
    seen: FloatArray
    noise: FloatArray

    @classmethod
    def before(cls, prior: FloatArray, joints: int) -> Followed:
        """Return the knowledge before the first batch, from a regular ``prior`` F (b, b)."""
        size = len(prior)
        start = triangle(np.asarray(np.linalg.inv(prior).T, np.float64))
        return cls(prior, start, np.zeros((joints, size, size + 1)),
                   np.zeros((joints, size, size)))

    @one_blas_thread()
    def updated(self, equations: Sequence[FloatArray], kept: FloatArray) -> Followed:
        """Return the knowledge with equations (m, b + 1) of each joint, values last.

        What was seen before is ``kept`` (k,) by these shares.
        """
        seen, noise = self.seen.copy(), self.noise.copy()
        for k, (own, keep) in enumerate(zip(equations, kept.tolist(), strict=True)):
            seen[k] = triangle(np.vstack([np.sqrt(keep) * seen[k], own]))[:-1]
            noise[k] = triangle(np.vstack([keep * noise[k], own[:, :-1]]))
        return replace(self, seen=seen, noise=noise)

    @cached_property
    def _made(self) -> FloatArray:
        """Triangle (b, b + 1) of all equations and of the prior, with their values."""
        before = np.column_stack([self.start, np.zeros(len(self.start))])
        return triangle(np.vstack([before, *self.seen]))[:-1]

    @cached_property
    def inverse(self) -> FloatArray:
        """R^-1 (b, b), a root of the covariance: R^-1 R^-T."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self._made[:, :-1], np.eye(len(self.start))))

    @cached_property
    def values(self) -> FloatArray:
        """The estimate (b,)."""
        return np.asarray(self.inverse @ self._made[:, -1])

    @property
    def covariance(self) -> FloatArray:
        """Covariance (b, b) of what x is now, given all batches."""
        return np.asarray(self.inverse @ self.inverse.T)

    @cached_property
    def share(self) -> FloatArray:
        """Were x the same all the time, the estimate would be this (b, b) times x, and noise."""
        rows = self.seen[:, :, :-1].reshape(-1, len(self.prior))
        return np.asarray(self.covariance @ (rows.T @ rows))

    @cached_property
    def scatter(self) -> FloatArray:
        """Covariance (b, b) of that noise."""
        rows = self.noise.reshape(-1, len(self.prior)) @ self.covariance
        return np.asarray(rows.T @ rows)

    @property
    def unchanged(self) -> FloatArray:
        """Covariance (b, b) that the estimate has where x stays as it was drawn from the prior."""
        drawn = self.share @ self.prior.T
        return np.asarray(drawn @ drawn.T + self.scatter)
