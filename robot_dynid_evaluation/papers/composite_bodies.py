"""Identification of composite bodies by moving one joint at a time, equation by equation.

Composite body j is link j with all links after it; what is estimated of it are the constant parts
m^_j, k_j and U_j of its mass, first moment and inertia about the origin of frame j. The varying
parts l_j and V_j follow from the constants of the bodies after it (`varying`), so the bodies are
worked off from the last to the first. Frames have z along the joint axis.
Typographic slips of the source: eq. 51 has the wrong sign in the coefficient of J_23, and eq. 52
w_x w_z for w_y w_z in that of c_y; eqs. 56 and 57 are right.
Source: Lin, An identification method for estimating the inertia parameters of a manipulator, 1991.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from robot_dynid.dynamics.rigid_body import link_poses
from robot_dynid.robot.inertia import skew
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray
from robot_dynid_evaluation.papers.screw_dynamics import link_transforms

#: what eqs. 56 and 61 determine of a revolute and a prismatic body
REVOLUTE_CONSTANTS = ('U11 - U22', 'U33', 'U12', 'U13', 'U23', 'kx', 'ky')
PRISMATIC_CONSTANTS = ('kx', 'ky', 'kz', 'm')
#: columns this small beside the largest have no effect
NO_EFFECT = 1e-9


@dataclass(frozen=True, eq=False)
class Sample:
    """Joint ``moving`` in motion while all others rest: ``q`` and measured ``effort`` (n,).

    ``rate`` and ``acceleration`` are those of the moving joint [rad/s, rad/s^2].
    """

    moving: int
    q: FloatArray
    rate: float
    acceleration: float
    effort: FloatArray


@dataclass(frozen=True, eq=False)
class Constants:
    """Constants of the composite bodies, zero where not known or not needed.

    ``mass`` (n,) kg; ``first`` k (n, 3) kg m; ``second`` U (n, 3, 3) kg m^2 with U_22 taken as
    zero, so that U_11 stands for U_11 - U_22.
    """

    mass: FloatArray
    first: FloatArray
    second: FloatArray

    @classmethod
    def unknown(cls, n: int) -> Constants:
        """Return the start."""
        return cls(np.zeros(n), np.zeros((n, 3)), np.zeros((n, 3, 3)))

    def add(self, j: int, values: dict[str, float]) -> None:
        """Enter what has been found of body ``j``."""
        for name, value in values.items():
            if name == 'm':
                self.mass[j] = value
            elif name.startswith('k'):
                self.first[j, 'xyz'.index(name[1])] = value
            else:
                row, column = int(name[1]) - 1, int(name[2]) - 1
                self.second[j, row, column] = self.second[j, column, row] = value


def _product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Return [a x][b x] + [b x][a x]."""
    x, y = skew(a), skew(b)
    return np.asarray(x @ y + y @ x)


def varying(
    robot: RobotModel, known: Constants, q: FloatArray, j: int
) -> tuple[FloatArray, FloatArray]:
    """Return l_j (3,) kg m and V_j (3, 3) kg m^2 at ``q`` (n,) (Algorithm 1: eqs. 19, 21, 23, 25).
    """
    moment, inertia = np.zeros(3), np.zeros((3, 3))
    transforms = link_transforms(robot, q)
    for i in range(robot.n - 1, j, -1):
        turn, shift, first = transforms[i][:3, :3], transforms[i][:3, 3], known.first[i]
        if robot.types[i] == PRISMATIC:
            own = turn.T @ shift
            along, across = np.array([0.0, 0.0, own[2]]), np.array([own[0], own[1], 0.0])
            inertia = turn @ (
                inertia - known.mass[i] * (skew(along) @ skew(along) + _product(along, across))
                - _product(along, first + moment) - _product(across, moment)) @ turn.T
            moment = turn @ (moment + known.mass[i] * along)
        else:
            moment = turn @ (moment + first * (1.0, 1.0, 0.0))
            turning = known.second[i] * (1.0 - np.diag([0.0, 0.0, 1.0]))
            inertia = turn @ (inertia + turning) @ turn.T - _product(shift, moment)
    return moment, inertia


