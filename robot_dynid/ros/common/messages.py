"""Parts of messages: numbers, times, texts."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
from rclpy.serialization import deserialize_message

from robot_dynid.errors import MESSAGE, DynIdError, clipped
from robot_dynid.types import FloatArray

NANOSECONDS = 1_000_000_000


class UnreadableMessage(DynIdError):
    """A message is not of its type: cut off, or of another program's making."""


def message_of(data: bytes, kind: Any) -> Any:
    """Return a serialized message of type ``kind``; raises UnreadableMessage."""
    try:
        return deserialize_message(data, kind)
    except RuntimeError as error:
        raise UnreadableMessage(f'a message of type {kind.__name__} cannot be read, and is left '
                                'out; who publishes it?') from error


def sendable(text: str) -> str:
    """Return a text that every message can carry: of bounded length, in UTF-8, without NUL.

    Names of files may hold bytes that are no text, which Python keeps as characters of its own.
    """
    return clipped(text.encode('utf-8', 'backslashreplace').decode().replace('\0', '\\0'), MESSAGE)


def doubles(values: FloatArray) -> array.array[float]:
    """Return ``values`` (...,) as the field of a message, row-major; lists would cost tenfold."""
    field = array.array('d')
    field.frombytes(np.ascontiguousarray(values, dtype=np.float64).data.cast('B'))
    return field


def seconds(duration: Any) -> float:
    """Return a Duration or Time message in s."""
    return float(duration.sec) + 1e-9 * float(duration.nanosec)
