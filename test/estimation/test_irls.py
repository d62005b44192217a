"""Robust fits (`estimation.irls`) against statsmodels, and what gross outliers do to them."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from motions import lively, stacked, torque_model, truth_of, with_effort
from random_robots import random_urdf
from tolerances import SAME_ESTIMATE

from robot_dynid.errors import UsageError
from robot_dynid.estimation import ESTIMATORS, RobustLeastSquares, Status, irls
from robot_dynid.estimation.experiment import Experiment, TorqueModel, row_weights
from robot_dynid.estimation.irls import NORMS, Huber, RobustDetails, Tukey, run_round
from robot_dynid.estimation.least_squares import batch_scores, solve
from robot_dynid.estimation.uncertainty.between_recordings import (
    friction_scales,
    scatter_covariance,
)
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.types import Samples

THEIRS = {'huber': sm.robust.norms.HuberT(), 'tukey': sm.robust.norms.TukeyBiweight()}


@pytest.fixture(scope='module')
def model() -> TorqueModel:
    return torque_model('planar_3r')


def spoiled(model: TorqueModel, share: float, seed: int = 0, count: int = 2000) -> Samples:
    """Return a lively motion with noise, and gross errors in a ``share`` of all efforts."""
    samples = lively(model, count, noise=0.01)
    rng = np.random.default_rng(seed)
    assert samples.effort is not None
    gross = rng.uniform(size=samples.effort.shape) < share
    size = 5.0 * np.abs(samples.effort).max(axis=0)
    return with_effort(samples, samples.effort + gross * size * rng.uniform(
        0.2, 1.0, samples.effort.shape))


@pytest.mark.parametrize('robust', NORMS)
def test_weights_are_those_of_statsmodels(robust: str) -> None:
    x = np.linspace(-8.0, 8.0, 400)
    ours, theirs = NORMS[robust][-1], THEIRS[robust]
    assert ours.weight(x) == pytest.approx(theirs.weights(x), abs=1e-14)
    assert ours.slope(x) == pytest.approx(theirs.psi_deriv(x), abs=1e-14)


@pytest.mark.parametrize('robust', NORMS)
def test_irls_equals_statsmodels_rlm_in_units_of_each_joint(
    model: TorqueModel, robust: str
) -> None:
    samples = spoiled(model, 0.05)
    estimate = RobustLeastSquares(robust, tolerance=1e-13, rounds=1000).fit(
        Experiment.of(model, [samples]))
    assert estimate.status is Status.OK
    scale = np.array(estimate.details.scale)
    design, effort = stacked(model, samples)
    residual = (effort - design @ estimate.values).reshape(-1, model.robot.n)
    for j, column in enumerate(residual.T):
        assert scale[j] == pytest.approx(sm.robust.scale.mad(column, center=0), rel=1e-8)
    unit = np.tile(scale, len(samples))
    theirs = sm.RLM(effort / unit, design / unit[:, None], M=THEIRS[robust]).fit(
        maxiter=1000, tol=1e-14, conv='coefs', scale_est=lambda *_: 1.0,
        start_params=estimate.values + 1e-3, start_scale=1.0)
    assert estimate.values == pytest.approx(theirs.params, rel=SAME_ESTIMATE, abs=SAME_ESTIMATE)


@pytest.mark.parametrize('robust', NORMS)
def test_a_single_joint_is_that_of_statsmodels(robust: str) -> None:
    model = torque_model(robot_from_urdf(random_urdf(np.random.default_rng(4), 1, 0.0)))
    samples = spoiled(model, 0.05)
    estimate = RobustLeastSquares(robust, tolerance=1e-13, rounds=1000).fit(
        Experiment.of(model, [samples]))
    design, effort = stacked(model, samples)
    start = None if robust == 'huber' else estimate.values + 1e-3
    theirs = sm.RLM(effort, design, M=THEIRS[robust]).fit(
        maxiter=1000, tol=1e-14, conv='coefs', start_params=start,
        start_scale=None if start is None else estimate.details.scale[0])
    assert estimate.values == pytest.approx(theirs.params, rel=SAME_ESTIMATE, abs=SAME_ESTIMATE)


@pytest.mark.parametrize('robust', NORMS)
def test_gross_errors_do_not_spoil_the_fit(model: TorqueModel, robust: str) -> None:
    experiment = Experiment.of(model, [spoiled(model, 0.1)])
    true = truth_of(model)
    effort = model.moderate_effort.max(axis=0)
    robustly, plainly = (
        np.max(np.abs(estimator.fit(experiment).values - true) * effort)
        for estimator in (RobustLeastSquares(robust), ESTIMATORS['wls']))
    assert robustly < 0.05 * plainly
    assert estimate_share(experiment, robust) == pytest.approx(0.1, abs=0.03)


def estimate_share(experiment: Experiment, robust: str) -> float:
    """Return the share of down-weighted samples, mean over the joints."""
    return float(np.mean(list(RobustLeastSquares(robust).fit(
        experiment).details.down_weighted.values())))


def test_a_joint_with_many_outliers_is_named(model: TorqueModel) -> None:
    samples = spoiled(model, 0.25)
    assert samples.effort is not None
    clean = lively(model, len(samples), noise=0.01)
    assert clean.effort is not None
    mixed = np.column_stack([clean.effort[:, :2], samples.effort[:, 2]])
    estimate = ESTIMATORS['irls'].fit(Experiment.of(model, [with_effort(samples, mixed)]))
    assert len(estimate.warnings) == 1
    assert estimate.warnings[0].startswith(f'joint {model.robot.joints[2]}: 2')
    assert 'less than half weight' in estimate.warnings[0]


@pytest.mark.parametrize('seeds', [8, pytest.param(25, marks=pytest.mark.soak)])
@pytest.mark.parametrize('robust', NORMS)
def test_intervals_hold_with_heavy_tails(model: TorqueModel, robust: str, seeds: int) -> None:
    true = truth_of(model)
    samples = lively(model, 1200)
    assert samples.effort is not None
    inside, better = [], []
    for seed in range(seeds):
        noise = 0.02 * np.abs(samples.effort).max(axis=0) * np.random.default_rng(
            seed).standard_t(2.0, samples.effort.shape)
        experiment = Experiment.of(model, [with_effort(samples, samples.effort + noise)])
        fit = RobustLeastSquares(robust).fit(experiment)
        low, high = fit.interval()
        inside.append((low < true) & (true < high))
        better.append(np.abs(fit.values - true) - np.abs(
            ESTIMATORS['wls'].fit(experiment).values - true))
    assert 0.92 < np.mean(inside) < 0.98
    assert np.all(np.mean(better, axis=0) < 0.0)


def test_weights_near_reversals_stay(model: TorqueModel) -> None:
    samples = lively(model, noise=0.01)
    slow = np.array([0.3, 1.0, 0.5])
    experiment = Experiment.of(model, [samples], slow)
    weights = row_weights(model.robot, samples, slow)
    assert weights is not None and np.mean(weights < 1.0) > 0.02
    fit = RobustLeastSquares(tolerance=1e-13, rounds=500).fit(experiment)
    design, effort = stacked(model, samples)
    unit = weights.ravel() / np.tile(np.array(fit.details.scale), len(samples))
    theirs = sm.RLM(effort * unit, design * unit[:, None]).fit(
        maxiter=1000, tol=1e-14, conv='coefs', scale_est=lambda *_: 1.0)
    assert fit.values == pytest.approx(theirs.params, rel=SAME_ESTIMATE, abs=SAME_ESTIMATE)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), size=st.floats(1.0, 1e6))
def test_irls_estimate_stays_in_its_interval_with_one_wild_sample(seed: int, size: float) -> None:
    model = torque_model('planar_3r')
    samples = lively(model, 600, noise=0.01)
    assert samples.effort is not None
    wild = samples.effort.copy()
    rng = np.random.default_rng(seed)
    wild[rng.integers(len(wild)), rng.integers(3)] += size * np.abs(wild).max()
    plain, spoilt = (ESTIMATORS['irls'].fit(Experiment.of(model, [with_effort(samples, e)]))
                     for e in (samples.effort, wild))
    assert np.all(np.abs(spoilt.values - plain.values) < 2.0 * plain.std)


def test_a_fit_that_does_not_settle_says_so(model: TorqueModel) -> None:
    experiment = Experiment.of(model, [lively(model, 300, noise=0.01)])
    for rounds, estimator in ((1, RobustLeastSquares(rounds=1, tolerance=0.0)),
                              (100, RobustLeastSquares(tolerance=0.0))):
        estimate = estimator.fit(experiment)
        assert estimate.status is Status.NOT_SETTLED
        assert f'after {rounds} rounds' in estimate.details.sentence(())


def test_weights_that_all_vanish_leave_those_of_before(
    model: TorqueModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(NORMS, 'tukey', (Huber(), Tukey(1e-9)))
    experiment = Experiment.of(model, [spoiled(model, 0.05)])
    estimate = RobustLeastSquares('tukey').fit(experiment)
    assert 'Tukey leave a joint fewer samples than parameters' in estimate.warnings[0]
    assert estimate.values == pytest.approx(ESTIMATORS['irls'].fit(experiment).values)
    assert estimate.status is Status.OK


def test_unknown_weights_are_refused() -> None:
    with pytest.raises(UsageError, match="robust 'cauchy': choose one of huber, tukey"):
        RobustLeastSquares('cauchy')


@pytest.mark.parametrize('most', [10_000, 700])
@pytest.mark.parametrize('norm', [Huber(), Tukey()])
def test_a_round_is_that_of_the_dense_equations(
    model: TorqueModel, norm: Huber | Tukey, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The median may be that of every third sample of all chunks."""
    monkeypatch.setattr(irls, 'MEDIAN_SAMPLES', most)
    samples = spoiled(model, 0.08)
    experiment = Experiment.of(model, [samples])
    values, scale = 1.002 * truth_of(model), np.array([0.31, 0.17, 0.06])
    found = run_round(experiment, norm, (values, scale))
    design, effort = stacked(model, samples)
    residual = (effort - design @ values).reshape(-1, 3)
    weight, slope = norm.weight(residual / scale), norm.slope(residual / scale)
    root = (np.sqrt(weight) / scale).ravel()
    solved = np.linalg.lstsq(design * root[:, None], effort * root, rcond=None)[0]
    assert found.solution.values == pytest.approx(solved, rel=1e-7, abs=1e-8)
    median = np.median(np.abs(residual[::1 if most > 2000 else 3]), axis=0) / 0.6744897501960817
    assert found.median_scale == pytest.approx(median)
    assert found.slope == pytest.approx(slope.mean(axis=0))
    assert found.low == pytest.approx(np.mean(weight < 0.5, axis=0))
    assert found.used == pytest.approx(np.sum(weight > 0.0, axis=0))
    assert found.low[0] > 0.0 and found.scale is scale
    change = root * (design @ (solved - values))
    assert found.moved == pytest.approx(max(
        np.sqrt(np.mean(change**2)), np.max(np.abs(median / scale - 1.0))))
    near = run_round(experiment, norm, (values, median))
    change = near.solution.values - values
    unit = (np.sqrt(norm.weight(residual / median)) / median).ravel()
    assert near.moved == pytest.approx(np.sqrt(np.mean((unit * (design @ change)) ** 2)))


