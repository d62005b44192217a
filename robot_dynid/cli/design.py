"""`robot-dynid design`: an excitation trajectory within the robot's limits."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.files import check_writable
from robot_dynid.cli.terminal import number, percent
from robot_dynid.errors import DynIdError, UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.excitation.design import Design

HELP = 'design an excitation trajectory'
DEFAULT_RATE = 100.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('robot', metavar='ROBOT', help='name, URDF file or robot YAML')
    parser.add_argument('--type', default='fourier', help='fourier (default) or sine-sequence')
    parser.add_argument('--duration', type=float, help='length of the motion [s]')
    parser.add_argument('--harmonics', type=int, help='harmonics of a Fourier series')
    parser.add_argument('--periods', type=int,
                        help='periods of a Fourier series, or of every swing of a sine sequence')
    parser.add_argument('--procedure', help='of a sine sequence: distal-to-proximal (default) or '
                                            'body-by-body')
    parser.add_argument('--configurations', type=int,
                        help='of the locked joints per stage of a sine sequence, at most')
    parser.add_argument('--starts', type=int, help='random candidates to choose from')
    parser.add_argument('--rate', type=float, default=DEFAULT_RATE,
                        help='points per second it has to keep the limits with '
                             f'(default {DEFAULT_RATE:g})')
    parser.add_argument('--seed', type=int, help='of the random candidates (default 0)')
    parser.add_argument('--scale', type=float,
                        help='part of every limit that may be used (default 0.9)')
    parser.add_argument('--out', required=True, metavar='T.yaml', help='trajectory file to write')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Design the trajectory, check its points, write it."""
    from robot_dynid.excitation.design import design, parse_request
    from robot_dynid.excitation.judge import robot_judge
    from robot_dynid.io.trajectory_file import save_trajectory
    from robot_dynid.model.robot_file import load_robot

    started = time.perf_counter()
    options = {name: getattr(arguments, name)
               for name in ('duration', 'harmonics', 'periods', 'procedure', 'configurations',
                            'starts', 'seed', 'scale')
               if getattr(arguments, name) is not None}
    request = parse_request(arguments.type, options)
    if not 0.0 < arguments.rate < float('inf'):
        raise UsageError(f"option 'rate' must be positive, got {arguments.rate}")
    check_writable(arguments.out)
    robot = load_robot(arguments.robot)
    with terminal.progress('design') as progress:
        found = design(robot, request, robot_judge(robot, progress))
    _check_points(found, arguments.rate)
    save_trajectory(found.trajectory, arguments.out, robot.name)
    score = found.score
    return {
        'robot': robot.name, 'type': request.kind, 'out': arguments.out,
        'condition_number': score.condition_number if score else None,
        'log_det': score.log_det if score else None,
        'duration': found.trajectory.duration, 'limits': found.used,
        'stages': [vars(stage) for stage in found.stages], 'warnings': found.warnings,
        'seconds': time.perf_counter() - started,
    }


def _check_points(found: Design, rate: float) -> None:
    """Raise DynIdError when the points sent to a controller would leave the limits."""
    from robot_dynid.excitation.sampled import faults, sampled

    points = sampled(found.trajectory, rate)
    wrong = faults(points, found.limits, longest=float('inf'))
    if wrong:
        raise DynIdError('; '.join(wrong) + '; a higher --rate or a smaller --scale helps')


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print how well the motion excites, and what it uses of the limits."""
    terminal.facts((
        ('trajectory', f'{result["type"]}, {result["duration"]:g} s, written to {result["out"]}'),
        ('condition number', result['condition_number']), ('log det', result['log_det']),
    ))
    names = list(dict.fromkeys(name for used in result['limits'].values() for name in used))
    rows = [(joint, *(percent(used.get(name)) for name in names))
            for joint, used in result['limits'].items()]
    terminal.table('stages', ('stage', 'swings', 'condition', 'finds'), (
        (s['name'], s['swings'], number(s['condition_number']), ', '.join(s['solves']))
        for s in result['stages']))
    terminal.table('part of the limits used [%]', ('joint', *names), rows)
    terminal.warnings(result['warnings'])
