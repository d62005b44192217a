"""Windows of recordings in time, written behind a name: ``run.csv.gz[12.0:40.5]``.

Times are seconds since the recording began, whatever its stamps count from; a row belongs to a
window from its start to before its stop, so that windows side by side share no row.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError, UsageError
from robot_dynid.numbers import NumberRange, shown
from robot_dynid.signals.parts import Parts
from robot_dynid.types import FloatArray, RawLog, StoredRecording, take

#: where a window may start and stop
SECONDS = NumberRange(0.0, 1e7, 's')
#: a name and the window behind it
NAMED = re.compile(r'(?s)(?P<file>.+)\[(?P<start>[^\[\]:]*):(?P<stop>[^\[\]:]*)\]')
#: how a window is written, for messages
FORM = ('a window is [start:stop] in seconds since the recording began, such as [12.0:40.5]; '
        'either may be left out')
#: a time may be meant twice where the clock goes back by more than this [s]
STEP_BACK = 1.0
#: s beside a window that are read with it: topics are brought to one time, and stamps may jump
WINDOW_MARGIN = 5.0



@dataclass(frozen=True)
class Window:
    """The rows from ``start`` [s] since the recording began to before ``stop`` [s].

    None: from the beginning, to the end. Raises UsageError for a window that holds nothing or
    leaves nothing out.
    """

    start: float | None = None
    stop: float | None = None

    def __post_init__(self) -> None:
        for value in (self.start, self.stop):
            if value is not None:
                SECONDS.read(value, f'window {self}: seconds since the recording began')
        if self.start is None and self.stop is None:
            raise UsageError(f'window {self}: leaves nothing out; {FORM}')
        if (self.start or 0.0) >= (np.inf if self.stop is None else self.stop):
            raise UsageError(f'window {self}: does not stop after its start; {FORM}')

    def __str__(self) -> str:
        ends = ('' if value is None else f'{value:.10g}' for value in (self.start, self.stop))
        return f'[{":".join(ends)}]'

    def near(self, since: FloatArray) -> NDArray[np.bool_]:
        """Return a mask (N,) of the times (N,) [s] that are within WINDOW_MARGIN of the window."""
        start, stop = (self.start or 0.0), (np.inf if self.stop is None else self.stop)
        return np.asarray(~((since < start - WINDOW_MARGIN) | (since >= stop + WINDOW_MARGIN)))

    def missed(self, source: str, length: float) -> DataError:
        """Return the error to raise where no row of a recording of ``length`` [s] is in it."""
        return DataError(f'{source}: no row of the recording is in this window, which is in '
                         f'seconds since it began; it is {length:.6g} s long')

    @classmethod
    def read(cls, value: Any, key: str) -> Window:
        """Return the window of a pair of numbers, None for an open end; raises UsageError."""
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise UsageError(f'{key} must be [start, stop] in seconds since the recording began, '
                             f'null for an open end, is {shown(value)}')
        return cls(*(None if end is None else SECONDS.read(end, key) for end in value))


def named(path: str) -> tuple[str, Window | None]:
    """Return a file and the window of it that is asked for, None for all of it.

    Raises UsageError for a window that cannot be.
    """
    match = NAMED.fullmatch(path)
    if match is None:
        return path, None
    ends = []
    for text in match.group('start', 'stop'):
        try:
            ends.append(float(text) if text.strip() else None)
        except ValueError:
            raise UsageError(f'{path}: {shown(text)} is not a number of seconds; {FORM}') from None
    try:
        return match['file'], Window(*ends)
    except UsageError as error:
        raise UsageError(f'{path}: {error}') from None


def file_of(path: str) -> str:
    """Return the file of a recording that may be a window of it; raises UsageError."""
    return named(path)[0]


def windowed(recording: RawLog, window: Window) -> RawLog:
    """Return the rows of a recording within a window; what is found in its file stays.

    Its stamps stay, too, and friction that warms up counts from the beginning of the recording.
    Raises DataError where the window holds no rows, and where stamps that go back make it
    ambiguous.
    """
    source, time = f'{recording.source}{window}', recording.time
    known = np.flatnonzero(np.isfinite(time))
    if not len(known):
        raise DataError(f'{source}: the recording has no stamps')
    began = float(time[known[0]]) if recording.began is None else recording.began
    since = time[known] - began
    back = np.flatnonzero(np.diff(since) < -STEP_BACK)
    if len(back):
        raise DataError(
            f'{source}: the clock of the recording goes back by {-np.diff(since)[back[0]]:.4g} s '
            f'{since[back[0]]:.6g} s after its beginning, so a time may be meant twice; cut the '
            'recording into files')
    start, stop = (default if end is None else end for end, default in (
        (window.start, 0.0), (window.stop, np.inf)))
    inside = known[(since >= start) & (since < stop)]
    if not len(inside):
        raise window.missed(source, since.max())
    low, high = int(inside[0]), int(inside[-1]) + 1
    log = take(recording, slice(low, high))
    return replace(log, source=source, began=began, effort_messages=_messages(
        log.effort_messages, time[inside]))


def with_windows(
    logs: Sequence[RawLog], windows: Mapping[str, tuple[Window, ...]]
) -> Sequence[RawLog]:
    """Return recordings, of those that ``windows`` names by their file only these windows.

    A name is that of the file or folder, or its path. Raises UsageError for a name that is not
    there or stands for several recordings, DataError as `windowed`.
    """
    if not windows:
        return logs
    if not isinstance(logs, Parts):
        raise UsageError('windows of a recipe need recordings that are opened together (a list '
                         'or Parts), not a sequence that reads them one by one')
    by_name = {name: _recording_index(name, logs.sources) for name in windows}
    found: list[RawLog | StoredRecording] = []
    for number, recording in enumerate(logs.recordings):
        own = [w for name, place in by_name.items() if place == number for w in windows[name]]
        found += [windowed(recording, w) if isinstance(recording, RawLog) else
                  recording.within(w.start, w.stop) for w in own] or [recording]
    return replace(logs, recordings=tuple(found))


def _recording_index(name: str, sources: Sequence[str]) -> int:
    """Return the index of the recording that a recipe means; raises UsageError."""
    exact = [i for i, source in enumerate(sources) if source == name]
    found = exact or [i for i, source in enumerate(sources) if PurePath(source).name == name]
    if len(found) != 1:
        what = 'several recordings are' if found else 'no recording is'
        raise UsageError(f'recipe: windows: {what} called {shown(name)}; they are '
                         f'{", ".join(sources)}: give the name of one, or its path')
    return found[0]


def _messages(
    messages: tuple[FloatArray, FloatArray] | None, time: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return the efforts with stamps of their own that are within ``time`` (N,) [s]."""
    if messages is None:
        return None
    rows = (messages[0] >= time.min()) & (messages[0] <= time.max())
    return messages[0][rows], messages[1][rows]
