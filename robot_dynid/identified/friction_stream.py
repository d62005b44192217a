"""Friction as the monitor follows it: with its history, at a cost that does not grow with time."""

from __future__ import annotations

import numpy as np

from robot_dynid.friction import AxisMotion, Compound, Coulomb, FrictionLaw, Maxwell
from robot_dynid.friction.additions import LoadDependent
from robot_dynid.friction.dahl import Dahl
from robot_dynid.friction.maxwell import DRY_LENGTH
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.model.monitor import DAHL, RAMP, STOP, FrictionTables
from robot_dynid.types import FloatArray

#: an element of dry friction: kind, scale, amplitude [N m], growth with load, holds at rest
Element = tuple[float, float, float, float, float]


class FrictionStream:
    """The friction of all axes, as tables and as torques of what no table describes.

    Friction that fades as a joint warms up has faded, and temperatures are those of reference;
    where friction grows with load, the acceleration counts as zero.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        friction = model.structure.friction_of(model.torque_model.robot.rigid)
        self._matrix, self._load = friction.axes.matrix, friction.load
        straight, elements = np.zeros((len(self._matrix), 2)), []
        self._others: list[tuple[int, FrictionLaw, FloatArray]] = []
        for i, (label, law) in enumerate(zip(friction.axes.labels, friction.laws, strict=True)):
            values = np.array([model.standard[f'{p}{label}'] for p in law.parameters])
            found = _elements(law, values)
            if found is None:
                self._others.append((i, law, values))
                continue
            straight[i] = found[0]
            elements += [(float(i), *element) for element in found[1]]
        load = self._load if any(e[4] for e in elements) else None
        n = self._matrix.shape[1]
        self.tables = FrictionTables(
            self._matrix, straight, np.array(elements).reshape(-1, 6),
            np.zeros((0, n)) if load is None else load.transmitted(np.eye(n)).T,
            np.zeros((0, 10)) if load is None else load.links)

    def others(self, q: FloatArray, qd: FloatArray) -> FloatArray:
        """Return friction and the dry part of it (N, 2, n) of axes that no table describes.

        They depend on the state alone.
        """
        found = np.zeros((len(q), 2, q.shape[1]))
        if not self._others:
            return found
        load = None if self._load is None else self._load(q, qd, np.zeros_like(q))
        time: FloatArray = np.arange(len(q), dtype=np.float64)
        for i, law, values in self._others:
            axis = self._matrix[i]
            columns = law.columns(AxisMotion(
                time, q @ axis, qd @ axis, tuple(range(len(q))),
                None if load is None else load[:, i]))
            holds = np.array([p in law.holding for p in law.parameters])
            for row, torque in enumerate((values @ columns, (values * holds) @ columns)):
                found[:, row] += torque[:, None] * axis
        return found


def _elements(
    law: FrictionLaw, values: FloatArray
) -> tuple[tuple[float, float], list[Element]] | None:
    """Return viscous friction and offset, and the elements; None where there are no such."""
    base, additions = (law.base, law.additions) if isinstance(law, Compound) else (law, ())
    if not isinstance(base, (Coulomb, Dahl, Maxwell)):
        return None
    count = len(base.parameters)
    viscous, amplitudes, offset = values[0], values[1:count - 1], values[count - 1]
    states, dry = _states(base)
    found = [(*state, a, 0.0, 1.0) for state, a in zip(states, amplitudes, strict=True)]
    for _, addition in additions:
        own = values[count:count + len(addition.parameters)]
        count += len(own)
        if isinstance(addition, LoadDependent):
            found.append((*dry, 0.0, own[0], 0.0))
            continue
        rows = addition.sliding(own)
        if rows is None:
            return None
        for fv, fc, f0, width in rows:
            viscous, offset = viscous + fv, offset + f0
            found.append((RAMP, width, fc, 0.0, 0.0))
    return (viscous, offset), found


def _states(base: Coulomb | Dahl | Maxwell) -> tuple[list[tuple[float, float]],
                                                     tuple[float, float]]:
    """Return kind and scale of the states of a law, and of the one that additions grow with."""
    if isinstance(base, Maxwell):
        return [(STOP, length) for length in base.lengths], (STOP, DRY_LENGTH)
    only = (DAHL, base.length) if isinstance(base, Dahl) else (RAMP, base.width)
    return [only], only
