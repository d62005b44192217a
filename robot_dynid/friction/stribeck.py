"""Static friction that falls to Coulomb friction as the speed rises."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.friction.law import (
    AxisMotion,
    Range,
    Shape,
    known_settings,
    read_range,
    require_positive,
    tanh_continued,
)
from robot_dynid.types import FloatArray


@dataclass(frozen=True)
class Stribeck:
    """``fv v + fc tanh(v / width) + fs (tanh(v / width) - tanh(v / speed)) + f0``.

    ``fs`` is what static friction has above Coulomb's; it is gone above ``speed``, which must be
    larger than ``width`` (both rad/s or m/s). ``speeds`` of the axis in the fit, beyond the higher
    of which the law is linear. Source: Makkar, Dixon, Sawyer, Hu 2005, eq. 2.
    """

    width: float = 0.01
    speed: float = 0.1
    speeds: Range = None
    parameters: ClassVar[tuple[str, ...]] = ('fv', 'fc', 'fs', 'f0')
    holding: ClassVar[tuple[str, ...]] = ('fc', 'fs')
    nonnegative: ClassVar[tuple[str, ...]] = ('fv', 'fc', 'fs')
    odd: ClassVar[tuple[str, ...]] = ('fv', 'fc', 'fs')
    shapes: ClassVar[tuple[Shape, ...]] = (Shape('width', 1e-3, 0.03, 4),
                                           Shape('speed', 0.01, 0.5, 5))

    def __post_init__(self) -> None:
        require_positive('stribeck', 'width', self.width)
        require_positive('stribeck', 'speed', self.speed)
        if self.speed <= self.width:
            raise UsageError(f'friction law stribeck: speed {self.speed:g} must be above width '
                             f'{self.width:g}')
        read_range(self, 'stribeck', 'speeds')

    def columns(self, motion: AxisMotion) -> FloatArray:
        """Return (4, N): velocity, steep tangent, its excess over the gentle one, one."""
        v, steep = motion.velocity, self.dry(motion)
        gentle = tanh_continued(v, self.speed, self.speeds)
        return np.stack([v, steep, steep - gentle, np.ones_like(v)])

    def dry(self, motion: AxisMotion) -> FloatArray:
        """Return the steep tangent (N,)."""
        return np.asarray(np.tanh(motion.velocity / self.width))

    def sliding(self, values: FloatArray) -> FloatArray | None:
        """Return None: it has no straight pieces."""
        return None

    def settings(self) -> dict[str, Any]:
        """Return both speeds, and those of the fit."""
        return {'width': self.width, 'speed': self.speed,
                **known_settings({'speeds': self.speeds})}
