"""effects/slow_changes_search.py: friction that warms up and coefficients that drift: found where
they are, and only there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model
from tolerances import SAME_FORMULA

from robot_dynid.effects.slow_changes import (
    Adaptation,
    FrictionResidual,
    SlowChanges,
    SlowChangeTracker,
    SlowCoefficients,
    Warming,
    warmth_along,
)
from robot_dynid.effects.slow_changes_search import (
    ConstantParameters,
    Gain,
    add_drift,
    fit_slow_coefficients,
    fit_warming,
    gain,
    noise_density,
    refit_warming,
    remove_recording_difference,
    rescale_warming,
    stretches,
)
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray

STEP, SECONDS, VISCOUS, DRY = 0.01, 60.0, 10.0, 6.0
#: deviation [N m] of the simulated noise
NOISE = 0.5


def recording(seed: int, gap: float | None = None, left: float = NOISE) -> FrictionResidual:
    """Return friction along a motion of three sines, and noise that is left over."""
    rng = np.random.default_rng(seed)
    time = np.arange(0.0, SECONDS, STEP)
    speed = sum(a * np.sin(w * time + p) for a, w, p in zip(
        rng.uniform(0.3, 0.8, 3), rng.uniform(0.5, 2.0, 3), rng.uniform(0.0, 6.0, 3), strict=True))
    viscous, dry = VISCOUS * speed, DRY * np.tanh(speed / 0.01)
    return FrictionResidual(time, viscous, dry, (viscous + dry) * speed,
                            rng.normal(0.0, left, len(time)),
                    np.zeros((len(time), 0)), gap)


def warmth_by_euler(one: FrictionResidual, seconds: float, power: float, fall: tuple[float, float],
                    steps: int = 20) -> FloatArray:
    """Return the warmth (N,) of a joint that begins cold, by small steps forward in time.

    Its friction falls by ``fall``, and heats less.
    """
    found, w = np.zeros(len(one.time)), 0.0
    share = (fall[0] * one.viscous + fall[1] * one.dry) / (one.viscous + one.dry)
    for i in range(1, len(one.time)):
        for part in (np.arange(steps) + 0.5) / steps:
            now = (1.0 - part) * one.power[i - 1] + part * one.power[i]
            now *= 1.0 - w * ((1.0 - part) * share[i - 1] + part * share[i])
            w += STEP / steps * (now / power - w) / seconds
        found[i] = w
    return found


def warmed(one: FrictionResidual, fall: tuple[float, float], seconds: float,
           power: float) -> FrictionResidual:
    """Return a recording in which friction falls by a share of itself as the joint warms up."""
    w = warmth_by_euler(one, seconds, power, fall, 1)
    return replace(one, left=one.left - w * (fall[0] * one.viscous + fall[1] * one.dry))


@pytest.mark.parametrize(('fall', 'atol'), [
    # the power is linear within the steps of the oracle and constant within ours: order two
    ((0.0, 0.0), 2e-4),
    # friction is as warm as it was a step before: order one, 0.3 of the change in 0.01 s
    ((0.3, 0.1), 1e-3)])
def test_warmth_is_the_integral_of_the_power(fall: tuple[float, float], atol: float) -> None:
    one = recording(1)
    warming = Warming(np.array([7.0]), 5.0, np.zeros(2), np.array(fall)[:, None], np.zeros(2),
                      np.zeros((2, 1)), np.zeros(1))
    state = np.zeros(1)
    found = warming.warmth(one, state)
    np.testing.assert_allclose(found[:, 0], warmth_by_euler(one, 7.0, 5.0, fall),
                               rtol=0.0, atol=atol)
    assert state[0] == found[-1, 0]
    expected = -found[:, 0] * (fall[0] * one.viscous + fall[1] * one.dry)
    np.testing.assert_allclose(warming.torque(one, found), expected,
                               rtol=0.0, atol=SAME_FORMULA * 10.0)


@pytest.mark.parametrize('gap', [20.0, None])
def test_a_joint_cools_between_recordings(gap: float | None) -> None:
    warming = Warming(np.array([40.0]), 5.0, np.zeros(2), np.full((2, 1), 0.3), np.zeros(2),
                      np.zeros((2, 1)), np.zeros(1))
    state = np.array([0.8])
    first = warming.warmth(recording(1, gap), state)[0, 0]
    assert first == pytest.approx(0.8 * np.exp(-0.5) if gap else 0.0, rel=SAME_FORMULA)


@pytest.mark.parametrize('seed', [0, 100, 200])
def test_warm_up_of_known_size_is_found_within_its_intervals(seed: int) -> None:
    power, fall = 8.0, (0.25, 0.08)
    cold = [recording(seed + i) for i in range(4)]
    found, gained = fit_warming([warmed(one, fall, 12.0, power) for one in cold])
    assert found is not None and gained.share > 0.0
    assert abs(found.seconds[0] - 12.0) < 3.0 * found.seconds_std[0]
    size = found.fall[:, 0] * power / found.power
    deviation = found.fall_std[:, 0] * power / found.power
    assert np.all(np.abs(size - fall) < 3.0 * deviation)
    assert np.all(deviation < 0.02)
    assert np.all(np.abs(found.rise) < 3.0 * found.rise_std)


def beside(seeds: range) -> tuple[list[FrictionResidual], Warming, ConstantParameters]:
    """Return what is left beside parameters that were fitted to friction that warms up.

    The recordings, the warm-up that is seen in what is left, and the equations of the parameters:
    inertia, friction, and a third column that goes with friction.
    """
    power, fall, seconds = 8.0, np.array([0.25, 0.08]), 12.0
    cold = [recording(seed) for seed in seeds]
    hot = [warmed(one, (fall[0], fall[1]), seconds, power) for one in cold]
    columns = [np.stack([np.gradient(one.viscous / VISCOUS, one.time), one.viscous / VISCOUS,
                         one.dry / DRY, one.viscous * np.cos(one.time / 6.0)], axis=1)
               for one in cold]
    tall, left = np.concatenate(columns), np.concatenate([one.left for one in hot])
    taken = np.linalg.lstsq(tall, left)[0]
    level = 1.0 + taken[1] / VISCOUS, 1.0 + taken[2] / DRY
    hot = [replace(one, left=one.left - own @ taken, viscous=level[0] * one.viscous,
                   dry=level[1] * one.dry,
                   power=level[0] * one.heat[:, 0] + level[1] * one.heat[:, 1])
           for one, own in zip(hot, columns, strict=True)]
    plain, _ = fit_warming(hot)
    assert plain is not None
    return hot, plain, ConstantParameters(tuple(columns), np.zeros((5, 5)), tuple(
        np.ones(len(own)) for own in columns), tall.T @ tall)


def test_refit_warming_equals_one_fit_of_parameters_and_warm_up() -> None:
    """Against one fit of everything at once, by least squares on the samples."""
    hot, plain, staying = beside(range(100, 104))
    found = refit_warming(hot, plain, staying)
    warming = found.warming
    cold = [recording(100)]
    level = hot[0].friction[100] / cold[0].friction[100]
    # shares of cold friction that are lost in all; parameters had taken a fifth of that
    falls = [level * one.fall[:, 0] * 8.0 / one.power for one in (warming, plain)]
    assert np.all(np.abs(falls[0] - [0.25, 0.08]) < [0.02, 0.015])
    assert falls[1][0] < 0.21
    state, tall, left = np.zeros(1), np.concatenate(staying.columns), []
    left = np.concatenate([one.left - warming.torque(one, warming.warmth(one, state))
                           for one in hot])
    refitted = np.linalg.lstsq(tall, left)[0]
    np.testing.assert_allclose(found.change, refitted, rtol=0.0, atol=1e-3)
    assert np.all(np.linalg.eigvalsh(found.covariance) > -1e-12)
    # deviations: with the time constant, and the friction of each recording by its prior
    blocks = []
    for i, (one, columns) in enumerate(zip(hot, staying.columns, strict=True)):
        law = np.hstack([warming.law, np.zeros((2, 2))])  # heat is that of the fitted constant
        warmths = warmth_along(one, warming.seconds * [1.0, 1.001, 1.0 / 1.001], warming.power,
                               np.zeros(3), law).T[:, :, None]
        slope = (warmths[2] - warmths[1]) / (2.0 * np.log(1.001)) * (one.friction @ warming.fall)
        own = np.zeros((len(columns), 8))
        own[:, 2 * i:2 * i + 2] = one.friction
        blocks.append(np.hstack([-warmths[0] * one.friction, slope, columns, own]))
    tall, prior = np.concatenate(blocks), np.tile([0.1**-2, 0.03**-2], 4)
    left, density = np.concatenate([one.left for one in hot]), NOISE**2 * STEP
    for _ in range(4):  # 240 batches of 1 s less the seven common parameters
        covariance = np.linalg.inv(
            STEP / density * tall.T @ tall + np.diag(np.append(np.zeros(7), prior)))
        values = covariance @ (STEP / density * tall.T @ left)
        rest = np.split(left - tall[:, :7] @ values[:7], len(hot))
        density = 240.0 / 233.0 * noise_density([replace(
            one, left=remove_recording_difference(one.friction, error, STEP / density))
            for one, error in zip(hot, rest, strict=True)])
    std = np.sqrt(np.diag(covariance)[:3])
    np.testing.assert_allclose(warming.fall[:, 0], values[:2], rtol=1e-3)
    np.testing.assert_allclose(warming.fall_std[:, 0], std[:2], rtol=1e-3)
    np.testing.assert_allclose(warming.seconds_std, warming.seconds * std[2], rtol=0.02)


@pytest.mark.parametrize('factor', [2.5, 0.4])
def test_refit_warming_keeps_time_constants_within_half_and_double(factor: float) -> None:
    hot, plain, staying = beside(range(100, 102))
    begin = replace(plain, seconds=factor * plain.seconds)
    found = refit_warming(hot, begin, staying).warming
    assert found.seconds == pytest.approx((0.5 if factor > 1.0 else 2.0) * begin.seconds)


def test_known_parameters_of_other_joints_leave_the_warm_up_to_friction() -> None:
    """Where the equations of other joints know the inertia, its joint does not decide it."""
    hot, plain, staying = beside(range(100, 104))
    free = refit_warming(hot, plain, staying).warming
    tall, left = np.concatenate(staying.columns), np.concatenate([one.left for one in hot])
    state, torques = np.zeros(1), []
    for one in hot:
        torques.append(free.torque(one, free.warmth(one, state)))
    true = np.append(np.linalg.lstsq(tall, left - np.concatenate(torques))[0], -1.0)
    exact = np.hstack([np.eye(4), true[:4, None]])
    known = 1e6 * exact.T @ exact
    found = refit_warming(hot, plain, replace(staying, others=known)).warming
    assert np.all(found.fall_std < 0.99 * free.fall_std)


def test_falls_that_cannot_be_change_nothing() -> None:
    hot, plain, staying = beside(range(100, 104))
    state = np.zeros(1)
    warmth = [plain.warmth(one, state)[:, 0] for one in hot]
    for fall, possible in ((0.5, True), (0.65, False)):  # of cold friction, makes 0.87 and 1.07
        pushed = [replace(one, left=one.left - fall * one.viscous * w)
                  for one, w in zip(hot, warmth, strict=True)]
        found = refit_warming(pushed, plain, staying)
        assert (found.warming is plain) == (not possible)
        assert found.change.any() == found.covariance.any() == possible


def test_a_change_of_torque_stays_where_friction_is_another() -> None:
    one = recording(1)
    warming = Warming(np.array([7.0]), float(one.power.mean()), np.array([0.1, 0.02]),
                      np.array([[0.3], [0.1]]), np.zeros(2), np.ones((2, 1)), np.zeros(1))
    other = replace(one, viscous=1.25 * one.viscous, dry=0.8 * one.dry, power=1.1 * one.power)
    again = rescale_warming(warming, [one], [other])
    warmth = warming.warmth(one, np.zeros(1))
    torques = [w.torque(x, warmth) for w, x in ((warming, one), (again, other))]
    assert again.power == pytest.approx(1.1 * warming.power)
    np.testing.assert_allclose(torques[1], torques[0], rtol=0.0, atol=SAME_FORMULA * VISCOUS)
    np.testing.assert_allclose(again.fall_std, [[0.8], [1.25]])


def test_fit_warming_and_add_drift_use_nothing_when_friction_is_constant() -> None:
    data = [[recording(40 * k + i) for i in range(3)] for k in range(10)]
    claimed = [add_drift(own, *fit_warming(own)).used for own in data]
    assert claimed == [None] * 10


def test_friction_that_differs_between_recordings_alone_is_no_warm_up() -> None:
    for seed in range(5):
        rng = np.random.default_rng(seed)
        data = [replace(one, left=one.left + rng.normal(0.0, 0.1) * one.viscous)
                for one in (recording(50 * seed + i) for i in range(4))]
        assert fit_warming(data)[0] is None


def test_a_drift_is_followed_from_the_past_alone() -> None:
    settings = SlowCoefficients(0.1, 0.03, 0.0, 30.0, 10.0, NOISE ** 2 * STEP)
    one = recording(3)
    drifting = replace(one, left=one.left + 0.2 * one.viscous)
    whole = settings.means(drifting, settings.unknown(0))
    half = len(one.time) // 2
    part = FrictionResidual(*(x[:half] for x in (
        one.time, one.viscous, one.dry, one.power, drifting.left, one.waves)))
    np.testing.assert_array_equal(settings.means(part, settings.unknown(0)), whole[:half])
    assert np.all(whole[0] == 0.0)
    assert whole[-1, 0] == pytest.approx(0.2, abs=0.02)
    assert abs(whole[-1, 1]) < 0.02


def test_the_filter_is_that_of_kalman() -> None:
    """Against the batch solution: the posterior of all samples at once, by normal equations."""
    settings = SlowCoefficients(0.1, 0.03, 0.2, 1e9, 1e9, NOISE ** 2 * STEP)
    one = recording(5)
    waves = np.stack([np.sin(30.0 * one.time), np.cos(30.0 * one.time)], axis=1)
    one = replace(one, waves=waves, left=one.left + 0.05 * one.viscous + 0.1 * waves[:, 0])
    means = settings.means(one, settings.unknown(2))
    columns = np.hstack([one.viscous[:, None], one.dry[:, None], waves])[1:-1]
    normal = columns.T @ columns / NOISE ** 2 + np.diag(1.0 / settings.prior(2)[0] ** 2)
    expected = np.linalg.solve(normal, columns.T @ one.left[1:-1] / NOISE ** 2)
    # forgetting of 6e-8 in all, against coefficients of 0.1
    np.testing.assert_allclose(means[-1], expected, rtol=0.0, atol=1e-6)


def test_coefficients_are_those_of_an_ornstein_uhlenbeck_process() -> None:
    """Against the filter of Kalman written out, with long pauses, outliers, and bounds."""
    settings = SlowCoefficients(0.1, 0.03, 0.2, 0.5, 0.2, NOISE ** 2 * STEP)
    one, rng = recording(6), np.random.default_rng(6)
    steps = rng.choice([STEP, 3.0 * STEP, 0.3], 300)
    waves = rng.normal(size=(300, 2))
    one = FrictionResidual(np.cumsum(steps), *(x[:3000:10] for x in (
        one.viscous, one.dry, one.power, one.left)), waves)
    deviations, rates = settings.prior(2)
    columns = np.column_stack([one.viscous, one.dry, waves])
    means, mean, covariance = np.zeros((300, 4)), np.zeros(4), np.diag(deviations ** 2)
    for i in range(1, 300):
        step = one.time[i] - one.time[i - 1]
        keep = np.exp(-rates * step)
        mean, covariance = keep * mean, np.outer(keep, keep) * covariance
        covariance += np.diag(deviations ** 2 * (1.0 - keep ** 2))
        means[i], gain = mean, covariance @ columns[i]
        variance = columns[i] @ gain + settings.noise / min(step, 0.1)
        innovation = one.left[i] - columns[i] @ mean
        if innovation ** 2 < 4.0 ** 2 * variance:
            mean = np.clip(mean + gain / variance * innovation, -3.0 * deviations,
                           3.0 * deviations)
            covariance -= np.outer(gain, gain) / variance
    np.testing.assert_allclose(
        settings.means(one, settings.unknown(2)), means, rtol=0.0, atol=SAME_FORMULA)


def test_coefficients_are_forgotten_over_their_time() -> None:
    settings = SlowCoefficients(0.1, 0.03, 0.0, 30.0, 10.0, 1.0)
    state = settings.unknown(0)
    state[0] = 0.08, -0.02
    state[2:] *= 0.5
    means = settings.means(recording(1, gap=15.0), state)
    np.testing.assert_allclose(means[0], np.array([0.08, -0.02]) * np.exp(-0.5))


def test_coefficients_stay_within_their_bounds() -> None:
    settings = SlowCoefficients(0.1, 0.03, 0.0, 30.0, 10.0, NOISE ** 2 * STEP)
    one = recording(2)
    means = settings.means(replace(one, left=one.left + 0.38 * one.viscous), settings.unknown(0))
    assert means[-1, 0] == pytest.approx(0.3 * np.exp(-STEP / 30.0))


def test_slow_coefficients_ignore_residuals_too_large_for_friction() -> None:
    settings = SlowCoefficients(0.1, 0.03, 0.0, 30.0, 10.0, NOISE ** 2 * STEP)
    one = recording(2)
    pushed = one.left.copy()
    pushed[2000:3000] += 25.0  # N m, of 6 of dry friction: nobody's friction
    kept = settings.means(replace(one, left=pushed), settings.unknown(0))
    alone = pushed.copy()
    alone[2000:3000] = np.nan
    np.testing.assert_array_equal(
        kept, settings.means(replace(one, left=alone), settings.unknown(0)))


def test_drifting_coefficients_are_found_and_predict_the_next_samples() -> None:
    def drifting(seed: int) -> FrictionResidual:
        one, rng = recording(seed), np.random.default_rng(seed + 1000)
        keep = np.exp(-STEP / 30.0)
        x = np.empty(len(one.time))
        x[0] = rng.normal(0.0, 0.15)
        for i in range(1, len(x)):
            x[i] = keep * x[i - 1] + rng.normal(0.0, 0.15 * np.sqrt(1.0 - keep ** 2))
        return replace(one, left=one.left + x * one.viscous)

    found, gained = fit_slow_coefficients([drifting(i) for i in range(4)])
    assert found is not None and gained.counts
    follow, other = SlowChangeTracker(Adaptation(None, found)), drifting(77)
    warm, adapted = follow(other)
    assert not warm.any()
    before, after = (np.sqrt(np.mean(x ** 2)) for x in (other.left, other.left - adapted))
    assert after < 0.8 * before
    assert after < 1.1 * NOISE


def test_slow_changes_come_back_from_plain_types() -> None:
    warming = Warming(np.array([12.0]), 5.0, np.array([0.1, 0.0]), np.array([[0.2], [0.1]]),
                      np.zeros(2), np.zeros((2, 1)), np.zeros(1))
    one = Adaptation(warming, SlowCoefficients(0.1, 0.03, 0.2, 30.0, 10.0, 1.0))
    assert SlowChanges.read(one.plain()).plain() == one.plain()
    model = nominal_model('planar_3r').with_learnt(
        'adaptation', (None, one, Adaptation(warming)))
    again = IdentifiedModel.from_yaml(model.to_yaml())
    assert again.to_yaml() == model.to_yaml()
    none, same, _ = again.parts_of('adaptation')
    assert none is None and same.plain() == one.plain()
    with pytest.raises(ValueError, match='numbers outside their ranges'):
        replace(warming, seconds=np.array([-1.0]))
    with pytest.raises(ValueError, match='slow coefficients'):
        SlowCoefficients(0.1, 0.03, 0.2, 0.0, 10.0, 1.0)


def test_a_gain_counts_where_many_stretches_share_it() -> None:
    one = recording(1)
    before = one.left
    everywhere, once = 0.9 * before, before.copy()
    once[:400] *= 0.2  # one stretch of 15, which takes off more
    found = [gain([one], [before], [after]) for after in (everywhere, once)]
    assert found[0].share == pytest.approx(0.19)
    assert found[1].share > 0.05
    assert [one.counts for one in found] == [True, False]
    few = FrictionResidual(*(x[:2400] for x in (
        one.time, one.viscous, one.dry, one.power, one.left, one.waves)))
    assert not gain([few], [few.left], [0.5 * few.left]).counts, 'six stretches'
    assert not gain([one], [before], [0.999 * before]).counts, 'hardly anything'


def test_a_single_event_is_neither_warm_up_nor_drift() -> None:
    data = [recording(60 + i) for i in range(4)]
    left = data[0].left.copy()
    left[:400] += 0.4 * data[0].viscous[:400]
    data[0] = replace(data[0], left=left)
    found = add_drift(data, *fit_warming(data))
    assert found.slow.share > 0.005, 'it could be followed'
    assert found.used is None


def test_nothing_drifts_where_nothing_is_left() -> None:
    residual = recording(0)
    none = replace(residual, left=np.zeros_like(residual.left))
    assert fit_slow_coefficients([none, none]) == (None, Gain(0.0, 0.0))


def spread_out(levels: list[float], seconds: float) -> FrictionResidual:
    """Return a recording with so many stretches of ``seconds``, the residual constant in each."""
    time = np.arange(0.0, seconds * len(levels) + 0.05, 0.1)
    left = np.array(levels)[np.minimum(time // seconds, len(levels) - 1).astype(int)]
    return FrictionResidual(time, left, left, left, left, np.zeros((len(time), 0)))


def test_stretches_are_about_as_long_as_asked() -> None:
    time = 7.0 + np.arange(0.0, 10.0, 0.5)  # 9.5 s
    for seconds, count in ((4.0, 2), (3.0, 3), (100.0, 1), (19.0, 1), (18.9, 1), (6.4, 1)):
        np.testing.assert_array_equal(stretches(time, seconds), np.minimum(
            (time - 7.0) * count // 9.5, count - 1))
    assert stretches(time[:1], 1.0).tolist() == [0]


def test_the_density_of_noise_is_that_of_means_over_a_second() -> None:
    one, other = spread_out([1.0, 2.0, 4.0, 5.0], 1.0), spread_out([7.0, 9.0], 1.0)
    assert noise_density([one]) == pytest.approx(10.0 / 3.0)
    assert noise_density([one, other]) == pytest.approx((10.0 + 2.0) / (3.0 + 1.0))
    assert noise_density([spread_out([3.0], 1.0)]) == 0.0
    assert noise_density([spread_out([7.0, 9.0], 1.0)]) == pytest.approx(2.0)
    paused = spread_out([1.0] * 5, 1.0)
    stamps = np.array([0.0, 0.5, 1.0, 1.5, 4.2])  # means of 3, 2 and 7 in three of four stretches
    left = np.array([1.0, 2.0, 6.0, 2.0, 7.0])
    assert noise_density([replace(paused, time=stamps, left=left)]) == pytest.approx(14.0 / 2.0)


def test_a_gain_is_a_share_of_the_error_in_deviations_over_stretches() -> None:
    share = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.3, 0.2, 0.2])
    rows = spread_out(share.tolist(), 4.0)
    errors, size = np.ones(len(rows.time)), np.bincount(stretches(rows.time, 4.0))
    found = gain([rows], [errors], [np.sqrt(1.0 - rows.left)])
    taken = share * size
    assert found.share == pytest.approx(taken.sum() / size.sum())
    assert found.deviations == pytest.approx(taken.mean() / (np.std(taken) / np.sqrt(8)))
    assert gain([rows], [errors], [errors]) == Gain(0.0, 0.0)
    seven = spread_out(share[:7].tolist(), 4.0)
    assert gain([seven], [1.0 + 0.0 * seven.left], [np.sqrt(1.0 - seven.left)]) == Gain(0.0, 0.0)
    both = [seven, spread_out([0.2], 4.0)]
    assert gain(both, [1.0 + 0.0 * one.left for one in both], [
        np.sqrt(1.0 - one.left) for one in both]).counts
    assert [Gain(*pair).counts for pair in (
        (0.0051, 2.51), (0.005, 9.0), (0.0049, 9.0), (0.9, 2.5), (0.9, 2.49))] == [
        True, False, False, False, False]


def test_the_difference_of_a_recording_is_a_ridge_of_its_usual_size() -> None:
    one, weight = recording(3), 0.02
    rest = remove_recording_difference(one.friction, one.left + 0.4 * one.dry, weight)
    tall = np.vstack([np.sqrt(weight) * one.friction, np.diag([1.0 / 0.1, 1.0 / 0.03])])
    side = np.append(np.sqrt(weight) * (one.left + 0.4 * one.dry), [0.0, 0.0])
    values = np.linalg.lstsq(tall, side)[0]
    np.testing.assert_allclose(rest, one.left + 0.4 * one.dry - one.friction @ values,
                               rtol=0.0, atol=1e-9)
