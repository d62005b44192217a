"""effects/ripple_search.py: scores, spectra, equations and phases against their formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from robot_dynid.effects.ripple import amplitudes
from robot_dynid.effects.ripple_search import (
    DELAYS,
    Fit,
    JointResidual,
    NormalEquations,
    Phases,
    Spectrum,
    add_ridge,
    gear_orders,
    remove_trends,
    surprise,
)
from robot_dynid.types import FloatArray

ORDERS = np.arange(20.0, 4001.0)


def rows(count: int = 240) -> JointResidual:
    """Return rows of a joint that moves and, in some of them, rests."""
    rng = np.random.default_rng(1)
    velocity = np.where(np.arange(count) % 5 == 2, 0.0, rng.uniform(-1.0, 1.4, count))
    return JointResidual(
        rng.uniform(-2.0, 2.0, count), velocity, 20.0 * rng.normal(size=count),
        rng.normal(size=count) * (0.5 + np.abs(velocity)), np.arange(count) // 60,
        np.arange(count) // 12, 0.07, 0.6, 0.01)


def test_scores_are_shares_times_the_residual_made_independent() -> None:
    data = rows()
    residual = data.residual + 1.5
    scores = data.scores(residual)
    moves = np.isin(np.arange(240), data.moving)
    fast = remove_trends(residual[moves], data.block[moves])
    shares = amplitudes(data.velocity, 0.07, 0.6).T[:, moves]
    assert scores.shape == (2, 3, 240) and not scores[:, :, ~moves].any()
    for found, values in zip(scores[:, :, moves], (residual[moves], fast), strict=True):
        np.testing.assert_allclose(found @ found.T, 2.0 * np.eye(3), rtol=0.0, atol=1e-5)
        plain = shares * values
        mixing = np.linalg.lstsq(plain.T, found.T)[0]
        np.testing.assert_allclose(found, mixing.T @ plain, rtol=0.0, atol=1e-9)
        np.testing.assert_allclose(mixing @ mixing.T, np.linalg.inv(plain @ plain.T / 2.0),
                                   rtol=1e-4)


def powers(data: JointResidual, scores: FloatArray, compliance: float) -> FloatArray:
    """Return the powers (2, 25, 3981) of scores by delays and orders, by NumPy's transform."""
    found = []
    for delay in np.linspace(-12e-3, 6e-3, 25):
        turn = (data.position + compliance * data.effort + delay * data.velocity) / 2.0 / np.pi
        bins = np.floor(np.mod(turn, 1.0) * 16384.0).astype(int)
        table = np.zeros((2, 3, 16384))
        np.add.at(table, (slice(None), slice(None), bins), scores)
        found.append(np.sum(np.abs(np.fft.rfft(table)[:, :, 20:4001])**2, axis=1))
    return np.stack(found, axis=1)


