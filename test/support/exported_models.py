"""Models to be given to simulators: random links, rotors, friction and gears."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from feasible_models import feasible_model, random_links
from random_robots import random_urdf

from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.model import RobotModel
from robot_dynid.robot.robot_file import load_robot
from robot_dynid.robot.urdf import robot_from_urdf

#: a chain, one whose motors turn with several joints, one whose gears give, and a tree
NAMES = ('ur10e', 'tx40', 'elastic_2r', 'tree')


def model_of(robot: RobotModel, seed: int = 0) -> IdentifiedModel:
    """Return a model of random links, rotors, friction and, where joints are elastic, gears."""
    rng = np.random.default_rng(seed)
    model = feasible_model(robot, random_links(rng, robot.n), rng)
    names, values = model.reduction.standard, model.feasible.copy()
    for i, name in enumerate(names):
        if name.startswith('K'):
            values[i] = rng.uniform(5e3, 2e4)
        elif name.startswith('s'):
            values[i] = rng.uniform(-3.0, 3.0)
    return replace(model, feasible=values, values=model.reduction.base(values))


def tree() -> RobotModel:
    """Return a random tree with joints that turn and joints that slide."""
    return robot_from_urdf(random_urdf(np.random.default_rng(4), 7, 0.5))


def model_named(name: str) -> IdentifiedModel:
    """Return that of one of NAMES."""
    return model_of(tree() if name == 'tree' else load_robot(name))
