"""Folds of distinct motion: what passes the same states is in one fold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_dynid.signals.held_out_motion import BLOCK, FOLDS, HeldOutMotion
from robot_dynid.types import Samples

RATE = 100.0


def folds_of(recordings):
    held_out = HeldOutMotion()
    for samples in recordings:
        held_out.add(samples)
    return held_out.folds()


def motion(seed, period, periods, joints=3, begins=0.0, noise=0.0):
    """Return samples of a random motion that repeats, and begins some seconds into its period."""
    random = np.random.default_rng(seed)
    time = np.arange(0.0, period * periods, 1.0 / RATE)
    phase = 2.0 * np.pi / period * (time[:, None] + begins)
    position, velocity = np.zeros((2, len(time), joints))
    for k in range(1, 5):
        a, b = random.normal(size=(2, joints)) / k
        position += a * np.sin(k * phase) + b * np.cos(k * phase)
        velocity += k * (a * np.cos(k * phase) - b * np.sin(k * phase)) * 2.0 * np.pi / period
    position += noise * np.random.default_rng(seed + 1).normal(size=position.shape)
    names = tuple(f'joint_{j + 1}' for j in range(joints))
    return Samples(names, time, position, velocity, np.zeros_like(position))


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(3.0, 20.0), st.integers(2, 4), st.integers(2, 7))
def test_periods_share_their_folds(seed, period, periods, joints):
    samples = motion(seed, period, periods, joints, noise=1e-3)
    fold = folds_of([samples]).at(0, samples.time)
    length = round(period * RATE)
    first = fold[:length]
    for k in range(1, periods):
        later = fold[k * length:(k + 1) * length]
        borders = 2.0 * BLOCK * RATE * FOLDS
        assert np.count_nonzero(first[:len(later)] != later) <= borders
    assert np.all(np.bincount(first, minlength=FOLDS) > 0.5 * length / FOLDS)


def test_a_motion_recorded_again_is_in_the_folds_of_the_first_wherever_it_begins():
    once, again, other = motion(3, 8.0, 1), motion(3, 8.0, 1.5, begins=3.3), motion(4, 8.0, 1)
    folds = folds_of([once, again, other])
    expected = np.interp((again.time + 3.3) % 8.0, once.time, folds.at(0, once.time))
    assert np.mean(folds.at(1, again.time) == expected) > 0.85
    assert not set(folds.at(2, other.time)) & set(folds.at(0, once.time)[:300])


def test_distinct_motion_is_cut_in_order_of_time_whatever_the_recordings_are():
    recordings = [motion(seed, 4.0, 1) for seed in range(7)]
    folds = folds_of(recordings)
    order = np.concatenate([folds.at(i, one.time) for i, one in enumerate(recordings)])
    assert np.all(np.diff(order) >= 0) and np.all(np.bincount(order) > 0.9 * len(order) / FOLDS)


def test_rest_belongs_to_what_was_before_it():
    samples = motion(1, 8.0, 1)
    still = np.repeat(samples.position[400:401], 500, axis=0)
    position = np.concatenate([samples.position[:400], still, samples.position[400:]])
    velocity = np.concatenate([samples.velocity[:400], 0.0 * still, samples.velocity[400:]])
    time = np.arange(len(position)) / RATE
    fold = folds_of([Samples(samples.joints, time, position, velocity, velocity)]).at(0, time)
    assert len(np.unique(fold[410:890])) == 1


@pytest.mark.parametrize('still', [True, False])
def test_short_or_still_recordings_have_folds_in_time(still):
    samples = motion(2, 1.0, 1)
    if still:
        samples = Samples(samples.joints, samples.time, 0.0 * samples.position,
                          0.0 * samples.velocity, 0.0 * samples.position)
    fold = folds_of([samples]).at(0, samples.time)
    assert len(set(fold)) == FOLDS


def test_the_share_of_a_recording_that_repeats_those_before_it_is_told():
    once, again, other = motion(3, 8.0, 1), motion(3, 8.0, 1.5, begins=3.3), motion(4, 8.0, 1)
    held_out = HeldOutMotion()
    for samples in (once, again, other):
        held_out.add(samples)
    first, second, third = held_out.repeated()
    assert first == third == 0.0 and second > 0.85
