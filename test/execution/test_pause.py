"""execution/supervisor.py: pause, way on, gentle stops and the topic face of an execution, with a
clock of one's own."""

import re
from dataclasses import replace

import numpy as np
import pytest
from execution_bench import HARD, PERIOD, RULES, Bench

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import Code, Outcome
from robot_dynid.execution.segment import Cancel, Finish, Hold, Phase, Send

ASKED = Outcome(Code.CANCELLED, 'cancelled by the client')
TOPIC = replace(RULES, answers=False)
WHOLE = replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))
SLOW_TOPIC = replace(TOPIC, settings=replace(RULES.settings, controller_timeout=60.0))
FACES = [RULES, TOPIC]


def rest(bench):
    """Go on until the pause is reached, and return the bench."""
    for _ in range(200):
        if bench.execution.phase is Phase.PAUSED:
            return bench
        bench.step()
    raise AssertionError(f'still {bench.execution.phase}')


@pytest.mark.parametrize('rules', FACES)
@pytest.mark.parametrize('after', [0.05, 0.7, 1.3, 2.6, 3.3, 4.1])
def test_pause_and_resume_at_any_time(rules, after):
    bench = Bench(rules).start().run(after)
    before = bench.doing
    bench.do(bench.execution.pause(bench.now)).step()
    assert bench.doing in ('pause', before)
    rest(bench)
    assert bench.doing == 'pause'
    stood = bench.position.copy()
    bench.run(5.0)
    assert bench.execution.phase is Phase.PAUSED and np.array_equal(bench.position, stood)
    bench.do(bench.execution.resume(bench.now))
    end = bench.execution.plan[-1].points.position[-1]
    assert bench.run().outcome == Outcome(Code.SUCCESS, 'done')
    assert np.allclose(bench.position, end, atol=1e-9)
    assert not any(isinstance(c, (Cancel, Hold)) for _, c in bench.log)


def test_paused_many_times_the_robot_never_jumps():
    bench = Bench().start()
    speeds, last = [], bench.position.copy()
    generator = np.random.default_rng(4)
    due = bench.now + 0.3
    while bench.execution.phase is not Phase.DONE:
        bench.step()
        speeds.append(np.abs(bench.position - last).max() / PERIOD)
        last = bench.position.copy()
        if bench.now < due:
            continue
        due = bench.now + generator.uniform(0.1, 0.9)
        if bench.execution.phase is Phase.PAUSED:
            bench.do(bench.execution.resume(bench.now))
        elif bench.doing != 'pause' and bench.execution.phase is Phase.RUNNING:
            bench.do(bench.execution.pause(bench.now))
    assert bench.outcome == Outcome(Code.SUCCESS, 'done')
    assert sum(isinstance(c, Send) for _, c in bench.log) > 8
    assert max(speeds) < 2.0 * 1.05, 'faster than the velocity limit'
    fractions = [s.points.duration + s.begin for s in bench.execution.plan]
    assert bench.execution.segment.begin < fractions[-1]


def test_pause_and_resume_are_refused_with_the_phase():
    bench = Bench()
    with pytest.raises(UsageError, match='nothing to pause: the execution is ready'):
        bench.execution.pause(bench.now)
    bench.start().run(1.0)
    with pytest.raises(UsageError, match='not paused'):
        bench.execution.resume(bench.now)
    bench.do(bench.execution.pause(bench.now)).step()
    with pytest.raises(UsageError, match='the robot is already coming to rest'):
        bench.execution.pause(bench.now)
    with pytest.raises(UsageError, match='still coming to rest'):
        bench.execution.resume(bench.now)
    rest(bench)
    with pytest.raises(UsageError, match='the execution is paused'):
        bench.execution.pause(bench.now)


def test_a_pause_asked_for_while_a_goal_is_sent_comes_as_soon_as_it_runs():
    bench = Bench()
    bench.controller_on = False
    bench.start()
    bench.do(bench.execution.pause(bench.now))
    assert bench.execution.phase is Phase.SENDING
    bench.controller_on = True
    bench.goal, bench.goal_start = bench.execution.segment.points, bench.now
    bench.joined_from = bench.position
    bench.do(bench.execution.on_accepted(bench.now))
    assert rest(bench).position == pytest.approx([0.0, 0.0], abs=0.01)
    bench.do(bench.execution.resume(bench.now))
    assert bench.run().outcome.code is Code.SUCCESS


