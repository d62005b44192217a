"""Supervised execution without ROS: checks before sending, guards, commands, messages."""

import re
from dataclasses import replace

import numpy as np
import pytest
from execution_bench import HARD, JOINTS, LIMITS, PERIOD, RULES, Bench, plan

from robot_dynid.execution.guards import Code, GuardSettings, JointStates, Outcome
from robot_dynid.execution.sampled import SampledTrajectory
from robot_dynid.execution.segment import Cancel, Finish, Hold, Phase, Segment, Send
from robot_dynid.execution.supervisor import Execution


def test_a_good_run_sends_both_segments_and_succeeds():
    bench = Bench().start().run()
    assert bench.outcome == Outcome(Code.SUCCESS, 'done')
    sent = [c.segment for _, c in bench.log if isinstance(c, Send)]
    assert [s.name for s in sent if s.elapsed == 0.0] == ['move_to_start', 'excitation']
    assert sent[-1].points.duration == bench.execution.plan[-1].points.duration
    assert not any(isinstance(c, (Cancel, Hold)) for _, c in bench.log)


def test_tracking_error_while_holding_is_the_distance_from_where_the_stop_began():
    bench = Bench().start()
    bench.run(3.0)
    assert np.all(np.abs(bench.execution.tracking_error(bench.now)) < 0.05)
    bench.execution.cancel(bench.now, Outcome(Code.ABORTED, 'unexpected'))
    bench.states_on = False
    for later in (0.0, 0.5):
        assert np.all(np.abs(bench.execution.tracking_error(bench.now + later)) < 0.05)
    start = bench.execution.segment.points.position[0]
    assert np.any(np.abs(start - bench.position) > 0.1)


def test_a_lag_inside_the_window_is_tolerated_and_beyond_it_is_not():
    fast = replace(RULES, tolerances=replace(RULES.tolerances, tracking=np.full(2, 0.01)))
    bench = Bench(fast).start()
    bench.lag = 0.04
    assert bench.run().outcome.code is Code.SUCCESS
    bench = Bench(fast).start()
    bench.lag = 0.15
    assert bench.run().outcome.code is Code.TRACKING_ERROR


def quintic_speed(start, velocity, end, duration):
    """Return the speed (T, n) of a quintic from a motion at ``start`` to rest at ``end``."""
    rows = [[1, t, t**2, t**3, t**4, t**5] for t in (0.0, duration)]
    rows += [[0, 1, 2 * t, 3 * t**2, 4 * t**3, 5 * t**4] for t in (0.0, duration)]
    rows += [[0, 0, 2, 6 * t, 12 * t**2, 20 * t**3] for t in (0.0, duration)]
    still, time = np.zeros_like(start), np.linspace(0.0, duration, 500)
    values = np.linalg.solve(np.array(rows), [start, end, velocity, still, still, still])[::-1]
    return np.stack([np.polyval(np.polyder(one), time) for one in values.T], axis=1)


FAULTS = {
    'joint pushed away': (lambda b: b.offset.__setitem__(1, 0.4), Code.TRACKING_ERROR,
                          r"joint 'elbow' is at .* off its trajectory \(limit 0.1\)", 0.02),
    'effort': (lambda b: b.effort.__setitem__(0, -95.0), Code.EFFORT_LIMIT,
               r"effort of joint 'shoulder' is -95, more than the allowed 90 \(limit 100\)",
               0.03),
    'effort unknown': (lambda b: b.effort.__setitem__(0, np.nan), Code.STALE_STATES,
                       "effort of joint 'shoulder' is not finite", 0.02),
    'position unknown': (lambda b: b.offset.__setitem__(0, np.nan), Code.STALE_STATES,
                         "position of joint 'shoulder' is not finite", 0.02),
    'states stop': (lambda b: setattr(b, 'states_on', False), Code.STALE_STATES,
                    r"no state of joint 'shoulder' for 0.1.. s \(limit 0.1 s\).* confirmed but "
                    'not seen', 0.13),
    'server gone': (lambda b: setattr(b, 'server_ready', False), Code.CONTROLLER_LOST,
                    'action server of the controller is gone', 0.02),
}


@pytest.mark.parametrize('name', FAULTS)
def test_every_guard_stops_the_motion_and_says_why(name):
    cause, code, words, within = FAULTS[name]
    bench = Bench(HARD).start().run(2.0)
    assert bench.execution.phase is Phase.RUNNING
    broken_at = bench.now
    cause(bench)
    bench.run()
    at, _ = bench.first(Cancel)
    assert at - broken_at <= within + 1e-9
    assert bench.outcome.code is code
    assert re.search(words, bench.outcome.text), bench.outcome.text
    assert re.match(r'(move_to_start|excitation) at \d+\.\d+ s: ', bench.outcome.text)


@pytest.mark.parametrize(('name', 'guard'), [
    ('joint pushed away', 'tracking error of elbow'), ('effort', 'effort of shoulder'),
    ('states stop', 'age of joint states')])
