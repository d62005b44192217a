"""What the simulated robot knows and the identification has to find: friction, rotors, noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.errors import RobotError
from robot_dynid.model import locate
from robot_dynid.model.robot import RobotModel
from robot_dynid.model.robot_file import read_yaml
from robot_dynid.types import FloatArray, frozen


@dataclass(frozen=True)
class Noise:
    """How the sensors spoil the true state.

    ``position_step`` rad or m per encoder count (0: no quantisation); ``position`` and
    ``velocity`` standard deviations in rad, rad/s (m, m/s); ``effort`` standard deviation as a
    fraction of the joint's effort limit.
    """

    position_step: float = 0.0
    position: float = 0.0
    velocity: float = 0.0
    effort: float = 0.0


@dataclass(frozen=True, eq=False)
class Truth:
    """True friction and rotor inertia per motor, on the joint side, each (n,).

    ``viscous`` N m s/rad, ``coulomb`` N m, ``rotor_inertia`` kg m^2 (N s/m, N, kg for prismatic
    joints). A motor turns with its joint, or with several where the robot has a coupling matrix.
    """

    viscous: FloatArray
    coulomb: FloatArray
    rotor_inertia: FloatArray
    noise: Noise = field(default_factory=Noise)

    @classmethod
    def ideal(cls, n: int) -> Truth:
        """Return n joints without friction, rotors and noise."""
        zero = frozen(np.zeros(n))
        return cls(zero, zero, zero)


def load_truth(robot: RobotModel, source: str | Path | None = None) -> Truth:
    """Read the section ``simulation`` of the YAML file of ``robot`` (or of the file ``source``).

    Robots without such a section are ideal. Raises RobotError for unknown joints or keys and for
    numbers that are negative or not finite.
    """
    path = Path(source) if source else locate.find(f'config/robots/{robot.name}.yaml')
    section = read_yaml(path).get('simulation') if path else None
    if not section:
        return Truth.ideal(robot.n)
    where = f'{path}: simulation'
    noise = Noise(**_numbers(section.get('noise') or {}, Noise.__dataclass_fields__, where))
    keys = [f.name for f in fields(Truth) if f.name != 'noise']
    values = {key: np.zeros(robot.n) for key in keys}
    for joint, entry in section.items():
        if joint == 'noise':
            continue
        if joint not in robot.joints:
            raise RobotError(f'{where}: no joint {joint!r}; there are {", ".join(robot.joints)}')
        for key, value in _numbers(entry, keys, f'{where}: {joint}').items():
            values[key][robot.index(joint)] = value
    return Truth(noise=noise, **{key: frozen(value) for key, value in values.items()})


def _numbers(entry: Mapping[str, Any], known: Any, where: str) -> dict[str, float]:
    numbers = {}
    for key, value in entry.items():
        if key not in known:
            raise RobotError(f'{where}: unknown key {key!r}; use {", ".join(known)}')
        number = float(value)
        if not np.isfinite(number) or number < 0.0:
            raise RobotError(f'{where}: {key} is {value}; it must be finite and not negative')
        numbers[key] = number
    return numbers
