"""Rigid links: ten standard parameters each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.regressor_columns import RegressorColumns
from robot_dynid.regressor.block import KernelBlock
from robot_dynid.robot.inertia import PARAMETERS
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class RigidLinks(KernelBlock):
    """Torque of the links' inertia and weight."""

    robot: RobotModel

    @property
    def names(self) -> tuple[str, ...]:
        """``m1, mx1, ..., Izz1, m2, ...``: links counted from one, in the order of the joints."""
        return tuple(f'{p}{i + 1}' for i in range(self.robot.n) for p in PARAMETERS)

    @property
    def nonnegative(self) -> tuple[str, ...]:
        """None by itself: what a body can have is a condition on all ten together."""
        return ()

    def history(self, samples: Samples) -> FloatArray:
        """Return an empty history (0, N): rigid links have no memory."""
        return np.empty((0, len(samples)))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the columns of the ``chosen`` (k,) standard parameters."""
        return RegressorColumns.of_links(self.robot, chosen)

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients (N, n) of sum(weights * columns) in the motion, by reverse mode.

        ``weights`` (n, k, N).
        """
        motion = (samples.position, samples.velocity, samples.acceleration)
        return rigid_body.regressor_pullback(self.robot, motion, weights, chosen)
