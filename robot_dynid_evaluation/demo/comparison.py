"""Identified against true: parameters, and served against MuJoCo's accelerations."""

from __future__ import annotations

import array
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from robot_dynid.effects.gears import STIFFNESS, Springs
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uncertainty import half_intervals
from robot_dynid.robot.model import RobotModel
from robot_dynid.simulation.mujoco_model import elastic_accelerations
from robot_dynid.simulation.plant import Plant
from robot_dynid.simulation.truth import Truth, distance
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.demo.client import Client
from robot_dynid_interfaces.srv import ComputeForwardDynamics

STATES = 200
#: states keep this multiple of the ramp's width away from zero speed: within the ramp the model's
#: friction is an average, MuJoCo's is not
AWAY = 2.0
#: parameters of friction that fades as a motor speeds up
STRIBECK = 'fs'
#: motors of elastic joints turn up to this much faster or slower than their links [rad/s]
TWISTING = 0.02
#: the errors that must be small, as far as there are such
ERRORS = ('parameters_error', 'stiffness_error', 'forward_dynamics_error', 'motor_dynamics_error')


@dataclass(frozen=True, eq=False)
class States:
    """Random states (K, n) with the efforts that move the true robot, and what it then does.

    The motors' are None where all joints are rigid.
    """

    position: FloatArray
    velocity: FloatArray
    effort: FloatArray
    acceleration: FloatArray
    motor_position: FloatArray | None = None
    motor_velocity: FloatArray | None = None
    motor_acceleration: FloatArray | None = None


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
    if not robot.drive.elastic:
        return States(q, qd, effort, plant.acceleration(q, qd, effort, width))
    theta, theta_d = q.copy(), qd.copy()
    for j in robot.drive.elastic:
        theta[:, j] += effort[:, j] / truth.drives[robot.joints[j]].stiffness
        theta_d[:, j] += rng.uniform(-TWISTING, TWISTING, STATES)
    links, motors = elastic_accelerations(robot, truth, (q, qd, theta, theta_d, effort), width)
    return States(q, qd, effort, links, theta, theta_d, motors)


def served_errors(client: Client, states: States) -> dict[str, float]:
    """Return the relative errors of what the service says, and the seconds it took."""
    request = ComputeForwardDynamics.Request()
    for name in ('position', 'velocity', 'effort', 'motor_position', 'motor_velocity'):
        values = getattr(states, name)
        if values is not None:
            setattr(request, name, array.array('d', values.tobytes()))
    begin = time.perf_counter()
    response = client.call('identifier/forward_dynamics', request)
    found = {'service_seconds': time.perf_counter() - begin,
             'forward_dynamics_error': _error(response.acceleration, states.acceleration)}
    if states.motor_acceleration is not None:
        found['motor_dynamics_error'] = _error(response.motor_acceleration,
                                               states.motor_acceleration)
    return found


def _error(served: Any, true: FloatArray) -> float:
    return distance(np.array(served).reshape(true.shape), true)


def compare(model: IdentifiedModel, true: FloatArray) -> dict[str, Any]:
    """Return the parameters beside the true ones, their distance, and how many are inside.

    Gears do not count in the distance, or their stiffness would hide everything else: the error
    of the stiffness is that of the worst joint. Nor does a Stribeck part: what is right depends
    on the speed over which it fades, which is fitted, too.
    """
    gears = np.isin(model.names, Springs(model.robot).names)
    counted = ~gears & ~np.array([name.startswith(STRIBECK) for name in model.names])
    stiffness = [i for i in np.flatnonzero(gears) if model.names[i].startswith(STIFFNESS)]
    with np.errstate(divide='ignore', invalid='ignore'):
        deviations = (model.values - true) / model.std
    half = half_intervals(model)
    parameters = [
        {'name': name, 'true': t, 'value': v, 'std': s, 'half_interval': h, 'deviations': d,
         'label': label}
        for name, t, v, s, h, d, label in zip(
            model.names, true.tolist(), model.values.tolist(), model.std.tolist(),
            half.tolist(), deviations.tolist(), model.labels)
    ]
    found = {'parameters': parameters,
             'parameters_error': distance(model.values[counted], true[counted]),
             'inside': float(np.mean(np.abs(model.values - true) <= half))}
    if stiffness:
        apart = np.abs(model.values[stiffness] / true[stiffness] - 1.0)
        found['stiffness_error'] = float(apart.max())
    return found
