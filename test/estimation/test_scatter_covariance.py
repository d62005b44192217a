"""estimation/uncertainty/between_recordings.py: covariances against fits without groups of
batches."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from robot_dynid.estimation.information import Batch, Information, triangle
from robot_dynid.estimation.uncertainty.between_recordings import (
    BatchScores,
    FrictionScales,
    between_recordings,
    covariance,
    leave_one_out,
    scatter_covariance,
    stretches,
)
from robot_dynid.types import FloatArray


class Quadratics:
    """Batches whose costs are 1/2 (x - centre)^T weight (x - centre), and their minimum."""

    def __init__(self, weights: FloatArray, centres: FloatArray) -> None:
        self.weights, self.centres = weights, centres
        self.minimum = self.without(())
        root = np.linalg.inv(np.linalg.cholesky(weights.sum(axis=0))).T
        gradient = np.einsum('bij,bj->bi', weights, self.minimum - centres)
        self.scores = BatchScores(root, root.T @ weights @ root, gradient @ root)

    def without(self, group: Sequence[int]) -> FloatArray:
        """Return the minimum (k,) without some batches."""
        rest = np.setdiff1d(np.arange(len(self.weights)), list(group))
        moment = np.einsum('bij,bj->i', self.weights[rest], self.centres[rest])
        return np.asarray(np.linalg.solve(self.weights[rest].sum(axis=0), moment))

    def jackknife(self, groups: Sequence[Sequence[int]]) -> FloatArray:
        """Return the covariance (k, k) from the minima without each group."""
        values = np.array([self.without(group) for group in groups])
        return np.cov(values.T, bias=True) * (len(groups) - 1)


def diagonal(shares: FloatArray, seed: int = 0, off: FloatArray | float = 0.0) -> Quadratics:
    """Return batches that have `shares` (B, k) of the information about each parameter."""
    rng = np.random.default_rng(seed)
    size = np.array([4.0, 9.0, 0.25, 100.0])[:shares.shape[1]]
    noise = rng.normal(size=shares.shape) + 0.7 * rng.normal(size=(len(shares), 1))
    weights = shares * size
    return Quadratics(weights[:, :, None] * np.eye(len(size)), off + noise / np.sqrt(weights))


def information(*recordings: int) -> Information:
    """Return recordings of so many batches, without data."""
    return Information((), np.zeros((0, 0), dtype=bool), tuple(
        Batch((), 1, number) for number, count in enumerate(recordings) for _ in range(count)))


def first_of(count: int, batches: int, share: float) -> FloatArray:
    """Return shares (count,), of which the first `batches` together have `share`."""
    return np.where(np.arange(count) < batches, share / batches, (1.0 - share) / (count - batches))


def split(count: int, groups: int) -> list[list[int]]:
    return [part.tolist() for part in np.array_split(np.arange(count), groups)]


def correlation(matrix: FloatArray) -> FloatArray:
    deviation = np.sqrt(np.diag(matrix))
    return matrix / np.outer(deviation, deviation)


def test_scores_change_the_estimate_as_fits_without_the_groups_do() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 5, 3))
    batches = Quadratics(rows.transpose(0, 2, 1) @ rows, rng.normal(size=(6, 3)))
    groups = [[0], [3, 1], [2, 4, 5]]
    changes, growth = batches.scores.changes(groups)
    whole = np.linalg.inv(batches.weights.sum(axis=0))
    for group, change, factor in zip(groups, changes, growth, strict=True):
        assert change == pytest.approx(batches.without(group) - batches.minimum, rel=1e-9)
        rest = np.linalg.inv(np.delete(batches.weights, group, axis=0).sum(axis=0))
        assert factor == pytest.approx(np.diag(rest) / np.diag(whole), rel=1e-9)
    unknown = BatchScores(np.zeros((2, 3)), batches.scores.curvature, batches.scores.score)
    assert [part.tolist() for part in unknown.changes([[0]])] == 2 * [[[0.0, 0.0]]]


@pytest.mark.parametrize(('rest', 'growth'), [
    (1.1e-3, 1.0 / 1.1e-3), (0.9e-3, 1e3), (1e-9, 1e3), (0.0, 1e3)])
def test_changes_leave_a_thousandth_of_the_information(rest: float, growth: float) -> None:
    scores = BatchScores(np.array([[2.0], [-3.0]]), np.array([[[1.0 - rest]]]), np.array([[0.5]]))
    changes, factors = scores.changes([[0]])
    assert changes[0] == pytest.approx(np.array([1.0, -1.5]) * growth, rel=1e-6)
    assert factors[0] == pytest.approx(growth, rel=1e-6)


def test_stretches_are_eight_or_as_many_as_there_are_batches() -> None:
    assert stretches(19) == split(19, 8)
    assert stretches(5) == [[0], [1], [2], [3], [4]]
    assert stretches(5, 2) == [[0, 1, 2], [3, 4]]
    changes = np.array([[1.0, 4.0], [2.0, 2.0], [6.0, 3.0]])
    matrix, freedom = covariance(changes)
    assert freedom == 2
    assert matrix == pytest.approx(2.0 * np.cov(changes.T, bias=True))
    assert covariance(changes[1:])[0] == pytest.approx(np.array([[4.0, 1.0], [1.0, 0.25]]))
    alone, freedom = covariance(changes[:1])
    assert np.isnan(alone).all() and alone.shape == (2, 2) and freedom == 1


def test_variances_are_those_of_the_longest_stretches_of_which_none_decides_alone() -> None:
    """One deciding alone multiplies the variance by ten or more: 1 / (1 - 0.905), or 1 / 0.11."""
    count = 50  # eight stretches begin with seven batches, 16 with four, 32 with two
    batches = diagonal(np.column_stack([
        first_of(count, 7, 0.89), first_of(count, 7, 0.905), first_of(count, 4, 0.905),
        first_of(count, 1, 0.905)]))
    found, freedom = scatter_covariance(information(count), batches.scores)
    expected = [batches.jackknife(split(count, groups))[i, i]
                for i, groups in enumerate((8, 16, 32, 50))]
    assert np.diag(found) == pytest.approx(expected, rel=1e-9)
    assert correlation(found) == pytest.approx(
        correlation(batches.jackknife(split(count, count))), rel=1e-9)
    assert freedom == 7


def test_few_batches_have_fewer_degrees_of_freedom() -> None:
    batches = diagonal(np.full((5, 2), 0.2))
    found, freedom = scatter_covariance(information(5), batches.scores)
    assert freedom == 4
    assert found == pytest.approx(batches.jackknife(split(5, 5)), rel=1e-9)
    assert np.isnan(scatter_covariance(information(1), diagonal(np.ones((1, 1))).scores)[0]).all()


def test_two_recordings_show_their_difference() -> None:
    batches = diagonal(np.full((5, 1), 0.2), off=np.array([2.0, 2.0, 2.0, -2.0, -2.0])[:, None])
    found, _ = scatter_covariance(information(3, 2), batches.scores)
    assert found[0, 0] > 1.2 * batches.jackknife(split(5, 5))
    assert found[0, 0] == pytest.approx(batches.jackknife([[0, 1, 2], [3, 4]]), rel=1e-9)


def test_all_but_one_batch_are_merged_for_each_joint() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(7, 2, 4, 3))
    merged = list(leave_one_out([Batch(tuple(map(triangle, pair)), 4) for pair in rows]))
    assert len(merged) == 7
    for i, factors in enumerate(merged):
        for joint, factor in enumerate(factors):
            rest = np.delete(rows, i, axis=0)[:, joint].reshape(-1, 3)
            assert factor.T @ factor == pytest.approx(rest.T @ rest, rel=1e-9)


def test_recordings_and_distinct_motion_raise_the_variance_where_none_decides_alone() -> None:
    lengths = (20, 13, 17, 10)
    count, place = sum(lengths), np.repeat(np.arange(4), lengths)
    off = np.array([[1.0, 0.0], [-2.0, 0.0], [0.5, 0.0], [1.5, 0.0]])[place]
    even = np.full((count, 2), 1.0 / count)
    decided = np.column_stack([first_of(count, 20, 0.95), even[:, 1]])
    whole = [np.flatnonzero(place == i).tolist() for i in range(4)]
    for shares, sure in ((even, True), (decided, False)):
        batches = diagonal(shares, 4, off)
        found, _ = scatter_covariance(information(*lengths), batches.scores)
        by_time, by_recording = (np.diag(batches.jackknife(groups))
                                 for groups in (split(count, 8), whole))
        assert by_recording[0] > 1.2 * by_time[0] and by_recording[1] < 0.8 * by_time[1]
        assert np.diag(found) == pytest.approx(
            [by_recording[0] if sure else by_time[0], by_time[1]], rel=1e-9)
    every = information(*[1] * count)  # recordings of one batch are no longer stretches
    assert np.diag(scatter_covariance(every, batches.scores)[0]) == pytest.approx(by_time)
    cells = diagonal(np.column_stack([first_of(20, 3, 0.905), np.full(20, 0.05)]), 2,
                     np.array([0.0, 8.0]) * (np.arange(20) % 20 < 9)[:, None])
    batches = diagonal(even, 4, off)
    found, _ = scatter_covariance(information(count), batches.scores, by_motion=cells.scores)
    by_time, by_cell = (np.diag(one.jackknife(split(n, 8)))
                        for one, n in ((batches, count), (cells, 20)))
    assert by_cell[1] > 1.2 * by_time[1]
    assert np.diag(found) == pytest.approx([by_time[0], by_cell[1]], rel=1e-9)


def test_the_spread_of_friction_adds_to_the_scatter_of_stretches() -> None:
    lengths = (18, 14, 16)
    count, place = sum(lengths), np.repeat(np.arange(3), lengths)
    batches = diagonal(np.full((count, 2), 1.0 / count), 3,
                       np.array([3.0, -4.0, 1.0])[place, None])
    info, groups = information(*lengths), [np.flatnonzero(place == i) for i in range(3)]
    scales = FrictionScales(np.array([[2.0], [0.0]]), ('dry',))  # the second is no friction
    component = between_recordings(batches.scores, [g.tolist() for g in groups], scales)
    inside, _ = scatter_covariance(information(count), component.within)
    found, freedom = scatter_covariance(info, batches.scores, scales)
    rough, _ = scatter_covariance(info, batches.scores)
    assert found[0, 0] == pytest.approx((inside + component.covariance)[0, 0], rel=1e-9)
    assert found[1, 1] == pytest.approx(rough[1, 1], rel=1e-9) and freedom == 7
    assert found[0, 0] > 1.05 * rough[0, 0] and rough[1, 1] > inside[1, 1]
    assert correlation(found) == pytest.approx(
        correlation(inside + component.covariance), rel=1e-9)
    alone, _ = scatter_covariance(information(count), batches.scores, scales)
    assert alone == pytest.approx(scatter_covariance(information(count), batches.scores)[0])


class Scales:
    """Three recordings with scales of friction that are independent of each other."""

    def __init__(self, noise: FloatArray | float) -> None:
        rng = np.random.default_rng(4)
        self.lengths, self.root, size = (12, 9, 16), np.array([2.0, 0.5, 3.0]), [0.5, -4.0, 6.0]
        self.size = np.array(size) / self.root  # of the scales in whitened directions
        place = np.repeat(np.arange(3), self.lengths)
        self.groups = [np.flatnonzero(place == i).tolist() for i in range(3)]
        self.curvature = rng.uniform(0.5, 1.5, (len(place), 3)) / len(place)
        off = np.array([[0.3, -0.2, 0.1], [-0.4, 0.6, 0.2], [0.1, -0.1, 0.5]])[place]
        values = off + noise * rng.normal(size=off.shape)
        self.score = self.curvature * self.size * values
        self.scores = BatchScores(
            np.diag(self.root), self.curvature[:, :, None] * np.eye(3), self.score)

    def of(self, group: list[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the scales, their variance by eight stretches, and their information."""
        weight, moment = self.size**2 * self.curvature, self.size * self.score

        def value(batches: list[int]) -> FloatArray:
            return np.asarray(moment[batches].sum(axis=0) / weight[batches].sum(axis=0))

        left = np.array([value(np.delete(group, part).tolist())
                         for part in split(len(group), 8)])
        return value(group), 7.0 * np.var(left, axis=0), weight[group].sum(axis=0)


