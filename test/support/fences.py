"""Constraints and proofs that stand for an obstacle: joint positions that are forbidden."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.collision.clearance import Clearance
from robot_dynid.trajectories.trajectory import Motion, Trajectory
from robot_dynid.types import FloatArray


@dataclass(frozen=True)
class Post:
    """Joints ``a`` and ``b`` must not be within ``radius`` of ``centre`` at the same time."""

    centre: tuple[float, float]
    radius: float
    a: int = 0
    b: int = 1
    name: str = 'distance from the post'

    def values(self, motion: Motion) -> FloatArray:
        return self.distance(motion.position)[:, None]

    def worst(self, motion: Motion) -> str:
        return f'{self.name} is only {np.min(self.distance(motion.position)):.4g}'

    def distance(self, position: FloatArray) -> FloatArray:
        apart = position[:, [self.a, self.b]] - np.array(self.centre)
        return np.asarray(np.linalg.norm(apart, axis=1) - self.radius)

    def pullback(
        self, motion: Motion, weights: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        gradient = np.zeros_like(motion.position)
        apart = motion.position[:, [self.a, self.b]] - np.array(self.centre)
        gradient[:, [self.a, self.b]] = apart / np.linalg.norm(apart, axis=1, keepdims=True)
        return weights * gradient, np.zeros_like(gradient), np.zeros_like(gradient)

    def squares(self, motion: Motion, weights: FloatArray) -> None:
        return None

    def proof(self, trajectory: Trajectory) -> Clearance:
        """Look at 500 instants per second."""
        time = np.linspace(0.0, trajectory.duration, int(500 * trajectory.duration) + 2)
        distance = self.distance(trajectory.sample(time).position)
        worst = int(np.argmin(distance))
        return Clearance(bool(distance[worst] > 0.0), float(distance[worst]), ('hand', 'post'),
                         float(time[worst]))
