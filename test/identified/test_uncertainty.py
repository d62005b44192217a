"""identified/uncertainty.py: intervals of parameters and efforts, correlations in files."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identified_models import nominal_model, states
from scipy import stats

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.states import effort_by_parameters
from robot_dynid.identified.trained import Trained
from robot_dynid.identified.uncertainty import (
    correlation_factor,
    effort_intervals,
    half_intervals,
    parameter_variance,
)


def model(freedom: float | None, left: tuple[float, ...] = ()) -> IdentifiedModel:
    one = nominal_model('planar_3r', viscous=2.0, coulomb=1.5)
    size = len(one.values)
    return replace(one, std=0.1 + 0.01 * np.arange(size), correlation_factor=np.eye(size),
                   record=replace(one.record, degrees_of_freedom=freedom, left_over=left))


@pytest.mark.parametrize(('freedom', 'factor'), [(None, stats.norm.ppf(0.975)), (
    4.0, stats.t.ppf(0.975, 4.0))])
def test_intervals_are_those_of_student(freedom: float | None, factor: float) -> None:
    one = model(freedom, (0.3, 0.7))
    np.testing.assert_allclose(half_intervals(one), factor * one.std, rtol=1e-3)
    at = states(one, 5)
    rows = effort_by_parameters(one, *at)
    variance = np.sum((rows * one.std)**2, axis=2)
    left = stats.norm.ppf(0.975) * np.array([0.3, 0.7, 0.0])
    np.testing.assert_allclose(effort_intervals(one, *at), np.hypot(
        factor * np.sqrt(variance), left), rtol=1e-3)


def test_variance_by_parameters_is_the_mean_over_the_training_ranges() -> None:
    ranges = {'position': [0.3, 0.3], 'velocity': [-0.7, -0.7], 'acceleration': [2.0, 2.0]}
    one = replace(model(9.0), trained=Trained({
        name: np.tile(ends, (3, 1)) for name, ends in ranges.items()}))
    rows = effort_by_parameters(one, *(np.full((1, 3), value) for value in (0.3, -0.7, 2.0)))
    np.testing.assert_allclose(parameter_variance(one), np.sum((rows[0] * one.std)**2, axis=1))


def test_correlation_factor_has_the_correlations_of_determined_parameters() -> None:
    rng = np.random.default_rng(1)
    table = 0.1 * rng.normal(size=(9, 6))
    covariance = table.T @ table
    std = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(std, std)
    std[1], std[3] = 0.0, np.inf
    covariance[5, 2] = covariance[2, 5] = np.nan
    covariance[4, 4] = 4.0 * covariance[4, 4]
    std[4] *= 2.0
    covariance[4, :4] *= 2.0
    covariance[:4, 4] *= 2.0
    found = correlation_factor(covariance, std)
    used = [0, 4]
    assert not found[:, [1, 2, 3, 5]].any()
    np.testing.assert_allclose((found.T @ found)[np.ix_(used, used)],
                               correlation[np.ix_(used, used)], rtol=0.0, atol=1e-6)
    assert not np.tril(found, -1).any()
    digits = [f'{abs(x):.15e}' for x in found[found != 0.0]]
    assert all(float(f'{float(text):.7g}') == float(text) for text in digits)
    assert any(float(f'{float(text):.6g}') != float(text) for text in digits)
