"""The ``screws`` list of a robot YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from robot_dynid.errors import RobotError, clipped
from robot_dynid.numbers import ANGLE, DIRECTION, LENGTH, MASS, MOMENT_OF_INERTIA, SIZE, shown
from robot_dynid.robot.inertia import parameters_from_com, symmetric
from robot_dynid.robot.model import SHAPES, LinkShape
from robot_dynid.robot.screws import Screw
from robot_dynid.types import FloatArray

KEYS = ('name', 'type', 'axis', 'origin', 'mass', 'com', 'inertia', 'parent', 'link', 'collision')
MOMENTS = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')


def screws_from_yaml(entries: Any, where: str) -> list[Screw]:
    """Return the screws of a list of mappings.

    Keys are ``name``, ``type`` (default revolute), ``axis`` and ``origin`` [m] in the base frame,
    and of the link ``mass`` [kg], ``com`` [m] and ``inertia`` {ixx, ixy, iyy, ixz, iyz, izz} about
    it [kg m^2], both in the screw-aligned link frame, as the shapes ``collision`` are; ``parent``
    (default: the entry before) and ``link``. Raises RobotError naming the entry.
    """
    if not isinstance(entries, list) or not entries:
        raise RobotError(f'{where} must be a list of joints, each with name, axis and origin')
    return [_screw(entry, f'{where}[{i}]') for i, entry in enumerate(entries)]


def _screw(entry: Any, where: str) -> Screw:
    if not isinstance(entry, Mapping):
        raise RobotError(f'{where} must be a mapping with name, axis and origin, is '
                         f'{shown(entry)}')
    where = f'{where} ({clipped(str(entry.get("name", "no name")))})'
    unknown = [str(key) for key in entry if key not in KEYS]
    if unknown:
        raise RobotError(f'{where}: unknown key {", ".join(unknown)}; known are {", ".join(KEYS)}')
    missing = [key for key in ('name', 'axis', 'origin') if key not in entry]
    if missing:
        raise RobotError(f'{where}: {", ".join(missing)} is missing')
    return Screw(
        name=str(entry['name']), kind=str(entry.get('type', 'revolute')),
        axis=DIRECTION.array(entry['axis'], (3,), f'{where}: axis', RobotError),
        origin=LENGTH.array(entry['origin'], (3,), f'{where}: origin', RobotError),
        parameters=_parameters(entry, where),
        parent=str(entry.get('parent') or ''), link=str(entry.get('link') or ''),
        shapes=_shapes(entry.get('collision') or [], f'{where}: collision'),
    )


def _shapes(given: Any, where: str) -> tuple[LinkShape, ...]:
    """Return the shapes of a list such as ``[{sphere: {radius: 0.1}, xyz: [0, 0, 0.2]}]``."""
    if not isinstance(given, list):
        raise RobotError(f'{where} must be a list of shapes, is {shown(given)}')
    return tuple(_shape(one, f'{where}[{i}]') for i, one in enumerate(given))


def _shape(given: Any, where: str) -> LinkShape:
    kinds = [key for key in given if key in SHAPES] if isinstance(given, Mapping) else []
    if len(kinds) != 1 or not set(given) <= {*SHAPES, 'xyz', 'rpy'}:
        raise RobotError(f'{where} must be one of {", ".join(SHAPES)} with maybe xyz and rpy, is '
                         f'{shown(given)}')
    kind, sizes = kinds[0], given[kinds[0]]
    if not isinstance(sizes, Mapping) or set(sizes) != set(SHAPES[kind]):
        raise RobotError(f'{where}: {kind} must be a mapping of {", ".join(SHAPES[kind])} [m], is '
                         f'{shown(sizes)}')
    numbers = [number for key, count in SHAPES[kind].items() for number in SIZE.array(
        [sizes[key]] if count == 1 else sizes[key], (count,), f'{where}: {key}', RobotError)]
    place = [tuple(allowed.array(given.get(key, (0.0, 0.0, 0.0)), (3,), f'{where}: {key}',
                                 RobotError).tolist())
             for key, allowed in (('xyz', LENGTH), ('rpy', ANGLE))]
    return LinkShape('', kind, tuple(map(float, numbers)), *place)


def _parameters(entry: Mapping[str, Any], where: str) -> FloatArray | None:
    """Return the standard parameters (10,) of the link, None when its mass is not stated."""
    if 'mass' not in entry:
        if 'com' in entry or 'inertia' in entry:
            raise RobotError(f'{where}: com and inertia need mass')
        return None
    mass = MASS.read(entry['mass'], f'{where}: mass', RobotError)
    com = LENGTH.array(entry.get('com', (0.0, 0.0, 0.0)), (3,), f'{where}: com', RobotError)
    moments = entry.get('inertia') or {}
    if not isinstance(moments, Mapping) or any(key not in MOMENTS for key in moments):
        raise RobotError(f'{where}: inertia must be a mapping of {", ".join(MOMENTS)}')
    six = [MOMENT_OF_INERTIA.read(moments.get(key, 0.0), f'{where}: inertia: {key}', RobotError)
           for key in MOMENTS]
    return parameters_from_com(mass, com, symmetric(six))
