"""execution/guards.py: every threshold of the guards, at two values each: what it says is when the
robot is stopped."""

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import HARD, JOINTS, LIMITS, PERIOD, RULES, Bench

from robot_dynid.execution.guards import (
    Code,
    EffortGuard,
    GuardSettings,
    JointStates,
    Outcome,
)
from robot_dynid.execution.segment import Cancel, Hold, Phase, Send

LATE = 2.0 * PERIOD  # between the cause and the tick that sees it
WIDE = replace(RULES.tolerances, tracking=np.full(2, 10.0), goal=np.full(2, 10.0))
TO_THE_END = replace(WIDE, goal=np.full(2, 0.05))


def bench(**settings):
    """Return a bench in mid-motion with these settings and nothing else that could stop it."""
    rules = replace(HARD, tolerances=WIDE, settings=replace(HARD.settings, **settings))
    return Bench(rules).start().run(2.0)


def stopped_after(made, kind=Cancel):
    """Return how long it takes until a command of this kind is sent."""
    since = made.now
    made.run()
    return made.first(kind)[0] - since


@pytest.mark.parametrize('state_timeout', [0.1, 0.3])
def test_state_timeout(state_timeout):
    made = bench(state_timeout=state_timeout)
    made.states_on = False
    assert 0.0 < stopped_after(made) - state_timeout <= LATE
    assert made.outcome.code is Code.STALE_STATES


@pytest.mark.parametrize('controller_timeout', [0.1, 0.3])
def test_controller_timeout(controller_timeout):
    made = bench(controller_timeout=controller_timeout)
    made.reports = False
    assert 0.0 < stopped_after(made) - controller_timeout <= LATE
    assert made.outcome.code is Code.CONTROLLER_LOST


@pytest.mark.parametrize('feedback_timeout', [0.3, 0.7])
def test_feedback_timeout(feedback_timeout):
    made = bench(feedback_timeout=feedback_timeout, controller_timeout=60.0)
    made.controller_on = False
    assert 0.0 < stopped_after(made) - feedback_timeout <= LATE
    assert 'no feedback of the controller' in made.outcome.text


def test_a_controller_that_shows_the_motion_needs_no_feedback():
    made = bench(feedback_timeout=0.3)
    made.execution.on_feedback = lambda now: ()
    assert made.run().outcome.code is Code.SUCCESS


@pytest.mark.parametrize('off', [0.0, 0.2])
def test_a_result_that_is_lost_is_missed_only_where_the_robot_is_not_at_the_end(off):
    made = Bench(replace(HARD, tolerances=TO_THE_END)).start()
    result = made.execution.on_result
    ends = []
    made.execution.on_result = lambda now, status, code, text: (
        ends.append(now) or (() if len(ends) == 1 else result(now, status, code, text)))
    made.execution.on_feedback = lambda now: ()
    while not ends:
        made.step()
    made.offset[:] = off
    made.run()
    if off:
        assert made.outcome.code in (Code.CONTROLLER_LOST, Code.TRACKING_ERROR)
    else:
        assert made.outcome.code is Code.SUCCESS
        onward = next(
            at for at, command in made.log if at >= ends[0] and isinstance(command, Send))
        assert onward - ends[0] > TO_THE_END.goal_time - 0.1, 'until then a result may come'


@pytest.mark.parametrize('acceptance_timeout', [0.5, 1.5])
def test_acceptance_timeout(acceptance_timeout):
    made = bench(acceptance_timeout=acceptance_timeout)
    made = Bench(made.execution.rules)
    made.controller_on = False
    made.start()
    assert 0.0 < stopped_after(made) - acceptance_timeout <= LATE
    assert 'did not answer the goal' in made.outcome.text


@pytest.mark.parametrize('result_timeout', [0.5, 1.5])
def test_result_timeout(result_timeout):
    """It counts from the end of what was sent last and its goal time."""
    made = bench(result_timeout=result_timeout, feedback_timeout=60.0, controller_timeout=60.0)
    whole = replace(made.execution.rules, tolerances=TO_THE_END,
                    pacing=replace(RULES.pacing, lookahead=0.0))
    made = Bench(whole).start().run(2.0)
    made.controller_on, made.velocity = False, np.zeros(2)
    sent_at, send = made.last(Send)
    made.run()
    due = sent_at + send.segment.remaining + WIDE.goal_time + result_timeout
    assert 0.0 < made.first(Cancel)[0] - due <= LATE
    assert 'no result' in made.outcome.text


@pytest.mark.parametrize(('cancel_timeout', 'stop_timeout'), [(0.05, 0.5), (0.2, 1.5)])
def test_cancel_timeout_and_stop_timeout(cancel_timeout, stop_timeout):
    """An unanswered cancel request is followed by a hold, and in the end by a warning."""
    made = bench(cancel_timeout=cancel_timeout, stop_timeout=stop_timeout)
    made.controller_on = False
    since = made.now
    made.do(made.execution.cancel(made.now, Outcome(Code.EFFORT_LIMIT, 'asked')))
    made.run()
    assert 0.0 < made.first(Hold)[0] - since - cancel_timeout <= LATE
    assert 0.0 < made.now - since - stop_timeout <= LATE
    assert 'does not answer the cancel request' in made.outcome.text


@pytest.mark.parametrize('tracking_window', [0.02, 0.06])
def test_tracking_window(tracking_window):
    """A robot that lags by less in time is on its trajectory, one that lags by more is not."""
    close = replace(RULES, tolerances=replace(RULES.tolerances, tracking=np.full(2, 1e-6)),
                    settings=replace(RULES.settings, tracking_window=tracking_window))
    for lag, code in ((tracking_window - 0.015, Code.SUCCESS),
                      (tracking_window + 0.03, Code.TRACKING_ERROR)):
        made = Bench(close)
        made.lag = lag
        assert made.start().run().outcome.code is code, (lag, made.outcome)


