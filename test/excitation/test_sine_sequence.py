"""Plans of sine sequences: everything is found, limits are kept, misuse is named."""

from __future__ import annotations

import numpy as np
import pytest
from motion_constraints import Post
from motions import torque_model

from robot_dynid.errors import DynIdError, RobotError, UsageError
from robot_dynid.estimation.staged.procedure import PROCEDURES, Free, decompose
from robot_dynid.excitation.design import DesignCriteria, design
from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.planned.planner import Planner
from robot_dynid.excitation.planned.sine_sequence import SineSequenceOptions, plan_motions
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.screws import Screw, robot_from_screws
from robot_dynid.trajectories.limits import motion_limits, violations

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
