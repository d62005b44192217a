"""True base parameters of a simulated robot, to hold identified ones against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from robot_dynid.reduction import Reduction
    from robot_dynid.robot.model import RobotModel
    from robot_dynid.simulation.truth import Truth
    from robot_dynid.types import FloatArray


def true_base(robot: RobotModel, truth: Truth, reduction: Reduction) -> FloatArray:
    """Return the base parameters (b,) of nominal links, true rotors, gears and friction."""
    from robot_dynid.regressor import RigidLinks, axes_of

    standard: dict[str, float] = dict(zip(RigidLinks(robot).names, robot.nominal.ravel()))
    labels = axes_of(robot).labels
    for i in range(robot.n):
        label = f'm{i + 1}' if f'm{i + 1}' in labels else str(i + 1)
        standard[f'Ia{label}'] = truth.rotor_inertia[i]
        standard[f'fv{label}'] = truth.viscous[i]
        standard[f'fc{label}'] = truth.coulomb[i]
        if truth.stribeck is not None:
            standard[f'fs{label}'] = truth.stribeck[i]
    for joint, drive in truth.drives.items():
        standard[f'K{robot.index(joint) + 1}'] = drive.stiffness
        standard[f'D{robot.index(joint) + 1}'] = drive.damping
    return reduction.base([standard.get(name, 0.0) for name in reduction.standard])


def distance(values: FloatArray, true: FloatArray) -> float:
    """Return the relative distance of two parameter vectors, in the norm."""
    return float(np.linalg.norm(values - true) / np.linalg.norm(true))
