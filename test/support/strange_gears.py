"""An arm with elastic gears apart from every law and simulator of the package.

Pinocchio moves the links, whose masses are off. The motors are those that bend the gears by the
torque of the links, their friction is of no class of the package: an exponential Stribeck curve,
a power of the speed, directions, position.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin

from robot_dynid import load_robot
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, RawLog

#: samples per second, harmonics of the motion, damping over stiffness of the gears [s]
RATE, HARMONICS, DAMPING = 1000.0, 4, 2e-3


def motion(robot: RobotModel, seconds: float, speed: float, seed: int) -> FloatArray:
    """Return position, velocity and acceleration (3, T, n) of a period of random harmonics.

    The joints reach the share ``speed`` of 70 % of their velocity limits, at most.
    """
    rng, time = np.random.default_rng(seed), np.arange(0.0, seconds, 1.0 / RATE)
    found = np.zeros((3, len(time), robot.n))
    for k in range(1, HARMONICS + 1):
        rate = 2.0 * np.pi * k / seconds
        for phase, size in zip((0.0, 0.5 * np.pi), rng.normal(size=(2, robot.n)) / k,
                               strict=True):
            for order in range(3):
                found[order] += np.outer(
                    rate**order * np.sin(rate * time + phase + 0.5 * np.pi * order), size)
    found[0] -= found[0].mean(axis=0)
    scale = np.minimum(1.0 / np.abs(found[0]).max(axis=0),
                       0.7 * robot.limits.velocity / np.abs(found[1]).max(axis=0))
    return np.asarray(found * scale * speed)


def recording(
    stiffness: dict[int, float], seconds: float = 5.0, speed: float = 0.5, step: float = 3e-4,
    noise: float = 1e-2, friction: float = 1.0, seed: int = 2, path: int | None = None,
) -> tuple[RobotModel, RawLog]:
    """Return a UR10e with elastic joints of a ``stiffness`` [N m/rad] by number, and a recording.

    Encoders have a ``step`` [rad], velocities ``noise`` [rad/s]; ``friction`` scales that.
    ``seed`` makes the arm, and its motion if no other ``path`` is named.
    """
    robot, rng = load_robot('ur10e'), np.random.default_rng(seed)
    model = pin.buildModelFromUrdf(robot.source)
    for body in list(model.inertias)[1:]:
        body.mass *= rng.uniform(0.7, 1.35)
    data = model.createData()

    def bent(moved: FloatArray) -> FloatArray:
        return np.array([pin.rnea(model, data, *state) for state in zip(*moved, strict=True)])

    usual = motion(robot, 5.0, 0.5, seed)
    size = np.abs(bent(usual)).max(axis=0) + 0.5
    q, qd, qdd = motion(robot, seconds, speed, seed if path is None else path)
    links = bent((q, qd, qdd))
    motors, rate = np.array([q, qd, qdd]), 2j * np.pi * np.fft.rfftfreq(len(q), 1.0 / RATE)
    for joint, k in stiffness.items():
        bend = np.fft.rfft(links[:, joint]) / (k * (1.0 + DAMPING * rate))
        for order in range(3):
            motors[order, :, joint] += np.fft.irfft(bend * rate**order, len(q))
    dry, speeds = friction * 0.06 * size * rng.uniform(0.5, 1.5, robot.n), np.abs(motors[1])
    curve = dry * (1.0 + 0.4 * np.exp(-(speeds / 0.05) ** 1.3) + 0.1 * np.sin(q))
    slip = np.tanh(motors[1] / 0.004) * np.where(motors[1] > 0.0, 1.1, 0.9)
    rotors = 0.2 * size / np.abs(usual[2]).max(axis=0)
    effort = links + slip * curve + dry * np.sign(motors[1]) * speeds**0.8 + rotors * motors[2]
    effort += 0.003 * size * rng.normal(size=q.shape)
    robot = replace(robot, drive=replace(robot.drive, elastic=tuple(stiffness)))
    assert robot.drive.gains is not None
    return robot, RawLog(
        'plant.csv', robot.joints, np.arange(len(q)) / RATE, step * np.round(q / step),
        qd + noise * rng.normal(size=q.shape), effort / robot.drive.gains,
        step * np.round(motors[0] / step), motors[1] + noise * rng.normal(size=q.shape))
