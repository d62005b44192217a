"""Generalised least squares against statsmodels, and what it gains when joints share noise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import statsmodels.api as sm
from coverages import CHANCE, correlation_of, coverage_scatter, expected_coverage
from motions import lively, stacked, torque_model, truth_of, with_effort
from tolerances import SAME_ESTIMATE

from robot_dynid.errors import DataError
from robot_dynid.estimation import ESTIMATORS, GeneralisedLeastSquares, Status
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.types import FloatArray, Samples

#: residuals of the three joints: deviations [N m] and correlations
SCALE = np.array([0.5, 0.3, 0.1])
CORRELATION = np.array([[1.0, 0.9, -0.6], [0.9, 1.0, -0.5], [-0.6, -0.5, 1.0]])
OMEGA = CORRELATION * np.outer(SCALE, SCALE)
#: noises of the comparison with theory, samples of each; deviations that the largest of
#: 3 correlations in all of them exceeds in one run of 300
SEEDS, COUNT, LARGEST = 40, 500, 4.2


@pytest.fixture(scope='module')
def model() -> TorqueModel:
    return torque_model('planar_3r')


def shared_noise(model: TorqueModel, count: int, seed: int, omega: FloatArray = OMEGA) -> Samples:
    """Return a lively motion whose joints' efforts have noise in common."""
    samples = lively(model, count)
    noise = np.random.default_rng(seed).multivariate_normal(np.zeros(3), omega, count)
    assert samples.effort is not None
    return with_effort(samples, samples.effort + noise)


def dense(model: TorqueModel, samples: Samples, rounds: int = 60) -> tuple[FloatArray, FloatArray]:
    """Return parameters and covariance of statsmodels' GLS, iterated with eq. 24."""
    design, effort = stacked(model, samples)
    n, b = model.robot.n, design.shape[1]
    count = len(samples)
    values = sm.OLS(effort, design).fit().params
    for _ in range(rounds):
        residual = (effort - design @ values).reshape(-1, n)
        omega = residual.T @ residual / (count - b)
        values = sm.GLS(effort, design, sigma=np.kron(np.eye(count), omega)).fit().params
    return values, omega


def test_gls_equals_statsmodels_gls(model: TorqueModel) -> None:
    samples = shared_noise(model, 200, 0)
    values, omega = dense(model, samples)
    estimate = GeneralisedLeastSquares(tolerance=1e-13, rounds=200).fit(
        Experiment.of(model, [samples]))
    assert estimate.status is Status.OK
    assert estimate.values == pytest.approx(values, rel=SAME_ESTIMATE, abs=SAME_ESTIMATE)
    assert np.array(estimate.details.omega) == pytest.approx(omega, rel=1e-7)


def test_gls_gains_the_precision_that_theory_predicts(model: TorqueModel) -> None:
    off: dict[str, list[FloatArray]] = {'wls': [], 'gls': []}
    inside: dict[str, list[FloatArray]] = {'wls': [], 'gls': []}
    true = truth_of(model)
    for seed in range(SEEDS):
        experiment = Experiment.of(model, [shared_noise(model, COUNT, seed)])
        for method, errors in off.items():
            fit = ESTIMATORS[method].fit(experiment)
            low, high = fit.interval()
            errors.append(fit.values - true)
            inside[method].append((low < true) & (true < high))
        found = np.array(fit.details.correlation)
        # a correlation r from N samples has the deviation (1 - r^2) / sqrt(N)
        assert np.all(np.abs(found - CORRELATION)
                      <= LARGEST * (1.0 - CORRELATION**2) / np.sqrt(COUNT) + 1e-9)
    spread = {method: np.mean(np.square(values), axis=0) for method, values in off.items()}
    best, plain = in_theory(model)
    gain = 0.5 * np.mean(np.log(spread['gls'] / spread['wls']))
    expected = 0.5 * np.mean(np.log(np.diag(best) / np.diag(plain)))
    scatter = scatter_of_gain(best, plain)
    assert expected < -5.0 * scatter  # these seeds can tell the two apart
    assert abs(gain - expected) < CHANCE * scatter
    for method, covariance, root in (('wls', plain, np.linalg.cholesky(CORRELATION)),
                                     ('gls', best, np.eye(3))):
        share = expected_coverage(weighted(model, method), batches(experiment), root)
        by_chance = coverage_scatter(correlation_of(covariance), SEEDS)
        assert abs(np.mean(inside[method]) - share) < CHANCE * by_chance


