"""The conic problems and their solver: closed forms, and every way to end without a solution."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from scipy import sparse
from tolerances import SAME_FORMULA, SOLVER

from robot_dynid.errors import MissingDependency
from robot_dynid.estimation.feasible import conic
from robot_dynid.estimation.feasible.conic import Cone, Kind, Outcome, Problem, solve


def problem(hessian, linear, rows, offset, *cones):
    """Return a problem from dense arrays."""
    return Problem(np.array(hessian, dtype=float), np.array(linear, dtype=float),
                   sparse.csc_matrix(np.array(rows, dtype=float)),
                   np.array(offset, dtype=float), cones)


def test_nearest_semidefinite_matrix_has_its_negative_eigenvalues_cut_off():
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(4, 4))
    matrix = matrix + matrix.T
    values, vectors = np.linalg.eigh(matrix)
    nearest = vectors @ np.diag(np.maximum(values, 0.0)) @ vectors.T
    found = solve(problem(np.eye(10), -conic.vector_of(matrix), -np.eye(10), np.zeros(10),
                          Cone(Kind.SEMIDEFINITE, 4)))
    assert found.outcome is Outcome.SOLVED
    assert found.usable
    assert conic.matrix_of(found.values) == pytest.approx(nearest, abs=SOLVER)
    assert found.gap < SOLVER


def test_conic_problems_with_exponential_and_zero_cones_are_solved():
    # x = 2, y >= 3, exp(z) <= y: minimise x + y - 4 z
    rows = [[1, 0, 0], [0, -1, 0], [0, 0, -1], [0, 0, 0], [0, -1, 0]]
    found = solve(problem(np.zeros((3, 3)), [1, 1, -4], rows, [2, -3, 0, 1, 0],
                          Cone(Kind.ZERO, 1), Cone(Kind.NONNEGATIVE, 1),
                          Cone(Kind.EXPONENTIAL, 3)))
    assert found.values == pytest.approx([2.0, 4.0, np.log(4.0)], abs=1e3 * SOLVER)


@pytest.mark.parametrize(('linear', 'rows', 'offset', 'outcome'), [
    ([0.0], [[-1.0], [1.0]], [-1.0, 0.0], Outcome.INFEASIBLE),  # x >= 1, x <= 0
    ([-1.0], [[-1.0]], [0.0], Outcome.UNBOUNDED),
])
def test_solve_reports_infeasible_and_unbounded_problems(linear, rows, offset, outcome):
    found = solve(problem([[0.0]], linear, rows, offset, Cone(Kind.NONNEGATIVE, len(rows))))
    assert found.outcome is outcome
    assert not found.usable


def test_too_few_steps_are_a_stall(monkeypatch):
    monkeypatch.setattr(conic, 'MAX_ITERATIONS', 1)
    found = solve(problem(np.eye(10), -np.ones(10), -np.eye(10), np.zeros(10),
                          Cone(Kind.SEMIDEFINITE, 4)))
    assert found.outcome is Outcome.STALLED
    assert not found.usable


def test_absent_solver_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, 'clarabel', None)
    with pytest.raises(MissingDependency, match='pip install clarabel'):
        solve(problem([[1.0]], [0.0], [[-1.0]], [0.0], Cone(Kind.NONNEGATIVE, 1)))


def test_vectors_keep_scalar_products():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(2, 5, 4, 4))
    a, b = a + a.transpose(0, 2, 1), b + b.transpose(0, 2, 1)
    assert np.sum(conic.vector_of(a) * conic.vector_of(b)) == pytest.approx(
        np.sum(a * b), rel=SAME_FORMULA)
    assert conic.matrix_of(conic.vector_of(a)) == pytest.approx(a, rel=SAME_FORMULA)
