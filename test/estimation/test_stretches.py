"""Intervals hold what is alike for seconds, and what differs between recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from motions import repeated_motion, torque_model, truth_of, with_effort
from scipy import stats
from scipy.signal import lfilter
from tolerances import COVERAGE, COVERAGE_OF_DRIFT, SAME_FORMULA, WIDTH_FOR_WHITE

from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Accumulator, Information
from robot_dynid.estimation.irls import RobustLeastSquares
from robot_dynid.estimation.joint_covariance import GeneralisedLeastSquares
from robot_dynid.estimation.least_squares import (
    LeastSquares,
    batch_covariance,
    batch_scores,
    solve,
)
from robot_dynid.estimation.uncertainty.between_recordings import (
    SCATTER_STRETCHES,
    recordings,
    scatter_covariance,
    stretches,
)

DT, COUNT = 0.05, 10
NAMES = tuple(f'p{i}' for i in range(COUNT))


def sines(rng, time):
    """Return regressor columns (COUNT, N) as slow as those of an arm; the last is an offset."""
    columns = sum(np.sin(np.outer(rng.uniform(0.5, 4.0, COUNT), time)
                         + rng.uniform(0.0, 6.0, (COUNT, 1))) for _ in range(5))
    columns[-1] = 1.0
    return columns


def coloured(rng, count, memory):
    """Return noise (count,) of deviation one that is alike for ``memory`` [s]."""
    keep = np.exp(-DT / memory) if memory else 0.0
    white = rng.normal(size=count + 400)
    return lfilter([np.sqrt(1.0 - keep**2)], [1.0, -keep], white)[400:]


def recorded(rng, seconds, memory=0.0, drift=0.0, number=1):
    """Return the information of recordings; parameters are one, give or take the drift."""
    accumulator = Accumulator(NAMES, np.ones((1, COUNT), dtype=bool), round(1.0 / DT))
    for _ in range(number):
        accumulator.begin()
        columns = sines(rng, np.arange(0.0, seconds, DT))
        parameters = 1.0 + drift * rng.normal(size=COUNT)
        effort = parameters @ columns + 0.5 * coloured(rng, columns.shape[1], memory)
        accumulator.add(columns[None], effort[:, None], effort[:, None])
    return accumulator.information()


def held(information: Information):
    """Return which intervals hold the truth, half of their widths, and the errors (COUNT,)."""
    solution = solve(information, np.ones(1))
    covariance, freedom = batch_covariance(information, np.ones(1), solution)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(np.diag(covariance))
    error = solution.values - 1.0
    return np.abs(error) < half, half, error


def trials(count=60, **settings):
    """Return coverage, and the widths over those of a deviation known for certain."""
    rng = np.random.default_rng(1)
    hits, halves, errors = zip(*(held(recorded(rng, **settings)) for _ in range(count)))
    known = stats.norm.ppf(0.975) * np.sqrt(np.mean(np.square(errors)))
    return np.mean(hits), np.mean(halves) / known


@pytest.mark.parametrize('memory', [1.0, 3.0])
def test_intervals_hold_with_residuals_alike_for_seconds(memory):
    coverage, _ = trials(seconds=60.0, memory=memory)
    assert COVERAGE[0] + 0.03 < coverage < COVERAGE[1]


@pytest.mark.parametrize('number', [2, 4])
def test_intervals_hold_when_parameters_drift_between_recordings(number):
    coverage, _ = trials(seconds=40.0, memory=1.0, drift=0.05, number=number)
    assert coverage > COVERAGE_OF_DRIFT[number]


@pytest.mark.parametrize('number', [1, 2, 4])
def test_intervals_of_white_residuals_stay_narrow(number):
    coverage, width = trials(seconds=120.0 / number, number=number)
    assert coverage > COVERAGE[0] + 0.03
    assert width < WIDTH_FOR_WHITE


def test_the_scatter_is_that_of_the_stretches():
    information = recorded(np.random.default_rng(0), 80.0)
    solution = solve(information, np.ones(1))
    covariance, freedom = batch_covariance(information, np.ones(1), solution)
    groups = stretches(len(information.batches))
    assert len(groups) == SCATTER_STRETCHES == freedom + 1
    changes, growth = batch_scores(information, np.ones(1), solution).changes(groups)
    centred = changes - changes.mean(axis=0)
    assert np.diag(covariance) == pytest.approx(
        (1.0 - 1.0 / SCATTER_STRETCHES) * np.sum(centred**2, axis=0), rel=SAME_FORMULA)
    assert np.all(growth > 1.0) and np.all(growth < 2.0)


def decided_by_one_stretch() -> Information:
    """Return information of which one stretch alone shows the first parameter."""
    rng = np.random.default_rng(0)
    seen = Accumulator(NAMES, np.ones((1, COUNT), dtype=bool), round(1.0 / DT))
    for i in range(80):
        columns = sines(rng, DT * np.arange(20.0))
        columns[0] *= 20 <= i < 30
        effort = columns.sum(axis=0) + 0.5 * rng.normal(size=20)
        seen.add(columns[None], effort[:, None], effort[:, None])
    return seen.information()


@pytest.mark.parametrize('information', [
    recorded(np.random.default_rng(0), 80.0),
    recorded(np.random.default_rng(0), 20.0, drift=0.2, number=4), decided_by_one_stretch()])
def test_the_variance_of_one_parameter_is_that_of_all(information):
    solution = solve(information, np.ones(1))
    scores = batch_scores(information, np.ones(1), solution)
    whole, _ = scatter_covariance(information, scores)
    for k in range(COUNT):
        alone = replace(scores, root=scores.root[k:k + 1])
        assert scatter_covariance(information, alone)[0] == pytest.approx(
            whole[k, k], rel=SAME_FORMULA)


def test_a_parameter_that_one_stretch_decides_keeps_its_deviation():
    _, half, error = held(decided_by_one_stretch())
    assert abs(error[0]) < half[0] < 10.0 * np.median(half)


def test_batches_know_their_recording():
    information = recorded(np.random.default_rng(0), 10.0, number=3)
    assert [len(r) for r in recordings(information)] == [10, 10, 10]
    both = information.merge(information)
    assert [len(r) for r in recordings(both)] == 6 * [10]
    assert [len(r) for r in recordings(information.subset([0, 1, 15]))] == [2, 1]


@pytest.mark.parametrize('estimator', [
    LeastSquares(), GeneralisedLeastSquares(), RobustLeastSquares()])
def test_deviations_include_errors_that_repeat_in_every_period(estimator):
    """What a model lacks repeats with the motion: leaving out stretches of time does not show it.

    Against fits to the periods of other motions, whose scatter is what the deviation is to be.
    """
    model, values, stated, by_time = torque_model('planar_3r'), [], [], []
    for seed in range(8):
        samples = repeated_motion(seed, 8.0, 4)
        lacks = 2.0 * np.sin(2.0 * samples.position + np.arange(3.0))
        effort = model.effort(samples, truth_of(model)) + lacks
        experiment = Experiment.of(model, [with_effort(samples, effort)])
        estimate = estimator.fit(experiment)
        values.append(estimate.values)
        stated.append(estimate.std)
        without = replace(experiment, information=replace(experiment.information, by_motion=None))
        by_time.append(estimator.fit(without).std)
    spread = np.std(values, axis=0)
    shown = np.isfinite(np.array(stated)).all(axis=0) & np.isfinite(np.array(by_time)).all(axis=0)
    assert shown.sum() > 5
    of_motion, of_time = (np.median(np.array(one), axis=0)[shown] / spread[shown]
                          for one in (stated, by_time))
    assert 0.5 < np.median(of_motion) < 2.0
    assert np.median(of_time) < 0.7 * np.median(of_motion)
