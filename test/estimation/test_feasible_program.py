"""estimation/feasible/program.py: minima in closed form, and the bounds of the feasible set."""

from __future__ import annotations

import numpy as np
import pytest

from robot_dynid.estimation.feasible.bounds import Limits
from robot_dynid.estimation.feasible.certificate import certificate
from robot_dynid.estimation.feasible.conic import Outcome, Solution, matrix_of, vector_of
from robot_dynid.estimation.feasible.prior import Whitening
from robot_dynid.estimation.feasible.program import Answer, FeasibleSet, Program
from robot_dynid.robot.inertia import pseudo_inertia
from robot_dynid.types import FloatArray

TRANSFORM = np.diag(np.random.default_rng(0).uniform(0.5, 2.0, 23))
ONE = vector_of(np.eye(4))
#: two links, then two parameters that are not negative and one of either sign
WHITENING = Whitening(
    tuple(f'p{i}' for i in range(23)), ('a', 'b'), TRANSFORM,
    np.concatenate([ONE, ONE, np.zeros(3)]), np.array(20 * [1.0] + [0.01, 0.03, 0.02]),
    np.arange(23) > 20, np.zeros(23, dtype=np.int64), np.where(np.arange(23) == 22, 0.2, 0.0), ())
CENTRE, WEIGHTS = WHITENING.centre, WHITENING.weights
MASS_A, MASS_B = 9, 19  # entry (4, 4) of V


def limits(*rows: tuple[dict[int, float], float, bool]) -> Limits:
    """Return limits from coefficients by parameter, offset, and whether they are equations."""
    matrix = np.zeros((len(rows), 23))
    for row, (coefficients, _, _) in zip(matrix, rows, strict=True):
        row[list(coefficients)] = list(coefficients.values())
    return Limits(tuple(f'row {i}' for i in range(len(rows))), matrix,
                  np.array([offset for _, offset, _ in rows]),
                  np.array([equal for _, _, equal in rows], dtype=bool), np.zeros((len(rows), 2)))


FREE = FeasibleSet(WHITENING, limits())


