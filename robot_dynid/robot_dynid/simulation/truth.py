"""True parameters of a simulated robot: friction, rotors, drives, sensor noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from robot_dynid.effects import RigidLinks, axes_of
from robot_dynid.errors import RobotError, reported
from robot_dynid.numbers import AMOUNT, shown
from robot_dynid.reduction import Reduction
from robot_dynid.robot import locate
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import read_yaml
from robot_dynid.types import FloatArray, frozen


@dataclass(frozen=True)
class Noise:
    """Noise and resolution of the sensors.

    ``position_step`` rad or m per encoder count (0: no quantisation), ``motor_position_step`` that
    of the motors' encoders, on the joint side; ``position`` and ``velocity`` standard deviations
    in rad, rad/s (m, m/s); ``effort`` standard deviation as a fraction of the joint's effort
    limit.
    """

    position_step: float = 0.0
    motor_position_step: float = 0.0
    position: float = 0.0
    velocity: float = 0.0
    effort: float = 0.0


@dataclass(frozen=True)
class HarmonicDrive:
    """Parameters of an elastic gear on the joint side (m and N for prismatic joints).

    ``gear_ratio`` motor turns per joint turn; ``stiffness`` K N m/rad; ``damping`` D N m s/rad;
    ``kinematic_error`` A rad; ``hysteresis`` N m, half the width of the loop, and
    ``hysteresis_length`` rad, the deflection over which it reverses. Raises RobotError for invalid
    values.
    """

    gear_ratio: float
    stiffness: float
    damping: float = 0.0
    kinematic_error: float = 0.0
    hysteresis: float = 0.0
    hysteresis_length: float = 2e-4

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if not np.isfinite(value) or value < 0.0:
                raise RobotError(f'drive: {entry.name} must be finite and at least zero, is '
                                 f'{value}')
        for name in ('gear_ratio', 'stiffness', 'hysteresis_length'):
            if getattr(self, name) == 0.0:
                raise RobotError(f'drive: {name} must be positive')
        if 2.0 * self.gear_ratio * self.kinematic_error >= 1.0:
            raise RobotError(f'drive: kinematic_error must be below {0.5 / self.gear_ratio:g} rad '
                             f'with gear_ratio {self.gear_ratio:g}, is {self.kinematic_error:g}')


@dataclass(frozen=True, eq=False)
class Truth:
    """True friction and rotor inertia per motor, on the joint side, each (n,).

    ``viscous`` N m s/rad, ``coulomb`` N m, ``rotor_inertia`` kg m^2 (N s/m, N, kg for prismatic
    joints). A motor turns with its joint, or with several if the robot has a coupling matrix.
    ``stribeck`` N m is the dry friction above ``coulomb`` at rest; it decays with the speed v like
    ``1 - tanh(v / stribeck_speed)`` (rad/s); None: no joint has it. ``presliding`` rad (m) is the
    travel over which dry friction builds up; zero: it sticks without travel. ``drives`` are the
    elastic gears, by joint.
    """

    viscous: FloatArray
    coulomb: FloatArray
    rotor_inertia: FloatArray
    noise: Noise = field(default_factory=Noise)
    stribeck: FloatArray | None = None
    stribeck_speed: FloatArray | None = None
    presliding: FloatArray | None = None
    drives: Mapping[str, HarmonicDrive] = field(default_factory=dict)

    def dry(self, speed: FloatArray) -> FloatArray:
        """Return the dry friction (n,) [N m] of motors that turn at ``speed`` (n,)."""
        if self.stribeck is None or self.stribeck_speed is None:
            return self.coulomb
        fading = 1.0 - np.tanh(np.abs(speed) / self.stribeck_speed)
        return np.asarray(self.coulomb + self.stribeck * fading)

    @classmethod
    def ideal(cls, n: int) -> Truth:
        """Return n joints without friction, rotors and noise."""
        zero = frozen(np.zeros(n))
        return cls(zero, zero, zero)


#: numeric entries of a joint
NUMBERS = ('viscous', 'coulomb', 'rotor_inertia', 'stribeck', 'stribeck_speed', 'presliding')


@reported
def load_truth(robot: RobotModel, source: str | Path | None = None) -> Truth:
    """Load the section ``simulation`` of the YAML file of ``robot`` (or of the file ``source``).

    ``source`` may also be the name of a file in config/simulation. Robots without the section are
    ideal. Raises RobotError for unknown joints or keys, and for negative or non-finite numbers.
    """
    path = _file(source) if source else locate.find(f'config/robots/{robot.name}.yaml')
    section = read_yaml(path).get('simulation') if path else None
    if not section:
        return Truth.ideal(robot.n)
    where = f'{path}: simulation'
    if not isinstance(section, Mapping):
        raise RobotError(f'{where} must be a mapping of joints, is {shown(section)}')
    noise = Noise(**_numbers(section.get('noise') or {}, Noise.__dataclass_fields__, where))
    values = {key: np.zeros(robot.n) for key in NUMBERS}
    drives = {}
    for joint, entry in section.items():
        if joint == 'noise':
            continue
        if joint not in robot.joints:
            raise RobotError(f'{where}: no joint {joint!r}; there are {", ".join(robot.joints)}')
        joint_path, i = f'{where}: {joint}', robot.index(joint)
        if not isinstance(entry, Mapping):
            raise RobotError(f'{joint_path} must be a mapping, is {shown(entry)}')
        drive = entry.get('drive')
        if drive is not None:
            ratios = robot.drive.gear_ratios
            drives[joint] = _drive(drive, None if ratios is None else ratios[i], joint_path)
        numbers = {key: value for key, value in entry.items() if key != 'drive'}
        for key, value in _numbers(numbers, (*NUMBERS, 'drive'), joint_path).items():
            values[key][i] = value
        if (values['stribeck'][i] > 0.0) != (values['stribeck_speed'][i] > 0.0):
            raise RobotError(f'{joint_path}: stribeck and stribeck_speed belong together')
    fading = np.any(values['stribeck'] > 0.0)
    values['stribeck_speed'][values['stribeck'] == 0.0] = 1.0
    used = {*NUMBERS[:3], *(NUMBERS[3:5] if fading else ()),
            *(('presliding',) if np.any(values['presliding'] > 0.0) else ())}
    return Truth(noise=noise, drives=drives, **{key: frozen(values[key]) for key in used})


def _drive(content: Any, ratio: float | None, where: str) -> HarmonicDrive:
    """Read a drive; the robot's gear ``ratio`` is the default of ``content``."""
    given = _numbers(content, HarmonicDrive.__dataclass_fields__, f'{where}: drive')
    if ratio is not None:
        given.setdefault('gear_ratio', abs(ratio))
    for key in ('gear_ratio', 'stiffness'):
        if key not in given:
            raise RobotError(f'{where}: drive: {key} is missing')
    try:
        return HarmonicDrive(**given)
    except RobotError as error:
        raise RobotError(f'{where}: {error}') from None


