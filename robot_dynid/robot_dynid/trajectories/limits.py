"""Limits of a motion, the fraction of them a trajectory uses, and moves as fast as they allow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from robot_dynid.document import joints_named
from robot_dynid.errors import RobotError, UsageError
from robot_dynid.numbers import LARGEST, POSITION, shown
from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.trajectory import QUINTIC_PEAKS, Peaks, QuinticMove
from robot_dynid.types import FloatArray, frozen

SCALARS = ('velocity', 'acceleration', 'jerk', 'effort')
REQUIRED = ('lower', 'upper', 'velocity', 'acceleration')
#: share of the limits reserved for the controller, which interpolates between the points sent, and
#: for rounding; a duration that follows from limits is lengthened by the same share
HEADROOM = 1e-3
#: shortest move [s] that a controller can follow
SHORTEST_MOVE = 0.5
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

        ``range_scale`` scales every limit about the centre of the range; ``speed_scale`` s slows
        down: velocity by s, acceleration by s^2, jerk by s^3. Efforts are unchanged. Both in (0,
        1].
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
        """Raise RobotError naming every joint with an unknown limit among ``names``."""
        missing = [
            f"'{joint}': {'position' if name in ('lower', 'upper') else name}"
            for name in names
            for joint, value in zip(self.joints, getattr(self, name))
            if not np.isfinite(value)
        ]
        if missing:
            raise RobotError(
                f'limits are missing for {joints_named(list(dict.fromkeys(missing)))}; give them '
                "in the robot YAML or in the option 'limits: {joint: {position: [lower, upper], "
                "velocity: ..., acceleration: ...}}'"
            )


def motion_limits(robot: RobotModel, overrides: Overrides | None = None) -> MotionLimits:
    """Return the robot's limits, narrowed or completed by ``overrides`` (joint -> limit).

    Raises RobotError if position, velocity or acceleration of a joint stays unknown, and
    UsageError if an override is wrong or wider than a limit of the robot.
    """
    values = {name: np.array(getattr(robot.limits, name), dtype=np.float64)
              for name in ('lower', 'upper', 'velocity', 'acceleration', 'effort')}
    for name in ('velocity', 'effort'):  # URDF requires these, so zero means unknown
        values[name][values[name] == 0.0] = np.nan
    values['jerk'] = np.full(len(robot.joints), np.nan)
    limits = MotionLimits(robot.joints, **{k: frozen(v) for k, v in values.items()})
    return narrow_limits(limits, overrides)


def narrow_limits(limits: MotionLimits, overrides: Overrides | None) -> MotionLimits:
    """Return ``limits`` narrowed or completed by ``overrides`` (joint -> limit).

    Raises as `motion_limits` does.
    """
    values = {name: np.array(getattr(limits, name)) for name in ('lower', 'upper', *SCALARS)}
    given = {} if overrides is None else overrides
    if not isinstance(given, Mapping):
        raise UsageError("option 'limits' must map joint names to limits")
    for joint, changes in given.items():
        if joint not in limits.joints:
            raise UsageError(f"option 'limits' names joint '{joint}'; the robot has "
                             f'{", ".join(limits.joints)}')
        if not isinstance(changes, Mapping):
            raise UsageError(f"limits of joint '{joint}' must be a mapping such as velocity: 1.0")
        for name, value in changes.items():
            _narrow(values, (limits.joints.index(joint), joint), name, value)
    result = MotionLimits(limits.joints, **{k: frozen(v) for k, v in values.items()})
    result.require(*REQUIRED)
    _check_sane(result)
    return result


def _narrow(values: dict[str, FloatArray], joint: tuple[int, str], name: str, value: Any) -> None:
    index, label = joint
    if name not in ('position', *SCALARS):
        raise UsageError(f"unknown limit '{name}' of joint '{label}'; choose one of position, "
                         f'{", ".join(SCALARS)}')
    where = f"limit {name} of joint '{label}'"
    if name == 'position':
        new = dict(zip(('lower', 'upper'), POSITION.array(value, (2,), where), strict=True))
    else:
        new = {name: LARGEST.read(value, where)}
    old = {key: values[key][index] for key in new}
    if any(new[key] < old[key] if key == 'lower' else new[key] > old[key] for key in new):
        robot_limit = ' to '.join(f'{limit:.6g}' for limit in old.values())
        raise UsageError(f'{where} is {shown(value)}, wider than the {robot_limit} of the robot: '
                         'give a narrower one')
    for key, limit in new.items():
        values[key][index] = limit


def fractions_used(peaks: Peaks, limits: MotionLimits) -> dict[str, dict[str, float]]:
    """Return the fraction of each limit that the continuous motion uses, by joint and limit.

    Position: the distance from the centre of the range over half the range. Unknown limits (jerk)
    are omitted.
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
    """Return one sentence per limit that the motion exceeds."""
    sentences = []
    for f in fields(Peaks):
        value, limit = getattr(peaks, f.name), getattr(limits, f.name)
        name = 'position' if f.name in ('lower', 'upper') else f.name
        sentences += [f"{name} of joint '{limits.joints[i]}' reaches {value[i]:.6g}, its limit is "
                   f'{limit[i]:.6g}'
                   for i in np.flatnonzero(value < limit if f.name == 'lower' else value > limit)]
    return tuple(sentences)


def quintic_move(
    joints: tuple[str, ...],
    ends: tuple[FloatArray, FloatArray],
    limits: MotionLimits,
    shortest: float = SHORTEST_MOVE,
) -> QuinticMove:
    """Return the fastest straight move within velocity, acceleration and jerk limits.

    ``ends`` are start and goal, (n,) rad (m) each; ``shortest`` [s] is the least duration. For
    slow moves, use slow limits (`MotionLimits.scaled`). Raises UsageError if an end is not finite.
    """
    start, goal = (np.asarray(end, dtype=np.float64) for end in ends)
    bad = np.flatnonzero(~np.isfinite(start + goal))
    if bad.size:
        raise UsageError(f"start or goal of joint '{joints[bad[0]]}' is not finite")
    step = np.abs(goal - start)
    durations = [shortest]
    for order, (name, peak) in enumerate(
        zip(('velocity', 'acceleration', 'jerk'), QUINTIC_PEAKS), start=1
    ):
        limit = getattr(limits, name)
        needed = (peak * step / limit) ** (1.0 / order) * (1.0 + HEADROOM)
        durations.append(float(np.max(needed, initial=0.0, where=np.isfinite(limit))))
    return QuinticMove(joints, frozen(start), frozen(goal), max(durations))


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