@dataclass(frozen=True, eq=False)
class Kinematics:
    """Motion of frame j, in frame j: ``axis`` u_i^(j), ``acceleration`` a_j - g (3,) m/s^2."""

    axis: FloatArray
    acceleration: FloatArray


def kinematics(robot: RobotModel, sample: Sample, j: int) -> Kinematics:
    """Return the motion of frame j while joint i <= j turns (eq. 55)."""
    (turns,), (origins,) = link_poses(robot, sample.q[None])
    own, moving = turns[j], sample.moving
    axis = own.T @ turns[moving][:, 2]
    arm = own.T @ (origins[j] - origins[moving])
    lever = np.cross(axis, arm)
    weight = own.T @ np.asarray(robot.gravity)
    return Kinematics(axis, lever * sample.acceleration
                      + np.cross(axis, lever) * sample.rate**2 - weight)


def revolute_row(robot: RobotModel, sample: Sample, j: int) -> FloatArray:
    """Return the coefficients (7,) of eq. 56, in the order of REVOLUTE_CONSTANTS.

    For j = i they are those of eq. 58.
    """
    at = kinematics(robot, sample, j)
    x, y, z = at.axis
    speed2, acceleration = sample.rate**2, sample.acceleration
    return np.array([
        -x * y * speed2, z * acceleration, (x * x - y * y) * speed2,
        x * acceleration - y * z * speed2, y * acceleration + x * z * speed2,
        at.acceleration[1], -at.acceleration[0]])


def prismatic_row(robot: RobotModel, sample: Sample, j: int) -> FloatArray:
    """Return the coefficients (4,) of eq. 61, in the order of PRISMATIC_CONSTANTS."""
    at = kinematics(robot, sample, j)
    x, y, z = at.axis
    speed2, acceleration = sample.rate**2, sample.acceleration
    return np.array([
        -y * acceleration + x * z * speed2, x * acceleration + y * z * speed2,
        -(x * x + y * y) * speed2, at.acceleration[2]])


def estimate_body(
    robot: RobotModel, samples: Sequence[Sample], j: int, known: Constants
) -> dict[str, float]:
    """Return the constants of body ``j`` that appear in the effort of joint j (step 2).

    Least squares on eq. 56 (revolute) or eq. 61 (prismatic), the varying parts taken off with what
    is ``known`` of the bodies after j. Constants without effect on the samples are left out.
    """
    prismatic = robot.types[j] == PRISMATIC
    names = PRISMATIC_CONSTANTS if prismatic else REVOLUTE_CONSTANTS
    rows, right = [], []
    for sample in samples:
        moment, v = varying(robot, known, sample.q, j)
        part = np.array([*moment, 0.0]) if prismatic else np.array(
            [v[0, 0] - v[1, 1], v[2, 2], v[0, 1], v[0, 2], v[1, 2], moment[0], moment[1]])
        row = (prismatic_row if prismatic else revolute_row)(robot, sample, j)
        rows.append(row)
        right.append(sample.effort[j] - row @ part)
    design = np.array(rows)
    size = np.abs(design).max(axis=0)
    seen = size > NO_EFFECT * size.max()
    values = np.linalg.lstsq(design[:, seen], np.array(right), rcond=None)[0]
    return dict(zip(np.array(names)[seen].tolist(), values.tolist(), strict=True))


def estimate_axis_inertia(
    robot: RobotModel, sample: Sample, known: Constants
) -> dict[str, float]:
    """Return U_33 of the body whose own joint turns alone (eq. 58), k_x and k_y being known."""
    j = sample.moving
    moment, inertia = varying(robot, known, sample.q, j)
    weight = kinematics(robot, sample, j).acceleration
    first = known.first[j] + moment
    about = sample.effort[j] - weight[1] * first[0] + weight[0] * first[1]
    return {'U33': float(about / sample.acceleration - inertia[2, 2])}
