"""Square-root information and least squares against the tall matrix, solved directly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linear_data import NAMES, NOISE, STRUCTURE, TRUE, Data
from motions import repeated_motion
from tolerances import COVARIANCE, LEAST_SQUARES, SAME_FORMULA

from robot_dynid.errors import UsageError
from robot_dynid.estimation.information import (
    FILTERED,
    MAX_BATCHES,
    MAX_CELLS,
    RAW,
    Accumulator,
    merge_factors,
    triangle,
)
from robot_dynid.estimation.least_squares import (
    batch_covariance,
    batch_scores,
    joint_weights,
    residual_noise,
    solve,
    textbook_covariance,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty import between_recordings as jackknife
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.signals.held_out_motion import MOTION_FOLDS


@pytest.mark.parametrize('count', [6, 50, 400])
@pytest.mark.parametrize('batch', [1, 10, 64, 1000])
@pytest.mark.parametrize('weights', [(1.0, 1.0), (20.0, 0.5)])
def test_solution_is_that_of_the_tall_matrix(count, batch, weights):
    data = Data(count)
    found = solve(data.accumulated(batch), np.array(weights))
    tall, effort = data.stacked(weights)
    expected = np.linalg.lstsq(tall, effort, rcond=None)[0]
    assert found.values == pytest.approx(expected, rel=LEAST_SQUARES, abs=1e-9)
    assert found.rank == 5 and found.open_columns == ()
    assert found.condition_raw == pytest.approx(np.linalg.cond(tall), rel=1e-6)
    norms = np.linalg.norm(tall, axis=0)
    assert found.condition == pytest.approx(np.linalg.cond(tall / norms), rel=1e-6)
    assert found.root @ found.root.T == pytest.approx(np.linalg.inv(tall.T @ tall), rel=1e-6)


def test_weights_find_the_noise_of_every_joint():
    data = Data(4000)
    information = data.accumulated(100)
    weights = joint_weights(information)
    values = solve(information, weights).values
    # the offset of 0.3 is no parameter here, so it counts as noise of the first joint
    assert 1.0 / weights == pytest.approx(np.hypot(NOISE, 0.3), rel=0.05)
    assert residual_noise(information, values) == pytest.approx(1.0 / weights, rel=1e-3)


def test_weighted_least_squares_scatters_less_than_ordinary():
    wls, ols = [], []
    for seed in range(30):
        information = Data(60, seed).accumulated(10)
        wls.append(solve(information, joint_weights(information)).values - TRUE)
        ols.append(solve(information, np.ones(2)).values - TRUE)
    better = np.std(wls, axis=0) / np.std(ols, axis=0)
    assert better[0] < 0.5 and better[3] < 0.5


@pytest.mark.parametrize('batch', [1, 7, 50, 1000])
def test_batches_do_not_change_the_total(batch):
    data = Data(200)
    once, many = data.accumulated(10_000, chunk=200), data.accumulated(batch)
    assert many.samples == once.samples == 200
    for i in range(2):
        left, right = (np.asarray(d.total.factors[i]) for d in (once, many))
        assert left.T @ left == pytest.approx(right.T @ right, rel=1e-9, abs=1e-6)


def test_merging_is_the_same_as_all_at_once():
    data = Data(300)
    whole = data.accumulated(50)
    halves = []
    for rows in (slice(0, 130), slice(130, 300)):
        half = Data(300)
        half.columns, half.effort, half.raw = (
            data.columns[:, :, rows], data.effort[rows], data.raw[rows])
        halves.append(half.accumulated(50))
    together = halves[0].merge(halves[1])
    assert together.samples == 300
    assert solve(together, np.ones(2)).values == pytest.approx(solve(whole, np.ones(2)).values,
                                                               rel=LEAST_SQUARES)


def test_information_of_other_parameters_is_not_merged():
    data = Data(30)
    other = np.ones((2, 5), dtype=bool)
    with pytest.raises(UsageError, match='different parameter sets'):
        data.accumulated(10).merge(data.accumulated(10, structure=other))


@pytest.mark.parametrize('recordings', [3, 40])
def test_many_batches_are_condensed_within_their_recordings(recordings):
    parts = [Data(25 + i).accumulated(5) for i in range(recordings)]
    whole = parts[0]
    for part in parts[1:]:
        whole = whole.merge(part)
    few = whole.condensed(12)
    assert few.samples == whole.samples
    for ours, expected in zip(few.total.factors, whole.total.factors, strict=True):
        np.testing.assert_allclose(ours.T @ ours, expected.T @ expected, rtol=SAME_FORMULA,
                                   atol=SAME_FORMULA * np.abs(expected.T @ expected).max())
    numbers = [batch.recording for batch in few.batches]
    assert numbers == sorted(numbers)
    if recordings == 3:  # none holds samples of two
        sizes = [sum(b.samples for b in few.batches if b.recording == i) for i in range(3)]
        assert sizes == [25, 26, 27]
    assert 6 <= len(few.batches) <= 12 + (recordings == 3) * 3
    assert whole.condensed(len(whole.batches)) is whole


def test_batches_are_as_long_as_those_that_are_known():
    data = Data(60)
    known = Accumulator(NAMES, STRUCTURE, 7, sizes=(7, 20, 3, 30))
    known.begin()
    known.add(data.columns, data.effort, data.raw)
    found = known.information()
    assert [batch.samples for batch in found.batches] == [7, 20, 3, 30]
    assert solve(found, np.ones(2)).values == pytest.approx(
        np.linalg.lstsq(*data.stacked(), rcond=None)[0], rel=LEAST_SQUARES)


def test_number_of_batches_stays_bounded_and_lengths_alike():
    data = Data(MAX_BATCHES * 9 + 1)
    information = data.accumulated(2)
    sizes = [b.samples for b in information.batches]
    assert len(sizes) <= MAX_BATCHES + 1
    assert sum(sizes) == len(data.effort) == information.samples
    assert max(sizes[:-1]) == min(sizes[:-1]) == 16
    assert solve(information, np.ones(2)).values == pytest.approx(
        np.linalg.lstsq(*data.stacked(), rcond=None)[0], rel=LEAST_SQUARES)


@settings(max_examples=40)
@given(st.integers(1, 400), st.integers(1, 60), st.integers(1, 80))
def test_no_sample_is_lost_or_counted_twice(count, batch, chunk):
    data = Data(count)
    information = data.accumulated(batch, chunk)
    assert sum(b.samples for b in information.batches) == count
    energy = information.residual_energy(np.zeros(5), RAW)
    assert energy == pytest.approx(np.sum(data.raw**2, axis=0), rel=1e-9)


@pytest.mark.parametrize(('kind', 'name'), [(FILTERED, 'effort'), (RAW, 'raw')])
def test_residuals_and_spread_are_those_of_the_samples(kind, name):
    data = Data(123)
    information = data.accumulated(20)
    values = np.array([1.1, -1.9, 0.4, 29.0, 0.02])
    error = getattr(data, name) - np.einsum('ikn,k->ni', data.columns, values)
    assert information.residual_energy(values, kind) == pytest.approx(np.sum(error**2, axis=0))
    assert information.spread(kind) == pytest.approx(np.std(getattr(data, name), axis=0))
    assert information.size(kind) == pytest.approx(
        np.sqrt(np.mean(getattr(data, name) ** 2, axis=0)))
    part = information.batches[2]
    assert information.residual_energy(values, kind, part) == pytest.approx(
        np.sum(error[40:60] ** 2, axis=0))
    assert information.spread(kind, part) == pytest.approx(
        np.std(getattr(data, name)[40:60], axis=0))


def test_factors_hold_only_what_acts_on_the_joint():
    information = Data(50).accumulated(10)
    assert [f.shape[1] for f in information.total.factors] == [7, 7]
    for joint in range(2):
        wide = information.expanded(joint)
        assert not wide[:, :5][:, ~STRUCTURE[joint]].any()
    assert weighted_factor(information, np.ones(2)).shape[1] == 6


def test_triangle_of_few_rows_is_square():
    rows = np.array([[1.0, 2.0, 3.0]])
    factor = triangle(np.asfortranarray(rows))
    assert factor.shape == (3, 3) and not factor[1:].any()
    assert factor.T @ factor == pytest.approx(rows.T @ rows)
    both = merge_factors([factor, factor])
    assert both.T @ both == pytest.approx(2.0 * rows.T @ rows)


def test_textbook_covariance_in_closed_form():
    data = Data(80)
    information = data.accumulated(10)
    solution = solve(information, np.ones(2))
    tall, effort = data.stacked()
    residual = effort - tall @ solution.values
    expected = residual @ residual / (160 - 5) * np.linalg.inv(tall.T @ tall)
    assert textbook_covariance(information, np.ones(2), solution) == pytest.approx(
        expected, rel=COVARIANCE)


@pytest.mark.parametrize('weights', [(1.0, 1.0), (20.0, 0.5)])
def test_covariance_is_the_jackknife_of_brute_force_refits(weights):
    data = Data(240)
    information = data.accumulated(20)
    count = len(information.batches)
    assert count == 12
    solution = solve(information, np.array(weights))
    single = [[k] for k in range(count)]
    covariance, freedom = jackknife.covariance(
        batch_scores(information, np.array(weights), solution).changes(single)[0])
    refits = []
    for k in range(count):
        rows = np.r_[0:20 * k, 20 * (k + 1):240]
        refits.append(np.linalg.lstsq(*data.stacked(weights, rows), rcond=None)[0])
    centred = np.array(refits) - np.mean(refits, axis=0)
    expected = (count - 1) / count * centred.T @ centred
    assert freedom == count - 1
    assert covariance == pytest.approx(expected, rel=COVARIANCE,
                                       abs=COVARIANCE * np.abs(expected).max())


def test_covariance_holds_for_coloured_noise_where_the_textbook_fails():
    rng = np.random.default_rng(3)
    found, stated, textbook = [], [], []
    for seed in range(40):
        data = Data(1200, seed)
        # the regressor is as slow as the noise, or colour would average out
        slow = np.repeat(rng.normal(size=(2, 5, 60)), 20, axis=2) * STRUCTURE[:, :, None]
        data.columns = slow * np.array([1.0, 10.0, 0.1, 1.0, 100.0])[None, :, None]
        noise = np.repeat(rng.normal(size=(60, 2)), 20, axis=0)
        data.effort = np.einsum('ikn,k->ni', data.columns, TRUE) + noise
        information = data.accumulated(40)
        solution = solve(information, np.ones(2))
        found.append(solution.values - TRUE)
        stated.append(np.sqrt(np.diag(batch_covariance(information, np.ones(2), solution)[0])))
        textbook.append(np.sqrt(np.diag(textbook_covariance(information, np.ones(2), solution))))
    spread = np.std(found, axis=0)
    assert np.mean(stated, axis=0) / spread == pytest.approx(np.ones(5), abs=0.45)
    assert np.all(np.mean(textbook, axis=0) < 0.4 * spread)


def test_single_batch_has_no_covariance():
    information = Data(30).accumulated(1000)
    solution = solve(information, np.ones(2))
    covariance, freedom = batch_covariance(information, np.ones(2), solution)
    assert np.isnan(covariance).all() and freedom == 1


def test_directions_without_information_are_named_and_zero():
    data = Data(100)
    data.columns[:, 3] = 2.0 * data.columns[:, 0]  # a and d always together
    data.columns[:, 4] = 0.0
    found = solve(data.accumulated(10), np.ones(2))
    assert found.rank == 3
    assert [NAMES[i] for i in found.open_columns] == ['a', 'd', 'e']
    assert found.values[4] == 0.0
    assert found.condition > 1e12


def test_rounding_is_no_excitation():
    data = Data(100)
    data.columns[1, 4] = 1e-13 * np.random.default_rng(0).normal(size=100)
    found = solve(data.accumulated(10), np.ones(2))
    assert [NAMES[i] for i in found.open_columns] == ['e']
    assert found.values[4] == 0.0


def test_information_merges_repeated_motion_into_one_cell_and_fold():
    """Equations of recordings whose motion repeats: by cells as by time, the same in total."""
    parts = [by_cells(repeated_motion(seed, 8.0, periods, joints=2), seed) for seed, periods in (
        (3, 3), (4, 1), (3, 1))]
    whole = parts[0].merge(parts[1]).merge(parts[2])
    for information in (*parts, whole):
        distinct, total = information.distinct, information.total
        assert distinct.samples == information.samples == len(information.by_motion.rows)
        assert [b.samples for b in distinct.batches] == np.bincount(
            information.by_motion.rows).tolist()
        for ours, expected in zip(distinct.total.factors, total.factors, strict=True):
            np.testing.assert_allclose(ours.T @ ours, expected.T @ expected, rtol=1e-9, atol=1e-6)
        assert len(distinct.batches) <= 2 * MAX_CELLS
    assert parts[0].seconds.sum() == pytest.approx(8.0, rel=0.1)
    assert whole.seconds.sum() == pytest.approx(16.0, rel=0.1)
    rows, length = whole.by_motion.rows, len(parts[0].by_motion.rows)
    again = rows[-len(parts[2].by_motion.rows):]
    assert np.mean(np.abs(rows[:len(again)] - again) <= 1) > 0.9
    assert not set(rows[length:-len(again)]) & set(rows[:length])


def by_cells(samples, seed):
    """Return the information of equations with noise, one for each sample."""
    data = Data(len(samples), seed)
    accumulator = Accumulator(NAMES, STRUCTURE, 100)
    accumulator.begin(samples)
    for first in range(0, len(samples), 70):
        rows = slice(first, first + 70)
        accumulator.add(data.columns[:, :, rows], data.effort[rows], data.raw[rows])
    return accumulator.information()


def test_errors_of_folds_are_those_of_motion_that_the_fit_has_not_seen():
    """What a model lacks is alike in each period: left out by time, it is in the fit."""
    samples = repeated_motion(5, 8.0, 3, joints=2)
    count, structure = 12, np.ones((2, 12), dtype=bool)
    waves = np.stack([np.sin(k * samples.position + k) for k in range(count)])
    effort = samples.velocity[:, ::-1] * samples.position
    accumulator = Accumulator(tuple(f'p{k}' for k in range(count)), structure, 100)
    accumulator.begin(samples)
    accumulator.add(waves.transpose(2, 0, 1), effort, effort)
    information = accumulator.information()
    found = held_out(information)
    by_time = held_out(replace(information, by_motion=None))
    values = solve(information, joint_weights(information)).values
    left = information.residual_energy(values, RAW) / information.samples
    assert by_time.raw[0] < 1.1 * left[0] and found.raw[0] > 2.0 * left[0]
    assert found.seconds == pytest.approx(8.0, rel=0.1)
    assert found.folds.shape == (MOTION_FOLDS, 2)
    assert np.average(found.folds, axis=0, weights=found.samples) == pytest.approx(found.raw)


@pytest.mark.parametrize('count', [300, 1290, 2000])
def test_rows_of_any_length_are_cut_into_the_same_batches(count):
    """Also where neighbours merge in between: batches of one sample do so beyond 128."""
    data = Data(count)
    for batch in (1, 7, 400):
        chunks, at_once = data.accumulated(batch), Accumulator(NAMES, STRUCTURE, batch)
        at_once.add(data.columns, data.effort, data.raw)
        found = at_once.information()
        assert [b.samples for b in found.batches] == [b.samples for b in chunks.batches]
        for one, other in zip(found.batches, chunks.batches, strict=True):
            for left, right in zip(one.factors, other.factors, strict=True):
                assert left.T @ left == pytest.approx(right.T @ right, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize('count', [128, 129, 257, 258, 2000])
def test_batches_of_an_expected_number_of_samples_are_those_that_neighbours_merge_into(count):
    data = Data(count)
    known = Accumulator(NAMES, STRUCTURE, 1, expected=count)
    known.add(data.columns, data.effort, data.raw)
    found, merging = known.information().batches, data.accumulated(1).batches
    assert [b.samples for b in found] == [b.samples for b in merging]
    for one, other in zip(found, merging, strict=True):
        for left, right in zip(one.factors, other.factors, strict=True):
            assert left.T @ left == pytest.approx(right.T @ right, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize('least', [0.3, 2e-4, 0.0])
def test_a_group_that_decides_a_direction_alone_leaves_a_thousandth_of_it(least):
    """Changes and growth of the variance against the eigenvectors of what is left."""
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    rest = np.array([least, 0.5, 0.7, 0.9])
    root, score = rng.normal(size=(5, 4)), rng.normal(size=4)
    share = np.eye(4) - directions * rest @ directions.T
    found, growth = jackknife.BatchScores(root, share[None], score[None]).changes([[0]])
    inverse = directions / np.maximum(rest, 1e-3) @ directions.T
    assert found[0] == pytest.approx(root @ inverse @ score, rel=LEAST_SQUARES)
    assert growth[0] == pytest.approx(
        np.diag(root @ inverse @ root.T) / np.diag(root @ root.T), rel=LEAST_SQUARES)


def test_information_about_some_parameters_is_that_of_an_experiment_without_the_others():
    data, chosen = Data(500), [0, 2, 3]
    found = data.accumulated(50).about(chosen)
    alone = Accumulator(tuple(NAMES[i] for i in chosen), STRUCTURE[:, chosen], 50)
    alone.add(data.columns[:, chosen], data.effort, data.raw)
    expected = alone.information()
    assert found.names == expected.names
    assert np.array_equal(found.structure, expected.structure)
    assert held_out(found).score == pytest.approx(held_out(expected).score, rel=LEAST_SQUARES)
    assert solve(found, np.ones(2)).values == pytest.approx(
        solve(expected, np.ones(2)).values, rel=LEAST_SQUARES)
