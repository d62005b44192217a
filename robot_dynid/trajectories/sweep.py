"""Sweep of one joint there and back at constant speed, while all others hold.

The speed rises and falls like the quintic blend 10 s^3 - 15 s^4 + 6 s^5, so acceleration and jerk
are continuous; in between is a plateau. At one position of the two plateaus gravity is the same
and the friction opposite: tau_f = (tau_there - tau_back) / 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.numbers import POSITION, SECONDS, SPEED
from robot_dynid.trajectories.limits import HEADROOM, MotionLimits
from robot_dynid.trajectories.trajectory import (
    QUINTIC_PEAKS,
    Motion,
    Peaks,
    clipped,
    joint_names,
    vector,
)
from robot_dynid.types import FloatArray

#: s; a controller that gets 50 points per second still sees the ramp
SHORTEST_RAMP = 0.2


@dataclass(frozen=True)
class Plateau:
    """A stretch of constant speed.

    ``speed`` rad/s (m/s), negative on the way back; ``begin``, ``end`` s; between ``lower`` and
    ``upper`` rad (m).
    """

    joint: str
    speed: float
    begin: float
    end: float
    lower: float
    upper: float


@dataclass(frozen=True, eq=False)
class Sweep:
    """The sweep of one joint.

    ``moving`` its name; ``position`` (n,) rad (m), where the others hold and the middle of its
    own path; ``speed`` rad/s (m/s) on the plateaus; ``ramp``, ``plateau`` s, their lengths.
    """

    joints: tuple[str, ...]
    moving: str
    position: FloatArray
    speed: float
    ramp: float
    plateau: float

    def __post_init__(self) -> None:
        if self.moving not in self.joints:
            raise UsageError(f"the sweeping joint '{self.moving}' is none of "
                             f'{", ".join(self.joints)}')
        if np.shape(self.position) != (len(self.joints),):
            raise UsageError(f'a sweep of {len(self.joints)} joints needs as many positions')
        if not (self.speed > 0.0 and self.ramp > 0.0 and self.plateau > 0.0):
            raise UsageError(f"the sweep of joint '{self.moving}' needs positive speed, ramp and "
                             'plateau')

    @property
    def index(self) -> int:
        """Position of the sweeping joint among the joints."""
        return self.joints.index(self.moving)

    @property
    def travel(self) -> float:
        """Length of the path, rad (m)."""
        return self.speed * (self.ramp + self.plateau)

    @property
    def duration(self) -> float:
        """Length there and back, s."""
        return 2.0 * (2.0 * self.ramp + self.plateau)

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s."""
        t = clipped(time, self.duration)
        half = 0.5 * self.duration
        back = t > half
        side = np.where(back, -1.0, 1.0)
        orders = []
        for order, own in enumerate(self._way(np.where(back, t - half, t))):
            values = np.zeros((len(t), len(self.joints)))
            values[:, self.index] = side * (own - 0.5 * self.travel if order == 0 else own)
            orders.append(values)
        return Motion(self.position + orders[0], *orders[1:])

    def _way(self, u: FloatArray) -> list[FloatArray]:
        """Return path and its derivatives at ``u`` (T,) s of the way there."""
        whole = 2.0 * self.ramp + self.plateau
        falling = u > 0.5 * whole
        v = np.where(falling, whole - u, u)
        s = np.minimum(v / self.ramp, 1.0)
        path = self.speed * (self.ramp * s**4 * (2.5 + s * (-3.0 + s)) + np.maximum(
            v - self.ramp, 0.0))
        sign = np.where(falling, -1.0, 1.0)
        return [
            np.where(falling, self.travel - path, path),
            self.speed * s**3 * (10.0 + s * (-15.0 + 6.0 * s)),
            sign * self.speed / self.ramp * 30.0 * s**2 * (1.0 - s) ** 2,
            self.speed / self.ramp**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s),
        ]

    def peaks(self) -> Peaks:
        """Return the exact extremes."""
        reach, velocity, acceleration, jerk = (np.zeros(len(self.joints)) for _ in range(4))
        reach[self.index], velocity[self.index] = 0.5 * self.travel, self.speed
        acceleration[self.index] = QUINTIC_PEAKS[0] * self.speed / self.ramp
        jerk[self.index] = QUINTIC_PEAKS[1] * self.speed / self.ramp**2
        return Peaks(self.position - reach, self.position + reach, velocity, acceleration, jerk)

    def plateaus(self, start: float = 0.0) -> tuple[Plateau, Plateau]:
        """Return the two plateaus of a sweep that starts at ``start`` s."""
        middle, reach = float(self.position[self.index]), 0.5 * self.speed * self.plateau
        there = start + self.ramp
        back = there + 0.5 * self.duration
        ends = middle - reach, middle + reach
        return (Plateau(self.moving, self.speed, there, there + self.plateau, *ends),
                Plateau(self.moving, -self.speed, back, back + self.plateau, *ends))

    def parameters(self) -> dict[str, Any]:
        """Return the sweep in plain types."""
        return {
            'joints': list(self.joints), 'moving': self.moving,
            'position': np.asarray(self.position).tolist(), 'speed': float(self.speed),
            'ramp': float(self.ramp), 'plateau': float(self.plateau),
        }

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Sweep:
        """Rebuild the sweep; raises UsageError when a parameter is missing or wrong."""
        joints = joint_names(parameters)
        speed, ramp, plateau = (float(vector(parameters, name, (), allowed)) for name, allowed in (
            ('speed', SPEED), ('ramp', SECONDS), ('plateau', SECONDS)))
        return cls(joints, str(parameters.get('moving', '')),
                   vector(parameters, 'position', (len(joints),), POSITION), speed, ramp, plateau)


def shortest_ramp(limits: MotionLimits, joint: int, speed: float) -> float:
    """Return the shortest time [s] to ``speed`` within acceleration and jerk limits."""
    rise = QUINTIC_PEAKS[0] * speed / float(limits.acceleration[joint])
    jerk = float(limits.jerk[joint])
    bend = np.sqrt(QUINTIC_PEAKS[1] * speed / jerk) if np.isfinite(jerk) else 0.0
    return max(SHORTEST_RAMP, (1.0 + HEADROOM) * max(rise, float(bend)))
