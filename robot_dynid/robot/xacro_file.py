"""URDF files that are written with xacro, expanded where xacro is installed.

xacro evaluates expressions of the file, so only files that users name themselves come here, never
those of requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from robot_dynid.errors import MissingDependency, RobotError
from robot_dynid.files import read_text

SUFFIX = '.xacro'


def expanded(path: str | Path, arguments: Mapping[str, str] | None = None) -> str:
    """Return the URDF text of a xacro file; ``arguments`` that are not given have their defaults.

    Raises UsageError when there is no such file, MissingDependency without xacro, RobotError when
    xacro cannot expand it.
    """
    read_text(path, RobotError)
    try:
        import xacro
    except ImportError:
        raise MissingDependency(
            f'{path}: is a xacro file, and the package xacro is not installed: apt install '
            'ros-$ROS_DISTRO-xacro or pip install xacro; or expand it elsewhere: xacro FILE > '
            'robot.urdf') from None
    try:
        return str(xacro.process_file(str(path), mappings=dict(arguments or {})).toxml())
    except Exception as error:  # whatever its expressions raise
        raise RobotError(f'{path}: xacro cannot expand it: {error}') from error
