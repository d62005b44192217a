"""signals/averaging.py: periods and repetitions of motions in closed form."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.errors import DataError, UsageError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.averaging import (
    Periodic,
    Stretch,
    average,
    extent_text,
    find_period,
    longest_repetition,
    on_grid,
    repeatability,
    shortest_period,
)
from robot_dynid.signals.prepare import Preprocessing, prepare
from robot_dynid.types import FloatArray, RawLog, Samples, take

STEP = 0.02
#: first stamp of the samples [s]
BEGIN = 7.0
JOINTS = ('a', 'b')


def positions(time: FloatArray, period: float = 4.0) -> FloatArray:
    """Return two joints with three and five waves in a period, of other sizes."""
    turn = 2.0 * np.pi * time / period
    return np.stack([np.sin(turn) + 0.3 * np.cos(3.0 * turn),
                     0.1 * np.cos(turn) - 0.05 * np.sin(5.0 * turn)], axis=1)


def samples_of(position: FloatArray, **tables: FloatArray) -> Samples:
    """Return samples with a low-pass of 5 Hz."""
    still = np.zeros_like(position)
    time = BEGIN + STEP * np.arange(len(position))
    return Samples(JOINTS, time, position, still, still, cutoff=5.0, **tables)


@pytest.mark.parametrize(('periods', 'repeats'), [
    (1.1, False), (1.11, True), (1.9, True), (2.5, True), (0.9, False)])
def test_a_motion_repeats_after_its_period_with_a_tenth_of_overlap(
    periods: float, repeats: bool
) -> None:
    time = STEP * np.arange(round(periods * 200))
    found = samples_of(positions(time))
    assert find_period(found) == (200 if repeats else 0)
    assert find_period(replace(found, starts=(0, 50))) == 0
    assert find_period(samples_of(positions(time, 1.0)[:99])) == 0, 'two seconds at least'
    assert find_period(samples_of(positions(time)[:9])) == 0
    short = samples_of(positions(STEP * np.arange(120), 2.0))
    assert find_period(short) == 100
    assert find_period(samples_of(positions(STEP * np.arange(120), 1.98))) == 0
    states = np.resize([[2.0, 3.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 1.0]], (10, 2))
    coarse = replace(short.part(slice(0, 10)), time=0.5 * np.arange(10.0), position=states)
    assert find_period(coarse) == 4 and find_period(coarse.part(slice(0, 9))) == 0


@pytest.mark.parametrize(('share', 'found'), [(0.19, 0), (0.21, 600)])
def test_both_ends_have_a_fifth_of_the_mean_power_to_repeat(share: float, found: int) -> None:
    """Four seconds, again after another motion of eight."""
    end = np.sin(1e-3 * np.arange(200)**2)
    end -= end.mean()
    other = np.cos(0.05 * np.arange(400) + 2e-4 * np.arange(400)**2)
    other -= other.mean()
    size = np.sqrt(share * (other @ other) / (end @ end * (4.0 - 2.0 * share)))
    one = np.concatenate([size * end, other, size * end])
    assert find_period(samples_of(np.column_stack([one, -3.0 * one]))) == found


def test_what_differs_by_a_thousandth_of_the_variance_is_the_same_motion() -> None:
    time = STEP * np.arange(400)
    for size, same in ((0.9, True), (1.1, False)):
        other = positions(time)
        # scaled by the deviation of each joint; differs by the same in both
        other[200:] += size * np.sqrt(1e-3) * other.std(axis=0) * (-1.0)**np.arange(200)[:, None]
        assert (find_period(samples_of(other)) == 200) is same
    rest = np.concatenate([np.zeros((300, 2)), positions(time)[:200], np.zeros((300, 2))])
    assert find_period(samples_of(rest)) == 0, 'rest at both ends is no repetition'


def test_repeatability_is_that_of_the_robot_without_noise_that_passes() -> None:
    """Of 5 Hz at 50 Hz a fifth of white noise passes the filter."""
    position = positions(STEP * np.arange(400))
    half = np.repeat([0.0, 1.0], 200)[:, None]
    effort = position + half * [0.6, 0.0]
    rough = half * [0.2, 0.2] * (-1.0)**np.arange(400)[:, None]
    found = repeatability(samples_of(position, effort=effort, measured=effort + rough))
    assert found is not None
    noise = 0.2 / np.sqrt(2.0 * 0.8)
    np.testing.assert_allclose(found[1], noise)
    np.testing.assert_allclose(found[0], [np.sqrt(0.18 - 0.2 * noise**2), 0.0],
                               rtol=0.0, atol=1e-7)
    assert repeatability(samples_of(position)) is None
    assert repeatability(samples_of(position[:190], effort=effort[:190],
                                    measured=effort[:190])) is None
    slow = replace(samples_of(position, effort=effort, measured=effort + rough), cutoff=None)
    plain = repeatability(slow)
    assert plain is not None
    np.testing.assert_allclose(plain[1], 0.2 / np.sqrt(2.0))
    fast = repeatability(replace(slow, cutoff=20.0))  # no more than half of it passes
    assert fast is not None
    np.testing.assert_allclose(fast[1], 0.2)


def log_of(before: float, periods: float, after: float, period: float = 4.0) -> RawLog:
    """Return a way to the motion, its periods, and rest at the end."""
    time = STEP * np.arange(round((before + periods * period + after) / STEP) + 1)
    held = np.clip(time - before, 0.0, periods * period)
    way = 0.4 * np.maximum(before - time, 0.0)[:, None]
    return RawLog('run', JOINTS, BEGIN + time, positions(held, period) + way)


def test_the_longest_repetition_of_a_period_shorter_than_the_step_is_the_whole_motion() -> None:
    found = longest_repetition(log_of(0.0, 2.0, 0.0), 0.3 * STEP)
    assert found is not None and found.start == BEGIN
    assert found.length == pytest.approx(8.0, abs=STEP)


def test_the_longest_repetition_begins_and_ends_with_the_motion() -> None:
    found = longest_repetition(log_of(3.0, 2.5, 0.0), 4.0)
    assert found is not None and found.period == 4.0
    assert found.start == pytest.approx(BEGIN + 3.0, abs=0.1)
    assert found.length == pytest.approx(10.0, abs=0.1)
    assert found.periods == pytest.approx(found.length / 4.0 + 1.5 / 400)
    assert longest_repetition(log_of(0.0, 2.5, 0.0), 3.0) is None
    assert longest_repetition(log_of(0.0, 2.5, 0.0), 10.5) is None
    still = RawLog('run', JOINTS, STEP * np.arange(900), np.zeros((900, 2)))
    assert longest_repetition(still, 4.0) is None and shortest_period(still) is None


@pytest.mark.parametrize(('pause', 'length'), [(0.48, 11.52), (0.52, 20.0)])
def test_what_a_pause_of_half_a_second_hides_counts_as_repeated(
    pause: float, length: float
) -> None:
    """A shorter one is interpolated, which is another motion."""
    log = log_of(0.0, 5.0, 0.0)
    hidden = (log.time > BEGIN + 8.0) & (log.time < BEGIN + 8.0 + pause - 0.5 * STEP)
    found = longest_repetition(take(log, ~hidden), 4.0)
    assert found is not None and found.length == pytest.approx(length, abs=0.1)


@pytest.mark.parametrize(('rows', 'period'), [(1520, 4.0), (1545, 15.0)])
def test_a_period_is_preferred_to_longer_ones_from_six_tenths_of_what_they_repeat(
    rows: int, period: float
) -> None:
    """Three waves of 4 s, and a smaller one of 3 s; all of it twice, or a little more."""
    time = STEP * np.arange(rows)
    phase = np.minimum(time % 15.0, 12.0) / 4.0 + np.maximum(time % 15.0 - 12.0, 0.0) / 3.0
    wave = np.sin(2.0 * np.pi * phase) * np.where(time % 15.0 < 12.0, 1.0, 0.3)
    found = shortest_period(RawLog('run', ('a',), time, wave[:, None]))
    assert found is not None and found.period == pytest.approx(period, abs=0.01)


def test_periods_are_counted_in_words() -> None:
    assert extent_text(Stretch(4.0, 0.0, 8.0)) == '2 periods'
    assert extent_text(Stretch(4.0, 0.0, 9.5)) == '2.38 periods'
    assert extent_text(None) == 'less than a period'


@pytest.mark.parametrize(('period', 'periods', 'found'), [
    (4.0, 5.0, True), (2.1, 3.0, True), (4.0, 2.02, True), (4.0, 1.9, False)])
def test_the_shortest_period_is_found_and_not_a_multiple(
    period: float, periods: float, found: bool
) -> None:
    """At least twice, of two seconds or more."""
    stretch = shortest_period(log_of(2.0, periods, 1.0, period))
    assert (stretch is not None) is found
    if stretch is not None:
        assert stretch.period == pytest.approx(period, rel=1e-3)
        assert int(stretch.periods) == int(periods)
        assert stretch.start == pytest.approx(BEGIN + 2.0, abs=0.1)


def test_signals_are_splined_where_pauses_are_short() -> None:
    time = np.array([0.0, 1.0, 2.0, 3.0, 5.0, 6.0, 7.0])
    grid = np.array([-0.1, 0.0, 0.5, 2.9, 3.0, 3.1, 4.9, 5.0, 6.5, 7.0, 7.1])
    cubes = time**3
    whole = on_grid(time, cubes, grid, 2.0)
    np.testing.assert_allclose(whole, [np.nan, *grid[1:-1]**3, np.nan], rtol=0.0, atol=1e-9)
    parted = on_grid(time, np.where(time == 6.0, np.nan, cubes), grid, 1.9)
    unknown = (grid < 0.0) | (grid > 3.0)
    np.testing.assert_allclose(parted, np.where(unknown, np.nan, grid**3), rtol=0.0, atol=1e-9)
    few = np.where(time < 3.0, cubes, np.nan)
    assert np.isnan(on_grid(time, few, grid, 9.0)).all()
    np.testing.assert_allclose(on_grid(time, np.where(time < 4.0, cubes, np.nan), grid, 9.0),
                               np.where(unknown, np.nan, grid**3), rtol=0.0, atol=1e-9)


ARM = load_robot('planar_3r')


def periods_of(count: int, rate: float = 100.0, clock: float = 1.0) -> RawLog:
    """Return periods of 4 s whose efforts alternate by 0.2 from one to the next."""
    time = np.arange(round(4.0 * rate * count)) / rate
    q = np.column_stack([positions(time), np.sin(np.pi * time)])
    return RawLog('run', ARM.joints, time * clock, q, None,
                  q + 0.1 * (-1.0)**(time // 4.0)[:, None])


def test_the_mean_period_has_the_deviation_of_single_samples() -> None:
    """Efforts of +-0.1 deviate by 0.1 times the root of 4 / 3 in four periods."""
    found = average(ARM, periods_of(5), Periodic(4.0))
    (mean,), averaging = found.parts, found.averaging
    assert averaging is not None and mean.effort is not None and found.notes == ()
    assert (averaging.period, averaging.periods) == (4.0, 4)
    assert averaging.start == pytest.approx(4.0, abs=0.02)
    np.testing.assert_allclose(averaging.effort_noise, 0.1 * np.sqrt(4.0 / 3.0), rtol=0.02)
    np.testing.assert_allclose(averaging.position_noise, 0.0, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(mean.effort[5:-5], mean.position[5:-5], rtol=0.0, atol=1e-6)
    assert len(mean.time) == 400 and found.step == pytest.approx(0.01)
    whole = average(ARM, periods_of(5), Periodic(4.0, 0)).averaging
    assert whole is not None and whole.periods == 5 and whole.start == pytest.approx(0.0)


def test_samples_of_a_mean_period_lie_between_those_of_the_periods_beside_it() -> None:
    """As far as the filter reaches: four periods of its cut-off."""
    found = prepare(ARM, average(ARM, periods_of(5), Periodic(4.0)), Preprocessing(
        5.0, decimate=False, trim_rest=False))
    assert found.whole is not None and found.rows is not None
    rows = np.arange(-80, 480)[:len(found.whole)]
    assert len(rows) >= 559
    np.testing.assert_allclose(found.time, 0.01 * np.arange(400), rtol=0.0, atol=1e-9)
    np.testing.assert_allclose(found.whole.time, 0.01 * rows, rtol=0.0, atol=1e-9)
    np.testing.assert_array_equal(found.whole.position, found.position[rows % 400])


@pytest.mark.parametrize(('clock', 'words'), [
    (1.0, None), (1.0 + 1e-3, 'the motion repeats after 4.004 +- '),
    (1.0 - 1e-3, 'the motion repeats after 3.996 +- ')])
def test_another_clock_is_corrected_by_the_period_on_its_own(
    clock: float, words: str | None
) -> None:
    found = average(ARM, periods_of(5, clock=clock), Periodic(4.0))
    assert found.averaging is not None
    assert found.averaging.period == pytest.approx(4.0 * clock, abs=1e-5)
    assert (not found.notes) if words is None else (
        words in found.notes[0] and 'not 4 s; corrected' in found.notes[0])


@pytest.mark.parametrize(('count', 'warm_up', 'start', 'periods'), [
    (2.5, 0, 1.0, 2), (3.5, 1, 5.0, 2), (4.25, 2, 8.5, 2), (4.25, 0, 0.5, 4)])
def test_whole_periods_lie_in_the_middle_of_the_motion(
    count: float, warm_up: int, start: float, periods: int
) -> None:
    log = periods_of(5)
    rows = slice(0, round(400 * count))
    assert log.effort is not None
    part = RawLog('run', ARM.joints, BEGIN + log.time[rows], log.position[rows], None,
                  log.effort[rows])
    found = average(ARM, part, Periodic(4.0, warm_up)).averaging
    assert found is not None and found.periods == periods
    assert found.start == pytest.approx(BEGIN + start, abs=0.021)


LAGS = 5e-4 * np.array([2.0, -1.0, 3.0, -2.0, 4.0])


@pytest.mark.parametrize(('given_period', 'share'), [(None, 0.2), (4.0, 0.95), (4.0, 1.05)])
def test_the_period_is_the_slope_of_the_lags_with_its_deviation(
    given_period: float | None, share: float
) -> None:
    """A period given to four deviations of it is not corrected: the deviation here is 0.4 ms."""
    time = 0.01 * np.arange(2020)
    index = np.arange(5.0)
    line, covariance = np.polyfit(index, LAGS, 1, cov='unscaled')
    left = LAGS - np.polyval(line, index)
    deviation = np.sqrt(left @ left / 3.0 * covariance[0, 0])
    slope = 4.0 * share * deviation
    late = time - (left + slope * index)[np.minimum(time // 4.0, 4.0).astype(int)]
    q = np.column_stack([positions(late), np.sin(np.pi * late)])
    found = average(ARM, RawLog('run', ARM.joints, time, q, None, q), Periodic(given_period, 0))
    assert found.averaging is not None
    if given_period:
        assert (found.averaging.period == 4.0) is (share < 1.0) is (found.notes == ())
        return
    assert found.averaging.period == pytest.approx(4.0 + slope, abs=5e-5)
    (note,) = found.notes
    assert note.startswith('run: the motion repeats after 4.000')
    assert note.endswith(f' +- {deviation:.1g} s')


@pytest.mark.parametrize(('periods', 'words'), [(2, '+- 0.01 s'), (3, 'e-')])
def test_the_deviation_of_a_period_seen_twice_is_that_of_a_step(periods: int, words: str) -> None:
    """The lags of three periods have one degree of freedom."""
    (note,) = average(ARM, periods_of(periods), Periodic(None, 0)).notes
    assert note.startswith('run: the motion repeats after 4 +- ') and words in note


@pytest.mark.parametrize(('clock', 'other'), [(1.0018, False), (1.0022, True), (0.9978, True)])
def test_a_period_that_is_off_by_two_thousandths_is_another(clock: float, other: bool) -> None:
    log = periods_of(5, clock=clock)
    assert log.effort is not None
    slow = np.cos(np.pi * np.outer(log.time / clock, [0.5, 0.5, 0.5]) + np.arange(3.0))
    log = RawLog('run', ARM.joints, log.time, slow, None, log.effort)
    if not other:
        found = average(ARM, log, Periodic(4.0)).averaging
        assert found is not None and found.period == pytest.approx(4.0 * clock, abs=1e-5)
        return
    with pytest.raises(DataError) as raised:
        average(ARM, log, Periodic(4.0))
    assert str(raised.value) == ('run: the motion does not repeat after the given 4 s: give '
                                 f'{4.0 * clock:.6g} s')


@pytest.mark.parametrize(('rows', 'missing'), [(8, False), (12, True)])
def test_a_tenth_of_a_second_is_interpolated_within_a_period(rows: int, missing: bool) -> None:
    """What no period has measured is named: the first joint and instant, and how much."""
    log = periods_of(4)
    gap = np.arange(1600) % 400
    position = log.position.copy()
    position[(gap >= 150) & (gap < 150 + rows), 1] = np.nan
    position[(gap >= 300) & (gap < 300 + rows), 2] = np.nan
    log = RawLog('run', ARM.joints, BEGIN + log.time, position, None, log.effort)
    if not missing:
        found = average(ARM, log, Periodic(4.0)).averaging
        assert found is not None and found.periods == 3
        return
    with pytest.raises(DataError) as raised:
        average(ARM, log, Periodic(4.0))
    assert str(raised.value) == (
        'run: no period has measured joint joint_2 1.5 s into the motion (0.24 s of 4 s are '
        'missing in all 3): record more periods')


@pytest.mark.parametrize(('settings', 'words'), [
    ((1.1e5, 1), '100000'), ((0.009, 1), '0.01'), ((4.0, 10_001), '10000')])
def test_limits_of_period_and_warm_up(settings: tuple[float, int], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        Periodic(*settings)
    assert Periodic(1e5, 10_000) != Periodic(0.01, 10_000)


def test_too_few_periods_are_counted() -> None:
    with pytest.raises(DataError, match=r'run: holds 2 periods of 4 s, of which the first 1 are '
                       r'dropped \(warm_up\); 2 more are needed'):
        average(ARM, periods_of(2), Periodic(4.0))
    with pytest.raises(DataError, match=r'period of 0\.19 s is less than 20 samples'):
        average(ARM, periods_of(3), Periodic(0.19))
    with pytest.raises(DataError, match=r'after the given period of 0\.201 s for less than'):
        average(ARM, periods_of(3), Periodic(0.201))
    with pytest.raises(DataError, match=r'after the given period of 3 s for less than a period '
                       r'only; the nearest period is 4 s, repeated 3 times: give that'):
        average(ARM, periods_of(3), Periodic(3.0))
