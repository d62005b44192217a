"""Torque model and measured samples (`estimation.experiment`): chunks, parts, batches, weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from linear_data import NAMES, STRUCTURE, Data
from motions import lively, repeated_motion, stacked, torque_model, truth_of

from robot_dynid.effects import JointFriction, RigidLinks, RotorInertia, axes_of
from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import (
    Experiment,
    Regression,
    add_recording,
    batch_samples,
    by_recording,
    chunks,
    equations,
    in_parts,
    row_weights,
    swift,
    whole_batch,
)
from robot_dynid.estimation.information import Accumulator
from robot_dynid.reduction.numeric import states_at
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import Samples

MODEL = torque_model('planar_3r')
ROBOT = MODEL.robot
SLOW = np.array([0.3, 0.9, 0.5])


def timed(*seconds, began=None):
    """Return samples of these instants [s] alone."""
    still = np.zeros((len(seconds), 3))
    return Samples(ROBOT.joints, np.array(seconds, dtype=float), still, still, still, began=began)


@pytest.mark.parametrize(('first', 'second', 'goes_on'), [
    (timed(1.0, 2.0, began=1.0), timed(2.5, 3.0, began=1.0), True),
    (timed(1.0, 2.0, began=1.0), timed(2.0, 3.0, began=1.0), False),
    (timed(1.0, 2.0, began=1.0), timed(2.5, 3.0, began=2.5), False),
    (timed(1.0, 2.0), timed(2.5, 3.0), False),
    (timed(began=1.0), timed(2.5, 3.0, began=1.0), False)])
def test_a_part_goes_on_if_it_is_of_the_same_recording_and_later(first, second, goes_on):
    found = list(in_parts([first, second]))
    assert [one for one, _ in found] == [first, second]
    assert [one for _, one in found] == [False, goes_on]


@pytest.mark.parametrize(('step', 'count', 'whole', 'length'), [
    (0.01, 2400, 100, 100), (0.01, 2399, 100, 99), (0.01, 240, 100, 10), (0.01, 20, 100, 1),
    (0.004, 60000, 250, 250), (1.6, 100, 1, 1), (0.4, 1000, 2, 2)])
def test_batches_last_a_second_or_less_for_24_of_them(step, count, whole, length):
    samples = timed(*(step * np.arange(count)))
    assert whole_batch(samples) == whole and batch_samples(samples) == length
    assert batch_samples(replace(samples, began=0.0)) == whole


def test_single_samples_and_equal_stamps_have_batches_too():
    assert whole_batch(timed(3.0)) == batch_samples(timed(3.0)) == 1
    assert whole_batch(timed(0.0, 0.0, 0.0)) == 1_000_000_000


def test_chunks_end_at_borders_of_segments():
    samples = replace(timed(*range(25)), starts=(0, 11, 12))
    assert list(chunks(samples, 5)) == [
        slice(0, 5), slice(5, 10), slice(10, 11), slice(11, 12), slice(12, 17), slice(17, 22),
        slice(22, 25)]
    assert list(chunks(timed(*range(1025)))) == [slice(0, 1024), slice(1024, 1025)]


def turning(speed, step=0.01, cutoff=None, starts=(0,)):
    """Return samples of joints with these speeds (N, 3)."""
    return Samples(ROBOT.joints, step * np.arange(len(speed)), np.zeros_like(speed), speed,
                   np.zeros_like(speed), cutoff=cutoff, starts=starts)


@pytest.mark.parametrize(('cutoff', 'reach'), [(None, 0), (20.0, 5), (14.0, 7), (12.9, 8)])
def test_rows_are_near_a_reversal_within_a_period_of_the_cutoff(cutoff, reach):
    speed = np.full((60, 3), 2.0) * [1.0, -1.0, 4.0]
    speed[30, 1], speed[50, 2] = 0.1, 0.41  # 5 %; just above 5 % of eight
    far = swift(ROBOT, turning(speed, cutoff=cutoff))
    expected = np.ones((60, 3))
    expected[30 - reach:31 + reach, 1] = 0.0
    assert far.tolist() == expected.tolist()
    assert swift(ROBOT, turning(0.01 * speed, cutoff=cutoff)).tolist() == expected.tolist()
    speed[50, 2] = -0.39
    assert swift(ROBOT, turning(speed, cutoff=cutoff))[50, 2] == 0.0
    halves = swift(ROBOT, turning(speed, cutoff=cutoff, starts=(0, 30)))
    assert halves[:30, 1].all() and not halves[30:31 + reach, 1].any()


def test_speeds_of_reversals_may_be_stated():
    speed = np.linspace(-1.0, 1.0, 41)[:, None] * [1.0, 2.0, 3.0]
    found = swift(ROBOT, turning(speed), np.array([0.21, 0.52, 0.02]))
    assert found.tolist() == (np.abs(speed) > [0.21, 0.52, 0.02]).astype(float).tolist()
    weights = row_weights(ROBOT, turning(speed), SLOW)
    assert weights.tolist() == np.where(swift(ROBOT, turning(speed)) > 0.5, 1.0, SLOW).tolist()
    assert np.min(weights, axis=0).tolist() == SLOW.tolist()
    assert row_weights(ROBOT, turning(speed), None) is None


def test_coupled_motors_have_reversals_of_their_own():
    robot = load_robot('tx40')
    matrix, effort = axes_of(robot).matrix, axes_of(robot).effort
    speed = np.full((5, robot.n), 1.0)
    speed[:, 5] = -1.0
    speed[2, 4] = 0.5
    samples = Samples(robot.joints, np.arange(5.0), speed, speed, speed)
    least = np.linspace(0.1, 0.3, robot.n)
    slow = (np.abs(speed @ matrix.T) <= np.abs(matrix) @ least).astype(float)
    assert slow.any() and not slow.all()
    expected = (slow @ np.abs(effort) == 0.0).astype(float)
    assert swift(robot, samples, least).tolist() == expected.tolist()


def test_parameters_belong_to_effects_in_order():
    kinds = [type(block) for block in MODEL.blocks]
    assert kinds == [RigidLinks, RotorInertia, JointFriction] or len(set(kinds)) == len(kinds)
    first, names = 0, []
    for block, pivots in zip(MODEL.blocks, MODEL.pivots_by_block, strict=True):
        names += [block.names[i] for i in pivots]
        assert MODEL.base_of(type(block)).tolist() == [
            first <= i < first + len(pivots) for i in range(len(MODEL.reduction.names))]
        first += len(pivots)
    assert tuple(names) == MODEL.reduction.names
    assert set(MODEL.words) == set(MODEL.reduction.standard)
    assert all(name == one.name for name, one in MODEL.words.items())
    assert MODEL.gears == ()


def test_friction_that_holds_is_the_dry_one_of_either_sign():
    names = MODEL.reduction.names
    values = np.where([n.startswith('fc') for n in names], np.linspace(-2.0, 3.0, len(names)), 7.0)
    dry = {name: abs(value) for name, value in zip(names, values, strict=True)}
    assert MODEL.holding(values) == pytest.approx([dry['fc1'], dry['fc2'], dry['fc3']])
    assert MODEL.held.tolist() == [True, True, True]


def test_efforts_are_those_of_the_regressor():
    samples = lively(MODEL, 1500)
    rows = np.random.default_rng(0).normal(size=(2, len(MODEL.reduction.names)))
    columns = MODEL.columns(samples)
    assert MODEL.efforts(samples, rows) == pytest.approx(
        np.einsum('ibt,kb->kti', columns, rows), rel=1e-9, abs=1e-9)
    assert MODEL.effort(samples, rows[1]) == pytest.approx(
        np.einsum('ibt,b->ti', columns, rows[1]), rel=1e-9, abs=1e-9)
    moderate = MODEL.columns(states_at(ROBOT, 1.0))
    assert MODEL.moderate_effort == pytest.approx(np.sqrt(np.mean(moderate**2, axis=2)))


@pytest.mark.parametrize('weighted', [False, True])
def test_equations_are_those_of_the_rows_times_their_weights(weighted):
    samples = lively(MODEL, 700)
    samples = replace(samples, measured=1.5 * samples.effort)
    weights = np.random.default_rng(1).uniform(0.2, 1.0, (700, 3)) if weighted else None
    regression, first = Regression(MODEL, samples), 13
    columns, values = MODEL.columns(samples), 1.1 * truth_of(MODEL)
    for chunk in equations(regression, slice(13, 690), weights):
        rows, unit = chunk.rows, 1.0 if weights is None else weights[chunk.rows]
        assert rows.start == first and rows.stop - rows.start in (MODEL.chunk, 690 - first)
        first = rows.stop
        expected = columns[:, :, rows] * (1.0 if weights is None else unit.T[:, None])
        assert chunk.columns == pytest.approx(expected)
        assert chunk.effort == pytest.approx(samples.effort[rows] * unit)
        assert chunk.measured == pytest.approx(1.5 * samples.effort[rows] * unit)
        assert chunk.residual(values) == pytest.approx(
            (samples.effort[rows] - np.einsum('ibt,b->ti', columns[:, :, rows], values)) * unit,
            abs=1e-9)
        assert (chunk.weights is None) == (weights is None)
    assert first == 690
    for missing in ('effort', 'measured'):
        bare = Regression(MODEL, replace(samples, **{missing: None}))
        with pytest.raises(DataError, match='the samples carry no measured effort'):
            next(equations(bare, slice(0, 5), None))


def test_an_experiment_holds_every_recording_once():
    samples = [lively(MODEL, 300), lively(MODEL, 480)]
    found = Experiment.of(MODEL, samples, SLOW)
    parts = list(by_recording(MODEL, samples, SLOW))
    assert [p.samples for p in parts] == [300, 480] and found.information.samples == 780
    assert [b.samples for b in parts[1].batches] == 24 * [20]
    assert {b.recording for b in found.information.batches} == {1, 3}
    gram, rows = 0.0, found.information.expanded(1)
    for one in samples:
        design, effort = stacked(MODEL, one)
        unit = row_weights(ROBOT, one, SLOW)[:, 1]
        tall = np.column_stack([design[1::3], effort[1::3]]) * unit[:, None]
        gram = gram + tall.T @ tall
    b = len(MODEL.reduction.names)
    tall = rows[:, [*range(b), b + 1]]
    assert tall.T @ tall == pytest.approx(gram, abs=1e-9 * np.abs(gram).max())
    assert found.reversal_weights is SLOW and found.recordings is samples
    empty = found.accumulator()
    assert empty.names == found.information.names and empty.cells is found.information.by_motion
    assert empty.sizes == tuple(b.samples for b in found.information.batches)
    assert empty.batch_samples == empty.sizes[0]
    other = found.accumulator(NAMES, STRUCTURE)
    assert other.names == NAMES and other.structure is STRUCTURE and other.cells is None
    assert found.by_motion.information.batches == found.information.by_motion.batches


def test_parts_of_a_recording_are_one():
    whole = repeated_motion(3, 8.0, 1)
    whole = replace(whole, effort=whole.position, measured=whole.position, began=0.0)
    parts = [Samples(ROBOT.joints, *(values[rows] for values in (
        whole.time, whole.position, whole.velocity, whole.acceleration, whole.effort,
        whole.measured)), began=0.0) for rows in (slice(0, 500), slice(500, 800))]
    (found,) = by_recording(MODEL, parts)
    assert found.samples == 800 and {b.recording for b in found.batches} == {1}
    assert [b.samples for b in found.batches] == 8 * [100]
    assert len(list(by_recording(MODEL, [parts[0], replace(parts[1], began=5.0)]))) == 2


@pytest.mark.parametrize('count', [0, 1, 19])
def test_fewer_samples_than_parameters_are_refused(count):
    assert len(MODEL.reduction.names) == 20
    with pytest.raises(DataError) as caught:
        Experiment.of(MODEL, [lively(MODEL, count)] if count else [])
    assert str(caught.value) == (f'{count} usable samples are too few for 20 base parameters: '
                                 'record a longer motion')
    assert Experiment.of(MODEL, [lively(MODEL, 20)]).information.samples == 20


def test_recordings_that_are_gone_or_cut_are_asked_for():
    found = Experiment.of(MODEL, [lively(MODEL, 300)])
    again = replace(found, recordings=[lively(MODEL, 120)])
    with pytest.raises(DataError) as caught:
        list(again.equations())
    assert str(caught.value) == (
        '120 of 300 samples remain when the recordings are read again: give them as a list, not '
        'as a generator')
    accumulator = Accumulator(found.information.names, found.information.structure, 7)
    for chunk in found.equations(accumulator):
        accumulator.add(chunk.columns, chunk.effort, chunk.measured)
    assert {b.recording for b in accumulator.information().batches} == {1}


def test_batches_of_many_recordings_are_condensed_beyond_256():
    part = Data(127).accumulated(1)
    previous = add_recording(None, part)
    assert previous is part
    previous = add_recording(previous, part)
    assert len(add_recording(previous, Data(2).accumulated(1)).batches) == 256
    assert len(add_recording(previous, Data(3).accumulated(1)).batches) < 200
