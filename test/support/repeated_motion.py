"""A random motion that repeats."""

from __future__ import annotations

import numpy as np

from robot_dynid.types import Samples

RATE = 100.0


def motion(seed, period, periods, joints=3, begins=0.0, noise=0.0):
    """Return samples of a random motion that repeats, and begins some seconds into its period."""
    random = np.random.default_rng(seed)
    time = np.arange(0.0, period * periods, 1.0 / RATE)
    phase = 2.0 * np.pi / period * (time[:, None] + begins)
    position, velocity = np.zeros((2, len(time), joints))
    for k in range(1, 5):
        a, b = random.normal(size=(2, joints)) / k
        position += a * np.sin(k * phase) + b * np.cos(k * phase)
        velocity += k * (a * np.cos(k * phase) - b * np.sin(k * phase)) * 2.0 * np.pi / period
    position += noise * np.random.default_rng(seed + 1).normal(size=position.shape)
    names = tuple(f'joint_{j + 1}' for j in range(joints))
    return Samples(names, time, position, velocity, np.zeros_like(position))
