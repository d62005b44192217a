"""Changes of pace along a path: exact derivatives, limits kept at every instant."""

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import LIMITS
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import PACE_DERIVATIVES

from robot_dynid.execution.clocks import PathTime
from robot_dynid.execution.pace import (
    Pacing,
    Ramp,
    along_path,
    resume,
    stops_of,
    stretched,
)
from robot_dynid.execution.sampled import faults, sampled, within
from robot_dynid.execution.segment import Segment
from robot_dynid.execution.stopping import slowing
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier

PACING = Pacing()


def brake(points, elapsed, limits=LIMITS):
    """Return the stop along a path."""
    segment = Segment('a', points, limits, stops=stops_of(points, limits, 50.0))
    whole = slowing(replace(segment, stops=None), elapsed, PACING)
    found = slowing(segment, elapsed, PACING)
    assert (whole is None) == (found is None)
    assert found is None or np.array_equal(whole.segment.points.time, found.segment.points.time)
    return found


def path(seed=0, scale=1.0, rate=50.0, limits=LIMITS):
    fourier = random_fourier(
        limits.scaled(scale), FourierOptions(4.0, 4), np.random.default_rng(seed))
    return sampled(fourier, rate, 0.2)


def test_points_are_interpolated_by_quintics_with_their_derivatives():
    points = path()
    time = 0.2 + 0.02 * (np.arange(0, 200, 3) + 0.37)  # at a point the jerk jumps
    motion, step = points.sample(time), 1e-4
    after, before = points.sample(time + step), points.sample(time - step)
    for low, high in (('position', 'velocity'), ('velocity', 'acceleration'),
                      ('acceleration', 'jerk')):
        slope = (getattr(after, low) - getattr(before, low)) / (2.0 * step)
        assert np.allclose(slope, getattr(motion, high), rtol=0.0,
                           atol=PACE_DERIVATIVES * np.abs(slope).max())
    at_points = points.sample(points.time)
    for name in ('position', 'velocity', 'acceleration'):
        assert np.allclose(getattr(at_points, name), getattr(points, name), atol=1e-9)


@pytest.mark.parametrize(('before', 'after'), [(1.0, 0.0), (0.0, 1.0)])
def test_the_chain_rule_holds_up_to_the_jerk(before, after):
    points, ramp, step = path(), Ramp(1.3, 0.8, before, after), 1e-4
    time = np.linspace(0.01, 0.79, 400)
    phase = np.modf((ramp.path_time(time)[0] - 0.2) / 0.02)[0]
    time = time[np.abs(phase - 0.5) < 0.4]  # at a point of the path the jerk jumps
    low, motion, high = (along_path(points, *ramp.path_time(at))
                         for at in (time - step, time, time + step))
    for name, rate in (('position', 'velocity'), ('velocity', 'acceleration'),
                       ('acceleration', 'jerk')):
        slope = (getattr(high, name) - getattr(low, name)) / (2.0 * step)
        assert np.allclose(slope, getattr(motion, rate), rtol=0.0,
                           atol=PACE_DERIVATIVES * np.abs(slope).max())


@settings(max_examples=60)
@given(st.integers(0, 10**6), st.floats(0.0, 4.3), st.sampled_from([0.5, 0.95, 1.0]),
       st.sampled_from([np.nan, 300.0]))
def test_a_stop_and_the_way_on_keep_path_and_limits(seed, elapsed, scale, jerk):
    limits = replace(LIMITS, jerk=np.full(2, jerk))
    points = path(seed, scale, 100.0, limits)
    assert not faults(points, limits, 60.0)
    stop = brake(points, elapsed, limits)
    if stop is None:
        assert scale == 1.0, 'there is room to brake'
        return
    sent = stop.segment.points
    assert PACING.join <= sent.time[0] + 1e-9
    assert sent.duration <= PACING.longest + PACING.join + 2.0 / 50.0 + points.time[0]
    assert within(sent, limits)
    assert not sent.velocity[-1].any() and not sent.acceleration[-1].any()
    assert np.allclose(sent.position[-1], points.sample(stop.rest).position[0], atol=1e-12)
    begin = elapsed + sent.time[0]
    assert np.allclose(sent.position[0], points.sample(begin).position[0], atol=1e-9)
    assert np.allclose(sent.velocity[0], points.sample(begin).velocity[0], atol=1e-9)
    assert stop.segment.reference.time[0] <= 0.0 or elapsed < points.time[0]
    onward = resume(points, stop.rest, limits, PACING)
    if onward is None:
        assert points.duration - stop.rest < 0.02
        return
    onward, full_pace = onward
    assert not faults(onward, limits, 60.0)
    old = points.sample(onward.time[onward.time >= full_pace] + points.duration - onward.duration)
    assert np.allclose(onward.position[onward.time >= full_pace], old.position, atol=1e-9)
    assert np.allclose(onward.position[0], sent.position[-1], atol=1e-12)
    assert np.array_equal(onward.position[-1], points.position[-1])


def test_after_the_way_on_the_old_points_return_to_the_last_digit():
    points = path(3, 0.8)
    stop = brake(points, 1.7, LIMITS)
    onward, _ = resume(points, stop.rest, LIMITS, PACING)
    count = int(np.sum(points.time > stop.rest + 1.0))
    assert count > 50
    for name in ('position', 'velocity', 'acceleration'):
        assert np.array_equal(getattr(onward, name)[-count:], getattr(points, name)[-count:])
    assert np.allclose(np.diff(onward.time[-count:]), np.diff(points.time[-count:]), atol=1e-12)


def test_a_stop_waits_where_the_joints_brake_at_their_limit_already():
    """In the last part of a quintic the acceleration limit is reached by braking."""
    points = path(1, 1.0)
    braking = np.sum(points.velocity * points.acceleration, axis=1)
    worst = float(points.time[np.argmin(braking)]) - PACING.join - 0.01
    tight = replace(LIMITS, acceleration=np.abs(points.acceleration).max(axis=0) * 1.001)
    loose = replace(LIMITS, acceleration=np.full(2, 1e3))
    stop, gentle = (brake(points, worst, limits)
                    for limits in (tight, loose))
    assert gentle is not None and gentle.segment.points.duration < 0.25
    assert stop is None or stop.segment.points.duration > gentle.segment.points.duration


def test_a_stop_before_the_start_and_after_the_end_stays_where_it_is():
    points = path()
    for elapsed, row in ((-0.5, 0), (0.0, 0), (4.2, -1), (9.0, -1)):
        stop = brake(points, elapsed, LIMITS)
        assert np.abs(stop.segment.points.position - points.position[row]).max() < 0.02


def test_a_slow_pass_is_the_same_path_and_keeps_the_limits():
    points = path()
    slow = stretched(points, 0.25)
    assert slow.time[0] == points.time[0]
    assert slow.duration - slow.time[0] == pytest.approx(4.0 * (points.duration - points.time[0]))
    assert not faults(slow, LIMITS.scaled(1.0, 0.26), 60.0)
    assert faults(slow, LIMITS.scaled(1.0, 0.2), 60.0)
    assert np.allclose(slow.sample(0.2 + 4.0).position, points.sample(0.2 + 1.0).position)


def test_a_report_is_taken_to_be_true_when_its_motion_had_come_so_far():
    """Before any, the motion began in the middle between two instants."""
    path = PathTime()
    path.begin(10.0, 12.0)
    assert path.reported_at == 11.0
    path.note(13.0, 2.5, 1.0, None)
    assert (path.reported_at, path.elapsed(13.0)) == (13.0, 2.5)
