"""A RobotModel as plain numbers and names, for files that must stand alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from robot_dynid.errors import RobotError
from robot_dynid.numbers import GRAVITY, SIZE, NumberRange, is_number, shown
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
LIMITS = ('lower', 'upper', 'velocity', 'acceleration', 'effort')


def _array(values: Any, shape: tuple[int, ...], where: str) -> FloatArray | None:
    """Return finite numbers of a shape, None for None."""
    return None if values is None else ENTRY.array(values, shape, where, RobotError)


def _rows(joints: list[Any], key: str, count: int) -> FloatArray:
    """Return finite numbers (n, count) of all joints."""
    return ENTRY.array([j[key] for j in joints], (len(joints), count), key, RobotError)


def _limits(joints: list[Any]) -> Limits:
    """Return the limits, NaN where unknown."""
    columns = [[j['limits'][key] for j in joints] for key in LIMITS]
    if not all(is_number(value) for column in columns for value in column):
        raise RobotError('limits must be numbers')
    return Limits(*(frozen(column) for column in columns))


def _indices(values: Any, most: int, where: str) -> tuple[int, ...]:
    allowed = NumberRange(-1, most, whole=True)
    return tuple(allowed.read_whole(value, where, RobotError) for value in values)


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise RobotError(f'{where} must be a name, is {shown(value)}')
    return value


def _link(content: Mapping[str, Any], n: int) -> Link:
    (body,) = _indices([content['body']], n - 1, 'body of a link')
    placement = ENTRY.array(content['placement'], (16,), 'placement of a link', RobotError)
    return Link(_text(content['name'], 'link'), body, frozen(placement.reshape(4, 4)),
                ENTRY.array(content['parameters'], (10,), 'parameters of a link', RobotError),
                bool(content['has_inertial']))


def _shape(content: Mapping[str, Any]) -> LinkShape:
    kind = _text(content['kind'], 'kind of a shape')
    sizes = SIZE.array(content['sizes'], (sum(SHAPES[kind].values()),), 'sizes', RobotError)
    place = (ENTRY.array(content[key], (3,), key, RobotError) for key in ('xyz', 'rpy'))
    return LinkShape(_text(content['link'], 'link of a shape'), kind, tuple(sizes.tolist()),
                     *(tuple(part.tolist()) for part in place))


def _drive(content: Mapping[str, Any], n: int) -> Drive:
    return Drive(
        _text(content['kind'], 'kind of the drive'), _array(content['gains'], (n,), 'gains'),
        _array(content['gear_ratios'], (n,), 'gear_ratios'),
        _array(content['coupling'], (n, n), 'coupling'),
        _indices(content.get('elastic', ()), n - 1, 'elastic'),
        _indices(content.get('torque_sensors', ()), n - 1, 'torque_sensors'),
        _array(content.get('rotor_axes'), (n, 3), 'rotor_axes'),
        _array(content.get('gains_std'), (n,), 'gains_std'),
        _text(content.get('sensor', MOTOR), 'sensor'))


def robot_from_plain(content: Mapping[str, Any], source: str) -> RobotModel:
    """Rebuild a robot.

    Raises KeyError, TypeError, ValueError or RobotError when the content is damaged.
    """
    joints = content['joints']
    drive = content['drive']
    n = len(joints)
    parents = _indices([j['parent'] for j in joints], n - 1, 'parent')
    if not n or any(parent >= j for j, parent in enumerate(parents)):
        raise RobotError('a joint must come after its parent')
    return RobotModel(
        name=str(content['name']), joints=tuple(_text(j['name'], 'joint') for j in joints),
        types=np.array([TYPE.read_whole(j['type'], 'type', RobotError) for j in joints],
                       dtype=np.int8),
        parents=np.array(parents, dtype=np.int64),
        rotations=frozen(_rows(joints, 'rotation', 9).reshape(n, 3, 3)),
        translations=_rows(joints, 'translation', 3), axes=_rows(joints, 'axis', 3),
        bodies=tuple(_text(j['body'], 'body') for j in joints),
        nominal=_rows(joints, 'nominal', 10), limits=_limits(joints),
        gravity=GRAVITY.array(content['gravity'], (3,), 'gravity', RobotError),
        drive=_drive(drive, n),
        base_link=str(content['base_link']), source=source,
        links=tuple(_link(link, n) for link in content['links']),
        wrenches=tuple((_text(topic, 'topic'), _text(link, 'link'))
                       for topic, link in content.get('wrenches', ())),
        shapes=tuple(_shape(shape) for shape in content.get('shapes', ())),
    )
