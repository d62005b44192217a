"""Read raw messages of a ROS 1 bag, which rosbags reads by its index."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path
from typing import Any

from robot_dynid.errors import DataError, clipped
from robot_dynid.files import open_regular, unpacked
from robot_dynid.io.cdr import Batch
from robot_dynid.io.mcap import CHUNK_BYTES, Contents
from robot_dynid.io.messages.definitions import Definitions
from robot_dynid.io.sqlite import PART_BYTES, ROWS, joined_batch

MAGIC = b'#ROSBAG V2.0'


def rosbag1_batches(
    path: Path, kinds: Collection[str] | None, contents: Contents
) -> Iterator[tuple[str, Batch]]:
    """Yield (topic, messages) of all topics whose type is in ``kinds``, in order of time.

    None: of all topics. Raises DataError if the file is not a ROS 1 bag, or has no index.
    """
    from rosbags.rosbag1 import Reader

    with open_regular(path, DataError) as file:
        if not file.read(len(MAGIC)).startswith(MAGIC):
            raise DataError(f'{path}: empty, or not a ROS 1 bag of version 2.0; rosbag fix '
                            'converts older ones')
    contents.definitions = Definitions(ros1=True)
    with ExitStack() as stack:
        try:
            reader: Any = stack.enter_context(Reader(path))
        except Exception as error:  # any error of reading an untrusted file
            raise DataError(
                f'{path}: its index is missing or damaged (crash while recording?); run rosbag '
                f'reindex {path.name}, or rosbag fix, on it: '
                f'{clipped(str(error) or type(error).__name__, 200)}') from None
        wanted = []
        for one in reader.connections:
            contents.topics[one.topic] = one.msgtype
            contents.definitions.add(one.msgtype, 'ros2msg', one.msgdef.data.encode())
            contents.messages += one.msgcount
            if contents.wants(one.topic, one.msgtype, kinds):
                wanted.append(one)
        if reader.chunk_infos:
            contents.span(int(reader.start_time), int(reader.end_time) - 1)
        _bound_chunks(reader)
        yield from _messages(path, reader, wanted, contents)


def _bound_chunks(reader: Any) -> None:
    """Limit the unpacked size of chunks to that of mcap."""
    def bounded(unpack: Any) -> Any:
        compression = next((name for name, one in decompressors.items() if one is unpack), '')
        return lambda data: b''.join(unpacked(
            BytesIO(data), compression.removeprefix('none'), CHUNK_BYTES))

    from rosbags.rosbag1.reader import decompressors

    reader.chunks = {place: chunk._replace(decompressor=bounded(chunk.decompressor))
                     for place, chunk in reader.chunks.items()}


def _messages(
    path: Path, reader: Any, wanted: list[Any], contents: Contents
) -> Iterator[tuple[str, Batch]]:
    """Yield the messages of connections in batches."""
    parts: dict[str, tuple[list[int], list[bytes]]] = {}
    size = 0
    messages = reader.messages(wanted) if wanted else iter(())
    ended = False
    while not ended:
        try:
            connection, received, data = next(messages)
        except StopIteration:
            ended = True
        except Exception as error:  # see above
            contents.whole, ended = False, True
            contents.damaged(f'{path.name}: a chunk is damaged, what lies before was read: '
                             f'{clipped(str(error) or type(error).__name__, 200)}')
        else:
            times, texts = parts.setdefault(connection.topic, ([], []))
            times.append(received)
            texts.append(data)
            size += len(data)
            contents.counts[connection.topic] += 1
        if ended or size > PART_BYTES or max(len(times) for times, _ in parts.values()) >= ROWS:
            yield from ((topic, joined_batch(*part)) for topic, part in parts.items())
            parts, size = {}, 0
