"""Plans of the excitation node: given trajectories as they are, dry runs as they were."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip('rclpy')
pytest.importorskip('robot_dynid_interfaces')

from robot_dynid.cli.main import main
from robot_dynid.dynamics.rigid_body import chain_points, inverse_dynamics
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.excitation.design import MotionRefused, Reason, repeated_share
from robot_dynid.execution.guards import Code, GuardSettings, JointStates
from robot_dynid.io.trajectory_file import load_trajectory, save_trajectory
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.surroundings import surroundings_from_plain
from robot_dynid.ros.common.files_directory import RequestedFiles
from robot_dynid.ros.excitation import plan as plans
from robot_dynid.ros.excitation.controller_client import trajectory_message
from robot_dynid.ros.excitation.node import refusal
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

    monkeypatch.setattr(plans, 'design_pair', fail)


def test_command_and_node_design_the_same_and_warn_alike(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / 'T.yaml'
    words = [word for name, value in OPTIONS.items() for word in (f'--{name}', str(value))]
    assert main(['design', 'planar_3r', *words, '--seed', '3', '--out', str(path), '--json']) == 0
    assert describe(load_trajectory(path)) == describe(designed(3).design.trajectory)
    told = json.loads(capsys.readouterr().out)['warnings']
    assert told == list(designed(3).design.warnings) != []


def test_a_given_trajectory_gives_the_points_of_its_design(request: Any) -> None:
    made, trajectory = designed(), designed().design.trajectory
    request.getfixturevalue('no_design')
    again = plans.given(ROBOT, trajectory, SETTINGS, silent)
    assert again.design.trajectory is trajectory
    assert points(again) == points(made)
    assert again.summary == made.summary


def test_a_design_comes_with_a_distinct_motion_to_judge_by() -> None:
    plan = designed()
    fit, judge = plan.motions
    assert fit is plan and (fit.purpose, judge.purpose) == ('fit', 'validation')
    assert not repeated_share(fit.design.trajectory, judge.design.trajectory)
    assert judge.motions == (judge,) and judge.scene is fit.scene
    assert set(plan.warnings) == {*fit.design.warnings, *judge.design.warnings}
    names = [segment.name for segment in judge.segments]
    assert names == [segment.name for segment in fit.segments] == ['first_pass', 'excitation']


def test_the_parameter_decides_where_the_goal_does_not() -> None:
    for parameter, option, motions in ((True, None, 2), (False, None, 1), (True, False, 1),
                                       (False, True, 2)):
        options = OPTIONS if option is None else {**OPTIONS, 'validation': option}
        plan = plans.designed(
            ROBOT, ('fourier', options), replace(SETTINGS, validation=parameter), silent)
        assert len(plan.motions) == motions
    off = replace(SETTINGS, validation=False)
    poses = plans.designed(ROBOT, ('static-poses', {'poses': 4, 'dwell': 0.2}), off, silent)
    assert poses.validation is None


def test_plan_refuses_either_motion_that_exceeds_its_limits(
    monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both motions are checked: in the design, and before a dry run is executed."""
    good, plan = plans.design_pair, designed()
    assert plan.validation is not None

    def turned(way: int) -> Any:
        def pair(*arguments: Any) -> Any:
            found = list(good(*arguments))
            limits = found[way].limits
            found[way] = replace(found[way], limits=limits.scaled(1.0, 0.1))
            return tuple(found)
        return pair

    for way in (0, 1):
        monkeypatch.setattr(plans, 'design_pair', turned(way))
        with pytest.raises(MotionRefused, match='its limit is'):
            designed.__wrapped__()
    tight = replace(plan.validation, segments=tuple(
        replace(segment, limits=segment.limits.scaled(1.0, 0.1))
        for segment in plan.validation.segments))
    with pytest.raises(MotionRefused, match='its limit is'):
        replace(plan, validation=tight).checked_again(ROBOT, SETTINGS, silent)


def test_a_given_trajectory_keeps_the_purpose_of_its_recording(tmp_path: Path) -> None:
    for purpose in ('fit', 'validation'):
        save_trajectory(designed().design.trajectory, tmp_path / 'T.yaml', purpose=purpose)
        found = plans.DryRuns(RequestedFiles(print, str(tmp_path))).find('T.yaml')
        assert isinstance(found, tuple) and found[1] == purpose
        plan = plans.given(ROBOT, found[0], SETTINGS, silent, found[1])
        assert plan.purpose == purpose and plan.motions == (plan,)
    (tmp_path / 'T.yaml').write_text(
        (tmp_path / 'T.yaml').read_text().replace('purpose: validation', 'purpose: show'))
    with pytest.raises(plans.Refused, match='purpose must be fit or validation, got'):
        plans.DryRuns(RequestedFiles(print, str(tmp_path))).find('T.yaml')


