"""Constant-velocity sweeps: plateaus, limits, obstacles, friction found from differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from motion_constraints import Post, box, random_boxes
from motions import torque_model
from single_joint_recordings import truth_of

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import DesignCriteria, design, design_within
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.planned.constant_velocity import Ladder, friction_row
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.trajectories.composite import build, describe, plateaus
from robot_dynid.trajectories.limits import violations
from robot_dynid.trajectories.single_joint import Sweep, shortest_ramp
from robot_dynid.types import Samples, frozen

SAME = 1e-12  # rounding of positions of order 1


def planned(limits, criteria=None, **options):
    return design_within(
        limits, parse_request('constant-velocity', options), criteria or DesignCriteria()
    )


@settings(max_examples=60)
@given(random_boxes(), st.floats(0.01, 1.0), st.floats(0.1, 3.0))
def test_a_sweep_bounds_its_motion_tightly(limits, share, seconds):
    speed = share * limits.velocity[0]
    ramp = shortest_ramp(limits, 0, speed)
    one = Sweep(limits.joints, limits.joints[0], limits.centre, speed, ramp, seconds)
    peaks, motion = one.peaks(), one.sample(np.linspace(0.0, one.duration, 8001))
    assert np.all(motion.position >= peaks.lower - SAME)
    assert np.all(motion.position <= peaks.upper + SAME)
    for name in ('velocity', 'acceleration', 'jerk'):
        largest, bound = np.abs(getattr(motion, name)).max(axis=0), getattr(peaks, name)
        assert np.all(largest <= bound * (1.0 + SAME)) and largest[0] > 0.99 * bound[0]
        assert not np.any(bound > getattr(limits, name)), name


def test_sweep_plateaus_pass_the_same_positions_at_the_stated_speed():
    one = Sweep(('a', 'b'), 'b', frozen([0.3, -0.4]), 0.7, 0.5, 1.2)
    there, back = plateaus(one)
    assert (there.lower, there.upper) == (back.lower, back.upper)
    assert there.end - there.begin == pytest.approx(1.2)
    u = np.linspace(0.0, 1.2, 50)
    forth, home = one.sample(there.begin + u), one.sample(back.end - u)
    assert np.allclose(forth.position, home.position, atol=SAME)
    assert np.allclose(forth.velocity[:, 1], 0.7, atol=SAME)
    assert np.allclose(home.velocity[:, 1], -0.7, atol=SAME)
    assert not np.any(forth.velocity[:, 0]) and np.abs(forth.acceleration).max() < SAME
    assert forth.position[[0, -1], 1] == pytest.approx([there.lower, there.upper])


def test_every_joint_climbs_its_ladder_in_every_configuration():
    found = planned(box(2), speeds=4, slowest=0.1, plateau=0.4, configurations=2, scale=1.0)
    seen = list(plateaus(found.trajectory))
    assert len(seen) == 2 * 2 * 4 * 2  # joints, configurations, speeds, directions
    for joint in box(2).joints:
        speeds = sorted({round(p.speed, 9) for p in seen if p.joint == joint and p.speed > 0.0})
        assert np.allclose(speeds, np.geomspace(0.2, 2.0 * (1.0 - 1e-3), 4))
    assert min(p.end - p.begin for p in seen) > 0.4 * (1.0 - SAME) and not found.stages
    middles = {tuple(found.trajectory.sample(0.5 * (p.begin + p.end)).position[0].round(6)[:1])
               for p in seen if p.joint == 'joint_1'}
    assert len(middles) == 2


def test_plateaus_are_found_again_in_a_file():
    trajectory = planned(box(2), speeds=2).trajectory
    again = build(describe(trajectory))
    assert list(plateaus(again)) == list(plateaus(trajectory))


def test_only_the_joints_named_sweep():
    found = planned(box(3), joints=['joint_2'], speeds=2)
    assert {p.joint for p in plateaus(found.trajectory)} == {'joint_2'}


def test_a_short_range_shortens_the_ladder_and_says_so():
    limits = box(2, upper=[2.5, -1.5])
    found = planned(limits, scale=1.0)
    assert any("joint 'joint_1' sweeps only up to" in w and 'range is too short' in w
               for w in found.warnings)
    top = max(p.speed for p in plateaus(found.trajectory) if p.joint == 'joint_1')
    ladder = Ladder(limits, 1, 0.5)
    assert top == pytest.approx(ladder.highest())
    assert ladder.path(top) == pytest.approx(ladder.usable_range)
    assert found.used['joint_1']['position'] > 0.998


@pytest.mark.parametrize(('options', 'words'), [
    ({'ladder': {'joint_0': [0.1, 3.0]}}, r'cannot hold 3 for 0.5 s .*at most 1.79'),
    ({'plateau': 60.0}, r'slowest speed 0.09 for 60 s .*: give at most 44'),
    ({'joints': ['elbow']}, "names joint 'elbow'"), ({'joints': 'joint_0'}, 'a list of joint'),
    ({'ladder': {'joint_0': [0.0]}}, 'must be positive'), ({'ladder': [1.0]}, 'must map joints'),
    ({'speeds': 0}, 'at least 1'), ({'slowest': 1.0}, 'must be at most 0.999'),
    ({'plateau': -1.0}, 'must be positive'), ({'starts': 2}, 'has no effect'),
    ({'duration': 20.0}, "unknown option 'duration' of constant-velocity")])
def test_constant_velocity_refuses_impossible_options_with_the_reason(options, words):
    with pytest.raises(UsageError, match=words):
        planned(box(2), **options)


def test_an_explicit_ladder_is_kept():
    found = planned(box(2), ladder={'joint_0': [0.5, 0.1]}, joints=['joint_0'], configurations=1)
    assert [p.speed for p in plateaus(found.trajectory)] == [0.1, -0.1, 0.5, -0.5]


@pytest.mark.parametrize('with_proof', [False, True])
def test_obstacles_are_avoided(with_proof):
    post = Post((0.2, 0.3), 0.5)
    criteria = (
        DesignCriteria(proof=post.proof) if with_proof else DesignCriteria(constraints=(post,))
    )
    found = planned(box(3), criteria)
    assert post.proof(planned(box(3)).trajectory).smallest < 0.0, 'nothing was in the way'
    assert post.proof(found.trajectory).smallest > -1e-3
    assert {p.joint for p in plateaus(found.trajectory)} == set(box(3).joints)


def test_a_sweep_without_room_names_joint_and_obstacle():
    criteria = DesignCriteria(constraints=(Post((0.0, 0.0), 50.0),))
    with pytest.raises(DynIdError, match=r"joint 'joint_0' cannot sweep .*distance from the post"):
        planned(box(2), criteria)


def test_efforts_shorten_the_ladder():
    def inverse(position, velocity, acceleration):
        return 20.0 * velocity + 0.0 * position

    found = planned(box(2, effort=20.0), DesignCriteria(inverse=inverse), scale=1.0, speeds=5)
    assert any('needs an effort of' in w for w in found.warnings)
    assert 0.3 < found.used['joint_0']['effort'] <= 1.0


@pytest.mark.parametrize('name', ['ur10e', 'tx40', 'seven_axis', 'stanford_arm'])
def test_half_differences_are_the_friction(name):
    """At one position there and back, what is left is tau_f of the model, joint by joint."""
    robot = load_robot(name)
    found = design(
        robot, parse_request('constant-velocity', {'speeds': 3}), design_criteria(robot)
    )
    assert not violations(found.trajectory.peaks(), found.limits)
    assert found.stages[0].condition_number < 20.0
    model = torque_model(robot)
    truth = truth_of(model, coulomb=4.0)
    seen = list(plateaus(found.trajectory))
    for there, back in zip(seen[::2], seen[1::2], strict=True):
        j = robot.joints.index(there.joint)
        motion = found.trajectory.sample([there.begin + 0.1, back.end - 0.1])
        assert np.allclose(motion.position[0], motion.position[1], atol=1e-9)
        acceleration = np.zeros_like(motion.position)
        samples = Samples(robot.joints, np.arange(2.0), motion.position, motion.velocity,
                          acceleration, starts=(0, 1))
        effort = model.effort(samples, truth)[:, j]
        alone = model.columns(samples)[j]
        names = [i for i, n in enumerate(model.reduction.names)
                 if n.startswith(('fv', 'fc'))]
        friction = truth[names] @ alone[names]
        assert 0.5 * (effort[0] - effort[1]) == pytest.approx(friction[0], rel=1e-6)


def test_both_directions_of_sweeps_show_friction_that_changes_its_sign() -> None:
    """What half of their difference holds: viscous and dry friction of the joint that moves."""
    sweeps = [Sweep(('joint_1', 'joint_2', 'joint_3'), 'joint_2', frozen([0.1, 0.2, 0.3]), speed,
                    0.5, 1.0) for speed in (0.4, 0.8)]
    (row,) = friction_row(torque_model('planar_3r'), sweeps)
    assert (row.name, row.moving, row.swings, row.solves) == (
        'friction', ('joint_2',), 2, ('fv2', 'fc2'))
    # columns of 0.4 and 0.8, of 1 and 1, which are 18 degrees apart
    apart = np.arccos(1.2 / np.sqrt(2.0 * 0.8))
    assert row.condition_number == pytest.approx(1.0 / np.tan(apart / 2.0), rel=1e-2)
