"""An identified model as if its gears were stiff, for what looks at whole efforts only."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid.identified.model import IdentifiedModel


def rigid_equivalent(model: IdentifiedModel) -> IdentifiedModel:
    """Return the model with its links, rotors and friction but rigid joints.

    Deviations of single parameters are not those of their combinations: they are NaN.
    """
    robot = model.robot.rigid
    if robot is model.robot:
        return model
    structure = replace(model.structure, rotor_inertia=True)
    reduction = structure.torque_model(robot).reduction
    own = [model.reduction.standard.index(name) for name in reduction.standard]
    control = model.reduction.standard_values(model.control)[own]
    standard = np.array([model.standard[name] for name in reduction.standard])
    return replace(
        model, robot=robot, structure=structure, reduction=reduction,
        values=reduction.base(standard), std=np.full(len(reduction.kept), np.nan),
        correlation_factor=None,
        control=reduction.base(control), feasible=None if model.feasible is None else standard)
