"""Noise levels of the external torque: its size without contact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.types import FloatArray, frozen

#: gain [1/s] of the observer the levels are taken with
NOMINAL_GAIN = 30.0


@dataclass(frozen=True, eq=False)
class NoiseLevels:
    """Bounds of the external torque without contact, each (n,).

    While joint j is faster than ``speed`` [rad/s], the external torque r hardly exceeds
    ``moving`` [N m]. Slower, dry friction is whatever holds the joint, or has just let go, and
    not what its law says: r contains what the law claims less what there is, and that is at most
    ``holding`` [N m]. The observer forgets this like everything else, so |r - c| hardly exceeds
    ``moving + holding s``, where s is "slower than ``speed``" and c the dry friction of the law
    while it is, both passed through the same first-order low-pass. ``gain`` [1/s] is that of the
    observer the levels were taken with.
    """

    moving: FloatArray
    holding: FloatArray
    speed: FloatArray
    gain: float = NOMINAL_GAIN

    def at_gain(self, gain: float) -> FloatArray:
        """Return ``moving`` (n,) [N m] for another gain: white noise grows with its root."""
        return np.asarray(self.moving * np.sqrt(max(gain / self.gain, 1.0)))

    def plain(self, joints: tuple[str, ...]) -> dict[str, Any]:
        """Return everything as names and numbers."""
        rows = zip(joints, self.moving, self.holding, self.speed, strict=True)
        return {'gain': self.gain, 'joints': {
            joint: {'moving': float(m), 'holding': float(h), 'speed': float(s)}
            for joint, m, h, s in rows}}

    @classmethod
    def from_plain(cls, content: Mapping[str, Any], joints: tuple[str, ...]) -> NoiseLevels:
        """Read what ``plain`` returned. Raises ValueError when something is missing."""
        try:
            rows = np.array([[float(content['joints'][joint][key])
                              for key in ('moving', 'holding', 'speed')] for joint in joints])
            gain = float(content['gain'])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f'noise levels are damaged: {error!r}') from None
        if not np.all(np.isfinite(rows)) or not gain > 0.0:
            raise ValueError('noise levels are not finite')
        return cls(frozen(rows[:, 0]), frozen(rows[:, 1]), frozen(rows[:, 2]), gain)
