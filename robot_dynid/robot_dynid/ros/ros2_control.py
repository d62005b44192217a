"""A robot for ros2_control: the hardware in its URDF, and the parameters of its controllers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import SubElement, fromstring, tostring

from robot_dynid.errors import UsageError
from robot_dynid.files import read_text
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.urdf import source_text
from robot_dynid.simulation.simulator import start_position
from robot_dynid.yaml_text import load_yaml

#: hardware that bringup.launch.py offers: plugin, state interfaces
HARDWARE = {
    'mock': ('mock_components/GenericSystem', ('position', 'velocity')),
    'mujoco': ('mujoco_ros2_control/MujocoSystemInterface', ('position', 'velocity', 'effort')),
}
CONTROLLER = 'joint_trajectory_controller/JointTrajectoryController'
BROADCASTER = 'joint_state_broadcaster/JointStateBroadcaster'


def urdf_with_hardware(robot: RobotModel, hardware: str, parameters: Mapping[str, str]) -> str:
    """Return the URDF text of ``robot`` with one <ros2_control> block for all its joints.

    ``hardware`` is a key of HARDWARE, ``parameters`` are those of its plugin. Joints take
    positions. A block of the URDF itself, which may be that of the real arm, is removed.
    """
    plugin, states = HARDWARE[hardware]
    root = fromstring(source_text(robot))
    for block in root.findall('ros2_control'):
        root.remove(block)
    block = SubElement(root, 'ros2_control', name=f'{robot.name}_{hardware}', type='system')
    system = SubElement(block, 'hardware')
    SubElement(system, 'plugin').text = plugin
    for name, value in parameters.items():
        SubElement(system, 'param', name=name).text = value
    for name, position in zip(robot.joints, start_position(robot), strict=True):
        joint = SubElement(block, 'joint', name=name)
        SubElement(joint, 'command_interface', name='position')
        for state in states:
            interface = SubElement(joint, 'state_interface', name=state)
            if state == 'position':
                SubElement(interface, 'param', name='initial_value').text = repr(float(position))
    return tostring(root, encoding='unicode')


def controller_parameters(path: Path, robot: RobotModel, hardware: str) -> dict[str, Any]:
    """Return the parameters of the controllers in a file, completed with the joints of ``robot``.

    Trajectory controllers without joints move all of the robot. Mock hardware mirrors the
    commands, so its broadcaster publishes on ~/joint_states and leaves joint_states to the
    simulated arm. MuJoCo's cycles are longer than stated on a busy computer, so commands are not
    limited there to what a stated one allows: the arm would lag without end. Raises UsageError if
    the file has no controller manager.
    """
    parameters = load_yaml(read_text(path), str(path), UsageError)
    if not isinstance(parameters, dict) or 'controller_manager' not in parameters:
        raise UsageError(f'{path}: no controller_manager; see config/controllers.yaml')
    if hardware == 'mujoco':
        parameters['controller_manager'].setdefault('ros__parameters', {}).setdefault(
            'enforce_command_limits', False)
    for node in parameters.values():
        settings = node.get('ros__parameters', {})
        if settings.get('type') == CONTROLLER:
            settings.setdefault('joints', list(robot.joints))
        if settings.get('type') == BROADCASTER and hardware == 'mock':
            settings['use_local_topics'] = True
    return parameters
