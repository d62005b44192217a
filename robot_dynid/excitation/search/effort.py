"""Predicted efforts of a motion, with gradients, and the limits they have to keep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.rigid_body import inverse_dynamics, regressor_pullback
from robot_dynid.excitation.search.observation import MotionGradient
from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray


class Inverse(Protocol):
    """Predicts efforts (T, n) N m (N) from position, velocity, acceleration (T, n)."""

    def __call__(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the efforts."""

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        """Return the gradients (T, n) of sum(weights * efforts); ``weights`` (T, n)."""


@dataclass(frozen=True, eq=False)
class RigidEffort:
    """Efforts of the links; ``parameters`` (n, 10), the robot's nominal ones or identified ones.

    Friction is not in them: option scale leaves room for it.
    """

    robot: RobotModel
    parameters: FloatArray

    def __call__(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return efforts (T, n) N m (N)."""
        return inverse_dynamics(self.robot, q, qd, qdd, self.parameters)

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        """Return the gradients (T, n) of sum(weights * efforts); ``weights`` (T, n)."""
        states = (motion.position, motion.velocity, motion.acceleration)
        spread = weights.T[:, None, :] * np.ravel(self.parameters)[None, :, None]
        return regressor_pullback(self.robot, states, spread)


@dataclass(frozen=True, eq=False)
class EffortLimits:
    """Efforts within ``limits`` (n,) N m (N), NaN where unknown: 1 - (effort / limit)^2 >= 0."""

    inverse: Inverse
    joints: tuple[str, ...]
    limits: FloatArray
    name: str = 'effort'

    def values(self, motion: Motion) -> FloatArray:
        """Return (T, m) for the m joints with a limit."""
        return np.asarray((1.0 - self._shares(motion) ** 2)[:, self._known])

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        """Return the gradients (T, n) of sum(weights * values), ``weights`` (T, m)."""
        spread = np.zeros(motion.position.shape)
        known = self._known
        spread[:, known] = -2.0 * weights * self._shares(motion)[:, known] / self.limits[known]
        return self.inverse.pullback(motion, spread)

    def squares(self, motion: Motion, weights: FloatArray) -> None:
        """Return None for ``weights`` (T, m): efforts depend on rates, too, see the protocol."""

    def worst(self, motion: Motion) -> str:
        """Return a sentence about the effort that uses most of its limit."""
        shares = np.abs(self._shares(motion))
        joint = int(np.nanargmax(np.nanmax(shares, axis=0)))
        needed = float(np.max(shares[:, joint]) * self.limits[joint])
        return (f"joint '{self.joints[joint]}' needs {needed:.4g}, allowed are "
                f'{self.limits[joint]:.4g}')

    @property
    def _known(self) -> NDArray[np.bool_]:
        return np.asarray(~np.isnan(self.limits))

    def _shares(self, motion: Motion) -> FloatArray:
        effort = self.inverse(motion.position, motion.velocity, motion.acceleration)
        return np.asarray(effort / self.limits)