def test_limit_use_is_largest_for_the_guard_that_stops_the_motion(name, guard):
    bench = Bench(HARD).start().run(2.0)
    used = bench.execution.use.take()
    assert set(used) == {'age of joint states', 'age of controller_state', *(
        f'{one} of {joint}' for one in ('effort', 'tracking error') for joint in JOINTS)}
    assert all(part < 1.0 for part in used.values()), used
    FAULTS[name][0](bench)
    bench.run()
    used = bench.execution.use.take()
    assert used[guard] == max(used.values()) > 1.0, used


@pytest.mark.parametrize('speed', [1e5, -1e90, np.inf])
def test_a_hold_does_not_rely_on_a_speed_that_no_joint_has(speed):
    """It would be far away, and wait for it without end."""
    bench = Bench(replace(HARD, answers=False)).start().run(2.0)
    bench.states.update(bench.now, JOINTS, bench.now + 0.001, (
        bench.position, [speed, 0.0], [5.0, np.nan]))
    bench.do(bench.execution.on_state(bench.now))
    (_, hold), begun = bench.first(Hold), bench.now
    slowest = 1.5 * LIMITS.velocity / LIMITS.acceleration
    assert hold.duration < 2.0
    assert np.all(np.abs(hold.position - bench.position) <= 0.5 * slowest * LIMITS.velocity)
    bench.run()
    assert bench.outcome.code is Code.STALE_STATES
    assert bench.now - begun < HARD.settings.stop_timeout + hold.duration + 0.05


@pytest.mark.parametrize(('away', 'turning'), [(1.5, False), (-2.5, False), (2.0 * np.pi, True)])
def test_a_hold_is_reached_within_the_limits_from_where_the_controller_is(away, turning):
    """It does not know that the robot was pushed, a state was false, or an angle turned over."""
    rules = replace(HARD, answers=False, tolerances=replace(
        HARD.tolerances, tracking=np.full(2, 0.01 if turning else 0.1)))
    bench = Bench(rules)
    bench.states = JointStates(JOINTS, np.full(2, turning))
    bench.execution = Execution(plan(), rules, bench.states, bench.alarms)
    bench.start().run(2.0)
    before, velocity = bench.position, bench.velocity
    bench.states.update(bench.now, JOINTS, bench.now + 0.001, (
        before + np.array([away, 0.0]), bench.velocity, [95.0, np.nan]))
    bench.do(bench.execution.on_state(bench.now))
    _, hold = bench.first(Hold)
    speed = quintic_speed(before, velocity, hold.position, hold.duration)
    assert np.all(np.abs(speed) <= 1.01 * LIMITS.velocity)
    assert not turning or np.all(np.abs(hold.position - before) < 0.5)


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('number', [np.inf, -np.inf, 1e308])
def test_numbers_that_no_joint_has_are_unknown(number):
    states = JointStates(JOINTS, np.ones(2, dtype=bool))
    for k, sign in enumerate((1.0, -1.0, 1.0)):
        states.update(0.1 * k, JOINTS, 1.0 + 0.1 * k, 3 * ([sign * number, 0.5],))
        for values in (states.position, states.velocity, states.effort):
            assert np.isnan(values[0]) and values[1] == 0.5
        assert not states.speed[0] > 0.0 and np.isnan(states.near(np.zeros(2))[0])


def test_a_single_effort_spike_does_not_stop():
    bench = Bench().start().run(1.0)
    bench.effort[0] = 99.0
    bench.step()
    bench.effort[0] = 5.0
    assert bench.run().outcome.code is Code.SUCCESS


def test_killed_controller_and_states_end_with_hold_on_the_topic():
    bench = Bench(HARD).start().run(2.0)
    bench.states_on = bench.controller_on = False
    killed = bench.now
    bench.run()
    cancelled, held = bench.first(Cancel)[0], bench.first(Hold)[0]
    assert cancelled - killed <= 0.13 and held - cancelled <= 0.12
    assert bench.outcome.code is Code.CONTROLLER_LOST
    assert 'does not answer the cancel request' in bench.outcome.text
    assert bench.now - killed < 1.5


def test_controller_that_falls_silent_while_states_go_on():
    wide = replace(RULES.tolerances, tracking=np.full(2, 10.0))
    patient = replace(HARD.settings, controller_timeout=60.0)
    bench = Bench(replace(HARD, tolerances=wide, settings=patient)).start().run(2.0)
    bench.controller_on = False
    bench.velocity[:] = 0.0
    bench.run()
    assert bench.outcome.code is Code.CONTROLLER_LOST
    assert 'no feedback of the controller for 0.5' in bench.outcome.text
    assert bench.first(Hold)[0] == bench.first(Cancel)[0], 'hold must not wait here'


def test_controller_state_topic_is_watched_once_it_was_heard():
    bench = Bench(HARD).start().run(1.0)
    bench.reports = False
    bench.run(0.19)
    assert bench.execution.phase is Phase.RUNNING
    bench.run()
    assert bench.outcome.code is Code.CONTROLLER_LOST
    assert 'no controller state for 0.2' in bench.outcome.text


