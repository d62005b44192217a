"""Lively motions with the effort of a known truth, without filters: for tests of estimators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, Samples

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


def lively(
    model: TorqueModel, count: int = 3000, noise: float = 0.0,
    moving: Sequence[int] | None = None, step: float = STEP,
) -> Samples:
    """Return samples of a rich motion with the effort of the truth; ``moving`` lists joints.

    ``noise`` of the effort is relative to its peak; ``step`` [s].
    """
    rng = np.random.default_rng(2)
    n = model.robot.n
    time = np.arange(count) * step
    q, qd, qdd = np.zeros((3, count, n))
    for _ in range(5):
        rate, size, phase = rng.uniform(0.5, 4.0, n), rng.uniform(0.2, 0.6, n), rng.uniform(
            0.0, 6.0, n)
        angle = time[:, None] * rate + phase
        q += size * np.sin(angle)
        qd += size * rate * np.cos(angle)
        qdd -= size * rate**2 * np.sin(angle)
    if moving is not None:
        still = [i for i in range(n) if i not in moving]
        q[:, still], qd[:, still], qdd[:, still] = 0.3, 0.0, 0.0
    samples = Samples(model.robot.joints, time, q, qd, qdd)
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
