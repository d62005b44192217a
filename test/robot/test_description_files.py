"""robot/robot_file.py: what is read from good URDF and robot YAML files, and how bad ones are
refused."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from robot_descriptions import own_robots

from robot_dynid import load_robot
from robot_dynid.errors import DynIdError, RobotError, UsageError
from robot_dynid.export.description import Description
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import robot_from_urdf

INERTIAL = ('<inertial><mass value="2"/><origin xyz="0.1 0 0"/>'
            '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>')
ARM = f"""<?xml version="1.0" encoding="UTF-8"?>
<robot name="arm">
  <!-- two joints, a camera and a flange -->
  <link name="base"/>
  <link name="upper">{INERTIAL}</link>
  <link name="lower">{INERTIAL}</link>
  <link name="flange"/>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/>
    <origin xyz="0 0 1" rpy="0 0 0"/><axis xyz="0 2 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="30"/>
  </joint>
  <joint name="elbow" type="continuous">
    <parent link="upper"/><child link="lower"/><axis xyz="0 1 0"/>
    <limit velocity="3" effort="20"/>
  </joint>
  <joint name="mount" type="fixed"><parent link="lower"/><child link="flange"/></joint>
  <transmission name="t"><joint name="shoulder"/></transmission>
</robot>
"""
SETTINGS = """
urdf: arm.urdf
effort_kind: current
drive_gains: {shoulder: 10, elbow: 5}
gear_ratios: {shoulder: 100, elbow: 50}
coupling: {elbow: {shoulder: 1, elbow: 1}}
gravity: [0, 9.81, 0]
limits: {elbow: {position: [-2, 2], acceleration: 4}}
"""


def test_robot_from_urdf_reads_a_valid_urdf() -> None:
    robot = robot_from_urdf(ARM)
    assert robot.name == 'arm'
    assert robot.joints == ('shoulder', 'elbow')
    assert robot.bodies == ('upper', 'lower')
    assert robot.base_link == 'base'
    assert np.array_equal(robot.axes, [[0, 1, 0], [0, 1, 0]])
    assert np.allclose(robot.nominal[0, :4], [2.0, 0.2, 0.0, 0.0])
    assert np.array_equal(robot.limits.velocity, [2.0, 3.0])
    assert np.isnan(robot.limits.lower[1])
    assert robot.warnings == ()


def test_an_inertial_of_nothing_is_that_of_a_frame() -> None:
    """As those of Franka, UR and Kinova write flanges and tool frames."""
    nothing = ('<inertial><mass value="0.0"/><inertia ixx="0" ixy="0" ixz="-0.0" iyy="0.0" '
               'iyz="0e0" izz="0"/></inertial>')
    robot = robot_from_urdf(ARM.replace('<link name="flange"/>',
                                        f'<link name="flange">{nothing}</link>'))
    assert np.array_equal(robot.nominal, robot_from_urdf(ARM).nominal)
    assert not next(link for link in robot.links if link.name == 'flange').has_inertial


@pytest.mark.parametrize('link', ['flange', 'base'])
def test_inertia_without_mass_is_none_and_a_warning_where_the_link_moves(link: str) -> None:
    """As Bullet's models of Panda and LBR iiwa write a flange and a base."""
    plain = re.sub(rf'<link name="{link}"\s*/>', f'<link name="{link}"></link>', ARM)
    text = plain.replace(f'<link name="{link}">', f'<link name="{link}"><inertial><mass '
                         'value="0.0"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" '
                         'izz="0.1"/></inertial>')
    assert text != ARM
    robot = robot_from_urdf(text)
    assert np.array_equal(robot.nominal, robot_from_urdf(ARM).nominal)
    assert robot.warnings == (() if link == 'base' else (
        "link 'flange': it has inertia but no mass and counts as a frame without "
        'inertial; write its mass, or remove <inertial>',))


