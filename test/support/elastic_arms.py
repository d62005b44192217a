"""A planar arm with elastic joints, and what both its encoders see."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from motions import Sines

from robot_dynid import load_robot
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import HarmonicDrive, Noise, Truth, load_truth
from robot_dynid.types import RawLog

#: stiffness [N m/rad] and damping [N m s/rad] of the joints
K = (5000.0, 3000.0, 800.0)
D = (10.0, 6.0, 1.6)
RATIO = 100.0
NOISE = Noise(position_step=5e-6, motor_position_step=5e-6, velocity=1e-3, effort=1e-3)


def elastic_arm(
    error: float = 0.0, loop: float = 0.0, length: float = 2e-4, fall: float = 0.0
) -> tuple[RobotModel, Truth]:
    """Return the planar arm with three elastic joints, and its truth without noise.

    Its gears have kinematic ``error`` [rad] and hysteresis of Dahl's kind over ``length`` [rad],
    as wide as what bends them by ``loop`` [rad]. Friction at rest is twice that in motion, and
    falls over ``fall`` [rad/s].
    """
    robot = load_robot('planar_3r')
    robot = replace(robot, drive=replace(robot.drive, elastic=(0, 1, 2)))
    if error:
        robot = replace(robot, drive=replace(robot.drive, gear_ratios=np.full(3, RATIO)))
    drives = {joint: HarmonicDrive(RATIO, k, d, error, loop * k, length)
              for joint, k, d in zip(robot.joints, K, D, strict=True)}
    truth = replace(load_truth(robot), noise=Noise(), drives=drives)
    if fall:
        truth = replace(truth, stribeck=truth.coulomb, stribeck_speed=np.full(3, fall))
    return robot, truth


def recordings(
    seconds: float = 8.0, noise: Noise = NOISE, seed: int = 0, **effects: float
) -> list[RawLog]:
    """Return two recordings of different motions; ``effects`` as of `elastic_arm`."""
    robot, truth = elastic_arm(**effects)
    found = []
    for number in range(2):
        path = Sines(robot, seconds)
        shares = np.random.default_rng(10 + number).normal(size=path.amplitude.shape)
        path.amplitude = shares / path.rate[:, None]
        motion = path.sample(np.linspace(0.0, seconds, 1000))
        path.amplitude *= np.minimum(
            0.7 * robot.limits.velocity / np.abs(motion.velocity).max(axis=0),
            0.7 * robot.limits.acceleration / np.abs(motion.acceleration).max(axis=0))
        log = record(Arm(robot, truth), path, 1000.0)
        found.append(measured(log, robot, noise, np.random.default_rng(seed + number)))
    return found
