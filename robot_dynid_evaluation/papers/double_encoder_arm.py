"""The simulated arm of the double-encoder experiment, and its recordings.

The arm of the paper is not published. Ours is the UR10e with a harmonic drive in every joint
(config/simulation/ur10e_drives.yaml): elastic, with kinematic error, hysteresis, Stribeck friction
that builds up over a travel, and noisy encoders on both sides. It moves within the limits of
table 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.planned.constant_velocity import ConstantVelocityOptions, plan_sweeps
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import Progress, RawLog, frozen
from robot_dynid_evaluation.papers.double_encoder_excitation import PERIOD, limits, trajectory

ROBOT, DRIVES = 'ur10e', 'ur10e_drives'
#: Hz of the recordings; the paper samples at 10 Hz
RATE = 250.0
#: speeds of the sweeps as parts of the limits of table 1, and how long they are held [s]
LADDER, PLATEAU = (0.02, 0.05, 0.12, 0.3, 0.6, 0.9), 0.6
SEED = 7


@dataclass(frozen=True, eq=False)
class Recorded:
    """The arm and what was recorded: the ``motion`` of table 3, a ``held_out`` motion, ``sweeps``.

    The second is another Fourier series of fifth order within the same limits. Like the first it
    begins and ends at rest, so some joints stand for a part of it.
    """

    robot: RobotModel
    motion: RawLog
    held_out: RawLog
    sweeps: RawLog | None = None


def recorded(progress: Progress, sweeps: bool = True) -> Recorded:
    """Simulate the arm, with ``sweeps`` or without; the robot knows its gear ratios."""
    robot = load_robot(ROBOT)
    truth = load_truth(robot, DRIVES)
    ratios = frozen([truth.drives[joint].gear_ratio for joint in robot.joints])
    robot = replace(robot, drive=replace(robot.drive, gear_ratios=ratios))
    logs = {}
    for index, (name, path) in enumerate(_paths(robot, sweeps)):
        progress('simulating the arm', 0.25 * index)
        log = record(Arm(robot, truth), path, RATE)
        logs[name] = measured(log, robot, truth.noise, np.random.default_rng(SEED + index))
    return Recorded(robot, **logs)


def _paths(robot: RobotModel, sweeps: bool) -> Iterator[tuple[str, Trajectory]]:
    bounds = limits(robot.joints)
    yield 'motion', trajectory(robot.joints)
    yield 'held_out', random_fourier(bounds, FourierOptions(PERIOD, 5),
                                     np.random.default_rng(SEED))
    if not sweeps:
        return
    criteria = replace(
        design_criteria(robot), inverse=None, constraints=()
    )  # the paper has no others
    ladder = {joint: [float(part * speed) for part in LADDER]
              for joint, speed in zip(robot.joints, bounds.velocity, strict=True)}
    options = ConstantVelocityOptions(ladder=ladder, plateau=PLATEAU, configurations=1)
    yield 'sweeps', plan_sweeps(criteria, bounds, options, np.random.default_rng(SEED)).trajectory
