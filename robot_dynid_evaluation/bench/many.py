"""`identify` over hours of recordings and over many short ones: time, memory, one and two workers.

Every recording is one of a few simulated ones with other noise on its efforts, so that none is a
copy of another; one process of its own identifies from them. What grows with the recordings is
what the table shows per hour and per recording: the processor time beyond that of the shortest.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from robot_dynid import figures
from robot_dynid.cli.terminal import Progress
from robot_dynid.document import Chapter, Figure, Report, Section
from robot_dynid.errors import UsageError
from robot_dynid.files import atomic_write, check_target
from robot_dynid.io.csv import write_csv
from robot_dynid.report.html import MARK, write_report
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_evaluation.bench import Row
from robot_dynid_evaluation.bench.long_recordings import (
    SIGNALS,
    used,
    write_bag,
    write_recording,
)
from robot_dynid_evaluation.bench.timing import ROBOT

COLUMNS = ('recordings', 'hours', 'workers', 'seconds', 'processor s', 'peak MB', 'per hour s',
           'per recording s')
#: hours of one recording each, and numbers of recordings of SHORT seconds
HOURS, COUNTS = (1.0, 2.0, 4.0, 8.0), (10, 100, 1000)
SHORT, LONG_RATE, SHORT_RATE = 20.0, 200.0, 200.0
#: different motions, seconds of one of them that a long recording goes through again and again,
#: and the noise [N m] by which recordings differ
MOTIONS, LAP, NOISE = 8, 600.0, 0.05
RECIPE = '{cutoff: 12, friction: coulomb, ramp_width: 0.01, effort_lag: 0}\n'


@dataclass(frozen=True)
class Case:
    """So many recordings of so many seconds at a rate [Hz], for so many workers."""

    count: int
    seconds: float
    rate: float
    workers: int

    @property
    def hours(self) -> float:
        """Hours of all recordings together."""
        return self.count * self.seconds / 3600.0


def cases(sizes: str | None) -> list[Case]:
    """Return the cases: all of them, or those of ``sizes``: 0.25h,0.5h,10,100.

    Raises UsageError for a size that is none.
    """
    hours: tuple[float, ...] = HOURS
    counts: tuple[int, ...] = COUNTS
    if sizes is not None:
        words = sizes.split(',')
        try:
            hours = tuple(float(word[:-1]) for word in words if word.endswith('h'))
            counts = tuple(int(word) for word in words if not word.endswith('h'))
        except ValueError:
            raise UsageError(f'--sizes {sizes}: give hours and numbers of recordings, such as '
                             '1h,2h,10,100') from None
    if any(size <= 0 for size in (*hours, *counts)):
        raise UsageError(f'--sizes {sizes}: must be greater than zero')
    long = [Case(1, 3600.0 * h, LONG_RATE, 1) for h in hours]
    short = [Case(n, SHORT, SHORT_RATE, w) for w in (1, 2) for n in counts]
    return [*long, *short]


def measure(progress: Progress, sizes: str | None = None, out: str | None = None) -> Iterator[Row]:
    """Yield time and memory of every case, and write the figure to ``out``, an HTML page."""
    if out is not None:

        check_target(out, MARK)
    robot, every = load_robot(ROBOT), cases(sizes)
    rows: list[Row] = []
    least: dict[tuple[bool, int], Row] = {}
    with tempfile.TemporaryDirectory(prefix='robot_dynid_') as folder:
        recipe = Path(folder) / 'recipe.yaml'
        atomic_write(recipe, RECIPE)
        for i, case in enumerate(every):
            progress(f'{case.count} recordings, {case.hours:.3g} h', i / len(every))
            data = Path(folder) / f'{case.count}_{case.seconds:g}'
            if not data.exists():
                write_recordings(data, robot, case)
            found = {'recordings': case.count, 'hours': case.hours, 'workers': case.workers,
                     **identified(data, recipe, case.workers)}
            first = least.setdefault((case.count > 1, case.workers), found)
            rows.append(found | growth(found, first))
            yield rows[-1]
    if out is not None:
        write_figure(rows, out)


def growth(found: Row, first: Row) -> Row:
    """Return processor time per hour and recording beyond that of the ``first`` of its kind."""
    more = found['processor s'] - first['processor s']
    hours, count = found['hours'] - first['hours'], found['recordings'] - first['recordings']
    return {'per hour s': more / hours if hours else None,
            'per recording s': more / count if count else None}


def write_recordings(folder: Path, robot: RobotModel, case: Case) -> None:
    """Write recordings as CSV, or a long one as a bag, from a few simulated motions."""
    folder.mkdir()
    lap = case.seconds if case.count > 1 else min(LAP, case.seconds)
    motions = []
    for seed in range(min(MOTIONS, case.count)):
        with tempfile.TemporaryDirectory(prefix='robot_dynid_') as place:
            write_recording(Path(place), robot, load_truth(robot), (lap, case.rate), seed)
            motions.append([np.load(Path(place) / f'{name}.npy') for name in SIGNALS])
    rng = np.random.default_rng(0)
    if case.count == 1:
        write_bag(folder / 'bag', robot.joints, _laps(motions[0], case, rng))
        return
    for i in range(case.count):
        instants, position, velocity, effort = motions[i % len(motions)]
        spread = NOISE * rng.standard_normal(effort.shape)
        write_csv(folder / f'{i:05}.csv', RawLog(
            '', robot.joints, instants, position, velocity, effort + spread))


def _laps(
    motion: Sequence[FloatArray], case: Case, rng: np.random.Generator
) -> Iterator[tuple[FloatArray, ...]]:
    """Yield a motion again and again, with other noise each time."""
    _, position, velocity, effort = motion
    begin, count = 0, round(case.seconds * case.rate)
    while begin < count:
        rows = min(len(position), count - begin)
        yield ((begin + np.arange(rows)) / case.rate, position[:rows], velocity[:rows],
               effort[:rows] + NOISE * rng.standard_normal((rows, effort.shape[1])))
        begin += rows


def identified(data: Path, recipe: Path, workers: int) -> dict[str, float]:
    """Return wall and processor time [s] and peak memory [MB] of one identification."""
    return used(data.parent, 'identify', str(data), '--robot', ROBOT, '--recipe', str(recipe),
                '--workers', str(workers), '--out', str(data.parent / 'model.yaml'))


def write_figure(rows: Sequence[Row], path: str) -> None:
    """Write processor time and peak memory over hours and over recordings as an HTML page."""
    figures = tuple(_figure(rows, *axes) for axes in (
        ('hours', 'processor s'), ('hours', 'peak MB'), ('recordings', 'processor s'),
        ('recordings', 'seconds'), ('recordings', 'peak MB')))
    words = ('Processor time grows in proportion to the data, and memory does not grow, where the '
             'curves are straight and flat.')
    write_report(Report('identify over hours and over recordings', '', (
        Chapter('Scale', (Section('One robot, more and more recordings', words,
                                  figures=figures),)),)), path)


def _figure(rows: Sequence[Row], x: str, y: str) -> Figure:
    """Return a figure of one quantity over another, a curve per number of workers."""
    many = x == 'recordings'
    own = [row for row in rows if (row['recordings'] > 1) == many]
    curves = []
    for i, workers in enumerate(sorted({row['workers'] for row in own})):
        found = [row for row in own if row['workers'] == workers]
        name = f'{workers} worker{"s" if workers > 1 else ""}'
        curves.append(figures.line([row[x] for row in found], [row[y] for row in found], name,
                                   figures.series(i), more={'mode': 'lines+markers'}))
    units = {'processor s': 'processor time [s]', 'seconds': 'time [s]', 'peak MB': 'memory [MB]',
             'hours': 'one recording of so many hours', 'recordings': 'recordings'}
    return Figure(figures.figure(curves, figures.axis(units[x]), figures.axis(
        units[y], figures.FROM_ZERO)), f'{units[y]} over {x}')
