"""Motions in pieces: whenever the node dies, the robot comes to rest by itself, on its path."""

from dataclasses import replace

import numpy as np
import pytest
from execution_bench import JOINTS, LIMITS, PERIOD, RULES, Bench, excitation
from hypothesis import example, given, settings
from hypothesis import strategies as st

from robot_dynid.execution.guards import Code, Outcome
from robot_dynid.execution.pace import DURATIONS, SPACING, Stops, stops_of
from robot_dynid.execution.pieces import Pieces, in_pieces, shortage
from robot_dynid.execution.sampled import SampledTrajectory, sampled, within
from robot_dynid.execution.segment import Phase, Segment, Send
from robot_dynid.trajectories.limits import quintic_move

PACING = RULES.pacing
TOPIC = replace(RULES, answers=False)


def placed(rules, segment):
    """Return a bench whose robot stands at the start of the only segment."""
    bench = Bench(rules, (segment,))
    bench.position = segment.points.position[0].copy()
    return bench


def accelerations(bench):
    """Return the accelerations (T, n) that were commanded, by differences."""
    positions = np.array([position for _, position in bench.trace])
    return np.diff(positions, 2, axis=0) / PERIOD**2


def away(bench, path):
    """Return how far (n,) the robot stands from the nearest pose of its path."""
    dense = path.sample(np.linspace(0.0, path.duration, 40_000)).position
    nearest = np.argmin(np.abs(dense - bench.position).max(axis=1))
    return np.abs(dense[nearest] - bench.position)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.floats(0.0, 4.5), st.sampled_from([0.5, 0.95]),
       st.sampled_from([1.0, 2.0]), st.sampled_from([0.0, 0.03, 0.12]),
       st.sampled_from([RULES, TOPIC]))
@example(3, 0.05, 0.95, 1.0, 0.12, RULES)
def test_whenever_the_node_dies_the_robot_comes_to_rest_on_its_path(
        seed, dies, scale, lookahead, answer_time, rules):
    rules = replace(rules, pacing=replace(PACING, lookahead=lookahead))
    bench = placed(rules, excitation(seed, scale))
    bench.answer_time = answer_time
    bench.start().run(dies)
    assert bench.outcome is None or bench.outcome.code is Code.SUCCESS, bench.outcome
    bench.node_on, at = False, bench.now
    for _ in range(int((lookahead + answer_time) / PERIOD) + 2):
        bench.step()
    stood = bench.position.copy()
    bench.run(0.5)
    assert np.array_equal(stood, bench.position), f'moves {bench.now - at} s later'
    assert np.all(away(bench, bench.execution.segment.points) < 1e-3)
    assert np.all(np.abs(accelerations(bench)) < 8.0 * 1.0001)


def test_the_whole_motion_is_followed_without_a_step():
    bench = placed(RULES, excitation(1)).start().run()
    assert bench.outcome == Outcome(Code.SUCCESS, 'done')
    points, begun = bench.execution.segment.points, bench.trace[0][0] - PERIOD
    time, positions = (np.array(column) for column in zip(*bench.trace, strict=True))
    moving = time - begun > 0.21
    assert np.allclose(positions[moving], points.sample(time[moving] - begun).position, atol=1e-6)
    sent = [at for at, c in bench.log if isinstance(c, Send)]
    assert np.all(np.diff(sent) > 0.19) and len(sent) > 10


def test_every_piece_ends_at_rest_within_the_lookahead_and_the_limits():
    segment = in_pieces(excitation(2), PACING)
    pieces, elapsed, sent = Pieces(segment, PACING), 0.0, []
    while not pieces.complete:
        elapsed += PERIOD
        piece = pieces.next(elapsed, elapsed - 0.01)
        if piece is None:
            continue
        sent.append(piece)
        points = piece.segment.points
        assert points.duration <= elapsed + PACING.lookahead + 1e-6
        assert points.time[0] <= elapsed - 0.15 or points.time[0] == segment.points.time[0]
        assert within(points, LIMITS)
        assert not points.velocity[-1].any() and not points.acceleration[-1].any()
        assert pieces.followed.brakes - elapsed > 0.15, 'no time left for the controller'
        same = np.linspace(points.time[0], min(piece.brakes, points.duration), 300)
        for name in ('position', 'velocity', 'acceleration'):
            assert np.allclose(getattr(points.sample(same), name),
                               getattr(segment.points.sample(same), name), atol=1e-9)
        pieces.taken()
    assert np.array_equal(sent[-1].segment.points.position[-1], segment.points.position[-1])