def test_a_pause_taken_back_while_a_goal_is_sent_does_not_come():
    bench = Bench()
    bench.controller_on = False
    bench.start()
    bench.do(bench.execution.pause(bench.now))
    assert bench.execution.resume(bench.now) == ()
    assert bench.execution.doing(bench.now)[1] == 0.0
    start = bench.execution.segment.points.sample(0.0).position[0]
    assert bench.execution.tracking_error(bench.now) == pytest.approx(
        start - bench.position, abs=1e-3)
    bench.controller_on = True
    bench.goal, bench.goal_start = bench.execution.segment.points, bench.now
    bench.joined_from = bench.position
    bench.do(bench.execution.on_accepted(bench.now))
    with pytest.raises(UsageError, match='not paused'):
        bench.execution.resume(bench.now)
    assert bench.run().outcome.code is Code.SUCCESS
    assert bench.execution.notes == ()


IN_PAUSE = {
    'joint pushed away': (lambda b: b.offset.__setitem__(1, 0.4), Code.TRACKING_ERROR),
    'effort': (lambda b: b.effort.__setitem__(0, -95.0), Code.EFFORT_LIMIT),
    'states stop': (lambda b: setattr(b, 'states_on', False), Code.STALE_STATES),
    'server gone': (lambda b: setattr(b, 'server_ready', False), Code.CONTROLLER_LOST),
    'emergency stop': (lambda b: setattr(b.alarms, 'pressed', True), Code.EMERGENCY_STOP),
    'position unknown': (lambda b: b.offset.__setitem__(0, np.nan), Code.STALE_STATES),
}


@pytest.mark.parametrize('rules', [HARD, replace(HARD, answers=False)])
@pytest.mark.parametrize('name', IN_PAUSE)
@pytest.mark.parametrize('when', ['paused', 'coming to rest', 'moving'])
def test_guards_stay_on_in_a_pause(rules, name, when):
    cause, code = IN_PAUSE[name]
    bench = Bench(rules).start().run(2.0)
    if when != 'moving':
        bench.do(bench.execution.pause(bench.now)).run(0.12)
    if when == 'paused':
        rest(bench).run(1.0)
    broken_at = bench.now
    cause(bench)
    bench.run()
    kind = Cancel if rules.answers else Hold
    assert bench.first(kind)[0] - broken_at <= 0.13
    assert bench.outcome.code is code, bench.outcome.text
    assert bench.execution.phase is Phase.DONE


def test_a_stop_in_a_pause_does_not_wait_for_an_answer():
    """The goal that led to the pause is long forgotten: nobody confirms its cancellation."""
    bench = rest(_pausing()).run(12.0)
    bench.controller_on, bench.alarms.pressed = False, True
    bench.do(bench.execution.on_alarm(bench.now))
    assert isinstance(bench.log[-2][1], Cancel) and isinstance(bench.log[-1][1], Hold)
    assert np.array_equal(bench.log[-1][1].position, bench.position)
    bench.run()
    assert bench.outcome.code is Code.EMERGENCY_STOP
    assert bench.outcome.text.endswith('motion cancelled, the robot holds')


def test_cancel_in_a_pause_ends_at_once():
    bench = rest(_pausing())
    bench.do(bench.execution.cancel(bench.now, ASKED))
    assert bench.outcome.code is Code.CANCELLED
    assert bench.outcome.text.endswith('cancelled by the client; the robot holds')


def _pausing():
    bench = Bench().start().run(3.6)
    return bench.do(bench.execution.pause(bench.now)).run(0.05)


def test_cancel_while_coming_to_rest_ends_where_the_pause_would_have_been():
    bench = _pausing()
    sent = sum(isinstance(c, Send) for _, c in bench.log)
    bench.do(bench.execution.cancel(bench.now, ASKED))
    assert bench.doing == 'hold'
    bench.run()
    assert bench.outcome.text.endswith('stopped along the path, the robot holds')
    assert sum(isinstance(c, Send) for _, c in bench.log) == sent
    bench.do(bench.execution.cancel(bench.now, ASKED))
    assert bench.outcome.code is Code.CANCELLED


