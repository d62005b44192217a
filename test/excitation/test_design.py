"""The search for excitations: better than chance, all limits kept, the seed decides."""

from dataclasses import dataclass, replace
from functools import cache
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_robots import random_urdf
from tiers import COSTLY

from robot_dynid.collision.clearance import Clearance
from robot_dynid.errors import Cancelled, DynIdError, UsageError
from robot_dynid.excitation.design import (
    DesignCriteria,
    MotionRefused,
    Reason,
    design,
    design_within,
    review,
)
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.search.constraints import RigidEffort
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf
from robot_dynid.trajectories.composite import describe
from robot_dynid.trajectories.fourier import random_fourier
from robot_dynid.trajectories.limits import MotionLimits, motion_limits


def clock(every=1.0):
    """Return a clock that ticks whenever it is read: a time limit that counts iterations."""
    return count(0.0, every).__next__


def box(robot, **changes):
    values = {'lower': -2.0, 'upper': 1.6, 'velocity': 2.0, 'acceleration': 6.0, 'jerk': 30.0,
              'effort': np.nan, **changes}
    return MotionLimits(robot.joints, **{k: np.broadcast_to(v, robot.n).astype(float)
                                         for k, v in values.items()})


def check_limits(found, limits, efforts=None):
    """Look at the motion on a grid ten times as fine as that of the search."""
    trajectory = found.trajectory
    motion = trajectory.sample(np.linspace(0.0, trajectory.duration, 6007))
    assert np.all(motion.position >= limits.lower) and np.all(motion.position <= limits.upper)
    for name in ('velocity', 'acceleration', 'jerk'):
        largest = np.abs(getattr(motion, name)).max(axis=0)
        assert not np.any(largest > getattr(limits, name)), name
    if efforts is not None:
        effort = efforts(motion.position, motion.velocity, motion.acceleration)
        assert not np.any(np.abs(effort).max(axis=0) > limits.effort)


@cache
def judged(name):
    robot = load_robot(name)
    return robot, design_criteria(robot)


@cache
def one_start(name, objective='condition'):
    robot, criteria = judged(name)
    return design(robot, parse_request('', {'starts': 1, 'objective': objective}), criteria)


@cache
def random_scores(name):
    robot, criteria = judged(name)
    rng, allowed = np.random.default_rng(7), motion_limits(robot).scaled(0.9)
    options = parse_request('', {}).options
    return [criteria.score(random_fourier(allowed, options, rng)) for _ in range(100)]


@pytest.mark.parametrize('name', ['ur10e', 'tx40', 'seven_axis'])
def test_design_with_one_start_beats_the_best_of_100_random_motions(name):
    found, scores = one_start(name), random_scores(name)
    assert found.score.condition_number < min(s.condition_number for s in scores)
    assert found.score.log_det > max(s.log_det for s in scores)
    check_limits(found, motion_limits(judged(name)[0]).scaled(0.9))
    assert found.starts[0].converged and found.starts[0].value < found.starts[0].first


def test_every_objective_is_the_best_at_what_it_is_for():
    scores = {name: one_start('tx40', name).score
              for name in ('condition', 'log-det', 'precision', 'blocks')}
    assert max(scores, key=lambda name: scores[name].log_det) == 'log-det'
    assert min(scores, key=lambda name: scores[name].largest_deviation) == 'precision'
    assert min(scores, key=lambda name: sum(scores[name].parts.values())) == 'blocks'
    assert scores['condition'].condition_number < scores['log-det'].condition_number


def test_blocks_lower_the_condition_number_of_every_part():
    for part, value in one_start('tx40', 'blocks').score.parts.items():
        assert value < np.median([score.parts[part] for score in random_scores('tx40')]), part