def test_an_impossible_inertia_is_a_warning() -> None:
    robot = robot_from_urdf(ARM.replace('izz="1"', 'izz="9"', 1))
    assert len(robot.warnings) == 1
    assert "link 'upper': its inertia is physically impossible" in robot.warnings[0]


def joint(name: str, parent: str, child: str, kind: str = 'revolute', inside: str = '') -> str:
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/>'
            f'<child link="{child}"/>{inside}</joint></robot>')


CYCLE = ('<link name="x"/><link name="y"/>' + joint('xy', 'x', 'y').replace('</robot>', '')
         + joint('yx', 'y', 'x'))

BAD_URDF = {
    'broken': ('</transmission>', '', 'not well-formed XML (mismatched tag'),
    'second parent': ('</robot>', joint('extra', 'base', 'lower'),
                      "link 'lower' has two parents (joints 'elbow' and 'extra')"),
    'cycle beside the tree': ('</robot>', CYCLE, 'form a loop'),
    'cycle through the base': ('</robot>', joint('back', 'flange', 'base'), 'form a loop'),
    'link on itself': ('</robot>', '<link name="x"/>' + joint('own', 'x', 'x'), 'form a loop'),
    'two roots': ('</robot>', '<link name="alone"/></robot>',
                  '2 links without a parent (base, alone): connect them, or choose base_link'),
    'mimic': ('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="wrist"/>',
              "joint 'elbow' mimics 'wrist', which is not an independent joint"),
    'floating': ('type="continuous"', 'type="floating"',
                 "joint 'elbow' has type 'floating'; supported are revolute, continuous"),
    'planar': ('type="continuous"', 'type="planar"', "joint 'elbow' has type 'planar'"),
    'no type': (' type="continuous"', '', "joint 'elbow' has type ''"),
    'negative mass': ('<mass value="2"/>', '<mass value="-2"/>',
                      "link 'upper' mass attribute value must be positive, is -2"),
    'mass without value': ('<mass value="2"/>', '<mass/>',
                           "link 'upper' mass attribute value: is missing"),
    'no mass element': ('<mass value="2"/>', '', "'upper': <inertial> needs <mass> and <inertia>"),
    'incomplete inertia': (' iyy="1"', '', "link 'upper' inertia attribute iyy: is missing"),
    'not a number': ('ixx="1"', 'ixx="nan"',
                     "link 'upper' inertia attribute ixx: expected 1 finite number(s), found"),
    'infinite': ('xyz="0.1 0 0"', 'xyz="inf 0 0"', "link 'upper' inertial origin xyz: expected 3"),
    'a word': ('xyz="0 0 1"', 'xyz="0 0 high"', "joint 'shoulder' origin xyz: expected 3 finite"),
    'two numbers': ('xyz="0 2 0"', 'xyz="0 2"', "joint 'shoulder' axis: expected 3 finite"),
    'no axis': ('xyz="0 2 0"', 'xyz="0 0 0"', "joint 'shoulder': its axis has zero length; give"),
    'axis without xyz': ('<axis xyz="0 2 0"/>', '<axis/>', "joint 'shoulder' axis: is missing"),
    'link twice': ('<link name="flange"/>', '<link name="flange"/><link name="base"/>',
                   'link defined more than once: base'),
    'joint twice': ('name="elbow"', 'name="shoulder"', 'joint defined more than once: shoulder'),
    'undefined link': ('<parent link="upper"/>', '<parent link="uper"/>',
                       "joint 'elbow' names link 'uper', which is not defined"),
    'no child': ('<child link="lower"/>', '', "joint 'elbow': needs <parent link="),
    'nameless link': ('<link name="flange"/>', '<link/>', '<link>: has no name'),
    'nameless joint': ('name="elbow" ', '', '<joint>: has no name'),
    'xacro': ('<robot name="arm">', '<robot name="arm" xmlns:xacro="http://ros.org/wiki/xacro">'
              '<xacro:include filename="a.xacro"/>', 'holds <xacro:include>: it is a xacro file; '
              'expand it first: xacro FILE'),
    'xacro without its name space': ('<robot name="arm">', '<robot name="arm"><xacro:arm/>',
                                     'holds <xacro:arm>: it is a xacro file; expand it first'),
    'xacro expression': ('xyz="0 0 1"', 'xyz="0 0 ${height}"',
                         "joint 'shoulder' origin xyz: is '0 0 ${height}': this is a xacro file"),
    'another format': ('<robot name="arm">', '<sdf><robot name="arm">', 'not well-formed XML'),
}


