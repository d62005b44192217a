"""effects/ripple_search.py: scores, spectra, equations and phases against their formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

from robot_dynid.effects import ripple_search
from robot_dynid.effects.ripple import amplitudes
from robot_dynid.effects.ripple_search import (
    DELAYS,
    Fit,
    JointResidual,
    NormalEquations,
    Phases,
    RippleFit,
    Spectrum,
    add_ridge,
    fit_ripple,
    gear_orders,
    refine_phases,
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
    weak = 0.0 * best  # 9.5 and a hundredth as likely is 0.29, more than orders without power have
    weak[0, [50, 51, 90]] = 9.5, 0.8, 0.5
    assert Spectrum(ORDERS, weak, level).rivals(70.0, 1.5, Spectrum(
        ORDERS, 0.0 * best, level)).tolist() == [110.0]


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


@pytest.mark.parametrize(('apart', 'both'), [(1, False), (2, False), (3, True)])
@pytest.mark.parametrize('way', [1, -1])
def test_peaks_are_the_highest_of_two_orders_on_either_side(
    apart: int, both: bool, way: int
) -> None:
    power = np.zeros((25, len(ORDERS)))
    power[0, [380, 380 + way * apart]] = 60.0, 50.0
    found = [peak.order for peak in Spectrum(ORDERS, power, np.ones((2, len(ORDERS)))).peaks(
        np.empty(0)) if peak.surprise > 0.0]
    assert found == [400.0, 400.0 + way * apart][:1 + both]


@pytest.mark.parametrize(('apart', 'other'), [(1.4, False), (1.6, True)])
def test_orders_nearer_to_a_gear_than_is_resolved_are_those_of_the_gear(
    apart: float, other: bool
) -> None:
    power = np.zeros((25, len(ORDERS)))
    power[3, 480] = 60.0
    found = Spectrum(ORDERS, power, np.ones((2, len(ORDERS)))).peaks(np.array([500.0 - apart]))
    assert [peak.order for peak in found if peak.surprise > 0.0] == [500.0][:other]


@pytest.mark.parametrize(('unlikely', 'listed'), [(0.5, True), (-0.1, False)])
def test_large_peaks_are_listed_that_surprise(unlikely: float, listed: bool) -> None:
    """After the five that surprise most, the largest at their noise."""
    level, power = np.ones((2, len(ORDERS))), np.zeros((25, len(ORDERS)))
    power[0, 100:600:100] = 70.0
    power[0, 700] = brentq(lambda one: surprise(one, len(ORDERS)) - unlikely, 1.0, 70.0)
    level[0, 700] = 9.0
    found = [peak.order for peak in Spectrum(ORDERS, power, level).peaks(np.empty(0))]
    assert sorted(found[:5]) == [120.0, 220.0, 320.0, 420.0, 520.0]
    assert found[5:] == [720.0][:listed]


@pytest.mark.parametrize(('spread', 'twists'), [
    (9.9, [0.0]), (10.1, [0.0, 0.5, 1.0, 1.5, 2.0, 3.0])])
def test_compliances_of_loaded_joints_are_scanned_in_shares_of_a_turn_of_order_a_thousand(
    monkeypatch: pytest.MonkeyPatch, spread: float, twists: list[float]
) -> None:
    data = rows()
    effort = data.effort - data.effort.mean()
    data = replace(data, effort=5.0 + spread / np.std(effort) * effort)
    scanned: list[float] = []

    def scan(data: JointResidual, residual: FloatArray, compliance: float) -> Spectrum:
        scanned.append(compliance)
        return Spectrum(ORDERS, np.zeros((25, len(ORDERS))), np.ones((2, len(ORDERS))))

    monkeypatch.setattr(Spectrum, 'of', scan)
    found = fit_ripple(data)
    assert (found.ripple, found.waves, found.aliased) == (None, (), ())
    assert scanned == pytest.approx([twist / 1000.0 / spread for twist in twists])


#: orders of twelve waves [1/rad], multiples of ten
MANY = 30.0 * np.arange(2.0, 14.0)


def waving(
    monkeypatch: pytest.MonkeyPatch, waves: FloatArray = MANY, effort: float = 1.0,
    scan: tuple[float, int] = (9.0, 0), **given: float,
) -> RippleFit:
    """Return the fit to waves of decreasing size, of which every has the chance 1e-9.

    ``scan`` is the range of positions [rad], and by how much it shows orders too low; ``given``:
    ``ratio`` of the gear, and ``chance`` of the wave of 60 1/rad.
    """
    reach, low = scan
    rng = np.random.default_rng(5)
    position = rng.uniform(0.0, reach, 900)
    residual = np.sum((1.0 - 0.05 * np.arange(len(waves))) * np.sin(
        np.outer(position, waves)), axis=1) + 0.1 * rng.normal(size=900)
    ones, index = np.ones(900), np.arange(900)
    data = JointResidual(position, 0.5 * ones, effort * ones, residual,
                         index // 225, index // 10, 0.05, 1.0, 0.01)
    turning = np.exp(1j * np.outer(ORDERS[:400] + low, position))

    def stand_out(data: JointResidual, residual: FloatArray, compliance: float) -> Spectrum:
        power = np.zeros((25, len(ORDERS)))
        power[16, :400] = np.abs(turning @ residual)**2 / 2000.0
        return Spectrum(ORDERS, power, np.ones((2, len(ORDERS))))

    monkeypatch.setattr(Spectrum, 'of', stand_out)
    monkeypatch.setattr(Spectrum, 'surprise_of', lambda self, data, alone, wave, gear: -np.log(
        given.get('chance', 1e-9) if wave[0] == 60.0 else 1e-9))
    return fit_ripple(data, given.get('ratio'))


def test_a_ripple_has_at_most_ten_waves(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [wave.order for wave in waving(monkeypatch, ratio=10.0).waves] == MANY[:10].tolist()


@pytest.mark.parametrize(('chance', 'used'), [(0.95e-3, True), (1.05e-3, False)])
def test_waves_of_a_chance_above_a_thousandth_are_left_out(
    monkeypatch: pytest.MonkeyPatch, chance: float, used: bool
) -> None:
    found = waving(monkeypatch, MANY[:2], ratio=10.0, chance=chance)
    assert [wave.order for wave in found.waves] == [60.0, 90.0][1 - used:]


@pytest.mark.parametrize('low', [-2, -1, 0, 1, 2])
def test_the_order_of_a_wave_is_the_best_of_those_two_around_that_of_the_scan(
    monkeypatch: pytest.MonkeyPatch, low: int
) -> None:
    found = waving(monkeypatch, np.array([200.0]), scan=(0.8, low))
    assert [wave.order for wave in (*found.waves, *found.aliased)] == [200.0]


@pytest.mark.parametrize('true', [-25e-3, 25e-3])
def test_delays_are_at_most_twenty_milliseconds(true: float) -> None:
    data = rows()
    data = replace(data, residual=np.sin(20.0 * (data.position + true * data.velocity)))
    found = refine_phases(Phases.none(0.0).with_wave(20.0, 0.6 * true), data, twists=False)
    assert found.delays == pytest.approx([np.copysign(20e-3, true)], rel=1e-3)
    assert (found.compliance, found.compliance_std) == (0.0, 0.0)


def test_deviations_of_delays_are_those_of_errors_alike_within_blocks() -> None:
    """The sandwich of White over blocks, with the coefficients of the wave projected out."""
    data = rows()
    truth = np.sin(60.0 * (data.position - 3e-3 * data.velocity))
    data = replace(data, residual=truth + 0.2 * np.repeat(
        np.random.default_rng(6).normal(size=20), 12) * np.cos(60.0 * data.position))
    found = refine_phases(Phases.none(0.0).with_wave(60.0, -2e-3), data, twists=False)
    fit = Fit.of(found, data)
    slope = fit.project_out(fit.slopes() * data.velocity[:, None])[:, 0]
    sums = [slope[data.block == b] @ fit.errors()[data.block == b] for b in range(20)]
    assert found.delay_std == pytest.approx(
        [np.sqrt(np.sum(np.square(sums))) / (slope @ slope)], rel=1e-3)


@pytest.mark.parametrize(('share', 'spread', 'twists'), [
    (4.1, 1.0, True), (3.9, 1.0, False), (-4.1, 1.0, False), (4.1, 39.0, True),
    (4.1, 41.0, False)])
def test_a_compliance_is_used_from_four_deviations_up_to_four_milliradians(
    monkeypatch: pytest.MonkeyPatch, share: float, spread: float, twists: bool
) -> None:
    """Of 1e-4 rad/(N m), at an effort of ``spread`` [N m]."""
    monkeypatch.setattr(ripple_search, 'refine_phases', lambda phases, data, twists: replace(
        phases, compliance=np.sign(share) * 1e-4 * twists,
        compliance_std=1e-4 / abs(share) * twists))
    found = waving(monkeypatch, MANY[:1], spread, ratio=10.0).ripple
    assert found is not None and found.compliance == (1e-4 if twists else 0.0)
