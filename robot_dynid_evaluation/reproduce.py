"""`robot-dynid reproduce`: a published experiment, the paper's figures beside ours."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress, Terminal
    from robot_dynid_evaluation.papers import Remark, Row

HELP = 'repeat a published experiment and compare its figures'
EXAMPLES = (
    'robot-dynid reproduce --list',
    'robot-dynid reproduce stanford-arm',
    'robot-dynid reproduce sequential-sdp --json',
)
#: names of which an argument is one, or the registry that has them
NAMES = {'name': 'robot_dynid_evaluation.papers:EXPERIMENTS'}
VERDICTS = {(True, False): 'agrees', (False, False): 'DIFFERS', (False, True): 'differs (known)',
            (None, False): '-'}
#: judged kinds of row, and the word for those that agree: figures of the paper beside ours, and
#: parameters of our own simulations found again
WORDS = {'compared': 'agree', 'recovered': 'are found again'}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('name', metavar='NAME', nargs='?', help='an experiment, see --list')
    parser.add_argument('--list', action='store_true',
                        help='list the names with their minutes of processor time, and exit')
    parser.add_argument('--strict', action='store_true',
                        help='exit code 1 also where all differences are known and explained')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Repeat one experiment; ``ok`` is false when a judged figure differs in a new way.

    With ``--strict`` differences that are known and explained count, too.
    """
    from robot_dynid_evaluation.papers import EXPERIMENTS, Remark, Row, reproduce

    if arguments.list:
        return {'experiments': {name: asdict(one) for name, one in EXPERIMENTS.items()}}
    if arguments.name is None:
        raise UsageError(f'which experiment? One of {", ".join(EXPERIMENTS)}')
    started, busy = time.perf_counter(), time.process_time()
    entries: list[Row | Remark] = []
    with terminal.progress(arguments.name, lines=True) as progress:
        stages = Stages(progress)
        for entry in reproduce(arguments.name, stages):
            entries.append(entry)
            if isinstance(entry, Row):
                progress(line(asdict(entry)), stages.fraction)
    rows = [entry for entry in entries if isinstance(entry, Row)]
    counted = counts(rows)
    wrong = sum(count['differ'] - count['known'] * (not arguments.strict)
                for count in counted.values())
    return {'experiment': arguments.name, 'rows': [asdict(row) for row in rows],
            'remarks': [asdict(entry) for entry in entries if isinstance(entry, Remark)],
            'counts': counted, 'shown': sum(row.ok is None for row in rows), 'ok': not wrong,
            'seconds': time.perf_counter() - started,
            'processor_seconds': time.process_time() - busy}


class Stages:
    """Progress of an experiment, passed on; rows come between its stages."""

    def __init__(self, progress: Progress) -> None:
        self.fraction = 0.0
        self._progress = progress

    def __call__(self, stage: str, fraction: float) -> None:
        """Report a stage."""
        self.fraction = fraction
        self._progress(stage, fraction)


def counts(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """Return by kind of judged row how many ``agree``, ``differ``, and are ``known`` to."""
    found = {kind: {'agree': 0, 'differ': 0, 'known': 0} for kind in WORDS}
    for row in rows:
        if row.ok is not None:
            found[row.kind]['agree' if row.ok else 'differ'] += 1
            found[row.kind]['known'] += row.known
    return found


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the table, then the remarks and how many rows agree."""
    if 'experiments' in result:
        terminal.table('', ('name', 'paper', 'what', 'minutes'), (
            (name, one['paper'], one['what'], f'{one["minutes"]:g}')
            for name, one in result['experiments'].items()))
        return
    terminal.table(result['experiment'],
                   ('quantity', 'paper', 'ours', 'kind', 'verdict', 'note'),
                   ((row['quantity'], cell(row['paper']), cell(row['ours']), row['kind'],
                     verdict(row), row['note']) for row in result['rows']))
    terminal.table('remarks', ('about', 'text'), (
        (remark['about'], remark['text']) for remark in result['remarks']))
    judged = [f'{kind}: {count["agree"]} {WORDS[kind]}, {count["differ"]} differ'
              + (f' ({count["known"]} known)' if count['known'] else '')
              for kind, count in result['counts'].items()]
    terminal.line(f'{"; ".join(judged)}; shown only: {result["shown"]}; '
                  f'remarks: {len(result["remarks"])}; {result["seconds"]:.1f} s', style='bold')


def verdict(row: Mapping[str, Any]) -> str:
    """Return the verdict of a row in words."""
    return VERDICTS[row['ok'], row['known']]


def line(row: Mapping[str, Any]) -> str:
    """Return a row as a line of progress."""
    paper = '' if row['paper'] is None else f' (paper: {cell(row["paper"])})'
    return f'{row["quantity"]}: {cell(row["ours"])}{paper}: {verdict(row)}'


def cell(value: Any) -> Any:
    """Return text for a cell: numbers with five significant digits."""
    return f'{value:.5g}' if isinstance(value, float) else value
