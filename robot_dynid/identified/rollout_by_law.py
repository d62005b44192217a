"""Motion of the identified model step by step in Python, for any friction law."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from robot_dynid.model._rollout_kernel import EXPLICIT, IMPLICIT, INDEFINITE, OVERFLOW
from robot_dynid.model.integrate import Rollout, step_count
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: half width [rad/s] of the difference quotient of the friction
NUDGE = 1e-6
#: linearisations of the friction per stage
LINEARISATIONS = 4


def rollout_by_law(
    model: IdentifiedModel, q0: FloatArray, qd0: FloatArray, effort: FloatArray, dt: float
) -> Rollout:
    """Return what the kernel would; friction is linearised in the velocity in every stage."""
    result = Rollout.empty(model.joints, effort.shape)
    q, v = q0.copy(), qd0.copy()
    steps = step_count(dt)
    for t in range(effort.shape[1]):
        for _ in range(steps):
            going = np.flatnonzero(result.stop_step < 0)
            definite = _definite(model.mass_matrix(q[going]))
            _stop(result, going[~definite], t, INDEFINITE)
            going = going[definite]
            with np.errstate(over='ignore', invalid='ignore'):  # such motions are stopped
                q[going], v[going] = _step(model, q[going], v[going], effort[going, t], dt / steps)
            finite = np.isfinite(q[going] + v[going]).all(axis=1)
            _stop(result, going[~finite], t, OVERFLOW)
            stopped = result.stop_step >= 0
            q[stopped] = v[stopped] = np.nan
            _watch_limits(result, model.robot.limits.lower, model.robot.limits.upper, q, t)
        result.position[:, t], result.velocity[:, t] = q, v
    return result


def _definite(matrix: FloatArray) -> NDArray[np.bool_]:
    return np.asarray(np.linalg.eigvalsh(matrix).min(axis=1, initial=np.inf) > 0.0)


def _stop(result: Rollout, motions: NDArray[np.intp], t: int, cause: int) -> None:
    result.stop_step[motions], result.stop_cause[motions] = t, cause


def _watch_limits(
    result: Rollout, lower: FloatArray, upper: FloatArray, q: FloatArray, t: int
) -> None:
    outside = (q < lower) | (q > upper)
    leaves = outside.any(axis=1) & (result.limit_step < 0)
    result.limit_step[leaves], result.limit_joint[leaves] = t, outside[leaves].argmax(axis=1)


def _step(
    model: IdentifiedModel, q: FloatArray, v: FloatArray, effort: FloatArray, h: float
) -> tuple[FloatArray, FloatArray]:
    """Advance by ``h``: the stages of the kernel."""
    ahead: list[FloatArray] = []
    within: list[FloatArray] = []
    rates: list[FloatArray] = []
    for explicit, implicit in zip(EXPLICIT, IMPLICIT, strict=True):
        at = q + h * _sum(explicit, ahead)
        ahead.append(v + h * _sum(explicit, rates))
        before, share = v + h * _sum(implicit, rates), h * implicit[len(rates)]
        within.append(_implicit(model, (at, ahead[-1]), effort, before, share))
        rates.append((within[-1] - before) / share)
    return q + h * _sum(IMPLICIT[-1], within), within[-1]


def _sum(weights: FloatArray, terms: list[FloatArray]) -> FloatArray | float:
    """Return the weighted sum of the terms there are."""
    return sum((w * x for w, x in zip(weights, terms, strict=False)), 0.0)


def _implicit(
    model: IdentifiedModel, state: tuple[FloatArray, FloatArray], effort: FloatArray,
    before: FloatArray, duration: float,
) -> FloatArray:
    """Return w with M (w - before) + duration (F(w) + bias - effort) = 0, M and bias at ``state``.

    A joint that would reverse is linearised at rest next, or it would jump across a steep ramp.
    Motions whose state has overflown give NaN.
    """
    lost = ~np.isfinite(state[0] + state[1]).all(axis=1, keepdims=True)
    q, v = (np.where(lost, 0.0, x) for x in state)
    matrix = model.mass_matrix(q)
    load = effort + model.friction(q, v) - model.inverse(q, v, np.zeros_like(q))
    at = after = before
    diagonal = np.arange(q.shape[1])
    for _ in range(LINEARISATIONS):
        slope = (model.friction(q, at + NUDGE) - model.friction(q, at - NUDGE)) / (2.0 * NUDGE)
        slope = np.maximum(slope, 0.0)
        damped = matrix.copy()
        damped[:, diagonal, diagonal] += duration * slope
        push = load - model.friction(q, at) - slope * (before - at)
        after = before + duration * np.linalg.solve(damped, push[:, :, None])[:, :, 0]
        at = np.where(after * at < 0.0, 0.0, after)
    return np.where(lost, np.nan, after)
