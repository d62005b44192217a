"""Constraints that are nonlinear in a motion, efforts and clearances, and their barrier."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from robot_dynid.dynamics.rigid_body import inverse_dynamics, regressor_pullback
from robot_dynid.excitation.search.observation import MotionGradient, total
from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.collision.scene import Nearest, Scene

#: margin [m] added to the clearance, because pairs come closer between the instants of the search
CLEARANCE_MARGIN = 5e-3
#: distance [m] from which a pair counts as far apart, at most this share of its largest distance
RANGE, FAR_SHARE = 0.04, 0.5


class Constraint(Protocol):
    """A set of m smooth conditions on every instant of a motion of n joints."""

    @property
    def name(self) -> str:
        """Name of the quantity for messages, such as ``effort``."""

    def values(self, motion: Motion) -> FloatArray:
        """Return (T, m): at least 0 where satisfied, scaled so that 1 is far from the bound."""

    def worst(self, motion: Motion) -> str:
        """Return a sentence with the quantity nearest to its bound in ``motion``."""

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        """Return the gradients (T, n) of sum(weights * values): position, velocity, acceleration.

        ``weights`` (T, m).
        """


@dataclass(frozen=True, eq=False)
class RigidEffort:
    """Efforts of the links with ``parameters`` (n, 10), nominal or identified.

    Friction is not included: option scale reserves a share of the limits for it.
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

    inverse: RigidEffort
    joints: tuple[str, ...]
    limits: FloatArray
    name: str = 'effort'

    def values(self, motion: Motion) -> FloatArray:
        """Return (T, m) for the m joints with a limit."""
        return np.asarray((1.0 - self._shares(motion) ** 2)[:, ~np.isnan(self.limits)])

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        """Return the gradients (T, n) of sum(weights * values), ``weights`` (T, m)."""
        spread, limited = np.zeros(motion.position.shape), ~np.isnan(self.limits)
        spread[:, limited] = -2.0 * weights * self._shares(motion)[:,
                                                                   limited] / self.limits[limited]
        return self.inverse.pullback(motion, spread)

    def worst(self, motion: Motion) -> str:
        """Return a sentence about the effort that uses the largest share of its limit."""
        shares = np.abs(self._shares(motion))
        joint = int(np.nanargmax(np.max(shares, axis=0)))
        needed = float(np.max(shares[:, joint]) * self.limits[joint])
        return (f"joint '{self.joints[joint]}' needs {needed:.4g}, its limit is "
                f'{self.limits[joint]:.4g}')

    def _shares(self, motion: Motion) -> FloatArray:
        effort = self.inverse(motion.position, motion.velocity, motion.acceleration)
        return np.asarray(effort / self.limits)


class KeepClear:
    """One value per pair of bodies: s (2 - s) with s = (distance - clearance) / range, at most 1.

    Smooth where one pair of shapes is nearest; linear below the clearance. ``clearances`` (m,) m
    at the instants of the search, ``ranges`` (m,) m beyond.
    """

    name = 'clearance'

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.clearances = scene.required + np.minimum(
            CLEARANCE_MARGIN, 0.5 * FAR_SHARE * (scene.largest - scene.required))
        self.ranges = np.minimum(RANGE, FAR_SHARE * (scene.largest - self.clearances))
        self._nearest: tuple[FloatArray, Nearest] | None = None  # of the latest positions

    def values(self, motion: Motion) -> FloatArray:
        """Return (T, m): 0 at the clearance, 1 far apart."""
        share, _ = self._share(motion.position)
        return np.where(share > 0.0, share * (2.0 - share), 2.0 * share)

    def worst(self, motion: Motion) -> str:
        """Return a sentence about the pair nearest to its required distance."""
        near = self.scene.nearest(motion.position, self.clearances + self.ranges)
        pair = int(np.argmin(np.min(near.distance - self.scene.required, axis=0)))
        return (f'{" and ".join(self.scene.pairs[pair])} come within '
                f'{np.min(near.distance[:, pair]):.4g} m, the clearance is '
                f'{self.scene.required[pair]:.4g} m')

    def pullback(self, motion: Motion, weights: FloatArray) -> MotionGradient:
        """Return the gradients (T, n) of sum(weights * values)."""
        share, near = self._share(motion.position)
        rows, columns = np.nonzero(near.measured & (share < 1.0))
        shares = share[rows, columns]
        slope = 2.0 * np.where(shares > 0.0, 1.0 - shares, 1.0) / self.ranges[columns]
        rates = self.scene.rates(motion.position, near, (rows, columns))
        gradient, still, also_still = np.zeros((3, *motion.position.shape))
        np.add.at(gradient, rows, (weights[rows, columns] * slope)[:, None] * rates)
        return gradient, still, also_still

    def _share(self, q: FloatArray) -> tuple[FloatArray, Nearest]:
        if self._nearest is None or not np.array_equal(self._nearest[0], q):
            self._nearest = (q.copy(), self.scene.nearest(q, self.clearances + self.ranges))
        near = self._nearest[1]
        return np.minimum((near.distance - self.clearances) / self.ranges, 1.0), near


def constraint_barrier(
    constraints: Sequence[Constraint], motion: Motion, values: Sequence[FloatArray]
) -> tuple[float, MotionGradient]:
    """Return the barrier -mean_t sum log(values) of all constraints and its gradients (T, n).

    ``values`` (T, m) of each constraint, all positive.
    """
    value = -sum(float(np.sum(np.log(v))) / len(v) for v in values)
    return value, total([constraint.pullback(motion, -1.0 / (len(v) * v))
                         for constraint, v in zip(constraints, values, strict=True)])


def constraint_values(
    constraints: Sequence[Constraint], motion: Motion
) -> tuple[FloatArray, ...]:
    """Return the values (T, m) of the constraints up to the first violated one."""
    values: list[FloatArray] = []
    for constraint in constraints:
        values.append(constraint.values(motion))
        if not np.all(values[-1] > 0.0):
            break
    return tuple(values)


def inside(values: Sequence[FloatArray]) -> bool:
    """Return True if all ``values`` (T, m) of every constraint are positive."""
    return all(bool(np.all(v > 0.0)) for v in values)


def share_inside(start: Sequence[FloatArray], end: Sequence[FloatArray]) -> float:
    """Return the share of a step up to the first violated constraint, values taken as linear.

    ``start`` and ``end`` (T, m) of each constraint at the ends of the step.
    """
    share = 1.0
    for old, new in zip(start, end):
        broken = ~(new > 0.0)
        if np.any(broken):
            parts = old[broken] / (old[broken] - new[broken])
            share = min(share, float(np.min(np.nan_to_num(parts, nan=0.0))))
    return share
