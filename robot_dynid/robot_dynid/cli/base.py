"""`robot-dynid base`: the minimal parameter set of a robot."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import add_common
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.effects import Effect
    from robot_dynid.reduction.identifiability import Category
    from robot_dynid.robot.model import RobotModel

COMPOSITE = 'composite'
NAMES = {'method': ('numeric', 'analytic', COMPOSITE)}
HELP = 'print the base parameters: the minimal set that motion can identify'
EXAMPLES = (
    'robot-dynid base ur10e',
    'robot-dynid base my_arm.yaml --friction --rotor-inertia',
    'robot-dynid base puma560 --method composite',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_common(parser, 'robot')
    parser.add_argument('--method', default='numeric', metavar='METHOD',
                        help='numeric: by the rank of the regressor (default); analytic: by the '
                             'axes of the joints; composite: as inertia constants of composite '
                             'bodies')
    parser.add_argument('--rotor-inertia', action='store_true',
                        help='add the rotor inertia of every motor (elastic joints '
                             'have it anyway)')
    parser.add_argument('--friction', action='store_true',
                        help='add viscous and Coulomb friction and an offset per joint')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Reduce the robot's standard parameters."""
    from robot_dynid.reduction import METHODS
    from robot_dynid.reduction.identifiability import with_advice
    from robot_dynid.robot.robot_file import load_robot

    methods = {**METHODS, COMPOSITE: METHODS['analytic']}
    if arguments.method not in methods:
        raise UsageError(f'method {arguments.method!r}: choose one of {", ".join(methods)}')
    started = time.perf_counter()
    robot = load_robot(arguments.robot)
    blocks = _blocks(robot, arguments)
    reduction = methods[arguments.method](robot, blocks)
    advice = with_advice(robot, blocks, reduction)
    return {
        'robot': robot.name, 'method': arguments.method, 'joints': robot.joints,
        'standard': len(reduction.standard), 'base': len(reduction.pivots),
        'kept': reduction.names, 'labels': reduction.labels, 'gap': reduction.gap,
        'categories': {name: one.plain() for name, one in advice.items()},
        'constants': _constants(robot) if arguments.method == COMPOSITE else [],
        'further': _sensor_configurations(advice),
        'warnings': robot.warnings + reduction.warnings, 'seconds': time.perf_counter() - started,
    }


def _blocks(robot: RobotModel, arguments: argparse.Namespace) -> tuple[Effect, ...]:
    from robot_dynid.effects import JointFriction, axes_of, frictionless_blocks
    from robot_dynid.friction import Coulomb

    blocks = frictionless_blocks(robot, arguments.rotor_inertia)
    if not arguments.friction:
        return blocks
    axes = axes_of(robot)
    return (*blocks, JointFriction(axes, tuple(Coulomb() for _ in axes.labels)))


def _constants(robot: RobotModel) -> list[dict[str, Any]]:
    """Return the inertia constants of composite bodies, their values those of nominal links."""
    from robot_dynid.reduction.analytic import inertia_constants

    table = inertia_constants(robot)
    return [{'name': name, 'body': robot.joints[j], 'combination': label, 'nominal': value,
             'coefficients': {table.standard[i]: float(row[i]) for i in row.nonzero()[0]}}
            for name, j, label, value, row in zip(
                table.names, table.joints.tolist(), table.labels, table.values(robot).tolist(),
                table.rows, strict=True)]


def _sensor_configurations(found: Mapping[str, Category]) -> list[dict[str, Any]]:
    """Return for each sensor configuration the parameters it makes identifiable."""
    from robot_dynid.reduction.identifiability import DEPENDENT, INDEPENDENT, lifted_by
    from robot_dynid.reduction.sensor_configurations import SENSOR_CONFIGURATIONS

    return [{'measurement': key, 'words': SENSOR_CONFIGURATIONS[key].words,
             'tells_apart': lifted[INDEPENDENT], 'shows_combined': lifted[DEPENDENT]}
            for key, lifted in lifted_by(found).items() if all(
                one.tried for one in found.values())]


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the parameters as combinations."""
    terminal.line(f'{result["robot"]}: {len(result["joints"])} joints, {result["standard"]} '
                  f'standard parameters, {result["base"]} base parameters', style='bold')
    terminal.line('rank counted from the axes' if math.isinf(result['gap']) else
                  f'the singular values drop at the rank by a factor of {result["gap"]:.1g}')
    if result['constants']:
        terminal.table('inertia constants of composite bodies: a link with all that it carries', (
            'constant', 'body from', 'nominal', 'combination'), (
            (one['name'], one['body'], one['nominal'], one['combination'])
            for one in result['constants']))
        terminal.line('m^ mass, k first moment, U inertia about the origin of the link, z along '
                      'its joint: the constant part of the link and all that it carries; nominal: '
                      'from the robot description', style='dim')
    else:
        terminal.table('', ('base parameter', 'combination'),
                       zip(result['kept'], result['labels']))
    if not terminal.verbose:
        terminal.line('which parameters the motion can identify, and with which sensors: '
                      '--verbose', 'dim')
        terminal.warnings(result['warnings'])
        return
    terminal.table('', ('parameter', 'category', 'in', 'sensor configuration'), (
        (name, one['category'], ', '.join(one.get('in', ())), one.get('advice', ''))
        for name, one in result['categories'].items()))
    if result['further']:
        terminal.table('', ('sensor configuration', 'identifiable alone', 'in combinations'), (
            (more['words'], ', '.join(more['tells_apart']) or 'none',
             ', '.join(more['shows_combined']) or 'none') for more in result['further']))
    terminal.warnings(result['warnings'])
