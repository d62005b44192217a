"""trajectories/single_joint.py, fourier.py, bspline.py, trajectory.py: motions and their bounds in
closed form, ranges of their parameters."""

from __future__ import annotations

from itertools import pairwise
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Polynomial
from scipy.interpolate import BSpline, PPoly

from robot_dynid.errors import UsageError
from robot_dynid.trajectories.bspline import BSplineOptions, BSplineTrajectory
from robot_dynid.trajectories.composite import build, describe
from robot_dynid.trajectories.fourier import FourierOptions, FourierTrajectory
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.single_joint import SineSwing, Sweep, fastest, shortest_ramp
from robot_dynid.trajectories.trajectory import Motion, QuinticMove
from robot_dynid.types import FloatArray

JOINTS = ('a', 'b')
HOME, AWAY = np.array([0.3, -0.2]), np.array([1.1, -0.9])
#: from 0 to 1 with three derivatives, of which two vanish at both ends
BLEND = Polynomial([0.0, 0.0, 0.0, 10.0, -15.0, 6.0])
ACCELERATION_PEAK = 10.0 / np.sqrt(3.0)  # of the blend
ORDERS = ('position', 'velocity', 'acceleration', 'jerk')


def orders(motion: Motion, joint: int) -> list[FloatArray]:
    return [getattr(motion, name)[:, joint] for name in ORDERS]


def test_a_quintic_move_is_the_blend_of_its_ends() -> None:
    time = np.array([0.0, 0.3, 1.1, 1.9, 2.5])
    motion = QuinticMove(JOINTS, HOME, AWAY, 2.5).sample(time)
    for joint, step in enumerate(AWAY - HOME):
        for k, found in enumerate(orders(motion, joint)):
            expected = step * BLEND.deriv(k)(time / 2.5) / 2.5**k if k else (
                HOME[joint] + step * BLEND(time / 2.5))
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_sweep_is_the_integral_of_a_speed_that_blends() -> None:
    """From 0 to v over 0.8 s, 0.4 s at v, back to 0; then the same way back."""
    speed, ramp, plateau = 0.4, 0.8, 0.4
    sweep = Sweep(JOINTS, 'b', HOME, speed, ramp, plateau)
    time = np.array([0.1, 0.2, 0.65, 0.9, 1.1, 1.3, 1.7])
    rise = (speed * ramp * BLEND.integ())(time / ramp)
    fall = 2.0 * ramp + plateau - time
    there = np.select([time < ramp, fall > ramp], [rise, speed * (0.5 * ramp + time - ramp)],
                      0.48 - (speed * ramp * BLEND.integ())(fall / ramp))
    for begin, side in ((0.0, 1.0), (2.0, -1.0)):
        position, velocity, acceleration, jerk = orders(sweep.sample(begin + time), 1)
        np.testing.assert_allclose(position, HOME[1] + side * (there - 0.24), rtol=1e-12)
        for k, found in ((0, velocity), (1, acceleration), (2, jerk)):
            way = np.select([time < ramp, fall > ramp], [time, ramp], fall) / ramp
            sign = np.where(fall < ramp, -1.0, 1.0) ** k * side * speed / ramp**k
            np.testing.assert_allclose(found, sign * BLEND.deriv(k)(way) if k else sign * BLEND(
                way), rtol=1e-9, atol=1e-9)
    peaks = sweep.peaks()
    np.testing.assert_allclose([peaks.lower[1], peaks.upper[1]], HOME[1] + [-0.24, 0.24])
    assert [peaks.velocity[1], peaks.acceleration[1], peaks.jerk[1]] == pytest.approx(
        [speed, 15.0 / 8.0 * speed / ramp, ACCELERATION_PEAK * speed / ramp**2])
    assert (sweep.duration, sweep.travel) == pytest.approx((4.0, 0.48))


def test_a_swing_is_a_sine_that_rises_and_falls_over_a_period() -> None:
    swing = SineSwing(JOINTS, 'b', HOME, 0.4, 0.5, 1)
    turns = np.array([0.1, 0.35, 0.8, 1.2, 1.4, 1.9, 2.15, 2.6, 2.9])
    envelope = np.select([turns < 1.0, turns > 2.0], [BLEND(turns), BLEND(3.0 - turns)], 1.0)
    found = orders(swing.sample(turns / 0.5), 1)
    np.testing.assert_allclose(found[0] - HOME[1], 0.4 * envelope * np.sin(2.0 * np.pi * turns),
                               rtol=1e-9, atol=1e-12)
    assert swing.duration == 6.0
    assert SineSwing(JOINTS, 'b', HOME, 0.4, 0.5).periods == 3
    steady = (turns > 1.0) & (turns < 2.0)
    for k in (1, 2, 3):
        np.testing.assert_allclose(
            found[k][steady], 0.4 * np.pi**k * np.sin(2.0 * np.pi * turns + 0.5 * np.pi * k)[
                steady], rtol=1e-9, atol=1e-9)


