"""Derivatives of the effort of an identified model by its base parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.types import FloatArray, Samples

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel


def effort_by_parameters(
    model: IdentifiedModel, q: FloatArray, qd: FloatArray, qdd: FloatArray
) -> FloatArray:
    """Return the derivatives (K, n, b) of `IdentifiedModel.inverse` by the base parameters.

    The regressor of float states (K, n), in steady sliding; motors move with their joints. Behind
    a torque sensor the row of a joint lacks what its motor takes.
    """
    robot, drive = model.robot, model.robot.drive
    place = [*range(robot.n), *drive.elastic]
    samples = Samples(
        model.joints, np.arange(float(len(q))), q[:, place], qd[:, place], qdd[:, place],
        starts=tuple(range(len(q))))
    rows = model.torque_model.columns(samples)
    found = rows[:robot.n].copy()
    for joint in drive.torque_sensors:
        found[joint] += rows[robot.n + drive.elastic.index(joint)]
    return np.ascontiguousarray(found.transpose(2, 0, 1))
