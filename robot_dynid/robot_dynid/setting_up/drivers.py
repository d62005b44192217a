"""Facts about robot drivers: topics, controllers, meaning of effort, evidence in a URDF.

They are in drivers.yaml in this folder, each with its source.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.files import read_text
from robot_dynid.robot.description import MOVABLE
from robot_dynid.setting_up.diagnosis import WARN, Diagnosis
from robot_dynid.yaml_text import load_yaml

FACTS = Path(__file__).with_name('drivers.yaml')
#: drivers without an entry
OTHER = 'other'
#: aspects of a driver, each with facts, and their titles
ASPECTS = {'launch': 'start', 'topics': 'joint states', 'rates': 'controller manager',
           'qos': 'quality of service', 'controllers': 'trajectory controller',
           'efforts': 'effort', 'scaling': 'speed scaling', 'stops': 'stops', 'joints': 'joints'}
#: content of a topic of joint states
MEASURED = 'measured'
#: evidence by its first word, the strongest first
EVIDENCE = ('plugin', 'meshes', 'robot', 'joints')


@dataclass(frozen=True)
class Fact:
    """A fact about a driver, with its condition ``when`` and its ``source``.

    Of topics ``rate`` [Hz], None if not stated, and their content ``shows``; of controllers
    whether the launch file has ``started`` them; of efforts ``kind`` and ``sensor`` of a robot
    YAML, empty for none, and the value of a ``parameter`` of <ros2_control> that states it; of
    stops the ``topic`` of the emergency stop, and ``parameters`` of the excitation node for it.
    """

    fact: str
    source: str
    when: str = ''
    rate: float | None = None
    shows: str = MEASURED
    started: str = ''
    kind: str = ''
    sensor: str = ''
    parameter: Mapping[str, str] = field(default_factory=dict)
    topic: str = ''
    parameters: Mapping[str, Any] = field(default_factory=dict)

    @property
    def conditions(self) -> str:
        """Rate, content, start and condition in words."""
        return ', '.join(filter(None, (
            f'{self.rate:g} Hz' if self.rate else '', self.shows.replace(MEASURED, ''),
            'not started' if self.started == 'no' else self.started, self.when)))


@dataclass(frozen=True)
class Driver:
    """A driver, the ``repositories`` its facts are from, and facts by aspect."""

    name: str
    arms: str
    repositories: Mapping[str, str]
    recognised: Mapping[str, Any]
    facts: Mapping[str, tuple[Fact, ...]]
    ask: str = ''

    @property
    def controller(self) -> str:
        """Name of the trajectory controller, by default that of OTHER."""
        return next((one.fact for one in self.facts['controllers'] if ' ' not in one.fact),
                    None) or driver_named(OTHER).controller

    def link(self, fact: Fact) -> str:
        """Return the address of the source of a fact."""
        version, _, place = fact.source.partition(':')
        repository, _, commit = self.repositories[version].partition('@')
        return f'https://github.com/{repository}/blob/{commit}/{place}'

    def evidence(self, urdf: Element) -> list[str]:
        """Return the evidence in a URDF for this driver, in words."""
        name = urdf.get('name', '')
        joints = [joint.get('name', '') for joint in urdf.findall('joint')
                  if joint.get('type') in MOVABLE]
        text = ' '.join((*(one.get('filename', '') for one in urdf.iter()),
                         *(f'{one.get("name")} {one.text}' for one in urdf.iter('plugin'))))
        patterns = {key: re.compile(self.recognised.get(key, '(?!)'), re.IGNORECASE)
                    for key in ('robot', 'joints')}
        matching = [joint for joint in joints if patterns['joints'].search(joint)]
        return [*(f'plugin {plugin}' for plugin in self.recognised.get('plugins', ())
                  if re.search(rf'\b{plugin}', text)),
                *(f'meshes of {package}' for package in self.recognised.get('packages', ())
                  if f'/{package}/' in text),
                *([f'robot named {name}'] if patterns['robot'].search(name) else ()),
                *([f'joints such as {matching[0]}'] if len(matching) >= 6 else ())]


@cache
def drivers() -> tuple[Driver, ...]:
    """Return the drivers of drivers.yaml."""
    return tuple(Driver(facts={aspect: tuple(Fact(**one) for one in stated)
                               if isinstance(stated := content.pop(aspect), list) else ()
                               for aspect in ASPECTS}, **content)
                 for content in load_yaml(read_text(FACTS), str(FACTS), RobotError))


def driver_named(name: str) -> Driver:
    """Return a driver by its name; raises UsageError for an unknown one."""
    by_name = {one.name: one for one in drivers()}
    if name not in by_name:
        raise UsageError(f'driver {name!r} is not known; choose one of {", ".join(by_name)}')
    return by_name[name]


def shown_by(topic: str) -> str:
    """Return `Fact.shows` of a topic of joint states, empty if drivers differ, or none has it."""
    stated = [one for driver in drivers() for one in driver.facts['topics']
              if topic.endswith(f'/{one.fact.strip("/")}')]
    longest = max((len(one.fact) for one in stated), default=None)
    shown = {one.shows for one in stated if len(one.fact) == longest}
    return shown.pop() if len(shown) == 1 else ''


def effort_diagnoses(driver: Driver, kind: str) -> list[Diagnosis]:
    """Return a warning if the stated kind of effort contradicts the facts about a driver."""
    stated = driver.facts['efforts']
    if not stated or any(one.kind == kind for one in stated):
        return []
    return [Diagnosis(
        'effort', WARN, driver.name, f'effort_kind is {kind}, but it publishes: '
        f'{"; ".join(f"{one.fact} ({one.conditions})" for one in stated)}',
        'set effort_kind to the kind it publishes, or record another effort')]


def suggested(urdf: Element) -> tuple[Driver, tuple[str, ...]]:
    """Return the driver with the strongest evidence in a URDF, and the evidence.

    OTHER without evidence, or if two drivers tie: many arms share joint names.
    """
    def weight(driver: Driver) -> list[int]:
        kinds = [text.split()[0] for text in driver.evidence(urdf)]
        return [kinds.count(kind) for kind in EVIDENCE]

    first, second = sorted(drivers(), key=weight, reverse=True)[:2]
    if weight(first) == weight(second):
        return driver_named(OTHER), ()
    return first, tuple(first.evidence(urdf))