def weighted(model: TorqueModel, method: str) -> FloatArray:
    """Return the regressor (N n, b) as ``method`` weighs it when it knows the noise."""
    design, _ = stacked(model, lively(model, COUNT))
    root = np.linalg.cholesky(OMEGA) if method == 'gls' else np.diag(SCALE)
    blocks = design.reshape(COUNT, 3, -1)
    return np.asarray(np.einsum('ij,tjb->tib', np.linalg.inv(root), blocks).reshape(design.shape))


def batches(experiment: Experiment) -> list[slice]:
    """Return the rows of the regressor that are left out together."""
    ends = 3 * np.cumsum([0, *(batch.samples for batch in experiment.information.batches)])
    return [slice(a, b) for a, b in pairwise(ends)]


def in_theory(model: TorqueModel) -> tuple[FloatArray, FloatArray]:
    """Return the covariances (b, b) of gls and of wls."""
    white, part = weighted(model, 'gls'), weighted(model, 'wls')
    inverse = np.linalg.inv(part.T @ part)
    blocks = part.reshape(COUNT, 3, -1)
    noise = np.einsum('tia,ij,tjb', blocks, CORRELATION, blocks)
    return np.linalg.inv(white.T @ white), inverse @ noise @ inverse


def scatter_of_gain(best: FloatArray, plain: FloatArray) -> float:
    """Return the deviation of the mean logarithm of the ratio of both root mean squares.

    Errors of gls and wls have the covariance ``best``, as that is the least there is. The log of
    a mean square over the seeds S differs from its expectation by the mean of x^2 - 1 with x of
    unit deviation, and x_i^2, x_j^2 of correlation r have the covariance 2 r^2.
    """
    a, b = (np.sqrt(np.diag(covariance)) for covariance in (best, plain))
    cross = best / np.outer(a, b)
    both = correlation_of(best)**2 + correlation_of(plain)**2 - cross**2 - cross.T**2
    return float(np.sqrt(both.mean() / (2.0 * SEEDS)))


def test_joints_with_the_same_noise_are_named_and_counted_apart(model: TorqueModel) -> None:
    part = np.array([1.0, 0.5, 0.0])
    same = np.outer(part, part) + np.diag([0.0, 0.0, 0.01])
    experiment = Experiment.of(model, [shared_noise(model, 500, 0, same)])
    one, two, _ = model.robot.joints
    estimate = ESTIMATORS['gls'].fit(experiment)
    assert estimate.warnings[0].startswith(f'the residuals of {one}, {two} are linearly dependent')
    assert np.array(estimate.details.correlation) == pytest.approx(np.eye(3))
    assert estimate.values == pytest.approx(ESTIMATORS['wls'].fit(experiment).values, rel=0.02)


def test_a_joint_without_effort_does_no_harm(model: TorqueModel) -> None:
    samples = shared_noise(model, 500, 0)
    assert samples.effort is not None
    dead = with_effort(samples, samples.effort * [1.0, 1.0, 0.0])
    estimate = ESTIMATORS['gls'].fit(Experiment.of(model, [dead]))
    assert np.all(np.isfinite(estimate.values)) and np.all(np.isfinite(estimate.covariance))


def test_recordings_that_are_gone_are_asked_for(model: TorqueModel) -> None:
    experiment = Experiment.of(model, (s for s in [lively(model)]))
    with pytest.raises(DataError, match=r'0 of 3000 samples .* as a list, not as a generator'):
        ESTIMATORS['gls'].fit(experiment)


def test_a_fit_that_does_not_settle_says_so(model: TorqueModel) -> None:
    experiment = Experiment.of(model, [shared_noise(model, 300, 0)])
    estimate = GeneralisedLeastSquares(tolerance=1e-13, rounds=1).fit(experiment)
    assert estimate.status is Status.NOT_SETTLED
