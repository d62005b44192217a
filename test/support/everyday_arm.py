"""Everyday motion of a simulated arm, hours of it in seconds, and sessions of recordings.

A pool of stretches has its regressors computed once; every draw has new noise, which is coloured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from monitored import model_of
from numpy.typing import NDArray
from scipy.signal import lfilter

from robot_dynid.estimation.experiment import Regression
from robot_dynid.estimation.information import Accumulator
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import FitRecord
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.types import FloatArray, RawLog, Samples, frozen
from robot_dynid.validation.validate import validate
from robot_dynid_extras.health.calibration import FrictionSession
from robot_dynid_extras.health.everyday_motion import EverydayMotion, everyday_motion

STEP, SECONDS = 0.02, 5.0
#: correlation time [s] of the noise
COLOUR = 0.2
#: recordings of a model that knows how friction differs from day to day
DAYS = 1000


def known_model(spread: float = 0.02, std: float = 0.02, **more: Any) -> IdentifiedModel:
    """Return a model of the planar arm whose parameters are known to the share ``std``.

    By recordings of DAYS days, from one to the next of which friction differed by ``spread``.
    """
    model = model_of(load_robot('planar_3r'))
    reach = model.torque_model.moderate_effort.max(axis=0)
    deviations = std * np.maximum(np.abs(model.values), 1.0 / reach)
    return replace(
        model, std=frozen(deviations), correlation_factor=frozen(np.eye(len(deviations))),
        record=FitRecord(recordings=('day',) * DAYS, friction_spread=dict.fromkeys(
            ('viscous', 'dry', 'offset'), spread)),
        **more)


@dataclass
class EverydayArm:
    """Draws stretches of motion of an arm with parameters ``truth`` (b,).

    ``moving`` (n,) are the joints that move; ``noise`` [N m] of every joint.
    """

    model: IdentifiedModel
    truth: FloatArray
    seed: int = 0
    noise: float = 0.3
    moving: tuple[bool, ...] = (True, True, True)
    pool: int = 8
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    @cached_property
    def stretches(self) -> list[FloatArray]:
        """Regressors (n, b, N) of the pool."""
        rng, n = np.random.default_rng(5), self.model.robot.n
        time = np.arange(0.0, SECONDS, STEP)
        found = []
        for _ in range(self.pool):
            rate, phase = rng.uniform(1.0, 4.0, n), rng.uniform(0.0, 6.0, n)
            size = np.array(self.moving) * rng.uniform(0.4, 0.8, n)
            angle = np.outer(time, rate) + phase
            q, qd = size * np.sin(angle), size * rate * np.cos(angle)
            samples = Samples(self.model.joints, time, q, qd, -size * rate**2 * np.sin(angle))
            columns = Regression(self.model.torque_model, samples).columns(
                slice(0, len(time))).copy()
            found.append(columns * np.array(self.moving, float)[:, None, None])
        return found

    def stretch(self) -> EverydayMotion:
        """Return the next stretch."""
        columns = self.stretches[self.rng.integers(self.pool)]
        n, _, count = columns.shape
        keep = np.exp(-STEP / COLOUR)
        white = self.rng.normal(size=(count + 100, n)) * np.sqrt(1.0 - keep**2)
        noise = self.noise * lfilter([1.0], [1.0, -keep], white, axis=0)[100:]
        on = np.array(self.moving, float)
        effort = (np.tensordot(self.truth, columns, (0, 1)).T + noise) * on
        torque = self.model.torque_model
        made = Accumulator(torque.reduction.names, torque.structure, round(1.0 / STEP))
        made.begin()
        made.add(columns, effort, effort)
        information = made.information()
        sliding = STEP * np.outer([b.samples for b in information.batches], on)
        return EverydayMotion(information, sliding, STEP)

    def scaled(self, names: tuple[str, ...], factor: float) -> EverydayArm:
        """Return the arm with some of its parameters times ``factor``."""
        truth = self.truth.copy()
        for name in names:
            truth[self.model.names.index(name)] *= factor
        return replace(self, truth=truth)

    def carrying(self, mass: float, centre: tuple[float, float, float]) -> EverydayArm:
        """Return the arm with a point of ``mass`` [kg] at ``centre`` [m] on its last link."""
        c = np.array(centre)
        inertia = mass * (c @ c * np.eye(3) - np.outer(c, c))
        added = np.zeros(len(self.model.reduction.standard))
        last = 10 * (self.model.robot.n - 1)
        added[last:last + 10] = [
            mass, *(mass * c), inertia[0, 0], inertia[0, 1], inertia[1, 1], inertia[0, 2],
            inertia[1, 2], inertia[2, 2]]
        return replace(self, truth=self.truth + self.model.reduction.base(added))


def errors(model: IdentifiedModel, log: RawLog) -> FloatArray:
    """Return the RMSE (n,) [N m] of a model on a recording."""
    return np.array([one.rmse for one in validate(model, [log]).model['all'].values()])


def cut(log: RawLog, rows: NDArray[np.bool_]) -> RawLog:
    """Return some rows of a recording."""
    assert log.velocity is not None and log.effort is not None
    return replace(log, time=log.time[rows], position=log.position[rows],
                   velocity=log.velocity[rows], effort=log.effort[rows])


def taken(model: IdentifiedModel, logs: Sequence[RawLog]) -> FrictionSession:
    """Return what recordings show of the friction of a model."""
    friction = FrictionSession(model)
    for log in logs:
        if (motion := everyday_motion(model, log)) is not None:
            friction.take(motion)
    return friction
