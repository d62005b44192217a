"""Samples in closed form: rows left out, efforts at other instants, ends of recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import FILTER_PERIODS, RESTING, Preprocessing, prepare, repair
from robot_dynid.types import FloatArray, RawLog, Samples, concatenate


def ramps(time: FloatArray) -> FloatArray:
    """Return signals (N, 2) that are linear in time, after 5 s with another slope."""
    slope = np.where(time < 5.0, 1.0, -3.0)
    return np.stack([2.0 * slope * time, 5.0 - slope * time], axis=1)


def samples(time: FloatArray, starts: tuple[int, ...], later: float = 0.0) -> Samples:
    """Return motion at ``time`` whose effort was measured ``later`` [s]."""
    own = time + later
    return Samples(('a', 'b'), time, ramps(time), ramps(time), ramps(time), ramps(own),
                   ramps(own), starts, stamps=own)


def test_efforts_come_to_the_time_of_the_motion_in_every_segment() -> None:
    time = np.concatenate([0.01 * np.arange(20), 7.0 + 0.01 * np.arange(30)])
    found = samples(time, (0, 20), later=0.003).gridded
    assert found.stamps is None and found.effort is not None and found.measured is not None
    np.testing.assert_allclose(found.effort, ramps(time), rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found.measured, ramps(time), rtol=0.0, atol=1e-12)
    assert found.starts == (0, 20)


def test_a_single_row_left_out_ends_a_segment() -> None:
    whole = samples(0.01 * np.arange(30), (0, 12))
    kept = np.ones(30, dtype=bool)
    kept[[5, 20, 21]] = False
    found = whole.inner(kept)
    assert found.starts == (0, 5, 11, 19)
    np.testing.assert_array_equal(found.time, whole.time[kept])
    past = found.with_past(lambda known: np.cumsum(known.position, axis=0))
    np.testing.assert_array_equal(past, np.cumsum(whole.position, axis=0)[kept])


@pytest.mark.parametrize('rests_first', [True, False])
def test_more_is_left_out_at_the_end_that_is_cut_off_in_motion(rests_first: bool) -> None:
    """At rest nothing is unknown outside of the recording."""
    robot, cutoff, seconds = load_robot('planar_3r'), 5.0, 10.0
    time = np.arange(0.0, seconds, 0.01)
    turn = np.maximum(time - 4.0 if rests_first else seconds - 4.0 - time, 0.0)
    motion = np.tile(0.3 * (1.0 - np.cos(1.5 * turn))[:, None], 3)
    log = RawLog('run', robot.joints, time, motion, effort=1.0 + motion)
    found = prepare(robot, repair(robot, log), Preprocessing(
        cutoff, decimate=False, trim_rest=False))
    lost = [found.time[0] - time[0], time[-1] - found.time[-1]]
    expected = [RESTING / cutoff, FILTER_PERIODS / cutoff]
    np.testing.assert_allclose(lost, expected if rests_first else expected[::-1],
                               rtol=0.0, atol=0.0101)


def test_the_noise_of_several_recordings_counts_by_their_length() -> None:
    short, long = (replace(samples(0.01 * np.arange(count), (0,)), noise=noise)
                   for count, noise in ((10, (1.0, 4.0)), (30, (2.0, 0.0))))
    assert concatenate([short, long]).noise == pytest.approx((np.sqrt(3.25), 2.0))
    assert concatenate([short, replace(long, noise=None)]).noise is None
