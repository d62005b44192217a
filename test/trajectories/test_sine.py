"""trajectories/single_joint.py: the swing of one joint: exact derivatives, rest at both ends,
peaks that bound it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import DIFFERENCE

from robot_dynid.errors import UsageError
from robot_dynid.trajectories.composite import build, describe
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.single_joint import SineSwing, fastest
from robot_dynid.types import frozen

JOINTS = ('a', 'b', 'c')


def swing(amplitude=0.4, frequency=0.7, periods=2):
    """Return a swing of joint b."""
    return SineSwing(JOINTS, 'b', frozen([0.1, -0.2, 0.3]), amplitude, frequency, periods)


def box(**values):
    """Return limits of all joints."""
    full = {'lower': -2.0, 'upper': 2.0, 'velocity': 2.0, 'acceleration': 5.0, 'jerk': np.nan,
            'effort': np.nan, **values}
    return MotionLimits(JOINTS, **{name: frozen(np.full(3, v)) for name, v in full.items()})


def test_only_one_joint_moves_and_it_starts_and_ends_at_rest():
    motion = swing().sample(np.linspace(-1.0, swing().duration + 1.0, 1001))
    for name in ('velocity', 'acceleration', 'jerk'):
        assert not np.any(getattr(motion, name)[:, [0, 2]])
    ends = swing().sample([0.0, swing().duration])
    assert np.allclose(ends.position, swing().position)
    assert np.allclose(ends.velocity, 0.0) and np.allclose(ends.acceleration, 0.0)


def test_derivatives_are_those_of_the_position():
    time, h = np.linspace(0.1, swing().duration - 0.1, 200), 1e-5
    low, here, high = (swing().sample(time + d) for d in (-h, 0.0, h))
    for name, derivative in (('position', 'velocity'), ('velocity', 'acceleration'),
                             ('acceleration', 'jerk')):
        difference = (getattr(high, name) - getattr(low, name)) / (2.0 * h)
        scale = np.abs(getattr(here, derivative)).max()
        assert difference == pytest.approx(getattr(here, derivative), abs=10 * DIFFERENCE * scale)


def test_in_between_it_is_the_plain_sine_of_full_amplitude():
    motion = swing().sample(np.linspace(1.0 / 0.7, 3.0 / 0.7, 5001))
    assert np.abs(motion.position[:, 1] + 0.2).max() == pytest.approx(0.4, rel=1e-6)
    assert np.abs(motion.velocity[:, 1]).max() == pytest.approx(0.4 * 2 * np.pi * 0.7, rel=1e-6)


@settings(max_examples=30)
@given(st.floats(0.01, 3.0), st.floats(0.05, 3.0), st.integers(1, 5))
def test_peaks_bound_the_motion_and_are_nearly_reached(amplitude, frequency, periods):
    one = swing(amplitude, frequency, periods)
    motion = one.sample(np.linspace(0.0, one.duration, 20_001))
    peaks = one.peaks()
    for name in ('velocity', 'acceleration', 'jerk'):
        reached = np.abs(getattr(motion, name)).max(axis=0)
        assert np.all(reached <= getattr(peaks, name))
        assert reached[1] > 0.98 * getattr(peaks, name)[1]
    assert np.all(motion.position >= peaks.lower) and np.all(motion.position <= peaks.upper)


@pytest.mark.parametrize(('limit', 'name'), [
    ({'acceleration': 100.0}, 'velocity'), ({'velocity': 100.0}, 'acceleration'),
    ({'velocity': 100.0, 'acceleration': 100.0, 'jerk': 1.0}, 'jerk')])
def test_the_fastest_swing_just_keeps_its_first_limit(limit, name):
    limits = box(**limit)
    peaks = swing(0.5, fastest(limits, 1, 0.5)).peaks()
    assert 0.99 < getattr(peaks, name)[1] / getattr(limits, name)[1] < 1.0
    for other in ('velocity', 'acceleration'):
        assert getattr(peaks, other)[1] <= getattr(limits, other)[1]


def test_sine_swing_round_trips_through_describe_and_build():
    again = build(describe(swing()))
    time = np.linspace(0.0, swing().duration, 50)
    assert np.array_equal(again.sample(time).position, swing().sample(time).position)


@pytest.mark.parametrize(('change', 'message'), [
    ({'moving': 'x'}, "joint 'x' is not among a, b, c"), ({'amplitude': 0.0}, 'positive, is 0'),
    ({'frequency': -1.0}, 'positive, is -1'), ({'position': [0.0]}, 'position'),
    ({'periods': 0}, 'at least 1')])
def test_wrong_swings_are_refused(change, message):
    with pytest.raises(UsageError, match=message):
        build({**describe(swing()), **change})
