"""Files of robots: those that come with the package, by their names, and any others."""

from __future__ import annotations

import os
from pathlib import Path

from robot_dynid.errors import UsageError
from robot_dynid.robot.xacro_file import SUFFIX as XACRO_SUFFIX

YAML_SUFFIXES = '.yaml', '.yml'
#: folders above that of the packages (PREFIX/local/lib/python3.X/dist-packages) up to the prefix
PREFIX_DEPTH = 4


def shared_folders() -> list[Path]:
    """Return the folders that hold ``config`` and ``urdf``.

    First the source tree the package lies in, then ``share/robot_dynid`` beside the package (pip
    --target) or under a prefix above it (pip, pip --user, colcon), then the same under the
    prefixes of a sourced ROS 2.
    """
    packages = Path(__file__).resolve().parents[2]
    prefixes = os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep)
    above = [packages, *packages.parents[:PREFIX_DEPTH], *(Path(p) for p in prefixes if p)]
    folders = [packages, *(prefix / 'share' / 'robot_dynid' for prefix in above)]
    return [f for f in dict.fromkeys(folders) if (f / 'config' / 'robots').is_dir()]


def find(relative: str) -> Path | None:
    """Return the first existing file ``relative`` (such as ``urdf/ur10e.urdf``), or None."""
    for folder in shared_folders():
        if is_file(folder / relative):
            return folder / relative
    return None


def is_file(path: Path) -> bool:
    """Return whether there is such a file; a name that no file can have is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def known_robots() -> list[str]:
    """Return the names of the robots that come with the package."""
    names = {p.stem for f in shared_folders() for p in (f / 'config' / 'robots').glob('*.yaml')}
    return sorted(names)


def robot_file(robot: str | Path) -> Path:
    """Return the URDF, xacro or YAML file of a robot, which is given itself or by its name.

    Raises UsageError when there is no robot of that name.
    """
    path = Path(robot)
    if path.suffix in ('.urdf', XACRO_SUFFIX, *YAML_SUFFIXES):
        return path
    found = find(f'config/robots/{robot}.yaml')
    if found is None:
        raise UsageError(f'no robot {str(robot)!r}: give a URDF file, a robot YAML, or one of '
                         f'{", ".join(known_robots())}')
    return found
