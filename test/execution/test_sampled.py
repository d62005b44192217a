"""The points that are sent: what is checked in them, at and between the points."""

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_dynid.execution.sampled import (
    SampledTrajectory,
    control_points,
    faults,
    sample_motion,
    sampled,
    within,
)
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion

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
    'negative time': lambda p: p.update(time=p['time'] - 0.205),
    'end': lambda p: p['velocity'].__setitem__((-1, 0), 1e-6),
    'duplicate': lambda p: p.update(joints=('shoulder', 'shoulder')),
    'unknown': lambda p: p.update(joints=('shoulder', 'wrist')),
    'order': lambda p: p.update(joints=JOINTS[::-1]),
    'none': lambda p: p.update({name: p[name][:0] for name in (
        'time', 'position', 'velocity', 'acceleration')}),
    # Every point is fine by itself here.
    'between': lambda p: p['position'].__setitem__(slice(21, None), p['position'][21:] + 0.03),
    'long': lambda p: p.update(time=p['time'] * 1000.0),
}


def broken(name):
    parts = {key: value.copy() if hasattr(value, 'copy') else value
             for key, value in vars(good()).items()}
    BREAK[name](parts)
    return SampledTrajectory(**parts)


@pytest.mark.parametrize(('name', 'sentences'), [
    ('nan', ["position of joint 'elbow' is not finite at point 7"]),
    ('infinity', ["velocity of joint 'elbow' is not finite at point 7"]),
    ('acceleration', ["acceleration of joint 'elbow' is not finite at point 7"]),
    ('none', ['times are missing or not finite']),
    ('time', ['times must be positive and increasing; they are not at 0.24 s']),
    ('negative time', ['times must be positive and increasing; they are not at -0.005 s']),
    ('end', ["velocity of joint 'shoulder' is 1e-06 at the end, it must be 0"]),
    ('duplicate', ["joint 'shoulder' occurs twice"] * 2 + [
        "joint 'elbow' is missing in the trajectory"]),
    ('unknown', ["joint 'wrist' is unknown; the robot has shoulder, elbow",
                 "joint 'elbow' is missing in the trajectory"]),
    ('order', ['joints must come in the order shoulder, elbow']),
    ('long', ['the motion takes 3200 s (limit 600 s)']),
])
def test_bad_points_are_found(name, sentences):
    assert faults(broken(name), LIMITS, 600.0) == tuple(sentences)


@pytest.mark.parametrize('side', [1.0, -1.0])
def test_the_farthest_position_outside_its_limits_is_told(side):
    """It is in the last tenth of an interval of 2.5 s."""
    speed = np.array([[0.0, side], [0.0, side]])
    points = SampledTrajectory(JOINTS, np.array([0.0, 2.5]), speed * [[0.0], [2.5]], speed,
                               0.0 * speed)
    assert (f"position of joint 'elbow' reaches {2.5 * side:g} at 2.25 s, its limit is "
            f'{2.0 * side:g}') in faults(points, LIMITS, 600.0)
    assert not within(points, LIMITS)


@pytest.mark.parametrize(('begin', 'end', 'low', 'high'), [
    (1.2, 2.3, 1.0, 3.0), (-1.0, -0.5, 0.0, 0.0), (0.5, 0.6, 0.0, 1.0), (3.5, 9.0, 3.0, 4.0),
    (8.0, 9.0, 4.0, 4.0), (1.2, 2.0, 1.0, 2.0)])
def test_a_span_of_time_has_the_positions_of_the_points_around_it(begin, end, low, high):
    column = np.arange(5.0)
    values = np.stack([column, -column], axis=1)
    points = SampledTrajectory(JOINTS, column, values, values, values)
    smallest, largest = points.span(begin, end)
    assert (smallest.tolist(), largest.tolist()) == ([low, -high], [high, -low])


def test_a_motion_longer_by_less_than_a_point_is_too_long():
    assert faults(good(), LIMITS, 3.199) == ('the motion takes 3.2 s (limit 3.199 s)',)
    assert faults(good(), LIMITS, 3.2) == ()


