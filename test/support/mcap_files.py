"""mcap files made record by record: with every checksum or with none, and with what is wrong.

Source: MCAP format specification, version 0.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import lz4.frame
from rosbags.rosbag2.storage_mcap import zstd

from robot_dynid.io.cdr import JOINT_STATE

MAGIC = b'\x89MCAP0\r\n'
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    '': bytes, 'lz4': lz4.frame.compress, 'zstd': zstd.compress}
Messages = Sequence[tuple[int, bytes]]


@dataclass(frozen=True)
class Style:
    """How a file is written; ``chunk`` is the number of messages in one, 0: no chunks."""

    compression: str = ''
    chunk: int = 100
    checksums: bool = True
    index: bool = True


def record(op: int, body: bytes) -> bytes:
    """Return a record."""
    return struct.pack('<BQ', op, len(body)) + body


def text(value: str) -> bytes:
    """Return a string with its length."""
    data = value.encode()
    return struct.pack('<I', len(data)) + data


def chunk_of(records: bytes, times: tuple[int, int], compression: str = '',
             checksum: int | None = None, claimed: int | None = None) -> bytes:
    """Return a chunk; ``claimed`` is the uncompressed size it states, the true one by default."""
    packed = COMPRESS[compression](records)
    checksum = zlib.crc32(records) if checksum is None else checksum
    claimed = len(records) if claimed is None else claimed
    return record(6, struct.pack('<QQQI', *times, claimed, checksum) + text(compression)
                  + struct.pack('<Q', len(packed)) + packed)


def announced(topic: str = '/joint_states', kind: str = JOINT_STATE, channel: int = 1) -> bytes:
    """Return schema and channel of a topic."""
    schema = struct.pack('<H', channel) + text(kind) + text('ros2msg') + text('')
    return record(3, schema) + record(4, struct.pack('<HH', channel, channel) + text(topic)
                                      + text('cdr') + struct.pack('<I', 0))


def message(received: int, data: bytes, channel: int = 1) -> bytes:
    """Return a message."""
    return record(5, struct.pack('<HIQQ', channel, 0, received, received) + data)


def mcap_file(messages: Messages, style: Style = Style()) -> bytes:
    """Return a whole file of one topic."""
    head = announced()
    out = MAGIC + record(1, text('ros2') + text('test'))
    index = b''
    chunks = 0
    if not style.chunk:
        out += head + b''.join(message(*one) for one in messages)
    for start in range(0, len(messages) if style.chunk else 0, max(style.chunk, 1)):
        part = messages[start:start + style.chunk]
        records, rows = (b'' if start else head), b''
        for received, data in part:
            rows += struct.pack('<QQ', received, len(records))
            records += message(received, data)
        times = min(t for t, _ in part), max(t for t, _ in part)
        chunk = chunk_of(records, times, style.compression, None if style.checksums else 0)
        place, at = len(out), len(out) + len(chunk)
        rows = record(7, struct.pack('<HI', 1, len(rows)) + rows) if style.index else b''
        out += chunk + rows
        offsets = struct.pack('<HQ', 1, at) if style.index else b''
        index += record(8, struct.pack('<QQQQI', *times, place, len(chunk), len(offsets))
                        + offsets + struct.pack('<Q', len(rows)) + text(style.compression)
                        + struct.pack('<QQ', len(chunk) - 49 - len(style.compression),
                                      len(records)))
        chunks += 1
    out += record(15, struct.pack('<I', zlib.crc32(out) if style.checksums else 0))
    times = (min(t for t, _ in messages), max(t for t, _ in messages)) if messages else (0, 0)
    statistics = struct.pack('<QHIIIIQQIHQ', len(messages), 1, 1, 0, 0, chunks, *times, 10, 1,
                             len(messages))
    start = len(out)
    summary = head + index + record(11, statistics)
    footer = struct.pack('<BQQQ', 2, 20, start, 0)
    checksum = zlib.crc32(summary + footer) if style.checksums else 0
    return out + summary + footer + struct.pack('<I', checksum) + MAGIC