@settings(max_examples=COSTLY)
@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.booleans(), st.integers(2, 6))
def test_random_robots_keep_all_limits(seed, joints, tree, harmonics):
    rng = np.random.default_rng(seed)
    robot = robot_from_urdf(random_urdf(rng, joints, 0.5 * tree))
    limits = box(robot, velocity=rng.uniform(0.2, 3.0, joints),
                 acceleration=rng.uniform(0.5, 9.0, joints),
                 jerk=np.nan if rng.random() < 0.5 else rng.uniform(5.0, 90.0, joints))
    criteria = design_criteria(robot, elapsed=clock())
    pose = criteria.inverse(
        *np.zeros((3, 1, joints)) + limits.centre * [[[1.0]], [[0.0]], [[0.0]]]
    )
    limits = replace(limits, effort=1.1 * np.abs(pose[0]) + rng.uniform(5.0, 60.0, joints))
    options = {'harmonics': harmonics, 'duration': float(rng.uniform(2.0, 40.0)), 'starts': 2,
               'time_limit': 20, 'scale': 1.0}
    found = design_within(limits, parse_request('', options), criteria)
    check_limits(found, limits, criteria.inverse)
    assert all(use <= 1.0 for used in found.used.values() for use in used.values())


def test_efforts_are_kept_and_used():
    robot, criteria = judged('ur10e')
    full, free = motion_limits(robot), one_start('ur10e')
    tight = replace(full, effort=0.25 * full.effort)
    kept = design_within(tight, parse_request('', {'starts': 1, 'scale': 1.0}), criteria)
    check_limits(kept, tight, criteria.inverse)
    most = max(use['effort'] for use in kept.used.values())
    assert 0.9 < most <= 1.0
    assert max(use['effort'] for use in free.used.values()) > 0.3
    assert kept.score.condition_number < 10.0


def test_a_weak_joint_is_named_where_no_pose_can_be_held():
    robot = load_robot('planar_3r').with_gravity(np.array([0.0, -9.81, 0.0]))
    criteria = replace(design_criteria(robot), inverse=RigidEffort(robot, robot.nominal))
    narrow = box(robot, lower=-0.2, upper=0.2, effort=[1.0, 100.0, 100.0])
    with pytest.raises(DynIdError,
                       match=rf"joint '{robot.joints[0]}' needs .*, its limit is 0.88"):
        design_within(narrow, parse_request('', {}), criteria)


@dataclass(frozen=True)
class Below:
    """The first joint stays below a height, which is not linear in anything."""

    height: float
    name: str = 'below'

    def values(self, motion):
        return self.height - np.sin(motion.position[:, :1])

    def worst(self, motion):
        return f'sine of the first joint is {np.sin(motion.position[:, 0]).max():.3g}'

    def pullback(self, motion, weights):
        gradient = np.zeros_like(motion.position)
        gradient[:, :1] = -weights * np.cos(motion.position[:, :1])
        return gradient, np.zeros_like(gradient), np.zeros_like(gradient)

    def squares(self, motion, weights):
        out = np.zeros((*motion.position.shape, motion.position.shape[1]))
        out[:, 0, 0] = weights[:, 0] * np.cos(motion.position[:, 0]) ** 2
        return out


def test_constraints_are_kept_from_a_start_beside_the_middle():
    robot = load_robot('ur10e')
    criteria = replace(design_criteria(robot), constraints=(Below(-0.5),))
    found = design(robot, parse_request('', {'starts': 1}), criteria)
    motion = found.trajectory.sample(np.linspace(0.0, 20.0, 1000))
    highest = np.sin(motion.position[:, 0]).max()
    assert -0.55 < highest < -0.49
    with pytest.raises(DynIdError, match='at the centre of the position range sine of the first'):
        design(robot, parse_request('', {}), replace(criteria, constraints=(Below(-2.0),)))


def test_designs_follow_from_the_seed():
    robot = load_robot('stanford_arm')
    criteria = design_criteria(robot)

    def found(seed, starts):
        request = parse_request('', {'starts': starts, 'harmonics': 2, 'seed': seed})
        return design(robot, request, criteria)

    first, again, other, alone = found(4, 2), found(4, 2), found(5, 1), found(4, 1)
    assert first.trajectory.parameters() == again.trajectory.parameters()
    assert first.starts == again.starts
    assert first.trajectory.parameters() != other.trajectory.parameters()
    assert alone.starts[0].first == first.starts[0].first


