"""`robot-dynid doctor`: what is wrong with an installation, and with a running robot."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.setting_up.diagnosis import Diagnosis

HELP = 'check the installation and, with --robot, the topics of a running robot'
EXAMPLES = (
    'robot-dynid doctor',
    'robot-dynid doctor --robot ur10e --seconds 10',
)
TOPIC, CONTROLLER, SECONDS_WATCHED = 'joint_states', 'joint_trajectory_controller', 3.0
STYLES = {'ok': 'green', 'warning': 'yellow', 'error': 'red'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = ('Examples: `robot-dynid doctor`, without a robot and without ROS; '
                     '`robot-dynid doctor --robot my_arm.yaml` while the driver runs, best while '
                     'the robot moves. Exit code 1 where something is an error.')
    parser.add_argument('--robot', metavar='ROBOT',
                        help='name, URDF file or robot YAML of the robot that runs')
    parser.add_argument('--topic', default=TOPIC, metavar='NAME',
                        help=f'topic with the joint states (default {TOPIC})')
    parser.add_argument('--controller', default=CONTROLLER, metavar='NAME',
                        help=f'name of the controller that moves it (default {CONTROLLER})')
    parser.add_argument('--seconds', type=float, default=SECONDS_WATCHED, metavar='S',
                        help=f'how long to watch [s] (default {SECONDS_WATCHED:g})')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Look at everything, in the order in which faults hide others."""
    from robot_dynid.numbers import NumberRange
    from robot_dynid.setting_up.diagnosis import ERROR, verdict

    NumberRange(0.5, 600.0, 's').read(arguments.seconds, "option 'seconds'")
    robot = None
    if arguments.robot is not None:
        from robot_dynid.robot.robot_file import load_robot

        robot = load_robot(arguments.robot)
    found = environment(needs_ros=robot is not None)
    if robot is not None and not any(one.level is ERROR and one.name in FIRST for one in found):
        found += live(robot, arguments)
    return {'ok': not any(one.level is ERROR for one in found), 'message': verdict(found),
            'diagnoses': [one.plain() for one in found]}


#: what must be right before a running robot can be looked at
FIRST = ('ros', 'dds', 'middleware', 'domain', 'discovery', 'profile', 'shared memory',
         'multicast', 'numpy', 'numba', 'scipy')


def environment(needs_ros: bool) -> list[Diagnosis]:
    """Return the diagnoses of this installation."""
    import os
    from pathlib import Path

    from robot_dynid.setting_up import environment as own
    from robot_dynid.setting_up.diagnosis import OK
    from robot_dynid.setting_up.middleware import dds_diagnoses, surroundings

    ros = own.ros_diagnosis(os.environ, needs_ros)
    found = [*own.libraries(), own.kernels(), own.disk_diagnosis(Path('recordings')), ros]
    if ros.level is not OK:
        return found
    from robot_dynid.ros.doctor.talk import talk

    said = talk()
    return [*found, *dds_diagnoses(os.environ, said, surroundings())]


def live(robot: Any, arguments: argparse.Namespace) -> list[Diagnosis]:
    """Return the diagnoses of the running system of a robot."""
    from robot_dynid.ros.doctor.live_system import Watched, observed
    from robot_dynid.setting_up.live import live_diagnoses

    watched = Watched(arguments.topic, arguments.controller, arguments.seconds)
    return live_diagnoses(robot, observed(robot, watched))


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print what was found, and a summary."""
    show_diagnoses(result['diagnoses'], terminal)
    terminal.line(result['message'])


def show_diagnoses(diagnoses: Iterable[Mapping[str, str]], terminal: Terminal) -> None:
    """Print diagnoses, a line each, and under it what to do."""
    for one in diagnoses:
        terminal.line(f'{one["level"]:8} {one["name"]} ({one["where"]}): {one["what"]}',
                      STYLES[one['level']])
        if one['remedy']:
            terminal.line(f'{"":8} -> {one["remedy"]}')
