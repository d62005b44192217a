"""`robot-dynid bench`: speed, measured side by side with a peer in one run."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from robot_dynid.document import Row as Cells
from robot_dynid.errors import UsageError
from robot_dynid_evaluation import trust

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Terminal
    from robot_dynid.types import FloatArray

HELP = 'measure speed side by side with a peer'
EXAMPLES = (
    'robot-dynid bench --list',
    'robot-dynid bench start regressor',
    'robot-dynid bench stops --events kill-node --repeat 3',
)
BENCHES = {
    'regressor': 'regressors of arms of 7 to 50 joints beside Pinocchio in C++, iDynTree and JAX',
    'identify': 'one hour at 1 kHz to parameters; everything chosen on one and two cores',
    'many': 'identify over hours and over 10 to 1000 recordings: time, memory, two workers',
    'rollout': 'simulated steps of arms beside MuJoCo: many motions and one, friction, threads',
    'feasible': 'feasible parameters beside CVXPY, compressed and on all samples; 3 to 60 joints',
    'monitor': 'residual and external torque of the identifier at 500 Hz',
    'contact': 'contact detection on the simulated arm: delays and false alarms',
    'estimators': 'noisy encoders, outliers, shared noise: error beside weighted least squares',
    'gears': 'damping of elastic gears with hysteresis and kinematic error, and its intervals',
    'excitation': 'designed excitations beside 1000 random ones, IPOPT and FIGAROH',
    'precision': 'standard deviations predicted by a design and achieved on the simulated robot',
    'start': 'seconds to the first answer: imports, help, mistyped words, first calls of a model',
    'forward': 'forward and inverse dynamics beside Pinocchio, service round trip beside an echo',
    'c': "generated C code beside Pinocchio's C++ and this package in Python",
    'feedforward': 'tracking error of the simulated arm with and without examples/'
                   'feedforward_controller, model off by 20 %',
    'derivatives': 'derivatives of inverse and forward dynamics beside those of Pinocchio',
    'export': 'models loaded in MuJoCo, Pinocchio, Drake: error of 1000 states, effort left out',
    'residual': 'errors on recordings left out: ripple, warm-up and adaptation one by one',
    'stops': 'events in mid-motion against the nodes as processes: seconds to rest beside those '
             'promised',
    'health': 'hours of everyday motion of simulated arms: false alarms, changes found',
    'fleet': 'simulated fleets of 50 arms, 20 recordings each: changes found, and false alarms',
    'plan': 'an hour of one arm, and 10 000 arms a day: cores, memory, storage, network',
}
#: benchmarks whose figures are kept for docs/trust.md, where that is asked for
RECORDED = ('stops', 'health', 'fleet', 'many', 'plan')
#: what a benchmark may be asked for beside its name, as keywords of its ``measure``
OPTIONS = {'stops': ('events', 'repeat', 'load', 'face'),
           'residual': ('data', 'robot', 'again'), 'many': ('sizes', 'out')}
#: names of which an argument is one
NAMES = {'names': tuple(BENCHES)}
Row = dict[str, Any]
COLUMNS = ('what', 'unit', 'ours', 'peer', 'ratio', 'target', 'kept')


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument('names', metavar='NAME', nargs='*',
                        help=f'one or more of {", ".join(BENCHES)}; several make one table')
    parser.add_argument('--list', action='store_true', help='list the names and exit')
    parser.add_argument('--events', metavar='A,B', help='stops: events (default all)')
    parser.add_argument('--repeat', metavar='N', type=int,
                        help='stops: runs of each event (default 20)')
    parser.add_argument('--load', metavar='N,M', help='stops: numbers of busy loops (default 0,8)')
    parser.add_argument('--data', metavar='FOLDER',
                        help='residual: folder with train/ (for the fit) and test/')
    parser.add_argument('--robot', metavar='ROBOT', help='residual: name or file (default ur10e)')
    parser.add_argument('--again', metavar='A,B', help='residual: two recordings of one motion')
    parser.add_argument('--sizes', metavar='A,B',
                        help='many: hours and numbers of recordings (default '
                             '1h,2h,4h,8h,10,100,1000)')
    parser.add_argument('--out', metavar='R.html', help='many: page with the curves')
    parser.add_argument('--face', metavar='FACE', help='stops: action (default) or topic')


def run(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """Run the benchmarks, one after the other."""
    if arguments.list:
        return {'benches': BENCHES}
    names = arguments.names
    if not names or not set(names) <= set(BENCHES):
        raise UsageError(f'which benchmark? One of {", ".join(BENCHES)}')
    options = _options(arguments)
    started = time.perf_counter()
    columns, rows = [], []
    for name in names:
        own, found = _measured(name, options, terminal)
        columns += [column for column in own if column not in columns]
        rows += found
    if len(names) > 1:
        columns.insert(0, 'bench')
    return {'bench': ', '.join(names), 'columns': columns, 'rows': rows,
            'seconds': time.perf_counter() - started}


def _measured(
    name: str, options: dict[str, Any], terminal: Terminal
) -> tuple[list[str], list[Row]]:
    """Return columns and rows of one benchmark."""
    module = import_module(f'{__name__}.{name}')
    measure: Callable[..., Iterable[Row]] = module.measure
    columns = list(getattr(module, 'COLUMNS', COLUMNS))
    with terminal.progress(name) as progress:
        began = time.perf_counter()
        rows = list(_printed(measure(progress, **options), columns, terminal))
        if name in RECORDED:
            trust.keep(name, {'rows': [{column: found.get(column) for column in columns}
                                       for found in rows]}, time.perf_counter() - began)
        return columns, [{'bench': name, **found} for found in rows]


def _options(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the options that are given; raises UsageError where the benchmark has none such."""
    known = {name for names in OPTIONS.values() for name in names}
    given = {name: getattr(arguments, name) for name in sorted(known)
             if getattr(arguments, name) is not None}
    for name in given:
        for bench in arguments.names:
            if name not in OPTIONS.get(bench, ()):
                raise UsageError(f'benchmark {bench} has no option --{name}')
    return given