def test_a_given_trajectory_keeps_the_effort_limits() -> None:
    weak = replace(ROBOT, limits=replace(ROBOT.limits, effort=frozen(0.01 * ROBOT.limits.effort)))
    with pytest.raises(MotionRefused, match=r"effort of joint 'joint_1' reaches") as refused:
        given(weak)
    assert refused.value.reason is Reason.EFFORT


def test_a_given_trajectory_keeps_the_speed_of_the_node() -> None:
    with pytest.raises(MotionRefused, match=r'with the parameter speed_scale 0\.1\)') as refused:
        given(speed_scale=0.1)
    assert refused.value.reason is Reason.LIMITS
    slow = replace(ROBOT, limits=replace(ROBOT.limits, velocity=frozen(
        0.1 * ROBOT.limits.velocity)))
    with pytest.raises(MotionRefused) as refused:
        given(slow)
    assert 'speed_scale' not in str(refused.value), 'it is 1'


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
    again = plan.checked_again(plan.robot, SETTINGS, silent)
    assert points(again) == points(plan) and again.identifier == plan.identifier
    trajectory = plan.design.trajectory
    on_its_way = chain_points(ROBOT, trajectory.sample(0.5 * trajectory.duration).position)[0, -1]
    cell.write_text(CELL.format(*on_its_way))
    with pytest.raises(MotionRefused, match='come as near as') as refused:
        plan.checked_again(plan.robot, SETTINGS, silent)
    assert refused.value.reason is Reason.CLEARANCE


def limited(**limits: float) -> RobotModel:
    """Return the robot with other limits of its first joint."""
    changed = {}
    for name, value in limits.items():
        changed[name] = np.array(getattr(ROBOT.limits, name))
        changed[name][0] = value
    return replace(ROBOT, limits=replace(ROBOT.limits, **changed))


@pytest.mark.parametrize(('robot', 'settings', 'words'), [
    (limited(acceleration=0.5), {}, 'limits.acceleration of the robot planar_3r'),
    (limited(lower=-0.3, upper=0.3), {},
     'limits.lower of the robot planar_3r, limits.upper of the robot planar_3r'),
    (replace(ROBOT, surroundings=replace(ROBOT.surroundings, floor=0.0)), {},
     'surroundings.floor of the robot planar_3r'),
    (ROBOT.with_nominal(2.0 * ROBOT.nominal), {}, 'nominal of the robot planar_3r'),
    (ROBOT, {'first_pass_scale': 0.1}, 'parameter first_pass_scale'),
])
def test_a_dry_run_is_out_of_date_once_what_it_was_checked_against_changed(
    robot: RobotModel, settings: dict[str, float], words: str
) -> None:
    plan = designed()
    with pytest.raises(plans.Refused) as refused:
        plan.checked_again(robot, replace(SETTINGS, **settings), silent)
    assert str(refused.value) == (f"dry run '{plan.identifier}' is out of date ({words} changed): "
                                  'request a new dry run')


def sent(plan: plans.ExcitationPlan, here: np.ndarray) -> dict[str, Any]:
    """Return what would be sent to a robot that stands at ``here``, by segment."""
    states = JointStates(ROBOT.joints)
    states.update(0.0, ROBOT.joints, 0.0, (here, np.zeros(3), np.zeros(3)))
    return {segment.name: trajectory_message(segment.points)
            for segment in plan.goals(GuardSettings(), states)[1]}


def test_dry_run_is_sent_as_shown_wherever_the_robot_stands(tmp_path: Path) -> None:
    """Bit for bit, for the first pass, too; only the moves to the start and back are others."""
    kept = plans.DryRuns(str(tmp_path))
    plan = designed(3)
    seen, shown = sent(plan, np.zeros(3)), plan.message
    found = kept.find(kept.keep(plan))
    assert isinstance(found, plans.ExcitationPlan)
    again = found.checked_again(ROBOT, SETTINGS, silent)
    assert again.message == shown
    other = sent(again, np.array([0.3, -0.2, 0.1]))
    assert seen['move_to_start'] != other['move_to_start'] and seen['return'] != other['return']
    for name in ('first_pass', 'excitation'):
        assert seen[name] == other[name]
    warm = len(other['excitation'].points) - len(shown.points)
    for own, one in zip(other['excitation'].points[warm:], shown.points, strict=True):
        assert (own.positions, own.velocities, own.accelerations) == (
            one.positions, one.velocities, one.accelerations)


