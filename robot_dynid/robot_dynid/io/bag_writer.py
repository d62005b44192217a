"""Write rosbag2 folders in chunks, so that a crash loses only the last chunk.

Source: rosbag2 metadata, versions 8 and 9.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any

from robot_dynid.errors import DataError, DynIdError, UnexpectedError, UsageError
from robot_dynid.files import atomic_write
from robot_dynid.yaml_text import load_yaml, yaml_text

#: key of a bag's custom data that describes missing messages
LOSSES = 'lost_messages'


@dataclass
class Topic:
    """A topic: ``qos`` is the text of its offered profiles; ``packed`` counts compressed messages.
    """

    name: str
    kind: str
    encoding: str = 'cdr'
    qos: str = ''
    type_hash: str = ''
    messages: int = 0
    packed: int = 0


@dataclass
class StorageFile:
    """A storage file: its topics by number, receive times [ns], and its damage.

    ``lost`` bytes could not be recovered; ``sound``: the file is unchanged.
    """

    name: str
    topics: dict[int, Topic] = field(default_factory=dict)
    first: int | None = None
    last: int | None = None
    lost: int = 0
    sound: bool = True
    findings: list[str] = field(default_factory=list)

    def span(self, first: int, last: int) -> None:
        """Extend the time range to messages received from ``first`` to ``last`` [ns]."""
        self.first = first if self.first is None else min(self.first, first)
        self.last = last if self.last is None else max(self.last, last)


def merged_topics(files: Sequence[StorageFile]) -> list[Topic]:
    """Return the topics of all files with their message counts added, in order of appearance."""
    topics: dict[tuple[str, str, str], Topic] = {}
    for one in (topic for file in files for topic in file.topics.values()):
        topic = topics.setdefault((one.name, one.kind, one.encoding),
                                  Topic(one.name, one.kind, one.encoding))
        topic.qos, topic.type_hash = topic.qos or one.qos, topic.type_hash or one.type_hash
        topic.messages += one.messages
        topic.packed += one.packed
    return list(topics.values())


def bag_information(
    storage: str, files: Sequence[StorageFile], custom: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return the content of metadata.yaml of a bag in ``storage`` (mcap or sqlite3).

    Quality of service is text in version 9, numbers in version 8.
    """
    topics = merged_topics(files)
    profiles = [_profiles(topic.qos) for topic in topics]
    in_words = all(isinstance(one.get('history'), str) for each in profiles for one in each)
    packed = any(topic.packed for topic in topics) and all(
        topic.packed == topic.messages for topic in topics)
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
        'custom_data': custom or None,
        'ros_distro': 'unknown'}}


def _times(files: Sequence[StorageFile]) -> dict[str, Any]:
    """Return start, duration and number of messages; 0 without any, like rosbag2."""
    first = min((file.first for file in files if file.first is not None), default=0)
    last = max((file.last for file in files if file.last is not None), default=0)
    return {'starting_time': {'nanoseconds_since_epoch': first},
            'duration': {'nanoseconds': last - first},
            'message_count': sum(one.messages for file in files for one in file.topics.values())}


def _profiles(text: str) -> list[dict[str, Any]]:
    """Return the QoS profiles of a topic, empty if they cannot be read."""
    try:
        profiles = load_yaml(text, 'offered_qos_profiles', DataError)
    except DataError:
        return []
    return [one for one in profiles if isinstance(one, dict)] if isinstance(profiles, list) else []


