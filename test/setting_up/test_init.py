"""setting_up/description.py: from a URDF to a robot YAML and a recipe that the other verbs take.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from contextlib import redirect_stderr
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from recordings import recording

from robot_dynid.cli.doctor import ask, show_diagnoses, show_init
from robot_dynid.cli.main import main
from robot_dynid.cli.terminal import Terminal
from robot_dynid.dynamics.rigid_body import gravity_effort
from robot_dynid.errors import RobotError, UsageError
from robot_dynid.identification.recipe import read_recipe
from robot_dynid.io.csv import write_csv
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.setting_up import live
from robot_dynid.setting_up.description import (
    Question,
    completed,
    gravity,
    questions,
    read_arm,
    recipe_yaml,
    robot_yaml,
)
from robot_dynid.setting_up.diagnosis import ERROR, OK, Diagnosis
from robot_dynid.setting_up.drivers import OTHER
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog

TORQUE = {'driver': OTHER, 'effort_kind': 'torque'}
#: URDFs of example-robot-data, and the joints of the arm in them
PUBLIC = {'panda_description/urdf/panda': 7, 'ur_description/urdf/ur5_robot': 6,
          'xarm_description/urdf/xarm7': 7, 'z1_description/urdf/z1': 6,
          'kinova_description/robots/kinova': 6}


def public(name: str) -> Path:
    """Return a URDF of example-robot-data; skip where that is not installed."""
    for folder in map(Path, sys.path):
        path = folder / 'cmeel.prefix/share/example-robot-data/robots' / f'{name}.urdf'
        if path.is_file():
            return path
    return pytest.skip('example-robot-data is not installed')


def start(folder: Path, urdf: Path, answers: dict[str, Any], *words: str) -> int:
    """Return the exit code of `init` with answers in a file."""
    given = folder / 'answers.yaml'
    given.write_text(json.dumps(answers))
    return main(['init', str(urdf), '--answers', str(given), '--out', str(folder / 'arm.yaml'),
                 *words])


def simulated(folder: Path, kind: str = 'torque') -> Path:
    """Write a recording of the arm that `init` described, with effort of a ``kind``."""
    robot = load_robot(folder / 'arm.yaml')
    log = recording(robot, 1, 12.0)
    assert log.velocity is not None
    effort = log.effort + 1.5 * np.clip(log.velocity / 0.02, -1.0, 1.0) + 2.0 * log.velocity
    if kind == 'gravity_compensated_torque':
        effort = effort - gravity_effort(robot, log.position)
    path = folder / f'{kind}.csv'
    write_csv(path, replace(log, effort=effort))
    return path


def usable(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Hold that base, design and identify take what `init` wrote."""
    robot, recipe = str(folder / 'arm.yaml'), folder / 'arm.recipe.yaml'
    assert main(['base', robot, '--json']) == 0
    plan = str(folder / 'plan.yaml')
    assert main(['design', robot, '--duration', '4', '--harmonics', '2', '--starts', '1',
                 '--iterations', '1', '--scale', '0.4', '--out', plan, '--json']) == 0
    data = simulated(folder)
    recipe.write_text(recipe.read_text().replace('friction: auto', 'friction: coulomb'))
    capsys.readouterr()
    assert main(['identify', str(data), '--robot', robot, '--recipe', str(recipe), '--out',
                 str(folder / 'model.yaml'), '--json']) == 0
    found = json.loads(capsys.readouterr().out)
    assert max(one['nrmse'] for one in found['joints'].values()) < 0.2, found['joints']


