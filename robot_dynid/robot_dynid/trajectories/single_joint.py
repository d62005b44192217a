"""Motions of one joint while all others hold: sine swings, and sweeps at constant speed.

A swing is q(t) = c + a e(t) sin(2 pi f t) with an envelope e that rises like the quintic
rest-to-rest move over whole periods, stays at one, and falls again. At full envelope it is the
excitation of Wang et al., Sensors 2025, 25, 5749, eq. 30.

A sweep goes there and back. Its speed rises and falls like the quintic blend 10 s^3 - 15 s^4 + 6
s^5, so acceleration and jerk are continuous; in between is a plateau. At the same position of the
two plateaus gravity is equal and friction opposite: tau_f = (tau_there - tau_back) / 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.numbers import FREQUENCY, POSITION, SECONDS, SPEED, NumberRange
from robot_dynid.trajectories.limits import HEADROOM, MotionLimits
from robot_dynid.trajectories.trajectory import (
    QUINTIC_PEAKS,
    Motion,
    Parametric,
    Peaks,
    clipped,
    parameter,
)
from robot_dynid.types import FloatArray

#: periods over which the envelope of a swing rises or falls
RAMP_PERIODS = 1.0
AMPLITUDE = NumberRange(1e-9, 1e6, 'rad or m')
PERIODS = NumberRange(1, 10_000, whole=True)
#: largest magnitudes of the derivatives of order 0 to 4 of the quintic blend over unit time
BLEND_PEAKS = (1.0, *QUINTIC_PEAKS, 360.0)
#: instants per period at which the peaks of a swing are evaluated
PEAK_INSTANTS = 2048
#: shortest ramp [s] of a sweep that a controller with 50 points per second can follow
SHORTEST_RAMP = 0.2


@dataclass(frozen=True, eq=False)
class SingleJointMotion(Parametric):
    """A motion of the joint ``moving`` about ``position`` (n,) rad (m), where the others hold."""

    joints: tuple[str, ...]
    moving: str
    position: FloatArray = parameter(POSITION, 'n')

    def __post_init__(self) -> None:
        if self.moving not in self.joints:
            raise UsageError(f"the moving joint '{self.moving}' is not among "
                             f'{", ".join(self.joints)}')
        super().__post_init__()

    @property
    def index(self) -> int:
        """Index of the moving joint."""
        return self.joints.index(self.moving)

    @property
    def duration(self) -> float:
        """Duration, s."""
        raise NotImplementedError

    def _path(self, time: FloatArray) -> Sequence[FloatArray]:
        """Return the displacement of the joint and three derivatives at ``time`` (T,) s."""
        raise NotImplementedError

    def _bounds(self) -> Sequence[float]:
        """Return bounds of the magnitudes of the displacement and its derivatives."""
        raise NotImplementedError

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s."""
        t = clipped(time, self.duration)
        orders = np.zeros((4, len(t), len(self.joints)))
        orders[:, :, self.index] = self._path(t)
        orders[0] += self.position
        return Motion(*orders)

    def peaks(self) -> Peaks:
        """Return bounds that hold at every instant."""
        bounds = np.zeros((4, len(self.joints)))
        bounds[:, self.index] = self._bounds()
        return Peaks(self.position - bounds[0], self.position + bounds[0], *bounds[1:])

    def element(self) -> dict[str, Any] | None:
        """Return the joint, the pose it moves about, and what a subclass adds."""
        return {'joint': self.moving, 'configuration': dict(zip(
            self.joints, np.asarray(self.position).tolist(), strict=True))}


@dataclass(frozen=True, eq=False)
class SineSwing(SingleJointMotion):
    """A sine swing of one joint, faded in and out so that it starts at rest.

    ``amplitude`` rad (m); ``frequency`` Hz; ``periods`` at full amplitude, at least one.
    """

    amplitude: float = parameter(AMPLITUDE)
    frequency: float = parameter(FREQUENCY)
    periods: int = parameter(PERIODS, default=3)

    @property
    def duration(self) -> float:
        """Duration including rise and fall, s."""
        return (self.periods + 2.0 * RAMP_PERIODS) / self.frequency

    def _path(self, time: FloatArray) -> Sequence[FloatArray]:
        return [self.amplitude * self.frequency**order * unit
                for order, unit in enumerate(_unit_swing(time * self.frequency, self.periods))]

    def _bounds(self) -> Sequence[float]:
        return [self.amplitude, *(self.amplitude * self.frequency**order * peak
                                  for order, peak in enumerate(unit_peaks(), start=1))]

    def element(self) -> dict[str, Any] | None:
        """Return joint, amplitude, frequency, periods and the centre pose."""
        return {'type': 'sine', 'amplitude': self.amplitude, 'frequency': self.frequency,
                'periods': self.periods, **(super().element() or {})}


def fastest(limits: MotionLimits, joint: int, amplitude: float) -> float:
    """Return the highest frequency [Hz] of a swing within the limits of its joint."""
    bounds = (((1.0 - HEADROOM) * float(getattr(limits, name)[joint]) / (amplitude * peak), order)
              for order, (name, peak) in enumerate(
                  zip(('velocity', 'acceleration', 'jerk'), unit_peaks(), strict=True), start=1))
    return float(min(bound ** (1.0 / order) for bound, order in bounds if np.isfinite(bound)))


