"""docs/trust.md from the records of docs/trust: load, faults, inputs, scale.

``python docs/trust_page.py`` (`make trust`) makes the page. A record that lacks a figure is
refused. Records are those that `robot_dynid_evaluation.trust.keep` writes.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.errors import DataError, UsageError
from robot_dynid.files import atomic_write
from robot_dynid_evaluation.trust import VARIABLE

RECORDS, PAGE = (Path(__file__).with_name(name) for name in ('trust', 'trust.md'))
#: of every record
HEAD = ('kind', 'part', 'date', 'seconds', 'machine', 'version', 'figures')
COMMENT = 'Written by `make trust`'
MARK = f'<!-- {COMMENT}'.encode()
#: what scale is extrapolated to: hours, recordings
FAR_HOURS, FAR_COUNT = 24.0, 10_000

Figures = Mapping[str, Any]
Cells = tuple[str, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of record: its ``figures``, the command it is measured by, the table it gives.

    ``rows`` makes the cells of the table from the part of a record and its figures; where there
    are ``columns_of_rows`` the figures hold a list, rows, each with these; a row that has nothing
    to measure has null in those that may be ``unmeasured``.
    """

    title: str
    words: str
    command: str
    figures: tuple[str, ...]
    columns: tuple[str, ...]
    rows: Callable[[str, Figures], Iterator[Cells]]
    columns_of_rows: tuple[str, ...] = ()
    unmeasured: tuple[str, ...] = ()



def number(value: float) -> str:
    """Return a figure in short."""
    return f'{value:.0f}' if abs(value) >= 100.0 or value == int(value) else f'{value:.3g}'


def duration(seconds: float) -> str:
    """Return seconds in the unit that suits them."""
    if seconds < 120.0:
        return f'{number(seconds)} s'
    return f'{number(seconds / 60.0)} min' if seconds < 7200.0 else f'{number(seconds / 3600.0)} h'


def _load(part: str, figures: Figures) -> Iterator[Cells]:
    yield ('joint states published; recorded; lost', '; '.join(map(number, (
        figures['published'], figures['recorded'], figures['published'] - figures['recorded']))))
    yield 'identifications in a row, beside', number(figures['identifications'])
    yield 'load of the machine before and at the end', '; '.join(
        f'{value:.1f}' for value in figures['busy'])
    yield 'memory of the node, second half', f'{figures["growth"]:+.2f} MB/min'
    for name, own in figures['clients'].items():
        spread = '; '.join(f'{1e3 * own[q]:.2f}' for q in ('50', '95', '99', '100'))
        yield (f'client *{name}*: calls; refused; p50; p95; p99; largest [ms]',
               f'{own["calls"]}; {own["refused"]}; {spread}')


def _kills(part: str, figures: Figures) -> Iterator[Cells]:
    yield 'identifiers killed while they recorded, identified and saved', number(figures['lives'])
    yield 'workers, publishers, clients killed beside', number(figures['others'])
    yield ('messages recorded, without a gap; found again at the end',
           f'{figures["messages"]}; {figures["again"]}')
    yield 'of the last published, not yet on the disk, at most', number(figures['late'])
    yield 'model files there; whole', f'{figures["models"]}; {figures["whole"]}'


def _inputs(part: str, figures: Figures) -> Iterator[Cells]:
    yield (part, number(figures['inputs']), number(figures['accepted']),
           number(figures['inputs'] - figures['accepted'] - figures['faults']),
           number(figures['faults']), f'{figures["slowest"]:.2g}', number(figures['peak']))


