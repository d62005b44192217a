"""Robot YAML files: a URDF or screws, with drives, coupling and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.document import joints_named
from robot_dynid.errors import RobotError, UsageError, clipped, reported
from robot_dynid.files import read_text
from robot_dynid.numbers import (
    DIRECTION,
    GRAVITY,
    LARGEST,
    POSITION,
    NumberRange,
    shown,
)
from robot_dynid.robot import locate
from robot_dynid.robot.columns import ColumnMapping, column_mapping
from robot_dynid.robot.locate import SCHEME, package_file
from robot_dynid.robot.model import GAIN_UNITS, MOTOR, Drive, Limits, RobotModel
from robot_dynid.robot.screws import robot_from_screws, screws_from_yaml
from robot_dynid.robot.surroundings import Surroundings, surroundings_from_plain
from robot_dynid.robot.topics import topics_from_plain, with_topics
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import read_urdf
from robot_dynid.types import FloatArray, frozen
from robot_dynid.yaml_text import load_yaml

#: returns the path of a file with the URDF published on a topic
UrdfOnTopic = Callable[[str], Path]
#: turns of the rotor per turn of the joint; motor motion per joint motion
RATIO = NumberRange(-1e6, 1e6)
GAIN = NumberRange(-1e6, 1e6, ' or '.join(GAIN_UNITS.values()))
GAINS_STD = NumberRange(0.0, 0.999, note='it is relative, from 0 to 1; 0.02 stands for 2 %')
#: position error at which a servo reaches its limit; its gain of velocity over that of position
ERROR_LIMIT, DERIVATIVE_TIME = NumberRange(1e-6, 1e3, 'rad'), NumberRange(0.0, 1e3, 's')


@reported
def load_robot(robot: str | Path, on_topic: UrdfOnTopic | None = None) -> RobotModel:
    """Load a robot by the name of a bundled one, a URDF, xacro file or robot YAML.

    A robot YAML may take its URDF from a topic (``urdf: {topic: /robot_description}``):
    ``on_topic`` then returns the path of a file with it. Raises UsageError if there is no such
    robot, RobotError if its description is unusable, MissingDependency if xacro, or the ROS
    package of a URDF (``package://NAME/PATH``), is not installed.
    """
    path = locate.robot_file(robot)
    if path.suffix in locate.YAML_SUFFIXES:
        return robot_from_yaml(path, read_text(path, RobotError), on_topic)
    return read_urdf(path)


def read_yaml(path: Path, text: str | None = None) -> dict[str, Any]:
    """Read a YAML mapping, from ``text`` if the file is not written yet.

    Raises UsageError (no file) or RobotError (not a mapping).
    """
    content = load_yaml(read_text(path, RobotError) if text is None else text, str(path),
                        RobotError)
    if not isinstance(content, dict):
        raise RobotError(f'{path}: expected a mapping of keys to values')
    return content


def robot_from_yaml(path: Path, text: str, on_topic: UrdfOnTopic | None = None) -> RobotModel:
    """Return the robot of the ``text`` of a robot YAML at ``path``; errors as of `load_robot`."""
    content = read_yaml(path, text)
    unknown = sorted(str(key) for key in set(content) - KEYS)
    if unknown:
        raise RobotError(f'{path}: unknown key {", ".join(unknown)}; use '
                         f'{", ".join(sorted(KEYS))}')
    if ('urdf' in content) == ('screws' in content):
        raise RobotError(f'{path}: give either urdf: FILE or screws: LIST')
    robot = _kinematics(path, content, on_topic)
    where = str(path)
    robot = replace(
        robot, name=locate.name_of(path),
        limits=_limits(robot, content.get('limits') or {}, where),
        drive=_drive(robot, content, where), surroundings=_surroundings(path, content),
        wrenches=_wrenches(robot, content.get('wrenches') or {}, where),
        columns=_column_mapping(content.get('columns'), where),
    )
    robot = with_topics(robot, topics_from_plain(
        content.get('topics') or {}, f'{where}: topics', RobotError))
    gravity = content.get('gravity')
    if gravity is None:
        return robot
    return robot.with_gravity(
        GRAVITY.array(gravity, (3,), f'{where}: gravity [m/s^2]', RobotError))


def _kinematics(
    path: Path, content: Mapping[str, Any], on_topic: UrdfOnTopic | None
) -> RobotModel:
    selection = Selection(
        str(content.get('base_link') or ''), str(content.get('tip_link') or ''),
        _names(content.get('joints'), f'{path}: joints'),
    )
    urdf = content.get('urdf')
    if isinstance(urdf, Mapping) and 'file' in urdf:
        file, arguments = _with_arguments(path, urdf)
        return read_urdf(file, selection, arguments)
    if isinstance(urdf, Mapping):
        return read_urdf(_published(path, urdf, on_topic), selection)
    if 'urdf' in content:
        return read_urdf(_urdf_path(path, str(urdf)), selection)
    screws = screws_from_yaml(content['screws'], f'{path}: screws')
    return robot_from_screws(
        locate.name_of(path), screws, selection, str(path), selection.base_link)


def _published(path: Path, urdf: Mapping[str, Any], on_topic: UrdfOnTopic | None) -> Path:
    """Return the path of a file with the URDF published on the topic of a robot YAML."""
    topic = urdf.get('topic')
    if set(urdf) != {'topic'} or not isinstance(topic, str) or not topic:
        raise _no_urdf(path, urdf)
    if on_topic is None:
        raise RobotError(f'{path}: the URDF is on topic {clipped(topic)}, which only nodes read; '
                         'save it to a file and set urdf: FILE')
    return on_topic(topic)


def _no_urdf(path: Path, urdf: Mapping[str, Any]) -> RobotError:
    """Return the error about an invalid ``urdf`` of a robot YAML."""
    return RobotError(
        f'{path}: urdf must be a file, or {{topic: /robot_description}}, or {{file: '
        'package://PACKAGE/arm.urdf.xacro, arguments: {NAME: VALUE}, source: ADDRESS}, is '
        f'{shown(dict(urdf))}')


def _with_arguments(path: Path, urdf: Mapping[str, Any]) -> tuple[Path, dict[str, str]]:
    """Return the file of a mapping ``urdf`` and the arguments of xacro."""
    file, arguments = urdf['file'], urdf.get('arguments') or {}
    origin = urdf.get('source', '')
    if not (set(urdf) <= {'file', 'arguments', 'source'} and isinstance(file, str)
            and isinstance(origin, str) and isinstance(arguments, Mapping)):
        raise _no_urdf(path, urdf)
    return _urdf_path(path, file, origin), {
        str(name): _argument(value) for name, value in arguments.items()}


def _argument(value: Any) -> str:
    """Return a value of YAML as xacro reads it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _urdf_path(yaml_path: Path, urdf: str, origin: str = '') -> Path:
    if urdf.startswith(SCHEME):
        return package_file(urdf, f'{yaml_path}: urdf', origin)
    neighbour = yaml_path.parent / urdf
    if locate.is_file(neighbour):
        return neighbour
    bundled = locate.find(urdf) or locate.find(f'urdf/{urdf}')
    if bundled is None and not locate.is_file(Path(urdf)):
        raise UsageError(f'{yaml_path}: urdf {shown(urdf)} is neither in the folder of this file '
                         'nor bundled with the package')
    return bundled or Path(urdf)


def _surroundings(path: Path, content: Mapping[str, Any]) -> Surroundings:
    try:
        given = surroundings_from_plain(content.get('scene') or {}, f'{path}: scene')
    except UsageError as error:
        raise RobotError(str(error)) from None
    if not given.environment:
        return given
    return replace(given, environment=str(_urdf_path(path, given.environment)))


def _names(value: Any, where: str) -> tuple[str, ...]:
    if value is not None and not isinstance(value, list):
        raise RobotError(f'{where} must be a list of joint names, is {shown(value)}')
    return tuple(str(name) for name in value or ())


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise RobotError(f'{where} must be a mapping of names to values, is {shown(value)}')
    return value


def _by_joint(robot: RobotModel, value: Any, where: str) -> Mapping[str, Any]:
    """Return a mapping whose keys are joints of the robot."""
    values = _mapping(value, where)
    _require_joints(robot, values, where)
    return values


def _require_joints(robot: RobotModel, names: Iterable[str], where: str) -> None:
    joints = set(robot.joints)
    unknown = [str(name) for name in names if name not in joints]
    if unknown:
        raise RobotError(f'{where}: no joint {clipped(", ".join(unknown))}; the robot has '
                         f'{", ".join(robot.joints)}')


def _per_joint(allowed: NumberRange, robot: RobotModel, given: Any, where: str) -> FloatArray:
    """Return (n,) from a mapping joint -> number, required for every joint."""
    values = _by_joint(robot, given, where)
    missing = [j for j in robot.joints if j not in values]
    if missing:
        raise RobotError(f'{where}: no value for {joints_named(missing)}; give one for every '
                         'joint of the robot')
    return frozen([allowed.read(values[j], f'{where}: {j}', RobotError) for j in robot.joints])


def _one_or_each(allowed: NumberRange, robot: RobotModel, given: Any, where: str) -> FloatArray:
    """Return (n,) from one number for all joints, or one for each."""
    if isinstance(given, Mapping):
        return _per_joint(allowed, robot, given, where)
    return frozen(np.full(robot.n, allowed.read(given, where, RobotError)))


def _indices(robot: RobotModel, given: Any, where: str) -> tuple[int, ...]:
    names = _names(given, where)
    _require_joints(robot, names, where)
    return tuple(sorted({robot.index(name) for name in names}))


def _rotor_axes(robot: RobotModel, given: Any, where: str) -> FloatArray:
    """Return unit vectors (n, 3) in the frames of the links before the joints, or zero."""
    axes = np.zeros((robot.n, 3))
    for joint, row in _by_joint(robot, given, where).items():
        axis = np.array(DIRECTION.array(row, (3,), f'{where}: {joint}', RobotError))
        if not np.linalg.norm(axis) > 1e-9:
            raise RobotError(f'{where}: {joint}: the axis has zero length')
        axes[robot.index(joint)] = axis / np.linalg.norm(axis)
    return frozen(axes)


def _coupling(robot: RobotModel, given: Any, where: str) -> FloatArray:
    """Return C (n, n), identity except for the given rows: motor motion = C q."""
    matrix = np.eye(robot.n)
    rows = _by_joint(robot, given, where)
    for motor, row in rows.items():
        i = robot.index(motor)
        matrix[i] = 0.0
        for joint, factor in _by_joint(robot, row, f'{where}: {motor}').items():
            matrix[i, robot.index(joint)] = RATIO.read(
                factor, f'{where}: {motor}: {joint}', RobotError)
    if np.linalg.cond(matrix) > 1e9:
        raise RobotError(f'{where}: the matrix is singular with the rows of {", ".join(rows)}; '
                         'correct their factors')
    return frozen(matrix)


#: keys of drives: field of Drive, and its reader (robot, value, location)
DRIVE: dict[str, tuple[str, Callable[[RobotModel, Any, str], Any]]] = {
    'drive_gains': ('gains', partial(_per_joint, GAIN)),
    'drive_gains_std': ('gains_std', partial(_one_or_each, GAINS_STD)),
    'error_limit': ('error_limit', partial(_one_or_each, ERROR_LIMIT)),
    'derivative_time': ('derivative_time', partial(_one_or_each, DERIVATIVE_TIME)),
    'gear_ratios': ('gear_ratios', partial(_per_joint, RATIO)),
    'coupling': ('coupling', _coupling),
    'elastic_joints': ('elastic', _indices),
    'joint_torque_sensors': ('torque_sensors', _indices),
    'rotor_axes': ('rotor_axes', _rotor_axes),
}
KEYS = {'urdf', 'screws', 'joints', 'base_link', 'tip_link', 'gravity', 'effort_kind', 'sensor',
        'limits', 'scene', 'simulation', 'wrenches', 'columns', 'topics', *DRIVE}


def _drive(robot: RobotModel, content: Mapping[str, Any], where: str) -> Drive:
    if robot.linkage is not None and {'elastic_joints', 'rotor_axes'} & set(content):
        raise RobotError(f'{where}: elastic_joints and rotor_axes are not supported with coupled '
                         'joints (<mimic>); remove them')
    fields = {field: read(robot, content[key], f'{where}: {key}')
              for key, (field, read) in DRIVE.items() if content.get(key) is not None}
    try:
        return Drive(kind=str(content.get('effort_kind', '')),
                     sensor=str(content.get('sensor', MOTOR)), **fields)
    except (RobotError, UsageError) as error:
        raise RobotError(f'{where}: {error}') from None


def _wrenches(robot: RobotModel, given: Any, where: str) -> tuple[tuple[str, str], ...]:
    """Return the topics with external wrenches and their links."""
    entries = _mapping(given, f'{where}: wrenches')
    links = [link.name for link in robot.tree.links]
    for topic, link in entries.items():
        if not isinstance(topic, str) or not topic.startswith('/'):
            raise RobotError(f'{where}: wrenches: {shown(topic)} is not a topic such as '
                             '/ft/wrench')
        if link not in links:
            raise RobotError(f'{where}: wrenches: {topic}: {shown(link)} is not a moving link; '
                             f"valid: {', '.join(links)}")
    return tuple(entries.items())


def _column_mapping(given: Any, where: str) -> ColumnMapping | None:
    try:
        return None if given is None else column_mapping(given, f'{where}: columns')
    except UsageError as error:
        raise RobotError(str(error)) from None


def _limits(robot: RobotModel, given: Any, where: str) -> Limits:
    values = {k: np.array(getattr(robot.limits, k))
              for k in ('lower', 'upper', 'velocity', 'acceleration', 'effort')}
    for joint, limit in _by_joint(robot, given, f'{where}: limits').items():
        i, place = robot.index(joint), f'{where}: limits of {joint}'
        for key, value in _mapping(limit, place).items():
            if key == 'position':
                lower, upper = POSITION.array(value, (2,), f'{place}: position', RobotError)
                if lower >= upper:
                    raise RobotError(f'{place}: position: {lower:g} is not below {upper:g}')
                values['lower'][i], values['upper'][i] = lower, upper
            elif key in ('velocity', 'acceleration', 'effort'):
                values[key][i] = LARGEST.read(value, f'{place}: {key}', RobotError)
            else:
                raise RobotError(f'{place}: unknown key {key!r}; use position, velocity, '
                                 'acceleration, effort')
    return Limits(**{k: frozen(v) for k, v in values.items()})
