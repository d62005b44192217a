"""Posterior samples: all feasible, with the spread of the covariance, kept by the model file."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from exported import ARM, BALL, arm_model
from identified_models import feasible_model, nominal_model, random_links

from robot_dynid.errors import ExportWarning, ModelError, UsageError
from robot_dynid.export.identified_arm import is_physical
from robot_dynid.export.samples import SAMPLES, FeasibleSamples, Posterior
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uncertainty import correlation_factor
from robot_dynid.identified.uses import rigid_equivalent
from robot_dynid.robot.inertia import pseudo_inertia
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray


def uncertain(model: IdentifiedModel, relative: float) -> tuple[IdentifiedModel, FloatArray]:
    """Return the model with deviations of ``relative`` size, and their covariance (b, b)."""
    b = len(model.values)
    root = np.random.default_rng(7).normal(size=(b, 2 * b))
    covariance = root @ root.T
    scale = relative * (np.abs(model.values) + 0.01) / np.sqrt(np.diag(covariance))
    covariance *= np.outer(scale, scale)
    std = np.sqrt(np.diag(covariance))
    return replace(model, std=std,
                   correlation_factor=correlation_factor(covariance, std)), covariance


def elastic() -> IdentifiedModel:
    robot = load_robot('elastic_2r')
    return feasible_model(robot, robot.nominal + BALL, np.random.default_rng(0))


def assert_feasible(model: IdentifiedModel) -> None:
    assert model.feasible is not None and model.feasible_links is not None
    assert all(is_physical(link) for link in model.feasible_links)
    for name, value in model.standard.items():
        if name.startswith(('Ia', 'fv', 'fc', 'K', 'D')):
            assert value >= 0.0, name
    assert np.allclose(model.reduction.base(model.feasible), model.values, rtol=1e-9, atol=1e-12)


def test_spread_is_the_covariance_where_no_constraint_is_active() -> None:
    model, covariance = uncertain(elastic(), 1e-3)
    drawn = Posterior(model.torque_model, model.values, model.covariance_factor).drawn(
        4000, np.random.default_rng(0))
    assert not drawn.moved.any() and drawn.warnings == ()
    base = drawn.standard @ model.reduction.matrix.T
    assert np.allclose(base.mean(axis=0), model.values, rtol=0, atol=0.05 * model.std)
    found = np.cov(base.T)
    assert np.allclose(np.sqrt(np.diag(found)), model.std, rtol=0.1)
    scale = np.outer(model.std, model.std)
    size = np.linalg.norm(covariance / scale)
    assert np.linalg.norm((found - covariance) / scale) <= 0.1 * size


@pytest.mark.parametrize('relative', [1e-3, 1.0])
def test_posterior_samples_are_feasible_and_seeded(relative: float) -> None:
    model, _ = uncertain(arm_model(), relative)
    drawn, warnings = model.posterior(20, seed=3)
    assert len(drawn) == 20
    for one in drawn:
        assert_feasible(one)
    assert bool(warnings) == (relative > 0.1)
    assert np.array_equal(model.posterior(20, seed=3)[0][7].values, drawn[7].values)
    assert not np.array_equal(model.posterior(20, seed=4)[0][7].values, drawn[7].values)


def test_draws_that_no_robot_has_are_moved_to_the_nearest() -> None:
    """Friction below zero: of all with none, the one nearest in the metric of the covariance."""
    model, covariance = uncertain(arm_model(), 1e-2)
    wrong, i = model.values.copy(), model.names.index('fc1')
    wrong[i] = -10.0 * model.std[i]
    torque = replace(model.torque_model, robot=model.robot.with_nominal(model.feasible_links))
    drawn = Posterior(torque, wrong, model.covariance_factor).drawn(
        3, np.random.default_rng(0))
    assert '3 of 3 samples' in drawn.warnings[0]
    steps = np.random.default_rng(0).standard_normal((3, len(wrong))) @ model.covariance_factor
    for base, moved, step in zip(drawn.standard @ model.reduction.matrix.T, drawn.moved, steps):
        start = wrong + step
        nearest = start - covariance[i] * start[i] / covariance[i, i]
        assert np.allclose(base, nearest, rtol=0, atol=0.02 * model.std)
        assert moved == pytest.approx(-start[i] / model.std[i], rel=1e-3)
    for row in drawn.standard:
        for link in row[:20].reshape(2, 10):
            assert np.linalg.eigvalsh(pseudo_inertia(link))[0] > 0.0


def test_posterior_keeps_parameters_that_the_data_leave_open() -> None:
    model, _ = uncertain(arm_model(), 1e-3)
    std = model.std.copy()
    std[3] = np.inf
    open_one = replace(model, std=std, correlation_factor=correlation_factor(
        np.diag(np.where(np.isfinite(std), std, 0.0)**2), std))
    values = np.array([one.values for one in open_one.posterior(20)[0]])
    spread = values.std(axis=0) / np.abs(model.values)
    assert spread[3] < 1e-9 < spread[[0, 1, 2, 4]].min()


def test_the_file_keeps_the_correlations() -> None:
    model, covariance = uncertain(feasible_model(
        load_robot('ur10e'), random_links(np.random.default_rng(0), 6),
        np.random.default_rng(0)), 0.1)
    text = model.to_yaml()
    read = IdentifiedModel.from_yaml(text)
    assert np.array_equal(read.covariance_factor, model.covariance_factor)
    assert read.to_yaml() == text and len(text) < 60_000
    found = read.covariance_factor.T @ read.covariance_factor
    assert np.allclose(found, covariance, rtol=0, atol=1e-5 * np.outer(model.std, model.std))
    body = text[:text.index('digest:')]
    row = body[body.index('correlation_factor:'):].splitlines()[1]
    for other in (row.replace(' 0.', ' 5.', 1), row.replace(' 0.', ' x', 1)):
        with pytest.raises(ModelError, match=r'correlations|damaged'):
            IdentifiedModel.from_yaml(body.replace(row, other))


def test_models_without_covariance_and_wrong_counts_are_refused() -> None:
    with pytest.raises(ModelError, match='no covariance'):
        nominal_model('planar_3r').samples(2)
    model, _ = uncertain(arm_model(), 1.0)
    for wrong in (0, -1, 2.5, 'two'):
        with pytest.raises(UsageError, match='number of samples'):
            model.samples(wrong)
    with pytest.warns(ExportWarning, match='samples were not feasible as drawn'):
        model.samples(20, seed=3)
    assert rigid_equivalent(uncertain(elastic(), 0.1)[0]).correlation_factor is None
    assert ARM


def test_moved_draws_are_counted_with_the_median_and_the_largest_distance() -> None:
    moved = np.array([0.0, 0.5, 0.0, 2.25, 1.0])
    assert FeasibleSamples(np.zeros((5, 2)), moved).warnings == (
        '3 of 5 samples were not feasible as drawn and were moved to the nearest feasible '
        'parameters (median 1, maximum 2.2 standard deviations), so their spread is not that of '
        'the covariance',)
    assert FeasibleSamples(np.zeros((5, 2)), 0.0 * moved).warnings == ()


@pytest.mark.parametrize(('count', 'allowed'), [
    (0, False), (1, True), (100_000, True), (100_001, False), (2.5, False)])
def test_one_to_a_hundred_thousand_samples_are_drawn(count: float, allowed: bool) -> None:
    if allowed:
        assert SAMPLES.read(count, 'number') == count
    else:
        with pytest.raises(UsageError, match='number'):
            SAMPLES.read(count, 'number')
