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
    from robot_dynid_evaluation.bench.gear_plant import ForeignGears

ROBOT, SECONDS, RATE, SEEDS = 'planar_3r', 8.0, 1000.0, 10
#: stiffness [N m/rad] and damping [N m s/rad] of the joints, gear ratio of all
STIFFNESS, DAMPING, RATIO = np.array([5000.0, 3000.0, 800.0]), np.array([10.0, 6.0, 1.6]), 100.0
#: half of the width of the loop of hysteresis, in terms of what bends the gear by it [rad]
LOOP = 8e-5
#: arms by name: kinematic error [rad] and length [rad] over which hysteresis turns, and whether
#: its gears are of a kind that no law of the model is
ARMS = {'hysteresis': (0.0, 8e-5, False),
        'hysteresis and kinematic error': (4e-5, 1.5e-4, False),
        'hysteresis of another kind': (0.0, 1e-4, True),
        'hysteresis and kinematic error of another kind': (4e-5, 1.5e-4, True)}
#: gears of another kind: waves four times per turn of the motor and once, in terms of the usual
#: one, and the share of the load that is friction of the motor
OTHERS, LOADED = ((4.0, 0.4), (1.0, 0.5)), 0.02
#: seeds of the motions
MOTIONS = (0, 1)
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


def _fits(error: float, length: float, other: bool) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield damping, its deviation and bound of the interval (2, 3, 3) of every seed.

    With the effects of gears, then without.
    """
    from robot_dynid.identification.identify import identify
    from robot_dynid.identification.recipe import Recipe
    from robot_dynid.simulation.arm import measured
    from robot_dynid.simulation.truth import Noise

    robot, logs = _recorded(error, length, other)
    noise = Noise(position_step=STEP, motor_position_step=STEP, velocity=SPEED, effort=EFFORT)
    for seed in range(SEEDS):
        seen = [measured(log, robot, noise, np.random.default_rng([seed, number]))
                for number, log in enumerate(logs)]
        result = identify(robot, seen, 'elastic', Recipe(friction='coulomb', cutoff=CUTOFF))
        yield _damping(result)


def _recorded(error: float, length: float, other: bool) -> tuple[RobotModel, list[RawLog]]:
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
    truth = replace(load_truth(robot), noise=Noise())
    paths = [random_fourier(motion_limits(robot).scaled(0.7), FourierOptions(SECONDS, 5),
                            np.random.default_rng(number)) for number in MOTIONS]
    if other:
        gears = _of_another_kind(error, length)
        return robot, [gears.recorded(robot, truth, path, RATE) for path in paths]
    drives = {joint: HarmonicDrive(RATIO, k, d, error, LOOP * k, length) for joint, k, d in zip(
        robot.joints, STIFFNESS.tolist(), DAMPING.tolist(), strict=True)}
    arm = replace(truth, drives=drives)
    return robot, [record(Arm(robot, arm), path, RATE) for path in paths]


def _of_another_kind(error: float, length: float) -> ForeignGears:
    """Return gears whose hysteresis and waves no state and no wave of the model is."""
    from robot_dynid_evaluation.bench.gear_plant import ForeignGears

    waves = ((2.0, 1.0), *OTHERS) if error else ()
    return ForeignGears(
        STIFFNESS, DAMPING, LOOP * STIFFNESS, np.full(3, length),
        tuple((turns * RATIO, size * error) for turns, size in waves), LOADED if error else 0.0)


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
    """Return the figures of all joints and seeds."""
    ours, peer = (_figures(np.array(own)) for own in zip(*fits, strict=True))
    return [row(f'{name}, damping: {figure}', unit, ours[figure, unit], peer[figure, unit], None)
            for figure, unit in ours]


def _figures(found: FloatArray) -> dict[tuple[str, str], float]:
    """Return error, deviation, both over each other, share outside of intervals, with units.

    Of dampings (seeds, 3, 3). Errors over deviations have a root mean square of one where
    deviations are neither too large nor too small.
    """
    off, deviation, half = found.transpose(1, 0, 2)
    off = off - DAMPING
    return {('error', '%'): 100.0 * float(np.sqrt(np.mean((off / DAMPING)**2))),
            ('mean deviation', '%'): 100.0 * float(np.mean(deviation / DAMPING)),
            ('error over deviation', ''): float(np.sqrt(np.mean((off / deviation)**2))),
            ('outside of 95 % intervals', '%'): 100.0 * float(np.mean(np.abs(off) >= half))}
