"""Topics of a recording by role, and the fields to read from their messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from robot_dynid.errors import DataError, clipped
from robot_dynid.io.messages.definitions import Definitions
from robot_dynid.io.messages.fields import MessageFields
from robot_dynid.io.messages.kinds import MESSAGE_KINDS, Kind
from robot_dynid.io.wrenches import WrenchTopics
from robot_dynid.robot.model import FieldPaths, RobotModel, TopicFields
from robot_dynid.robot.topics import IN_ROBOT_ORDER, JOINT, NAMES, ROLES, STAMP


@dataclass(frozen=True)
class Topics:
    """Topic names of a recording by role, optionally with fields; None is the usual one.

    ``wrenches`` are the topics of external wrenches, None without any.
    """

    joint_states: str | TopicFields | None = None
    motor_states: str | TopicFields | None = None
    effort: str | TopicFields | None = None
    joint_torques: str | TopicFields | None = None
    wrenches: WrenchTopics | None = None

    @classmethod
    def of(cls, robot: RobotModel) -> Topics:
        """Return the topics stated in a robot YAML, a recipe or an option."""
        roles: dict[str, Any] = dict(robot.topics)
        return cls(**roles)

    def named(self) -> Iterator[tuple[str, TopicFields]]:
        """Yield the stated topics, by role."""
        for role in ROLES:
            one = getattr(self, role)
            if one is not None:
                yield role, TopicFields(one) if isinstance(one, str) else one

    def name(self, role: str) -> str | None:
        """Return the topic of a role, None for the usual one."""
        return dict(self.named())[role].topic if getattr(self, role) is not None else None

    def of_topic(self, name: str) -> list[tuple[str, TopicFields]]:
        """Return the roles and fields of one topic."""
        return [(role, one) for role, one in self.named() if one.topic == name]


def names_of(stated: Sequence[tuple[str, TopicFields]]) -> str:
    """Return the stated field or pattern of joint names of a topic, or ''."""
    return next((field.paths[0] for _, one in stated for key, field in one.fields
                 if key == NAMES), '')


def fields_of(
    topic: str, kind: str, stated: Sequence[tuple[str, TopicFields]], data: bytes,
    definitions: Definitions, count: int | None,
) -> Kind:
    """Return the fields to read of a topic, from ``stated`` ones and one message.

    ``count`` is the number of the robot's joints. Raises DataError if the type is undefined, or a
    field is missing or ambiguous.
    """
    usual = MESSAGE_KINDS.get(kind)
    channels = {ROLES[role][key]: field for role, one in stated for key, field in one.fields
                if key in ROLES[role]}
    stamp = next((field.paths for _, one in stated for key, field in one.fields
                  if key == STAMP), None)
    names = names_of(stated)
    if usual is not None and not channels and stamp is None and not names:
        definitions.fields(kind)
        return usual
    message = MessageFields.of(data, kind, definitions)
    fields = usual or Kind()
    if usual is None and not channels:
        channels = {ROLES[role].get('effort', ''): _only_field(topic, kind, role, message, count)
                    for role, _ in stated}
    if channels:
        fields = replace(
            fields,
            channels={**fields.channels, **{key: one.paths for key, one in channels.items()}},
            factors={key: one.factors for key, one in channels.items()})
    if names and JOINT not in names:
        fields = replace(fields, names='' if names == IN_ROBOT_ORDER else names.replace('[]', ''))
    if stamp is not None:
        fields = replace(fields, stamp=stamp)
    for one in channels.values():
        if fields.labels is None:
            _require_field(topic, kind, message, one)
        elif len(one.paths) > 1 or one.paths[0] not in _labels(message, fields):
            raise DataError(f'topic {topic} ({clipped(kind)}): no value {", ".join(one.paths)}; '
                            f'it has {_listed(_labels(message, fields))}')
    if fields.names and fields.names not in message.texts:
        raise DataError(f'topic {topic} ({clipped(kind)}) has no field {fields.names} with names; '
                        f'it has {_listed(message.texts)}')
    return fields


def _labels(message: MessageFields, fields: Kind) -> list[str]:
    """Return the labels of values of a message type that has them."""
    assert fields.labels is not None
    return list(dict.fromkeys(text.value.decode('utf-8', 'replace')
                              for text in message.texts.get(fields.labels[0], [])))


def _only_field(
    topic: str, kind: str, role: str, message: MessageFields, count: int | None
) -> FieldPaths:
    """Return the only field that can be the effort of all joints."""
    fitting = fitting_fields(message, count)
    if 'effort' in ROLES[role] and 'position' not in ROLES[role] and len(fitting) == 1:
        return FieldPaths((fitting[0],))
    example = {'joint_states': 'position: PATH, velocity: PATH, effort: PATH',
               'motor_states': 'position: PATH, velocity: PATH'}.get(role, 'effort: PATH')
    raise DataError(
        f'topic {topic} is of type {clipped(kind)}: select its fields, --topic '
        f"'{role}={{topic: {topic}, {example}}}'; it has {_described(message)}")


def fitting_fields(message: MessageFields, count: int | None) -> list[str]:
    """Return the paths of the numeric fields, except bytes, with as many numbers as joints."""
    return [message.shown(path) for path, length, code in message.lengths()
            if code[0] in 'fi' and code != 'i1' and length > 0 and count in (None, length)
            and message.is_array(path)]


def _require_field(topic: str, kind: str, message: MessageFields, field: FieldPaths) -> None:
    """Raise DataError if a message lacks the fields, or factors and numbers differ in count."""
    try:
        columns = [message.columns(path) for path in field.paths]
    except DataError as error:
        raise DataError(f'topic {topic} ({clipped(kind)}): {error}; it has '
                        f'{_described(message)}') from None
    count = sum(len(one.places) for one in columns if one is not None)
    if len(field.factors) not in (1, count):
        raise DataError(f'topic {topic}: {len(field.factors)} factors for {count} numbers in '
                        f'{", ".join(field.paths)}; give one, or one for each')


def _described(message: MessageFields) -> str:
    """Return the numeric fields with their lengths."""
    return _listed(f'{message.shown(path)} ({length})' for path, length, _ in message.lengths())


def _listed(names: Iterable[str]) -> str:
    return clipped(', '.join(names), 1000) or 'none'
