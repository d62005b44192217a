"""Recursive least squares with directional forgetting: against the batch, what stays, its null."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tolerances import LEAST_SQUARES

from robot_dynid.estimation.directional_forgetting import Followed
from robot_dynid.types import FloatArray

COUNT, FORGETTING = 5, 0.05


def batches(
    seed: int, number: int, truth: FloatArray, silent: tuple[int, ...] = (),
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield equations of unit noise; unknowns that are ``silent`` do not enter."""
    rng = np.random.default_rng(seed)
    for _ in range(number):
        rows = rng.normal(size=(12, len(truth))) @ np.diag(np.geomspace(1.0, 0.1, len(truth)))
        rows[:, list(silent)] = 0.0
        yield rows, rows @ truth + rng.normal(size=12)


def followed(data: Iterator[tuple[FloatArray, FloatArray]], forgetting: float,
             state: Followed | None = None) -> Followed:
    state = state or Followed.before(np.eye(COUNT))
    for rows, values in data:
        state = state.forgotten(rows, forgetting).updated(rows, values)
    return state


def test_without_forgetting_it_is_the_batch_estimate_of_all_data() -> None:
    truth = np.arange(1.0, COUNT + 1.0)
    state = followed(batches(0, 30, truth), 0.0)
    rows, values = (np.concatenate(part) for part in zip(*batches(0, 30, truth), strict=True))
    normal = np.eye(COUNT) + rows.T @ rows  # the prior and all rows at once
    assert np.allclose(state.values, np.linalg.solve(normal, rows.T @ values),
                       rtol=LEAST_SQUARES, atol=0.0)
    assert np.allclose(state.covariance, np.linalg.inv(normal), rtol=LEAST_SQUARES, atol=1e-12)
    # of data that is all of one truth nothing is lost: the null is prior less posterior
    assert np.allclose(state.unchanged, np.eye(COUNT) - state.covariance, atol=LEAST_SQUARES)


def test_what_is_not_excited_keeps_value_and_uncertainty() -> None:
    truth = np.ones(COUNT)
    before = followed(batches(1, 20, truth), FORGETTING)
    rows = next(batches(2, 1, truth, silent=(1, 3)))[0]
    after = before.forgotten(rows, FORGETTING)
    assert np.allclose(after.values, before.values, rtol=LEAST_SQUARES)
    quiet, loud = [1, 3], [0, 2, 4]
    assert np.allclose(after.covariance[quiet], before.covariance[quiet], rtol=LEAST_SQUARES,
                       atol=1e-14)
    assert np.all(np.diag(after.covariance)[loud] > 1.001 * np.diag(before.covariance)[loud])


def test_unknowns_apart_from_those_excited_never_move() -> None:
    """Batches that say nothing of two unknowns, which nothing ties to the others."""
    state = followed(batches(3, 300, np.ones(COUNT), silent=(1, 3)), FORGETTING)
    assert np.allclose(state.values[[1, 3]], 0.0, atol=LEAST_SQUARES)
    assert np.allclose(state.covariance[np.ix_([1, 3], [1, 3])], np.eye(2), atol=LEAST_SQUARES)


def test_nothing_is_ever_known_worse_than_at_the_beginning() -> None:
    """Weak excitation does not wind up: information gives way only to as much that comes in."""
    rng = np.random.default_rng(4)
    state = Followed.before(np.eye(COUNT))
    for _ in range(500):
        rows = 0.02 * rng.normal(size=(3, COUNT))
        state = state.forgotten(rows, 0.5).updated(rows, rng.normal(size=3))
    assert np.diag(state.covariance).max() < 1.05


def test_a_prior_of_its_own_is_what_is_known_before() -> None:
    prior = np.triu(np.random.default_rng(10).normal(size=(COUNT, COUNT))) + 3.0 * np.eye(COUNT)
    state = Followed.before(prior)
    assert np.allclose(state.covariance, prior.T @ prior, rtol=LEAST_SQUARES)
    assert np.array_equal(state.values, np.zeros(COUNT))


def test_a_step_is_followed_at_the_pace_of_the_forgetting() -> None:
    before, after = np.zeros(COUNT), np.full(COUNT, 3.0)
    state = followed(batches(5, 200, before), FORGETTING)
    assert np.all(np.abs(state.values) < 1.0)
    soon = followed(batches(6, 5, after), FORGETTING, state)
    late = followed(batches(7, 100, after), FORGETTING, state)
    assert 0.1 < soon.values[0] / 3.0 < 0.4  # 1 - 0.95^5 = 0.23
    assert np.all(np.abs(late.values - after) < 4.0 * np.sqrt(np.diag(late.unchanged)))


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


@pytest.mark.parametrize('forgetting', [0.0, 0.3, 0.9])
def test_a_batch_without_content_changes_nothing(forgetting: float) -> None:
    state = followed(batches(9, 5, np.ones(COUNT)), FORGETTING)
    same = state.forgotten(np.zeros((4, COUNT)), forgetting).updated(
        np.zeros((4, COUNT)), np.zeros(4))
    assert np.allclose(same.values, state.values, rtol=LEAST_SQUARES)
    assert np.allclose(same.covariance, state.covariance, rtol=LEAST_SQUARES)
    assert np.allclose(same.unchanged, state.unchanged, rtol=LEAST_SQUARES)
