"""Files of other ROS packages: ``package://NAME/PATH``, as in URDF files and robot YAMLs."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlparse

from robot_dynid.errors import MissingDependency, RobotError, clipped
from robot_dynid.robot.locate import is_file

SCHEME = 'package://'


def in_package(package: str, path: str, folder: Path | None = None) -> Path | None:
    """Return the file ``path`` of a ROS package; None: there is none.

    Packages are looked for in AMENT_PREFIX_PATH, ROS_PACKAGE_PATH and the folders above
    ``folder``.
    """
    shares = [Path(p) / 'share' / package
              for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    roots = [Path(p) for p in os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep) if p]
    above = [] if folder is None else [folder.resolve(), *folder.resolve().parents]
    shares += [root / package for root in roots] + roots + [f / package for f in above]
    shares += [f for f in above if f.name == package]
    return next((share / path for share in shares if is_file(share / path)), None)


def located(name: str, folder: Path) -> Path | None:
    """Return the file of a mesh called ``name`` in a URDF of ``folder``; None: there is none."""
    try:
        parsed = urlparse(name)
    except ValueError:  # no address: brackets, say
        return None
    if parsed.scheme == 'package':
        return in_package(parsed.netloc, unquote(parsed.path).lstrip('/'), folder)
    path = Path(unquote(parsed.path)) if parsed.scheme == 'file' else folder / name
    return path if is_file(path) else None


def package_file(uri: str, where: str, origin: str = '') -> Path:
    """Return the file that ``uri``, ``package://NAME/PATH``, stands for.

    ``where`` begins the messages, ``origin`` is the address of the package's source. Raises
    MissingDependency where it is not installed, RobotError where ``uri`` names no file.
    """
    package, _, path = uri.removeprefix(SCHEME).partition('/')
    if not package or not path:
        raise RobotError(f'{where}: {clipped(uri)} must be {SCHEME}PACKAGE/FILE')
    found = in_package(package, path)
    if found is not None:
        return found
    build = f', or build it from {origin} in your workspace' if origin else ''
    name = clipped(package.replace('_', '-'))
    raise MissingDependency(
        f'{where}: {clipped(path)} of the ROS package {clipped(package)} is not here: apt install '
        f'ros-$ROS_DISTRO-{name}{build}, then source ROS; or give the URDF of your robot in a '
        'robot YAML of your own')
