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
    warmth_along,
)
from robot_dynid.effects.slow_changes_search import (
    AdaptationFit,
    Gain,
    add_drift,
    fit_slow_coefficients,
    fit_warming,
    gain,
    noise_density,
    remove_recording_difference,
    rescale_warming,
)
from robot_dynid.types import FloatArray

STEP = 0.05


def recording(
    seed: int, seconds: float, waves: int = 0, noise: float = 0.5, step: float = STEP
) -> FrictionResidual:
    """Return friction along a motion of two sines, and noise that is left over."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, seconds, step)
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


@pytest.mark.parametrize(('seed', 'viscous', 'size'), [
    (5, 0.1, 1.0), (6, 0.1, 0.4), (8, 0.0, 0.6), (7, 0.0, 0.25)])
def test_drift_of_ripple_is_added_where_it_lowers_the_error(
    seed: int, viscous: float, size: float
) -> None:
    residuals = drifting(seed, (viscous, 0.3 * viscous, size), 40.0)
    bare = [replace(one, waves=one.waves[:, :0]) for one in residuals]
    friction, _ = fit_slow_coefficients(bare)
    noise = noise_density(residuals)
    spread = float(np.std(np.concatenate([one.left for one in residuals])))
    assert (friction is None) == (viscous == 0.0)
    base = friction or SlowCoefficients(0.0, 0.0, 0.0, 10.0, 10.0, noise)
    tried = [replace(base, waves=waves * spread, noise=share * noise)
             for waves, share in product((0.3, 0.6), (0.3, 1.0))]
    best = min(tried, key=lambda one: squared_error(residuals, one))
    found, gained = fit_slow_coefficients(residuals)
    assert found == best and gained.counts
    left = [one.left for one in residuals]
    assert gained == gain(residuals, left, [a - b for a, b in zip(
        left, best.torque(residuals), strict=True)])
    assert squared_error(residuals, best) < squared_error(bare, base)


def mean_power(residuals: list[FrictionResidual]) -> float:
    return float(np.mean(np.concatenate([one.power for one in residuals])))


def warmed(residuals: list[FrictionResidual], seconds: float | list[float], power: float,
           falls: tuple[float, float] = (0.3, 0.1)) -> list[FrictionResidual]:
    """Return recordings whose viscous and dry friction ``falls`` as the joint warms up."""
    times = np.atleast_1d(np.array(seconds))
    fall = np.repeat(np.array(falls)[:, None], len(times), axis=1)
    law = Warming(times, power, np.zeros(2), fall, np.zeros(2), np.zeros(fall.shape),
                  np.zeros(len(times)))
    state = np.zeros(len(times))
    return [replace(one, left=one.left + law.torque(one, law.warmth(one, state)))
            for one in residuals]


@pytest.mark.parametrize(('count', 'seconds', 'length'), [(1, 38.0, 200.0), (2, 12.5, 100.0)])
def test_warm_up_beside_a_time_constant_is_found_in_few_recordings(
    count: int, seconds: float, length: float
) -> None:
    cold = [recording(seed, length, noise=0.4) for seed in range(count)]
    power = mean_power(cold)
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


@pytest.mark.parametrize(('seconds', 'bound'), [(1.4, 2.0), (4000.0, 2400.0)])
def test_time_constants_are_refined_to_half_the_shortest_and_double_the_longest_tried(
    seconds: float, bound: float
) -> None:
    """Those tried reach from 4 to 1200 s."""
    cold = [recording(seed, 4.0 * seconds, noise=0.2, step=seconds / 50.0) for seed in range(10)]
    found, _ = fit_warming(warmed(cold, seconds, mean_power(cold), (0.15, 0.05)))
    assert found is not None
    assert found.seconds[-1] == pytest.approx(bound, rel=1e-12)


def test_fit_warming_finds_two_time_constants_in_units_of_any_size() -> None:
    cold = [recording(seed, 900.0, step=0.25) for seed in (1, 2)]
    hot = warmed(cold, [6.0, 150.0], mean_power(cold), (0.2, 0.08))
    (found, gained), (small, same) = (fit_warming([replace(
        one, viscous=size * one.viscous, dry=size * one.dry, power=size * one.power,
        left=size * one.left) for one in hot]) for size in (1.0, 0.01))
    assert found is not None and small is not None and small.power < 1.0 < found.power
    for name in ('share', 'deviations'):
        assert getattr(same, name) == pytest.approx(getattr(gained, name), rel=1e-6)
    np.testing.assert_allclose(small.fall, found.fall, rtol=1e-4)
    assert np.all(np.abs(found.seconds - [6.0, 150.0]) < 3.0 * found.seconds_std)
    assert np.all(found.seconds_std < [1.5, 30.0])
    expected = np.array([[0.2, 0.2], [0.08, 0.08]])
    assert np.all(np.abs(found.fall - expected) < 3.0 * found.fall_std)
    assert np.all(found.fall_std < 0.03)


@pytest.mark.parametrize(('falls', 'possible'), [
    ((0.93, 0.1), True), ((1.07, 0.1), False), ((0.3, 0.93), True), ((0.3, 1.07), False),
    ((0.3, -0.93), True), ((0.3, -1.07), False), ((0.06, 0.1), True), ((-0.06, 0.1), False)])
def test_warm_up_leaves_friction_above_zero_and_thins_the_lubricant(
    falls: tuple[float, float], possible: bool
) -> None:
    """A time constant of 4 s, the shortest tried, with the power of constant friction."""
    cold = recording(3, 100.0, noise=0.1)
    warmth = warmth_along(cold, np.array([4.0]), mean_power([cold]), np.zeros(1))[:, 0]
    hot = replace(cold, left=cold.left - warmth * (falls[0] * cold.viscous + falls[1] * cold.dry))
    found, gained = fit_warming([hot])
    assert (found is not None and found.seconds[0] < 5.9) == possible
    if falls[0] < 0.0:
        assert (found, gained) == (None, Gain(0.0, 0.0)), 'no time constant is possible'


def held_out(residuals: list[FrictionResidual], seconds: tuple[float, ...]) -> list[FloatArray]:
    """Return the held-out errors with warmths of ``seconds``, by dense least squares.

    Recordings are held out if there are three, else quarters of each. Friction differs between
    recordings by 10 % (viscous) and 3 % (dry).
    """
    step = residuals[0].time[1]
    weight, state = np.sqrt(step / noise_density(residuals)), np.zeros(len(seconds))
    parts, sides, folds = [], [], []
    for i, one in enumerate(residuals):
        warmth = warmth_along(one, np.array(seconds), mean_power(residuals), state)
        parts.append(np.hstack([one.friction, *(w[:, None] * one.friction for w in warmth.T)]))
        sides.append(one.left)
        quarter = np.minimum(4.0 * one.time / one.time[-1], 3.0).astype(int)
        folds.append(np.full(len(one.time), i) if len(residuals) > 2 else 4 * i + quarter)
    errors = [side.copy() for side in sides]
    for fold in np.unique(np.concatenate(folds)):
        blocks, right = [], []
        for i, (part, side, own) in enumerate(zip(parts, sides, folds, strict=True)):
            apart = np.zeros((np.sum(own != fold) + 2, 2 * len(parts)))
            apart[:, 2 * i:2 * i + 2] = np.vstack([
                weight * part[own != fold, :2], np.diag([10.0, 1.0 / 0.03])])
            rows = np.vstack([weight * part[own != fold],
                              np.zeros((2, part.shape[1]))])
            blocks.append(np.hstack([rows, apart]))
            right.append(np.append(weight * side[own != fold], [0.0, 0.0]))
        values = np.linalg.lstsq(np.concatenate(blocks), np.concatenate(right))[0]
        for part, error, own in zip(parts, errors, folds, strict=True):
            error[own == fold] -= part[own == fold] @ values[:part.shape[1]]
    return errors


@pytest.mark.parametrize(('count', 'seconds'), [
    (3, 12.0), (2, 12.0), (2, 4.0), (2, 40.0), (2, 120.0), (2, 400.0), (2, 1200.0)])
def test_the_gain_of_warm_up_is_that_of_the_best_time_constant_held_out(
    count: int, seconds: float
) -> None:
    """All times in proportion to the time constant, but for that of the motion."""
    cold = [recording(seed, 5.0 * seconds + 20.0, noise=0.4, step=seconds / 240.0)
            for seed in range(count)]
    hot = warmed(cold, seconds, mean_power(cold), (0.1, 0.05))
    found, gained = fit_warming(hot)

    def square(errors: list[FloatArray]) -> float:
        return sum(float(error @ error) for error in errors)

    tried = [held_out(hot, (one,)) for one in (4.0, 12.0, 40.0, 120.0, 400.0, 1200.0)]
    best, weight = min(tried, key=square), hot[0].time[1] / noise_density(hot)
    none, some = ([remove_recording_difference(one.friction, error, weight)
                   for one, error in zip(hot, errors, strict=True)]
                  for errors in (held_out(hot, ()), best))
    assert found is not None and len(found.seconds) == 1
    assert gained.share == pytest.approx(1.0 - square(best) / square([one.left for one in hot]))
    assert gained.deviations == pytest.approx(gain(hot, none, some).deviations)


def test_no_warm_up_is_looked_for_without_power_or_noise() -> None:
    one = recording(1, 40.0)
    for lacking in (replace(one, power=0.0 * one.power), replace(one, left=0.0 * one.left)):
        assert fit_warming([lacking, lacking]) == (None, Gain(0.0, 0.0))


def test_rescaling_keeps_the_share_of_friction_that_has_none() -> None:
    one = recording(1, 10.0)
    warming = Warming(np.array([7.0]), 2.0, np.array([0.1, 0.02]), np.array([[0.3], [0.1]]),
                      np.array([0.5, 0.6]), np.array([[0.7], [0.8]]), np.zeros(1))
    one = replace(one, viscous=1e-3 * one.viscous)
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
