"""`robot-dynid excite`, `stop` and `check`: the verbs of a running excitation node."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.verbs import Command
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress, Terminal
    from robot_dynid.ros.excitation.remote import Seen

HELP = 'have a running excitation node execute a plan; Enter stops the robot'
EXAMPLES = (
    'robot-dynid excite T.yaml --robot ur10e',
    'robot-dynid excite --scale 0.5 --dry-run',
    'robot-dynid excite dry-run-5a0e6b1c93d2f874 --namespace cell_1',
)
NODE, NODE_TIMEOUT = 'excitation', 20.0
NAMES = {'type': 'robot_dynid.excitation.families:FAMILIES'}
#: a name of ROS, relative or absolute
ROS_NAME = re.compile(r'/?[A-Za-z_]\w*(/[A-Za-z_]\w*)*', re.ASCII)
#: styles of the levels of items
STYLES = {'OK': 'green', 'WARN': 'yellow', 'ERROR': 'red'}
#: guards that are shown, those nearest to their limits; a narrow terminal cuts the end off
GUARDS_SHOWN = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.epilog = ('Start the node with `ros2 launch robot_dynid excite.launch.py robot:=...`.\n'
                     'Enter, Ctrl-C or closing the terminal stops the robot along its path. Exit\n'
                     'code 0: executed.')
    parser.add_argument('plan', metavar='PLAN', nargs='?', default='',
                        help='trajectory file of `design` in the files_directory of the node, or '
                             'identifier of a dry run; without it the node designs a motion')
    parser.add_argument('--robot', metavar='ROBOT',
                        help='expected robot: a node that moves another one is refused')
    parser.add_argument('--type',
                        help='type of a motion that the node designs (default fourier)')
    parser.add_argument('--options', metavar='YAML',
                        help="options of the type as YAML text, '{poses: 30}', or file")
    parser.add_argument('--scale', type=float,
                        help='share of every limit that a designed motion uses')
    parser.add_argument('--dry-run', action='store_true',
                        help='show and check the motion; nothing moves')
    add_node(parser)


def add_node(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that name a node and say how long it is waited for."""
    parser.add_argument('--node', default=NODE, metavar='NAME',
                        help=f'name of the excitation node (default {NODE})')
    parser.add_argument('--namespace', default='', metavar='NAME',
                        help='namespace of the node')
    parser.add_argument('--timeout', type=float, default=NODE_TIMEOUT, metavar='S',
                        help='how long to wait for an absent or silent node [s] '
                             f'(default {NODE_TIMEOUT:g})')


def node_name(arguments: argparse.Namespace) -> str:
    """Return the absolute name of the node; raises UsageError where it is none."""
    from robot_dynid.numbers import SECONDS

    SECONDS.read(arguments.timeout, "option 'timeout'")
    for option in ('node', 'namespace'):
        name = getattr(arguments, option)
        if name.rstrip('/') and not ROS_NAME.fullmatch(name.rstrip('/')):
            raise UsageError(f'--{option} {name}: not a ROS name; use letters, digits and _, with '
                             '/ between parts')
    if arguments.node.startswith('/'):
        return str(arguments.node)
    return '/'.join(('', *filter(None, (arguments.namespace.strip('/'), arguments.node))))


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Send the goal and show the motion until it ends."""
    name, request = node_name(arguments), goal_fields(arguments)
    robot = ''
    if arguments.robot is not None:
        from robot_dynid.robot.robot_file import load_robot

        robot = load_robot(arguments.robot).name
    from robot_dynid.ros.excitation.remote import excite  # not without ROS
    from robot_dynid_interfaces.action import Excite

    terminal.note(f'{name}: ' + ('Enter' if sys.stdin.isatty() else 'Ctrl-C')
                  + ' stops the robot', None)
    with terminal.progress('excite') as progress:
        line = _Line(progress, terminal)
        result = excite(name, Excite.Goal(**request, dry_run=arguments.dry_run), line,
                        arguments.timeout, robot)
    return {**result, 'node': name, 'robot': arguments.robot}


def goal_fields(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the motion as the fields of a goal; raises UsageError where it cannot be."""
    from robot_dynid.cli.files import with_text

    flags = {} if arguments.scale is None else {'scale': arguments.scale}
    options = with_text(flags, arguments.options)
    if arguments.plan:
        if options or arguments.type:
            raise UsageError('a plan is executed unchanged: omit --type, --options and --scale, '
                             'or design another plan')
        path = Path(arguments.plan)
        return {'trajectory': str(path.absolute()) if path.is_file() else arguments.plan}
    from robot_dynid.excitation.families import parse_request
    from robot_dynid.yaml_text import yaml_text

    parse_request(arguments.type or '', options)
    return {'type': arguments.type or '', 'options': yaml_text(options) if options else ''}