@pytest.mark.parametrize(('answer', 'code', 'words'), [
    ((6, -4, 'Aborted'), Code.TRACKING_ERROR, 'path tolerance was exceeded \\(Aborted\\)'),
    ((6, -5, ''), Code.TRACKING_ERROR, 'goal tolerance was exceeded'),
    ((6, -1, ''), Code.ABORTED, 'aborted the motion with code -1'),
    ((5, 0, ''), Code.ABORTED, 'another program cancelled'),
    ((0, 0, ''), Code.ABORTED, 'status 0'),
    ((4, 0, ''), Code.TRACKING_ERROR, 'reports success, but joint .* away from the end'),
])
def test_results_are_judged_by_status_code_and_place(answer, code, words):
    bench = Bench().start().run(2.5)
    bench.carry_out(bench.execution.on_result(bench.now, *answer))
    assert bench.outcome.code is code
    assert re.search(words, bench.outcome.text), bench.outcome.text


def test_rejection_and_silence_after_sending():
    bench = Bench()
    bench.controller_on = False
    bench.start()
    assert bench.execution.phase is Phase.SENDING
    bench.carry_out(bench.execution.on_rejected(bench.now))
    assert bench.outcome.code is Code.REJECTED
    bench = Bench()
    bench.controller_on = False
    bench.start().run()
    assert bench.outcome.code is Code.CONTROLLER_LOST
    assert 'did not answer the goal for 2.0' in bench.outcome.text
    assert bench.execution.on_accepted(bench.now) == (Cancel(),), 'a late start must be cancelled'


def test_cancel_before_during_and_after():
    asked = Outcome(Code.CANCELLED, 'cancelled by the client')
    bench = Bench().start().run(1.0)
    bench.carry_out(bench.execution.cancel(bench.now, asked))
    bench.run()
    assert bench.outcome.code is Code.CANCELLED
    assert bench.outcome.text.endswith('stopped along the path, the robot holds')
    assert bench.execution.cancel(bench.now, asked) == ()
    bench = Bench()
    assert bench.execution.cancel(bench.now, asked) == (Finish(asked),)


def test_refused_cancel_leads_to_hold_within_limits():
    bench = Bench(HARD).start().run(2.5)
    bench.controller_on = False
    bench.velocity = np.array([1.5, -0.5])
    position = bench.position.copy()
    bench.states.update(bench.now, JOINTS, bench.now + 1e-3,
                        (position, bench.velocity, bench.effort))
    bench.carry_out(bench.execution.cancel(bench.now, Outcome(Code.EFFORT_LIMIT, 'asked')))
    bench.carry_out(bench.execution.on_cancel_answer(bench.now, False))
    _, hold = bench.first(Hold)
    braking = 1.5 * 1.5 / 8.0
    assert braking <= hold.duration <= 1.1 * braking
    assert np.allclose(hold.position, np.clip(position + 0.5 * braking * bench.velocity,
                                              -2.0, 2.0))


def test_start_is_refused_away_from_the_start_stale_or_without_effort():
    bench = Bench()
    bench.position[0] = 0.03
    assert bench.start().outcome.code is Code.TRACKING_ERROR
    assert "'shoulder' is 0.03 away from the start (limit 0.02)" in bench.outcome.text
    bench = Bench()
    bench.states_on = False
    bench.effort[:] = 1.0
    bench.states.effort[:] = 1.0
    assert bench.start().outcome.code is Code.STALE_STATES
    bench = Bench()
    bench.effort[1] = np.nan
    assert bench.start().outcome.code is Code.INVALID
    assert "no effort of joint 'elbow'" in bench.outcome.text
    off = replace(RULES, settings=GuardSettings(effort_fraction=0.0))
    bench = Bench(off)
    bench.effort[1] = np.nan
    assert bench.start().run().outcome.code is Code.SUCCESS


def test_bad_points_are_never_sent():
    good = plan()[1].points
    position = good.position.copy()
    position[7, 1] = np.nan
    points = SampledTrajectory(JOINTS, good.time, position, good.velocity, good.acceleration)
    bench = Bench(segments=(Segment('excitation', points, LIMITS),)).start()
    assert bench.outcome.code is Code.INVALID
    assert "position of joint 'elbow' is not finite at point 7" in bench.outcome.text
    assert not any(isinstance(c, Send) for _, c in bench.log)


def test_a_robot_that_moves_without_telling_its_velocity_is_not_sent_anything():
    bench = Bench()
    bench.velocity = np.full(2, np.nan)
    for _ in range(20):
        bench.position = bench.position + 0.3 * PERIOD
        bench.step()
    bench.carry_out(bench.execution.start(bench.now))
    assert bench.outcome.code is Code.INVALID
    assert 'the robot is already moving: wait until it stands still' in bench.outcome.text
    assert bench.log == [] or not any(isinstance(c, Send) for _, c in bench.log)


def test_a_speed_of_long_ago_is_no_reason_to_wait():
    """The controller died in mid-motion: silence is what has to be said, not motion."""
    bench = Bench()
    bench.velocity = np.full(2, 1.0)
    bench.step()
    bench.now += 3.0
    bench.carry_out(bench.execution.start(bench.now))
    assert bench.outcome.code is Code.STALE_STATES
    assert 'for 3.000 s' in bench.outcome.text
