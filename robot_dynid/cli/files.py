"""Arguments that are files: checked before the work, not after it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from robot_dynid.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from robot_dynid.cli.terminal import Progress
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.types import RawLog


def check_writable(*paths: str | None) -> None:
    """Raise UsageError when a file could not be written at one of ``paths`` (None: not asked)."""
    for path in paths:
        if path is None:
            continue
        folder = Path(path).resolve().parent
        if Path(path).is_dir():
            raise UsageError(f'{path}: is a folder, give the name of a file')
        if not folder.is_dir():
            raise UsageError(f'{path}: there is no folder {folder}; make it first')
        if not os.access(path if Path(path).exists() else folder, os.W_OK):
            raise UsageError(f'{path}: no permission to write there')


def check_report(path: str | None) -> None:
    """Raise MissingDependency or UsageError when a report could not be written at ``path``."""
    if path is not None:
        import robot_dynid.report.libraries  # noqa: F401

        check_writable(path)


def write_text(path: str, text: str) -> None:
    """Write a text as it is; an existing file is replaced only once the new one is complete."""
    target = Path(path)
    temporary = target.with_name(f'.{target.name}.tmp')
    temporary.write_bytes(text.encode())
    temporary.replace(target)


def load_logs(
    paths: Sequence[str], robot: RobotModel, progress: Progress
) -> list[RawLog]:
    """Read recordings in order."""
    from robot_dynid.io.log import load_log

    logs = []
    for index, path in enumerate(paths):
        progress(f'reading {Path(path).name}', index / len(paths))
        logs.append(load_log(path, robot))
    return logs


def load_model(path: str, robot: str | None) -> IdentifiedModel:
    """Read an identified model, checked against ``robot`` where one is named."""
    from robot_dynid.identified.model import IdentifiedModel
    from robot_dynid.robot.robot_file import load_robot

    return IdentifiedModel.load(path, None if robot is None else load_robot(robot))
