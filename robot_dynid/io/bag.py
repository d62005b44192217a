"""Recordings from rosbag2: a bag folder, or one .mcap or .db3 file; no ROS installation needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.io.cdr import CONTROLLER_STATE, JOINT_STATE, Batch, IntArray
from robot_dynid.io.findings import TooLong, findings_of
from robot_dynid.io.joint_states import Series, Topic, alignment_note, decode_topics, sampled
from robot_dynid.io.mcap import Contents
from robot_dynid.io.storage import bag_batches
from robot_dynid.io.wrenches import CHANNEL, WrenchTopics, unknown_wrench
from robot_dynid.signals.windows import Window
from robot_dynid.types import FloatArray, RawLog, epoch_of


@dataclass(frozen=True)
class Topics:
    """Names of the topics of a recording; None takes the usual one if it is there.

    ``wrenches`` are those of external wrenches, None: there are none.
    """

    joint_states: str | None = None
    motor_states: str | None = None
    effort: str | None = None
    joint_torques: str | None = None
    wrenches: WrenchTopics | None = None


USUAL = Topics('/joint_states', '/motor_states', '/effort', '/joint_torques')
#: what further topics bring: field of the message by channel of the recording
BROUGHT = {
    'motor_states': {'motor_position': 'position', 'motor_velocity': 'velocity'},
    'effort': {'effort': 'effort'}, 'joint_torques': {'joint_torque': 'effort'},
}


def read_bag(
    path: str | Path, joints: tuple[str, ...] | None = None, topics: Topics | None = None,
    window: Window | None = None,
) -> RawLog:
    """Read the joint states of a bag as one recording.

    ``joints`` chooses and orders the joints (None: order of first appearance). Times are header
    stamps (receive times where none are set), in seconds from the first sample. Topics with motor
    states, efforts and joint torques, where there are such, are brought to the stamps of the joint
    states; the effort topic replaces the effort field, joint torques come in the effort field of
    theirs. The reference of a joint_trajectory_controller comes from its state, wherever one
    controller moves all the joints. Bags of a crashed recorder give what they hold.

    With a ``window`` what is far from it is not kept.

    Raises DataError when nothing usable is there; the message lists the topics.
    """
    return read_batches(str(path), partial(bag_batches, Path(path)), joints, topics, window)


def read_batches(
    source: str, batches: Callable[[Contents], Iterator[tuple[str, Batch]]],
    joints: tuple[str, ...] | None = None, topics: Topics | None = None,
    window: Window | None = None,
) -> RawLog:
    """Read the messages that ``batches`` yields as `read_bag` does."""
    contents = Contents()
    try:
        decoded = decode_topics(batches(contents), contents.topics, window)
    except TooLong as error:
        raise TooLong(f'{source}: {error}') from None
    try:
        return log_from_topics(source, decoded, joints, topics, contents)
    except DataError as error:
        details = f' ({"; ".join(contents.findings)})' if contents.findings else ''
        raise DataError(f'{source}: {error}{details}') from None


def log_from_topics(
    source: str,
    decoded: dict[str, Topic],
    joints: tuple[str, ...] | None,
    topics: Topics | None,
    contents: Contents,
) -> RawLog:
    """Assemble the recording from decoded topics."""
    notes = list(contents.findings)
    names = chosen_topics(topics, decoded.values(), contents)
    base, channels, efforts = _assembled(decoded, joints, names, notes)
    channels = {name: values if name == 'reference_position' else _recorded(name, values, notes)
                for name, values in channels.items()}
    main = decoded[str(names.joint_states)]
    begin = int(base.time[0])
    if main.window is not None and main.began is not None:
        begin = main.began[bool(main.unset)]
    time = np.asarray((base.time - begin) * 1e-9, dtype=np.float64)
    notes += findings_of(time, base.joints, channels)
    known: dict[str, Any] = dict(channels)
    if known.get('position') is None:
        raise DataError('the joint states have no positions')
    zero = begin * 1e-9
    log = RawLog(source, base.joints, time, **known, findings=tuple(notes),
                 epoch=epoch_of(zero, zero), began=None if main.window is None else 0.0)
    messages = None if efforts is None else _messages(base, efforts)
    if messages is None:
        return log
    stamps, values = messages
    return replace(log, effort_messages=(np.asarray((stamps - begin) * 1e-9, np.float64), values))


def _assembled(
    decoded: Mapping[str, Topic], joints: tuple[str, ...] | None, names: Topics, notes: list[str]
) -> tuple[Series, dict[str, FloatArray | None], Series | None]:
    """Return the joint states, all channels (T, n) at their stamps, and efforts of another topic.

    A topic of ``names`` that is not there leaves its channels empty.
    """
    controllers = [t for t in decoded.values() if t.kind == CONTROLLER_STATE]
    if names.joint_states is None:
        raise DataError('no topic with joint states')
    main = decoded[names.joint_states]
    chosen = main.joints if joints is None else joints
    if names.joint_states != USUAL.joint_states:
        notes.append(f'joint states are taken from topic {names.joint_states}')
    series = main.series(chosen, notes)
    channels: dict[str, FloatArray | None] = {**series.values}
    efforts: Series | None = None
    by_topic = {names.joint_states: series}
    for name, fields in ((getattr(names, key), BROUGHT[key]) for key in BROUGHT):
        if name is not None and name not in decoded:
            channels |= dict.fromkeys(fields)
        elif name is not None:
            other = by_topic[name] = by_topic.get(name) or _of(decoded[name], chosen, notes)
            channels |= _aligned(series, other, fields)
            efforts = other if 'effort' in fields else efforts
            what = ' and '.join(fields).replace('_', ' ').replace('and motor', 'and')
            notes.append(f'{what} taken from topic {name}, {alignment_note(series, other)}')
    reference = _reference(controllers, series, notes)
    if reference is not None:
        channels['reference_position'] = reference
    if names.wrenches is not None:
        channels[CHANNEL] = names.wrenches.torque(
            decoded, series.time, channels['position'], notes)
    return series, channels, efforts


def _messages(base: Series, efforts: Series) -> tuple[IntArray, FloatArray] | None:
    """Return stamps (E,) [ns] and effort (E, n) as they came; None where joints are missing."""
    values = efforts.values['effort']
    if values is None or set(efforts.joints) != set(base.joints):
        return None
    time, rows = np.unique(efforts.time, return_index=True)
    columns = [efforts.joints.index(joint) for joint in base.joints]
    return time, values[rows][:, columns]


def _recorded(name: str, values: FloatArray | None, notes: list[str]) -> FloatArray | None:
    """Return None for a channel that is NaN throughout: the interface was not exported.

    Raises DataError for that of external wrenches, without which the equations are others.
    """
    if values is None or not np.isnan(values).all():
        return values
    if name == CHANNEL:
        raise unknown_wrench()
    notes.append(f'{name}: NaN in every message: the robot does not export this interface')
    return None


def _aligned(
    base: Series, other: Series, fields: dict[str, str]
) -> dict[str, FloatArray | None]:
    """Return the channels of a further topic at the stamps of the joint states.

    NaN for joints that are not on that topic.
    """
    columns = [base.joints.index(joint) for joint in other.joints]
    channels: dict[str, FloatArray | None] = dict.fromkeys(fields)
    for channel, field in fields.items():
        values = other.values[field]
        if values is not None:
            table = np.full((len(base.time), len(base.joints)), np.nan)
            table[:, columns] = sampled(
                base.time, other.time, values, field == 'position')
            channels[channel] = table
    return channels


def _of(topic: Topic, joints: tuple[str, ...], notes: list[str]) -> Series:
    """Return the part of another topic on the ``joints``; notes those it lacks."""
    own = tuple(joint for joint in joints if joint in topic.joints)
    if own and len(own) < len(joints):
        missing = ', '.join(joint for joint in joints if joint not in own)
        notes.append(f'topic {topic.name} does not have {missing}')
    return topic.series(own or joints, notes)


def _reference(
    controllers: list[Topic], base: Series, notes: list[str]
) -> FloatArray | None:
    """Return the controller's reference of the joints at the stamps of the joint states.

    None where no controller, or more than one, moves all of them.
    """
    whole = [topic for topic in controllers if set(base.joints) <= set(topic.joints)]
    if len(whole) > 1:
        notes.append(f'reference_position: {len(whole)} controllers '
                     f'({", ".join(sorted(topic.name for topic in whole))}) have all joints; '
                     'none was read')
    if len(whole) != 1:
        return None
    name, other = whole[0].name, whole[0].series(base.joints, notes)
    values = _aligned(base, other, {'reference': 'position'})['reference']
    if values is None or np.isnan(values).all(axis=0).any():
        notes.append(f'reference_position: topic {name} has none during the joint states')
        return None
    notes.append(f'reference_position taken from topic {name}, {alignment_note(base, other)}')
    return values


def chosen_topics(
    requested: Topics | None, present: Iterable[Topic], contents: Contents
) -> Topics:
    """Return the names of the topics to use. Raises DataError when that is not clear."""
    topics, present = requested or Topics(), tuple(present)
    decoded = {topic.name for topic in present if topic.kind == JOINT_STATE}
    for name in (getattr(topics, key) for key in ('joint_states', *BROUGHT)):
        if name is not None and name not in decoded:
            raise DataError(f'no JointState messages on topic {name}; {_listed(contents)}')
    if topics.wrenches is not None:
        topics.wrenches.require(present)
    usual: dict[str, str | None] = {}
    for key in ('joint_states', *BROUGHT):
        default = getattr(USUAL, key)
        usual[key] = getattr(topics, key) or (default if default in decoded else None)
    if usual['joint_states'] is None:
        others = [name for name in decoded if name not in usual.values()]
        if not others:
            raise DataError(f'no JointState messages; {_listed(contents)}')
        if len(others) > 1:
            raise DataError(
                f'several JointState topics ({", ".join(sorted(others))}) and none is '
                f'{USUAL.joint_states}: say which one holds the joint states'
            )
        usual['joint_states'] = others[0]
    return Topics(**usual, wrenches=topics.wrenches)


def _listed(contents: Contents) -> str:
    topics = sorted(contents.topics.items())
    named = ', '.join(f'{name[:80]} ({kind[:80]})' for name, kind in topics)
    return f'topics are: {named or "none"}'
