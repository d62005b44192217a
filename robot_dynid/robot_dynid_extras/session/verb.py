"""`robot-dynid session`: an adaptive session of swings, with a running excitation node."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.excite import add_node, node_name
from robot_dynid.cli.files import with_text
from robot_dynid.document import number, percent
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'let an excitation node move joint by joint until an accuracy is met'
EXAMPLES = (
    'robot-dynid session --accuracy 0.1',
    'robot-dynid session --longest 300 --data recordings/my_arm_2026-01-31',
)
DEFAULT_ACCURACY, DEFAULT_LONGEST = 0.1, 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('--accuracy', type=float, default=DEFAULT_ACCURACY,
                        help='required deviation of base parameters relative to nominal ones '
                             f'(default {DEFAULT_ACCURACY:g})')
    parser.add_argument('--longest', type=float, default=DEFAULT_LONGEST, metavar='S',
                        help=f'longest total time of the swings [s] (default {DEFAULT_LONGEST:g})')
    parser.add_argument('--swings', type=int, default=1,
                        help='swings to plan and execute at once (default 1)')
    parser.add_argument('--data', nargs='+', default=[], metavar='BAG',
                        help='recordings so far, in the files_directory of the node')
    parser.add_argument('--options', metavar='YAML',
                        help='further options of a sine sequence as YAML text or file')
    parser.add_argument('--yes', action='store_true',
                        help='execute without asking before every motion')
    add_node(parser)


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Go from swing to swing."""
    from robot_dynid.excitation.families import parse_request
    from robot_dynid.excitation.planned.sine_sequence import LONGEST

    node = node_name(arguments)
    longest = LONGEST.read(arguments.longest, "option 'longest'")
    options = with_text({'accuracy': arguments.accuracy, 'swings': arguments.swings},
                        arguments.options)
    for name in ('procedure', 'longest', 'data'):
        if name in options:
            raise UsageError(f"option '{name}' is not one of --options: the session sets it")
    parse_request('sine-sequence', {**options, 'procedure': 'adaptive'})
    if not arguments.yes and not sys.stdin.isatty():
        raise UsageError('somebody has to agree to every motion: run it in a terminal, or agree '
                         'to all of them with --yes')
    from robot_dynid_extras.session.client import Operator, Session, run_session

    with terminal.progress('session') as progress:
        operator = Operator(lambda shown: agreed(shown, arguments.yes, terminal), progress)
        result = run_session(
            node, Session(options, longest, tuple(arguments.data)), operator,
            arguments.timeout)
    return {**result, 'accuracy': float(options['accuracy']), 'node': node}


def agreed(shown: Any, beforehand: bool, terminal: Terminal) -> bool:
    """Show a motion and return whether it may be executed."""
    terminal.note(shown.message, style=None)
    for warning in shown.warnings:
        terminal.note(f'! {warning}', style='yellow')
    if beforehand:
        return True
    terminal.note('the way is on ~/trajectory and ~/path; the robot moves for '
                  f'{shown.total_duration:.0f} s', style=None)
    try:
        return input('move? [y/N] ').strip().lower() in ('y', 'yes')
    except EOFError:
        return False


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the swings, how it ended, and the recordings."""
    terminal.table('swings', ('swing', 'seconds', 'accuracy expected %', 'outcome'), (
        (str(i), swing['duration'], percent(swing['expected']), swing['code'])
        for i, swing in enumerate(result['swings'], start=1)))
    deviation = result['largest_deviation']
    terminal.facts((
        ('ended', f'{result["ended"]}: {result["message"]}'),
        ('accuracy', f'{percent(deviation)} % known, {percent(result["accuracy"])} % asked for'),
        ('out of reach', ', '.join(result['out_of_reach']) or number(None)),
    ))
    for recording in result['recordings']:
        terminal.line(recording)
    if result['swings']:
        terminal.line('next: record a motion of all joints to judge the model by, where the cell '
                      'allows it; identify takes its recording with the others, and leaves it out '
                      'of the fit')
        terminal.command(
            f'robot-dynid excite --node {result["node"]} --options "{{purpose: validation}}"')
