"""Changes of pace along a path: exact derivatives, limits kept at every instant."""

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import JOINTS, LIMITS
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import PACE_DERIVATIVES

from robot_dynid.execution.clocks import PathTime
from robot_dynid.execution.pace import (
    Entry,
    Pacing,
    Ramp,
    along_path,
    at_pace,
    decelerated,
    path_part,
    ramp_rows,
    resume,
    stops_of,
    stretched,
)
from robot_dynid.execution.sampled import SampledTrajectory, faults, sampled, within
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


def line(time, speed=1.0, bend=0.0):
    """Return points of a path in which the first joint accelerates by ``bend`` from ``speed``."""
    time = np.asarray(time, dtype=np.float64)
    rows = (speed * time + 0.5 * bend * time**2, speed + bend * time, bend + 0.0 * time)
    return SampledTrajectory(JOINTS, time, *(np.stack([row, 0.0 * row], axis=1) for row in rows))


def braking_limit(acceleration):
    """Return limits of a path in which nothing but the acceleration counts."""
    return replace(LIMITS, lower=np.full(2, -1e3), upper=np.full(2, 1e3),
                   velocity=np.full(2, 1e3), acceleration=np.full(2, acceleration))


@pytest.mark.parametrize(('begin', 'end', 'times'), [
    (0.5, 1.5, [0.0, 1.0, 1.5]), (1.0, 2.0, [1.0, 2.0]), (-1.0, 0.25, [0.0, 0.25]),
    (2.5, 3.0, [2.0, 3.0]), (0.9, 1.0 - 1e-10, [0.0, 1.0 - 1e-10])])
def test_a_part_of_a_path_begins_at_a_point_and_ends_where_it_is_told(begin, end, times):
    part = path_part(line(np.arange(4.0)), begin, end)
    assert part.time.tolist() == times
    np.testing.assert_allclose(part.position[:, 0], times, rtol=1e-9)
    assert np.all(part.velocity[:, 0] == 1.0)


@pytest.mark.parametrize(('at', 'pace', 'span', 'expected'), [
    (2.0, 0.5, (0.4, 0.3), np.linspace(1.6, 2.3, 8)), (2.0, 1.0, (0.4, 0.3), [1.0, 2.0, 2.3]),
    (0.1, 0.5, (0.4, 0.3), np.linspace(0.0, 0.4, 7))])
def test_a_path_at_a_pace_has_path_time_at_one_instant(at, pace, span, expected):
    """Of a ramp of less than 0.6 s there are seven points."""
    found = at_pace(line(np.arange(4.0)), at, pace, span, 10.0)
    np.testing.assert_allclose(found.time, expected, atol=1e-12, rtol=1e-12)
    np.testing.assert_allclose(found.position[:, 0], at + pace * (np.array(expected) - at),
                               atol=1e-12, rtol=1e-12)


@pytest.mark.parametrize(('duration', 'count'), [(0.06, 7), (0.11, 7), (0.13, 8), (1.0, 51)])
def test_a_ramp_has_50_points_per_second_but_six_intervals(duration, count):
    rows = ramp_rows(line([0.0, 9.0]), Ramp(1.0, duration, 1.0, 0.0), 50.0, 3.0)
    np.testing.assert_allclose(rows.time, np.linspace(3.0, 3.0 + duration, count), rtol=1e-12)


@pytest.mark.parametrize(('near', 'times'), [(3.4008, [3.7, 4.2]), (3.4012, [3.6012, 3.7, 4.2])])
def test_an_entry_goes_over_into_the_rest_of_the_path(near, times):
    """It is 0.2 s late; a point within a millisecond of its end is merged with it."""
    entry = Entry(3.0, 0.5, 0.2, 0.4)
    found = entry.into(line(np.arange(5.0)), line([3.0, near, 3.5, 4.0]), 50.0)
    assert found.time[0] == pytest.approx(2.8) and found.position[0, 0] == pytest.approx(2.9)
    end = int(np.argmin(np.abs(found.time - 3.6)))
    np.testing.assert_allclose(found.time[end:], [3.6, *times], rtol=1e-12)
    np.testing.assert_allclose(found.position[end:, 0], found.time[end:] - 0.2, rtol=1e-12)
    np.testing.assert_allclose(found.position[:end, 0],
                               [entry.along(at)[0] for at in found.time[:end]], rtol=1e-12)


@pytest.mark.parametrize(('times', 'limit', 'seconds'), [
    ([0.0, 0.019, 0.5, 1.0], 1e3, 1.0), ([0.0, 0.021, 0.5, 1.0], 1e3, 0.042),
    ([0.0, 5.0, 30.0], 1e3, 10.0), ([0.0, 5.001, 30.0], 1e3, None),
    *((0.1 * np.arange(60), 1.5 / (0.2 * points), 0.2 * (1 + after))
      for points, after in ((0.9, 0), (1.1, 1), (4.9, 4), (5.1, 6), (6.9, 6), (7.1, 8), (9.1, 11),
                            (12.1, 14), (15.1, 18))),
    (0.1 * np.arange(9), 1.5 / 1.59, 1.6), (0.1 * np.arange(9), 1.5 / 1.61, None)])
