"""`robot-dynid resonance`: stiffness of gears whose links have no encoder. Experimental."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import SOURCES, add_common, load_logs, of_recordings
from robot_dynid.document import number

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'find the stiffness of a gear by its resonance (experimental)'
EXAMPLES = (
    'robot-dynid resonance chirp.csv --robot my_arm.yaml --joint joint_2 --band 2 40',
)
UNITS = {'J': 'kg m^2, rotor', 'M': 'kg m^2, what the joint carries in this pose',
         'K': 'N m/rad, stiffness', 'D': 'N m s/rad, damping', 'f': 'N m s/rad, viscous friction'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('data', metavar='DATA', help='recording in which the joint is shaken '
                        '(many sines or a chirp) while it turns, and the others hold still')
    parser.add_argument('--robot', required=True, help='name, URDF file or robot YAML')
    add_common(parser, *SOURCES)
    parser.add_argument('--joint', required=True, metavar='NAME', help='the joint that moves')
    parser.add_argument('--band', nargs=2, type=float, metavar=('LOW', 'HIGH'),
                        help='frequencies [Hz] that are excited; default: where the motion stands '
                             'out of its noise')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Read the recording, estimate the frequency response, fit two masses."""
    from robot_dynid.robot.robot_file import load_robot
    from robot_dynid_extras.resonance.two_masses import motor_resonance

    started = time.perf_counter()
    robot = load_robot(arguments.robot)
    with terminal.progress('resonance') as progress:
        (log,) = load_logs(
            [arguments.data], of_recordings(robot, arguments), progress).uncut(
            'the frequency response')
    found, warnings = motor_resonance(robot, log, arguments.joint, arguments.band)
    return {
        'robot': robot.name, 'joint': arguments.joint, 'experimental': True,
        'parameters': {name: {'value': value, 'low': low, 'high': high}
                       for name, (value, low, high) in found.parameters.items()},
        'antiresonance': found.antiresonance, 'resonance': found.resonance, 'band': found.band,
        'frequencies': found.frequencies, 'misfit': found.misfit, 'warnings': warnings,
        'seconds': time.perf_counter() - started}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the parameters with their intervals."""
    terminal.table(f'{result["joint"]}: two masses (experimental)',
                   ('parameter', 'value', '95 % from', 'to', 'unit'),
                   ((name, one['value'], one['low'], one['high'], UNITS[name])
                    for name, one in result['parameters'].items()))
    low, high = result['band']
    terminal.facts((('antiresonance', f'{number(result["antiresonance"])} Hz'),
                    ('resonance', f'{number(result["resonance"])} Hz'),
                    ('from', f'{result["frequencies"]} frequencies, {number(low, 3)} to '
                             f'{number(high, 3)} Hz'),
                    ('misfit', f'{number(result["misfit"], 3)} of its deviation')))
    terminal.warnings(result['warnings'])