@pytest.mark.parametrize('rules', FACES)
@pytest.mark.parametrize('after', [0.3, 0.9, 2.2, 3.0, 3.7])
def test_a_cancelled_motion_brakes_on_its_path_within_the_limits(rules, after):
    bench = Bench(rules).start().run(after)
    asked, path = bench.now, bench.execution.segment.points
    bench.do(bench.execution.cancel(bench.now, ASKED))
    assert isinstance(bench.log[-1][1], Send) and bench.log[-1][0] == asked
    bench.run()
    assert bench.now - asked <= RULES.pacing.longest + RULES.pacing.join + 0.2
    assert bench.outcome.code is Code.CANCELLED
    assert re.search(r'at \d+\.\d+ s: cancelled by the client; stopped along', bench.outcome.text)
    away = np.abs(path.sample(np.linspace(0.0, path.duration, 5000)).position - bench.position)
    assert away.max(axis=1).min() < 2e-3, 'left the path'


def test_a_motion_that_is_about_to_end_is_left_to_its_end():
    """Another motion would begin when it is over: the robot rests sooner without."""
    bench = Bench().start()
    while bench.execution.segment.points.duration - bench.execution.watchdog.elapsed(
            bench.now) > 0.05:
        bench.run(0.01)
    sent = len(bench.log)
    bench.carry_out(bench.execution.cancel(bench.now, ASKED))
    bench.run()
    assert [type(command) for _, command in bench.log[sent:]] == [Finish]
    assert bench.outcome.text.endswith('stopped along the path, the robot holds')


def test_a_cancellation_without_time_to_brake_is_a_hard_stop():
    rules = replace(HARD, pacing=replace(RULES.pacing, longest=0.0))
    bench = Bench(rules).start().run(1.0)
    bench.do(bench.execution.cancel(bench.now, ASKED)).run()
    assert bench.first(Cancel)
    assert bench.outcome.text.endswith('motion cancelled, the robot holds')


def test_a_stop_that_is_not_accepted_becomes_a_harder_one():
    bench = Bench().start().run(3.6)
    carry_out, bench.carry_out = bench.carry_out, lambda commands: bench.log.extend(
        (bench.now, c) for c in commands) if any(isinstance(c, Send) for c in commands) \
        else carry_out(commands)
    asked = bench.now
    bench.do(bench.execution.cancel(bench.now, ASKED)).run()
    assert 0.05 < bench.first(Hold)[0] - asked < 0.07, 'limited comes next'
    assert bench.outcome.text.endswith('decelerated within the limits, the robot holds')
    assert bench.outcome.code is Code.CANCELLED
    assert bench.outcome.text.count('excitation at') == 1, bench.outcome.text


def test_before_the_answer_the_robot_may_follow_the_old_goal_or_the_new_one():
    for follows in ('old', 'new'):
        tight = replace(RULES, tolerances=replace(RULES.tolerances, tracking=np.full(2, 0.02)))
        bench = Bench(tight).start().run(2.4)
        (sent,) = bench.execution.pause(bench.now)
        if follows == 'new':
            bench.goal = sent.segment.points  # it continues the old one
        bench.run(0.2)
        assert bench.execution.phase is Phase.SENDING, bench.outcome
        bench.offset[0] = 0.5
        assert bench.run(0.05).execution.phase is Phase.STOPPING or bench.outcome is not None


@pytest.mark.parametrize('reason', [None, ASKED])
def test_a_rejected_stop_becomes_a_hard_one(reason):
    bench = Bench().start().run(3.6)
    commands = (bench.execution.pause(bench.now) if reason is None
                else bench.execution.cancel(bench.now, reason))
    assert len(commands) == 1 and isinstance(commands[0], Send)
    bench.do(bench.execution.on_rejected(bench.now)).run()
    assert bench.first(Cancel)
    assert bench.outcome.code is (Code.REJECTED if reason is None else Code.CANCELLED)


