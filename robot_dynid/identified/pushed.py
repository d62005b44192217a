"""Forward dynamics of an identified model under known external torque."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from robot_dynid.errors import ModelError
from robot_dynid.identified.friction_torque import FrictionTorque
from robot_dynid.types import FloatArray

#: passes at most, and the part of the acceleration that the last one may change
PASSES, SETTLED = 100, 1e-12

#: gives accelerations (K, n) of position, velocity, effort, (K, n) each
Accelerations = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


def pushed(
    accelerations: Accelerations, friction: FrictionTorque, states: tuple[FloatArray, ...],
    external: FloatArray,
) -> FloatArray:
    """Return the acceleration (K, n) of ``states`` (q, qd, effort; (K, n) each) under torque.

    ``external`` (K, n) [N m, N] acts on the links: the gears do not carry it, so friction that
    grows with their load is another, which depends on the acceleration that is looked for.
    Raises ModelError where no acceleration fits, or as ``accelerations``.
    """
    q, qd, effort = states
    found = accelerations(q, qd, effort + external)
    if not friction.loaded:
        return found
    for _ in range(PASSES):
        before = found
        found = accelerations(
            q, qd, effort + external + friction.relief(q, qd, before, external))
        if np.abs(found - before).max(initial=0.0) <= SETTLED * np.abs(found).max(initial=1.0):
            return found
    raise ModelError('friction of this model grows so much with the load that no acceleration '
                     'fits the effort and the external torque')
