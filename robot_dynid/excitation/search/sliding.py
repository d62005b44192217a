"""Friction as designs see it: whatever the law, axes slide, and gradients see their reversals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.regressor.block import Axes, still
from robot_dynid.types import FloatArray, Samples

#: columns of an axis: velocity, ramp, one
NAMES = ('fv', 'fc', 'f0')


@dataclass(frozen=True, eq=False)
class SlidingFriction:
    """``fv v + fc clip(v / width, -1, 1) + f0`` of every axis; ``widths`` (m,) rad/s (m/s).

    The ramps are wide: on a steep one there would be no instant of the search, so that its
    gradient would not see that a motion reverses earlier or later.
    """

    axes: Axes
    widths: FloatArray

    @property
    def names(self) -> tuple[str, ...]:
        """``fv1, fc1, f01, fv2, ...``."""
        return tuple(f'{name}{label}' for label in self.axes.labels for name in NAMES)

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """Nothing that matters here."""
        return ()

    def history(self, samples: Samples) -> FloatArray:
        """Return nothing: sliding has no memory."""
        return np.empty((0, len(samples)))

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write the columns of the chosen parameters."""
        axes, kinds = np.divmod(chosen, len(NAMES))
        velocity, ramp = self._sliding(samples)
        values = np.stack([velocity, np.clip(ramp, -1.0, 1.0), np.ones_like(velocity)])
        np.multiply(self.axes.matrix[axes].T[:, :, None], values[kinds, axes], out=out)

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients of sum(weights * columns): in the velocity only."""
        axes, kinds = np.divmod(chosen, len(NAMES))
        velocity, ramp = self._sliding(samples)
        inside = (np.abs(ramp) < 1.0) / self.widths[:, None]
        slopes = np.stack([np.ones_like(velocity), inside, np.zeros_like(velocity)])
        turned = self.axes.matrix[axes]
        along = np.einsum('kn,nks->ks', turned, weights) * slopes[kinds, axes]
        position, gradient, acceleration = still(samples)
        gradient += along.T @ turned
        return position, gradient, acceleration

    def _sliding(self, samples: Samples) -> tuple[FloatArray, FloatArray]:
        """Return the velocities (m, N) of the axes, and what they are in widths of the ramps."""
        velocity = self.axes.matrix @ samples.velocity.T
        return velocity, velocity / self.widths[:, None]
