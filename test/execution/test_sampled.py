"""The points that are sent: what is checked in them, at and between the points."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_dynid.execution.sampled import (
    SampledTrajectory,
    control_points,
    faults,
    sampled,
)
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import MotionLimits

JOINTS = ('shoulder', 'elbow')
LEAD_IN = 0.2
LIMITS = MotionLimits(JOINTS, *(np.full(2, v) for v in (-2.0, 2.0, 2.0, 8.0, np.nan, 100.0)))


def good():
    fourier = random_fourier(LIMITS.scaled(0.9), FourierOptions(3.0, 3), np.random.default_rng(0))
    return sampled(fourier, 100.0, LEAD_IN)


BREAK = {
    'nan': lambda p: p['position'].__setitem__((7, 1), np.nan),
    'infinity': lambda p: p['velocity'].__setitem__((7, 1), np.inf),
    'acceleration': lambda p: p['acceleration'].__setitem__((7, 1), -np.inf),
    'time': lambda p: p['time'].__setitem__(5, p['time'][4]),
    'negative time': lambda p: p.update(time=p['time'] - 1.0),
    'end': lambda p: p['velocity'].__setitem__((-1, 0), 1e-6),
    'duplicate': lambda p: p.update(joints=('shoulder', 'shoulder')),
    'unknown': lambda p: p.update(joints=('shoulder', 'wrist')),
    'order': lambda p: p.update(joints=JOINTS[::-1]),
    'outside': lambda p: p.update(position=p['position'] + 3.0),
    # Every point is fine by itself here.
    'between': lambda p: p['position'].__setitem__(slice(21, None), p['position'][21:] + 0.03),
    'long': lambda p: p.update(time=p['time'] * 1000.0),
}


def broken(name):
    parts = {key: value.copy() if hasattr(value, 'copy') else value
             for key, value in vars(good()).items()}
    BREAK[name](parts)
    return SampledTrajectory(**parts)


@pytest.mark.parametrize(('name', 'words'), [
    ('nan', "position of joint 'elbow' is not finite at point 7"),
    ('infinity', "velocity of joint 'elbow' is not finite"),
    ('acceleration', "acceleration of joint 'elbow' is not finite"),
    ('time', 'are not at 0.24 s'),
    ('negative time', 'must be positive'),
    ('end', "velocity of joint 'shoulder' is 1e-06 at the end"),
    ('duplicate', "'shoulder' occurs twice"),
    ('unknown', "'wrist' is unknown"),
    ('order', 'must come in the order shoulder, elbow'),
    ('outside', "position of joint 'shoulder' reaches"),
    ('between', "velocity of joint 'shoulder' reaches"),
    ('long', '(limit 600 s)'),
])
def test_bad_points_are_found(name, words):
    points = broken(name)
    assert any(words in fault for fault in faults(points, LIMITS, 600.0))


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(0.002, 0.2), st.integers(2, 8))
def test_control_points_bound_the_interpolation(seed, period, count):
    """Against the interpolating polynomial itself, evaluated by numpy on a fine grid."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((3, count, 2))
    points = SampledTrajectory(JOINTS, period * np.arange(count), *values)
    time, bounds = control_points(points)
    s = np.linspace(0.0, 1.0, 41)
    for k in range(count - 1):
        h = period
        matrix = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0],
                           [1, h, h**2, h**3, h**4, h**5],
                           [0, 1, 2 * h, 3 * h**2, 4 * h**3, 5 * h**4],
                           [0, 0, 2, 6 * h, 12 * h**2, 20 * h**3]])
        ends = np.concatenate([values[:, k], values[:, k + 1]])
        rows = (time >= k * period - 1e-12) & (time < (k + 1) * period - 1e-12)
        assert np.count_nonzero(rows) == 10
        curve = np.polynomial.Polynomial(np.linalg.solve(matrix, ends)[:, 0])
        for name in ('position', 'velocity', 'acceleration', 'jerk'):
            low, high = (b[rows, 0] for b in bounds[name])
            seen = curve(s * h)
            room = 1e-6 * (1.0 + np.abs(seen).max())
            assert low.min() <= seen.min() + room and high.max() >= seen.max() - room
            assert high.max() - seen.max() <= 0.2 * np.ptp(seen) + room, 'bound is not tight'
            curve = curve.deriv()


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.floats(5.0, 30.0))
def test_a_design_that_uses_all_of_the_limits_passes_the_check(seed, harmonics, duration):
    fourier = random_fourier(
        LIMITS, FourierOptions(duration, harmonics), np.random.default_rng(seed))
    points = sampled(fourier, 100.0, LEAD_IN)
    assert faults(points, LIMITS, 600.0) == ()
    assert np.all(points.velocity[[0, -1]] == 0.0)
