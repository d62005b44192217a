"""Interface of trajectories, and the elementary one: a quintic move between two rests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.numbers import POSITION, SECONDS, NumberRange
from robot_dynid.types import FloatArray

# Peaks of the rest-to-rest quintic 10 s^3 - 15 s^4 + 6 s^5: velocity 15/8 at s = 1/2,
# acceleration 10/sqrt(3) at s = 1/2 +- sqrt(3)/6, jerk 60 at both ends.
QUINTIC_PEAKS = (15.0 / 8.0, 10.0 / np.sqrt(3.0), 60.0)


@dataclass(frozen=True, eq=False)
class Motion:
    """A trajectory at T instants.

    ``position`` (T, n) rad (m for prismatic joints), then its derivatives with time:
    ``velocity``, ``acceleration`` and ``jerk``, each (T, n).
    """

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray


@dataclass(frozen=True, eq=False)
class Peaks:
    """Bounds that the continuous motion never leaves, not even between samples.

    ``lower``, ``upper`` (n,) rad or m; ``velocity``, ``acceleration``, ``jerk`` (n,) largest
    magnitudes.
    """

    lower: FloatArray
    upper: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    jerk: FloatArray


class Trajectory(Protocol):
    """A motion of named joints which starts and ends at rest."""

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the n joints, the order of every column."""

    @property
    def duration(self) -> float:
        """Length in seconds."""

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s, held at both ends outside [0, duration]."""

    def peaks(self) -> Peaks:
        """Return bounds of the continuous motion."""

    def parameters(self) -> dict[str, Any]:
        """Return the arguments of `from_parameters` as plain numbers, lists and strings."""

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Trajectory:
        """Rebuild the trajectory; raises UsageError when a parameter is missing or wrong."""


def clipped(time: ArrayLike, duration: float) -> FloatArray:
    """Return ``time`` (T,) s limited to [0, duration]."""
    return np.clip(np.atleast_1d(np.asarray(time, dtype=np.float64)), 0.0, duration)


def vector(
    parameters: Mapping[str, Any], name: str, shape: tuple[int, ...], allowed: NumberRange
) -> FloatArray:
    """Return the parameter ``name``, finite numbers of a range, with ``shape``, such as (n,).

    Raises UsageError that names the parameter when it is missing or something else.
    """
    if name not in parameters:
        raise UsageError(f"trajectory parameter '{name}' is missing")
    return allowed.array(parameters[name], shape, f"trajectory parameter '{name}'")


def joint_names(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the joint names; raises UsageError when there are none, or one occurs twice."""
    names = parameters.get('joints')
    if not isinstance(names, (list, tuple)) or not names:
        raise UsageError("trajectory parameter 'joints' must list the joint names")
    joints = tuple(str(name) for name in names)
    twice = sorted(name for name, count in Counter(joints).items() if count > 1)
    if twice:
        raise UsageError(f"joint '{twice[0]}' occurs twice in the trajectory")
    return joints


@dataclass(frozen=True, eq=False)
class QuinticMove:
    """A straight move in joint space between two rests, a fifth-order polynomial in time.

    ``start``, ``goal`` (n,) rad or m; ``duration`` s.
    """

    joints: tuple[str, ...]
    start: FloatArray
    goal: FloatArray
    duration: float

    def __post_init__(self) -> None:
        n = (len(self.joints),)
        if np.shape(self.start) != n or np.shape(self.goal) != n:
            raise UsageError(f'a move of {n[0]} joints needs {n[0]} positions at both ends')
        if not (np.isfinite(self.duration) and self.duration > 0.0):
            raise UsageError(f'duration of a move must be positive, got {self.duration} s')

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s."""
        s = (clipped(time, self.duration) / self.duration)[:, None]
        step = (self.goal - self.start)[None, :]
        blend = s**3 * (10.0 + s * (-15.0 + 6.0 * s))
        rate = 30.0 * s**2 * (1.0 - s) ** 2 / self.duration
        bend = 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s) / self.duration**2
        jerk = 60.0 * (1.0 + s * (-6.0 + 6.0 * s)) / self.duration**3
        return Motion(self.start + blend * step, rate * step, bend * step, jerk * step)

    def peaks(self) -> Peaks:
        """Return the exact extremes of the polynomial."""
        step = np.abs(self.goal - self.start)
        velocity, acceleration, jerk = (
            peak * step / self.duration ** (order + 1)
            for order, peak in enumerate(QUINTIC_PEAKS)
        )
        lower, upper = np.minimum(self.start, self.goal), np.maximum(self.start, self.goal)
        return Peaks(lower, upper, velocity, acceleration, jerk)

    def parameters(self) -> dict[str, Any]:
        """Return joints, start, goal and duration in plain types."""
        return {
            'joints': list(self.joints),
            'start': self.start.tolist(),
            'goal': self.goal.tolist(),
            'duration': float(self.duration),
        }

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> QuinticMove:
        """Rebuild the move; raises UsageError when a parameter is missing or wrong."""
        joints = joint_names(parameters)
        n = (len(joints),)
        start, goal = (vector(parameters, end, n, POSITION) for end in ('start', 'goal'))
        return cls(joints, start, goal, float(vector(parameters, 'duration', (), SECONDS)))