def _unit_swing(turns: FloatArray, periods: float) -> list[FloatArray]:
    """Return e sin and its first three derivatives with respect to ``turns`` (T,)."""
    total = periods + 2.0 * RAMP_PERIODS
    falling = turns > 0.5 * total
    s = np.minimum(np.where(falling, total - turns, turns) / RAMP_PERIODS, 1.0)
    side = np.where(falling, -1.0, 1.0) / RAMP_PERIODS
    envelope = [
        s**3 * (10.0 + s * (-15.0 + 6.0 * s)),
        side * 30.0 * s**2 * (1.0 - s) ** 2,
        side**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s),
        np.where(s >= 1.0, 0.0, side**3 * 60.0 * (1.0 + s * (-6.0 + 6.0 * s))),
    ]
    phase = 2.0 * np.pi * (turns - np.floor(turns))
    sine = [(2.0 * np.pi) ** k * np.sin(phase + 0.5 * np.pi * k) for k in range(4)]
    return [np.asarray(sum(comb(k, i) * envelope[i] * sine[k - i] for i in range(k + 1)))
            for k in range(4)]


@cache
def unit_peaks() -> tuple[float, float, float]:
    """Return bounds of velocity, acceleration and jerk of the swing of 1 rad at 1 Hz.

    Between two instants of the grid a function exceeds the larger of its values at most by half a
    step times a bound of its derivative.
    """
    count = int(PEAK_INSTANTS * (RAMP_PERIODS + 1.0))
    values = _unit_swing(np.linspace(0.0, RAMP_PERIODS + 1.0, count + 1), 2.0)
    bounds = [sum(comb(k, i) * BLEND_PEAKS[i] / RAMP_PERIODS**i * (2.0 * np.pi) ** (k - i)
                  for i in range(k + 1)) for k in range(5)]
    velocity, acceleration, jerk = (
        float(np.abs(values[k]).max() + 0.5 / PEAK_INSTANTS * bounds[k + 1]) for k in (1, 2, 3))
    return velocity, acceleration, jerk


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
class Sweep(SingleJointMotion):
    """A sweep of one joint; ``position`` is the middle of its path.

    ``speed`` rad/s (m/s) on the plateaus; ``ramp`` and ``plateau`` [s] are durations.
    """

    speed: float = parameter(SPEED)
    ramp: float = parameter(SECONDS)
    plateau: float = parameter(SECONDS)

    @property
    def travel(self) -> float:
        """Length of the path, rad (m)."""
        return self.speed * (self.ramp + self.plateau)

    @property
    def duration(self) -> float:
        """Duration there and back, s."""
        return 2.0 * (2.0 * self.ramp + self.plateau)

    def _path(self, time: FloatArray) -> Sequence[FloatArray]:
        whole = 2.0 * self.ramp + self.plateau
        back = time > whole
        u = np.where(back, time - whole, time)  # time since the current direction began
        falling = u > 0.5 * whole
        v = np.where(falling, whole - u, u)
        s = np.minimum(v / self.ramp, 1.0)
        path = self.speed * (self.ramp * s**4 * (2.5 + s * (-3.0 + s)) + np.maximum(
            v - self.ramp, 0.0))
        sign, side = np.where(falling, -1.0, 1.0), np.where(back, -1.0, 1.0)
        return [
            side * (np.where(falling, self.travel - path, path) - 0.5 * self.travel),
            side * self.speed * s**3 * (10.0 + s * (-15.0 + 6.0 * s)),
            side * sign * self.speed / self.ramp * 30.0 * s**2 * (1.0 - s) ** 2,
            side * self.speed / self.ramp**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s),
        ]

    def _bounds(self) -> Sequence[float]:
        return (0.5 * self.travel, self.speed, QUINTIC_PEAKS[0] * self.speed / self.ramp,
                QUINTIC_PEAKS[1] * self.speed / self.ramp**2)

    def plateaus(self, start: float = 0.0) -> tuple[Plateau, Plateau]:
        """Return the two plateaus of a sweep that starts at ``start`` s."""
        middle, reach = float(self.position[self.index]), 0.5 * self.speed * self.plateau
        there = start + self.ramp
        back = there + 0.5 * self.duration
        ends = middle - reach, middle + reach
        return (Plateau(self.moving, self.speed, there, there + self.plateau, *ends),
                Plateau(self.moving, -self.speed, back, back + self.plateau, *ends))

    def element(self) -> dict[str, Any] | None:
        """Return joint, speed, travel and the centre pose."""
        return {'type': 'sweep', 'speed': self.speed, 'travel': self.travel,
                **(super().element() or {})}


def shortest_ramp(limits: MotionLimits, joint: int, speed: float) -> float:
    """Return the shortest time [s] to ``speed`` within acceleration and jerk limits."""
    rise = QUINTIC_PEAKS[0] * speed / float(limits.acceleration[joint])
    jerk = float(limits.jerk[joint])
    bend = np.sqrt(QUINTIC_PEAKS[1] * speed / jerk) if np.isfinite(jerk) else 0.0
    return max(SHORTEST_RAMP, (1.0 + HEADROOM) * max(rise, float(bend)))
