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
from robot_dynid.excitation.planned.constant_velocity import (
    ConstantVelocityOptions,
    Ladder,
    friction_row,
    plan_sweeps,
)
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


def ladder_of(plateau: float = 0.5, **changes: object) -> Ladder:
    """Return the ladder of a joint with 4.5 rad, 3 rad/s and 5 rad/s^2, which is not the first."""
    return Ladder(box(2, velocity=[2.0, 3.0], **changes), 1, plateau)


def ramp_of(speed: float) -> float:
    """Return the ramp [s] to a speed at 5 rad/s^2, a thousandth longer, and at least 0.2 s."""
    return max(0.2, 1.001 * 15.0 / 8.0 * speed / 5.0)


@pytest.mark.parametrize('speed', [0.02, 0.1, 0.3, 1.0, 2.4, 2.9])
def test_plateaus_cover_two_hundredths_of_the_range_and_fit_it(speed: float) -> None:
    ladder, usable = ladder_of(), 0.999 * 4.5
    assert ladder.usable_range == pytest.approx(usable) and ladder.name == 'joint_1'
    one = ladder.sweep(np.array([0.7, 0.1]), speed)
    lasting = min(max(0.5, 0.02 * usable / speed), usable / speed - ramp_of(speed))
    assert (one.moving, one.speed, one.ramp) == ('joint_1', speed, pytest.approx(ramp_of(speed)))
    assert one.plateau == pytest.approx(lasting)
    assert ladder.path(speed) == pytest.approx(speed * (0.5 + ramp_of(speed)))


@pytest.mark.parametrize(('plateau', 'whole'), [(0.3, True), (0.37, True), (0.38, False),
                                                (2.0, False)])
def test_the_highest_speed_is_that_of_the_joint_or_of_its_range(
    plateau: float, whole: bool
) -> None:
    ladder = ladder_of(plateau)
    highest = ladder.highest()
    assert (highest == pytest.approx(0.999 * 3.0, rel=1e-9)) is whole
    if not whole:
        bend = 1.001 * 15.0 / 40.0
        root = (np.sqrt(plateau**2 + 4.0 * bend * 0.999 * 4.5) - plateau) / (2.0 * bend)
        assert highest == pytest.approx(root, rel=1e-9)
    options = ConstantVelocityOptions(speeds=4, slowest=0.1)
    speeds, notes = ladder.speeds(options)
    assert speeds == pytest.approx(np.geomspace(0.3, highest, 4))
    assert notes == ([] if whole else [
        f"joint 'joint_1' sweeps only up to {highest:.4g}, below its limit 3: its range is too "
        f'short for faster plateaus of {plateau:.4g} s'])
    assert ladder.speeds(ConstantVelocityOptions(speeds=1))[0] == [highest]


def test_ladders_that_the_range_does_not_allow_are_refused_with_the_nearest() -> None:
    given = ConstantVelocityOptions(ladder={'joint_1': [2.0, 0.5, 1.2]})
    assert ladder_of().speeds(given) == ([0.5, 1.2, 2.0], [])
    highest = ladder_of(2.0).highest()
    with pytest.raises(UsageError) as raised:
        ladder_of(2.0).speeds(given)
    assert str(raised.value) == ("option 'ladder': joint 'joint_1' cannot hold 2 for 2 s within "
                                 f'its limits; at most {highest:.4g}')
    with pytest.raises(UsageError) as raised:
        ladder_of(30.0).speeds(ConstantVelocityOptions(slowest=0.11))
    longest = 0.999 * 4.5 / 0.33 - ramp_of(0.33)
    assert str(raised.value) == (
        "option 'plateau': joint 'joint_1' cannot hold even its slowest speed 0.33 for 30 s "
        f'within its range: give at most {longest:.4g} s, or a smaller slowest')
    ladder_of(13.4).speeds(ConstantVelocityOptions(slowest=0.11))


