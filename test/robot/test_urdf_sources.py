"""robot/urdf.py: URDF that is written with xacro, and URDF that a robot YAML leaves to a topic."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from robot_dynid.errors import MissingDependency, RobotError
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import source_text

MASSES = '<xacro:property name="mass" value="{}"/>'
ARM = ('<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">' + MASSES + '<link '
       'name="base"/><joint name="j" type="revolute"><parent link="base"/><child link="link"/>'
       '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="5" velocity="2"/></joint><link '
       'name="link"><inertial><mass value="${{2*mass}}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" '
       'ixz="0" iyz="0"/></inertial></link></robot>')


@pytest.fixture
def arm(tmp_path: Path) -> Path:
    path = tmp_path / 'arm.urdf.xacro'
    path.write_text(ARM.format(1.5))
    return path


def test_xacro_is_expanded(arm: Path) -> None:
    robot = load_robot(arm)
    assert robot.joints == ('j',) and robot.nominal.ravel()[0] == 3.0
    assert '${' not in source_text(robot)
    own = arm.with_name('own.yaml')
    own.write_text('{urdf: arm.urdf.xacro, effort_kind: torque}')
    described = load_robot(own)
    assert described.drive.kind == 'torque'
    np.testing.assert_array_equal(described.nominal, robot.nominal)


def test_load_robot_reports_what_xacro_cannot_expand(
    arm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arm.write_text(ARM.format(1.5).replace('2*mass', '2*mess'))
    with pytest.raises(RobotError, match=r'arm.urdf.xacro: xacro cannot expand it: .*mess'):
        load_robot(arm)
    monkeypatch.setitem(sys.modules, 'xacro', None)
    with pytest.raises(MissingDependency, match=r'xacro is not installed: .*pip install xacro'):
        load_robot(arm)


def test_a_robot_yaml_may_leave_its_urdf_to_a_topic(arm: Path) -> None:
    own = arm.with_name('own.yaml')
    own.write_text('{urdf: {topic: /cell1/robot_description}, effort_kind: torque}')
    asked = []
    robot = load_robot(own, lambda topic: asked.append(topic) or arm)
    assert asked == ['/cell1/robot_description'] and robot.joints == ('j',)
    with pytest.raises(RobotError, match='which only nodes read; save it to a file'):
        load_robot(own)
    for wrong in ('{}', '{topic: 3}', '{topic: a, file: b}'):
        own.write_text(f'{{urdf: {wrong}, effort_kind: torque}}')
        with pytest.raises(RobotError, match=r'urdf must be a file, or {topic:'):
            load_robot(own, lambda topic: arm)