class Spool:
    """Append-only file: appends reach the disk as a whole or stay in memory.

    The mcap writer writes to memory; ``commit`` writes that to the disk and syncs. If the disk is
    full the file is truncated to its last good byte and nothing is lost: the next ``commit``
    retries.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open('xb', buffering=0)
        self._pending = BytesIO()
        self.committed = 0

    def write(self, data: bytes | memoryview) -> int:
        """Append to memory."""
        return self._pending.write(data)

    def tell(self) -> int:
        """Return the length of the file once all is committed."""
        return self.committed + self._pending.tell()

    def flush(self) -> None:
        """Do nothing: `commit` does."""

    def commit(self) -> None:
        """Write everything to the disk; raises OSError if it does not fit."""
        data = self._pending.getvalue()
        done = 0
        try:
            while done < len(data):
                done += os.pwrite(self._file.fileno(), memoryview(data)[done:],
                                  self.committed + done)
            os.fsync(self._file.fileno())
        except OSError:
            self._file.truncate(self.committed)
            raise
        self.committed += len(data)
        self._pending = BytesIO()

    def end(self) -> None:
        """Commit and close; later calls do nothing. Raises OSError if it does not fit."""
        if not self._file.closed:
            self.commit()
            self._file.close()


class BagWriter:
    """Write raw CDR messages to a new mcap bag folder; use as a context manager.

    Everything written before ``commit`` can be read after a crash. Raises UsageError if the path
    exists, DataError if the folder cannot be created, MissingDependency without mcap or rosbags.
    """

    def __init__(self, path: str | Path) -> None:
        try:
            from mcap.writer import CompressionType, Writer
            from rosbags.typesys import Stores, get_typestore
        except ModuleNotFoundError as error:  # rosdep installs neither
            raise UnexpectedError.of(error) from error
        self.path = Path(path)
        self._types = get_typestore(Stores.ROS2_HUMBLE)
        self._file = StorageFile(f'{self.path.name}.mcap')
        self._custom: dict[str, str] = {}
        self._schemas: dict[str, int] = {}
        self._finished = False
        try:
            self.path.mkdir(parents=True)  # fails if the name exists
            self._spool = Spool(self.storage_file)
            self._writer: Any = Writer(self._spool,  # type: ignore[arg-type]
                                       compression=CompressionType.NONE, enable_data_crcs=True)
            self._writer.start('ros2', 'robot_dynid')
            self._spool.commit()
        except FileExistsError:
            raise UsageError(f'{path}: exists already; bags are not overwritten') from None
        except OSError as error:
            raise DataError(f'{path}: cannot be created: {error.strerror or error}') from None

    @property
    def storage_file(self) -> Path:
        """The file that holds the messages."""
        return self.path / self._file.name

    def add_topic(self, name: str, message_type: str, definition: str = '') -> int:
        """Add a topic, with the definition of its type if rosbags does not have it.

        Return its number. Raises UsageError for an unknown type without a definition.
        """
        from rosbags.typesys import get_types_from_msg

        if message_type not in self._types.fielddefs and definition:
            self._types.register(get_types_from_msg(definition, message_type))
        if message_type not in self._types.fielddefs:
            raise UsageError(f'topic {name}: no definition of message type {message_type}')
        type_hash = self._types.hash_rihs01(message_type)
        if message_type not in self._schemas:
            text, _ = self._types.generate_msgdef(message_type, ros_version=2)
            self._schemas[message_type] = self._writer.register_schema(
                message_type, 'ros2msg', text.encode())
        number: int = self._writer.register_channel(
            name, 'cdr', self._schemas[message_type],
            {'offered_qos_profiles': '[]', 'topic_type_hash': type_hash})
        self._file.topics[number] = Topic(name, message_type, 'cdr', '[]', type_hash)
        return number

    def write(self, topic: int, received: int, data: bytes | memoryview) -> None:
        """Append one message; ``received`` in ns."""
        self._writer.add_message(topic, received, data, received)
        self._file.topics[topic].messages += 1
        self._file.span(received, received)

    def commit(self) -> None:
        """Make everything written so far durable; raises OSError if the disk is full."""
        self.seal()
        self.sync()

    def seal(self) -> None:
        """End the chunk in memory that the next ``sync`` writes to the disk."""
        if not self._finished:
            self._writer.flush()

    def sync(self) -> None:
        """Write sealed chunks to the disk, concurrently with writers; raises OSError."""
        self._spool.commit()

    def note(self, key: str, value: str) -> None:
        """Add a text to the custom data of the bag."""
        self._custom[key] = value

    def close(self) -> None:
        """Write index and metadata and close.

        Raises OSError or DynIdError if the disk is full; call it again then.
        """
        if not self._finished:
            self.commit()
            self._writer.finish()
            self._finished = True
        self._spool.end()
        atomic_write(self.path / 'metadata.yaml',
                     yaml_text(bag_information('mcap', [self._file], self._custom)))

    def remove(self) -> None:
        """Close, and delete the files of the bag and its folder if it is empty then."""
        with suppress(OSError, DynIdError):
            self.close()
        for path in (self.storage_file, self.path / 'metadata.yaml'):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    def __enter__(self) -> BagWriter:
        """Return self."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close, also after an error: everything written is retained."""
        self.close()
