"""Chains of any axes, random ones, the Stanford arm; Pinocchio's view of any chain."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from robot_dynid.reduction import Reduction
from robot_dynid.reduction.numeric import length_of, parameter_sizes
from robot_dynid.robot.inertia import (
    parameters_from_com,
    parameters_from_pseudo_inertia,
    rotation_about,
)
from robot_dynid.robot.model import PRISMATIC, REVOLUTE, STANDARD_GRAVITY, Limits, RobotModel
from robot_dynid.types import FloatArray

DIRECTIONS = ('parallel', 'perpendicular', 'general')
OFFSETS = ('zero', 'along', 'own', 'general')
GRAVITIES = ('aligned', 'general', 'zero')


def chain(types, rotations, translations, axes, nominal=None, gravity=STANDARD_GRAVITY):
    """Return a chain of joints ``1, 2, ...`` from arrays as RobotModel has them."""
    n = len(types)
    names = tuple(str(i + 1) for i in range(n))
    return RobotModel(
        name='chain', joints=names, types=np.array(types, dtype=np.int8),
        parents=np.arange(n) - 1, rotations=np.array(rotations, dtype=float).reshape(n, 3, 3),
        translations=np.array(translations, dtype=float).reshape(n, 3),
        axes=np.array(axes, dtype=float).reshape(n, 3), bodies=names,
        nominal=np.zeros((n, 10)) if nominal is None else np.array(nominal, dtype=float),
        limits=Limits.unknown(n), gravity=np.array(gravity, dtype=float))


def unit(rng: np.random.Generator) -> FloatArray:
    """Return a random direction."""
    vector = rng.normal(size=3)
    return vector / np.linalg.norm(vector)


def rotation(rng: np.random.Generator) -> FloatArray:
    """Return a random rotation."""
    return rotation_about(unit(rng), rng.uniform(-3.0, 3.0))


def direction_like(rng: np.random.Generator, before: FloatArray) -> FloatArray:
    """Return an axis parallel, antiparallel, perpendicular or in general position."""
    kind = rng.choice(DIRECTIONS, p=[0.45, 0.3, 0.25])
    if kind == 'parallel':
        return before * rng.choice([-1.0, 1.0])
    axis = unit(rng)
    if kind == 'perpendicular':
        axis = np.cross(before, axis)
    return axis / np.linalg.norm(axis)


def offset_from(rng: np.random.Generator, before: FloatArray, axis: FloatArray,
                shares: tuple[float, ...]) -> FloatArray:
    """Return no offset, one along the axis before (coaxial when parallel) or its own, or any."""
    kind = rng.choice(OFFSETS, p=shares)
    if kind == 'general':
        return rng.normal(size=3) * 0.3
    return {'zero': 0.0, 'along': 0.4, 'own': -0.3}[kind] * (axis if kind == 'own' else before)


def random_chain(rng: np.random.Generator, n: int, prismatic: float = 0.35) -> RobotModel:
    """Return a chain of n joints, each prismatic with the given probability.

    Bodies have positive density; gravity is along the first revolute axis, in general position
    or zero; half of the chains without gravity are wrists. No axis is nearly parallel to the
    first revolute one, by chance.
    """
    robot = _any_chain(rng, n, prismatic)
    while _nearly_parallel(robot):
        robot = _any_chain(rng, n, prismatic)
    return robot


def _nearly_parallel(robot: RobotModel) -> bool:
    turn, axes = np.eye(3), []
    for placed, axis in zip(robot.rotations, robot.axes):
        turn = turn @ placed
        axes.append(turn @ axis)
    first = axes[int(np.argmax(robot.types == REVOLUTE))]
    sines = np.linalg.norm(np.cross(axes, first), axis=1)
    return bool(np.any((sines > 1e-12) & (sines < 0.05)))


def _any_chain(rng: np.random.Generator, n: int, prismatic: float) -> RobotModel:
    field = rng.choice(GRAVITIES, p=[0.4, 0.4, 0.2])
    shares = (0.3, 0.15, 0.1, 0.45)
    if field == 'zero' and rng.random() < 0.5:
        prismatic, shares = 0.0, (0.6, 0.0, 0.4, 0.0)
    types, rotations, translations, axes, nominal = [], [], [], [], []
    before, world, first = unit(rng), np.eye(3), None
    for _ in range(n):
        axis = direction_like(rng, before)
        turn = rotation(rng)
        types.append(PRISMATIC if rng.random() < prismatic else REVOLUTE)
        if first is None and types[-1] == REVOLUTE:
            first = world @ axis
        rotations.append(turn)
        translations.append(offset_from(rng, before, axis, shares))
        axes.append(turn.T @ axis)
        spread = rng.normal(size=(4, 4)) * 0.5
        nominal.append(parameters_from_pseudo_inertia(spread @ spread.T + 0.1 * np.eye(4)))
        world, before = world @ turn, axes[-1]
    gravity = {'aligned': -9.81 * (unit(rng) if first is None else first),
               'general': 9.81 * unit(rng), 'zero': np.zeros(3)}[field]
    return chain(types, rotations, translations, axes, nominal, gravity)


def dimensionless(robot: RobotModel, reduction: Reduction) -> FloatArray:
    """Return K (b, p) in lengths of the robot, by the largest coefficient of each row."""
    sizes = parameter_sizes(robot.n, length_of(robot))
    matrix = reduction.matrix * sizes[reduction.pivots][:, None] / sizes
    return matrix / np.abs(matrix).max(axis=1, keepdims=True)


def pinocchio_regressor(robot: RobotModel, q: FloatArray, v: FloatArray,
                        a: FloatArray) -> FloatArray:
    """Return Pinocchio's joint torque regressors (N n, 10 n) of the states of a chain."""
    model = pin.Model()
    model.gravity.linear = np.array(robot.gravity)
    for j in range(robot.n):
        kind = (pin.JointModelPrismaticUnaligned if robot.types[j] == PRISMATIC
                else pin.JointModelRevoluteUnaligned)
        place = pin.SE3(np.array(robot.rotations[j]), np.array(robot.translations[j]))
        model.addJoint(j, kind(np.array(robot.axes[j])), place, robot.joints[j])
    data = model.createData()
    # a single row comes flat
    return np.concatenate([
        pin.computeJointTorqueRegressor(model, data, *state).reshape(robot.n, -1).copy()
        for state in zip(q, v, a)])


