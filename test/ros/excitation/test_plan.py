"""Plans of the excitation node: given trajectories as they are, dry runs as they were."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('control_msgs')

from robot_dynid.cli.main import main
from robot_dynid.dynamics.kinematics import chain_points
from robot_dynid.excitation.design import MotionRefused, Reason
from robot_dynid.execution.guards import GuardSettings, JointStates
from robot_dynid.io.trajectory_file import load_trajectory
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import surroundings_from_plain
from robot_dynid.ros.excitation import plan as plans
from robot_dynid.ros.excitation.settings import ExcitationSettings
from robot_dynid.trajectories.composite import describe
from robot_dynid.types import frozen

ROBOT = load_robot('planar_3r')
OPTIONS = {'duration': 2.0, 'harmonics': 2, 'starts': 1, 'iterations': 3, 'scale': 0.5}
SETTINGS = ExcitationSettings(robot='planar_3r', first_pass_scale=0.5, warm_up=1)
#: a small obstacle
CELL = ('<robot name="cell"><link name="world"><collision><origin xyz="{} {} {}"/><geometry>'
        '<sphere radius="0.01"/></geometry></collision></link></robot>')


def silent(stage: str, fraction: float) -> None:
    """Take no notice of the progress."""


@cache
def designed(seed: int = 0, robot: RobotModel = ROBOT) -> plans.ExcitationPlan:
    return plans.designed(robot, ('fourier', OPTIONS | {'seed': seed}), SETTINGS, silent)


def given(robot: RobotModel = ROBOT, **changes: Any) -> plans.ExcitationPlan:
    trajectory = designed().design.trajectory
    return plans.given(robot, trajectory, replace(SETTINGS, **changes), silent)


def points(plan: plans.ExcitationPlan) -> list[bytes]:
    return [values.tobytes() for segment in plan.segments
            for values in (segment.points.time, segment.points.position, segment.points.velocity,
                           segment.points.acceleration)]


@pytest.fixture
def no_design(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every design fail: what was given is never designed anew."""
    def fail(*arguments: object) -> None:
        raise AssertionError('designed anew')

    monkeypatch.setattr(plans, 'design_within', fail)


def test_command_and_node_design_the_same(tmp_path: Path) -> None:
    path = tmp_path / 'T.yaml'
    words = [word for name, value in OPTIONS.items() for word in (f'--{name}', str(value))]
    assert main(['design', 'planar_3r', *words, '--seed', '3', '--out', str(path), '--json']) == 0
    assert describe(load_trajectory(path)) == describe(designed(3).design.trajectory)


def test_a_given_trajectory_gives_the_points_of_its_design(request: Any) -> None:
    made, trajectory = designed(), designed().design.trajectory
    request.getfixturevalue('no_design')
    again = plans.given(ROBOT, trajectory, SETTINGS, silent)
    assert again.design.trajectory is trajectory
    assert points(again) == points(made)
    assert again.summary == made.summary


def test_a_given_trajectory_keeps_the_effort_limits() -> None:
    weak = replace(ROBOT, limits=replace(ROBOT.limits, effort=frozen(0.01 * ROBOT.limits.effort)))
    with pytest.raises(MotionRefused, match=r"effort of joint 'joint_1' reaches") as refused:
        given(weak)
    assert refused.value.reason is Reason.EFFORT


def test_a_given_trajectory_keeps_the_speed_of_the_node() -> None:
    with pytest.raises(MotionRefused, match=r'with the parameter speed_scale 0\.1\)') as refused:
        given(speed_scale=0.1)
    assert refused.value.reason is Reason.LIMITS


def test_points_between_which_the_limits_break_are_refused() -> None:
    trajectory = designed().design.trajectory
    peak = trajectory.peaks().acceleration
    tight = replace(ROBOT, limits=replace(ROBOT.limits, acceleration=frozen(1.01 * peak)))
    assert plans.given(tight, trajectory, SETTINGS, silent)
    with pytest.raises(MotionRefused, match='a higher trajectory_rate or a smaller') as refused:
        plans.given(tight, trajectory, replace(SETTINGS, trajectory_rate=2.0), silent)
    assert refused.value.reason is Reason.LIMITS


def test_a_dry_run_is_checked_again_against_the_scene_as_it_is_now(
    tmp_path: Path, request: Any
) -> None:
    pytest.importorskip('coal')
    cell = tmp_path / 'cell.urdf'
    cell.write_text(CELL.format(9, 0, 0))
    around = surroundings_from_plain({'environment': str(cell)}, 'options', ROBOT.surroundings)
    plan = designed(robot=replace(ROBOT, surroundings=around))
    request.getfixturevalue('no_design')
    again = plan.checked_again(silent)
    assert points(again) == points(plan) and again.identifier == plan.identifier
    trajectory = plan.design.trajectory
    on_its_way = chain_points(ROBOT, trajectory.sample(0.5 * trajectory.duration).position)[0, -1]
    cell.write_text(CELL.format(*on_its_way))
    with pytest.raises(MotionRefused, match='come as near as') as refused:
        plan.checked_again(silent)
    assert refused.value.reason is Reason.CLEARANCE


def test_a_dry_run_keeps_the_settings_it_was_made_with() -> None:
    """They may be changed while the node runs; the plan that was seen stays."""
    plan, states = designed(), JointStates(ROBOT.joints)
    states.update(0.0, ROBOT.joints, 0.0, (np.zeros(3), np.zeros(3), np.zeros(3)))
    _, goals = plan.goals(GuardSettings(), states)
    assert [segment.name for segment in goals] == [
        'move_to_start', 'first_pass', 'excitation', 'return']


def test_identifiers_are_those_of_the_plan() -> None:
    one, same, other = designed(), designed.__wrapped__(), designed(1)
    assert one.identifier == same.identifier != other.identifier
    assert plans.IDENTIFIER.fullmatch(one.identifier)
    slower = plans.given(ROBOT, one.design.trajectory, replace(SETTINGS, warm_up=0), silent)
    assert slower.identifier != one.identifier


def test_the_latest_dry_runs_are_kept(tmp_path: Path) -> None:
    kept, plan = plans.DryRuns(str(tmp_path)), designed()
    many = [replace(plan, settings=replace(SETTINGS, lead_in=0.1 * k))
            for k in range(plans.KEPT + 1)]
    names = [kept.keep(one) for one in many[:-1]]
    assert kept.find(names[0]) is many[0], 'used, and so kept longer'
    kept.keep(many[-1])
    assert kept.find(names[0]) is many[0]
    with pytest.raises(plans.UnknownTrajectory, match='keeps the last 8, until it ends; ask for'):
        kept.find(names[1])
