"""Motor encoders of the joints whose deflection a model uses, for the monitor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from robot_dynid.effects.deflection import without_gears
from robot_dynid.errors import DataError
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import MotorEncoder
from robot_dynid.signals.alignment import without_holes
from robot_dynid.signals.encoders import encoders_of
from robot_dynid.signals.plausible import plausible
from robot_dynid.signals.resolution import noise
from robot_dynid.signals.turns import within_half_turn
from robot_dynid.types import RawLog

#: recordings looked at
LOOKED = 5


def with_motor_encoders(model: IdentifiedModel, logs: Sequence[RawLog]) -> IdentifiedModel:
    """Return the model with the relation of its motor encoders to its joints in its record.

    It is that of the first LOOKED of ``logs``, as read; joints of which the model uses no
    deflection are left out.
    """
    learned = without_gears(model.residual_models) or (None,) * len(model.joints)
    own = [j for j, joint in enumerate(model.joints)
           if joint in model.elastic_joints or learned[j] is not None]
    if not own:
        return model
    found: dict[int, list[MotorEncoder]] = {j: [] for j in own}
    for log in islice(logs, LOOKED):
        try:
            raw = without_holes(plausible(model.robot, log)[0])[0]
            encoders = encoders_of(model.robot, raw)
            offsets = np.array([encoder.offset for encoder in encoders])
            if model.robot.drive.coupling is None:  # each recording may begin in another turn
                offsets = within_half_turn(model.robot, offsets)
            for j, encoder in enumerate(encoders):
                if j in found and not encoder.refused:
                    found[j].append(_encoder(model, raw, j, (encoder.factor, offsets[j])))
        except DataError:
            continue  # without motor states
    together = tuple(_together(own) for own in found.values() if own)
    return replace(model, record=replace(model.record, motor_encoders=together))


def _encoder(
    model: IdentifiedModel, log: RawLog, joint: int, relation: tuple[float, float]
) -> MotorEncoder:
    factor, offset = relation
    assert log.motor_position is not None
    motor = log.motor_position[:, joint] / factor
    single = float(np.hypot(noise(log.position[:, joint]), noise(motor)))
    step = max(float(np.median(np.diff(log.time))), 1e-6)
    rate = np.sqrt(2.0) * single / step
    if log.velocity is not None and log.motor_velocity is not None:
        rate = np.hypot(noise(log.velocity[:, joint]),
                        noise(log.motor_velocity[:, joint] / factor))
    return MotorEncoder(model.joints[joint], float(factor), float(offset), 0.0, single,
                        float(rate))


def _together(found: Sequence[MotorEncoder]) -> MotorEncoder:
    """Return one encoder of several recordings of a joint."""
    offset, single, rate = np.array([[e.offset, e.noise, e.rate_noise] for e in found]).T
    spread = float(np.std(offset, ddof=1)) if len(found) > 1 else 0.0
    return replace(found[0], offset=float(np.mean(offset)), offset_std=spread,
                   noise=float(np.sqrt(np.mean(single**2))),
                   rate_noise=float(np.sqrt(np.mean(rate**2))))
