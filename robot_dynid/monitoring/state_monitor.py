"""Monitor of joint states: residual, external torque and contact from one state to the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from robot_dynid.dynamics.rigid_body import _tree
from robot_dynid.dynamics.rotors import Links
from robot_dynid.kernels.monitor import (
    CLAIMED,
    COLUMNS,
    CONTACT,
    CUBE,
    DAHL,
    DRY,
    EXTERNAL,
    FRICTION,
    LINEAR,
    LOAD,
    MEMORY_ROWS,
    OPEN,
    OPENED,
    PREDICTED,
    RAMP,
    RESIDUAL,
    RESULT_ROWS,
    SQUARE,
    STOP,
    TANH,
    THRESHOLD,
    follow,
)
from robot_dynid.types import FloatArray

__all__ = ['CLAIMED', 'COLUMNS', 'CONTACT', 'CUBE', 'DAHL', 'DRY', 'EXTERNAL', 'FRICTION',
           'LINEAR', 'LOAD', 'OPEN', 'OPENED', 'PREDICTED', 'RAMP', 'RESIDUAL', 'SQUARE', 'STOP',
           'TANH', 'THRESHOLD', 'ContactLevels', 'Follower', 'FrictionTables']


@dataclass(frozen=True, eq=False)
class FrictionTables:
    """Friction of axes: motion of axis = ``axes`` (a, n) @ motion of joints.

    ``straight`` (a, 2): viscous friction and offset. ``elements`` (e, COLUMNS), by axis: axis,
    kind, scale, amplitude [N m], growth with the load of the axis, whether it may hold at rest,
    direction in which it acts (0: both), speed below which it does not, lowest and highest
    velocity, beyond which it is linear (a TANH or a power, else infinite). With s = tanh(v /
    scale), kinds are RAMP clip(v / scale, -1, 1), TANH s, OPEN s (1 + |s|) / 2, OPENED v (1 + |s|)
    / 2, LINEAR v, SQUARE v |v|, CUBE v^3, and of the position STOP operator, DAHL's state. Load =
    ``transmission`` (a, n) @ effort of links with the parameters ``load_links`` (n, 10); both
    (0, ...) where nothing grows with it.
    """

    axes: FloatArray
    straight: FloatArray
    elements: FloatArray
    transmission: FloatArray
    load_links: FloatArray


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
    solved exactly, so every length of it is stable. ``corner`` [1/s] of each of the two stages of
    the low-pass before the residual.
    """

    def __init__(self, links: Links, friction: FrictionTables, contact: ContactLevels,
                 gain: float, corner: float) -> None:
        n, own = links.robot.n, np.ascontiguousarray
        geometry, parents, gravity = (array.copy() for array in _tree(links.robot))
        tables = (friction.axes, friction.transmission, friction.straight, friction.elements)
        self._model = (
            (geometry, parents, gravity), own(links.parameters).copy(), links.rotors.tables,
            tuple(own(table).copy() for table in tables), own(friction.load_links).copy())
        self._contact = (
            np.stack([contact.moving, contact.holding, contact.speed]),
            np.array([gain, corner, contact.release, contact.duration, contact.states]))
        past = np.zeros(len(friction.elements) + len(friction.axes))
        self._memory = np.zeros((MEMORY_ROWS, n)), past

    def __call__(self, states: FloatArray, friction: FloatArray, steps: FloatArray) -> FloatArray:
        """Return the results (N, 9, n) of ``states`` (N, 3, n): position, velocity, effort.

        ``friction`` (N, 2, n) adds to that of the tables: all of it, and what may hold at rest.
        ``steps`` (N,) [s] since the states before; zero begins anew. Results by row: PREDICTED
        effort and RESIDUAL in the middle of the step (NaN without step), EXTERNAL torque, what of
        it friction is CLAIMED to hold of slow joints, THRESHOLD of the rest, whether CONTACT,
        FRICTION and the DRY part of it. Arrays are contiguous and writable.
        """
        results = np.empty((len(steps), RESULT_ROWS, states.shape[2]))
        follow(self._model, self._contact, self._memory, (states, friction, steps), results)
        return results
