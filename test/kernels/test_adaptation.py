"""kernels/adaptation.hpp: followed coefficients and warmth, against the equations written out in
NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tolerances import SAME_FORMULA

from robot_dynid.effects.slow_changes import ONLINE_COUNT, SlowTables
from robot_dynid.kernels import adaptation
from robot_dynid.types import FloatArray

#: the longest step by which a measurement gets better [s], and the bound in deviations
LONGEST, BOUND = 0.1, 3.0
GATE, GAIN = 4.0, 25.0
JOINTS, STATES = 2, 400


def result_of(part: Any, *arguments: Any) -> float:
    """Return the result of a part of a kernel."""
    out = np.empty(1)
    part(out, *arguments)
    return float(out[0])


def forgotten(
    mean: FloatArray, covariance: FloatArray, prior: FloatArray, step: float
) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance of Ornstein-Uhlenbeck processes after a ``step`` [s]."""
    keep = np.exp(-prior[1] * step)
    return keep * mean, np.outer(keep, keep) * covariance + np.diag(
        prior[0]**2 * (1.0 - keep**2))


def learnt(
    mean: FloatArray, covariance: FloatArray, column: FloatArray, left: float,
    noise: tuple[float, FloatArray],
) -> tuple[FloatArray, FloatArray]:
    """Return mean and covariance after a measurement ``left``, of a variance, by Kalman."""
    variance, deviations = noise
    total = column @ covariance @ column + variance
    innovation = left - column @ mean
    if not innovation**2 < GATE**2 * total:
        return mean, covariance
    gain = covariance @ column / total
    most = BOUND * deviations
    return (np.clip(mean + gain * innovation, -most, most),
            covariance - np.outer(gain, column @ covariance))


def test_coefficients_along_a_recording_are_those_of_kalman() -> None:
    rng = np.random.default_rng(0)
    prior = np.array([[0.2, 0.05, 0.4, 0.4], [0.5, 0.5, 3.0, 3.0]])
    steps = rng.choice([0.01, 0.05, 0.4], STATES)
    steps[[0, 150]] = 0.0
    columns = rng.normal(size=(STATES, 4)) * np.array([4.0, 6.0, 1.0, 1.0])
    left = columns @ np.array([0.9, -0.1, 0.5, -0.3]) + rng.normal(0.0, 0.3, STATES)
    left[50:60], left[200] = 40.0, np.nan
    noise = 0.3**2 * 0.05
    state, means = np.zeros((6, 4)), np.empty((STATES, 4))
    adaptation.follow_coefficients(
        columns, np.stack([left, steps]), prior, np.array([noise, GATE]), state, means)
    wanted = np.empty_like(means)
    for i, step in enumerate(steps):
        if step == 0.0:
            mean, covariance = np.zeros(4), np.diag(prior[0]**2)
            wanted[i] = mean
            continue
        mean, covariance = forgotten(mean, covariance, prior, step)
        wanted[i] = mean
        mean, covariance = learnt(mean, covariance, columns[i], left[i], (
            noise / min(step, LONGEST), prior[0]))
    assert np.any(np.isclose(np.abs(wanted), BOUND * prior[0], rtol=0.02)), 'a bound is reached'
    np.testing.assert_allclose(means, wanted, rtol=0.0, atol=SAME_FORMULA)
    np.testing.assert_allclose(state[0], mean, rtol=0.0, atol=SAME_FORMULA)
    np.testing.assert_allclose(state[2:], covariance, rtol=0.0, atol=SAME_FORMULA)


def test_forget_returns_coefficients_to_the_prior_over_time() -> None:
    """The variance of the process itself, for any step; a mean fades."""
    deviations, rates = np.array([0.2, 0.5]), np.array([0.5, 2.0])
    for step in (0.01, 1.0, 30.0):
        state = np.array([[0.1, -0.3], [0.0, 0.0], [0.01, 0.004], [0.004, 0.09]])
        mean, covariance = state[0].copy(), state[2:].copy()
        adaptation.forget(state, deviations, rates, step)
        np.testing.assert_allclose(state[0], mean * np.exp(-rates * step))
        variance = deviations**2 + (np.diag(covariance) - deviations**2) * np.exp(
            -2.0 * rates * step)
        np.testing.assert_allclose(np.diag(state[2:]), variance)
        np.testing.assert_allclose(state[[2, 3], [1, 0]], 0.004 * np.exp(-2.5 * step))


def test_warmth_of_a_constant_power_is_an_exponential() -> None:
    seconds, warmth = np.array([3.0, 40.0]), np.array([0.2, 0.9])
    steps = np.random.default_rng(0).uniform(0.01, 2.0, 50)
    out = np.empty((50, 2))
    power, still = np.outer(np.ones(50), [1.2, 0.5]), np.zeros((2, 3))
    adaptation.follow_warmth(power, still, steps, 1.0 / seconds, warmth.copy(), out)
    since = np.cumsum(steps) - steps[0]
    np.testing.assert_allclose(
        out, 1.7 + (warmth - 1.7) * np.exp(-since[:, None] / seconds), rtol=0.0, atol=SAME_FORMULA)


