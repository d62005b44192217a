"""Instruments (`errors_in_variables.instruments`) and their use (`instrumental`), dense."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from motions import WIDE, noisy, stacked, torque_model

from robot_dynid.document import number
from robot_dynid.estimation import InstrumentalVariables
from robot_dynid.estimation.errors_in_variables.exogeneity import Bias, HausmanTest
from robot_dynid.estimation.errors_in_variables.instrumental import (
    Fit,
    InstrumentDetails,
    reduce_with_instruments,
)
from robot_dynid.estimation.errors_in_variables.instruments import (
    instrument_samples,
    motion_cutoff,
)
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.signals.filters import derivative, zero_phase_low_pass
from robot_dynid.types import Samples

#: borders of the bins of frequency [Hz]
EDGES = np.geomspace(0.01, 1000.0, 401)
MODEL = torque_model('planar_3r')
WEIGHTS = np.array([1.0, 2.0, 5.0])


def moving(velocity, step, starts=(0,), reference=None, position=None):
    """Return samples with this velocity (N, n)."""
    time = step * np.arange(len(velocity))
    for k, start in enumerate(starts[1:], 1):
        time[start:] += 100.0 * k
    position = np.cumsum(velocity, axis=0) * step if position is None else position
    return Samples(('a', 'b'), time, position, velocity, np.zeros_like(velocity), starts=starts,
                   reference_position=reference)


def two_sines(share, step=0.005):
    """Return velocities at 1.1 Hz and, of another joint, at 20.3 Hz with a share of the energy."""
    time = step * np.arange(round(200.0 / step))
    fast = np.sqrt(share / (1.0 - share) * 20.3 / 1.1)
    return np.column_stack([np.sin(2.0 * np.pi * 1.1 * time),
                            fast * np.sin(2.0 * np.pi * 20.3 * time)])


@pytest.mark.parametrize(('share', 'frequency'), [(0.0094, 1.1), (0.0106, 20.3)])
def test_the_cutoff_is_twice_the_frequency_below_which_99_percent_of_the_energy_is(
    share, frequency
):
    expected = 2.0 * EDGES[np.searchsorted(EDGES, frequency)]
    assert motion_cutoff([moving(two_sines(share), 0.005)]) == pytest.approx(expected)


@pytest.mark.parametrize(('count', 'counts'), [(7, False), (8, True)])
def test_stretches_of_fewer_than_eight_samples_have_no_frequency(count, counts):
    slow = two_sines(1e-9)
    wild = 1e4 * np.column_stack([(-1.0) ** np.arange(count)] * 2)
    samples = moving(np.vstack([slow, wild]), 0.005, (0, len(slow)))
    assert (motion_cutoff([samples]) > 50.0) == counts
    assert motion_cutoff([moving(slow, 0.005), moving(two_sines(0.5), 0.005)]) == pytest.approx(
        2.0 * EDGES[np.searchsorted(EDGES, 20.3)])


@pytest.mark.parametrize(('cutoff', 'used'), [(3.0, 3.0), (80.0, 80.0), (95.0, 90.0)])
def test_instruments_are_the_motion_smoothed_part_by_part(cutoff, used):
    rng = np.random.default_rng(0)
    velocity, position = rng.normal(size=(2, 500, 2))
    samples = moving(velocity, 0.005, (0, 300), position=position)
    found = instrument_samples(samples, cutoff)
    for rows in (slice(0, 300), slice(300, 500)):
        smooth = zero_phase_low_pass(velocity[rows], used, 0.005)
        assert found.velocity[rows] == pytest.approx(smooth)
        assert found.position[rows] == pytest.approx(
            zero_phase_low_pass(position[rows], used, 0.005))
        assert found.acceleration[rows] == pytest.approx(derivative(smooth, 0.005))


def test_instruments_follow_the_reference_as_the_drives_do():
    time = 0.005 * np.arange(500)
    reference = np.column_stack([np.sin(3.0 * time), np.cos(5.0 * time) + 0.2 * time])
    rate = derivative(reference, 0.005)
    position = (reference + np.array([0.02, -0.01]) - 0.013 * rate
                + np.array([4e-4, -3e-4]) * derivative(rate, 0.005))
    samples = moving(rate, 0.005, reference=reference, position=position)
    found = instrument_samples(samples, 2.0)
    assert found.position == pytest.approx(position, abs=1e-9)
    assert found.velocity == pytest.approx(derivative(position, 0.005), abs=1e-6)
    assert found.acceleration == pytest.approx(
        derivative(derivative(position, 0.005), 0.005), abs=1e-4)


@pytest.fixture(scope='module')
def experiment():
    return noisy(MODEL, 0, 1e-4, seconds=6.0)


def faded(experiment, cutoff):
    """Return batches (rows, 2 b + 1) of [Z, A, y] that rise over one stretch and fade in another.
    """
    (samples,) = experiment.recordings
    design, effort = stacked(MODEL, samples)
    instruments, _ = stacked(MODEL, instrument_samples(samples, cutoff))
    rows = np.column_stack([instruments, design, effort]) * np.tile(WEIGHTS, len(samples))[:, None]
    rows = rows.reshape(len(samples), 3, -1)
    sizes = [batch.samples for batch in experiment.information.batches]
    ends = np.cumsum([0, *sizes])
    up, down = [], []
    for first, size in zip(ends[:-1], sizes, strict=True):
        share = (np.arange(size) + 0.5) / size
        part = rows[first:first + size]
        up.append((part * np.sqrt(share)[:, None, None]).reshape(3 * size, -1))
        down.append((part * np.sqrt(1.0 - share)[:, None, None]).reshape(3 * size, -1))
    pairs = [np.vstack(pair) for pair in zip(up[:-1], down[1:], strict=True)]
    return [down[0], *pairs, up[-1]], [0, *sizes]


def test_stretches_of_instruments_fade_over_each_other(experiment):
    doubled, referenced = reduce_with_instruments(experiment, 1.5)
    blocks, sizes = faded(experiment, 1.5)
    assert not referenced and [b.samples for b in doubled.batches] == sizes
    names = experiment.information.names
    assert doubled.names == (*(f'instrument {name}' for name in names), *names)
    count = 2 * len(names)
    for block, batch in zip(blocks, doubled.batches, strict=True):
        rows = np.vstack([w * doubled.expanded(j, batch) for j, w in enumerate(WEIGHTS)])
        rows = rows[:, [*range(count), count + 1]]
        expected = block.T @ block
        assert rows.T @ rows == pytest.approx(expected, abs=1e-8 * np.abs(expected).max())


@pytest.mark.parametrize('cutoff', [1.5, 0.16, 0.38])
def test_strength_of_instruments_is_that_of_the_dense_directions(experiment, cutoff):
    """Of the slow ones some directions have an F just above and just below ten."""
    fit = Fit.of(reduce_with_instruments(experiment, cutoff)[0], WEIGHTS)
    blocks, _ = faded(experiment, cutoff)
    tall, b = np.vstack(blocks), len(experiment.information.names)
    z, a = np.linalg.qr(tall[:, :b])[0], np.linalg.qr(tall[:, b:-1])[0]
    u, correlations, vt = np.linalg.svd(z.T @ a)
    assert fit.correlations == pytest.approx(correlations, rel=1e-6)
    shown, rest = z @ u, a @ vt.T - correlations * (z @ u)
    ends = np.cumsum([0, *map(len, blocks)])
    spread = [1.5 * np.sum(shown[m:n] * rest[m:n], axis=0) ** 2
              for m, n in pairwise(ends)]
    expected = np.minimum(correlations**2 / np.sum(spread, axis=0), 1e8)
    assert np.minimum(fit.f, 1e8) == pytest.approx(expected, rel=1e-3)
    assert fit.strong.tolist() == (fit.f > 10.0).tolist()
    share = np.sum(fit.basis[:, ~fit.strong]**2, axis=1) / np.sum(fit.basis**2, axis=1)
    assert fit.left == np.flatnonzero(share > 0.5).tolist()
    if cutoff < 1.0:
        assert np.min(np.abs(fit.f - 10.0)) < 0.3
    plain = np.linalg.lstsq(tall[:, b:-1], tall[:, -1], rcond=None)[0]
    assert fit.least_squares.values == pytest.approx(plain, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(('share', 'is_noisy'), [(0.69, False), (0.71, True)])
def test_instruments_near_the_cutoff_of_the_fit_are_noisy(experiment, share, is_noisy):
    estimate = InstrumentalVariables(share * WIDE).fit(experiment)
    assert estimate.details.noisy is is_noisy
    source = f'the motion below {share * WIDE:.3g} Hz'
    assert estimate.details.instruments == source
    told = (f'instruments from {source} contain most of the noise below the cut-off of 50 Hz: '
            'the result is close to least squares. Record the reference of the drives as '
            'reference_position, or give a lower instrument_cutoff')
    assert (told in estimate.warnings) == is_noisy


def test_instruments_and_the_bias_of_least_squares_are_told():
    details = InstrumentDetails(
        'the recorded reference', 0.8765, 123.4, ('x',),
        HausmanTest(6.247, (2, 19), 0.00821, True), (
            Bias('a', 0.6, 0.2), Bias('b', -0.62, 0.2), Bias('c', 0.5, 0.0)))
    begins = (f'instruments from the recorded reference; least correlation with the regressor '
              f'{number(0.8765)}, first-stage F {number(123.4)}; Durbin-Wu-Hausman F(2, 19) = '
              f'{number(6.247)}, p = 0.0082: least squares ')
    assert details.sentence(()) == f'{begins}is biased'
    clean = replace(details, durbin_wu_hausman=HausmanTest(6.247, (2, 19), 0.00821, False))
    assert clean.sentence(()) == f'{begins}shows no bias' and details.noisy is False
    table, = details.tables(())
    assert table.title == 'What least squares is off'
    assert table.columns == ('parameter', 'least squares − instruments', 'std', 'in deviations')
    assert [(row.cells, row.mark) for row in table.rows] == [
        (('a', number(0.6), number(0.2, 2), '+3.0'), ''),
        (('b', number(-0.62), number(0.2, 2), '-3.1'), 'fair'),
        (('c', number(0.5), number(0.0, 2), '+0.0'), '')]


def test_instruments_have_the_weights_of_reversals():
    slow = np.array([0.3, 1.0, 0.5])
    whole = noisy(MODEL, 0, 1e-4, seconds=6.0)
    recordings = list(whole.recordings)
    weighted = Experiment.of(MODEL, recordings, slow)
    doubled, _ = reduce_with_instruments(weighted, WIDE)
    b = len(weighted.information.names)
    for joint in range(3):
        rows, plain = doubled.expanded(joint), weighted.information.expanded(joint)
        gram = rows.T @ rows
        expected = plain.T @ plain
        assert gram[b:2 * b, b:2 * b] == pytest.approx(
            expected[:b, :b], abs=1e-9 * expected.max())
        # the same motion but for noise above the cut-off
        assert np.diag(gram)[:b] == pytest.approx(np.diag(expected)[:b], rel=0.3)
