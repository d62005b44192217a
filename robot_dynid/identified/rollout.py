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
    if not dt > 0.0:
        raise UsageError(f'the step of a rollout must be positive, is {dt}')
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
    """Advance by ``h``: (M + h dF/dv) dv = h (effort - bias - friction), then the midpoint."""
    bias = model.inverse(q, qd, np.zeros_like(q))
    slope = (model.friction(q, qd + NUDGE) - model.friction(q, qd - NUDGE)) / (2.0 * NUDGE)
    matrix = model.mass_matrix(q)
    diagonal = np.arange(q.shape[1])
    matrix[:, diagonal, diagonal] += h * np.maximum(slope, 0.0)
    change = np.linalg.solve(matrix, h * (effort - bias)[:, :, None])[:, :, 0]
    after = qd + change
    return q + 0.5 * h * (qd + after), after
