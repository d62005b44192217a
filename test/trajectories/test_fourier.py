"""Fourier trajectories: limits between samples, rest at both ends, exact derivatives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motion_constraints import box, random_boxes

from robot_dynid.errors import DynIdError, RobotError, UsageError
from robot_dynid.excitation.design import design
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.score import condition_of, log_det_of, triangle_of
from robot_dynid.excitation.search.basis import BSplineBasis
from robot_dynid.io.trajectory_file import load_trajectory, save_trajectory
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.bspline import BSplineOptions
from robot_dynid.trajectories.composite import TRAJECTORIES, Composite, build, describe
from robot_dynid.trajectories.fourier import FourierOptions, FourierTrajectory, random_fourier
from robot_dynid.trajectories.limits import motion_limits, quintic_move
from robot_dynid.trajectories.single_joint import SineSwing, Sweep
from robot_dynid.trajectories.trajectory import QuinticMove

AT_REST = 1e-9  # rounding of coefficients of order 1 times (k w)^2






@settings(max_examples=80)
@given(random_boxes(), st.integers(2, 8), st.floats(1.0, 60.0), st.integers(1, 3),
       st.integers(0, 2**32 - 1))
def test_no_limit_is_broken_on_a_fine_grid(limits, harmonics, duration, periods, seed):
    options = FourierOptions(duration, harmonics, periods)
    trajectory = random_fourier(limits, options, np.random.default_rng(seed))
    time = np.linspace(0.0, duration / periods, 10 * 40 * harmonics + 7)
    motion, peaks = trajectory.sample(time), trajectory.peaks()
    assert np.all(motion.position >= limits.lower) and np.all(motion.position <= limits.upper)
    for name in ('velocity', 'acceleration', 'jerk'):
        largest = np.abs(getattr(motion, name)).max(axis=0)
        assert not np.any(largest > getattr(limits, name))
        assert np.all(largest <= getattr(peaks, name) * (1.0 + 1e-12))
    ratios = [limits.half_range / (0.5 * np.ptp(motion.position, axis=0))]
    ratios += [getattr(limits, name) / np.abs(getattr(motion, name)).max(axis=0)
               for name in ('velocity', 'acceleration', 'jerk')]
    assert np.all(np.nanmin(ratios, axis=0) < 1.005), 'some joint reaches none of its limits'


@settings(max_examples=60)
@given(random_boxes(), st.integers(2, 8), st.floats(1.0, 60.0), st.integers(0, 2**32 - 1))
def test_rest_at_both_ends_and_range_in_the_middle(limits, harmonics, duration, seed):
    trajectory = random_fourier(
        limits, FourierOptions(duration, harmonics), np.random.default_rng(seed))
    ends, peaks = trajectory.sample([0.0, duration]), trajectory.peaks()
    assert np.abs(ends.position[1] - ends.position[0]).max() < AT_REST
    assert np.abs(ends.velocity).max() < AT_REST * limits.velocity.max()
    assert np.abs(ends.acceleration).max() < AT_REST * limits.acceleration.max()
    middle = 0.5 * (peaks.lower + peaks.upper)
    assert np.allclose(middle, limits.centre, atol=1e-9)


def trajectories():
    fourier = random_fourier(box(), FourierOptions(5.0, 4, 2), np.random.default_rng(1))
    start = fourier.sample(0.0).position[0]
    move = quintic_move(fourier.joints, (start + 0.7, start), box().scaled(0.3))
    swing = SineSwing(fourier.joints, fourier.joints[0], start, 0.4, 0.5, 2)
    spline = BSplineBasis(fourier.joints, BSplineOptions(5.0, 6))
    points = spline.random(box(), np.random.default_rng(2))
    sweep = Sweep(fourier.joints, fourier.joints[1], start, 0.4, 0.5, 1.5)
    return {'fourier': fourier, 'sine': swing, 'sweep': sweep, 'quintic': move,
            'bspline': spline.trajectory(points),
            'composite': Composite((move, fourier))}


@pytest.mark.parametrize('name', TRAJECTORIES)
def test_contract_of_every_trajectory(name, tmp_path):
    """One suite for every registered type: derivatives, ends, peaks, file."""
    trajectory = trajectories()[name]
    time, step = np.linspace(1e-3, trajectory.duration - 1e-3, 400), 1e-5
    motion = trajectory.sample(time)
    before, after = trajectory.sample(time - step), trajectory.sample(time + step)
    for low, high in (('position', 'velocity'), ('velocity', 'acceleration'),
                      ('acceleration', 'jerk')):
        slope = (getattr(after, low) - getattr(before, low)) / (2.0 * step)
        exact = getattr(motion, high)
        assert np.allclose(slope, exact, atol=1e-6 * np.abs(exact).max()), (low, high)
    ends = trajectory.sample([0.0, trajectory.duration])
    assert max(np.abs(ends.velocity).max(), np.abs(ends.acceleration).max()) < AT_REST
    outside = trajectory.sample([-1.0, trajectory.duration + 1.0])
    assert np.allclose(outside.position, ends.position, atol=1e-12)
    peaks = trajectory.peaks()
    assert np.all(motion.position >= peaks.lower) and np.all(motion.position <= peaks.upper)
    for order in ('velocity', 'acceleration', 'jerk'):
        assert np.all(np.abs(getattr(motion, order)) <= getattr(peaks, order) + 1e-12)
    save_trajectory(trajectory, tmp_path / 'file.yaml', robot='some_arm')
    again = load_trajectory(tmp_path / 'file.yaml')
    assert describe(again) == describe(trajectory)
    assert np.array_equal(again.sample(time).position, motion.position)


@settings(max_examples=60)
@given(random_boxes(), st.integers(0, 2**32 - 1))
def test_quintic_move_keeps_limits_and_is_not_slow(limits, seed):
    start, goal = np.random.default_rng(seed).uniform(limits.lower, limits.upper,
                                                      (2, len(limits.joints)))
    move = quintic_move(limits.joints, (start, goal), limits)
    motion, peaks = move.sample(np.linspace(0.0, move.duration, 4001)), move.peaks()
    used = []
    for name in ('velocity', 'acceleration', 'jerk'):
        largest = np.abs(getattr(motion, name)).max(axis=0)
        used.append(largest / getattr(limits, name))
        assert not np.any(used[-1] > 1.0)
        assert np.all(largest >= getattr(peaks, name) * 0.999)
    assert np.nanmax(used) > 0.99 or move.duration == pytest.approx(0.5)


def test_composite_refuses_a_jump():
    joints = ('a', 'b')
    first = QuinticMove(joints, np.zeros(2), np.ones(2), 1.0)
    second = QuinticMove(joints, np.array([1.0, 1.2]), np.zeros(2), 1.0)
    with pytest.raises(UsageError, match=r"position of joint 'b' jumps by 0.2"):
        Composite((first, second))


def test_missing_limits_are_named_and_not_invented():
    robot = load_robot('ur10e')
    bare = motion_limits(robot)
    unknown = np.full(robot.n, np.nan)
    holes = type(robot.limits)(*(unknown if name == 'acceleration' else getattr(bare, name)
                                 for name in ('lower', 'upper', 'velocity', 'acceleration',
                                              'effort')))
    broken = replace(robot, limits=holes)
    with pytest.raises(RobotError, match=f"'{robot.joints[0]}': acceleration"):
        motion_limits(broken)
    given_ones = {joint: {'acceleration': 2.0} for joint in robot.joints}
    assert np.all(motion_limits(broken, given_ones).acceleration == 2.0)


@pytest.mark.parametrize(('limits', 'words'), [
    ({'nowhere': {'velocity': 1.0}}, "names joint 'nowhere'"),
    ({'shoulder_pan_joint': {'speed': 1.0}}, "unknown limit 'speed'"),
    ({'shoulder_pan_joint': {'velocity': 1e3}}, 'wider than the 2.09'),
    ({'shoulder_pan_joint': {'position': [-6.3, 1.0]}}, 'wider than the -6.28'),
    ({'shoulder_pan_joint': {'position': [-1.0, 6.3]}}, 'wider than the -6.28'),
    ({'shoulder_pan_joint': {'position': [1.0, 0.5]}}, 'no range to move in'),
    ({'shoulder_pan_joint': {'velocity': 'fast'}}, 'must be a finite number'),
    (['shoulder_pan_joint'], 'must map joint names'),
])
def test_wrong_limits_are_explained(limits, words):
    with pytest.raises(DynIdError, match=words):
        motion_limits(load_robot('ur10e'), limits)


@pytest.mark.parametrize(('options', 'words'), [
    ({'harmonics': 1}, 'at least 2'),
    ({'harmonics': 2.5}, 'a whole number'),
    ({'duration': -1}, 'positive'),
    ({'duration': 'long'}, 'a finite number'),
    ({'scale': 1.5}, "'scale'"),
    ({'speed': 1}, "unknown option 'speed'"),
    (['duration'], 'must be a mapping'),
])
def test_wrong_options_are_explained(options, words):
    with pytest.raises(UsageError, match=words):
        parse_request('fourier', options)


def test_score_agrees_with_the_plain_formulas():
    matrix = np.random.default_rng(3).standard_normal((300, 5)) * [1.0, 10.0, 0.1, 3.0, 1e3]
    factor = triangle_of(matrix)
    scaled = matrix / np.linalg.norm(matrix, axis=0)
    assert condition_of(factor) == pytest.approx(np.linalg.cond(scaled))
    assert log_det_of(factor) == pytest.approx(np.linalg.slogdet(matrix.T @ matrix)[1])
    empty = triangle_of(np.zeros((10, 2)))
    assert (condition_of(empty), log_det_of(empty)) == (np.inf, -np.inf)


@pytest.mark.parametrize('name', ['ur10e', 'tx40', 'seven_axis', 'stanford_arm'])
def test_design_for_the_robots_that_come_with_the_package(name):
    result = design(load_robot(name), parse_request('fourier', {'scale': 0.5}))
    for use in result.used.values():
        assert 0.3 < max(use.values()) <= 0.5 or max(use.values()) == use['position']
    assert isinstance(result.trajectory, FourierTrajectory)


@pytest.mark.parametrize(('text', 'words'), [
    ('', 'not a trajectory file'),
    ('robot_dynid_trajectory: 1\ntype: spiral\n', "unknown trajectory type 'spiral'"),
    ('robot_dynid_trajectory: 1\ntype: quintic\njoints: [a]\nstart: [.nan]\n', '1 finite numbers'),
    ('robot_dynid_trajectory: 1\ntype: fourier\njoints: [a, a]\n', "'a' occurs twice"),
    ('robot_dynid_trajectory: 1\ntype: fourier\njoints: [a]\n', 'is missing'),
    ('{', 'not valid YAML'),
])
def test_a_wrong_file_is_explained(tmp_path, text, words):
    path = tmp_path / 'broken.yaml'
    path.write_text(text)
    with pytest.raises(UsageError, match=words):
        load_trajectory(path)


def test_build_refuses_what_is_not_a_mapping():
    with pytest.raises(UsageError, match='must be a mapping'):
        build(['fourier'])
