"""Generalised least squares (`estimation.joint_covariance`) against statsmodels, and what it
gains when joints share noise."""

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
from robot_dynid.estimation.joint_covariance import CorrelationDetails, whiten_equations
from robot_dynid.estimation.least_squares import joint_weights, solve
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


def residual_of(model: TorqueModel, samples: Samples, values: FloatArray) -> FloatArray:
    """Return the residual (N, n)."""
    design, effort = stacked(model, samples)
    return np.asarray((effort - design @ values).reshape(-1, model.robot.n))


def test_rounds_end_when_the_effort_changes_by_less_than_the_tolerance_of_its_noise(
    model: TorqueModel
) -> None:
    samples = shared_noise(model, 200, 0)
    experiment = Experiment.of(model, [samples])
    design, effort = stacked(model, samples)
    values = solve(experiment.information, joint_weights(experiment.information)).values
    degrees = 200 - design.shape[1]
    moved = []
    for _ in range(4):
        residual = residual_of(model, samples, values)
        omega = residual.T @ residual / degrees
        fitted = sm.GLS(effort, design, sigma=np.kron(np.eye(200), omega)).fit().params
        change = (design @ (fitted - values)).reshape(200, 3)
        moved.append(np.sqrt(np.einsum('ti,ij,tj->', change, np.linalg.inv(omega), change)
                             / (3 * degrees)))
        values = fitted
    for count in (2, 3):
        for factor, rounds in ((1.05, count), (0.95, count + 1)):
            method = GeneralisedLeastSquares(tolerance=factor * moved[count - 1])
            assert method.fit(experiment).details.rounds == rounds
            for limit, status in ((rounds, Status.OK), (rounds - 1, Status.NOT_SETTLED)):
                limited = GeneralisedLeastSquares(method.tolerance, limit).fit(experiment)
                assert limited.status is status and limited.details.rounds == rounds


def test_some_parameters_of_some_cells_are_solved_for_with_their_covariance(
    model: TorqueModel
) -> None:
    samples = shared_noise(model, 600, 1)
    experiment = Experiment.of(model, [samples]).by_motion
    cells = np.isin(experiment.information.by_motion.rows, [0, 2, 3, 5])
    count, truth = int(cells.sum()), truth_of(model)
    free = np.arange(len(truth)) % 3 > 0
    found = GeneralisedLeastSquares(tolerance=1e-13, rounds=300).part_solver(
        experiment, [0, 2, 3, 5])(free, 1.01 * truth)
    design, effort = stacked(model, samples)
    rows = np.repeat(cells, 3)
    design, effort = design[rows][:, free], effort[rows] - design[rows][:, ~free] @ (
        1.01 * truth[~free])
    values = sm.OLS(effort, design).fit().params
    for _ in range(100):
        residual = (effort - design @ values).reshape(-1, 3)
        omega = residual.T @ residual / (count - free.sum())
        root = np.linalg.inv(np.linalg.cholesky(omega))
        white = np.einsum('ij,tjb->tib', root, design.reshape(count, 3, -1)).reshape(3 * count, -1)
        values = np.linalg.lstsq(white, (effort.reshape(-1, 3) @ root.T).ravel(), rcond=None)[0]
    assert 0 < count < 600
    assert found[free] == pytest.approx(values, rel=1e-7, abs=1e-9)
    assert found[~free].tolist() == (1.01 * truth[~free]).tolist()


def test_whitened_equations_are_those_of_the_inverse_root_of_the_covariance(
    model: TorqueModel
) -> None:
    samples = shared_noise(model, 150, 2)
    white = whiten_equations(Experiment.of(model, [samples]), OMEGA)
    design, effort = stacked(model, samples)
    root = np.linalg.inv(np.linalg.cholesky(OMEGA))
    for joint in range(3):
        columns = np.einsum('j,tjb->tb', root[joint], design.reshape(150, 3, -1))
        efforts = effort.reshape(150, 3) @ root[joint]
        rows = np.column_stack([columns, np.ones(150), efforts, efforts])
        factor = white.expanded(joint)
        expected = rows.T @ rows
        assert factor.T @ factor == pytest.approx(expected, abs=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize(('least', 'dependent'), [(1.15e-6, False), (0.87e-6, True)])
def test_joints_are_dependent_below_a_least_eigenvalue_of_their_correlation(
    model: TorqueModel, least: float, dependent: bool
) -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(size=(500, 3)) * [0.5, 0.3, 0.1]
    samples = lively(model, 500)
    assert samples.effort is not None

    def fitted(apart: float) -> tuple[tuple[str, ...], FloatArray]:
        joined = np.column_stack([noise[:, 0], 2.0 * noise[:, 0] + apart * noise[:, 1],
                                  noise[:, 2]])
        estimate = ESTIMATORS['gls'].fit(Experiment.of(
            model, [with_effort(samples, samples.effort + joined)]))
        return estimate.warnings, np.linalg.eigvalsh(estimate.details.correlation)

    _, values = fitted(0.01)
    apart = 0.01 * np.sqrt(1.3e-6 / values[0])
    _, values = fitted(apart)
    warnings, values = fitted(apart * np.sqrt(least / values[0]))
    if dependent:
        one, two, _ = model.robot.row_names
        assert warnings == (
            f'the residuals of {one}, {two} are linearly dependent, so their covariance is '
            'singular and every joint is weighted by its noise, as with wls; check whether their '
            'effort signals are copies of each other',)
    else:
        assert warnings == () and values[0] == pytest.approx(least, rel=0.05)


@pytest.mark.parametrize(('share', 'named'), [(0.32, 3), (0.28, 2)])
def test_joints_with_a_share_of_the_dependent_combination_are_named(
    model: TorqueModel, share: float, named: int
) -> None:
    part = np.sqrt(2.0) * share
    noise = np.linalg.qr(np.random.default_rng(4).normal(size=(500, 2)))[0]
    third = noise @ [part, np.sqrt(1.0 - part**2)]
    samples = lively(model, 500)
    assert samples.effort is not None
    joined = np.column_stack([noise[:, 0], -noise[:, 1], 3.0 * third])
    estimate = ESTIMATORS['gls'].fit(Experiment.of(
        model, [with_effort(samples, samples.effort + joined)]))
    names = ', '.join(model.robot.row_names[-named:])
    assert estimate.warnings[0].startswith(f'the residuals of {names} are linearly dependent')


def test_correlations_are_told_in_a_sentence_and_a_table() -> None:
    details = CorrelationDetails(7, np.eye(3), np.array([
        [1.0, 0.25, -0.6], [0.25, 1.0, 0.1], [-0.6, 0.1, 1.0]]))
    begins = 'covariance of the residuals of all joints, converged after 7 rounds; correlations: '
    assert details.sentence(('a', 'b', 'c')) == (
        f'{begins}0.38 root mean square, the largest -0.60 between a and c')
    table, = details.tables(('a', 'b', 'c'))
    assert table.columns == ('residual of', 'a', 'b', 'c')
    assert table.title == 'Correlation of the residuals'
    assert [row.cells for row in table.rows] == [
        ('a', '+1.00', '+0.25', '-0.60'), ('b', '+0.25', '+1.00', '+0.10'),
        ('c', '-0.60', '+0.10', '+1.00')]
    for n in (1, 2):
        alone = CorrelationDetails(7, np.eye(n), np.eye(n))
        assert alone.sentence(('a', 'b')) == f'{begins}0.00 root mean square'
