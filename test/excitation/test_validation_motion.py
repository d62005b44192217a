"""excitation/design.py: a fit motion comes with a distinct validation motion, which passes none of
its states."""

import numpy as np
import pytest
from motion_constraints import Post, box

from robot_dynid.errors import UsageError
from robot_dynid.excitation.design import (
    JUDGED_SHARE,
    DesignCriteria,
    design_pair,
    design_within,
    repeated_share,
)
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.request import validation_request
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.held_out_motion import DistinctMotion
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.limits import motion_limits, violations
from robot_dynid.types import FIT, VALIDATION, Samples

SHORT = {'duration': 6.0, 'starts': 1, 'iterations': 20}
KINDS = [('fourier', SHORT), ('fourier', {**SHORT, 'periods': 3}), ('bspline', SHORT),
         ('composite', {'segments': [{'type': 'fourier', **SHORT},
                                  {'type': 'constant-velocity', 'speeds': 1}]})]


def cells(*trajectories):
    """Return the cells of distinct motion that trajectories pass."""
    distinct, found = DistinctMotion(), []
    for one in trajectories:
        time = np.linspace(0.0, one.duration, int(250.0 * one.duration))
        motion = one.sample(time)
        found.append(set(distinct.add(Samples(
            one.joints, time, motion.position, motion.velocity, motion.acceleration))))
    return found


@pytest.mark.parametrize('robot', ['planar_3r', 'seven_axis'])
@pytest.mark.parametrize(('kind', 'options'), KINDS)
@pytest.mark.parametrize('seed', [0, 3])
def test_the_motion_to_judge_by_is_distinct_and_keeps_the_limits(robot, kind, options, seed):
    robot = load_robot(robot)
    limits = motion_limits(robot)
    fit, judge = design_pair(limits, parse_request(kind, {**options, 'seed': seed}),
                             design_criteria(robot))
    fitted, judged = cells(fit.trajectory, judge.trajectory)
    assert not fitted & judged and len(judged) > 5
    assert not violations(judge.trajectory.peaks(), limits.scaled(0.9))
    reached, used = fit.trajectory.peaks(), judge.trajectory.peaks()
    assert np.all(used.lower >= reached.lower) and np.all(used.upper <= reached.upper)
    assert np.all(used.velocity <= reached.velocity)
    assert np.all(used.acceleration <= reached.acceleration)
    assert judge.limits is limits
    for joint, share in judge.used.items():
        assert all(share[name] <= fit.used[joint][name] for name in ('velocity', 'acceleration'))
    assert repeated_share(fit.trajectory, fit.trajectory) > 0.98


@pytest.mark.parametrize('robot', ['planar_3r', 'seven_axis'])
@pytest.mark.parametrize('kind', ['fourier', 'bspline'])
def test_the_motion_to_judge_by_covers_most_of_what_was_fitted(robot, kind):
    robot = load_robot(robot)
    request = parse_request(kind, {'duration': 10.0, 'starts': 1, 'iterations': 20})
    fitted, judged = (
        made.trajectory.sample(np.linspace(0.0, made.trajectory.duration, 1000))
        for made in design_pair(motion_limits(robot), request, design_criteria(robot)))
    assert np.all(np.ptp(judged.position, axis=0) > 0.5 * np.ptp(fitted.position, axis=0))
    assert np.all(np.ptp(judged.velocity, axis=0) > 0.5 * np.ptp(fitted.velocity, axis=0))


def test_a_motion_that_covers_little_says_so():
    robot = load_robot('seven_axis')
    _, judge = design_pair(motion_limits(robot), parse_request('fourier', {**SHORT, 'periods': 3}),
                           design_criteria(robot))
    (words,) = [text for text in judge.warnings if text.startswith('covers ')]
    assert 0.0 < float(words.partition('covers only ')[2].partition('%')[0]) < 100.0 * JUDGED_SHARE


def test_the_motion_to_fit_is_that_without_another_one():
    request = parse_request('fourier', SHORT)
    alone = design_within(box(3), request, DesignCriteria()).trajectory
    fit, judge = design_pair(box(3), request, DesignCriteria())
    assert fit.trajectory.parameters() == alone.parameters()
    assert isinstance(judge.trajectory, FourierTrajectory) and judge.trajectory.periods == 1
    assert judge.trajectory.base_frequency not in fit.trajectory.base_frequency * np.arange(1, 6)


def test_constraints_hold_for_either():
    post = Post((-0.6, 0.1), 0.2)
    criteria = DesignCriteria(constraints=(post,), proof=post.proof)
    for made in design_pair(box(2), parse_request('fourier', SHORT), criteria):
        motion = made.trajectory.sample(np.linspace(0.0, made.trajectory.duration, 500))
        assert post.values(motion).min() > 0.0


