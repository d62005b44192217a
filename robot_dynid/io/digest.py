"""Digest of the messages of a topic, for storages whose format has no checksums (sqlite3)."""

from __future__ import annotations

import hashlib
import struct

from robot_dynid.io.cdr import Batch

#: begins the key of a topic's digest in the custom data of metadata.yaml
DIGEST = 'robot_dynid sha256 of '


class TopicDigest:
    """SHA-256 of receive time [ns], length and bytes of all messages, in order of writing."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, received: int, data: bytes | memoryview) -> None:
        """Add a message."""
        self._hash.update(struct.pack('<qq', received, len(data)))
        self._hash.update(data)

    def add_batch(self, batch: Batch) -> None:
        """Add the messages of a batch."""
        raw = batch.buffer.data
        for received, start, size in zip(batch.received.tolist(), batch.starts.tolist(),
                                         batch.sizes.tolist(), strict=True):
            self.add(received, raw[start:start + size])

    @property
    def hex(self) -> str:
        """The digest of what was added so far."""
        return self._hash.hexdigest()
