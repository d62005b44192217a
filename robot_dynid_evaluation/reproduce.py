"""`robot-dynid reproduce`: a published experiment, the paper's figures beside ours."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid_evaluation.papers import Row

HELP = 'repeat a published experiment and compare its figures'
EXAMPLES = (
    'robot-dynid reproduce --list',
    'robot-dynid reproduce stanford-arm',
    'robot-dynid reproduce sequential-sdp --json',
)
#: names of which an argument is one, or the registry that has them
NAMES = {'name': 'robot_dynid_evaluation.papers:EXPERIMENTS'}
VERDICTS = {True: 'agrees', False: 'DIFFERS', None: '-'}
#: judged kinds of row, and the word for those that agree: figures of the paper beside ours, and
#: parameters of our own simulations found again
WORDS = {'compared': 'agree', 'recovered': 'are found again'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('name', metavar='NAME', nargs='?', help='an experiment, see --list')
    parser.add_argument('--list', action='store_true', help='list the names and leave')
    parser.add_argument('--allow-known', action='store_true',
                        help='exit code 0 where all that differs is known to, and explained')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Repeat one experiment; ``ok`` is false when a judged figure differs.

    Differences that are known and explained do not count with ``--allow-known``.
    """
    from robot_dynid_evaluation.papers import EXPERIMENTS, reproduce

    if arguments.list:
        return {'experiments': EXPERIMENTS}
    if arguments.name is None:
        raise UsageError(f'which experiment? One of {", ".join(EXPERIMENTS)}')
    started = time.perf_counter()
    with terminal.progress(arguments.name) as progress:
        rows = reproduce(arguments.name, progress)
    counted = counts(rows)
    wrong = sum(count['differ'] for count in counted.values())
    excused = sum(count['known'] for count in counted.values()) if arguments.allow_known else 0
    return {'experiment': arguments.name, 'rows': [asdict(row) for row in rows],
            'counts': counted, 'shown': sum(row.ok is None for row in rows),
            'ok': wrong == excused, 'seconds': time.perf_counter() - started}


def counts(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Return by kind of judged row how many ``agree``, ``differ``, and are ``known`` to."""
    found = {kind: {'agree': 0, 'differ': 0, 'known': 0} for kind in WORDS}
    for row in rows:
        if row.ok is not None:
            found[row.kind]['agree' if row.ok else 'differ'] += 1
            found[row.kind]['known'] += row.known
    return found


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the table, then the notes of its rows."""
    if 'experiments' in result:
        terminal.table('', ('name', 'what'), result['experiments'].items())
        return
    rows = result['rows']
    terminal.table(result['experiment'],
                   ('quantity', 'paper', 'ours', 'kind', 'verdict', 'note'),
                   ((row['quantity'], _cell(row['paper']), _cell(row['ours']), row['kind'],
                     VERDICTS[row['ok']], row['note']) for row in rows))
    told = [f'{kind}: {count["agree"]} {WORDS[kind]}, {count["differ"]} differ'
            + (f' ({count["known"]} known)' if count['known'] else '')
            for kind, count in result['counts'].items()]
    terminal.line(f'{"; ".join(told)}; shown only: {result["shown"]}; {result["seconds"]:.1f} s',
                  style='bold')


def _cell(value: Any) -> Any:
    """Return text for a cell: numbers with five significant digits."""
    return f'{value:.5g}' if isinstance(value, float) else value
