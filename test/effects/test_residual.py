"""Residual models: conditionals against independent ones, fading, files, bad input."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np
import pytest
import yaml
from identified_models import nominal_model
from scipy import integrate
from scipy.stats import multivariate_normal
from tolerances import CONDITIONAL, RADIAL

from robot_dynid.effects import RigidLinks
from robot_dynid.effects.deflection import (
    RESIDUALS,
    MixtureModel,
    RadialBasis,
    RadialModel,
    gear_load,
    residual_from_plain,
)
from robot_dynid.errors import DataError
from robot_dynid.types import FloatArray


def curve(features: FloatArray) -> FloatArray:
    """Return a smooth residual [N m] of deflection [rad] and its rate [rad/s]."""
    d, rate = features[:, 0] / 1e-3, features[:, 1] / 0.02
    return np.asarray(2.0 * np.tanh(2.0 * d) + 0.5 * d * rate)


@pytest.fixture(scope='module')
def points() -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(3)
    features = rng.standard_normal((2000, 2)) * (8e-4, 0.015)
    return features, curve(features) + 0.1 * rng.standard_normal(2000)


@pytest.fixture(scope='module', params=['gmr', 'rbf'])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope='module')
def fitted(kind: str, points: tuple[FloatArray, FloatArray]) -> Any:
    return RESIDUALS[kind].fit(*points)


def test_the_curve_is_found_within_its_noise(
        fitted: Any, points: tuple[FloatArray, FloatArray]) -> None:
    rng = np.random.default_rng(4)
    features = rng.standard_normal((500, 2)) * (6e-4, 0.012)
    error = fitted.mean(features) - curve(features)
    assert np.sqrt(np.mean(error**2)) < 0.1 * np.std(points[1])


def test_the_variance_is_that_of_what_is_left(
        fitted: Any, points: tuple[FloatArray, FloatArray]) -> None:
    features, residual = points
    error = residual - fitted.mean(features)
    ratio = np.mean(error**2 / fitted.variance(features))
    assert 0.5 < ratio < 1.5


def test_files_give_the_same_numbers_back(fitted: Any) -> None:
    again = residual_from_plain(yaml.safe_load(yaml.safe_dump(fitted.plain())))
    features = np.random.default_rng(5).standard_normal((50, 2)) * (2e-3, 0.04)
    assert np.array_equal(again.mean(features), fitted.mean(features))
    assert np.array_equal(again.variance(features), fitted.variance(features))


def test_far_outside_nothing_is_added_and_the_variance_says_so(
        fitted: Any, points: tuple[FloatArray, FloatArray]) -> None:
    rays = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]])[:, None] * np.geomspace(
        3.0, 60.0, 30)[:, None] * (8e-4, 0.015)
    blank = np.mean(points[1]**2)
    for ray in rays:
        assert abs(fitted.mean(ray)[-1]) < 1e-9
        assert fitted.variance(ray)[-1] == pytest.approx(blank)
        assert np.all(np.abs(fitted.mean(ray)) <= np.abs(points[1]).max())


def test_the_same_data_gives_the_same_model(
        kind: str, fitted: Any, points: tuple[FloatArray, FloatArray]) -> None:
    assert RESIDUALS[kind].fit(*points).plain() == fitted.plain()


def conditional(model: MixtureModel, u: FloatArray) -> tuple[float, float]:
    """Return mean and variance at one standardised point by integrating the joint density."""
    grid = np.linspace(-9.0, 9.0, 6001)
    points = np.column_stack([np.broadcast_to(u, (len(grid), 2)), grid])
    values = np.sum([w * multivariate_normal(m, c).pdf(points) for w, m, c in zip(
        model.weights, model.means, model.covariances, strict=True)], axis=0)
    total = integrate.simpson(values, x=grid)
    mean = integrate.simpson(values * grid, x=grid) / total
    return float(mean), float(integrate.simpson(values * (grid - mean) ** 2, x=grid) / total)


def test_conditionals_are_those_of_the_joint_density(
        points: tuple[FloatArray, FloatArray]) -> None:
    model = RESIDUALS['gmr'].fit(*points)
    assert isinstance(model, MixtureModel)
    assert len(model.weights) > 1
    scale, centre = model.scale, model.centre
    for u in np.random.default_rng(6).standard_normal((4, 2)):
        mean, variance = conditional(model, u)
        here = (u * scale[:-1] + centre[:-1])[None]
        assert model.mean(here)[0] == pytest.approx(centre[-1] + scale[-1] * mean,
                                                    rel=CONDITIONAL, abs=CONDITIONAL)
        assert model.variance(here)[0] == pytest.approx(scale[-1]**2 * variance, rel=CONDITIONAL)


def test_conditionals_by_inverse_matrices(points: tuple[FloatArray, FloatArray]) -> None:
    model = RESIDUALS['gmr'].fit(*points)
    assert isinstance(model, MixtureModel)
    u = np.random.default_rng(7).standard_normal((100, 2))
    shares, means, variances = [], [], []
    for w, m, c in zip(model.weights, model.means, model.covariances, strict=True):
        gain = c[2, :2] @ np.linalg.inv(c[:2, :2])
        shares.append(w * multivariate_normal(m[:2], c[:2, :2]).pdf(u))
        means.append(m[2] + (u - m[:2]) @ gain)
        variances.append(c[2, 2] - gain @ c[:2, 2])
    h = np.array(shares) / np.sum(shares, axis=0)
    mean = np.sum(h * means, axis=0)
    second = np.sum(h * (np.array(variances)[:, None] + np.square(means)), axis=0)
    here = u * model.scale[:-1] + model.centre[:-1]
    ours = (model.mean(here) - model.centre[-1]) / model.scale[-1]
    assert np.max(np.abs(ours - mean)) < CONDITIONAL
    assert np.max(np.abs(model.variance(here) / model.scale[-1]**2 - second + mean**2)
                  ) < CONDITIONAL


def test_the_network_is_the_papers(points: tuple[FloatArray, FloatArray]) -> None:
    features, residual = points
    model = RadialBasis(5).fit(features, residual)
    assert isinstance(model, RadialModel)
    width = 0.5 * (model.upper - model.lower) / 4.0
    axes = np.linspace(model.lower, model.upper, model.count).T
    centres = np.array(list(product(*axes)))
    bumps = np.exp(-0.5 * np.sum(
        ((features[:40, None] - centres) / width) ** 2, axis=2))
    told = (bumps @ model.weights) / bumps.sum(axis=1)
    assert np.max(np.abs(told - model.mean(features[:40]))) < RADIAL


def test_fewer_points_than_the_model_needs(kind: str) -> None:
    rng = np.random.default_rng(8)
    with pytest.raises(DataError, match='too few'):
        RESIDUALS[kind].fit(rng.standard_normal((7, 2)), rng.standard_normal(7))


def test_few_points_give_few_components() -> None:
    rng = np.random.default_rng(9)
    model = RESIDUALS['gmr'].fit(rng.standard_normal((45, 2)), rng.standard_normal(45))
    assert isinstance(model, MixtureModel)
    assert len(model.weights) <= 2


def test_a_constant_deflection_is_refused(kind: str) -> None:
    features = np.column_stack([np.full(500, 1e-4), np.random.default_rng(1).normal(size=500)])
    with pytest.raises(DataError, match='constant'):
        RESIDUALS[kind].fit(features, features[:, 1])


def test_numbers_that_are_not_finite_are_refused(
        kind: str, points: tuple[FloatArray, FloatArray]) -> None:
    features = points[0].copy()
    features[3, 1] = np.nan
    with pytest.raises(DataError, match='not finite'):
        RESIDUALS[kind].fit(features, points[1])


def test_damaged_files_are_refused(fitted: Any) -> None:
    content = {**fitted.plain()}
    content['weights'] = content['weights'][:-1]
    with pytest.raises(ValueError, match=r'Gaussian mixture|radial'):
        residual_from_plain(content)
    with pytest.raises(ValueError, match='not known'):
        residual_from_plain({'kind': 'svm'})


def test_prediction_does_not_need_scikit_learn() -> None:
    code = ('import sys; sys.modules["sklearn"] = None; import robot_dynid.effects.deflection; '
            'import robot_dynid')
    subprocess.run([sys.executable, '-c', code], check=True)


def test_gears_bear_the_links_and_nothing_else() -> None:
    model = nominal_model('planar_3r').torque_model
    links = model.base_of(RigidLinks)
    values = np.arange(1.0, len(links) + 1.0)
    assert links.any() and not links.all()
    np.testing.assert_array_equal(gear_load(model, values), np.where(links, values, 0.0))
