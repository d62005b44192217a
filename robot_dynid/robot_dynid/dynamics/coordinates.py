"""The coordinates of a mechanism: its joints, then the motors of elastic joints."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.dynamics.elastic import all_rotors
from robot_dynid.dynamics.gears import Springs
from robot_dynid.dynamics.mechanism import Mechanism
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.friction import AxisFriction
from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class Coordinates:
    """N coordinates, n joints and then the motors of elastic joints, with rotors, friction,
    springs.

    ``names`` (N,); ``motors`` (n,) the coordinate that the drive of each joint acts on, the joint
    itself if rigid; ``friction`` in steady sliding.
    """

    names: tuple[str, ...]
    motors: tuple[int, ...]
    rotors: Rotors
    friction: AxisFriction
    springs: Springs

    @classmethod
    def of(cls, mechanism: Mechanism) -> Coordinates:
        """Return the coordinates of a mechanism: its joints only, if it has no elastic gears."""
        joints, gears = mechanism.robot.joints, mechanism.gears
        n = len(joints)
        if gears is None:
            none = Springs(np.zeros((0, n)), *np.zeros((3, 0)))
            return cls(joints, tuple(range(n)), mechanism.rotors, mechanism.friction.sliding, none)
        names = (*joints, *(f'motor of {joints[j]}' for j in gears.joints))
        motors = gears.motors(n)
        return cls(names, motors, all_rotors(mechanism.rotors, gears),
                   mechanism.friction.on(motors, len(names)).sliding, gears.springs(n))

    def straight(self) -> FloatArray:
        """Return the state-independent stiffness, damping and inertia (3, N, N)."""
        friction, springs = self.friction, self.springs
        return np.array([
            springs.axes.T @ (springs.stiffness[:, None] * springs.axes),
            friction.axes.T @ (friction.straight[:, :1] * friction.axes)
            + springs.axes.T @ (springs.damping[:, None] * springs.axes),
            self.rotors.inertia])