def _stops(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        seconds, promised = ('-' if row[name] is None else number(row[name])
                             for name in ('ours', 'peer'))
        yield (row['what'], number(row['load']), number(row['runs']), seconds, promised,
               'yes' if row['kept'] else '**no**')


def _resumed(part: str, figures: Figures) -> Iterator[Cells]:
    yield (part, number(figures['kills']), number(figures['recordings']),
           'byte for byte' if figures['difference'] == 0.0 else f'{figures["difference"]:.1g}')


def _many(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        yield (number(row['recordings']), number(row['hours']), number(row['workers']),
               number(row['seconds']), number(row['processor s']), number(row['peak MB']))


def _health(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        yield (row['plant'], number(row['days']), row['what'], number(row['arms']),
               number(row['found']), row['stated'], row['minutes'], row['sees'], row['ideal'])


def _fleet(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        yield (row['plant'], row['what'].strip(), number(row['found']), number(row['of']),
               f'{100.0 * row["share"]:.3g} %', row['target'])


def _months(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        scale, unit = (100.0, '%') if row['unit'] == '1' else (1.0, row['unit'])
        yield (row['part'], row['words'], row['pattern'],
               f'{scale * row["size"]:+.2g} ± {scale * row["half_interval"]:.2g} {unit}',
               f'{row["probability"]:.1g}', row['sessions_needed'], row['named'])


def _compared(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        yield (row['joint'], row['effect'], f'{row["before"]:.3g} N m',
               f'{row["most"]:+.3g} ± {row["half_interval"]:.2g} N m',
               f'{row["probability"]:.1g}')


def _plan(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        yield (row['what'], f'{number(row["one"])} {row["unit"]}',
               f'{number(row["all"])} {row["unit of all"]}')


KINDS = {
    'load': Kind(
        'Load held', '14 joints at 1 kHz, recorded while four clients ask for dynamics, rollouts '
        'and the model, and one identification follows another.',
        'pytest -m soak test/ros/test_load.py -k fourteen',
        ('joints', 'published', 'recorded', 'identifications', 'busy', 'growth', 'clients'),
        ('what', 'figure'), _load),
    'kills': Kind(
        'Faults survived', '`kill -9` at random instants: of the worker, the publisher or a '
        'client, then of the identifier itself, life after life.',
        'pytest -m soak test/ros/test_load.py -k killed',
        ('lives', 'others', 'messages', 'again', 'late', 'models', 'whole'),
        ('what', 'figure'), _kills),
    'resumed': Kind(
        'Identifications that were killed', 'The model that comes out in the end beside that of '
        'one process that nobody disturbed: the largest relative difference.',
        "pytest test/identification/test_by_recording.py -k 'killed or cluster'",
        ('kills', 'recordings', 'difference'),
        ('who was killed', 'times', 'recordings', 'difference'),
        _resumed),
    'stops': Kind(
        'Stops', 'Events in mid-motion, played against the nodes as processes: seconds to rest '
        '(or until the client knew) beside those promised, the longest of all runs.',
        'robot-dynid bench stops', ('rows',),
        ('event', 'busy loops beside', 'runs', 'seconds', 'promised', 'kept'), _stops,
        ('what', 'load', 'runs', 'ours', 'peer', 'kept'), unmeasured=('ours', 'peer')),
    'health': Kind(
        'Health', 'Everyday motion of simulated arms whose models are from recordings of so many '
        'days: alarms on days on which nothing changed beside those stated, and arms of which a '
        'change was found within half an hour, after so many minutes (median). Beside that stand '
        'the change that is seen with 90 %, as the health says, and how often an ideal test finds '
        'this one, which knows exactly by how much days differ. Outside the model: '
        'friction that warms up, that has a course of the day, that grows with load, and motion '
        'of another kind than in the recordings.',
        'robot-dynid bench health', ('rows',),
        ('plant', 'days', 'what', 'arms', 'found', 'stated', 'minutes', 'sees', 'ideal'), _health,
        ('plant', 'days', 'what', 'arms', 'found', 'stated', 'minutes', 'sees', 'ideal')),
    'fleet': Kind(
        'Drift', 'Simulated fleets of 50 arms with 20 recordings each, of which five arms change, '
        'and as many fleets without changes; days differ in three ways ([fleet](fleet.md)).',
        'robot-dynid bench fleet', ('rows',),
        ('days', 'what', 'found', 'of', 'share', 'allowed'), _fleet,
        ('plant', 'what', 'found', 'of', 'share', 'target')),
    'months': Kind(
        'Drift of the UR10e', 'Recordings of one arm in January and February: the strongest '
        'changes along its days, each with its probability by chance had it alone been asked for, '
        'and of how many such days it would be named.',
        'pytest -m soak test/extras/test_fleet.py -k ur10e', ('rows',),
        ('part', 'what', 'pattern', 'by', 'chance', 'days to tell', 'named'), _months,
        ('part', 'words', 'pattern', 'size', 'half_interval', 'unit', 'probability',
         'sessions_needed', 'named')),
    'compared': Kind(
        'Two months of the UR10e', 'What `robot-dynid compare` names as changed between a model '
        'of one recording of January and one of four of February, at 5 % among all its tests. It '
        'knows nothing of how much days differ by themselves.',
        'pytest -m soak test/test_figures.py -k months', ('rows',),
        ('joint', 'what', 'before, rms', 'by at most', 'chance'), _compared,
        ('joint', 'effect', 'before', 'most', 'half_interval', 'probability')),
    'inputs': Kind(
        'Inputs tried', 'Damaged files of every kind, from a seed: read, or refused with a '
        'message; anything else, and more than 5 s or 500 MB, is a fault.',
        'pytest -m soak test/fuzz', ('inputs', 'accepted', 'faults', 'slowest', 'peak'),
        ('kind of file', 'inputs', 'read', 'refused', 'faults', 'slowest [s]', 'memory [MB]'),
        _inputs),
    'many': Kind(
        'Scale', '`identify` over one recording of so many hours, and over so many recordings of '
        '20 s; seven joints at 200 Hz. Memory is the '
        'peak of this process, and that of the largest worker times their number.',
        'robot-dynid bench many', ('rows',),
        ('recordings', 'hours', 'workers', 'seconds', 'processor [s]', 'memory [MB]'), _many,
        ('recordings', 'hours', 'workers', 'seconds', 'processor s', 'peak MB')),
    'plan': Kind(
        'Plan', 'An hour of one arm, seven joints at 1 kHz, as measured; and 10 000 arms of an '
        'hour a day each, by arithmetic ([fleet](fleet.md#plan-for-10-000-arms-an-hour-a-day-each)'
        ').', 'robot-dynid bench plan', ('rows',), ('what', 'one hour of one arm', 'all arms'),
        _plan, ('what', 'one', 'unit', 'all', 'unit of all')),
}


def check(record: Mapping[str, Any], name: str) -> None:
    """Raise DataError, with the ``name`` of the record, where one of its figures is missing."""
    missing = [key for key in HEAD if key not in record]
    if not missing and record['kind'] not in KINDS:
        raise DataError(f"{name}: there is no kind of record '{record['kind']}'; one of "
                        f'{", ".join(KINDS)}')
    if not missing:
        kind, figures = KINDS[record['kind']], record['figures']
        missing = [key for key in kind.figures if _absent(figures.get(key))]
        rows = figures.get('rows')
        rows = rows if isinstance(rows, list) else []
        missing += [f'{key} of row {i + 1}' for i, row in enumerate(rows)
                    for key in kind.columns_of_rows
                    if key not in row or (_absent(row[key]) and key not in kind.unmeasured)]
    if missing:
        raise DataError(f'{name}: lacks {", ".join(missing)}; measure it again')


def _absent(value: Any) -> bool:
    """Return whether a figure is not there."""
    if isinstance(value, float):
        return not math.isfinite(value)
    return value is None or value in ([], {}, '')


def records(folder: Path = RECORDS) -> list[dict[str, Any]]:
    """Return the records of a folder by name; raises DataError where a figure is missing."""
    found = []
    for path in sorted(folder.glob('*.json')):
        try:
            found.append(json.loads(path.read_text()))
        except ValueError as error:
            raise DataError(f'{path.name}: is no JSON ({error}); measure it again') from None
        check(found[-1], path.name)
    return found


def page(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the page of records."""
    lines = ['# Trust: what it was put through', '',
             '*For whoever must rely on it: load held, faults survived, inputs tried, scale. '
             'Every figure is one that a test or benchmark kept; `make trust` writes the page.*',
             '', f'{MARK.decode()} from the records in docs/trust: change those. -->', '']
    for name, kind in KINDS.items():
        own = [record for record in found if record['kind'] == name]
        lines += [f'## {kind.title}', '', kind.words, '']
        if not own:
            lines += [f'Not measured yet: `{VARIABLE}=docs/trust {kind.command}`', '']
            continue
        lines += ['| ' + ' | '.join(kind.columns) + ' |', '|---' * len(kind.columns) + '|']
        for record in own:
            lines += ['| ' + ' | '.join(cells) + ' |'
                      for cells in kind.rows(record['part'], record['figures'])]
        lines += ['', *(_growth(own[0]['figures']['rows']) if name == 'many' else ()),
                  *_measured(own, kind), '']
    return '\n'.join(lines)


def _measured(own: Sequence[Mapping[str, Any]], kind: Kind) -> Iterator[str]:
    """Yield by what, for how long, when and where records were measured."""
    seconds = sum(record['seconds'] for record in own)
    dates = sorted({record['date'] for record in own})
    days = dates[0] if len(dates) == 1 else f'{dates[0]} to {dates[-1]}'
    machines = '; '.join(dict.fromkeys(record['machine'] for record in own))
    versions = ', '.join(dict.fromkeys(record['version'] for record in own))
    yield (f'Measured for {duration(seconds)} in all, {days}, version {versions}, {machines}. '
           f'The long run: `{kind.command}`.')


def _growth(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield straight lines through processor time, what they say of more, growth of memory."""
    yield ('Straight lines by least squares through these, and what they give far beyond them '
           '(an extrapolation, not measured):')
    yield ''
    yield '| over | workers | processor time | off the line, at most | far beyond, of one core |'
    yield '|---|---|---|---|---|'
    grown = []
    for unit, far in (('hours', FAR_HOURS), ('recordings', FAR_COUNT)):
        for workers, own in _by_workers(rows, unit):
            if len({row[unit] for row in own}) < 3:
                continue
            offset, slope, off = line([float(row[unit]) for row in own],
                                      [float(row['processor s']) for row in own])
            yield (f'| {unit} | {workers} | {number(offset)} s + {number(slope)} s each '
                   f'| {100 * off:.0f} % '
                   f'| {number(far)} {unit}: {duration(offset + far * slope)} |')
            ratios = [own[-1][name] / own[-2][name] for name in (unit, 'peak MB')]
            grown.append(f'| {unit} | {workers} | {number(own[-2][unit])} to '
                         f'{number(own[-1][unit])} | {ratios[0]:.3g} | {ratios[1]:.3g} |')
    yield from ('', 'Memory of the largest run over that of the one before:', '',
                '| over | workers | from, to | times as much data | times the memory |',
                '|---|---|---|---|---|', *grown)
    yield ''


def _by_workers(
    rows: Sequence[Mapping[str, Any]], unit: str
) -> Iterator[tuple[int, list[Mapping[str, Any]]]]:
    """Yield rows over hours of one recording, or over recordings, by the number of workers."""
    for workers in sorted({row['workers'] for row in rows}):
        own = [row for row in rows if row['workers'] == workers
               and (row['recordings'] > 1) == (unit == 'recordings')]
        if own:
            yield workers, sorted(own, key=lambda row: float(row[unit]))


def line(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """Return offset and slope of y over x, and the largest part of a y that is off the line."""
    slope, offset = np.polyfit(x, y, 1).tolist()
    return offset, slope, max(abs(b - offset - slope * a) / b for a, b in zip(x, y, strict=True))


def main() -> None:
    """Write the page."""
    try:
        atomic_write(PAGE, page(records()), MARK)
    except (DataError, UsageError) as error:
        sys.exit(str(error))


if __name__ == '__main__':
    main()