def test_warmth_takes_the_mean_power_of_a_step() -> None:
    power, steps = np.array([[0.4, 0.6], [2.0, 1.0], [0.0, 0.0]]), np.array([9.0, 0.5, 2.0])
    still, out = np.zeros((2, 2)), np.empty((3, 1))
    adaptation.follow_warmth(power, still, steps, np.array([0.25]), np.zeros(1), out)
    first = 2.0 * (1.0 - np.exp(-0.125))
    np.testing.assert_allclose(out[:, 0], [0.0, first, 1.5 + (first - 1.5) * np.exp(-0.5)])


def test_friction_that_has_fallen_heats_less() -> None:
    power, law = np.tile([2.0, 1.0], (20_000, 1)), np.array([[0.2, 0.5], [-0.1, 0.3]])
    out = np.empty((20_000, 1))
    adaptation.follow_warmth(power, law, np.full(20_000, 0.01), np.array([0.1]), np.zeros(1), out)
    # w' = (2 (1.2 - 0.5 w) + (0.9 - 0.3 w) - w) / 10; the power is a step behind
    since = 0.01 * np.arange(20_000)
    np.testing.assert_allclose(out[:, 0], 3.3 / 2.3 * (1.0 - np.exp(-0.23 * since)), rtol=2e-3)


def tables() -> SlowTables:
    """Return those of a joint whose friction warms up over two times, and of one without."""
    rates = np.array([[0.2, 2.0], [1.0, 1.0]])
    laws = np.zeros((JOINTS, 2, 4))
    laws[:, :, 0] = 1.0
    laws[0] = [[3.0, 0.1, 0.2, 0.05], [3.0, -0.02, 0.04, 0.03]]
    prior = np.array([[[0.2, 0.06], [0.3, 0.3]], [[0.1, 0.03], [0.05, 0.05]]])
    settings = np.array([[0.004, GATE, 0.01, GAIN], [0.01, GATE, 0.01, GAIN]])
    return SlowTables(rates, laws, prior, settings)


def test_slow_changes_on_line_are_those_of_kalman_behind_the_low_pass() -> None:
    """State by state: warmth, both scales, the low-passed column, its deviation, what is learnt.

    Low-pass and warmth go on over a step with the mean of both ends, exactly.
    """
    known, rng = tables(), np.random.default_rng(1)
    rates, laws, prior, settings = known
    memory = known.memory()
    pasts, states, scales = memory
    steps = rng.choice([0.002, 0.01, 0.3], STATES)
    steps[[0, 170]] = 0.0
    speed = np.cumsum(rng.normal(0.0, 0.3, (STATES, JOINTS)), axis=0)
    columns = np.stack([0.4 * speed, 0.2 * np.sign(speed)], axis=2)
    columns[100:110] *= -1.0  # no power comes from friction that pushes
    drift = np.array([0.3, -0.05])
    for j in range(JOINTS):
        w, low, last, power = np.zeros(2), np.zeros(ONLINE_COUNT), np.zeros(ONLINE_COUNT), 0.0
        warming = laws[j, :, 1]
        mean, covariance = np.zeros(ONLINE_COUNT), np.diag(prior[j, 0]**2)
        slow, low_slow = 0.0, 0.0
        for i, step in enumerate(steps):
            column = columns[i, j]
            now = max(float((1.0 + warming) @ column) * speed[i, j], 0.0)
            if step > 0.0:
                w += (1.0 - np.exp(-rates[j] * step)) * (
                    0.5 * (power + now) / laws[j, 0, 0] - w)
                mean, covariance = forgotten(mean, covariance, prior[j], step)
            power, warming = now, laws[j, :, 1] - laws[j, :, 2:] @ w
            torque = result_of(adaptation.corrected, known, memory, j, column, speed[i, j], step)
            assert torque == pytest.approx(
                (warming + mean) @ column, abs=SAME_FORMULA, rel=SAME_FORMULA)
            np.testing.assert_allclose(scales[:, j], 1.0 + warming + mean,
                                       rtol=0.0, atol=SAME_FORMULA)
            share = 1.0 - np.exp(-GAIN * step)
            low = (low + share * (0.5 * (last + column) - low)) if step else np.zeros(ONLINE_COUNT)
            low_slow = low_slow + share * (
                0.5 * (slow + mean @ column) - low_slow) if step else 0.0
            last, slow = column, float(mean @ column)
            seen = column.copy()
            deviation = np.sqrt(low @ covariance @ low)
            assert result_of(adaptation.uncertain, known, memory, j, seen) == pytest.approx(
                deviation, abs=SAME_FORMULA)
            np.testing.assert_allclose(seen, low, rtol=0.0, atol=SAME_FORMULA)
            if step > 0.0:
                outside = low_slow - drift @ low + rng.normal(0.0, 0.2)
                size = settings[j, 0] / min(step, LONGEST)
                # now and then three deviations off, and once nobody's friction
                outside += 3.0 * np.sqrt(size + deviation**2) if i % 20 == 7 else 0.0
                outside += 60.0 if i in (120, 121) else 0.0
                adaptation.take(known, memory, j, seen, outside, step)
                mean, covariance = learnt(
                    mean, covariance, low, low_slow - outside, (size, prior[j, 0]))
        np.testing.assert_allclose(states[j, 0], mean, rtol=0.0, atol=SAME_FORMULA)
        np.testing.assert_allclose(states[j, 2:], covariance, rtol=0.0, atol=SAME_FORMULA)
        np.testing.assert_allclose(pasts[j, 4:6], w, rtol=0.0, atol=SAME_FORMULA)
