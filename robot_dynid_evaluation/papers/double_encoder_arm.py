"""The recordings of the double-encoder experiment.

The arm of the paper is not published. Ours has the links of the UR10e, and motors and gears of
`double_encoder_plant`, of the size in config/simulation/ur10e_drives.yaml; it moves within the
limits of table 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.excitation.design_criteria import design_criteria
from robot_dynid.excitation.planned.constant_velocity import ConstantVelocityOptions, plan_sweeps
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.truth import load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import RawLog, frozen
from robot_dynid_evaluation.papers.double_encoder_excitation import PERIOD, limits, trajectory
from robot_dynid_evaluation.papers.double_encoder_plant import TwoEncoderArm

ROBOT, DRIVES = 'ur10e', 'ur10e_drives'
#: speeds of the sweeps as parts of the limits of table 1, and how long they are held [s]
LADDER, PLATEAU = (0.02, 0.05, 0.12, 0.3, 0.6, 0.9), 0.6


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


def recorded(seed: int, disturbed: bool, sweeps: bool = True) -> Recorded:
    """Return the recordings of an arm, with ``sweeps`` or without; it knows its gear ratios.

    Arm, noise, held-out motion and, where it is ``disturbed``, what acts on the links are drawn
    from ``seed``.
    """
    robot = load_robot(ROBOT)
    truth = load_truth(robot, DRIVES)
    ratios = frozen([truth.drives[joint].gear_ratio for joint in robot.joints])
    robot = replace(robot, drive=replace(robot.drive, gear_ratios=ratios))
    generator = np.random.default_rng(seed)
    arm = TwoEncoderArm(robot, truth, disturbed, generator)
    return Recorded(robot, **{name: arm.recorded(path, generator)
                              for name, path in _paths(robot, generator, sweeps)})


def _paths(
    robot: RobotModel, generator: np.random.Generator, sweeps: bool
) -> Iterator[tuple[str, Trajectory]]:
    bounds = limits(robot.joints)
    yield 'motion', trajectory(robot.joints)
    yield 'held_out', random_fourier(bounds, FourierOptions(PERIOD, 5), generator)
    if not sweeps:
        return
    criteria = replace(
        design_criteria(robot), inverse=None, constraints=()
    )  # the paper has no others
    ladder = {joint: [float(part * speed) for part in LADDER]
              for joint, speed in zip(robot.joints, bounds.velocity, strict=True)}
    options = ConstantVelocityOptions(ladder=ladder, plateau=PLATEAU, configurations=1)
    yield 'sweeps', plan_sweeps(criteria, bounds, options, generator).trajectory
