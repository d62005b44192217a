"""execution/stopping.py: stops by their cause: along the path, within the limits off it, at once;
the next harder."""

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import LIMITS, PERIOD, RULES, Bench
from hypothesis import given, settings
from hypothesis import strategies as st

from robot_dynid.errors import UsageError
from robot_dynid.execution.guards import STOPS, Code, GuardSettings, Outcome
from robot_dynid.execution.pace import decelerated
from robot_dynid.execution.sampled import sampled, within
from robot_dynid.execution.segment import Cancel, Hold, Phase, Send
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier

TOPIC = replace(RULES, answers=False)
SAID = {'path': 'stopped along the path, the robot holds',
        'limited': 'decelerated within the limits, the robot holds',
        'immediate': 'motion cancelled, the robot holds'}


def accelerations(bench):
    """Return the accelerations (T, n) that were commanded, by differences."""
    return np.diff([position for _, position in bench.trace], 2, axis=0) / PERIOD**2


def first_after(bench, since):
    return next(command for at, command in bench.log if at >= since)


@pytest.mark.parametrize('kind', [None, *STOPS])
@pytest.mark.parametrize(('code', 'setting', 'default'), [
    (Code.CANCELLED, 'stop_cancelled', 'path'),
    (Code.EMERGENCY_STOP, 'stop_emergency', 'path'),
    (Code.TEMPERATURE, 'stop_temperature', 'path'),
    (Code.STALE_STATES, 'stop_stale', 'limited'),
    (Code.CONTROLLER_LOST, 'stop_controller_lost', 'limited'),
    (Code.TAKEN_OVER, 'stop_taken_over', 'limited'),
    (Code.EFFORT_LIMIT, 'stop_effort', 'immediate'),
    (Code.TRACKING_ERROR, 'stop_tracking', 'immediate'),
])
def test_every_cause_stops_as_is_set(code, setting, default, kind):
    rules = RULES if kind is None else replace(
        RULES, settings=replace(RULES.settings, **{setting: kind}))
    bench = Bench(rules).start().run(3.0)
    since, kind = bench.now, kind or default
    bench.do(bench.execution.cancel(bench.now, Outcome(code, 'for this reason'))).run()
    assert isinstance(first_after(bench, since), Cancel if kind == 'immediate' else Send)
    assert bench.outcome.code is code
    assert bench.outcome.text.endswith(f'for this reason; {SAID[kind]}'), bench.outcome.text
    assert bench.now - since < 1.3
    if kind != 'immediate':
        assert np.all(np.abs(accelerations(bench)) < 8.0 * 1.0001)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.15, 4.0), st.sampled_from([np.nan, 300.0]))
def test_decelerated_stops_all_joints_within_limits_from_any_state(seed, elapsed, jerk):
    limits = replace(LIMITS, jerk=np.full(2, jerk))
    points = sampled(random_fourier(
        limits.scaled(0.95), FourierOptions(4.0, 4), np.random.default_rng(seed)), 50.0, 0.2)
    stop = decelerated(points, elapsed, limits, RULES.pacing)
    if stop is None:  # only near a limit of position, which the path itself does not cross
        at = points.sample(elapsed + 0.1)
        room = np.minimum(limits.upper - at.position, at.position - limits.lower)
        assert np.any(room < 0.5) or not np.isnan(jerk)
        return
    assert within(stop, limits)
    assert not stop.velocity[-1].any() and not stop.acceleration[-1].any()
    same = np.linspace(stop.time[0], elapsed + RULES.pacing.join, 100)
    for name in ('position', 'velocity', 'acceleration'):
        assert np.allclose(getattr(stop.sample(same), name), getattr(points.sample(same), name),
                           rtol=0.0, atol=1e-9)


@pytest.mark.parametrize('rules', [RULES, TOPIC])
def test_states_that_stop_lead_to_a_stop_within_the_limits(rules):
    bench = Bench(rules).start().run(3.0)
    bench.states_on, since = False, bench.now
    bench.run()
    assert bench.outcome.code is Code.STALE_STATES
    assert bench.outcome.text.endswith(
        'decelerated within the limits, confirmed but not seen: check that it stands')
    assert bench.now - since < 1.3
    assert np.all(np.abs(accelerations(bench)) < 8.0 * 1.0001)
    assert sum(isinstance(c, (Cancel, Hold)) for _, c in bench.log) == 0


def test_cancel_is_sent_when_the_controller_does_not_answer_a_stop():
    bench = Bench().start().run(3.0)
    bench.answer_time = 9.0
    since = bench.now
    bench.do(bench.execution.cancel(bench.now, Outcome(Code.STALE_STATES, 'blind'))).run()
    assert 0.05 < bench.first(Cancel)[0] - since < 0.07
    assert bench.outcome.code is Code.STALE_STATES


