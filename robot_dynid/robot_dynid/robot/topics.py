"""Topics of recordings by role, as stated in a robot YAML, a recipe or an option.

``topics: {joint_states: /left/joint_states, effort: {topic: /lbr/state, effort: torque}}``
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from robot_dynid.errors import DynIdError, UsageError
from robot_dynid.numbers import shown
from robot_dynid.robot.columns import FACTOR, QUANTITIES, UNITS, unit_of
from robot_dynid.robot.model import FieldPaths, RobotModel, TopicFields
from robot_dynid.yaml_text import load_yaml

#: roles of topics: channel by the key of a field
ROLES: dict[str, dict[str, str]] = {
    'joint_states': {name: name for name in (
        'position', 'velocity', 'effort', 'motor_position', 'motor_velocity')},
    'motor_states': {'position': 'motor_position', 'velocity': 'motor_velocity'},
    'effort': {'effort': 'effort'},
    'joint_torques': {'effort': 'joint_torque'},
}
#: role of the topic with external wrenches, whose link is in the robot YAML
WRENCH_ROLE = 'wrench'
#: further keys: the field with the names of the joints, and that with the stamp
NAMES, STAMP = 'names', 'stamp'
#: value of NAMES: the numbers are in the order of the robot's joints
IN_ROBOT_ORDER = 'robot'
#: placeholder of the robot's joint name in a pattern such as left_{joint}
JOINT = '{joint}'
OPTION = re.compile(r'(?:(?P<role>[a-z_]+)=)?(?P<value>.*)', re.DOTALL)
Named = Mapping[str, TopicFields]


def topics_from_plain(
    given: Any, where: str, error: type[DynIdError] = UsageError
) -> Named:
    """Parse a mapping of roles to topics, or to a topic and its fields.

    Raises ``error`` naming the key.
    """
    if not isinstance(given, Mapping):
        raise error(f'{where} must be a mapping such as {{joint_states: /left/joint_states, '
                    f'effort: /ft/joint_torques}}, is {shown(given)}')
    roles = (*ROLES, WRENCH_ROLE)
    for role in given:
        if role not in roles:
            raise error(f'{where}: unknown key {shown(role)}; use {", ".join(roles)}')
    return {role: _fields(value, f'{where}: {role}', role, error)
            for role, value in given.items()}


def _fields(value: Any, where: str, role: str, error: type[DynIdError]) -> TopicFields:
    if isinstance(value, str) and value:
        return TopicFields(value)
    allowed = (*ROLES.get(role, ()), NAMES, STAMP)
    if not isinstance(value, Mapping) or not isinstance(value.get('topic'), str):
        raise error(f'{where} must be a topic such as /joint_states, or a topic with fields such '
                    f'as {{topic: /arm/state, {allowed[0]}: measured.{allowed[0]}}}, is '
                    f'{shown(value)}')
    fields = {}
    for key, paths in value.items():
        if key == 'topic':
            continue
        if key not in allowed or role == WRENCH_ROLE:
            raise error(f'{where}: unknown key {shown(key)}; use topic, {", ".join(allowed)}')
        try:
            fields[key] = _paths(paths, ROLES[role].get(key, ''), f'{where}: {key}')
        except UsageError as wrong:
            raise error(str(wrong)) from None
    return TopicFields(value['topic'], tuple(fields.items()))


def _paths(value: Any, channel: str, where: str) -> FieldPaths:
    """Return the fields of a ``channel``, '' for names and stamp; raises UsageError."""
    parts = value if channel and isinstance(value, Mapping) else {'field': value}
    paths = parts.get('field')
    several: list[Any] = paths if isinstance(paths, list) else [paths]
    if not several or set(parts) - {'field', 'unit', 'factor'} or not all(
            isinstance(path, str) and path for path in several):
        raise UsageError(f'{where} must be the path of a field such as measured.q, a list of such '
                         f'or {{field: PATH, unit: deg, factor: -1}}, is {shown(value)}')
    unit, quantities = parts.get('unit'), QUANTITIES.get(channel, ())
    quantity, scale, _ = UNITS.get(unit_of(str(unit)), ('', 1.0, 0.0))
    if unit is not None and quantity not in quantities:
        raise UsageError(f"{where}: unit {shown(unit)}: choose one of {', '.join(quantities)}")
    factors = parts.get('factor', 1.0)
    numbers = [FACTOR.read(one, f'{where}: factor', UsageError)
               for one in (factors if isinstance(factors, list) else [factors])]
    return FieldPaths(tuple(several), tuple(scale * one for one in numbers))


def topics_from_options(words: Sequence[str]) -> Named:
    """Parse options --topic: NAME or ROLE=NAME, or a mapping for NAME.

    Raises UsageError.
    """
    topics: dict[str, TopicFields] = {}
    for word in words:
        match = OPTION.fullmatch(word)
        assert match is not None  # any text matches
        role, text = match['role'] or 'joint_states', match['value'].strip()
        value = load_yaml(text, '--topic', UsageError) if text.startswith('{') else text
        one = topics_from_plain({role: value}, '--topic')[role]
        if role in topics:
            raise UsageError(f'--topic: {role} is given twice, as {topics[role].topic} and '
                             f'{one.topic}; remove one')
        topics[role] = one
    return topics


def with_topics(robot: RobotModel, topics: Named) -> RobotModel:
    """Return the robot with ``topics`` by role, which override those of its YAML.

    Raises UsageError for wrenches if the robot YAML names no link, or several.
    """
    if not topics:
        return robot
    roles = {**dict(robot.topics), **topics}
    wrench = roles.pop(WRENCH_ROLE, None)
    if wrench is not None and len(robot.wrenches) != 1:
        raise UsageError(f'topic {wrench.topic} of wrenches: {robot.name} names '
                         f'{len(robot.wrenches)} links that wrenches act on; name topic and link '
                         f'in the robot YAML, such as wrenches: {{{wrench.topic}: tool0}}')
    wrenches = robot.wrenches if wrench is None else ((wrench.topic, robot.wrenches[0][1]),)
    return replace(robot, topics=tuple(roles.items()), wrenches=wrenches)
