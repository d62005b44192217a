"""Robots of config/robots whose URDF is here: the others' is in the packages of their vendors."""

from __future__ import annotations

from robot_dynid.robot import locate
from robot_dynid.robot.locate import SCHEME


def own_robots() -> list[str]:
    """Return the names of robots that can be loaded without other packages."""
    files = {name: locate.find(f'config/robots/{name}.yaml') for name in locate.known_robots()}
    return [name for name, file in files.items() if file and SCHEME not in file.read_text('utf-8')]
