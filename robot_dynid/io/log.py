"""Recordings of every format: the reader follows from the path."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from robot_dynid.errors import UsageError, reported
from robot_dynid.io.bag import Topics, read_bag
from robot_dynid.io.bag_windows import open_bag
from robot_dynid.io.csv import open_csv, read_csv
from robot_dynid.io.recording_names import STORAGES, TABLES
from robot_dynid.io.stored import stored
from robot_dynid.io.wrenches import WrenchTopics
from robot_dynid.robot.model import RobotModel
from robot_dynid.scratch import Scratch
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.windows import Window, named, windowed
from robot_dynid.types import RawLog, StoredRecording

#: rows of recordings that stay in memory together: 50 MB for seven joints
IN_MEMORY = 200_000


class HasJoints(Protocol):
    """Anything with joint names, such as a robot model."""

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names in order."""


@reported
def load_log(path: str | Path, robot: HasJoints, topics: Topics | None = None) -> RawLog:
    """Read a recording with its columns in the order of the robot's joints.

    ``path`` is a CSV file (plain or .gz), a rosbag2 folder, or a .mcap or .db3 file, with a window
    of it in brackets or without: ``run.csv[12.0:40.5]``, in seconds since the recording began;
    ``topics`` names the topics of a bag where they are not the usual ones. External wrenches
    become torque on the joints of a RobotModel: columns of a table, topics that its YAML names.

    Raises UsageError for another kind of file or a window that cannot be, DataError when the data
    cannot be used or none is in the window.
    """
    file, window = _named(path)
    own = robot if isinstance(robot, RobotModel) else None
    log = read_bag(file, robot.joints, with_wrenches(topics, own)) if _is_bag(file) else \
        read_csv(file, robot.joints, own)
    if window is None:
        return log
    cut = windowed(log, window)
    assert isinstance(cut, RawLog)
    return cut


def open_log(
    path: str | Path, robot: HasJoints, scratch: Scratch, topics: Topics | None = None
) -> RawLog | StoredRecording:
    """Read a recording as `load_log` does, a long one to ``scratch`` space.

    Raises UsageError for another kind of file or a window that cannot be, DataError when the data
    cannot be used, none is in the window, or the disk is full.
    """
    file, window = _named(path)
    own = robot if isinstance(robot, RobotModel) else None
    recording = open_bag(file, robot.joints, scratch, with_wrenches(topics, own)) \
        if _is_bag(file) else open_csv(file, robot.joints, scratch, own)
    return recording if window is None else windowed(recording, window)


def with_wrenches(topics: Topics | None, robot: RobotModel | None) -> Topics | None:
    """Return ``topics`` with those of the wrenches that the YAML of ``robot`` names."""
    if robot is None or not robot.wrenches:
        return topics
    return replace(topics or Topics(), wrenches=WrenchTopics(robot))


def _named(path: str | Path) -> tuple[Path, Window | None]:
    """Return a file and the window of it that is asked for; raises UsageError."""
    file, window = named(str(path))
    return Path(file), window


def _is_bag(file: Path) -> bool:
    """Return whether a file is a bag and not CSV; raises UsageError for anything else."""
    if os.path.isdir(file) or file.suffix in STORAGES:
        return True
    if file.name.endswith(TABLES):
        return False
    raise UsageError(
        f'{file}: unknown kind of recording; give a .csv or .csv.gz file, a rosbag2 folder, '
        f'or a .mcap or .db3 file; behind it may stand a window, [start:stop] in seconds since '
        f'the recording began'
    )


class Opened:
    """Recordings that are opened one after the other: those of few rows together in memory.

    The others are in scratch space, and so is a long one.
    """

    def __init__(self, scratch: Scratch | None = None) -> None:
        self.scratch = scratch or Scratch()
        self._recordings: list[RawLog | StoredRecording] = []
        self._rows = 0

    def add(self, recording: RawLog | StoredRecording) -> None:
        """Take the next recording; raises DataError when the disk is full."""
        if isinstance(recording, RawLog):
            self._rows += len(recording.time)
            if self._rows > IN_MEMORY:
                self._rows -= len(recording.time)
                recording = stored(recording, self.scratch)
        self._recordings.append(recording)

    @property
    def parts(self) -> Parts:
        """All recordings, the long ones in parts."""
        return Parts(tuple(self._recordings))