def test_bounds_of_a_swing_add_what_lies_between_2048_instants_of_a_period() -> None:
    """Half a step times a bound of the next derivative, the sum of products of peaks."""
    peaks = SineSwing(JOINTS, 'b', HOME, 0.5, 1.0).peaks()
    motion = SineSwing(JOINTS, 'b', HOME, 0.5, 1.0).sample(np.linspace(0.0, 2.0, 4097))
    blend = [1.0, 15.0 / 8.0, ACCELERATION_PEAK, 60.0, 360.0]
    for k, name in enumerate(ORDERS[1:], start=1):
        bound = sum(comb(k + 1, i) * blend[i] * (2.0 * np.pi) ** (k + 1 - i) for i in range(k + 2))
        expected = np.abs(getattr(motion, name)[:, 1]).max() + 0.5 * 0.5 / 2048.0 * bound
        assert getattr(peaks, name)[1] == pytest.approx(expected, rel=1e-9), name
    assert (peaks.lower[1], peaks.upper[1]) == pytest.approx((-0.7, 0.3))


def limits(velocity: float = 1e6, acceleration: float = 1e6, jerk: float = np.nan) -> MotionLimits:
    """Return limits of the second joint; the first one has small ones."""
    return MotionLimits(JOINTS, *(np.array([1e-3, value]) for value in (
        0.0, 9.0, velocity, acceleration, jerk, np.nan)))


@pytest.mark.parametrize(('limit', 'name'), [
    ({'velocity': 2.0}, 'velocity'), ({'acceleration': 3.0}, 'acceleration'),
    ({'jerk': 7.0}, 'jerk')])
def test_the_fastest_swing_leaves_a_thousandth_of_its_first_limit(
    limit: dict[str, float], name: str
) -> None:
    peaks = SineSwing(JOINTS, 'b', HOME, 0.4, fastest(limits(**limit), 1, 0.4)).peaks()
    assert getattr(peaks, name)[1] == pytest.approx(0.999 * limit[name], rel=1e-9)


@pytest.mark.parametrize(('limit', 'seconds'), [
    ({'acceleration': 2.0}, 1.001 * 15.0 / 8.0 * 0.8 / 2.0),
    ({'jerk': 4.0}, 1.001 * np.sqrt(ACCELERATION_PEAK * 0.8 / 4.0)), ({}, 0.2)])
def test_the_shortest_ramp_is_a_thousandth_longer_than_its_limit_asks(
    limit: dict[str, float], seconds: float
) -> None:
    assert shortest_ramp(limits(**limit), 1, 0.8) == pytest.approx(seconds, rel=1e-9)


def test_a_series_is_the_sum_of_its_harmonics_and_bounded_on_256_instants_of_each() -> None:
    """Between M instants a polynomial of degree N is larger by at most 1 / cos(pi N / M)."""
    sine, cosine = np.random.default_rng(0).normal(size=(2, 2, 3))
    series = FourierTrajectory(JOINTS, 0.25, HOME, sine, cosine, periods=2)
    time, k = np.array([0.0, 0.7, 1.9, 3.3, 5.1, 8.0]), np.arange(1.0, 4.0)

    def expected(time: FloatArray, joint: int, order: int) -> FloatArray:
        phase = np.outer(time, 0.5 * np.pi * k) + 0.5 * np.pi * order
        return ((0.5 * np.pi * k) ** order * (
            sine[joint] * np.sin(phase) + cosine[joint] * np.cos(phase))).sum(axis=1)

    motion, peaks = series.sample(time), series.peaks()
    instants, factor = 4.0 * np.arange(768) / 768.0, 1.0 / np.cos(np.pi / 256.0)
    for joint in range(2):
        found = orders(motion, joint)
        found[0] = found[0] - HOME[joint]
        for order, name in enumerate(ORDERS):
            np.testing.assert_allclose(found[order], expected(time, joint, order), rtol=1e-9,
                                       atol=1e-9)
            largest = np.abs(expected(instants, joint, order)).max()
            assert not order or getattr(peaks, name)[joint] == pytest.approx(
                factor * largest, rel=1e-12)
        path = HOME[joint] + expected(instants, joint, 0)
        middle, half = 0.5 * (path.min() + path.max()), 0.5 * np.ptp(path) * factor
        assert (peaks.lower[joint], peaks.upper[joint]) == pytest.approx(
            (middle - half, middle + half), rel=1e-12)
    assert series.duration == 8.0
    assert FourierTrajectory(JOINTS, 0.25, HOME, sine, cosine).periods == 1


