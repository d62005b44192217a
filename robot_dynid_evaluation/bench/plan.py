"""Cost of an hour of one arm, and of 10 000 arms a day: cores, memory, storage, network.

The first is measured: one recording of two lengths is reduced by a process of its own, and read
for the comparison of the fleet, which then judges so many arms of drawn readings. The second is
arithmetic.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.estimation.uncertainty.between_recordings import SCATTER_STRETCHES
from robot_dynid.files import atomic_write
from robot_dynid.identification.by_recording import RecordedInformation
from robot_dynid.io.information_file import load_information
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid_evaluation.bench import Row
from robot_dynid_evaluation.bench.long_recordings import used
from robot_dynid_evaluation.bench.many import RECIPE, Case, write_recordings
from robot_dynid_evaluation.bench.timing import ROBOT
from robot_dynid_extras.fleet.characteristics import Characteristics, Reading
from robot_dynid_extras.fleet.fleet import Session, judged

COLUMNS = ('what', 'one', 'unit', 'all', 'unit of all')
#: the plan: arms, hours a day of each, sessions of each that are compared, days of a year
ARMS, HOURS, SESSIONS, YEAR = 10_000, 1.0, 20, 365.0
DAY = 86400.0
#: lengths [h] and rate [Hz] of what is measured; arms of drawn readings, with SESSIONS each
LENGTHS, RATE, DRAWN = (0.25, 1.0), 1000.0, 500
#: a comparison holds readings as they came, and with the colour of residuals in their covariances
HELD = 2
#: scatter of drawn readings, and the deviation each has of itself
SCATTER, KNOWN = 0.05, 0.03


@dataclass(frozen=True)
class Cost:
    """Cost of one hour of one arm, as measured; see `rows` for units.

    ``raw`` recording, ``information``, ``reading`` of a session [bytes]; ``reduce`` it, ``read``
    it for a comparison [processor s]; ``judge`` one arm with its sessions [processor s]; ``peak``
    memory of a worker that reduces it [bytes].
    """

    raw: float
    information: float
    reading: float
    reduce: float
    read: float
    judge: float
    peak: float


def measure(progress: Progress) -> list[Row]:
    """Return the plan."""
    return rows(measured(progress))


def rows(cost: Cost) -> list[Row]:
    """Return cost of an hour of an arm, and of ARMS arms of HOURS a day."""
    hours, sessions = ARMS * HOURS, ARMS * SESSIONS
    cores = hours * cost.reduce / DAY

    def row(what: str, one: float, unit: str, every: float, of_all: str) -> Row:
        return dict(zip(COLUMNS, (what, one, unit, every, of_all)))

    return [
        row('reduce a recording to information', cost.reduce, 'processor s per h',
            cores, 'cores, day and night'),
        row('memory of a worker', cost.peak / 1e6, 'MB', np.ceil(cores) * cost.peak / 1e9,
            'GB, all of them'),
        row('raw recording', cost.raw / 1e6, 'MB', hours * cost.raw / 1e12, 'TB a day'),
        row('network, raw recordings', cost.raw / 1e6, 'MB', hours * cost.raw / DAY / 1e6,
            'MB/s'),
        row('information', cost.information / 1e6, 'MB', hours * cost.information / 1e9,
            'GB a day'),
        row('network, information', cost.information / 1e6, 'MB',
            hours * cost.information / DAY / 1e6, 'MB/s'),
        row('readings, kept for ever', cost.reading / 1e3, 'kB',
            YEAR * hours * cost.reading / 1e9, 'GB a year'),
        row(f'read {SESSIONS} sessions of every arm', cost.read, 'processor s each',
            sessions * cost.read / 3600.0, 'h of one core'),
        row(f'judge arms of {SESSIONS} sessions', cost.judge, 'processor s each',
            ARMS * cost.judge / 3600.0, 'h of one core'),
        row(f'memory of the comparison, {SESSIONS} sessions',
            HELD * SESSIONS * cost.reading / 1e6, 'MB an arm',
            HELD * sessions * cost.reading / 1e9, 'GB')]


def measured(progress: Progress) -> Cost:
    """Return the cost of an hour, by recordings of two lengths."""
    robot, found = load_robot(ROBOT), []
    with TemporaryDirectory(prefix='robot_dynid_') as place:
        for i, hours in enumerate(LENGTHS):
            progress(f'a recording of {hours:g} h', 0.4 * i)
            found.append(_reduced(Path(place) / f'{i}', robot, hours))
        file = found[-1].file
        progress('reading it for a comparison', 0.8)
        kept = load_information(file)
        model = kept.choice.structure.torque_model(kept.robot)
        fleet = Characteristics.of(model, _condensed(kept))
        read = _processor(lambda: _session(fleet, file))
        progress('judging drawn readings', 0.85)
        reading = fleet.reading(_condensed(kept))
        judge = _processor(lambda: _judged(fleet, reading)) / DRAWN
        first, last = found[0], found[-1]
        slope = (last.processor - first.processor) / (LENGTHS[-1] - LENGTHS[0])
        return Cost(last.raw / LENGTHS[-1], os.path.getsize(file) / LENGTHS[-1],
                    2.0 * _bytes(reading), slope, read, judge, last.peak)


@dataclass(frozen=True)
class _Reduced:
    """A recording that was reduced to the information in ``file``; size, time [s], memory."""

    file: Path
    raw: float
    processor: float
    peak: float


def _reduced(folder: Path, robot: RobotModel, hours: float) -> _Reduced:
    """Write a recording of so many hours, and reduce it as a worker of a fleet does."""
    folder.mkdir()
    data, kept, recipe = folder / 'data', folder / 'kept', folder / 'recipe.yaml'
    write_recordings(data, robot, Case(1, 3600.0 * hours, RATE, 1))
    atomic_write(recipe, RECIPE)
    cost = used(folder, 'information', str(data), '--robot', ROBOT, '--recipe', str(recipe),
                '--information', str(kept), '--out', str(folder / 'all.info'), '--workers', '1')
    [file] = kept.glob('*.info')
    raw = sum(path.stat().st_size for path in data.rglob('*') if path.is_file())
    return _Reduced(file, raw, cost['processor s'], 1e6 * cost['peak MB'])


def _condensed(kept: RecordedInformation) -> Any:
    return kept.information.condensed(SCATTER_STRETCHES)


def _session(fleet: Characteristics, file: Path) -> None:
    """Do what a comparison does about one session: load it twice, read it in both ways."""
    load_information(file)
    information = _condensed(load_information(file))
    apart = fleet.reading(information)
    fleet.beside(information, apart.values[:fleet.own], apart)


def _judged(fleet: Characteristics, reading: Reading) -> None:
    """Judge DRAWN arms, whose readings scatter about zero."""
    rng, count = np.random.default_rng(0), len(reading.values)

    def drawn() -> Reading:
        return replace(reading, values=SCATTER * rng.standard_normal(count),
                       covariance=KNOWN**2 * np.eye(count), colour=np.ones(count))

    judged(fleet, {f'{i:05}': tuple(Session(f'{i:05}', day * DAY, (), drawn(), drawn())
                                    for day in range(SESSIONS)) for i in range(DRAWN)})


def _processor(work: Callable[[], None]) -> float:
    """Return the processor time [s] of some work in this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def _bytes(reading: Reading) -> float:
    return float(sum(getattr(reading, one.name).nbytes for one in fields(reading)))
