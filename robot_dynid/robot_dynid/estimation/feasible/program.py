"""The conic problem of some parameters: weighted residual, prior and constraints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.feasible.bounds import Limits
from robot_dynid.estimation.feasible.conic import (
    ROOT_2,
    Cone,
    Kind,
    Outcome,
    Problem,
    Rows,
    Solution,
    solve,
    sparse_matrix,
    stack_rows,
    triangle,
    vector_of,
)
from robot_dynid.estimation.feasible.prior import Whitening
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from scipy import sparse


PRIORS = ('entropic', 'euclidean')
#: least eigenvalue of V: every link has at least this share of its nominal pseudo-inertia
LEAST_EIGENVALUE = 1e-6
#: bound passed to the solver, which satisfies constraints only to about 1e-8
ASKED = 2.0 * LEAST_EIGENVALUE
#: tolerance of the other parameters, in their units, and of the bounds
BOUND_SLACK = 1e-7
IDENTITY = vector_of(np.eye(4))


@dataclass(frozen=True, eq=False)
class FeasibleSet:
    """Feasible v: consistent links, no negative friction or rotor, within `limits`."""

    whitening: Whitening
    limits: Limits

    @cached_property
    def rows(self) -> FloatArray:
        """Rows (m, p) of the limits for v, normalised."""
        rows = self.limits.matrix @ self.whitening.transform
        return np.asarray(rows / self.lengths[:, None])

    @cached_property
    def lengths(self) -> FloatArray:
        """Norms (m,) of the rows of the limits before normalisation."""
        return np.asarray(np.linalg.norm(self.limits.matrix @ self.whitening.transform, axis=1))

    @cached_property
    def offset(self) -> FloatArray:
        """Offsets (m,) of the limits for the normalised rows."""
        return np.asarray(self.limits.offset / self.lengths)

    def slack(self, v: FloatArray) -> FloatArray:
        """Return the slacks (m,) of the limits; violated equations have negative ones."""
        values = self.rows @ v - self.offset
        return np.where(self.limits.equal, -np.abs(values), values)

    def holds(self, v: FloatArray) -> bool:
        """Return True if v (p,) is feasible, to rounding."""
        w = self.whitening
        size = 1.0 + np.abs(self.rows) @ np.abs(v)
        return bool(np.isfinite(v).all() and w.least(v).min() >= LEAST_EIGENVALUE
                    and v[w.nonnegative].min(initial=0.0) >= -BOUND_SLACK
                    and np.all(self.slack(v) >= -BOUND_SLACK * size))

    def clipped(self, v: FloatArray) -> FloatArray:
        """Return v (p,) with negative rounding set to zero, or to the lower bound."""
        w = self.whitening
        return np.where(w.nonnegative, np.maximum(v, w.floor), v)


@dataclass(frozen=True, eq=False)
class Answer:
    """A solution v (p,) and its origin.

    `weight` of the prior, 0 if it determines only directions without data; `gap` between primal
    and dual objective relative to the objective; `trouble` empty or a numerical problem; `binding`
    constraints at the optimum without the prior.
    """

    v: FloatArray
    weight: float
    gap: float
    trouble: str = ''
    binding: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Program:
    """Problem in the parameters `chosen` (k,): those of whole links first, then others."""

    feasible: FeasibleSet
    prior: str
    chosen: NDArray[np.int64]

    @cached_property
    def links(self) -> int:
        """Number of links among the chosen parameters."""
        inside = self.chosen < self.feasible.whitening.bodies.stop
        return int(np.count_nonzero(inside)) // 10

    @cached_property
    def width(self) -> int:
        """Number of variables, including those of the log-determinants."""
        return len(self.chosen) + (14 * self.links if self.prior == 'entropic' else 0)

    @cached_property
    def _fixed(self) -> Rows:
        """Rows of all constraints except the limits."""
        from scipy import sparse

        n, unit = self.links, sparse.eye(self.width, format='csr')
        passive = np.flatnonzero(self.feasible.whitening.nonnegative[self.chosen])
        parts: list[Rows] = [
            (sparse_matrix(-unit[passive]), np.zeros(len(passive)),
             (Cone(Kind.NONNEGATIVE, len(passive)),)),
            (sparse_matrix(-unit[:10 * n]), np.tile(-ASKED * IDENTITY, n),
             (Cone(Kind.SEMIDEFINITE, 4),) * n)]
        if self.prior == 'entropic':
            parts.append(_log_determinants(n, len(self.chosen)))
        return stack_rows(parts)

    def _limits(self, rest: FloatArray | None, more: FloatArray | None) -> list[Rows]:
        """Return the rows of the limits, by cone; arguments as in `minimise`."""
        matrix, equal = self.feasible.rows[:, self.chosen], self.feasible.limits.equal
        offset = self.feasible.offset - (0.0 if rest is None else self.feasible.rows @ rest) \
            - (0.0 if more is None else more)
        touched = np.any(matrix != 0.0, axis=1)
        return [(self._wide(-matrix[rows]), -offset[rows], (Cone(kind, int(rows.sum())),))
                for kind, rows in ((Kind.ZERO, touched & equal),
                                   (Kind.NONNEGATIVE, touched & ~equal & np.isfinite(offset)))]

    def _wide(self, rows: FloatArray) -> sparse.csc_matrix:
        """Return `rows` (m, k) about the chosen parameters as rows about all variables."""
        return sparse_matrix(np.pad(rows, ((0, 0), (0, self.width - rows.shape[1]))))

    def minimise(
        self, design: FloatArray, target: FloatArray, share: float,
        rest: FloatArray | None = None, more: FloatArray | None = None,
    ) -> Solution:
        """Minimise ``||design v - target||^2 + share * prior(v)`` over the chosen v (k,).

        `rest` (p,) contains the parameters that are not chosen, zero at the chosen ones; `more`
        (m,) the largest contribution of unknown parameters to the limits. The objective is in
        units of `share`, from the optimum of the euclidean prior, so that the solver is accurate
        even for a weak prior.
        """
        w = self.feasible.whitening
        weights, centre = w.weights[self.chosen], w.centre[self.chosen]
        scaled = np.sqrt(2.0 / share) * design
        hessian = scaled.T @ scaled
        gradient = scaled.T @ (np.sqrt(2.0 / share) * target)
        start = np.linalg.solve(hessian + np.diag(weights), gradient + weights * centre)
        pull = scaled.T @ (scaled @ start - np.sqrt(2.0 / share) * target)
        return self._solved(hessian, pull, start, self._limits(rest, more))

    def nearest(
        self, equations: tuple[FloatArray, FloatArray], rest: FloatArray | None = None,
        more: FloatArray | None = None,
    ) -> Solution:
        """Minimise the prior subject to `equations` E v = e, E (m, k) with orthonormal rows.

        `rest` (p,) are the values of parameters not chosen, `more` (l,) the contribution of other
        links to the limits.
        """
        matrix, right = equations
        k = len(self.chosen)
        centre = self.feasible.whitening.centre[self.chosen]
        start = centre + matrix.T @ (right - matrix @ centre)
        rows: Rows = (self._wide(matrix), matrix @ start, (Cone(Kind.ZERO, len(matrix)),))
        solution = self._solved(np.zeros((k, k)), np.zeros(k), start,
                                [rows, *self._limits(rest, more)])
        exact = solution.values + matrix.T @ (right - matrix @ solution.values)
        return replace(solution, values=exact)

    def _solved(
        self, hessian: FloatArray, pull: FloatArray, start: FloatArray, rows: Sequence[Rows]
    ) -> Solution:
        """Solve for the step from `start`; the prior and all fixed rows are added here."""
        w, k = self.feasible.whitening, len(self.chosen)
        weights, centre, bodies = w.weights[self.chosen], w.centre[self.chosen], 10 * self.links
        wide, linear = np.zeros((self.width, self.width)), np.zeros(self.width)
        wide[:k, :k] = hessian
        quadratic = weights.copy()
        linear[:k] = pull
        if self.prior == 'entropic':
            quadratic[:bodies] = 0.0
            linear[:bodies] += np.tile(IDENTITY, self.links)
            linear[k + bodies:] = -1.0
        wide[np.arange(k), np.arange(k)] += quadratic
        linear[:k] += quadratic * (start - centre)
        matrix, offset, cones = stack_rows([*rows, self._fixed])
        problem = Problem(wide, linear, matrix, offset - matrix[:, :k] @ start, cones)
        solution = solve(problem)
        if solution.outcome is not Outcome.SOLVED and hessian.any():
            basis = np.eye(self.width)
            basis[:k, :k] = _round(hessian + np.diag(weights))
            again = solve(problem.in_terms_of(basis))
            if again.usable and (again.gap < solution.gap or not solution.usable):
                solution = replace(again, values=basis @ again.values)
        return replace(solution, values=start + solution.values[:k])


def _round(hessian: FloatArray) -> FloatArray:
    """Return a basis (k, k) in which a definite Hessian is the identity.

    Nearly exact data makes it stiff (1e9 and more), and the solver stalls. The basis makes the
    constraints dense, so it is used only then.
    """
    return np.asarray(np.linalg.inv(np.linalg.cholesky(hessian)).T)


def _log_determinants(links: int, first: int) -> Rows:
    """Return the rows of ``sum(t) <= log det V`` of every link.

    With Z lower triangular: [[V, Z], [Z^T, diag(Z)]] >= 0 and t_i <= log Z_ii. The variables are V
    of all links from 0, Z (10) of all links from `first`, then t (4) of all links.
    """
    four = {pair: i for i, pair in enumerate(triangle(4))}
    block: list[tuple[int, int, float]] = []  # row, variable of one link (V, Z, t), coefficient
    for row, (i, j) in enumerate(triangle(8)):
        if j < 4:
            block.append((row, four[i, j], -1.0))  # V counts off its diagonal twice already
        elif i < 4 and j - 4 <= i:
            block.append((row, 10 + four[j - 4, i], -ROOT_2))
        elif i == j:
            block.append((row, 10 + four[i - 4, i - 4], -1.0))
    for i in range(4):
        block += [(36 + 3 * i, 20 + i, -1.0), (38 + 3 * i, 10 + four[i, i], -1.0)]
    rows, local, values = (np.array(column) for column in zip(*block, strict=True))
    step = np.arange(links)[:, None]
    variable = np.where(local < 10, local + 10 * step, np.where(
        local < 20, first + 10 * step + local - 10, first + 10 * links + 4 * step + local - 20))
    matrix = sparse_matrix(
        (np.tile(values, links), ((rows + 48 * step).ravel(), variable.ravel())),
        shape=(48 * links, first + 14 * links))
    cones = (Cone(Kind.SEMIDEFINITE, 8), *(Cone(Kind.EXPONENTIAL, 3),) * 4) * links
    offset = np.concatenate([np.zeros(36), np.tile([0.0, 1.0, 0.0], 4)])
    return matrix, np.tile(offset, links), cones
