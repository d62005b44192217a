"""Robot YAML files: a URDF or screws, and what those cannot say (drives, coupling, limits)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

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
from robot_dynid.robot.model import Drive, Limits, RobotModel
from robot_dynid.robot.screws import robot_from_screws
from robot_dynid.robot.screws_file import screws_from_yaml
from robot_dynid.robot.surroundings import Surroundings, surroundings_from_plain
from robot_dynid.robot.tree import Selection
from robot_dynid.robot.urdf import read_urdf
from robot_dynid.types import FloatArray, frozen
from robot_dynid.yaml_text import load_yaml

KEYS = {'urdf', 'screws', 'joints', 'base_link', 'tip_link', 'gravity', 'gear_ratios',
        'drive_gains', 'drive_gains_std', 'effort_kind', 'coupling', 'elastic_joints',
        'joint_torque_sensors', 'rotor_axes', 'limits', 'scene', 'simulation'}
#: turns of the rotor per turn of the joint; motor motion per joint motion
RATIO = NumberRange(-1e6, 1e6)
GAIN = NumberRange(-1e6, 1e6, 'N m/A')
GAINS_STD = NumberRange(0.0, 0.999, note='it is relative, from 0 to 1; 0.02 stands for 2 %')


@reported
def load_robot(robot: str | Path) -> RobotModel:
    """Load a robot by the name of a robot that comes with the package, a URDF or a robot YAML.

    Raises UsageError when there is no such robot, RobotError when its description is unusable.
    """
    path = Path(robot)
    if path.suffix == '.urdf':
        return read_urdf(path)
    if path.suffix in ('.yaml', '.yml'):
        return _read_robot_yaml(path)
    if path.suffix == '.xacro':
        raise RobotError(f'{path}: is a xacro file; expand it first: xacro FILE > robot.urdf')
    found = locate.find(f'config/robots/{robot}.yaml')
    if found is None:
        raise UsageError(
            f'no robot {str(robot)!r}: give a URDF file, a robot YAML, or one of '
            f'{", ".join(locate.known_robots())}'
        )
    return _read_robot_yaml(found)


def read_yaml(path: Path) -> dict[str, Any]:
    """Read a YAML mapping. Raises UsageError (no file) or RobotError (not a mapping)."""
    content = load_yaml(read_text(path, RobotError), str(path), RobotError)
    if not isinstance(content, dict):
        raise RobotError(f'{path}: expected a mapping of keys to values')
    return content


def _read_robot_yaml(path: Path) -> RobotModel:
    content = read_yaml(path)
    unknown = sorted(str(key) for key in set(content) - KEYS)
    if unknown:
        raise RobotError(f'{path}: unknown key {", ".join(unknown)}; known are '
                         f'{", ".join(sorted(KEYS))}')
    if ('urdf' in content) == ('screws' in content):
        raise RobotError(f'{path}: give either urdf: FILE or screws: LIST')
    robot = _kinematics(path, content)
    where = str(path)
    robot = replace(
        robot, name=path.stem, limits=_limits(robot, content.get('limits') or {}, where),
        drive=_drive(robot, content, where), surroundings=_surroundings(path, content),
    )
    gravity = content.get('gravity')
    if gravity is None:
        return robot
    return robot.with_gravity(
        GRAVITY.array(gravity, (3,), f'{where}: gravity [m/s^2]', RobotError))


def _kinematics(path: Path, content: Mapping[str, Any]) -> RobotModel:
    selection = Selection(
        str(content.get('base_link') or ''), str(content.get('tip_link') or ''),
        _names(content.get('joints'), f'{path}: joints'),
    )
    if 'urdf' in content:
        return read_urdf(_urdf_path(path, str(content['urdf'])), selection)
    screws = screws_from_yaml(content['screws'], f'{path}: screws')
    base = selection.base_link or 'base_link'
    return robot_from_screws(path.stem, screws, selection, str(path), base)


def _urdf_path(yaml_path: Path, urdf: str) -> Path:
    beside = yaml_path.parent / urdf
    if locate.is_file(beside):
        return beside
    found = locate.find(urdf) or locate.find(f'urdf/{urdf}')
    if found is None and not locate.is_file(Path(urdf)):
        raise UsageError(f'{yaml_path}: urdf {shown(urdf)} is neither beside this file '
                         'nor among those that come with the package')
    return found or Path(urdf)


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


def _known_joints(robot: RobotModel, names: Iterable[str], where: str) -> None:
    known = set(robot.joints)
    unknown = [str(name) for name in names if name not in known]
    if unknown:
        raise RobotError(f'{where}: no joint {clipped(", ".join(unknown))}; the robot has '
                         f'{", ".join(robot.joints)}')


def _per_joint(
    robot: RobotModel, given: Any, allowed: NumberRange, where: str
) -> FloatArray | None:
    """Return (n,) from a mapping joint -> number that must name every joint of the robot."""
    if given is None:
        return None
    values = _mapping(given, where)
    _known_joints(robot, values, where)
    missing = [j for j in robot.joints if j not in values]
    if missing:
        raise RobotError(f'{where}: no value for joint {", ".join(missing)}; give one for every '
                         'joint of the robot')
    return frozen([allowed.read(values[j], f'{where}: {j}', RobotError) for j in robot.joints])


def _drive(robot: RobotModel, content: Mapping[str, Any], where: str) -> Drive:
    gains = content.get('drive_gains')
    ratios = content.get('gear_ratios')
    coupling = content.get('coupling')
    read: dict[str, Any] = {
        'gains': _per_joint(robot, gains, GAIN, f'{where}: drive_gains'),
        'gains_std': _gains_std(robot, content.get('drive_gains_std'),
                                f'{where}: drive_gains_std'),
        'gear_ratios': _per_joint(robot, ratios, RATIO, f'{where}: gear_ratios'),
        'coupling': _coupling(robot, coupling, f'{where}: coupling'),
        'elastic': _indices(robot, content.get('elastic_joints'), f'{where}: elastic_joints'),
        'torque_sensors': _indices(robot, content.get('joint_torque_sensors'),
                                   f'{where}: joint_torque_sensors'),
        'rotor_axes': _rotor_axes(robot, content.get('rotor_axes'), f'{where}: rotor_axes'),
    }
    try:
        return Drive(kind=str(content.get('effort_kind', '')), **read)
    except (RobotError, UsageError) as error:
        raise RobotError(f'{where}: {error}') from None


def _gains_std(robot: RobotModel, given: Any, where: str) -> FloatArray | None:
    """Return relative deviations (n,) from one number for all joints, or one for each."""
    if given is None or isinstance(given, Mapping):
        return _per_joint(robot, given, GAINS_STD, where)
    return frozen(np.full(robot.n, GAINS_STD.read(given, where, RobotError)))


def _indices(robot: RobotModel, given: Any, where: str) -> tuple[int, ...]:
    names = _names(given, where)
    _known_joints(robot, names, where)
    return tuple(sorted({robot.index(name) for name in names}))


def _rotor_axes(robot: RobotModel, given: Any, where: str) -> FloatArray | None:
    """Return unit vectors (n, 3) in the frames of the links before the joints, zero for none."""
    if given is None:
        return None
    axes = np.zeros((robot.n, 3))
    rows = _mapping(given, where)
    _known_joints(robot, rows, where)
    for joint, row in rows.items():
        axis = np.array(DIRECTION.array(row, (3,), f'{where}: {joint}', RobotError))
        if not np.linalg.norm(axis) > 1e-9:
            raise RobotError(f'{where}: {joint}: the axis has no length')
        axes[robot.index(joint)] = axis / np.linalg.norm(axis)
    return frozen(axes)


def _coupling(robot: RobotModel, given: Any, where: str) -> FloatArray | None:
    """Return C (n, n), identity but for the given rows: motor motion = C q."""
    if given is None:
        return None
    matrix = np.eye(robot.n)
    rows = _mapping(given, where)
    _known_joints(robot, rows, where)
    for motor, row in rows.items():
        factors = _mapping(row, f'{where}: {motor}')
        _known_joints(robot, factors, f'{where}: {motor}')
        i = robot.index(motor)
        matrix[i] = 0.0
        for joint, factor in factors.items():
            matrix[i, robot.index(joint)] = RATIO.read(
                factor, f'{where}: {motor}: {joint}', RobotError)
    if np.linalg.cond(matrix) > 1e9:
        raise RobotError(f'{where}: the matrix is singular with the rows of {", ".join(rows)}; '
                         'correct their factors')
    return frozen(matrix)


def _limits(robot: RobotModel, given: Any, where: str) -> Limits:
    values = {k: np.array(getattr(robot.limits, k))
              for k in ('lower', 'upper', 'velocity', 'acceleration', 'effort')}
    changes = _mapping(given, f'{where}: limits')
    _known_joints(robot, changes, f'{where}: limits')
    for joint, limit in changes.items():
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
