"""Joint states and trajectories in CDR, the wire format of DDS and of bags.

Messages of one publisher differ only in stamp and numbers. So the places of names and numbers are
worked out once per layout, and all messages that share it are decoded by NumPy slices. The state
of a trajectory controller begins like a joint state: stamp, frame, names, positions of reference.
Source: OMG CDR (XCDR version 1) as ROS 2 uses it: 4 bytes of encapsulation, then fields aligned to
their size, counted from after the encapsulation.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray

JOINT_STATE = 'sensor_msgs/msg/JointState'
CONTROLLER_STATE = 'control_msgs/msg/JointTrajectoryControllerState'
WRENCH = 'geometry_msgs/msg/WrenchStamped'
KINDS = (JOINT_STATE, CONTROLLER_STATE, WRENCH)
#: parts the name of a component of a wrench from that of the frame
IN_FRAME = '@'
FIELDS = ('position', 'velocity', 'effort')
#: how many of the fields follow the names, by message type
LEADING = {JOINT_STATE: 3, CONTROLLER_STATE: 1}
IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]
ROWS = 8192  # messages decoded at a time: bounds the scratch memory
HEADER = 4  # bytes of encapsulation, from behind which places are counted
#: a message has at most so many bytes, a joint state so many joints, a name so many bytes
MESSAGE_BYTES, JOINTS, NAME_BYTES = 1 << 20, 1000, 1000
#: layouts of one topic, and messages without one, after which no other is looked for
LAYOUTS, FAILURES = 100, 1000
#: bytes decoded at a time
PART_BYTES = 1 << 24
SECOND = 10**9  # ns
#: a step of header stamps against receive times that is counted [ns]
STEP = SECOND
#: bytes that may follow a message: rclpy reserves the alignment of lists that are empty, too
PADDING = 24
#: bytes of the shortest message of all: stamp and four empty lists or names
SHORTEST = HEADER + 16


@dataclass(frozen=True, eq=False)
class Batch:
    """Raw messages of one topic in one buffer.

    ``received`` (k,) ns, ``starts`` (k,) and ``sizes`` (k,) bytes in ``buffer``.
    """

    received: IntArray
    buffer: ByteArray
    starts: IntArray
    sizes: IntArray


@dataclass(frozen=True, eq=False)
class Decoded:
    """Messages with the same joint names in the same order.

    ``order`` (k,) position in the topic, ``received`` and ``stamp`` (k,) ns (stamp 0: not set);
    ``values`` holds position, velocity, effort, (k, n) each or None where the array is empty, or
    was given back.
    """

    names: tuple[str, ...]
    order: IntArray
    received: IntArray
    stamp: IntArray
    values: list[FloatArray | None]

    def rows(self, rows: IntArray) -> Decoded:
        """Return the chosen messages."""
        return Decoded(self.names, self.order[rows], self.received[rows], self.stamp[rows],
                       [None if v is None else v[rows] for v in self.values])


@dataclass(frozen=True, eq=False)
class Layout:
    """Offsets of names and numbers in messages whose ``fixed`` bytes equal ``pattern``."""

    size: int
    order: str
    names: tuple[str, ...]
    offsets: tuple[int, int, int]
    counts: tuple[int, int, int]
    fixed: IntArray
    pattern: ByteArray

    @property
    def broken(self) -> bool:
        """Whether an array is neither empty nor as long as the names."""
        return any(count not in (0, len(self.names)) for count in self.counts)


def aligned(place: int, size: int) -> int:
    """Return the next multiple of ``size`` from ``place`` on, counted from the encapsulation."""
    return -(-place // size) * size


class _Walker:
    """Walks one message and notes which bytes define its layout."""

    def __init__(self, data: bytes) -> None:
        if len(data) < 4 or data[0] != 0 or data[1] not in (0, 1):
            raise DataError('not a CDR message')
        self.data = data
        self.order = '<' if data[1] else '>'
        self.at = HEADER
        self.fixed = [0, 1]

    def align(self, size: int) -> None:
        self.at = HEADER + aligned(self.at - HEADER, size)

    def count(self) -> int:
        self.align(4)
        value = int(struct.unpack_from(self.order + 'I', self.data, self.at)[0])
        self.fixed += range(self.at, self.at + 4)
        self.at += 4
        return value

    def skip(self, size: int) -> int:
        start = self.at
        self.at += size
        if self.at > len(self.data):
            raise DataError('the message is cut off')
        return start

    def name(self) -> str:
        start, text = self.text()
        self.fixed += range(start, self.at)
        return text.decode('utf-8')

    def text(self) -> tuple[int, bytes]:
        """Return place and bytes of a string; some write an empty one without its NUL."""
        size = self.count()
        if size > NAME_BYTES:
            raise DataError(f'a name has more than {NAME_BYTES} bytes')
        start = self.skip(size)
        text = self.data[start:self.at]
        if size and text.find(b'\0') != size - 1:
            raise DataError('a name does not end with its NUL')
        return start, text[:-1]

    def doubles(self) -> tuple[int, int]:
        return self.numbers(self.count())

    def numbers(self, count: int) -> tuple[int, int]:
        if count:
            self.align(8)
        return self.skip(8 * count), count


def layout_of(data: bytes, kind: str = JOINT_STATE) -> Layout:
    """Return the layout of one message. Raises DataError when it is not of that kind."""
    if len(data) > MESSAGE_BYTES:
        raise DataError(f'the message has more than {MESSAGE_BYTES} bytes')
    try:
        walker = _Walker(data)
        walker.skip(8)
        names, arrays = _wrench(walker) if kind == WRENCH else _joint_arrays(walker, kind)
    except (struct.error, UnicodeDecodeError) as error:
        raise DataError(f'not a {kind} message: {error}') from None
    (p, np_), (v, nv), (e, ne) = (*arrays, (0, 0), (0, 0))[:len(FIELDS)]
    if kind != CONTROLLER_STATE and len(data) - walker.at > PADDING:
        raise DataError(f'the message goes on for {len(data) - walker.at} bytes behind its end')
    if len(set(names)) < len(names):
        raise DataError('the message has a joint twice')
    fixed = np.array(walker.fixed, dtype=np.int64)
    pattern = np.frombuffer(data, np.uint8)[fixed]
    return Layout(
        len(data), walker.order, names, (p, v, e), (np_, nv, ne), fixed, pattern
    )


def _joint_arrays(walker: _Walker, kind: str) -> tuple[tuple[str, ...], list[tuple[int, int]]]:
    """Return the joints of a message, and place and length of the arrays behind them."""
    walker.text()
    count = walker.count()
    if count > JOINTS:
        raise DataError(f'the message has more than {JOINTS} joints')
    names = tuple(walker.name() for _ in range(count))
    return names, [walker.doubles() for _ in range(LEADING[kind])]


def _wrench(walker: _Walker) -> tuple[tuple[str, ...], list[tuple[int, int]]]:
    """Return the components of a wrench, with its frame in their names, as efforts."""
    frame = walker.name()
    names = tuple(f'{one}{IN_FRAME}{frame}' for one in WRENCH_COMPONENTS)
    return names, [(0, 0), (0, 0), walker.numbers(len(names))]


class JointStateDecoder:
    """Decodes batches of one topic of type ``kind``; remembers the layouts it has met."""

    def __init__(self, kind: str = JOINT_STATE) -> None:
        self.kind = kind
        self.layouts: list[Layout] = []
        self.count = 0
        self.undecodable = 0
        self.wrong_length = 0
        self.steps = 0
        self.longest_step = 0.0
        self._delays: dict[int, float] = {}

    def decode(self, batch: Batch) -> list[Decoded]:
        """Return the messages of ``batch``, grouped by joint names; broken ones are counted."""
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
        possible = todo[(batch.sizes[todo] >= SHORTEST) & (batch.sizes[todo] <= MESSAGE_BYTES)]
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
        """Add the layout of a message, where it has one."""
        start = int(batch.starts[row])
        try:
            layout = layout_of(
                batch.buffer[start:start + int(batch.sizes[row])].tobytes(), self.kind)
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
        """Decode those rows of ``todo`` that have this layout; return the others."""
        layout = self.layouts[number]
        rows = todo[batch.sizes[todo] == layout.size]
        if not len(rows):
            return todo
        data = _gathered(batch.buffer, batch.starts[rows], layout.size)
        same = (data[:, layout.fixed] == layout.pattern).all(axis=1)
        left = np.setdiff1d(todo, rows[same], assume_unique=True)
        nanoseconds = _bytes(data, 8, 4).view(layout.order + 'u4')[:, 0]
        possible = nanoseconds < SECOND
        self.undecodable += int((same & ~possible).sum())
        same &= possible
        if not same.all():
            data, rows, nanoseconds = data[same], rows[same], nanoseconds[same]
        if len(rows):
            seconds = _bytes(data, 4, 4).view(layout.order + 'i4').astype(np.int64)[:, 0]
            stamp = seconds * SECOND + nanoseconds.astype(np.int64)
            values: list[FloatArray | None] = [
                _bytes(data, at, 8 * n).view(layout.order + 'f8').astype(np.float64) if n else None
                for at, n in zip(layout.offsets, layout.counts, strict=True)]
            received = batch.received[rows]
            self._follow(number, received, stamp)
            decoded.append(Decoded(layout.names, order[rows], received, stamp, values))
        return left

    def _follow(self, number: int, received: IntArray, stamp: IntArray) -> None:
        """Count where header stamps step against the receive times."""
        delays = received[stamp != 0].astype(np.float64) - stamp[stamp != 0]
        if len(delays):
            change = np.abs(np.diff(delays, prepend=self._delays.get(number, delays[0])))
            self._delays[number] = float(delays[-1])
            self.steps += int((change > STEP).sum())
            self.longest_step = max(self.longest_step, float(change.max()) * 1e-9)


def _gathered(buffer: ByteArray, starts: IntArray, size: int) -> ByteArray:
    """Return the messages as rows (k, size); without a copy when they lie evenly."""
    steps = np.diff(starts)
    if len(steps) and (steps == steps[0]).all() and steps[0] >= size:
        return as_strided(buffer[starts[0]:], (len(starts), size), (int(steps[0]), 1))
    rows: ByteArray = buffer[starts[:, None] + np.arange(size)]
    return rows


def _bytes(data: ByteArray, at: int, size: int) -> ByteArray:
    return np.ascontiguousarray(data[:, at:at + size])


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
    """Reads messages of one topic, whose names and lengths hardly ever change."""

    def __init__(self) -> None:
        self._layout: Layout | None = None
        self._pattern = b''

    def __call__(self, data: bytes) -> tuple[tuple[str, ...], int, dict[str, FloatArray]]:
        """Return names, stamp [ns] and views of those arrays that are not empty.

        The names are one and the same object while they do not change.

        Raises DataError when it is not a JointState, its arrays do not fit its names, or its
        stamp is none.
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
        if nanoseconds >= SECOND:
            raise DataError(f'the stamp has {nanoseconds} nanoseconds')
        values = {
            name: np.frombuffer(data, layout.order + 'f8', count, at)
            for name, at, count in zip(FIELDS, layout.offsets, layout.counts, strict=True)
            if count}
        return layout.names, seconds * SECOND + nanoseconds, values


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
