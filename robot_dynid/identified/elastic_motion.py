"""Forward dynamics and motion of identified models with elastic joints.

Friction is that of the motors. Everything per joint is (..., n) here; where a joint is rigid its
motor moves with it, and what is given for that motor is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from robot_dynid.dynamics.elastic import ElasticDynamics, coordinates
from robot_dynid.dynamics.rigid_body import require_solved
from robot_dynid.dynamics.rollout import Integrator, Rollout
from robot_dynid.types import FloatArray, Progress

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel


class DriveMotion(NamedTuple):
    """Motors along a motion, each (T, n): rad and per s on the joint side; ``effort`` N m."""

    position: FloatArray
    velocity: FloatArray
    acceleration: FloatArray
    effort: FloatArray


class ElasticMotion:
    """Forward dynamics of the elastic ``model``, prepared for many calls.

    Raises ModelError where an inertia or a stiffness is not above zero.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        self._n = model.robot.n
        self.gears, links = model.gears, model.links
        friction = model.axis_friction.on(
            self.gears.motors(self._n), self._n + len(self.gears.joints))
        self.dynamics = ElasticDynamics(
            links.robot, links.parameters, links.rotors, self.gears, friction)
        self._integrator = Integrator(links.robot, links.parameters, self.dynamics.rotors,
                                      friction, self.gears)

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

    def inverse(
        self, motion: FloatArray, step: float, external: FloatArray | None = None
    ) -> DriveMotion:
        """Return motors and efforts for links in ``motion`` (3, T, n), ``step`` [s] apart.

        ``external`` (T, n) [N m, N] is torque from outside on the links.
        """
        motors, effort = self.dynamics.inverse(motion, step, external)
        every = motion.copy()
        every[:, :, list(self.gears.joints)] = motors
        return DriveMotion(every[0], every[1], every[2], effort)

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
