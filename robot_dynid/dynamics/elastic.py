"""Accelerations of robots with elastic joints, whose motors move apart from their links.

Coordinates are the positions q of the n joints, then those of the motors of the e elastic ones, on
the joint side: theta, the motor's angle over the gear ratio. A gear transmits

    T = K (theta - q) + D (theta_d - q_d) + s,

M(q) qdd + C qd + g = T (the effort of the drive where a joint is rigid), and J theta_dd = effort -
friction - T. Source: Spong, ASME J. Dyn. Syst. Meas. Control 1987, 109, 310-319.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from robot_dynid.dynamics import rigid_body
from robot_dynid.dynamics.rollout import Springs
from robot_dynid.dynamics.rotors import Rotors
from robot_dynid.errors import ModelError, UsageError
from robot_dynid.friction import AxisFriction
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class Gears:
    """Motors and gears of e elastic joints, everything on the joint side.

    ``joints`` (e,) their indices; the others (e,): ``inertia`` J of the rotors kg m^2,
    ``stiffness`` K N m/rad, ``damping`` D N m s/rad, ``offset`` s N m, which is K times what the
    encoders are off against each other.
    """

    joints: tuple[int, ...]
    inertia: FloatArray
    stiffness: FloatArray
    damping: FloatArray
    offset: FloatArray

    def require_possible(self, names: tuple[str, ...]) -> None:
        """Raise ModelError, naming the joint of ``names`` (n,), for a gear that cannot be."""
        for field in fields(self)[1:]:
            values = getattr(self, field.name)
            if np.shape(values) != (len(self.joints),):
                raise UsageError(f'{field.name} of {len(self.joints)} elastic joints has shape '
                                 f'{np.shape(values)}')
            above = field.name in ('inertia', 'stiffness')
            for joint, value in zip(self.joints, values, strict=True):
                if not np.isfinite(value) or (above and not value > 0.0):
                    raise ModelError(
                        f'elastic joint {names[joint]}: {field.name} is {value:g}; it must be '
                        f'{"above zero" if above else "finite"}: identify from a motion that '
                        'shows it, with method feasible, or take the joint as rigid')

    def torque(self, twist: FloatArray, rate: FloatArray) -> FloatArray:
        """Return the gear torque (K, e) N m at motor minus link position and velocity."""
        return self.stiffness * twist + self.damping * rate + self.offset

    def springs(self, n: int) -> Springs:
        """Return the gears as springs between the coordinates of a robot of n joints."""
        axes = np.eye(n + len(self.joints))[n:]
        axes[np.arange(len(self.joints)), list(self.joints)] = -1.0
        return Springs(axes, self.stiffness, self.damping, self.offset)

    def motors(self, n: int) -> tuple[int, ...]:
        """Return the coordinate (n,) of each joint's motor: its own where the joint is rigid."""
        return tuple(n + self.joints.index(j) if j in self.joints else j for j in range(n))


class ElasticDynamics:
    """Forward dynamics of one robot with elastic joints, for many states at once.

    ``parameters`` (n, 10) standard parameters; ``rotors`` of the joints, or their inertia (n, n)
    kg m^2, of which those of elastic joints turn by themselves; ``friction``, by default none, of
    the n+e coordinates. Raises ModelError for gears that cannot be.
    """

    def __init__(self, robot: RobotModel, parameters: FloatArray, rotors: Rotors | FloatArray,
                 gears: Gears, friction: AxisFriction | None = None) -> None:
        gears.require_possible(robot.joints)
        self.gears, self._robot, self._parameters = gears, robot, parameters
        self.rotors, self._own = all_rotors(rotors, gears), list(gears.joints)
        self._dynamics = rigid_body.ForwardDynamics(robot, parameters, self.rotors, friction)
        self._motors = list(gears.motors(robot.n))

    def __call__(
        self, position: FloatArray, velocity: FloatArray, effort: FloatArray,
        external: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        """Return accelerations (K, n+e) and verdicts (K,), as `rigid_body.ForwardDynamics` does.

        ``position`` and ``velocity`` (K, n+e); ``effort`` (K, n) of the drives; ``external``
        (K, n) torque from outside on the links.
        """
        n, own = self._robot.n, self._own
        transmitted = self.gears.torque(position[:, n:] - position[:, own],
                                        velocity[:, n:] - velocity[:, own])
        load = np.hstack([effort, effort[:, own] - transmitted])
        load[:, own] = transmitted
        if external is not None:
            load[:, :n] += external
        return self._dynamics(position, velocity, load)

    def mass_matrix(self, position: FloatArray) -> FloatArray:
        """Return the inertia (K, n+e, n+e) kg m^2 of positions (K, n+e)."""
        n = self._robot.n
        matrix = rigid_body.rotor_inertia(self._robot, self.rotors, position)
        matrix[:, :n, :n] += rigid_body.mass_matrix(
            self._robot, position[:, :n], self._parameters)
        return matrix

    def bias(self, position: FloatArray, velocity: FloatArray) -> FloatArray:
        """Return the effort (K, n+e) that keeps the velocity, gears and friction left out."""
        n, still = self._robot.n, np.zeros_like(position)
        effort = rigid_body.rotor_effort(self._robot, self.rotors, position, velocity, still)
        effort[:, :n] += rigid_body.inverse_dynamics(
            self._robot, position[:, :n], velocity[:, :n], still[:, :n], self._parameters)
        return effort

    def per_joint(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the parts of links and of motors, each (..., n), of values (..., n+e)."""
        return values[..., :self._robot.n], values[..., self._motors]


def stiff_rotors(rotors: FloatArray, gears: Gears) -> FloatArray:
    """Return ``rotors`` (n, n) without those of elastic joints, which turn by themselves."""
    kept = rotors.copy()
    kept[list(gears.joints), :] = 0.0
    kept[:, list(gears.joints)] = 0.0
    return kept


def coordinates(position: FloatArray, motor: FloatArray, gears: Gears) -> FloatArray:
    """Return (..., n+e) from what links and motors have, each (..., n)."""
    return np.concatenate([position, motor[..., list(gears.joints)]], axis=-1)


def all_rotors(rotors: Rotors | FloatArray, gears: Gears) -> Rotors:
    """Return ``rotors`` of n joints, or their inertia (n, n), as those of n+e coordinates."""
    given = Rotors.of(rotors)
    n = len(given.inertia)
    full = np.zeros((n + len(gears.joints),) * 2)
    full[:n, :n] = stiff_rotors(given.inertia, gears)
    full[range(n, len(full)), range(n, len(full))] = gears.inertia
    motions = np.zeros((len(given.motions), len(full)))
    motions[:, list(gears.motors(n))] = given.motions
    return Rotors(full, given.carriers, given.axes, motions)