def test_stops_keep_the_limits_where_they_are_offered_and_are_missing_where_they_do_not():
    points = excitation(5, 1.0).points
    tight = replace(LIMITS, acceleration=np.abs(points.acceleration).max(axis=0) * 1.0001)
    stops = stops_of(points, tight, 50.0)
    wide = stops_of(points, LIMITS, 50.0)
    assert set(np.round(stops.duration[:-1], 3)) <= set(DURATIONS)
    assert stops.shortest_lookahead >= wide.shortest_lookahead
    assert np.sum(stops.duration) >= np.sum(wide.duration)
    assert np.all(np.diff(stops.end) > 0.0) and np.all(np.diff(stops.begin) > 0.0)
    assert stops.begin[-1] == points.duration and stops.duration[-1] == 0.0
    assert np.max(np.diff(wide.begin)) < 2.0 * SPACING + 0.3


def test_a_motion_that_cannot_stop_in_time_is_refused_with_the_lookahead_it_needs():
    narrow = replace(LIMITS, acceleration=np.full(2, 0.8))
    move = quintic_move(JOINTS, (np.full(2, -1.5), np.full(2, 1.5)), narrow)
    segment = in_pieces(Segment('move', sampled(move, 50.0, 0.2), narrow), PACING)
    assert 'allow no stop' in shortage(segment, PACING)
    bench = placed(RULES, segment).start()
    assert bench.outcome.code is Code.INVALID and 'nothing was sent' in bench.outcome.text
    assert not bench.log or not any(isinstance(c, Send) for _, c in bench.log)
    needed = float(shortage(segment, PACING).split('a lookahead of ')[2].split(' s')[0])
    wide = replace(RULES, pacing=replace(PACING, lookahead=needed))
    assert shortage(segment, wide.pacing) is None
    assert placed(wide, segment).start().run().outcome.code is Code.SUCCESS


def test_points_far_apart_are_no_obstacle():
    """A slow first pass has a point every few seconds only."""
    slow = excitation(4).points
    time = 0.2 + (slow.time - 0.2) / 0.01
    far = replace(slow, time=time, velocity=slow.velocity * 0.01,
                  acceleration=slow.acceleration * 1e-4)
    segment = in_pieces(Segment('first_pass', far, LIMITS), PACING)
    assert shortage(segment, PACING) is None
    assert np.max(np.diff(segment.stops.begin)) < 2.0 * SPACING


def test_a_piece_begins_where_a_late_controller_was_last():
    pieces = Pieces(in_pieces(excitation(2), PACING), PACING)
    piece = pieces.next(0.6, 0.28)
    assert piece.segment.points.time[0] <= 0.28


def held_up(seconds, rules=RULES, **changes):
    """Return a bench in mid-motion whose node then does nothing for so long."""
    bench = placed(rules, excitation(1))
    for name, value in changes.items():
        setattr(bench, name, value)
    bench.start().run(2.0)
    bench.node_on = False
    bench.run(seconds)
    bench.node_on = True
    return bench


@pytest.mark.parametrize('rules', [RULES, TOPIC])
def test_a_short_delay_of_the_node_is_not_felt(rules):
    bench = held_up(0.25, rules).run()
    assert bench.outcome == Outcome(Code.SUCCESS, 'done'), bench.outcome
    assert np.all(np.abs(accelerations(bench)) < 8.0)


@pytest.mark.parametrize('rules', [RULES, TOPIC])
@pytest.mark.parametrize('seconds', [0.8, 1.5, 3.0])
def test_a_node_that_was_too_late_sends_nothing_and_says_so(rules, seconds):
    bench = held_up(seconds, rules)
    sent = bench.last(Send)
    bench.run()
    assert bench.outcome.code is Code.NODE_DELAYED, bench.outcome
    assert f'held up for {seconds:.1f}' in bench.outcome.text
    assert bench.outcome.text.endswith('stopped along the path, the robot holds')
    assert bench.last(Send) == sent
    assert np.all(np.abs(accelerations(bench)) < 8.0)
    assert np.all(away(bench, bench.execution.segment.points) < 1e-3)


def test_a_controller_that_does_not_answer_in_time_lets_the_robot_come_to_rest():
    bench = placed(RULES, excitation(1)).start().run(2.0)
    bench.answer_time = 5.0
    bench.run(1.5)
    assert bench.doing == 'hold'
    assert np.all(np.abs(accelerations(bench)) < 8.0)
    bench.on_its_way.clear()
    bench.run()
    assert bench.outcome.code is Code.CONTROLLER_LOST
    assert 'did not answer the goal that continues the motion' in bench.outcome.text