# Figure 2 of Lin 1991: type, theta', beta [deg], b, d' [m], mass [kg], centre of mass [m],
# principal moments about it [kg m^2].
FIGURE_2 = (
    (REVOLUTE, 0, 0, 0.0, 0.0, 9.29, (0.0, 0.1105, 0.0175), (0.276, 0.255, 0.71)),
    (REVOLUTE, 90, 90, 0.0, 0.1529, 5.01, (0.0, 0.0, -0.1054), (0.108, 0.018, 0.1)),
    (PRISMATIC, 0, 90, 0.0, 0.6447, 4.25, (0.0, 0.0, -0.6447), (2.51, 2.51, 0.006)),
    (REVOLUTE, 0, 0, 0.0, 0.0, 1.08, (0.0092, 0.0054, 0.0), (0.002, 0.001, 0.001)),
    (REVOLUTE, -90, 90, 0.0, 0.0, 0.63, (0.0, -0.0566, 0.0), (0.003, 0.003, 0.0004)),
    (REVOLUTE, 0, 90, 0.0, 0.0, 0.51, (0.0, 0.0, 0.1554), (0.013, 0.013, 0.0003)),
)


def placement(theta, beta, b, d):
    """Return the rotation of eq. 4 and the translation of eq. 3 (frame i in frame i-1)."""
    ct, st, cb, sb = np.cos(theta), np.sin(theta), np.cos(beta), np.sin(beta)
    rotation = [[ct, -st, 0.0], [cb * st, cb * ct, -sb], [sb * st, sb * ct, cb]]
    return np.array(rotation), np.array([b, -d * sb, d * cb])


def stanford_arm():
    """Return the arm of figure 2: frames with z along the joints, origins as in the source."""
    placed = [placement(*np.deg2rad(row[1:3]), *row[3:5]) for row in FIGURE_2]
    nominal = [parameters_from_com(row[5], row[6], np.diag(row[7])) for row in FIGURE_2]
    return chain([row[0] for row in FIGURE_2], [r for r, _ in placed], [p for _, p in placed],
                 np.tile([0.0, 0.0, 1.0], (6, 1)), nominal)