@pytest.mark.parametrize('case', BAD_URDF)
def test_bad_urdf_is_refused(tmp_path: Path, case: str) -> None:
    old, new, message = BAD_URDF[case]
    assert old in ARM
    path = tmp_path / 'arm.urdf'
    path.write_text(ARM.replace(old, new, 1))
    with pytest.raises(RobotError, match=re.escape(message)) as caught:
        load_robot(path)
    assert str(caught.value).startswith(f'{path}: ')


def test_a_loop_of_links_is_named_in_400_characters() -> None:
    x, y = 300 * 'x', 300 * 'y'
    loop = CYCLE.replace('"x"', f'"{x}"').replace('"y"', f'"{y}"')
    with pytest.raises(RobotError, match=r'links [xy]{197} \.\.\. [xy]{197} form a loop'):
        robot_from_urdf(ARM.replace('</robot>', loop, 1))


@pytest.mark.parametrize(('text', 'message'), [
    ('', 'not well-formed XML'),
    ('<sdf/>', 'root element is <sdf>, expected <robot>; it is SDF'),
    ('<robot name="r"/>', 'defines no link; a robot needs <link> and <joint> elements'),
    ('<robot name="r"><link name="a"/></robot>', "no movable joint below link 'a'"),
    ('<robot name="r"><link name="a"/><link name="b"/>' + joint('j', 'a', 'b', 'fixed'),
     "no movable joint below link 'a'"),
])
def test_load_robot_refuses_xml_without_a_robot(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / 'arm.urdf'
    path.write_text(text)
    with pytest.raises(RobotError, match=message):
        load_robot(path)


def test_load_robot_refuses_absent_and_binary_files(tmp_path: Path) -> None:
    path = tmp_path / 'arm.urdf'
    with pytest.raises(UsageError, match=r'arm.urdf: cannot be read \(No such file'):
        load_robot(path)
    path.write_bytes(b'\x89PNG\xff\xfe\x00')
    with pytest.raises(RobotError, match=r'arm.urdf: not a text'):
        load_robot(path)
    with pytest.raises(UsageError, match="no robot 'ur11': give a URDF file, a robot YAML, or"):
        load_robot('ur11')
    with pytest.raises(UsageError, match='cannot be read'):
        load_robot('arm.urdf.xacro')
    with pytest.raises(UsageError, match='cannot be read'):
        load_robot(tmp_path / 'none.yaml')


@pytest.mark.parametrize(('selection', 'message'), [
    (Selection(base_link='root'), "no link 'root'; there are base, upper, lower, flange"),
    (Selection(tip_link='tool'), "no link 'tool'; there are"),
    (Selection(base_link='lower', tip_link='upper'), "tip link 'upper' is not below base link"),
    (Selection(joints=('wrist',)), "no movable joint wrist below 'base'; there are shoulder, el"),
    (Selection(base_link='lower'), "no movable joint below link 'lower'"),
])
def test_a_selection_of_what_is_not_there_is_refused(selection: Selection, message: str) -> None:
    with pytest.raises(DynIdError, match=message):
        robot_from_urdf(ARM, selection)


@pytest.mark.parametrize('case', ['mimic', 'floating', 'planar'])
def test_an_unsupported_joint_can_be_locked(case: str) -> None:
    old, new, _ = BAD_URDF[case]
    robot = robot_from_urdf(ARM.replace(old, new, 1), Selection(joints=('shoulder',)))
    assert robot.joints == ('shoulder',)
    assert robot.nominal[0, 0] == 4.0


def settings_file(folder: Path, content: str) -> Path:
    (folder / 'arm.urdf').write_text(ARM)
    path = folder / 'mine.yaml'
    path.write_text(content)
    return path


def test_load_robot_reads_a_valid_robot_yaml(tmp_path: Path) -> None:
    robot = load_robot(settings_file(tmp_path, SETTINGS))
    assert robot.name == 'mine'
    assert robot.drive.kind == 'current'
    assert robot.drive.gains is not None and list(robot.drive.gains) == [10.0, 5.0]
    assert robot.drive.gear_ratios is not None and list(robot.drive.gear_ratios) == [100.0, 50.0]
    assert np.array_equal(robot.drive.coupling, [[1.0, 0.0], [1.0, 1.0]])
    assert list(robot.gravity) == [0.0, 9.81, 0.0]
    assert list(robot.limits.lower) == [-1.0, -2.0]
    assert list(robot.limits.upper) == [1.0, 2.0]
    assert robot.limits.acceleration[1] == 4.0


@pytest.mark.parametrize(('lower', 'upper'), [(-0.25, 0.5), (-0.25, 1.5), (-1.5, 0.5)])
def test_position_limits_of_the_robot_file_are_taken_as_they_stand(
    tmp_path: Path, lower: float, upper: float
) -> None:
    """Neither the wider nor the narrower ones of the URDF (-1 to 1) get in between."""
    given = f'limits: {{shoulder: {{position: [{lower}, {upper}], velocity: 1.5, effort: 9}}}}'
    robot = load_robot(settings_file(tmp_path, f'{SETTINGS.rpartition("limits")[0]}{given}'))
    assert (robot.limits.lower[0], robot.limits.upper[0]) == (lower, upper)
    assert list(robot.limits.velocity) == [1.5, 3.0]
    assert list(robot.limits.effort) == [9.0, 20.0]


BAD_SETTINGS = {
    'unknown key': ('gravity:', 'gravitation:', 'unknown key gravitation; use base_link'),
    'no kinematics': ('urdf: arm.urdf', '', 'give either urdf: FILE or screws: LIST'),
    'URDF not there': ('urdf: arm.urdf', 'urdf: leg.urdf', "'leg.urdf' is neither in the folder"),
    'joint without gain': ('shoulder: 10, ', '',
                           'drive_gains: no value for joint shoulder; give one for every joint'),
    'gain of no joint': ('elbow: 5}', 'elbow: 5, wrist: 2}',
                         'drive_gains: no joint wrist; the robot has shoulder, elbow'),
    'gain of a word': ('elbow: 5}', 'elbow: big}', 'drive_gains: elbow must be a finite number'),
    'gain infinite': ('elbow: 5}', 'elbow: .inf}', 'drive_gains: elbow must be a finite number'),
    'gains as list': ('drive_gains: {shoulder: 10, elbow: 5}', 'drive_gains: [10, 5]',
                      'drive_gains must be a mapping of names to values, is [10, 5]'),
    'current without gains': ('drive_gains: {shoulder: 10, elbow: 5}', '',
                              'effort kind current needs drive_gains [N m/A, joint side]'),
    'unknown effort kind': ('effort_kind: current', 'effort_kind: voltage',
                            "effort kind 'voltage': choose one of torque, current, gravity_comp"),
    'singular coupling': ('elbow: {shoulder: 1, elbow: 1}', 'elbow: {shoulder: 1}',
                          'coupling: the matrix is singular with the rows of elbow; correct'),
    'coupling of no joint': ('elbow: {shoulder: 1, elbow: 1}', 'wrist: {shoulder: 1, elbow: 1}',
                             'coupling: no joint wrist; the robot has'),
    'coupling to no joint': ('elbow: {shoulder: 1, elbow: 1}', 'elbow: {wrist: 1}',
                             'coupling: elbow: no joint wrist; the robot has'),
    'two gravities': ('[0, 9.81, 0]', '[0, 9.81]', 'gravity [m/s^2] must be a list of 3 finite'),
    'gravity a number': ('[0, 9.81, 0]', '9.81', 'gravity [m/s^2] must be a list of 3 finite'),
    'gravity of words': ('[0, 9.81, 0]', '[a, b, c]', 'gravity [m/s^2] must be a list of 3'),
    'gravity not a number': ('[0, 9.81, 0]', '[0, .nan, 0]', 'gravity [m/s^2] must be a list'),
    'limit of no joint': ('limits: {elbow:', 'limits: {wrist:', 'limits: no joint wrist; the rob'),
    'unknown limit': ('acceleration: 4', 'snap: 4',
                      "limits of elbow: unknown key 'snap'; use position, velocity, accel"),
    'limits crossed': ('[-2, 2]', '[2, -2]', 'limits of elbow: position: 2 is not below -2'),
    'one limit': ('[-2, 2]', '[2]', 'limits of elbow: position must be a list of 2 finite'),
    'limit negative': ('acceleration: 4', 'acceleration: -4',
                       'limits of elbow: acceleration must be positive, is -4'),
    'limits a number': ('limits: {elbow: {position: [-2, 2], acceleration: 4}}', 'limits: 3',
                        'limits must be a mapping of names to values, is 3'),
    'joints a word': ('urdf: arm.urdf', 'urdf: arm.urdf\njoints: elbow',
                      "joints must be a list of joint names, is 'elbow'"),
    'joints unknown': ('urdf: arm.urdf', 'urdf: arm.urdf\njoints: [wrist]',
                       "no movable joint wrist below 'base'; there are shoulder, elbow"),
    'not YAML': ('urdf: arm.urdf', 'urdf: [arm.urdf', 'not valid YAML: line 3'),
    'a list': (SETTINGS, '- 1\n- 2\n', 'expected a mapping of keys to values'),
    'empty': (SETTINGS, '', 'expected a mapping of keys to values'),
}


@pytest.mark.parametrize('case', BAD_SETTINGS)
def test_bad_robot_file_is_refused(tmp_path: Path, case: str) -> None:
    old, new, message = BAD_SETTINGS[case]
    assert old in SETTINGS
    path = settings_file(tmp_path, SETTINGS.replace(old, new, 1))
    with pytest.raises(DynIdError, match=re.escape(message)) as caught:
        load_robot(path)
    assert str(tmp_path) in str(caught.value)


@pytest.mark.parametrize('name', own_robots())
def test_robots_that_come_with_the_package_are_complete(name: str) -> None:
    robot = load_robot(name)
    assert robot.name == name
    assert robot.warnings == ()
    assert np.all(robot.nominal[:, 0] > 0.0)
    for known in (robot.limits.velocity, robot.limits.acceleration, robot.limits.effort):
        assert np.all(known > 0.0)
    assert np.all(robot.limits.lower < robot.limits.upper)
    joint_name = robot.joints[0]
    assert robot.index(joint_name) == 0
    with pytest.raises(UsageError, match=f"{name} has no joint 'knee'; it has {joint_name}"):
        robot.index('knee')


@pytest.mark.parametrize('form', ['urdf', 'screws', 'nameless'])
def test_a_name_of_a_file_that_is_no_text_is_a_name_in_text(tmp_path: Path, form: str) -> None:
    body = 'mass: 2, com: [0, 0, 0.1], inertia: {ixx: 0.1, iyy: 0.1, izz: 0.1}'
    path = tmp_path / f'arm\udcff.{"urdf" if form == "nameless" else "yaml"}'
    path.write_text({
        'urdf': 'urdf: planar_3r.urdf', 'nameless': ARM.replace(' name="arm"', ''),
        'screws': f'screws: [{{name: a, axis: [0, 0, 1], origin: [0, 0, 0], {body}}}]'}[form])
    robot = load_robot(path)
    assert robot.name == 'arm\\udcff'
    Description(robot).to_urdf().facts()
    assert Description(robot).to_mjcf().model() is not None
