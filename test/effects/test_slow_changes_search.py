"""effects/slow_changes_search.py: drift of least error is taken, and few recordings suffice."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from robot_dynid.effects.slow_changes import (
    Adaptation,
    FrictionResidual,
    SlowChangeTracker,
    SlowCoefficients,
    Warming,
)
from robot_dynid.effects.slow_changes_search import (
    AdaptationFit,
    Gain,
    add_drift,
    fit_slow_coefficients,
    fit_warming,
    gain,
    noise_density,
    rescale_warming,
)
from robot_dynid.types import FloatArray

STEP = 0.05


def recording(seed: int, seconds: float, waves: int = 0, noise: float = 0.5) -> FrictionResidual:
    """Return friction along a motion of two sines, and noise that is left over."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, STEP)
    speed = 0.6 * np.sin(0.9 * time + seed) + 0.7 * np.sin(1.7 * time)
    viscous, dry = 10.0 * speed, 6.0 * np.tanh(speed / 0.01)
    phase = 13.0 * time
    columns = np.stack([np.sin(phase), np.cos(phase)], axis=1)[:, :waves]
    return FrictionResidual(time, viscous, dry, (viscous + dry) * speed,
                            rng.normal(0.0, noise, len(time)), columns)


def wander(rng: np.random.Generator, count: int, size: float, seconds: float) -> FloatArray:
    """Return an Ornstein-Uhlenbeck process (count,) of deviation ``size``."""
    keep, x = np.exp(-STEP / seconds), np.empty(count)
    x[0] = rng.normal(0.0, size)
    for i in range(1, count):
        x[i] = keep * x[i - 1] + rng.normal(0.0, size * np.sqrt(1.0 - keep**2))
    return x


def drifting(seed: int, sizes: tuple[float, float, float], seconds: float) -> list[
        FrictionResidual]:
    """Return recordings whose viscous and dry friction and waves drift by these deviations."""
    found = []
    for k in range(2):
        one = recording(seed + k, 40.0, 2 if sizes[2] else 0)
        rng, count = np.random.default_rng(100 + seed + k), len(one.time)
        left = one.left + wander(rng, count, sizes[0], seconds) * one.viscous
        left += wander(rng, count, sizes[1], seconds) * one.dry
        if sizes[2]:
            left += wander(rng, count, sizes[2], 10.0) * one.waves[:, 0]
        found.append(replace(one, left=left))
    return found


def squared_error(residuals: list[FrictionResidual], drift: SlowCoefficients) -> float:
    return sum(float(np.sum((one.left - torque)**2)) for one, torque in zip(
        residuals, drift.torque(residuals), strict=True))


@pytest.mark.parametrize(('seed', 'sizes', 'seconds'), [
    (1, (0.3, 0.1, 0.0), 160.0), (2, (0.3, 0.01, 0.0), 10.0), (3, (0.1, 0.1, 0.0), 40.0),
    (4, (0.03, 0.1, 0.0), 40.0), (3, (0.03, 0.01, 0.0), 160.0), (2, (0.03, 0.01, 0.0), 10.0)])
def test_drift_of_friction_is_that_of_least_error_of_all_tried(
    seed: int, sizes: tuple[float, float, float], seconds: float
) -> None:
    residuals = drifting(seed, sizes, seconds)
    noise = noise_density(residuals)
    tried = [SlowCoefficients(viscous, dry, 0.0, time, 10.0, share * noise)
             for viscous, dry, time, share in product(
                 (0.03, 0.1, 0.3), (0.01, 0.03, 0.1), (10.0, 40.0, 160.0), (0.3, 1.0))]
    best = min(tried, key=lambda one: squared_error(residuals, one))
    found, gained = fit_slow_coefficients(residuals)
    assert found == best
    left = [one.left for one in residuals]
    assert gained == gain(residuals, left, [a - b for a, b in zip(
        left, best.torque(residuals), strict=True)])


@pytest.mark.parametrize(('seed', 'size'), [(5, 1.0), (6, 0.4)])
def test_drift_of_ripple_is_added_where_it_lowers_the_error(seed: int, size: float) -> None:
    residuals = drifting(seed, (0.1, 0.03, size), 40.0)
    bare = [replace(one, waves=one.waves[:, :0]) for one in residuals]
    friction, _ = fit_slow_coefficients(bare)
    noise = noise_density(residuals)
    spread = float(np.std(np.concatenate([one.left for one in residuals])))
    assert friction is not None
    tried = [replace(friction, waves=waves * spread, noise=share * noise)
             for waves, share in product((0.3, 0.6), (0.3, 1.0))]
    best = min(tried, key=lambda one: squared_error(residuals, one))
    found, gained = fit_slow_coefficients(residuals)
    assert found == best and gained.counts
    left = [one.left for one in residuals]
    assert gained == gain(residuals, left, [a - b for a, b in zip(
        left, best.torque(residuals), strict=True)])
    assert squared_error(residuals, best) < squared_error(bare, friction)


