"""`robot-dynid demo`: simulated robot, excitation, identification, service call over ROS 2."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from robot_dynid.document import number, percent

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'identify a simulated arm over ROS 2 and check the served model'
EXAMPLES = (
    'robot-dynid demo',
    'robot-dynid demo --robot planar_3r --excitation sine-sequence',
    'robot-dynid demo --seed 3 --out out/demo_3',
)

#: names of which an argument is one
NAMES = {'excitation': ('fourier', 'sine-sequence')}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('--robot', default='seven_axis', help='name or robot YAML (seven_axis)')
    parser.add_argument('--excitation', default='fourier',
                        help='one of fourier (default) and sine-sequence, identified in stages')
    parser.add_argument('--seed', type=int, default=0,
                        help='seed of excitation and noise (default 0)')
    parser.add_argument('--out', metavar='DIR', default='out/demo',
                        help='folder for model, report, recording, logs (default out/demo)')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Run all of it and compare with the truth."""
    from robot_dynid_evaluation.demo.story import run_demo

    return run_demo(arguments, terminal)


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print true and identified parameters, the two errors, and where everything is."""
    terminal.table(f'base parameters of {result["robot"]}',
                   ('name', 'true', 'identified', 'std', 'deviations', 'combination'), (
        (p['name'], p['true'], p['value'], number(p['std'], 2),
         f'{p["deviations"]:.1f}' if p['deviations'] is not None else '-', p['label'])
        for p in result['parameters']))
    gears = (
        ('gears', f'stiffness {percent(result["stiffness_error"])} % from the truth at worst'),
        ('motors', f'{percent(result["motor_dynamics_error"])} % RMS from MuJoCo, served with the '
                   'links'),
    ) if 'stiffness_error' in result else ()
    terminal.facts((
        ('parameters', f'{percent(result["parameters_error"])} % from the truth (norm), '
                       f'{percent(result["inside"])} % inside their 95 % interval'),
        ('acceleration', f'{percent(result["forward_dynamics_error"])} % RMS from MuJoCo on '
                         f'{result["states"]} random states, served in '
                         f'{1e3 * result["service_seconds"]:.1f} ms'),
        *gears, ('model', result['model']), ('report', result['report']),
        ('recording', result['recording']), ('logs', result['logs']),
        ('seconds', f'{result["seconds"]:.0f}'),
        ('verdict', ('' if result['ok'] else 'NOT ') + f'within {percent(result["bound"])} %'),
    ))
    terminal.warnings(result['warnings'])
    terminal.open_page(result['report'])