def test_a_spline_has_uniform_knots_and_ends_repeated_four_times() -> None:
    """Its bounds are control points of 16 Bezier pieces between two knots."""
    points, duration = np.random.default_rng(1).normal(size=(2, 4)), 3.0
    spline = BSplineTrajectory(JOINTS, duration, points)
    knots = np.r_[np.zeros(5), np.linspace(0.0, 1.0, 6), np.ones(5)]
    time = np.array([0.0, 0.2, 0.7, 1.6, 2.3, 2.9, 3.0])
    motion, peaks = spline.sample(time), spline.peaks()
    for joint, row in enumerate(points):
        curve = BSpline(knots, np.r_[[row[0]] * 3, row, [row[-1]] * 3], 5)
        for k, (name, found) in enumerate(zip(ORDERS, orders(motion, joint), strict=True)):
            derivative = curve.derivative(k) if k else curve
            np.testing.assert_allclose(found, derivative(time / duration) / duration**k,
                                       rtol=1e-9, atol=1e-9)
            control = bezier(derivative)
            if k:
                assert getattr(peaks, name)[joint] == pytest.approx(
                    np.abs(control).max() / duration**k, rel=1e-8), name
            else:
                assert (peaks.lower[joint], peaks.upper[joint]) == pytest.approx(
                    (control.min(), control.max()), rel=1e-8)


def bezier(curve: BSpline) -> FloatArray:
    """Return control points of 16 pieces of every interval of a curve over [0, 1]."""
    pieces, m, edges = PPoly.from_spline(curve), int(curve.k), np.linspace(0.0, 1.0, 81)
    rows = []
    for begin, end in pairwise(edges):
        i = int(np.searchsorted(pieces.x, 0.5 * (begin + end))) - 1
        local = Polynomial(pieces.c[::-1, i])(Polynomial([begin - pieces.x[i], end - begin]))
        a = np.pad(local.coef, (0, m + 1 - len(local.coef)))
        rows.append([sum(comb(i, j) / comb(m, j) * a[j] for j in range(i + 1))
                     for i in range(m + 1)])
    return np.array(rows)


def test_series_of_20_s_have_five_harmonics_and_splines_15_knots_unless_told() -> None:
    assert FourierOptions() == FourierOptions(duration=20.0, harmonics=5, periods=1)
    assert BSplineOptions() == BSplineOptions(duration=20.0, knots=15)


@pytest.mark.parametrize(('kind', 'name', 'allowed', 'refused'), [
    (FourierOptions, 'harmonics', 2, 1), (FourierOptions, 'harmonics', 100, 101),
    (FourierOptions, 'periods', 1, 0), (FourierOptions, 'periods', 10_000, 10_001),
    (BSplineOptions, 'knots', 2, 1), (BSplineOptions, 'knots', 200, 201)])
def test_numbers_of_a_design_are_in_their_range(
    kind: Any, name: str, allowed: int, refused: int
) -> None:
    kind(**{name: allowed})
    with pytest.raises(UsageError, match=f"option '{name}' must be"):
        kind(**{name: refused})


@pytest.mark.parametrize(('name', 'allowed', 'refused'), [
    ('periods', 1, 0), ('periods', 10_000, 10_001), ('amplitude', 1e-9, 0.9e-9),
    ('amplitude', 1e6, 1.1e6)])
def test_numbers_of_a_swing_are_in_their_range(
    name: str, allowed: float, refused: float
) -> None:
    plain = describe(SineSwing(JOINTS, 'b', HOME, 0.4, 0.5, 2))
    assert describe(build({**plain, name: allowed}))[name] == allowed
    with pytest.raises(UsageError, match=f"'{name}' must be"):
        build({**plain, name: refused})


@pytest.mark.parametrize(('change', 'message'), [
    ({'start': np.zeros(3)}, r'start of a motion of 2 joints has shape \(3,\), expected \(n\)'),
    ({'start': np.zeros((2, 2))}, r'start of a motion of 2 joints has shape \(2, 2\), expected'),
    ({'duration': 0.0}, 'duration of a motion must be positive, got 0.0'),
    ({'duration': np.inf}, 'duration of a motion must be positive, got inf')])
def test_moves_of_wrong_shape_or_duration_are_refused(
    change: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        QuinticMove(**{'joints': JOINTS, 'start': HOME, 'goal': AWAY, 'duration': 1.0, **change})
    short = QuinticMove(JOINTS, HOME, AWAY, 1e-3)
    assert describe(build(describe(short))) == describe(short)