def _printed(rows: Iterable[Row], columns: Sequence[str], terminal: Terminal) -> Iterator[Row]:
    """Yield the rows, and print those of a long benchmark as they come."""
    for found in rows:
        if isinstance(rows, Iterator):
            terminal.note('  '.join(Cells(tuple(found[name] for name in columns)).cells))
        yield found


@dataclass(frozen=True)
class Target:
    """Bound of a ratio: at least ``bound`` (``faster``) or at most."""

    bound: float
    faster: bool = True

    def __str__(self) -> str:
        return f'{">=" if self.faster else "<="} {self.bound:g}'


def row(
    what: str, unit: str, ours: FloatArray | float, peer: FloatArray | float,
    target: Target | None,
) -> Row:
    """Return one comparison of times, given as numbers or by round (rounds,).

    Where the target is to be faster the ratio is peer / ours, else, and without one, ours / peer.
    That of several rounds is the median of their ratios: what slows the machine slows both sides
    of a round.
    """
    import numpy as np

    faster = target is not None and target.faster
    ratio = float(np.median(np.divide(peer, ours) if faster else np.divide(ours, peer)))
    kept = None if target is None else (
        ratio >= target.bound if target.faster else ratio <= target.bound)
    return {'what': what, 'unit': unit, 'ours': float(np.median(ours)),
            'peer': float(np.median(peer)), 'ratio': ratio,
            'target': '-' if target is None else str(target), 'kept': kept}


def show(result: dict[str, Any], terminal: Terminal) -> None:
    """Print the rows."""
    if 'benches' in result:
        terminal.table('', ('name', 'what'), result['benches'].items())
        return
    columns = result['columns']
    terminal.table(result['bench'], columns, ([r.get(c) for c in columns] for r in result['rows']))
    for found in result['rows']:
        terminal.warnings(f'{found["what"]}: {text}' for text in found.get('wrong', ()))
