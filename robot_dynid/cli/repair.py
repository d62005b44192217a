"""`robot-dynid repair`: finish a recording whose recorder was killed."""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'finish a recording whose recorder was killed, so that every rosbag2 reader opens it'
EXAMPLES = (
    'robot-dynid repair recordings/my_arm_2026-01-31',
    'robot-dynid repair cut_off.mcap',
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('bag', metavar='BAG', help='bag folder, .mcap or .db3 file; what is '
                        'replaced stays beside it, its name ending with .unrepaired')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Finish storage files and metadata.yaml, as far as they need it."""
    from robot_dynid.io.repair import repair_bag

    started = time.perf_counter()
    with terminal.progress('repair') as progress:
        found = repair_bag(arguments.bag, progress)
    return {'path': arguments.bag, 'messages': sum(found.messages.values()),
            'topics': found.messages, 'lost_bytes': found.lost_bytes, 'lost': found.findings,
            'written': found.written, 'kept': found.kept,
            'seconds': time.perf_counter() - started}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print messages by topic, and what was written."""
    terminal.table(result['path'], ('topic', 'messages'), result['topics'].items())
    terminal.facts((*(('written', path) for path in result['written']),
                    *(('as it was', path) for path in result['kept'])))
    if not result['written']:
        terminal.line('nothing had to be repaired')
    terminal.warnings(result['lost'])
