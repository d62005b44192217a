"""Recordings of a smooth motion whose every derivative is known, and of a simulated arm."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from robot_dynid.io.csv import write_csv
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import RawLog
from robot_dynid_evaluation.bench.arms import effort

DT = 0.002
JOINTS = ('joint_1', 'joint_2', 'joint_3')
RATES = np.array([1.3, 2.1, 3.1])


def smooth_motion(time):
    """Return position, velocity and acceleration (T, 3) of a smooth motion."""
    phase = np.outer(time, RATES)
    return np.sin(phase), RATES * np.cos(phase), -RATES**2 * np.sin(phase)


def smooth_recording(time, velocity=True, rest=0.0):
    """Return a clean recording; effort is 5 times the velocity plus 3 times the acceleration.

    With ``rest`` [s] the robot stands still at both ends and moves smoothly in between.
    """
    if rest:
        span = time[-1] - time[0] - 2.0 * rest
        u = np.clip((time - time[0] - rest) / span, 0.0, 1.0)[:, None] * np.ones(3)
        q = 2.0 * (u - np.sin(2.0 * np.pi * u) / (2.0 * np.pi))
        qd = 2.0 * (1.0 - np.cos(2.0 * np.pi * u)) / span
        qdd = 4.0 * np.pi * np.sin(2.0 * np.pi * u) / span**2
    else:
        q, qd, qdd = smooth_motion(time)
    effort = 5.0 * qd + 3.0 * qdd
    return RawLog('run.csv', JOINTS, time, q, qd if velocity else None, effort)


def regular(seconds=10.0):
    """Return regular stamps."""
    return np.arange(0.0, seconds, DT)


def motion_errors(samples, inside=1.0):
    """Return the worst error of position, velocity, acceleration against the exact motion.

    ``inside`` [s] is left out at the ends of the whole recording, where filters swing in.
    """
    exact = smooth_motion(samples.time)
    rows = (samples.time > inside) & (samples.time < 10.0 - inside)
    found = (samples.position, samples.velocity, samples.acceleration)
    return np.array([float(np.abs((f - e)[rows]).max()) for f, e in zip(found, exact)])


def effort_error(samples):
    """Return the worst distance between effort and the law it was made with, inside."""
    rows = (samples.time > 1.0) & (samples.time < 9.0)
    law = 5.0 * samples.velocity + 3.0 * samples.acceleration
    return float(np.abs((samples.effort - law)[rows]).max())


def prepared(robot, log, **settings):
    """Repair and prepare a recording at 20 Hz by default."""
    repaired = repair(robot, log)
    return prepare(robot, repaired, Preprocessing(**{'cutoff': 20.0, **settings})), repaired.notes


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
