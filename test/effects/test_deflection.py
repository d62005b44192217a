"""effects/deflection.py: models of the deflection by closed forms; features, files, reports."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from robot_dynid.effects import JointFriction, RigidLinks
from robot_dynid.effects.deflection import (
    Deflection,
    GearModel,
    GearRegression,
    MixtureModel,
    MixtureRegression,
    RadialBasis,
    RadialModel,
    ResidualModel,
    RippleModel,
    RippleRegression,
    append_load,
    check_features,
    complete_joints,
    deflections,
    fade_outside,
    gear_load,
    instant_features,
    radial_bumps,
    residual_from_plain,
    select_features,
    trust_outside,
)
from robot_dynid.errors import DataError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, Samples, frozen

ROBOT = load_robot('planar_3r')
INFINITE = 'features or residual hold numbers that are not finite'
FLAT = 'the deflection is constant, so no residual can be fitted: check that motor and link ' \
    'states come from separate encoders'


def test_trust_is_a_gaussian_of_the_distance_outside() -> None:
    np.testing.assert_allclose(trust_outside(np.array([-3.0, 0.0, 0.5, 2.0])),
                               [1.0, 1.0, np.exp(-0.125), np.exp(-2.0)])


def test_faded_moments_are_those_of_a_mixture_with_no_model() -> None:
    mean, variance = fade_outside(np.array([1.0, 0.25]), np.array([3.0, -2.0]),
                                  np.array([0.5, 0.7]), 5.0)
    np.testing.assert_allclose(mean, [3.0, -0.5])
    np.testing.assert_allclose(variance, [0.5, 0.25 * (0.7 + 4.0) + 0.75 * 5.0 - 0.25])


@pytest.mark.parametrize(('features', 'residual', 'says'), [
    (np.zeros((4, 2)), np.zeros(5), 'features (4, 2) and residual (5,) have different lengths'),
    (np.zeros(4), np.zeros(4), 'features (4,) and residual (4,) have different lengths'),
    (np.full((4, 1), np.nan), np.zeros(4), INFINITE),
    (np.ones((4, 1)), np.full(4, np.inf), INFINITE),
    (np.arange(3.0)[:, None], np.zeros(3),
     '3 points are too few for a residual model, which needs 4: record a longer motion'),
    (np.column_stack([np.arange(4.0), np.full(4, 2.0) + 5e-13 * np.arange(4)]), np.zeros(4), FLAT),
    (np.column_stack([np.arange(4.0), np.zeros(4)]), np.zeros(4), FLAT)])
def test_check_features_says_what_is_wrong(
    features: FloatArray, residual: FloatArray, says: str
) -> None:
    with pytest.raises(DataError) as refused:
        check_features(features, residual, 4)
    assert str(refused.value) == says


def test_check_features_lets_enough_points_pass() -> None:
    check_features(np.column_stack([np.arange(4.0), 2.0 + 9e-13 * np.arange(4)]), np.zeros(4), 4)


LOWER, UPPER = np.array([-1.0, 2.0]), np.array([3.0, 3.0])


def test_radial_bumps_are_gaussians_of_half_a_spacing_with_sum_one() -> None:
    features = np.random.default_rng(1).uniform([-2.0, 1.5], [4.0, 3.5], (6, 2))
    axes = np.array([-1.0, 1.0, 3.0]), np.array([2.0, 2.5, 3.0])
    bumps = np.array([[np.exp(-0.5 * (((x - a) / 1.0)**2 + ((y - b) / 0.25)**2))
                       for a in axes[0] for b in axes[1]] for x, y in features])
    np.testing.assert_allclose(radial_bumps(features, LOWER, UPPER, 3),
                               bumps / bumps.sum(axis=1, keepdims=True), rtol=1e-9)


def test_radial_basis_is_a_ridge_of_a_thousandth_of_the_mean_square() -> None:
    rng = np.random.default_rng(2)
    features = rng.normal(size=(60, 2)) * [0.7, 3.0]
    residual = np.sin(features[:, 0]) + 0.1 * features[:, 1] + 0.2 * rng.normal(size=60)
    model = RadialBasis(3).fit(features, residual)
    assert isinstance(model, RadialModel)
    bumps = radial_bumps(features, features.min(axis=0), features.max(axis=0), 3)
    ridge = 1e-3 * np.sum(bumps**2) / 9.0
    tall = np.vstack([bumps, np.sqrt(ridge) * np.eye(9)])
    weights = np.linalg.lstsq(tall, np.append(residual, np.zeros(9)))[0]
    np.testing.assert_allclose(model.weights, weights, rtol=1e-6)
    blank = np.mean(residual**2)
    errors = (residual - bumps @ weights)**2
    spread = [(column @ errors + ridge * blank) / (column.sum() + ridge) for column in bumps.T]
    np.testing.assert_allclose(model.spread, spread, rtol=1e-6)
    assert (model.blank, model.count) == (pytest.approx(blank), 3)
    np.testing.assert_array_equal(model.lower, features.min(axis=0))
    np.testing.assert_array_equal(model.upper, features.max(axis=0))
    with pytest.raises(DataError, match=r'8 points are too few .* needs 9'):
        RadialBasis(3).fit(features[:8], residual[:8])
    line = RadialBasis().fit(features[:, :1], residual)
    assert isinstance(line, RadialModel) and line.count == 9


def radial() -> RadialModel:
    rng = np.random.default_rng(3)
    return RadialModel(frozen(LOWER), frozen(UPPER), 3, frozen(rng.normal(size=9)),
                       frozen(rng.uniform(0.1, 0.2, 9)), 4.0)


def test_a_radial_model_fades_by_its_distance_in_spacings() -> None:
    model = radial()
    features = np.array([[0.5, 2.2], [-3.0, 2.2], [3.0, 3.75], [5.0, 1.0]])
    bumps = radial_bumps(features, LOWER, UPPER, 3)
    beyond = np.array([0.0, 1.0, 1.5, np.hypot(1.0, 2.0)])
    mean, variance = fade_outside(np.exp(-0.5 * beyond**2), bumps @ model.weights,
                                  bumps @ model.spread, 4.0)
    np.testing.assert_allclose(model.mean(features), mean)
    np.testing.assert_allclose(model.variance(features), variance)


@pytest.mark.parametrize(('change', 'says'), [
    ({'lower': [[-1.0, 2.0]]}, 'lower of radial basis functions'),
    ({'upper': [3.0]}, 'upper of radial basis functions'),
    ({'weights': [1.0] * 8}, 'weights of radial basis functions'),
    ({'spread': [1.0] * 10}, 'spread of radial basis functions'),
    ({'spread': [float('nan')] * 9}, 'spread of radial basis functions'),
    ({'count': 1, 'weights': [1.0], 'spread': [1.0]}, 'grid of radial basis functions'),
    ({'lower': [-1.0, 3.0]}, 'grid of radial basis functions')])
def test_damaged_radial_models_are_refused(change: dict[str, Any], says: str) -> None:
    plain = radial().plain()
    assert residual_from_plain(plain).plain() == plain
    small = {**plain, 'count': 2, 'weights': [1.0] * 4, 'spread': [1.0] * 4}
    assert residual_from_plain(small).plain() == small
    with pytest.raises(ValueError, match=says):
        residual_from_plain({**plain, **change})


COVARIANCE = np.array([[2.0, 0.3, 0.5], [0.3, 1.5, -0.4], [0.5, -0.4, 1.2]])


def mixture(**changes: Any) -> MixtureModel:
    whole = {'weights': frozen([1.0]), 'means': frozen([[0.1, -0.2, 0.3]]),
             'covariances': frozen([COVARIANCE]), 'centre': frozen([1.0, 2.0, -0.5]),
             'scale': frozen([0.5, 2.0, 3.0]), 'reach': 1.2, 'blank': 6.0, **changes}
    return MixtureModel(**whole)


def test_a_gaussian_has_the_conditional_moments_and_fades_beyond_its_reach() -> None:
    model = mixture()
    features = np.array([[1.1, 2.5], [2.6, -3.0]])
    u = (features - [1.0, 2.0]) / [0.5, 2.0] - [0.1, -0.2]
    inverse = np.linalg.inv(COVARIANCE[:2, :2])
    gain = COVARIANCE[2, :2] @ inverse
    distance = np.sqrt(np.einsum('nk,kl,nl->n', u, inverse, u))
    assert distance[0] < 1.2 < distance[1]
    trust = np.exp(-0.5 * np.maximum(distance - 1.2, 0.0)**2)
    mean, variance = fade_outside(trust, -0.5 + 3.0 * (0.3 + u @ gain), np.full(2, 9.0 * (
        1.2 - gain @ COVARIANCE[:2, 2])), 6.0)
    np.testing.assert_allclose(model.mean(features), mean)
    np.testing.assert_allclose(model.variance(features), variance)


def test_a_mixture_has_the_moments_of_its_joint_density() -> None:
    """By the density over the residual at given features, integrated."""
    other = np.array([[1.0, -0.2, -0.6], [-0.2, 0.7, 0.3], [-0.6, 0.3, 1.5]])
    means, weights = np.array([[0.1, -0.2, 0.3], [1.4, 0.8, -1.0]]), np.array([0.3, 0.7])
    model = mixture(weights=frozen(weights), means=frozen(means),
                    covariances=frozen([COVARIANCE, other]))
    features = np.array([[1.1, 2.5], [1.6, 3.4], [0.2, -9.0]])
    residual = np.linspace(-12.0, 12.0, 4001)
    for x, mean, variance in zip(
            features, model.mean(features), model.variance(features), strict=True):
        u = np.append((x - [1.0, 2.0]) / [0.5, 2.0], 0.0)
        along = u + residual[:, None] * [0.0, 0.0, 1.0]
        density, distance = np.zeros(len(residual)), []
        for weight, centre, covariance in zip(weights, means, (COVARIANCE, other), strict=True):
            off, inside = along - centre, (u - centre)[:2]
            density += weight / np.sqrt(np.linalg.det(covariance)) * np.exp(
                -0.5 * np.einsum('nk,kl,nl->n', off, np.linalg.inv(covariance), off))
            distance.append(np.sqrt(inside @ np.linalg.solve(covariance[:2, :2], inside)))
        density /= density.sum()
        expected = density @ residual
        trust = np.exp(-0.5 * max(min(distance) - 1.2, 0.0)**2)
        (first,), (second,) = fade_outside(
            np.array([trust]), np.array([-0.5 + 3.0 * expected]),
            np.array([9.0 * (density @ (residual - expected)**2)]), 6.0)
        assert (mean, variance) == pytest.approx((first, second), rel=1e-6)


@pytest.mark.parametrize(('change', 'says'), [
    ({'weights': [0.0]}, 'must be positive'), ({'scale': [1.0, 1.0, 0.0]}, 'must be positive'),
    ({'reach': 0.0}, 'must be positive'),
    ({'covariances': [np.diag([1.0, 1.0, -0.1]).tolist()]}, 'must be positive'),
    ({'means': [[0.1, -0.2]]}, 'means of a Gaussian mixture'),
    ({'covariances': [[1.0]]}, 'covariances of a Gaussian mixture'),
    ({'scale': [1.0, 1.0]}, 'scale of a Gaussian mixture'),
    ({'blank': float('inf')}, 'blank of a Gaussian mixture')])
def test_damaged_mixtures_are_refused(change: dict[str, Any], says: str) -> None:
    plain = mixture().plain()
    assert residual_from_plain(plain).plain() == plain
    with pytest.raises(ValueError, match=says):
        residual_from_plain({**plain, **change})


@pytest.mark.parametrize(('count', 'stride'), [(1000, 1), (1001, 2), (2001, 3)])
def test_a_mixture_of_one_has_the_moments_of_every_so_many_points(count: int, stride: int) -> None:
    rng = np.random.default_rng(4)
    table = rng.normal(size=(count, 3)) @ rng.normal(size=(3, 3)) + [1.0, 2.0, 3.0]
    model = MixtureRegression(components=1).fit(table[:, :2], table[:, 2])
    assert isinstance(model, MixtureModel)
    used = table[::stride]
    np.testing.assert_allclose(model.centre, used.mean(axis=0))
    np.testing.assert_allclose(model.scale, used.std(axis=0))
    np.testing.assert_allclose(model.covariances[0], np.corrcoef(used.T), rtol=0.0, atol=1e-5)
    assert model.blank == pytest.approx(np.mean(table[:, 2]**2))
    points = (used[:, :2] - used[:, :2].mean(axis=0)) / used[:, :2].std(axis=0)
    far = np.sqrt(np.einsum('nk,kl,nl->n', points, np.linalg.inv(model.covariances[0][:2, :2]),
                            points))
    assert model.reach == pytest.approx(np.quantile(far, 0.999), rel=1e-4)


@pytest.mark.parametrize(('count', 'components'), [(59, 2), (60, 3)])
def test_a_mixture_has_twenty_points_per_component(count: int, components: int) -> None:
    rng = np.random.default_rng(5)
    centres = np.array([[0.0, 0.0], [30.0, 1.0], [5.0, 40.0]])[np.arange(count) % 3]
    table = centres + rng.normal(size=(count, 2))
    model = MixtureRegression().fit(table[:, :1], table[:, 1])
    assert isinstance(model, MixtureModel) and len(model.weights) == components
    nothing = MixtureRegression().fit(table[:, :1], np.zeros(count))
    assert isinstance(nothing, MixtureModel)
    assert (nothing.scale[1], nothing.blank) == (1.0, 0.0)


@pytest.mark.parametrize(('scores', 'chosen', 'tried'), [
    ((5.0, 4.0, 4.0, 4.1, 1.0), 2, 4), ((5.0, 6.0, 4.0, 4.5, 3.0, 2.0, 1.0), 6, 6),
    ((5.0, 5.0, 5.0), 1, 3), ((5.0, 6.0, 4.0, 7.0, 8.0, 1.0), 3, 5)])
def test_a_mixture_of_least_bic_is_sought_until_two_in_a_row_are_no_better(
    monkeypatch: pytest.MonkeyPatch, scores: tuple[float, ...], chosen: int, tried: int
) -> None:
    """With at most six components, from the same seed."""
    asked: list[tuple[int, int]] = []

    class Given:
        """A mixture of ``k`` components of known BIC."""

        def __init__(self, k: int, random_state: int) -> None:
            asked.append((k, random_state))
            self.k, self.weights_, self.means_ = k, np.full(k, 1.0 / k), np.zeros((k, 2))
            self.covariances_ = np.tile(np.eye(2), (k, 1, 1))

        def fit(self, points: FloatArray) -> Given:
            return self

        def bic(self, points: FloatArray) -> float:
            return scores[self.k - 1]

    monkeypatch.setattr('sklearn.mixture.GaussianMixture', Given)
    table = np.random.default_rng(6).normal(size=(200, 2))
    model = MixtureRegression().fit(table[:, :1], table[:, 1])
    assert isinstance(model, MixtureModel) and len(model.weights) == chosen
    assert asked == [(k, 0) for k in range(1, tried + 1)]


def gear(**changes: Any) -> GearModel:
    whole = {'size': frozen([9e3, 30.0, -1.0]), 'offset': 0.5, 'lower': -1e-3, 'upper': 3e-3,
             'left': 0.04, 'blank': 7.0, **changes}
    return GearModel(**whole)


def test_a_gear_model_fades_beyond_half_the_range_of_its_deflection() -> None:
    features = np.array([[1e-3, 0.2, 4.0], [5e-3, 0.1, 2.0], [-4e-3, -0.1, 3.0]])
    trust = np.exp([0.0, -0.5, -0.5 * 1.5**2])
    mean, variance = fade_outside(trust, 0.5 + features @ [9e3, 30.0, -1.0], np.full(3, 0.04), 7.0)
    np.testing.assert_allclose(gear().mean(features), mean)
    np.testing.assert_allclose(gear().variance(features), variance)


@pytest.mark.parametrize('change', [
    {'size': [1.0, 2.0]}, {'size': [1.0] * 4}, {'size': [1.0] * 6}, {'size': [[1.0, 2.0, 3.0]]},
    {'left': float('nan')}, {'upper': -1e-3}, {'lower': 4e-3}])
def test_damaged_gear_models_are_refused(change: dict[str, Any]) -> None:
    plain = gear().plain()
    assert residual_from_plain(plain).plain() == plain
    wavy = {**plain, 'size': [1.0, 2.0, 3.0, 4.0, -1.0]}
    assert residual_from_plain(wavy).plain() == wavy
    with pytest.raises(ValueError, match='gear of a residual model'):
        residual_from_plain({**plain, **change})


def test_a_gear_is_fitted_to_residual_plus_load() -> None:
    rng = np.random.default_rng(6)
    features = rng.normal(size=(50, 3)) * [1e-3, 0.2, 5.0] + [2e-4, 0.1, 1.0]
    residual = 0.3 + features @ [8e3, 20.0, -0.9] + 0.5 * rng.normal(size=50)
    model = GearRegression().fit(features, residual)
    assert isinstance(model, GearModel)
    tall = np.column_stack([features[:, :2], np.ones(50)])
    solved = np.linalg.lstsq(tall, residual + features[:, 2])[0]
    left = residual + features[:, 2] - tall @ solved
    np.testing.assert_allclose(model.size, [*solved[:2], -1.0], rtol=1e-9)
    assert model.offset == pytest.approx(solved[2])
    assert (model.lower, model.upper) == (features[:, 0].min(), features[:, 0].max())
    assert (model.left, model.blank) == pytest.approx((np.mean(left**2), np.mean(residual**2)))
    with pytest.raises(DataError, match=r'2 points are too few .* needs 3'):
        GearRegression().fit(features[:2], residual[:2])
    wavy = np.hstack([features[:, :2], np.zeros((50, 2)), features[:, 2:]])  # waves faded out
    np.testing.assert_allclose(GearRegression().fit(wavy, residual).plain()['size'],
                               [*solved[:2], 0.0, 0.0, -1.0], rtol=1e-9)
    unloaded = features * [1.0, 1.0, 0.0]
    assert GearRegression().fit(unloaded, residual).plain()['size'][-1] == -1.0


@dataclass
class Inner:
    """A fit that remembers what it was given, and says the sum of the features."""

    given: tuple[FloatArray, FloatArray] | None = None
    blank: float = 3.0

    def fit(self, features: FloatArray, residual: FloatArray) -> ResidualModel:
        self.given = features, residual
        return self  # type: ignore[return-value]

    def moments(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        return features.sum(axis=1), 0.1 + features[:, 0]**2

    def plain(self) -> dict[str, Any]:
        return {'kind': 'inner'}


def test_ripple_is_fitted_first_and_the_rest_left_to_the_inner_model() -> None:
    rng, inner = np.random.default_rng(7), Inner()
    features = rng.normal(size=(30, 4)) * [1.0, 2.0, 3.0, 0.0]
    residual = 4.0 * features[:, 2] + rng.normal(size=30)
    model = RippleRegression(inner).fit(features, residual)
    assert isinstance(model, RippleModel) and inner.given is not None
    size = features[:, 2] @ residual / (features[:, 2] @ features[:, 2])
    np.testing.assert_allclose(model.size, [size, 0.0], rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(inner.given[0], features[:, :2])
    np.testing.assert_allclose(inner.given[1], residual - size * features[:, 2])
    other = rng.normal(size=(5, 4))
    np.testing.assert_allclose(model.mean(other), other[:, :2].sum(axis=1) + size * other[:, 2])
    np.testing.assert_allclose(model.variance(other), 0.1 + other[:, 0]**2)
    assert model.blank == 3.0
    assert model.plain() == {'kind': 'inner', 'ripple': [pytest.approx(size), pytest.approx(0.0)]}
    assert RippleRegression(inner).fit(features[:, :2], residual) is inner


@pytest.mark.parametrize('ripple', [[], [[1.0, 2.0]], [float('nan')], 'abc'])
def test_damaged_ripple_is_refused(ripple: Any) -> None:
    plain = radial().plain()
    assert residual_from_plain({**plain, 'ripple': [2.0, 3.0]}).plain()['ripple'] == [2.0, 3.0]
    with pytest.raises(ValueError, match='ripple of a gear'):
        residual_from_plain({**plain, 'ripple': ripple})


@pytest.mark.parametrize('content', [[], None, {}, {'kind': 3}, {'kind': 'svm'}])
def test_residual_models_of_no_known_kind_are_refused(content: Any) -> None:
    with pytest.raises(ValueError, match=r'residual: model .* is not known'):
        residual_from_plain(content)


def geared(**drive: Any) -> Any:
    return replace(ROBOT, drive=replace(ROBOT.drive, **drive))


RATIOS = np.array([100.0, -80.0, 120.0])


def motion(count: int = 6) -> tuple[FloatArray, ...]:
    return tuple(np.random.default_rng(8).normal(size=(4, count, 3)))


def test_features_are_deflection_and_rate_against_the_coupled_joints() -> None:
    q, qd, motor, speed = motion()
    coupling = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -0.5, 2.0]])
    found = instant_features(geared(coupling=coupling), (q, qd, motor, speed), None)
    turned = np.column_stack([q[:, 0], q[:, 1], 2.0 * q[:, 2] - 0.5 * q[:, 1]])
    np.testing.assert_allclose(found[:, :, 0], motor - turned)
    np.testing.assert_allclose(found[:, 2, 1], speed[:, 2] - 2.0 * qd[:, 2] + 0.5 * qd[:, 1])
    assert found.shape == (6, 3, 2)


def test_features_with_gear_ratios_have_the_deflection_times_the_wave() -> None:
    q, qd, motor, speed = motion()
    found = instant_features(geared(gear_ratios=RATIOS), (q, qd, motor, speed), None)
    phase = 2.0 * np.abs(RATIOS) * motor
    np.testing.assert_allclose(found[:, :, 0], motor - q)
    np.testing.assert_allclose(found[:, :, 2], (motor - q) * np.sin(phase))
    np.testing.assert_allclose(found[:, :, 3], (motor - q) * np.cos(phase))


@pytest.mark.parametrize(('multiple', 'share'), [
    (1.9, 1.0), (2.3, 0.8), (3.05, 0.3), (3.4, 1.0 / 15.0), (3.6, 0.0)])
def test_waves_fade_out_between_two_and_three_and_a_half_cut_offs(
    multiple: float, share: float
) -> None:
    q, qd, motor, _ = motion()
    speed = np.tile(multiple * 2.0 * np.pi * 7.0 / (2.0 * RATIOS), (6, 1))
    robot = geared(gear_ratios=RATIOS)
    whole, found = (instant_features(robot, (q, qd, motor, speed), cutoff)
                    for cutoff in (None, 7.0))
    np.testing.assert_allclose(found[:, :, 2:], share * whole[:, :, 2:], rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(found[:, :, :2], whole[:, :, :2])


def samples_of(robot: Any, count: int = 6) -> Samples:
    q, qd, motor, speed = motion(count)
    return Samples(robot.joints, 0.01 * np.arange(float(count)), q, qd, np.zeros_like(q),
                   motor_position=motor, motor_velocity=speed)


def test_deflections_are_features_by_joint_and_none_without_motor_states() -> None:
    robot = geared(gear_ratios=RATIOS)
    samples = samples_of(robot)
    found = deflections(robot, samples)
    assert found is not None
    np.testing.assert_allclose(found, instant_features(robot, motion(), None))
    for lacking in ('motor_position', 'motor_velocity'):
        assert deflections(robot, replace(samples, **{lacking: None})) is None


def test_load_is_the_last_feature_and_only_that_of_gear_models() -> None:
    features, load = np.arange(24.0).reshape(4, 3, 2), np.arange(16.0).reshape(4, 4)
    loaded = append_load(features, load)
    np.testing.assert_array_equal(loaded[:, :, :2], features)
    np.testing.assert_array_equal(loaded[:, :, 2], load[:, :3])
    np.testing.assert_array_equal(select_features(loaded[:, 1], True), loaded[:, 1])
    np.testing.assert_array_equal(select_features(loaded[:, 1], False), features[:, 1])
    features[2, 1, 0] = np.nan
    assert complete_joints(features) == [0, 2]


class Torque:
    """Effects of a robot whose effort is known: columns times the sum of the values."""

    def __init__(self, robot: Any, load: FloatArray) -> None:
        self.robot, self.load = robot, load
        self.blocks = (RigidLinks(robot), JointFriction(None, ()))  # type: ignore[arg-type]
        self.pivots_by_block = (np.arange(2), np.arange(3))

    def effort(self, samples: Samples, parameters: FloatArray) -> FloatArray:
        return self.load * parameters.sum()


def test_torque_along_samples_is_that_of_each_model_with_its_features() -> None:
    samples, load = samples_of(ROBOT), np.random.default_rng(9).normal(size=(6, 3))
    assert samples.motor_position is not None and samples.motor_velocity is not None
    torque: Any = Torque(ROBOT, load)
    values = np.array([2.0, 3.0, 10.0, 20.0, 30.0])
    np.testing.assert_array_equal(gear_load(torque, values), [2.0, 3.0, 0.0, 0.0, 0.0])
    wide = gear(lower=-9.0, upper=9.0)
    small = replace(radial(), lower=frozen([-9.0, -9.0]), upper=frozen([9.0, 9.0]))
    found = Deflection((wide, None, small)).along(torque, values, samples, np.zeros((6, 3)))
    bent = samples.motor_position - samples.position
    rate = samples.motor_velocity - samples.velocity
    np.testing.assert_allclose(
        found[:, 0], 0.5 + 9e3 * bent[:, 0] + 30.0 * rate[:, 0] - 5.0 * load[:, 0])
    assert not found[:, 1].any()
    np.testing.assert_allclose(found[:, 2], small.mean(np.column_stack([bent[:, 2], rate[:, 2]])))
    still = replace(samples, motor_position=None)
    assert not Deflection((wide, None, small)).along(
        torque, values, still, np.ones((6, 3))).any()


def test_note_names_the_joints_whose_models_lack_motor_states() -> None:
    effect, samples = Deflection((gear(), None, radial())), samples_of(ROBOT)
    assert effect.note(ROBOT, samples) == ''
    text = 'the model of the deflection of {} is not used, because there are no motor states'
    assert effect.note(ROBOT, replace(samples, motor_position=None)) == text.format(
        'joint_1 and joint_3')
    motor = samples.position.copy()
    motor[:, [1, 2]] = np.nan
    assert effect.note(ROBOT, replace(samples, motor_position=motor)) == text.format('joint_3')
    assert effect.left_out == (
        'Omitted: the torque that the deflection of gears shows beyond this model.')


def test_sections_need_a_record_of_residual_models() -> None:
    model: Any = SimpleNamespace(record=SimpleNamespace(residual=None))
    assert Deflection.sections(model) == ()
