"""Motions of sines in closed form, and the effort of a known truth along them, without filters.

Lively ones for tests of estimators, ones whose encoders are noisy (what biases least squares),
ones that repeat, and ones within the limits of an arm.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing, prepare, repair
from robot_dynid.trajectories.trajectory import Motion
from robot_dynid.types import FloatArray, RawLog, Samples

STEP = 0.01


def torque_model(robot: str | RobotModel) -> TorqueModel:
    """Return the torque model of a robot, or that of a name, with rotors and friction."""
    robot = load_robot(robot) if isinstance(robot, str) else robot
    return Structure.uniform(robot, True, 'coulomb', {'width': 0.05}).torque_model(robot)


def truth_of(model: TorqueModel) -> FloatArray:
    """Return plausible base parameters (b,): nominal links, rotors and friction."""
    standard = dict.fromkeys(model.reduction.standard, 0.0)
    links = dict(zip(model.blocks[0].names, model.robot.nominal.ravel()))
    rng = np.random.default_rng(1)
    for name in standard:
        standard[name] = links.get(name, rng.uniform(0.1, 1.0))
    return model.reduction.base(list(standard.values()))


def five_sines(
    rng: np.random.Generator, time: FloatArray, n: int, fastest: float = 4.0,
    moving: Sequence[int] | None = None,
) -> FloatArray:
    """Return position, velocity and acceleration (3, T, n) of five sines per joint.

    Their rates are 0.5 to ``fastest`` rad/s; ``moving`` lists the joints, the others rest.
    """
    q, qd, qdd = motion = np.zeros((3, len(time), n))
    for _ in range(5):
        rate, size, phase = (rng.uniform(low, high, n)
                             for low, high in ((0.5, fastest), (0.2, 0.6), (0.0, 6.0)))
        angle = time[:, None] * rate + phase
        q += size * np.sin(angle)
        qd += size * rate * np.cos(angle)
        qdd -= size * rate**2 * np.sin(angle)
    if moving is not None:
        still = [i for i in range(n) if i not in moving]
        q[:, still], qd[:, still], qdd[:, still] = 0.3, 0.0, 0.0
    return motion


def lively(
    model: TorqueModel, count: int = 3000, noise: float = 0.0,
    moving: Sequence[int] | None = None, step: float = STEP,
) -> Samples:
    """Return samples of a rich motion with the effort of the truth; ``moving`` lists joints.

    ``noise`` of the effort is relative to its peak; ``step`` [s].
    """
    rng, time = np.random.default_rng(2), np.arange(count) * step
    motion = five_sines(rng, time, model.robot.n, moving=moving)
    samples = Samples(model.robot.joints, time, *motion)
    clean = model.effort(samples, truth_of(model))
    return with_effort(samples, clean + noise * np.abs(clean).max(axis=0) * rng.normal(
        size=clean.shape))


def with_effort(samples: Samples, effort: FloatArray) -> Samples:
    """Return ``samples`` with another effort (N, n), filtered and raw alike."""
    return replace(samples, effort=effort, measured=effort)


def stacked(model: TorqueModel, samples: Samples) -> tuple[FloatArray, FloatArray]:
    """Return the dense regressor (N n, b) and the effort (N n,), joints of a sample together."""
    assert samples.effort is not None
    columns = model.columns(samples)
    return columns.transpose(2, 0, 1).reshape(-1, columns.shape[1]), samples.effort.ravel()


NOISY_RATE = 500.0
#: effort noise relative to the peak; a cut-off [Hz] far above the motion, which ends at 1 Hz
EFFORT_NOISE, WIDE = 0.01, 50.0


def noisy_log(
    model: TorqueModel, seed: int, position_noise: float, seconds: float, lag: float = 0.0
) -> RawLog:
    """Return a recording without velocities whose positions have white noise [rad].

    The drives follow a reference ``lag`` [s] ahead of the motion.
    """
    true = lively(model, round(seconds * NOISY_RATE), step=1.0 / NOISY_RATE)
    assert true.effort is not None
    rng = np.random.default_rng(seed)
    position, effort = rng.normal(size=(2, *true.position.shape))
    size = EFFORT_NOISE * np.abs(true.effort).max(axis=0)
    log = RawLog(f'seed {seed}', model.robot.joints, true.time,
                 true.position + position_noise * position, effort=true.effort + size * effort)
    if lag:
        ahead = true.position + lag * true.velocity + 0.5 * lag**2 * true.acceleration
        log = replace(log, reference_position=ahead)
    return log


def noisy(
    model: TorqueModel, seed: int, position_noise: float, seconds: float = 40.0, lag: float = 0.0
) -> Experiment:
    """Return the experiment of one such recording, filtered at the wide cut-off."""
    log = noisy_log(model, seed, position_noise, seconds, lag)
    samples = prepare(model.robot, repair(model.robot, log), Preprocessing(WIDE))
    return Experiment.of(model, [samples])


def parameter_errors(model: TorqueModel, values: np.ndarray) -> np.ndarray:
    """Return the deviation (b,) of parameters from the truth."""
    return np.asarray(values - truth_of(model))


RATE = 100.0


def repeated_motion(seed, period, periods, joints=3, begins=0.0, noise=0.0):
    """Return samples of a random motion that repeats, and begins some seconds into its period."""
    random = np.random.default_rng(seed)
    time = np.arange(0.0, period * periods, 1.0 / RATE)
    phase = 2.0 * np.pi / period * (time[:, None] + begins)
    position, velocity = np.zeros((2, len(time), joints))
    for k in range(1, 5):
        a, b = random.normal(size=(2, joints)) / k
        position += a * np.sin(k * phase) + b * np.cos(k * phase)
        velocity += k * (a * np.cos(k * phase) - b * np.sin(k * phase)) * 2.0 * np.pi / period
    position += noise * np.random.default_rng(seed + 1).normal(size=position.shape)
    names = tuple(f'joint_{j + 1}' for j in range(joints))
    return Samples(names, time, position, velocity, np.zeros_like(position))


class Sines:
    """Five harmonics per joint, at rest at both ends, within a ``share`` of the limits."""

    def __init__(
        self, robot: RobotModel, duration: float = 4.0, seed: int = 0, share: float = 0.7
    ) -> None:
        self.joints, self.duration = robot.joints, duration
        self.rate = 2.0 * np.pi / duration * np.arange(1, 6)
        rng = np.random.default_rng(seed)
        self.amplitude = rng.normal(size=(5, robot.n)) / self.rate[:, None]
        motion = self.sample(np.linspace(0.0, duration, 1000))
        speed = share * robot.limits.velocity / np.abs(motion.velocity).max(axis=0)
        acceleration = share * robot.limits.acceleration / np.abs(motion.acceleration).max(axis=0)
        self.amplitude *= np.minimum(speed, acceleration)

    def sample(self, time: FloatArray) -> Motion:
        phase, a, w = np.outer(time, self.rate), self.amplitude, self.rate[:, None]
        zero = np.zeros((len(time), len(self.joints)))
        return Motion((1.0 - np.cos(phase)) @ a, np.sin(phase) @ (a * w),
                      np.cos(phase) @ (a * w**2), zero)
