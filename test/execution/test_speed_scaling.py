"""execution/supervisor.py: speed scaling by the controller: the motion follows it, and no setpoint
is above the plan."""

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import JOINTS, LIMITS, RULES, Cell, excitation

from robot_dynid.execution.guards import Code, JointStates, Outcome
from robot_dynid.execution.pace import Entry
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.segment import Cancel, Finish, Phase, Segment, Send
from robot_dynid.execution.watchdog import Watchdog


def fast(robot, segment):
    """Return the largest speed of the reference as a part of the planned one."""
    planned = np.abs(segment.points.sample(np.arange(
        0.0, segment.points.duration, 1e-3)).velocity).max(axis=0)
    return float(np.max(np.abs(robot.speed) / planned))


@pytest.mark.parametrize('seed', range(3))
@pytest.mark.parametrize('factor', [1.0, 0.9, 0.5, 0.2])
def test_the_motion_follows_the_scaling_without_a_step(factor, seed):
    segment = excitation(seed)
    robot = Cell(lambda _: factor, segment, seed=seed).start().run()
    assert robot.outcome.code is Code.SUCCESS, robot.outcome
    assert fast(robot, segment) <= factor * 1.001
    assert robot.now - 10.0 > segment.points.duration / factor


@pytest.mark.parametrize('seed', range(6))
def test_a_speed_slider_moved_in_mid_motion_makes_no_step(seed):
    segment = excitation(seed)
    steps = ((0.9, 0.9), (1.7, 0.5), (2.6, 0.0), (3.4, 1.0), (4.3, 0.3), (6.0, 1.0))

    def slider(now):
        factor = 1.0
        for at, then in steps:
            factor = then if now - 10.0 > at + 0.013 * seed else factor
        return factor

    robot = Cell(slider, segment, seed=seed).start().run()
    assert robot.outcome.code is Code.SUCCESS, robot.outcome
    assert fast(robot, segment) <= 1.001
    assert np.all(np.abs(robot.position - segment.points.position[-1]) < 1e-6)


def constant(factor):
    return lambda _: factor


def test_a_controller_that_scales_without_a_word_is_followed_by_its_progress():
    segment = excitation(1)
    robot = Cell(lambda now: 0.6 if now > 11.0 else 1.0, segment, told=constant(None))
    robot.start().run()
    assert robot.outcome.code is Code.SUCCESS, robot.outcome
    assert robot.execution.watchdog.path_time.scaling == pytest.approx(0.6, abs=0.02)
    assert fast(robot, segment) <= 1.001


@pytest.mark.parametrize('factor', [1.0, 0.5, 0.2])
@pytest.mark.parametrize('code', [Code.CANCELLED, Code.EMERGENCY_STOP])
def test_a_stop_of_a_scaled_motion_is_along_its_path_within_the_limits(factor, code):
    segment = excitation(2)
    robot = Cell(constant(factor), segment).start().run(0.2 / factor + 1.3)
    asked = robot.now
    robot.do(lambda now: robot.execution.cancel(now, Outcome(code, 'asked'))).run()
    assert robot.outcome.code is code and 'stopped along the path' in robot.outcome.text
    assert robot.now - asked < 1.0 + 0.5 / factor
    assert fast(robot, segment) <= factor * 1.001
    path = segment.points.sample(np.linspace(0.0, segment.points.duration, 40_000)).position
    assert np.min(np.abs(path - robot.position).max(axis=1)) < 1e-3


@pytest.mark.parametrize('factor', [0.1, 0.0])
def test_a_robot_that_crawls_or_is_paused_at_its_pendant_is_stopped_at_once(factor):
    segment = excitation(2)
    robot = Cell(lambda now: factor if now > 11.5 else 1.0, segment).start().run(2.0)
    asked = robot.now
    robot.do(lambda now: robot.execution.cancel(now, Outcome(Code.CANCELLED, 'asked'))).run()
    assert robot.outcome.code is Code.CANCELLED and robot.now - asked < 0.2, robot.outcome


def test_pause_and_resume_at_half_speed():
    segment = excitation(3)
    robot = Cell(constant(0.5), segment).start().run(2.0)
    robot.do(robot.execution.pause).run(2.0)
    assert robot.execution.phase is Phase.PAUSED
    stood = robot.position.copy()
    robot.run(0.5)
    assert np.array_equal(stood, robot.position)
    robot.do(robot.execution.resume).run()
    assert robot.outcome.code is Code.SUCCESS and fast(robot, segment) <= 0.5005
    (note,) = robot.execution.notes
    assert note.startswith('speed scaling fell to 0.5: the motion was slower than planned')


def test_a_motion_paused_for_long_at_the_pendant_goes_on_to_its_end():
    segment = excitation(4)
    robot = Cell(lambda now: 0.0 if 11.3 < now < 60.0 else 1.0, segment).start().run(100.0)
    assert robot.outcome.code is Code.SUCCESS and robot.now > 60.0
    assert fast(robot, segment) <= 1.001