def equations(chosen: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return a design and a target whose minima are inside the feasible set."""
    rng = np.random.default_rng(1)
    design = rng.normal(size=(40, len(chosen)))
    inside = CENTRE[chosen] + 0.1 * rng.normal(size=len(chosen))
    inside[chosen > 19] = 0.7
    return design, design @ inside + 0.1 * rng.normal(size=40)


def slope(prior: str, v: FloatArray, chosen: FloatArray) -> FloatArray:
    """Return the gradient of the prior at v (k,): of tr V - log det V for entropic links."""
    found = WEIGHTS[chosen] * (v - CENTRE[chosen])
    if prior == 'entropic':
        links = np.count_nonzero(chosen < 20)
        inverse = np.linalg.inv(matrix_of(v[:links].reshape(-1, 10)))
        found[:links] = (ONE - vector_of(inverse)).ravel()
    return np.asarray(found)


@pytest.mark.parametrize('prior', ['entropic', 'euclidean'])
@pytest.mark.parametrize('chosen', [np.arange(23), np.array([*range(10, 20), 20, 22])])
def test_minima_of_data_and_prior_are_stationary(prior: str, chosen: FloatArray) -> None:
    design, target = equations(chosen)
    program = Program(FREE, prior, chosen)
    assert program.links == len(chosen) // 10
    for share in (0.5, 20.0):
        found = program.minimise(design, target, share)
        assert found.outcome is Outcome.SOLVED and found.values.shape == chosen.shape
        gradient = 2.0 * design.T @ (design @ found.values - target)
        prior_gradient = share * slope(prior, found.values, chosen)
        np.testing.assert_allclose(gradient, -prior_gradient, rtol=0.0,
                                   atol=1e-4 * np.abs(prior_gradient).max())


@pytest.mark.parametrize('prior', ['entropic', 'euclidean'])
def test_the_nearest_point_that_satisfies_equations_is_stationary_along_them(prior: str) -> None:
    chosen = np.array([*range(10), 20, 21, 22])
    matrix = np.linalg.qr(np.random.default_rng(2).normal(size=(13, 4)))[0].T
    right = matrix @ (CENTRE[chosen] + 0.1 + 0.4 * (chosen > 19))
    found = Program(FREE, prior, chosen).nearest((matrix, right))
    np.testing.assert_allclose(matrix @ found.values, right, rtol=1e-10)
    gradient = slope(prior, found.values, chosen)
    open_ways = np.linalg.svd(matrix)[2][4:]
    passive = found.values[chosen > 20]
    assert np.all(passive > 0.01)
    np.testing.assert_allclose(open_ways @ gradient, 0.0, rtol=0.0, atol=3e-4)


@pytest.mark.parametrize('prior', ['entropic', 'euclidean'])
def test_links_keep_a_share_of_their_nominal_inertia_and_friction_is_not_negative(
    prior: str
) -> None:
    wanted = np.concatenate([-ONE, 2.0 * ONE, [-1.0, -2.0, 0.5]])
    found = Program(FREE, prior, np.arange(23)).minimise(np.eye(23), wanted, 1e-8)
    least = WHITENING.least(found.values)
    assert least[1] == pytest.approx(2.0, rel=1e-5)
    if prior == 'euclidean':
        assert least[0] == pytest.approx(2e-6, abs=1e-7)  # twice what is feasible
    assert least[0] >= 1e-6
    assert found.values[20:] == pytest.approx([-1.0, 0.0, 0.5], abs=1e-6)
    assert FREE.holds(found.values)


def test_limits_count_what_is_not_chosen_and_what_others_may_add() -> None:
    """a + b >= 2.7 with b chosen, a = 0.9 and others up to 0.5; 2 b10 = 1.2; an open row."""
    rows = limits(({MASS_A: 1.0, MASS_B: 1.0}, 2.7, False), ({10: 2.0}, 1.2, True),
                  ({MASS_B: 1.0}, -np.inf, False), ({MASS_A: 1.0}, 50.0, False))
    feasible = FeasibleSet(WHITENING, rows)
    np.testing.assert_allclose(feasible.lengths, [
        np.hypot(TRANSFORM[MASS_A, MASS_A], TRANSFORM[MASS_B, MASS_B]), 2.0 * TRANSFORM[10, 10],
        TRANSFORM[MASS_B, MASS_B], TRANSFORM[MASS_A, MASS_A]], rtol=1e-12)
    rest = np.zeros(23)
    rest[MASS_A] = 0.9 / TRANSFORM[MASS_A, MASS_A]
    more = np.array([0.5, 0.0, 0.0, 0.0]) / feasible.lengths
    chosen = np.arange(10, 20)
    program, target = Program(feasible, 'euclidean', chosen), CENTRE[chosen] - 0.9 * (chosen == 19)
    for spare, mass in ((more, 1.3), (0.0 * more, 1.8)):
        for solution in (program.minimise(np.eye(10), target, 1e-6, rest, spare),
                         program.nearest((np.eye(10)[1:2], np.zeros(1)), rest, spare)):
            physical = TRANSFORM[chosen, chosen] * solution.values
            assert physical[0] == pytest.approx(0.6, abs=1e-6)
            if mass > TRANSFORM[MASS_B, MASS_B]:
                assert physical[9] == pytest.approx(mass, abs=1e-5)
            assert physical[9] >= mass - 1e-5
    free = program.minimise(np.eye(10), target, 1e-6, rest, np.array([np.inf, 0.0, 0.0, 0.0]))
    assert free.values[9] == pytest.approx(0.1, abs=1e-4)
    several = program.minimise(np.eye(10), target, 1e-6)  # all of it from the chosen link
    assert TRANSFORM[MASS_B, MASS_B] * several.values[9] == pytest.approx(2.7, abs=1e-5)


@pytest.mark.parametrize(('place', 'value', 'holds'), [
    (0, 1.1e-6, True), (0, 0.9e-6, False), (20, -5.0, True), (21, -0.9e-7, True),
    (21, -1.1e-7, False), (22, np.nan, False), (MASS_B, 3.0 - 0.9e-6, True),
    (MASS_B, 3.0 - 1.2e-6, False), (10, 1.0 + 0.9e-6, True), (10, 1.0 + 1.2e-6, False),
    (10, 1.0 - 1.2e-6, False)])
def test_points_are_feasible_to_rounding(place: int, value: float, holds: bool) -> None:
    """Of limits ten times a parameter: a ten-millionth of one more than their size."""
    rows = limits(({MASS_B: 10.0}, 30.0 * TRANSFORM[MASS_B, MASS_B], False),
                  ({10: 10.0}, 10.0 * TRANSFORM[10, 10], True))
    v = CENTRE.copy()
    v[MASS_B] = 3.0
    v[place] = value
    size = 1.0 + (v[MASS_B] if place == MASS_B else 1.0)
    if place in (10, MASS_B):
        off = value - (3.0 if place == MASS_B else 1.0)
        v[place] -= off - 0.1 * off * size  # shares of the tolerance
    assert FeasibleSet(WHITENING, rows).holds(v) is holds


def test_rounding_below_zero_is_cut_off_at_the_floor() -> None:
    v = np.full(23, -1e-9)
    assert FREE.clipped(v).tolist() == 21 * [-1e-9] + [0.0, 0.2]
    assert FREE.clipped(v + 1.0)[21:].tolist() == [1.0 - 1e-9] * 2


def test_certificates_state_margins_and_what_the_prior_decides() -> None:
    v = CENTRE.copy()
    v[:10] *= 0.3
    v[20:] = 0.4, 0.5, 0.6
    design = np.diag(np.where(np.arange(23) < 20, 0.1, 2.0))[:22]
    found = certificate(FREE, Answer(v, 1e-3, 2e-9), design, 0.015, (1.44, 1.0))
    assert found.gap == 2e-9 and found.rise_of_residual == pytest.approx(0.2)
    assert {name: link.share_of_nominal for name, link in found.links.items()} == pytest.approx(
        {'a': 0.3, 'b': 1.0})
    for name, place in (('a', 0), ('b', 10)):
        body = pseudo_inertia((TRANSFORM @ v)[place:place + 10])
        assert found.links[name].smallest_eigenvalue == pytest.approx(
            np.linalg.eigvalsh(body)[0], rel=1e-9)
    # of each link 0.015 / (0.015 + 2 * 0.01), of the others that over their weight, the last none
    shares = {**{f'p{i}': 0.428571 for i in range(20)}, 'p20': 0.000019, 'p21': 0.000056,
              'p22': 1.0}
    assert found.prior_share == shares
    assert found.from_prior == ('p22',) and found.directions_from_prior == 1
    assert certificate(FREE, Answer(v, 0.0, 0.0), design, 0.025, (1.0, 0.0)).from_prior == tuple(
        f'p{i}' for i in (*range(20), 22))
    assert certificate(FREE, Answer(v, 0.0, 0.0), design, 0.0, (1.0, 0.0)).rise_of_residual == 0.0


@pytest.mark.parametrize(('primal', 'dual', 'gap'), [
    (3.0, 2.0, 0.5), (2.0, 3.0, 0.5), (0.5, 0.2, 0.3), (-4.0, -5.0, 0.25)])
def test_gaps_are_relative_to_objectives_above_one(
    primal: float, dual: float, gap: float
) -> None:
    assert Solution(np.zeros(1), Outcome.SOLVED, primal, dual).gap == pytest.approx(gap)
