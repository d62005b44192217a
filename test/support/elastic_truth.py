"""Models of the simulated arm with elastic joints that know its truth."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from robot_dynid import load_robot
from robot_dynid.effects import GearEffects
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
    return IdentifiedModel(robot, structure, reduction, values, abs(values), values,
                           Preprocessing(10.0))


#: kinematic error of the gears [rad], half of the width of their loops [N m], and its length [rad]
ERROR, LOOP, LENGTH, RATIO = (3e-5, 5e-5), (6.0, 3.0), 2e-4, 100.0


def with_effects(error: tuple[float, float] = ERROR, loop: tuple[float, float] = LOOP
                 ) -> tuple[IdentifiedModel, Truth]:
    """Return the model of the arm whose gears have kinematic error and Dahl's hysteresis."""
    robot = replace(ARM, drive=replace(ARM.drive, gear_ratios=np.full(2, RATIO)))
    drives = {joint: replace(TRUTH.drives[joint], gear_ratio=RATIO, kinematic_error=e,
                             hysteresis=h, hysteresis_length=LENGTH)
              for joint, e, h in zip(robot.joints, error, loop, strict=True)}
    plain = true_model(robot, TRUTH)
    effects = tuple(GearEffects((e, 0.0), (LENGTH,), 0.0, 'dahl') for e in error)
    structure = replace(plain.structure, gears=effects)
    reduction = structure.torque_model(robot).reduction
    known = dict(plain.standard)
    for j, (e, h) in enumerate(zip(error, loop, strict=True), start=1):
        known |= {f'Ks{j}': known[f'K{j}'] * e, f'Ds{j}': known[f'D{j}'] * e, f'ha{j}': h}
    values = reduction.base([known.get(name, 0.0) for name in reduction.standard])
    return (replace(plain, structure=structure, reduction=reduction, values=values, std=values,
                    control=values), replace(TRUTH, drives=drives))


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
