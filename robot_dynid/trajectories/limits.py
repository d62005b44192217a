"""Limits of a motion, and the parts of them that a trajectory uses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from robot_dynid.errors import RobotError, UsageError
from robot_dynid.numbers import LARGEST, POSITION, shown
from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.trajectory import Peaks
from robot_dynid.types import FloatArray, frozen

SCALARS = ('velocity', 'acceleration', 'jerk', 'effort')
REQUIRED = ('lower', 'upper', 'velocity', 'acceleration')
#: part of the limits left to the controller, which interpolates between the points sent, and to
#: rounding; where limits decide a duration it is made longer by the same part
HEADROOM = 1e-3
Overrides = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class MotionLimits:
    """Limits of all joints.

    ``lower``, ``upper`` (n,) rad (m); ``velocity`` (n,) rad/s; ``acceleration`` (n,) rad/s^2;
    ``jerk`` (n,) rad/s^3 and ``effort`` (n,) N m (N), NaN where there is none.
    """

    joints: tuple[str, ...]
    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray
    effort: FloatArray

    @property
    def centre(self) -> FloatArray:
        """Middle of the position ranges (n,) rad (m)."""
        return 0.5 * (self.lower + self.upper)

    @property
    def half_range(self) -> FloatArray:
        """Half of the position ranges (n,) rad (m)."""
        return 0.5 * (self.upper - self.lower)

    def scaled(self, range_scale: float, speed_scale: float = 1.0) -> MotionLimits:
        """Return narrower limits.

        ``range_scale`` narrows every limit about the centre of the range; ``speed_scale`` slows
        down: velocity by s, acceleration by s^2, jerk by s^3. Efforts are kept. Both in (0, 1].
        """
        for name, value in (('scale', range_scale), ('speed scale', speed_scale)):
            if not 0.0 < value <= 1.0:
                raise UsageError(f'{name} must be above 0 and at most 1, got {value}')
        centre, half = self.centre, self.half_range
        return replace(
            self,
            lower=frozen(centre - range_scale * half),
            upper=frozen(centre + range_scale * half),
            velocity=frozen(range_scale * speed_scale * self.velocity),
            acceleration=frozen(range_scale * speed_scale**2 * self.acceleration),
            jerk=frozen(range_scale * speed_scale**3 * self.jerk),
        )

    def require(self, *names: str) -> None:
        """Raise RobotError naming every joint whose limit is unknown; limits are not invented."""
        missing = [
            f"'{joint}': {'position' if name in ('lower', 'upper') else name}"
            for name in names
            for joint, value in zip(self.joints, getattr(self, name))
            if not np.isfinite(value)
        ]
        if missing:
            raise RobotError(
                f'limits are missing for joint {", ".join(dict.fromkeys(missing))}; give them in '
                "the robot YAML or in the option 'limits: {joint: {position: [lower, upper], "
                "velocity: ..., acceleration: ...}}'"
            )


def motion_limits(robot: RobotModel, overrides: Overrides | None = None) -> MotionLimits:
    """Return the robot's limits, narrowed or completed by ``overrides`` (joint -> limit).

    Raises RobotError when position, velocity or acceleration of a joint stays unknown, and
    UsageError when an override is wrong or wider than a limit of the robot.
    """
    known = robot.limits
    values = {name: np.array(getattr(known, name), dtype=np.float64)
              for name in ('lower', 'upper', 'velocity', 'acceleration', 'effort')}
    for name in ('velocity', 'effort'):  # URDF demands these, so a zero stands for unknown
        values[name][values[name] == 0.0] = np.nan
    values['jerk'] = np.full(len(robot.joints), np.nan)
    found = MotionLimits(robot.joints, **{k: frozen(v) for k, v in values.items()})
    return narrowed(found, overrides)


def narrowed(limits: MotionLimits, overrides: Overrides | None) -> MotionLimits:
    """Return ``limits`` narrowed or completed by ``overrides`` (joint -> limit).

    Raises as `motion_limits` does.
    """
    values = {name: np.array(getattr(limits, name)) for name in ('lower', 'upper', *SCALARS)}
    for joint, given in _checked(overrides, limits.joints).items():
        for name, value in given.items():
            _apply(values, (limits.joints.index(joint), joint), name, value)
    result = MotionLimits(limits.joints, **{k: frozen(v) for k, v in values.items()})
    result.require(*REQUIRED)
    _check_sane(result)
    return result


def fractions_used(peaks: Peaks, limits: MotionLimits) -> dict[str, dict[str, float]]:
    """Return the fraction of each limit the continuous motion uses, per joint, 1 = all of it.

    Position: the distance from the centre of the range over half the range. Limits that are
    unknown (jerk) are left out.
    """
    half = np.where(limits.half_range > 0.0, limits.half_range, np.nan)
    reach = np.maximum(peaks.upper - limits.centre, limits.centre - peaks.lower)
    used = {'position': reach / half}
    for name in ('velocity', 'acceleration', 'jerk'):
        used[name] = getattr(peaks, name) / getattr(limits, name)
    return {
        joint: {name: float(v[i]) for name, v in used.items() if np.isfinite(v[i])}
        for i, joint in enumerate(limits.joints)
    }


def largest_gain(peaks: Peaks, limits: MotionLimits) -> FloatArray:
    """Return the factor (n,) at which a motion with ``peaks`` reaches each joint's first limit."""
    ratios = [limits.half_range / (0.5 * (peaks.upper - peaks.lower))]
    ratios += [getattr(limits, name) / getattr(peaks, name)
               for name in ('velocity', 'acceleration', 'jerk')]
    gain: FloatArray = (1.0 - HEADROOM) * np.nanmin(ratios, axis=0)
    return gain