def _file(source: str | Path) -> Path:
    """Return the path of a file, given as path or by its name in config/simulation."""
    path = Path(source)
    return path if path.is_file() else locate.find(f'config/simulation/{source}.yaml') or path


def _numbers(entry: Mapping[str, Any], keys: Any, where: str) -> dict[str, float]:
    if not isinstance(entry, Mapping):
        raise RobotError(f'{where} must be a mapping, is {shown(entry)}')
    numbers = {}
    for key, value in entry.items():
        if key not in keys:
            raise RobotError(f'{where}: unknown key {key!r}; use {", ".join(keys)}')
        numbers[key] = AMOUNT.read(value, f'{where}: {key}', RobotError)
    return numbers


def true_base(robot: RobotModel, truth: Truth, reduction: Reduction) -> FloatArray:
    """Return the base parameters (b,) of nominal links, true rotors, gears and friction."""
    standard: dict[str, float] = dict(zip(RigidLinks(robot).names, robot.nominal.ravel()))
    labels = axes_of(robot).labels
    for i in range(robot.n):
        label = f'm{i + 1}' if f'm{i + 1}' in labels else str(i + 1)
        standard[f'Ia{label}'] = truth.rotor_inertia[i]
        standard[f'fv{label}'] = truth.viscous[i]
        standard[f'fc{label}'] = truth.coulomb[i]
        if truth.stribeck is not None:
            standard[f'fs{label}'] = truth.stribeck[i]
    for joint, drive in truth.drives.items():
        standard[f'K{robot.index(joint) + 1}'] = drive.stiffness
        standard[f'D{robot.index(joint) + 1}'] = drive.damping
    return reduction.base([standard.get(name, 0.0) for name in reduction.standard])


def distance(values: FloatArray, true: FloatArray) -> float:
    """Return the relative distance |values - true| / |true| of two parameter vectors (b,)."""
    return float(np.linalg.norm(values - true) / np.linalg.norm(true))
