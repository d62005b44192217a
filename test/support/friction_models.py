"""Models of robots of config/robots with any friction law on every axis."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.signals.prepare import Preprocessing


def with_law(name: str, law: str, scale: float = 0.3) -> IdentifiedModel:
    """Return nominal links and random friction, small parameters that may be below zero."""
    robot = load_robot(name)
    settings = {'drift': {'longest': 40.0}} if 'drift' in law else {}
    load = [tuple(row) for row in robot.nominal.tolist()] if 'load' in law else None
    structure = replace(Structure.uniform(robot, True, law, settings), load=load)
    model = structure.torque_model(robot)
    rng = np.random.default_rng(7)
    standard = [rng.uniform(0.5, 1.0) * (0.02 if n.startswith('fw') else scale)
                for n in model.reduction.standard]
    standard[:10 * robot.n] = robot.nominal.ravel()
    values = model.reduction.base(np.array(standard))
    return IdentifiedModel(robot, structure, model.reduction, values, 0.0 * values, values,
                           Preprocessing(10.0))