def test_a_step_between_points_is_found_in_its_speed():
    assert any(fault.startswith("velocity of joint 'shoulder' reaches")
               for fault in faults(broken('between'), LIMITS, 600.0))


@pytest.mark.parametrize(('speed', 'shown', 'sent'), [(0.9e-8, 0, 0.0), (1e-8, 0, 1e-8),
                                                      (1.1e-8, 4, 1.1e-8)])
def test_speeds_of_1e_8_at_the_ends_are_rest(speed, shown, sent):
    values = np.full((3, 2), speed)
    points = SampledTrajectory(JOINTS, np.arange(3.0), np.zeros((3, 2)), values, -values)
    assert len(faults(points, LIMITS, 600.0)) == shown
    found = sample_motion(JOINTS, lambda time: Motion(*(x.copy() for x in 4 * [values])), 1.0, 2.0,
                          0.5)
    for rows in (found.velocity, found.acceleration):
        assert rows.tolist() == [[sent] * 2, [speed] * 2, [sent] * 2]
    assert found.time.tolist() == [0.5, 1.0, 1.5]


def test_a_motion_of_no_duration_has_two_points():
    found = sample_motion(JOINTS, lambda time: Motion(*(np.zeros((len(time), 2)),) * 4), 0.0, 50.0,
                          0.1)
    assert found.time.tolist() == [0.1, 0.1]


@pytest.mark.parametrize(('period', 'values'), [
    *((period, np.random.default_rng(0).standard_normal((3, 4, 2))) for period in (0.002, 0.2)),
    (1.0, np.array([4 * [[0.0, 0.0]], 4 * [[0.0, 0.0]], 4 * [[1.0, 1.0]]])
     * [[[1], [-1]] * 2] - 4.0 * (np.arange(3) == 0)[:, None, None] * [[[0], [1]] * 2])])
def test_bounds_are_the_control_points_of_the_interpolation_on_tenths_of_intervals(period, values):
    """Bernstein coefficients b_i = sum over k of C(i, k) / C(m, k) a_k of a polynomial a(u)."""
    time = period * np.array([0.5, 1.5, 2.0, 3.5])
    begins, bounds = control_points(SampledTrajectory(JOINTS, time, *values))
    assert len(begins) == 30
    for k, h in enumerate(np.diff(time)):
        matrix = np.array([[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [0, 0, 2, 0, 0, 0],
                           [1, h, h**2, h**3, h**4, h**5],
                           [0, 1, 2 * h, 3 * h**2, 4 * h**3, 5 * h**4],
                           [0, 0, 2, 6 * h, 12 * h**2, 20 * h**3]])
        ends = np.concatenate([values[:, k], values[:, k + 1]])
        curve = np.polynomial.Polynomial(np.linalg.solve(matrix, ends)[:, 0])
        for m, (low, high) in zip((5, 4, 3, 2), bounds.values(), strict=True):
            expected = []
            for part in range(10):
                row = curve(np.polynomial.Polynomial([0.1 * part * h, 0.1 * h])).coef
                points = [sum(comb(i, j) / comb(m, j) * row[j] for j in range(i + 1))
                          for i in range(m + 1)]
                expected.append((min(points), max(points)))
            rows = slice(10 * k, 10 * k + 10)
            found = np.stack([low[rows, 0], high[rows, 0]], axis=1)
            np.testing.assert_allclose(found, expected, rtol=1e-6,
                                       atol=1e-9 * np.abs(expected).max())
            np.testing.assert_allclose(begins[rows], time[k] + 0.1 * h * np.arange(10), rtol=1e-12)
            curve = curve.deriv()


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1), st.integers(2, 8), st.floats(5.0, 30.0))
def test_a_design_that_uses_all_of_the_limits_passes_the_check(seed, harmonics, duration):
    fourier = random_fourier(
        LIMITS, FourierOptions(duration, harmonics), np.random.default_rng(seed))
    points = sampled(fourier, 100.0, LEAD_IN)
    assert faults(points, LIMITS, 600.0) == ()
    assert np.all(points.velocity[[0, -1]] == 0.0)
