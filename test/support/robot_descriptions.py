"""Descriptions of robots: those of config/robots, public URDF files, a small arm made of parts.

Of config/robots those whose URDF is here: the others' is in the packages of their vendors. Public
files are those of example-robot-data and pybullet, where these are installed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from robot_dynid.robot import locate
from robot_dynid.robot.locate import SCHEME


def own_robots() -> list[str]:
    """Return the names of robots that can be loaded without other packages."""
    files = {name: locate.find(f'config/robots/{name}.yaml') for name in locate.known_robots()}
    return [name for name, file in files.items() if file and SCHEME not in file.read_text('utf-8')]


#: below a folder that Python imports from
PLACES = 'cmeel.prefix/share/example-robot-data/robots', 'pybullet_data'
#: a thousand objects without joints
OBJECTS = 'random_urdfs'
#: one of so many is read in every run, the others in the long one
SHARE = 8


def public_urdfs() -> list[Any]:
    """Return the paths of all that differ as arguments of a test, or one that is skipped."""
    found = [pytest.param(path, id=path.stem, marks=[pytest.mark.soak] if i % SHARE else [])
             for i, path in enumerate(_distinct())]
    return found or [pytest.param(Path(), marks=pytest.mark.skip(
        reason='example-robot-data is not installed'))]


def _distinct() -> Iterator[Path]:
    seen: set[bytes] = set()
    folders = [Path(folder) / place for folder in dict.fromkeys(sys.path) for place in PLACES]
    for path in sorted(path for folder in folders for path in folder.rglob('*.urdf')):
        content = b'' if OBJECTS in path.parts else path.read_bytes()
        if content and content not in seen:
            seen.add(content)
            yield path


INERTIAL = ('<inertial><origin xyz="0.1 0 0"/><mass value="2"/><inertia ixx="0.02" ixy="0" '
            'ixz="0" iyy="0.02" iyz="0" izz="0.02"/></inertial>')
FINGER = INERTIAL.replace('"2"', '"0.1"').replace('0.02', '0.0001')
AXIS = '<axis xyz="0 1 0"/>'
LIMIT = '<limit lower="-2" upper="2" velocity="3" effort="50"/>'


def link(name: str, inside: str = INERTIAL) -> str:
    return f'<link name="{name}">{inside}</link>'


def joint(name: str, parent: str, child: str, kind: str = 'revolute',
          inside: str = AXIS + LIMIT, origin: str = '0.3 0 0') -> str:
    return (f'<joint name="{name}" type="{kind}"><origin xyz="{origin}"/><parent '
            f'link="{parent}"/><child link="{child}"/>{inside}</joint>')


def robot(*more: str) -> str:
    """Return an arm of three joints with a plate at the base and a camera at the end."""
    return ('<?xml version="1.0"?>\n<robot name="arm">' + link('base', '') + link('column')
            + link('upper') + link('fore') + joint('turn', 'base', 'column').replace(
                '0 1 0', '0 0 1') + joint('shoulder', 'column', 'upper')
            + joint('elbow', 'upper', 'fore') + joint('mount', 'fore', 'camera', 'fixed', '')
            + link('camera') + joint('bolt', 'base', 'plate', 'fixed', '') + link('plate')
            + ''.join(more) + '</robot>')
