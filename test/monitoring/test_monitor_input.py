"""monitoring/monitor_input.py: rows, pauses, gaps and delays of a few states, by value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from monitored import model_of

from robot_dynid.effects.ripple import TorqueRipple
from robot_dynid.errors import DataError, ModelError
from robot_dynid.monitoring.monitor_input import (
    MonitorInput,
    MonitorInputStream,
    lags,
    monitor_input,
)
from robot_dynid.monitoring.noise_levels import LEVEL_ROWS, recorded_motions, slow_shares
from robot_dynid.robot.model import Drive
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog

MODEL = model_of(load_robot('planar_3r'))
ROBOT = MODEL.robot
STEP = 2.0**-6
PAUSED = 'no joint states received: check the driver and the network load'
BACK = 'stamps repeat or go back: use one publisher and a monotonic clock'


def log_of(time: FloatArray, velocity: bool = True) -> RawLog:
    """Return a recording of joints at 1, -1 and 0.5 rad/s, whose efforts are ten times the
    positions."""
    rate = np.array([1.0, -1.0, 0.5])
    q = np.outer(np.where(np.isfinite(time), time, 0.0), rate)
    qd = np.tile(rate, (len(time), 1)) if velocity else None
    return RawLog('run', ROBOT.joints, time, q, qd, 10.0 * q)


def motion_of(speed: FloatArray, starts: tuple[int, ...] = (0,)) -> MonitorInput:
    """Return an input whose positions number its rows."""
    rows = np.arange(float(len(speed)))
    return MonitorInput(STEP * rows, np.tile(rows[:, None], speed.shape[1]), speed, 2.0 * speed,
                        starts)


def test_rows_of_a_recording_are_those_measured() -> None:
    time = STEP * np.arange(8)
    found = monitor_input(MODEL, log_of(time))
    np.testing.assert_array_equal(found.time, time)
    np.testing.assert_array_equal(found.effort, 10.0 * found.position)
    assert (found.starts, found.notes, found.pauses) == ((0,), (), ())
    assert found.missing is None and found.motors is None and found.external is None
    np.testing.assert_array_equal(found.steps, [0.0] + [STEP] * 7)
    with pytest.raises(DataError, match=r'run: no effort; record JointState\.effort'):
        monitor_input(MODEL, replace(log_of(time), effort=None))


@pytest.mark.parametrize(('pause', 'gap'), [(0.099, False), (0.101, True)])
@pytest.mark.parametrize('velocity', [True, False])
def test_steps_longer_than_a_tenth_of_a_second_are_pauses(
    pause: float, gap: bool, velocity: bool
) -> None:
    """Without velocities rows are in the middle of steps, none of them in a pause."""
    time = STEP * np.arange(12)
    time[6:] += pause - STEP
    found = monitor_input(MODEL, log_of(time, velocity))
    assert found.pauses == (((time[5], time[6], PAUSED),) if gap else ())
    first = 6 if velocity else 5
    assert found.starts == ((0, first) if gap else (0,))
    count = 12 if velocity else 11 - gap
    assert len(found.time) == count
    np.testing.assert_allclose(found.velocity, np.tile([1.0, -1.0, 0.5], (count, 1)))
    steps = np.diff(found.time, prepend=found.time[:1])
    if gap:
        steps[first] = 0.0
    np.testing.assert_allclose(found.steps, steps)
    if not velocity:
        rows = np.delete(np.arange(1, 12), 5) if gap else np.arange(1, 12)
        middle = 0.5 * (time[rows] + time[rows - 1])
        np.testing.assert_allclose(found.time, time[rows])
        np.testing.assert_allclose(found.position, np.outer(middle, [1.0, -1.0, 0.5]))
        np.testing.assert_allclose(found.effort, 10.0 * found.position)


@pytest.mark.parametrize(('repeated', 'lost'), [(6, 0.0), (7, 7 * STEP)])
def test_states_that_carry_the_stamps_of_others_are_lost_time(repeated: int, lost: float) -> None:
    """More than a tenth of a second of them."""
    time = STEP * np.arange(40)
    time[10:10 + repeated] = time[9]
    time[10 + repeated:] = time[9] + STEP * np.arange(1, 31 - repeated)
    found = monitor_input(MODEL, log_of(time))
    assert found.pauses == (((time[9], time[9] + lost, BACK),) if lost else ())
    assert len(found.time) == 40 - repeated


@pytest.mark.parametrize(('before', 'after', 'within', 'lost'), [
    (0.0, 0.0, 0.0, [(9, 16), (60, 67)]), (0.25, 0.25, 0.0, [(9, 16), (60, 67)]),
    (0.0, 0.0, 8 * STEP, [(60, 67)])])
def test_lost_time_is_told_unless_it_is_in_a_pause(
    before: float, after: float, within: float, lost: list[tuple[int, int]]
) -> None:
    """Pauses may end where it begins, and begin where it ends."""
    clock = STEP * np.arange(100)
    stamps = clock.copy()
    stamps[10:17], stamps[17:] = stamps[9], clock[10:93]
    stamps[68:75], stamps[75:] = stamps[67], stamps[68:93].copy()
    stamps[17:] += within
    stamps[24:] += after  # its row before has the stamp at which lost time ends
    stamps[9:] += before
    found = monitor_input(MODEL, log_of(stamps))
    moved = [before + (within + after) * (first > 9) for first, _ in lost]
    assert {one[:2] for one in found.pauses if one[2] == BACK} == {
        (clock[first] + more, clock[last] + more)
        for (first, last), more in zip(lost, moved, strict=True)}
    assert sum(one[2] == PAUSED for one in found.pauses) == (
        bool(before) + bool(after) + bool(within))


def test_missing_values_are_masked_by_joint_and_motion_for_all() -> None:
    log = log_of(STEP * np.arange(10))
    assert log.effort is not None and log.velocity is not None
    log.effort[3, 1] = log.velocity[5, 0] = log.position[7, 2] = np.nan
    expected = np.zeros((10, 3), dtype=bool)
    expected[3, 1], expected[[5, 7]] = True, True
    found = monitor_input(MODEL, log)
    np.testing.assert_array_equal(found.missing, expected)
    assert len(found.notes) == 3 and np.isfinite(found.effort).all()
    between = monitor_input(MODEL, replace(log, velocity=None)).missing
    expected[5] = False
    np.testing.assert_array_equal(between, expected[1:] | expected[:-1])


@pytest.mark.parametrize(('lag', 'motion', 'effort'), [
    (0.0, 0.0, 0.0), (STEP, STEP, 0.0), (-STEP / 2.0, 0.0, STEP / 2.0)])
def test_a_late_effort_delays_the_motion_and_an_early_one_is_delayed(
    lag: float, motion: float, effort: float
) -> None:
    """By linear interpolation; the first value of a segment holds."""
    model = model_of(ROBOT, lag=lag)
    assert lags(model) == (motion, effort)
    time = STEP * np.arange(16)
    time[8:] += 0.5
    found, plain = monitor_input(model, log_of(time)), monitor_input(MODEL, log_of(time))
    begun = np.where(np.arange(16) < 8, time[0], time[8])[:, None]
    for values, whole, late in ((found.position, plain.position, motion),
                                (found.effort, plain.effort, effort)):
        rate = np.array([1.0, -1.0, 0.5]) * (1.0 if values is found.position else 10.0)
        np.testing.assert_allclose(
            values, whole - rate * np.minimum(late, time[:, None] - begun), rtol=0.0, atol=1e-12)
    servos = replace(model, robot=replace(ROBOT, drive=Drive(
        'position_error', np.ones(3), error_limit=np.ones(3))))
    assert lags(servos) == (0.0, 0.0)
    with pytest.raises(ModelError, match='the monitor does not support effort_kind position_err'):
        MonitorInputStream(servos)


def test_of_long_recordings_the_pieces_in_which_joints_move_are_taken() -> None:
    """Each joint in turn has the piece in which it moves longest, above 5 % of its speed."""
    speed = np.zeros((400, 2))
    speed[100:110, 0], speed[300:312, 1], speed[200:209, 1] = 1.0, -2.0, 0.101
    speed[60:80, 1] = 0.099
    whole = motion_of(speed, (0, 305))
    assert whole.in_motion(400) is whole
    alone = MonitorInput(whole.time, speed, speed, speed)
    np.testing.assert_array_equal(alone.steps, [0.0] + [STEP] * 399)
    found = whole.in_motion(60)  # pieces of three rows
    rows = found.position[:, 0].astype(int)
    assert len(rows) == 60
    # ten turns of each joint, then of rest from the beginning
    assert set(range(100, 110)) | set(range(300, 312)) | set(range(200, 209)) <= set(rows)
    np.testing.assert_array_equal(found.velocity, speed[rows])
    np.testing.assert_array_equal(found.effort, 2.0 * speed[rows])
    begins = np.flatnonzero(np.diff(rows, prepend=-2) > 1)
    at = int(np.flatnonzero(rows == 305)[0])
    assert found.starts == tuple(sorted({*begins.tolist(), at}))
    assert len(whole.in_motion(19).time) == 19 and len(whole.in_motion(50).time) == 50
    begins = np.zeros((40, 2))
    begins[:3] = 1.0
    assert motion_of(begins, (0,)).in_motion(20).position[:, 0].tolist() == list(range(20))


def test_slowness_is_forgotten_with_the_gain_and_begins_anew_with_segments() -> None:
    speed = np.array([[0.0], [1.0], [1.0], [0.05], [1.0], [1.0]])
    motion = replace(motion_of(speed, (0, 4)), effort=speed)
    dry = np.full((6, 1), 3.0)
    slow, held = slow_shares(motion, dry, np.array([[0.1], [0.01]]), 10.0)
    keep = np.exp(-10.0 * STEP)
    expected = [1.0, keep, keep**2, 1.0 - keep + keep**3, 1.0, keep]
    np.testing.assert_allclose(slow[:, 0, 0], expected)
    np.testing.assert_allclose(slow[:, 1, 0], [1.0, keep, keep**2, keep**3, 1.0, keep])
    np.testing.assert_allclose(held[:, 0, 0], [0.0, 0.0, 0.0, 3.0 * (1.0 - keep), 0.0, 0.0])


def test_levels_are_learnt_from_so_many_rows_or_a_minute() -> None:
    """Further recordings only while a joint has not moved, or rows are few."""
    fast = log_of(1e-3 * np.arange(LEVEL_ROWS + 100))  # a minute has 60 000 of these rows
    whole = [len(fast.time)] * 2
    assert [len(one.time) for one in recorded_motions(MODEL, [fast, fast])] == whole
    minute = log_of(2e-3 * np.arange(30_100))  # which has 30 000 of these
    assert [len(one.time) for one in recorded_motions(MODEL, [minute, fast])] == [30_000]
    rare = log_of(0.05 * np.arange(LEVEL_ROWS + 100))
    assert [len(one.time) for one in recorded_motions(MODEL, [rare, rare])] == [LEVEL_ROWS]
    unmoved = replace(rare, velocity=np.tile([1.0, 1.0, 0.09], (len(rare.time), 1)))
    assert len(recorded_motions(MODEL, [unmoved, rare, rare])) == 2


Q, QD, TAU = np.array([0.1, 0.2, 0.3]), np.array([1.0, -1.0, 0.5]), np.array([5.0, 6.0, 7.0])


@pytest.mark.parametrize(('step', 'result', 'restarts', 'skipped', 'words'), [
    (0.1, 0.1, 0, 0, ''), (0.1001, 0.0, 1, 0, f'{PAUSED} (0.1 s without)'),
    (0.0, None, 0, 1, BACK), (-0.0999, None, 0, 1, BACK),
    (-0.1, 0.0, 1, 0, f'stamps went back by 0.1 s: {BACK}')])
def test_states_follow_restart_or_are_skipped_by_their_stamps(
    step: float, result: float | None, restarts: int, skipped: int, words: str
) -> None:
    given = MonitorInputStream(MODEL)
    first = given(0.0, Q, QD, TAU)
    assert first is not None and first[1] == 0.0 and given.restarts == 0 and not given.began
    np.testing.assert_array_equal(first[0], [Q, QD, TAU])
    second = given(step, Q + 1.0, QD, TAU)
    assert (None if second is None else second[1]) == result
    assert (given.restarts, given.skipped) == (restarts, skipped)
    assert (given.began if restarts else given.problem) == words


def test_states_of_no_use_are_counted_with_their_reason() -> None:
    given = MonitorInputStream(MODEL)
    able = given(0.0, Q, QD, TAU)
    assert able is not None
    for k, (q, qd, tau, joints) in enumerate((
            (Q * np.nan, QD, TAU, 'joint_1, joint_2, joint_3'),
            (np.array([0.1, 1e9, 0.3]), QD, TAU, 'joint_2'),
            (Q, np.array([0.1, 0.2, -1e9]), TAU, 'joint_3'),
            (Q, QD, TAU * np.nan, 'joint_1, joint_2, joint_3'))):
        assert given(0.01, q, qd, tau) is None and given.skipped == k + 1
        assert given.problem.startswith(f'{joints}: position, velocity or effort is NaN or ')
    assert given(np.nan, Q, QD, TAU) is None and given.problem == 'the stamp is not finite'
    found = given(0.02, Q, QD, TAU * [np.nan, 1.0, 2.0])
    assert found is not None and found[1] == 0.02, 'what was skipped is no state before'
    assert given.missing.tolist() == [True, False, False]
    np.testing.assert_array_equal(found[0][2], TAU * [1.0, 1.0, 2.0])
    again = given(0.03, Q, QD, TAU)
    assert again is not None and not given.missing.any()


def test_efforts_are_converted_by_the_gains_and_held_converted() -> None:
    model = replace(MODEL, robot=replace(ROBOT, drive=Drive('current', np.array([2.0, 3.0, 4.0]))))
    given = MonitorInputStream(model)
    for k, effort in enumerate((TAU, TAU * [1.0, np.nan, 1.0])):
        found = given(0.01 * k, Q, QD, effort)
        assert found is not None
        np.testing.assert_array_equal(found[0][2], TAU * [2.0, 3.0, 4.0])


def test_without_velocities_states_are_in_the_middle_of_steps() -> None:
    given = MonitorInputStream(MODEL)
    assert given(0.0, Q, None, TAU) is None and given.problem == ''
    found = given(0.02, Q + 0.02, None, TAU + 4.0)
    assert found is not None and found[1] == 0.0
    np.testing.assert_allclose(found[0], [Q + 0.01, np.ones(3), TAU + 2.0])
    assert given(0.04, Q + 0.04, None, TAU * [np.nan, 1.0, 1.0]) is not None
    assert given.missing.tolist() == [True, False, False]
    last = given(0.06, Q + 0.06, None, TAU)
    assert last is not None and last[1] == pytest.approx(0.02)
    assert given.missing.tolist() == [True, False, False], 'the state before was missing'


@pytest.mark.parametrize('velocity', [True, False])
@pytest.mark.parametrize('lag', [0.0, STEP, -STEP / 2.0])
def test_single_states_are_the_rows_of_a_recording(velocity: bool, lag: float) -> None:
    """Without the ripple of the torque, at the phase of the measured rows."""
    ripple = TorqueRipple(np.array([3.0]), np.array([0.2]), 0.01, 0.5, 2.0, np.arange(1.0, 7.0))
    model = model_of(ROBOT, lag=lag).with_learnt('ripple', (None, ripple, None))
    time = STEP * np.arange(12.0)
    log = log_of(time, velocity)
    assert log.effort is not None
    rows, given, found = monitor_input(model, log), MonitorInputStream(model), []
    for k, now in enumerate(time.tolist()):
        state = given(now, log.position[k], None if log.velocity is None else log.velocity[k],
                      log.effort[k])
        found += [] if state is None else [state[0]]
    np.testing.assert_allclose(found, np.stack(
        [rows.position, rows.velocity, rows.effort], axis=1), rtol=1e-9, atol=1e-9)
    plain = monitor_input(model_of(ROBOT, lag=lag), log)
    assert np.abs(rows.effort - plain.effort).max(axis=0).tolist()[::2] == [0.0, 0.0]
    assert np.abs(rows.effort - plain.effort)[:, 1].max() > 1.0


def test_joints_without_ends_turn_for_a_day_at_most() -> None:
    """Readings a hundred times as far are damaged."""
    limits = replace(ROBOT.limits, lower=np.full(3, np.nan), upper=np.full(3, np.nan),
                     velocity=np.full(3, 1e3))
    given = MonitorInputStream(replace(MODEL, robot=replace(ROBOT, limits=limits)))
    day = 100.0 * 1e3 * 24.0 * 3600.0
    assert given(0.0, np.array([0.0, 0.99 * day, 0.0]), QD, TAU) is not None
    assert given(0.01, np.array([0.0, 1.01 * day, 0.0]), QD, TAU) is None
    assert given.problem.startswith('joint_2: ')


def test_the_recent_step_follows_by_a_twentieth() -> None:
    given = MonitorInputStream(MODEL)
    for time in (0.0, 0.02):
        given(time, Q, QD, TAU)
    assert given.step == 0.02
    given(0.06, Q, QD, TAU)
    assert given.step == pytest.approx(0.021)
