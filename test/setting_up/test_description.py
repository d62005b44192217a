"""setting_up/description.py: the chain of an arm, its questions and the text of its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from robot_dynid.errors import UsageError
from robot_dynid.setting_up.description import (
    Arm,
    completed,
    elastic_joints,
    gravity,
    mesh_diagnoses,
    questions,
    read_arm,
    recipe_yaml,
    robot_yaml,
)

ANSWERS: dict[str, Any] = {'driver': 'other', 'effort_kind': 'torque', 'sensor': 'motor'}


def joint(name: str, parent: str, child: str, kind: str = 'revolute', limit: str = '',
          mimic: str = '') -> str:
    """Return a joint whose child link has a mass of its own."""
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<axis xyz="0 0 1"/>{limit}{mimic}</joint><link name="{child}"><inertial><mass '
            'value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
            '</link>')


def limited(lower: float, upper: float, velocity: float) -> str:
    return f'<limit lower="{lower}" upper="{upper}" velocity="{velocity}" effort="9"/>'


def arm_of(folder: Path, *joints: str, base: str = '') -> Arm:
    path = folder / 'arm.urdf'
    path.write_text(f'<robot name="arm"><link name="base"/>{"".join(joints)}</robot>')
    return read_arm(path, base)


PLAIN = (joint('turn', 'base', 'a', 'continuous', '<limit velocity="1.5" effort="9"/>'),
         joint('lift', 'a', 'b', limit=limited(-1.0, 2.0, 0.0)),
         joint('reach', 'b', 'c', 'prismatic', limited(0.0, 0.5, 0.3)))


def branches(first: int, second: int) -> list[str]:
    """Return two chains of joints behind the third link, of so many each."""
    return [joint(f'{side}{k}', f'{side}{k - 1}' if k else 'c', f'{side}{k}',
                  limit=limited(-1.0, 1.0, 1.0))
            for side, count in (('left', first), ('right', second)) for k in range(count)]


@pytest.mark.parametrize(('joints', 'tip', 'names'), [
    (PLAIN, 'c', ('turn', 'lift', 'reach')),
    # after three joints a branch ends the arm, before that the longer one continues it
    ((*PLAIN, *branches(2, 3)), 'c', ('turn', 'lift', 'reach')),
    ((*PLAIN[:2], joint('still', 'b', 'c', 'fixed'), *branches(2, 3)), 'right2',
     ('turn', 'lift', 'right0', 'right1', 'right2')),
    ((*PLAIN[:2], joint('still', 'b', 'c', 'fixed'), *branches(3, 2)), 'left2',
     ('turn', 'lift', 'left0', 'left1', 'left2')),
    # a tool, a joint that follows another one, and what does not move are not of the arm
    ((*PLAIN, joint('gripper_finger_joint', 'c', 'd', limit=limited(0.0, 1.0, 1.0))), 'c',
     ('turn', 'lift', 'reach')),
    ((*PLAIN, joint('follower', 'c', 'd', limit=limited(0.0, 1.0, 1.0),
                    mimic='<mimic joint="turn"/>')), 'c', ('turn', 'lift', 'reach')),
    ((*PLAIN, joint('camera', 'c', 'd', 'fixed'),
      joint('wrist', 'c', 'e', limit=limited(0.0, 1.0, 1.0))), 'e',  # a camera is no branch
     ('turn', 'lift', 'reach', 'wrist')),
    ((*PLAIN[:2], joint('flange', 'b', 'c', 'fixed'), joint('camera', 'c', 'd', 'fixed')), 'b',
     ('turn', 'lift'))])
def test_an_arm_ends_where_it_branches_or_its_tool_begins(
    tmp_path: Path, joints: tuple[str, ...], tip: str, names: tuple[str, ...]
) -> None:
    arm = arm_of(tmp_path, *joints)
    assert (arm.base, arm.tip, arm.joints) == ('base', tip, names)
    assert arm.between('base', 'b') == ('turn', 'lift')
    np.testing.assert_array_equal(arm.limits('lift')[:3], [-1.0, 2.0, 0.0])
    if len(joints) < 8:
        later = arm_of(tmp_path, *joints, base='a')
        assert (later.base, later.joints) == ('a', names[1:])


def written(arm: Arm, gains: dict[str, float] | None = None, **answers: Any) -> list[str]:
    """Return the lines of a robot YAML without comments on the driver."""
    text = robot_yaml(arm, completed(arm, {**ANSWERS, **answers}), 'arm.urdf', gains)
    assert text.endswith(('}\n', 'speed\n'))
    return text.splitlines()


LIMITS = [
    '# acceleration limits, not part of a URDF: conservative, speed limit within 1 s', 'limits:',
    '  turn: {position: [-2.8, 2.8], acceleration: 1.5}    # the URDF states no range',
    '  lift: {velocity: 0.5, acceleration: 0.5}    # the URDF states no speed',
    '  reach: {acceleration: 0.3}']


def test_a_robot_file_states_what_the_urdf_leaves_open(tmp_path: Path) -> None:
    lines = written(arm_of(tmp_path, *PLAIN))
    assert lines[:5] == [
        '# Written by robot-dynid init: what the URDF does not state. All keys: docs/files.md.',
        'urdf: arm.urdf', 'base_link: base', 'tip_link: c    # links after it move with it',
        'gravity: [0.0, 0.0, -9.81]    # in the base frame: floor']
    assert lines[5].startswith('# driver: other')
    kind = lines.index('effort_kind: torque')
    assert lines[kind + 1:] == [
        'sensor: motor', '# gear_ratios: {turn: 101.0, ...}    # unknown; they determine the '
        'frequencies of torque ripple', *LIMITS]


def test_a_robot_file_holds_gains_ratios_axes_payload_and_accelerations(tmp_path: Path) -> None:
    arm = arm_of(tmp_path, *PLAIN)
    gains = {'turn': 8, 'lift': 9.5, 'reach': -7}
    lines = written(
        arm, effort_kind='current', drive_gains=gains, gear_ratios={**gains, 'turn': 50},
        elastic_joints=['lift', 'turn'], rotor_axes={'lift': [0, 1, 0]}, payload=1.25,
        mounting=[9.81, 0, 0], acceleration={'turn': 3, 'lift': 4, 'reach': 0.7})
    assert 'gravity: [9.81, 0.0, 0.0]    # in the base frame: as given' in lines
    kind = lines.index('effort_kind: current')
    assert lines[kind + 1:] == [
        'sensor: motor', '# joint torque over current [N m/A]',
        'drive_gains: {turn: 8.0, lift: 9.5, reach: -7.0}',
        'gear_ratios: {turn: 50.0, lift: 9.5, reach: -7.0}',
        '# encoders on motor (topic motor_states) and link: docs/two_encoders.md',
        'elastic_joints: [turn, lift]', 'rotor_axes: {lift: [0.0, 1.0, 0.0]}',
        '# 1.25 kg at the flange are not in the URDF: they become part of the last link',
        '# acceleration limits, not part of a URDF: as given', 'limits:',
        '  turn: {position: [-2.8, 2.8], acceleration: 3.0}    # the URDF states no range',
        '  lift: {velocity: 0.5, acceleration: 4.0}    # the URDF states no speed',
        '  reach: {acceleration: 0.7}']
    lines = written(arm, effort_kind='current', acceleration=2, elastic_joints='all')
    assert 'drive_gains: {turn: 1.0, lift: 1.0, reach: 1.0}' in lines
    assert 'drive_gains_std: 0.5' in lines and 'elastic_joints: [turn, lift, reach]' in lines
    assert '# [N m/A], UNKNOWN: parameters are in units of A. Sources of gains: docs/drivers.md' \
        in lines
    assert '# gear_ratios: {turn: 101.0, ...}    # unknown; motor states must be divided by ' \
        'them' in lines and '  reach: {acceleration: 2.0}' in lines
    lines = written(arm, {'turn': 5.0, 'lift': 6.0, 'reach': 7.0}, effort_kind='current')
    at = lines.index('drive_gains: {turn: 5.0, lift: 6.0, reach: 7.0}')
    assert lines[at - 1].startswith('# [N m/A], provisional: scaled to the nominal links')
    assert lines[at + 1] == 'drive_gains_std: 0.2'


def test_a_robot_file_says_what_its_driver_has_of_the_stated_kind_of_effort(
    tmp_path: Path
) -> None:
    answers = {'driver': 'gz_ros2_control', 'sensor': 'link'}
    lines = written(arm_of(tmp_path, *PLAIN), **answers)
    assert [line.partition(',')[0] for line in lines if line.startswith('# effort')] == [
        '# effort: component along the axis of the wrench that the joint transmits [N m']


def test_meshes_that_are_missing_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    meshes = ''.join(f'<collision><geometry><mesh filename="{name}.stl"/></geometry></collision>'
                     for name in 'yxy')
    arm = arm_of(tmp_path, *PLAIN)
    arm.path.write_text(arm.path.read_text().replace(
        '<link name="base"/>', f'<link name="base">{meshes}</link>'))
    (found,) = mesh_diagnoses(read_arm(arm.path))
    assert found.what.startswith("2 files are missing, the first 'y.stl' of base: `design` and")
    assert found.values == (('y.stl', 'base'), ('x.stl', 'base'))


def test_servos_have_the_error_at_which_they_reach_their_limit(tmp_path: Path) -> None:
    arm = arm_of(tmp_path, *PLAIN)
    lines = written(arm, effort_kind='position_error', error_limit=0.25)
    at = lines.index('error_limit: 0.25')
    assert lines[at - 1] == '# position error at which the output reaches its limit [rad]'
    assert lines[at + 1] == ('# [N m/rad], UNKNOWN: parameters are in units of rad. Sources of '
                             'gains: docs/drivers.md')
    with pytest.raises(UsageError, match='no answer to error_limit: Position error at which'):
        completed(arm, {**ANSWERS, 'effort_kind': 'position_error'})


@pytest.mark.parametrize(('answers', 'words'), [
    ({'gear_ratios': {'turn': 50}}, 'gear_ratios: give one number for each of turn, lift, reach'),
    ({'gear_ratios': 50}, 'gear_ratios: give joint: number for each of turn, lift, reach, or '
     'unknown; is 50'),
    ({'gear_ratios': {'turn': 50, 'lift': 'x', 'reach': 2}}, 'gear_ratios: lift'),
    ({'acceleration': -2}, 'acceleration must be positive'),
    ({'acceleration': {'turn': 2, 'lift': 0, 'reach': 2}}, 'acceleration: lift must be positive'),
    ({'elastic_joints': ['turn', 'arm']}, 'elastic_joints: give none, all, or a list of turn, '
     "lift, reach; is ['turn', 'arm']"),
    ({'elastic_joints': 'turn'}, 'elastic_joints: give none, all, or a list'),
    ({'mounting': 'wall'}, "mounting: 'wall' is none of floor, ceiling; for a wall give gravity"),
    ({'mounting': [0, 1]}, 'mounting: gravity'), ({'sensor': 'gear'}, "sensor: 'gear' is none of"),
    ({'colour': 'red', 'age': 5}, 'unknown answers age, colour; questions are driver, '),
    ({'drive_gains': {'turn': 5}}, 'unknown answers drive_gains; questions are driver, effort_k'),
    ({'sensor': 'link', 'elastic_joints': 'all'}, 'elastic_joints need the effort of motors '),
    ({'effort_kind': 'lots'}, "effort_kind: 'lots' is none of torque, ")])
def test_wrong_answers_are_named_with_what_to_give(
    tmp_path: Path, answers: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError) as raised:
        completed(arm_of(tmp_path, *PLAIN), {**ANSWERS, **answers})
    assert words in str(raised.value)


def test_answers_of_questions_that_are_not_asked_may_be_their_suggestions(tmp_path: Path) -> None:
    arm = arm_of(tmp_path, *PLAIN)
    found = completed(arm, {**ANSWERS, 'sensor': 'link', 'elastic_joints': 'none'})
    assert 'elastic_joints' not in found and found['payload'] == 0.0
    assert [one.key for one in questions(arm, ANSWERS)] == [
        'driver', 'effort_kind', 'sensor', 'elastic_joints', 'base_link', 'tip_link', 'mounting',
        'acceleration', 'gear_ratios', 'rotor_axes', 'payload', 'topic', 'controller']
    currents = questions(arm, {**ANSWERS, 'effort_kind': 'current'})
    assert currents[3].key == 'drive_gains' and currents[3].text.startswith(
        'Torque of the joint over current [N m/A], joint: gain for each')
    assert currents[6].why == 'behind 3 joints: turn, lift, reach'


def test_words_stand_for_gravity_and_for_joints() -> None:
    assert gravity('floor') == (0.0, 0.0, -9.81) and gravity('ceiling') == (0.0, 0.0, 9.81)
    assert gravity([0, -9.81, 1]) == (0.0, -9.81, 1.0)
    assert elastic_joints(('a', 'b', 'c'), {'elastic_joints': ['c', 'a']}) == ('a', 'c')
    for every in ('all', ['b', 'a']):
        assert elastic_joints(('a', 'b'), {'elastic_joints': every}) == ('a', 'b')
    assert elastic_joints(('a', 'b'), {}) == elastic_joints(('a',), {'elastic_joints': []}) == ()


@pytest.mark.parametrize(('answers', 'estimator', 'link'), [
    ({'sensor': 'motor'}, 'wls', False), ({'sensor': 'link'}, 'wls', True),
    ({'sensor': 'motor', 'elastic_joints': 'all'}, 'elastic', False),
    ({'sensor': 'motor', 'elastic_joints': []}, 'wls', False)])
def test_a_recipe_has_the_estimator_of_the_gears(
    answers: dict[str, Any], estimator: str, link: bool
) -> None:
    lines = recipe_yaml(answers).splitlines()
    assert f'estimator: {{name: {estimator}}}    # feasible: physical parameters, for a URDF' \
        in lines
    note = '# sensors behind the gears measure neither rotors nor motor friction: both are left ' \
        'out'
    assert (note in lines) is link and len(lines) == 6 + link
