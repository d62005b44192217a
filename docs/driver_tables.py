"""Tables of docs/drivers.md, made of the facts about drivers in the data file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from robot_dynid.setting_up.drivers import ASPECTS, MEASURED, Driver, Fact, drivers

#: the controller of config/excitation.yaml
DEFAULT_CONTROLLER = 'joint_trajectory_controller'


def _cell(text: str) -> str:
    """Return text that does not break a table."""
    return text.replace('|', '\\|').replace('<', '&lt;').replace('_', '\\_')


def _short(driver: Driver, aspect: str) -> str:
    """Return the facts of an aspect in a cell of the overview."""
    texts = []
    for one in driver.facts[aspect]:
        if aspect == 'efforts':
            texts.append(f'`{one.kind}`' if one.kind else 'none')
        elif aspect == 'controllers':
            name = one.fact.partition(';')[0]
            started = {'no': 'not started'}.get(one.started, one.started)
            texts.append(name if name == 'none' else f'`{name}` ({started})')
        elif one.shows in (MEASURED, 'copy', 'position'):
            texts.append(f'`{one.fact}`{f" {one.rate:g} Hz" if one.rate else ""}'
                         f'{f", {one.shows}" if one.shows != MEASURED else ""}')
    return '<br>'.join(dict.fromkeys(texts)) or 'not stated'


def overview() -> str:
    """Return the table of all drivers."""
    return '\n'.join((
        '| driver | arms | joint states | trajectory controller | effort |',
        '|---|---|---|---|---|',
        *(f'| {_cell(one.name)} | {_cell(one.arms)} | {_short(one, "topics")} | '
          f'{_short(one, "controllers")} | {_short(one, "efforts")} |' for one in drivers())))


def efforts() -> str:
    """Return the table of what each driver publishes as effort, by release and setting."""
    return '\n'.join((
        '| driver | effort | state in the robot YAML | holds where |',
        '|---|---|---|---|',
        *(f'| {_cell(one.name)} | {_cell(fact.fact)} | {", ".join(_stated(fact))} | '
          f'{_cell(fact.conditions)} |' for one in drivers() for fact in one.facts['efforts'])))


def _stated(one: Fact) -> list[str]:
    """Return the keys of the robot YAML that a fact decides."""
    return [f'`{key}: {value}`' for key, value in (
        ('effort_kind', one.kind), ('sensor', one.sensor)) if value]


def _row(driver: Driver, aspect: str, one: Fact) -> str:
    """Return the row of a fact."""
    fact = f'`{one.fact}`' if aspect == 'launch' or '/' in one.fact.split()[0] else _cell(one.fact)
    stated = ''.join(f'{entry}, ' for entry in _stated(one))
    return (f'| {ASPECTS[aspect]} | {fact} | {stated}{_cell(one.conditions)} | '
            f'[{one.source.partition(":")[0]}]({driver.link(one)}) |')


def launches(driver: Driver) -> list[str]:
    """Return the commands for the nodes beside a driver, whose arguments differ from the defaults.

    Empty for drivers of ROS 1, and where no command starts the driver.
    """
    facts = driver.facts['launch']
    if not facts or any(one.fact.startswith('roslaunch') for one in facts):
        return []
    topics = sorted((one for one in driver.facts['topics'] if one.shows in (MEASURED, 'position')),
                    key=lambda one: one.shows != MEASURED or not one.fact.endswith('joint_states'))
    states = f' joint_states:=/{topics[0].fact.lstrip("/")}' if '/' in topics[0].fact else ''
    commands = [f'ros2 launch robot_dynid identify.launch.py robot:=ARM.yaml{states}']
    for one in driver.facts['controllers'][:1]:
        name = one.fact.partition(';')[0]
        if name == 'none':
            break
        if one.started == 'inactive':
            commands.insert(0, f'ros2 control switch_controllers --activate {name}')
        controller = '' if name == DEFAULT_CONTROLLER else f' controller:={name}'
        stops = ''.join(f' emergency_stop:=/{stop.topic} parameters:=STOP.yaml'
                        for stop in driver.facts['stops'] if stop.topic)
        commands.append('ros2 launch robot_dynid excite.launch.py '
                        f'robot:=ARM.yaml{controller}{states}{stops}')
    return commands


def stop_file(parameters: Mapping[str, Any]) -> str:
    """Return the parameter file with which the excitation node reads the stops of a driver."""
    return yaml.safe_dump({'/**': {'ros__parameters': dict(parameters)}}, sort_keys=False)


def details() -> str:
    """Return a section with all facts, and their sources, for each driver."""
    lines: list[str] = []
    for driver in drivers():
        versions = ', '.join(f'{name} `{place.partition("@")[0]}` at `{place[-40:][:10]}`'
                             for name, place in driver.repositories.items())
        lines += ['', f'### {driver.name}', '', f'{_cell(driver.arms)}. Read: {versions}.', '',
                  '| | | holds where | source |', '|---|---|---|---|']
        for aspect, title in ASPECTS.items():
            facts = driver.facts[aspect]
            if not facts:
                lines.append(f'| {title} | '
                             f'{"as joint states" if aspect == "rates" else "not stated"} | | |')
            lines += [_row(driver, aspect, one) for one in facts]
        if commands := launches(driver):
            lines += ['', 'Start the nodes of robot_dynid:', '', '```sh', *commands, '```']
        for stop in (one for one in driver.facts['stops'] if one.topic):
            lines += ['', f'STOP.yaml, for the emergency stop on `{stop.topic}`:', '',
                      '```yaml', stop_file(stop.parameters).rstrip(), '```']
    return '\n'.join(lines)
