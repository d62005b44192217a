"""Robots described by screws: every joint by its axis and a point on it, both in the base frame.

The frame of link i has its origin at ``p_i`` and its z axis along ``s_i`` in the reference
configuration; no other frame has to be assigned. Twists are (angular, linear).
Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, section 2.2; Lynch, Park, Modern Robotics,
2017, chapters 3 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import RobotError
from robot_dynid.robot.inertia import homogeneous, rotation_about, skew
from robot_dynid.robot.model import LinkShape, RobotModel
from robot_dynid.robot.tree import (
    MOVABLE,
    JointDescription,
    LinkDescription,
    Selection,
    build_robot,
)
from robot_dynid.types import FloatArray, frozen

Z_AXIS = frozen([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Screw:
    """One joint and the link it moves, in the reference configuration.

    ``axis`` (3,) of any length but zero and ``origin`` (3,) m in the base frame; ``kind``
    revolute, continuous or prismatic; ``parameters`` (10,) standard parameters of the link in its
    screw-aligned frame; ``parent`` the joint before it, empty for the one before it in the list.
    ``shapes`` of the link are in that frame, too, whatever link they name.
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
    """Return the least rotation (3, 3) that takes z to ``axis`` (3,) of any length but zero.

    The Rodrigues rotation about ``z x s`` by the angle between them. Where they are parallel it is
    the identity, where they are antiparallel half a turn about x.
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
    base_link: str = 'base_link',
) -> RobotModel:
    """Build the robot whose joints are ``screws``, a chain unless they name their parents.

    Joint frames are the screw-aligned ones, home transforms M_(i-1,i) = M_(0,i-1)^-1 M_(0,i).
    Raises RobotError naming the joint when an axis has zero length, a number is not finite, a
    joint type or a parent is unknown, or a name is used twice.
    """
    links = {'': base_link}
    frames = {'': np.eye(4)}
    joints: list[JointDescription] = []
    bodies = [LinkDescription(base_link, np.zeros(10), False)]
    named = {base_link}
    before = ''
    for screw in screws:
        where = f'{source or name}: screw {screw.name!r}'
        parent = screw.parent or before
        if screw.name in frames:
            raise RobotError(f'{where}: this name is used twice; give every joint its own')
        if parent not in frames:
            raise RobotError(f'{where}: parent {parent!r} is no joint listed before it')
        frame = _checked_frame(screw, where)
        links[screw.name] = screw.link or f'{screw.name}_link'
        if links[screw.name] in named:
            raise RobotError(f'{where}: link {links[screw.name]!r} is used twice')
        named.add(links[screw.name])
        joints.append(JointDescription(
            name=screw.name, kind=screw.kind, parent=links[parent], child=links[screw.name],
            placement=inverse(frames[parent]) @ frame, axis=Z_AXIS, limits=screw.limits,
        ))
        bodies.append(_body(screw, links[screw.name]))
        frames[screw.name] = frame
        before = screw.name
    robot = build_robot(name, bodies, joints, selection or Selection(), source or name)
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
