"""ros/excitation/settings.py: parameters of the excitation node: what each of them does to the
plan and to its rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('control_msgs')

from sources import ranges_of

from robot_dynid.errors import Cancelled, UsageError
from robot_dynid.execution.guards import EffortGuard, GuardSettings, JointStates
from robot_dynid.robot.model import PRISMATIC, Drive, RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.common.params import read_parameter
from robot_dynid.ros.excitation.controller_client import goal_message
from robot_dynid.ros.excitation.plan import ExcitationPlan, designed
from robot_dynid.ros.excitation.settings import ExcitationSettings, rules, tolerances
from robot_dynid.settings import settings_of
from robot_dynid.trajectories.limits import MotionLimits, motion_limits

ROBOT = load_robot('planar_3r')
HERE = np.array([0.1, -0.2, 0.3])
ASKED = 'fourier', {'duration': 2.0, 'harmonics': 2, 'starts': 1, 'iterations': 1, 'scale': 0.5}
PLAIN = ExcitationSettings(
    robot='planar_3r', first_pass_scale=1.0, warm_up=0, return_to_start=False)
GUARDS = GuardSettings()


def silent(stage: str, fraction: float) -> None:
    """Take notice of a design's progress."""


def prepared(**changes: Any) -> ExcitationPlan:
    """Return the quick design with these settings."""
    return designed(ROBOT, ASKED, replace(PLAIN, **changes), silent)


def plan(**changes: Any) -> tuple[Any, ...]:
    """Return the segments that would be executed with these settings."""
    states = JointStates(ROBOT.joints)
    states.update(0.0, ROBOT.joints, 0.0, (HERE, np.zeros(3), np.zeros(3)))
    return tuple(prepared(**changes).goals(GUARDS, states)[1])


def test_trajectory_rate_and_lead_in() -> None:
    for trajectory_rate, lead_in in ((50.0, 0.2), (125.0, 0.35)):
        made = prepared(trajectory_rate=trajectory_rate, lead_in=lead_in)
        (segment,) = made.segments
        assert segment.points.time[0] == pytest.approx(lead_in, abs=1e-12)
        np.testing.assert_allclose(np.diff(segment.points.time), 1.0 / trajectory_rate, rtol=1e-9)
        assert len(made.message.points) == 2.0 * trajectory_rate + 1
        made_rules = rules(replace(PLAIN, trajectory_rate=trajectory_rate, lead_in=lead_in),
                           GUARDS, ROBOT, segment.limits)
        assert (made_rules.pacing.rate, made_rules.pacing.lead_in) == (trajectory_rate, lead_in)


@pytest.mark.parametrize('speed_scale', [1.0, 0.5, 0.2])
def test_speed_scale_counts_once_for_velocities_and_squared_for_accelerations(
    speed_scale: float
) -> None:
    full, limits = ROBOT.limits, prepared(speed_scale=speed_scale).segments[-1].limits
    np.testing.assert_allclose(limits.velocity, speed_scale * full.velocity, rtol=1e-12)
    np.testing.assert_allclose(limits.acceleration, speed_scale**2 * full.acceleration, rtol=1e-12)
    np.testing.assert_array_equal(limits.upper, full.upper)


def test_limits_are_scaled_in_range_and_in_time() -> None:
    """In time: position by 1, velocity by s, acceleration by s^2, jerk by s^3; effort stays."""
    one = np.ones(1)
    limits = MotionLimits(('a',), -1.0 * one, 3.0 * one, 2.0 * one, 8.0 * one, 50.0 * one, one)
    found = limits.scaled(0.5, 0.1)
    assert [float(getattr(found, name)[0]) for name in (
        'lower', 'upper', 'velocity', 'acceleration', 'jerk', 'effort')] == pytest.approx(
        [0.0, 2.0, 0.5 * 0.1 * 2.0, 0.5 * 0.01 * 8.0, 0.5 * 0.001 * 50.0, 1.0], rel=1e-12)


def test_approach_scale_and_return_to_start() -> None:
    """The quickest move takes 1 / s of the time, as its velocity limit counts s, the other s^2."""
    lengths = []
    for approach_scale in (0.5, 0.25):
        move, excitation, back = plan(approach_scale=approach_scale, return_to_start=True)
        assert [s.name for s in (move, excitation, back)] == [
            'move_to_start', 'excitation', 'return']
        np.testing.assert_allclose(move.points.position[0], HERE, atol=1e-12)
        np.testing.assert_allclose(back.points.position[-1], HERE, atol=1e-12)
        lengths.append(move.points.duration - PLAIN.lead_in)
    assert lengths[1] == pytest.approx(2.0 * lengths[0], rel=0.02)  # whole points
    assert [s.name for s in plan(return_to_start=False)] == ['move_to_start', 'excitation']


