"""Base parameters of a robot from its axes alone: the inertia constants of composite bodies.

Joint r is the first revolute joint, s the first revolute joint whose axis is not parallel to it.
Of the constants of the composite bodies (composite_inertia) these affect an effort (Theorem 2):

1. revolute j from r to before s: U_33; k_x, k_y unless nothing moves the axis sideways;
2. revolute j from s on: U_11 - U_22, U_33, U_12, U_13, U_23, k_x, k_y;
3. prismatic i: the mass m^;
4. prismatic i after s: k_x, k_y, k_z;
5. prismatic i between r and s, not parallel to r: -u_y k_x + u_x k_y and
   -u_z (u_x k_x + u_y k_y) + (1 - u_z^2) k_z with u the axis of r in its frame.

Without s, items 1 and 5 hold to the end of the chain; without r, only item 3. In a tree this holds
for the path from the base to each joint, and a link carries all its branches.

"Nothing moves the axis sideways" (delta_j = 0 in the source): gravity is parallel to u_r, so are
all prismatic axes before j, and the axes of all revolute joints before j coincide with that of j.

Difference from the source: it always counts k_x, k_y from s on, which is minimal only with
gravity. Without gravity, a revolute joint from s on whose axis passes through a point at rest (no
prismatic joint before it, all earlier axes through that point: a wrist on the ground) feels no
first moment: only U_13 + t k_x and U_23 + t k_y matter, the products of inertia about that point,
t being its position along the axis. Zero gravity counts as parallel to everything in delta_j.

Source: Lin, An Identification Method for Estimating the Inertia Parameters of a Manipulator, 1991,
Theorems 2 and 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.effects.effect import Effect
from robot_dynid.effects.links import RigidLinks
from robot_dynid.errors import UsageError
from robot_dynid.reduction.base import Reduction, check_size, combination_label
from robot_dynid.reduction.composite_inertia import composite_map, driving_placements
from robot_dynid.reduction.numeric import length_of, parameter_sizes, row_echelon, row_space
from robot_dynid.robot.inertia import PARAMETERS
from robot_dynid.robot.model import REVOLUTE, RobotModel
from robot_dynid.types import FloatArray

#: constants of one composite body, in the order of standard parameters
CONSTANTS = ('m^{}', '(k{})x', '(k{})y', '(k{})z', '(U{})11', '(U{})12', '(U{})22', '(U{})13',
             '(U{})23', '(U{})33')
#: axes closer than this [rad, lengths of the robot] are parallel or intersect: the rest is
#: rounding of the description (1.5708 for pi/2)
PARALLEL_AXES = 1e-5
#: coefficients below this share of the largest of their row come from angles with ten digits
ANGLE_DIGITS_ROUNDING = 1e-8
M, KX, KY, KZ, U11, U12, U22, U13, U23, U33 = np.eye(10)


@dataclass(frozen=True, eq=False)
class InertiaConstants:
    """The minimal set of Theorem 2.

    ``names`` (b,) such as ``(U2)11-(U2)22``, ``(k3)z``, ``m^3``; ``rows`` (b, 10 n): constants =
    rows @ standard parameters; ``joints`` (b,) index of the composite body; ``standard`` (10 n,)
    names of the standard parameters.
    """

    names: tuple[str, ...]
    rows: FloatArray
    joints: NDArray[np.int64]
    standard: tuple[str, ...]

    @property
    def clean_rows(self) -> FloatArray:
        """The rows (b, 10 n) without the rounding of angles."""
        sizes = np.abs(self.rows)
        return np.where(
            sizes > ANGLE_DIGITS_ROUNDING * sizes.max(axis=1, keepdims=True), self.rows, 0.0)

    @property
    def labels(self) -> tuple[str, ...]:
        """Each constant as a combination of standard parameters, starting with one of its own
        link.
        """
        clean = self.clean_rows
        leading = [10 * int(j) + int(np.argmax(np.abs(row[10 * j:10 * j + 10])))
               for row, j in zip(clean, self.joints, strict=True)]
        return tuple(combination_label(row, self.standard, i)
                     for row, i in zip(clean, leading, strict=True))

    def values(self, robot: RobotModel) -> FloatArray:
        """Return the constants (b,) [kg, kg m, kg m^2] of the nominal links of a robot."""
        return np.asarray(self.clean_rows @ robot.nominal.ravel())


@dataclass(frozen=True, eq=False)
class _Axes:
    """Axes of the n joints of a path from the base, at q = 0.

    Poses (n, 4, 4) in the base frame, gravity of length 1 or 0. Axes less than ``tolerance`` [rad,
    lengths of the robot] apart are parallel or intersect.
    """

    poses: FloatArray
    revolute: NDArray[np.bool_]
    gravity: FloatArray
    length: float
    tolerance: float

    @classmethod
    def of(cls, robot: RobotModel, tolerance: float) -> tuple[_Axes, ...]:
        """Return the axes of the path to each joint, ending with that joint."""
        poses, ways = driving_placements(robot), list[list[int]]()
        size, length = float(np.linalg.norm(robot.gravity)), length_of(robot)
        gravity = robot.gravity / size if size > 0.0 else np.zeros(3)
        for j, parent in enumerate(robot.parents):
            if parent >= 0:
                poses[j] = poses[parent] @ poses[j]
            ways.append([*(ways[parent] if parent >= 0 else ()), j])
        return tuple(cls(poses[way], np.asarray(robot.types[way] == REVOLUTE), gravity, length,
                         tolerance) for way in ways)

    def direction(self, j: int) -> FloatArray:
        return self.poses[j, :3, 2]

    def parallel(self, j: int, direction: FloatArray) -> bool:
        sine = np.linalg.norm(np.cross(self.direction(j), direction))
        return bool(sine <= self.tolerance)

    def through(self, j: int, point: FloatArray) -> bool:
        arm = (point - self.poses[j, :3, 3]) / self.length
        return bool(np.linalg.norm(np.cross(self.direction(j), arm)) <= self.tolerance)

    @property
    def first(self) -> int:
        """Joint r; n if there is none."""
        return int(np.argmax(np.append(self.revolute, True)))

    @property
    def second(self) -> int:
        """Joint s; n if there is none."""
        for j in range(self.first + 1, len(self.poses)):
            if self.revolute[j] and not self.parallel(j, self.direction(self.first)):
                return j
        return len(self.poses)

    def moves_sideways(self, j: int) -> bool:
        """Whether gravity or a joint before it acts across the axis of a revolute joint j before
        s.
        """
        axis = self.direction(j)
        return not (self.parallel(j, self.gravity) and all(
            self.through(m, self.poses[j, :3, 3]) if self.revolute[m] else self.parallel(m, axis)
            for m in range(j)))

    def resting_point(self, j: int) -> float | None:
        """Return the point [m] along the axis of revolute joint j, from s on, that stays at rest.

        None with gravity, or without such a point.
        """
        if self.gravity.any() or not self.revolute[:j].all():
            return None
        axis, origin = self.direction(self.first), self.poses[self.first, :3, 3]
        normal = np.cross(axis, self.direction(self.second))
        # the point of the axis of r nearest to that of s
        reach = np.cross(self.poses[self.second, :3, 3] - origin, self.direction(self.second))
        point = origin + (reach @ normal) / (normal @ normal) * axis
        if not all(self.through(m, point) for m in range(j + 1)):
            return None
        return float((point - self.poses[j, :3, 3]) @ self.direction(j))


@one_blas_thread()
def inertia_constants(
    robot: RobotModel, tolerance: float = PARALLEL_AXES
) -> InertiaConstants:
    """Return the inertia constants of Theorem 2, joint by joint.

    Axes closer than ``tolerance`` [rad, lengths of the robot] are parallel or intersect.
    """
    bodies, constants = composite_map(robot), _constants(robot, tolerance)
    return InertiaConstants(
        tuple(_name(constant, j + 1) for j, constant in constants),
        np.array([constant @ bodies[j] for j, constant in constants]),
        np.array([j for j, _ in constants]), standard_names(robot))


def standard_names(robot: RobotModel) -> tuple[str, ...]:
    """Return the names (10 n,) of the standard parameters of all links."""
    return tuple(f'{p}{i + 1}' for i in range(robot.n) for p in PARAMETERS)


def _constants(robot: RobotModel, tolerance: float) -> list[tuple[int, FloatArray]]:
    """Return, joint by joint, the combinations (10,) of constants that affect an effort."""
    return [(j, constant) for j, axes in enumerate(_Axes.of(robot, tolerance))
            for constant in _last_body_constants(axes)]


def _last_body_constants(axes: _Axes) -> list[FloatArray]:
    """Return the combinations of the constants of the last composite body that affect an effort.
