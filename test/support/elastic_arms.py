"""Arms with elastic joints: a planar one, what both its encoders see, and one its monitor knows.

The models of the second know its truth; of what its monitor sees there are recordings and the true
torques of its gears.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from motions import Sines

from robot_dynid import load_robot
from robot_dynid.effects import GearEffects
from robot_dynid.identification.gears import motor_encoders
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.monitoring.noise_levels import learn_noise_levels, recorded_motions
from robot_dynid.robot.model import LINK, RobotModel
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.simulation.arm import Arm, TorqueStep, measured, record
from robot_dynid.simulation.truth import HarmonicDrive, Noise, Truth, load_truth, true_base
from robot_dynid.types import FloatArray, RawLog

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
        log = record(Arm(robot, truth), Sines(robot, seconds, 10 + number), 1000.0)
        found.append(measured(log, robot, noise, np.random.default_rng(seed + number)))
    return found


ARM = load_robot('elastic_2r')
TRUTH = replace(load_truth(ARM), stribeck=None, stribeck_speed=None)
WIDTH = 0.01


def true_model(robot: RobotModel = ARM, truth: Truth = TRUTH, law: str = 'coulomb',
               **settings: float) -> IdentifiedModel:
    """Return the model a perfect identification would give."""
    structure = Structure.uniform(robot, True, law, {'width': WIDTH, **settings})
    reduction = structure.torque_model(robot).reduction
    values = true_base(robot, truth, reduction)
    return IdentifiedModel(robot, structure, reduction, values, abs(values), values,
                           Preprocessing(10.0))


#: kinematic error of the gears [rad], half of the width of their loops [N m], and its length [rad]
ERROR, LOOP, LENGTH = (3e-5, 5e-5), (6.0, 3.0), 2e-4


def with_effects(error: tuple[float, float] = ERROR, loop: tuple[float, float] = LOOP
                 ) -> tuple[IdentifiedModel, Truth]:
    """Return the model of the arm whose gears have kinematic error and Dahl's hysteresis."""
    robot = replace(ARM, drive=replace(ARM.drive, gear_ratios=np.full(2, RATIO)))
    drives = {joint: replace(TRUTH.drives[joint], gear_ratio=RATIO, kinematic_error=e,
                             hysteresis=h, hysteresis_length=LENGTH)
              for joint, e, h in zip(robot.joints, error, loop, strict=True)}
    plain = true_model(robot, TRUTH)
    effects = tuple(GearEffects((e, 0.0), (LENGTH,), 0.0, 'dahl') for e in error)
    structure = replace(plain.structure, gears=effects)
    reduction = structure.torque_model(robot).reduction
    known = dict(plain.standard)
    for j, (e, h) in enumerate(zip(error, loop, strict=True), start=1):
        known |= {f'Ks{j}': known[f'K{j}'] * e, f'Ds{j}': known[f'D{j}'] * e, f'ha{j}': h}
    values = reduction.base([known.get(name, 0.0) for name in reduction.standard])
    return (replace(plain, structure=structure, reduction=reduction, values=values, std=values,
                    control=values), replace(TRUTH, drives=drives))


def random_states(robot, rng, count=30):
    """Return position, velocity of links and motors, effort, each (count, n)."""
    q, qd = rng.uniform(-1.5, 1.5, (2, count, robot.n))
    theta, theta_d = q + 3e-3 * rng.normal(size=q.shape), qd + 0.02 * rng.normal(size=q.shape)
    rigid = np.setdiff1d(np.arange(robot.n), robot.drive.elastic)
    theta[:, rigid], theta_d[:, rigid] = q[:, rigid], qd[:, rigid]
    return q, qd, theta, theta_d, 20.0 * rng.normal(size=q.shape)


def start_at_rest(model: IdentifiedModel, q0):
    """Return q, qd and the motors' position and velocity, at rest under the weight."""
    theta = q0.copy()
    for j in model.robot.drive.elastic:
        theta[:, j] += model.gravity(q0)[:, j] / model.standard[f'K{j + 1}']
    return q0, np.zeros_like(q0), (theta, np.zeros_like(q0))


MONITOR_RATE = 500.0


def moved(seed: int, seconds: float, share: float = 0.5) -> Sines:
    """Return a motion within ``share`` of the limits; zero: the arm holds still."""
    return Sines(ARM, seconds, 10 + seed, share)


def recorded(path: Sines, seed: int = 0, pushes: Sequence[TorqueStep] = ()) -> RawLog:
    """Return what noisy sensors see of a motion."""
    log = record(Arm(ARM, TRUTH), path, MONITOR_RATE, pushes)
    return measured(log, ARM, TRUTH.noise, np.random.default_rng(seed))


def transmitted(path: Sines) -> FloatArray:
    """Return the true torque (N, n) of the gears, from MuJoCo's inverse dynamics of the links."""
    behind = replace(ARM, drive=replace(ARM.drive, elastic=(), sensor=LINK))
    effort = record(Arm(behind, TRUTH), path, MONITOR_RATE).effort
    assert effort is not None
    return effort


def with_motor_encoders(model: IdentifiedModel, logs: Sequence[RawLog]) -> IdentifiedModel:
    """Return the model with the relation of its motor encoders to its joints in its record."""
    return replace(model, record=replace(
        model.record, motor_encoders=motor_encoders(model, logs)))


def watched_model(logs: Sequence[RawLog]) -> IdentifiedModel:
    """Return the true model with the encoders and the noise levels of recordings.

    Its parameters are known to half a per cent.
    """
    model = true_model()
    model = replace(model, std=5e-3 * np.abs(model.values))
    known = with_motor_encoders(model, logs)
    return replace(known, noise_levels=learn_noise_levels(known, recorded_motions(known, logs)))
