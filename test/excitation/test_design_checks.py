"""excitation/design.py: what ends a search, checks of efforts and lengths, and their sentences."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from motion_constraints import Post, box

from robot_dynid.collision.clearance import Clearance
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import (
    DesignCriteria,
    MotionRefused,
    Reason,
    SessionOver,
    Termination,
    check_length,
    design_pair,
    design_within,
    effort_peaks,
    review,
)
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.score import Score
from robot_dynid.excitation.search.observation import MotionGradient
from robot_dynid.excitation.search.optimise import SearchResult, StartRow
from robot_dynid.trajectories.trajectory import Motion, QuinticMove, Trajectory
from robot_dynid.types import FloatArray

OPTIONS = {'starts': 4, 'iterations': 10, 'time_limit': 50}
MOVE = QuinticMove(('joint_0', 'joint_1'), np.array([0.1, -0.2]), np.array([0.9, 1.2]), 2.0)


@pytest.mark.parametrize(('call', 'elapsed', 'stage', 'fraction', 'ends'), [
    ((1, 3, np.log(5.0)), 0.0, 'design: start 2 of 4, best value 5', 0.325, False),
    ((0, 0, np.inf), 0.0, 'design: start 1 of 4', 0.0, False),
    ((1, 3, np.log(1.23456)), 20.0, 'design: start 2 of 4, best value 1.235', 0.4, False),
    ((2, 10, 0.0), 0.0, 'design: start 3 of 4, best value 1', 0.75, True),
    ((2, 9, 0.0), 49.0, 'design: start 3 of 4, best value 1', 0.98, False),
    ((0, 1, 0.0), 50.0, 'design: start 1 of 4, best value 1', 1.0, True),
    ((0, 1, 0.0), 80.0, 'design: start 1 of 4, best value 1', 1.0, True)])
def test_a_start_ends_after_its_iterations_or_all_with_the_time(
    call: tuple[int, int, float], elapsed: float, stage: str, fraction: float, ends: bool
) -> None:
    said: list[tuple[str, float]] = []
    common = parse_request('', OPTIONS).common
    termination = Termination(common, DesignCriteria(
        progress=lambda *one: said.append(one), elapsed=lambda: elapsed))
    assert termination(*call) is ends
    assert said == [(stage, pytest.approx(fraction))]
    assert termination.ended_early is (elapsed >= 50.0)
    assert Termination(common, DesignCriteria())(*call) is (call[1] == 10)
    nothing = replace(common, time_limit=0.0)
    said.clear()
    assert Termination(nothing, DesignCriteria(progress=lambda *one: said.append(one)))(
        0, 1, 0.0) is False
    assert said == [('design: start 1 of 4, best value 1', 1.0)]


def test_a_search_that_ended_early_says_where() -> None:
    termination = Termination(parse_request('', OPTIONS).common, DesignCriteria())

    def result(*iterations: int) -> SearchResult:
        return SearchResult(np.zeros((1, 1)), np.zeros((1, 1)), tuple(
            StartRow(1.0, 0.5, False, count) for count in iterations))

    assert termination.warning(result(3, 0)) == (
        'the time limit of 50 s ended the search in start 2 of 4, so the same seed may give '
        'another motion: raise time_limit, or lower starts or iterations')
    assert termination.warning(result(0)) == (
        'the time limit of 50 s ended before the motion was improved, so it is random within the '
        'limits: raise time_limit')


def test_a_part_of_several_designs_has_its_share_of_progress_and_its_own_clock() -> None:
    said: list[tuple[str, float]] = []
    times = iter([5.0, 7.5])
    part = DesignCriteria(progress=lambda *one: said.append(one),
                          elapsed=lambda: next(times)).part(2, 4)
    assert part.progress is not None and part.elapsed is not None
    part.progress('design', 0.6)
    assert said == [('design', pytest.approx(0.65))] and part.elapsed() == 2.5
    assert DesignCriteria().part(1, 2).progress is DesignCriteria().part(1, 2).elapsed is None


@pytest.mark.parametrize(('step', 'count'), [(0.3, 8), (0.5, 5), (3.0, 2), (1e-5, 200_001)])
def test_effort_peaks_are_those_of_an_even_grid_with_both_ends(step: float, count: int) -> None:
    seen: list[FloatArray] = []

    def inverse(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        seen.append(q)
        return np.column_stack([3.0 * qd[:, 0], -2.0 * q[:, 1]])

    model: Any = inverse
    peaks = effort_peaks(MOVE, model, step)
    grid = MOVE.sample(np.linspace(0.0, 2.0, count))
    np.testing.assert_allclose(np.concatenate(seen), grid.position, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(peaks, [3.0 * grid.velocity[:, 0].max(), 2.4], rtol=1e-9)
    assert max(map(len, seen)) <= 50_000


def test_motions_of_more_than_ten_hours_are_refused() -> None:
    check_length(36_000.0)
    with pytest.raises(UsageError) as raised:
        check_length(36_100.5)
    assert str(raised.value) == ('the motion takes 36100.5 s, more than 36000 s: design a shorter '
                                 'one')


LIMITS = box(2, velocity=[1.0, 2.0], acceleration=9.0, effort=[20.0, 4.0])


def springs(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
    """Return efforts of springs: 9 and 2.4 N m at the end of the move."""
    return q * [10.0, 2.0]


SPRINGS: Any = springs


def test_a_review_has_the_shares_of_all_limits_and_what_was_not_checked() -> None:
    found = review(MOVE, LIMITS, DesignCriteria(inverse=SPRINGS, warnings=('given', 'given')))
    assert found.used['joint_0']['velocity'] == pytest.approx(15.0 / 8.0 * 0.4)
    assert found.used['joint_1']['velocity'] == pytest.approx(15.0 / 8.0 * 0.7 / 2.0)
    assert [shares['effort'] for shares in found.used.values()] == pytest.approx([0.45, 0.6])
    assert found.warnings == ('given', 'collisions were NOT checked')
    bare = review(MOVE, LIMITS, DesignCriteria(proof=Post((5.0, 5.0), 0.1).proof))
    assert bare.warnings == ('efforts were not predicted: no inverse model given',)
    assert 'effort' not in bare.used['joint_0'] and bare.score is None
    half = review(MOVE, replace(LIMITS, effort=np.array([np.nan, 4.0])),
                  DesignCriteria(inverse=SPRINGS))
    assert half.warnings[0] == "effort of joint 'joint_0' was not checked: its limit is unknown"
    assert 'effort' not in half.used['joint_0']
    assert half.used['joint_1']['effort'] == pytest.approx(0.6)


@pytest.mark.parametrize(('condition', 'indistinct'), [(0.9e6, False), (1.1e6, True)])
def test_a_motion_that_excites_too_little_is_reported_with_its_condition(
    condition: float, indistinct: bool
) -> None:
    found = review(MOVE, LIMITS, DesignCriteria(score=lambda _: Score(condition, 1.5)))
    assert found.score == Score(condition, 1.5)
    words = 'the motion does not excite all parameters (condition number 1.1e+06): ask for more ' \
        'harmonics, knots or poses'
    assert (words in found.warnings) is indistinct


def test_a_refusal_names_everything_that_is_exceeded_and_its_first_reason() -> None:
    tight = replace(LIMITS, velocity=np.array([0.7, 2.0]), effort=np.array([8.5, 2.3]))
    post = Post((0.5, 0.5), 0.9)
    for limits, reason, texts in (
            (tight, Reason.LIMITS, [
                "velocity of joint 'joint_0' reaches 0.75",
                "; effort of joint 'joint_0' reaches 9, its limit is 8.5; effort of joint "
                "'joint_1' reaches 2.4, its limit is 2.3"]),
            (LIMITS, Reason.CLEARANCE, ['hand and post come as near as -0.8', ' m at 0.999 s'])):
        with pytest.raises(MotionRefused) as refused:
            review(MOVE, limits, DesignCriteria(inverse=SPRINGS, proof=post.proof))
        assert refused.value.reason is reason
        for text in texts:
            assert text in str(refused.value)
        assert ('hand' in str(refused.value)) is (reason is Reason.CLEARANCE)


def test_an_optimum_that_fails_its_checks_goes_back_to_its_start_step_by_step() -> None:
    tried: list[FloatArray] = []

    def refuse(trajectory: Trajectory) -> Clearance:
        tried.append(trajectory.sample(1.3).position[0])
        return Clearance(False, 0.0123456, ('hand', 'table'), 3.25)

    def distance(motion: Motion) -> tuple[float, MotionGradient]:
        still = np.zeros_like(motion.position)
        count = len(still)
        return float(np.sum(motion.position**2)) / count, (
            2.0 * motion.position / count, still, still)

    request = parse_request('', {'duration': 6.0, 'harmonics': 2, 'starts': 1, 'iterations': 5})
    with pytest.raises(DynIdError) as raised:
        design_within(box(2), request, DesignCriteria(
            proof=refuse, objective=lambda name, typical, duration: distance))
    assert str(raised.value) == ('no motion satisfies all constraints: hand and table come as '
                                 'near as 0.01235 m at 3.25 s')
    way = np.array(tried) - tried[-1]
    assert np.linalg.norm(way[0]) > 0.1
    np.testing.assert_allclose(way @ way[0] / (way[0] @ way[0]), [
        1.0, 0.98, 0.95, 0.9, 0.8, 0.6, 0.4, 0.2, 0.0], rtol=0.0, atol=1e-9)


def test_an_adaptive_session_ends_at_its_accuracy_or_names_what_it_misses() -> None:
    met = SessionOver('done', ('m1', 0.08))
    assert (met.met, met.worst, met.deviation, met.unreachable) == (True, ('m1', 0.08), 0.08, ())
    missed = SessionOver('not yet', ('m2', 0.3), ('m2', 'm3'))
    assert (missed.met, missed.deviation, missed.unreachable) == (False, 0.3, ('m2', 'm3'))


class Springs:
    """Efforts of springs, and the gradients of sums of them."""

    def __init__(self, stiffness: list[float]) -> None:
        self.stiffness = stiffness

    def __call__(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return q * self.stiffness

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        still = np.zeros_like(motion.position)
        return weights * self.stiffness, still, still


LONG = {'duration': 6.0, 'harmonics': 2, 'starts': 1, 'iterations': 1, 'scale': 0.5}


def test_a_validation_motion_stays_within_the_fit_motion_and_uses_the_full_limits() -> None:
    """Its speeds are those reached both ways, or half of the larger; efforts are scaled back."""
    limits = replace(box(2, jerk=60.0), effort=np.array([50.0, 40.0]))
    request = parse_request('', LONG)
    inverse: Any = Springs([10.0, 2.0])
    fit, judge = design_pair(limits, request, DesignCriteria(inverse=inverse))
    assert judge is not None and judge.limits is limits
    reached, peaks = fit.trajectory.peaks(), judge.trajectory.peaks()
    motion = fit.trajectory.sample(np.arange(0.0, 6.0, 0.01))
    for name in ('velocity', 'acceleration'):
        values, peak = getattr(motion, name), getattr(reached, name)
        bound = np.maximum(np.minimum(values.max(axis=0), -values.min(axis=0)), 0.5 * peak)
        assert np.all(getattr(peaks, name) <= bound)
    assert np.all(peaks.lower >= reached.lower) and np.all(peaks.upper <= reached.upper)
    assert np.all(peaks.jerk <= 0.5 * 60.0)
    effort = effort_peaks(judge.trajectory, inverse, 0.001)
    for j, joint in enumerate(limits.joints):
        shares = judge.used[joint]
        assert shares['effort'] == pytest.approx(effort[j] / limits.effort[j])
        assert shares['velocity'] == pytest.approx(peaks.velocity[j] / limits.velocity[j])
    states = [one.trajectory.sample(np.arange(0.0, one.trajectory.duration, 0.01))
              for one in (fit, judge)]
    cover = min(float(np.min(np.ptp(getattr(states[1], name), axis=0)
                             / np.ptp(getattr(states[0], name), axis=0)))
                for name in ('position', 'velocity'))
    text = f'covers only {cover:.0%} of the range or the speeds of a joint: design a longer ' \
        'motion, or raise iterations'
    assert (text in judge.warnings) is (cover < 0.6)
    assert all(not one.startswith('covers ') for one in judge.warnings) is (cover >= 0.6)


def test_efforts_of_a_search_stay_below_ninety_eight_hundredths_of_their_limits() -> None:
    """A heavier second joint reaches its limit; option scale takes its share before."""
    inverse: Any = Springs([1.0, 10.0])
    limits = box(2, effort=[np.nan, 10.0], lower=-2.0, upper=2.0)
    request = parse_request('', {**LONG, 'iterations': 40, 'scale': 0.8, 'validation': False})

    def outward(motion: Motion) -> tuple[float, MotionGradient]:
        still = np.zeros_like(motion.position)
        count = len(still)
        return -float(np.sum(motion.position[:, 1]**2)) / count, (
            -2.0 * motion.position * [0.0, 1.0] / count, still, still)

    found = design_within(limits, request, DesignCriteria(
        inverse=inverse, objective=lambda name, typical, duration: outward))
    highest = 10.0 * np.abs(found.trajectory.sample(np.linspace(0.0, 6.0, 2001)).position[
        :, 1]).max()
    assert 0.95 * 0.98 * 8.0 < highest < 1.001 * 0.98 * 8.0