def test_a_time_limit_ends_the_search_with_the_best_so_far_and_says_so():
    robot = load_robot('ur10e')

    def found(limit):
        criteria = design_criteria(robot, elapsed=clock())
        return design(robot, parse_request('', {'time_limit': limit, 'starts': 2}), criteria)

    nothing, some = found(0), found(30)
    assert any('so it is random' in warning for warning in nothing.warnings)
    check_limits(nothing, motion_limits(robot))
    assert nothing.starts[0].iterations == 0 and not nothing.starts[0].converged
    assert any('ended the search in start 1 of 2' in warning for warning in some.warnings)
    assert nothing.ended_early and some.ended_early
    assert some.starts[0].iterations < 31 and not some.starts[0].converged
    assert some.score.condition_number < nothing.score.condition_number
    assert some.score.log_det > nothing.score.log_det


@pytest.mark.parametrize(('kind', 'options'), [
    ('fourier', {'duration': 6, 'harmonics': 3, 'starts': 2}),
    ('bspline', {'duration': 6, 'knots': 5, 'starts': 2, 'iterations': 4}),
    ('composite', {'segments': [{'type': 'fourier', 'duration': 6, 'harmonics': 3, 'starts': 1},
                                {'type': 'static-poses', 'poses': 4}]}),
])
def test_no_clock_changes_a_design_unless_a_limit_is_given(kind, options):
    """A clock that runs a day per look stands for a machine under any load."""
    robot = load_robot('planar_3r')

    def found(**clocks):
        return design(robot, parse_request(kind, options), design_criteria(robot, **clocks))

    idle, loaded = found(), found(elapsed=clock(86400.0))
    assert describe(idle.trajectory) == describe(loaded.trajectory)
    assert not idle.ended_early and not loaded.ended_early
    assert idle.warnings == loaded.warnings


def test_a_segment_that_ends_early_is_reported_of_the_whole():
    robot = load_robot('planar_3r')
    segments = [{'type': 'fourier', 'time_limit': 9, 'starts': 1},
                {'type': 'static-poses', 'poses': 4}]
    found = design(robot, parse_request('composite', {'segments': segments}),
                   design_criteria(robot, elapsed=clock()))
    assert found.ended_early
    assert any('the time limit of 9 s ended the search' in w for w in found.warnings)


def test_iterations_bound_every_start_whatever_the_clock_says():
    robot = load_robot('planar_3r')
    request = parse_request('', {'starts': 2, 'iterations': 3, 'time_limit': 600})
    found = design(robot, request, design_criteria(robot, elapsed=clock()))
    assert [row.iterations for row in found.starts] == [3, 3]
    assert not any(row.converged for row in found.starts)
    assert not found.ended_early and not any('time limit' in w for w in found.warnings)
    with pytest.raises(UsageError, match="'iterations' must be at least 1, is 0"):
        parse_request('', {'iterations': 0})


def test_progress_tells_the_best_value_and_may_stop():
    said = []

    def progress(stage, fraction):
        said.append((stage, fraction))
        if fraction > 0.34:  # early in the second start
            raise Cancelled('enough')

    robot = load_robot('planar_3r')
    with pytest.raises(Cancelled):
        design(robot, parse_request('', {'starts': 3}), design_criteria(robot, progress))
    stages, fractions = zip(*said, strict=True)
    assert stages[0] == 'design: start 1 of 3' and fractions[0] == 0.0
    assert stages[-1].startswith('design: start 2 of 3, best value ')
    values = [float(stage.split()[-1]) for stage in stages[1:]]
    assert values[-1] < values[0]


def test_an_excitation_of_fourteen_joints_is_designed():
    text = random_urdf(np.random.default_rng(8), 14, 0.3)
    robot = robot_from_urdf(text)
    criteria = design_criteria(robot, elapsed=clock())
    request = parse_request('', {'starts': 1, 'time_limit': 25, 'scale': 1.0})
    found = design_within(box(robot), request, criteria)
    check_limits(found, box(robot))
    assert found.starts[0].value < found.starts[0].first - 0.3