def violations(peaks: Peaks, limits: MotionLimits) -> tuple[str, ...]:
    """Return one sentence per limit that the motion breaks; empty when all are kept."""
    found = []
    bounds = [
        ('position', peaks.lower, limits.lower, -1.0),
        ('position', peaks.upper, limits.upper, 1.0),
    ]
    bounds += [(f.name, getattr(peaks, f.name), getattr(limits, f.name), 1.0)
               for f in fields(Peaks) if f.name not in ('lower', 'upper')]
    for name, value, limit, side in bounds:
        for i in np.flatnonzero(side * (value - limit) > 0.0):
            found.append(f"{name} of joint '{limits.joints[i]}' reaches {value[i]:.6g}, "
                         f'its limit is {limit[i]:.6g}')
    return tuple(found)


def _checked(overrides: Overrides | None, joints: tuple[str, ...]) -> Overrides:
    if overrides is None:
        return {}
    if not isinstance(overrides, Mapping):
        raise UsageError("option 'limits' must map joint names to limits")
    for joint, limits in overrides.items():
        if joint not in joints:
            raise UsageError(f"option 'limits' names joint '{joint}'; the robot has "
                             f'{", ".join(joints)}')
        if not isinstance(limits, Mapping):
            raise UsageError(f"limits of joint '{joint}' must be a mapping such as velocity: 1.0")
    return overrides


def _apply(values: dict[str, FloatArray], joint: tuple[int, str], name: str, value: Any) -> None:
    index, label = joint
    if name not in ('position', *SCALARS):
        raise UsageError(f"unknown limit '{name}' of joint '{label}'; known: position, "
                         f'{", ".join(SCALARS)}')
    where = f"limit {name} of joint '{label}'"
    numbers = POSITION.array(value, (2,), where) if name == 'position' else \
        LARGEST.array(value, (), where)
    if name == 'position':
        wider = numbers[0] < values['lower'][index] or numbers[1] > values['upper'][index]
        known = f"{values['lower'][index]:.6g} to {values['upper'][index]:.6g}"
        values['lower'][index], values['upper'][index] = numbers
    else:
        wider = bool(numbers > values[name][index])
        known = f'{values[name][index]:.6g}'
        values[name][index] = float(numbers)
    if wider:
        raise UsageError(f"limit {name} of joint '{label}' is given as {shown(value)}, wider than "
                         f"the known {known}; give a narrower one")


def _check_sane(limits: MotionLimits) -> None:
    for i, joint in enumerate(limits.joints):
        if not limits.lower[i] < limits.upper[i]:
            raise RobotError(f"joint '{joint}' has no range to move in: lower limit "
                             f'{limits.lower[i]:.6g}, upper limit {limits.upper[i]:.6g}')
        for name in SCALARS:
            value = getattr(limits, name)[i]
            if value <= 0.0:
                raise RobotError(f"{name} limit of joint '{joint}' is {value:.6g}; it must be "
                                 'positive (a zero in the URDF means unknown: give the real one '
                                 'in the robot YAML)')
