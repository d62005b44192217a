"""Sine swing of one joint while all others hold, faded in and out so that it starts at rest.

q(t) = c + a e(t) sin(2 pi f t) with an envelope e that rises like the quintic rest-to-rest move
over whole periods, stays at one, and falls again. Between the ends of the envelope it is the
excitation of Wang et al., Sensors 2025, 25, 5749, eq. 30.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.errors import UsageError
from robot_dynid.numbers import FREQUENCY, POSITION, NumberRange
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

#: periods over which the envelope rises and falls
RAMP = 1.0
AMPLITUDE = NumberRange(1e-9, 1e6, 'rad or m')
PERIODS = NumberRange(1, 10_000, whole=True)
# Largest magnitudes of the quintic blend's derivatives of order 0 to 4 over unit time.
BLEND_PEAKS = (1.0, *QUINTIC_PEAKS, 360.0)
# Instants per period at which peaks are looked for.
GRID = 2048


@dataclass(frozen=True, eq=False)
class SineSwing:
    """The swing of one joint.

    ``moving`` its name; ``position`` (n,) rad (m), where the others hold and its own centre;
    ``amplitude`` rad (m); ``frequency`` Hz; ``periods`` at full amplitude, at least one.
    """

    joints: tuple[str, ...]
    moving: str
    position: FloatArray
    amplitude: float
    frequency: float
    periods: int = 3

    def __post_init__(self) -> None:
        if self.moving not in self.joints:
            raise UsageError(f"the swinging joint '{self.moving}' is none of "
                             f'{", ".join(self.joints)}')
        if np.shape(self.position) != (len(self.joints),):
            raise UsageError(f'a swing of {len(self.joints)} joints needs as many positions')
        if not (self.amplitude > 0.0 and self.frequency > 0.0 and self.periods >= 1):
            raise UsageError(f"the swing of joint '{self.moving}' needs positive amplitude, "
                             'frequency and periods')

    @property
    def index(self) -> int:
        """Position of the swinging joint among the joints."""
        return self.joints.index(self.moving)

    @property
    def duration(self) -> float:
        """Length with rise and fall, s."""
        return (self.periods + 2.0 * RAMP) / self.frequency

    def sample(self, time: ArrayLike) -> Motion:
        """Return the motion at ``time`` (T,) s."""
        turns = clipped(time, self.duration) * self.frequency
        orders = []
        for order, own in enumerate(_swing(turns, self.periods)):
            values = np.zeros((len(turns), len(self.joints)))
            values[:, self.index] = self.amplitude * self.frequency**order * own
            orders.append(values)
        return Motion(self.position + orders[0], *orders[1:])

    def peaks(self) -> Peaks:
        """Return bounds that hold at every instant."""
        reach, *highest = (
            np.zeros(len(self.joints)) for _ in range(4))
        reach[self.index] = self.amplitude
        for order, (values, peak) in enumerate(zip(highest, unit_peaks(), strict=True), start=1):
            values[self.index] = self.amplitude * self.frequency**order * peak
        return Peaks(self.position - reach, self.position + reach, *highest)

    def parameters(self) -> dict[str, Any]:
        """Return the swing in plain types."""
        return {
            'joints': list(self.joints), 'moving': self.moving,
            'position': np.asarray(self.position).tolist(), 'amplitude': float(self.amplitude),
            'frequency': float(self.frequency), 'periods': int(self.periods),
        }

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> SineSwing:
        """Rebuild the swing; raises UsageError when a parameter is missing or wrong."""
        joints = joint_names(parameters)
        amplitude, frequency = (float(vector(parameters, name, (), allowed)) for name, allowed in (
            ('amplitude', AMPLITUDE), ('frequency', FREQUENCY)))
        return cls(joints, str(parameters.get('moving', '')),
                   vector(parameters, 'position', (len(joints),), POSITION), amplitude, frequency,
                   int(vector(parameters, 'periods', (), PERIODS)))


def fastest(limits: MotionLimits, joint: int, amplitude: float) -> float:
    """Return the highest frequency [Hz] of a swing that keeps the limits of its joint."""
    candidates = []
    for order, (name, peak) in enumerate(
        zip(('velocity', 'acceleration', 'jerk'), unit_peaks(), strict=True), start=1
    ):
        limit = float(getattr(limits, name)[joint])
        if np.isfinite(limit):
            bound = (1.0 - HEADROOM) * limit / (amplitude * peak)
            candidates.append(bound ** (1.0 / order))
    return float(min(candidates))


def _swing(turns: FloatArray, periods: float) -> list[FloatArray]:
    """Return e sin and its first three derivatives with respect to ``turns`` (T,)."""
    envelope = _envelope(turns, periods)
    phase = 2.0 * np.pi * (turns - np.floor(turns))
    sine = [(2.0 * np.pi) ** k * np.sin(phase + 0.5 * np.pi * k) for k in range(4)]
    return [np.asarray(sum(comb(k, i) * envelope[i] * sine[k - i] for i in range(k + 1)))
            for k in range(4)]


def _envelope(turns: FloatArray, periods: float) -> list[FloatArray]:
    """Return the envelope and its first three derivatives."""
    total = periods + 2.0 * RAMP
    falling = turns > 0.5 * total
    s = np.minimum(np.where(falling, total - turns, turns) / RAMP, 1.0)
    side = np.where(falling, -1.0, 1.0) / RAMP
    risen = s >= 1.0
    return [
        s**3 * (10.0 + s * (-15.0 + 6.0 * s)),
        side * 30.0 * s**2 * (1.0 - s) ** 2,
        side**2 * 60.0 * s * (1.0 - s) * (1.0 - 2.0 * s),
        np.where(risen, 0.0, side**3 * 60.0 * (1.0 + s * (-6.0 + 6.0 * s))),
    ]


@cache
def unit_peaks() -> tuple[float, float, float]:
    """Return bounds of velocity, acceleration and jerk of the swing of 1 rad at 1 Hz.

    Between two instants of the grid a function exceeds the larger of its values at most by half a
    step times a bound of its derivative.
    """
    count = int(GRID * (RAMP + 1.0))
    values = _swing(np.linspace(0.0, RAMP + 1.0, count + 1), 2.0)
    bounds = [sum(comb(k, i) * BLEND_PEAKS[i] / RAMP**i * (2.0 * np.pi) ** (k - i)
                  for i in range(k + 1)) for k in range(5)]
    velocity, acceleration, jerk = (
        float(np.abs(values[k]).max() + 0.5 / GRID * bounds[k + 1]) for k in (1, 2, 3))
    return velocity, acceleration, jerk
