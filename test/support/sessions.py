"""Recordings of a session, and the calibration of friction by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray, RawLog
from robot_dynid.validation.validate import validate
from robot_dynid_extras.health.calibration import FrictionSession
from robot_dynid_extras.health.everyday_motion import everyday_motion


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
