"""Identified models with feasible parameters, as a feasible fit would give them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.friction import law_from
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.inertia import parameters_from_com
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.types import FloatArray


def random_links(rng: np.random.Generator, count: int) -> FloatArray:
    """Return parameters (count, 10) of bodies with positive density."""
    links = []
    for _ in range(count):
        spread = rng.normal(size=(3, 3)) * 0.2
        second = spread @ spread.T + 1e-3 * np.eye(3)
        mass = rng.uniform(0.2, 8.0)
        inertia = mass * (np.trace(second) * np.eye(3) - second)
        links.append(parameters_from_com(mass, rng.normal(size=3) * 0.2, inertia))
    return np.array(links)


def feasible_model(
    robot: RobotModel, links: FloatArray, rng: np.random.Generator | None = None
) -> IdentifiedModel:
    """Return a model of ``robot`` with these ``links`` (n, 10).

    Rotors, friction and offsets are random; zero without ``rng``.
    """
    structure = Structure.uniform(robot, True, 'coulomb', {'width': 0.02})
    reduction = structure.torque_model(robot).reduction
    count = len(reduction.standard) - 10 * robot.n
    others = np.zeros(count) if rng is None else rng.uniform(0.1, 2.0, count)
    standard = np.concatenate([np.ravel(links), others])
    values = reduction.base(standard)
    return IdentifiedModel(
        robot, structure, reduction, values, np.full(len(values), 0.1), 0.5 * values,
        Preprocessing(10.0), 'feasible', 'fine', feasible=standard)


def with_friction(
    model: IdentifiedModel, laws: Sequence[str], load: FloatArray | None = None
) -> IdentifiedModel:
    """Return the model with other ``laws`` of its axes, of default settings and random size."""
    own = [(name, law_from(name)) for name in laws]
    structure = Structure.of(True, own, load)
    torque = structure.torque_model(model.robot)
    rng = np.random.default_rng(2)
    standard = np.array([model.standard.get(name, rng.uniform(0.1, 2.0))
                         for name in torque.reduction.standard])
    values = torque.reduction.base(standard)
    return replace(model, structure=structure, reduction=torque.reduction, values=values,
                   std=np.full(len(values), 0.1), control=0.5 * values, feasible=standard)
