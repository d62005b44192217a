"""Verdicts on accelerations: states whose accelerations must not be used are refused."""

from __future__ import annotations

import numpy as np

from robot_dynid.dynamics.rollout import FEASIBLE
from robot_dynid.errors import ModelError
from robot_dynid.kernels.forward_dynamics import UNSETTLED
from robot_dynid.types import FloatArray


def require_solved(verdicts: FloatArray, q: FloatArray) -> None:
    """Raise ModelError unless all ``verdicts`` (K,) on accelerations at ``q`` (K, n) are good.

    Verdicts are those of `rigid_body.ForwardDynamics`.
    """
    if verdicts.min(initial=1.0) > 0.0:
        return
    k = int(np.argmin(verdicts))
    state = f'state {k} (q = {np.round(q[k], 3).tolist()})'
    if verdicts[k] == UNSETTLED:
        raise ModelError(
            f'no acceleration fits the friction in {state}: it grows with load so much that the '
            'joints lock themselves; is fw, friction per load, what the gears can have?')
    raise ModelError(
        f'the identified mass matrix is not positive definite in {state}, which least squares '
        f'does not guarantee; {FEASIBLE}')
