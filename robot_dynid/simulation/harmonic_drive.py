"""Harmonic drives of the simulated arm: what happens between a rotor and its link.

Rotor and link are joined by the torque

    T = K d + D d' + h(d),    d = theta + e(theta) - q,    e = A sin(2 N theta),

with the rotor at ``theta`` (motor angle over gear ratio N), the link at ``q``, and hysteresis h
of Dahl's kind. The wave generator presses twice per motor turn, hence the 2. Power balance makes T
act on the rotor as ``-(1 + de/dtheta) T``. The rotor spins, but its turning with the links before
it is left out. Sources: Spong 1987 (elastic joint); Taghirad and Belanger 1998 (harmonic drive).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from robot_dynid.errors import RobotError
from robot_dynid.types import FloatArray


@dataclass(frozen=True)
class HarmonicDrive:
    """A gear with all quantities on the joint side (m and N for prismatic joints).

    ``gear_ratio`` motor turns per turn of the joint; ``stiffness`` K N m/rad; ``damping`` D
    N m s/rad; ``kinematic_error`` A rad; ``hysteresis`` N m, half the width of the loop, and
    ``hysteresis_length`` rad, the deflection over which it turns. Raises RobotError for values
    that cannot be.
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
                raise RobotError(f'drive: {entry.name} is {value}; it must be finite and not '
                                 'negative')
        for name in ('gear_ratio', 'stiffness', 'hysteresis_length'):
            if getattr(self, name) == 0.0:
                raise RobotError(f'drive: {name} must be above zero')
        if 2.0 * self.gear_ratio * self.kinematic_error >= 1.0:
            raise RobotError(f'drive: kinematic_error {self.kinematic_error:g} rad would turn the '
                             f'link back; with gear_ratio {self.gear_ratio:g} it must be below '
                             f'{0.5 / self.gear_ratio:g}')


class Transmissions:
    """The gears of d joints in motion; all arrays are (d,).

    MuJoCo integrates the linear spring and damper; this adds what is not linear, as torques that
    are held over a step and belong to its middle.
    """

    def __init__(self, drives: Sequence[HarmonicDrive]) -> None:
        self.ratio, self.stiffness, self.damping, amplitude, hysteresis, length = (
            np.array([getattr(drive, f.name) for drive in drives]) for f in fields(HarmonicDrive))
        self._amplitude, self._hysteresis, self._length = amplitude, hysteresis, length
        self._twice = 2.0 * self.ratio
        self._steepness = self._twice * amplitude
        self._state = np.zeros(len(drives))
        self._deflection = np.zeros(len(drives))

    @property
    def steepest(self) -> FloatArray:
        """The largest stiffness (d,) N m/rad, where hysteresis turns."""
        return np.asarray(self.stiffness + 2.0 * self._hysteresis / self._length)

    def error(self, rotor: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the kinematic error (d,) rad and its derivative at ``rotor`` (d,) rad."""
        phase = self._twice * rotor
        return self._amplitude * np.sin(phase), self._steepness * np.cos(phase)

    def relax(self, rotor: FloatArray, link: FloatArray) -> None:
        """Begin hysteresis at zero with the positions ``rotor`` and ``link`` (d,) rad."""
        self._state = np.zeros_like(self._state)
        self._deflection = rotor + self.error(rotor)[0] - link

    def torques(
        self, rotor: Sequence[FloatArray], link: Sequence[FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Return the torques on rotors and links beside those of linear springs and dampers.

        ``rotor`` and ``link`` are position and velocity (d,) at the middle of the step. To be
        called once per step: the hysteresis moves on.
        """
        error, slope = self.error(rotor[0])
        twist = rotor[0] - link[0]
        deflection = twist + error
        step = deflection - self._deflection
        left = np.exp(np.abs(step) / -self._length)
        self._state = self._state * left + np.sign(step) * (1.0 - left)
        self._deflection = deflection
        linear = self.stiffness * twist + self.damping * (rotor[1] - link[1])
        beside = (self.stiffness * error + self.damping * slope * rotor[1]
                  + self._hysteresis * self._state)
        return -slope * linear - (1.0 + slope) * beside, beside
