"""Recursive least squares whose data fades: against the batch, what stays, the pace, its null."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tolerances import LEAST_SQUARES

from robot_dynid.types import FloatArray
from robot_dynid_extras.health.fading_information import Followed

COUNT, FORGETTING = 5, 0.05


def batches(
    seed: int, number: int, truth: FloatArray, silent: tuple[int, ...] = (),
) -> Iterator[FloatArray]:
    """Yield equations of unit noise; unknowns that are ``silent`` do not enter."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        rows = rng.normal(size=(12, len(truth))) @ np.diag(np.geomspace(1.0, 0.1, len(truth)))
        rows[:, list(silent)] = 0.0
        yield np.column_stack([rows, rows @ truth + rng.normal(size=12)])


def followed(data: Iterator[FloatArray], forgetting: float,
             state: Followed | None = None) -> Followed:
    state = state or Followed.before(np.eye(COUNT), 1)
    for equations in data:
        state = state.updated([equations], np.array([1.0 - forgetting]))
    return state


def test_fading_information_without_forgetting_is_the_batch_estimate() -> None:
    truth = np.arange(1.0, COUNT + 1.0)
    state = followed(batches(0, 30, truth), 0.0)
    data = np.concatenate(list(batches(0, 30, truth)))
    rows, values = data[:, :-1], data[:, -1]
    normal = np.eye(COUNT) + rows.T @ rows  # the prior and all rows at once
    assert np.allclose(state.values, np.linalg.solve(normal, rows.T @ values),
                       rtol=LEAST_SQUARES, atol=0.0)
    assert np.allclose(state.covariance, np.linalg.inv(normal), rtol=LEAST_SQUARES, atol=1e-12)
    # of data that is all of one truth nothing is lost: the null is prior less posterior
    assert np.allclose(state.unchanged, np.eye(COUNT) - state.covariance, atol=LEAST_SQUARES)


def test_data_counts_the_less_the_older_it_is() -> None:
    """Weights, noise and null by the definition, joint by joint."""
    kept = np.array([[0.9, 0.5], [0.8, 1.0], [0.7, 0.6]])
    data = [list(batches(k, 3, np.ones(COUNT))) for k in (0, 1)]
    state = Followed.before(2.0 * np.eye(COUNT), 2)
    for t in range(3):
        state = state.updated([data[0][t], data[1][t]], kept[t])
    weights = [[kept[t + 1:, k].prod() for t in range(3)] for k in (0, 1)]
    normal, right, noise = 0.25 * np.eye(COUNT), np.zeros(COUNT), np.zeros((COUNT, COUNT))
    for k in (0, 1):
        for weight, one in zip(weights[k], data[k], strict=True):
            square = one[:, :-1].T @ one[:, :-1]
            normal += weight * square
            noise += weight**2 * square
            right += weight * one[:, :-1].T @ one[:, -1]
    assert np.allclose(state.values, np.linalg.solve(normal, right), rtol=LEAST_SQUARES)
    inverse = np.linalg.inv(normal)
    assert np.allclose(state.scatter, inverse @ noise @ inverse, rtol=LEAST_SQUARES)
    share = np.eye(COUNT) - 0.25 * inverse
    assert np.allclose(state.unchanged, 4.0 * share @ share.T + state.scatter, rtol=LEAST_SQUARES)


def test_a_joint_that_rests_keeps_what_is_known_by_it() -> None:
    state = Followed.before(np.eye(COUNT), 2)
    none = np.zeros((1, COUNT + 1))
    for one in batches(1, 20, np.ones(COUNT), silent=(1, 3)):
        state = state.updated([one, none], np.array([0.9, 1.0]))
    before = state
    for one in batches(2, 100, np.zeros(COUNT), silent=(0, 2, 4)):
        state = state.updated([none, one], np.array([1.0, 0.9]))
    own = [0, 2, 4]
    assert np.allclose(state.values[own], before.values[own], rtol=LEAST_SQUARES)
    assert np.allclose(state.covariance[own], before.covariance[own], rtol=LEAST_SQUARES,
                       atol=1e-14)


def test_followed_values_return_to_the_prior_when_no_longer_excited() -> None:
    state = followed(batches(3, 50, np.full(COUNT, 3.0)), FORGETTING)
    assert state.values[1] > 2.0
    state = followed(batches(4, 400, np.full(COUNT, 3.0), silent=(1,)), FORGETTING, state)
    assert np.allclose(state.values[1], 0.0, atol=1e-6)
    assert np.isclose(state.covariance[1, 1], 1.0, rtol=1e-6)


def test_a_prior_of_its_own_is_what_is_known_before() -> None:
    prior = np.triu(np.random.default_rng(10).normal(size=(COUNT, COUNT))) + 3.0 * np.eye(COUNT)
    state = Followed.before(prior, 1)
    assert np.allclose(state.covariance, prior.T @ prior, rtol=LEAST_SQUARES)
    assert np.array_equal(state.values, np.zeros(COUNT))
    assert np.array_equal(state.unchanged, np.zeros((COUNT, COUNT)))


@pytest.mark.parametrize('alike', [True, False])
def test_a_step_is_followed_at_the_pace_of_the_forgetting(alike: bool) -> None:
    """However unlike batches are: here each of ten shows another direction, or all the same."""
    directions = np.random.default_rng(11).normal(size=(10, COUNT))
    state = Followed.before(np.eye(COUNT), 1)
    for number in range(600):
        rows = 3.0 * (directions if alike else directions[number % 10:][:1])
        truth = np.full(COUNT, 3.0 if number >= 400 else 0.0)
        state = state.updated([np.column_stack([rows, rows @ truth])], np.array([0.98]))
        if number == 400 + 49:
            assert np.allclose(state.values / 3.0, 1.0 - 0.98**50, atol=0.15)
    assert np.allclose(state.values / 3.0, 1.0, atol=0.05)


def test_the_null_covariance_is_that_of_estimates_of_what_does_not_change() -> None:
    """Truths from the prior, noise of one: by Monte Carlo, in the directions it has."""
    rng = np.random.default_rng(8)
    found = []
    for seed in range(200):
        state = followed(batches(seed, 8, rng.normal(size=COUNT)), 0.2)
        found.append(state.values)
    rows = [followed(batches(seed, 8, np.zeros(COUNT)), 0.2).unchanged for seed in range(10)]
    expected = np.mean(rows, axis=0)
    ratio = np.var(found, axis=0) / np.diag(expected)
    assert np.all(np.abs(ratio - 1.0) < 4.0 * np.sqrt(2.0 / 200.0))
