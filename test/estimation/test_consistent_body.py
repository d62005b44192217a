"""estimation/feasible/body.py: bodies from equations: free where they are consistent, and their
bounds."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid.errors import DynIdError
from robot_dynid.estimation.feasible import body as module
from robot_dynid.estimation.feasible.body import fit_body, informative, without
from robot_dynid.estimation.feasible.conic import Outcome, Solution
from robot_dynid.robot.inertia import parameters_from_com, pseudo_inertia
from robot_dynid.types import FloatArray

TRUE = parameters_from_com(2.0, np.array([0.05, -0.02, 0.1]), np.diag([0.02, 0.03, 0.025]) + 1e-3)


def equations(parameters: FloatArray, noise: float = 0.0) -> FloatArray:
    """Return 40 equations of parameters and their right side."""
    rng = np.random.default_rng(0)
    design = rng.normal(size=(40, 10)) * [9.0, 9.0, 9.0, 9.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0]
    return np.column_stack([design, design @ parameters + noise * rng.normal(size=40)])


@pytest.mark.parametrize('fixed', [0, 1, 4])
def test_bodies_that_are_consistent_are_those_of_least_squares(fixed: int) -> None:
    tall = equations(TRUE, 1e-3)
    given = TRUE[:fixed] * 1.01
    found = fit_body(tall, given)
    rest = np.linalg.lstsq(tall[:, fixed:10], tall[:, 10] - tall[:, :fixed] @ given,
                           rcond=None)[0]
    assert found.values == pytest.approx(np.append(given, rest), rel=1e-8)
    assert not found.active and found.least_eigenvalue > 0.0
    typical = np.diag([0.1, 0.1, 0.1, 1.0]) * np.sqrt(found.values[0])
    if not fixed:  # in units of the mass at a tenth of a metre
        v = np.linalg.solve(typical, np.linalg.solve(typical, pseudo_inertia(found.values)).T)
        mass = np.linalg.lstsq(tall[:, :10], tall[:, 10], rcond=None)[0][0]
        assert mass == pytest.approx(found.values[0])
        assert found.least_eigenvalue == pytest.approx(np.linalg.eigvalsh(v)[0], rel=1e-6)


def test_columns_that_show_nothing_give_nothing() -> None:
    tall = equations(TRUE)
    tall[:, 5] *= 1e-12
    tall[:, 10] = tall[:, :10] @ TRUE
    found = fit_body(tall)
    assert found.values[5] == pytest.approx(0.0, abs=1e-9)
    assert np.delete(found.values, 5) == pytest.approx(np.delete(TRUE, 5), rel=1e-6)


@pytest.mark.parametrize(('share', 'stays'), [(1.2e-8, True), (0.8e-8, False)])
def test_columns_below_rounding_are_zero(share: float, stays: bool) -> None:
    """Of the largest, or, once others are eliminated, of themselves."""
    rng = np.random.default_rng(1)
    design = np.linalg.qr(rng.normal(size=(8, 3)))[0] * [5.0, 5.0 * share, 2.0]
    found = informative(design)
    assert found[:, [0, 2]].tolist() == design[:, [0, 2]].tolist()
    assert bool(found[:, 1].any()) is stays
    basis = np.linalg.qr(rng.normal(size=(8, 4)))[0]
    one, other, third, fourth = basis.T
    factor = np.column_stack([one, third, 3.0 * one + 3.0 * share * other, 2.0 * fourth + third])
    rest = without(factor, 2)
    assert rest.shape == (2, 2)
    assert np.linalg.norm(rest, axis=0) == pytest.approx(
        [3.0 * share if stays else 0.0, 2.0], rel=1e-6)


@pytest.mark.parametrize(('least', 'active'), [(-0.8e-9, False), (-1.2e-9, True)])
def test_bodies_may_be_inconsistent_by_rounding(least: float, active: bool) -> None:
    """Down to a billionth of the largest eigenvalue, in units of the mass at 0.1 m."""
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0]
    values = np.array([least, 0.5, 0.8, 1.0])
    root = np.diag([0.1, 0.1, 0.1, 1.0])
    body = root @ (turn * values) @ turn.T @ root
    body *= 2.0 / body[3, 3]  # 2 kg: V has the same ratios of eigenvalues whatever the mass
    found = fit_body(equations(_parameters(body)))
    assert found.active is active


def _parameters(body: FloatArray) -> FloatArray:
    """Return the parameters (10,) of a pseudo-inertia."""
    second = body[:3, :3]
    inertia = np.trace(second) * np.eye(3) - second
    return np.array([body[3, 3], *body[:3, 3], inertia[0, 0], inertia[0, 1], inertia[1, 1],
                     inertia[0, 2], inertia[1, 2], inertia[2, 2]])


def test_the_best_consistent_body_is_a_projection_where_equations_are_alike() -> None:
    """Of equations that measure V in all directions alike: negative eigenvalues become zero."""
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(4, 4)))[0]
    root = np.sqrt(2.0) * np.diag([0.1, 0.1, 0.1, 1.0])
    values = np.array([-0.3, 0.5, 0.8, 1.0])
    v = (turn * values) @ turn.T
    v[3, 3] = 1.0  # the mass of 2 kg
    values, turn = np.linalg.eigh(v)
    assert values[0] < -0.05 and values[1] > 0.0
    upper = np.triu_indices(4)
    to_v = np.array([np.linalg.solve(root, np.linalg.solve(root, pseudo_inertia(unit)).T)[upper]
                     for unit in np.eye(10)]).T
    weights = np.where(upper[0] == upper[1], 1.0, np.sqrt(2.0))[:, None]
    wanted = _parameters(root @ v @ root)
    design = 100.0 * weights * to_v
    found = fit_body(np.column_stack([design, design @ wanted]))
    expected = root @ (turn * np.maximum(values, 0.0)) @ turn.T @ root
    assert pseudo_inertia(found.values) == pytest.approx(expected, abs=1e-6)
    assert found.active and found.least_eigenvalue == pytest.approx(0.0, abs=1e-6)


def test_a_solver_that_stalls_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, 'solve', lambda _: Solution(
        np.zeros(10), Outcome.STALLED, 0.0, 0.0))
    with pytest.raises(DynIdError) as caught:
        fit_body(equations(-TRUE))
    assert str(caught.value) == (
        'the payload could not be made physically possible: stopped before a solution; check '
        'mass and centre of mass if they were given, and that the recordings belong together')
