"""Content of metadata.yaml of a bag, gathered from its storage files.

Source: rosbag2 metadata, versions 8 and 9: quality of service in numbers, or in words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from robot_dynid.errors import DataError
from robot_dynid.io.bag_writer import LOSSES
from robot_dynid.yaml_text import load_yaml

#: first bytes of messages that were compressed one by one
ZSTD_MAGIC = b'\x28\xb5\x2f\xfd'


@dataclass
class TopicInformation:
    """A topic: ``qos`` is the text of its offered profiles; ``packed`` messages are compressed."""

    name: str
    kind: str
    encoding: str = 'cdr'
    qos: str = ''
    type_hash: str = ''
    messages: int = 0
    packed: int = 0


@dataclass
class StorageInformation:
    """A storage file: its topics by number, receive times [ns], and what became of it.

    ``lost`` bytes could not be kept; ``sound``: nothing of the file had to be changed.
    """

    name: str
    topics: dict[int, TopicInformation] = field(default_factory=dict)
    first: int | None = None
    last: int | None = None
    lost: int = 0
    sound: bool = True
    findings: list[str] = field(default_factory=list)

    @property
    def messages(self) -> int:
        """Number of messages of all topics."""
        return sum(topic.messages for topic in self.topics.values())

    def add(self, channel: int, received: int, start: bytes) -> None:
        """Count a message received at [ns], of which ``start`` are the first bytes."""
        topic = self.topics[channel]
        topic.messages += 1
        topic.packed += start.startswith(ZSTD_MAGIC)
        self.first = received if self.first is None else min(self.first, received)
        self.last = received if self.last is None else max(self.last, received)


def merged_topics(files: Sequence[StorageInformation]) -> list[TopicInformation]:
    """Return the topics of all files with their messages added, in order of appearance."""
    found: dict[tuple[str, str, str], TopicInformation] = {}
    for file in files:
        for one in file.topics.values():
            topic = found.setdefault((one.name, one.kind, one.encoding), TopicInformation(
                one.name, one.kind, one.encoding))
            topic.qos, topic.type_hash = topic.qos or one.qos, topic.type_hash or one.type_hash
            topic.messages += one.messages
            topic.packed += one.packed
    return list(found.values())


def bag_information(storage: str, files: Sequence[StorageInformation]) -> dict[str, Any]:
    """Return the content of metadata.yaml of a bag in ``storage`` (mcap or sqlite3)."""
    topics = merged_topics(files)
    profiles = [_profiles(topic.qos) for topic in topics]
    in_words = all(isinstance(one.get('history'), str) for each in profiles for one in each)
    packed = any(topic.packed for topic in topics) and all(
        topic.packed == topic.messages for topic in topics)
    lost = [f'{file.name}: {finding}' for file in files for finding in file.findings]
    return {'rosbag2_bagfile_information': {
        'version': 9 if in_words else 8,
        'storage_identifier': storage,
        **_times(files),
        'topics_with_message_count': [{
            'topic_metadata': {
                'name': topic.name, 'type': topic.kind, 'serialization_format': topic.encoding,
                'offered_qos_profiles': qos if in_words else topic.qos,
                'type_description_hash': topic.type_hash},
            'message_count': topic.messages} for topic, qos in zip(topics, profiles, strict=True)],
        'compression_format': 'zstd' if packed else '',
        'compression_mode': 'MESSAGE' if packed else '',
        'relative_file_paths': [file.name for file in files],
        'files': [{'path': file.name, **_times([file])} for file in files],
        'custom_data': {LOSSES: '; '.join(lost)} if lost else None,
        'ros_distro': 'unknown'}}


def _times(files: Sequence[StorageInformation]) -> dict[str, Any]:
    """Return start, duration and number of messages; rosbag2 says 0 where there are none."""
    first = min((file.first for file in files if file.first is not None), default=0)
    last = max((file.last for file in files if file.last is not None), default=0)
    return {'starting_time': {'nanoseconds_since_epoch': first},
            'duration': {'nanoseconds': last - first},
            'message_count': sum(file.messages for file in files)}


def _profiles(text: str) -> list[dict[str, Any]]:
    """Return the profiles of a topic; none where they cannot be read."""
    try:
        found = load_yaml(text, 'offered_qos_profiles', DataError)
    except DataError:
        return []
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
