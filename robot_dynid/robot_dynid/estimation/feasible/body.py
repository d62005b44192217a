"""Physically consistent body from linear equations in its ten parameters.

The parameters are the pseudo-inertia ``P = D V D`` with a diagonal D of a typical mass and length,
so V is about one; a body is physically consistent if and only if V is positive semidefinite
(Wensing, Kim, Slotine, RA-L 2018).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.errors import DynIdError
from robot_dynid.estimation.feasible.conic import (
    Cone,
    Kind,
    Problem,
    matrix_of,
    solve,
    sparse_matrix,
)
from robot_dynid.estimation.feasible.prior import link_transform
from robot_dynid.estimation.information import triangle
from robot_dynid.estimation.least_squares import solve_rows
from robot_dynid.types import FloatArray

TEN = 10
#: typical length [m] of a payload; it only conditions the problem
TYPICAL_LENGTH = 0.1
#: columns with less than this share not explained by the others count as explained; columns below
#: this share of the largest are rounding
UNEXPLAINED_SHARE = 1e-8
#: a body counts as consistent down to this share of its largest eigenvalue below zero
EIGENVALUE_ROUNDING = 1e-9
#: weight that regularises directions without information: a deviation of a thousand typical
#: bodies, in equations of unit noise
PRIOR_STRENGTH = 1e-6
#: largest curvature passed to the solver
STEEPEST = 1e10


@dataclass(frozen=True, eq=False)
class Body:
    """A body: `values` (10,); `least_eigenvalue` of V, zero if the constraint is `active`."""

    values: FloatArray
    least_eigenvalue: float
    active: bool


def without(factor: FloatArray, others: int) -> FloatArray:
    """Return the triangle (k, k) of equations about the columns after the first `others`.

    The first ones are eliminated from `factor` (m, others + k). Columns that they explain, to
    rounding, become zero.
    """
    rest = triangle(factor)[others:, others:]
    whole = np.linalg.norm(factor[:, others:], axis=0)
    explained = np.linalg.norm(rest, axis=0) <= UNEXPLAINED_SHARE * whole
    return np.where(explained, 0.0, rest)


def fit_body(equations: FloatArray, fixed: FloatArray | None = None) -> Body:
    """Return the consistent body that best fits `equations` (m, 11) ``[A, y]`` of unit noise.

    `fixed` (f,) are known values of the first f parameters. Raises DynIdError if the solver
    stalls, MissingDependency if it is needed and not installed.
    """
    given = np.zeros(0) if fixed is None else fixed
    start = np.concatenate([given, np.zeros(TEN - len(given))])
    design, target = equations[:, :TEN], equations[:, TEN] - equations[:, :TEN] @ start
    mass = given[0] if len(given) else abs(_least(informative(design), target)[0])
    to_parameters = link_transform(
        (float(mass) or 1.0) * np.diag([*3 * [TYPICAL_LENGTH**2], 1.0]))
    base = np.linalg.solve(to_parameters, start)
    basis = np.linalg.inv(to_parameters)[:, len(given):]
    scale = np.linalg.norm(basis, axis=0)
    basis = basis / scale
    slope = informative(design @ to_parameters @ basis)
    v = base + basis @ _least(slope, target)
    eigenvalues = np.linalg.eigvalsh(matrix_of(v))
    largest = max(abs(eigenvalues[-1]), EIGENVALUE_ROUNDING)
    active = bool(eigenvalues[0] < -EIGENVALUE_ROUNDING * largest)
    if active:
        v = v + basis @ _step(slope, v, basis)
        eigenvalues = np.linalg.eigvalsh(matrix_of(v))
    return Body(to_parameters @ v, float(eigenvalues[0]), active)


def informative(design: FloatArray) -> FloatArray:
    """Return the columns of `design` (m, k), those of only rounding set to zero."""
    norms = np.linalg.norm(design, axis=0)
    return np.where(norms > UNEXPLAINED_SHARE * norms.max(initial=0.0), design, 0.0)


def _least(design: FloatArray, target: FloatArray) -> FloatArray:
    """Return the least-squares solution; directions without information get zero."""
    return solve_rows(np.column_stack([design, target])).values


def _step(slope: FloatArray, v: FloatArray, ways: FloatArray) -> FloatArray:
    """Return the step from least squares `v` to the best consistent body along `ways`."""
    curvature = slope.T @ slope
    curvature = curvature * min(1.0, STEEPEST / float(np.trace(curvature) or 1.0))
    curvature[np.diag_indices_from(curvature)] += PRIOR_STRENGTH
    problem = Problem(curvature, np.zeros(ways.shape[1]), sparse_matrix(-ways), v,
                      (Cone(Kind.SEMIDEFINITE, 4),))
    solution = solve(problem)
    if not solution.usable:
        raise DynIdError(f'the payload could not be made physically possible: '
                         f'{solution.outcome.value}; check mass and centre of mass if they were '
                         'given, and that the recordings belong together')
    return solution.values