def test_the_topic_face_is_supervised_by_states_alone():
    bench = Bench(TOPIC).start().run()
    assert bench.outcome == Outcome(Code.SUCCESS, 'done')
    whole = [c.segment for _, c in bench.log if isinstance(c, Send) and c.segment.elapsed == 0.0]
    assert [segment.name for segment in whole] == ['move_to_start', 'excitation']
    bench = Bench(SLOW_TOPIC)
    bench.start().run(0.4)
    bench.controller_on, bench.velocity = False, np.zeros(2)
    bench.run()
    assert bench.outcome.code is Code.TRACKING_ERROR
    assert not any(isinstance(c, Cancel) for _, c in bench.log)


def test_the_topic_face_at_the_end():
    wide = replace(SLOW_TOPIC, tolerances=replace(TOPIC.tolerances, tracking=np.full(2, 9.0)))
    bench = Bench(wide).start().run(0.4)
    bench.controller_on, bench.velocity = False, np.zeros(2)
    bench.run()
    assert bench.outcome.code is Code.TRACKING_ERROR
    assert 'does not come to rest at the end of the motion' in bench.outcome.text


def test_a_hold_on_the_topic_that_does_not_stop_the_robot_is_told():
    bench = Bench(TOPIC).start().run(3.6)
    bench.goal, bench.velocity, bench.controller_on = None, np.full(2, 1.0), False
    bench.alarms.pressed = True
    bench.do(bench.execution.on_alarm(bench.now)).run()
    assert bench.outcome.code is Code.EMERGENCY_STOP
    assert 'does not stop at the hold sent on its topic' in bench.outcome.text


@pytest.mark.parametrize('rules', FACES)
def test_a_stop_continues_the_motion_of_a_controller_that_tells_its_time(rules):
    """Then it goes over without a step, even with a robot that lags behind."""
    bench = Bench(rules)
    bench.lag, bench.reports = 0.04, True
    bench.start().run(2.0)
    path, elapsed = bench.execution.segment.points, bench.now - bench.goal_start
    bench.do(bench.execution.pause(bench.now))
    sent = bench.log[-1][1].segment
    assert sent.elapsed == pytest.approx(elapsed, abs=1e-9)
    assert sent.points.time[0] < elapsed - 0.5
    for time in np.linspace(elapsed - 0.5, elapsed + RULES.pacing.join, 50):
        assert np.allclose(sent.points.sample(time).position, path.sample(time).position,
                           rtol=0.0, atol=1e-12)
    rest(bench)
    assert sent.remaining < 1.0 + RULES.pacing.join + 0.05
    bench.do(bench.execution.resume(bench.now))
    assert bench.log[-1][1].segment.elapsed == 0.0, 'from rest nothing is continued'
    assert bench.run().outcome == Outcome(Code.SUCCESS, 'done')


def test_late_messages_of_the_controller_do_not_spoil_what_is_known_of_its_time():
    bench = Bench(WHOLE)
    bench.reports = False
    bench.start().run(2.0)
    watchdog, begun = bench.execution.watchdog, bench.goal_start + 0.003
    motion = bench.execution.segment.points
    for late in (0.09, 0.004, 0.15, 0.0, 0.06):
        bench.now += PERIOD
        elapsed = bench.now - late - begun
        bench.execution.on_controller_state(
            bench.now, elapsed, motion.sample(elapsed).position[0], None, 1.0)
        assert watchdog.timed
    assert bench.now - watchdog.elapsed(bench.now) == pytest.approx(begun, abs=1e-9)


@pytest.mark.parametrize(('shift', 'step'), [(-0.1, 0.0), (0.0, 1e-3), (-5.0, 0.0), (0.0, np.nan)])
def test_a_controller_that_follows_something_else_tells_no_time(shift, step):
    """Its time is wrong (another trajectory, a scaled speed), or its reference is."""
    bench = Bench(WHOLE)
    bench.reports = False
    bench.start().run(2.0)
    motion, elapsed = bench.execution.segment.points, bench.now - bench.goal_start
    position = motion.sample(elapsed).position[0] + step
    bench.execution.on_controller_state(bench.now, elapsed + shift, position)
    assert not bench.execution.watchdog.timed
    bench.do(bench.execution.pause(bench.now))
    assert bench.log[-1][1].segment.elapsed == 0.0
