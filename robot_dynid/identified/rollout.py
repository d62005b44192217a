"""Motion of the identified model under given efforts: many trajectories at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from robot_dynid.errors import UsageError
from robot_dynid.types import FloatArray

if TYPE_CHECKING:
    from robot_dynid.identified.model import IdentifiedModel

#: longest internal step [s]; longer sampling steps are divided
LONGEST_STEP = 1e-3
#: half width [rad/s] of the difference quotient of the friction
NUDGE = 1e-6


def rollout(
    model: IdentifiedModel, q0: FloatArray, qd0: FloatArray, effort: FloatArray, dt: float
) -> tuple[FloatArray, FloatArray]:
    """Return positions and velocities (K, T, n) from states (K, n) and efforts (K, T, n) [N m].

    Each effort is held for ``dt`` [s]; state t is the one after it. Friction enters implicitly
    (linearised in the velocity), so a joint sticks instead of chattering however steep the
    Coulomb ramp is. Raises UsageError on wrong shapes.
    """
    if effort.ndim != 3 or effort.shape[::2] != q0.shape or qd0.shape != q0.shape:
        raise UsageError(f'rollout needs states (K, n) and efforts (K, T, n); found {q0.shape}, '
                         f'{qd0.shape}, {effort.shape}')
    if not 0.0 < dt < np.inf:
        raise UsageError(f'the step of a rollout must be positive seconds, is {dt}')
    steps = max(1, int(np.ceil(dt / LONGEST_STEP - 1e-9)))
    q, qd = q0.copy(), qd0.copy()
    positions, velocities = np.empty_like(effort), np.empty_like(effort)
    for t in range(effort.shape[1]):
        for _ in range(steps):
            q, qd = _step(model, q, qd, effort[:, t], dt / steps)
        positions[:, t], velocities[:, t] = q, qd
    return positions, velocities


def _step(
    model: IdentifiedModel, q: FloatArray, qd: FloatArray, effort: FloatArray, h: float
) -> tuple[FloatArray, FloatArray]:
    """Advance by ``h`` with implicit friction, the position by the mean velocity.

    Friction is linearised at the velocity before the step; a joint that would reverse is taken
    again with friction linearised at rest, or it would jump to and fro across a steep ramp.
    """
    bias = model.inverse(q, qd, np.zeros_like(q)) - model.friction(q, qd)
    matrix = model.mass_matrix(q)
    impulse = np.einsum('kij,kj->ki', matrix, qd) + h * (effort - bias)
    after = _implicit(model, (q, qd), matrix, impulse, h)
    reverses = after * qd < 0.0
    if reverses.any():
        after = _implicit(model, (q, np.where(reverses, 0.0, qd)), matrix, impulse, h)
    return q + 0.5 * h * (qd + after), after


def _implicit(
    model: IdentifiedModel, state: tuple[FloatArray, FloatArray], matrix: FloatArray,
    impulse: FloatArray, h: float,
) -> FloatArray:
    """Solve M v + h F(v) = impulse with F linearised at ``state``: M v + h (F + S (v - v0))."""
    q, at = state
    slope = (model.friction(q, at + NUDGE) - model.friction(q, at - NUDGE)) / (2.0 * NUDGE)
    slope = np.maximum(slope, 0.0)
    damped = matrix.copy()
    diagonal = np.arange(q.shape[1])
    damped[:, diagonal, diagonal] += h * slope
    right = impulse - h * (model.friction(q, at) - slope * at)
    return np.asarray(np.linalg.solve(damped, right[:, :, None])[:, :, 0])
