"""Robot YAML files: a URDF plus what a URDF cannot say (drives, coupling, effort kind, limits)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.model import locate
from robot_dynid.model.robot import Drive, Limits, RobotModel
from robot_dynid.model.tree import Selection
from robot_dynid.model.urdf import read_urdf
from robot_dynid.types import FloatArray, frozen

KEYS = {'urdf', 'joints', 'base_link', 'tip_link', 'gravity', 'gear_ratios', 'drive_gains',
        'effort_kind', 'coupling', 'limits', 'simulation'}


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
    try:
        content = yaml.safe_load(path.read_text(encoding='utf-8'))
    except OSError as error:
        raise UsageError(f'{path}: cannot be read ({error.strerror})') from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise RobotError(f'{path}: not valid YAML ({error})') from None
    if not isinstance(content, dict):
        raise RobotError(f'{path}: expected a mapping of keys to values')
    return content


def _read_robot_yaml(path: Path) -> RobotModel:
    content = read_yaml(path)
    unknown = sorted(set(content) - KEYS)
    if unknown:
        raise RobotError(f'{path}: unknown key {", ".join(unknown)}; known are '
                         f'{", ".join(sorted(KEYS))}')
    if 'urdf' not in content:
        raise RobotError(f'{path}: key urdf is missing')
    selection = Selection(
        str(content.get('base_link') or ''), str(content.get('tip_link') or ''),
        tuple(content.get('joints') or ()),
    )
    robot = read_urdf(_urdf_path(path, str(content['urdf'])), selection)
    where = str(path)
    robot = replace(
        robot, name=path.stem, limits=_limits(robot, content.get('limits') or {}, where),
        drive=_drive(robot, content, where),
    )
    gravity = content.get('gravity')
    if gravity is None:
        return robot
    vector = np.asarray(gravity, dtype=np.float64)
    if vector.shape != (3,) or not np.all(np.isfinite(vector)):
        raise RobotError(f'{where}: gravity must be three finite numbers [m/s^2], is {gravity!r}')
    return robot.with_gravity(vector)


def _urdf_path(yaml_path: Path, urdf: str) -> Path:
    beside = yaml_path.parent / urdf
    if beside.is_file():
        return beside
    return locate.find(urdf) or locate.find(f'urdf/{urdf}') or Path(urdf)


def _per_joint(robot: RobotModel, values: Mapping[str, Any] | None, where: str) -> FloatArray | None:
    """Return (n,) from a mapping joint -> number that must name every joint of the robot."""
    if values is None:
        return None
    missing = [j for j in robot.joints if j not in values]
    unknown = [j for j in values if j not in robot.joints]
    if missing or unknown:
        raise RobotError(f'{where}: missing joints {missing}, unknown joints {unknown}')
    return frozen([float(values[j]) for j in robot.joints])


def _drive(robot: RobotModel, content: Mapping[str, Any], where: str) -> Drive:
    gains = content.get('drive_gains')
    ratios = content.get('gear_ratios')
    coupling = content.get('coupling')
    try:
        return Drive(
            kind=str(content.get('effort_kind', 'torque')),
            gains=_per_joint(robot, gains, f'{where}: drive_gains'),
            gear_ratios=_per_joint(robot, ratios, f'{where}: gear_ratios'),
            coupling=None if coupling is None else _coupling(robot, coupling),
        )
    except (RobotError, UsageError) as error:
        raise RobotError(f'{where}: {error}') from None


def _coupling(robot: RobotModel, rows: Mapping[str, Mapping[str, float]]) -> FloatArray:
    """Return C (n, n), identity but for the given rows: motor motion = C q."""
    matrix = np.eye(robot.n)
    for motor, row in rows.items():
        i = robot.index(motor)
        matrix[i] = 0.0
        for joint, factor in row.items():
            matrix[i, robot.index(joint)] = float(factor)
    if abs(np.linalg.det(matrix)) < 1e-9:
        raise RobotError('coupling: the matrix is singular')
    return frozen(matrix)


def _limits(robot: RobotModel, changes: Mapping[str, Any], where: str) -> Limits:
    values = {k: np.array(getattr(robot.limits, k))
              for k in ('lower', 'upper', 'velocity', 'acceleration', 'effort')}
    for joint, limit in changes.items():
        i = robot.index(joint)
        for key, value in limit.items():
            if key == 'position':
                values['lower'][i], values['upper'][i] = (float(v) for v in value)
            elif key in ('velocity', 'acceleration', 'effort'):
                values[key][i] = float(value)
            else:
                raise RobotError(f'{where}: limits of {joint}: unknown key {key!r}; use position, '
                                 'velocity, acceleration, effort')
    return Limits(**{k: frozen(v) for k, v in values.items()})
