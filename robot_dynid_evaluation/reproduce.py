"""`robot-dynid reproduce`: a published experiment, the paper's figures beside ours."""

from __future__ import annotations

import argparse
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal

HELP = 'repeat a published experiment and compare its figures'
VERDICTS = {True: 'agrees', False: 'DIFFERS', None: '-'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('name', metavar='NAME', nargs='?', help='an experiment, see --list')
    parser.add_argument('--list', action='store_true', help='list the names and leave')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Repeat one experiment; ``ok`` is false when a figure differs from the paper's."""
    from robot_dynid_evaluation.papers import EXPERIMENTS, reproduce

    if arguments.list:
        return {'experiments': EXPERIMENTS}
    if arguments.name is None:
        raise UsageError(f'which experiment? One of {", ".join(EXPERIMENTS)}')
    started = time.perf_counter()
    with terminal.progress(arguments.name) as progress:
        rows = reproduce(arguments.name, progress)
    return {'experiment': arguments.name, 'rows': [asdict(row) for row in rows],
            'ok': all(row.ok is not False for row in rows),
            'seconds': time.perf_counter() - started}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the table, then the notes of its rows."""
    if 'experiments' in result:
        terminal.table('', ('name', 'what'), result['experiments'].items())
        return
    rows = result['rows']
    terminal.table(result['experiment'], ('quantity', 'paper', 'ours', 'verdict', 'note'),
                   ((row['quantity'], _cell(row['paper']), _cell(row['ours']),
                     VERDICTS[row['ok']], row['note']) for row in rows))
    wrong = sum(row['ok'] is False for row in rows)
    right = sum(row['ok'] is True for row in rows)
    terminal.line(f'{right} figures agree, {wrong} differ, {len(rows) - right - wrong} are shown '
                  f'only; {result["seconds"]:.1f} s', style='bold')


def _cell(value: Any) -> Any:
    """Return text for a cell: numbers with five significant digits."""
    return f'{value:.5g}' if isinstance(value, float) else value
