"""Windows of recordings in time, appended to a name: ``run.csv.gz[12.0:40.5]``.

Times are seconds since the recording began, whatever its stamps count from; a row belongs to a
window from its start to before its stop, so adjacent windows share no row.
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

#: allowed start and stop of a window
SECONDS = NumberRange(0.0, 1e7, 's')
#: a name followed by a window
NAMED = re.compile(r'(?s)(?P<file>.+)\[(?P<start>[^\[\]:]*):(?P<stop>[^\[\]:]*)\]')
#: format of a window, for messages
FORM = ('a window is [start:stop] in seconds since the recording began, such as [12.0:40.5]; '
        'either may be omitted')
#: a time is ambiguous if the clock goes back by more than this [s]
STEP_BACK = 1.0
#: margin [s] read around a window: topics are synchronised, and stamps may jump
WINDOW_MARGIN = 5.0



@dataclass(frozen=True)
class Window:
    """The rows from ``start`` [s] since the recording began to before ``stop`` [s].

    None: from the beginning, to the end. Raises UsageError for a window that is empty or excludes
    nothing.
    """

    start: float | None = None
    stop: float | None = None

    def __post_init__(self) -> None:
        for value in (self.start, self.stop):
            if value is not None:
                SECONDS.read(value, f'window {self}: seconds since the recording began')
        if self.start is None and self.stop is None:
            raise UsageError(f'window {self}: excludes nothing; {FORM}')
        if (self.start or 0.0) >= (np.inf if self.stop is None else self.stop):
            raise UsageError(f'window {self}: does not stop after its start; {FORM}')

    def __str__(self) -> str:
        ends = ('' if value is None else f'{value:.10g}' for value in (self.start, self.stop))
        return f'[{":".join(ends)}]'

    def near(self, since: FloatArray) -> NDArray[np.bool_]:
        """Return a mask (N,) of the times (N,) [s] that are within WINDOW_MARGIN of the window."""
        start, stop = (self.start or 0.0), (np.inf if self.stop is None else self.stop)
        return np.asarray(~((since < start - WINDOW_MARGIN) | (since >= stop + WINDOW_MARGIN)))

    def empty_error(self, source: str, length: float) -> DataError:
        """Return the error for a recording of ``length`` [s] without a row in the window."""
        return DataError(f'{source}: no row of the recording is in this window, given in '
                         f'seconds since it began; it is {length:.6g} s long')

    @classmethod
    def read(cls, value: Any, key: str) -> Window:
        """Return the window of a pair of numbers, None for an open end; raises UsageError."""
        if not isinstance(value, list | tuple) or len(value) != 2:
            raise UsageError(f'{key} must be [start, stop] in seconds since the recording began, '
                             f'null for an open end, is {shown(value)}')
        return cls(*(None if end is None else SECONDS.read(end, key) for end in value))


def split_window(path: str) -> tuple[str, Window | None]:
    """Return the file in a path and the requested window, None for all of it.

    Raises UsageError for an invalid window.
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
    """Return the file of a path with or without window; raises UsageError."""
    return split_window(path)[0]


def cut_window(recording: RawLog, window: Window) -> RawLog:
    """Return the rows of a recording within a window; findings about its file remain.

    Stamps remain as well, and friction that warms up counts from the beginning of the recording.
    Raises DataError if the window contains no row, or if stamps that go back make it ambiguous.
    """
    source, time = f'{recording.source}{window}', recording.time
    finite = np.flatnonzero(np.isfinite(time))
    if not len(finite):
        raise DataError(f'{source}: the recording has no stamps')
    began = float(time[finite[0]]) if recording.began is None else recording.began
    since = time[finite] - began
    back = np.flatnonzero(np.diff(since) < -STEP_BACK)
    if len(back):
        raise DataError(
            f'{source}: the clock of the recording goes back by {-np.diff(since)[back[0]]:.4g} s '
            f'{since[back[0]]:.6g} s after its beginning, so times are ambiguous: cut the '
            'recording into files')
    start, stop = (default if end is None else end for end, default in (
        (window.start, 0.0), (window.stop, np.inf)))
    inside = finite[(since >= start) & (since < stop)]
    if not len(inside):
        raise window.empty_error(source, since.max())
    low, high = int(inside[0]), int(inside[-1]) + 1
    log = take(recording, slice(low, high))
    return replace(log, source=source, began=began, effort_messages=_messages(
        log.effort_messages, time[inside]))


def apply_windows(
    logs: Sequence[RawLog], windows: Mapping[str, tuple[Window, ...]]
) -> Sequence[RawLog]:
    """Return recordings, those named in ``windows`` cut to these windows.

    A name is that of the file or folder, or its path. Raises UsageError for a name that is unknown
    or ambiguous, DataError as `cut_window` does.
    """
    if not windows:
        return logs
    if not isinstance(logs, Parts):
        raise UsageError('windows of a recipe need recordings that are opened together (a list '
                         'or Parts), not a sequence that reads them one by one')
    by_name = {name: _recording_index(name, logs.sources) for name in windows}
    recordings: list[RawLog | StoredRecording] = []
    for number, recording in enumerate(logs.recordings):
        requested = [w for name, place in by_name.items() if place == number
                     for w in windows[name]]
        recordings += [cut_window(recording, w) if isinstance(recording, RawLog) else
                       recording.within(w.start, w.stop) for w in requested] or [recording]
    return replace(logs, recordings=tuple(recordings))


def _recording_index(name: str, sources: Sequence[str]) -> int:
    """Return the index of the recording that a recipe names; raises UsageError."""
    exact = [i for i, source in enumerate(sources) if source == name]
    matches = exact or [i for i, source in enumerate(sources) if PurePath(source).name == name]
    if len(matches) != 1:
        what = 'several recordings are' if matches else 'no recording is'
        raise UsageError(f'recipe: windows: {what} called {shown(name)}; they are '
                         f'{", ".join(sources)}: give the name of one, or its path')
    return matches[0]


def _messages(
    messages: tuple[FloatArray, FloatArray] | None, time: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Return the efforts with separate stamps that are within ``time`` (N,) [s]."""
    if messages is None:
        return None
    rows = (messages[0] >= time.min()) & (messages[0] <= time.max())
    return messages[0][rows], messages[1][rows]