def test_a_spectrum_is_the_least_power_over_the_noise_of_its_neighbours() -> None:
    data = rows()
    residual = data.residual + np.sin(300.0 * data.position)
    spectrum = Spectrum.of(data, residual, 2e-4)
    power = powers(data, data.scores(residual), 2e-4)
    np.testing.assert_allclose(DELAYS, np.linspace(-12e-3, 6e-3, 25), rtol=0.0, atol=1e-12)
    np.testing.assert_array_equal(spectrum.orders, ORDERS)
    usual = np.median(power, axis=1)
    for k in (0, 17, 390, 1500, 3700, 3980):
        around = usual[:, np.clip(np.arange(k - 400, k + 401), 0, 3980)]
        level = np.sort(around, axis=1)[:, 801 // 4] / chi2.ppf(0.25, 6)
        np.testing.assert_allclose(spectrum.level[:, k], level, rtol=1e-6)
    np.testing.assert_allclose(spectrum.power, np.min(power / spectrum.level[:, None], axis=0),
                               rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(('order', 'column'), [
    (137.2, 117), (137.7, 118), (500.0, 480), (12.0, 0), (4100.0, 3980)])
def test_surprise_of_a_wave_is_that_of_its_power_at_the_level_of_its_order(
    order: float, column: int
) -> None:
    data, rng = rows(), np.random.default_rng(2)
    level = rng.uniform(0.5, 2.0, (2, len(ORDERS)))
    spectrum = Spectrum(ORDERS, np.zeros((25, len(ORDERS))), level)
    gear = np.array([100.0, 500.0, 700.0])
    phase = order * (data.position + 3e-4 * data.effort - 2e-3 * data.velocity)
    alone = data.residual + np.cos(phase)
    sums = data.scores(alone) @ np.exp(1j * phase)
    power = np.min(np.sum(np.abs(sums)**2, axis=1) / level[:, column])
    found = spectrum.surprise_of(data, alone, (order, -2e-3, 3e-4), gear)
    assert found == pytest.approx(surprise(power, 3 if order == 500.0 else len(ORDERS)))


def test_surprise_is_less_by_the_logarithm_of_rivals_delays_and_two_families() -> None:
    assert surprise(10.0, 7) == pytest.approx(
        5.0 - np.log(1.0 + 5.0 + 12.5) - np.log(2.0 * 7.0 * 25.0))


def test_rivals_are_compared_by_the_power_that_the_wave_took_and_no_more_than_five() -> None:
    best = np.zeros((2, len(ORDERS)))
    with_wave, without = best.copy(), best.copy()
    for order, power, other in ((70, 50.0, 5.0), (71, 44.9, 0.0), (100, 60.0, 30.0),
                                (200, 39.0, 3.0), (300, 44.0, 1.0)):
        with_wave[0, order - 20], without[0, order - 20] = power, other
    level = np.ones((2, len(ORDERS)))
    spectrum, rest = (Spectrum(ORDERS, power, level) for power in (with_wave, without))
    assert spectrum.rivals(70.0, 1.5, rest).tolist() == [300.0, 200.0]
    assert spectrum.rivals(70.0, 0.9, rest).tolist() == [71.0, 300.0, 200.0]
    with_wave[1, 480:488] = 45.0 + np.arange(8.0)
    assert spectrum.rivals(70.0, 1.5, rest).tolist() == [507.0, 506.0, 505.0, 504.0, 503.0]


@pytest.mark.parametrize(('ratio', 'bases'), [
    (3.0, (3.0, 2.0)), (2.9, (2.9,)), (-20.0, (20.0, 19.0)), (4001.0, (4000.0,)), (1.9, ())])
def test_orders_of_a_gear_lie_between_twenty_and_four_thousand(
    ratio: float, bases: tuple[float, ...]
) -> None:
    expected = {round(k * base, 6) for base in bases for k in range(1, 2001)}
    assert np.round(gear_orders(ratio), 6).tolist() == sorted(
        order for order in expected if 20.0 <= order <= 4000.0)


def test_ridges_are_a_ten_thousandth_of_the_diagonal() -> None:
    gram = np.array([[4.0, 1.0], [1.0, 9.0]])
    np.testing.assert_allclose(add_ridge(np.stack([gram, 0.0 * gram])), [
        [[4.0004 + 1e-12, 1.0], [1.0, 9.0009 + 1e-12]], [[1e-12, 0.0], [0.0, 1e-12]]], rtol=1e-12)


def test_equations_solve_for_all_rows_and_leave_their_errors() -> None:
    data, columns = rows(), np.random.default_rng(3).normal(size=(240, 3))
    equations = NormalEquations.of(data, columns)
    for fold in range(4):
        part = slice(60 * fold, 60 * fold + 60)
        np.testing.assert_allclose(equations.grams[fold], columns[part].T @ columns[part])
        np.testing.assert_allclose(equations.sides[fold], columns[part].T @ data.residual[part])
    solved = np.linalg.solve(add_ridge(columns.T @ columns), columns.T @ data.residual)
    np.testing.assert_allclose(equations.solve(), solved)
    np.testing.assert_allclose(equations.errors(), data.residual - columns @ solved)


def two_waves() -> Phases:
    return Phases(np.array([202.0, 70.0]), np.array([-3e-3, 2e-3]), 3e-5, np.array([1e-4, 2e-4]),
                  5e-6)


def test_phases_with_and_without_a_wave_keep_the_others() -> None:
    more = two_waves().with_wave(90.0, 1e-3)
    assert (more.orders.tolist(), more.delays.tolist(), more.compliance, more.delay_std.tolist()
            ) == ([202.0, 70.0, 90.0], [-3e-3, 2e-3, 1e-3], 3e-5, [1e-4, 2e-4, 0.0])
    less = replace(more, compliance_std=5e-6).without(0)
    assert (less.orders.tolist(), less.delays.tolist(), less.compliance, less.delay_std.tolist(),
            less.compliance_std) == ([70.0, 90.0], [2e-3, 1e-3], 3e-5, [2e-4, 0.0], 5e-6)
    assert Phases.none(4e-5).compliance == 4e-5 and len(Phases.none(4e-5).orders) == 0


def test_columns_of_phases_are_sines_and_cosines_times_shares() -> None:
    data = rows()
    columns = two_waves().columns(data)
    shares = amplitudes(data.velocity, 0.07, 0.6)
    for k, (order, delay) in enumerate(((202.0, -3e-3), (70.0, 2e-3))):
        phase = order * (data.position + 3e-5 * data.effort + delay * data.velocity)
        for s in range(3):
            np.testing.assert_allclose(columns[:, 6 * k + 2 * s], shares[:, s] * np.sin(phase))
            np.testing.assert_allclose(columns[:, 6 * k + 2 * s + 1], shares[:, s] * np.cos(phase))


def test_a_fit_has_errors_waves_and_projections_of_its_columns() -> None:
    data = rows()
    fit = Fit.of(two_waves(), data)
    columns = two_waves().columns(data)
    solved = np.linalg.solve(add_ridge(columns.T @ columns), columns.T @ data.residual)
    np.testing.assert_allclose(fit.errors(), data.residual - columns @ solved)
    np.testing.assert_allclose(fit.of_wave(0), columns[:, :6] @ solved[:6])
    np.testing.assert_allclose(fit.of_wave(1), columns[:, 6:] @ solved[6:])
    values = np.random.default_rng(4).normal(size=(240, 2))
    np.testing.assert_allclose(fit.project_out(values), values - columns @ np.linalg.solve(
        add_ridge(columns.T @ columns), columns.T @ values), rtol=1e-9, atol=1e-9)


def test_a_joint_within_no_range_resolves_no_orders() -> None:
    still = replace(rows(), position=np.full(240, 0.3))
    assert still.resolved == pytest.approx(2.0 * np.pi / 1e-9)
