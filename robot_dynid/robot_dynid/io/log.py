"""Load recordings by name: into memory, or reread from their files where they are used."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any, Protocol

from robot_dynid.errors import DataError, UsageError, reported
from robot_dynid.files import file_digest
from robot_dynid.io.bag import Topics, read_bag
from robot_dynid.io.csv import read_csv
from robot_dynid.io.findings import EFFORT, MEMORY_NUMBERS
from robot_dynid.io.recording_names import BAGS, is_remote, store_of
from robot_dynid.io.tables.arrays import READERS
from robot_dynid.io.tables.opened import TABLE_FILES, TEXTS
from robot_dynid.io.wrenches import WrenchTopics
from robot_dynid.robot.columns import column_mapping
from robot_dynid.robot.model import POSITION_ERROR, RobotModel
from robot_dynid.signals.parts import Glance, Parts, find_glances
from robot_dynid.signals.windows import Window, cut_window, split_window
from robot_dynid.types import Progress, RawLog, StoredRecording, channels

#: cache of recordings per process [numbers]: 200 MB
CACHE_NUMBERS = 25_000_000


#: remedies for unsupported file types, by ending
REMEDIES = {
    **dict.fromkeys(('.xlsx', '.xls', '.ods'), ' (a spreadsheet: save it as CSV)'),
    **dict.fromkeys(('.h5', '.hdf5'), ' (HDF5: save its arrays with numpy.savez as .npz)'),
    **dict.fromkeys(('.pkl', '.pickle'), ' (a pickle can run arbitrary code: save the '
                    'arrays with numpy.savez as .npz)'),
    '.ulg': ' (a PX4 log: ulog2csv NAME.ulg)', '.tdms': ' (LabVIEW: export it as text)',
    '.lvm': ' (LabVIEW: rename it to .txt, without the lines above its header)',
    '.active': ' (a ROS 1 bag whose recorder was killed: rosbag reindex NAME, and name it .bag)',
    '.feather': ' (write it as .parquet)', '.zip': ' (unpack it)',
}


class HasJoints(Protocol):
    """Anything with joint names, such as a robot model."""

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names in order."""


@reported
def load_log(
    path: str | Path, robot: HasJoints, topics: Topics | None = None,
    columns: Mapping[str, Any] | str | None = None,
) -> RawLog:
    """Load a recording with its columns in the order of the robot's joints.

    ``path`` is a table of numbers (CSV and other text, plain or .gz, .npz, .mat, .json, .parquet),
    a rosbag2 folder, or a .mcap, .db3 or ROS 1 .bag file, optionally with a window in seconds from
    its beginning: ``run.csv[12.0:40.5]``. ``topics`` names the topics of a bag if they differ from
    the robot's; ``columns`` assigns the columns of a table, by a mapping or the name of a preset
    (None: that of a RobotModel, else a matching preset). External wrenches, from columns or from
    topics in the robot YAML, become torque on the joints of a RobotModel.

    Raises UsageError for an unsupported file or invalid window, DataError if the data is unusable,
    absent from the window, or too large for the memory.
    """
    name, window = split_window(str(path))
    file, model = Path(name), robot if isinstance(robot, RobotModel) else None
    if os.path.isdir(file) or file.suffix in BAGS:
        topics = topics or (None if model is None else Topics.of(model))
        log = read_bag(file, robot.joints, with_wrenches(topics, model), window)
    elif file.name.endswith(TABLE_FILES):
        log = read_csv(file, robot.joints, model, window,
                       None if columns is None else column_mapping(columns))
    else:
        raise UsageError(
            f'{file}: unknown kind of recording{REMEDIES.get(file.suffix.lower(), "")}; give a '
            f'table ({", ".join((*TEXTS, *READERS))}), a rosbag2 folder, or a .mcap, .db3 or .bag '
            'file, optionally with a window [start:stop] in seconds')
    if model is not None and model.drive.kind == POSITION_ERROR:  # effort follows from commands
        log = replace(log, findings=tuple(
            text for text in log.findings if not text.startswith(EFFORT)))
    return log if window is None else cut_window(log, window)


def with_wrenches(topics: Topics | None, robot: RobotModel | None) -> Topics | None:
    """Return ``topics`` with the wrench topics of the YAML of ``robot``."""
    if robot is None or not (robot.wrenches or robot.wrench_sensor):
        return topics
    return replace(topics or Topics(), wrenches=WrenchTopics(robot))


def read_recordings(
    paths: Sequence[str], robot: RobotModel, progress: Progress | None = None
) -> Parts:
    """Read recordings in order, see `open_recordings`; raises as `load_log`."""
    def each() -> Iterator[tuple[RawLog, RecordingFile]]:
        for index, path in enumerate(paths):
            if progress is not None:
                progress(f'reading {Path(path).name}', index / len(paths))
            yield load_log(path, robot), RecordingFile(path, robot)

    return open_recordings(each())


