"""A RobotModel as plain numbers and names, for files that must stand alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from robot_dynid.robot.model import Drive, Limits, Link, RobotModel
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
    }


def _optional(drive: Drive) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if drive.elastic:
        found = {'elastic': list(drive.elastic), 'torque_sensors': list(drive.torque_sensors)}
    if drive.rotor_axes is not None:
        found['rotor_axes'] = [_list(row) for row in drive.rotor_axes]
    if drive.gains_std is not None:
        found['gains_std'] = _list(drive.gains_std)
    return found


def _array(values: Any) -> FloatArray | None:
    return None if values is None else frozen(values)


def robot_from_plain(content: Mapping[str, Any], source: str) -> RobotModel:
    """Rebuild a robot. Raises KeyError, TypeError or ValueError when the content is damaged."""
    joints = content['joints']
    drive = content['drive']
    n = len(joints)
    return RobotModel(
        name=str(content['name']), joints=tuple(j['name'] for j in joints),
        types=np.array([j['type'] for j in joints], dtype=np.int8),
        parents=np.array([j['parent'] for j in joints], dtype=np.int64),
        rotations=frozen(np.reshape([j['rotation'] for j in joints], (n, 3, 3))),
        translations=frozen(np.reshape([j['translation'] for j in joints], (n, 3))),
        axes=frozen(np.reshape([j['axis'] for j in joints], (n, 3))),
        bodies=tuple(j['body'] for j in joints),
        nominal=frozen(np.reshape([j['nominal'] for j in joints], (n, 10))),
        limits=Limits(*(frozen([j['limits'][k] for j in joints])
                        for k in ('lower', 'upper', 'velocity', 'acceleration', 'effort'))),
        gravity=frozen(content['gravity']),
        drive=Drive(drive['kind'], _array(drive['gains']), _array(drive['gear_ratios']),
                    _array(drive['coupling']), tuple(drive.get('elastic', ())),
                    tuple(drive.get('torque_sensors', ())), _array(drive.get('rotor_axes')),
                    _array(drive.get('gains_std'))),
        base_link=str(content['base_link']), source=source,
        links=tuple(Link(k['name'], int(k['body']), frozen(np.reshape(k['placement'], (4, 4))),
                         frozen(k['parameters']), bool(k['has_inertial']))
                    for k in content['links']),
    )