def test_a_rejected_piece_lets_the_robot_come_to_rest():
    bench = placed(RULES, excitation(1)).start().run(2.0)
    bench.answer_time = 9.0
    sent = bench.last(Send)
    while bench.last(Send) == sent:
        bench.step()
    bench.on_its_way.clear()
    bench.do(bench.execution.on_rejected(bench.now)).run()
    assert bench.outcome.code is Code.REJECTED
    assert bench.outcome.text.endswith('stopped along the path, the robot holds')
    assert np.all(np.abs(accelerations(bench)) < 8.0)


@pytest.mark.parametrize('ask', ['pause', 'cancel'])
@pytest.mark.parametrize('answered', [0.01, 0.04])
def test_a_stop_asked_for_while_a_piece_is_unanswered_is_one_along_the_path(ask, answered):
    bench = placed(RULES, excitation(1)).start().run(2.0)
    bench.answer_time = answered
    sent = bench.last(Send)
    while bench.last(Send) == sent:
        bench.step()
    assert bench.execution.phase is Phase.RUNNING
    commands = (bench.execution.pause(bench.now) if ask == 'pause' else
                bench.execution.cancel(bench.now, Outcome(Code.CANCELLED, 'asked')))
    bench.do(commands).run(1.5)
    assert bench.execution.phase is (Phase.PAUSED if ask == 'pause' else Phase.DONE)
    assert np.all(np.abs(accelerations(bench)) < 8.0)
    assert np.all(away(bench, bench.execution.segment.points) < 1e-3)


def test_without_the_time_of_the_controller_nothing_is_continued():
    patient = replace(RULES, settings=replace(RULES.settings, controller_timeout=60.0))
    bench = placed(patient, excitation(1)).start().run(0.15)
    bench.reports = False
    bench.run()
    assert sum(isinstance(c, Send) for _, c in bench.log) == 1
    assert bench.outcome.code is Code.REJECTED
    assert 'reference.time_from_start' in bench.outcome.text
    assert np.all(np.abs(accelerations(bench)) < 8.0)


@pytest.mark.parametrize('held_up', [0.0, 0.5])
def test_a_controller_that_falls_silent_in_mid_motion_has_rejected_nothing(held_up):
    """Writing to one that is frozen may hold the node up: it is the controller all the same."""
    patient = replace(RULES, settings=replace(RULES.settings, controller_timeout=60.0))
    bench = placed(patient, excitation(1)).start().run(1.0)
    bench.reports = False
    while bench.execution.phase is not Phase.DONE:
        bench.execution.watchdog.held_up = held_up
        bench.step()
    assert bench.outcome.code is Code.CONTROLLER_LOST
    assert 'no controller_state for' in bench.outcome.text
    assert 'so the position in the motion is unknown: have' in bench.outcome.text
    assert np.all(np.abs(accelerations(bench)) < 8.0)


def test_without_a_lookahead_a_motion_is_one_goal():
    whole = replace(RULES, pacing=replace(PACING, lookahead=0.0))
    bench = placed(whole, excitation(1)).start().run()
    assert bench.outcome.code is Code.SUCCESS
    assert sum(isinstance(c, Send) for _, c in bench.log) == 1


def test_a_motion_is_continued_where_the_clock_of_its_controller_lags():
    bench = placed(replace(RULES, pacing=replace(PACING, lookahead=1.0)), excitation(0, 0.5))
    bench.clock_lag = 0.09  # a simulated robot that is behind: its stamps are this old
    assert bench.start().run(10.0).outcome.code is Code.SUCCESS, bench.outcome
    assert bench.execution.watchdog.timed


def test_a_controller_that_runs_late_is_not_said_to_state_no_time():
    bench = placed(RULES, excitation(1)).start()
    bench.clock_lag = 0.3
    bench.run()
    assert bench.outcome.code is Code.CONTROLLER_LOST
    assert 'the controller runs 0.30 s late' in bench.outcome.text
    assert np.all(np.abs(accelerations(bench)) < 8.0)


@pytest.mark.parametrize(('earlier', 'ours'), [(0.05, True), (0.15, False)])
def test_a_motion_that_began_before_it_was_sent_is_not_taken_for_ours(earlier, ours):
    bench = placed(RULES, excitation(0, 0.5)).start()
    watchdog, sent = bench.execution.watchdog, bench.now
    segment = bench.execution.plan[0]
    elapsed = 0.5
    assert watchdog.note_reference(
        sent - earlier + elapsed, elapsed, segment.points.sample(elapsed).position[0],
        scaling=1.0) is ours