def test_a_required_collision_check_that_cannot_be_made_is_refused() -> None:
    bare, required = replace(ROBOT, source=''), replace(SETTINGS, require_collision_check=True)
    trajectory, asked = designed().design.trajectory, ('fourier', OPTIONS)
    words = r'require_collision_check\): planar_3r has no collision shapes'
    for refuse in (lambda: plans.designed(bare, asked, required, silent),
                   lambda: plans.given(bare, trajectory, required, silent),
                   lambda: replace(designed(robot=bare), settings=required).checked_again(
                       bare, required, silent)):
        with pytest.raises(plans.Refused, match=words) as refused:
            refuse()
    assert refusal(refused.value) is Code.NOT_CHECKED
    assert plans.given(ROBOT, trajectory, required, silent), 'its shapes are checked'
    free = plans.given(bare, trajectory, SETTINGS, silent)
    assert 'planar_3r has no collision shapes' in free.design.warnings[0]


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
    kept, plan = plans.DryRuns(RequestedFiles(print, str(tmp_path))), designed()
    many = [replace(plan, settings=replace(SETTINGS, lead_in=0.1 * k))
            for k in range(plans.DRY_RUNS + 1)]
    names = [kept.keep(one) for one in many[:-1]]
    assert kept.find(names[0]) is many[0], 'used, and so kept longer'
    kept.keep(many[-1])
    assert kept.find(names[0]) is many[0]
    with pytest.raises(plans.Refused, match=r'keeps the last 8, until it ends\): request a new'):
        kept.find(names[1])


def test_without_file_requests_dry_runs_remain(tmp_path: Path) -> None:
    files = RequestedFiles(print, str(tmp_path), False)
    kept, plan = plans.DryRuns(files), designed()
    assert kept.find(kept.keep(plan)) is plan
    with pytest.raises(plans.Refused, match='file_requests is false'):
        kept.find('plan.yaml')
    assert plans.with_files({'duration': 3}, files) == {'duration': 3}
    with pytest.raises(UsageError, match='file_requests is false'):
        plans.with_files({'environment': 'cell.urdf'}, files)


def swings(path: Path, seconds: float = 7.0) -> Path:
    """Write a recording in which each joint swings alone, fast and slow."""
    time = np.arange(0.0, 3.0 * seconds, 0.01)
    q, qd, qdd = np.zeros((3, len(time), 3))
    for j in range(3):
        own = (time >= j * seconds + 1.0) & (time < (j + 1) * seconds - 1.0)
        phase = 2.0 * np.pi * (time[own] - j * seconds - 1.0) * 5.0 / (seconds - 2.0)
        rate = 10.0 * np.pi / (seconds - 2.0)
        q[own, j], qd[own, j], qdd[own, j] = (
            0.8 * (1.0 - np.cos(phase)), 0.8 * rate * np.sin(phase), 0.8 * rate**2 * np.cos(phase))
    effort = inverse_dynamics(ROBOT, q, qd, qdd, ROBOT.nominal) + 0.2 * np.sign(qd)
    effort += 0.02 * np.random.default_rng(0).standard_normal(effort.shape)
    header = ['time', *(f'{name}.{j}' for name in ('position', 'effort') for j in ROBOT.joints)]
    np.savetxt(path, np.column_stack([time, q, effort]), delimiter=',', comments='',
               header=','.join(header), fmt='%.9g')
    return path


def test_the_next_swings_of_a_session_are_planned_from_its_recordings(tmp_path: Path) -> None:
    """A goal names what was measured so far; its plan is checked and shown like any other."""
    recorded = swings(tmp_path / 'run.csv')
    options = {'procedure': 'adaptive', 'accuracy': 0.3}
    fresh = plans.designed(ROBOT, ('sine-sequence', options), SETTINGS, silent)
    assert fresh.design.session is not None and not fresh.design.session.unreachable
    files = RequestedFiles(lambda text: None, str(tmp_path))
    given_files = plans.with_files({**options, 'data': ['run.csv']}, files)
    assert given_files['data'] == [str(recorded)]
    later = plans.designed(ROBOT, ('sine-sequence', given_files), SETTINGS, silent)
    assert later.duration < 0.8 * fresh.duration
    assert later.identifier != fresh.identifier
    kept = plans.DryRuns(files)
    assert kept.find(kept.keep(later)) is later, 'what was shown is what is executed'
    met = {**given_files, 'accuracy': 900.0}
    with pytest.raises(DynIdError, match='no further recording is needed') as raised:
        plans.designed(ROBOT, ('sine-sequence', met), SETTINGS, silent)
    assert refusal(raised.value) is Code.ACCURACY_MET


@pytest.mark.parametrize(('kind', 'data', 'message'), [
    ('fourier', ['run.csv'], "option 'data' is for adaptive sequences only: omit it"),
    ('sine-sequence', 'run.csv', "option 'data' must be a list of recordings"),
    ('sine-sequence', ['../run.csv'], 'requests may not read')])
def test_recordings_that_a_goal_may_not_name_are_refused(
    tmp_path: Path, kind: str, data: object, message: str
) -> None:
    (tmp_path / 'here').mkdir()
    for folder in (tmp_path, tmp_path / 'here'):
        (folder / 'run.csv').write_text('time\n')
    files = RequestedFiles(lambda text: None, str(tmp_path / 'here'))
    with pytest.raises(UsageError, match=message):
        plans.designed(ROBOT, (kind, plans.with_files({'data': data}, files)), SETTINGS, silent)
