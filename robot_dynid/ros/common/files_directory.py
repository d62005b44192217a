"""Files that requests name: below one folder, whatever the name or its links say."""

from __future__ import annotations

from pathlib import Path

from robot_dynid.errors import UsageError, clipped
from robot_dynid.numbers import shown


def file_inside(directory: str | Path, name: str) -> Path:
    """Return the resolved path of the regular file ``name``, relative to ``directory``.

    Raises UsageError when it lies outside, also by '..' or a link, or cannot be read as a file.
    """
    try:
        root = Path(directory).expanduser().resolve()
        path = (root / name).resolve()
        inside, regular = path.is_relative_to(root), path.is_file()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f'{shown(name)}: not a path: {clipped(str(error))}') from error
    if not inside:
        raise UsageError(f"'{clipped(name)}' lies outside {root}, the parameter files_directory; "
                         'give a path relative to it')
    if not regular:
        raise UsageError(f"no file '{clipped(name)}' in {root}, the parameter files_directory")
    return path
