"""Models with known friction for the tests of the monitor, and motions that belong to none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.monitoring.monitor_input import MonitorInput
from robot_dynid.monitoring.observer import EXTERNAL, Observer
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray, RawLog


def model_of(
    robot: RobotModel, law: str = 'coulomb', settings: Mapping[str, Any] | None = None,
    lag: float = 0.0,
) -> IdentifiedModel:
    """Return a model with the nominal links and friction of 1 to 2 for every parameter."""
    structure = Structure.uniform(robot, True, law, settings or {})
    reduction = structure.torque_model(robot).reduction
    rng = np.random.default_rng(0)
    standard = np.concatenate([
        robot.nominal.ravel(), rng.uniform(1.0, 2.0, len(reduction.standard) - 10 * robot.n)])
    values = reduction.base(standard)
    return IdentifiedModel(robot, structure, reduction, values, np.zeros_like(values), values,
                           Preprocessing(cutoff=10.0, effort_lag=lag))


def external_torque(model: IdentifiedModel, given: MonitorInput, gain: float) -> FloatArray:
    """Return the external torque (N, n) [N m] of a recording, as it would come on line."""
    return Observer(model, gain).along(given)[:, EXTERNAL]


def motion(robot: RobotModel, count: int = 1500, seed: int = 0) -> RawLog:
    """Return a recording with uneven steps, a gap, and efforts that belong to nothing."""
    rng = np.random.default_rng(seed)
    time = np.cumsum(rng.uniform(1.5e-3, 2.5e-3, count))
    time[count // 2:] += 0.3
    rate = rng.uniform(2.0, 5.0, robot.n)
    q = np.sin(np.outer(time, rate))
    qd = rate * np.cos(np.outer(time, rate))
    return RawLog('motion', robot.joints, time, q, qd, rng.normal(size=(count, robot.n)))
