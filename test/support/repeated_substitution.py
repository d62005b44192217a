"""Accelerations under friction that grows with their load by repeated substitution: the oracle."""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray

#: rounds at most, and when they have settled
ROUNDS, SETTLED = 200, 1e-14


def substituted(
    model: IdentifiedModel, q: FloatArray, qd: FloatArray, effort: FloatArray
) -> FloatArray:
    """Return the accelerations (K, n) of a rigid model in states (K, n).

    Friction is that under the load of the round before; the error shrinks by its share in the
    load in every round. Fails where that does not end.
    """
    robot = model.torque_model.robot.rigid
    solve = rigid_body.ForwardDynamics(robot, model.links.parameters, model.links.rotors)
    found = np.zeros_like(q)
    for _ in range(ROUNDS):
        before = found
        found = solve(q, qd, effort - model.friction(q, qd, before))[0]
        if np.allclose(found, before, rtol=SETTLED, atol=SETTLED):
            return found
    raise AssertionError('repeated substitution does not settle')
