"""Limits of motion, also random ones, and constraints and proofs that stand for an obstacle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from robot_dynid.collision.clearance import Clearance
from robot_dynid.trajectories.limits import MotionLimits
from robot_dynid.trajectories.trajectory import Motion, Trajectory
from robot_dynid.types import FloatArray

POSITIVE = st.floats(0.05, 50.0)


def box(n=3, **changes):
    values = {'lower': -2.0, 'upper': 2.5, 'velocity': 2.0, 'acceleration': 5.0,
              'jerk': np.nan, 'effort': np.nan, **changes}
    joints = tuple(f'joint_{i}' for i in range(n))
    return MotionLimits(joints, **{k: np.broadcast_to(v, (n,)).astype(float)
                                   for k, v in values.items()})


@st.composite
def random_boxes(draw):
    n = draw(st.integers(1, 4))
    rows = [draw(st.tuples(st.floats(-5.0, 5.0), *[POSITIVE] * 4)) for _ in range(n)]
    lower, width, velocity, acceleration, jerk = np.array(rows).T
    jerk = jerk * 10.0 if draw(st.booleans()) else np.full(n, np.nan)
    return box(n, lower=lower, upper=lower + width, velocity=velocity,
               acceleration=acceleration, jerk=jerk)


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
