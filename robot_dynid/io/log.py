"""Recordings of every format: the reader follows from the path."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from robot_dynid.errors import UsageError
from robot_dynid.io.bag import Topics, read_bag
from robot_dynid.io.csv import read_csv
from robot_dynid.io.storage import READERS
from robot_dynid.types import RawLog


class HasJoints(Protocol):
    """Anything with joint names, such as a robot model."""

    @property
    def joints(self) -> tuple[str, ...]:
        """Joint names in order."""


def load_log(path: str | Path, robot: HasJoints, topics: Topics | None = None) -> RawLog:
    """Read a recording with its columns in the order of the robot's joints.

    ``path`` is a CSV file (plain or .gz), a rosbag2 folder, or a .mcap or .db3 file; ``topics``
    names the topics of a bag where they are not the usual ones.

    Raises UsageError for another kind of file, DataError when the data cannot be used.
    """
    file = Path(path)
    if os.path.isdir(file) or file.suffix in READERS:
        return read_bag(file, robot.joints, topics)
    if file.name.endswith(('.csv', '.csv.gz')):
        return read_csv(file, robot.joints)
    raise UsageError(
        f'{path}: unknown kind of recording; give a .csv or .csv.gz file, a rosbag2 folder, '
        f'or a .mcap or .db3 file'
    )
