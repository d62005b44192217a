"""Recordings of a simulated arm as CSV files, made with our own inverse dynamics."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from robot_dynid.io.csv import write_csv
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog
from robot_dynid_evaluation.bench.arms import effort

RATE = 200.0
VELOCITY_NOISE, EFFORT_NOISE = 1e-3, 0.05


def recording(robot: RobotModel, seed: int, seconds: float = 20.0) -> RawLog:
    """Return a noisy recording along a random Fourier series."""
    rng = np.random.default_rng(seed)
    options = FourierOptions(seconds, 12)
    trajectory = random_fourier(motion_limits(robot).scaled(0.9), options, rng)
    time = np.arange(round(seconds * RATE)) / RATE
    motion = trajectory.sample(time)
    torque = effort(robot, load_truth(robot), motion)
    return RawLog(
        f'seed {seed}', robot.joints, time, motion.position,
        velocity=motion.velocity + VELOCITY_NOISE * rng.standard_normal(torque.shape),
        effort=torque + EFFORT_NOISE * rng.standard_normal(torque.shape))


def write_recording(folder: Path, name: str, robot: RobotModel, seed: int) -> Path:
    """Write a recording into ``folder`` and return its path."""
    path = folder / f'{name}.csv'
    write_csv(path, recording(robot, seed))
    return path
