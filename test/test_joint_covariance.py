"""Generalised least squares against statsmodels, and what it gains when joints share noise."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from motions import lively, stacked, torque_model, truth_of, with_effort
from tolerances import SAME_ESTIMATE

from robot_dynid.errors import DataError
from robot_dynid.estimation import ESTIMATORS, GeneralisedLeastSquares, Status
from robot_dynid.experiment import Experiment, TorqueModel
from robot_dynid.types import FloatArray, Samples

#: residuals of the three joints: deviations [N m] and correlations
SCALE = np.array([0.5, 0.3, 0.1])
CORRELATION = np.array([[1.0, 0.9, -0.6], [0.9, 1.0, -0.5], [-0.6, -0.5, 1.0]])
OMEGA = CORRELATION * np.outer(SCALE, SCALE)


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


def test_it_is_that_of_statsmodels(model: TorqueModel) -> None:
    samples = shared_noise(model, 200, 0)
    values, omega = dense(model, samples)
    estimate = GeneralisedLeastSquares(tolerance=1e-13, rounds=200).fit(
        Experiment.of(model, [samples]))
    assert estimate.status is Status.OK
    assert estimate.values == pytest.approx(values, rel=SAME_ESTIMATE, abs=SAME_ESTIMATE)
    assert np.array(estimate.details['omega']) == pytest.approx(omega, rel=1e-7)


def test_it_gains_as_much_as_theory_says(model: TorqueModel) -> None:
    samples = lively(model, 500)
    off: dict[str, list[FloatArray]] = {'wls': [], 'gls': []}
    inside: dict[str, list[FloatArray]] = {'wls': [], 'gls': []}
    true = truth_of(model)
    for seed in range(40):
        experiment = Experiment.of(model, [shared_noise(model, 500, seed)])
        for method, errors in off.items():
            fit = ESTIMATORS[method].fit(experiment)
            low, high = fit.interval()
            errors.append(fit.values - true)
            inside[method].append((low < true) & (true < high))
        assert np.array(fit.details['correlation']) == pytest.approx(CORRELATION, abs=0.15)
    found = {method: np.sqrt(np.mean(np.square(values), axis=0)) for method, values in off.items()}
    gain = np.exp(np.mean(np.log(found['gls'] / found['wls'])))
    assert gain == pytest.approx(gain_in_theory(model, samples), rel=0.1)
    assert gain < 0.85
    assert min(np.mean(shares) for shares in inside.values()) > 0.92


def gain_in_theory(model: TorqueModel, samples: Samples) -> float:
    """Return the deviation of gls over that of wls, geometric mean over the parameters."""
    design, _ = stacked(model, samples)
    blocks = design.reshape(len(samples), 3, -1)
    best = np.linalg.inv(np.einsum('tia,ij,tjb', blocks, np.linalg.inv(OMEGA), blocks))
    part = blocks / SCALE[:, None] ** 2
    inverse = np.linalg.inv(np.einsum('tia,tib', part, blocks))
    plain = inverse @ np.einsum('tia,ij,tjb', part, OMEGA, part) @ inverse
    return float(np.exp(0.5 * np.mean(np.log(np.diag(best) / np.diag(plain)))))


def test_joints_with_the_same_noise_are_named_and_counted_apart(model: TorqueModel) -> None:
    part = np.array([1.0, 0.5, 0.0])
    same = np.outer(part, part) + np.diag([0.0, 0.0, 0.01])
    experiment = Experiment.of(model, [shared_noise(model, 500, 0, same)])
    one, two, _ = model.robot.joints
    estimate = ESTIMATORS['gls'].fit(experiment)
    assert estimate.warnings[0].startswith(f'the residuals of {one}, {two} depend on each other')
    assert np.array(estimate.details['correlation']) == pytest.approx(np.eye(3))
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
