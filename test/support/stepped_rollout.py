"""Motion of an identified model step by step in NumPy: the oracle of the compiled rollouts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from friction_formulas import sliding_columns
from numpy.typing import NDArray

from robot_dynid.dynamics.elastic import coordinates
from robot_dynid.dynamics.gears import Springs
from robot_dynid.dynamics.rollout import Rollout, limit_table, step_count
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.kernels.rollout import (
    EXPLICIT,
    IMPLICIT,
    INDEFINITE,
    OVERFLOW,
    SPRING,
)
from robot_dynid.types import FloatArray

#: half width [rad/s] of the difference quotient of the friction
NUDGE = 1e-7
#: linearisations of the friction per stage at most, and the change of speed that ends them
LINEARISATIONS, SETTLED = 30, 1e-11


class AxesFriction:
    """Friction of a model by the formulas of its laws; ``columns`` (n,): coordinates of motors."""

    def __init__(self, model: IdentifiedModel, columns: Sequence[int]) -> None:
        robot, structure = model.torque_model.robot.rigid, model.structure
        friction = structure.friction_of(robot)
        self._names, self._laws, self._load = structure.friction, friction.laws, friction.load
        self._axes, self._motors = friction.axes.matrix, list(columns)
        self._values = [np.array([model.standard[f'{p}{label}'] for p in law.parameters])
                        for label, law in zip(friction.axes.labels, friction.laws, strict=True)]

    def load(self, q: FloatArray, qd: FloatArray) -> FloatArray | None:
        """Return the load (K, a) of the axes by links at (K, n), without acceleration."""
        return None if self._load is None else self._load(q, qd, np.zeros_like(q))

    def __call__(self, v: FloatArray, load: FloatArray | None) -> FloatArray:
        """Return the friction (K, N) on coordinates that move at ``v`` (K, N)."""
        speed, found = v[:, self._motors] @ self._axes.T, np.zeros_like(v)
        for i, (name, law, values) in enumerate(zip(self._names, self._laws, self._values,
                                                    strict=True)):
            pressed = None if load is None else load[:, i]
            torque = values @ sliding_columns(name, law, speed[:, i], pressed)
            found[:, self._motors] += torque[:, None] * self._axes[i]
        return found


class RigidEquations:
    """M(x) a + bias(x, v) + friction = effort of a model whose gears are stiff."""

    springs: Springs | None = None

    def __init__(self, model: IdentifiedModel) -> None:
        self.joints, self.mass_matrix = model.joints, model.mass_matrix
        self.limits, self._model = limit_table(model.robot.limits), model
        self.friction = AxesFriction(model, range(model.robot.n))

    def bias(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the effort of links and rotors."""
        return self._model.frictionless_effort(x, v, np.zeros_like(x))


class ElasticEquations:
    """The same with elastic joints, gears as springs; joints are the first coordinates."""

    def __init__(self, model: IdentifiedModel) -> None:
        dynamics, n = model.elastic_motion.dynamics, model.robot.n
        self.joints, self.mass_matrix, self.bias = (
            model.joints, dynamics.mass_matrix, dynamics.bias)
        self.limits = limit_table(model.robot.limits)
        self.springs: Springs | None = dynamics.gears.springs(n)
        self.friction = AxesFriction(model, dynamics.gears.motors(n))


def stepped_rollout(
    model: IdentifiedModel, q0: FloatArray, qd0: FloatArray, effort: FloatArray, dt: float,
    motors: tuple[FloatArray, FloatArray] | None = None,
) -> Rollout:
    """Return what the kernel should: the arguments are those of `IdentifiedModel.rollout`."""
    if motors is None:
        return integrated(RigidEquations(model), q0, qd0, effort, dt)
    gears, n = model.elastic_motion.gears, model.robot.n
    x, v = coordinates(q0, motors[0], gears), coordinates(qd0, motors[1], gears)
    drives = np.zeros((*effort.shape[:2], x.shape[1]))
    drives[:, :, list(gears.motors(n))] = effort
    return integrated(ElasticEquations(model), x, v, drives, dt).of_joints(gears.joints)


def integrated(
    equations: RigidEquations | ElasticEquations, q0: FloatArray, qd0: FloatArray,
    effort: FloatArray, dt: float,
) -> Rollout:
    """Return the motions of ``equations`` from states (K, N) under efforts (K, T, N)."""
    result = Rollout.empty(equations.joints, effort.shape)
    q, v = q0.copy(), qd0.copy()
    steps = step_count(dt)
    for t in range(effort.shape[1]):
        for _ in range(steps):
            going = np.flatnonzero(result.stop_step < 0)
            definite = _definite(equations.mass_matrix(q[going]))
            _stop(result, going[~definite], t, INDEFINITE)
            going = going[definite]
            with np.errstate(over='ignore', invalid='ignore'):  # such motions are stopped
                q[going], v[going] = _step(equations, q[going], v[going], effort[going, t],
                                           dt / steps)
            finite = np.isfinite(q[going] + v[going]).all(axis=1)
            _stop(result, going[~finite], t, OVERFLOW)
            stopped = result.stop_step >= 0
            q[stopped] = v[stopped] = np.nan
            _watch_limits(result, equations.limits, q, t)
        result.position[:, t], result.velocity[:, t] = q, v
    return result


