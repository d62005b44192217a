"""Find robot files: those of this package, of ROS packages, and others."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlparse

from robot_dynid.errors import MissingDependency, RobotError, UsageError, clipped

#: file names of URDFs written with xacro
XACRO_SUFFIX = '.xacro'
#: scheme of files in ROS packages: package://NAME/PATH
SCHEME = 'package://'
YAML_SUFFIXES = '.yaml', '.yml'
#: levels from the site packages (PREFIX/local/lib/python3.X/dist-packages) to the prefix
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
    """Return True if the file exists; False for names no file can have."""
    try:
        return path.is_file()
    except OSError:
        return False


def known_robots() -> list[str]:
    """Return the names of the bundled robots."""
    names = {p.stem for f in shared_folders() for p in (f / 'config' / 'robots').glob('*.yaml')}
    return sorted(names)


def name_of(path: str | Path) -> str:
    """Return the name of the robot in a file: that of the file, which may not be text."""
    return Path(path).stem.encode('utf-8', 'backslashreplace').decode()


def robot_file(robot: str | Path) -> Path:
    """Return the URDF, xacro or YAML file of a robot given by path or name.

    Raises UsageError if there is no such robot.
    """
    path = Path(robot)
    if path.suffix.lower() in ('.urdf', '.xml', XACRO_SUFFIX, *YAML_SUFFIXES):
        return path
    bundled = find(f'config/robots/{robot}.yaml')
    if bundled is None:
        raise UsageError(f'no robot {str(robot)!r}: give a URDF file, a robot YAML, or one of '
                         f'{", ".join(known_robots())}')
    return bundled


def in_package(package: str, path: str, folder: Path | None = None) -> Path | None:
    """Return the file ``path`` of a ROS package, None if there is none.

    Packages are searched in AMENT_PREFIX_PATH, ROS_PACKAGE_PATH and the folders above ``folder``.
    """
    shares = [Path(p) / 'share' / package
              for p in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep) if p]
    roots = [Path(p) for p in os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep) if p]
    above = [] if folder is None else [folder.resolve(), *folder.resolve().parents]
    shares += [root / package for root in roots] + roots + [f / package for f in above]
    shares += [f for f in above if f.name == package]
    return next((share / path for share in shares if is_file(share / path)), None)


def located(name: str, folder: Path) -> Path | None:
    """Return the file of a mesh called ``name`` in a URDF of ``folder``, None if there is none."""
    try:
        parsed = urlparse(name)
    except ValueError:  # not a URL
        return None
    if parsed.scheme == 'package':
        return in_package(parsed.netloc, unquote(parsed.path).lstrip('/'), folder)
    path = Path(unquote(parsed.path)) if parsed.scheme == 'file' else folder / name
    return path if is_file(path) else None


def package_file(uri: str, where: str, origin: str = '') -> Path:
    """Return the file of ``uri``, ``package://NAME/PATH``.

    ``where`` begins the messages, ``origin`` is the address of the package's source. Raises
    MissingDependency if the package is not installed, RobotError if ``uri`` names no file.
    """
    package, _, path = uri.removeprefix(SCHEME).partition('/')
    if not package or not path:
        raise RobotError(f'{where}: {clipped(uri)} must be {SCHEME}PACKAGE/FILE')
    file = in_package(package, path)
    if file is not None:
        return file
    build = f', or build it from {origin} in your workspace' if origin else ''
    name = clipped(package.replace('_', '-'))
    raise MissingDependency(
        f'{where}: {clipped(path)} of the ROS package {clipped(package)} is missing: apt install '
        f'ros-$ROS_DISTRO-{name}{build}, then source ROS; or write a robot YAML with the URDF of '
        'your robot')
