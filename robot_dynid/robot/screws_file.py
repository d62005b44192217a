"""The ``screws`` list of a robot YAML file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from robot_dynid.errors import RobotError
from robot_dynid.robot.inertia import parameters_from_com, symmetric
from robot_dynid.robot.screws import Screw
from robot_dynid.types import FloatArray, frozen

KEYS = ('name', 'type', 'axis', 'origin', 'mass', 'com', 'inertia', 'parent', 'link')
MOMENTS = ('ixx', 'ixy', 'iyy', 'ixz', 'iyz', 'izz')


def vector(value: Any, count: int, where: str) -> FloatArray:
    """Return finite numbers (count,); raises RobotError that begins with ``where``."""
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (count,) or not np.all(np.isfinite(numbers)):
        raise RobotError(f'{where} must be a list of {count} finite numbers, is {value!r}')
    return frozen(numbers)


def number(value: Any, where: str) -> float:
    """Return one finite number; raises RobotError that begins with ``where``."""
    try:
        converted = np.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        converted = np.nan
    if not np.isfinite(converted):
        raise RobotError(f'{where} must be a finite number, is {value!r}')
    return converted


def screws_from_yaml(entries: Any, where: str) -> list[Screw]:
    """Return the screws of a list of mappings.

    Keys are ``name``, ``type`` (default revolute), ``axis`` and ``origin`` [m] in the base frame,
    and of the link ``mass`` [kg], ``com`` [m] and ``inertia`` {ixx, ixy, iyy, ixz, iyz, izz} about
    it [kg m^2], both in the screw-aligned link frame; ``parent`` (default: the entry before) and
    ``link``. Raises RobotError naming the entry.
    """
    if not isinstance(entries, list) or not entries:
        raise RobotError(f'{where} must be a list of joints, each with name, axis and origin')
    return [_screw(entry, f'{where}[{i}]') for i, entry in enumerate(entries)]


def _screw(entry: Any, where: str) -> Screw:
    if not isinstance(entry, Mapping):
        raise RobotError(f'{where} must be a mapping with name, axis and origin, is {entry!r}')
    where = f'{where} ({entry.get("name", "no name")})'
    unknown = [str(key) for key in entry if key not in KEYS]
    if unknown:
        raise RobotError(f'{where}: unknown key {", ".join(unknown)}; known are {", ".join(KEYS)}')
    missing = [key for key in ('name', 'axis', 'origin') if key not in entry]
    if missing:
        raise RobotError(f'{where}: {", ".join(missing)} is missing')
    return Screw(
        name=str(entry['name']), kind=str(entry.get('type', 'revolute')),
        axis=vector(entry['axis'], 3, f'{where}: axis'),
        origin=vector(entry['origin'], 3, f'{where}: origin'),
        parameters=_parameters(entry, where),
        parent=str(entry.get('parent') or ''), link=str(entry.get('link') or ''),
    )


def _parameters(entry: Mapping[str, Any], where: str) -> FloatArray | None:
    """Return the standard parameters (10,) of the link, None when its mass is not stated."""
    if 'mass' not in entry:
        if 'com' in entry or 'inertia' in entry:
            raise RobotError(f'{where}: com and inertia need mass')
        return None
    mass = number(entry['mass'], f'{where}: mass')
    if mass <= 0.0:
        raise RobotError(f'{where}: mass is {mass:g} kg; it must be positive (remove it if the '
                         'link has no mass)')
    com = vector(entry.get('com', (0.0, 0.0, 0.0)), 3, f'{where}: com')
    moments = entry.get('inertia') or {}
    if not isinstance(moments, Mapping) or any(key not in MOMENTS for key in moments):
        raise RobotError(f'{where}: inertia must be a mapping of {", ".join(MOMENTS)}')
    six = [number(moments.get(key, 0.0), f'{where}: inertia: {key}') for key in MOMENTS]
    return parameters_from_com(mass, com, symmetric(six))
