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
    yield ('joint states: published; recorded; lost', '; '.join(map(number, (
        figures['published'], figures['recorded'], figures['published'] - figures['recorded']))))
    yield 'identifications meanwhile', number(figures['identifications'])
    yield 'machine load before; at the end', '; '.join(
        f'{value:.1f}' for value in figures['busy'])
    yield 'memory growth of the node, second half', f'{figures["growth"]:+.2f} MB/min'
    for name, own in figures['clients'].items():
        spread = '; '.join(f'{1e3 * own[q]:.2f}' for q in ('50', '95', '99', '100'))
        yield (f'client *{name}*: calls; refused; p50; p95; p99; largest [ms]',
               f'{own["calls"]}; {own["refused"]}; {spread}')


def _kills(part: str, figures: Figures) -> Iterator[Cells]:
    yield 'identifiers killed while recording, identifying or saving', number(figures['lives'])
    yield 'workers, publishers and clients killed', number(figures['others'])
    yield ('messages recorded without gaps; recovered at the end',
           f'{figures["messages"]}; {figures["again"]}')
    yield 'messages not yet on the disk at a kill, at most', number(figures['late'])
    yield 'model files written; intact', f'{figures["models"]}; {figures["whole"]}'


def _inputs(part: str, figures: Figures) -> Iterator[Cells]:
    yield (part, number(figures['inputs']), number(figures['accepted']),
           number(figures['inputs'] - figures['accepted'] - figures['faults']),
           number(figures['faults']), f'{figures["slowest"]:.2g}', number(figures['peak']))


def merged(rows: Sequence[Figures], *keys: str) -> Iterator[Sequence[Figures]]:
    """Yield the rows that share the values of ``keys``, in the order of the first of each."""
    groups: dict[Cells, list[Figures]] = {}
    for row in rows:
        groups.setdefault(tuple(str(row[key]) for key in keys), []).append(row)
    yield from groups.values()


def listed(rows: Sequence[Figures], key: str) -> str:
    """Return the values of several rows in one cell, '-' where no row has one."""
    cells = ['-' if row[key] in (None, '-') else row[key] if isinstance(row[key], str)
             else number(row[key]) for row in rows]
    return '-' if set(cells) == {'-'} else '; '.join(cells)


def _stops(part: str, figures: Figures) -> Iterator[Cells]:
    for rows in merged(figures['rows'], 'what'):
        yield (rows[0]['what'], *(listed(rows, key) for key in ('load', 'runs', 'ours', 'peer')),
               'yes' if all(row['kept'] for row in rows) else '**no**')


def _resumed(part: str, figures: Figures) -> Iterator[Cells]:
    yield (part, number(figures['kills']), number(figures['recordings']),
           'byte for byte' if figures['difference'] == 0.0 else f'{figures["difference"]:.1g}')