def test_effort_fraction_and_effort_samples():
    limits = np.array([100.0, 40.0])
    for effort_fraction, effort_samples in ((0.9, 2), (0.5, 4)):
        guard = EffortGuard(JOINTS, limits, GuardSettings(
            effort_fraction=effort_fraction, effort_samples=effort_samples))
        below = (effort_fraction - 1e-6) * limits
        above = np.array([0.0, -(effort_fraction + 1e-6) * limits[1]])
        assert all(guard.check(below) is None for _ in range(9))
        assert all(guard.check(above) is None for _ in range(effort_samples - 1))
        tripped = guard.check(above)
        assert tripped is not None and tripped.code is Code.EFFORT_LIMIT
        assert "joint 'elbow'" in tripped.text
        assert f'more than the allowed {effort_fraction * 40.0:.4g} (limit 40)' in tripped.text


def test_spikes_apart_are_not_counted_together():
    """However many there are: the effort has to be too large in consecutive states."""
    guard = EffortGuard(JOINTS, np.full(2, 10.0), GuardSettings(effort_samples=3))
    high, low = np.array([9.5, 0.0]), np.zeros(2)
    for _ in range(5):
        assert guard.check(high) is None
        assert guard.check(high) is None
        assert guard.check(low) is None
    assert [guard.check(high) is None for _ in range(3)] == [True, True, False]


@pytest.mark.parametrize('rest_velocity', [0.02, 0.2])
def test_rest_velocity(rest_velocity):
    for speed, starts in ((0.9 * rest_velocity, True), (1.1 * rest_velocity, False)):
        rules = replace(RULES, settings=replace(RULES.settings, rest_velocity=rest_velocity))
        made = Bench(rules)
        made.velocity = np.array([0.0, -speed])
        made.start()
        assert (made.execution.phase is Phase.RUNNING) is starts, made.outcome


def blind_bench():
    """Return a bench in fast motion whose joint states have stopped for 0.2 s."""
    whole = replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))
    made = Bench(whole).start().run(3.0)
    seen, velocity = made.position.copy(), made.velocity.copy()
    assert np.abs(velocity).max() > 0.3
    made.now += 0.2
    return made, (seen, velocity), made.now - made.goal_start


def test_a_blind_stop_starts_from_where_the_trajectory_has_led():
    """The last state is 0.2 s old: the robot has gone on with its trajectory since."""
    made, (seen, _), elapsed = blind_bench()
    motion = made.execution.segment.points.sample(elapsed)
    q, qd = motion.position[0], motion.velocity[0]
    goal, duration = made.execution.watchdog.stopping_point(made.now)
    assert duration == max(0.1, np.max(1.5 * np.abs(qd) / LIMITS.acceleration))
    np.testing.assert_allclose(goal, q + 0.5 * duration * qd, rtol=0.0, atol=1e-12)
    assert np.abs(q - seen).max() > 0.05, 'it makes a difference'


def test_a_stop_does_not_start_from_a_state_that_has_waited():
    """It has come in just now, but its stamp says that it was true 0.2 s ago."""
    made, (seen, velocity), _ = blind_bench()
    blind, _ = made.execution.watchdog.stopping_point(made.now)
    made.states.update(made.now, JOINTS, made.now - 0.2 + 1e-3, (seen, velocity, np.zeros(2)))
    np.testing.assert_array_equal(made.execution.watchdog.stopping_point(made.now)[0], blind)


def test_a_stop_that_sees_starts_from_the_measured_state():
    made, _, _ = blind_bench()
    position, velocity = np.array([0.4, -1.95]), np.array([0.8, -1.6])
    made.states.update(made.now, JOINTS, made.now, (position, velocity, np.zeros(2)))
    goal, duration = made.execution.watchdog.stopping_point(made.now)
    braking = 1.5 * 1.6 / 8.0
    assert duration > braking, 'the controller is elsewhere'
    np.testing.assert_allclose(goal, [0.4 + 0.5 * braking * 0.8, -2.0], rtol=0.0, atol=1e-12)


def test_a_hold_beside_a_motion_at_rest_keeps_the_limit_of_acceleration():
    """The controller goes there by a quintic: a(t) = d (60 s - 180 s^2 + 120 s^3) / T^2."""
    made = Bench(replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))).start()
    begin, still = made.position.copy(), np.zeros(2)
    made.now += 1e-3
    made.states.update(made.now, JOINTS, made.now, (begin + np.array([0.1, 0.0]), still, still))
    goal, duration = made.execution.watchdog.stopping_point(made.now)
    s = np.linspace(0.0, 1.0, 1001)
    peak = 0.1 * np.abs(60.0 * s - 180.0 * s**2 + 120.0 * s**3).max() / duration**2
    np.testing.assert_allclose(goal - begin, [0.1, 0.0], rtol=0.0, atol=1e-6)
    assert 0.99 * LIMITS.acceleration[0] < peak < 1.01 * LIMITS.acceleration[0]


def test_every_quantity_comes_from_its_own_field_in_the_order_of_the_joints():
    states = JointStates(JOINTS)
    states.update(1.0, JOINTS[::-1], 1.0, ([2.0, 1.0], [0.4, 0.3], [6.0, 5.0]))
    for name, expected in (('position', [1.0, 2.0]), ('velocity', [0.3, 0.4]),
                           ('effort', [5.0, 6.0]), ('speed', [0.3, 0.4])):
        assert list(getattr(states, name)) == expected, name
