"""execution/clocks.py, pace.py: clocks, changes of pace and lists of stops, in closed form."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from robot_dynid.execution.clocks import Attention, PathTime, StampClock
from robot_dynid.execution.pace import Entry, Ramp, Stops


@pytest.mark.parametrize(('gap', 'lost'), [(0.0199, 0.0), (0.0201, 0.0201), (0.7, 0.7)])
def test_a_delay_of_two_looks_of_10_ms_counts(gap: float, lost: float) -> None:
    attention = Attention()
    assert attention.look(5.0) == 0.0
    assert attention.look(5.0 + gap) == approx(lost)
    excused = lost - 0.01 if lost else 0.0
    assert attention.age(4.9, 5.0 + gap) == approx(0.1 + gap - excused)


@pytest.mark.parametrize(('later', 'age'), [(0.49, 0.11 + 0.49), (0.51, 2.1 + 0.51)])
def test_a_delay_is_excused_for_half_a_second(later: float, age: float) -> None:
    attention = Attention()
    for now in (1.0, 3.0):
        attention.look(now)
    assert attention.age(0.9, 3.0 + later) == approx(age)


def test_several_delays_are_excused_as_far_as_they_lie_within_an_age() -> None:
    attention = Attention()
    for now in (1.0, 1.31, 1.32, 1.73):
        attention.look(now)
    assert attention.age(0.8, 1.75) == approx(0.95 - 0.3 - 0.4)
    assert attention.age(1.2, 1.75) == approx(0.55 - 0.11 - 0.4), 'part of the first delay'
    assert attention.age(1.31, 1.75) == approx(0.44 - 0.4)


def test_a_stamp_follows_a_drift_of_a_millisecond_per_second_and_no_setback() -> None:
    clock = StampClock()
    assert clock.time(100.0, 7.0) == approx(100.0)
    assert clock.time(110.0, 16.0) == approx(16.0 + 93.01), 'the least delay grows by the drift'
    assert clock.time(109.0, 16.5) == approx(16.5 + 92.5), 'a shorter delay is the least'
    assert clock.time(109.5, 16.41) == approx(16.41 + 92.5005), '0.09 s back: out of order'
    assert clock.time(110.0, 16.3) == approx(110.0), '0.11 s back: the clock was set'
    assert clock.time(108.0, 16.6) == approx(108.0)
    assert clock.time(110.0, 17.0) == approx(17.0 + 91.402)


def test_a_stamp_of_zero_is_none_and_one_of_half_a_second_is_one() -> None:
    clock = StampClock()
    assert clock.time(100.5, 0.5) == approx(100.5)
    assert clock.time(101.0, 0.9) == approx(0.9 + 100.0005)
    assert clock.time(102.0, 0.0) == 102.0
    assert clock.time(102.1, 1.9) == approx(1.9 + 100.0016), 'what has no stamp changes nothing'


def located(pace: float = 1.0, time: float = 2.5, scaling: float | None = None) -> PathTime:
    """Return a motion that began between 10 and 12 s and was reported at 13 s."""
    path = PathTime()
    path.begin(10.0, 12.0)
    path.note(13.0, time, pace, scaling)
    return path


def test_path_time_before_a_report_is_counted_from_the_middle() -> None:
    path = PathTime()
    path.begin(10.0, 12.0)
    assert (path.elapsed(13.5), path.lead, path.located, path.settled) == (2.5, 1.0, False, True)
    path.expect(0.25)
    assert (path.elapsed(13.0), path.scaling, path.lost(13.0)) == (0.5, 0.25, 1.5)
    path.begin(20.0, 20.0)
    assert (path.pace, path.elapsed(22.0)) == (0.25, 0.5), 'the scaling stays'


def test_path_time_after_a_scaled_report() -> None:
    path = located(scaling=0.5)
    assert (path.pace, path.scaling, path.slowest, path.settled) == (0.5, 0.5, 0.5, False)
    assert (path.elapsed(15.0), path.reported_at, path.lead) == (3.5, 13.0, 0.5)
    assert (path.lost(13.0), path.lost(15.0), path.lost(12.0)) == (0.0, 1.0, 0.0)
    path.expect(0.9)
    assert path.pace == 0.5, 'what is reported is not expected'
    path.note(15.0, 3.5, 1.0, 0.54)
    assert (path.settled, path.lead, path.slowest) == (True, 0.5, 0.5)
    assert path.lost(16.0) == approx(1.0 + 0.46)
    path.restart(16.0)
    assert path.lost(17.0) == approx(0.46)


def test_a_rate_counts_beside_the_scaling_and_may_be_zero() -> None:
    path = located(0.8, scaling=0.5)
    assert (path.pace, path.scaling) == (approx(0.4), approx(0.5))
    still = located(0.0, scaling=0.0)
    assert (still.pace, still.scaling, still.slowest) == (0.0, 0.0, 0.0)
    assert still.elapsed(99.0) == 2.5


@pytest.mark.parametrize(('scaling', 'pace'), [(0.9991, 1.0), (1.0009, 1.0), (1.0011, 1.0011),
                                               (0.9989, 0.9989)])
def test_a_reported_pace_is_full_within_a_thousandth(scaling: float, pace: float) -> None:
    assert located(scaling=scaling).pace == approx(pace, abs=1e-12)


@pytest.mark.parametrize(('time', 'pace'), [(4.46, 1.0), (4.39, 0.945), (4.61, 1.055), (2.0, 0.0)])
def test_a_measured_pace_is_full_within_a_twentieth(time: float, pace: float) -> None:
    path = located()
    path.note(15.0, time, 1.0, None)
    assert path.pace == approx(pace, abs=1e-12) and path.elapsed(15.0) == approx(time)


def test_at_full_pace_the_earliest_report_counts() -> None:
    path = located(scaling=1.0)
    path.note(15.0, 4.3, 1.0, 1.0)
    assert path.elapsed(15.0) == approx(4.5), 'this one was late'
    path.note(16.0, 5.75, 1.0, 1.0)
    assert path.elapsed(16.0) == approx(5.75)


def test_a_ramp_is_a_cubic_of_the_pace() -> None:
    ramp = Ramp(1.0, 2.0, 0.25, 0.75)
    assert ramp.end == approx(1.0 + 2.0 * 0.5)
    found = [float(value[0]) for value in ramp.path_time(np.array([0.5]))]
    assert found == approx([1.0 + 2.0 * (0.25 * 0.25 + 0.5 * 0.25**3 * 0.875),
                            0.25 + 0.5 * (3.0 * 0.0625 - 2.0 * 0.015625),
                            0.5 * 6.0 * 0.25 * 0.75 / 2.0, 0.5 * 6.0 * 0.5 / 4.0])


def test_an_entry_waits_accelerates_and_follows_the_path() -> None:
    entry = Entry(3.0, 0.5, 0.2, 0.4)
    assert (entry.ramp.begin, entry.ramp.end) == (approx(3.1), approx(3.4))
    assert entry.delay == approx(0.2)
    assert entry.along(2.9) == (approx(2.95), 0.5)
    assert entry.along(3.2) == (approx(3.1), 0.5)
    assert entry.along(3.4) == (approx(3.1 + 0.4 * (0.25 + 0.5 * 0.125 * 0.75)), approx(0.75))
    assert entry.along(3.6) == (approx(3.4), 1.0)
    assert entry.along(4.0) == (approx(3.8), 1.0)


STOPS = Stops(np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.25, 0.75]))


@pytest.mark.parametrize(('time', 'latest', 'earliest'), [
    (0.9, (1.0, 0.5), (1.0, 0.5)), (1.5, (1.0, 0.5), (2.0, 0.25)), (2.24, (1.0, 0.5), (4.0, 0.75)),
    (2.25, (2.0, 0.25), (4.0, 0.75)), (4.0, (2.0, 0.25), (4.0, 0.75)), (9.0, (4.0, 0.75), None)])
def test_the_stops_around_an_instant(
    time: float, latest: tuple[float, float], earliest: tuple[float, float] | None
) -> None:
    assert (STOPS.latest(time), STOPS.earliest(time)) == (latest, earliest)


def test_the_lookahead_covers_the_longest_way_from_stop_to_stop() -> None:
    assert STOPS.shortest_lookahead == approx((4.75 - 2.0) / 0.6)
    assert Stops(np.array([2.0]), np.array([0.5])).shortest_lookahead == approx(2.5)


def test_stops_of_the_rest_of_a_path_come_after_those_of_its_beginning() -> None:
    """A stop that begins before another and ends after it is of no use."""
    found = STOPS.onward(0.5, Stops(np.array([0.25, 0.5]), np.array([0.125, 1.75])), 1.5)
    assert found.begin.tolist() == [0.25, 1.5, 3.5]
    assert found.duration.tolist() == [0.125, 0.25, 0.75]
    assert STOPS.onward(0.5, Stops(np.array([0.25]), np.array([0.125])), 1.6).begin.tolist() == [
        0.25, 3.5]