def _many(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        yield (number(row['recordings']), number(row['hours']), number(row['workers']),
               number(row['seconds']), number(row['processor s']), number(row['peak MB']))


def _health(part: str, figures: Figures) -> Iterator[Cells]:
    for rows in merged(figures['rows'], 'plant', 'what'):
        yield (rows[0]['plant'], rows[0]['what'], number(rows[0]['arms']), *(
            listed(rows, key) for key in ('days', 'found', 'stated', 'minutes', 'sees', 'ideal')))


def _fleet(part: str, figures: Figures) -> Iterator[Cells]:
    for rows in merged(figures['rows'], 'what'):
        yield (rows[0]['what'].strip(), '; '.join(
            f'{number(row["found"])} of {number(row["of"])}' for row in rows), '; '.join(
            f'{100.0 * row["share"]:.3g} %' for row in rows), rows[0]['target'])


def _months(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        scale, unit = (100.0, '%') if row['unit'] == '1' else (1.0, row['unit'])
        yield (row['part'], row['words'], row['pattern'],
               f'{scale * row["size"]:+.2g} ± {scale * row["half_interval"]:.2g} {unit}',
               f'{row["probability"]:.1g}', row['sessions_needed'], row['named'])


def _plan(part: str, figures: Figures) -> Iterator[Cells]:
    for row in figures['rows']:
        yield (row['what'], f'{number(row["one"])} {row["unit"]}',
               f'{number(row["all"])} {row["unit of all"]}')


KINDS = {
    'load': Kind(
        'Load', '14 joints at 1 kHz are recorded while four clients request dynamics, rollouts '
        'and the model, and identifications run without pause.',
        'pytest -m soak test/ros/test_load.py -k fourteen',
        ('joints', 'published', 'recorded', 'identifications', 'busy', 'growth', 'clients'),
        ('what', 'figure'), _load),
    'kills': Kind(
        'Killed processes', '`kill -9` at random instants: worker, publisher or client, then the '
        'identifier itself, again and again.',
        'pytest -m soak test/ros/test_load.py -k killed',
        ('lives', 'others', 'messages', 'again', 'late', 'models', 'whole'),
        ('what', 'figure'), _kills),
    'resumed': Kind(
        'Killed identifications', 'Largest relative difference between the model of an '
        'identification that was killed and resumed, and that of an undisturbed process.',
        "pytest test/identification/test_by_recording.py -k 'killed or cluster'",
        ('kills', 'recordings', 'difference'),
        ('killed', 'times', 'recordings', 'difference'),
        _resumed),
    'stops': Kind(
        'Stops', 'Events during motion, on an idle machine and with busy loops: longest time '
        'until the robot rested (or the client had the result), and the promised time, in s. '
        'Accelerations and travel: [safety](safety.md#measured).',
        'robot-dynid bench stops', ('rows',),
        ('event', 'busy loops', 'runs', 'time', 'promised', 'kept'), _stops,
        ('what', 'load', 'runs', 'ours', 'peer', 'kept'), unmeasured=('ours', 'peer')),
    'health': Kind(
        'Health', 'Simulated arms in everyday motion; models from recordings of 2, 4 and 10 days. '
        '*found*: alarms on days without a change, next to the number *stated* beforehand; in '
        'other rows arms whose change was found within half an hour, after *minutes* (median). '
        '*sees*: the change that `~/health` states to detect with 90 %; *ideal*: how often a '
        'test that knows the day-to-day variation exactly finds this one. *Outside the model*: '
        'friction warms up, varies over the day and grows with load, and the motion differs from '
        'that of the recordings.',
        'robot-dynid bench health', ('rows',),
        ('plant', 'what', 'arms', 'days', 'found', 'stated', 'minutes', 'sees', 'ideal'), _health,
        ('plant', 'days', 'what', 'arms', 'found', 'stated', 'minutes', 'sees', 'ideal')),
    'fleet': Kind(
        'Drift', 'Simulated fleets of 50 arms with 20 recordings each, five of which change, '
        'and as many fleets without changes. Three figures: normal day-to-day variation; cold '
        'starts and heavy tails; drift and season ([fleet](fleet.md)).',
        'robot-dynid bench fleet', ('rows',),
        ('what', 'found', 'share', 'allowed'), _fleet,
        ('plant', 'what', 'found', 'of', 'share', 'target')),
    'months': Kind(
        'Drift of the UR10e', 'Recordings of one arm in January and February: the strongest '
        'changes over its days, the probability of each by chance if it were the only test, and '
        'the number of such days that would show it.',
        'pytest -m soak test/extras/test_fleet.py -k ur10e', ('rows',),
        ('part', 'what', 'pattern', 'change', 'chance', 'days needed', 'named'), _months,
        ('part', 'words', 'pattern', 'size', 'half_interval', 'unit', 'probability',
         'sessions_needed', 'named')),
    'inputs': Kind(
        'Damaged inputs', 'Randomly damaged files of every kind must be read, or refused with a '
        'message; anything else, more than 5 s, or more than 500 MB is a fault.',
        'pytest -m soak test/fuzz', ('inputs', 'accepted', 'faults', 'slowest', 'peak'),
        ('kind of file', 'inputs', 'read', 'refused', 'faults', 'slowest [s]', 'memory [MB]'),
        _inputs),
    'many': Kind(
        'Scale', '`identify` on one recording of many hours, and on many recordings of 20 s; '
        'seven joints at 200 Hz. Memory is the peak of the process, or that of the largest worker '
        'times their number.',
        'robot-dynid bench many', ('rows',),
        ('recordings', 'hours', 'workers', 'seconds', 'processor [s]', 'memory [MB]'), _many,
        ('recordings', 'hours', 'workers', 'seconds', 'processor s', 'peak MB')),
    'plan': Kind(
        'Plan', 'One hour of one arm, seven joints at 1 kHz, as measured; and 10 000 arms with '
        'an hour a day each, calculated '
        '([fleet](fleet.md#plan-for-10-000-arms-an-hour-a-day-each)).',
        'robot-dynid bench plan', ('rows',), ('what', 'one hour of one arm', 'all arms'),
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
    lines = ['# Trust', '',
             'Judge from measurements how much load, killed processes, damaged files and data the '
             'package withstands, and how well it detects changes.', '',
             'All figures are records of long tests and benchmarks.', '',
             f'{MARK.decode()} from the records in docs/trust: change those. -->', '']
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
    yield f'`{kind.command}`: {duration(seconds)}, {days}, version {versions}, {machines}.'


def _growth(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield straight lines through processor time, and what they say of more."""
    yield 'Least-squares lines through these, and their extrapolation (not measured):'
    yield ''
    yield '| over | workers | processor time | largest deviation | extrapolated, one core |'
    yield '|---|---|---|---|---|'
    for unit, far in (('hours', FAR_HOURS), ('recordings', FAR_COUNT)):
        for workers, own in _by_workers(rows, unit):
            if len({row[unit] for row in own}) < 3:
                continue
            offset, slope, off = line([float(row[unit]) for row in own],
                                      [float(row['processor s']) for row in own])
            yield (f'| {unit} | {workers} | {number(offset)} s + {number(slope)} s each '
                   f'| {100 * off:.0f} % '
                   f'| {number(far)} {unit}: {duration(offset + far * slope)} |')
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