def test_first_pass_scale_and_warm_up() -> None:
    slow, whole = prepared(first_pass_scale=0.4, warm_up=2).segments
    assert slow.name == 'first_pass'
    assert slow.points.duration == pytest.approx(PLAIN.lead_in + 2.0 / 0.4)
    np.testing.assert_allclose(slow.points.velocity, 0.4 * whole.points.velocity[:101], atol=1e-9)
    assert whole.points.duration == pytest.approx(PLAIN.lead_in + (1 + 2) * 2.0)
    assert whole.parts == (('warm_up', pytest.approx(PLAIN.lead_in + 4.0)),)


def test_plans_longer_than_the_parameter_longest_are_refused() -> None:
    with pytest.raises(UsageError, match=r'takes 2 s \(limit 1\.5 s, parameter longest\)'):
        prepared(longest=1.5)
    limits = motion_limits(ROBOT)
    made = rules(replace(PLAIN, longest=30.0, first_pass_scale=0.5), GUARDS, ROBOT, limits)
    assert made.longest == 60.0, 'the slow pass of the longest motion is allowed, too'


def test_tolerances_are_those_of_the_type_of_the_joint() -> None:
    arm = load_robot('stanford_arm')
    settings = ExcitationSettings(
        robot='stanford_arm', start_tolerance=0.01, tracking_tolerance=0.02, path_tolerance=0.03,
        goal_tolerance=0.04, start_tolerance_prismatic=0.001, tracking_tolerance_prismatic=0.002,
        path_tolerance_prismatic=0.003, goal_tolerance_prismatic=0.004, goal_time=1.75)
    found = tolerances(settings, arm)
    sliding = np.asarray(arm.types) == PRISMATIC
    assert sliding.tolist() == [False, False, True, False, False, False]
    for k, name in enumerate(('start', 'tracking', 'path', 'goal'), start=1):
        expected = [0.001 * k if slides else 0.01 * k for slides in sliding]
        np.testing.assert_allclose(getattr(found, name), expected, rtol=1e-12, err_msg=name)
    message = goal_message(prepared().segments[0].points, tolerances(replace(
        settings, robot='planar_3r'), ROBOT))
    assert [t.position for t in message.path_tolerance] == [0.03] * 3
    assert [t.position for t in message.goal_tolerance] == [0.04] * 3
    assert (message.goal_time_tolerance.sec, message.goal_time_tolerance.nanosec) == (
        1, 750_000_000)


def test_guards_reach_the_rules() -> None:
    guards = GuardSettings(stop_time=0.7, join_time=0.15)
    made = rules(PLAIN, guards, ROBOT, motion_limits(ROBOT))
    assert made.settings is guards
    assert (made.pacing.longest, made.pacing.join) == (0.7, 0.15)


@pytest.mark.parametrize('face', ['action', 'topic'])
def test_only_the_action_answers(face: str) -> None:
    made = rules(replace(PLAIN, face=face), GUARDS, ROBOT, motion_limits(ROBOT))
    assert made.answers is (face == 'action')


def current_driven(*gains: float) -> RobotModel:
    """Return the planar arm with motors of which the current is reported."""
    return replace(ROBOT, drive=Drive('current', np.array(gains)))


def test_currents_are_held_against_limits_of_the_current() -> None:
    """Current = torque / gain, whatever the sign of the gain."""
    robot, limits = current_driven(10.0, -4.0, 0.5), motion_limits(ROBOT)
    made = rules(PLAIN, GUARDS, robot, limits)
    np.testing.assert_allclose(made.limits.effort, limits.effort / [10.0, 4.0, 0.5], rtol=1e-12)
    np.testing.assert_array_equal(made.limits.velocity, limits.velocity)
    guard = EffortGuard(robot.joints, made.limits.effort, replace(GUARDS, effort_samples=1))
    amperes = limits.effort / [10.0, 4.0, 0.5]
    assert guard.check(0.89 * amperes) is None
    assert guard.check(np.array([0.0, -0.91, 0.0]) * amperes) is not None
    torques = rules(PLAIN, GUARDS, ROBOT, limits).limits.effort
    np.testing.assert_array_equal(torques, limits.effort)


def test_a_design_can_be_given_up_at_every_word_of_its_progress() -> None:
    heard: list[str] = []

    def progress(stage: str, fraction: float) -> None:
        heard.append(stage)
        if len(heard) == 3:
            raise Cancelled('asked to stop')

    with pytest.raises(Cancelled):
        designed(ROBOT, ASKED, PLAIN, progress)
    assert len(heard) == 3


@pytest.mark.parametrize(('struct', 'name'), [
    (struct, name) for struct in (ExcitationSettings, GuardSettings)
    for name in ranges_of(struct)])
def test_numbers_that_are_none_are_refused_at_the_start(struct: type, name: str) -> None:
    for value in (float('nan'), float('inf')):
        with pytest.raises(UsageError, match=rf'parameter {name}: must be .*\(range .* to '):
            read_parameter(settings_of(struct)[name], name, value)
