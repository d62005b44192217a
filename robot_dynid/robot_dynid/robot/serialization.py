"""Serialise a RobotModel as plain numbers and names, for self-contained files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from robot_dynid.errors import RobotError
from robot_dynid.numbers import GRAVITY, LARGEST, MASS, POSITION, SIZE, NumberRange, shown
from robot_dynid.plain import from_plain, to_plain
from robot_dynid.robot.columns import column_mapping
from robot_dynid.robot.linkage import Linkage
from robot_dynid.robot.model import (
    MOTOR,
    SHAPES,
    Drive,
    Limits,
    Link,
    LinkShape,
    RobotModel,
    TopicFields,
)
from robot_dynid.types import FloatArray, frozen

ENTRY = NumberRange(-1e12, 1e12)
TYPE = NumberRange(0, 1, whole=True)
#: keys of the drives that are omitted if they have these values
ABSENT: dict[str, Any] = {'elastic': [], 'torque_sensors': [], 'rotor_axes': None,
                          'gains_std': None, 'sensor': MOTOR, 'error_limit': None,
                          'derivative_time': None}


def robot_to_plain(robot: RobotModel) -> dict[str, Any]:
    """Return the robot as nested lists and mappings of numbers and strings."""
    if robot.linkage is not None:
        driven, limits = robot.linkage.driven, {}
        for f in fields(Limits):
            limits[f.name] = np.array(getattr(robot.tree.limits, f.name))
            limits[f.name][driven] = getattr(robot.limits, f.name)
        tree = replace(robot.tree, name=robot.name, limits=Limits(**limits),
                       wrenches=robot.wrenches, topics=robot.topics, shapes=robot.shapes,
                       columns=robot.columns)
        return {**robot_to_plain(tree), 'hash': robot.hash(), 'drive': _drive_to_plain(robot),
                'linkage': to_plain({'own': driven, 'matrix': robot.linkage.matrix,
                                     'offset': robot.linkage.offset})}
    joints = [
        {
            'name': robot.joints[i], 'type': int(robot.types[i]),
            'parent': int(robot.parents[i]), 'body': robot.bodies[i],
            'rotation': robot.rotations[i].ravel().tolist(),
            'translation': robot.translations[i].tolist(), 'axis': robot.axes[i].tolist(),
            'nominal': robot.nominal[i].tolist(),
            'limits': {f.name: float(getattr(robot.limits, f.name)[i]) for f in fields(Limits)},
        }
        for i in range(robot.n)
    ]
    return {
        'name': robot.name, 'hash': robot.hash(), 'base_link': robot.base_link,
        'gravity': to_plain(robot.gravity), 'joints': joints,
        'drive': _drive_to_plain(robot),
        'links': [{**to_plain(link), 'placement': link.placement.ravel().tolist()}
                  for link in robot.links],
        **{key: to_plain(value) for key, value in (
            ('wrenches', robot.wrenches), ('topics', robot.topics), ('shapes', robot.shapes),
            ('columns', robot.columns and robot.columns.plain)) if value},
    }


def _drive_to_plain(robot: RobotModel) -> dict[str, Any]:
    absent = {key: value for key, value in ABSENT.items()
              if key != 'torque_sensors' or not robot.drive.elastic}
    return {key: value for key, value in to_plain(robot.drive).items()
            if key not in absent or value != absent[key]}


@dataclass(frozen=True, eq=False)
class _Linkage:
    own: tuple[int, ...]
    matrix: FloatArray
    offset: FloatArray


@dataclass(frozen=True)
class _Limits:
    lower: float
    upper: float
    velocity: float
    acceleration: float
    effort: float


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


class _Drive(Drive):
    """Drives that have not been checked."""

    def __post_init__(self) -> None:
        pass


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
    topics: tuple[tuple[str, TopicFields], ...] = ()
    shapes: tuple[LinkShape, ...] = ()
    columns: Any = None
    linkage: _Linkage | None = None

    def rows(self, key: str, count: int) -> FloatArray:
        """Return finite numbers (n, count) of all joints."""
        return frozen([ENTRY.array(getattr(joint, key), (count,), f'{key} of a joint', RobotError)
                       for joint in self.joints])


def _indices(values: Iterable[int], upper: int, where: str) -> tuple[int, ...]:
    allowed = NumberRange(-1, upper, whole=True)
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
    values = {f.name: getattr(drive, f.name) for f in fields(Drive)}
    for key, shape in (('gains', (n,)), ('gear_ratios', (n,)), ('coupling', (n, n)),
                       ('rotor_axes', (n, 3)), ('gains_std', (n,)), ('error_limit', (n,)),
                       ('derivative_time', (n,))):
        if values[key] is not None:
            values[key] = ENTRY.array(values[key], shape, key, RobotError)
    for key in ('elastic', 'torque_sensors'):
        values[key] = _indices(values[key], n - 1, key)
    return Drive(**values)


def robot_from_plain(content: Any, source: str) -> RobotModel:
    """Rebuild a robot.

    Raises ValueError or RobotError, naming the key, if the content is damaged; RobotError if the
    robot does not match its hash.
    """
    given = from_plain(_Robot, content, 'robot')
    joints, n = given.joints, len(given.joints)
    parents = _indices([joint.parent for joint in joints], n - 1, 'parent of a joint')
    if not n or any(parent >= j for j, parent in enumerate(parents)):
        raise RobotError('a joint must come after its parent')
    for joint in joints:
        low, high, *rates = vars(joint.limits).values()
        if low > high or any(rate < 0.0 for rate in rates):
            raise RobotError(f'limits of joint {joint.name}: no position or speed is within them')
        if any(allowed.high < abs(value) < np.inf for allowed, values in (
                (POSITION, (low, high)), (LARGEST, rates)) for value in values):
            raise RobotError(f'limits of joint {joint.name}: positions are at most '
                             f'{POSITION.high:g}, rates and efforts {LARGEST.high:g}')
    for shape in given.shapes:
        _require_shape(shape)
    for body in (*(joint.nominal for joint in joints), *(link.parameters for link in given.links)):
        if len(body) and 0.0 < abs(body[0]) < MASS.low:
            raise RobotError(f'a mass is {body[0]:g} kg: it must be zero or at least {MASS.low:g}')
    robot = RobotModel(
        name=given.name, joints=tuple(joint.name for joint in joints),
        types=np.array([TYPE.read_whole(joint.type, 'type of a joint', RobotError)
                        for joint in joints], dtype=np.int8),
        parents=np.array(parents, dtype=np.int64),
        rotations=frozen(given.rows('rotation', 9).reshape(n, 3, 3)),
        translations=given.rows('translation', 3), axes=given.rows('axis', 3),
        bodies=tuple(joint.body for joint in joints), nominal=given.rows('nominal', 10),
        limits=Limits(*map(frozen, zip(*(vars(joint.limits).values() for joint in joints)))),
        gravity=GRAVITY.array(given.gravity, (3,), 'gravity', RobotError),
        base_link=given.base_link, source=source,
        links=tuple(_link(link, n) for link in given.links), wrenches=given.wrenches,
        topics=given.topics, shapes=given.shapes,
        columns=None if given.columns is None else column_mapping(given.columns),
    )
    if given.linkage is not None:
        driven = _indices(given.linkage.own, n - 1, 'own of the linkage')
        robot = Linkage(
            robot, np.array(driven, dtype=np.int64),
            ENTRY.array(given.linkage.matrix, (n, len(driven)), 'matrix of the linkage',
                        RobotError),
            ENTRY.array(given.linkage.offset, (n,), 'offset of the linkage', RobotError)).robot()
    robot = replace(robot, drive=_drive(given.drive, robot.n))
    if robot.hash() != given.hash:
        raise RobotError('its robot was changed after the identification; identify again')
    return robot
