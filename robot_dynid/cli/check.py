"""`robot-dynid check`: whether robot, controller and computer are ready for an excitation."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'ask a running excitation node whether everything is ready for a motion'
EXAMPLES = (
    'robot-dynid check',
    'robot-dynid check --node /cell_1/excitation --timeout 5',
)
NODE, TIMEOUT = 'excitation', 20.0
STYLES = {'OK': 'green', 'WARN': 'yellow', 'ERROR': 'red'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('--node', default=NODE, metavar='NAME',
                        help=f'name of the excitation node (default {NODE}), with its namespace '
                             'where it has one: /cell_1/excitation')
    parser.add_argument('--timeout', type=float, default=TIMEOUT, metavar='S',
                        help=f'how long to wait for it [s] (default {TIMEOUT:g})')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Ask the node."""
    from robot_dynid.numbers import SECONDS

    SECONDS.read(arguments.timeout, "option 'timeout'")
    from robot_dynid.ros.common.action_caller import checklist

    return checklist(arguments.node, arguments.timeout)


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print one line per item."""
    for item in result['items']:
        terminal.line(f'{item["level"]:5}  {item["name"]}: {item["message"]}',
                      STYLES[item['level']])
    terminal.line(result['message'])
