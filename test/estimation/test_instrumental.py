"""Instrumental variables: the dense formula, bias and coverage over seeds, the test of both."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from coverages import (
    CHANCE,
    correlation_of,
    coverage_scatter,
    expected_coverage,
    largest_by_chance,
)
from motions import (
    NOISY_RATE,
    WIDE,
    lively,
    noisy,
    noisy_log,
    parameter_errors,
    stacked,
    torque_model,
    truth_of,
)
from scipy.stats import binom
from statsmodels.sandbox.regression.gmm import IV2SLS
from tolerances import SAME_ESTIMATE

from robot_dynid.errors import UsageError
from robot_dynid.estimation import ESTIMATORS, Estimate, InstrumentalVariables
from robot_dynid.estimation.errors_in_variables.instrumental import Fit, reduce_with_instruments
from robot_dynid.estimation.errors_in_variables.instruments import (
    instrument_samples,
    motion_cutoff,
)
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.io.csv import read_csv, write_csv
from robot_dynid.signals.filters import zero_phase_low_pass
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.types import Samples

#: pairs of opposite noises whose mean tells what is expected of the regressor
PAIRS = 4
#: every so many samples stand for all: coverage depends on the shares of the batches alone
THINNED = 10
#: position noise [rad] at which filtered least squares is far off, though an encoder's is less
NOISE = 3e-4


@pytest.fixture(scope='module')
def model() -> TorqueModel:
    return torque_model('planar_3r')


@pytest.fixture(scope='module', params=[10, pytest.param(30, marks=pytest.mark.soak)])
def fits(model: TorqueModel, request: pytest.FixtureRequest) -> dict[str, list[Estimate]]:
    """Return wls, iv and iv with references, of the same seeds."""
    found: dict[str, list[Estimate]] = {'wls': [], 'iv': [], 'reference': []}
    for seed in range(request.param):
        experiment = noisy(model, seed, NOISE)
        found['wls'].append(ESTIMATORS['wls'].fit(experiment))
        found['iv'].append(ESTIMATORS['iv'].fit(experiment))
        found['reference'].append(ESTIMATORS['iv'].fit(noisy(model, seed, NOISE, lag=0.008)))
    return found


def bias(model: TorqueModel, found: list[Estimate]) -> np.ndarray:
    """Return the mean error (b,) over the seeds, in standard deviations of a single fit."""
    off = np.mean([parameter_errors(model, fit.values) for fit in found], axis=0)
    return np.asarray(off / np.sqrt(np.mean([fit.std**2 for fit in found], axis=0)))


def coverage(model: TorqueModel, found: list[Estimate]) -> float:
    """Return the share of 95 % intervals that hold the truth."""
    true = truth_of(model)
    return float(np.mean([(low < true) & (true < high)
                          for low, high in (fit.interval() for fit in found)]))


def test_instrumental_variables_equal_two_stage_least_squares(model: TorqueModel) -> None:
    experiment = noisy(model, 0, 0.3 * NOISE, seconds=6.0)
    (samples,) = experiment.recordings
    weights = np.array([1.0, 2.0, 5.0])
    fit = Fit.of(reduce_with_instruments(experiment, 1.5)[0], weights)
    unit = np.tile(weights, len(samples))
    design, effort = stacked(model, samples)
    instruments, _ = stacked(model, instrument_samples(samples, 1.5))
    theirs = IV2SLS(effort * unit, design * unit[:, None], instruments * unit[:, None]).fit()
    assert fit.values == pytest.approx(theirs.params, rel=SAME_ESTIMATE, abs=SAME_ESTIMATE)
    assert np.all(fit.strong)


def test_batches_changed_what_refits_without_them_say(model: TorqueModel) -> None:
    experiment = noisy(model, 0, NOISE, seconds=12.0)
    doubled, _ = reduce_with_instruments(experiment, 1.5)
    weights = np.ones(3)
    fit = Fit.of(doubled, weights)
    changes = fit.changes()
    for left_out in (0, 7):
        rest = [i for i in range(len(doubled.batches)) if i != left_out]
        again = Fit.of(doubled.subset(rest), weights)
        assert fit.values - again.values == pytest.approx(changes[left_out], rel=1e-6, abs=1e-9)


def test_least_squares_is_biased_and_instruments_are_not(
    model: TorqueModel, fits: dict[str, list[Estimate]]
) -> None:
    worst = {method: np.abs(bias(model, found)).max() for method, found in fits.items()}
    assert worst['wls'] > 20.0
    links = [i for i, name in enumerate(fits['iv'][0].names) if name[:2] not in ('fv', 'fc')]
    for method in ('iv', 'reference'):
        found = fits[method]
        expected = expected_bias(model) / np.sqrt(np.mean([fit.std**2 for fit in found], axis=0))
        chance = largest_by_chance(correlation_of(found[0].covariance)) / np.sqrt(len(found))
        assert np.abs(bias(model, found) - expected).max() < chance
        # what is left is in friction: a ramp of noisy speed is no linear function of the noise
        assert np.abs(expected[links]).max() < worst['wls'] / 100.0
        assert np.abs(expected).max() > 0.1


def expected_bias(model: TorqueModel) -> np.ndarray:
    """Return the bias (b,) of instruments Z without noise: (Z^T E[A])^-1 Z^T (A0 - E[A]) beta.

    A0 is the regressor of the motion, A that of noisy positions. Noises of opposite sign go in
    pairs, so that what is linear in them cancels.
    """
    (clean,) = noisy(model, 0, 0.0).recordings
    exact, _ = stacked(model, clean)
    instruments, _ = stacked(model, instrument_samples(clean, motion_cutoff([clean])))
    mean, rest = np.zeros_like(exact), np.zeros(model.robot.n)
    for seed in range(PAIRS):
        for sign in (1.0, -1.0):
            (samples,) = noisy(model, 1000 + seed, sign * NOISE).recordings
            design, effort = stacked(model, samples)
            mean += 0.5 * design / PAIRS
            rest += (effort - design @ truth_of(model)).reshape(-1, model.robot.n).std(axis=0)
    squared = np.tile(rest**-2, len(clean))[:, None]
    return np.asarray(np.linalg.solve(instruments.T @ (squared * mean), instruments.T @ (
        squared * (exact - mean)) @ truth_of(model)))


def test_intervals_hold_the_truth(model: TorqueModel, fits: dict[str, list[Estimate]]) -> None:
    assert coverage(model, fits['wls']) < 0.75
    experiment = noisy(model, 0, NOISE)
    (samples,) = experiment.recordings
    n = model.robot.n
    design, effort = stacked(model, samples)
    rest = (effort - design @ truth_of(model)).reshape(-1, n).std(axis=0)
    thin = (design.reshape(-1, n, design.shape[1]) / rest[:, None])[::THINNED]
    ends = n * (np.cumsum([0, *(b.samples for b in experiment.information.batches)]) // THINNED)
    share = expected_coverage(thin.reshape(-1, design.shape[1]),
                              [slice(a, b) for a, b in pairwise([*ends[:-1], n * len(thin)])],
                              np.eye(n))
    for method in ('iv', 'reference'):
        scatter = coverage_scatter(correlation_of(fits[method][0].covariance), len(fits[method]))
        assert abs(coverage(model, fits[method]) - share) < CHANCE * scatter


def test_the_bias_of_least_squares_is_found_and_told(fits: dict[str, list[Estimate]]) -> None:
    for fit in fits['iv']:
        test = fit.details.durbin_wu_hausman
        assert test.least_squares_biased and test.p_value < 1e-6
        assert fit.warnings[-1].startswith('least squares is biased, most clearly in ')
        assert 'Izz1 -' in fit.warnings[-1]
    told = {row.name: row.bias for row in fits['iv'][0].details.bias_of_least_squares}
    true = truth_of(torque_model('planar_3r'))
    for name in ('Izz1', 'mx1', 'Ia3'):  # these least squares has wrong by 20 to 60 %
        i = fits['wls'][0].names.index(name)
        assert told[name] == pytest.approx(fits['wls'][0].values[i] - true[i], rel=0.3)


@pytest.mark.parametrize('seeds', [12, pytest.param(40, marks=pytest.mark.soak)])
def test_without_noise_of_the_encoders_the_test_rejects_rarely(
    model: TorqueModel, seeds: int
) -> None:
    rejected = [ESTIMATORS['iv'].fit(noisy(
        model, seed, 0.0, 20.0)).details.durbin_wu_hausman.least_squares_biased
                for seed in range(seeds)]
    assert sum(rejected) <= binom.isf(1.0 / 300.0, seeds, 0.05)


def test_the_reference_is_used_where_it_was_recorded(model: TorqueModel) -> None:
    fit = ESTIMATORS['iv'].fit(noisy(model, 0, NOISE, seconds=10.0, lag=0.008))
    assert fit.details.instruments == 'the recorded reference'
    other = ESTIMATORS['iv'].fit(noisy(model, 0, NOISE, seconds=10.0))
    assert other.details.instruments.startswith('the motion below 1.')


def test_noisy_friction_is_not_its_own_instrument_where_the_motion_shows_it(
    model: TorqueModel
) -> None:
    experiment = noisy(model, 0, NOISE, seconds=6.0)
    along_motion = ESTIMATORS['iv'].fit(experiment)
    chosen = InstrumentalVariables(motors=lambda clean: clean).fit(experiment)
    np.testing.assert_array_equal(chosen.values, along_motion.values)


def test_the_reference_survives_files_and_repair(model: TorqueModel, tmp_path) -> None:
    log = noisy_log(model, 0, NOISE, 4.0, lag=0.01)
    write_csv(tmp_path / 'log.csv', log)
    again = read_csv(tmp_path / 'log.csv', model.robot.joints)
    assert np.array_equal(again.reference_position, log.reference_position)


def test_motions_of_drives_are_found_from_their_reference(model: TorqueModel) -> None:
    """A drive that lags and overshoots linearly is followed through the noise of its encoder."""
    (samples,) = noisy(model, 0, NOISE, lag=0.02).recordings
    (clean,) = noisy(model, 0, 0.0).recordings
    found = instrument_samples(samples, 1.0)
    for name, least in (('position', 1e-4), ('velocity', 1e-3), ('acceleration', 2e-2)):
        error = getattr(found, name) - getattr(clean, name)
        assert np.sqrt(np.mean(error[100:-100] ** 2)) < least


def test_the_cutoff_follows_the_motion_and_not_the_noise(model: TorqueModel) -> None:
    found = [motion_cutoff(noisy(model, 0, noise).recordings) for noise in (0.0, NOISE)]
    assert found[0] == pytest.approx(found[1])
    assert 1.0 < found[0] < 2.0  # the fastest of its sines is at 0.64 Hz


def test_weak_instruments_leave_their_directions_to_least_squares(model: TorqueModel) -> None:
    """A joint that only trembles gives the noise of its encoder no motion to go with."""
    log = noisy_log(model, 0, NOISE, 20.0)
    position = log.position.copy()
    position[:, 2] -= lively(model, len(position), step=1.0 / NOISY_RATE).position[:, 2]
    still = replace(log, position=position)
    samples = prepare(model.robot, repair(model.robot, still), Preprocessing(WIDE))
    fit = ESTIMATORS['iv'].fit(Experiment.of(model, [samples]))
    assert fit.details.first_stage_f < 10.0
    assert 'are weak in' in fit.warnings[0] and 'reference_position' in fit.warnings[0]
    assert fit.details.left_to_least_squares
    assert np.all(np.isfinite(fit.values))


def test_instruments_that_show_nothing_give_least_squares(model: TorqueModel) -> None:
    """A reference that has nothing to do with the motion leaves nothing to be an instrument."""
    samples = lively(model, 2000, noise=0.01)
    foreign = np.random.default_rng(1).normal(size=samples.position.shape)
    foreign = zero_phase_low_pass(foreign, 1.0, 0.01)
    fit = ESTIMATORS['iv'].fit(Experiment.of(model, [replace(
        samples, reference_position=foreign)]))
    wls = ESTIMATORS['wls'].fit(Experiment.of(model, [samples]))
    assert 'are weak in' in fit.warnings[0]
    low, high = fit.interval(0.999)
    assert np.mean((low < wls.values) & (wls.values < high)) > 0.9


def test_instruments_as_noisy_as_the_motion_are_told(model: TorqueModel) -> None:
    fit = InstrumentalVariables(instrument_cutoff=45.0).fit(noisy(model, 0, NOISE, seconds=10.0))
    assert 'the result is close to least squares' in fit.warnings[0]


def test_impossible_cutoffs_are_refused() -> None:
    with pytest.raises(UsageError, match='instrument_cutoff must be positive'):
        InstrumentalVariables(instrument_cutoff=-1.0)
    assert replace(InstrumentalVariables(), instrument_cutoff=3.0).name == 'iv'


def test_the_instrument_of_a_single_row_is_that_row_at_constant_velocity() -> None:
    time = np.append(0.01 * np.arange(100), 5.0)
    motion = np.sin(np.outer(time, [1.0, 2.0]))
    samples = Samples(('a', 'b'), time, motion, 3.0 * motion, 9.0 * motion, starts=(0, 100))
    clean = instrument_samples(samples, 20.0)
    np.testing.assert_allclose(clean.position[-1], motion[-1], rtol=1e-12)
    np.testing.assert_allclose(clean.velocity[-1], 3.0 * motion[-1], rtol=1e-12)
    np.testing.assert_array_equal(clean.acceleration[-1], 0.0)
    np.testing.assert_allclose(clean.position[:100], motion[:100], rtol=0.0, atol=1e-3)
