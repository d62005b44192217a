"""Recordings of every format: the reader follows from the path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from robot_dynid.errors import UsageError, reported
from robot_dynid.io.bag import Topics, read_bag
from robot_dynid.io.bag_windows import open_bag
from robot_dynid.io.csv import open_csv, read_csv
from robot_dynid.io.storage import READERS
from robot_dynid.io.stored import StoredLog, stored
from robot_dynid.scratch import Scratch
from robot_dynid.signals.parts import Parts
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

    ``path`` is a CSV file (plain or .gz), a rosbag2 folder, or a .mcap or .db3 file; ``topics``
    names the topics of a bag where they are not the usual ones.

    Raises UsageError for another kind of file, DataError when the data cannot be used.
    """
    file = Path(path)
    if _is_bag(file):
        return read_bag(file, robot.joints, topics)
    return read_csv(file, robot.joints)


def open_log(
    path: str | Path, robot: HasJoints, scratch: Scratch, topics: Topics | None = None
) -> RawLog | StoredLog:
    """Read a recording as `load_log` does, a long one to ``scratch`` space.

    Raises UsageError for another kind of file, DataError when the data cannot be used or the disk
    is full.
    """
    file = Path(path)
    if _is_bag(file):
        return open_bag(file, robot.joints, scratch, topics)
    return open_csv(file, robot.joints, scratch)


def _is_bag(file: Path) -> bool:
    """Return whether a file is a bag and not CSV; raises UsageError for anything else."""
    if os.path.isdir(file) or file.suffix in READERS:
        return True
    if file.name.endswith(('.csv', '.csv.gz')):
        return False
    raise UsageError(
        f'{file}: unknown kind of recording; give a .csv or .csv.gz file, a rosbag2 folder, '
        f'or a .mcap or .db3 file'
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
