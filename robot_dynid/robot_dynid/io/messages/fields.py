"""Byte offsets of the fields of a message, by path: `position`, `states[].effort`.

Elements of arrays of messages share one path. Source: OMG CDR (XCDR version 1) as used by ROS 2: 4
bytes of encapsulation, then fields aligned to their size, counted after the encapsulation; ROS 1
has neither encapsulation nor alignment, nor a NUL after texts.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError
from robot_dynid.io.messages.definitions import Definitions
from robot_dynid.types import FloatArray

IntArray = NDArray[np.int64]
ByteArray = NDArray[np.uint8]
HEADER = 4  # bytes of encapsulation; offsets are counted after it
#: NumPy codes by type; their last character is the size
CODES = {'bool': 'u1', 'byte': 'u1', 'char': 'u1', 'octet': 'u1', 'uint8': 'u1', 'int8': 'i1',
         'uint16': 'u2', 'int16': 'i2', 'uint32': 'u4', 'int32': 'i4', 'uint64': 'u8',
         'int64': 'i8', 'float32': 'f4', 'float64': 'f8'}
#: bytes that may follow a message: rclpy also reserves the alignment of empty lists
PADDING = 24
#: elements of arrays of texts and of messages of one message
ELEMENTS = 10_000
#: depth of messages in messages
DEPTH = 20
#: the nodes of definitions as rosbags numbers them; 4 are arrays of any length
BASE, NAME, ARRAY = 1, 2, 3
#: a path with the elements that are taken: data[6:12], data[3]
PART = re.compile(r'(?P<path>.+?)\[(?P<start>-?\d*)(?P<range>:(?P<stop>-?\d*))?\]')


@dataclass(frozen=True)
class Run:
    """Contiguous numbers: ``place`` of the first, type ``code``, ``owner``: outermost index."""

    place: int
    count: int
    code: str
    owner: int


@dataclass(frozen=True)
class Text:
    """A text in a message, see Run."""

    start: int
    stop: int
    value: bytes
    owner: int


@dataclass(frozen=True, eq=False)
class Columns:
    """Numbers in every message: ``places`` (n,) in its bytes, -1 if absent.

    ``code`` is their NumPy type with byte order; ``factors`` convert them to SI.
    """

    places: IntArray
    code: str
    factors: tuple[float, ...] = (1.0,)

    @property
    def start(self) -> int | None:
        """Offset of the first number if all are contiguous, else None."""
        size = int(self.code[-1])
        return int(self.places[0]) if (np.diff(self.places) == size).all() else None

    def read(self, data: ByteArray) -> FloatArray:
        """Return the numbers (k, n) in messages (k, bytes)."""
        size, start = int(self.code[-1]), self.start
        rows = data[:, (np.maximum(self.places, 0)[:, None] + np.arange(size)).ravel()] \
            if start is None else data[:, start:start + size * len(self.places)]
        numbers = np.ascontiguousarray(rows).view(self.code).astype(np.float64)
        if start is None:
            numbers[:, self.places < 0] = np.nan
        return numbers if self.factors == (1.0,) else numbers * self.factors


def aligned(place: int, size: int) -> int:
    """Return the next multiple of ``size`` from ``place`` on, counted from the encapsulation."""
    return -(-place // size) * size


@dataclass(eq=False)
class MessageFields:
    """Fields of one message: ``numbers`` and ``texts`` by path, without brackets.

    ``fixed`` are the offsets of the bytes that define the layout (lengths); ``end`` is that after
    the last field.
    """

    data: bytes
    definitions: Definitions
    numbers: dict[str, list[Run]] = field(default_factory=dict)
    texts: dict[str, list[Text]] = field(default_factory=dict)
    fixed: list[int] = field(default_factory=list)
    arrays: set[str] = field(default_factory=set)
    end: int = 0
    whole: bool = True
    _elements: int = 0

    @classmethod
    def of(
        cls, data: bytes, kind: str, definitions: Definitions, partial: bool = False
    ) -> MessageFields:
        """Parse a message; raises DataError if it is not of that kind.

        With ``partial`` parsing stops at the first error, and ``whole`` is False.
        """
        walk = cls(data, definitions)
        if not definitions.ros1:
            if len(data) < HEADER or data[0] != 0 or data[1] not in (0, 1):
                raise DataError('not a CDR message')
            walk.end, walk.fixed = HEADER, [0, 1]
        try:
            walk._message(kind, '', 0, 0)
            if len(data) - walk.end > PADDING:
                raise DataError(f'the message has {len(data) - walk.end} extra bytes at its '
                                'end')
        except (struct.error, DataError) as error:
            walk.whole = False
            if not partial:
                raise DataError(f'not a {kind} message: {error}') from None
        return walk

    @property
    def order(self) -> str:
        """Byte order in NumPy notation."""
        return '<' if self.definitions.ros1 or self.data[1] else '>'

    def columns(self, path: str) -> Columns | None:
        """Return the numbers at a path, or a part of them (``data[0:6]``); None if empty.

        Raises DataError if there is no such field, or its numbers have several types.
        """
        part = PART.fullmatch(path)
        plain = (part['path'] if part else path).replace('[]', '')
        if plain not in self.numbers:
            raise DataError(f'no field {path} with numbers')
        runs = [run for run in self.numbers[plain] if run.count]
        if not runs:
            return None
        return _columns(runs, self.order, part)

    def _align(self, size: int) -> None:
        if not self.definitions.ros1:
            self.end = HEADER + aligned(self.end - HEADER, size)

    def _count(self) -> int:
        self._align(4)
        value = int(struct.unpack_from(self.order + 'I', self.data, self.end)[0])
        self.fixed += range(self.end, self.end + 4)
        self.end += 4
        return value

    def _skip(self, size: int) -> int:
        start = self.end
        self.end += size
        if self.end > len(self.data):
            raise DataError('the message is cut off')
        return start

    def _text(self, path: str, owner: int) -> None:
        """Read a text; some writers omit the NUL of an empty one."""
        size = self._count()
        start = self._skip(size)
        value = self.data[start:self.end]
        if not self.definitions.ros1:
            if size and value.find(b'\0') != size - 1:
                raise DataError('a name does not end with its NUL')
            value = value[:-1]
        self.texts[path].append(Text(start, self.end, value, owner))

    def _numbers(self, path: str, kind: str, count: int, owner: int) -> None:
        if kind not in CODES:
            raise DataError(f'fields of type {kind} are not read')
        size = int(CODES[kind][-1])
        if count:
            self._align(size)
        self.numbers[path].append(Run(self._skip(size * count), count, CODES[kind], owner))

    def _message(self, kind: str, path: str, owner: int, depth: int) -> None:
        if depth > DEPTH:
            raise DataError(f'the message has messages more than {DEPTH} deep')
        fields = self.definitions.fields(kind)
        if not fields and not self.definitions.ros1:
            self._skip(1)  # types without fields take a byte
        for name, (node, what) in fields:
            self._field(f'{path}.{name}' if path else name, node, what, owner, depth)

    def _field(self, path: str, node: int, what: Any, owner: int, depth: int) -> None:
        if node == NAME:
            self._message(what, path, owner, depth + 1)
        elif node == BASE and what[0] == 'string':
            self.texts.setdefault(path, [])
            self._text(path, owner)
        elif node == BASE:
            self.numbers.setdefault(path, [])
            self._numbers(path, what[0], 1, owner)
        else:
            self._array(path, node, what, owner, depth)

    def _array(self, path: str, node: int, what: Any, owner: int, depth: int) -> None:
        (inner, kind), count = what
        count = count if node == ARRAY else self._count()
        self.arrays.add(path)
        if inner == BASE and kind[0] != 'string':
            self.numbers.setdefault(path, [])
            self._numbers(path, kind[0], count, owner)
            return
        self._elements += count
        if self._elements > ELEMENTS:
            raise DataError(f'the message has more than {ELEMENTS} elements')
        if inner == BASE:
            self.texts.setdefault(path, [])
        for k in range(count):
            self._field(path, inner, kind, owner if depth else k, depth + 1)

    def shown(self, path: str) -> str:
        """Return a path with brackets after the arrays of messages in it."""
        parts = path.split('.')
        whole = ['.'.join(parts[:k + 1]) for k in range(len(parts))]
        return '.'.join(f'{part}[]' if place in self.arrays and place != path else part
                        for part, place in zip(parts, whole, strict=True))

    def is_array(self, path: str) -> bool:
        """Return True if a field is an array, or part of an array of messages."""
        return path in self.arrays or '[]' in self.shown(path)

    def lengths(self) -> Iterator[tuple[str, int, str]]:
        """Yield path, number and code of all numbers."""
        for path, runs in self.numbers.items():
            yield path, sum(run.count for run in runs), runs[0].code if runs else ''


def _columns(runs: Sequence[Run], order: str, part: re.Match[str] | None) -> Columns | None:
    codes = {run.code for run in runs}
    if len(codes) > 1:
        raise DataError('numbers of several types')
    (code,) = codes
    places = np.concatenate([run.place + int(code[-1]) * np.arange(run.count) for run in runs])
    if part is not None:
        start, stop = (int(part[key]) if part[key] else None for key in ('start', 'stop'))
        if part['range'] is None and start is not None:
            stop = start + 1 or None
        places = places[start:stop]
    return Columns(places, order + code) if len(places) else None
