"""Assemble the channels of a recording from several topics, at the stamps of the joint states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.io.joint_states import Series, Topic, alignment_note, sampled
from robot_dynid.io.messages.fields import IntArray
from robot_dynid.types import FloatArray

#: channels from further topics, with alternative fields of which the first present is read
BROUGHT: dict[str, dict[str, tuple[str, ...]]] = {
    'motor_states': {'motor_position': ('motor_position', 'position'),
                     'motor_velocity': ('motor_velocity', 'velocity')},
    'effort': {'effort': ('effort',)},
    'joint_torques': {'joint_torque': ('joint_torque', 'effort')},
}
#: channels that joint states have, and those of motor encoders that may come with them
STATES, MOTORS = ('position', 'velocity', 'effort'), ('motor_position', 'motor_velocity')
#: fields in which a joint may turn over
ANGLES = ('position', 'motor_position', 'reference')


class Assembly:
    """Joint states ``base`` of the topic ``main``, and all ``channels`` (T, n) at their stamps.

    Steps are listed in ``notes``. Raises DataError if the joints are not on the topic.
    """

    def __init__(
        self, decoded: Mapping[str, Topic], main: Topic, joints: tuple[str, ...] | None,
        notes: list[str],
    ) -> None:
        if joints is None and main.unnamed:
            raise DataError(f'topic {main.name}: its messages have no joint names; read it with a '
                            'robot')
        if joints is not None:
            main.adopt_names(joints, notes)
        self.main, self.notes, self._decoded = main, notes, decoded
        self.base = main.series(main.joints if joints is None else joints, notes)
        self._series = {main.name: self.base}
        self._efforts: Series | None = None
        self.channels: dict[str, FloatArray | None] = {
            name: self.base.values.get(name) for name in STATES}
        self.channels |= {name: values for name, values in self.base.values.items()
                          if name in MOTORS}

    def bring(self, role: str, name: str | None) -> None:
        """Add the channels of a role from topic ``name``; nothing if it is absent."""
        fields = BROUGHT[role]
        if name is not None and name not in self._decoded:
            self.channels |= dict.fromkeys(fields)
        elif name is not None:
            other = self._other(self._decoded[name])
            self.channels |= self._aligned(other, fields)
            self._efforts = other if 'effort' in fields else self._efforts
            words = ' and '.join(fields).replace('_', ' ').replace('and motor', 'and')
            self.notes.append(f'{words} taken from topic {name}, '
                              f'{alignment_note(self.base, other)}')

    def follow_controller(self, controllers: Sequence[Topic]) -> None:
        """Add the reference of the controller of the joints, and its effort if there is no other.
        """
        effective = [topic for topic in controllers if topic.has('effort')]
        reference = self._of_controller(controllers, 'reference', 'reference_position')
        if reference is not None:
            self.channels['reference_position'] = reference
        effort = self.channels['effort']
        if self._efforts is not None or (effort is not None and np.nan_to_num(effort).any()):
            return
        output = self._of_controller(effective, 'effort', 'effort')
        if output is not None:
            self.channels['effort'] = output
            self.notes.append('effort: the joint states have none; that of the controller is what '
                              'it commands, not what is measured')

    def effort_messages(self) -> tuple[IntArray, FloatArray] | None:
        """Return stamps (E,) [ns] and effort (E, n) of another topic as received.

        None without such a topic, or if it lacks joints.
        """
        efforts = self._efforts
        if efforts is None or 'effort' not in efforts.values or \
                set(efforts.joints) != set(self.base.joints):
            return None
        time, rows = np.unique(efforts.time, return_index=True)
        columns = [efforts.joints.index(joint) for joint in self.base.joints]
        return time, efforts.values['effort'][rows][:, columns]

    def _other(self, topic: Topic) -> Series:
        """Return another topic for the joints, on the clock of the joint states.

        If only one of both topics has header stamps, receive times are used.
        """
        if topic.name in self._series:
            return self._series[topic.name]
        joints = self.base.joints
        topic.adopt_names(joints, self.notes)
        there = tuple(joint for joint in joints if joint in topic.joints)
        if there and len(there) < len(joints):
            missing = ', '.join(joint for joint in joints if joint not in there)
            self.notes.append(f'topic {topic.name} does not have {missing}')
        series = topic.series(there or joints, self.notes)
        if bool(self.main.unset) != bool(topic.unset):
            shift = -self.main.delay if topic.unset else topic.delay
            series = replace(series, time=series.time + shift)
        self._series[topic.name] = series
        return series

    def _aligned(
        self, other: Series, fields: Mapping[str, tuple[str, ...]]
    ) -> dict[str, FloatArray | None]:
        """Return the channels of a further topic at the stamps of the joint states.

        NaN for joints that are not on that topic.
        """
        base = self.base
        columns = [base.joints.index(joint) for joint in other.joints]
        channels: dict[str, FloatArray | None] = dict.fromkeys(fields)
        for channel, options in fields.items():
            field = next((one for one in options if one in other.values), None)
            if field is not None:
                table = np.full((len(base.time), len(base.joints)), np.nan)
                table[:, columns] = sampled(
                    base.time, other.time, other.values[field], field in ANGLES)
                channels[channel] = table
        return channels

    def _of_controller(
        self, controllers: Sequence[Topic], field: str, channel: str
    ) -> FloatArray | None:
        """Return a field of a controller; None without one, or with several."""
        if len(controllers) > 1:
            self.notes.append(f'{channel}: {len(controllers)} controllers '
                              f'({", ".join(sorted(topic.name for topic in controllers))}) have '
                              'all joints; none was read')
        if len(controllers) != 1:
            return None
        (topic,) = controllers
        other = self._other(topic)
        values = self._aligned(other, {channel: (field,)})[channel]
        if values is None or np.isnan(values).all(axis=0).any():
            self.notes.append(f'{channel}: topic {topic.name} has none during the joint states')
            return None
        self.notes.append(f'{channel} taken from topic {topic.name}, '
                          f'{alignment_note(self.base, other)}')
        return values
