"""Decode joint states and trajectories from CDR, the wire format of DDS and of bags.

All messages that share a layout are decoded at once, see `io.messages.kinds`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.io.messages.definitions import (
    CONTROLLER_STATE,
    JOINT_STATE,
    WRENCH,
    Definitions,
)
from robot_dynid.io.messages.fields import HEADER, ByteArray, IntArray, aligned
from robot_dynid.io.messages.kinds import MESSAGE_BYTES, Kind, Layout, layout_of
from robot_dynid.types import FloatArray

__all__ = ['CONTROLLER_STATE', 'JOINT_STATE', 'WRENCH']
ROWS = 8192  # messages decoded at a time: bounds the scratch memory
#: limits per topic of distinct layouts, and of messages without a layout
LAYOUTS, FAILURES = 100, 1000
#: bytes decoded at a time
PART_BYTES = 1 << 24
SECOND = 10**9  # ns
#: upper bound of stamps [s]: more does not fit into 64 bits of nanoseconds
LAST = 9.2e9
#: smallest step of header stamps against receive times that is counted [ns]
STEP = SECOND


@dataclass(frozen=True, eq=False)
class Batch:
    """Raw messages of one topic in one buffer.

    ``received`` (k,) ns, ``starts`` (k,) and ``sizes`` (k,) bytes in ``buffer``.
    """

    received: IntArray
    buffer: ByteArray
    starts: IntArray
    sizes: IntArray

    @property
    def typical(self) -> bytes:
        """Return the middle message, because the first ones may be empty."""
        k = len(self.starts) // 2
        return self.buffer[self.starts[k]:self.starts[k] + self.sizes[k]].tobytes()


@dataclass(frozen=True, eq=False)
class Decoded:
    """Messages with the same joint names in the same order.

    ``order`` (k,) position in the topic, ``received`` and ``stamp`` (k,) ns (stamp 0: not set);
    ``values`` (k, n) by channel, without empty arrays. ``named``: the messages contain joint
    names.
    """

    names: tuple[str, ...]
    order: IntArray
    received: IntArray
    stamp: IntArray
    values: dict[str, FloatArray]
    named: bool = True

    def rows(self, rows: IntArray) -> Decoded:
        """Return the selected messages."""
        return Decoded(self.names, self.order[rows], self.received[rows], self.stamp[rows],
                       {name: v[rows] for name, v in self.values.items()}, self.named)


class JointStateDecoder:
    """Decode batches of one topic of type ``kind``, with cached layouts.

    ``fields`` of the messages default to those of their kind; see `layout_of`.
    """

    def __init__(
        self, kind: str = JOINT_STATE, fields: Kind | None = None,
        definitions: Definitions | None = None,
    ) -> None:
        self.kind, self.fields = kind, fields
        self.definitions = definitions or Definitions()
        self.layouts: list[Layout] = []
        self.count = 0
        self.undecodable = 0
        self.wrong_length = 0
        self.steps = 0
        self.longest_step = 0.0
        self._delays: dict[int, float] = {}

    def decode(self, batch: Batch) -> list[Decoded]:
        """Return the messages of ``batch``, grouped by joint names; damaged ones are counted."""
        decoded = []
        largest = int(np.clip(batch.sizes.max(initial=1), 1, MESSAGE_BYTES))
        step = int(np.clip(PART_BYTES // largest, 1, ROWS))
        for start in range(0, len(batch.starts), step):
            rows = slice(start, start + step)
            part = Batch(batch.received[rows], batch.buffer, batch.starts[rows], batch.sizes[rows])
            decoded += self._part(part)
        return decoded

    def _part(self, batch: Batch) -> list[Decoded]:
        todo = np.arange(len(batch.starts))
        order = self.count + todo
        self.count += len(todo)
        decoded: list[Decoded] = []
        for k in range(len(self.layouts)):
            todo = self._decode_rows(k, batch, todo, order, decoded)
        possible = todo[batch.sizes[todo] <= MESSAGE_BYTES]
        self.undecodable += len(todo) - len(possible)
        todo = possible
        while len(todo):
            if len(self.layouts) >= LAYOUTS or self.undecodable + self.wrong_length >= FAILURES:
                self.undecodable += len(todo)
                break
            if self._learn(batch, int(todo[0])):
                todo = self._decode_rows(len(self.layouts) - 1, batch, todo, order, decoded)
            else:
                todo = todo[1:]
        return decoded

    def _learn(self, batch: Batch, row: int) -> bool:
        """Add the layout of a message if it is valid."""
        start = int(batch.starts[row])
        try:
            layout = layout_of(
                batch.buffer[start:start + int(batch.sizes[row])].tobytes(), self.kind,
                self.fields, self.definitions)
        except DataError:
            self.undecodable += 1
            return False
        if layout.broken:
            self.wrong_length += 1
            return False
        self.layouts.append(layout)
        return True

    def _decode_rows(
        self, number: int, batch: Batch, todo: IntArray, order: IntArray, decoded: list[Decoded]
    ) -> IntArray:
        """Decode the rows of ``todo`` that have this layout; return the others."""
        layout = self.layouts[number]
        rows = todo[batch.sizes[todo] == layout.size]
        if not len(rows):
            return todo
        data = _gathered(batch.buffer, batch.starts[rows], layout.size)
        same = (data[:, layout.fixed] == layout.pattern).all(axis=1)
        left = np.setdiff1d(todo, rows[same], assume_unique=True)
        stamp, possible = _stamps(layout, data)
        self.undecodable += int((same & ~possible).sum())
        same &= possible
        if not same.all():
            data, rows, stamp = data[same], rows[same], stamp[same]
        if len(rows):
            values = {name: one.read(data) for name, one in layout.channels.items()}
            received = batch.received[rows]
            self._follow(number, received, stamp)
            decoded.append(Decoded(
                layout.names, order[rows], received, stamp, values, layout.named))
        return left

    def _follow(self, number: int, received: IntArray, stamp: IntArray) -> None:
        """Count steps of header stamps against the receive times."""
        delays = received[stamp != 0].astype(np.float64) - stamp[stamp != 0]
        if len(delays):
            change = np.abs(np.diff(delays, prepend=self._delays.get(number, delays[0])))
            self._delays[number] = float(delays[-1])
            self.steps += int((change > STEP).sum())
            self.longest_step = max(self.longest_step, float(change.max()) * 1e-9)


def _gathered(buffer: ByteArray, starts: IntArray, size: int) -> ByteArray:
    """Return the messages as rows (k, size), as a view if they are equally spaced."""
    steps = np.diff(starts)
    if len(steps) and (steps == steps[0]).all():
        return as_strided(buffer[starts[0]:], (len(starts), size), (int(steps[0]), 1))
    rows: ByteArray = buffer[starts[:, None] + np.arange(size)]
    return rows


def _stamps(layout: Layout, data: ByteArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """Return the stamps (k,) [ns] of messages (k, bytes), and a mask of valid ones.

    0 if not set.
    """
    if not layout.stamp:
        return np.zeros(len(data), np.int64), np.ones(len(data), np.bool_)
    seconds, *rest = (one.read(data)[:, 0] for one in layout.stamp)
    nanoseconds = rest[0] if rest else np.zeros(len(data))
    possible = (np.abs(seconds) < LAST) & (nanoseconds >= 0.0) & (nanoseconds < SECOND)
    seconds, nanoseconds = np.where(possible, (seconds, nanoseconds), 0.0)
    whole = np.floor(seconds)
    part = np.round((seconds - whole) * SECOND) + nanoseconds
    return whole.astype(np.int64) * SECOND + part.astype(np.int64), possible


def encode_joint_states(
    names: tuple[str, ...], stamps: IntArray, values: tuple[FloatArray | None, ...]
) -> list[bytes]:
    """Return one little-endian CDR JointState per stamp (ns); ``values`` (k, n) or None each."""
    head = struct.pack('<I', len(names))
    for name in names:
        head += bytes(-len(head) % 4)
        text = name.encode() + b'\0'
        head += struct.pack('<I', len(text)) + text
    head = b'\1\0\0\0' + bytes(4) + head  # frame_id: empty string with its NUL, padded to 4
    template = bytearray(b'\0\1\0\0' + bytes(8) + head)
    places = []
    for value in values:
        template += bytes(-len(template) % 4)
        template += struct.pack('<I', 0 if value is None else len(names))
        if value is not None and len(names):
            template += bytes(-(len(template) - 4) % 8)
            places.append((len(template), np.ascontiguousarray(value, dtype='<f8')))
            template += bytes(8 * len(names))
    return [bytes(row) for row in _filled(template, stamps, places)]


def _filled(
    template: bytearray, stamps: IntArray, places: list[tuple[int, FloatArray]]
) -> ByteArray:
    rows = np.tile(np.frombuffer(bytes(template), np.uint8), (len(stamps), 1))
    seconds, nanoseconds = np.divmod(np.asarray(stamps, dtype=np.int64), 10**9)
    pair = np.column_stack([seconds, nanoseconds]).astype('<u4')
    rows[:, 4:12] = pair.view(np.uint8).reshape(-1, 8)
    for at, value in places:
        raw = value.view(np.uint8).reshape(len(stamps), -1)
        rows[:, at:at + raw.shape[1]] = raw
    return rows


class JointStateReader:
    """Read messages of one topic, with names and lengths cached."""

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._pattern = b''

    def __call__(self, data: bytes) -> tuple[tuple[str, ...], int, dict[str, FloatArray]]:
        """Return names, stamp [ns] and views of the arrays that are not empty.

        The names are the same object while they do not change.

        Raises DataError if the message is no JointState, its arrays do not match its names, or its
        stamp is invalid.
        """
        layout = self._layout
        if layout is None or len(data) != layout.size or (
                np.frombuffer(data, np.uint8)[layout.fixed].tobytes() != self._pattern):
            self._layout = None
            layout = layout_of(bytes(data))
            if layout.broken or (layout.channels and not layout.named):
                raise DataError('the arrays of the joint states do not match their names')
            self._layout, self._pattern = layout, layout.pattern.tobytes()
        seconds, nanoseconds = struct.unpack_from(layout.order + 'iI', data, 4)
        if nanoseconds >= SECOND:
            raise DataError(f'the stamp has {nanoseconds} nanoseconds')
        values = {name: np.frombuffer(data, one.code, len(one.places), int(one.places[0]))
                  for name, one in layout.channels.items()}
        return layout.names, seconds * SECOND + nanoseconds, values


class EffortWriter:
    """Write joint states that contain efforts only."""

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


def trajectory_size(names: Sequence[str], points: Iterable[Sequence[int]]) -> int:
    """Return the bytes of a trajectory_msgs/msg/JointTrajectory with its encapsulation.

    ``names`` are its frame_id and the joint names; ``points`` the lengths of positions,
    velocities, accelerations and efforts of every point.
    """
    at = 8  # after the stamp
    for place, name in enumerate(names):
        at = aligned(at, 4) + 4 + len(name.encode()) + 1
        at = at if place else aligned(at, 4) + 4
    at = aligned(at, 4) + 4
    for lengths in points:
        for length in lengths:
            at = aligned(at, 4) + 4
            at = aligned(at, 8) + 8 * length if length else at
        at += 8
    return HEADER + at
