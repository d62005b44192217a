"""Recordings named on a command line, read where they are worked on; also from object stores."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from robot_dynid.errors import DataError
from robot_dynid.files import file_digest
from robot_dynid.io.log import open_log
from robot_dynid.io.object_store import is_remote, on_this_machine
from robot_dynid.io.stored import stored
from robot_dynid.robot.model import RobotModel
from robot_dynid.scratch import process_scratch
from robot_dynid.signals.parts import Glance, looked_through
from robot_dynid.signals.windows import Recording, Window, named, windowed
from robot_dynid.types import RawLog, StoredRecording, take


@dataclass(frozen=True)
class Known:
    """Facts of a recording that was read: SHA-256, rows, findings, stretches in motion."""

    digest: str
    rows: int
    findings: tuple[str, ...]
    glances: tuple[Glance, ...]


@dataclass(frozen=True, eq=False)
class RecordingFile:
    """A recording by its path, a window of it in brackets or not; see UnreadRecording.

    ``here``: it is worked on by processes of this machine, which share what one of them has read;
    others read the file again, wherever they need it, so they must see it. What is ``known`` is so
    once it was opened; before, it can only be asked for its ``source``.
    """

    path: str
    robot: RobotModel
    here: bool = True
    window: Window | None = None
    known: Known | None = None

    @property
    def source(self) -> str:
        """The file, with the window."""
        return _source(self.path) if self.window is None else f'{_source(self.path)}{self.window}'

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names in order of the columns."""
        return self.robot.joints

    @property
    def findings(self) -> tuple[str, ...]:
        """Findings about the whole recording."""
        return self._known.findings

    @property
    def glances(self) -> tuple[Glance, ...]:
        """Stretches in motion where it is long."""
        return self._known.glances

    def __len__(self) -> int:
        return self._known.rows

    @property
    def _known(self) -> Known:
        assert self.known is not None, 'it was not opened'
        return self.known

    def opened(self) -> tuple[StoredRecording, str]:
        """Read it, see UnreadRecording; raises UsageError, DataError as `load_log`."""
        recording, digest = self._opened()
        if self.here:
            return recording if not isinstance(recording, RawLog) else \
                stored(recording, process_scratch()), digest
        rows = len(recording.time) if isinstance(recording, RawLog) else len(recording)
        known = Known(digest, rows, recording.findings, looked_through(recording))
        with _LATEST.lock:
            _LATEST.recording, _LATEST.of = recording, (digest, self.source)
        return replace(self, known=known), digest

    def read(self, start: int, stop: int) -> RawLog:
        """Return the rows from ``start`` to before ``stop``.

        Raises DataError where the file is another one by now.
        """
        of = self._known.digest, self.source
        with _LATEST.lock:
            recording = _LATEST.recording
            if _LATEST.of != of or recording is None:
                _LATEST.recording = None  # one is in memory at a time
                recording, digest = self._opened()
                if digest != of[0]:
                    raise DataError(f'{self.source}: changed while it was worked on; start again')
                _LATEST.recording, _LATEST.of = recording, of
        if not isinstance(recording, RawLog):
            return recording.read(start, stop)
        whole = (start, stop) == (0, len(recording.time))
        return recording if whole else take(recording, slice(start, stop))

    def within(self, start: float | None, stop: float | None) -> RecordingFile:
        """Return a window of it."""
        return replace(self, window=Window(start, stop))

    def _opened(self) -> tuple[Recording, str]:
        """Return the recording and the SHA-256 of its file or folder."""
        file, inner = named(self.path)
        with on_this_machine(file) as path:
            recording: Recording = open_log(
                path if inner is None else f'{path}{inner}', self.robot, process_scratch())
            digest = file_digest(path)
        if is_remote(file):
            recording = replace(recording, source=_source(self.path))  # type: ignore[type-var]
        return (recording if self.window is None else windowed(recording, self.window)), digest


class _Latest:
    """The recording that was read last in this process: what is asked next is often of it."""

    def __init__(self) -> None:
        self.lock, self.of = Lock(), ('', '')
        self.recording: Recording | None = None


_LATEST = _Latest()


def _source(path: str) -> str:
    if is_remote(path):
        return path
    file, window = named(path)
    return f'{Path(file)}{window or ""}'
