"""Plans of sine sequences: everything is found, limits are kept, misuse is named."""

from __future__ import annotations

import numpy as np
import pytest
from motion_constraints import Post, box
from motions import torque_model

from robot_dynid.errors import DynIdError, RobotError, UsageError
from robot_dynid.estimation.staged.procedure import (
    PROCEDURES,
    Free,
    LockedJointsMotion,
    decompose,
)
from robot_dynid.excitation.design import DesignCriteria, design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.excitation.planned.sine_sequence import (
    AdaptiveGoal,
    SineSequenceOptions,
    Swings,
    plan_motions,
    wide_and_narrow,
)
from robot_dynid.excitation.search.observation import MotionGradient
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.screws import Screw, robot_from_screws
from robot_dynid.trajectories.limits import motion_limits, violations
from robot_dynid.trajectories.single_joint import fastest, unit_peaks
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

LIMITS = {f'joint_{i}': {'position': [-1.5, 1.5], 'velocity': 2.0, 'acceleration': 8.0}
          for i in (1, 2, 3)}


def chain(kinds, axes, gravity=(0.0, 0.0, -9.81), apart=0.4):
    """Return a chain along x with joints of the given kinds and axes."""
    body = [2.0, 0.3, 0.1, 0.2, 0.2, 0.01, 0.2, 0.01, 0.02, 0.2]
    screws = [Screw(f'joint_{i + 1}', axis, [apart * i, 0.0, 0.0], kind, body)
              for i, (kind, axis) in enumerate(zip(kinds, axes))]
    return robot_from_screws('chain', screws).with_gravity(gravity)


def left_open(robot, procedure, limits=None):
    """Return the base parameters that the planned stages do not determine."""
    model = torque_model(robot)
    planner = Planner(DesignCriteria(), motion_limits(robot, limits).scaled(0.9))
    motions = plan_motions(model, planner, SineSequenceOptions(procedure),
                           np.random.default_rng(0))
    free = Free.everything(len(model.reduction.names))
    for stage in PROCEDURES[procedure](model, motions):
        free = free.without(decompose(model, stage, free))
    return [model.reduction.names[i] for i in free.owners]


@pytest.mark.parametrize('procedure', PROCEDURES)
@pytest.mark.parametrize('name', ['planar_3r', 'puma560', 'stanford_arm', 'ur10e', 'seven_axis'])
def test_plans_find_every_base_parameter(procedure, name):
    assert left_open(load_robot(name), procedure) == []


Z, X, Y = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)


@pytest.mark.parametrize('procedure', PROCEDURES)
@pytest.mark.parametrize('robot', [
    chain(('revolute', 'revolute', 'revolute'), (Z, Z, X)),               # step 3.1 (b)
    chain(('prismatic', 'revolute', 'revolute'), (X, Z, X), apart=0.0),   # step 3.1 (c)
    chain(('revolute', 'prismatic', 'revolute'), (Z, X, X)),              # step 3.2
    chain(('revolute', 'revolute', 'prismatic'), (Y, X, Z)),              # step 2.2
], ids=['parallel at a distance', 'prismatic first', 'prismatic between', 'prismatic last'])
def test_the_special_cases_of_algorithm_2_are_planned(procedure, robot):
    assert left_open(robot, procedure, LIMITS) == []


@pytest.mark.parametrize('name', ['planar_3r', 'stanford_arm'])
def test_designs_keep_all_limits_and_report_their_stages(name):
    robot = load_robot(name)
    found = design(robot, parse_request('sine-sequence', {'periods': 1}), design_criteria(robot))
    assert not violations(found.trajectory.peaks(), found.limits)
    assert max(v for used in found.used.values() for v in used.values()) <= 0.91
    for used in found.used.values():
        assert used['velocity'] > 0.85 or used['acceleration'] > 0.85
    assert next(s.name for s in found.stages) == robot.joints[-1]
    assert all(1.0 <= s.condition_number < 1e4 and s.solves for s in found.stages)
    time = np.linspace(0.0, found.trajectory.duration, 2000)
    fast = np.abs(found.trajectory.sample(time).velocity) > 1e-9
    assert np.mean(fast.sum(axis=1) > 1) < 0.25  # on the way from one configuration to another


def test_the_same_seed_plans_the_same_motion():
    robot = load_robot('stanford_arm')
    criteria = design_criteria(robot)
    one, two, other = (
        design(robot, parse_request('sine-sequence', {'seed': seed}), criteria).trajectory
        for seed in (3, 3, 4))
    assert one.parameters() == two.parameters() != other.parameters()


