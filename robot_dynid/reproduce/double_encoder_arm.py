"""The simulated arm of the double-encoder experiment, and its recordings.

The arm of the paper is not published. Ours is the UR10e with a harmonic drive in every joint
(config/simulation/ur10e_drives.yaml): elastic, with kinematic error, hysteresis, Stribeck friction
that sticks, and noisy encoders on both sides. It moves within the limits of table 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.excitation.constant_velocity import ConstantVelocityOptions, plan_sweeps
from robot_dynid.excitation.fourier import FourierOptions, random_fourier
from robot_dynid.excitation.judge import robot_judge
from robot_dynid.excitation.trajectory import Trajectory
from robot_dynid.model.robot import RobotModel
from robot_dynid.model.robot_file import load_robot
from robot_dynid.reproduce import Progress
from robot_dynid.reproduce.double_encoder_excitation import PERIOD, limits, trajectory
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import load_truth
from robot_dynid.types import RawLog

ROBOT, DRIVES = 'ur10e', 'ur10e_drives'
#: Hz of the recordings; the paper samples at 10 Hz
RATE = 250.0
#: speeds of the sweeps as parts of the limits of table 1, and how long they are held [s]
LADDER, PLATEAU = (0.0125, 0.03, 0.06, 0.12, 0.25, 0.5, 0.9), 0.6
SEED = 7


@dataclass(frozen=True, eq=False)
class Recorded:
    """The arm and what was recorded: the ``motion`` of table 3, ``sweeps``, a ``held_out`` motion.

    The latter is another Fourier series of fifth order within the same limits.
    """

    robot: RobotModel
    motion: RawLog
    sweeps: RawLog
    held_out: RawLog


def recorded(progress: Progress) -> Recorded:
    """Simulate the arm."""
    robot = load_robot(ROBOT)
    logs = []
    for index, path in enumerate(_paths(robot)):
        progress('simulating the arm', 0.25 * index)
        truth = load_truth(robot, DRIVES)
        log = record(Arm(robot, truth), path, RATE)
        logs.append(measured(log, robot, truth.noise, np.random.default_rng(SEED + index)))
    return Recorded(robot, *logs)


def _paths(robot: RobotModel) -> Iterator[Trajectory]:
    bounds = limits(robot.joints)
    yield trajectory(robot.joints)
    judge = replace(robot_judge(robot), inverse=None, constraints=())  # the paper has no others
    ladder = {joint: [float(part * speed) for part in LADDER]
              for joint, speed in zip(robot.joints, bounds.velocity, strict=True)}
    options = ConstantVelocityOptions(ladder=ladder, plateau=PLATEAU, configurations=1)
    yield plan_sweeps(judge, bounds, options, np.random.default_rng(SEED)).trajectory
    yield random_fourier(bounds, FourierOptions(PERIOD, 5), np.random.default_rng(SEED))
