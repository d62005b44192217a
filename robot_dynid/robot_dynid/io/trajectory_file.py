"""Trajectory files: YAML with type and parameters, without samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from robot_dynid.errors import UsageError, reported
from robot_dynid.files import atomic_write, read_text
from robot_dynid.numbers import shown
from robot_dynid.trajectories.composite import build, describe
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FIT, PURPOSES
from robot_dynid.yaml_text import load_yaml, yaml_text

HEADER = 'robot_dynid_trajectory'
#: header of trajectory files; other files are not overwritten
MARK = f'\n{HEADER}:'.encode()
VERSION = 1


@reported
def save_trajectory(
    trajectory: Trajectory, path: str | Path, robot: str = '', purpose: str = FIT
) -> None:
    """Write ``trajectory`` to ``path`` with full precision.

    ``purpose`` is that of its recording, one of PURPOSES.

    Raises UsageError if the path holds another file, DynIdError if it cannot be written.
    """
    content: dict[str, Any] = {HEADER: VERSION, 'robot': robot, 'purpose': purpose,
                               **describe(trajectory)}
    atomic_write(path, yaml_text(content), MARK)


@reported
def load_trajectory(path: str | Path) -> Trajectory:
    """Read a trajectory; raises UsageError naming the file and what is wrong in it."""
    return load_motion(path)[0]


def load_motion(path: str | Path) -> tuple[Trajectory, str]:
    """Read a trajectory and the purpose of its recording, FIT if the file states none.

    Raises UsageError naming the file and what is wrong in it.
    """
    content = load_yaml(read_text(path), str(path), UsageError)
    if not isinstance(content, dict) or content.get(HEADER) != VERSION:
        raise UsageError(f'{path}: not a trajectory file (expected {HEADER}: {VERSION})')
    purpose = content.get('purpose', FIT)
    if purpose not in PURPOSES:
        raise UsageError(f'{path}: purpose must be {" or ".join(PURPOSES)}, got {shown(purpose)}')
    try:
        return build(content), purpose
    except UsageError as error:
        raise UsageError(f'{path}: {error}') from error