def test_a_motion_of_one_joint_says_what_it_shares():
    _, judge = design_pair(box(1), parse_request('fourier', {'duration': 30.0, 'starts': 1}),
                           DesignCriteria())
    (words,) = [text for text in judge.warnings if 'repeats states of the fit motion' in text]
    assert 0.0 < float(words.partition('%')[0]) < 50.0


@pytest.mark.parametrize(('kind', 'options'), [
    ('fourier', {'validation': False}), ('fourier', {'purpose': VALIDATION}),
    ('sine-sequence', {}), ('static-poses', {}), ('constant-velocity', {}),
    ('composite', {'segments': [{'type': 'static-poses'}]}),
    ('composite', {'segments': [{'type': 'fourier', 'validation': False}]})])
def test_validation_request_is_none_when_unwanted_or_impossible(kind, options):
    assert validation_request(parse_request(kind, options)) is None


def test_every_attempt_is_another_motion_from_one_start():
    request = parse_request('bspline', {'starts': 20, 'accuracy': 0.1, 'scale': 0.5})
    first, second = (validation_request(request, attempt).common for attempt in range(2))
    assert first.seed != second.seed and first.starts == 1 and first.accuracy == np.inf
    assert (first.purpose, request.common.purpose, first.scale) == (VALIDATION, FIT, 1.0)


@pytest.mark.parametrize(('kind', 'options', 'words'), [
    ('static-poses', {'validation': True}, "'validation' has no effect on static-poses"),
    ('fourier', {'validation': 1}, "'validation' must be true or false, is 1"),
    ('fourier', {'purpose': 'test'}, "'purpose' 'test': choose one of fit, validation")])
def test_wrong_options_are_named(kind, options, words):
    with pytest.raises(UsageError, match=words):
        parse_request(kind, options)


@pytest.mark.parametrize(('kind', 'options', 'expected'), [
    ('fourier', {'duration': 12.0, 'periods': 3, 'harmonics': 4},
     {'duration': 6.0, 'periods': 1, 'harmonics': 4}),
    ('bspline', {'duration': 8.0, 'knots': 7}, {'duration': 12.0, 'knots': 7})])
def test_a_validation_motion_is_half_as_long_again_as_a_period(kind, options, expected):
    request = parse_request(kind, {**options, 'seed': 9, 'time_limit': 77, 'objective': 'log-det'})
    found = validation_request(request, 2)
    assert {name: getattr(found.options, name) for name in expected} == expected
    assert found.common.seed == np.random.default_rng((9, 2)).integers(2**31)
    assert (found.common.time_limit, found.common.objective) == (77, 'log-det')
    whole = validation_request(parse_request('composite', {'segments': [
        {'type': 'static-poses'}, {'type': kind, **options}]}))
    (segment,) = whole.options.segments
    assert (segment.kind, segment.options.duration) == (kind, expected['duration'])


def test_segments_have_seeds_of_the_whole_unless_they_have_their_own():
    request = parse_request('composite', {'seed': 5, 'scale': 0.7, 'segments': [
        {'type': 'bspline'}, {'type': 'fourier', 'seed': 3, 'scale': 0.5}, {'type': 'bspline'}]})
    drawn = np.random.default_rng(5).integers(2**31, size=3)
    commons = [segment.common for segment in request.options.segments]
    assert [common.seed for common in commons] == [drawn[0], 3, drawn[2]]
    assert [common.scale for common in commons] == [1.0, 0.5, 1.0]
    with pytest.raises(UsageError, match="option 'segments' lists 101, more than 100"):
        parse_request('composite', {'segments': [{'type': 'bspline'}] * 101})
    with pytest.raises(UsageError, match=r'type .spiral.; choose one of fourier, bspline'):
        parse_request('spiral', {})
    with pytest.raises(UsageError, match='options must be a mapping such as'):
        parse_request('', [1])


@pytest.mark.parametrize(('option', 'low', 'high'), [
    ('scale', 1e-3, 1.0), ('starts', 1, 1000), ('iterations', 1, 100_000), ('seed', 0, 2**63 - 1),
    ('time_limit', 0.0, 1e6), ('accuracy', 1e-9, 1e9)])
def test_common_options_have_limits(option, low, high):
    below = low - (1 if isinstance(low, int) else 1e-3 * low + 1e-12)
    for edge, beyond in ((low, below), (high, high + 1 + high // 1000)):
        assert getattr(parse_request('', {option: edge}).common, option) == edge
        with pytest.raises(UsageError, match=option):
            parse_request('', {option: int(beyond) if isinstance(edge, int) else beyond})
