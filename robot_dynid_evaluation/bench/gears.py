"""Gears with hysteresis and kinematic error: what `identify` makes of their damping.

A planar arm with three elastic joints in MuJoCo; every row is over SEEDS noises of its sensors.
The gears are elastic and of no law that robot_dynid fits.
Links move exactly as prescribed, so the torque T of each gear is that of MuJoCo's bare links. It
bends the gear by u,

    K u + D u' + h (1 + |T| / T_max) z = T,    u = theta + e(theta) - q,

z' = u' / L (1 - |z|^n (b + (1 - b) sign(u' z))) being Bouc and Wen's state, twice as wide under
the largest torque of the motion, and e a sum of waves. The motor bears J theta'' + (1 + e') T and
friction that grows with the load. Written apart from the simulator and the dynamics of
robot_dynid. Sources: Wen, J. Eng. Mech. Div. ASCE 1976, 102, 249 (hysteresis); Tuttle, Seering
1996 (waves of harmonic drives).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.cli.terminal import Progress
from robot_dynid.estimation import ESTIMATORS
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.identification.identify import IdentificationResult, identify
from robot_dynid.identification.recipe import Recipe
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.simulation.arm import Arm, measured, record
from robot_dynid.simulation.truth import HarmonicDrive, Noise, Truth, load_truth
from robot_dynid.trajectories.fourier import FourierOptions, random_fourier
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.trajectory import Trajectory
from robot_dynid.types import FloatArray, RawLog
from robot_dynid_evaluation.bench import Row, row
from robot_dynid_evaluation.papers.double_encoder_arm import BareLinks

#: s, step of the computation
STEP = 1.25e-4
#: exponent n and share b of Bouc and Wen's state
SHARP, SHARE = 1.5, 0.3
#: rad/s below which dry friction of motors fades
RAMP = 1e-3


@dataclass(frozen=True, eq=False)
class ForeignGears:
    """Gears of n joints on the joint side, all (n,) but ``waves``.

    ``stiffness`` K N m/rad, ``damping`` D N m s/rad, ``hysteresis`` h N m over ``length`` L rad;
    ``waves`` are turns per turn of the joint and sizes [rad] of each; ``loaded`` is the share of
    the torque transmitted that is friction of the motor.
    """

    stiffness: FloatArray
    damping: FloatArray
    hysteresis: FloatArray
    length: FloatArray
    waves: tuple[tuple[float, float], ...] = ()
    loaded: float = 0.0

    def recorded(self, robot: RobotModel, truth: Truth, path: Trajectory, rate: float) -> RawLog:
        """Return both encoders and motor efforts along ``path`` at ``rate`` [Hz], without noise.

        ``truth`` gives friction and rotors of the motors.
        """
        time = np.arange(0.0, path.duration + 0.5 * STEP, STEP)
        motion = path.sample(time)
        torque = np.array(list(BareLinks(robot).torques(motion)))
        bent, bending = self._bent(torque)
        motor, speed, slope = self._motor(motion.position + bent, motion.velocity + bending)
        side = np.clip(speed / RAMP, -1.0, 1.0)
        effort = (truth.rotor_inertia * np.gradient(speed, STEP, axis=0) + truth.viscous * speed
                  + side * (truth.coulomb + self.loaded * np.abs(torque)) + (1.0 + slope) * torque)
        own = slice(None, None, round(1.0 / (rate * STEP)))
        return RawLog(f'{robot.name} with gears of another kind', robot.joints, time[own],
                      motion.position[own], motion.velocity[own], effort[own], motor[own],
                      speed[own])

    def _bent(self, torque: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return deflection and its rate (N, n) under ``torque`` (N, n), by Heun's method."""
        state = np.stack([torque[0] / self.stiffness, np.zeros_like(self.length)])
        found, rates = np.empty((2, *torque.shape))
        width = self.hysteresis * (1.0 + np.abs(torque) / np.abs(torque).max(axis=0))
        after = [*range(1, len(torque)), len(torque) - 1]
        for i, j in enumerate(after):
            first = self._rate(state, torque[i], width[i])
            found[i], rates[i] = state[0], first[0]
            second = self._rate(state + STEP * first, torque[j], width[j])
            state = state + 0.5 * STEP * (first + second)
        return found, rates

    def _rate(self, state: FloatArray, torque: FloatArray, width: FloatArray) -> FloatArray:
        bent, z = state
        rate = (torque - self.stiffness * bent - width * z) / self.damping
        turning = rate / self.length * (
            1.0 - np.abs(z)**SHARP * (SHARE + (1.0 - SHARE) * np.sign(rate * z)))
        return np.stack([rate, turning])

    def _motor(self, output: FloatArray, speed: FloatArray
               ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return position and speed of motors whose gears put out ``output``, and e', (N, n)."""
        motor = output.copy()
        for _ in range(6):  # the slope is some 0.01
            motor = output - sum((size * np.sin(turns * motor) for turns, size in self.waves),
                                 np.zeros_like(output))
        slope = sum((size * turns * np.cos(turns * motor) for turns, size in self.waves),
                    np.zeros_like(output))
        return motor, speed / (1.0 + slope), slope


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
RESOLUTION, SPEED, EFFORT = 5e-6, 1e-3, 1e-3
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
    robot, logs = _recorded(error, length, other)
    noise = Noise(position_step=RESOLUTION, motor_position_step=RESOLUTION, velocity=SPEED,
                  effort=EFFORT)
    for seed in range(SEEDS):
        seen = [measured(log, robot, noise, np.random.default_rng([seed, number]))
                for number, log in enumerate(logs)]
        result = identify(robot, seen, 'elastic', Recipe(friction='coulomb', cutoff=CUTOFF))
        yield _damping(result)


def _recorded(error: float, length: float, other: bool) -> tuple[RobotModel, list[RawLog]]:
    """Return the robot, and recordings of two motions without noise."""
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
    waves = ((2.0, 1.0), *OTHERS) if error else ()
    return ForeignGears(
        STIFFNESS, DAMPING, LOOP * STIFFNESS, np.full(3, length),
        tuple((turns * RATIO, size * error) for turns, size in waves), LOADED if error else 0.0)


def _damping(result: IdentificationResult) -> tuple[FloatArray, FloatArray]:
    """Return damping, deviation and half of the interval (3, 3), with effects and without."""
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
    """Return error, deviation, both over each other, share outside of intervals, with units."""
    off, deviation, half = found.transpose(1, 0, 2)
    off = off - DAMPING
    return {('error', '%'): 100.0 * float(np.sqrt(np.mean((off / DAMPING)**2))),
            ('mean deviation', '%'): 100.0 * float(np.mean(deviation / DAMPING)),
            ('error over deviation', ''): float(np.sqrt(np.mean((off / deviation)**2))),
            ('outside of 95 % intervals', '%'): 100.0 * float(np.mean(np.abs(off) >= half))}
