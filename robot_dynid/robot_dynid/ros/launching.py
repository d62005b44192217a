"""Shared parts of the launch files: their arguments, the nodes of the package, RViz.

Only `ros2 launch` imports this; `launch` and `launch_ros` come with a ROS of the system.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from difflib import get_close_matches
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from ament_index_python.packages import (
    PackageNotFoundError,
    get_package_prefix,
    get_package_share_directory,
)
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from robot_dynid.errors import DynIdError
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import source_text

PACKAGE = 'robot_dynid'
#: s from SIGINT to SIGTERM and from there to SIGKILL: to stop the robot, to bring recordings to a
#: disk, to close them
ENDING = '20'
RESPAWN_DELAY = 2.0  # s
#: arguments that are parameters of the nodes that have them
PARAMETERS: dict[str, tuple[type, str]] = {
    'robot': (str, 'name in config/robots, robot YAML, URDF, xacro file, topic robot_description'),
    'controller': (str, 'name of the joint_trajectory_controller'),
    'model': (str, 'model file to serve from the start'),
    'recording_directory': (str, 'folder that receives one bag per recording'),
    'real_time_factor': (float, 'simulated seconds per second'),
    'setpoints': (str, 'topic controller_state whose output the simulated drives follow'),
}
OF_NODE = {
    'simulated_robot': ('robot', 'controller', 'real_time_factor', 'setpoints'),
    'excitation': ('robot', 'controller', 'recording_directory'),
    'identifier': ('robot', 'model', 'recording_directory'),
}
#: parameters that nodes know by another name
NAMES = {('simulated_robot', 'controller'): 'controller_name'}
#: arguments that name topics, which take the place of the nodes' relative names
TOPICS = {
    'joint_states': 'topic of the joint states',
    'motor_states': 'topic of the motor states',
    'effort': 'topic of the efforts (JointState) that replace those of the joint states',
    'emergency_stop': 'topic of the emergency stop (std_msgs/Bool)',
}
TOPICS_OF_NODE = {
    'simulated_robot': ('joint_states', 'motor_states'),
    'excitation': tuple(TOPICS),
    'identifier': ('joint_states', 'motor_states', 'effort'),
}
#: nodes that follow /clock; the simulated robot gives it
FOLLOWING = ('excitation', 'identifier')
#: further arguments, which only some of the files have
OF_FILES = ('parameters', 'use_sim_time', *TOPICS)
#: arguments of `ros2 launch` itself, which it passes on as those of the file
OF_LAUNCH = ('launch-prefix', 'launch-prefix-filter', 'emulate_tty')
BOOL = ('true', 'false', 'True', 'False')
LEVELS = ('debug', 'info', 'warn', 'error', 'fatal')
#: similarity from which on the names of two arguments count as similar
SIMILAR = 0.75
AS_IN_FILE = 'empty: as in the parameter file'
#: arguments of RViz and robot_state_publisher, which serve one robot only
RELATIVE_TF = [('/tf', 'tf'), ('/tf_static', 'tf_static')]


def description(*names: str, robot: str = '') -> LaunchDescription:
    """Return the launch description of nodes of the package; ``robot`` if none is given.

    A single node also has the argument parameters. Defaults that differ between the files are
    empty and filled in by `_start`: if one file includes two of them, the second has the defaults
    that the first declared.
    """
    declared = declare_arguments(names, robot)
    valid = tuple(argument.name for argument in declared)
    return LaunchDescription([
        *declared, OpaqueFunction(function=partial(mistyped, valid=valid)),
        OpaqueFunction(function=partial(_start, names=names, valid=valid, robot=robot))])


def declare_arguments(names: tuple[str, ...], robot: str = '') -> list[DeclareLaunchArgument]:
    """Return the arguments of a launch file that starts the nodes ``names``."""
    taken = dict.fromkeys(argument for name in names for argument in OF_NODE[name])
    topics = dict.fromkeys(topic for name in names for topic in TOPICS_OF_NODE[name])
    declared = [
        *(launch_argument(name, f'{PARAMETERS[name][1]}; '
                          + (f'empty: {robot}' if robot and name == 'robot' else AS_IN_FILE))
          for name in taken),
        launch_argument('namespace', 'of nodes and topics, for more than one robot'),
        launch_argument('log_level', 'of the nodes', 'info', choices=LEVELS),
        launch_argument('rviz', 'true: start RViz with config/robot_dynid.rviz', 'false', BOOL),
        launch_argument('respawn', 'true: start again a node that has died', 'false', BOOL),
        *(launch_argument(topic, TOPICS[topic], topic) for topic in topics),
    ]
    if set(names) & set(FOLLOWING):
        declared.append(launch_argument(
            'use_sim_time', f'true: stamps follow /clock; {AS_IN_FILE}', choices=('', *BOOL)))
    if len(names) == 1:
        declared.append(launch_argument(
            'parameters', f'parameter file of the node; empty: {config(*names)}'))
    return declared


def launch_argument(
    name: str, text: str, default: str = '', choices: Iterable[str] | None = None
) -> DeclareLaunchArgument:
    return DeclareLaunchArgument(name, default_value=default, description=text,
                                 choices=None if choices is None else list(choices))


def config(name: str) -> str:
    """Return the path of a parameter file of the package."""
    return f'{get_package_share_directory(PACKAGE)}/config/{name}.yaml'


def mistyped(context: LaunchContext, valid: tuple[str, ...]) -> list[LogInfo]:
    """Return a warning for each argument that is misspelt or has no effect.

    In an included file, all names that are not misspelt are those of the including file, as is a
    name that contains one of ``known`` as a word (robot_ip). If a file is launched itself,
    RuntimeError ends the launch for a misspelt name and for an argument of another of the files.
    """
    given = [name for name in context.launch_configurations if name not in (*valid, *OF_LAUNCH)]
    near = {name: get_close_matches(name, valid, 1, SIMILAR) for name in given
            if not any(f'_{argument}_' in f'_{name}_' for argument in valid)}
    hints = {name: f' (did you mean {near[name][0]}?)' if near.get(name) else '' for name in given}
    file = Path(context.get_locals_as_dict().get('current_launch_file_path', ''))
    launched = any((last, word) == (PACKAGE, file.name) or Path(word).resolve() == file.resolve()
                   for last, word in pairwise(sys.argv))
    wrong = [name for name in given if hints[name] or name in (*PARAMETERS, *OF_FILES)]
    if launched and wrong:
        raise RuntimeError(f'{file.name} has no argument ' + ', '.join(
            f'{name!r}{hints[name]}' for name in wrong) + f'; it has {", ".join(valid)}')
    return [LogInfo(msg=f"no argument '{name}'{hints[name]}: it changes nothing; -s lists the "
                        'arguments') for name in given if launched or hints[name]]


def _start(context: LaunchContext, names: Iterable[str], valid: Iterable[str], robot: str
           ) -> list[Any]:
    """Return the nodes and RViz; of the arguments only those that this file has."""
    given = {name: context.launch_configurations[name] for name in valid}
    given['robot'] = given['robot'] or robot
    check_arguments(given)
    return [*nodes(given, names), *rviz(given, simulated='simulated_robot' in names)]


def nodes(given: dict[str, str], names: Iterable[str]) -> list[Node]:
    """Return the nodes; only arguments that were given override the parameter file."""
    return [_node(
        name, package=PACKAGE, namespace=given['namespace'],
        parameters=[given.get('parameters') or config(name), _overrides(given, name)],
        remappings=[(topic, given[topic]) for topic in TOPICS_OF_NODE[name]
                    if given[topic] != topic],
        ros_arguments=['--log-level', given['log_level']],
        respawn=given['respawn'].lower() == 'true', respawn_delay=RESPAWN_DELAY,
    ) for name in names]


def check_arguments(given: dict[str, str]) -> None:
    """Raise RuntimeError, which ends the launch, for a missing file or an invalid number."""
    file = given.get('parameters', '')
    if file and not Path(file).is_file():  # else the node runs with the guards' defaults
        raise RuntimeError(f'argument parameters: no file {file!r}; its path is relative to the '
                           'folder of `ros2 launch`')
    for argument, (kind, _) in PARAMETERS.items():
        try:
            kind(given.get(argument) or 0)
        except ValueError:
            raise RuntimeError(f'argument {argument}: {given[argument]!r} is no number') from None


def _overrides(given: dict[str, str], name: str) -> dict[str, ParameterValue]:
    """Return the parameters of a node that arguments give."""
    kinds = {argument: PARAMETERS[argument][0] for argument in OF_NODE[name]}
    if name in FOLLOWING:
        kinds['use_sim_time'] = bool
    values = {NAMES.get((name, argument), argument): ParameterValue(
                  given[argument].lower() == 'true' if kind is bool else kind(given[argument]),
                  value_type=kind)
              for argument, kind in kinds.items() if given.get(argument)}
    if name == 'identifier' and given['effort'] != 'effort':
        values['optional_topics'] = ParameterValue(['effort'], value_type=list[str])
    return values


def _node(name: str, **words: Any) -> Node:
    return Node(executable=name, name=name, output='screen', sigterm_timeout=ENDING,
                sigkill_timeout=ENDING, **words)


def rviz(given: dict[str, str], simulated: bool) -> list[Any]:
    """Return RViz and, for a simulated robot, robot_state_publisher, if installed.

    A real robot has a publisher already.
    """
    if given['rviz'].lower() != 'true':
        return []
    missing = [name for name in ('rviz2', 'robot_state_publisher') if not installed(name)]
    actions: list[Any] = [LogInfo(msg=f'{name} is not installed and not started: apt install '
                                  f'ros-$ROS_DISTRO-{name.replace("_", "-")}') for name in missing]
    namespace, frame = given['namespace'], []
    try:
        robot: RobotModel | None = load_robot(given['robot']) if given.get('robot') else None
        frame = ['-f', robot.base_link] if robot is not None else []
        text = source_text(robot) if robot is not None and simulated else ''
    except DynIdError as error:
        text = ''
        actions.append(LogInfo(msg=f'RViz shows no robot model: {error}'))
    if text and 'robot_state_publisher' not in missing:
        actions.append(_node(
            'robot_state_publisher', package='robot_state_publisher', namespace=namespace,
            parameters=[{'robot_description': ParameterValue(text, value_type=str)}],
            remappings=RELATIVE_TF))
    if 'rviz2' not in missing:
        config = f'{get_package_share_directory(PACKAGE)}/config/robot_dynid.rviz'
        actions.append(_node('rviz2', package='rviz2', namespace=namespace,
                             arguments=['-d', config, *frame], remappings=RELATIVE_TF))
    return actions


def installed(package: str) -> bool:
    """Return True if ament finds the ROS package."""
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True
