"""Gears with hysteresis and kinematic error: what `identify` makes of their damping.

A planar arm with three elastic joints in MuJoCo; every row is over SEEDS noises of its sensors.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from robot_dynid_evaluation.bench import Row, row

if TYPE_CHECKING:
    from robot_dynid.cli.terminal import Progress
    from robot_dynid.identification.identify import IdentificationResult
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.types import FloatArray, RawLog

ROBOT, SECONDS, RATE, SEEDS = 'planar_3r', 8.0, 1000.0, 10
#: stiffness [N m/rad] and damping [N m s/rad] of the joints, gear ratio of all
STIFFNESS, DAMPING, RATIO = np.array([5000.0, 3000.0, 800.0]), np.array([10.0, 6.0, 1.6]), 100.0
#: half of the width of the loop of hysteresis, in terms of what bends the gear by it [rad]
LOOP = 8e-5
#: arms by name: kinematic error [rad] and length [rad] over which hysteresis turns
ARMS = {'hysteresis': (0.0, 8e-5), 'hysteresis and kinematic error': (4e-5, 1.5e-4)}
#: steps of all encoders [rad]; noise of velocity [rad/s] and effort [N m]
STEP, SPEED, EFFORT = 5e-6, 1e-3, 1e-3
CUTOFF = 50.0


def measure(progress: Progress) -> list[Row]:
    """Return errors, deviations and intervals of the damping; the peer knows no such effects."""
    from threadpoolctl import threadpool_limits

    found: list[Row] = []
    with threadpool_limits(limits=1):
        for number, (name, effects) in enumerate(ARMS.items()):
            progress(name, number / len(ARMS))
            found += _rows(name, list(_fits(*effects)))
    return found


def _fits(error: float, length: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield damping, its deviation and bound of the interval (2, 3, 3) of every seed.

    With the effects of gears, then without.
    """
    from robot_dynid.identification.identify import identify
    from robot_dynid.identification.recipe import Recipe
    from robot_dynid.simulation.arm import measured
    from robot_dynid.simulation.truth import Noise

    robot, logs = _recorded(error, length)
    noise = Noise(position_step=STEP, motor_position_step=STEP, velocity=SPEED, effort=EFFORT)
    for seed in range(SEEDS):
        seen = [measured(log, robot, noise, np.random.default_rng([seed, number]))
                for number, log in enumerate(logs)]
        result = identify(robot, seen, 'elastic', Recipe(friction='coulomb', cutoff=CUTOFF))
        yield _damping(result)


def _recorded(error: float, length: float) -> tuple[RobotModel, list[RawLog]]:
    """Return the robot, and recordings of two motions without noise."""
    from dataclasses import replace

    from robot_dynid.robot.robot_file import load_robot
    from robot_dynid.simulation.arm import Arm, record
    from robot_dynid.simulation.harmonic_drive import HarmonicDrive
    from robot_dynid.simulation.truth import Noise, load_truth
    from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
    from robot_dynid.trajectories.limits import motion_limits

    robot = load_robot(ROBOT)
    robot = replace(robot, drive=replace(
        robot.drive, elastic=(0, 1, 2), gear_ratios=np.full(3, RATIO) if error else None))
    drives = {joint: HarmonicDrive(RATIO, k, d, error, LOOP * k, length) for joint, k, d in zip(
        robot.joints, STIFFNESS.tolist(), DAMPING.tolist(), strict=True)}
    truth = replace(load_truth(robot), noise=Noise(), drives=drives)
    limits = motion_limits(robot).scaled(0.7)
    return robot, [record(Arm(robot, truth), random_fourier(
        limits, FourierOptions(SECONDS, 5), np.random.default_rng(number)), RATE)
        for number in range(2)]


def _damping(result: IdentificationResult) -> tuple[FloatArray, FloatArray]:
    """Return damping, deviation and half of the interval (3, 3), with effects and without."""
    from dataclasses import replace

    from robot_dynid.estimation import ESTIMATORS
    from robot_dynid.estimation.estimate import interval_factor
    from robot_dynid.estimation.experiment import Experiment

    plain = replace(result.choice.structure, gears=()).torque_model(result.experiment.model.robot)
    without = ESTIMATORS['elastic'].fit(Experiment.of(plain, result.experiment.recordings))
    found = []
    for estimate in (result.estimate, without):
        own = [estimate.names.index(f'D{j + 1}') for j in range(len(DAMPING))]
        deviation = estimate.std[own]
        found.append(np.array([estimate.values[own], deviation, deviation * interval_factor(
            estimate.degrees_of_freedom)]))
    return found[0], found[1]


def _rows(name: str, fits: list[tuple[FloatArray, FloatArray]]) -> list[Row]:
    """Return the figures of all joints and seeds [%]."""
    ours, peer = (_figures(np.array(own)) for own in zip(*fits, strict=True))
    return [row(f'{name}, damping: {figure}', '%', ours[figure], peer[figure], None)
            for figure in ours]


def _figures(found: FloatArray) -> dict[str, float]:
    """Return error, deviation, share outside of intervals [%] of dampings (seeds, 3, 3)."""
    off, deviation, half = found.transpose(1, 0, 2)
    off = off - DAMPING
    return {'error': 100.0 * float(np.sqrt(np.mean((off / DAMPING)**2))),
            'mean deviation': 100.0 * float(np.mean(deviation / DAMPING)),
            'outside of 95 % intervals': 100.0 * float(np.mean(np.abs(off) >= half))}
