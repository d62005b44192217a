"""Diagnosis of an installation: library versions, compiled kernels, disk capacity.

Version ranges are those of the package metadata (setup.py).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

from robot_dynid.files import disk_space
from robot_dynid.setting_up.diagnosis import ERROR, OK, WARN, Diagnosis

PACKAGE = 'robot_dynid'
#: bytes of an hour's recording of 14 joints at 1 kHz
ROOM = 2e9
#: module names that differ from those of the distributions
MODULES = {'PyYAML': 'yaml', 'scikit-learn': 'sklearn', 'Jinja2': 'jinja2',
           'ros-rclpy': 'rclpy', 'ros-sensor-msgs': 'sensor_msgs',
           'ros-trajectory-msgs': 'trajectory_msgs', 'ros-std-srvs': 'std_srvs',
           'ros-diagnostic-msgs': 'diagnostic_msgs',
           'ros-visualization-msgs': 'visualization_msgs'}
#: purposes of libraries
PURPOSES = {
    'clarabel': 'solver: identify --method feasible, payload',
    'coal': 'collision: collision-free motions, checks before a motion',
    'mujoco': 'simulation: demo, simulated robot, export',
    'plotly': 'report without browser: --report', 'Jinja2': 'report without browser: --report',
    'numpy': 'arrays', 'scipy': 'linear algebra',
    'mcap': 'recordings in bags', 'rosbags': 'messages in bags',
    'rich': 'tables', 'PyYAML': 'robots and recipes',
    'scikit-learn': 'residual models', 'threadpoolctl': 'threads of linear algebra',
    'argcomplete': 'completion in shells',
}
#: extras whose libraries are diagnosed here; ROS has a separate diagnosis
EXTRAS = ('', 'report', 'simulation')
_REQUIREMENT = re.compile(
    r"(?P<name>[\w.-]+)(?:\[[^]]*])?\s*(?P<range>[<>=!~\d.,\s]*)"
    r"(?:;.*extra == ['\"](?P<extra>\w+)['\"])?")


@dataclass(frozen=True)
class Requirement:
    """A library, bounds of its version such as ``>=1.21`` and the extra that brings it, or ''."""

    name: str
    bounds: tuple[str, ...]
    extra: str

    @property
    def module(self) -> str:
        """Name of the imported module."""
        return MODULES.get(self.name, self.name.replace('-', '_'))

    def allows(self, installed: str) -> bool:
        """Return True if a version is within the bounds, or has no number."""
        have = _numbers(installed)
        return not have or all(
            SIGNS[sign](have, _numbers(bound)) for bound in self.bounds
            if (sign := bound.rstrip('0123456789.')) in SIGNS)


#: comparisons of versions in bounds
SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    '>=': ge, '<': lt, '<=': le, '>': gt, '!=': ne, '==': eq}


def _numbers(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, without trailing zeros."""
    match = re.search(r'\d+(?:\.\d+)*', text)
    return tuple(map(int, re.sub(r'(\.0+)+$', '', match[0]).split('.'))) if match else ()


def requirements(texts: Iterable[str]) -> tuple[Requirement, ...]:
    """Return the requirements of a package from texts such as ``mujoco<5,>=3.1; extra == "x"``."""
    return tuple(Requirement(
        match['name'], tuple(filter(None, map(str.strip, match['range'].split(',')))),
        match['extra'] or '') for match in map(_REQUIREMENT.match, texts) if match)


def package_requirements() -> tuple[Requirement, ...]:
    """Return the requirements of this package; names only if it was not installed by pip."""
    try:
        texts = requires(PACKAGE)
    except PackageNotFoundError:
        texts = None
    return requirements(PURPOSES if texts is None else texts)


