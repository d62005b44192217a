"""What bringup.launch.py hands ros2_control: hardware in the URDF, parameters of controllers."""

from __future__ import annotations

from pathlib import Path
from xml.etree.ElementTree import fromstring

import numpy as np
import pytest

from robot_dynid import UsageError, load_robot
from robot_dynid.ros.ros2_control import controller_parameters, urdf_with_hardware

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / 'robot_dynid'
TEMPLATE = PACKAGE / 'config' / 'controllers.yaml'


def test_urdf_with_hardware_gives_all_joints_position_commands() -> None:
    robot = load_robot('ur10e')
    root = fromstring(urdf_with_hardware(robot, 'mujoco', {'mujoco_model': 'arm.xml'}))
    (block,) = root.findall('ros2_control')
    assert block.findtext('hardware/plugin') == 'mujoco_ros2_control/MujocoSystemInterface'
    assert [(p.get('name'), p.text) for p in block.findall('hardware/param')] == [
        ('mujoco_model', 'arm.xml')]
    assert [joint.get('name') for joint in block.findall('joint')] == list(robot.joints)
    for joint in block.findall('joint'):
        assert [c.get('name') for c in joint.findall('command_interface')] == ['position']
        assert [s.get('name') for s in joint.findall('state_interface')] == [
            'position', 'velocity', 'effort']


def test_hardware_starts_inside_the_limits_and_real_hardware_is_left_out(tmp_path: Path) -> None:
    text = (ROOT / 'examples' / 'arm.urdf').read_text().replace(
        'lower="-1.8" upper="1.8"', 'lower="0.5" upper="1.5"').replace(
        '</robot>', '<ros2_control name="real" type="system"><hardware><plugin>real/Arm</plugin>'
        '</hardware></ros2_control></robot>')
    path = tmp_path / 'arm.urdf'
    path.write_text(text)
    root = fromstring(urdf_with_hardware(load_robot(path), 'mock', {}))
    (block,) = root.findall('ros2_control')
    assert block.findtext('hardware/plugin') == 'mock_components/GenericSystem'
    starts = [float(p.text or '') for p in block.findall('joint/state_interface/param')]
    np.testing.assert_array_equal(starts, [0.0, 1.0, 0.0])


def test_controllers_move_the_joints_of_the_robot_unless_the_file_names_some(
    tmp_path: Path
) -> None:
    robot = load_robot('planar_3r')
    parameters = controller_parameters(TEMPLATE, robot, 'mock')
    arm = parameters['joint_trajectory_controller']['ros__parameters']
    assert arm['joints'] == list(robot.joints)
    assert 'enforce_command_limits' not in parameters['controller_manager']['ros__parameters']
    states = parameters['joint_state_broadcaster']['ros__parameters']
    assert 'joints' not in states and states['use_local_topics'] is True
    path = tmp_path / 'controllers.yaml'
    path.write_text(TEMPLATE.read_text().replace('# joints: [...]', 'joints: [joint_2]'))
    parameters = controller_parameters(path, robot, 'mujoco')
    assert parameters['joint_trajectory_controller']['ros__parameters']['joints'] == ['joint_2']
    assert 'use_local_topics' not in parameters['joint_state_broadcaster']['ros__parameters']
    manager = parameters['controller_manager']['ros__parameters']
    assert manager['enforce_command_limits'] is False  # cycles are longer than stated there
    path.write_text('joint_trajectory_controller: {}\n')
    with pytest.raises(UsageError, match='no controller_manager'):
        controller_parameters(path, robot, 'mock')
