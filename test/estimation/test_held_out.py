"""estimation/uncertainty/held_out.py: errors of folds against refits, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linear_data import Data
from scipy import stats

from robot_dynid.estimation.information import Accumulator, Information
from robot_dynid.estimation.least_squares import joint_weights
from robot_dynid.estimation.uncertainty.held_out import (
    Consistency,
    HeldOut,
    consistency,
    errors_by_cell,
    explained_share,
    falls,
    folds,
    held_out,
    refusal_sentences,
    refusals,
    surely_lower,
)

ROWS = 100


def refitted(data: Data, information: Information, columns: list[int], length: int = 10):  # type: ignore[no-untyped-def]
    """Return the errors of raw and filtered effort (N, 2) of refits; batches have a `length`."""
    weights, raw, filtered = joint_weights(information), data.raw.copy(), data.effort.copy()
    for fold in folds(information):
        test, train = (np.concatenate([np.arange(length * b, length * (b + 1)) for b in part])
                       for part in (fold.test, fold.fitted))
        tall, effort = data.stacked(weights, train)
        values = np.linalg.lstsq(tall[:, columns], effort, rcond=None)[0]
        known = np.einsum('ikn,k->ni', data.columns[:, columns][:, :, test], values)
        raw[test] -= known
        filtered[test] -= known
    return raw, filtered


@pytest.mark.parametrize('length', [10, 50])  # of batches; two are two folds
def test_shares_and_margins_are_those_of_refits(length: int) -> None:
    data = Data(ROWS)
    information = data.accumulated(length)
    found, parts = held_out(information), folds(information)
    raw, filtered = refitted(data, information, list(range(5)), length)
    assert found.raw == pytest.approx(np.mean(raw**2, axis=0), rel=1e-6)
    assert found.score == pytest.approx(0.5 * np.mean(np.log(found.raw)), rel=1e-12)
    rows = [np.concatenate([np.arange(length * b, length * (b + 1)) for b in fold.test])
            for fold in parts]
    errors = np.array([np.sum(filtered[r]**2, axis=0) for r in rows])
    varied = np.array([np.sum((data.effort - data.effort.mean(axis=0))[r]**2, axis=0)
                       for r in rows])
    ratio, count = errors.sum(axis=0) / varied.sum(axis=0), len(parts)
    scatter = np.std(errors - ratio * varied, axis=0, ddof=1) * np.sqrt(count)
    assert found.share == pytest.approx(1.0 - ratio, rel=1e-6)
    assert found.margin == pytest.approx(
        stats.t.ppf(0.95, count - 1) * scatter / varied.sum(axis=0), rel=1e-6)
    assert found.filtered == pytest.approx(np.mean(filtered**2, axis=0), rel=1e-6)
    assert found.samples.tolist() == [len(r) for r in rows]
    assert found.folds == pytest.approx(np.array([np.mean(raw[r]**2, axis=0) for r in rows]))
    assert found.seconds == np.inf and not found.constant.any()
    every, effort = data.stacked(joint_weights(information))
    values = np.linalg.lstsq(every, effort, rcond=None)[0]
    left = data.raw - np.einsum('ikn,k->ni', data.columns, values)
    assert found.fitted == pytest.approx(np.mean(left**2, axis=0), rel=1e-6)


def test_errors_of_cells_are_those_of_refits_to_the_chosen_parameters() -> None:
    data = Data(ROWS)
    information, chosen = data.accumulated(10), [0, 2, 3]
    raw, _ = refitted(data, information.about(chosen), chosen)
    assert errors_by_cell(information, np.array(chosen)) == pytest.approx(
        np.sum(raw.reshape(10, 10, 2)**2, axis=1), rel=1e-6)


@pytest.mark.parametrize(('mean', 'rest'), [(0.0, 0.0), (1.5, 0.0), (1.5, 1e-11), (1.5, 1e-7)])
def test_an_effort_that_only_rounds_is_constant(mean: float, rest: float) -> None:
    accumulator = Accumulator(('a',), np.ones((1, 1), dtype=bool), 10)
    wave = np.sin(np.arange(ROWS))
    effort = mean + rest * wave[:, None]
    accumulator.add(wave[None, None], effort, effort)
    assert held_out(accumulator.information()).constant.tolist() == [rest < 1e-9]


def test_one_batch_leaves_nothing_to_hold_out() -> None:
    information = Data(ROWS).accumulated(ROWS)
    assert folds(information) == []
    found = held_out(information)
    assert found.motions == 0
    assert found.share.tolist() == [1.0, 1.0] and found.margin.tolist() == [0.0, 0.0]


def test_the_share_outside_is_what_no_parameters_explain() -> None:
    """Of the filtered effort, by least squares to each joint alone; columns of zeros aside."""
    data = Data(ROWS)
    data.columns[1, 2], data.columns[0, 3] = 0.0, 2.0 * data.columns[0, 0]
    data.columns[0, 2] *= 0.01
    information, values = data.accumulated(10), np.array([1.0, -2.0, 0.5, 29.0, 0.01])
    left = [y - c.T @ np.linalg.lstsq(c.T, y, rcond=None)[0]
            for c, y in zip(data.columns, data.effort.T)]
    found = consistency(information)
    assert found.raised and found.outside == pytest.approx(
        np.linalg.norm(left, axis=1) / np.linalg.norm(data.effort, axis=0), rel=1e-6)
    error = data.effort - np.einsum('ikn,k->ni', data.columns, values)
    assert explained_share(information, values) == pytest.approx(
        1.0 - np.mean(error**2, axis=0) / np.var(data.effort, axis=0), rel=1e-6)
    data.effort *= 1e-6
    assert consistency(data.accumulated(10)).outside == pytest.approx(found.outside, rel=1e-6)
    data.effort = np.zeros_like(data.effort)
    assert consistency(data.accumulated(10)).outside.tolist() == [0.0, 0.0]


def scores(share: float = 0.5, margin: float = 0.1, constant: bool = False) -> HeldOut:
    """Return the errors of one joint."""
    return HeldOut(np.array([9.0]), np.array([4.0]), np.array([share]), np.array([margin]),
                   np.array([constant]), np.ones((3, 1)), np.ones(3), 9.0, np.array([5.0]))


def test_what_errors_say_of_other_motion() -> None:
    found = replace(scores(), spread=np.array([3.0]))
    assert (found.excess, found.promise, found.score) == (2.0, 4.0, pytest.approx(np.log(3.0)))
    assert scores().promise == pytest.approx(np.sqrt(13.0))
    assert replace(found, fitted=np.array([10.0])).excess == 0.0
    assert [replace(found, seconds=seconds).motions for seconds in (9.0, 8.9)] == [3, 1]


@pytest.mark.parametrize(('lower', 'gains'), [
    (True, [1.0, 1.0, 1.0, -0.9]), (False, [1.0, 1.0, 1.0, -1.0]),  # the standard error
    (True, [5.0, 5.0, 0.1, -0.1]), (False, [5.0, 5.0, 0.0, -0.1]),  # most folds
    (True, [1.0, 1.1]), (False, [1.0]), (False, [0.0, 0.0]), (False, [1.0, 1.0, np.nan])])
def test_errors_fall_in_most_folds_and_beyond_their_standard_error(
    lower: bool, gains: list[float]
) -> None:
    assert falls(np.full(len(gains), 2.0), 2.0 + np.array(gains)) is lower


@pytest.mark.parametrize(('lower', 'gains', 'level'), [
    (True, [0.1, 0.2, 0.3, 0.4, 0.5], 0.95), (False, [1.0, 2.0, 3.0, 4.0], 0.95),
    (True, [1.0, 2.0, 3.0, 4.0, 5.0], 0.96), (False, [1.0, 2.0, 3.0, 4.0, 5.0], 0.97),  # 1 / 32
    (False, [1.0, 2.0, 3.0, 4.0, 5.0], 0.96875),
    (False, [1.0, 2.0, 3.0, 4.0, 5.0, -40.0], 0.5), (False, 5 * [0.0], 0.5)])
def test_errors_are_lower_for_sure_by_their_ranks(
    lower: bool, gains: list[float], level: float
) -> None:
    assert surely_lower(np.full(len(gains), 2.0), 2.0 + np.array(gains), level) is lower


OUTSIDE = Consistency(np.array([0.51]), True)
NO_BETTER = 'its effort is predicted no better than by its mean on held-out data '


@pytest.mark.parametrize(('held', 'rank_test', 'served', 'reason'), [
    (scores(0.13, 0.1), None, None, None),
    (scores(0.11, 0.1), None, None, NO_BETTER + '(11% +- 10% of its variance)'),
    (scores(0.02, 0.0), None, None, NO_BETTER + '(2% +- 0% of its variance)'),
    (scores(-9.99, 20.0), None, None, NO_BETTER + '(-999% +- 999% of its variance)'),
    (scores(-10.0), None, None, 'its effort is predicted far worse than by its mean on held-out '
     'data (too little data for the parameters, or an effect is missing)'),
    (scores(-10.0, constant=True), None, None, 'its effort is constant'),
    (scores(), None, 1e-9, None),
    (scores(), None, 0.0, 'its effort is explained by this method worse than by its mean, even in '
     'the training data (--method wls, or more motion, may do better)'),
    (scores(), OUTSIDE, 1.0, 'its effort lies mostly outside what any parameters explain (51% '
     'root mean square: noise, or an effect is missing)'),
    (scores(), replace(OUTSIDE, raised=False), 1.0, None),
    (scores(), replace(OUTSIDE, outside=np.array([0.5])), 1.0, None),
])
def test_joints_are_refused_for_the_first_reason(
    held: HeldOut, rank_test: Consistency | None, served: float | None, reason: str | None
) -> None:
    found = refusals(held, rank_test, None if served is None else np.array([served]))
    assert found == ({} if reason is None else {0: reason})


def test_refusals_for_one_reason_are_one_sentence() -> None:
    assert refusal_sentences({
        'a': 'its effort is late (1 s)', 'b': 'its effort is constant',
        'c': 'its effort is late (2 s)'}) == [
        'joints a and c are refused: their effort is late; check their effort signals, and do not '
        'use the model for these joints',
        'joint b is refused: its effort is constant; check its effort signal, and do not use the '
        'model for this joint']


def test_joints_with_notable_effort_outside_the_model_are_named() -> None:
    shares = np.array([0.31, 0.3, 0.8])
    found = Consistency(shares, True).warnings(('a', 'b', 'c'))
    assert [text.partition(' of its')[0] for text in found] == ['joint a: 31%', 'joint c: 80%']
    assert Consistency(shares, False).warnings(('a', 'b', 'c')) == []