@pytest.mark.parametrize('late', [0.07, 0.1])
def test_a_stop_that_is_accepted_late_is_followed_by_a_hold_and_not_cancelled(late):
    """A cancelled goal ends in one cycle; the accepted one ended the hold that was sent before."""
    bench = Bench().start().run(3.0)
    bench.answer_time, since = late, bench.now
    bench.do(bench.execution.cancel(bench.now, Outcome(Code.CANCELLED, 'asked'))).run()
    assert not any(isinstance(c, Cancel) for _, c in bench.log)
    holds = [at - since for at, c in bench.log if isinstance(c, Hold)]
    assert holds == pytest.approx([0.06, late], abs=0.011)
    assert bench.outcome.text.endswith(f'asked; {SAID["limited"]}')


def test_a_harder_reason_comes_before_a_gentler_one_and_not_after():
    bench = Bench().start().run(3.0)
    bench.do(bench.execution.cancel(bench.now, Outcome(Code.CANCELLED, 'asked'))).run(0.05)
    sends = sum(isinstance(c, Send) for _, c in bench.log)
    bench.do(bench.execution.cancel(bench.now, Outcome(Code.EMERGENCY_STOP, 'pressed')))
    assert sum(isinstance(c, Send) for _, c in bench.log) == sends, 'it is braking already'
    bench.do(bench.execution.cancel(bench.now, Outcome(Code.STALE_STATES, 'blind')))
    assert sum(isinstance(c, Send) for _, c in bench.log) == sends + 1
    bench.do(bench.execution.cancel(bench.now, Outcome(Code.EFFORT_LIMIT, 'too much')))
    assert bench.execution.phase is Phase.STOPPING or bench.outcome is not None
    assert bench.run().outcome.code is Code.CANCELLED, 'the reason that came first'
    assert 'asked; while it stopped: blind; while it stopped: too much' in bench.outcome.text
    assert np.all(np.abs(accelerations(bench)) < 8.0 * 1.0001)


@pytest.mark.parametrize('obeys', [True, False])
def test_a_controller_of_another_program_is_braked_over_its_topic(obeys):
    bench = Bench().start().run(2.6)
    begun, start = bench.now, bench.position.copy()
    bench.hijacked = lambda now: (now - begun, start + 0.5 * (now - begun))
    if not obeys:
        carry_out = bench.carry_out
        bench.carry_out = lambda commands: bench.log.extend(
            (bench.now, c) for c in commands) if any(isinstance(c, Hold) for c in commands) \
            else carry_out(commands)
    bench.run()
    held = bench.first(Hold)[0]
    assert bench.outcome.code is Code.TAKEN_OVER
    if obeys:
        assert not any(isinstance(c, Cancel) for _, c in bench.log)
        assert bench.outcome.text.endswith(SAID['limited'])
    else:
        assert 0.05 < bench.first(Cancel)[0] - held < 0.07


def test_a_kind_of_stop_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="stop_stale 'softly': choose one of path, limited"):
        GuardSettings(stop_stale='softly')


def test_a_hold_sent_blind_leads_to_the_end_of_the_piece():
    """A controller that was frozen, and takes it later, is not made to jump."""
    bench = Bench().start().run(2.0)
    bench.states_on = bench.controller_on = False
    bench.run()
    _, held = bench.first(Hold)
    followed = bench.execution.watchdog.reference
    assert np.array_equal(held.position, followed.position[-1])
    assert held.duration >= 0.5 * RULES.pacing.lookahead


@pytest.mark.parametrize('answers', [True, False])
def test_a_silent_controller_is_sent_a_motion_only_where_it_answers(answers):
    bench = Bench(replace(RULES, answers=answers)).start().run(2.0)
    sent = len([c for _, c in bench.log if isinstance(c, Send)])
    bench.states_on = bench.controller_on = False
    bench.run()
    assert len([c for _, c in bench.log if isinstance(c, Send)]) - sent == answers
    assert any(isinstance(c, Hold) for _, c in bench.log) == answers


def test_a_silent_controller_that_does_not_answer_ends_its_piece_by_itself():
    bench = Bench(replace(RULES, answers=False)).start().run(2.0)
    bench.states_on = bench.controller_on = False
    since = bench.now
    assert bench.run().outcome.text.endswith(
        'the motion ends by itself, the controller is silent, so nothing was sent: check that it '
        'stands')
    assert 0.5 < bench.now - since < 0.1 + RULES.pacing.lookahead + PERIOD
    whole = replace(RULES, answers=False, pacing=replace(RULES.pacing, lookahead=0.0))
    bench = Bench(whole).start().run(2.0)
    bench.states_on = bench.controller_on = False
    assert any(isinstance(c, Hold) for _, c in bench.run().log), 'it would go on for long'
