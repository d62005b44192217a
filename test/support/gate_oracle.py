"""Whether anybody could tell a fault of a recording, from the plant in truth.

The motion and the effort without noise, with the fault, are explained as a healthy recording would
be: links that differ from their description as those of the strange plant do (prior), friction,
rotors and offsets of any likely size. `Told.torque` is by how many standard deviations that
explanation is less likely than the one of the same recording without the fault, where the
residual of the healthy recording (friction of no law, lag, ripple) sets the scale of every joint.
So a fault that links off by 15 to 40 %, friction or noise make up for counts nothing: an offset
about the direction of gravity, an effort that is friction alone, an effort of another size that
links and a drive gain as these may be make up for. `Told.motion` is the error of velocities as
derivatives of positions, in proportion.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from gate_rows import Case, Row, Take
from numpy.typing import NDArray
from scipy.optimize import lsq_linear
from strange_plant import regressor

from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, RawLog

#: from so many standard deviations on torque tells, and from this share of the velocity on motion
TORQUE, MOTION = 8.0, 0.04
#: samples that are looked at; as many tell apart as there are, since residuals are coloured
SAMPLES, INDEPENDENT = 300, 40.0
#: deviations of links from their description, relative: of masses, of first moments along the
#: lever and across it, of moments of inertia
LINKS_OFF = 0.3, 0.45, 0.1, 0.6
#: efforts above this share of the limits that are stated tell, too
LIMIT = 1.2
#: causes that change the unit of efforts: their residual has that unit, too
UNITS = 'effort', 'effort_order', 'order'
#: a drive gain may be off by this factor
GAIN = 1.3
#: friction, rotors and offsets as shares of the effort, one standard deviation
FRICTION, OFFSET = 1.0, 0.15
#: a joint turns its friction round within this share of its speed; slower is not looked at
SLOW, ROUNDS = 0.03, 4


@dataclass(frozen=True)
class Told:
    """By how much a fault shows in torque [standard deviations] and in motion [share]."""

    torque: float
    motion: float


def can_tell(row: Row, told: Told) -> bool:
    """Return whether a fault of a row could be told."""
    return row.by == 'always' or told.torque > TORQUE or (
        row.by == 'motion' and told.motion > MOTION)


def told(take: Take, row: Row, case: Case) -> Told:
    """Return by how much the fault of a case shows."""
    robot = case.robot
    scale, healthy = _healthy(take)
    truth, before = case.sample.truth, take.sample().truth
    if (_beyond_limits(robot, truth) & ~_beyond_limits(robot, before)).any():
        return Told(np.inf, _motion(case.sample))
    unit = _roughness(truth) / _roughness(before) if row.cause in UNITS else 1.0
    faulty = min(_strain(robot, case.stated, *one) for one in _gains(row, case, scale * unit))
    return Told(float(np.sqrt(max(0.0, faulty - healthy))), _motion(case.sample))


def _gains(row: Row, case: Case, scale: FloatArray) -> Iterator[tuple[RawLog, FloatArray]]:
    """Yield the recording and its scale (n,), with the gain of one joint as it may be."""
    truth = case.sample.truth
    yield truth, scale
    for joint in case.joints if row.cause == 'effort' else ():
        for gain in (GAIN, 1.0 / GAIN):
            factor = np.where(np.array(case.robot.joints) == joint, gain, 1.0)
            yield replace(truth, effort=truth.effort * factor), scale * factor


def _beyond_limits(robot: RobotModel, truth: RawLog) -> NDArray[np.bool_]:
    assert truth.effort is not None
    return np.abs(truth.effort).max(axis=0) > LIMIT * robot.limits.effort


def _roughness(truth: RawLog) -> FloatArray:
    """Return the size (n,) of what is fast in the effort, which shares the unit of the effort."""
    assert truth.effort is not None
    return np.asarray(np.sqrt(np.mean(np.diff(truth.effort, 2, axis=0)**2, axis=0)))


def _motion(sample: Any) -> float:
    if sample.log.velocity is None:
        return 0.0
    truth = sample.truth
    rate = np.gradient(truth.position, truth.time, axis=0)
    return float(np.max(np.sqrt(np.mean((truth.velocity - rate)**2, axis=0)
                                / np.maximum(np.mean(rate**2, axis=0), 1e-12))))


@cache
def _healthy(take: Take) -> tuple[FloatArray, float]:
    """Return the residual (n,) [N m] of the healthy recording, and its strain."""
    truth, robot, nominal = take.sample().truth, take.arm.robot, take.arm.nominal
    assert truth.effort is not None
    scale = 0.05 * np.sqrt(np.mean(truth.effort**2, axis=0))
    noise = take.plant().noise
    for _ in range(ROUNDS):
        residual, on, _ = _fit(robot, nominal, truth, scale)
        size = np.array([np.sqrt(np.mean(one[rows]**2))
                         for one, rows in zip(residual.T, on.T, strict=True)])
        scale = np.hypot(size, noise)
    return scale, _strain(robot, nominal, truth, scale)


def _strain(robot: RobotModel, stated: Any, truth: RawLog, scale: FloatArray) -> float:
    """Return twice the negative logarithm of the likelihood of the best healthy explanation."""
    residual, on, strain = _fit(robot, stated, truth, scale)
    return strain + sum(INDEPENDENT * float(np.mean((one[rows] / size)**2)) for one, rows, size in
                        zip(residual.T, on.T, scale, strict=True))


def _fit(
    robot: RobotModel, stated: Any, truth: RawLog, scale: FloatArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return residuals (T, n), which of them count (T, n), and the strain of the prior."""
    v = np.gradient(truth.position, truth.time, axis=0)
    a = np.gradient(v, truth.time, axis=0)
    few = np.linspace(0, len(truth.time) - 1, SAMPLES).astype(int)
    q, v, a = truth.position[few], v[few], a[few]
    assert truth.effort is not None
    effort, n = truth.effort[few], q.shape[1]
    model = stated.copy()
    weightless = robot.drive.kind == 'gravity_compensated_torque'
    model.gravity.linear = np.zeros(3) if weightless else np.array(robot.gravity)
    links = regressor(model, q, v, a)
    nominal, off = _prior(model)
    fastest = np.abs(v).max(axis=0)
    on = np.abs(v) > SLOW * fastest
    size = np.sqrt(np.mean(effort**2, axis=0)) + 1e-9
    friction = _friction(robot, v, a, size)
    columns = np.concatenate([links * off, friction], axis=2)
    counted = np.maximum(on.sum(axis=0), 1)
    weight = on * np.sqrt(INDEPENDENT / counted) / scale
    target = effort - links @ nominal
    k = columns.shape[2]
    stack = np.concatenate([(columns * weight[:, :, None]).reshape(-1, k), np.eye(k)])
    right = np.concatenate([(target * weight).ravel(), np.zeros(k)])
    # friction takes energy away, rotors have inertia: their coefficients are not negative
    lower = np.full(k, -np.inf)
    lower[links.shape[2]:k - n] = 0.0
    upper = np.linalg.cholesky(stack.T @ stack).T  # the prior keeps it well-conditioned
    reduced = np.linalg.solve(upper.T, stack.T @ right)
    values = lsq_linear(upper, reduced, (lower, np.inf)).x
    return target - columns @ values, on, float(values @ values)