@pytest.mark.parametrize(('ladder', 'words'), [
    ({'joint_1': []}, "speeds of joint 'joint_1' must be a list of 1 to 100 positive numbers, "),
    ({'joint_1': [1.0] * 101}, 'must be a list of 1 to 100'), ({'joint_1': 'fast'}, 'got .fast'),
    ({'joint_1': 2.0}, 'must be a list of 1 to 100')])
def test_ladders_are_lists_of_speeds(ladder: dict[str, list[float]], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ConstantVelocityOptions(ladder=ladder)
    ConstantVelocityOptions(ladder={'joint_1': [1.0] * 100})


def test_joints_sweep_in_the_order_of_the_robot() -> None:
    names = ('a', 'b', 'c')
    assert ConstantVelocityOptions(joints=['c', 'a']).check_joints(names) == ('a', 'c')
    assert ConstantVelocityOptions().check_joints(names) == names
    with pytest.raises(UsageError) as raised:
        ConstantVelocityOptions(ladder={'d': [1.0]}).check_joints(names)
    assert str(raised.value) == "option 'ladder' names joint 'd'; the robot has a, b, c"


@pytest.mark.parametrize('loaded', [True, False])
def test_configurations_are_those_most_unlike_in_the_load_of_the_joint(loaded: bool) -> None:
    """Or without efforts in all positions; the first is the middle of the ranges."""
    def inverse(q, qd, qdd):
        return np.column_stack([0.0 * q[:, 0], np.sin(3.0 * q[:, 0]), 5.0 * q[:, 1]])

    limits = box(3, effort=np.nan)
    found = plan_sweeps(DesignCriteria(inverse=inverse if loaded else None), limits,
                        ConstantVelocityOptions(['joint_1'], 2, configurations=4),
                        np.random.default_rng(4))
    rng, ladder = np.random.default_rng(4), Ladder(limits, 1, 0.5)
    places = np.array([limits.centre, *(rng.uniform(limits.lower, limits.upper)
                                        for _ in range(23))])
    speeds = ladder.speeds(ConstantVelocityOptions(speeds=2))[0]
    slack = 0.5 * (ladder.usable_range - max(ladder.sweep(limits.centre, v).travel
                                             for v in speeds))
    places[:, 1] = np.clip(places[:, 1], 0.25 - slack, 0.25 + slack)
    marks = inverse(places, places, places)[:, [1]] if loaded else places
    chosen = [0]
    while len(chosen) < 4:
        apart = [min(np.linalg.norm(mark - marks[c]) for c in chosen) for mark in marks]
        chosen.append(int(np.argmax(apart)))
    sweeps = [one for one in found.trajectory.segments if isinstance(one, Sweep)]
    assert [one.speed for one in sweeps] == pytest.approx(speeds * 4)
    np.testing.assert_allclose([one.position for one in sweeps],
                               np.repeat(places[chosen], 2, axis=0))


def test_a_ladder_is_cut_where_efforts_end_it_and_configurations_where_they_do() -> None:
    """The effort of a damper leaves two of three speeds; beyond half of a range it is doubled."""
    def inverse(q, qd, qdd):
        return 2.0 * qd * np.where(q[:, :1] > 0.3, 2.0, 1.0) + 0.0 * q

    limits = box(2, effort=[np.nan, 2.0], velocity=2.0)
    found = plan_sweeps(DesignCriteria(inverse=inverse), limits, ConstantVelocityOptions(
        ['joint_1'], ladder={'joint_1': [0.3, 0.9, 1.2]}, configurations=24),
        np.random.default_rng(4))
    first, second = found.warnings
    assert first.startswith("joint 'joint_1' sweeps only up to 0.9: faster joint 'joint_1' needs "
                            'an effort of ')
    count = sum(isinstance(one, Sweep) for one in found.trajectory.segments) // 2
    assert 1 < count < 24
    assert second.startswith(f"joint 'joint_1' sweeps in {count} of 24 configurations: elsewhere "
                             "joint 'joint_1' needs an effort of ")
    assert all(one.position[0] <= 0.3 for one in found.trajectory.segments
               if isinstance(one, Sweep))
