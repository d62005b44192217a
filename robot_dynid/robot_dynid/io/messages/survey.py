"""List the topics of a bag and their possible uses: joint states, efforts, motor states."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from robot_dynid.errors import DataError, clipped
from robot_dynid.io.mcap import Contents
from robot_dynid.io.messages.fields import MessageFields
from robot_dynid.io.messages.kinds import MESSAGE_KINDS, Layout, layout_of
from robot_dynid.io.messages.naming import naming_of
from robot_dynid.io.messages.topics import fitting_fields
from robot_dynid.io.storage import bag_batches

#: largest number of texts in a field that is listed
SHOWN_TEXTS = 30
#: words in field names that indicate a channel, the best first
WORDS = {'position': 'position|posj|angle|pos|q', 'velocity': 'velocitie|velocity|velj|vel|dq|qd',
         'effort': 'effort|torque|tau|tor|jts|motor_current'}
#: words in field names that indicate commands
NOT_MEASURED = ('command', 'cmd', 'desired', 'target', 'external', 'ext_', 'goal', 'error',
                'reference', 'ipo')


@dataclass
class TopicSummary:
    """A topic: its message count, receive times ``first`` to ``last`` [ns], and its fields.

    ``fields`` are the lengths of its numbers by path, ``candidates`` those that may belong to
    joints, ``texts`` the names in it; ``layout`` that of a supported message type; ``stamp``
    fields that may be its time without a header; ``labels`` names of values that are not read by
    default; ``problem`` says why its fields are unknown.
    """

    name: str
    kind: str
    messages: int = 0
    first: int = 0
    last: int = 0
    fields: dict[str, int] = field(default_factory=dict)
    candidates: tuple[str, ...] = ()
    texts: dict[str, list[str]] = field(default_factory=dict)
    layout: Layout | None = None
    stamp: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    problem: str = ''

    @property
    def rate(self) -> float:
        """Messages per second, NaN for fewer than two."""
        span = (self.last - self.first) * 1e-9
        return (self.messages - 1) / span if span > 0.0 else float('nan')

    @property
    def joints(self) -> tuple[str, ...]:
        """Joints it names, if it is a supported type with joint states."""
        return self.layout.names if self.layout is not None and self.layout.named else ()

    def fitting(self, count: int) -> list[str]:
        """Return the fields with as many numbers as joints."""
        return [path for path in self.candidates if self.fields[path] == count]


def survey(path: Path, first_only: bool = False) -> list[TopicSummary]:
    """Return all topics of a bag, in order of their names.

    With ``first_only`` it stops once every topic has a message. Raises DataError if it is not a
    bag.
    """
    contents = Contents()
    topics: dict[str, TopicSummary] = {}
    for name, batch in bag_batches(path, contents, None):
        if not len(batch.starts):
            continue
        topic = topics.get(name)
        if topic is None:
            data = batch.typical
            topic = topics[name] = TopicSummary(name, contents.topics[name],
                                               first=int(batch.received.min()))
            _look_into(topic, data, contents)
        topic.messages += len(batch.starts)
        topic.first = min(topic.first, int(batch.received.min()))
        topic.last = max(topic.last, int(batch.received.max()))
        if first_only and len(topics) == len(contents.topics):
            break
    for name, kind in contents.topics.items():
        topics.setdefault(name, TopicSummary(name, kind, problem='no messages'))
    return [topics[name] for name in sorted(topics)]


def _look_into(topic: TopicSummary, data: bytes, contents: Contents) -> None:
    """Add the fields of a message to a topic."""
    try:
        message = MessageFields.of(data, topic.kind, contents.definitions)
        topic.fields = {message.shown(path): length for path, length, _ in message.lengths()
                        if not path.endswith(('.sec', '.nanosec', '.seq'))}
        topic.stamp = () if 'header.stamp.sec' in message.numbers else _stamp(message)
        topic.candidates = tuple(fitting_fields(message, None))
        topic.texts = {message.shown(path): [text.value.decode('utf-8', 'replace')
                                             for text in texts[:SHOWN_TEXTS]]
                       for path, texts in message.texts.items()
                       if message.is_array(path)}
        usual = MESSAGE_KINDS.get(topic.kind)
        if usual is not None and usual.labels is not None:
            names = dict.fromkeys(text.value.decode('utf-8', 'replace')
                                  for text in message.texts.get(usual.labels[0], []))
            topic.labels = tuple(name for name in names if name not in usual.channels)
        if usual is not None:
            topic.layout = layout_of(data, topic.kind, None, contents.definitions)
    except DataError as error:
        topic.problem = str(error)


def _stamp(message: MessageFields) -> tuple[str, ...]:
    """Return the fields with seconds and nanoseconds, empty without any."""
    for path in message.numbers:
        seconds = re.sub('nano_?|n(?=sec)', '', path)
        if seconds != path and seconds in message.numbers and path not in message.arrays:
            return seconds, path
    return ()


def uses(topic: TopicSummary, joints: Sequence[str]) -> Iterator[str]:
    """Yield the uses of a topic for ``joints``, with the option that selects it.

    Without joints only those of messages with joint names.
    """
    if topic.layout is not None and topic.layout.channels:
        yield from _supported_uses(topic, topic.layout, joints)
        return
    if topic.kind in MESSAGE_KINDS:
        return
    proposed = proposed_fields(topic, joints)
    if 'position' in proposed:
        channels = [channel for channel in proposed if channel in WORDS]
        yield f'{", ".join(channels)} by --topic {option("joint_states", topic.name, proposed)}'
    elif len(topic.fitting(len(joints))) == 1:
        yield f'effort by --topic effort={topic.name}'


def _supported_uses(
    topic: TopicSummary, layout: Layout, joints: Sequence[str]
) -> Iterator[str]:
    """Yield the uses of a supported message type."""
    channels = ', '.join(layout.channels).replace('_', ' ')
    missing = [name for name in WORDS if name not in layout.channels
               and 'position' in layout.channels]
    words = f'{channels} of {len(layout.names)} joints' + (
        f', no {" and no ".join(missing)}' if missing else '')
    if not layout.channels or layout.names[0].find('@') >= 0:
        yield 'wrench, where the robot YAML names topic and link (wrenches)'
        return
    try:
        naming = naming_of(layout.names, joints, '', not layout.named) if joints else None
        there = set() if naming is None else set(naming.joints.values())
        note = f' ({naming.note})' if naming is not None and naming.note else ''
    except DataError as error:
        there, note = set(), f' ({error})'
    if joints and not there:
        note = note or " (none of the robot's)"
    elif there < set(joints):
        note = f' (without {", ".join(joint for joint in joints if joint not in there)})'
    roles = [f'--topic {topic.name}'] if 'position' in layout.channels else []
    if not layout.named:
        roles = [f"--topic '{{topic: {topic.name}, names: robot}}'"]
    yield f'{words}{note}{": " if roles else ""}{", ".join(roles)}'
    if 'effort' in layout.channels and 'position' not in layout.channels:
        yield f'effort by --topic effort={topic.name}'


def proposed_fields(topic: TopicSummary, joints: Sequence[str]) -> dict[str, str]:
    """Return the fields whose names indicate a channel, measured ones first."""
    fitting = topic.fitting(len(joints))
    proposed: dict[str, str] = {}
    for channel, words in WORDS.items():
        named = [path for word in words.split('|') for path in fitting
                 if re.search(rf'(?<![a-z]){word}s?(?![a-z])', path.split('.')[-1].lower())]
        measured = [path for path in named
                    if not any(word in path.lower() for word in NOT_MEASURED)]
        if measured:
            proposed[channel] = measured[0]
    names = [path for path, texts in topic.texts.items() if set(joints) <= set(texts)]
    if names and topic.kind not in MESSAGE_KINDS:
        proposed['names'] = names[0]
    if topic.stamp:
        proposed['stamp'] = f'[{", ".join(topic.stamp)}]'
    return proposed


def option(role: str, topic: str, fields: dict[str, str]) -> str:
    """Return the value of --topic for fields of a topic, ready to paste into a shell."""
    named = ', '.join(f'{channel}: {path}' for channel, path in fields.items())
    mapping = f'{{topic: {topic}, {named}}}'
    return f"'{mapping}'" if role == 'joint_states' else f"'{role}={mapping}'"


def states_advice(topics: Sequence[TopicSummary], joints: Sequence[str]) -> str:
    """Return the remedy for a bag without joint states, from the fields of its topics."""
    hints = []
    for topic in topics:
        proposed, fitting = proposed_fields(topic, joints), topic.fitting(len(joints))
        if 'position' in proposed:
            hints.append(f'{topic.name} has fields that can be joint states; check them and give '
                         f'--topic {option("joint_states", topic.name, proposed)}')
        elif fitting:
            hints.append(f'{topic.name} has {len(joints)} numbers in {", ".join(fitting)}')
        elif topic.kind in MESSAGE_KINDS and not topic.messages:
            hints.append(f'{topic.name} has no messages: record while the driver runs')
        elif topic.problem and topic.messages:
            hints.append(f'{topic.name}: {clipped(topic.problem, 300)}')
    return f'; {"; ".join(hints) or "record the JointState topic of the driver"}'


def effort_advice(topics: Sequence[TopicSummary], joints: Sequence[str]) -> str:
    """Return the topics that may hold the missing effort, with their options."""
    hints = []
    for topic in topics:
        layout = topic.layout
        if layout is not None and 'effort' in layout.channels and '@' not in layout.names[0] \
                and len(layout.names) >= len(joints):
            hints.append(f'{topic.name}: --topic effort={topic.name}')
        elif topic.labels:
            hints += [f'{topic.name} ({label}): --topic '
                      + option('effort', topic.name, {'effort': label}) for label in topic.labels]
        elif topic.kind not in MESSAGE_KINDS and topic.fitting(len(joints)):
            fitting = topic.fitting(len(joints))
            hints += [f'{topic.name} ({path}): --topic ' + (
                f'effort={topic.name}' if len(fitting) == 1 else
                option('effort', topic.name, {'effort': path})) for path in fitting]
    if not hints:
        return '; no other topic has as many numbers as joints: record the effort'
    return f'; it may be on: {"; ".join(hints)}'