def test_a_resumed_motion_has_full_pace_at_a_point_within_five_seconds(times, limit, seconds):
    """From rest to speed 1 in T s takes 1.5 / T; points farther off are tried ever more seldom."""
    found = resume(line(times), 0.0, braking_limit(limit), PACING)
    assert (found is None) is (seconds is None)
    if found is not None:
        way, full_pace = found
        assert full_pace == pytest.approx(0.2 + seconds), 'after the lead-in'
        np.testing.assert_allclose(way.time[way.time > full_pace] - 0.2 - 0.5 * seconds,
                                   [at for at in times if at > 0.5 * seconds + 1e-9])


def test_no_motion_is_resumed_at_its_end():
    assert resume(line([0.0, 1.0, 2.0]), 2.0, LIMITS, PACING) is None


@pytest.mark.parametrize(('speed', 'bend', 'limit'), [
    (1.0, 0.0, 4.0), (-0.7, 1.5, 6.0), (0.2, 1.0, 6.0), (1e-3, 0.0, 6.0)])
def test_a_deceleration_is_the_shortest_in_steps_of_a_tenth(speed, bend, limit):
    """v(u) = v (1 - 3 u^2 + 2 u^3) + a T (u - 2 u^2 + u^3) over 1.5 v / limit, at least 0.05 s."""
    points = line(np.arange(0.0, 4.0, 0.02), speed, bend)
    found = decelerated(points, 1.5, braking_limit(limit), PACING)
    begin, length = found.time[-2], found.duration - found.time[-2]
    assert begin == pytest.approx(1.6) and 0.48 < found.time[0] <= 0.5
    (position, end), velocity = found.position[-2:, 0], found.velocity[-2, 0]
    assert velocity == pytest.approx(speed + 1.6 * bend)
    first = max(0.05, 1.5 * abs(velocity) / limit)
    steps = np.log(length / first) / np.log(1.1)
    assert steps == pytest.approx(round(steps), abs=1e-9)
    u = np.linspace(0.0, 1.0, 101)

    def peak(seconds):
        return np.abs(velocity * (6.0 * u**2 - 6.0 * u) / seconds
                      + bend * (1.0 - 4.0 * u + 3.0 * u**2)).max()

    assert peak(length) <= limit * 1.0001
    assert length == pytest.approx(first) or peak(length / 1.1) > limit * 0.999
    assert end - position == pytest.approx(length * velocity / 2.0 + length**2 * bend / 12.0)
    assert not found.velocity[-1].any() and not found.acceleration[-1].any()


@pytest.mark.parametrize(('elapsed', 'limit', 'possible'), [
    (1.5, 1.5 / 0.9, True), (1.5, 1.5 / 1.001, False), (3.88, 1e2, True), (3.9, 1e2, False),
    (0.1, 1e2, False), (0.11, 1e2, True)])
def test_a_deceleration_takes_at_most_a_second_and_begins_within_the_motion(
        elapsed, limit, possible):
    """The motion is from 0.2 s to 4 s; the controller has 0.1 s to switch."""
    points = line(np.linspace(0.2, 4.0, 191))
    found = decelerated(points, elapsed, braking_limit(limit), PACING)
    assert (found is not None) is possible


@pytest.mark.parametrize('k', range(19))
def test_the_shortest_of_the_documented_durations_of_a_stop_is_taken(k):
    """A stop from speed 1 in T s takes 1.5 / T."""
    durations = (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.85, 1.0, 1.25,
                 1.5, 2.0, 3.0, 5.0)
    limits = braking_limit(1.5 / (0.99 * durations[k]))
    stops = stops_of(line(np.arange(0.0, 9.0, 0.5)), limits, 50.0, 1.0, 1.1)
    assert set(stops.duration) == {durations[k]}


def test_stops_begin_every_20th_of_a_second_or_at_a_point_within_half_of_that():
    """One at 0.25 s would end with the path, which is the later stop."""
    points = line([0.0, 0.06, 0.13, 0.16, 0.3])
    stops = stops_of(points, braking_limit(1e3), 50.0)
    np.testing.assert_allclose(stops.begin, [0.0, 0.06, 0.1, 0.13, 0.2, 0.3], atol=1e-12,
                               rtol=1e-12)
    np.testing.assert_allclose(stops.duration, [0.05] * 5 + [0.0], rtol=1e-12)
    some = stops_of(points, braking_limit(1e3), 50.0, 0.06, 0.2)
    np.testing.assert_allclose(some.begin, [0.06, 0.1, 0.13, 0.2], rtol=1e-12)
    only = stops_of(points, braking_limit(1.0), 50.0)
    assert (only.begin.tolist(), only.duration.tolist()) == ([0.3], [0.0]), 'the end of the path'


def test_pace_settings_are_those_of_a_joint_trajectory_controller_at_50_hz():
    assert Pacing() == Pacing(rate=50.0, join=0.1, lead_in=0.2, longest=1.0, lookahead=1.0)
