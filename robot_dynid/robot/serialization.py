"""A RobotModel as plain numbers and names, for files that must stand alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from robot_dynid.errors import RobotError
from robot_dynid.numbers import GRAVITY, SIZE, NumberRange, shown
from robot_dynid.plain import from_plain
from robot_dynid.robot.model import MOTOR, SHAPES, Drive, Limits, Link, LinkShape, RobotModel
from robot_dynid.types import FloatArray, frozen


def _list(values: FloatArray | None) -> list[Any] | None:
    return None if values is None else [float(v) for v in values]


def robot_to_plain(robot: RobotModel) -> dict[str, Any]:
    """Return the robot as nested lists and mappings of numbers and strings."""
    joints = [
        {
            'name': robot.joints[i], 'type': int(robot.types[i]),
            'parent': int(robot.parents[i]), 'body': robot.bodies[i],
            'rotation': _list(robot.rotations[i].ravel()),
            'translation': _list(robot.translations[i]), 'axis': _list(robot.axes[i]),
            'nominal': _list(robot.nominal[i]),
            'limits': {k: float(v[i]) for k, v in asdict(robot.limits).items()},
        }
        for i in range(robot.n)
    ]
    drive = robot.drive
    coupling = None if drive.coupling is None else [_list(row) for row in drive.coupling]
    return {
        'name': robot.name, 'hash': robot.hash(), 'base_link': robot.base_link,
        'gravity': _list(robot.gravity), 'joints': joints,
        'drive': {'kind': drive.kind, 'gains': _list(drive.gains),
                  'gear_ratios': _list(drive.gear_ratios), 'coupling': coupling,
                  **_optional(drive)},
        'links': [{'name': k.name, 'body': int(k.body), 'placement': _list(k.placement.ravel()),
                   'parameters': _list(k.parameters), 'has_inertial': bool(k.has_inertial)}
                  for k in robot.links],
        **({'wrenches': [list(pair) for pair in robot.wrenches]} if robot.wrenches else {}),
        **({'shapes': [asdict(shape) for shape in robot.shapes]} if robot.shapes else {}),
    }


def _optional(drive: Drive) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if drive.elastic:
        found = {'elastic': list(drive.elastic), 'torque_sensors': list(drive.torque_sensors)}
    if drive.rotor_axes is not None:
        found['rotor_axes'] = [_list(row) for row in drive.rotor_axes]
    if drive.gains_std is not None:
        found['gains_std'] = _list(drive.gains_std)
    if not drive.shows_motors:
        found['sensor'] = drive.sensor
    return found


ENTRY = NumberRange(-1e12, 1e12)
TYPE = NumberRange(0, 1, whole=True)


@dataclass(frozen=True, eq=False)
class _Joint:
    name: str
    type: int
    parent: int
    body: str
    rotation: FloatArray
    translation: FloatArray
    axis: FloatArray
    nominal: FloatArray
    limits: _Limits


@dataclass(frozen=True)
class _Limits:
    lower: float
    upper: float
    velocity: float
    acceleration: float
    effort: float


@dataclass(frozen=True, eq=False)
class _Drive:
    kind: str
    gains: FloatArray | None
    gear_ratios: FloatArray | None
    coupling: FloatArray | None
    elastic: tuple[int, ...] = ()
    torque_sensors: tuple[int, ...] = ()
    rotor_axes: FloatArray | None = None
    gains_std: FloatArray | None = None
    sensor: str = MOTOR


@dataclass(frozen=True, eq=False)
class _Robot:
    """Content of a file."""

    name: str
    hash: str
    base_link: str
    gravity: FloatArray
    joints: tuple[_Joint, ...]
    drive: _Drive
    links: tuple[Link, ...]
    wrenches: tuple[tuple[str, str], ...] = ()
    shapes: tuple[LinkShape, ...] = ()


def _array(values: FloatArray | None, shape: tuple[int, ...], where: str) -> FloatArray | None:
    """Return finite numbers of a shape, None for None."""
    return None if values is None else ENTRY.array(values, shape, where, RobotError)


def _rows(joints: Sequence[_Joint], key: str, count: int) -> FloatArray:
    """Return finite numbers (n, count) of all joints."""
    return np.array([ENTRY.array(getattr(joint, key), (count,), f'{key} of a joint', RobotError)
                     for joint in joints])


def _indices(values: Iterable[int], most: int, where: str) -> tuple[int, ...]:
    allowed = NumberRange(-1, most, whole=True)
    return tuple(allowed.read_whole(value, where, RobotError) for value in values)


def _link(link: Link, n: int) -> Link:
    (body,) = _indices([link.body], n - 1, 'body of a link')
    placement = ENTRY.array(link.placement, (16,), 'placement of a link', RobotError)
    return Link(link.name, body, frozen(placement.reshape(4, 4)),
                ENTRY.array(link.parameters, (10,), 'parameters of a link', RobotError),
                link.has_inertial)


def _require_shape(shape: LinkShape) -> None:
    if shape.kind not in SHAPES:
        raise RobotError(f'kind of a shape must be one of {", ".join(SHAPES)}, is '
                         f'{shown(shape.kind)}')
    SIZE.array(shape.sizes, (sum(SHAPES[shape.kind].values()),), 'sizes of a shape', RobotError)
    for key in ('xyz', 'rpy'):
        ENTRY.array(getattr(shape, key), (3,), f'{key} of a shape', RobotError)


def _drive(drive: _Drive, n: int) -> Drive:
    return Drive(
        drive.kind, _array(drive.gains, (n,), 'gains'),
        _array(drive.gear_ratios, (n,), 'gear_ratios'),
        _array(drive.coupling, (n, n), 'coupling'), _indices(drive.elastic, n - 1, 'elastic'),
        _indices(drive.torque_sensors, n - 1, 'torque_sensors'),
        _array(drive.rotor_axes, (n, 3), 'rotor_axes'),
        _array(drive.gains_std, (n,), 'gains_std'), drive.sensor)


def robot_from_plain(content: Any, source: str) -> RobotModel:
    """Rebuild a robot.

    Raises ValueError or RobotError, naming the key, when the content is damaged; RobotError for
    another robot than that of its hash.
    """
    given = from_plain(_Robot, content, 'robot')
    joints, n = given.joints, len(given.joints)
    parents = _indices([joint.parent for joint in joints], n - 1, 'parent of a joint')
    if not n or any(parent >= j for j, parent in enumerate(parents)):
        raise RobotError('a joint must come after its parent')
    for joint in joints:
        low, high, *rates = (getattr(joint.limits, f.name) for f in fields(_Limits))
        if low > high or any(rate < 0.0 for rate in rates):
            raise RobotError(f'limits of joint {joint.name}: no position or speed is within them')
    for shape in given.shapes:
        _require_shape(shape)
    robot = RobotModel(
        name=given.name, joints=tuple(joint.name for joint in joints),
        types=np.array([TYPE.read_whole(joint.type, 'type of a joint', RobotError)
                        for joint in joints], dtype=np.int8),
        parents=np.array(parents, dtype=np.int64),
        rotations=frozen(_rows(joints, 'rotation', 9).reshape(n, 3, 3)),
        translations=frozen(_rows(joints, 'translation', 3)),
        axes=frozen(_rows(joints, 'axis', 3)),
        bodies=tuple(joint.body for joint in joints),
        nominal=frozen(_rows(joints, 'nominal', 10)),
        limits=Limits(*(frozen([getattr(joint.limits, f.name) for joint in joints])
                        for f in fields(_Limits))),
        gravity=GRAVITY.array(given.gravity, (3,), 'gravity', RobotError),
        drive=_drive(given.drive, n), base_link=given.base_link, source=source,
        links=tuple(_link(link, n) for link in given.links), wrenches=given.wrenches,
        shapes=given.shapes,
    )
    if robot.hash() != given.hash:
        raise RobotError('the robot in it was changed after the identification; its parameters '
                         'no longer fit')
    return robot
