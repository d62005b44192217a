"""Forward dynamics and motion of identified models with elastic joints.

Friction is that of the motors. Everything per joint is (..., n) here; where a joint is rigid its
motor moves with it, and what is given for that motor is not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.dynamics.elastic import (
    ElasticDynamics,
    Gears,
    coordinates,
)
from robot_dynid.dynamics.rollout import Integrator, Rollout
from robot_dynid.dynamics.verdicts import require_solved
from robot_dynid.regressor.elastic import GEAR
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Progress

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel


def gears_of(robot: RobotModel, standard: Mapping[str, float]) -> Gears:
    """Return motors and gears of the elastic joints of ``robot`` from standard parameters."""
    own = robot.drive.elastic
    rows = [[standard.get(f'{p}{j + 1}', 0.0) for j in own] for p in ('Ia', *GEAR)]
    return Gears(own, *np.array(rows))


class ElasticMotion:
    """Forward dynamics of the elastic ``model``, prepared for many calls.

    Raises ModelError where an inertia or a stiffness is not above zero.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        self._n = model.robot.n
        self.gears = gears_of(model.robot, model.standard)
        links = model.links
        friction = model.axis_friction.on(
            self.gears.motors(self._n), self._n + len(self.gears.joints))
        self.dynamics = ElasticDynamics(
            links.robot, links.parameters, links.rotors, self.gears, friction)
        self._integrator = Integrator(links.robot, links.parameters, self.dynamics.rotors,
                                      friction, self.gears.springs(self._n))

    def accelerations(
        self, q: FloatArray, qd: FloatArray, effort: FloatArray, theta: FloatArray,
        theta_d: FloatArray, external: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return accelerations of links and motors, each (K, n), of float states (K, n).

        ``external`` (K, n) [N m, N] is torque from outside on the links. Raises ModelError where
        the mass matrix is not positive definite.
        """
        x, v = coordinates(q, theta, self.gears), coordinates(qd, theta_d, self.gears)
        found, verdicts = self.dynamics(x, v, effort, external)
        require_solved(verdicts, q)
        return self.dynamics.per_joint(found)

    def rollout(
        self, start: Sequence[FloatArray], effort: FloatArray, dt: float,
        progress: Progress | None = None,
    ) -> Rollout:
        """Return the motions from ``start`` (q, qd, motor position, motor velocity; each (K, n)).

        ``effort`` (K, T, n) is held for ``dt`` [s] each; ``progress`` as of `Integrator`.
        """
        q, qd, theta, theta_d = start
        x, v = coordinates(q, theta, self.gears), coordinates(qd, theta_d, self.gears)
        drives = np.zeros((*effort.shape[:2], x.shape[1]))
        drives[:, :, list(self.gears.motors(self._n))] = effort
        return self._integrator(x, v, drives, dt, progress).of_joints(self.gears.joints)