@pytest.mark.parametrize('name', ['ur10e', 'tx40'])
def test_a_shipped_urdf_becomes_a_robot_that_is_identified(
    name: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(root / 'robot_dynid' / 'urdf' / f'{name}.urdf', tmp_path)
    assert start(tmp_path, tmp_path / f'{name}.urdf', TORQUE) == 0
    robot = load_robot(tmp_path / 'arm.yaml')
    assert robot.n == 6 and robot.drive.kind == 'torque'
    text = (tmp_path / 'arm.yaml').read_text()
    assert f'urdf: {name}.urdf\n' in text, 'beside it, so that the folder can be moved'
    assert text.count('#') >= 4 and read_recipe(tmp_path / 'arm.recipe.yaml')
    usable(tmp_path, capsys)


def test_limits_that_a_urdf_lacks_are_said_to_be_ours(tmp_path: Path) -> None:
    """A range and a speed for what has none; a speed is reached within a second."""
    mass = ('<inertial><mass value="1"/><origin xyz="0.1 0 0"/><inertia ixx="0.1" iyy="0.1" '
            'izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial>')
    path = tmp_path / 'arm.urdf'
    path.write_text('<robot name="arm"><link name="base"/>' + ''.join(
        f'<link name="{name}_link">{mass}</link><joint name="{name}" type="{kind}">'
        f'<parent link="{parent}"/><child link="{name}_link"/><axis xyz="0 1 0"/>{limit}</joint>'
        for name, kind, parent, limit in (
            ('lift', 'revolute', 'base', '<limit lower="-1" upper="1" velocity="2" effort="9"/>'),
            ('turn', 'continuous', 'lift_link', '<limit velocity="3" effort="9"/>'),
            ('bare', 'continuous', 'turn_link', ''))) + '</robot>')
    arm = read_arm(path)
    text = robot_yaml(arm, completed(arm, TORQUE), 'arm.urdf')
    limits = text.partition('limits:\n')[2].splitlines()
    assert limits[:3] == [
        '  lift: {acceleration: 2.0}',
        '  turn: {position: [-2.8, 2.8], acceleration: 3.0}    # the URDF states no range',
        '  bare: {position: [-2.8, 2.8], velocity: 0.5, acceleration: 0.5}    # the URDF states '
        'no range and no speed']


def test_position_servos_have_gains_and_a_limit(root: Path) -> None:
    """Unknown gains are marked in their own unit."""
    arm = read_arm(root / 'robot_dynid' / 'urdf' / 'tx40.urdf')
    answers = completed(arm, {**TORQUE, 'effort_kind': 'position_error', 'error_limit': 0.18})
    text = robot_yaml(arm, answers, str(arm.path))
    assert 'error_limit: 0.18\n' in text
    assert '[N m/rad], UNKNOWN: parameters are in units of rad' in text


@pytest.mark.soak
@pytest.mark.parametrize('name', PUBLIC)
def test_a_public_urdf_becomes_a_robot_that_is_identified(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert start(tmp_path, public(name), TORQUE) == 0
    assert load_robot(tmp_path / 'arm.yaml').n == PUBLIC[name]
    usable(tmp_path, capsys)


@pytest.mark.parametrize('name', PUBLIC)
def test_the_arm_in_a_public_urdf_is_read(name: str, tmp_path: Path) -> None:
    """Without gripper and hand, with frames that have no mass."""
    arm = read_arm(public(name))
    assert len(arm.joints) == PUBLIC[name]
    path = tmp_path / 'arm.yaml'
    path.write_text(robot_yaml(arm, completed(arm, TORQUE), str(arm.path)))
    assert load_robot(path).joints == arm.joints


@pytest.mark.parametrize(('change', 'words'), [
    ({'effort_kind': None}, 'no answer to effort_kind: .*choose torque, current'),
    ({'effort_kind': 'position_error'}, 'no answer to error_limit'),
    ({'effort_kind': 'position_error', 'error_limit': -0.1}, 'error_limit must be positive'),
    ({'driver': None}, 'no answer to driver'),
    ({'effort_kind': 'amperes'}, "effort_kind: 'amperes' is none of torque"),
    ({'mounting': 'wall'}, 'for a wall give gravity in the base frame'),
    ({'acceleration': -1.0}, 'acceleration must be positive'),
    ({'acceleration': {'elbow_joint': 1.0}}, 'give one number for each of shoulder_pan_joint'),
    ({'gear_ratios': 101.0}, 'gear_ratios: give joint: number'),
    ({'elastic_joints': ['knee']}, 'elastic_joints: give none, all, or a list of shoulder_pan'),
    ({'elastic_joints': 'elbow_joint'}, "is 'elbow_joint'"),
    ({'elastic_joints': 'all', 'sensor': 'link'}, 'unknown answers .* the effort of motors'),
    ({'elastic_joints': 'all', 'effort_kind': 'gravity_compensated_torque'}, 'including gravity'),
    ({'tip_link': 'base_link', 'base_link': 'forearm_link'}, 'is not below base link'),
    ({'colour': 'red'}, 'unknown answers colour')])
def test_answers_that_cannot_be_are_named(
    change: dict[str, Any], words: str, root: Path
) -> None:
    arm = read_arm(root / 'robot_dynid' / 'urdf' / 'ur10e.urdf')
    given = {key: value for key, value in {**TORQUE, **change}.items() if value is not None}
    with pytest.raises(UsageError, match=words):
        completed(arm, given)


def test_answers_are_written(root: Path, tmp_path: Path) -> None:
    arm = read_arm(root / 'robot_dynid' / 'urdf' / 'ur10e.urdf')
    each = {joint: 100.0 + i for i, joint in enumerate(arm.joints)}
    answers = completed(arm, {
        'driver': 'ur_robot_driver', 'effort_kind': 'current', 'drive_gains': each,
        'mounting': [9.81, 0, 0], 'acceleration': 4.0, 'gear_ratios': each, 'payload': 2.5,
        'rotor_axes': {joint: [0, 0, 1] for joint in arm.joints}})
    path = tmp_path / 'arm.yaml'
    path.write_text(robot_yaml(arm, answers, str(arm.path)))
    robot = load_robot(path)
    np.testing.assert_allclose(robot.drive.gains, list(each.values()))
    np.testing.assert_allclose(robot.drive.gear_ratios, list(each.values()))
    np.testing.assert_allclose(robot.limits.acceleration, 4.0)
    np.testing.assert_allclose(robot.gravity, [9.81, 0.0, 0.0])
    assert robot.drive.rotor_axes is not None
    text = path.read_text()
    assert 'RTDE' in text and 'https://github.com/UniversalRobots' in text and '2.5 kg' in text
    assert '# driver: ur_robot_driver' in text
    assert gravity('ceiling') == (0.0, 0.0, 9.81)
    assert 'neither rotors nor motor friction' in recipe_yaml({**answers, 'sensor': 'link'})


@pytest.mark.parametrize('found', [True, False])
def test_gains_that_are_unknown_are_those_of_the_size_of_a_recording(
    found: bool, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of one that can be used, by the robot as it is answered for; columns are proposed beside."""
    gains, asked = {'joint_1': 12.5, 'joint_2': 8.0, 'joint_3': 4.0}, []

    def gains_of_size(robot: RobotModel, paths: list[str]) -> dict[str, float] | None:
        asked.append((robot.joints, robot.drive.kind, paths))
        return gains if found else None

    monkeypatch.setattr(live, 'gains_of_size', gains_of_size)
    shutil.copy(root / 'robot_dynid' / 'urdf' / 'planar_3r.urdf', tmp_path)
    names = [f'{kind}_{k}' for kind in ('angle', 'amps') for k in (1, 2, 3)]
    data = tmp_path / 'run.csv'
    data.write_text(f'clock,{",".join(names)}\n' + ''.join(
        f'{0.01 * k},{0.1 * k},0,0,1,2,{k}\n' for k in range(60)))
    start(tmp_path, tmp_path / 'planar_3r.urdf', {
        'driver': OTHER, 'effort_kind': 'current', 'drive_gains': 'unknown'},
        '--recording', str(data))
    text = (tmp_path / 'arm.yaml').read_text()
    assert asked == [(tuple(gains), 'current', [str(data)])]
    robot = load_robot(tmp_path / 'arm.yaml')
    assert robot.drive.gains is not None
    assert robot.drive.gains.tolist() == (list(gains.values()) if found else [1.0, 1.0, 1.0])
    assert text.count('\ncolumns: ') == 1 and 'proposed from run.csv' in text


def test_the_sensor_of_a_driver_is_suggested(root: Path) -> None:
    arm = read_arm(root / 'robot_dynid' / 'urdf' / 'seven_axis.urdf')
    given = {'driver': 'franka_ros2', 'effort_kind': 'torque'}
    assert completed(arm, given)['sensor'] == 'link'
    assert completed(arm, {**given, 'driver': OTHER})['sensor'] == 'motor'
    assert 'drive_gains' not in {one.key for one in questions(arm, given)}
    by_driver = {name: next(one.suggestion for one in questions(arm, {'driver': name})
                            if one.key == 'sensor') for name in ('franka_ros2', OTHER)}
    assert by_driver == {'franka_ros2': 'link', OTHER: 'motor'}, 'before the kind is known'


def test_a_rigid_arm_answers_one_question_more_than_one_that_cannot_be_elastic(root: Path) -> None:
    arm = read_arm(root / 'robot_dynid' / 'urdf' / 'ur10e.urdf')
    rigid = [one.key for one in questions(arm, TORQUE)]
    assert [one.key for one in questions(arm, {**TORQUE, 'sensor': 'link'})] == [
        key for key in rigid if key != 'elastic_joints']
    why = {given: next(one.why for one in questions(arm, {**TORQUE, 'elastic_joints': given})
                       if one.key == 'gear_ratios') for given in ('none', 'all')}
    assert 'motor states that are not divided' in why['all'] and 'divided' not in why['none']


def test_a_urdf_without_an_arm_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'table.urdf'
    path.write_text('<robot name="table"><link name="top"/></robot>')
    with pytest.raises(RobotError, match="no movable joint below link 'top'"):
        read_arm(path)


def test_questions_are_listed_as_a_file_of_answers(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf = str(root / 'robot_dynid' / 'urdf' / 'ur10e.urdf')
    assert main(['init', urdf, '--questions']) == 0
    listed = tmp_path / 'listed.yaml'
    text = capsys.readouterr().out
    listed.write_text(text)
    assert 'driver: ur_robot_driver' in text and '# MUST be answered' in text
    out = str(tmp_path / 'arm.yaml')
    assert main(['init', urdf, '--answers', str(listed), '--out', out]) == 2
    assert 'no answer to effort_kind' in capsys.readouterr().err
    listed.write_text(text.replace('effort_kind: ', 'effort_kind: torque '))
    assert main(['init', urdf, '--answers', str(listed), '--out', out]) == 0
    assert 'robot-dynid doctor --robot' in capsys.readouterr().out
    assert main(['init', urdf, '--questions', '--json']) == 0
    found = json.loads(capsys.readouterr().out)['questions']
    assert [one['key'] for one in found if one['required']] == ['driver', 'effort_kind']
    listed.write_text(text.replace('effort_kind: ', 'effort_kind: gravity_compensated_torque '))
    assert 'elastic_joints: none' in text, 'asked of those whose kind of effort is not known yet'
    assert main(['init', urdf, '--answers', str(listed), '--out', out]) == 0


def test_a_terminal_is_asked(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Enter confirms, or is asked again; then sensor, drive_gains and elastic_joints
    terminal = io.StringIO('\n\nlots\ncurrent\n\n\n[elbow_joint, wrist_1_joint]\n' + '\n' * 20)
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, 'stdin', terminal)
    assert main(['init', str(root / 'robot_dynid' / 'urdf' / 'ur10e.urdf')]) == 0
    robot = load_robot(tmp_path / 'ur10e.yaml')
    assert robot.drive.kind == 'current', 'what was answered at last'
    assert robot.drive.elastic == (2, 3) and robot.drive.gear_ratios is None
    assert 'estimator: {name: elastic}' in (tmp_path / 'ur10e.recipe.yaml').read_text()
    assert 'UNKNOWN' in (tmp_path / 'ur10e.yaml').read_text()
    terminal = io.StringIO('\n')
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, 'stdin', terminal)
    urdf = root / 'robot_dynid' / 'urdf' / 'ur10e.urdf'
    assert main(['init', str(urdf)]) == 2, 'input ended'


def asked(text: str, **given: Any) -> tuple[Any, str]:
    """Return the answer that is taken from a terminal, and what the terminal was told."""
    question = Question('effort_kind', 'Which effort?', why='units differ', **given)
    with pytest.MonkeyPatch.context() as patch, redirect_stderr(io.StringIO()) as told:
        patch.setattr(sys, 'stdin', io.StringIO(text))
        answer = ask(question, Terminal())
    return answer, told.getvalue()


def test_a_question_is_asked_until_it_is_answered() -> None:
    """Enter takes what is suggested; text that is no YAML and what is no choice is asked again."""
    choices, key = ('torque', 'current'), 'effort_kind: \n'
    answer, told = asked('\n[\nlots\ncurrent\n', choices=choices)
    assert answer == 'current'
    head, *tries = told.split(key)
    assert head == '\nWhich effort?\n  (units differ)\n  one of: torque, current\n'
    assert [tries[0], *tries[2:]] == [
        'this must be answered\n', 'lots: choose one of torque, current\n', '']
    assert tries[1].startswith('effort_kind') and 'YAML' in tries[1]
    assert asked('\n', choices=choices, suggestion='torque') == ('torque', (
        '\nWhich effort?\n  (units differ)\n  one of: torque, current\n'
        'effort_kind [torque]: \n'))
    assert asked('5\n', suggestion=3) == (
        5, '\nWhich effort?\n  (units differ)\neffort_kind [3]: \n'), 'any, where none is listed'
    with pytest.raises(UsageError, match='input ended before all questions were answered'):
        asked('')


def test_a_list_of_questions_states_choices_suggestions_and_what_must_be_answered(
    capsys: pytest.CaptureFixture[str]
) -> None:
    show_init({'questions': [one.plain() for one in (
        Question('rate', 'Which rate?', why='it is needed', required=True),
        Question('driver', 'Which driver.', ('ours', 'other'), 'ours', 'they differ', True),
        Question('sensor', 'Where?', ('link', 'motor'), None, 'both exist'))]},
        Terminal())
    assert capsys.readouterr().out == (
        '# Which rate.\n#   it is needed\nrate:     # MUST be answered\n'
        '# Which driver. One of: ours, other.\n#   they differ\n'
        'driver: ours    # MUST be answered\n'
        '# Where. One of: link, motor.\n#   both exist\nsensor: \n')


@pytest.mark.parametrize('verbose', [False, True])
def test_diagnoses_are_shown_with_what_to_do(
    verbose: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is in order is counted, unless verbose or there is something to do about it."""
    show_diagnoses([Diagnosis(*words).plain() for words in (
        ('ros', OK, 'rclpy', 'found'), ('disk', OK, 'recordings', 'small', 'buy one'),
        ('dds', ERROR, 'eth0', 'no multicast', 'turn it on'), ('numpy', OK, 'lib', '2.4'))],
        Terminal(verbose=verbose))
    passed = ['ok       ros (rclpy): found', 'ok       numpy (lib): 2.4']
    told = ['ok       disk (recordings): small', '         -> buy one',
            'error    dds (eth0): no multicast', '         -> turn it on']
    assert capsys.readouterr().out.splitlines() == (
        [passed[0], *told, passed[1]] if verbose else [*told, '2 checks passed: --verbose'])


@pytest.mark.parametrize(('kind', 'data', 'found', 'taken'), [
    ('current', ['run.csv'], True, True), ('current', ['run.csv'], False, False),
    ('current', [], True, False), ('torque', ['run.csv'], True, False)])
def test_unknown_gains_are_those_that_the_recordings_show(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, data: list[str],
    found: bool, taken: bool
) -> None:
    """How they are found: test_a_first_recording_says_what_to_change and test_live.py."""
    urdf = root / 'robot_dynid' / 'urdf' / 'ur10e.urdf'
    gains = {joint: 9.0 + k for k, joint in enumerate(load_robot('ur10e').joints)}
    monkeypatch.setattr(live, 'gains_of_size', lambda robot, paths: gains if found else None)
    monkeypatch.setattr(live, 'recording_diagnoses', lambda robot, paths: [])
    terminal = io.StringIO()  # which is not asked for what the file answers
    terminal.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, 'stdin', terminal)
    words = [word for path in data for word in ('--data', path)]
    assert start(tmp_path, urdf, {**TORQUE, 'effort_kind': kind}, *words) == 0
    known = load_robot(tmp_path / 'arm.yaml').torque_factors
    np.testing.assert_array_equal(known, list(gains.values()) if taken else np.ones(6))
    assert ('UNKNOWN' in (tmp_path / 'arm.yaml').read_text()) == (kind == 'current' and not taken)


def test_files_of_others_are_not_replaced(root: Path, tmp_path: Path) -> None:
    own = tmp_path / 'arm.yaml'
    own.write_text('effort_kind: torque\n')
    assert start(tmp_path, root / 'robot_dynid' / 'urdf' / 'ur10e.urdf', TORQUE) == 2
    assert own.read_text() == 'effort_kind: torque\n'


def test_a_first_recording_says_what_to_change(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    urdf = root / 'robot_dynid' / 'urdf' / 'ur10e.urdf'
    assert start(tmp_path, urdf, TORQUE) == 0
    good, bare = simulated(tmp_path), simulated(tmp_path, 'gravity_compensated_torque')
    capsys.readouterr()

    def diagnosed(data: Path, **answers: Any) -> tuple[int, dict[str, dict[str, Any]]]:
        code = start(tmp_path, urdf, {**TORQUE, **answers}, '--data', str(data), '--json')
        found = json.loads(capsys.readouterr().out)['diagnoses']
        return code, {one['name']: one for one in found}

    assert diagnosed(good)[0] == 0
    code, found = diagnosed(bare)
    assert code == 1 and found['effort kind']['remedy'].startswith(
        'state effort_kind: gravity_compensated_torque'), found
    named = tmp_path / 'named.csv'
    named.write_text(good.read_text().replace('.shoulder_', '.left_shoulder_'))
    code, found = diagnosed(named)
    assert code == 1 and 'shoulder_pan_joint' in found['recording']['what']
    amperes = tmp_path / 'amperes.csv'
    log = recording(load_robot(tmp_path / 'arm.yaml'), 1, 12.0)
    write_csv(amperes, replace(log, effort=log.effort / 10.0))
    code, found = diagnosed(amperes, effort_kind='current')
    assert code == 0, found
    gains = load_robot(tmp_path / 'arm.yaml').drive.gains
    np.testing.assert_allclose(np.asarray(gains)[1:3], 10.0, rtol=0.2)
    assert 'provisional' in (tmp_path / 'arm.yaml').read_text()


def test_two_encoders_are_described_and_held_against_a_recording(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip('mujoco')
    example = root / 'examples' / 'arm_two_encoders.yaml'
    theirs = load_robot(example)
    truth = load_truth(theirs, example)
    log = measured(record(Arm(theirs, truth), random_fourier(
        motion_limits(theirs).scaled(0.5), FourierOptions(6.0, 3), np.random.default_rng(2)),
        100.0), theirs, truth.noise, np.random.default_rng(0))
    ratios = dict.fromkeys(theirs.joints, 100)
    two = {**TORQUE, 'elastic_joints': 'all', 'gear_ratios': ratios}
    data, arm = tmp_path / 'run.csv', root / 'examples' / 'arm.urdf'

    def diagnosed(changed: RawLog, answers: dict[str, Any]) -> tuple[int, list[dict[str, str]]]:
        data.unlink(missing_ok=True)
        write_csv(data, changed)
        code = start(tmp_path, arm, answers, '--data', str(data), '--json')
        found = json.loads(capsys.readouterr().out)['diagnoses']
        return code, [one for one in found if one['name'] == 'motor encoders']

    motor = log.motor_position
    assert motor is not None
    code, (fit,) = diagnosed(log, two)
    assert code == 0 and fit['level'] == 'ok' and 'do not show whether gear_ratios' in fit['what']
    robot = load_robot(tmp_path / 'arm.yaml')
    assert robot.drive.elastic == theirs.drive.elastic
    np.testing.assert_array_equal(robot.drive.gear_ratios, theirs.drive.gear_ratios)
    bare = replace(log, motor_velocity=None)
    code, (fit,) = diagnosed(replace(bare, motor_position=100.0 * motor), two)
    assert code == 0 and 'elbow: divided by the gear ratio 100' in fit['what']
    assert 'do not show' not in fit['what']
    code, wrong = diagnosed(replace(bare, motor_position=motor * [-1.0, 1.0, 1000.0]), two)
    assert code == 1 and [one['level'] for one in wrong] == ['error', 'error']
    assert 'correct its sign' in wrong[0]['what'] and wrong[0]['where'].endswith('of turn')
    assert wrong[1]['what'].endswith('the gear ratio in the robot YAML is 100: correct it')
    code, (lost,) = diagnosed(replace(bare, motor_position=None), two)
    assert code == 1 and lost['what'] == 'no motor positions of turn, shoulder, elbow'
    code, both = diagnosed(bare, {**TORQUE, 'elastic_joints': ['elbow']})
    assert code == 0 and [one['level'] for one in both] == ['ok', 'warning']
    assert both[1]['what'] == 'turn and shoulder have motor positions, too'


def test_collision_meshes_that_are_missing_are_told(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a robot is identified, but `design` refuses it, which `init` says beforehand."""
    text = (root / 'examples' / 'arm.urdf').read_text()
    link = re.search('<link name="([^"]+)">', text)
    assert link is not None
    shape = ('<collision><geometry><mesh filename="package://lost_description/a.stl"/></geometry>'
             '</collision>')
    urdf = tmp_path / 'arm.urdf'
    urdf.write_text(text.replace(link[0], link[0] + shape + shape))
    assert start(tmp_path, urdf, TORQUE, '--json') == 0
    told = json.loads(capsys.readouterr().out)['diagnoses']
    assert [one['name'] for one in told] == ['collision meshes'] and told[0]['level'] == 'warning'
    assert told[0]['values'] == {'package://lost_description/a.stl': link[1]}
    assert told[0]['what'].startswith('one file is missing') and str(urdf) in told[0]['where']
    assert main(['design', str(tmp_path / 'arm.yaml'), '--out', str(tmp_path / 'T.yaml')]) == 1
    assert 'lost_description/a.stl is missing' in capsys.readouterr().err
    (tmp_path / 'lost_description').mkdir()
    (tmp_path / 'lost_description' / 'a.stl').touch()
    assert start(tmp_path, urdf, TORQUE, '--json') == 0
    assert not json.loads(capsys.readouterr().out)['diagnoses']
