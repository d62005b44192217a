"""Friction of one joint along a recording, and what a model left over of its effort."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class Leftover:
    """Effort of a joint that a model left over, at the stamps ``time`` (N,) [s].

    ``viscous`` and ``dry`` (N,) [N m] are the modelled friction proportional to speed, and all
    other but an offset; ``power`` (N,) [W] what friction dissipates; ``left`` (N,) [N m] measured
    less modelled effort; ``waves`` (N, m) the columns of a torque ripple. ``gap`` [s] is the time
    since the recording before ended, None where the stamps do not tell.
    """

    time: FloatArray
    viscous: FloatArray
    dry: FloatArray
    power: FloatArray
    left: FloatArray
    waves: FloatArray
    gap: float | None = None

    @cached_property
    def steps(self) -> FloatArray:
        """Time (N,) [s] since the sample before; of the first the gap, zero where unknown."""
        return np.diff(self.time, prepend=self.time[:1] - (self.gap or 0.0))

    @property
    def friction(self) -> FloatArray:
        """Viscous and dry friction (N, 2) [N m]."""
        return np.stack([self.viscous, self.dry], axis=1)

    @cached_property
    def heat(self) -> FloatArray:
        """Shares (N, 2) [W] of viscous and dry friction in the power."""
        whole = self.viscous + self.dry
        viscous = self.power * np.divide(
            self.viscous, whole, out=np.zeros_like(whole), where=whole != 0.0)
        return np.stack([viscous, self.power - viscous], axis=1)

    @cached_property
    def columns(self) -> FloatArray:
        """Torque of all coefficients at one (N, 2 + m) [N m]: viscous, dry, waves."""
        return np.ascontiguousarray(np.hstack([self.friction, self.waves]))
