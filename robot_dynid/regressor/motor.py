"""Rotor inertia, reflected to the joint side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.regressor.block import Axes, spread, still
from robot_dynid.regressor.elastic import SpinningRotors
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class RotorInertia:
    """``Ia`` times the acceleration of each axis.

    Torque sensors on the link side do not see rotors: leave the block out for them. ``spinning``
    adds what rotors do to the links that carry them, where their axes are known.
    """

    axes: Axes
    spinning: SpinningRotors | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """``Ia1`` and so on; ``Iam6`` for the coupled motor of joint 6."""
        return tuple(f'Ia{label}' for label in self.axes.labels)

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """All of them."""
        return self.names

    def history(self, samples: Samples) -> FloatArray:
        """Return nothing: rotors have no memory."""
        return np.empty((0, len(samples)))

    def fill(
        self, samples: Samples, history: FloatArray, chosen: NDArray[np.int64], out: FloatArray
    ) -> None:
        """Write the acceleration of the chosen axes."""
        for column, index in enumerate(chosen):
            torque = samples.acceleration @ self.axes.matrix[index]
            if self.spinning is not None and self.spinning.mounted(int(index)):
                links, motor = self.spinning.columns(samples, int(index))
                out[:len(links), column] = links
                torque = torque + motor
                out[:, column] += np.outer(self.axes.effort[index], torque)
                continue
            spread(out, column, self.axes.effort[index], torque)

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients of sum(weights * columns): in the acceleration only."""
        gradients = still(samples)
        for column, index in enumerate(chosen):
            pulled = self.axes.effort[index] @ weights[:, column]
            gradients[2][:] += np.outer(pulled, self.axes.matrix[index])
        return gradients
