"""Models of the simulated arm with elastic joints that know its truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid import load_robot
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.structure import Structure
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.prepare import Preprocessing
from robot_dynid.simulation.truth import Truth, load_truth, true_base

ARM = load_robot('elastic_2r')


TRUTH = replace(load_truth(ARM), stribeck=None, stribeck_speed=None)


WIDTH = 0.01


def true_model(robot: RobotModel = ARM, truth: Truth = TRUTH, law: str = 'coulomb',
               **settings: float) -> IdentifiedModel:
    """Return the model a perfect identification would give."""
    structure = Structure.uniform(robot, True, law, {'width': WIDTH, **settings})
    reduction = structure.torque_model(robot).reduction
    values = true_base(robot, truth, reduction)
    return IdentifiedModel(robot, structure, reduction, values, values, values,
                           Preprocessing(10.0))


def random_states(robot, rng, count=30):
    """Return position, velocity of links and motors, effort, each (count, n)."""
    q, qd = rng.uniform(-1.5, 1.5, (2, count, robot.n))
    theta, theta_d = q + 3e-3 * rng.normal(size=q.shape), qd + 0.02 * rng.normal(size=q.shape)
    rigid = np.setdiff1d(np.arange(robot.n), robot.drive.elastic)
    theta[:, rigid], theta_d[:, rigid] = q[:, rigid], qd[:, rigid]
    return q, qd, theta, theta_d, 20.0 * rng.normal(size=q.shape)


def start_at_rest(model: IdentifiedModel, q0):
    """Return q, qd and the motors' position and velocity, at rest under the weight."""
    theta = q0.copy()
    for j in model.robot.drive.elastic:
        theta[:, j] += model.gravity(q0)[:, j] / model.standard[f'K{j + 1}']
    return q0, np.zeros_like(q0), (theta, np.zeros_like(q0))
