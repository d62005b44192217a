"""A simulated arm that is pushed while it moves: MuJoCo applies the wrench, and knows no J^T."""

from __future__ import annotations

from pathlib import Path

import mujoco
import numpy as np

from robot_dynid.io.csv import read_table, write_csv
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.arm import CONTROL_PERIOD, Arm, Setpoint, measured
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.types import WRENCH_COMPONENTS, FloatArray, RawLog

#: control periods per row
EVERY = 4
#: size of the wrench [N, N m], which swings at frequencies of its own [rad/s]
SIZE = np.array([40.0, 30.0, 20.0, 3.0, 4.0, 5.0])
RATES = np.array([2.3, 1.7, 1.1, 2.9, 0.7, 1.3])


def pushed(
    robot: RobotModel, link: str, seed: int, seconds: float = 8.0
) -> tuple[RawLog, FloatArray]:
    """Return a noisy recording under a wrench on ``link``, and the wrench (T, 6) in its frame."""
    rng, truth = np.random.default_rng(seed), load_truth(robot)
    arm = Arm(robot, truth)
    trajectory = random_fourier(
        motion_limits(robot).scaled(0.8), FourierOptions(seconds, 6), rng)
    motion = trajectory.sample(np.arange(round(seconds / CONTROL_PERIOD)) * CONTROL_PERIOD)
    arm.place(motion.position[0])
    rows, data, body = [], arm.plant.data, arm.plant.model.body(link).id
    for i in range(len(motion.position)):
        wrench = SIZE * np.sin(RATES * i * CONTROL_PERIOD + np.arange(6))
        mujoco.mj_kinematics(arm.plant.model, data)
        turn = data.xmat[body].reshape(3, 3)
        force, lever = turn @ wrench[:3], data.xipos[body] - data.xpos[body]
        data.xfrc_applied[body] = *force, *(turn @ wrench[3:] - np.cross(lever, force))
        arm.control(Setpoint(motion.position[i], motion.velocity[i], motion.acceleration[i]))
        if i % EVERY == 0:
            rows.append((i * CONTROL_PERIOD, arm.position, arm.velocity, arm.effort(), wrench))
        arm.advance()
    *columns, wrenches = (np.array(column) for column in zip(*rows, strict=True))
    log = RawLog('pushed', robot.joints, *columns)
    return measured(log, robot, truth.noise, rng), wrenches


def write_pushed(path: Path, log: RawLog, link: str, wrench: FloatArray) -> Path:
    """Write a recording with the columns of a wrench (T, 6) on ``link``."""
    write_csv(path, log)
    table = read_table(path)
    header = [*table.columns, *(f'wrench.{link}.{c}' for c in WRENCH_COMPONENTS)]
    np.savetxt(path, np.hstack([table.values, wrench]), fmt='%.9g', delimiter=',',
               header=','.join(header), comments='')
    return path
