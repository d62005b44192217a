"""Nodes of bringup.launch.py: ros2_control with its controllers before a simulated arm.

Only `ros2 launch` imports this; `launch` and `launch_ros` come with a ROS of the system.
"""

from __future__ import annotations

import atexit
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from launch import LaunchContext, LaunchDescription
from launch.actions import OpaqueFunction, Shutdown
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from robot_dynid.errors import DynIdError
from robot_dynid.files import atomic_write
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.ros.launching import (
    RELATIVE_TF,
    check_arguments,
    config,
    declare_arguments,
    installed,
    launch_argument,
    mistyped,
    nodes,
    rviz,
)
from robot_dynid.ros.ros2_control import HARDWARE, controller_parameters, urdf_with_hardware
from robot_dynid.simulation.truth import load_truth
from robot_dynid.yaml_text import yaml_text

CONTROLLERS = ('joint_state_broadcaster', 'joint_trajectory_controller')


def bringup(robot: str) -> LaunchDescription:
    """Return the launch description for ``robot`` unless another is given."""
    names = ('excitation', 'identifier')
    declared = [
        *declare_arguments(names, robot),
        launch_argument('hardware', 'mock: mock_components, the arm is the node simulated_robot; '
                 'mujoco: mujoco_ros2_control', 'mock', choices=tuple(HARDWARE)),
        launch_argument('controllers', 'parameter file of the controllers; empty: '
                 + config('controllers')),
    ]
    valid = tuple(entry.name for entry in declared)
    return LaunchDescription([
        *declared, OpaqueFunction(function=partial(mistyped, valid=valid)),
        OpaqueFunction(function=partial(_start, names=names, valid=valid, robot=robot))])


def _start(context: LaunchContext, names: tuple[str, ...], valid: tuple[str, ...], robot: str
           ) -> list[Any]:
    """Return all nodes; raises RuntimeError, which ends the launch, for what is missing."""
    given = {name: context.launch_configurations[name] for name in valid}
    given['robot'] = given['robot'] or robot
    check_arguments(given)
    hardware = given['hardware']
    wanted = ('controller_manager', *CONTROLLERS, 'robot_state_publisher',
              *(('mujoco_ros2_control',) if hardware == 'mujoco' else ()))
    if missing := [name for name in wanted if not installed(name)]:
        raise RuntimeError('not installed: apt install ' + ' '.join(
            f'ros-$ROS_DISTRO-{name.replace("_", "-")}' for name in missing))
    try:
        return [*_ros2_control(given), *_arm(given, names), *rviz(given, simulated=False)]
    except DynIdError as error:
        raise RuntimeError(str(error)) from None


def _arm(given: dict[str, str], names: tuple[str, ...]) -> list[Any]:
    """Return the nodes of the package, and with mock components a simulated arm.

    Mock components mirror commands and have no effort: drives and arm follow the output of the
    controller, and what they measure is on joint_states.
    """
    if given['hardware'] == 'mock':
        output = f'{given["controller"] or CONTROLLERS[-1]}/controller_state'
        return nodes({**given, 'setpoints': output}, ('simulated_robot', *names))
    return nodes({**given, 'use_sim_time': 'true'}, names)


def _ros2_control(given: dict[str, str]) -> list[Any]:
    """Return controller manager, spawner and robot_state_publisher."""
    folder = Path(mkdtemp(prefix='bringup_'))
    atexit.register(partial(rmtree, folder, ignore_errors=True))
    robot = load_robot(given['robot'])
    mujoco, namespace = given['hardware'] == 'mujoco', given['namespace']
    file = folder / 'controllers.yaml'
    content = controller_parameters(
        Path(given['controllers'] or config('controllers')), robot, given['hardware'])
    prefix = f'/{namespace.strip("/")}/' if namespace.strip('/') else ''
    atomic_write(file, yaml_text({prefix + name: value for name, value in content.items()}
                                 ).encode())
    description = {'robot_description': ParameterValue(urdf_with_hardware(
        robot, given['hardware'], _hardware_parameters(robot, mujoco, folder)), value_type=str)}
    clock = {'use_sim_time': mujoco}
    common = {'namespace': namespace, 'output': 'screen'}
    return [
        Node(package='robot_state_publisher', executable='robot_state_publisher',
             parameters=[description, clock], remappings=RELATIVE_TF, **common),
        Node(package='mujoco_ros2_control' if mujoco else 'controller_manager',
             executable='ros2_control_node', parameters=[str(file), clock],
             remappings=[('~/robot_description', 'robot_description')], on_exit=Shutdown(),
             **common),
        Node(package='controller_manager', executable='spawner', arguments=[
            *CONTROLLERS, '--param-file', str(file),
            '--controller-manager-timeout', '60'], **common),
    ]


def _hardware_parameters(robot: RobotModel, mujoco: bool, folder: Path) -> dict[str, str]:
    if not mujoco:
        return {'calculate_dynamics': 'true'}
    from robot_dynid.simulation.mujoco_model import servo_mjcf

    file = folder / 'arm.xml'
    atomic_write(file, servo_mjcf(robot, replace(load_truth(robot), drives={})).encode())
    return {'mujoco_model': str(file), 'headless': 'true'}
