"""Surroundings of a robot: floor, keep-out boxes, and obstacles from a URDF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.numbers import ANGLE, LENGTH, SIZE, NumberRange, shown
from robot_dynid.robot.inertia import homogeneous, rotation_from_rpy
from robot_dynid.settings import read_settings, require_allowed, setting
from robot_dynid.types import FloatArray

Vector = tuple[float, float, float]
CLEARANCE = 0.01  # m


@dataclass(frozen=True)
class KeepOut:
    """A box no part of the robot may enter, in the frame of the robot's base link.

    ``centre`` (3,) m; ``size`` (3,) m, full edge lengths; ``rotation`` (3,) rad, roll, pitch, yaw.
    """

    centre: Vector
    size: Vector
    rotation: Vector = (0.0, 0.0, 0.0)

    @property
    def placement(self) -> FloatArray:
        """Frame of the box (4, 4) in the base frame."""
        return homogeneous(rotation_from_rpy(self.rotation), np.array(self.centre))


DISTANCE = NumberRange(0.0, 1e3, 'm', note='name bodies that may touch in ignore_pairs')
RANGES = {'centre': LENGTH, 'size': SIZE, 'rotation': ANGLE}


def _list(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise UsageError(f'{where} must be a list, is {shown(value)}')
    return list(value)


def _pairs(value: Any, where: str) -> tuple[tuple[str, str], ...]:
    pairs = _list(value, where)
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2:
            raise UsageError(f'{where} must list pairs of names such as [link_1, link_3], has '
                             f'{shown(pair)}')
    return tuple((str(one), str(other)) for one, other in pairs)


def _names(value: Any, where: str) -> tuple[str, ...]:
    return tuple(map(str, _list(value, where)))


def _boxes(value: Any, where: str) -> tuple[KeepOut, ...]:
    return tuple(_box(box, f'{where}[{i}]') for i, box in enumerate(_list(value, where)))


def _box(value: Any, where: str) -> KeepOut:
    if not isinstance(value, Mapping) or not {'centre', 'size'} <= set(value) <= {
            'centre', 'size', 'rotation'}:
        raise UsageError(f'{where} must be a mapping with centre: [x, y, z], size: [x, y, z] and '
                         f'optional rotation: [roll, pitch, yaw], is {shown(value)}')
    return KeepOut(**{name: tuple(RANGES[name].array(numbers, (3,), f'{where}: {name}').tolist())
                      for name, numbers in value.items()})


def _path(value: Any, where: str) -> str:
    if value is not None and not isinstance(value, str):
        raise UsageError(f'{where} must be the path of a URDF file, is {shown(value)}')
    return value or ''


@dataclass(frozen=True)
class Surroundings:
    """Obstacles of the robot, in the frame of its base link.

    ``floor`` height z m of a horizontal floor, or None; ``keep_out`` boxes; ``environment`` path
    of a URDF of fixed obstacles, its root link on the base link, or empty; ``clearance`` m to all
    of them; ``ignore_pairs`` names of bodies that may touch; ``ignore_links`` links whose shapes
    are ignored.
    """

    floor: float | None = setting(None, LENGTH)
    keep_out: tuple[KeepOut, ...] = setting((), _boxes)
    environment: str = setting('', _path)
    clearance: float = setting(CLEARANCE, DISTANCE)
    ignore_pairs: tuple[tuple[str, str], ...] = setting((), _pairs)
    ignore_links: tuple[str, ...] = setting((), _names)

    def __post_init__(self) -> None:
        require_allowed(self, '{}')


KEYS = tuple(f.name for f in fields(Surroundings))


def surroundings_from_plain(
    given: Any, where: str, base: Surroundings | None = None
) -> Surroundings:
    """Update ``base`` with the plain mapping ``given``.

    Raises UsageError that names the location ``where``, the key and the expected value.
    """
    if not isinstance(given, Mapping):
        raise UsageError(f'{where} must be a mapping such as {{floor: 0.0, clearance: 0.02}}')
    for key in given:
        if key not in KEYS:
            raise UsageError(f"{where}: unknown key '{key}'; use {', '.join(KEYS)}")
    return replace(base or Surroundings(), **read_settings(Surroundings, given, where))