def test_effort_limits_slow_a_swing_down():
    robot = load_robot('planar_3r')
    criteria = design_criteria(robot)
    tight = {'limits': {'joint_3': {'effort': 2.3}}}
    free, slow = (design(robot, parse_request('sine-sequence', o), criteria) for o in ({}, tight))
    assert 0.85 < slow.used['joint_3']['effort'] <= 0.91
    assert slow.trajectory.duration > free.trajectory.duration


@pytest.mark.parametrize('procedure', PROCEDURES)
def test_swings_avoid_obstacles(procedure):
    robot, post = load_robot('planar_3r'), Post((0.3, 0.4), 0.5)
    request = parse_request('sine-sequence', {'procedure': procedure})
    plain = design_criteria(robot)
    assert post.proof(design(robot, request, plain).trajectory).smallest < 0.0
    criteria = DesignCriteria(plain.score, plain.inverse, None, plain.model, (post,))
    found = design(robot, request, criteria)
    assert post.proof(found.trajectory).smallest > -1e-3
    assert {joint for stage in found.stages for joint in stage.moving}
    assert sum(len(stage.solves) for stage in found.stages) == sum(
        len(stage.solves) for stage in design(robot, request, plain).stages)


def test_limits_that_allow_no_excitation_name_joint_and_stage():
    robot = load_robot('planar_3r')
    request = parse_request('sine-sequence', {'limits': {'joint_1': {'effort': 1.0}}})
    with pytest.raises(DynIdError, match=r"stage 'joint_\d': the limits allow no excitation of "
                                         r"joint 'joint_\d', because joint 'joint_1' needs "):
        design(robot, request, design_criteria(robot))


def test_a_joint_without_range_is_named():
    robot = load_robot('planar_3r')
    request = parse_request('sine-sequence', {'limits': {'joint_2': {'position': [0.5, 0.5]}}})
    with pytest.raises(RobotError, match="joint 'joint_2' has no range to move in"):
        design(robot, request, design_criteria(robot))


def test_a_chain_without_rotational_joint_is_told_what_to_use():
    robot = chain(('prismatic', 'prismatic'), (X, Z))
    with pytest.raises(UsageError,
                       match='no rotational joint, which procedure body-by-body needs'):
        left_open(robot, 'body-by-body', {k: LIMITS[k] for k in ('joint_1', 'joint_2')})
    assert left_open(robot, 'distal-to-proximal',
                     {k: LIMITS[k] for k in ('joint_1', 'joint_2')}) == []


@pytest.mark.parametrize(('options', 'message'), [
    ({'procedure': 'x'}, "option 'procedure' must be one of distal-to-proximal, body-by-body"),
    ({'periods': 0}, "option 'periods' must be at least 1"),
    ({'configurations': 0}, "option 'configurations' must be at least 1"),
    ({'harmonics': 3}, "unknown option 'harmonics' of sine-sequence"),
    ({'starts': 3}, "option 'starts' has no effect on sine-sequence, which is planned")])
def test_wrong_options_are_named(options, message):
    with pytest.raises(UsageError, match=message):
        parse_request('sine-sequence', options)


def motion_of(amplitude: float = 0.9) -> LockedJointsMotion:
    return LockedJointsMotion(1, np.array([0.3, 0.1]), amplitude)


PEAKS = unit_peaks()


@pytest.mark.parametrize(('share', 'count'), [(0.68, 2), (0.72, 1)])
def test_a_narrow_swing_reaches_speed_and_acceleration_together(share: float, count: int) -> None:
    """If it is narrower than 0.7 of the wide one, which is as fast as its first limit allows."""
    acceleration = 3.0**2 * PEAKS[1] / (share * 0.9 * PEAKS[0]**2)
    limits = box(2, velocity=[2.0, 3.0], acceleration=[5.0, acceleration])
    swings = wide_and_narrow(Planner(DesignCriteria(), limits), motion_of(), 4)
    assert [one.amplitude for one in swings] == pytest.approx([0.9, 0.9 * share][:count])
    for one in swings:
        assert (one.moving, one.periods) == ('joint_1', 4)
        np.testing.assert_array_equal(one.position, [0.3, 0.1])
        assert one.frequency == pytest.approx(fastest(limits, 1, one.amplitude))
    if count == 2:
        narrow = swings[1].peaks()
        assert narrow.velocity[1] == pytest.approx(0.999 * 3.0, rel=1e-3)
        assert narrow.acceleration[1] == pytest.approx(0.999 * acceleration, rel=2e-3)


