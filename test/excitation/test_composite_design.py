"""excitation/design.py: composite designs: several kinds in one motion, each within its own
limits."""

import numpy as np
import pytest
from motion_constraints import Post, box

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import DesignCriteria, design, design_within
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.bspline import BSplineTrajectory
from robot_dynid.trajectories.composite import build, describe, dwells, plateaus
from robot_dynid.trajectories.fourier import FourierTrajectory
from robot_dynid.trajectories.limits import violations

SEGMENTS = [
    {'type': 'fourier', 'duration': 8, 'starts': 1, 'limits': {'joint_1': {'velocity': 0.5}}},
    {'type': 'constant-velocity', 'speeds': 2, 'configurations': 1},
    {'type': 'static-poses', 'poses': 4, 'scale': 0.5},
]


def test_design_composite_keeps_limits_with_segments_of_all_types():
    robot = load_robot('planar_3r')
    request = parse_request('composite', {'segments': SEGMENTS, 'scale': 0.8})
    found = design(robot, request, design_criteria(robot))
    peaks = found.trajectory.peaks()
    assert not violations(peaks, found.limits)
    assert max(v for used in found.used.values() for v in used.values()) <= 0.8
    assert len(list(plateaus(found.trajectory))) == 3 * 2 * 2
    assert len(list(dwells(found.trajectory))) == 8
    assert [stage.name for stage in found.stages] == ['2: friction', '3: gravity']
    assert found.score.condition_number < 100.0
    first = found.trajectory.segments[0].peaks()
    assert first.velocity[0] <= 0.5 < peaks.velocity[0]
    held = np.array([d.position for d in dwells(found.trajectory)])
    assert np.all(np.abs(held) <= 0.5 * 0.8 * found.limits.half_range)
    again = build(describe(found.trajectory))
    assert describe(again) == describe(found.trajectory)


def test_the_seed_of_the_whole_reaches_every_segment():
    request = [parse_request('composite', {'seed': seed, 'segments': [
        {'type': 'bspline', 'duration': 5}, {'type': 'bspline', 'duration': 5},
        {'type': 'fourier', 'seed': 7}]}) for seed in (1, 1, 2)]
    one, two, other = (
        [s for s in design_within(box(2), r, DesignCriteria()).trajectory.segments
         if isinstance(s, (BSplineTrajectory, FourierTrajectory))] for r in request)
    for a, b in zip(one, two, strict=True):
        assert a.parameters() == b.parameters()
    assert one[0].parameters() != one[1].parameters()
    assert one[0].parameters() != other[0].parameters()
    assert one[2].parameters() == other[2].parameters()


def test_moves_between_the_segments_go_round_obstacles():
    post = Post((-0.6, 0.1), 0.2)
    limits = {'joint_0': {'position': [-1.7, -1.2]}, 'joint_1': {'position': [-0.4, 0.4]}}
    beyond = {'joint_0': {'position': [0.4, 1.2]}, 'joint_1': {'position': [-0.4, 0.4]}}
    request = parse_request('composite', {'segments': [
        {'type': 'bspline', 'duration': 8, 'limits': limits},
        {'type': 'bspline', 'duration': 8, 'limits': beyond}]})
    assert post.proof(design_within(box(2), request, DesignCriteria()).trajectory).smallest < 0.0
    found = design_within(box(2), request, DesignCriteria(constraints=(post,)))
    assert post.proof(found.trajectory).smallest > -1e-3
    assert not violations(found.trajectory.peaks(), found.limits)


def test_progress_never_goes_back():
    told = []
    request = parse_request('composite', {'segments': [
        {'type': 'constant-velocity', 'speeds': 1}, {'type': 'constant-velocity', 'speeds': 2}]})
    design_within(box(2), request, DesignCriteria(progress=lambda stage, part: told.append(part)))
    assert told == sorted(told) and max(told) > 0.5 and min(told) == 0.0


@pytest.mark.parametrize(('options', 'words'), [
    ({}, 'at least one segment'), ({'segments': 'fourier'}, 'must be a list'),
    ({'segments': [{'duration': 3}]}, "segment 1: must be a mapping with a 'type'"),
    ({'segments': [{'type': 'fourier'}, {'type': 'spiral'}]},
     "segment 2: unknown excitation type 'spiral'"),
    ({'segments': [{'type': 'static-poses', 'starts': 3}]}, "segment 1: option 'starts' has no"),
    ({'segments': [{'type': 'bspline', 'knots': 1}]}, 'segment 1: .*at least 2'),
    ({'segments': [{'type': 'bspline', 'floor': 0.0}]},
     "segment 1: option 'floor' applies to the"),
    ({'segments': [{'type': 'bspline'}], 'duration': 3}, "unknown option 'duration' of composite"),
    ({'segments': [{'type': 'bspline'}], 'starts': 3}, "option 'starts' has no effect")])
def test_wrong_options_are_explained(options, words):
    with pytest.raises(UsageError, match=words):
        parse_request('composite', options)


def test_a_segment_cannot_widen_the_limits_of_the_whole():
    request = parse_request('composite', {'segments': [
        {'type': 'bspline', 'limits': {'joint_0': {'velocity': 1.9}}}]})
    with pytest.raises(DynIdError,
                       match=r'velocity of joint .joint_0. is 1.9, wider than the 1.8'):
        design_within(box(2), request, DesignCriteria())
