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
