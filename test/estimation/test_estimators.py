"""The contract of every estimator: truth without noise, honesty with little data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import lively, torque_model, truth_of
from tolerances import RECOVERED

from robot_dynid.errors import DataError
from robot_dynid.estimation import ESTIMATORS, Estimate, Status
from robot_dynid.estimation.experiment import Experiment, batch_samples

#: those that take any motion; the staged one wants one joint at a time, see test_staged
#: those that are fitted to samples which passed a filter
GENERAL = [name for name, one in ESTIMATORS.items()
           if name != 'staged' and not one.estimates_motion]


@pytest.mark.parametrize(('method', 'name'), [
    pytest.param(method, name, marks=pytest.mark.soak if name == 'stanford_arm' and
                 method == 'trajectory' else ())
    for method in GENERAL for name in ('planar_3r', 'stanford_arm', 'tx40')])
def test_truth_is_found_without_noise(method, name):
    model = torque_model(name)
    experiment = Experiment.of(model, [lively(model, 1500)])
    estimate = ESTIMATORS[method].fit(experiment)
    assert isinstance(estimate, Estimate)
    true = truth_of(model)
    assert estimate.values == pytest.approx(true, rel=RECOVERED, abs=RECOVERED)
    assert estimate.status is Status.OK
    assert estimate.method == ESTIMATORS[method].name == method
    assert estimate.names == model.reduction.names
    assert estimate.rank == len(true)
    assert estimate.condition <= estimate.condition_raw
    assert np.all(estimate.noise < 1e-6)


@pytest.mark.parametrize('method', GENERAL)
def test_covariance_is_symmetric_and_positive(method):
    model = torque_model('planar_3r')
    estimate = ESTIMATORS[method].fit(Experiment.of(model, [lively(model, 1500, noise=0.02)]))
    assert estimate.covariance == pytest.approx(estimate.covariance.T)
    assert np.linalg.eigvalsh(estimate.covariance).min() > -1e-12
    assert np.all(estimate.std > 0.0)
    assert estimate.std == pytest.approx(np.sqrt(np.diag(estimate.covariance)))
    assert estimate.relative_std == pytest.approx(estimate.std / np.abs(estimate.values))
    low, high = estimate.interval()
    wide_low, wide_high = estimate.interval(0.99)
    assert np.all((wide_low < low) & (low < estimate.values) & (high < wide_high))
    assert np.mean((low < truth_of(model)) & (truth_of(model) < high)) > 0.8


@pytest.mark.parametrize('method', GENERAL)
def test_noise_of_every_joint_is_reported(method):
    model = torque_model('planar_3r')
    samples = lively(model, 1500, noise=0.01)
    clean = model.effort(samples, truth_of(model))
    estimate = ESTIMATORS[method].fit(Experiment.of(model, [samples]))
    assert estimate.noise == pytest.approx(0.01 * np.abs(clean).max(axis=0), rel=0.05)


@pytest.mark.parametrize('method', GENERAL)
def test_resting_joints_leave_named_parameters_open(method):
    model = torque_model('planar_3r')
    samples = lively(model, 500, noise=0.01, moving=(1,))
    estimate = ESTIMATORS[method].fit(Experiment.of(model, [samples]))
    assert estimate.status is Status.NOT_EXCITED
    assert {'fv1', 'fc1', 'fv3', 'fc3', 'Izz1'} <= set(estimate.not_excited)
    assert 'fv2' not in estimate.not_excited
    for name in estimate.not_excited:
        assert np.isinf(estimate.std[estimate.names.index(name)])
    # what the motion does show is still predicted
    assert model.effort(samples, estimate.values) == pytest.approx(
        model.effort(samples, truth_of(model)), abs=0.2)


@pytest.mark.parametrize('method', GENERAL)
def test_fit_does_not_depend_on_how_the_data_is_cut(method):
    model = torque_model('planar_3r')
    samples = lively(model, 900, noise=0.01)
    parts = [samples.part(slice(0, 330)), samples.part(slice(330, 900))]
    one, two = (ESTIMATORS[method].fit(Experiment.of(model, p)) for p in ([samples], parts))
    if method == 'iv':  # smooths every part by itself, which has ends
        assert np.all(np.abs(two.values - one.values) < 0.2 * one.std)
    else:
        assert two.values == pytest.approx(one.values, rel=1e-6, abs=1e-8)


def test_weights_keep_a_noisy_joint_from_spoiling_the_others():
    model = torque_model('planar_3r')
    samples = lively(model)
    noise = np.zeros((len(samples), 3))
    noise[:, 0] = 50.0 * np.random.default_rng(3).normal(size=len(samples))
    noise[:, 1:] = 0.01 * np.random.default_rng(4).normal(size=(len(samples), 2))
    spoiled = replace(samples, effort=samples.effort + noise, measured=samples.effort + noise)
    experiment = Experiment.of(model, [spoiled])
    own = [i for i, n in enumerate(model.reduction.names) if n[-1] in '23']
    error = {m: np.abs(ESTIMATORS[m].fit(experiment).values - truth_of(model))[own].max()
             for m in ('ols', 'wls')}
    assert error['wls'] < 0.05 * error['ols']


def test_too_few_samples_are_refused():
    model = torque_model('tx40')
    with pytest.raises(DataError, match=r'20 usable samples are too few for \d+ base parameters'):
        Experiment.of(model, [lively(model, count=20)])
    with pytest.raises(DataError, match='0 usable samples'):
        Experiment.of(model, [])


def test_states_without_effort_are_refused():
    model = torque_model('planar_3r')
    with pytest.raises(DataError, match='no measured effort'):
        Experiment.of(model, [replace(lively(model), effort=None)])


def test_batches_are_a_second_long_or_at_least_two_dozen():
    model = torque_model('planar_3r')
    assert batch_samples(lively(model, 6000)) == 100
    assert batch_samples(lively(model, 1200)) == 50
    assert batch_samples(lively(model, 10)) == 1


def test_batches_respect_neither_lose_nor_mix_segments():
    model = torque_model('planar_3r')
    samples = replace(lively(model, 900), starts=(0, 333, 334, 700))
    experiment = Experiment.of(model, [samples])
    assert experiment.information.samples == 900
    estimate = ESTIMATORS['ols'].fit(experiment)
    assert estimate.values == pytest.approx(truth_of(model), rel=RECOVERED, abs=RECOVERED)
