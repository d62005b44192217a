"""Stages of a planned sine sequence: their parameters and condition numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.staged.procedure import (
    PROCEDURES,
    Free,
    LockedJointsMotion,
    Stage,
    decompose,
    labels,
)
from robot_dynid.excitation.design import StageRow
from robot_dynid.trajectories.single_joint import SineSwing
from robot_dynid.types import FloatArray, Samples, concatenate

#: instants of every swing
INSTANTS = 200


def stage_rows(
    model: TorqueModel, swings: Sequence[SineSwing], procedure: str
) -> tuple[StageRow, ...]:
    """Return the stages that find something, in their order."""
    motions = {LockedJointsMotion(s.index, s.position, s.amplitude): s for s in swings}
    free = Free.everything(len(model.reduction.names))
    rows = []
    for stage in PROCEDURES[procedure](model, tuple(motions)):
        found = decompose(model, stage, free)
        if not len(found.solved):
            continue
        tall = _regressor(model, stage, [motions[m] for m in stage.motions])
        fitted = tall @ free.directions[:, found.fitted]
        condition = np.linalg.cond(fitted / np.linalg.norm(fitted, axis=0))
        moving = tuple(dict.fromkeys(motions[m].moving for m in stage.motions))
        rows.append(StageRow(stage.name, moving, len(stage.motions), labels(model, free, found),
                             float(condition)))
        free = free.without(found)
    return tuple(rows)


def _regressor(model: TorqueModel, stage: Stage, swings: Sequence[SineSwing]) -> FloatArray:
    """Return the base regressor (N, b) of the stage's rows during its swings."""
    samples = concatenate([_samples(model.robot.joints, swing) for swing in swings])
    columns = model.columns(samples)[list(stage.rows)]
    return np.asarray(columns.transpose(0, 2, 1).reshape(-1, columns.shape[1]))


def _samples(joints: tuple[str, ...], swing: SineSwing) -> Samples:
    time = np.linspace(0.0, swing.duration, INSTANTS)
    motion = swing.sample(time)
    return Samples(joints, time, motion.position, motion.velocity, motion.acceleration)