@pytest.mark.parametrize('limit', [1.0, 4.0, 9.0])
def test_a_swing_is_as_fast_as_its_effort_allows(limit: float) -> None:
    """To 12 halvings; with a damper of 3 N m s/rad, of which 97 % of the limit are used."""
    def inverse(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return 3.0 * qd

    limits = box(2, velocity=[2.0, 3.0], acceleration=100.0, effort=[np.nan, limit])
    (one,) = wide_and_narrow(Planner(DesignCriteria(inverse=inverse), limits), motion_of(0.4), 3)[
        :1]
    highest = fastest(limits, 1, 0.4)
    allowed = min(0.97 * limit / (3.0 * 0.4 * 2.0 * np.pi), highest)
    # the envelope makes the swing a little faster than a sine
    assert one.frequency == pytest.approx(allowed, rel=0.03, abs=highest / 2**12)
    assert one.frequency <= highest


def test_swings_about_the_centre_are_wide_or_as_narrow_as_constraints_ask() -> None:
    """A quarter turn or half the range; a half, a quarter or a tenth of it beside a post."""
    limits = box(2, lower=[-3.0, -0.8], upper=[3.0, 1.2])
    place = np.array([0.9, 0.3])
    swings = Swings(Planner(DesignCriteria(), limits))
    wide = swings.first(0, [place])
    assert (wide.moving, wide.amplitude) == (0, pytest.approx(0.5 * np.pi))
    np.testing.assert_allclose(wide.position, [0.0, 0.3])
    other = swings.first(1, [place])
    assert other.amplitude == pytest.approx(1.0)
    np.testing.assert_allclose(other.position, [0.9, 0.2])
    for share in (1.0, 0.5, 0.25, 0.1):
        blocked = Swings(Planner(DesignCriteria(constraints=(Beyond(0.2 + 1.02 * share),)),
                                 limits)).first(1, [np.array([0.9, 0.19])])
        assert blocked.amplitude == pytest.approx(share)
        np.testing.assert_allclose(blocked.position, [0.9, 0.2])
    near = Swings(Planner(DesignCriteria(constraints=(Beyond(0.35, -1.0),)), limits))
    beside = near.first(1, [np.array([0.9, 0.95])])
    assert (beside.amplitude, beside.position[1]) == (pytest.approx(0.25), pytest.approx(0.95))
    with pytest.raises(DynIdError) as raised:
        near.first(1, [np.array([0.9, 0.3])])
    assert str(raised.value) == (
        "stage 'joint_1': the limits allow no excitation of joint 'joint_1', because joint 1 is "
        "beyond 0.35 even in slow motion; narrow the positions with option 'limits: {joint: "
        "{position: [lower, upper]}}'")


class Beyond:
    """Joint 1 stays below a position, or above it where the side is negative."""

    name = 'beyond'

    def __init__(self, edge: float, side: float = 1.0) -> None:
        self.edge, self.side = edge, side

    def values(self, motion: Motion) -> FloatArray:
        return self.side * (self.edge - motion.position[:, 1:])

    def worst(self, motion: Motion) -> str:
        return f'joint 1 is beyond {self.edge:g}'

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        raise NotImplementedError


def test_random_configurations_are_within_a_quarter_turn_of_the_centre() -> None:
    limits = box(2, lower=[-3.0, -0.8], upper=[3.2, 1.2])
    swings = Swings(Planner(DesignCriteria(), limits))
    found = list(swings.somewhere(np.random.default_rng(5), 3))
    rng = np.random.default_rng(5)
    for one in found:
        np.testing.assert_allclose(one, [0.1, 0.2] + np.array([0.5 * np.pi, 1.0]) * rng.uniform(
            -1.0, 1.0, 2))
    assert len(found) == 3 and len(list(swings.somewhere(rng))) == 8


def test_goals_of_adaptive_sequences_have_defaults() -> None:
    assert SineSequenceOptions().goal == AdaptiveGoal(0.1, 3600.0, 1000, 1)
    with pytest.raises(UsageError) as raised:
        SineSequenceOptions(swings=5)
    assert str(raised.value) == (
        "option 'swings' has no effect on a sine-sequence that is planned as a whole: omit it, or "
        'use procedure adaptive')
    with pytest.raises(UsageError, match="option 'procedure' must be one of distal-to-proximal"):
        SineSequenceOptions(procedure=3)  # type: ignore[arg-type]