def steady(limit=1e3, **changes):
    """Return the pieces of 4 s of motion at constant speed 1 with a stop of 0.1 s every 0.1 s."""
    time = np.arange(0.0, 4.005, 0.02)
    rows = [np.stack([row, 0.0 * row], axis=1) for row in (time, 1.0 + 0.0 * time, 0.0 * time)]
    begin = np.append(0.1 * np.arange(40), time[-1])
    stops = Stops(begin, np.append(np.full(40, 0.1), 0.0))
    limits = replace(LIMITS, upper=np.full(2, 9.0), acceleration=np.full(2, limit))
    points = SampledTrajectory(JOINTS, time, *rows)
    return Pieces(Segment('a', points, limits, stops=stops), replace(PACING, **changes))


@pytest.mark.parametrize(('elapsed', 'pace', 'brakes'), [
    (0.199, 1.0, None), (0.2, 1.0, 1.1), (0.31, 1.0, 1.2), (0.699, 0.5, None), (0.701, 0.5, 1.6),
    (0.879, 0.05, None), (0.881, 0.05, 1.7), (0.899, 0.049, None)])
def test_a_piece_is_due_after_a_fifth_of_the_lookahead_or_late_at_reduced_pace(
        elapsed, pace, brakes):
    """It brakes 0.9 s later at most; late: within 0.4 of the lookahead before the last brakes."""
    pieces = steady()
    assert pieces.followed.brakes == pytest.approx(0.9)
    piece = pieces.next(elapsed, elapsed, pace)
    assert (piece is None) is (brakes is None)
    if piece is not None:
        assert (piece.brakes, piece.rest) == pytest.approx((brakes, brakes + 0.05))
        assert pieces.unanswered and pieces.taken() is piece is pieces.followed


@pytest.mark.parametrize(('pace', 'lookahead', 'latest'), [
    (1.0, 1.0, 0.85), (0.5, 1.0, 0.875), (1.0, 2.0, 1.8)])
def test_a_piece_is_late_a_twentieth_of_the_lookahead_before_it_brakes(pace, lookahead, latest):
    pieces = steady(lookahead=lookahead)
    assert not pieces.late(latest - 1e-3, pace) and pieces.late(latest + 1e-3, pace)


@pytest.mark.parametrize(('elapsed', 'reported', 'begin', 'remembered'), [
    (0.51, 0.5, 0.3, 0.0), (0.51, 0.11, 0.1, 0.0), (1.51, 1.5, 1.3, 0.5)])
def test_a_piece_begins_a_fifth_of_a_second_ago_and_remembers_a_second(
        elapsed, reported, begin, remembered):
    segment = steady().next(elapsed, reported).segment
    assert (segment.points.time[0], segment.reference.time[0]) == pytest.approx(
        (begin, remembered))
    assert (segment.elapsed, segment.entry) == (elapsed, None)


@pytest.mark.parametrize(('needed', 'length'), [
    (0.099, 0.1), (0.101, 0.2), (0.199, 0.2), (0.201, 0.4), (0.399, 0.4), (0.401, 0.8),
    (0.799, 0.8), (0.801, None)])
def test_the_shortest_entry_within_the_limits_is_taken(needed, length):
    """From pace 0.5 to 1 in T s takes 0.5 * 1.5 / T at speed 1."""
    piece = steady(0.75 / needed).next(0.75, 0.7, 0.5)
    assert (piece is None) is (length is None)
    if piece is not None:
        entry = piece.segment.entry
        assert (entry.at, entry.pace, entry.wait, entry.duration) == (0.75, 0.5, 0.1, length)


@pytest.mark.parametrize('first', [0.0, 1.5])
def test_a_lookahead_too_short_is_told_with_the_one_needed_rounded_up(first):
    """From the begin of a stop to the end of the next take at most 0.6 of it."""
    points = excitation(2).points
    stops = Stops(first + np.array([0.0, 2.0, 4.0]), np.array([0.5, 0.2534, 0.0]))
    segment = Segment('a', points, LIMITS, stops=stops)
    assert shortage(segment, replace(PACING, lookahead=3.75)) == (
        'a: the limits allow no stop along the path within a lookahead of 3.75 s; use a lookahead '
        'of 3.76 s, or a smaller scale')
    assert shortage(segment, replace(PACING, lookahead=2.2534 / 0.6)) is None
    early = Segment('a', points, LIMITS, stops=Stops(np.array([0.2]), np.array([0.1])))
    assert shortage(early, replace(PACING, lookahead=0.301)) is None
