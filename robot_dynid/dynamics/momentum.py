"""Generalised momentum and its rate, prepared for single joint states."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from robot_dynid.dynamics.rigid_body import _parameters, _read_only, _tree
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.kernels import single_state
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray


class Momentum:
    """p = M(q) qd and dL/dq = C(q, qd)^T qd - g(q), prepared for many short calls.

    The equation of motion is dp/dt = effort + dL/dq with the Lagrangian L = T - V, because
    dM/dt = C + C^T: no acceleration and no Coriolis matrix are needed. ``parameters`` (n, 10)
    standard parameters, by default the nominal ones; ``rotors`` or their inertia (n, n) kg m^2,
    by default none. Source: De Luca, Mattone 2003; De Luca, Ferrajoli 2009 (C^T qd by a
    recursion).
    """

    def __init__(self, robot: RobotModel, parameters: ArrayLike | None = None,
                 rotors: Rotors | FloatArray | None = None) -> None:
        none = np.zeros((robot.n, robot.n))
        self._tree = _tree(robot)
        self._links = (_parameters(robot, parameters),
                       Rotors.of(none if rotors is None else rotors).tables)

    def __call__(self, q: FloatArray, qd: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return p (N, n) [kg m^2 rad/s] and dL/dq (N, n) [N m] of float states, unchecked."""
        p, rate = np.empty(q.shape), np.empty(q.shape)
        single_state.momentum(
            self._tree, self._links, (_read_only(q), _read_only(qd)), (p, rate))
        return p, rate
