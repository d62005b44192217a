"""A long synthetic recording of a simulated arm, made quickly and written piece by piece."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from robot_dynid.dynamics.rigid_body import inverse_dynamics
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.truth import Truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray

PERIOD = 20.0
RAMP = 0.01  # rad/s, width of the Coulomb ramp
PIECE = 60_000
POSITION_NOISE, VELOCITY_NOISE, EFFORT_NOISE = 1e-6, 1e-3, 0.1


def write_recording(
    folder: Path, robot: RobotModel, truth: Truth, shape: tuple[float, float], seed: int = 0
) -> None:
    """Write time, position, velocity and effort of ``shape`` = (seconds, rate) as NumPy files.

    Our own inverse dynamics along a periodic Fourier series, with white noise on everything.
    """
    seconds, rate = shape
    count = round(seconds * rate)
    rng = np.random.default_rng(seed)
    options = FourierOptions(seconds, 5, max(round(seconds / PERIOD), 1))
    trajectory = random_fourier(motion_limits(robot).scaled(0.9), options, rng)
    names = ('time', 'position', 'velocity', 'effort')
    files = {
        name: np.lib.format.open_memmap(
            folder / f'{name}.npy', 'w+', np.float64,
            (count,) if name == 'time' else (count, robot.n))
        for name in names
    }
    for first in range(0, count, PIECE):
        rows = slice(first, min(first + PIECE, count))
        time = np.arange(rows.start, rows.stop) / rate
        motion = trajectory.sample(time)
        files['time'][rows] = time
        for name, values, noise in (('position', motion.position, POSITION_NOISE),
                                    ('velocity', motion.velocity, VELOCITY_NOISE),
                                    ('effort', effort(robot, truth, motion), EFFORT_NOISE)):
            files[name][rows] = values + noise * rng.standard_normal(values.shape)


def effort(robot: RobotModel, truth: Truth, motion: Motion) -> FloatArray:
    """Return the effort (N, n) of the true robot, which must have no coupled motors."""
    q, qd, qdd = motion.position, motion.velocity, motion.acceleration
    links = inverse_dynamics(robot, q, qd, qdd)
    side = np.clip(qd / RAMP, -1.0, 1.0)
    return links + truth.rotor_inertia * qdd + truth.viscous * qd + truth.coulomb * side
