"""Monitor of joint states: residual, external torque and contact from one state to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.dynamics.rigid_body import _tree
from robot_dynid.dynamics.rotors import Links
from robot_dynid.effects.slow_changes import SlowTables
from robot_dynid.friction import AxisFriction
from robot_dynid.kernels.monitor import (
    CLAIMED,
    CONTACT,
    DRY,
    DRY_SCALE,
    EXTERNAL,
    FRICTION,
    HOLDING,
    MEMORY_ROWS,
    MOVING,
    PREDICTED,
    RESIDUAL,
    RESULT_ROWS,
    THRESHOLD,
    VISCOUS_SCALE,
    follow,
)
from robot_dynid.types import FloatArray

__all__ = ['CLAIMED', 'CONTACT', 'DRY', 'DRY_SCALE', 'EXTERNAL', 'FRICTION', 'PREDICTED',
           'RESIDUAL', 'RESULT_ROWS', 'THRESHOLD', 'VISCOUS_SCALE', 'ContactLevels', 'Follower']


@dataclass(frozen=True, eq=False)
class ContactLevels:
    """A joint slower than ``speed`` needs ``holding`` more than ``moving``, each (n,).

    Contact ends below ``release`` times the threshold; it begins and ends when that has held for
    ``duration`` [s] and for ``states`` joint states.
    """

    moving: FloatArray
    holding: FloatArray
    speed: FloatArray
    release: float = 1.0
    duration: float = 0.0
    states: int = 1


class Follower:
    """Follows the states of a robot, one by one or many in a call.

    External torque r by the momentum observer of De Luca and Mattone (ICRA 2003, 2005) with
    ``gain`` [1/s]: r = K (p - p0 - integral(effort - friction + C^T qd - g + r) dt). Within a step
    the drive is taken to change linearly and the external torque to be constant; the step is then
    solved exactly, so every length of it is stable. ``corners`` [1/s]: the gain, and that of each
    of the two stages of the low-pass before the residual. ``slow`` are the slow changes.
    """

    def __init__(self, links: Links, friction: AxisFriction, contact: ContactLevels,
                 corners: tuple[float, float], slow: SlowTables) -> None:
        gain, corner = corners
        n, own = links.robot.n, np.ascontiguousarray
        geometry, parents, gravity = (array.copy() for array in _tree(links.robot))
        tables = (friction.axes, friction.transmission, friction.straight, friction.terms)
        self._model = (
            (geometry, parents, gravity), own(links.parameters).copy(), links.rotors.tables,
            tuple(own(table).copy() for table in tables), own(friction.links).copy(),
            tuple(own(table).copy() for table in slow))
        self._contact = (
            np.stack([contact.moving, contact.holding, contact.speed]),
            np.array([gain, corner, contact.release, contact.duration, contact.states]))
        past = np.zeros(len(friction.terms) + len(friction.axes))
        self._memory = np.zeros((MEMORY_ROWS, n)), past, slow.memory()

    def set_levels(self, moving: FloatArray, holding: FloatArray) -> None:
        """Take other levels of contact (n,) [N m] from the next state on."""
        self._contact[0][MOVING], self._contact[0][HOLDING] = moving, holding

    def __call__(self, states: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the results (N, 10, n) of ``states`` (N, 3, n): position, velocity, effort.

        ``steps`` (N,) [s] since the states before; zero begins anew. Results by row: PREDICTED
        effort and RESIDUAL in the middle of the step (NaN without step), EXTERNAL torque, what of
        it friction is CLAIMED to hold of slow joints, THRESHOLD of the rest, whether CONTACT,
        FRICTION and the DRY part of it, the factors VISCOUS_SCALE and DRY_SCALE on what the law
        says of viscous and of all other friction.
        """
        results = np.empty((len(steps), RESULT_ROWS, states.shape[2]))
        inputs = np.ascontiguousarray(states), np.ascontiguousarray(steps)
        follow(self._model, self._contact, self._memory, inputs, results)
        return results
