"""Filters, derivatives and fused velocity against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import signal
from tolerances import DERIVATIVE, SAME_FORMULA

from robot_dynid.errors import UsageError
from robot_dynid.signals.filters import (
    derivative,
    first_order_zero_phase,
    fuse_velocity,
    second_difference_noise,
    zero_phase_low_pass,
)

DT = 0.002
TIME = np.arange(0.0, 20.0, DT)
MIDDLE = slice(len(TIME) // 4, -len(TIME) // 4)


def gain_and_delay(filtered, frequency):
    """Return amplitude and delay [s] of a filtered sine, by least squares away from the ends."""
    t = TIME[MIDDLE]
    waves = np.stack([np.sin(2 * np.pi * frequency * t), np.cos(2 * np.pi * frequency * t)], 1)
    s, c = np.linalg.lstsq(waves, filtered[MIDDLE], rcond=None)[0]
    return np.hypot(s, c), -np.arctan2(c, s) / (2 * np.pi * frequency)


@pytest.mark.parametrize('frequency', [0.5, 2.0, 5.0, 8.0, 12.0, 20.0])
def test_low_pass_is_butterworth_twice_without_phase(frequency):
    wave = np.sin(2 * np.pi * frequency * TIME)[:, None]
    gain, delay = gain_and_delay(zero_phase_low_pass(wave, 8.0, DT)[:, 0], frequency)
    _, response = signal.freqz(*signal.butter(4, 8.0, fs=1 / DT), worN=[frequency], fs=1 / DT)
    assert gain == pytest.approx(float(np.abs(response[0])) ** 2, abs=1e-6)
    if gain > 1e-3:
        assert delay == pytest.approx(0.0, abs=1e-8)


def test_cutoff_is_where_one_pass_has_lost_half_its_power():
    wave = np.sin(2 * np.pi * 8.0 * TIME)[:, None]
    gain, _ = gain_and_delay(zero_phase_low_pass(wave, 8.0, DT)[:, 0], 8.0)
    assert gain == pytest.approx(0.5, abs=1e-6)  # -3 dB twice


def test_low_pass_keeps_constants_and_lines_and_columns_apart():
    line = np.stack([3.0 + 0 * TIME, 2.0 * TIME - 1.0], axis=1)
    assert zero_phase_low_pass(line, 5.0, DT) == pytest.approx(line, abs=1e-4)


@settings(max_examples=30)
@given(st.integers(1, 60), st.floats(0.5, 200.0))
def test_low_pass_never_fails_on_short_stretches(count, cutoff):
    values = np.random.default_rng(count).normal(size=(count, 2))
    filtered = zero_phase_low_pass(values, cutoff, DT)
    assert filtered.shape == values.shape
    assert np.isfinite(filtered).all()
    constant = zero_phase_low_pass(np.full((count, 2), 4.0), cutoff, DT)
    assert constant == pytest.approx(np.full((count, 2), 4.0))


@pytest.mark.parametrize('cutoff', [0.0, -1.0, 250.0, 1000.0, np.nan])
def test_low_pass_refuses_impossible_cutoffs(cutoff):
    with pytest.raises(UsageError, match='Nyquist frequency 250 Hz'):
        zero_phase_low_pass(np.zeros((100, 1)), cutoff, DT)


@pytest.mark.parametrize('frequency', [0.3, 1.0, 3.0])
def test_first_order_filter_has_its_stated_magnitude(frequency):
    corner = 10.0
    wave = np.sin(2 * np.pi * frequency * TIME)[:, None]
    gain, delay = gain_and_delay(first_order_zero_phase(wave, corner, DT)[:, 0], frequency)
    assert gain == pytest.approx(1.0 / (1.0 + (2 * np.pi * frequency / corner) ** 2), rel=1e-3)
    assert delay == pytest.approx(0.0, abs=1e-8)


@pytest.mark.parametrize('power', range(5))
def test_derivative_is_exact_for_polynomials_to_the_fourth_power(power):
    t = np.linspace(-1.0, 1.0, 101)
    found = derivative(t[:, None] ** power, t[1] - t[0])[:, 0]
    exact = power * t ** max(power - 1, 0)
    assert found[2:-2] == pytest.approx(exact[2:-2], abs=1e-11)
    if power < 3:
        assert found == pytest.approx(exact, abs=1e-11)


def test_derivative_is_of_fourth_order_inside():
    def worst(count):
        t = np.linspace(0.0, 1.0, count + 1)
        found = derivative(np.sin(6.0 * t)[:, None], 1.0 / count)[:, 0]
        return np.abs(found - 6.0 * np.cos(6.0 * t))[2:-2].max()

    order = np.log2(worst(50) / worst(100))
    assert order == pytest.approx(4.0, abs=DERIVATIVE)


@pytest.mark.parametrize('count', [0, 1, 2, 3, 4, 5])
def test_derivative_of_few_samples(count):
    values = 3.0 * np.arange(count, dtype=float)[:, None]
    expected = 3.0 if count > 1 else 0.0
    assert derivative(values, 1.0) == pytest.approx(np.full((count, 1), expected))


@pytest.mark.parametrize('deviation', [1e-6, 1e-3, 0.2])
def test_noise_is_measured_under_motion(deviation):
    rng = np.random.default_rng(1)
    motion = np.stack([np.sin(TIME), np.cos(2.0 * TIME)], axis=1)
    noisy = motion + deviation * rng.normal(size=motion.shape)
    assert second_difference_noise(noisy) == pytest.approx(deviation, rel=0.03)


def test_noise_is_robust_against_jumps():
    rng = np.random.default_rng(2)
    values = np.where(TIME > 7.0, 5.0, 0.0)[:, None] + 0.01 * rng.normal(size=(len(TIME), 1))
    assert second_difference_noise(values) == pytest.approx([0.01], rel=0.03)


@pytest.mark.parametrize(('position_noise', 'velocity_noise'), [
    (1e-5, 1e-2), (1e-4, 1e-2), (1e-6, 1e-3), (1e-3, 1e-2), (1e-6, 0.1),
])
def test_fused_velocity_is_better_than_either_source(position_noise, velocity_noise):
    rng = np.random.default_rng(3)
    q, v = np.sin(3.0 * TIME)[:, None], 3.0 * np.cos(3.0 * TIME)[:, None]
    position = q + position_noise * rng.normal(size=q.shape)
    velocity = v + velocity_noise * rng.normal(size=q.shape)
    errors = [np.std((zero_phase_low_pass(estimate, 20.0, DT) - v)[MIDDLE]) for estimate in (
        fuse_velocity(position, velocity, DT), derivative(position, DT), velocity)]
    assert errors[0] < 1.02 * min(errors[1:])


def test_fusion_reaches_the_variance_of_the_wiener_filter():
    rng = np.random.default_rng(4)
    q, v = np.sin(TIME)[:, None], np.cos(TIME)[:, None]
    s_p, s_v = 1e-4, 5e-3
    fused = fuse_velocity(q + s_p * rng.normal(size=q.shape),
                           v + s_v * rng.normal(size=q.shape), DT)
    w = np.linspace(0.0, np.pi / DT, 20001)
    density = 1.0 / (1.0 / s_v**2 + 1.0 / np.maximum((w * s_p) ** 2, 1e-30))
    expected = np.sqrt(np.mean(density))
    assert np.std((fused - v)[MIDDLE]) == pytest.approx(expected, rel=0.15)


def test_rounding_of_positions_does_not_move_the_corner_of_fused_velocity():
    """A joint that rests most of the time, in steps of its encoder, on a grid by interpolation."""
    rng = np.random.default_rng(4)
    q = np.round(0.8 * np.sin(TIME)[:, None].clip(0.5) + 1e-6 * rng.normal(size=(len(TIME), 1)), 5)
    velocity = 0.8 * np.where(np.sin(TIME) > 0.5, np.cos(TIME), 0.0)[:, None]
    velocity = velocity + 1e-3 * rng.normal(size=velocity.shape)
    rounded = q + 1e-15 * rng.choice([-3.0, 0.0, 2.0], size=q.shape)
    still, moved = (np.mean(np.diff(x, 3, axis=0) == 0.0) for x in (q, rounded))
    assert still > 0.5 > moved
    np.testing.assert_allclose(fuse_velocity(rounded, velocity, DT),
                               fuse_velocity(q, velocity, DT), rtol=0.0, atol=100.0 * SAME_FORMULA)


def test_fused_velocity_follows_position_where_velocity_has_an_offset():
    rng = np.random.default_rng(5)
    q, v = np.sin(TIME)[:, None], np.cos(TIME)[:, None]
    fused = fuse_velocity(q + 1e-5 * rng.normal(size=q.shape),
                           v + 0.05 + 1e-2 * rng.normal(size=q.shape), DT)
    assert np.mean((fused - v)[MIDDLE]) == pytest.approx(0.0, abs=2e-3)


def test_zero_phase_low_pass_commutes_with_a_linear_law():
    rng = np.random.default_rng(6)
    speed = rng.normal(size=(len(TIME), 2))
    effort = speed @ np.array([[2.0, 0.3], [-1.0, 4.0]])
    left = zero_phase_low_pass(effort, 10.0, DT)
    right = zero_phase_low_pass(speed, 10.0, DT) @ np.array([[2.0, 0.3], [-1.0, 4.0]])
    assert left == pytest.approx(right, abs=SAME_FORMULA)


def test_position_decides_at_low_frequencies_however_noisy_it_is():
    """Measured velocity may carry an offset, whatever its noise says about it."""
    rng = np.random.default_rng(7)
    q, v = np.sin(TIME)[:, None], np.cos(TIME)[:, None]
    fused = fuse_velocity(q + 1e-3 * rng.normal(size=q.shape),
                           v + 0.05 + 1e-4 * rng.normal(size=q.shape), DT)
    assert np.mean((fused - v)[MIDDLE]) == pytest.approx(0.0, abs=2e-3)


def test_first_order_filter_keeps_ramps_to_the_very_ends():
    ramp = 3.0 * TIME[:500, None]
    corner = 20.0
    kept = first_order_zero_phase(ramp, corner, DT)
    # what is left of the start of the filter after five time constants
    assert kept == pytest.approx(ramp, abs=3.0 / corner * np.exp(-5.0))


@pytest.mark.parametrize('corner', [100.0, 500.0])
def test_first_order_filter_halves_at_its_corner_also_near_the_sampling_rate(corner):
    wave = np.sin(corner * TIME)[:, None]
    gain, _ = gain_and_delay(first_order_zero_phase(wave, corner, DT)[:, 0], corner / 2 / np.pi)
    assert gain == pytest.approx(0.5, abs=1e-3)


def test_the_noise_of_fewer_than_four_values_is_unknown():
    values = np.array([[0.0, 1.0], [5.0, -1.0], [0.0, 2.0], [7.0, 0.0]])
    np.testing.assert_array_equal(second_difference_noise(values[:3]), [0.0, 0.0])
    assert (second_difference_noise(values) > 0.0).all()


@pytest.mark.parametrize('count', [30, 700])
@pytest.mark.parametrize('cutoff', [3.3, 8.0, 60.0])
def test_filters_are_those_of_scipy_with_padding_of_their_memory(count, cutoff):
    """Three periods of the cut-off, or five times the inverse of the corner."""
    values = np.random.default_rng(0).normal(size=(count, 2))
    for order, periods, found in (
            (4, 3.0, zero_phase_low_pass(values, cutoff, DT)),
            (1, 2.5 / np.pi, first_order_zero_phase(values, 2.0 * np.pi * cutoff, DT))):
        padding = min(count - 1, int(np.ceil(periods / (cutoff * DT))))
        sections = signal.butter(order, cutoff, fs=1.0 / DT, output='sos')
        expected = signal.sosfiltfilt(sections, values, axis=0, padlen=padding)
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-9)
    fast = first_order_zero_phase(values, 1.001 * np.pi / DT, DT)
    np.testing.assert_array_equal(fast, values)


@pytest.mark.parametrize(('noise', 'corner'), [((1e-4, 0.1), None), ((1e-2, 1e-3), 2.0 * np.pi)])
def test_fused_velocity_is_the_complementary_filter_at_its_corner(noise, corner):
    rng = np.random.default_rng(1)
    position, velocity = (size * rng.normal(size=(300, 1)) for size in noise)
    size = [1.4826 * np.median(np.abs(np.diff(one, n=3, axis=0))) / np.sqrt(20.0)
            for one in (position, velocity)]
    np.testing.assert_allclose(second_difference_noise(position), size[0], rtol=1e-12)
    slope = derivative(position, DT)
    expected = velocity + first_order_zero_phase(
        slope - velocity, corner or size[1] / size[0], DT)
    np.testing.assert_allclose(fuse_velocity(position, velocity, DT), expected, rtol=1e-12)
    still = np.zeros((300, 1))
    np.testing.assert_array_equal(fuse_velocity(still, velocity, DT), still)


@pytest.mark.parametrize(('size', 'known'), [(0.95e-11, False), (1.05e-11, True)])
def test_differences_below_rounding_are_no_noise(size, known):
    """Third differences of values that alternate are eight times as large."""
    values = 2.0 + size / 4.0 * (-1.0)**np.arange(50)[:, None]
    assert second_difference_noise(values) == pytest.approx(
        2.0 * 1.4826 * size / np.sqrt(20.0) if known else 0.0, rel=1e-3, abs=1e-20)
