"""effects/ripple_search.py: the fit of torque ripple: known gears are found, noise alone is not.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from rippling import RATIO, Gear, joint_residual
from scipy.stats import chi2
from tolerances import DIFFERENCE, LEAST_SQUARES, RIPPLE_INTERVALS, SAME_FORMULA

from robot_dynid.effects import ripple_search
from robot_dynid.effects.ripple import TorqueRipple
from robot_dynid.effects.ripple_search import (
    DELAYS,
    Fit,
    JointResidual,
    NormalEquations,
    Phases,
    Spectrum,
    add_ridge,
    compliance_of_load,
    fit_ripple,
    gear_orders,
    refine_phases,
    surprise,
)
from robot_dynid.types import FloatArray, frozen


def explained(ripple: TorqueRipple, data: JointResidual) -> float:
    """Return the share of the variance that a ripple takes off other rows."""
    left = data.residual - ripple.effort(data.position, data.velocity, data.effort)
    return 1.0 - float(np.sum(left**2) / np.sum(data.residual**2))


@pytest.mark.parametrize('ratio', [RATIO, None])
@pytest.mark.parametrize('seed', [1, 2])
def test_a_known_gear_is_found(ratio: float | None, seed: int) -> None:
    gear = Gear()
    found = fit_ripple(joint_residual(seed, gear), ratio)
    assert {10.0 * RATIO, 2.0 * RATIO} <= {wave.order for wave in found.waves}
    assert all(wave.chance < 1e-3 for wave in found.waves)
    off = abs(found.compliance - 1.0 / gear.stiffness)
    assert off < RIPPLE_INTERVALS * found.compliance_std < 0.5 / gear.stiffness
    assert found.ripple is not None
    other = joint_residual(seed + 10, gear)
    gain, held = explained(found.ripple, other), 1.0 - (found.rms_with / found.rms_without)**2
    assert gain > 0.8 * explained_by_truth(gear, other)
    assert held > 0.7 * explained_by_truth(gear, joint_residual(seed, gear))


def explained_by_truth(gear: Gear, data: JointResidual) -> float:
    """Return the share of the variance that the ripple itself makes up."""
    left = data.residual - gear.torque(data.position, data.velocity, data.effort)
    return 1.0 - float(np.sum(left**2) / np.sum(data.residual**2))


@pytest.mark.parametrize('seed', range(4))
def test_noise_is_no_ripple(seed: int) -> None:
    found = fit_ripple(joint_residual(seed, None), RATIO if seed % 2 else None)
    assert found.ripple is None
    assert found.waves == ()
    assert found.rms_with == found.rms_without


def test_the_delay_is_that_of_the_effort() -> None:
    gear = Gear(stiffness=np.inf, corner=1e9)
    found = fit_ripple(joint_residual(3, gear), RATIO)
    assert found.compliance == 0.0, 'a stiff gear shows no compliance'
    for wave in found.waves[:2]:
        assert abs(wave.delay + gear.late) < RIPPLE_INTERVALS * wave.delay_std < gear.late


def test_a_compliance_that_stands_out_wrongly_hides_no_wave(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data = joint_residual(3, Gear(stiffness=np.inf, corner=1e9))
    expected = [wave.order for wave in fit_ripple(data, RATIO).waves]
    stiff, soft = (Spectrum.of(data, data.residual, compliance) for compliance in (0.0, 1e-3))
    wrong = {0.0: stiff, 1e-3: replace(soft, power=100.0 * soft.power)}
    monkeypatch.setattr('robot_dynid.effects.ripple_search.first_scans', lambda _: wrong)
    assert expected and [wave.order for wave in fit_ripple(data, RATIO).waves] == expected


def test_fit_ripple_scans_no_residual_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    data, scan, scanned = joint_residual(3, Gear(), seconds=20.0), Spectrum.of, []

    def counted(data: JointResidual, residual: FloatArray, compliance: float) -> Spectrum:
        scanned.append((residual.tobytes(), compliance))
        return scan(data, residual, compliance)

    monkeypatch.setattr(Spectrum, 'of', counted)
    assert fit_ripple(data, RATIO).waves
    assert len(scanned) == len(set(scanned))


def test_a_wave_must_be_unlikely_and_lower_the_held_out_error() -> None:
    data = joint_residual(5, Gear(waves=((10.0, 0.02),)))
    assert fit_ripple(data, RATIO).ripple is None, 'too small to gain anything'
    alike = replace(data, folds=np.zeros_like(data.folds))
    with_wave = Phases.none(0.0).with_wave(1010.0, -4e-3)
    errors = NormalEquations.of(alike, with_wave.columns(alike)).held_out_errors()
    np.testing.assert_allclose(errors, data.residual)  # nothing else to learn from


@pytest.mark.parametrize(('deviations', 'better'), [(1.9, False), (2.1, True)])
def test_is_better_asks_for_two_deviations_of_the_gain(deviations: float, better: bool) -> None:
    blocks = 100
    gains = 0.1 * (deviations / np.sqrt(blocks) + np.tile([1.0, -1.0], blocks // 2))
    signs = np.tile([1.0, -1.0], blocks)  # no mean in a block of two rows
    data = SimpleNamespace(block=np.repeat(np.arange(blocks), 2), residual=signs)
    candidate = signs * np.repeat(np.sqrt(1.0 - gains / 2.0), 2)
    assert ripple_search.is_better(signs, candidate, data) == better


def test_rivals_are_at_least_a_hundredth_as_likely() -> None:
    likelihoods = {70.0: 1.0, 71.0: 1.0, 30.0: 1.0 / 110.0, 40.0: 1.0 / 90.0, 90.0: 1.0 / 20.0}
    orders = np.arange(20.0, 120.0)
    power = np.zeros((1, len(orders)))
    for order, likelihood in likelihoods.items():
        power[0, orders == order] = 60.0 + 2.0 * np.log(likelihood)
    level = np.ones((2, len(orders)))
    found = Spectrum(orders, power, level).rivals(
        70.0, 1.5, Spectrum(orders, np.zeros_like(power), level))
    assert found.tolist() == [90.0, 40.0]


def test_slopes_of_the_phase_are_differences() -> None:
    data = joint_residual(7, Gear(), seconds=2.0)
    coefficients = np.random.default_rng(0).normal(size=12)
    phases = Phases(np.array([202.0, 1010.0]), np.array([-3e-3, -5e-3]), 3e-5, np.zeros(2))
    ripple = TorqueRipple(frozen(phases.orders), frozen(phases.delays), phases.compliance,
                          data.slow, data.fast, frozen(coefficients))

    def torque(one: TorqueRipple) -> np.ndarray:
        return one.effort(data.position, data.velocity, data.effort)

    fit = replace(Fit.of(phases, data), coefficients=coefficients)
    slopes = fit.by_phases(fit.slopes())
    for k, step in enumerate((1e-8, 1e-8, 1e-10)):
        ends = []
        for side in (step, -step):
            delays = ripple.delays + side * (np.arange(2) == k)
            ends.append(replace(ripple, delays=delays,
                                compliance=ripple.compliance + side * (k == 2)))
        difference = (torque(ends[0]) - torque(ends[1])) / (2.0 * step)
        scale = float(np.abs(difference).max())
        np.testing.assert_allclose(slopes[:, k], difference,
                                   rtol=0.0, atol=100.0 * DIFFERENCE * scale)


def test_a_phase_by_direction_is_no_compliance() -> None:
    gear = Gear(stiffness=np.inf, corner=1e9, waves=((10.0, 0.8),))
    data = joint_residual(4, None)
    friction = 3.0 * np.tanh(data.velocity / 0.02)
    light = replace(data, effort=friction + 0.3 * np.cos(data.position))
    shifted = data.position + 2e-4 * np.tanh(data.velocity / 0.02)  # a fifth of a radian
    waves = gear.torque(shifted, data.velocity, light.effort)
    light = replace(light, residual=light.residual + waves)
    begin = Phases.none(0.0).with_wave(1010.0, -gear.late)
    found = refine_phases(begin, light, twists=True)
    assert found.compliance > 3.0 * found.compliance_std, 'looks like 2e-4 rad by 3 N m'
    value, std = compliance_of_load(found, light)
    assert abs(value) < RIPPLE_INTERVALS * std
    assert std > 3.0 * found.compliance_std


def test_the_load_tells_the_compliance_from_beside_it() -> None:
    gear = Gear()
    data = joint_residual(6, gear)
    begin = Phases.none(0.0).with_wave(1010.0, -3e-3).with_wave(202.0, -3e-3)
    found = refine_phases(begin, data, twists=True)
    beside = replace(found, compliance=1.3 * found.compliance)
    value, std = compliance_of_load(beside, data)
    assert abs(value - 1.0 / gear.stiffness) < 0.1 / gear.stiffness
    assert std < 0.1 / gear.stiffness


def test_a_wave_that_chance_may_give_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    data = joint_residual(1, Gear())
    waves = fit_ripple(data, RATIO).waves
    weakest = max(wave.chance for wave in waves)
    assert weakest > 0.0
    monkeypatch.setattr('robot_dynid.effects.ripple_search.UNLIKELY', 0.5 * weakest)
    assert len(fit_ripple(data, RATIO).waves) < len(waves)


def test_refined_phases_are_the_least() -> None:
    data = joint_residual(8, Gear())
    begin = Phases.none(0.0).with_wave(1010.0, -3e-3).with_wave(202.0, -3e-3)
    found = refine_phases(begin, data, twists=True)

    def squares(one: Phases) -> float:
        return float(np.sum(Fit.of(one, data).errors()**2))

    least = squares(found)
    assert least < squares(begin)
    for shift in (-1.0, 1.0):
        moved = replace(found, compliance=found.compliance + shift * found.compliance_std)
        assert squares(moved) > least
        assert squares(replace(found, delays=found.delays + shift * found.delay_std)) > least


def test_orders_of_gears_are_multiples_of_the_ratio_and_of_one_less() -> None:
    orders = gear_orders(-101.0)
    assert {101.0, 200.0, 202.0, 1010.0, 2424.0} <= set(orders)
    assert not np.any((orders % 101.0 != 0.0) & (orders % 100.0 != 0.0))
    assert len(gear_orders(None)) == 0
    assert len(gear_orders(1.0)) == 0, 'a direct drive has no gear'


def test_surprise_is_the_tail_of_chi_squared_by_all_that_is_looked_at() -> None:
    for power in (0.5, 12.0, 300.0):
        tail = -surprise(power, 7) - np.log(2 * 7 * len(DELAYS))
        np.testing.assert_allclose(tail, chi2.logsf(power, 6), rtol=SAME_FORMULA)


def test_a_spectrum_of_white_noise_is_flat() -> None:
    data = joint_residual(9, None)
    white = np.random.default_rng(1).standard_normal(len(data.residual))
    spectrum = Spectrum.of(data, white, 0.0)
    assert abs(np.mean(spectrum.power[:, 300:]) / 6.0 - 1.0) < 0.3, 'six degrees of freedom'
    assert max(peak.surprise for peak in spectrum.peaks(gear_orders(RATIO))) < 5.0


def test_equations_are_those_of_the_columns_of_the_ripple() -> None:
    data = joint_residual(2, Gear(), seconds=20.0)
    orders, delays = 101.0 * np.arange(2, 12), -1e-3 * np.arange(10)
    phases = Phases(orders, delays, 2e-5, np.zeros(10))
    whole = phases.ripple(data).columns(data.position, data.velocity, data.effort)
    equations = NormalEquations.of(data, phases.columns(data))
    np.testing.assert_allclose(equations.grams.sum(axis=0), whole.T @ whole,
                               rtol=0.0, atol=LEAST_SQUARES * len(whole))
    np.testing.assert_allclose(equations.sides.sum(axis=0), whole.T @ data.residual,
                               rtol=0.0, atol=LEAST_SQUARES * len(whole))


def test_held_out_errors_are_those_of_fits_to_the_other_folds() -> None:
    data = joint_residual(3, Gear(), seconds=20.0)
    both = Phases.none(1e-5).with_wave(202.0, -3e-3).with_wave(1010.0, -3e-3)
    once = NormalEquations.of(data, both.columns(data))
    left = data.residual.copy()
    for fold in np.unique(data.folds):
        own = data.folds == fold
        columns = both.ripple(data).columns(data.position, data.velocity, data.effort)
        rest = replace(data, residual=np.where(own, 0.0, data.residual))
        gram = add_ridge(columns[~own].T @ columns[~own])
        left[own] -= columns[own] @ np.linalg.solve(gram, columns.T @ rest.residual)
    np.testing.assert_allclose(once.held_out_errors(), left, rtol=0.0, atol=LEAST_SQUARES * 100.0)


def rows_of(velocity: FloatArray, **others: FloatArray) -> JointResidual:
    """Return rows at ``velocity`` (N,), 0.01 s apart."""
    none = np.zeros(len(velocity))
    values = {'position': none, 'effort': none, 'residual': none, 'folds': none.astype(int),
              'blocks': none.astype(int), **others}
    return JointResidual(velocity=velocity, slow=0.1, fast=1.0, step=0.01, **values)  # type: ignore[arg-type]


def test_stretches_of_a_residual_are_contiguous_and_know_their_fold() -> None:
    data = rows_of(np.ones(5), folds=np.array([5, 5, 2, 2, 5]), blocks=np.array([9, 9, 4, 7, 7]))
    assert data.stretches == ((1, slice(0, 2)), (0, slice(2, 4)), (1, slice(4, 5)))
    assert data.block.tolist() == [2, 2, 0, 1, 1]


def test_orders_that_rows_show_are_bounded_by_speed_and_range() -> None:
    """At most half a wave between two rows in the slowest twentieth, at the most 4000 1/rad."""
    speed = np.concatenate([np.zeros(50), np.linspace(1.0, 2.0, 101)])  # at rest nothing shows
    data = rows_of(np.where(np.arange(151) % 2, speed, -speed),
                   position=np.linspace(0.0, 0.5, 151))
    assert data.moving.tolist() == list(range(50, 151))
    assert data.highest_order == pytest.approx(np.pi / (1.05 * 0.01))
    assert rows_of(0.01 * np.ones(9)).highest_order == pytest.approx(4000.0)
    assert data.resolved == pytest.approx(2.0 * np.pi / 0.5)
    assert rows_of(np.ones(9), position=np.arange(9.0)).resolved == 1.5
    turn = 2.0 * np.pi / (1.5 * 0.01)  # at the median speed this order looks like standing still
    assert data.alias(1.2 * turn) == pytest.approx(0.2 * turn)
    assert data.alias(1.8 * turn) == pytest.approx(0.2 * turn)


def test_peaks_are_of_gears_and_of_the_highest_orders_around() -> None:
    orders = np.arange(20.0, 4001.0)
    power = np.zeros((len(DELAYS), len(orders)))
    heights = {20: 55.0, 100: 60.0, 101: 50.0, 150: 70.0, 300: 45.0, 302: 46.0, 500: 65.0,
               501: 66.0}
    for k, (order, height) in enumerate(heights.items()):
        power[k, order - 20] = height
    gear = np.array([100.2, 149.0, 5000.0])
    found = Spectrum(orders, power, np.full((2, len(orders)), 2.0)).peaks(gear)
    # 150 1/rad is nearer to that of the gear than is resolved; the gear has two orders here
    expected = {100.2: (100, 2), 501.0: (501, 3981), 302.0: (302, 3981), 20.0: (20, 3981)}
    for peak in found[:-1]:
        order, rivals = expected[peak.order]
        height = heights[order]
        assert peak.delay == DELAYS[list(heights).index(order)]
        assert (peak.surprise, peak.size) == (surprise(height, rivals), 2.0 * height)
    assert found[-1].order == 149.0 and found[-1].size == 0.0
    assert [peak.order for peak in found] == [100.2, 501.0, 20.0, 302.0, 149.0]


@pytest.mark.parametrize('many', [False, True])
def test_peaks_of_the_greatest_surprise_come_first_then_the_largest(many: bool) -> None:
    orders, count = np.arange(20.0, 4001.0), 9 if many else 4
    places = 100 * np.arange(1, count + 1)
    power, level = np.zeros((len(DELAYS), len(orders))), np.ones((2, len(orders)))
    power[0, places], level[0, places] = 50.0 + np.arange(count), 2.0**-np.arange(count)
    found = Spectrum(orders, power, level).peaks(np.empty(0))
    surprising, large = list(range(count - 1, -1, -1))[:5], list(range(count))[:5]
    assert [peak.order for peak in found] == [20.0 + places[k] for k in [
        *surprising, *(k for k in large if k not in surprising)]]


@pytest.mark.parametrize('share', [0.0019, 0.0021])
def test_a_wave_must_take_off_two_thousandths_of_the_variance(share: float) -> None:
    signs = np.tile([1.0, -1.0], 50)
    data = SimpleNamespace(block=np.repeat(np.arange(50), 2), residual=2.0 * signs)
    candidate = signs * np.sqrt(1.0 - 4.0 * share)
    assert ripple_search.is_better(signs, candidate, data) == (share > 0.002)


def test_waves_are_told_with_their_size_delay_and_chance() -> None:
    gear = Gear(waves=((2.0, 0.4), (10.0, 0.6)))
    data = joint_residual(1, gear)
    found = fit_ripple(data, RATIO)
    sizes = {turns * RATIO: size * np.sqrt(np.mean(
        1.0 / (1.0 + (turns * RATIO * data.velocity / gear.corner)**2)))
        for turns, size in gear.waves}
    assert [wave.order for wave in found.waves] == sorted(sizes, key=lambda one: -sizes[one])
    for wave in found.waves:
        assert wave.amplitude == pytest.approx(sizes[wave.order], rel=0.1)
        assert abs(wave.delay + gear.late) < 4.0 * wave.delay_std < 2e-3
        assert wave.aliases == ()
    assert found.rms_without == pytest.approx(np.sqrt(np.mean(data.residual**2)))
