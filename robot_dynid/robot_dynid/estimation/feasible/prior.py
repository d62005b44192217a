"""The nominal robot as a prior, and the coordinates in which it is one.

A link with pseudo-inertia P has V = L^-1 P L^-T, where L L^T is that of the nominal link: the
nominal robot is V = 1 whatever its size, and no frame or unit is preferred. Near it both priors
equal 1/2 ||V - 1||^2: *euclidean* is that everywhere, *entropic* is the log-det (Bregman)
divergence tr V - log det V - 4, which grows without bound towards inconsistent bodies.

Source: Lee, Wensing, Park, Geometric robot dynamic identification: a convex programming approach,
IEEE Transactions on Robotics 36, 2020, section IV.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects.gears import GEAR
from robot_dynid.errors import UsageError
from robot_dynid.estimation.experiment import MODERATE_SPEED, TorqueModel
from robot_dynid.estimation.feasible.bounds import Limits
from robot_dynid.estimation.feasible.conic import (
    Cone,
    Kind,
    Problem,
    Rows,
    matrix_of,
    solve,
    sparse_matrix,
    stack_rows,
    vector_of,
)
from robot_dynid.reduction.numeric import length_of, states_at
from robot_dynid.robot.inertia import parameters_from_pseudo_inertia, pseudo_inertia
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples

#: weight of friction, offset and rotor relative to a link in the prior: little is known of them
OTHERS = 1e-2
#: a nominal body is consistent if its pseudo-inertia is above this share of a stock body
REAL = 1e-9
#: stock body of a link, by typical mass and length of the robot: share of the mass, and square of
#: the radius of gyration of that share, per length squared
STOCK_MASS, STOCK_RADIUS = 1e-2, 1e-2
#: a nominal body outside its bounds retains this share of its pseudo-inertia when it is moved
MOVED_BODY_SHARE = 1e-3
#: rad by which a gear bends under a nominal effort; least value of parameters above zero
BEND, POSITIVE = 1e-3, 1e-6


@dataclass(frozen=True, eq=False)
class Whitening:
    """Dimensionless parameters v (p,): ``standard = transform @ v``, nominal robot at `centre`.

    The ten of a link are `vector_of` V; each other one is scaled so that one makes the effort of a
    joint, that of the nominal links at about 1 rad/s or that of the recordings, whichever is less.
    `weights` (p,) of the euclidean prior, `nonnegative` (p,), `owners` (p,) the last joint whose
    equations show each; `floor` (p,) lower bound of nonnegative ones: zero, but positive for
    rotors and gears of elastic joints, which cannot move without.
    """

    names: tuple[str, ...]
    links: tuple[str, ...]
    transform: FloatArray
    centre: FloatArray
    weights: FloatArray
    nonnegative: NDArray[np.bool_]
    owners: NDArray[np.int64]
    floor: FloatArray
    warnings: tuple[str, ...]

    @property
    def bodies(self) -> slice:
        """Slice of the link parameters: ten each, first."""
        return slice(0, 10 * len(self.links))

    def pseudo_inertias(self, v: FloatArray) -> FloatArray:
        """Return V (n, 4, 4) of all links."""
        return matrix_of(v[self.bodies].reshape(-1, 10))

    def least(self, v: FloatArray) -> FloatArray:
        """Return the smallest eigenvalue (n,) of V of every link."""
        return np.asarray(np.linalg.eigvalsh(self.pseudo_inertias(v))[:, 0])

    @cached_property
    def inverse(self) -> FloatArray:
        """Return ``transform^-1`` (p, p)."""
        return np.asarray(np.linalg.inv(self.transform))


def whitening(model: TorqueModel, limits: Limits, reach: FloatArray) -> Whitening:
    """Return the coordinates of `model`; its nominal links are moved into the feasible set.

    `reach` (r, p) is the effort of each standard parameter of value one in the data, relative to
    the measured effort: break-away friction has none at 1 rad/s. Raises UsageError naming a link
    with contradictory bounds.
    """
    robot, names = model.robot, model.reduction.standard
    bodies, warnings = nominal_bodies(robot, limits)
    links, count = 10 * robot.tree.n, len(names)
    transform = np.diag(np.concatenate([
        np.ones(links), _sizes(model, bodies, reach[:, links:])]))
    for i, body in enumerate(bodies):
        transform[10 * i:10 * i + 10, 10 * i:10 * i + 10] = link_transform(body)
    centre = np.zeros(count)
    centre[:links] = np.tile(vector_of(np.eye(4)), robot.tree.n)
    nonnegative = {name for block in model.blocks for name in block.nonnegative}
    return Whitening(
        names, robot.tree.bodies, transform, centre,
        np.where(np.arange(count) < links, 1.0, OTHERS),
        np.array([name in nonnegative for name in names]), _owners(model), _floor(model),
        tuple(warnings))


def link_transform(body: FloatArray) -> FloatArray:
    """Return T (10, 10): parameters = T @ `vector_of` V of a body with pseudo-inertia (4, 4)."""
    root = np.linalg.cholesky(body)
    bases = matrix_of(np.eye(10))
    return np.array([parameters_from_pseudo_inertia(root @ b @ root.T) for b in bases]).T


def link_transforms(robot: RobotModel) -> list[FloatArray]:
    """Return T (10, 10) of every nominal link, or of a stock body if it is inconsistent."""
    stock = _stock_body(robot)
    bodies = (pseudo_inertia(p) for p in robot.tree.nominal)
    return [link_transform(body if _whitened_least(body, stock) > REAL else stock)
            for body in bodies]


def _owners(model: TorqueModel) -> NDArray[np.int64]:
    """Return the last joint (p,) whose equations show each parameter; for links their joint."""
    seen = (model.structure.astype(np.float64) @ np.abs(model.reduction.matrix)) > 0.0
    joints = np.array(model.robot.row_joints)[:, None]
    last = np.max(np.where(seen, joints, -1), axis=0)
    last[last < 0] = model.robot.n - 1
    links = 10 * model.robot.tree.n
    last[:links] = np.repeat(np.arange(model.robot.tree.n), 10)
    return np.asarray(last, dtype=np.int64)


def _floor(model: TorqueModel) -> FloatArray:
    """Return the lower bounds (p,) of the dimensionless parameters."""
    positive = {gear.parameter(name) for gear in model.gears for name in ('Ia', *GEAR[:2])}
    return np.array([POSITIVE if name in positive else 0.0 for name in model.reduction.standard])


def _bent(states: Samples, model: TorqueModel) -> Samples:
    """Return states whose motors are near their links, by the deflection of the gears."""
    n, elastic = model.robot.n, [gear.joint for gear in model.gears]
    signals = []
    for signal in (states.position, states.velocity, states.acceleration):
        near = signal.copy()
        near[:, n:] = signal[:, elastic] + BEND * (signal[:, n:] - signal[:, elastic])
        signals.append(near)
    position, velocity, acceleration = signals
    return replace(states, position=position, velocity=velocity, acceleration=acceleration)


def _sizes(model: TorqueModel, bodies: FloatArray, reach: FloatArray) -> FloatArray:
    """Return the values (p - 10 n,) at which the other parameters make the effort of a joint."""
    columns = model.columns(_bent(states_at(model.robot, MODERATE_SPEED), model))
    links, matrix = 10 * model.robot.tree.n, model.reduction.matrix
    nominal = np.concatenate([parameters_from_pseudo_inertia(body) for body in bodies])
    effort = np.sqrt(np.mean(np.tensordot(
        columns, matrix[:, :links] @ nominal, (1, 0)) ** 2, axis=-1))
    effort = effort[list(model.robot.row_joints)]  # links have no part in the equation of a motor
    effort = np.maximum(effort, 1e-3 * effort.max())
    alone = np.sqrt(np.mean(np.tensordot(columns, matrix[:, links:], (1, 0)) ** 2, axis=1))
    largest = np.concatenate([alone / effort[:, None], reach]).max(axis=0)
    return 1.0 / np.where(largest > 0.0, largest, 1.0)


def nominal_bodies(robot: RobotModel, limits: Limits) -> tuple[FloatArray, list[str]]:
    """Return the feasible pseudo-inertias (n, 4, 4) nearest to the nominal ones, and warnings.

    Raises UsageError naming a link with contradictory bounds.
    """
    nominal = np.array([pseudo_inertia(p) for p in robot.tree.nominal])
    stock = _stock_body(robot)
    bodies, warnings, unknown = np.empty_like(nominal), [], []
    for i, (name, body) in enumerate(zip(robot.tree.bodies, nominal, strict=True)):
        bodies[i], reason = _nearest(body, stock, _rows_of(limits, i))
        if reason == 'contradiction':
            raise UsageError(f'bounds of {name} contradict each other: no body satisfies '
                             f'{", ".join(_rows_of(limits, i).labels)}')
        if reason and not body.any():
            unknown.append(name)
        elif reason:
            values = parameters_from_pseudo_inertia(bodies[i])
            warnings.append(f'nominal inertia of {name} {reason}; the nearest one that a body can '
                            f'have (mass {values[0]:.3g} kg) is the prior instead: correct the '
                            'robot description')
    if unknown:
        warnings.append(f'no nominal inertia is stated for {", ".join(unknown)}: a small body '
                        'replaces what the recordings do not determine; state mass, centre of '
                        'mass and inertia in the robot description, or bounds in the recipe')
    return bodies, warnings


def _stock_body(robot: RobotModel) -> FloatArray:
    """Return the pseudo-inertia (4, 4) of a small body for links without a nominal one."""
    masses = robot.tree.nominal[:, 0]
    masses = masses[masses > 0.0]
    mass = float(np.median(masses)) if len(masses) else 1.0
    radius = STOCK_RADIUS * length_of(robot) ** 2
    return STOCK_MASS * mass * np.diag([radius, radius, radius, 1.0])


def _whitened_least(body: FloatArray, stock: FloatArray) -> float:
    """Return the least eigenvalue of a pseudo-inertia relative to the `stock` body."""
    root = np.linalg.cholesky(stock)
    return float(np.linalg.eigvalsh(np.linalg.solve(root, np.linalg.solve(root, body).T))[0])


def _rows_of(limits: Limits, link: int) -> Limits:
    """Return the constraints on the ten parameters of one link alone."""
    columns = slice(10 * link, 10 * link + 10)
    inside = np.any(limits.matrix[:, columns] != 0.0, axis=1)
    inside &= ~np.any(np.delete(limits.matrix, columns, axis=1) != 0.0, axis=1)
    labels = tuple(label for label, selected in zip(limits.labels, inside, strict=True)
                   if selected)
    return Limits(labels, limits.matrix[inside, columns], limits.offset[inside],
                  limits.equal[inside], limits.largest[inside])


def _nearest(body: FloatArray, stock: FloatArray, constraints: Limits) -> tuple[FloatArray, str]:
    """Return the feasible body nearest to `body`, and the reason for the change or ''.

    The metric is the whitened euclidean one of the body, or of `stock` if it is inconsistent.
    """
    parameters, real = parameters_from_pseudo_inertia(body), _whitened_least(body, stock) > REAL
    values = constraints.matrix @ parameters - constraints.offset
    slack = 1e-9 * np.abs(constraints.matrix) @ np.abs(parameters)
    if real and np.where(constraints.equal, np.abs(values) <= slack, values >= -slack).all():
        return body, ''
    metric = body if real else stock
    transform, root = link_transform(metric), np.linalg.cholesky(metric)
    start, rows = np.linalg.solve(transform, parameters), constraints.matrix @ transform
    scale = max(1.0, float(np.abs(start).max()))
    limits: list[Rows] = [
        (sparse_matrix(-rows[chosen]), -constraints.offset[chosen] / scale,
         (Cone(kind, int(chosen.sum())),))
        for kind, chosen in ((Kind.ZERO, constraints.equal),
                             (Kind.NONNEGATIVE, ~constraints.equal))]
    for floor in (MOVED_BODY_SHARE,) if real else (1.0, MOVED_BODY_SHARE):
        least: Rows = (sparse_matrix(-np.eye(10)), -floor / scale * vector_of(np.eye(4)),
                       (Cone(Kind.SEMIDEFINITE, 4),))
        solution = solve(Problem(np.eye(10), np.asarray(-start / scale),
                                 *stack_rows([*limits, least])))
        if solution.usable:
            moved = root @ matrix_of(scale * solution.values) @ root.T
            reason = 'is outside its bounds' if real else 'is not that of a body with density'
            return 0.5 * (moved + moved.T), reason
    return body, 'contradiction'
