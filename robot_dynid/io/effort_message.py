"""One joint state at a time in CDR, both ways; the places of the numbers are worked out once."""

from __future__ import annotations

import struct

import numpy as np

from robot_dynid.errors import DataError
from robot_dynid.io.cdr import FIELDS, Layout, encode_joint_states, layout_of
from robot_dynid.types import FloatArray


class JointStateReader:
    """Reads messages of one topic, whose names and lengths hardly ever change."""

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._pattern = b''

    def __call__(self, data: bytes) -> tuple[tuple[str, ...], int, dict[str, FloatArray]]:
        """Return names, stamp [ns] and views of those arrays that are not empty.

        The names are one and the same object while they do not change.

        Raises DataError when it is not a JointState, or its arrays do not fit its names.
        """
        layout = self._layout
        if layout is None or len(data) != layout.size or (
                np.frombuffer(data, np.uint8)[layout.fixed].tobytes() != self._pattern):
            self._layout = None
            layout = layout_of(bytes(data))
            if layout.broken:
                raise DataError('the arrays of the joint states do not match their names')
            self._layout, self._pattern = layout, layout.pattern.tobytes()
        seconds, nanoseconds = struct.unpack_from(layout.order + 'iI', data, 4)
        values = {
            name: np.frombuffer(data, layout.order + 'f8', count, at)
            for name, at, count in zip(FIELDS, layout.offsets, layout.counts, strict=True)
            if count}
        return layout.names, seconds * 10**9 + nanoseconds, values


class EffortWriter:
    """Writes joint states that carry efforts only."""

    def __init__(self, names: tuple[str, ...]) -> None:
        empty = np.zeros((1, len(names)))
        self._data = bytearray(
            encode_joint_states(names, np.zeros(1, np.int64), (None, None, empty))[0])
        self._size = 8 * len(names)

    def __call__(self, stamp: int, effort: FloatArray) -> bytes:
        """Return the message of ``effort`` (n,) at ``stamp`` [ns]."""
        struct.pack_into('<iI', self._data, 4, *divmod(stamp, 10**9))
        self._data[-self._size:] = effort.astype('<f8').tobytes()
        return bytes(self._data)
