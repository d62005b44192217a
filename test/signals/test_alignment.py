"""signals/alignment.py: stamps, holes, gaps, grids, lags and clocks, on recordings of a few rows.

Steps are powers of two, so that products with them are exact.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.interpolate import make_interp_spline

from robot_dynid.errors import DataError
from robot_dynid.signals.alignment import (
    Lag,
    align,
    clock_steps,
    drop_stale_rows,
    fill_holes,
    nearest,
    one_clock,
    order_rows,
    resample_uniform,
    split_at_gaps,
    typical_step,
    velocity_lag,
)
from robot_dynid.types import FloatArray, RawLog, Samples

STEP = 2.0**-7
JOINTS = ('a', 'b')


def log_of(time: FloatArray, **channels: FloatArray) -> RawLog:
    """Return a recording of two joints that move at 1 and -2 rad/s."""
    position = np.outer(np.arange(len(time)), [1.0, -2.0]) * STEP
    return RawLog('run', JOINTS, np.asarray(time), **{'position': position, **channels})


def set_back(row: int, steps: float, count: int = 200, jitter: float = 0.0) -> FloatArray:
    """Return stamps of which those from ``row`` on are ``steps`` earlier, and all of them jitter.
"""
    time = np.arange(float(count))
    time[row:] -= steps
    return STEP * (time + jitter * (-1.0)**np.arange(count))


@pytest.mark.parametrize(('time', 'rows'), [
    # near the ends, by more rows than may be late
    (set_back(10, 5.5), []), (set_back(10, 6.5), [10]),
    # where there are twenty rows on either side, by a step
    (set_back(19, 2.5), []), (set_back(20, 2.5), [20]),
    (set_back(180, 2.5), [180]), (set_back(181, 2.5), []),
    # by six deviations of the line through jittering stamps: two steps here
    (set_back(100, 1.6, jitter=0.45), []), (set_back(100, 2.4, jitter=0.45), [100]),
    # by a step where these are less
    (set_back(101, 0.9, jitter=0.1), []), (set_back(101, 1.05, jitter=0.1), [101]),
    # after two rows that leapt ahead
    (set_back(150, 30.5) + STEP * 1000.0 * (np.abs(np.arange(200) - 50.5) < 1.0), [150]),
    # a hundred times at most; nothing where time only goes back
    (np.tile(np.arange(30.0), 103), [30 * k for k in range(1, 101)]), (-np.arange(60.0), []),
])
def test_a_clock_is_set_back_by_more_than_late_rows_and_jitter(
    time: FloatArray, rows: list[int]
) -> None:
    assert clock_steps(time).tolist() == rows


@pytest.mark.parametrize(('share', 'rows'), [(0.99, []), (1.01, [100])])
def test_lines_on_either_side_of_a_clock_step_differ_by_six_of_their_deviations(
    share: float, rows: list[int]
) -> None:
    """The scatter about both lines has 36 degrees of freedom."""
    count = np.arange(20) + 0.5
    jitter = 0.45 * (-1.0)**np.arange(200)
    lines = [np.polyfit(side, jitter[near], 1) for side, near in (
        (-count[::-1], slice(80, 100)), (count, slice(100, 120)))]
    squares = sum(np.sum((jitter[near] - np.polyval(line, side))**2) for line, side, near in zip(
        lines, (-count[::-1], count), (slice(80, 100), slice(100, 120)), strict=True))
    variance = np.linalg.inv(np.vander(count, 2).T @ np.vander(count, 2))[1, 1]
    deviation = np.sqrt(squares / 36.0 * 2.0 * variance)
    size = share * 6.0 * deviation + lines[1][1] - lines[0][1]
    assert size > 1.5
    assert clock_steps(set_back(100, size, jitter=0.45)).tolist() == rows


@pytest.mark.parametrize(('step', 'pause'), [(STEP, 0.2), (2.0**-4, 20.0 * 2.0**-4)])
def test_rows_after_the_clock_was_set_back_follow_after_twice_a_gap(
    step: float, pause: float
) -> None:
    time = np.concatenate([np.arange(50), 3.0 + np.arange(30)]) * step
    time[20] = np.nan
    messages = time[:3], np.ones((3, 2))
    found, notes = one_clock(replace(log_of(time, effort=np.ones((80, 2))),
                                     effort_messages=messages))
    np.testing.assert_array_equal(found.time[:50], time[:50])
    np.testing.assert_allclose(found.time[50:], 49 * step + pause + step * np.arange(30))
    assert found.effort_messages is None
    assert notes == [f'run: the clock goes back 1 time(s), first by {46 * step:.3g} s in row 51; '
                     'the rows after it are moved behind those before']


TEN = np.arange(10.0)


def spoiled(time: FloatArray, rows: object, values: object) -> FloatArray:
    """Return the stamps with others in some rows."""
    time = time.copy()
    time[rows] = values
    return time


@pytest.mark.parametrize(('time', 'kept', 'far', 'dropped'), [
    (TEN, TEN, '', 0),
    (spoiled(TEN, 3, 1.0), np.delete(TEN, 3), '', 1),
    (spoiled(TEN, [3, 4], [np.nan, 2.0]), np.delete(TEN, [3, 4]), '', 2),
    # the smaller group is dropped: rows that leap ahead, or one that comes first but late
    (spoiled(TEN, [2, 3], [50.0, 60.0]), np.delete(TEN, [2, 3]), '', 2),
    (spoiled(TEN, 0, 7.5), np.delete(TEN, 0), '', 1),
    (spoiled(TEN, 9, 0.0), np.delete(TEN, 9), '', 1),
    (spoiled(TEN, [1, 5], [np.nan, 1.5]), np.delete(TEN, [1, 5]), '', 2),
    # of groups of the same size the later one
    (spoiled(TEN, [3, 4], [4.0, 3.0]), np.delete(TEN, 3), '', 1),
    # a year, or a thousand times the rows at their step, from the middle
    (spoiled(TEN, 9, 3.1e7), spoiled(TEN, 9, 3.1e7), '', 0),
    (spoiled(TEN, [4, 9], 3.3e7), np.delete(TEN, [4, 9]), '2 (first 3.3e+07 s in row 5)', 0),
    (spoiled(TEN, [1, 4], [0.0, -3.3e7]), np.delete(TEN, [1, 4]), '1 (first -3.3e+07 s in row 5)',
     1),
    (1e5 * spoiled(TEN, 9, 9e3), 1e5 * spoiled(TEN, 9, 9e3), '', 0),
    (1e5 * spoiled(TEN, 9, 1.1e4), 1e5 * TEN[:9], '1 (first 1.1e+09 s in row 10)', 0),
    # no unit makes a stamp larger than this
    (9.8e18 + 1e16 * spoiled(TEN, 9, 19.0), 9.8e18 + 1e16 * spoiled(TEN, 9, 19.0), '', 0),
    (9.8e18 + 1e16 * spoiled(TEN, 9, 21.0), 9.8e18 + 1e16 * TEN[:9],
     '1 (first 1e+19 s in row 10)', 0),
])
def test_rows_out_of_order_are_dropped_and_counted(
    time: FloatArray, kept: FloatArray, far: str, dropped: int
) -> None:
    found, notes = order_rows(log_of(time))
    np.testing.assert_array_equal(found.time, kept)
    expected = []
    if far:
        count, first = far.split(' ', 1)
        expected.append(f'run: time: {count} stamps more than a year from the others {first} '
                        'dropped')
    if dropped:
        expected.append(f'run: dropped {dropped} of 10 rows whose stamp repeats, goes back or is '
                        'not a number')
    assert notes == expected


@pytest.mark.parametrize(('repeated', 'after', 'stale'), [
    (slice(5, 6), 1, 1), (slice(5, 8), 1, 3),
    (slice(5, 9), 1, 0),  # longer than 0.1 s
    (slice(5, 7), 0, 0),  # at rest: the next row is at the same place
    (slice(17, 20), 0, 0),  # nothing follows
])
def test_rows_repeated_for_a_tenth_of_a_second_in_motion_are_stale(
    repeated: slice, after: int, stale: int
) -> None:
    log = log_of(np.arange(20) / 32.0, effort=np.full((20, 2), np.nan))
    log.position[repeated] = log.position[repeated.start - 1]
    if not after and repeated.stop < 20:
        log.position[repeated.stop] = log.position[repeated.start]
        assert log.velocity is None
        moved = replace(log, velocity=np.outer(np.arange(20) >= repeated.stop, [1.0, 1.0]))
    else:
        moved = log
    found, notes = drop_stale_rows(moved)
    np.testing.assert_array_equal(found.time, np.delete(log.time, np.arange(20)[repeated][:stale]))
    assert notes == ([f'run: {stale} stale rows (the whole row repeated during motion) replaced '
                      'by interpolation'] if stale else [])


@pytest.mark.parametrize(('channel', 'finite', 'expected'), [
    ('effort', [0, 1, 4], [0.0, 1.0, 2.0, 3.0, 4.0, 4.0]),
    ('effort', [2, 4], [2.0, 2.0, 2.0, 3.0, 4.0, 4.0]),
    ('effort', [2], None),
    ('motor_position', [2], [np.nan] * 6), ('motor_velocity', [], [np.nan] * 6),
    ('joint_torque', [3], [np.nan] * 6), ('joint_torque', [1, 3], [1.0, 1.0, 2.0, 3.0, 3.0, 3.0]),
    # commands may begin late and end early
    ('reference_position', [1, 3], [1.0, 1.0, 2.0, 3.0, 3.0, 3.0]),
    ('reference_position', [2, 3], [2.0, 2.0, 2.0, 3.0, 3.0, 3.0]),
])
def test_holes_are_filled_in_a_straight_line(
    channel: str, finite: list[int], expected: list[float] | None
) -> None:
    values = np.full((6, 2), np.nan)
    values[finite, 1], values[:, 0] = finite, 7.0
    log = log_of(np.arange(6.0), **{channel: values})
    if expected is None:
        with pytest.raises(DataError, match=r'run: effort\.b holds no finite value: record it'):
            fill_holes(log)
        return
    found, notes = fill_holes(log)
    np.testing.assert_array_equal(getattr(found, channel)[:, 1], expected)
    np.testing.assert_array_equal(getattr(found, channel)[:, 0], 7.0)
    first, last = (finite[0], finite[-1] + 1) if channel == 'reference_position' else (0, 6)
    holes = 0 if np.isnan(expected[0]) else last - first - len(finite)
    assert notes == [f'run: {channel}.b: {holes} values that are not finite replaced by '
                     'interpolation'] * (holes > 0)


@pytest.mark.parametrize(('step', 'limit'), [(2.0**-4, 0.625), (STEP, 0.1)])
def test_a_gap_is_longer_than_ten_steps_and_a_tenth_of_a_second(step: float, limit: float) -> None:
    """The message has the limit, the longest gap and the number of parts."""
    time = step * np.arange(12.0)
    time[4:] += limit - step  # just no gap
    time[6:] += limit - 0.9 * step
    time[9:] += 4.0 * limit
    parts, notes = split_at_gaps(log_of(time), step)
    assert [len(part.time) for part in parts] == [6, 3, 3]
    np.testing.assert_array_equal(np.concatenate([part.time for part in parts]), time)
    assert notes == [f'run: 2 gap(s) longer than {limit:.3g} s (longest {4 * limit + step:.3g} s)'
                     '; treated as 3 separate recordings']


def test_the_typical_step_is_that_of_all_recordings_with_two_rows() -> None:
    logs = [log_of(np.array(time)) for time in ([0.0], [0.0, 3.0], [0.0, 4.0], [0.0, 1.0, 2.0])]
    assert typical_step(logs) == 2.0
    with pytest.raises(DataError, match='run, run: fewer than two rows with a usable time stamp'):
        typical_step([logs[0]] * 2)


def test_resampling_is_exact_for_cubic_positions_and_linear_efforts() -> None:
    """The last instant counts if it lies on the grid; joints without numbers stay so."""
    time = np.array([0.0, 0.25, 0.5, 1.0, 1.125, 2.0])
    log = log_of(time, position=np.stack([time**3, -time**2], axis=1),
                 motor_position=np.stack([time**3, np.full(6, np.nan)], axis=1),
                 effort=np.stack([time, np.abs(time - 1.0)], axis=1))
    found = resample_uniform(log, 0.25)
    assert found.motor_position is not None
    grid = 0.25 * np.arange(9)
    np.testing.assert_allclose(found.time, grid)
    np.testing.assert_allclose(found.position, np.stack([grid**3, -grid**2], axis=1),
                               rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(found.motor_position[:, 0], grid**3, rtol=0.0, atol=1e-12)
    assert np.isnan(found.motor_position[:, 1]).all()
    np.testing.assert_allclose(found.effort, np.stack([grid, np.abs(grid - 1.0)], axis=1),
                               rtol=0.0, atol=1e-12)
    assert len(resample_uniform(log, 0.75).time) == 3
    assert len(resample_uniform(log_of(np.array([0.0, 0.5, 2.0])), 0.25).time) == 0
    assert len(resample_uniform(log_of(np.array([0.0, 0.5, 0.6, 2.0])), 0.5).time) == 5


@pytest.mark.parametrize(('off', 'same'), [(0.9e-3, True), (1.1e-3, False)])
def test_a_recording_within_a_thousandth_of_a_step_is_uniform(off: float, same: bool) -> None:
    log = log_of(spoiled(TEN, 4, 4.0 + off))
    assert (resample_uniform(log, 1.0) is log) == same


def test_nearest_stamps_of_instants() -> None:
    """The earlier of two that are equally near."""
    assert nearest(np.array([0.0, 1.0, 3.0]), np.array(
        [-9.0, 0.4, 0.5, 0.6, 1.9, 2.0, 2.1, 9.0])).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert nearest(np.array([5.0]), np.array([0.0, 9.0])).tolist() == [0, 0]
    assert nearest(np.array([0.0, 1.0]), np.array([0.4, 0.6])).tolist() == [0, 1]


def test_a_lag_is_significant_beyond_three_deviations_and_in_milliseconds() -> None:
    assert [Lag(s, 1.0).significant for s in (2.9, 3.1, -2.9, -3.1)] == [False, True, False, True]
    assert Lag(4.2149e-3, 5e-5).words == '4.21 +- 0.05 ms later'
    assert Lag(-4.2149e-3, 1e-3).words == '4.21 +- 1.00 ms earlier'


@pytest.mark.parametrize('dt', [0.01, 0.25])
def test_the_lag_of_velocity_of_a_constant_acceleration(dt: float) -> None:
    """It is late by 3 ms; noise of size 0.1 is alike for a tenth of a second, or a step."""
    time = dt * np.arange(400.0)
    noise = 0.1 * (-1.0)**np.arange(400)
    lag = velocity_lag(time[:, None]**2, (2.0 * (time - 3e-3) + noise)[:, None], dt)
    assert lag.seconds == pytest.approx(3e-3, abs=1e-9)
    assert lag.std == pytest.approx(np.sqrt(0.01 * max(0.1 / dt, 1.0) / (4.0 * 400)), rel=1e-6)
    rest = np.ones((40, 1))
    assert velocity_lag(rest, rest, dt) == Lag(0.0, np.inf)


def samples_of(time: FloatArray, clock: FloatArray, size: float = 1.0, off: float = 0.0,
               starts: tuple[int, ...] = (0,)) -> Samples:
    """Return a chirp of one joint, and another joint at rest, at ``time``, with other stamps."""
    angle = np.outer(8.0 * time + 0.5 * time**2, [1.0, 0.0])
    rate = np.outer(8.0 + time, [1.0, 0.0])
    position = size * np.sin(angle)
    return Samples(JOINTS, clock, position + off, *(size * rate * np.cos(angle),) * 2,
                   effort=position, starts=starts)


TIMES = 0.02 * np.arange(500)


@pytest.mark.parametrize(('lag', 'drift'), [(0.37, 0.0), (-2.6, 1e-3), (1e3, -2e-3)])
@pytest.mark.parametrize(('first', 'second'), [
    (slice(None), slice(None)), (slice(0, 300), slice(100, 500)), (slice(None), slice(60, 260)),
    (slice(200, 500), slice(90, 420)), (slice(250, 450), slice(None))])
def test_clocks_of_a_motion_recorded_twice(
    first: slice, second: slice, lag: float, drift: float
) -> None:
    """The lag is that in the middle of the first recording, the drift the rate of the second."""
    time, other = TIMES[first], TIMES[second]
    middle = 0.5 * (time[0] + time[-1])
    pair = align(samples_of(time, time),
                 samples_of(other, other + lag + drift * (other - middle), off=2e-3))
    assert pair.lag == pytest.approx(lag, abs=1e-3)
    assert pair.drift == pytest.approx(drift, abs=2e-4)
    common = time[(time > other[0]) & (time < other[-1])]
    assert abs(len(pair.first) - len(common)) <= 2
    assert pair.first.time.tolist() == pair.second.time.tolist()
    np.testing.assert_allclose(pair.difference, 2e-3, rtol=0.3)
    np.testing.assert_allclose(pair.second.velocity, pair.first.velocity, rtol=0.0, atol=0.1)


def test_rest_before_and_after_a_motion_hides_no_lag() -> None:
    """Rest matches rest anywhere, so it is no overlap."""
    held = np.clip(TIMES - 3.0, 0.0, 4.0)
    first = samples_of(held, TIMES, off=2.0)
    late = samples_of(np.clip(TIMES - 6.0, 0.0, 4.0), TIMES, off=2.0)
    assert align(first, late).lag == pytest.approx(3.0, abs=1e-3)


def two_joints(time: FloatArray, starts: tuple[int, ...] = (0,)) -> Samples:
    """Return chirps of two joints that are alike nowhere, with a raw effort with corners."""
    rate = np.stack([8.0 + time, 2.5 + 0.3 * time], axis=1)
    angle = np.stack([8.0 * time + 0.5 * time**2, 5.0 * time + 0.3 * time**2], axis=1)
    position = [2.0, -1.0] + np.sin(angle) * [1.0, 0.5]
    velocity = rate * np.cos(angle)
    return Samples(JOINTS, time, position, velocity, velocity, effort=position,
                   measured=np.abs(position), starts=starts)


def test_pairs_hold_every_joint_and_stretch_of_both_recordings() -> None:
    """The second one 0.307 s later, its raw effort between stamps in a straight line."""
    second = two_joints(TIMES)
    late = replace(second, time=TIMES + 0.307,
                   position=second.position + np.array([2e-3, -5e-3]))
    pair = align(two_joints(TIMES, (0, 130, 380)), late)
    assert pair.first.starts == pair.second.starts == (0, 130, 380)
    np.testing.assert_allclose(pair.difference, [2e-3, 5e-3], rtol=0.05)


def test_pairs_are_interpolated_at_the_clock_of_both() -> None:
    """The second one is sampled at other moments, from 3 ms on and a fiftieth slower."""
    stamps = TIMES + 0.3074 + 0.02 * (TIMES - 4.99)
    whole = two_joints(TIMES + 0.003)
    second = replace(whole, time=stamps + 0.003 * 1.02)
    pair = align(two_joints(TIMES), second)
    assert pair.lag == pytest.approx(0.3074, abs=1e-5)
    assert pair.drift == pytest.approx(0.02, abs=1e-6)
    np.testing.assert_allclose(pair.difference, 0.0, atol=1e-4, rtol=0.0)
    assert len(pair.first) == len(TIMES) - 1
    time = pair.first.time + pair.lag + pair.drift * (pair.first.time - 4.99)
    for name, degree in (('position', 3), ('velocity', 3), ('acceleration', 3), ('effort', 3),
                         ('measured', 1)):
        expected = make_interp_spline(second.time, getattr(second, name), k=degree)(time)
        np.testing.assert_allclose(getattr(pair.second, name), expected, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize('rows', [1, 2, 3])
def test_a_stretch_in_which_both_recordings_have_one_row_is_omitted(rows: int) -> None:
    late = two_joints(TIMES[:400 + rows] + 0.01)
    pair = align(two_joints(TIMES, (0, 400)), replace(late, time=late.time + 1.0))
    assert len(pair.first) == 399 + rows * (rows > 1)
    assert pair.first.starts == ((0, 399) if rows > 1 else (0,))


def test_the_lag_has_the_least_difference_and_not_the_largest_product() -> None:
    """Half as large and the same, beside one at full size that is similar."""
    large, small, other = (np.sin(rate * np.arange(300) + 2e-4 * np.arange(300)**2)[:, None]
                           for rate in (0.05, 0.11, 0.17))
    similar = 0.8 * large + 0.6 * other
    first, second = (np.concatenate(parts) for parts in (
        (large, 0.5 * small, similar[:20]), (0.5 * small, similar)))
    pair = [Samples(('a',), 0.02 * np.arange(float(len(values))), values, *(
        np.gradient(values, 0.02, axis=0),) * 2) for values in (first, second)]
    assert align(pair[0], pair[1]).lag == pytest.approx(-6.0, abs=1e-3)


@pytest.mark.parametrize(('rows', 'enough'), [(240, False), (262, True)])
def test_half_of_a_recording_has_to_lie_in_stretches_of_four_rows(
    rows: int, enough: bool
) -> None:
    first, starts = two_joints(TIMES), (0, *range(rows, 500, 3))
    if enough:
        assert len(align(first, two_joints(TIMES, starts)).first) == pytest.approx(rows, abs=2)
        return
    with pytest.raises(DataError, match='less than half of the shorter recording overlaps'):
        align(first, two_joints(TIMES, starts))


@pytest.mark.parametrize('swapped', [False, True])
@pytest.mark.parametrize(('share', 'found'), [(0.23, True), (0.08, False)])
def test_what_both_recordings_share_holds_a_fifth_of_the_motion(
    share: float, found: bool, swapped: bool
) -> None:
    """A similar motion elsewhere is not taken for it, however large."""
    rows = np.arange(280)
    large, small, other = (np.sin(rate * rows + 2e-4 * rows**2)[begin:]
                           for rate, begin in ((0.05, 40), (0.11, 0), (0.17, 40)))
    small *= np.sqrt(240.0 * share / (520.0 - 280.0 * share))  # as a share of the mean square
    similar = 0.8 * large + 0.6 * other

    def recorded(*parts: FloatArray) -> Samples:
        values = np.concatenate(parts)[:, None]
        speed = np.gradient(values, 0.02, axis=0)
        return Samples(('a',), 0.02 * np.arange(520.0), values, speed, speed)

    pair = recorded(large, small), recorded(small, similar)
    first, second = pair[::-1] if swapped else pair
    lag = 4.8 if swapped else -4.8
    if found:
        assert align(first, second).lag == pytest.approx(lag, abs=1e-3)
        return
    with pytest.raises(DataError):
        align(first, second)


def test_pauses_of_recordings_are_not_interpolated() -> None:
    first = samples_of(TIMES, TIMES)
    rows = np.r_[0:120, 380:500]
    pair = align(first, samples_of(TIMES[rows], TIMES[rows] + 0.01, starts=(0, 120)))
    assert pair.first.starts == pair.second.starts == (0, 120)
    np.testing.assert_allclose(pair.first.time, TIMES[rows], rtol=0.0, atol=0.021)
    fours, threes = (samples_of(TIMES, TIMES, starts=tuple(range(0, 500, k))) for k in (4, 3))
    assert len(align(first, fours).first) > 300
    with pytest.raises(DataError, match='less than half of the shorter recording overlaps'):
        align(first, threes)


def test_recordings_that_do_not_belong_together_are_not_aligned() -> None:
    time = TIMES
    first = samples_of(time, time)
    rest = samples_of(time, time, 1.3e-3)
    with pytest.raises(DataError, match='no joint moves, so recordings with and without'):
        align(rest, first)
    align(*[samples_of(time, time, 1.6e-3)] * 2)
    align(first, samples_of(time, time, 1.03))
    with pytest.raises(DataError, match=r'with and without the payload differ by 3.6 % of'):
        align(first, samples_of(time, time, 1.036))
