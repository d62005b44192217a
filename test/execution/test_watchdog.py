"""execution/watchdog.py: ages, errors, stopping points and results, number by number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from execution_bench import JOINTS, LIMITS, RULES
from pytest import approx

from robot_dynid.execution.guards import Code, JointStates, Outcome
from robot_dynid.execution.pace import Pacing
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.segment import Segment
from robot_dynid.execution.watchdog import Rules, Watchdog, explained, since, unseen

#: a motion at 0.5 and -0.25 rad/s from 0.2 s to 4.2 s, sent at 100 s and accepted at once
SPEED = np.array([0.5, -0.25])
TIME = 0.2 + 0.001 * np.arange(4001)
POINTS = SampledTrajectory(JOINTS, TIME, np.array([1.0, 0.5]) + np.outer(
    TIME - 0.2, SPEED), np.tile(SPEED, (4001, 1)), np.zeros((4001, 2)))
SEGMENT = Segment('excitation', POINTS, LIMITS)
SENT = 100.0


def at(elapsed: float) -> np.ndarray:
    """Return the position of the motion."""
    return np.array([1.0, 0.5]) + (elapsed - 0.2) * SPEED


def watching(rules: Any = RULES, elapsed: float = 2.0, off: tuple[float, float] = (0.0, 0.0),
             speed: Any = SPEED, age: float = 0.0, states: JointStates | None = None
             ) -> tuple[Watchdog, float]:
    """Return a watchdog of the motion under way, and the time; ``states`` are ``age`` s old."""
    states, now = states or JointStates(JOINTS), SENT + elapsed
    watchdog = Watchdog(rules, states)
    watchdog.begin(SENT)
    watchdog.send(SEGMENT, SENT)
    watchdog.follow(SEGMENT, SENT)
    then = now - age
    states.update(then, JOINTS, 0.0, (at(elapsed - age) + off, speed, np.zeros(2)))
    for k in range(round(100.0 * elapsed)):  # nothing is held up
        watchdog.attention.look(SENT + 0.01 * (k + 1))
    return watchdog, now


def settings(**changes: float) -> Any:
    return replace(RULES, settings=replace(RULES.settings, **changes))


@pytest.mark.parametrize(('off', 'found'), [
    ((0.124, 0.0), ''), ((-0.127, 0.0), "joint 'shoulder' is at 1.773, 0.1015 off"),
    ((0.0, 0.112), ''), ((0.0, 0.114), "joint 'elbow' is at 0.164, 0.1013 off"),
    ((0.13, -0.2), "joint 'elbow' is at -0.15, 0.1875 off")])
def test_tracking_error_counts_beyond_the_way_in_the_window(
    off: tuple[float, float], found: str
) -> None:
    """The joints go 0.025 and 0.0125 rad in the 0.05 s of the window; 0.1 rad are allowed."""
    watchdog, now = watching(off=off)
    trip = watchdog.tracking(now)
    assert trip == (Outcome(Code.TRACKING_ERROR, f'{found} its trajectory (limit 0.1)')
                    if found else None)


def test_error_is_desired_minus_measured() -> None:
    watchdog, now = watching(off=(0.25, -0.125))
    np.testing.assert_allclose(watchdog.error(POINTS, now), [-0.25, 0.125], atol=1e-12, rtol=0.0)


@pytest.mark.parametrize(('age', 'bridged', 'trip'), [
    (0.099, None, False), (0.101, None, True), (0.39, 0.09, False), (0.39, 0.11, True),
    (0.41, 0.09, True)])
def test_states_may_be_silent_for_their_timeout_and_bridged_for_a_while(
    age: float, bridged: float | None, trip: bool
) -> None:
    states = JointStates(JOINTS)
    watchdog, now = watching(age=age, states=states)
    if bridged is not None:
        states.bridged = now - bridged
    found = watchdog.silence(now, True)
    assert (found is not None) is trip
    assert watchdog.visible(now) is not trip
    if found is not None:
        assert found == Outcome(Code.STALE_STATES, f"no state of joint 'shoulder' for {age:.3f} s "
                                '(limit 0.1 s)')


@pytest.mark.parametrize(('age', 'trip'), [(0.199, False), (0.201, True)])
def test_the_controller_may_be_silent_for_its_timeout(age: float, trip: bool) -> None:
    watchdog, now = watching()
    watchdog.note_controller(now - age)
    found = watchdog.silence(now, True)
    assert found == (Outcome(Code.CONTROLLER_LOST, 'no controller state for 0.201 s')
                     if trip else None)
    assert watchdog.silent(now - age + 0.049) is False and watchdog.silent(now - age + 0.051)


@pytest.mark.parametrize(('rules', 'text'), [
    (RULES, 'the action server of the controller is gone'),
    (replace(RULES, answers=False), 'the topic of the controller has no subscriber any more')])
def test_a_controller_that_is_gone_is_lost(rules: Any, text: str) -> None:
    watchdog, now = watching(rules)
    assert watchdog.silence(now, False) == Outcome(Code.CONTROLLER_LOST, text)


def test_the_longest_silence_is_that_of_the_controller_during_the_motion() -> None:
    watchdog, now = watching()
    for age in (0.5, 0.38, 0.23):
        watchdog.note_controller(now - age)
    assert watchdog.longest_silence == approx(0.15)


@pytest.mark.parametrize(('waited', 'trip'), [(1.99, False), (2.01, True)])
def test_a_goal_may_be_unanswered_for_its_timeout(waited: float, trip: bool) -> None:
    watchdog = Watchdog(RULES, JointStates(JOINTS))
    watchdog.begin(SENT)
    watchdog.send(SEGMENT, SENT)
    found = watchdog.unanswered(SENT + waited)
    assert found == (Outcome(Code.CONTROLLER_LOST, 'the controller did not answer the goal for '
                             '2.010 s') if trip else None)


@pytest.mark.parametrize(('silence', 'trip'), [(0.49, False), (0.51, True)])
def test_feedback_may_be_missing_for_its_timeout(silence: float, trip: bool) -> None:
    watchdog, now = watching()
    watchdog.feedback = now - silence
    found = watchdog.abandoned(SEGMENT.remaining, now)
    assert found == (Outcome(Code.CONTROLLER_LOST, 'no feedback of the controller for 0.510 s')
                     if trip else None)


@pytest.mark.parametrize(('late', 'answers', 'text'), [
    (0.99, True, ''), (1.01, True, 'the controller sends no result although the motion and its '
                      'goal time ended 1.01 s ago'),
    (1.01, False, 'the robot does not come to rest at the end of the motion, which with its goal '
     'time was 1.01 s ago')])
def test_a_result_may_be_late_for_its_timeout_after_the_goal_time(
    late: float, answers: bool, text: str
) -> None:
    goal_time = 0.5
    rules = replace(RULES, answers=answers,
                    tolerances=replace(RULES.tolerances, goal_time=goal_time))
    watchdog, _ = watching(rules)
    now = SENT + 4.2 + goal_time + late
    assert watchdog.late(SEGMENT.remaining, now) == approx(late)
    found = watchdog.abandoned(SEGMENT.remaining, now)
    assert (found.text if found is not None else '') == text
    assert found is None or found.code is (
        Code.CONTROLLER_LOST if answers else Code.TRACKING_ERROR)


def test_a_motion_is_over_after_its_time_and_the_window() -> None:
    watchdog, _ = watching()
    assert not watchdog.over(SEGMENT, SENT + 4.2 + 0.049)
    assert watchdog.over(SEGMENT, SENT + 4.2 + 0.051)
    there, _ = watching(elapsed=4.2, speed=(0.049, -0.049), off=(0.049, -0.049))
    assert there.arrived(SEGMENT, SENT + 4.3) and not there.arrived(SEGMENT, SENT + 4.2)
    assert not watching(elapsed=4.2, speed=(0.0, -0.051))[0].arrived(SEGMENT, SENT + 4.3)
    off, _ = watching(elapsed=4.2, speed=(0.0, 0.0), off=(0.0, 0.051))
    assert not off.arrived(SEGMENT, SENT + 4.3)
    assert off.missed(POINTS) == Outcome(
        Code.TRACKING_ERROR, "the controller reports success, but joint 'elbow' is 0.051 away "
        'from the end (limit 0.05): check that no other program commands it')


def test_a_motion_begins_where_the_robot_stands() -> None:
    for off, trip in ((0.0199, None), (0.0201, "joint 'elbow' is 0.0201 away from the start "
                      '(limit 0.02): nothing was sent, the robot holds')):
        states = JointStates(JOINTS)
        states.update(SENT, JOINTS, 0.0, ([1.0, 0.5 + off], [0.0, 0.0], [0.0, 0.0]))
        found = Watchdog(RULES, states).not_ready(SEGMENT, SENT)
        assert (found.text if found is not None else None) == trip


@pytest.mark.parametrize(('scaling', 'fast'), [(1.049, False), (1.06, True)])
def test_a_controller_that_is_faster_than_planned_is_stopped(scaling: float, fast: bool) -> None:
    watchdog, now = watching()
    for k in range(2):
        watchdog.path_time.note(now + 0.01 * k, 2.0 + 0.01 * k * scaling, 1.0, scaling)
    found = watchdog.too_fast()
    assert found == (Outcome(Code.SPEED_SCALING, 'speed scaling is 1.06: the motion is faster '
                             'than planned; set the speed to 100 %') if fast else None)


@pytest.mark.parametrize(('gap', 'trip'), [(0.99, False), (1.01, True)])
def test_a_robot_moves_without_the_node_for_a_second(gap: float, trip: bool) -> None:
    watchdog, now = watching()
    watchdog.look(now)
    assert watchdog.unattended(now + gap) is trip
    found = watchdog.look(now + gap)
    assert watchdog.held_up == approx(gap)
    assert found == (Outcome(Code.NODE_DELAYED, 'this node was held up for 1.01 s, in which '
                             'nobody watched the robot') if trip else None)


WHOLE = replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))


def test_a_hold_is_reached_at_the_limit_of_acceleration_from_the_measured_state() -> None:
    """From 0.5 rad/s a quintic takes 0.1 s at least and 1.5 v / a, over v T / 2."""
    slow = replace(LIMITS, acceleration=np.array([2.5, 50.0]))
    watchdog, now = watching(replace(WHOLE, limits=slow))
    goal, duration = watchdog.stopping_point(now)
    assert duration == approx(1.5 * 0.5 / 2.5)
    np.testing.assert_allclose(goal, at(2.0) + 0.5 * duration * SPEED, rtol=1e-12)
    quick, quickly = watching(WHOLE)[0].stopping_point(now)
    assert quickly == approx(0.1)
    np.testing.assert_allclose(quick, at(2.0) + 0.05 * SPEED, rtol=1e-12)


def test_a_hold_goes_no_further_than_the_limits_and_no_faster() -> None:
    near = replace(LIMITS, upper=np.array([1.91, 2.0]))
    goal, _ = watching(replace(WHOLE, limits=near))[0].stopping_point(SENT + 2.0)
    assert goal[0] == 1.91
    slow = replace(LIMITS, velocity=np.array([0.4, 2.0]))
    goal, _ = watching(
        replace(WHOLE, limits=slow), speed=(9.0, 0.0))[0].stopping_point(SENT + 2.0)
    assert goal[0] == approx(at(2.0)[0] + 0.5 * 0.1 * 0.4)


def test_a_hold_from_far_away_takes_the_time_of_a_quintic() -> None:
    off = 0.5
    far, now = watching(WHOLE, off=(0.0, off), speed=(0.0, 0.0))
    goal, duration = far.stopping_point(now)
    assert goal[1] == approx(at(2.0)[1] + off)
    distance = off + 0.5 * 0.1 * 0.25
    assert duration == approx(max(2.2 * distance / (2.0 - 0.125), np.sqrt(5.78 * distance / 8.0)))


def test_a_blind_hold_goes_on_from_the_motion_or_to_the_end_of_the_piece() -> None:
    watchdog, now = watching(WHOLE, age=0.5)
    goal, _ = watchdog.stopping_point(now)
    np.testing.assert_allclose(goal, at(2.0) + 0.05 * SPEED, rtol=1e-12)
    goal, duration = watching(RULES, age=0.5)[0].stopping_point(now)
    np.testing.assert_allclose(goal, at(4.2), rtol=1e-12)
    assert duration == approx(2.2)
    _, duration = watching(RULES, elapsed=4.1, age=0.5)[0].stopping_point(SENT + 4.1)
    assert duration == approx(0.5), 'half a lookahead at least'


ABORTED, CANCELED = 6, 5


@pytest.mark.parametrize(('status', 'code', 'text', 'outcome'), [
    (ABORTED, -4, 'x', (Code.TRACKING_ERROR, 'the controller stopped because its path tolerance '
                       'was exceeded (x); it holds')),
    (ABORTED, -5, '', (Code.TRACKING_ERROR, 'the controller stopped because its goal tolerance '
                      'was exceeded; it holds')),
    (ABORTED, 0, 'new incoming action', (Code.TAKEN_OVER, 'another program sent a goal (new '
                                        'incoming action)')),
    (ABORTED, -1, 'x', (Code.ABORTED, 'the controller aborted the motion with code -1 (x); was it '
                       'deactivated, or did another program send a goal?')),
    (CANCELED, -4, '', (Code.ABORTED, 'another program cancelled the motion; the controller '
                       'holds')),
    (3, -4, 'x', (Code.ABORTED, 'the controller ended the motion with status 3, code -4 (x)'))])
def test_results_of_the_controller_are_explained(
    status: int, code: int, text: str, outcome: tuple[Code, str]
) -> None:
    assert explained(status, code, text) == Outcome(*outcome)


def test_a_silence_is_told_with_its_length() -> None:
    assert (since(0.12345), since(np.inf)) == ('for 0.123 s', 'was ever received')
    states = JointStates(JOINTS)
    states.update(1.0, JOINTS, 0.0, ([0.0, np.nan], [], []))
    assert unseen(states, 0.1, ('elbow', 0.1)) == Outcome(
        Code.STALE_STATES, "the position of joint 'elbow' is not finite")
    assert unseen(states, 0.1, ('elbow', 0.11)) == Outcome(
        Code.STALE_STATES, "no state of joint 'elbow' for 0.110 s: activate the joint state "
        'broadcaster')
    states.update(1.1, JOINTS, 0.0, ([0.0, 0.0], [], []))
    assert unseen(states, 0.1, ('elbow', 0.1)) is None


@pytest.mark.parametrize(('elapsed', 'off', 'lag', 'ours'), [
    (2.0, 0.99e-4, 0.0, True), (2.0, -1.01e-4, 0.0, False), (0.2, 0.0, 0.0, False),
    (0.201, 0.0, 0.0, True), (2.0, 0.0, 0.099, True), (2.0, 0.0, 0.101, False)])
def test_a_controller_follows_the_motion_from_its_first_point_on_its_path_and_in_time(
    elapsed: float, off: float, lag: float, ours: bool
) -> None:
    """Its reference may be 0.1 mrad off; it may have begun 0.1 s before it was sent."""
    watchdog, now = watching(elapsed=elapsed)
    time = elapsed + lag
    assert watchdog.note_reference(now, time, at(time) + np.array([0.0, off])) is ours
    assert watchdog.timed is ours
    assert watchdog.lag == approx(lag if lag > 0.1 else 0.0)


@pytest.mark.parametrize(('early', 'ours'), [(0.099, True), (0.101, False)])
def test_a_motion_accepted_late_may_have_begun_when_it_was_sent(early: float, ours: bool) -> None:
    """Its time in the motion is then exact for 0.1 s."""
    watchdog = Watchdog(RULES, JointStates(JOINTS))
    watchdog.begin(SENT)
    watchdog.send(SEGMENT, SENT)
    watchdog.follow(SEGMENT, SENT + 0.3)
    elapsed, now = 2.0 + early, SENT + 2.0
    assert watchdog.note_reference(now, elapsed, at(elapsed)) is ours
    assert watchdog.lag == approx(0.0 if ours else early)
    assert watchdog.reported == approx(elapsed if ours else 0.0)
    assert [watchdog.exact(now + later) for later in (0.099, 0.101)] == [ours, False]


@pytest.mark.parametrize(('elapsed', 'ours'), [(0.0, False), (1.9, True)])
def test_a_motion_that_waits_for_its_acceptance_is_checked_only_if_it_continues_one(
    elapsed: float, ours: bool
) -> None:
    watchdog, now = watching()
    watchdog.send(replace(SEGMENT, elapsed=elapsed), now - 0.1)
    assert watchdog.note_reference(now, 2.0, at(2.0)) is ours


def test_references_are_checked_every_9_ms() -> None:
    watchdog, now = watching()
    assert [watchdog.note_reference(now + gap, 2.0 + gap, at(2.0 + gap)) for gap in (
        0.0, 0.0089, 0.0091)] == [True, False, True]


def test_a_motion_may_seem_to_have_begun_20_ms_before_an_instant() -> None:
    watchdog, now = watching()
    watchdog.note_reference(now, 1.0, at(2.0))
    assert [watchdog.begun_after(now - 1.0 + early) for early in (0.019, 0.021)] == [True, False]
    watchdog.note_reference(now, 0.0, at(2.0))
    assert not watchdog.begun_after(0.0), 'it does not state its time'


def astray(first: Any, second: Any, gap: float = 0.01, age: float = 0.0, elapsed: float = 2.0
           ) -> Outcome | None:
    """Return the outcome for two references of a controller that was known to follow."""
    watchdog, now = watching(elapsed=elapsed)
    assert watchdog.note_reference(now, elapsed, at(elapsed))
    for position in (first, second):
        assert watchdog.taken_over(now) is None
        now += gap
        watchdog.note_reference(now, 2.0, np.asarray(position), age)
    return watchdog.taken_over(now)


AWAY = at(2.02) + np.array([0.1, 0.3])


@pytest.mark.parametrize(('step', 'gap', 'age', 'trip'), [
    (1.1e-6, 0.01, 0.0, True), (0.9e-6, 0.01, 0.0, False), (0.0, 0.149, 0.0, False),
    (0.0, 0.31, 0.0, True), (0.1, 0.01, 0.099, True), (0.1, 0.01, 0.101, False)])
def test_two_references_elsewhere_are_of_another_program(
    step: float, gap: float, age: float, trip: bool
) -> None:
    """One that holds has 0.15 s to give a reason; a message older than 0.1 s proves nothing."""
    found = astray(AWAY, AWAY + step, gap, age)
    assert (found is not None) is trip
    if gap == 0.01 and trip:
        assert found == Outcome(
            Code.TAKEN_OVER, f"the controller commands joint 'elbow' {0.3 + step:.3g} off the "
            'motion that was sent: another program has taken it over; stop that program and '
            'excite again')


def test_a_controller_that_holds_has_its_grace_from_the_first_reference_on() -> None:
    watchdog, now = watching()
    watchdog.note_reference(now, 2.0, at(2.0))
    for gap in (0.01, 0.08, 0.159):
        watchdog.note_reference(now + gap, 2.0, AWAY)
        assert watchdog.taken_over(now + gap) is None
    watchdog.note_reference(now + 0.169, 2.0, AWAY)
    assert watchdog.taken_over(now + 0.169) is not None
    watchdog.foreign_goal = now + 0.168
    assert watchdog.taken_over(now + 0.169) == Outcome(
        Code.TAKEN_OVER, 'another program sent a goal')


@pytest.mark.parametrize(('early', 'trip'), [(0.019, False), (0.021, True)])
def test_a_controller_at_the_end_of_the_motion_has_ended_it(early: float, trip: bool) -> None:
    found = astray(at(4.2), at(4.2) + 5e-6, elapsed=4.2 - early - 0.02)
    assert (found is not None) is trip


@pytest.mark.parametrize(('ahead', 'off', 'code'), [
    (0.04, 0.9e-6, Code.REJECTED), (0.04, 1.2e-6, Code.TAKEN_OVER), (-0.04, 0.0, Code.TAKEN_OVER)])
def test_a_controller_at_a_point_still_ahead_steps_from_point_to_point(
    ahead: float, off: float, code: Code
) -> None:
    found = astray(AWAY, at(2.02 + ahead) + off)
    assert found is not None and found.code is code


@pytest.mark.parametrize(('behind', 'off', 'later', 'trip'), [
    (0.149, 0.0, 0.0, False), (0.156, 0.0, 0.0, True), (0.156, 0.9e-4, 0.0, True),
    (0.156, 1.2e-4, 0.0, False), (1.14, 0.0, 0.0, True), (1.16, 0.0, 0.0, False),
    (0.5, 0.0, 0.099, True), (0.5, 0.0, 0.101, False)])
def test_a_controller_that_lags_without_a_time_is_slower(
    behind: float, off: float, later: float, trip: bool
) -> None:
    """Its reference is where the motion was 0.15 to 1.15 s ago."""
    watchdog, now = watching()
    watchdog.note_reference(now, 0.0, at(2.0 - behind) + np.array([0.5, 1.0]) * off)
    assert watchdog.taken_over(now + later) == (Outcome(
        Code.SPEED_SCALING, 'speed scaling is below 1, and the controller does not state the time '
        'in the motion, so it cannot be followed: set the speed to 100 %') if trip else None)


@pytest.mark.parametrize(('scaling', 'elapsed', 'trip'), [
    (0.998, 0.350, False), (0.998, 0.352, True), (0.9991, 2.0, False), (1.0011, 2.0, True)])
def test_a_scaling_without_a_time_is_told_once_the_motion_has_begun(
    scaling: float, elapsed: float, trip: bool
) -> None:
    """That is 0.15 s after its first point, at 0.2 s."""
    watchdog, now = watching(elapsed=elapsed)
    watchdog.note_reference(now, 0.0, at(9.0), scaling=scaling)
    found = watchdog.taken_over(now)
    assert (found is not None and found.text.startswith(f'speed scaling is {scaling:.3g}')) is trip


def test_rules_are_those_of_a_controller_that_answers_unless_told() -> None:
    rules = Rules(LIMITS, RULES.settings, RULES.tolerances)
    assert (rules.longest, rules.answers, rules.pacing) == (600.0, True, Pacing())