@pytest.mark.parametrize('noise', [0.2, np.array([0.0, 3e-6, 1e-6])])
def test_spreads_of_each_kind_are_pooled_over_axes_by_their_precision(
    noise: FloatArray | float
) -> None:
    data = Scales(noise)
    kinds = np.array(['viscous', 'dry', 'viscous'])
    found = between_recordings(data.scores, data.groups, FrictionScales(
        np.diag([0.5, -4.0, 6.0]), tuple(kinds.tolist())))
    value, variance, weight = (np.array(part) for part in zip(*map(data.of, data.groups),
                                                              strict=True))
    share = weight / weight.sum(axis=0)
    off = value - (share * value).sum(axis=0)
    excess = (share * off**2 - share * (1.0 - share) * variance).sum(axis=0)
    precise = 1.0 / ((share * variance).sum(axis=0) + 1e-12)
    freedom = (share * (1.0 - share)).sum(axis=0)
    square = {kind: (precise * excess)[kinds == kind].sum()
              / (precise * freedom)[kinds == kind].sum() for kind in ('viscous', 'dry')}
    assert found.spread == pytest.approx({k: np.sqrt(v) for k, v in square.items()}, rel=1e-6)
    squares = np.array([square[kind] for kind in kinds])
    of_recording = np.array([data.curvature[group].sum(axis=0) for group in data.groups])
    moved = data.root * of_recording * data.size
    assert found.covariance == pytest.approx(
        np.diag((squares * moved**2).sum(axis=0)), rel=1e-6, abs=1e-12)
    guess = np.repeat(off * squares / (squares + variance), data.lengths, axis=0)
    assert found.within.score == pytest.approx(
        data.score - data.curvature * data.size * guess, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(('share', 'counts'), [(0.8e-6, False), (1.2e-6, True)])
def test_recordings_of_hardly_any_information_do_not_count(share: float, counts: bool) -> None:
    weight = np.repeat([0.5, 0.5, share], 8) / 8.0
    value = np.repeat([0.1, -0.1, 300.0], 8)
    scores = BatchScores(np.eye(1), weight[:, None, None], (weight * value)[:, None])
    groups = [list(range(8 * i, 8 * i + 8)) for i in range(3)]
    found = between_recordings(scores, groups, FrictionScales(np.eye(1), ('dry',)))
    assert (found.spread['dry'] > 0.2) is counts
    if not counts:
        assert found.spread['dry'] == pytest.approx(np.sqrt(0.02), rel=1e-6)


def test_a_recording_of_one_batch_has_no_scatter_and_does_not_count() -> None:
    weight, value = np.full(17, 1.0 / 17.0), np.repeat([0.1, -0.1, 5.0], [8, 8, 1])
    scores = BatchScores(np.eye(1), weight[:, None, None], (weight * value)[:, None])
    groups = [list(range(8)), list(range(8, 16)), [16]]
    found = between_recordings(scores, groups, FrictionScales(np.eye(1), ('dry',)))
    assert found.spread['dry'] == pytest.approx(np.sqrt(0.02), rel=1e-6)


def test_recordings_that_agree_better_than_their_stretches_have_no_spread() -> None:
    """And a kind of friction that no recording shows has none to state."""
    value = np.tile([1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 0.3, -0.3], 2)
    weight = np.full(16, 1.0 / 16.0)
    scores = BatchScores(np.eye(2), weight[:, None, None] * np.diag([1.0, 0.0]),
                         (weight * value)[:, None] * [1.0, 0.0])
    found = between_recordings(scores, [list(range(8)), list(range(8, 16))],
                               FrictionScales(np.eye(2), ('dry', 'offset')))
    assert found.spread == {'dry': 0.0}
    assert not found.covariance.any()
    assert found.within.score == pytest.approx(scores.score)