class _Line:
    """The motion on one line that is updated; where nobody looks at it, a line per segment."""

    def __init__(self, progress: Progress, terminal: Terminal) -> None:
        self._progress, self._terminal, self._segment = progress, terminal, ''

    def __call__(self, seen: Seen) -> None:
        self._progress(line_of(seen), seen.fraction)
        if seen.segment != self._segment and not sys.stderr.isatty():
            self._terminal.note(seen.segment, None)
        self._segment = seen.segment


def line_of(seen: Seen) -> str:
    """Return a motion in words."""
    if not seen.remaining:
        return seen.segment
    near = ', '.join(f'{guard} {part:.0%}' for guard, part in seen.guards[:GUARDS_SHOWN])
    return ', '.join(filter(None, (
        f'{seen.segment} {seen.fraction:.0%}', f'error {seen.error:.4f}',
        near and f'limits: {near}', f'{seen.remaining:.0f} s left')))


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print how it ended, and what comes next."""
    terminal.line(f'{result["code"]}: {result["message"]}', 'green' if result['ok'] else 'yellow')
    terminal.warnings(result['warnings'])
    terminal.facts((('recording', result['recording'] or None),
                    ('total seconds', f'{result["total_duration"]:.1f}'
                     if result['total_duration'] else None)))
    if result['plan']:
        terminal.line('next: execute what was shown')
        terminal.command(f'robot-dynid excite {result["plan"]} --node {result["node"]}')


def _add_stop_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = 'Exit code 0: the robot is at rest.'
    add_node(parser)


def run_stop(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Stop what the node executes."""
    name = node_name(arguments)
    from robot_dynid.ros.common import real_time

    real_time.ask_real_time(real_time.WATCHING)  # on a busy machine all that follows waits
    from robot_dynid.ros.excitation.remote_stop import stop_motion  # not without ROS

    result = stop_motion(name, arguments.timeout)
    from robot_dynid.execution.guards import Code  # loads for long, and the robot stands now

    return {**result, 'code': Code(result['code']).name}


def show_stop(result: dict[str, Any], terminal: Terminal) -> None:
    """Print how it ended."""
    terminal.line(result['message'], 'green' if result['ok'] else 'red')
    terminal.facts((('recording', result['recording'] or None),))


def run_check(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Ask the node."""
    name = node_name(arguments)
    from robot_dynid.ros.common.action_caller import checklist  # not without ROS

    return checklist(name, arguments.timeout)


def show_check(result: dict[str, Any], terminal: Terminal) -> None:
    """Print a summary, and a line per item that is not in order."""
    terminal.line(result['message'])
    for item in result['items']:
        if terminal.verbose or item['level'] != 'OK':
            terminal.line(f'{item["level"]:5}  {item["name"]}: {item["message"]}',
                          STYLES[item['level']])
    terminal.passed(sum(item['level'] == 'OK' for item in result['items']))


STOP = Command(
    'stop the motion of a running excitation node along its path', (
        'robot-dynid stop', 'robot-dynid stop --namespace cell_1'),
    _add_stop_arguments, run_stop, show_stop)
CHECK = Command(
    'ask a running excitation node whether everything is ready for a motion', (
        'robot-dynid check', 'robot-dynid check --namespace cell_1 --timeout 5'),
    add_node, run_check, show_check)
