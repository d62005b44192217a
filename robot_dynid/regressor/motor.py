"""Rotor inertia, reflected to the joint side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.regressor_columns import ACCELERATION, RegressorColumns, RotorColumns
from robot_dynid.dynamics.rotors import Rotors, SpinningRotors
from robot_dynid.regressor.block import Axes, KernelBlock, linear, still
from robot_dynid.regressor.rotor_pullback import rotor_pullback
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples


@dataclass(frozen=True, eq=False)
class RotorInertia(KernelBlock):
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
        """Return an empty history (0, N): rotors have no memory."""
        return np.empty((0, len(samples)))

    def kernel_columns(self, chosen: NDArray[np.int64]) -> RegressorColumns:
        """Return the acceleration of the ``chosen`` (k,) axes.

        And the inertial effort on the links that carry them, where those move.
        """
        mounted = [] if self.spinning is None else [
            (column, int(index)) for column, index in enumerate(chosen)
            if self.spinning.mounted(int(index))]
        coupled = {column for column, _ in mounted}
        entries = tuple(
            entry for column, index in enumerate(chosen) if column not in coupled
            for entry in linear(column, self.axes.effort[index], ACCELERATION,
                                self.axes.matrix[index]))
        if self.spinning is None or not mounted:
            return RegressorColumns(len(chosen), entries=entries)
        robot = self.spinning.robot
        parts = [self._one(self.spinning, index) for _, index in mounted]
        rotors = Rotors(parts[0].inertia, *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ('carriers', 'axes', 'motions')))
        columns = np.array([column for column, _ in mounted], dtype=np.int64)
        return RegressorColumns(len(chosen), robot, None, RotorColumns(
            columns, rotors, self._rows(robot)), entries)

    def _one(self, spinning: SpinningRotors, index: int) -> Rotors:
        return spinning.rotors(self.axes.matrix, np.eye(len(self.axes.labels))[index])

    def _rows(self, robot: RobotModel) -> FloatArray:
        """Return (coordinates, rows): which equations an effort on each coordinate enters."""
        rows = np.eye(robot.coordinates, robot.rows)
        rows[robot.n:] = self.axes.effort[list(robot.drive.elastic)]
        return rows

    def pullback(
        self, samples: Samples, chosen: NDArray[np.int64], weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gradients (N, n) of sum(weights * columns) in the motion.

        ``weights`` (n, k, N).

        In the acceleration only, where no moving link carries the rotor.
        """
        gradients = still(samples)
        for column, index in enumerate(chosen):
            pulled = self.axes.effort[index] @ weights[:, column]
            gradients[2][:] += np.outer(pulled, self.axes.matrix[index])
            if self.spinning is not None and self.spinning.mounted(int(index)):
                robot = self.spinning.robot
                for total, part in zip(gradients, rotor_pullback(
                        robot, self._one(self.spinning, int(index)), samples,
                        self._rows(robot) @ weights[:, column]), strict=True):
                    total += part
        return gradients
