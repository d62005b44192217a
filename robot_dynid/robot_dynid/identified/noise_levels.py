"""Noise levels of the external torque: its size without contact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from robot_dynid.numbers import AMOUNT, BOUNDS, NumberRange
from robot_dynid.plain import from_plain
from robot_dynid.types import FloatArray, frozen

#: observer gain [1/s] of the levels
NOMINAL_GAIN = 30.0
#: share of samples without contact below the levels, excluding hard stops and glitches; and the
#: normal deviate exceeded by the rest, of either sign
QUANTILE, NORMAL_QUANTILE = 0.999, 3.29
GAIN = NumberRange(1e-9, 1e9, '1/s')
COLUMNS = ('moving', 'holding', 'speed')


@dataclass(frozen=True)
class _Joint:
    moving: float = field(metadata={BOUNDS: AMOUNT})
    holding: float = field(metadata={BOUNDS: AMOUNT})
    speed: float = field(metadata={BOUNDS: AMOUNT})
    variance: float | None = field(default=None, metadata={BOUNDS: AMOUNT})


@dataclass(frozen=True)
class _Stored:
    """Content of a file."""

    joints: Mapping[str, _Joint]
    gain: float = field(metadata={BOUNDS: GAIN})
    deflected: _Stored | None = None


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Bounds of the external torque without contact, each (n,).

    While joint j is faster than ``speed`` [rad/s], the external torque r hardly exceeds ``moving``
    [N m]. Slower, dry friction is undetermined: r contains the friction of the law minus the
    actual one, at most ``holding`` [N m]. Because the observer forgets, |r - c| hardly exceeds
    ``moving + holding s``, where s is "slower than ``speed``" and c the dry friction of the law
    meanwhile, both through the same first-order low-pass. ``gain`` [1/s] is that of the observer.
    ``deflected`` are the levels with the deflection of gears, None for models that do not use it;
    ``variance`` (n,) [(N m)^2] is the usual one of residual models, or of the torque of elastic
    gears.
    """

    moving: FloatArray
    holding: FloatArray
    speed: FloatArray
    gain: float = NOMINAL_GAIN
    deflected: NoiseLevels | None = None
    variance: FloatArray | None = None

    def at_gain(self, gain: float) -> FloatArray:
        """Return ``moving`` (n,) [N m] for another gain: white noise grows with its square root.
        """
        return np.asarray(self.moving * np.sqrt(max(gain / self.gain, 1.0)))

    def widened(self, deviation: FloatArray) -> NoiseLevels:
        """Return the levels of a model with an additional error ``deviation`` (n,) [N m]."""
        deflected = None if self.deflected is None else self.deflected.widened(deviation)
        moving = np.hypot(self.moving, NORMAL_QUANTILE * deviation)
        return replace(self, moving=frozen(moving), deflected=deflected)

    def plain(self, joints: tuple[str, ...]) -> dict[str, Any]:
        """Return everything as names and numbers."""
        columns = {name: getattr(self, name) for name in (*COLUMNS, 'variance')
                   if getattr(self, name) is not None}
        content: dict[str, Any] = {'gain': self.gain, 'joints': {
            joint: {name: float(column[j]) for name, column in columns.items()}
            for j, joint in enumerate(joints)}}
        return content if self.deflected is None else {
            **content, 'deflected': self.deflected.plain(joints)}

    @classmethod
    def from_plain(cls, content: Any, joints: tuple[str, ...]) -> NoiseLevels:
        """Read the result of ``plain``; raises ValueError, UsageError if it is damaged."""
        return cls._of(from_plain(_Stored, content, 'noise_levels'), joints)

    @classmethod
    def _of(cls, stored: _Stored, joints: tuple[str, ...]) -> NoiseLevels:
        if set(stored.joints) != set(joints):
            raise ValueError('noise_levels: its joints are not those of the model')
        rows = [stored.joints[joint] for joint in joints]
        moving, holding, speed = (frozen([getattr(row, key) for row in rows]) for key in COLUMNS)
        variance = [row.variance for row in rows if row.variance is not None]
        if len(variance) not in (0, len(rows)):
            raise ValueError('noise_levels: joints without variance among others with it')
        return cls(moving, holding, speed, stored.gain, None if stored.deflected is None else
                   cls._of(stored.deflected, joints), frozen(variance) if variance else None)
