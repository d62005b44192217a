"""Motion of the identified model step by step in Python, for any friction law."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics.rollout import Rollout, Springs, limit_table, step_count
from robot_dynid.kernels.rollout import (
    EXPLICIT,
    IMPLICIT,
    INDEFINITE,
    OVERFLOW,
    SPRING,
)
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: half width [rad/s] of the difference quotient of the friction
NUDGE = 1e-6
#: linearisations of the friction per stage
LINEARISATIONS = 4


class Equations(Protocol):
    """M(x) a + bias(x, v) + friction(x, v) + springs = effort, in arrays (K, N).

    The joints are the first coordinates, ``limits`` (2, n) theirs.
    """

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""

    limits: FloatArray
    springs: Springs | None

    def mass_matrix(self, x: FloatArray) -> FloatArray:
        """Return M (K, N, N)."""

    def bias(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the effort that keeps the velocity, springs and friction left out."""

    def friction(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the friction."""


class RigidEquations:
    """The equations of a model whose gears are stiff."""

    springs: Springs | None = None

    def __init__(self, model: IdentifiedModel) -> None:
        self.joints, self.mass_matrix = model.joints, model.mass_matrix
        self.limits, self._model = limit_table(model.robot.limits), model

    def bias(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the effort of links and rotors."""
        return self._model.frictionless_effort(x, v, np.zeros_like(x))

    def friction(self, x: FloatArray, v: FloatArray) -> FloatArray:
        """Return the friction of states taken by themselves."""
        return self._model.friction(x, v)


def rollout_by_law(
    model: IdentifiedModel, q0: FloatArray, qd0: FloatArray, effort: FloatArray, dt: float
) -> Rollout:
    """Return what the kernel would; friction is linearised in the velocity in every stage."""
    return integrate_by_law(RigidEquations(model), q0, qd0, effort, dt)


def integrate_by_law(
    equations: Equations, q0: FloatArray, qd0: FloatArray, effort: FloatArray, dt: float
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
    equations: Equations, q: FloatArray, v: FloatArray, effort: FloatArray, h: float
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
    equations: Equations, state: tuple[FloatArray, FloatArray], effort: FloatArray,
    start: tuple[FloatArray, float], gears: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return w with M (w - before) + duration (F(w) + c + S w + bias - effort) = 0.

    M and bias are at ``state``, ``start`` is (before, duration), ``gears`` (c, S). A joint that
    would reverse is linearised at rest next, or it would jump across a steep ramp. Motions whose
    state has overflown give NaN.
    """
    (before, duration), (pull, resistance) = start, gears
    lost = ~np.isfinite(state[0] + state[1]).all(axis=1, keepdims=True)
    q, v = (np.where(lost, 0.0, x) for x in state)
    matrix = equations.mass_matrix(q) + duration * resistance
    load = effort - equations.bias(q, v) - pull - before @ resistance
    at = after = before
    diagonal = np.arange(q.shape[1])
    for _ in range(LINEARISATIONS):
        slope = (equations.friction(q, at + NUDGE) - equations.friction(q, at - NUDGE)) \
            / (2.0 * NUDGE)
        slope = np.maximum(slope, 0.0)
        damped = matrix.copy()
        damped[:, diagonal, diagonal] += duration * slope
        push = load - equations.friction(q, at) - slope * (before - at)
        after = before + duration * np.linalg.solve(damped, push[:, :, None])[:, :, 0]
        at = np.where(after * at < 0.0, 0.0, after)
    return np.where(lost, np.nan, after)