@pytest.mark.parametrize('robust', NORMS)
def test_deviations_count_the_slope_and_the_weights(model: TorqueModel, robust: str) -> None:
    experiment = Experiment.of(model, [spoiled(model, 0.05)])
    estimate = RobustLeastSquares(robust, tolerance=1e-12, rounds=1000).fit(experiment)
    last = run_round(experiment, NORMS[robust][-1], (estimate.values, estimate.details.scale))
    bread = np.sqrt(last.slope) / last.scale
    solution = solve(experiment.information, bread)
    solution = type(solution)(estimate.values, solution.root, solution.design, solution.rank, ())
    scores = [batch_scores(one, bread, solution, (other, np.ones(3))) for one, other in (
        (experiment.information, last.information),
        (experiment.information.distinct, last.information.distinct))]
    covariance, degrees = scatter_covariance(
        experiment.information, scores[0], friction_scales(model, estimate.values), scores[1])
    np.testing.assert_allclose(estimate.covariance, covariance, rtol=1e-5,
                               atol=1e-8 * np.abs(covariance).max())
    assert estimate.degrees_of_freedom == degrees
    assert list(estimate.details.down_weighted.values()) == pytest.approx(last.low.tolist())


@pytest.mark.parametrize('robust', NORMS)
def test_a_robust_fit_settles_within_as_many_rounds_as_it_needs(
    model: TorqueModel, robust: str
) -> None:
    experiment = Experiment.of(model, [spoiled(model, 0.05)])
    first = RobustLeastSquares('huber').fit(experiment).details.rounds
    needed = RobustLeastSquares(robust).fit(experiment).details.rounds
    limit = first if robust == 'huber' else max(first, needed - first)
    assert RobustLeastSquares(robust, rounds=limit).fit(experiment).status is Status.OK
    if limit > first or robust == 'huber':
        short = RobustLeastSquares(robust, rounds=limit - 1).fit(experiment)
        assert short.status is Status.NOT_SETTLED and short.details.rounds == needed - 1


@pytest.mark.parametrize(('share', 'warned'), [(0.092, False), (0.104, True)])
def test_a_tenth_of_samples_with_less_than_half_weight_is_warned_of(
    model: TorqueModel, share: float, warned: bool
) -> None:
    samples = lively(model, 1000, noise=0.01)
    assert samples.effort is not None
    effort = samples.effort.copy()
    effort[:round(1000 * share), 1] += 20.0 * np.abs(effort).max()
    estimate = ESTIMATORS['irls'].fit(Experiment.of(model, [with_effort(samples, effort)]))
    name = model.robot.row_names[1]
    low = estimate.details.down_weighted[name]
    assert 0.088 < low < 0.115 and (low > 0.1) == warned
    assert estimate.warnings == ((
        f'joint {name}: {low:.0%} of its samples have less than half weight, because they are '
        'far from the model',) if warned else ())


def test_robust_weights_are_told_in_a_sentence() -> None:
    details = RobustDetails('tukey', 17, np.ones(2), {'a': 0.0312, 'b': 0.25})
    assert details.sentence(('a', 'b')) == (
        'Tukey weights, converged after 17 rounds; samples with less than half weight: '
        'a 3.1 %, b 25.0 %')
