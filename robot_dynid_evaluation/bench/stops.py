"""Events in mid-motion, played against the nodes as processes: what a witness saw of the robot.

The bound of each row is what the documentation promises, from the parameters in force, and the
time that messages need on their way; nothing in it is measured.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.errors import DynIdError, UsageError
from robot_dynid_evaluation.bench import Row

if TYPE_CHECKING:
    from robot_dynid_evaluation.stops.events import Event
    from robot_dynid_evaluation.stops.play import Run, Stage

ROBOT = 'planar_3r'
REPEAT, LOADS = 20, '0,8'
HEALTHY, HEALTHY_FACTOR = 'healthy', 5  # 100 motions where events are played 20 times
AGAIN = 3  # times as often an event is tried as it is to be played, at most
COLUMNS = ('what', 'load', 'runs', 'ours', 'peer', 'ratio', 'kept', 'reaction', 'travel', 'peak',
           'arm peak', 'off path', 'code')
#: figures of a run under the name of their column, the largest of all runs is printed
FIGURES = {'reaction': 'reaction', 'travel': 'travel', 'peak': 'acceleration', 'arm peak': 'arm',
           'off path': 'off_path', 'told': 'told'}
DIGITS = 3  # after the decimal point: ms, mrad


def measure(progress: Progress, events: str = '', repeat: int = REPEAT, load: str = LOADS,
            face: str = 'action') -> Iterator[Row]:
    """Yield a row per event and load: seconds to rest, or until the client knew, beside the bound.

    The last row of each load tells of motions that ended before anything was done to them.
    ``face`` is that of the controller. Raises UsageError for an event or a load that there is not.
    """
    from robot_dynid_evaluation.ros_domain import own_domain, require_ros

    require_ros()
    from robot_dynid.ros.excitation.settings import FACES
    from robot_dynid_evaluation.stops.events import EVENTS
    from robot_dynid_evaluation.stops.play import bounds, stage

    names, loads = chosen(events, (*EVENTS, HEALTHY)), _loads(load)
    if face not in FACES:
        raise UsageError(f"option --face must be one of {', '.join(FACES)}, got '{face}'")
    if repeat < 1:
        raise UsageError(f'option --repeat must be at least 1, got {repeat}')
    for turn, count in enumerate(loads):
        changes = {'face': face}
        with own_domain(), stage(ROBOT, count, changes) as there:
            player = Player(there, bounds(changes), count)
            for k, name in enumerate(names):
                share = 1.0 / len(names) / len(loads)
                report = partial(_report, progress, f'{name} beside {count} busy loops',
                                 (turn * len(names) + k) * share, share)
                if name == HEALTHY:
                    player.play_none(HEALTHY_FACTOR * repeat, report)
                else:
                    yield player.play(EVENTS[name], repeat, report)
            yield trip_row(player.trips, player.motions, player.off_path, count)


def chosen(events: str, known: Sequence[str]) -> list[str]:
    """Return the names in a comma-separated list, all when it is empty; raises UsageError."""
    names = events.split(',') if events else list(known)
    for name in names:
        if name not in known:
            raise UsageError(f"no event '{name}'; choose from {', '.join(known)}")
    return names


def _report(progress: Progress, stage: str, before: float, share: float, done: float) -> None:
    progress(stage, before + share * done)


def _loads(load: str) -> list[int]:
    try:
        return [int(count) for count in load.split(',')]
    except ValueError:
        raise UsageError(f"option --load must be numbers such as {LOADS}, got '{load}'") from None


class Player:
    """Plays events on a stage beside ``load`` busy loops, and counts its ``motions``.

    ``bound`` is the promise of an event in s. ``trips`` are the texts of motions that ended before
    anything was done to them; ``off_path`` rad the largest distance of the others from their plan.
    """

    def __init__(self, stage: Stage, bound: Callable[[Event], float], load: int) -> None:
        from robot_dynid_evaluation.stops.play import latency

        self._stage, self._load = stage, load
        self._bound, self._latency = bound, latency(load)
        self.motions, self.off_path = 0, 0.0
        self.trips: list[str] = []

    def play(self, event: Event, repeat: int, report: Callable[[float], None]) -> Row:
        """Return the row of one event, played ``repeat`` times."""
        from robot_dynid_evaluation.stops.client import Ended, Replaced

        runs: list[Run] = []
        wrong: list[str] = []
        for _ in range(AGAIN * repeat):
            report(len(runs) / repeat)
            if len(runs) + len(wrong) == repeat:
                break
            self.motions += 1
            self._stage.ready()
            try:
                runs.append(self._stage.play(event))
            except Ended as error:
                self.trips.append(str(error))
            except Replaced:
                continue
            except DynIdError as error:
                wrong.append(str(error))
        return row_of(event, runs, wrong, self._bound(event) + self._latency, self._load)

    def play_none(self, count: int, report: Callable[[float], None]) -> None:
        """Play ``count`` motions in which nothing happens."""
        for i in range(count):
            report(i / count)
            self.motions += 1
            self._stage.ready()
            try:
                run = self._stage.healthy()
            except DynIdError as error:
                self.trips.append(str(error))
                continue
            if run.code != 0:
                self.trips.append(run.text)
            else:
                self.off_path = max(self.off_path, run.off_path)


def row_of(event: Event, runs: Sequence[Run], wrong: Sequence[str], bound: float, load: int
           ) -> Row:
    """Return the row of the runs of an event, and of what went wrong in others."""
    wrong = [*wrong, *(f'{fault} ({run.text})' if run.text else fault
                       for run in runs for fault in event.faults(run, run.code))]
    seconds = [getattr(run, event.measure) for run in runs]
    ours = float(np.max(seconds)) if runs and not event.goes_on else np.nan
    codes = Counter('none' if run.code is None else run.code.name for run in runs)
    return {
        'what': event.what, 'load': load, 'runs': len(runs), 'unit': 's',
        'ours': round(ours, DIGITS), 'peer': round(bound, DIGITS), 'ratio': ours / bound,
        'target': '<= 1',
        'kept': bool(runs) and not wrong and (event.goes_on or ours <= bound),
        **{column: _worst(runs, name) for column, name in FIGURES.items()},
        'median': float(np.median(seconds)) if runs and not event.goes_on else np.nan,
        'code': ', '.join(name if len(codes) == 1 else f'{count} {name}'
                          for name, count in codes.most_common()),
        'text': runs[0].text if runs else '', 'wrong': wrong,
        'seconds': [float(value) for value in seconds]}


def trip_row(trips: Sequence[str], motions: int, off_path: float, load: int) -> Row:
    """Return the row of motions that ended without a reason.

    None may on a machine that is idle, less than one in 100 beside busy loops.
    """
    bound = max(1.0, motions / 100.0) if load else 1.0
    return {**dict.fromkeys((*FIGURES, 'median'), float('nan')), 'off path': off_path,
            'what': 'motions that ended without an event', 'load': load, 'runs': motions,
            'unit': '', 'ours': float(len(trips)), 'peer': bound, 'ratio': len(trips) / bound,
            'target': '< 1', 'kept': len(trips) < bound, 'code': '', 'text': '',
            'wrong': list(trips), 'seconds': []}


def _worst(runs: Sequence[Run], name: str) -> float:
    values = np.array([getattr(run, name) for run in runs], dtype=np.float64)
    known = values[~np.isnan(values)]
    return round(float(known.max()), DIGITS) if len(known) else float('nan')