def open_recordings(logs: Iterable[tuple[RawLog, RecordingFile | None]]) -> Parts:
    """Return recordings in memory; those beyond MEMORY_NUMBERS are reread from their files.

    ``logs`` are the recordings and their files, None without one.
    """
    recordings: list[RawLog | StoredRecording] = []
    numbers = 0
    for log, file in logs:
        numbers += _numbers(log)
        fits = file is None or numbers <= MEMORY_NUMBERS
        numbers -= 0 if fits else _numbers(log)
        recordings.append(log if fits or file is None else file.with_facts(log))
    return Parts(tuple(recordings))


def _numbers(log: RawLog) -> int:
    return log.time.size + sum(values.size for values in channels(log).values())


@dataclass(frozen=True, eq=False)
class RecordingFile:
    """A recording by its path, optionally with a window; see StoredRecording.

    It is read where it is used, so its file must be accessible. Opening it sets the SHA-256 of the
    file, the number of rows, ``findings``, and, for long files, the stretches in motion,
    ``glances``; before that only ``source`` is available.
    """

    path: str
    robot: RobotModel
    window: Window | None = None
    digest: str = ''
    rows: int = 0
    findings: tuple[str, ...] = ()
    glances: tuple[Glance, ...] | None = None

    @property
    def source(self) -> str:
        """The file, with the window."""
        file, inner = (self.path, None) if is_remote(self.path) else split_window(self.path)
        return f'{file if is_remote(file) else Path(file)}{inner or ""}{self.window or ""}'

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names in order of the columns."""
        return self.robot.joints

    def __len__(self) -> int:
        assert self.digest, 'it was not opened'
        return self.rows

    def opened(self) -> tuple[RecordingFile, str]:
        """Read it, see StoredRecording; raises UsageError, DataError as `load_log`."""
        log, digest = self._read()
        _CACHE.put((digest, self.source), log)
        return self.with_facts(log, digest), digest

    def with_facts(self, log: RawLog, digest: str | None = None) -> RecordingFile:
        """Return it with the facts of ``log``; ``digest`` is that of its file."""
        digest = file_digest(split_window(self.path)[0]) if digest is None else digest
        return replace(self, digest=digest, rows=len(log.time), findings=log.findings,
                       glances=find_glances(log) or None)

    def read(self) -> RawLog:
        """Load it into memory; raises DataError if the file has changed."""
        key = self.digest, self.source
        log = _CACHE.get(key)
        if log is None:
            log, digest = self._read()
            if digest != key[0]:
                raise DataError(f'{self.source}: changed while it was in use; start again')
            _CACHE.put(key, log)
        return log

    def within(self, start: float | None, stop: float | None) -> RecordingFile:
        """Return a window of it."""
        return RecordingFile(self.path, self.robot, Window(start, stop))

    def _read(self) -> tuple[RawLog, str]:
        """Return the recording and the SHA-256 of its file or folder."""
        file, inner = split_window(self.path)
        with _on_this_machine(file) as path:
            log = load_log(path if inner is None else f'{path}{inner}', self.robot)
            digest = file_digest(path)
        if self.window is not None:
            log = cut_window(log, self.window)
        return replace(log, source=self.source), digest


class _Cache:
    """Recordings that this process has read: the first that fit, and the latest."""

    def __init__(self) -> None:
        self._lock, self._numbers = Lock(), 0
        self._logs: dict[tuple[str, str], RawLog] = {}
        self._latest: dict[tuple[str, str], RawLog] = {}

    def get(self, key: tuple[str, str]) -> RawLog | None:
        """Return a cached recording, else free the latest."""
        with self._lock:
            log = self._logs.get(key) or self._latest.get(key)
            if log is None:
                self._latest.clear()
            return log

    def put(self, key: tuple[str, str], log: RawLog) -> None:
        """Store a recording."""
        with self._lock:
            self._latest = {key: log}
            if key not in self._logs and self._numbers + _numbers(log) <= CACHE_NUMBERS:
                self._numbers += _numbers(log)
                self._logs[key] = log


_CACHE = _Cache()


@contextmanager
def _on_this_machine(path: str) -> Iterator[str]:
    """Provide a local path of a file or folder, a temporary copy of one in an object store.

    Raises MissingDependency without the library of the store, DataError if it does not respond.
    """
    if not is_remote(path):
        yield path
        return
    with TemporaryDirectory(prefix='robot_dynid_') as folder:
        copy = os.path.join(folder, path.rstrip('/').rpartition('/')[2])
        with store_of(path) as (store, place):
            store.get(place, copy, recursive=store.isdir(place))
        yield copy


def recording_files(paths: Sequence[str], robot: RobotModel) -> Parts:
    """Return recordings that are read where they are used."""
    return Parts(tuple(RecordingFile(path, robot) for path in paths))
