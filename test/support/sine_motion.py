"""A motion of sines."""

from __future__ import annotations

import numpy as np

from robot_dynid.robot.model import RobotModel
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray


class Sines:
    """Five harmonics per joint, at rest at both ends, within 70 % of the limits."""

    def __init__(self, robot: RobotModel, duration: float = 4.0) -> None:
        self.joints, self.duration = robot.joints, duration
        self.rate = 2.0 * np.pi / duration * np.arange(1, 6)
        rng = np.random.default_rng(0)
        self.amplitude = rng.normal(size=(5, robot.n)) / self.rate[:, None]
        motion = self.sample(np.linspace(0.0, duration, 1000))
        speed = 0.7 * robot.limits.velocity / np.abs(motion.velocity).max(axis=0)
        acceleration = 0.7 * robot.limits.acceleration / np.abs(motion.acceleration).max(axis=0)
        self.amplitude *= np.minimum(speed, acceleration)

    def sample(self, time: FloatArray) -> Motion:
        phase, a, w = np.outer(time, self.rate), self.amplitude, self.rate[:, None]
        zero = np.zeros((len(time), len(self.joints)))
        return Motion((1.0 - np.cos(phase)) @ a, np.sin(phase) @ (a * w),
                      np.cos(phase) @ (a * w**2), zero)
