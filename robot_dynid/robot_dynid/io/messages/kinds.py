"""Message types with joint states: their fields for names, stamp and channels.

Messages of one publisher differ only in stamp and numbers, so the offsets of names and numbers are
determined once per layout, and all messages that share it are decoded by NumPy slices.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.io.messages.definitions import (
    CONTROLLER_STATE,
    DYNAMIC_JOINT_STATE,
    FRANKA_ROBOT_STATE,
    FRANKA_STATE,
    JOINT_STATE,
    WRENCH,
    Definitions,
)
from robot_dynid.io.messages.fields import ByteArray, Columns, IntArray, MessageFields, Text
from robot_dynid.types import WRENCH_COMPONENTS

#: limits: bytes of a message, joints of a joint state, bytes of a name
MESSAGE_BYTES, JOINTS, NAME_BYTES = 1 << 20, 1000, 1000
#: separates the component of a wrench from its frame
IN_FRAME = '@'
FRAME, STAMP = 'header.frame_id', 'header.stamp|stamp'
#: separates alternative paths; the first that exists is read
OR = '|'


@dataclass(frozen=True)
class Kind:
    """Fields of a message type, by path; several paths of a channel are concatenated.

    Without ``names`` the numbers are in the order of the robot's joints. With ``labels``, the
    paths of the label and of the number of each value by joint, ``channels`` are such labels.
    ``stamp`` is a time, a number of seconds, or two fields with seconds and nanoseconds.
    ``factors`` by channel convert numbers to SI, one for all or one each. ``first`` are channels
    in fields that come first in every release, readable even if the bag defines no type.
    """

    names: str = ''
    channels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stamp: tuple[str, ...] = (STAMP,)
    labels: tuple[str, str] | None = None
    factors: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    first: tuple[str, ...] = ()

    @property
    def has_positions(self) -> bool:
        """True if it contains joint positions."""
        return 'position' in self.channels


def _same(*fields: str) -> dict[str, tuple[str, ...]]:
    return {field: (field,) for field in fields}


#: effort commanded by a trajectory controller
OUTPUT = ('output.effort',)
MESSAGE_KINDS: dict[str, Kind] = {
    JOINT_STATE: Kind('name', _same('position', 'velocity', 'effort')),
    CONTROLLER_STATE: Kind('joint_names', {
        'reference': ('reference.positions|desired.positions',), 'effort': OUTPUT},
        first=('reference',)),
    WRENCH: Kind('', {'effort': tuple(
        f'wrench.{part}.{axis}' for part in ('force', 'torque') for axis in 'xyz')}),
    DYNAMIC_JOINT_STATE: Kind(
        'joint_names', _same('position', 'velocity', 'effort'),
        labels=('interface_values.interface_names', 'interface_values.values')),
    # torque sensors behind the gears; theta is that of the motors in turns of the joints
    FRANKA_ROBOT_STATE: Kind('measured_joint_state.name', {
        'position': ('measured_joint_state.position|q',),
        'velocity': ('measured_joint_state.velocity|dq',),
        'effort': ('measured_joint_state.effort|tau_j|tau_J',),
        'motor_position': ('measured_joint_motor_state.position|theta',),
        'motor_velocity': ('measured_joint_motor_state.velocity|dtheta',)},
        first=('position', 'velocity', 'effort', 'motor_position', 'motor_velocity')),
    FRANKA_STATE: Kind('', {
        'position': ('q',), 'velocity': ('dq',), 'effort': ('tau_J|tau_j',),
        'motor_position': ('theta',), 'motor_velocity': ('dtheta',)}),
}


@dataclass(frozen=True, eq=False)
class Layout:
    """Offsets of names and numbers in messages whose ``fixed`` bytes equal ``pattern``.

    ``named``: the messages contain joint names, else ``names`` are their indices in brackets.
    ``stamp`` holds seconds and nanoseconds, or seconds, or nothing. Empty arrays are no channels.
    """

    size: int
    order: str
    names: tuple[str, ...]
    named: bool
    stamp: tuple[Columns, ...]
    channels: dict[str, Columns]
    fixed: IntArray
    pattern: ByteArray

    @property
    def broken(self) -> bool:
        """True if an array is neither empty nor as long as the names."""
        return any(len(one.places) != len(self.names) or len(one.factors) not in (
            1, len(self.names)) for one in self.channels.values())


def layout_of(
    data: bytes, kind: str = JOINT_STATE, fields: Kind | None = None,
    definitions: Definitions | None = None,
) -> Layout:
    """Return the layout of one message, by the ``fields`` of its ``kind`` unless given.

    Raises DataError if it is not of that kind, or lacks a field.
    """
    if len(data) > MESSAGE_BYTES:
        raise DataError(f'the message has more than {MESSAGE_BYTES} bytes')
    fields = fields or MESSAGE_KINDS[kind]
    definitions = definitions or Definitions()
    definitions.fields(kind)
    message = MessageFields.of(data, kind, definitions,
                               bool(fields.first) and kind in definitions.presumed)
    channels = {} if fields.labels else _channels(message, fields)
    if kind == WRENCH:
        named = message.texts[FRAME]
        names = tuple(f'{one}{IN_FRAME}{_name(named[0])}' for one in WRENCH_COMPONENTS)
    else:
        named = message.texts.get(_first(message, fields.names), []) if fields.names else []
        names = tuple(map(_name, named))
    labels = message.texts.get(fields.labels[0], []) if fields.labels else []
    if fields.labels:
        names, channels = _labelled(names, message, fields)
    if len(names) > JOINTS:
        raise DataError(f'the message has more than {JOINTS} joints')
    if len(set(names)) < len(names):
        raise DataError('the message has a joint twice')
    if not named:
        names = numbered(max((len(one.places) for one in channels.values()), default=0))
    places = [*message.fixed, *(k for text in (*named, *labels)
                                for k in range(text.start, text.stop))]
    fixed = np.array(places, dtype=np.int64)
    return Layout(len(data), message.order, names, bool(named), _stamp(message, fields.stamp),
                  channels, fixed, np.frombuffer(data, np.uint8)[fixed])


def numbered(count: int) -> tuple[str, ...]:
    """Return names of joints without names: [0], [1], ..."""
    return tuple(f'[{k}]' for k in range(count))


def _name(text: Text) -> str:
    if len(text.value) > NAME_BYTES:
        raise DataError(f'a name has more than {NAME_BYTES} bytes')
    try:
        return text.value.decode('utf-8')
    except UnicodeDecodeError:
        raise DataError('a name is no UTF-8') from None


def _first(message: MessageFields, path: str) -> str:
    """Return the first alternative of a path that exists, else the last one."""
    options = path.replace('[]', '').split(OR)
    return next((one for one in options if one in message.numbers or one in message.texts),
                options[-1])


def _channels(message: MessageFields, fields: Kind) -> dict[str, Columns]:
    """Return the channels that are not empty."""
    channels = {}
    for channel, paths in fields.channels.items():
        if not message.whole and channel not in fields.first:
            continue
        if paths == OUTPUT and OUTPUT[0] not in message.numbers:
            continue  # controllers before ROS 2 Humble do not publish their output
        parts = [message.columns(_first(message, path)) for path in paths]
        there = [part for part in parts if part is not None]
        if len({one.code for one in there}) > 1:
            raise DataError(f'{channel}: numbers of several types')
        if there:
            channels[channel] = Columns(
                np.concatenate([one.places for one in there]), there[0].code,
                fields.factors.get(channel, (1.0,)))
    return channels


def _labelled(
    names: tuple[str, ...], message: MessageFields, fields: Kind
) -> tuple[tuple[str, ...], dict[str, Columns]]:
    """Return the joints and channels of labelled numbers, joint by joint."""
    assert fields.labels is not None
    texts, runs = (message.texts.get(fields.labels[0], []),
                   message.numbers.get(fields.labels[1], []))
    by_joint: dict[int, list[str]] = {}
    for text in texts:
        by_joint.setdefault(text.owner, []).append(text.value.decode('utf-8', 'replace'))
    places: dict[tuple[int, str], int] = {}
    for run in runs:
        named = by_joint.get(run.owner, [])
        if len(named) != run.count or run.owner >= len(names):
            raise DataError('values and their labels differ in number')
        places |= {(run.owner, label): run.place + int(run.code[-1]) * k
                   for k, label in enumerate(named)}
    labels = {channel: label for channel, (label,) in fields.channels.items()}
    joints = [k for k in range(len(names)) if any((k, one) in places for one in labels.values())]
    return tuple(names[k] for k in joints), {
        channel: Columns(np.array([places.get((k, label), -1) for k in joints]),
                         message.order + 'f8', fields.factors.get(channel, (1.0,)))
        for channel, label in labels.items() if any((k, label) in places for k in joints)}


def _stamp(message: MessageFields, paths: tuple[str, ...]) -> tuple[Columns, ...]:
    """Return the offsets of seconds and nanoseconds, or of seconds; nothing without a stamp."""
    if len(paths) == 1:
        for path in paths[0].split(OR):
            if f'{path}.sec' in message.numbers:
                paths = f'{path}.sec', f'{path}.nanosec'
                break
        else:
            if paths == (STAMP,):
                return ()
    columns = [message.columns(path) for path in paths]
    return tuple(one for one in columns if one is not None)
