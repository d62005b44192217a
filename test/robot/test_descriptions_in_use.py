"""robot/urdf.py: descriptions as people have them: what counts where it is, encodings, what xacro
leaves."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from robot_descriptions import AXIS, INERTIAL, LIMIT, joint, link, robot

from robot_dynid.cli.main import main
from robot_dynid.errors import RobotError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import robot_from_urdf, source_text

ARM = robot()
PLAIN = robot_from_urdf(ARM)
BROKEN = '<inertial><mass value="-1"/><inertia ixx="1"/></inertial>'


def broken(name: str) -> str:
    return ARM.replace(link(name), link(name, BROKEN))


def test_a_broken_inertial_is_an_error_within_the_arm_and_a_warning_behind_it() -> None:
    with pytest.raises(RobotError, match=r"link 'upper' inertia attribute ixy: is missing"):
        robot_from_urdf(broken('upper'))
    found = robot_from_urdf(broken('camera'))
    assert found.warnings == ("link 'camera' inertia attribute ixy: is missing; expected 1 finite "
                              'number(s); the link counts as massless',)
    np.testing.assert_allclose(found.nominal[2, 0], 2.0)
    assert robot_from_urdf(broken('plate')).warnings == ()
    assert robot_from_urdf(broken('fore'), Selection(tip_link='column')).warnings == (
        "link 'fore' inertia attribute ixy: is missing; expected 1 finite number(s); the link "
        'counts as massless',)


@pytest.mark.parametrize(('old', 'new', 'error', 'warning'), [
    ('name="mount" type="fixed"><origin xyz="0.3', 'name="mount" type="fixed"><origin xyz="a',
     '', "joint 'mount' origin xyz: expected 3 finite number"),
    ('name="bolt" type="fixed"><origin xyz="0.3', 'name="bolt" type="fixed"><origin xyz="a',
     '', ''),
    ('name="elbow" type="revolute"><origin xyz="0.3', 'name="elbow" type="revolute"><origin '
     'xyz="a', "joint 'elbow' origin xyz: expected 3 finite number", ''),
    ('<child link="camera"/>', '<child link="camera"/><axis xzy="0 0 1"/>', '', ''),
    (f'<child link="fore"/>{AXIS}', '<child link="fore"/><axis xzy="0 0 1"/>',
     "joint 'elbow' axis: is missing", ''),
    (f'<child link="fore"/>{AXIS}', '<child link="fore"/><axis xyz="0 0 ${z}"/>',
     "joint 'elbow' axis: is '0 0 ${z}': this is a xacro file", ''),
    (f'<child link="fore"/>{AXIS}<limit lower="-2"', f'<child link="fore"/>{AXIS}<limit '
     'lower="$(arg low)"', "joint 'elbow' limit lower: is '$(arg low)': this is a xacro file", ''),
    (f'<child link="fore"/>{AXIS}', f'<child link="fore"/>{AXIS}<xacro:limits/>',
     "joint 'elbow': holds <xacro:limits>, which is not expanded", ''),
    (link('upper'), link('upper', '<xacro:box mass="2"/>'),
     "link 'upper': holds <xacro:box>, which is not expanded: this is a xacro file", ''),
    (link('upper'), link('upper', INERTIAL.replace('<mass value="2"/>', '<xacro:mass/>')),
     "link 'upper': holds <xacro:mass>", ''),
    (link('camera'), link('camera', '<xacro:box mass="2"/>'), '',
     "link 'camera': holds <xacro:box>, which is not expanded"),
    (link('upper'), link('upper', INERTIAL + '<visual><xacro:grey/></visual>'), '',
     'tags that xacro did not expand are ignored: <xacro:grey>'),
    ('</robot>', '<gazebo><xacro:plugin/></gazebo></robot>', '', 'ignored: <xacro:plugin>'),
    ('</robot>', '<xacro:property name="a" value="1"/></robot>', '', '<xacro:property>'),
    ('</robot>', '<xacro:gripper parent="fore"/></robot>', 'holds <xacro:gripper>: it is a xacro',
     ''),
    ('link name="upper"', 'link name="${prefix}upper"',
     "name of a <link>: is '${prefix}upper': this is a xacro file", ''),
    (link('camera'), link('camera', INERTIAL.replace('"2"', '"1e-10"')), '',
     "link 'camera': it has inertia but no mass"),
    (link('plate'), link('plate', INERTIAL.replace('"2"', '"1e-10"')), '', ''),
    (link('plate'), link('plate', '<visual><geometry><box size="0 0 0"/></geometry></visual>'),
     '', ''),
])
def test_robot_from_urdf_refuses_bad_values_only_in_the_dynamics(
    old: str, new: str, error: str, warning: str
) -> None:
    assert ARM.count(old) == 1
    text = ARM.replace(old, new)
    if error:
        with pytest.raises(RobotError, match=re.escape(error)):
            robot_from_urdf(text)
        return
    found = robot_from_urdf(text)
    assert found.joints == PLAIN.joints
    assert len(found.warnings) == bool(warning)
    assert all(warning in one for one in found.warnings)
    np.testing.assert_array_equal(found.nominal[:2], PLAIN.nominal[:2])


@pytest.mark.parametrize('written', ['inf', '-Inf', '1e308', '1e16', '99999', 'nan', 'pi', '--'])
def test_a_limit_that_is_none_is_taken_as_none(written: str) -> None:
    text = ARM.replace(LIMIT, LIMIT.replace('"2"', f'"{written}"').replace(
        '"3"', f'"{written}"'), 1)
    found = robot_from_urdf(text)
    assert found.warnings == (f"joint 'turn': limit upper '{written}', velocity '{written}': "
                              'taken as none',)
    assert found.limits.lower[0] == -2.0 and found.limits.effort[0] == 50.0
    assert np.isnan([found.limits.upper[0], found.limits.velocity[0]]).all()
    assert found.limits.upper[1] == 2.0


def test_a_speed_below_zero_is_no_limit() -> None:
    found = robot_from_urdf(ARM.replace('velocity="3"', 'velocity="-3"'))
    assert found.warnings[0] == "joint 'turn': limit velocity '-3': taken as none"
    assert np.isnan(found.limits.velocity).all()


def test_limits_that_cross_are_none_and_those_of_locked_joints_of_no_consequence() -> None:
    text = ARM.replace('lower="-2"', 'lower="4"')
    found = robot_from_urdf(text)
    assert found.warnings[0] == ("joint 'turn': lower limit 4 is above upper limit 2: both are "
                                 'taken as none; swap or correct them')
    assert np.isnan(found.limits.lower).all() and np.isnan(found.limits.upper).all()
    warning = robot_from_urdf(ARM.replace('lower="-2"', 'lower="2.5"')).warnings[0]
    assert 'lower limit 2.5 is above upper limit 2' in warning, 'its speed, 3, is no position'
    text = ARM.replace(f'"fore"/>{AXIS}{LIMIT}', f'"fore"/>{AXIS}<limit lower="a" upper="inf"/>')
    assert text != ARM and robot_from_urdf(text).warnings
    assert robot_from_urdf(text, Selection(joints=('turn', 'shoulder'))).warnings == ()


NAME = {'gb2312': '机械臂', 'gbk': '機械臂', 'GB18030': '臂', 'iso-8859-1': 'größe',
        'cp1252': '“arm”', 'euc-kr': '로봇', 'shift_jis': 'ロボット', 'utf-8': 'größe'}


@pytest.mark.parametrize('encoding', NAME)
def test_the_encoding_is_the_declared_one(tmp_path: Path, encoding: str) -> None:
    text = ARM.replace('?>', f' encoding="{encoding}"?>').replace('"arm"', f'"{NAME[encoding]}"')
    path = tmp_path / 'arm.urdf'
    path.write_bytes(text.encode(encoding))
    assert load_robot(path).name == NAME[encoding]
    assert source_text(load_robot(path)).startswith('<?xml version="1.0" encoding="UTF-8"?>'
                                                    if encoding != 'utf-8' else '<?xml')


def test_a_declared_gb2312_may_hold_all_that_gbk_has(tmp_path: Path) -> None:
    path = tmp_path / 'arm.urdf'
    text = ARM.replace('?>', ' encoding="gb2312"?>').replace('"arm"', '"機械臂"')
    path.write_bytes(text.encode('gbk'))
    assert load_robot(path).name == '機械臂'


@pytest.mark.parametrize('encoding', ['utf-16', 'utf-16-le', 'utf-16-be', 'utf-8-sig'])
@pytest.mark.parametrize('declared', ['', ' encoding="UTF-16"'])
def test_byte_order_marks_and_wide_texts_are_read(
    tmp_path: Path, encoding: str, declared: str
) -> None:
    path = tmp_path / 'arm.urdf'
    path.write_bytes(ARM.replace('?>', f'{declared}?>').encode(encoding))
    assert load_robot(path).joints == PLAIN.joints


@pytest.mark.parametrize(('declared', 'content', 'message'), [
    ('utf-8', b'gr\xf6\xdfe', r'not a text in the utf-8 that its first line declares \(byte \d+\)'
     r'; convert it from its encoding, such as gbk or cp1252: iconv -f'),
    ('', b'gr\xf6\xdfe', r'not a text in utf-8 \(byte'),
    ('klingon', b'arm', 'not a text in the klingon that its first line declares; convert'),
    ('utf-16', b'arm', 'not a text in the utf-16 that its first line declares; convert'),
    ('ascii', 'größe'.encode(), 'not a text in the ascii that its first line declares'),
    ('zlib', b'arm', 'not a text in the zlib'),
])
def test_a_wrong_encoding_is_named(
    tmp_path: Path, declared: str, content: bytes, message: str
) -> None:
    head = f' encoding="{declared}"' if declared else ''
    path = tmp_path / 'arm.urdf'
    path.write_bytes(ARM.replace('?>', f'{head}?>').encode().replace(b'"arm"', b'"%s"' % content))
    with pytest.raises(RobotError, match=message):
        load_robot(path)


def test_blank_lines_may_stand_in_front(tmp_path: Path) -> None:
    path = tmp_path / 'arm.urdf'
    path.write_text(f'\n  {ARM}')
    assert load_robot(path).joints == PLAIN.joints


@pytest.mark.parametrize(('text', 'message'), [
    (f'xacro: in-order processing became default\n{ARM}',
     "'xacro: in-order processing became default' precedes the XML"),
    (f'[INFO] done\n{ARM.partition("?>")[2]}', "'[INFO] done' precedes the XML"),
    ('<mujoco model="arm"/>', 'it is MJCF, a MuJoCo model; give the original URDF'),
    ('<sdf version="1.6"/>', 'it is SDF, a Gazebo model; give the original URDF'),
    ('<launch/>', 'it is a launch file'),
    ('<!DOCTYPE html><html lang="en"></html>', 'it is a web page; download the file itself'),
    ('robot: arm\njoints: []\n', 'not well-formed XML'),
    (f'{ARM}\ndone', 'not well-formed XML (junk after document element'),
])
def test_load_robot_names_files_that_are_no_urdf(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / 'arm.urdf'
    path.write_text(text)
    with pytest.raises(RobotError, match=re.escape(message)):
        load_robot(path)


SAME = {
    'two roots': ('</robot>', '<link name="seat"/></robot>',
                  '2 links without a parent (base, seat)'),
    'missing link': ('parent link="base"/><child link="column"', 'parent link="world"/><child '
                     'link="column"', "names link 'world', which is not defined; add <link"),
    'cycle': ('</robot>', joint('back', 'camera', 'base', 'fixed', '') + '</robot>',
              'form a loop'),
    'mass': (link('upper'), link('upper', BROKEN), "link 'upper' inertia"),
    'mimic': (f'"fore"/>{AXIS}', f'"fore"/>{AXIS}<mimic joint="nobody"/>',
              "joint 'elbow' mimics 'nobody', which is not an independent joint"),
    'nothing moves': ('"revolute"', '"fixed"', "no movable joint below link 'base'"),
}


@pytest.mark.parametrize('case', SAME)
def test_base_and_init_say_the_same_and_init_leaves_nothing(
    case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new, message = SAME[case]
    assert old in ARM
    urdf, answers = tmp_path / 'arm.urdf', tmp_path / 'answers.yaml'
    urdf.write_text(ARM.replace(old, new))
    answers.write_text(json.dumps({'driver': 'other', 'effort_kind': 'torque'}))
    said = []
    for words in (['base', str(urdf)], ['init', str(urdf), '--answers', str(answers), '--out',
                                        str(tmp_path / 'robot.yaml')]):
        assert main(words) == 1
        said.append(capsys.readouterr().err.splitlines()[-1])
    assert said[0] == said[1] and message in said[0]
    assert {path.name for path in tmp_path.iterdir()} == {'arm.urdf', 'answers.yaml'}


def test_init_leaves_nothing_where_its_answers_do_not_fit(tmp_path: Path) -> None:
    (tmp_path / 'arm.urdf').write_text(ARM)
    answers = tmp_path / 'answers.yaml'
    answers.write_text(json.dumps({'driver': 'other', 'effort_kind': 'torque',
                                   'rotor_axes': {'turn': [0, 0, 1]}}))
    assert main(['init', str(tmp_path / 'arm.urdf'), '--answers', str(answers), '--out',
                 str(tmp_path / 'robot.yaml')]) == 1
    assert {path.name for path in tmp_path.iterdir()} == {'arm.urdf', 'answers.yaml'}


def test_init_takes_a_base_of_several(tmp_path: Path) -> None:
    urdf, answers, out = (tmp_path / name for name in ('arm.urdf', 'answers.yaml', 'robot.yaml'))
    urdf.write_text(ARM.replace('</robot>', '<link name="seat"/></robot>'))
    answers.write_text(json.dumps({'driver': 'other', 'effort_kind': 'torque',
                                   'base_link': 'base'}))
    assert main(['init', str(urdf), '--answers', str(answers), '--out', str(out)]) == 0
    assert load_robot(out).joints == PLAIN.joints
