"""`robot-dynid bench`: speed, measured side by side with a peer in one run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from robot_dynid.cli.terminal import number
from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress, Terminal

HELP = 'measure speed side by side with a peer'
BENCHES = {
    'regressor': '20 000 samples of a seven-axis arm beside Pinocchio in a Python loop',
    'identify': 'one hour at 1 kHz from memory-mapped arrays to parameters',
    'rollout': 'simulated steps of a seven-axis arm beside MuJoCo, one core',
    'feasible': 'feasible parameters beside CVXPY on all samples, and up to 60 joints',
    'monitor': 'residual and external torque of the identifier at 500 Hz',
    'contact': 'contact detection on the simulated arm: delays and false alarms',
    'estimators': 'noisy encoders, outliers, shared noise: error beside weighted least squares',
    'excitation': 'designed excitations beside 1000 random ones, IPOPT and FIGAROH',
    'precision': 'standard deviations predicted by a design and achieved on the simulated robot',
    'forward': 'forward dynamics beside Pinocchio, service round trip beside a bare echo',
}
Row = dict[str, Any]
COLUMNS = ('what', 'unit', 'ours', 'peer', 'ratio', 'target', 'kept')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('name', metavar='NAME', nargs='?', help=f'one of {", ".join(BENCHES)}')
    parser.add_argument('--list', action='store_true', help='list the names and leave')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Run one benchmark."""
    if arguments.list:
        return {'benches': BENCHES}
    if arguments.name not in BENCHES:
        raise UsageError(f'which benchmark? One of {", ".join(BENCHES)}')
    started = time.perf_counter()
    module = import_module(f'{__name__}.{arguments.name}')
    measure: Callable[[Progress], Iterable[Row]] = module.measure
    with terminal.progress(arguments.name) as progress:
        rows = list(_printed(measure(progress), terminal))
    return {'bench': arguments.name, 'rows': rows, 'seconds': time.perf_counter() - started}


def _printed(rows: Iterable[Row], terminal: Terminal) -> Iterator[Row]:
    """Yield the rows, and print those of a long benchmark as they come."""
    for found in rows:
        if isinstance(rows, Iterator):
            terminal.note('  '.join(number(found[name]) for name in COLUMNS))
        yield found


@dataclass(frozen=True)
class Target:
    """Bound of a ratio: at least ``bound`` (``faster``) or at most."""

    bound: float
    faster: bool = True

    def __str__(self) -> str:
        return f'{">=" if self.faster else "<="} {self.bound:g}'


def row(what: str, unit: str, ours: float, peer: float, target: Target) -> Row:
    """Return one comparison of times.

    Where the target is to be faster the ratio is peer / ours, else ours / peer.
    """
    ratio = peer / ours if target.faster else ours / peer
    kept = ratio >= target.bound if target.faster else ratio <= target.bound
    return {'what': what, 'unit': unit, 'ours': ours, 'peer': peer, 'ratio': ratio,
            'target': str(target), 'kept': kept}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the rows."""
    if 'benches' in result:
        terminal.table('', ('name', 'what'), result['benches'].items())
        return
    terminal.table(result['bench'], COLUMNS, ([r[c] for c in COLUMNS] for r in result['rows']))
