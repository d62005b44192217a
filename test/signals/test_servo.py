"""signals/servo.py: the effort of position servos, from commands, positions and limits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from position_servos import ERROR_LIMIT, GAIN, JOINTS, PERIOD, servo_robot

from robot_dynid.errors import DataError, RobotError
from robot_dynid.io.csv import write_csv
from robot_dynid.io.log import load_log
from robot_dynid.robot.model import Drive, RobotModel
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.signals.servo import position_error
from robot_dynid.types import FloatArray, RawLog

ROBOT = servo_robot()
TIME = PERIOD * np.arange(300)


def recording(position: FloatArray, command: FloatArray) -> RawLog:
    """Return a recording in which all joints move alike."""
    return RawLog('servos', JOINTS, TIME, np.repeat(position[:, None], 5, axis=1),
                  reference_position=np.repeat(command[:, None], 5, axis=1))


def effort(log: RawLog, delay: float = 0.0, robot: RobotModel = ROBOT) -> FloatArray:
    """Return the effort of the first joint."""
    computed = position_error(robot, log, delay)[0].effort
    assert computed is not None
    return computed[:, 0]


def simulated(log: RawLog, delay: float, damping: float = 0.0) -> FloatArray:
    """Return the mean effort around each row, from a servo stepped at 50 kHz."""
    position, command = log.position[:, 0], np.asarray(log.reference_position)[:, 0]
    fine = np.arange(log.time[0] - PERIOD / 2 + 1e-5, log.time[-1] + PERIOD / 2, 2e-5)
    row = np.searchsorted(log.time, fine - delay, 'right') - 1
    held = command[np.clip(row, 0, None)]
    moved = np.interp(fine, log.time, position)
    speed = np.interp(fine + 1e-6, log.time, position) - np.interp(
        fine - 1e-6, log.time, position)
    error = np.clip(held - moved - damping * speed / 2e-6, -ERROR_LIMIT, ERROR_LIMIT)
    return np.asarray(error.reshape(len(log.time), -1).mean(axis=1))


@pytest.mark.parametrize('delay', [0.0, 0.0043, 0.013, 0.027])
@pytest.mark.parametrize('damping', [0.0, 0.03])
def test_error_is_the_mean_of_that_of_a_servo_with_held_commands(
    delay: float, damping: float
) -> None:
    """Also where it is at its limit in a part of the interval only."""
    command = 0.8 * np.sin(2.0 * np.pi * 0.9 * TIME)
    position = 0.75 * np.sin(2.0 * np.pi * 0.9 * (TIME - 0.12))
    log = recording(position, command)
    robot = servo_robot(derivative_time=np.full(5, damping))
    ours, theirs = effort(log, delay, robot)[3:-3], simulated(log, delay, damping)[3:-3]
    assert np.abs(theirs).max() == pytest.approx(ERROR_LIMIT, rel=0.02)
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=0.015 * ERROR_LIMIT)


def test_saturated_samples_are_counted_and_have_the_limit_as_effort() -> None:
    """For 100.5 of 300 steps, from half a step before the first row."""
    command = np.where(np.arange(300) < 100, 1.0, 0.05)
    computed, notes = position_error(ROBOT, recording(np.zeros(300), command))
    assert computed.effort is not None
    assert np.all(computed.effort[:99] == ERROR_LIMIT)
    assert np.allclose(computed.effort[102:], 0.05)
    assert 'pan 33.5 %' in notes[0]


def test_a_command_that_is_missing_holds_and_lost_rows_have_no_effort() -> None:
    """Before the first command nothing is known."""
    command, position = np.full(300, 0.1), np.zeros(300)
    command[:5], command[50:60], position[80] = np.nan, np.nan, np.nan
    computed = effort(recording(position, command))
    assert np.isnan(computed[[0, 4, 80]]).all()
    assert np.isfinite(computed).sum() == 300 - 6
    assert np.allclose(computed[np.isfinite(computed)], 0.1)


def test_other_kinds_of_effort_are_left_alone() -> None:
    """What the driver reports of a servo is no effort of the equations."""
    log = replace(recording(TIME, TIME), effort=np.full((300, 5), 7.0))
    other = replace(ROBOT, drive=Drive(kind='torque'))
    assert position_error(other, log) == (log, [])
    assert not np.any(effort(log) == 7.0)


def test_commands_of_a_table_become_torque(tmp_path: Path) -> None:
    """By the gain; their delay moves the command and not the position."""
    command = 0.5 * np.sin(2.0 * np.pi * 0.5 * TIME)
    path = tmp_path / 'run.csv'
    write_csv(path, recording(command - 0.1, command))
    path.write_text(path.read_text('utf-8').replace('reference_position', 'command'), 'utf-8')
    log = load_log(path, ROBOT)
    assert not [one for one in log.findings if one.startswith('effort')]
    repaired = repair(ROBOT, log)
    first, late = (prepare(ROBOT, repaired, Preprocessing(
        4.0, effort_lag=lag, decimate=False, trim_rest=False)) for lag in (0.0, 0.005))
    assert first.effort is not None and late.effort is not None
    inner = slice(50, -50)
    # held for 20 ms a command is 10 ms late on average
    rate = np.pi * 0.5 * np.cos(2.0 * np.pi * 0.5 * first.time)
    for one, delay in ((first, 0.01), (late, 0.015)):
        np.testing.assert_allclose(
            one.effort[inner, 0], GAIN * (0.1 - delay * rate)[inner], rtol=0.0, atol=GAIN * 1e-3)
        assert one.stamps is not None
        np.testing.assert_allclose(one.stamps, one.time)
        assert one.reference_position is not None
        np.testing.assert_allclose(one.reference_position[inner, 0], 0.5 * np.sin(
            np.pi * (one.time[inner] - delay)), rtol=0.0, atol=1e-3)


def test_what_is_missing_is_named() -> None:
    """Commands of the recording; limit and gains of the drive."""
    log = RawLog('servos', JOINTS, TIME, np.zeros((300, 5)))
    with pytest.raises(DataError, match=r'no commands of pan, lift, elbow, flex, roll.*command\.'):
        repair(ROBOT, log)
    with pytest.raises(RobotError, match='needs error_limit'):
        Drive(kind='position_error', gains=np.ones(5))
    with pytest.raises(RobotError, match=r'needs drive_gains \[N m/rad'):
        Drive(kind='position_error', error_limit=np.ones(5))
    with pytest.raises(RobotError, match='not supported with coupling'):
        Drive('position_error', np.ones(5), error_limit=np.ones(5), coupling=np.eye(5))