def warmed(residuals: list[FrictionResidual], seconds: float, power: float) -> list[
        FrictionResidual]:
    """Return recordings whose viscous friction falls by 30 %, dry by 10 %, as the joint warms up.
    """
    law = Warming(np.array([seconds]), power, np.zeros(2), np.array([[0.3], [0.1]]), np.zeros(2),
                  np.zeros((2, 1)), np.zeros(1))
    state = np.zeros(1)
    return [replace(one, left=one.left + law.torque(one, law.warmth(one, state)))
            for one in residuals]


@pytest.mark.parametrize(('count', 'seconds', 'length'), [(1, 38.0, 200.0), (2, 12.5, 100.0)])
def test_warm_up_beside_a_time_constant_is_found_in_few_recordings(
    count: int, seconds: float, length: float
) -> None:
    cold = [recording(seed, length, noise=0.4) for seed in range(count)]
    power = float(np.mean(np.concatenate([one.power for one in cold])))
    hot = warmed(cold, seconds, power)
    found, gained = fit_warming(hot)
    assert found is not None and gained.counts
    noise, whole = (sum(float(one.left @ one.left) for one in some) for some in (cold, hot))
    assert gained.share == pytest.approx(1.0 - noise / whole, abs=0.02)
    assert len(found.seconds) == 1 and found.power == pytest.approx(power)
    assert abs(found.seconds[0] - seconds) < 3.0 * found.seconds_std[0] < 0.5 * seconds
    assert np.all(np.abs(found.fall[:, 0] - [0.3, 0.1]) < 3.0 * found.fall_std[:, 0])
    assert np.all(np.abs(found.rise) < 3.0 * found.rise_std)
    assert np.all(found.fall_std < 0.04)
    # what recordings differ by is known a priori, and decides the level of a few of them
    np.testing.assert_allclose(found.rise_std, np.array([0.1, 0.03]) / np.sqrt(count), rtol=0.15)


def test_no_warm_up_is_looked_for_without_power_or_noise() -> None:
    one = recording(1, 40.0)
    for lacking in (replace(one, power=0.0 * one.power), replace(one, left=0.0 * one.left)):
        assert fit_warming([lacking, lacking]) == (None, Gain(0.0, 0.0))


def test_rescaling_keeps_the_share_of_friction_that_has_none() -> None:
    one = recording(1, 10.0)
    warming = Warming(np.array([7.0]), 2.0, np.array([0.1, 0.02]), np.array([[0.3], [0.1]]),
                      np.array([0.5, 0.6]), np.array([[0.7], [0.8]]), np.zeros(1))
    other = replace(one, viscous=2.0 * one.viscous, dry=0.0 * one.dry, power=3.0 * one.power)
    found = rescale_warming(warming, [one, one], [other, other])
    assert found.power == pytest.approx(3.0 * one.power.mean())
    np.testing.assert_allclose(found.rise, [0.05, 0.02])
    np.testing.assert_allclose(found.fall, [[0.15], [0.1]])
    np.testing.assert_allclose(found.rise_std, [0.25, 0.6])
    np.testing.assert_allclose(found.fall_std, [[0.35], [0.8]])


def test_add_drift_follows_what_is_left_beside_the_warm_up() -> None:
    cold = drifting(2, (0.3, 0.1, 0.5), 40.0)
    warming = Warming(np.array([12.0]), 7.0, np.array([0.1, 0.2]), np.array([[0.3], [0.1]]),
                      np.zeros(2), np.zeros((2, 1)), np.zeros(1))
    follow = SlowChangeTracker(Adaptation(warming), 2)
    hot = [replace(one, left=one.left + follow(one)[0]) for one in cold]
    expected, gained = fit_slow_coefficients(cold)
    found = add_drift(hot, warming, Gain(0.3, 7.0))
    assert (found.warming, found.adaptation.warming) == (Gain(0.3, 7.0), warming)
    assert expected is not None and found.adaptation.slow is not None
    for name, value in vars(expected).items():
        assert getattr(found.adaptation.slow, name) == pytest.approx(value, rel=1e-9)
    assert found.slow.share == pytest.approx(gained.share, rel=1e-9)
    assert found.used is found.adaptation


def test_an_adaptation_is_used_if_it_has_a_part() -> None:
    drift, gained = SlowCoefficients(0.1, 0.03, 0.0, 40.0, 10.0, 1.0), Gain(0.0, 0.0)
    for parts, used in (((None, None), False), ((None, drift), True)):
        adaptation = Adaptation(*parts)
        assert (AdaptationFit(adaptation, gained, gained).used is adaptation) == used


def test_nothing_is_gained_where_every_drift_raises_the_error() -> None:
    for seed in range(8):
        residuals = [recording(10 * seed + k, 40.0) for k in (1, 2)]
        noise = noise_density(residuals)
        untracked = sum(float(one.left @ one.left) for one in residuals)
        least = min(squared_error(residuals, SlowCoefficients(
            *sizes, 0.0, time, 10.0, share * noise)) for sizes, time, share in product(
                product((0.03, 0.1, 0.3), (0.01, 0.03, 0.1)), (10.0, 40.0, 160.0), (0.3, 1.0)))
        if least > untracked:
            assert fit_slow_coefficients(residuals) == (None, Gain(0.0, 0.0))
            return
    pytest.fail('some drift lowers the error of every seed')
