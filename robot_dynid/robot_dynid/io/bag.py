"""Read recordings from ROS bags: a rosbag2 folder, or one .mcap, .db3 or .bag file.

No ROS installation is needed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.errors import DataError, clipped
from robot_dynid.io.cdr import Batch, JointStateDecoder
from robot_dynid.io.findings import NO_EFFORT, TooLong, findings_of
from robot_dynid.io.joint_states import Topic
from robot_dynid.io.mcap import Contents
from robot_dynid.io.messages.assembly import BROUGHT, Assembly
from robot_dynid.io.messages.definitions import CONTROLLER_STATE, JOINT_STATE
from robot_dynid.io.messages.naming import Naming
from robot_dynid.io.messages.survey import effort_advice, states_advice, survey
from robot_dynid.io.messages.topics import Topics, fields_of, names_of
from robot_dynid.io.storage import bag_batches
from robot_dynid.io.wrenches import CHANNEL, unknown_wrench
from robot_dynid.signals.windows import Window
from robot_dynid.types import FloatArray, RawLog, epoch_of

__all__ = ['Topics']
USUAL = Topics('/joint_states', '/motor_states', '/effort', '/joint_torques')
#: parts of topic names that mark commands, which are never read as measurements
COMMANDED = re.compile('command|cmd|desired|target|goal|reference|setpoint', re.IGNORECASE)
#: ratio of message counts above which another topic with the same joints is reported
RICHER = 2.0


class NoStates(DataError):
    """No topic of a bag holds joint states of a supported type."""


def read_bag(
    path: str | Path, joints: tuple[str, ...] | None = None, topics: Topics | None = None,
    window: Window | None = None,
) -> RawLog:
    """Read the joint states of a bag as one recording.

    ``joints`` selects and orders the joints (None: order of first appearance). Times are header
    stamps (receive times if none are set), in seconds from the first sample. Motor states, efforts
    and joint torques of other topics are aligned to the stamps of the joint states; the effort
    topic replaces the effort field, joint torques are read from the effort field of their topic.
    The reference of a joint_trajectory_controller is read from its state if one controller moves
    all the joints. Bags of a crashed recorder are read as far as they go.

    Of several topics with joint states the one with the joints and their effort is read. With a
    ``window`` only data in and around it is stored.

    Raises DataError if nothing is usable; the message lists the topics.
    """
    file = Path(path)
    try:
        log = read_batches(str(path), partial(bag_batches, file), joints, topics, window)
    except NoStates as error:
        advice = states_advice(survey(file, True), joints or ())
        raise DataError(f'{error}{advice}; robot-dynid topics {path} lists all fields') from None
    if log.effort is not None:
        return log
    advice = effort_advice(survey(file, True), log.joints)
    return replace(log, findings=tuple(
        f'{one}{advice}' if one.startswith(NO_EFFORT) else one for one in log.findings))


def read_batches(
    source: str, batches: Callable[[Contents], Iterator[tuple[str, Batch]]],
    joints: tuple[str, ...] | None = None, topics: Topics | None = None,
    window: Window | None = None,
) -> RawLog:
    """Read the messages of ``batches`` like `read_bag`."""
    topics = topics or Topics()
    contents = Contents(wanted=frozenset(one.topic for _, one in topics.named()))
    try:
        decoded = decode_topics(batches(contents), contents, topics, joints, window)
    except TooLong as error:
        raise TooLong(f'{source}: {error}') from None
    except DataError as error:  # prefix the file unless it is named
        raise DataError(str(error) if source in str(error) else f'{source}: {error}') from None
    try:
        return log_from_topics(source, decoded, joints, topics, contents)
    except DataError as error:
        details = f' ({"; ".join(contents.findings)})' if contents.findings else ''
        raise type(error)(f'{source}: {error}{details}') from None


def decode_topics(
    batches: Iterable[tuple[str, Batch]], contents: Contents, topics: Topics | None = None,
    joints: Sequence[str] | None = None, window: Window | None = None,
) -> dict[str, Topic]:
    """Decode all batches by topic; with a ``window`` only what is in and around it.

    ``contents`` must hold the type of a topic before its first batch. Raises DataError if memory
    does not suffice, or a stated topic lacks its stated fields.
    """
    decoded: dict[str, Topic] = {}
    undefined: set[str] = set()
    for name, batch in batches:
        if name in undefined or not len(batch.starts):
            continue
        if name not in decoded:
            kind, stated = contents.topics[name], (topics or Topics()).of_topic(name)
            count = None if joints is None else len(joints)
            try:
                fields = fields_of(name, kind, stated, batch.typical,
                                   contents.definitions, count)
            except DataError as error:
                if stated:
                    raise
                contents.findings.append(f'topic {name} was not read: {error}')
                undefined.add(name)
                continue
            decoded[name] = Topic(name, JointStateDecoder(kind, fields, contents.definitions),
                                  window, pattern=names_of(stated))
        decoded[name].add(batch)
    return decoded


def log_from_topics(
    source: str,
    decoded: dict[str, Topic],
    joints: tuple[str, ...] | None,
    topics: Topics | None,
    contents: Contents,
) -> RawLog:
    """Assemble the recording from decoded topics."""
    notes = list(contents.findings)
    names = chosen_topics(topics, decoded.values(), joints, contents)
    assert isinstance(names.joint_states, str)
    if topics is None or topics.joint_states is None:
        notes += _choice_notes(names.joint_states, decoded.values(), joints)
    elif names.joint_states != USUAL.joint_states:
        notes.append(f'joint states are taken from topic {names.joint_states}')
    made = _assembled(decoded, joints, names, notes)
    base, main = made.base, made.main
    channels = {name: values if name == 'reference_position' else _recorded(name, values, notes)
                for name, values in made.channels.items()}
    begin = int(base.time[0])
    if main.window is not None and main.began is not None:
        begin = main.began[bool(main.unset)]
    time = np.asarray((base.time - begin) * 1e-9, dtype=np.float64)
    notes += findings_of(time, base.joints, channels)
    available: dict[str, Any] = dict(channels)
    if available.get('position') is None:
        raise DataError('the joint states have no positions')
    zero = begin * 1e-9
    log = RawLog(source, base.joints, time, **available, findings=tuple(notes),
                 epoch=epoch_of(zero, zero), began=None if main.window is None else 0.0,
                 wrench_frame='' if names.wrenches is None else names.wrenches.frame(decoded))
    messages = made.effort_messages()
    if messages is None:
        return log
    stamps, values = messages
    return replace(log, effort_messages=(np.asarray((stamps - begin) * 1e-9, np.float64), values))


def _assembled(
    decoded: Mapping[str, Topic], joints: tuple[str, ...] | None, names: Topics, notes: list[str]
) -> Assembly:
    """Return the joint states with the channels of other topics aligned to them."""
    made = Assembly(decoded, decoded[str(names.joint_states)], joints, notes)
    for role in BROUGHT:
        made.bring(role, names.name(role))
    made.follow_controller([topic for topic in decoded.values() if topic.kind == CONTROLLER_STATE
                            and _covers(topic, made.base.joints)])
    if names.wrenches is not None:
        made.channels[CHANNEL] = names.wrenches.torque(
            decoded, made.base.time, made.channels['position'], notes)
        made.channels['wrench'] = names.wrenches.readings(decoded, made.base.time, notes)
    return made


def _recorded(name: str, values: FloatArray | None, notes: list[str]) -> FloatArray | None:
    """Return None for a channel that is NaN throughout: its interface is not exported.

    Raises DataError for external wrenches, without which the equations are incomplete.
    """
    if values is None or not np.isnan(values).all():
        return values
    if name in (CHANNEL, 'wrench'):
        raise unknown_wrench()
    notes.append(f'{name}: NaN in every message: the robot does not export this interface')
    return None


def chosen_topics(
    requested: Topics | None, present: Iterable[Topic], joints: Sequence[str] | None,
    contents: Contents,
) -> Topics:
    """Return the names of the topics to read; raises DataError if they are ambiguous."""
    topics, present = requested or Topics(), tuple(present)
    decoded = {topic.name: topic for topic in present}
    chosen: dict[str, str | None] = {}
    for role in ('joint_states', *BROUGHT):
        name = chosen[role] = topics.name(role)
        if name is not None and name not in decoded:
            raise DataError(f'no JointState messages on topic {name}; {_listed(contents)}')
    if topics.wrenches is not None:
        topics.wrenches.require(present)
    for role in BROUGHT:
        usual = USUAL.name(role)
        if chosen[role] is None and usual in decoded and decoded[usual].kind == JOINT_STATE:
            chosen[role] = usual
    if chosen['joint_states'] is None:
        able = [topic for topic in present if topic.fields.has_positions]
        rest = [topic for topic in able if topic.name not in chosen.values()] or [
            topic for topic in able if topic.has('position')]
        if not rest:
            raise NoStates(f'no JointState messages; {_listed(contents)}')
        chosen['joint_states'] = _states(rest, joints, chosen['effort'] is not None)
    return Topics(**chosen, wrenches=topics.wrenches)


def _states(topics: Sequence[Topic], joints: Sequence[str] | None, any_effort: bool) -> str:
    """Return the topic with the states of the ``joints``, preferably with their effort.

    Raises DataError if several topics match equally.
    """
    fitting = topics if joints is None else [
        one for one in topics if _covers(one, joints)] or [
        one for one in topics if one.kind == JOINT_STATE] or topics
    ranks = {one.name: (not COMMANDED.search(one.name),
                        joints is None or any_effort or one.has('effort'),
                        one.name == USUAL.joint_states, one.kind == JOINT_STATE)
             for one in fitting}
    best = [one for one in fitting if ranks[one.name] == max(ranks.values())]
    if COMMANDED.search(best[0].name):
        raise DataError(f'the only topic with joint states is {best[0].name}, named like '
                        f'commands; if it holds measurements: --topic {best[0].name}')
    usual = [one for one in best if one.name == USUAL.joint_states] or best
    if len(usual) > 1:
        listed = '; '.join(f'{one.name} with {clipped(", ".join(one.joints), 200)}'
                           for one in sorted(best, key=lambda one: one.name))
        raise DataError(f'several JointState topics and none is {USUAL.joint_states}: {listed}; '
                        f'select one: --topic {best[0].name}')
    return usual[0].name


def _covers(topic: Topic, joints: Sequence[str]) -> bool:
    """Return True if a topic has all the joints, possibly with a prefix; False if ambiguous."""
    try:
        naming: Naming | None = topic.naming(joints)
    except DataError:
        return False
    return naming is not None and set(joints) <= set(naming.joints.values())


def _choice_notes(
    name: str, present: Iterable[Topic], joints: Sequence[str] | None
) -> list[str]:
    """Return notes on the choice of the topic ``name``, and on one with more messages."""
    topics = {topic.name: topic for topic in present}
    usual = topics.get(str(USUAL.joint_states))
    lacks = '' if usual is None else f', because {usual.name} has no effort' if (
        joints is None or _covers(usual, joints)) else f', because {usual.name} has other joints'
    notes = [] if name == USUAL.joint_states else [
        f'joint states are taken from topic {name}{lacks}']
    count = topics[name].decoder.count
    notes += [f'topic {one.name} has the same joints {one.decoder.count / count:.3g} times as '
              f'often: --topic {one.name} takes it'
              for one in topics.values() if joints is not None and one.name != name
              and one.fields.has_positions and not COMMANDED.search(one.name)
              and one.decoder.count > RICHER * count and _covers(one, joints)]
    return notes


def _listed(contents: Contents) -> str:
    topics = sorted(contents.topics.items())
    named = ', '.join(f'{name[:80]} ({kind[:80]})' for name, kind in topics)
    return f'topics are: {named or "none"}'