def library_diagnosis(wanted: Requirement) -> Diagnosis:
    """Check that a library can be imported, and that its version is supported."""
    name, where = wanted.name, PURPOSES.get(wanted.name, f'extra {wanted.extra}')
    lacking = WARN if wanted.extra else ERROR
    pip = f"pip install '{name}{','.join(wanted.bounds)}'"
    try:
        import_module(wanted.module)
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == wanted.module
        what = 'is not installed' if absent else f'cannot be loaded: {error}'
        return Diagnosis(name, lacking, where, f'{name} {what}', pip)
    except Exception as error:  # any error of a library
        return Diagnosis(name, lacking, where, f'{name} cannot be loaded: {error}',
                         f'{pip} --force-reinstall')
    try:
        installed = version(name)
    except PackageNotFoundError:
        return Diagnosis(name, OK, where, 'installed, version unknown')
    if not wanted.allows(installed):
        return Diagnosis(name, WARN, where, f'{name} {installed} is outside the versions that are '
                         f'tested ({", ".join(wanted.bounds)})', pip)
    return Diagnosis(name, OK, where, installed)


def libraries() -> list[Diagnosis]:
    """Return a diagnosis of Python and of every library that does not belong to ROS."""
    python = '.'.join(map(str, sys.version_info[:3]))
    return [Diagnosis('python', OK, sys.executable, python),
            *(library_diagnosis(one) for one in package_requirements() if one.extra in EXTRAS)]


def kernels() -> Diagnosis:
    """Check that the numerical kernels are built, and return the build used here."""
    try:
        from robot_dynid import kernels as built
    except ImportError as error:
        what, unbuilt, remedy = str(error).partition(' are not built: ')
        return Diagnosis('kernels', ERROR, 'robot_dynid.kernels', what + unbuilt.rstrip(': '),
                         remedy or 'install the package again on this machine')
    return Diagnosis('kernels', OK, built.BUILT, 'compiled')


def disk_diagnosis(folder: Path) -> Diagnosis:
    """Check that recordings can be written to ``folder``, and the free disk space."""
    unwritable, free = disk_space(folder.absolute())
    values = (('free [MB]', f'{free / 1e6:.0f}'),)
    name, where = 'disk', str(folder.absolute())
    if unwritable:
        return Diagnosis(name, ERROR, where, f'recordings cannot be written: {unwritable}',
                         'start in another folder, or give nodes another recording_directory')
    if free < ROOM:
        return Diagnosis(name, WARN, where, f'only {free / 1e6:.0f} MB are free; an hour of 14 '
                         f'joints at 1 kHz takes about {ROOM / 1e6:.0f} MB', 'free space, or give '
                         'nodes another recording_directory', values)
    return Diagnosis(name, OK, where, f'{free / 1e6:.0f} MB free for recordings', '', values)


def ros_diagnosis(environment: Mapping[str, str], needed: bool) -> Diagnosis:
    """Return the source of ROS 2; ``needed``: its absence is an error."""
    level, name = (ERROR if needed else WARN), 'ros'
    distribution = environment.get('ROS_DISTRO', '')
    if find_spec('rclpy') is None:
        return Diagnosis(name, level, 'rclpy', 'ROS 2 not found: identification works, live '
                         'commands do not', 'source /opt/ros/DISTRO/setup.bash, '
                         'or run `make setup` and `. .venv/env.sh` in the sources')
    missing = [one for one in ('sensor_msgs', 'control_msgs', 'trajectory_msgs',
                               'diagnostic_msgs', 'std_srvs', 'robot_dynid_interfaces')
               if find_spec(one) is None]
    if missing:
        only_interfaces = missing == ['robot_dynid_interfaces']
        return Diagnosis(name, level, 'rclpy', f'ROS 2 lacks {", ".join(missing)}',
                         'source the workspace that colcon built, or run `make setup` and '
                         '`. .venv/env.sh`' if only_interfaces else
                         'apt install ' + ' '.join(f'ros-{distribution or "DISTRO"}-'
                                                   f'{one.replace("_", "-")}' for one in missing))
    try:
        wheel = version('ros-rclpy')
    except PackageNotFoundError:
        wheel = ''
    source = f'sourced ({distribution or "distribution not named"})'
    return Diagnosis(name, OK, 'rclpy', f'from wheels (rclpy {wheel})' if wheel else source)
