"""Joint states as a broken driver, or somebody who means harm, sends them: raw bytes."""

from __future__ import annotations

import array
import struct
from collections.abc import Iterator

import numpy as np
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

KINDS = 9


def joint_state(names: list[str], number: float, *lengths: int) -> bytes:
    """Return a serialized joint state; ``lengths`` of position, velocity, effort, as the names.

    Its stamp is ``number`` in ms.
    """
    message = JointState(name=names)
    message.header.stamp.sec, rest = divmod(int(number), 1000)
    message.header.stamp.nanosec = rest * 1_000_000
    for field, length in zip(('position', 'velocity', 'effort'),
                             lengths or 3 * (len(names),), strict=True):
        setattr(message, field, array.array('d', [number] * length))
    return bytes(serialize_message(message))


def number_of(data: bytes) -> int:
    """Return the number of a serialized joint state; 0 for those of others."""
    seconds, rest = struct.unpack_from('<iI', data, 4) if len(data) >= 12 else (0, 0)
    return 1000 * seconds + rest // 1_000_000 if 0 <= seconds < 100_000 else 0


def malformed(rng: np.random.Generator, names: list[str]) -> bytes:
    """Return a joint state that is wrong in one of KINDS ways."""
    good = bytearray(joint_state(names, float(rng.integers(1, 10**6))))
    kind = rng.integers(KINDS)
    if kind == 0:  # cut off, or nothing but the encapsulation
        return bytes(good[:rng.integers(4, len(good))])
    if kind == 1:  # arrays that do not match the names
        return joint_state(names, 1.0, *rng.integers(0, 2 * len(names) + 2, 3).tolist())
    if kind == 2:  # numbers that are none
        struct.pack_into('<d', good, len(good) - 8 * int(rng.integers(1, 3 * len(names))),
                         rng.choice([np.nan, np.inf, -np.inf, 1e308]))
        return bytes(good)
    if kind == 3:  # another, or no, encapsulation
        good[:4] = rng.integers(0, 256, 4, dtype=np.uint8).tobytes()
        return bytes(good)
    if kind == 4:  # bytes of names that are no text
        place = good.index(names[0].encode())
        good[place:place + 3] = rng.integers(128, 256, 3, dtype=np.uint8).tobytes()
        return bytes(good)
    if kind == 5:  # names that are empty, blank or twice there
        return joint_state([str(rng.choice(['', ' ', names[0]])) for _ in names], 1.0)
    if kind == 6:  # lengths beyond all memory
        place = 12 + 4 * int(rng.integers(0, 6))
        struct.pack_into('<I', good, place, int(rng.choice([2**32 - 1, 2**31, 10**6])))
        return bytes(good)
    if kind == 7:  # nothing
        return joint_state([], 1.0)
    for place in rng.integers(4, len(good), 3):  # any bytes changed
        good[place] = rng.integers(256)
    return bytes(good)


def many(count: int, names: list[str], seed: int = 0) -> Iterator[bytes]:
    """Yield malformed joint states, among them two of many names."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        if k in (count // 3, count // 2):
            yield joint_state([str(i) for i in range(100_000)], 1.0, 0, 0, 0)
        else:
            yield malformed(rng, names)


def nested(depth: int) -> str:
    """Return a YAML text of so many lists inside each other."""
    return '[' * depth + ']' * depth


def merge_bomb(levels: int = 40) -> str:
    """Return a small YAML text whose merge keys double at every level."""
    lines = ['a0: &a0 {x: 1}']
    lines += [f'a{k}: &a{k} {{<<: [*a{k - 1}, *a{k - 1}]}}' for k in range(1, levels)]
    return '\n'.join(lines)


def alias_bomb(levels: int = 40) -> str:
    """Return a small YAML text whose aliases double at every level."""
    lines = ['a0: &a0 [1, 1]']
    lines += [f'a{k}: &a{k} [*a{k - 1}, *a{k - 1}]' for k in range(1, levels)]
    return '\n'.join(lines)
