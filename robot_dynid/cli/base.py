"""`robot-dynid base`: the minimal parameter set of a robot."""

from __future__ import annotations

import argparse
import math
import time
from typing import TYPE_CHECKING, Any

from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.model.robot import RobotModel
    from robot_dynid.regressor import Block

HELP = 'print the minimal set of inertial parameters'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('robot', metavar='ROBOT', help='name, URDF file or robot YAML')
    parser.add_argument('--method', default='numeric', metavar='METHOD',
                        help='numeric: rank of the regressor (default); analytic: from the axes '
                             'alone, for the links of a chain')
    parser.add_argument('--rotor-inertia', action='store_true',
                        help='add the rotor inertia of every motor')
    parser.add_argument('--friction', action='store_true',
                        help='add viscous and Coulomb friction and an offset per joint')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Reduce the robot's standard parameters."""
    from robot_dynid.model.robot_file import load_robot
    from robot_dynid.reduction import METHODS

    if arguments.method not in METHODS:
        raise UsageError(f'method {arguments.method!r}: choose one of {", ".join(METHODS)}')
    started = time.perf_counter()
    robot = load_robot(arguments.robot)
    reduction = METHODS[arguments.method](robot, _blocks(robot, arguments))
    return {
        'robot': robot.name, 'method': arguments.method, 'joints': robot.joints,
        'standard': len(reduction.standard), 'base': len(reduction.kept),
        'kept': reduction.names, 'labels': reduction.labels, 'gap': reduction.gap,
        'warnings': robot.warnings + reduction.warnings, 'seconds': time.perf_counter() - started,
    }


def _blocks(robot: RobotModel, arguments: argparse.Namespace) -> tuple[Block, ...]:
    from robot_dynid.friction import Coulomb
    from robot_dynid.regressor import JointFriction, RigidLinks, RotorInertia, axes_of

    axes = axes_of(robot)
    blocks: list[Block] = [RigidLinks(robot)]
    if arguments.rotor_inertia:
        blocks.append(RotorInertia(axes))
    if arguments.friction:
        blocks.append(JointFriction(axes, tuple(Coulomb() for _ in axes.labels)))
    return tuple(blocks)


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the parameters as combinations."""
    terminal.line(f'{result["robot"]}: {len(result["joints"])} joints, {result["standard"]} '
                  f'standard parameters, {result["base"]} base parameters', style='bold')
    terminal.line('rank counted from the axes' if math.isinf(result['gap']) else
                  f'rank by the singular values, which fall by a factor of {result["gap"]:.1g}')
    terminal.table('', ('base parameter', 'combination'),
                   zip(result['kept'], result['labels']))
    terminal.warnings(result['warnings'])
