"""Robots described by screws: each joint by its axis and a point on it, in the base frame.

The frame of link i has its origin at ``p_i`` and its z axis along ``s_i`` in the reference
configuration; no other frames are needed. Twists are (angular, linear). Source: Wang, Han, Li,
Guo, Lu, Sensors 2025, 25, 5749, section 2.2; Lynch, Park, Modern Robotics, 2017, chapters 3 and 4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.document import subject
from robot_dynid.errors import RobotError, clipped
from robot_dynid.numbers import ANGLE, DIRECTION, LENGTH, MASS, MOMENT_OF_INERTIA, SIZE, shown
from robot_dynid.robot.description import (
    MOVABLE,
    Description,
    JointDescription,
    LinkDescription,
)
from robot_dynid.robot.inertia import (
    homogeneous,
    parameters_from_com,
    rotation_about,
    skew,
    symmetric,
)
from robot_dynid.robot.model import SHAPES, LinkShape, RobotModel
from robot_dynid.robot.tree import Selection, build_robot
from robot_dynid.types import FloatArray, frozen

Z_AXIS = frozen([0.0, 0.0, 1.0])
#: keys of an entry of ``screws`` in a robot YAML, and of its inertia
KEYS = ('name', 'type', 'axis', 'origin', 'mass', 'com', 'inertia', 'parent', 'link', 'collision')
MOMENTS = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')


@dataclass(frozen=True, eq=False)
class Screw:
    """One joint and the link it moves, in the reference configuration.

    ``axis`` (3,) of any nonzero length and ``origin`` (3,) m in the base frame; ``kind`` revolute,
    continuous or prismatic; ``parameters`` (10,) standard parameters of the link in its
    screw-aligned frame; ``parent`` joint, by default the previous one in the list. ``shapes`` of
    the link are in that frame.
    """

    name: str
    axis: ArrayLike
    origin: ArrayLike
    kind: str = 'revolute'
    parameters: ArrayLike | None = None
    parent: str = ''
    link: str = ''
    limits: FloatArray = field(default_factory=lambda: frozen(np.full(4, np.nan)))
    shapes: tuple[LinkShape, ...] = ()


def rotation_to(axis: ArrayLike) -> FloatArray:
    """Return the smallest rotation (3, 3) that takes z to ``axis`` (3,) of any nonzero length.

    The Rodrigues rotation about ``z x s`` by the angle between them: the identity if parallel,
    half a turn about x if antiparallel.
    """
    direction = np.asarray(axis, dtype=np.float64)
    direction = direction / np.linalg.norm(direction)
    normal = np.cross(Z_AXIS, direction)
    sine = float(np.linalg.norm(normal))
    if sine == 0.0:
        return np.diag([1.0, 1.0, 1.0]) if direction[2] > 0.0 else np.diag([1.0, -1.0, -1.0])
    return rotation_about(normal / sine, float(np.arctan2(sine, direction[2])))


def link_frame(axis: ArrayLike, origin: ArrayLike) -> FloatArray:
    """Return M_0i (4, 4), the link frame of a screw in the reference configuration."""
    return homogeneous(rotation_to(axis), origin)


def inverse(transform: ArrayLike) -> FloatArray:
    """Return the inverse of a rigid transform (4, 4)."""
    t = np.asarray(transform, dtype=np.float64)
    return homogeneous(t[:3, :3].T, -t[:3, :3].T @ t[:3, 3])


def exponential(screw: ArrayLike, q: float) -> FloatArray:
    """Return exp([screw] q) (4, 4), the motion by ``q`` along a twist (6,), in closed form.

    Source: Lynch, Park 2017, eq. 3.88.
    """
    s = np.asarray(screw, dtype=np.float64)
    rate = float(np.linalg.norm(s[:3]))
    if rate == 0.0:
        return homogeneous(np.eye(3), q * s[3:])
    unit, angle = s / rate, q * rate
    w = skew(unit[:3])
    advance = angle * np.eye(3) + (1.0 - np.cos(angle)) * w + (angle - np.sin(angle)) * (w @ w)
    return homogeneous(rotation_about(unit[:3], angle), advance @ unit[3:])


def robot_from_screws(
    name: str, screws: Sequence[Screw], selection: Selection | None = None, source: str = '',
    base_link: str = '',
) -> RobotModel:
    """Build the robot whose joints are ``screws``, a chain unless they name their parents.

    Joint frames are the screw-aligned ones, home transforms M_(i-1,i) = M_(0,i-1)^-1 M_(0,i). The
    base frame is called ``base_link``; by default so, or ``world`` if a joint moves that link.
    Raises RobotError naming the joint when an axis has zero length, a number is not finite, a
    joint type or a parent is unknown, or a name is used twice.
    """
    moved = [screw.link or f'{screw.name}_link' for screw in screws]
    base_link = base_link or ('world' if 'base_link' in moved else 'base_link')
    links = {'': base_link}
    frames = {'': np.eye(4)}
    joints: list[JointDescription] = []
    bodies = [LinkDescription(base_link, np.zeros(10), False)]
    named = {base_link}
    previous = ''
    for screw, link in zip(screws, moved, strict=True):
        where = f'{source or name}: screw {screw.name!r}'
        parent = screw.parent or previous
        if screw.name in frames:
            raise RobotError(f'{where}: this name is used twice; joint names must be unique')
        if parent not in frames:
            raise RobotError(f'{where}: parent {parent!r} is not a joint listed before it')
        frame = _checked_frame(screw, where)
        if link in named:
            raise RobotError(f'{where}: link {link!r} is used twice; name it otherwise with link:')
        links[screw.name] = link
        named.add(link)
        joints.append(JointDescription(
            name=screw.name, kind=screw.kind, parent=links[parent], child=link,
            placement=inverse(frames[parent]) @ frame, axis=Z_AXIS, limits=screw.limits,
        ))
        bodies.append(_body(screw, link))
        frames[screw.name] = frame
        previous = screw.name
    description = Description(name, {link.name: link for link in bodies}, joints, source or name)
    robot = build_robot(description, selection or Selection())
    return replace(robot, source=source, shapes=tuple(
        replace(shape, link=links[screw.name]) for screw in screws for shape in screw.shapes))


def _checked_frame(screw: Screw, where: str) -> FloatArray:
    if screw.kind not in MOVABLE:
        raise RobotError(f'{where}: joint type {screw.kind!r}; use one of {", ".join(MOVABLE)}')
    for what, value in (('axis', screw.axis), ('origin', screw.origin)):
        vector = np.asarray(value, dtype=np.float64)
        if vector.shape != (3,) or not np.all(np.isfinite(vector)):
            raise RobotError(f'{where}: {what} must be three finite numbers, is {value!r}')
    if np.linalg.norm(np.asarray(screw.axis, dtype=np.float64)) < 1e-9:
        raise RobotError(f'{where}: its axis has zero length; give the direction of the joint '
                         'axis in the base frame')
    return link_frame(screw.axis, screw.origin)


def _body(screw: Screw, link: str) -> LinkDescription:
    if screw.parameters is None:
        return LinkDescription(link, np.zeros(10), False)
    return LinkDescription(link, np.asarray(screw.parameters, dtype=np.float64), True)


def screws_from_yaml(entries: Any, where: str) -> list[Screw]:
    """Parse screws from a list of mappings.

    Keys are ``name``, ``type`` (default revolute), ``axis`` and ``origin`` [m] in the base frame,
    and of the link ``mass`` [kg], ``com`` [m] and ``inertia`` {ixx, ixy, iyy, ixz, iyz, izz} about
    it [kg m^2], both in the screw-aligned link frame, like the shapes ``collision``; ``parent``
    (default: the previous entry) and ``link``. Raises RobotError naming the entry.
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
        raise RobotError(f'{where}: unknown key {", ".join(unknown)}; use {", ".join(KEYS)}')
    missing = [key for key in ('name', 'axis', 'origin') if key not in entry]
    if missing:
        raise RobotError(f'{where}: {subject(missing)} missing')
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
        raise RobotError(f'{where} must be one of {", ".join(SHAPES)} with optional xyz and rpy, '
                         f'is {shown(given)}')
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
    """Return the standard parameters (10,) of the link, None without mass."""
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
