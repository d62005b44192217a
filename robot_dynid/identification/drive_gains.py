"""Drive gains from recordings with and without a weighed payload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.effects.links import AttachedBody
from robot_dynid.errors import UsageError, reported
from robot_dynid.estimation.drive_gains import DriveGains, KnownLoad, fit_drive_gains
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.identification.payload import (
    Equations,
    Match,
    gathered,
    require_recordings,
    settings_for,
    warnings_of,
)
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.identified.uses import recordings_for, rigid_equivalent
from robot_dynid.robot.inertia import PARAMETERS
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import prepare, repair
from robot_dynid.types import RawLog

#: ramp of the Coulomb friction [rad/s] where no model says which
WIDTH = 0.01


@dataclass(frozen=True, eq=False)
class GainsResult:
    """Gains of the drives with the payload on ``link``, and how they were found."""

    gains: DriveGains
    robot: RobotModel
    link: str
    samples: int
    warnings: tuple[str, ...]


@reported
@one_blas_thread()
def identify_drive_gains(
    robot: RobotModel, loaded: Sequence[RawLog], unloaded: Sequence[RawLog], load: KnownLoad,
    model: IdentifiedModel | None = None, equal: Sequence[Sequence[str]] = (),
) -> GainsResult:
    """Identify the drive gains from motions with and without a payload of known mass.

    All of arm, friction, payload and gains are fitted together; ``unloaded`` may be any motions.
    ``equal`` groups joints whose drives are of one size; ``model`` only says which friction and
    preprocessing to use. The gains the robot states are not used.
    Raises UsageError (wrong use), ModelError (model of another robot), DataError (the data does
    not allow it).
    """
    require_recordings(robot, loaded)
    if not unloaded:
        raise UsageError('drive gains need recordings without the payload, too: with it alone, '
                         'arm and payload are one body')
    if any(log.external_torque is not None for log in (*loaded, *unloaded)):
        raise UsageError('drive gains are found from the weight of the payload alone: leave out '
                         'recordings with an external wrench')
    if model is not None:
        model.require(robot)
        model = rigid_equivalent(model)
        robot = model.robot
    robot = robot.rigid
    # the gains that are looked for are in the scale of the efforts
    loaded, findings = recordings_for(model, robot, loaded, ['effort_scale'])
    unloaded, more = recordings_for(model, robot, unloaded, ['effort_scale'])
    groups = _groups(robot, equal)
    body = AttachedBody.on(robot, load.link)
    torque = _torque_model(robot, model)
    parts: list[Equations] = []
    for logs, share in ((loaded, 1.0), (unloaded, 0.0)):
        parts += [_equations(torque, body, model, log, share) for log in logs]
    information = gathered((*torque.reduction.names, *PARAMETERS), parts)
    gains = fit_drive_gains(information, load, groups)
    return GainsResult(gains, robot, body.link, information.samples,
                       (*findings, *more, *warnings_of(parts)))


def _torque_model(robot: RobotModel, model: IdentifiedModel | None) -> TorqueModel:
    if model is not None:
        return model.torque_model
    return Structure.uniform(robot, True, 'coulomb', {'width': WIDTH}).torque_model(robot)


def _groups(robot: RobotModel, equal: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Number the gains: joints of one of the ``equal`` groups share theirs."""
    owner = list(range(robot.n))
    for names in equal:
        joints = [robot.index(name) for name in names]
        taken = [robot.joints[j] for j in joints if owner[j] != j]
        if taken:
            raise UsageError(f'equal gains: {", ".join(taken)} stands in two groups')
        for j in joints:
            owner[j] = min(joints)
    return np.unique(owner, return_inverse=True)[1].astype(np.int64)


def _equations(
    torque: TorqueModel, body: AttachedBody, model: IdentifiedModel | None, log: RawLog,
    share: float,
) -> Equations:
    """Return a recording in the unit it was measured in; ``share`` of the payload is there."""
    robot = replace(torque.robot, drive=replace(
        torque.robot.drive, kind='current', gains=np.ones(torque.robot.n)))
    settings = settings_for(model, log)
    repaired = repair(robot, log, settings.rate)
    samples = prepare(robot, repaired, settings)
    columns = np.concatenate([torque.columns(samples), share * body.columns(samples.moved)],
                             axis=1)
    assert samples.effort is not None and samples.measured is not None
    return Equations(samples, columns, samples.effort, samples.measured, Match(log.source),
                     repaired.notes)
