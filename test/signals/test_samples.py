"""Samples in closed form: rows left out, efforts at other instants, ends of recordings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from robot_dynid.errors import DataError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.signals.stacked import drive_effort, efforts_of_equations, require_channels
from robot_dynid.signals.unfiltered import unfiltered
from robot_dynid.types import FloatArray, Part, RawLog, Samples, concatenate, interpolated, take


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
    expected = [0.5 / cutoff, 2.0 / cutoff]
    np.testing.assert_allclose(lost, expected if rests_first else expected[::-1],
                               rtol=0.0, atol=0.0101)


ARM = load_robot('planar_3r')


@pytest.mark.parametrize(('rows', 'omitted'), [(14, False), (15, True)])
def test_where_efforts_are_missing_for_a_tenth_of_a_second_samples_are_omitted(
    rows: int, omitted: bool
) -> None:
    """An effort is missing if it is more than a step and a half away, then two periods of 4 Hz."""
    time = np.arange(1000) / 128.0
    effort = np.cos(np.outer(time, [1.0, 2.0, 3.0]))
    effort[500:500 + rows, 1] = np.nan
    log = RawLog('run', ARM.joints, time, np.sin(np.outer(time, [1.0, 2.0, 3.0])), effort=effort)
    found = prepare(ARM, repair(ARM, log), Preprocessing(4.0, decimate=False))
    inside = np.arange(64, 936)
    np.testing.assert_allclose(found.time, time[np.delete(
        inside, np.s_[437 - 64:578 - 64]) if omitted else inside], rtol=0.0, atol=1e-9)


def test_efforts_with_their_own_stamps_are_measured_within_the_motion_where_all_is_known() -> None:
    """Between rows with a known external torque; positions there are on straight lines."""
    time = 3.0 + 0.01 * np.arange(200)
    motion = np.sin(np.outer(time, [3.0, 5.0, 7.0]))
    stamps = np.arange(2.9, 5.2, 0.013)
    effort = np.outer(stamps, [1.0, -1.0, 2.0])
    effort[40, 1] = np.nan
    torque = np.ones((200, 3))
    torque[50:60] = np.nan
    log = RawLog('run', ARM.joints, time, motion, effort=np.ones((200, 3)),
                 effort_messages=(stamps, effort), external_torque=torque)
    inside = (stamps >= 3.0) & (stamps <= time[-1]) & (np.arange(len(stamps)) != 40)
    known = inside & ((stamps <= time[49]) | (stamps >= time[60]))
    for one, rows in ((replace(log, external_torque=None), inside), (log, known)):
        (found,) = repair(ARM, one).measured
        np.testing.assert_array_equal(found.time, stamps[rows])
        np.testing.assert_array_equal(found.effort, effort[rows])
        assert found.joint_torque is None
        np.testing.assert_allclose(found.position, np.column_stack([
            np.interp(stamps[rows], time, column) for column in motion.T]), rtol=0.0, atol=1e-9)


def test_a_row_between_two_gaps_is_omitted_and_two_are_not() -> None:
    rows = np.concatenate([np.arange(100), [200, 300, 301], 400 + np.arange(100)])
    motion = np.sin(np.outer(0.01 * rows, [1.0, 2.0, 3.0]))
    parts = repair(ARM, RawLog('run', ARM.joints, 0.01 * rows, motion, effort=1.0 + motion)).parts
    assert [len(one.time) for one in parts] == [100, 2, 100]


def test_margins_reach_as_far_as_the_filter() -> None:
    """Four periods of the cut-off before and after the motion; five rows at rest are enough."""
    time = 0.01 * np.arange(1000)
    turn = np.clip(time - 3.0, 0.0, 4.0)
    motion = np.tile(1.0 - np.cos(0.5 * np.pi * turn)[:, None], 3)
    log = RawLog('run', ARM.joints, time, motion, effort=1.0 + motion)
    found = prepare(ARM, repair(ARM, log), Preprocessing(5.0, decimate=False))
    assert found.whole is not None and 2.9 < found.time[0] < 3.1
    assert found.time[0] - found.whole.time[0] == pytest.approx(0.8, abs=0.011)
    assert found.whole.time[-1] - found.time[-1] == pytest.approx(0.8, abs=0.011)
    few = repair(ARM, take(log, slice(0, 5)))
    assert prepare(ARM, few, Preprocessing(30.0)).time.tolist() == [0.02]
    with pytest.raises(DataError, match='no stretch is longer than 0\\.133 s'):
        prepare(ARM, repair(ARM, take(log, slice(0, 4))), Preprocessing(30.0))


@pytest.mark.parametrize('lag', [0.013, -0.013])
def test_unfiltered_stretches_hold_efforts_at_their_instants_without_the_lag(lag: float) -> None:
    """Known external torque, and motors behind the joints; a part has its own rows only."""
    drive = replace(ARM.drive, kind='current', gains=np.array([2.0, -4.0, 0.5]), elastic=(1,))
    robot, time = replace(ARM, drive=drive), 3.0 + 0.01 * np.arange(300)
    motion = np.sin(np.outer(time, [1.0, 2.0, 3.0]))
    effort = np.outer(time, [1.0, -1.0, 2.0])
    bend = 1e-3 * drive.gains * np.cos(np.outer(time, [3.0, 5.0, 7.0]))
    log = RawLog('run', ARM.joints, time, motion, effort=effort, motor_position=motion + bend,
                 temperature=20.0 + np.outer(time, [1.0, 2.0, 3.0]),
                 external_torque=np.outer(time, [7.0, 8.0, 9.0]), began=1.0)
    log.effort[50] = np.nan
    repaired = repair(robot, log)
    (found,) = unfiltered(robot, repaired, lag)
    np.testing.assert_allclose(found.time, time, rtol=0.0, atol=1e-9)
    motors = repaired.parts[0].motor_position
    assert motors is not None and found.temperature is not None and found.began == 1.0
    np.testing.assert_array_equal(found.position, np.hstack([
        repaired.parts[0].position, motors[:, 1:2]]))
    stamps = np.delete(time, 50) - lag
    stamps = stamps[(stamps >= time[0]) & (stamps <= time[-1])]
    assert len(stamps) == 297
    np.testing.assert_allclose(found.stamps, stamps, rtol=0.0, atol=1e-9)
    drives = np.outer(stamps + lag, [2.0, 4.0, 1.0])
    np.testing.assert_allclose(found.effort, np.column_stack([
        drives + np.outer(stamps, [7.0, 8.0, 9.0]), drives[:, 1]]), rtol=1e-9)
    np.testing.assert_allclose(found.temperature, 20.0 + np.outer(
        stamps, [1.0, 2.0, 3.0, 2.0]), rtol=1e-9)
    place = Part(4.0, 5.0, 2.0, 'run')
    (part,) = unfiltered(robot, repair(robot, replace(log, part=place)), lag)
    np.testing.assert_allclose(part.time, time[100:200], rtol=0.0, atol=1e-9)
    assert part.began == 2.0 and part.stamps[0] >= 4.0 - 1e-9 and part.stamps[-1] <= 5.0
    one = replace(log, part=replace(place, stop=4.005))
    assert unfiltered(robot, repair(robot, one), lag) == ()


def test_the_noise_of_several_recordings_counts_by_their_length() -> None:
    short, long = (replace(samples(0.01 * np.arange(count), (0,)), noise=noise)
                   for count, noise in ((10, (1.0, 4.0)), (30, (2.0, 0.0))))
    assert concatenate([short, long]).noise == pytest.approx((np.sqrt(3.25), 2.0))
    assert concatenate([short, replace(long, noise=None)]).noise is None


def test_efforts_of_drives_come_back_from_those_of_the_equations() -> None:
    """A sensor behind the second gear takes its torque from the motor; the push is known."""
    robot = load_robot('planar_3r')
    robot = replace(robot, drive=replace(robot.drive, elastic=(0, 1), torque_sensors=(1,)))
    effort, torque, push = np.random.default_rng(0).normal(size=(3, 4, 3))
    rows = efforts_of_equations(robot, effort, torque)
    np.testing.assert_array_equal(rows, np.column_stack([
        effort[:, 0], torque[:, 1], effort[:, 2], effort[:, 0], effort[:, 1] - torque[:, 1],
        torque[:, 1]]))
    rows[:, :3] += push
    one = Samples(robot.joints, np.arange(4.0), *np.zeros((3, 4, 5)), effort=rows, external=push)
    np.testing.assert_allclose(drive_effort(robot, one), effort, rtol=0.0, atol=1e-15)


def test_the_only_value_holds_at_all_times() -> None:
    found = interpolated(np.array([3.0]), np.array([[1.0, 2.0]]), np.array([0.0, 9.0, 3.0]))
    np.testing.assert_array_equal(found, [[1.0, 2.0]] * 3)
    line = interpolated(np.array([0.0, 2.0]), np.array([[1.0], [5.0]]), np.array([0.5]))
    np.testing.assert_allclose(line, [[2.0]], rtol=1e-12)


def test_rows_without_a_torque_behind_a_gear_are_not_scored() -> None:
    robot = load_robot('planar_3r')
    robot = replace(robot, drive=replace(robot.drive, elastic=(1,), torque_sensors=(1,)))
    time = 0.004 * np.arange(1000)
    motion = np.sin(np.outer(time, [1.0, 2.0, 3.0]))
    torque = motion.copy()
    torque[300:500] = np.nan, 0.0, 0.0  # of a joint without a sensor
    torque[600:620, 1] = np.nan
    log = RawLog('log', robot.joints, time, motion, effort=motion, joint_torque=torque,
                 motor_position=motion + 1e-3 * motion**2)
    known = np.concatenate([one.time for one in repair(robot, log).measured])
    np.testing.assert_allclose(known, np.delete(time, np.s_[600:620]), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(('notes', 'told'), [
    (('run: motor states of joint_2, joint_12: they are late',),
     'run: motor states of joint_2, joint_12: they are late; joint_2 is elastic, so its '
     'deflection needs two encoders: correct that, or remove the joint from elastic_joints'),
    (('run: motor states of joint_12: late', 'run: joint torque of joint_2: none'),
     'run: there are no motor states of joint_2; joint_2 is elastic, so its deflection needs two '
     'encoders: record the topic motor_states (columns motor_position.<joint>), or remove the '
     'joint from elastic_joints'),
])
def test_what_an_elastic_joint_lacks_is_told_with_the_reason_that_joints_share(
    notes: tuple[str, ...], told: str
) -> None:
    robot = load_robot('planar_3r')
    robot = replace(robot, drive=replace(robot.drive, elastic=(0, 1)))
    position = np.zeros((4, 3))
    motors = np.where(np.arange(3) == 1, np.nan, position)
    log = RawLog('run', robot.joints, np.arange(4.0), position, motor_position=motors)
    with pytest.raises(DataError) as refused:
        require_channels(robot, log, notes)
    assert str(refused.value) == told
    require_channels(robot, replace(log, motor_position=position), notes)