def _definite(matrix: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.linalg.eigvalsh(matrix).min(axis=1, initial=np.inf) > 0.0)


def _stop(result: Rollout, motions: NDArray[np.intp], t: int, cause: int) -> None:
    result.stop_step[motions], result.stop_cause[motions] = t, cause


def _watch_limits(result: Rollout, limits: FloatArray, q: FloatArray, t: int) -> None:
    own = q[:, :limits.shape[1]]
    outside = (own < limits[0]) | (own > limits[1])
    leaves = outside.any(axis=1) & (result.limit_step < 0)
    result.limit_step[leaves], result.limit_joint[leaves] = t, outside[leaves].argmax(axis=1)


def _step(
    equations: RigidEquations | ElasticEquations, q: FloatArray, v: FloatArray,
    effort: FloatArray, h: float,
) -> tuple[FloatArray, FloatArray]:
    """Advance by ``h``: the stages of the kernel."""
    ahead: list[FloatArray] = []
    within: list[FloatArray] = []
    rates: list[FloatArray] = []
    for explicit, implicit, spring in zip(EXPLICIT, IMPLICIT, SPRING, strict=True):
        at, stage = q + h * _sum(explicit, ahead), len(rates)
        ahead.append(v + h * _sum(explicit, rates))
        before, share = v + h * _sum(implicit, rates), h * implicit[stage]
        gears = _spring_terms(equations.springs, q + h * _sum(spring, within), h * spring[stage])
        within.append(_implicit(equations, (at, ahead[-1]), effort, (before, share), gears))
        rates.append((within[-1] - before) / share)
    return q + h * _sum(IMPLICIT[-1], within), within[-1]


def _spring_terms(
    springs: Springs | None, q: FloatArray, reach: float
) -> tuple[FloatArray, FloatArray]:
    """Return c (K, N) and S (N, N): springs at q + reach w with velocity w resist by c + S w."""
    if springs is None:
        return np.zeros_like(q), np.zeros((q.shape[1],) * 2)
    axes = springs.axes
    pull = q @ axes.T * springs.stiffness + springs.offset
    rise = springs.damping + reach * springs.stiffness
    return pull @ axes, axes.T @ (rise[:, None] * axes)


def _sum(weights: FloatArray, terms: list[FloatArray]) -> FloatArray | float:
    """Return the weighted sum of the terms there are."""
    return sum((w * x for w, x in zip(weights, terms, strict=False)), 0.0)


def _implicit(
    equations: RigidEquations | ElasticEquations, state: tuple[FloatArray, FloatArray],
    effort: FloatArray, start: tuple[FloatArray, float], gears: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return w with M (w - before) + duration (F(w) + c + S w + bias - effort) = 0.

    M, bias and load are at ``state``, ``start`` is (before, duration), ``gears`` (c, S). A joint
    that would reverse is linearised at rest next, or it would jump across a steep ramp. Motions
    whose state has overflown give NaN.
    """
    (before, duration), (pull, resistance) = start, gears
    lost = ~np.isfinite(state[0] + state[1]).all(axis=1, keepdims=True)
    q, v = (np.where(lost, 0.0, x) for x in state)
    matrix = equations.mass_matrix(q) + duration * resistance
    excess = effort - equations.bias(q, v) - pull - before @ resistance
    n = equations.limits.shape[1]
    load = equations.friction.load(q[:, :n], v[:, :n])
    at = after = before
    moves = np.ones((len(q), 1), dtype=bool)  # each by itself: what has settled stays as it is
    diagonal = np.arange(q.shape[1])
    for _ in range(LINEARISATIONS):
        slope = (equations.friction(at + NUDGE, load) - equations.friction(at - NUDGE, load)) \
            / (2.0 * NUDGE)
        slope = np.maximum(slope, 0.0)
        damped = matrix.copy()
        damped[:, diagonal, diagonal] += duration * slope
        net = excess - equations.friction(at, load) - slope * (before - at)
        found = before + duration * np.linalg.solve(damped, net[:, :, None])[:, :, 0]
        after = np.where(moves, found, after)
        taken, at = at, np.where(after * at < 0.0, 0.0, after)
        moves &= ~(np.abs(after - taken).max(axis=1, keepdims=True) < SETTLED)
        if not moves.any():
            break
    return np.where(lost, np.nan, after)