"""
    j = len(axes.poses) - 1
    if axes.revolute[j]:
        if j < axes.second:
            return [U33, KX, KY] if axes.moves_sideways(j) else [U33]
        along = axes.resting_point(j)
        if along is None:
            return [U11 - U22, U33, U12, U13, U23, KX, KY]
        return [U11 - U22, U33, U12, U13 + along * KX, U23 + along * KY]
    if j < axes.first or (j < axes.second and axes.parallel(j, axes.direction(axes.first))):
        return [M]
    if j > axes.second:
        return [M, KX, KY, KZ]
    x, y, z = axes.poses[j, :3, :3].T @ axes.direction(axes.first)
    return [M, -y * KX + x * KY, -z * (x * KX + y * KY) + (1.0 - z * z) * KZ]


def _name(constant: FloatArray, number: int) -> str:
    text = ''
    for i in (4, 5, 6, 7, 8, 9, 0, 1, 2, 3):  # moments of inertia first
        size = f'{abs(constant[i]):.6g}'
        if abs(constant[i]) > PARALLEL_AXES:
            sign = '-' if constant[i] < 0.0 else '+' if text else ''
            text += sign + ('' if size == '1' else f'{size}*') + CONSTANTS[i].format(number)
    return text


@one_blas_thread()
def reduce_analytic(robot: RobotModel, blocks: Sequence[Effect] = ()) -> Reduction:
    """Return the base parameters of the links of a robot by Theorem 2.

    The pivots are the leftmost independent columns, as in `reduce_numeric`, so names are the same.
    ``gap`` is infinite: the rank is counted from the axes, not measured. A warning names the
    constants that depend on whether axes count as parallel or intersecting. Raises UsageError if
    ``blocks`` hold more than the links.
    """
    check_size(robot)
    more = [type(block).__name__ for block in blocks if not isinstance(block, RigidLinks)]
    if more:
        raise UsageError(f'the analytic reduction covers links only, not {", ".join(more)}: '
                         'use the numeric method')
    rows, sizes = inertia_constants(robot).rows, parameter_sizes(robot.n, length_of(robot))
    _, directions = row_space(rows / sizes)
    pivots, matrix = row_echelon(rows / sizes, directions[:len(rows)], sizes)
    return Reduction(standard_names(robot), pivots, matrix, float('inf'), tuple(_doubts(robot)))


def _doubts(robot: RobotModel) -> list[str]:
    """Return a warning if the base parameters change with the tolerance."""
    strict, loose = (
        {_name(constant, j + 1) for j, constant in _constants(robot, tolerance)}
        for tolerance in (1e-2 * PARALLEL_AXES, 1e3 * PARALLEL_AXES))
    doubtful = sorted(strict ^ loose)
    return [f'{robot.name}: the number of base parameters is uncertain, because axes are nearly '
            f'parallel or nearly intersect and {", ".join(doubtful)} hardly matter: give the '
            'angles of the description with all digits (1.570796, not 1.57)'] if doubtful else []
