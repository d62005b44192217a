"""Joint friction: one law per axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.friction.law import AxisMotion, FrictionLaw
from robot_dynid.regressor.block import Axes, spread
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class JointFriction:
    """Friction torque of every axis; ``laws`` has one law per axis.

    A coupled motor has no offset of its own: it could not be told from those of its joints.
    """

    axes: Axes
    laws: tuple[FrictionLaw, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """``fv1, fc1, f01, fv2, ...``."""
        return tuple(
            f'{p}{label}' for label, law in zip(self.axes.labels, self.laws, strict=True)
            for p in law.parameters
        )

    def fill(self, samples: Samples, chosen: NDArray[np.int64], out: FloatArray) -> None:
        """Write the columns of the chosen parameters."""
        wanted = {int(c): column for column, c in enumerate(chosen)}
        first = 0
        for axis, law in zip(self.axes.matrix, self.laws, strict=True):
            columns = range(first, first + len(law.parameters))
            first += len(law.parameters)
            if not any(c in wanted for c in columns):
                continue
            motion = AxisMotion(samples.time, samples.position @ axis, samples.velocity @ axis,
                                samples.starts)
            for c, values in zip(columns, law.columns(motion), strict=True):
                if c in wanted:
                    spread(out, wanted[c], axis, values)