def test_a_controller_that_goes_faster_than_planned_is_stopped():
    robot = Cell(lambda now: 1.2 if now > 11.0 else 1.0, excitation(5)).start().run()
    assert robot.outcome.code is Code.SPEED_SCALING
    assert 'speed scaling is 1.2: the motion is faster than planned' in robot.outcome.text
    assert 'decelerated within the limits' in robot.outcome.text and robot.now < 12.0


def test_too_slow_a_motion_comes_to_rest_on_its_path():
    segment = excitation(5)
    robot = Cell(lambda now: 0.03 if now > 11.0 else 1.0, segment).start().run(200.0)
    assert robot.outcome.code is Code.SPEED_SCALING
    assert 'speed scaling is 0.03, at which the motion cannot be continued' in robot.outcome.text


def test_the_time_a_scaled_motion_loses_is_no_silence_and_no_missing_result():
    whole = replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))
    robot = Cell(constant(0.3), excitation(0), whole).start().run()
    assert robot.outcome.code is Code.SUCCESS, robot.outcome
    assert sum(isinstance(c, Send) for _, c in robot.log) == 1


@pytest.mark.parametrize('told', [constant(None), lambda factor: factor])
def test_a_scaling_that_cannot_be_followed_stops_the_motion_and_is_named(told):
    """The controller does not tell its time, and the motion was sent whole."""
    whole = replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))
    robot = Cell(lambda now: 0.5 if now > 11.0 else 1.0, excitation(0), whole, told=told)
    robot.tells = False
    robot.start().run()
    assert robot.outcome.code is Code.SPEED_SCALING, robot.outcome
    scaling = 'below 1' if told(0.5) is None else '0.5'
    assert f'speed scaling is {scaling}, and the controller does not' in robot.outcome.text
    assert 'the robot holds' in robot.outcome.text and robot.now < 11.8
    assert fast(robot, robot.execution.plan[0]) < 1.001


def test_a_controller_that_does_not_interpolate_is_told_from_one_that_was_taken_over():
    robot = Cell(constant(1.0), excitation(0))
    robot.steps = True
    robot.start().run()
    assert robot.outcome.code is Code.REJECTED, robot.outcome
    assert 'interpolation_method to splines; motion cancelled' in robot.outcome.text
    assert [type(c) for _, c in robot.log[-2:]] == [Cancel, Finish], 'no step of a deceleration'
    assert robot.now < 10.6


def test_a_pace_that_changes_from_state_to_state_is_not_continued():
    """It is not known well enough; the robot comes to rest on its path."""
    segment = excitation(2)
    robot = Cell(lambda now: 0.8 if now > 11.0 and int(now / 0.012) % 2 else 1.0, segment)
    robot.start().run()
    assert robot.outcome.code is Code.SPEED_SCALING, robot.outcome
    assert 'speed scaling changes all the time' in robot.outcome.text
    assert not any(isinstance(c, Send) for at, c in robot.log if at > 11.05)
    assert fast(robot, segment) <= 1.001


def test_a_state_from_before_a_piece_was_taken_is_placed_in_the_motion_before_it():
    """The robot is at rest, so that its position does not tell which of both it was."""
    still = np.zeros((200, 2))
    points = SampledTrajectory(JOINTS, 0.1 + 0.02 * np.arange(200), still, still, still)
    watchdog = Watchdog(RULES, JointStates(JOINTS))
    first = Segment('excitation', points, LIMITS)
    watchdog.send(first, 0.0)
    watchdog.follow(first, 0.0)
    for k in range(1, 100):
        watchdog.note_reference(0.01 * k, 0.005 * k, still[0], scaling=0.5)
    entry = Entry(0.495, 0.5, 0.1, 0.1)
    second = Segment('excitation', points, LIMITS, elapsed=0.495, entry=entry)
    watchdog.send(second, 0.99)
    watchdog.follow(second, 1.01)
    watchdog.note_reference(1.0, 0.5, still[0], scaling=0.5)
    assert watchdog.reported == pytest.approx(0.5), 'it had not gone over yet'
    for k in range(2, 70):
        time = 0.5 + 0.005 * k  # it went over at 1.0 s
        watchdog.note_reference(0.99 + 0.01 * k, time, still[0], scaling=0.5)
        assert watchdog.reported == pytest.approx(entry.along(time)[0])


def test_a_change_of_the_scaling_is_taken_at_once_however_many_states_come():
    points = excitation(0).points
    watchdog = Watchdog(RULES, JointStates(JOINTS))
    segment = Segment('excitation', points, LIMITS)
    watchdog.send(segment, 0.0)
    watchdog.follow(segment, 0.0)
    taken = [watchdog.note_reference(at, at, points.sample(at).position[0], scaling=scaling)
             for at, scaling in ((0.300, 1.0), (0.302, 1.0), (0.304, 0.5), (0.306, 0.5))]
    assert taken == [True, False, True, False]
    assert watchdog.path_time.pace == 0.5