def _prior(model: Any) -> tuple[FloatArray, FloatArray]:
    """Return the stated parameters (10 n,) of links, and their standard deviations."""
    masses, along, across, moments = LINKS_OFF
    values, deviations = [], []
    for body in model.inertias.tolist()[1:]:
        p = body.toDynamicParameters()
        first = along * np.abs(p[1:4]) + across * np.linalg.norm(p[1:4]) + 1e-4 * p[0]
        trace = p[4] + p[6] + p[9]
        values.append(p)
        deviations.append(np.concatenate([
            [masses * p[0]], first, np.full(6, moments * trace / 3.0)]))
    return np.concatenate(values), np.concatenate(deviations)


def _friction(robot: RobotModel, v: FloatArray, a: FloatArray, size: FloatArray) -> FloatArray:
    """Return columns (T, n, 4 n) of friction, rotors and offsets, one standard deviation each."""
    n = v.shape[1]
    coupling = np.eye(n) if robot.drive.coupling is None else robot.drive.coupling
    speed, rate = v @ coupling.T, a @ coupling.T
    fastest, steepest = (np.abs(one).max(axis=0) + 1e-12 for one in (speed, rate))
    kinds = (np.tanh(speed / (0.01 * fastest)), speed / fastest, rate / steepest,
             np.full_like(v, OFFSET / FRICTION))
    columns = np.zeros((len(v), n, 4 * n))
    for i, values in enumerate(kinds):
        for j in range(n):
            columns[:, :, i * n + j] = FRICTION * np.outer(
                values[:, j] * size[j], coupling[j])
    return columns


