"""execution/watchdog.py: a controller that follows another program: noticed at once, by what it
commands."""

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import PERIOD, RULES, Bench

from robot_dynid.execution.guards import Code, Outcome
from robot_dynid.execution.segment import Cancel, Hold, Phase, Send

TOPIC = replace(RULES, answers=False)
WHOLE = replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))


def stopped(bench):
    """Return how long after the bench's time now a stop was commanded."""
    since = bench.now
    bench.run()
    return min(at for at, c in bench.log if isinstance(c, (Cancel, Hold)) and at >= since) - since


def other_motion(bench, speed):
    """Return what a controller tells that has just been sent another motion, from where it is."""
    begun, start = bench.now, bench.position.copy()
    return lambda now: (now - begun, start + speed * (now - begun))


@pytest.mark.parametrize('rules', [RULES, TOPIC, WHOLE])
@pytest.mark.parametrize('after', [0.6, 2.6, 4.1])
@pytest.mark.parametrize('speed', [0.0, 0.02, -1.0])
def test_another_motion_is_noticed_within_two_messages(rules, after, speed):
    bench = Bench(rules).start().run(after)
    bench.hijacked = other_motion(bench, np.array([speed, 0.0]))
    sent = bench.last(Send)
    grace = 0.15 if speed == 0.0 else 0.0
    assert stopped(bench) <= grace + 2.0 * PERIOD + 1e-9
    assert bench.outcome.code is Code.TAKEN_OVER, bench.outcome
    assert 'off the motion that was sent: another program has taken it over' in bench.outcome.text
    assert bench.last(Send) == sent, 'the robot must not be taken back'


def test_a_taken_over_motion_names_the_joint_and_its_deviation():
    bench = Bench().start().run(2.6)
    begun, points = bench.goal_start, bench.execution.segment.points
    bench.hijacked = lambda now: (
        now - begun, points.sample(now - begun).position[0] + (0.0, 0.05 + 1e-3 * now))
    bench.run()
    assert "joint 'elbow' 0.06" in bench.outcome.text, bench.outcome.text


@pytest.mark.parametrize('text', ['Current goal preempted by new incoming action.',
                                  'Current goal cancelled due to new incoming action.'])
def test_a_goal_of_another_program_is_one_that_took_over(text):
    bench = Bench().start().run(2.5)
    bench.do(bench.execution.on_result(bench.now, 6, -1, text)).run()
    assert bench.outcome.code is Code.TAKEN_OVER
    assert 'another program sent a goal' in bench.outcome.text
    bench = Bench().start().run(2.5)
    bench.do(bench.execution.on_result(
        bench.now, 6, -1, 'Current goal cancelled during deactivate transition.'))
    assert bench.outcome.code is Code.ABORTED


def test_a_goal_of_another_that_ours_replaced_at_once_ends_the_motion_all_the_same():
    bench = Bench().start().run(2.5)
    bench.execution.on_goal_of_another(bench.now)
    assert bench.execution.react(bench.now) == (), 'not known yet which it follows'
    since = bench.now
    sent = bench.last(Send)
    bench.run()
    assert bench.outcome.code is Code.TAKEN_OVER
    assert 'another program sent a goal; decelerated' in bench.outcome.text
    braking = next(at for at, c in bench.log if isinstance(c, Send) and at >= since)
    assert braking - since <= 2.0 * PERIOD and bench.last(Send) != sent


def test_a_goal_of_another_that_is_followed_is_left_alone():
    bench = Bench().start().run(2.5)
    bench.hijacked = other_motion(bench, np.array([0.5, 0.0]))
    sent = bench.last(Send)
    bench.execution.on_goal_of_another(bench.now)
    bench.run()
    assert bench.outcome.code is Code.TAKEN_OVER
    assert bench.last(Send) == sent, 'the robot must not be taken back'


def test_a_controller_that_holds_is_asked_for_its_reason_first():
    """Its path tolerance broken, it holds, and says so in the result up to 50 ms later."""
    bench = Bench().start().run(2.6)
    bench.hijacked = other_motion(bench, np.zeros(2))
    bench.run(0.1)
    assert bench.execution.phase is Phase.RUNNING
    bench.do(bench.execution.on_result(bench.now, 6, -4, 'Aborted')).run()
    assert bench.outcome.code is Code.TRACKING_ERROR
    assert 'path tolerance' in bench.outcome.text


def test_a_robot_that_is_led_off_its_path_by_another_is_told_from_one_that_does_not_follow():
    """Without a time of the controller the tracking guard decides, and its reference tells."""
    for reference_too in (True, False):
        bench = Bench(WHOLE)
        bench.reports = False
        bench.start().run(2.6)
        away = bench.position + 0.3
        if reference_too:
            bench.execution.on_controller_state(bench.now, 0.0, away)
        bench.offset[:] = 0.3
        bench.run()
        assert bench.outcome.code is (Code.TAKEN_OVER if reference_too else Code.TRACKING_ERROR)


@pytest.mark.parametrize('rules', [RULES, TOPIC])
@pytest.mark.parametrize('burst', [1, 7, 15])
def test_late_messages_in_bursts_are_no_false_alarm(rules, burst):
    """Also over pauses, where the goal that is followed changes."""
    patient = replace(rules, settings=replace(rules.settings, controller_timeout=1.0),
                      pacing=replace(rules.pacing, lookahead=2.0))
    bench, waiting = Bench(patient), []
    tell = bench.execution.on_controller_state
    bench.execution.on_controller_state = lambda *message: waiting.append(message)
    bench.start()
    for step in range(3000):
        bench.step()
        bench.begun = bench.goal_start if bench.goal is not None else bench.begun
        if step % burst == 0:
            while waiting:
                _, *message = waiting.pop(0)
                tell(bench.now, *message)
                bench.do(bench.execution.react(bench.now))
        if step == 250:
            bench.do(bench.execution.pause(bench.now))
        if step == 500:
            bench.do(bench.execution.resume(bench.now))
        if bench.execution.phase is Phase.DONE:
            break
    assert bench.outcome == Outcome(Code.SUCCESS, 'done'), bench.outcome


def test_a_joint_state_that_comes_late_is_no_other_program():
    """What is commanded is compared with the motion of its own time, not of that state."""
    bench = Bench(WHOLE).start().run(2.6)
    at, position = bench.now, bench.position.copy()
    bench.states_on = False
    bench.run(0.09)
    assert np.any(np.abs(bench.position - position) > 0.06), 'it moves'
    bench.states.update(at + PERIOD, bench.states.joints, at + PERIOD,
                        (position + 0.3, bench.velocity, bench.effort))
    bench.do(bench.execution.on_state(bench.now))
    bench.states_on = True
    bench.run()
    assert bench.outcome.code is Code.TRACKING_ERROR, bench.outcome
