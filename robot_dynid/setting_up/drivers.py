"""Drivers of robots: what the effort of their joint states means, and by what they are recognised.

The facts are in drivers.yaml beside this module, each with its source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.files import read_text
from robot_dynid.robot.description import MOVABLE
from robot_dynid.yaml_text import load_yaml

FACTS = Path(__file__).with_name('drivers.yaml')
#: a driver that is in no list
OTHER = 'other'


@dataclass(frozen=True)
class Effort:
    """Meaning of effort: ``kind`` of a robot YAML, empty for none, ``sensor``, and its source."""

    kind: str
    sensor: str
    when: str
    meaning: str
    source: str


@dataclass(frozen=True)
class Driver:
    """A driver, what it starts, and what effort means, the first by default."""

    name: str
    arms: str
    efforts: tuple[Effort, ...]
    controller: str = 'joint_trajectory_controller'
    topic: str = 'joint_states'
    notes: str = ''
    recognised: Mapping[str, Any] = field(default_factory=dict)

    def evidence(self, urdf: Element) -> list[str]:
        """Return the evidence in a URDF for this driver, in words."""
        found = []
        name, joints = urdf.get('name', ''), _movable(urdf)
        text = ' '.join(value for one in urdf.iter() for value in (
            one.get('filename', ''), one.get('name', '') if one.tag == 'plugin' else '',
            one.text or '' if one.tag == 'plugin' else ''))
        for plugin in self.recognised.get('plugins', ()):
            if plugin in text:
                found.append(f'plugin {plugin}')
        for package in self.recognised.get('packages', ()):
            if f'package://{package}/' in text or f'/{package}/' in text:
                found.append(f'meshes of {package}')
        pattern = self.recognised.get('robot')
        if pattern and re.search(pattern, name, re.IGNORECASE):
            found.append(f'robot named {name}')
        pattern = self.recognised.get('joints')
        own = [joint for joint in joints if pattern and re.search(pattern, joint, re.IGNORECASE)]
        if len(own) >= 6:
            found.append(f'joints such as {own[0]}')
        return found


def _movable(urdf: Element) -> list[str]:
    return [joint.get('name', '') for joint in urdf.findall('joint')
            if joint.get('type') in MOVABLE]


@cache
def drivers() -> tuple[Driver, ...]:
    """Return the drivers that are known."""
    content = load_yaml(read_text(FACTS), str(FACTS), RobotError)
    return tuple(Driver(**{**one, 'efforts': tuple(Effort(**effort) for effort in one['efforts'])})
                 for one in content)


def driver_named(name: str) -> Driver | None:
    """Return a driver by its name, None for OTHER. Raises UsageError for an unknown one."""
    if name == OTHER:
        return None
    found = next((one for one in drivers() if one.name == name), None)
    if found is None:
        raise UsageError(f'driver {name!r} is not known; choose one of '
                         f'{", ".join(names())}')
    return found


def names() -> tuple[str, ...]:
    """Return the names of the drivers, and OTHER."""
    return (*(one.name for one in drivers()), OTHER)


def suggested(urdf: Element) -> tuple[Driver | None, tuple[str, ...]]:
    """Return the driver for which most speaks in a URDF, and what does; None where nothing does.

    It is a suggestion: names may be anybody's. Joint names alone, which many arms share, suggest
    nothing where another driver's fit as well.
    """
    found = sorted(((one, one.evidence(urdf)) for one in drivers()),
                   key=lambda pair: -_weight(pair[1]))
    best, second = found[0], found[1]
    if not best[1] or _weight(best[1]) == _weight(second[1]):
        return None, ()
    return best[0], tuple(best[1])


def _weight(evidence: Sequence[str]) -> int:
    """Return the weight of evidence: plugins most, then meshes, the name, joints."""
    worth = {'plugin': 8, 'meshes': 4, 'robot': 2, 'joints': 1}
    return sum(worth[text.split()[0]] for text in evidence)
