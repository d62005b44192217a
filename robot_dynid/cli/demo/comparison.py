"""Identified against true: parameters, and served against MuJoCo's accelerations."""

from __future__ import annotations

import array
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.cli.demo.client import Client
from robot_dynid.cli.truth import distance
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.model.robot import RobotModel
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import Truth
from robot_dynid.types import FloatArray
from robot_dynid_interfaces.srv import ComputeForwardDynamics

STATES = 200
Z95 = 1.96
#: states keep this multiple of the ramp's width away from zero speed: within the ramp the model's
#: friction is an average, MuJoCo's is not
AWAY = 2.0


@dataclass(frozen=True, eq=False)
class States:
    """Random states (K, n) with the efforts that move the true robot, and what it then does."""

    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    acceleration: FloatArray


def random_states(robot: RobotModel, truth: Truth, model: IdentifiedModel, seed: int) -> States:
    """Return STATES states within the limits; accelerations are MuJoCo's."""
    rng = np.random.default_rng(seed)
    limits, shape = robot.limits, (STATES, robot.n)
    width = max(float(s.get('width', 0.0)) for s in model.structure.settings)
    q = rng.uniform(limits.lower, limits.upper, shape)
    side = rng.choice([-1.0, 1.0], shape)
    qd = side * rng.uniform(AWAY * width, 0.5 * limits.velocity, shape)
    wanted = rng.uniform(-0.5, 0.5, shape) * limits.acceleration
    plant = Plant(robot, truth)
    effort = plant.inverse(q, qd, wanted, width)
    return States(q, qd, effort, plant.acceleration(q, qd, effort, width))


def served_accelerations(client: Client, states: States) -> tuple[FloatArray, float]:
    """Return what the service says (K, n) rad/s^2 and the seconds it took."""
    request = ComputeForwardDynamics.Request()
    for name in ('position', 'velocity', 'effort'):
        setattr(request, name, array.array('d', getattr(states, name).tobytes()))
    begin = time.perf_counter()
    response = client.call('identifier/forward_dynamics', request)
    seconds = time.perf_counter() - begin
    served = np.array(response.acceleration).reshape(states.position.shape)
    return served, seconds


def compare(model: IdentifiedModel, true: FloatArray) -> dict[str, Any]:
    """Return the parameters beside the true ones, their distance, and how many are inside."""
    with np.errstate(divide='ignore', invalid='ignore'):
        deviations = (model.values - true) / model.std
    parameters = [
        {'name': name, 'true': t, 'value': v, 'std': s, 'deviations': d, 'label': label}
        for name, t, v, s, d, label in zip(
            model.names, true.tolist(), model.values.tolist(), model.std.tolist(),
            deviations.tolist(), model.labels)
    ]
    return {'parameters': parameters, 'parameters_error': distance(model.values, true),
            'inside': float(np.mean(np.abs(deviations) <= Z95))}