def test_unreachable_accuracy_says_what_would_reach_it():
    """Deviations fall with the root of the periods: a third of them after nine."""
    robot = load_robot('planar_3r')
    criteria = design_criteria(robot)
    short = {'starts': 1, 'iterations': 1, 'duration': 5.0, 'harmonics': 2}
    plain = design(robot, parse_request('', short), criteria).score
    with pytest.raises(DynIdError, match=f'{plain.least_known} will have a relative standard '
                                         f'deviation of {plain.largest_deviation:.3g} after 5 s; '
                                         'ask for 9 periods of 5 s'):
        design(robot, parse_request('', {**short, 'accuracy': 0.34 * plain.largest_deviation}),
               criteria)
    kept = {**short, 'accuracy': 0.34 * plain.largest_deviation, 'periods': 9, 'duration': 45.0}
    found = design(robot, parse_request('', kept), criteria)
    assert found.score.largest_deviation == pytest.approx(plain.largest_deviation / 3.0, rel=0.01)


def test_a_motion_that_is_too_simple_is_reported():
    robot = robot_from_urdf(random_urdf(np.random.default_rng(0), 5, 0.0))
    criteria = design_criteria(robot)
    slow = box(robot, velocity=0.01, acceleration=1e-4, jerk=np.nan)
    request = parse_request('', {'harmonics': 2, 'starts': 1, 'duration': 100.0})
    found = design_within(slow, request, replace(criteria, elapsed=clock()))
    assert found.score.condition_number > 1e6
    assert any('does not excite all parameters' in warning for warning in found.warnings)


def test_without_a_judge_the_motion_is_a_random_one_within_the_limits():
    robot = load_robot('tx40')
    found = design_within(motion_limits(robot), parse_request('', {}), DesignCriteria())
    check_limits(found, motion_limits(robot))
    assert found.score is None


@pytest.mark.parametrize(('options', 'words'), [
    ({'objective': 'speed'}, 'choose one of condition, blocks, log-det, precision'),
    ({'time_limit': -1}, "'time_limit' must be at least 0"),
    ({'accuracy': 0}, "'accuracy' must be positive"),
    ({'starts': 0}, "'starts' must be at least 1"),
])
def test_wrong_options_of_the_search_are_explained(options, words):
    with pytest.raises(UsageError, match=words):
        parse_request('', options)


def test_a_given_motion_is_reviewed_as_it_is():
    robot = load_robot('planar_3r')
    criteria = design_criteria(robot)
    made = design(robot, parse_request('', {'starts': 1, 'iterations': 5}), criteria)
    found = review(made.trajectory, made.limits, criteria)
    assert found.trajectory is made.trajectory and found.score == made.score
    assert (found.used, found.warnings) == (made.used, made.warnings)


@pytest.mark.parametrize(('changed', 'reason', 'words'), [
    ({'joints': ('joint_2', 'joint_1', 'joint_3')}, Reason.JOINTS,
     'moves joint_1, joint_2, joint_3; the robot has joint_2, joint_1, joint_3, in this order'),
    ({'velocity': np.full(3, 0.1)}, Reason.LIMITS, "velocity of joint 'joint_1' reaches "),
    ({'effort': np.full(3, 0.01)}, Reason.EFFORT, "effort of joint 'joint_1' reaches "),
    ({}, Reason.CLEARANCE, 'hand and table come as near as 0.01 m at 3 s'),
])
def test_a_given_motion_that_does_not_fit_is_refused_by_name(changed, reason, words):
    robot = load_robot('planar_3r')
    criteria = replace(design_criteria(robot), inverse=RigidEffort(robot, robot.nominal))
    made = design(robot, parse_request('', {'starts': 1, 'iterations': 5}), criteria)
    proof = replace(criteria, proof=lambda trajectory: Clearance(
        False, 0.01, ('hand', 'table'), 3.0))
    with pytest.raises(MotionRefused) as refused:
        review(made.trajectory, replace(made.limits, **changed), proof)
    assert refused.value.reason is reason and words in str(refused.value)


def test_a_start_in_the_way_of_a_proof_is_refused():
    """The proof names the pair; nothing on the way to the optimum is free."""
    robot = load_robot('planar_3r')
    criteria = replace(design_criteria(robot, elapsed=clock()),
                    proof=lambda trajectory: Clearance(False, 0.01, ('hand', 'table'), 3.0))
    with pytest.raises(DynIdError, match=r'hand and table come as near as 0\.01 m at 3 s'):
        design(robot, parse_request('', {'time_limit': 5}), criteria)
