"""Recordings in which one joint at a time moves: planned ones, and sweeps in closed form."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.signal import lfilter

from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.excitation.design import DesignCriteria
from robot_dynid.excitation.families import parse_request
from robot_dynid.excitation.planned.sine_sequence import sine_sequence
from robot_dynid.friction import law_from
from robot_dynid.trajectories.limits import motion_limits
from robot_dynid.trajectories.single_joint import Sweep
from robot_dynid.types import FloatArray, Samples, frozen

STEP = 0.01


def truth_of(model: TorqueModel, coulomb: float = 0.0) -> FloatArray:
    """Return plausible base parameters; ``coulomb`` [N m] is the dry friction of every axis."""
    rng = np.random.default_rng(1)
    standard = {name: rng.uniform(0.1, 0.5) for name in model.reduction.standard}
    standard |= dict(zip(model.blocks[0].names, model.robot.nominal.ravel()))
    standard |= {name: coulomb for name in standard if name.startswith('fc')}
    return model.reduction.base(list(standard.values()))


def planned(model: TorqueModel, **options: object) -> Samples:
    """Return the states of a planned sine sequence."""
    request = parse_request('sine-sequence', options)
    limits = motion_limits(model.robot).scaled(0.9)
    trajectory = sine_sequence(DesignCriteria(model=model), limits, request.options,
                               np.random.default_rng(0)).trajectory
    time = np.arange(0.0, trajectory.duration, STEP)
    motion = trajectory.sample(time)
    return Samples(model.robot.joints, time, motion.position, motion.velocity,
                   motion.acceleration)


def with_effort(model: TorqueModel, samples: Samples, parameters: FloatArray,
                noise: float = 0.0, seed: int = 0) -> Samples:
    """Return the samples with the modelled effort and white noise, a share of its largest."""
    effort = model.effort(samples, parameters)
    spread = noise * np.abs(effort).max(axis=0)
    effort = effort + spread * np.random.default_rng(seed).standard_normal(effort.shape)
    return Samples(samples.joints, samples.time, samples.position, samples.velocity,
                   samples.acceleration, effort, effort)


SWEEP_STEP, JOINTS = 0.002, ('a', 'b')
SPEEDS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
INERTIA, GRAVITY, OFFSET = 3.0, 40.0, 0.7


def coulomb(speed: FloatArray) -> FloatArray:
    """Friction 2 v + 3 sign(v)."""
    return 2.0 * speed + 3.0 * np.sign(speed)


def stribeck(speed: FloatArray) -> FloatArray:
    """Friction 2 v + 3 sign(v) + 1.5 that fades over 0.1 rad/s."""
    return coulomb(speed) + 1.5 * (np.sign(speed) - np.tanh(speed / 0.1))


def swept(
    speeds: Sequence[float] = SPEEDS, friction: Callable[[FloatArray], FloatArray] = coulomb,
    plateau: float = 0.6, pause: float = 0.7, poses: Sequence[float] = (0.0,),
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return time (N,), position (N, 2), torque (N, 2): joint a sweeps, b holds in turn.

    The torque on a is inertia, gravity over both joints, an offset and ``friction`` (of speed).
    """
    parts, pauses = [], np.zeros((round(pause / SWEEP_STEP), 3, 2))
    for pose in poses:
        for speed in speeds:
            one = Sweep(JOINTS, 'a', frozen([0.2, pose]), speed, 0.3, plateau)
            motion = one.sample(np.arange(0.0, one.duration, SWEEP_STEP))
            rows = np.stack([motion.position, motion.velocity, motion.acceleration], axis=1)
            pauses[:, 0] = rows[-1, 0]
            parts += [rows, pauses.copy()]
    states = np.concatenate(parts)
    q, qd, qdd = states.transpose(1, 0, 2)
    torque = np.zeros_like(q)
    torque[:, 0] = (INERTIA * qdd[:, 0] + GRAVITY * np.cos(q[:, 0] + q[:, 1]) + OFFSET
                    + np.where(qd[:, 0] == 0.0, 0.0, friction(qd[:, 0])))
    return np.arange(len(q)) * SWEEP_STEP, q, torque


def coloured(shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Return noise of deviation 0.3 N m that remembers about 10 ms."""
    white = rng.standard_normal(shape)
    keep = np.exp(-SWEEP_STEP / 0.01)
    return 0.3 * np.sqrt(1.0 - keep**2) * lfilter([1.0], [1.0, -keep], white, axis=0)


def law_torque(name: str) -> Callable[[FloatArray], FloatArray]:
    """Return the friction of a law with its default shapes, every parameter 1 over its number."""
    from robot_dynid.friction import AxisMotion

    law = law_from(name)
    values = np.array([0.0 if p == 'f0' else 1.0 / (i + 1) for i, p in enumerate(law.parameters)])

    def torque(speed: FloatArray) -> FloatArray:
        still = np.zeros_like(speed)
        return values @ law.columns(AxisMotion(still, still, speed, tuple(range(len(speed)))))

    return torque
