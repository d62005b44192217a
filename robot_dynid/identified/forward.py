"""Accelerations with friction that may depend on the load, and what stops their use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robot_dynid.dynamics.rollout import FEASIBLE, SENSORS
from robot_dynid.errors import ModelError
from robot_dynid.types import FloatArray

#: rounds of forward dynamics with load-dependent friction at most, and when they have settled
LOAD_ROUNDS, LOAD_SETTLED = 60, 1e-12
#: accelerations and least pivots of mass matrices, with friction at the load of an acceleration
Solve = Callable[[FloatArray | None], tuple[FloatArray, FloatArray]]


def accelerations(solve: Solve, needs_load: bool, q: FloatArray) -> FloatArray:
    """Return the accelerations by ``solve`` at ``q`` (K, n), with friction at its own load.

    Repeated substitution: friction is a small share of the load, so the error shrinks by that
    share in every round. Raises ModelError where the mass matrix is not positive definite.
    """
    found, pivots = solve(None)
    for _ in range(LOAD_ROUNDS if needs_load else 0):
        before = found
        found, pivots = solve(before)
        if np.allclose(found, before, rtol=LOAD_SETTLED, atol=LOAD_SETTLED):
            break
    if not pivots.min(initial=1.0) > 0.0:
        k = int(np.argmin(pivots))
        raise ModelError(
            f'the identified mass matrix is not positive definite in state {k} (q = '
            f'{np.round(q[k], 3).tolist()}), which least squares does not guarantee: '
            f'{SENSORS}; otherwise {FEASIBLE}')
    return found
