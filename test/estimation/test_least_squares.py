"""Least squares (`estimation.least_squares`) in closed form, and at its limits."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from linear_data import NAMES, Data
from motions import repeated_motion

from robot_dynid.errors import UsageError
from robot_dynid.estimation.estimate import Status
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.information import Accumulator
from robot_dynid.estimation.least_squares import (
    LeastSquares,
    Solution,
    batch_covariance,
    batch_scores,
    estimate_of,
    joint_weights,
    left_open,
    recorded_effort,
    residual_noise,
    rounding,
    solve,
    solve_part,
    solve_rows,
    unknown_columns,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.between_recordings import scatter_covariance

WEIGHTS = np.array([20.0, 0.5])


def information_of(columns, effort, names=None, batch=100):
    """Return information of columns (n, b, N) and filtered effort (N, n); the raw one is twice."""
    columns, effort = np.asarray(columns, dtype=float), np.asarray(effort, dtype=float)
    names = names or tuple(f'p{i}' for i in range(columns.shape[1]))
    accumulator = Accumulator(names, np.ones(columns.shape[:2], dtype=bool), batch)
    accumulator.add(columns, effort, 2.0 * effort)
    return accumulator.information()


def experiment(information, reach=None, springs=None):
    """Return an experiment whose model has this moderate effort (n, b) and mask of springs."""
    shape = information.structure.shape
    model = SimpleNamespace(
        blocks=(), pivots_by_block=(), moderate_effort=np.zeros(shape) if reach is None else reach,
        base_of=lambda *kinds: np.zeros(shape[1], dtype=bool) if springs is None else springs)
    return Experiment(model, information)


def test_least_squares_has_two_names_and_needs_no_samples():
    weighted, ordinary = LeastSquares(), LeastSquares(weighted=False)
    assert (weighted.name, weighted.summary, weighted.sequential) == (
        'wls', 'least squares, every joint weighted by its noise', True)
    assert (ordinary.name, ordinary.summary, ordinary.sequential) == (
        'ols', 'ordinary least squares', False)
    assert weighted.linear is weighted.fits_information is True
    about = experiment(Data(200).accumulated(20))
    assert ordinary.joint_weights(about).tolist() == [1.0, 1.0]
    expected = joint_weights(about.information)
    assert weighted.joint_weights(about).tolist() == expected.tolist()
    with pytest.raises(UsageError, match='ols solves for all parameters at once'):
        ordinary.part_solver(about, [0])


def test_some_parameters_of_some_batches_are_solved_for_while_the_others_are_kept():
    data, chosen = Data(240), [1, 2, 3, 5, 6, 8, 10]
    about = experiment(data.accumulated(20))
    free, start = np.array([True, False, True, False, True]), np.array([9.0, -2.1, 9.0, 28.0, 9.0])
    weights = joint_weights(about.information.subset(chosen))
    rows = np.concatenate([np.arange(20 * k, 20 * k + 20) for k in chosen])
    tall, effort = data.stacked(weights, rows)
    expected = np.linalg.lstsq(tall[:, free], effort - tall[:, ~free] @ [-2.1, 28.0], rcond=None)
    found = LeastSquares().part_solver(about, chosen)(free, start)
    assert found[free] == pytest.approx(expected[0], rel=1e-8, abs=1e-9)
    assert found[~free].tolist() == [-2.1, 28.0] and start[0] == 9.0
    again = solve_part(np.column_stack([tall, effort]), free, start)
    assert again == pytest.approx(found, rel=1e-8, abs=1e-9)


@pytest.mark.parametrize('count', [2, 4])
@pytest.mark.parametrize(('ratio', 'rank'), [(1.15e-7, 2), (0.87e-7, 1)])
def test_directions_below_a_share_of_the_largest_are_no_excitation(count, ratio, rank):
    """Two columns at an angle have the singular values sqrt(1 +- cos) as unit vectors."""
    angle = 2.0 * np.arctan(ratio)
    tall = np.zeros((6, count + 1))
    tall[:2, :2] = [[3.0, 5.0 * np.cos(angle)], [0.0, 5.0 * np.sin(angle)]]
    tall[2:count, 2:count] = np.diag([2.0, 7.0][:count - 2])
    tall[:count, count] = [4.0, 0.0, 6.0, 21.0][:count]
    found = solve_rows(tall)
    assert found.rank == rank + count - 2
    assert found.open_columns == (() if rank == 2 else (0, 1))
    # of one direction, both columns of unit norm share the effort of 4
    expected = [4.0 / 3.0, 0.0] if rank == 2 else [2.0 / 3.0, 2.0 / 5.0]
    assert found.values[:2] == pytest.approx(expected, rel=1e-6, abs=1e-6)
    assert found.values[2:] == pytest.approx([3.0, 3.0][:count - 2])
    assert found.root.shape == (count, found.rank)


@pytest.mark.parametrize(('share', 'open_columns'), [
    (0.0112, (0, 1, 2)), (0.0089, (1, 2))])
def test_parameters_with_a_small_share_of_an_open_direction_are_excited(share, open_columns):
    part = np.sqrt(2.0 * share)
    tall = np.zeros((4, 4))
    tall[:3, :3] = [[1.0, 0.0, part], [0.0, 1.0, np.sqrt(1.0 - part**2)], [0.0, 0.0, 0.0]]
    tall[:, 3] = [1.0, 2.0, 0.0, 3.0]
    assert solve_rows(tall).open_columns == open_columns


@pytest.mark.parametrize('unit', [3.0, 2e-9])
@pytest.mark.parametrize(('size', 'rank'), [(1.15e-8, 2), (0.87e-8, 1)])
def test_columns_of_rounding_are_none(size, rank, unit):
    found = solve_rows(unit * np.array([[1.0, 0.0, 2.0], [0.0, size, size], [0, 0, 0.3]]))
    assert found.rank == rank and found.values == pytest.approx([2.0, rank - 1.0], abs=1e-6)
    assert found.open_columns == (() if rank == 2 else (1,))
    assert found.condition == pytest.approx(1.0) if rank == 2 else found.condition == np.inf


def test_condition_numbers_are_those_of_scaled_and_unscaled_columns():
    design = np.array([[3.0, 0.8, 0.0], [0.0, 0.6, 0.0], [0.0, 0.0, 0.4]])
    solution = Solution(np.zeros(3), np.eye(3), design, 3, ())
    assert solution.condition == pytest.approx(np.sqrt(1.8 / 0.2))
    assert solution.condition_raw == pytest.approx(np.linalg.cond(design))
    none = replace(solution, design=np.array([[3.0, 0.0], [0.0, 0.0]]))
    assert none.condition == none.condition_raw == np.inf


def test_rounding_is_a_share_of_the_effort_of_the_joint_or_of_the_largest():
    effort = np.array([[3.0, 4e-4, 0.5], [4.0, 3e-4, 0.1]])
    sizes = np.sqrt(np.mean(effort**2, axis=0))
    found = rounding(information_of(np.ones((3, 1, 2)), effort))
    assert found == pytest.approx([1e-9 * sizes[0], 1e-12 * sizes[0], 1e-9 * sizes[2]])
    assert rounding(information_of(np.ones((1, 1, 2)), np.zeros((2, 1)))) == pytest.approx(1e-21)


def test_noise_of_a_repeated_motion_gives_the_weights():
    information = replace(Data(100).accumulated(10), noise=np.array([0.25, 0.0]))
    assert joint_weights(information) == pytest.approx([4.0, 1.0 / rounding(information)[1]])


def test_noise_has_at_least_one_degree_of_freedom():
    information = information_of([[[1.0, 0.0], [0.0, 0.0]]], [[1.0], [0.5]])
    assert residual_noise(information, np.array([0.7, 5.0])) == pytest.approx(
        [np.sqrt(0.3**2 + 0.5**2)])


@pytest.mark.parametrize(('steps', 'calls'), [
    ((1.0011, 1.00091, 9.0), 2), ((1.00091, 9.0), 1), ((1.02, 1.0 / 1.02) * 9, 8)])
def test_weights_settle_to_a_thousandth_within_eight_rounds(steps, calls):
    """A fit whose residual grows by these factors from that of least squares."""
    information = information_of([[[1.0, 0.0, 0.0]]], [[0.0], [2.0], [0.0]])
    least, seen = 2.0 / np.sqrt(3 - 1), []

    def fit(weights):
        seen.append(1.0 / weights[0])
        size = 2.0 * np.prod(steps[:len(seen)])
        return np.array([np.sqrt(max(size**2 - 4.0, 0.0))])

    found = joint_weights(information, fit)
    assert len(seen) == calls
    assert seen == pytest.approx(least * np.cumprod([1.0, *steps[:calls - 1]]))
    assert 1.0 / found == pytest.approx([least * np.prod(steps[:calls])])


def test_recorded_effort_is_the_root_mean_square_of_columns_and_combinations():
    data = Data(123)
    information = data.accumulated(20)
    expected = np.sqrt(np.mean(data.columns**2, axis=2))
    assert recorded_effort(information) == pytest.approx(expected)
    directions = np.random.default_rng(2).normal(size=(5, 3))
    expected = np.sqrt(np.mean(np.einsum('ikn,kp->ipn', data.columns, directions) ** 2, axis=2))
    assert recorded_effort(information, directions) == pytest.approx(expected)


@pytest.mark.parametrize('spring', [False, True])
def test_parameters_that_could_make_all_effort_are_unknown(spring):
    """In a moderate motion; gears in the recorded one. The joint they act on most decides."""
    data = Data(400)
    information = data.accumulated(20)
    size = np.sqrt(np.mean(data.raw**2, axis=0))
    assert size[1] > 1.01 * size[0] or size[0] > 1.01 * size[1]
    reach = np.array([[0.2, 3.0, 0.1, 0.3, 0.5], [0.1, 2.0, 0.4, 0.7, 0.2]])
    acting = np.array([0, 0, 1, 1, 0])
    springs = np.array([spring, False, False, spring, False])
    used = np.where(springs, np.sqrt(np.mean(data.columns**2, axis=2)), reach)
    acting = np.argmax(used, axis=0)
    limit = size[acting] / used.max(axis=0)
    factors = np.array([1.02, 0.98, 0.98, 1.02, 1.02])
    about = experiment(information, reach, springs)
    assert unknown_columns(about, (factors * limit) ** 2) == [0, 3, 4]
    solution = replace(solve(information, WEIGHTS), open_columns=(2,))
    found = estimate_of(about, solution, (np.diag((factors * limit) ** 2), 6), 'own')
    assert found.not_excited == ('a', 'c', 'd', 'e') and found.status is Status.NOT_EXCITED
    assert (found.method, found.degrees_of_freedom, found.rank) == ('own', 6, 5)
    assert np.isinf(found.std).tolist() == [True, False, True, True, True]


@pytest.mark.parametrize('weighted', [True, False])
def test_a_fit_holds_values_covariance_and_noise(weighted):
    about = experiment(Data(400).accumulated(20))
    information, method = about.information, LeastSquares(weighted)
    weights = joint_weights(information) if weighted else np.ones(2)
    solution = solve(information, weights)
    for values in (None, np.array([1.2, -1.9, 0.4, 29.0, 0.02])):
        used = solution if values is None else replace(solution, values=values)
        found, expected = method.fit(about, values), batch_covariance(information, weights, used)
        assert found.values.tolist() == used.values.tolist()
        assert found.covariance == pytest.approx(expected[0], rel=1e-12)
        assert found.degrees_of_freedom == expected[1] == 7
        assert found.noise == pytest.approx(residual_noise(information, used.values))
        assert found.status is Status.OK and found.not_excited == ()
        assert (found.condition, found.condition_raw) == (
            solution.condition, solution.condition_raw)
        assert found.condition != found.condition_raw
        assert found.method == method.name and found.names == NAMES


def test_parameters_that_weighted_least_squares_leaves_open_are_named():
    data = Data(100)
    data.columns[:, 2] = -0.5 * data.columns[:, 3]
    assert left_open(experiment(data.accumulated(10))) == ('c', 'd')


def test_weighted_factor_holds_the_filtered_effort():
    data = Data(90)
    tall, effort = data.stacked(WEIGHTS)
    rows = np.column_stack([tall, effort])
    found = weighted_factor(data.accumulated(20), WEIGHTS)
    assert found.T @ found == pytest.approx(rows.T @ rows, rel=1e-9, abs=1e-6)
    part = data.accumulated(20).batches[2]
    rows = np.column_stack([*data.stacked(WEIGHTS, slice(40, 60))])
    found = weighted_factor(data.accumulated(20), WEIGHTS, part)
    assert found.T @ found == pytest.approx(rows.T @ rows, rel=1e-9, abs=1e-6)


def test_scores_of_batches_are_their_curvature_and_gradient():
    data, other = Data(80, 1), Data(120, 2)
    information, estimated = data.accumulated(20), other.accumulated(30)
    used = np.array([3.0, 0.7])
    solution = solve(information, WEIGHTS)
    plain = batch_scores(information, WEIGHTS, solution)
    scored = batch_scores(information, WEIGHTS, solution, (estimated, used))
    assert plain.root is scored.root is solution.root
    for k in range(4):
        tall, effort = data.stacked(WEIGHTS, slice(20 * k, 20 * k + 20))
        white = tall @ solution.root
        assert plain.curvature[k] == pytest.approx(white.T @ white, rel=1e-8, abs=1e-10)
        assert scored.curvature[k] == pytest.approx(white.T @ white, rel=1e-8, abs=1e-10)
        gradient = white.T @ (effort - tall @ solution.values)
        assert plain.score[k] == pytest.approx(gradient, rel=1e-7, abs=1e-9)
        tall, effort = other.stacked(used, slice(30 * k, 30 * k + 30))
        gradient = (tall @ solution.root).T @ (effort - tall @ solution.values)
        assert scored.score[k] == pytest.approx(gradient, rel=1e-7, abs=1e-9)


def test_covariance_counts_the_cells_of_distinct_motion_if_they_are_known():
    samples = repeated_motion(3, 8.0, 3, joints=2)
    data = Data(len(samples), 3)
    accumulator = Accumulator(NAMES, np.ones((2, 5), dtype=bool), 100)
    accumulator.begin(samples)
    data.effort += 3.0 * np.sin(samples.position) * data.columns[:, 0].T
    accumulator.add(data.columns, data.effort, data.raw)
    information = accumulator.information()
    solution = solve(information, WEIGHTS)
    by_time, by_cell = (batch_scores(one, WEIGHTS, solution)
                        for one in (information, information.distinct))
    known = batch_covariance(information, WEIGHTS, solution)[0]
    plain = batch_covariance(replace(information, by_motion=None), WEIGHTS, solution)[0]
    assert known == pytest.approx(scatter_covariance(information, by_time, None, by_cell)[0])
    assert plain == pytest.approx(scatter_covariance(information, by_time)[0])
    assert known[0, 0] > 1.1 * plain[0, 0]
