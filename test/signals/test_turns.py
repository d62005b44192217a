"""Positions that turn over: the motion is that of an encoder that counts on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import SAME_FORMULA

from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.plausible import drop_implausible
from robot_dynid.signals.turns import (
    TURN,
    Turns,
    fastest,
    unroll,
    within_half_turn,
    wrapped_turns,
)
from robot_dynid.types import FloatArray, RawLog

ROBOT = load_robot('planar_3r')
#: least position that drivers report: within +-pi, 0 to 2 pi, a zero of somebody's own
SEAMS = {'pi': -np.pi, '2 pi': 0.0, 'another': 0.4}


def turning(direction: float = 1.0, step: float = 4e-3) -> RawLog:
    """Return 12 s of three joints that pass several turns, and swing about where they end."""
    time = np.arange(0.0, 12.0, step)
    forth = np.outer(2.5 * time, [1.0, 0.6, -0.8]) + np.sin(np.outer(time, [3.0, 2.0, 5.0]))
    position = direction * np.where(time[:, None] < 9.0, forth, forth[time < 9.0][-1])
    return RawLog('turning', ROBOT.joints, time, position, effort=np.ones_like(position),
                  reference_position=position + 0.01)


def reported(values: FloatArray, least: float) -> FloatArray:
    """Return positions as a driver reports them that counts one turn from ``least`` on."""
    return np.asarray(least + np.mod(values - least, TURN))


def wrapped(log: RawLog, least: float) -> RawLog:
    assert log.reference_position is not None
    return replace(log, position=reported(log.position, least),
                   reference_position=reported(log.reference_position, least))


def same_motion(found: FloatArray, truth: FloatArray) -> None:
    """Positions differ by the same whole turns throughout."""
    off = found - truth
    np.testing.assert_allclose(off, np.tile(TURN * np.rint(off[0] / TURN), (len(off), 1)),
                               rtol=0.0, atol=100.0 * SAME_FORMULA)


@pytest.mark.parametrize('seam', SEAMS.values(), ids=SEAMS)
@pytest.mark.parametrize('direction', [1.0, -1.0])
def test_a_motion_goes_on_over_the_seam(direction: float, seam: float) -> None:
    log = turning(direction)
    found, notes = drop_implausible(ROBOT, wrapped(log, seam))
    assert found.reference_position is not None and log.reference_position is not None
    same_motion(found.position, log.position)
    same_motion(found.reference_position, log.reference_position)
    count = np.count_nonzero(np.abs(np.diff(reported(log.position[:, 0], seam))) > np.pi)
    assert count > 2
    assert any(f'position.{ROBOT.joints[0]} turns over {count} time(s), first at t = ' in note
               for note in notes)
    assert drop_implausible(ROBOT, log) == (log, []), 'what does not turn over stays'


def at_seams(log: RawLog) -> list[int]:
    """Return the rows of the first joint behind a seam at pi."""
    return (np.flatnonzero(np.abs(np.diff(reported(log.position[:, 0], -np.pi))) > np.pi) + 1
            ).tolist()


@pytest.mark.parametrize('direction', [1.0, -1.0])
@pytest.mark.parametrize('missing', [1, 10, 40])
def test_messages_that_are_lost_at_the_seam_hide_no_turn(direction: float, missing: int) -> None:
    log = turning(direction)
    gone = np.zeros(len(log.time), dtype=bool)
    for row in at_seams(log):
        gone[row - missing // 2:row + (missing + 1) // 2] = True
    few = replace(log, time=log.time[~gone], position=log.position[~gone],
                  effort=np.ones_like(log.position[~gone]), reference_position=None)
    found, _ = drop_implausible(ROBOT, replace(few, position=reported(few.position, -np.pi)))
    same_motion(found.position, few.position)


def test_numbers_that_are_missing_at_the_seam_hide_no_turn() -> None:
    log = turning()
    shown = wrapped(log, -np.pi)
    for row in at_seams(log):
        shown.position[row - 1:row + 1, 0] = np.nan
        shown.position[row + 1, 1] = np.inf
    found, _ = drop_implausible(ROBOT, shown)
    bad = ~np.isfinite(shown.position)
    assert bad.sum() > 8 and np.array_equal(~np.isfinite(found.position), bad)
    same_motion(np.where(bad, log.position, found.position), log.position)


@pytest.mark.parametrize('missing', [100, 300])
def test_long_holes_in_the_numbers_are_closed_the_short_way_round(missing: int) -> None:
    """They are interpolated, which must not take a joint round by a turn."""
    log = replace(turning(), reference_position=None)
    slow = replace(log, position=0.2 * log.position)
    shown = replace(slow, position=reported(slow.position, -np.pi))
    for row in at_seams(slow):
        shown.position[row - missing // 2:row + missing // 2, 0] = np.nan
    found, notes = drop_implausible(ROBOT, shown)
    bad = ~np.isfinite(shown.position)
    assert bad.any() and 'position.joint_1 turns over 1 time(s)' in ''.join(notes)
    same_motion(np.where(bad, slow.position, found.position), slow.position)


@pytest.mark.parametrize(('speed', 'rate'), [(28.0, 10.0), (20.0, 10.0), (28.0, 100.0)])
@pytest.mark.parametrize('limit', [2.0, np.nan])
def test_joints_faster_than_they_are_said_to_be_are_followed(
    speed: float, rate: float, limit: float,
) -> None:
    robot = replace(ROBOT, limits=replace(ROBOT.limits, velocity=np.full(3, limit)))
    time = np.arange(0.0, 4.0, 1.0 / rate)
    truth = np.stack([speed * time, 4.0 + 3.0 * np.sin(speed / 3.0 * time), -speed * time], axis=1)
    found, _ = drop_implausible(robot, RawLog('fast', robot.joints, time, reported(truth, -np.pi)))
    same_motion(found.position, truth)


@settings(max_examples=25)
@given(st.floats(-7.0, 7.0), st.floats(-9.0, 9.0), st.sampled_from([1e-3, 4e-3, 2e-2, 0.1]))
def test_states_one_by_one_are_the_recording(least: float, speed: float, step: float) -> None:
    time = np.arange(0.0, 3.0, step)
    truth = np.outer(time, [speed, -0.5 * speed, 0.1]) + 0.3
    log = RawLog('steady', ROBOT.joints, time, reported(truth, least))
    turns = Turns(ROBOT)
    along = np.stack([turns(t, q) for t, q in zip(time.tolist(), log.position, strict=True)])
    same_motion(along, truth)
    np.testing.assert_allclose(along, unroll(ROBOT, log)[0].position, rtol=0.0, atol=SAME_FORMULA)


def test_a_joint_that_rests_at_the_seam_flickers_no_more() -> None:
    time = 1e-3 * np.arange(2000)
    truth = np.pi + 1e-3 * np.random.default_rng(0).normal(size=(2000, 3))
    found, _ = drop_implausible(ROBOT, RawLog('rest', ROBOT.joints, time, reported(truth, -np.pi)))
    assert np.ptp(found.position, axis=0).max() < 0.01


SLIDING = replace(ROBOT, types=np.full(3, PRISMATIC, dtype=np.int8))


def step(size: float, pause: float = 0.0) -> RawLog:
    """Return 4 s at rest but for a step of all joints in the middle, after a ``pause`` [s]."""
    late = np.arange(400) >= 200
    return RawLog('step', ROBOT.joints, 0.01 * np.arange(400) + pause * late,
                  np.outer(size * late, np.ones(3)))


@pytest.mark.parametrize(('robot', 'log', 'turns'), [
    (ROBOT, step(6.2), 1), (ROBOT, step(-6.35), -1), (ROBOT, step(6.2, 0.2), 1),
    (ROBOT, step(4.0), 0), (ROBOT, step(-12.6), 0), (ROBOT, step(6.2, 0.4), 0),
    (SLIDING, step(6.2), 0)],
    ids=['up', 'down', 'short pause', 'spike', 'two turns', 'long pause', 'slides'])
def test_only_what_no_joint_can_move_is_a_turn(robot: RobotModel, log: RawLog, turns: int
                                               ) -> None:
    along = Turns(robot)
    for found in (unroll(robot, log)[0].position, np.stack([
            along(t, q) for t, q in zip(log.time.tolist(), log.position, strict=True)])):
        np.testing.assert_allclose(found[-1], log.position[-1] - turns * TURN)
        np.testing.assert_array_equal(found[:200], log.position[:200])


def test_degrees_are_no_turns() -> None:
    """At 10 Hz 63 deg/s look like a turn from message to message, but other speeds do not."""
    time = 0.1 * np.arange(400)
    degrees = np.outer(180.0 / np.pi * np.sin(time), np.ones(3))
    log = RawLog('degrees', ROBOT.joints, time, degrees)
    assert np.count_nonzero(np.abs(np.abs(np.diff(degrees[:, 0])) - TURN) < 1.0) > 50
    assert unroll(ROBOT, log) == (log, [])


@pytest.mark.parametrize('robot', [ROBOT, SLIDING], ids=['turns', 'slides'])
def test_a_clock_that_is_set_back_turns_nothing_over(robot: RobotModel) -> None:
    turns = Turns(robot)
    assert turns(5.0, np.full(3, 3.1))[0] == 3.1
    assert turns(2.0, np.full(3, -3.1))[0] == -3.1


@pytest.mark.parametrize(('step', 'seconds', 'turn', 'within'), [
    # a joint of 10 rad/s turns by 0.04 rad in 4 ms, and a tenth is noise
    (TURN - 0.13, 4e-3, TURN, 0.0), (TURN + 0.13, 4e-3, TURN, 0.0),
    (-TURN + 0.13, 4e-3, -TURN, 0.0),
    (TURN - 0.15, 4e-3, 0.0, 0.0), (TURN + 0.15, 4e-3, 0.0, 0.0), (0.5 * TURN, 4e-3, 0.0, 0.0),
    # of a driver that wraps 30 rad/s are believed
    (TURN - 0.21, 4e-3, TURN, 1.0), (TURN - 0.23, 4e-3, 0.0, 1.0),
    # half a turn takes 0.31 s
    (0.6 * TURN, 0.31, TURN, 0.0), (0.6 * TURN, 0.32, 0.0, 0.0),
    # stamps repeat or go back
    (TURN, 0.0, 0.0, 0.0), (TURN, -4e-3, 0.0, 0.0), (TURN, -4e-3, 0.0, 1.0)])
def test_a_step_is_a_turn_if_no_joint_moves_as_fast(
    step: float, seconds: float, turn: float, within: float
) -> None:
    found = wrapped_turns(np.array([step]), np.array([seconds]), 10.0, bool(within))
    assert found.tolist() == [turn]
    if seconds == 0.32:  # numbers are missing, between which the path is the shorter one
        assert wrapped_turns(np.array([step]), np.array([seconds]), 10.0, False, True) == TURN


def test_speeds_that_joints_do_not_exceed_are_usual_or_stated() -> None:
    """From 10 to 30 rad/s; slides do not wrap."""
    robot = replace(ROBOT, limits=replace(ROBOT.limits, velocity=np.array([2.0, 20.0, 40.0])))
    assert fastest(robot).tolist() == [10.0, 20.0, 30.0]
    unknown = replace(ROBOT, limits=replace(ROBOT.limits, velocity=np.full(3, np.nan)),
                      types=np.array([0, PRISMATIC, 0], dtype=np.int8))
    assert fastest(unknown).tolist() == [10.0, np.inf, 10.0]
    angles = np.array([[0.49 * TURN, 0.51 * TURN, -0.51 * TURN], [2.0 * TURN, 7.0, -7.0]])
    np.testing.assert_allclose(within_half_turn(unknown, angles), [
        [0.49 * TURN, 0.51 * TURN, 0.49 * TURN], [0.0, 7.0, TURN - 7.0]], rtol=0.0, atol=1e-12)
