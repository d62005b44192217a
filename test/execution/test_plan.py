"""What comes before and after an excitation."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from execution_bench import JOINTS, LIMITS, PERIOD, RULES, Bench

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.execution.guards import Code
from robot_dynid.execution.plan import (
    PlanOptions,
    announcement,
    excitation_segments,
    total_duration,
    with_moves,
)
from robot_dynid.execution.sampled import faults, sampled
from robot_dynid.execution.segment import Phase
from robot_dynid.execution.watchdog import Rules
from robot_dynid.trajectories.fourier import FourierOptions, FourierTrajectory, random_fourier
from robot_dynid.trajectories.limits import quintic_move

FOURIER = random_fourier(
    LIMITS.scaled(0.9), FourierOptions(4.0, 3, 2), np.random.default_rng(0))
FULL = PlanOptions(rate=100.0, approach_scale=0.5, first_pass_scale=0.4, warm_up=1,
                   return_to_start=True)
HERE = np.array([0.1, -0.2])


def names(segments):
    return [segment.name for segment in segments]


def test_the_whole_plan_of_a_periodic_excitation():
    segments = excitation_segments(FOURIER, LIMITS, FULL)
    assert names(segments) == ['first_pass', 'excitation']
    slow, fast = segments
    assert slow.points.duration == pytest.approx(0.2 + 2.0 / 0.4)
    assert fast.points.duration == pytest.approx(0.2 + 3 * 2.0)
    assert fast.part(0.0) == ('warm_up', 0.0)
    assert fast.part(2.1) == ('warm_up', pytest.approx(2.1 / 2.2))
    assert fast.part(4.2) == ('excitation', pytest.approx(0.5))
    assert fast.part(9.0) == ('excitation', 1.0)
    period = 200
    assert np.allclose(fast.points.position[:period], fast.points.position[period:2 * period],
                       atol=1e-12), 'the warm-up is a period like the others'
    plan = with_moves(HERE, segments, LIMITS, FULL)
    assert names(plan) == ['move_to_start', 'first_pass', 'excitation', 'return']
    for before, after in pairwise(plan):
        assert np.allclose(before.points.position[-1], after.points.position[0], atol=1e-6)
    assert np.array_equal(plan[-1].points.position[-1], HERE)
    for segment in plan:
        assert faults(segment.points, segment.limits, 60.0) == ()


def test_the_whole_time_is_announced_part_by_part():
    segments = with_moves(HERE, excitation_segments(FOURIER, LIMITS, FULL), LIMITS, FULL)
    move, slow, fast, back = (segment.points.duration for segment in segments)
    assert (slow, fast) == (pytest.approx(5.2), pytest.approx(6.2))
    assert total_duration(segments) == pytest.approx(move + slow + fast + back)
    assert announcement(FOURIER.duration, segments) == (
        f'4 s of excitation, {move + slow + fast + back:.1f} s in all: move to start {move:.1f}, '
        f'first pass 5.2, warm up 2.2, excitation 4.0, return {back:.1f}')


@pytest.mark.parametrize('reports', [False, True])
def test_the_remaining_time_is_that_until_the_end(reports):
    """But for the answers of the controller, which this one gives 0.05 s after every segment."""
    segments = with_moves(np.zeros(2), excitation_segments(FOURIER, LIMITS, FULL), LIMITS, FULL)
    whole = replace(RULES, pacing=replace(RULES.pacing, lookahead=0.0))
    bench = Bench(RULES if reports else whole, segments)
    bench.reports = reports
    assert bench.execution.remaining(bench.now) == total_duration(segments)
    bench.start()
    told = []
    while bench.execution.phase is not Phase.DONE:
        told.append((bench.now, bench.execution.remaining(bench.now)))
        bench.step()
    assert bench.outcome.code is Code.SUCCESS
    late = bench.now - np.sum(told, axis=1)
    splices = len(segments) * (0.05 + 2.0 * PERIOD)
    assert late.min() > -2.0 * PERIOD and late.max() < splices
    assert bench.execution.remaining(bench.now) == 0.0


def test_the_remaining_time_stands_still_while_the_robot_does():
    bench = Bench().start().run(3.0)
    bench.do(bench.execution.pause(bench.now))
    while bench.execution.phase is not Phase.PAUSED:
        bench.step()
    left = bench.execution.remaining(bench.now)
    for _ in range(100):
        bench.step()
        assert bench.execution.remaining(bench.now) == left
    bench.do(bench.execution.resume(bench.now))
    begin = bench.now
    assert left < bench.execution.remaining(begin) < left + 3.0, 'and what it takes to speed up'
    left = bench.execution.remaining(begin)
    bench.run()
    assert bench.now - begin == pytest.approx(left, abs=2.0 * (0.05 + 2.0 * PERIOD))


def test_the_points_of_the_excitation_itself_are_those_of_its_own_sampling():
    """Bit for bit, whatever the warm-up: it comes ahead of them and delays them."""
    odd = FourierTrajectory(FOURIER.joints, FOURIER.base_frequency / 1.0037, FOURIER.offset,
                            FOURIER.sine, FOURIER.cosine, FOURIER.periods)
    own = sampled(odd, FULL.rate, FULL.lead_in)
    for warm_up in (0, 1, 3):
        points = excitation_segments(odd, LIMITS, replace(FULL, warm_up=warm_up))[-1].points
        for name in ('position', 'velocity', 'acceleration'):
            rows = getattr(points, name)[-len(own.time):]
            assert np.array_equal(rows, getattr(own, name)), name
        delay = warm_up / odd.base_frequency
        assert np.allclose(points.time[-len(own.time):], own.time + delay, rtol=1e-15)
        assert points.time[0] == FULL.lead_in and np.diff(points.time).min() > 0.9 / FULL.rate


def test_excitation_segments_add_only_the_move_to_start_by_default():
    plan = with_moves(HERE, excitation_segments(FOURIER, LIMITS, PlanOptions()), LIMITS,
                      PlanOptions())
    assert names(plan) == ['move_to_start', 'excitation']
    assert plan[1].parts == () and plan[1].points.duration == pytest.approx(4.2)


def test_a_motion_that_does_not_return_is_brought_back_between_its_passes():
    move = quintic_move(JOINTS, (np.zeros(2), np.ones(2)), LIMITS)
    segments = excitation_segments(move, LIMITS, FULL)
    assert names(segments) == ['first_pass', 'excitation'] and segments[1].parts == ()
    plan = with_moves(np.zeros(2), segments, LIMITS, FULL)
    assert names(plan) == ['move_to_start', 'first_pass', 'move_to_start', 'excitation', 'return']
    assert not plan[2].points.position[-1].any() and not plan[-1].points.position[-1].any()


def test_ways_may_lead_through_other_poses():
    def detour(start, goal, limits):
        via = np.array([0.5, 0.5])
        return (quintic_move(JOINTS, (start, via), limits),
                quintic_move(JOINTS, (via, goal), limits))

    plan = with_moves(HERE, excitation_segments(FOURIER, LIMITS, PlanOptions()), LIMITS,
                      PlanOptions(), detour)
    assert np.abs(plan[0].points.position - 0.5).max(axis=1).min() < 1e-3
    assert faults(plan[0].points, plan[0].limits, 60.0) == ()


def test_a_robot_outside_its_limits_is_not_moved_and_outside_the_narrower_ones_is():
    narrow = replace(LIMITS, lower=np.full(2, -0.5), upper=np.full(2, 0.5))
    fourier = random_fourier(narrow, FourierOptions(4.0, 3), np.random.default_rng(0))
    segments = excitation_segments(fourier, narrow, PlanOptions())
    plan = with_moves(np.array([1.0, 0.0]), segments, LIMITS, PlanOptions())
    assert faults(plan[0].points, plan[0].limits, 60.0) == ()
    with pytest.raises(DynIdError, match=r"'elbow' stands at -2\.5, outside its limits -2 to"):
        with_moves(np.array([1.0, -2.5]), segments, LIMITS, PlanOptions())


@pytest.mark.parametrize(('name', 'allowed', 'refused'), [
    ('rate', 1.0, 0.9), ('rate', 1e4, 10_001.0), ('lead_in', 0.0, -0.1), ('lead_in', 60.0, 60.1),
    ('approach_scale', 1e-3, 0.9e-3), ('first_pass_scale', 1.0, 1.01), ('warm_up', 0, -1),
    ('warm_up', 100, 101)])
def test_options_of_a_plan_are_in_their_range(name, allowed, refused):
    assert getattr(PlanOptions(**{name: allowed}), name) == allowed
    with pytest.raises(UsageError, match=f'parameter {name} must be'):
        PlanOptions(**{name: refused})
    assert PlanOptions() == PlanOptions(rate=50.0, lead_in=0.2, approach_scale=0.2,
                                        first_pass_scale=1.0, warm_up=0, return_to_start=False)


@pytest.mark.parametrize(('away', 'moves'), [(0.9e-6, 1), (1.1e-6, 2)])
def test_a_segment_that_begins_a_millionth_away_needs_no_move(away, moves):
    """The first one has its move wherever the robot stands."""
    first, second = (excitation_segments(quintic_move(JOINTS, ends, LIMITS), LIMITS, PlanOptions())
                     [0] for ends in ((np.zeros(2), np.ones(2)), (1.0 + np.array([0.0, away]),
                                                                  np.zeros(2))))
    plan = with_moves(np.zeros(2), (first, second), LIMITS, PlanOptions())
    assert names(plan).count('move_to_start') == moves
    at_limit = with_moves(np.full(2, 2.0), (first,), LIMITS, PlanOptions())
    assert names(at_limit) == ['move_to_start', 'excitation']


def test_the_whole_plan_runs_and_names_what_it_does():
    segments = with_moves(np.zeros(2), excitation_segments(FOURIER, LIMITS, FULL), LIMITS, FULL)
    bench = Bench(Rules(LIMITS, RULES.settings, RULES.tolerances), segments).start()
    seen = []
    while bench.execution.outcome is None:
        bench.step()
        if bench.doing not in seen[-1:]:
            seen.append(bench.doing)
    assert bench.outcome.code is Code.SUCCESS
    assert seen == ['move_to_start', 'first_pass', 'warm_up', 'excitation', 'return']
    assert np.allclose(bench.position, 0.0, atol=1e-9)
