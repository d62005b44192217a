"""Friction as the monitor follows it: with its history, at a cost that does not grow with time."""

from __future__ import annotations

import numpy as np

from robot_dynid.friction import AxisMotion, Compound, Coulomb, FrictionLaw, Maxwell
from robot_dynid.friction.additions import Drift, LoadDependent
from robot_dynid.friction.asymmetric import Asymmetric
from robot_dynid.friction.dahl import Dahl
from robot_dynid.friction.law import Range, both_ways
from robot_dynid.friction.maxwell import DRY_LENGTH
from robot_dynid.friction.stribeck import Stribeck
from robot_dynid.friction.two_speed import TwoSpeed
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.monitoring.state_monitor import (
    COLUMNS,
    CUBE,
    DAHL,
    LINEAR,
    LOAD,
    OPEN,
    OPENED,
    RAMP,
    SQUARE,
    STOP,
    TANH,
    FrictionTables,
)
from robot_dynid.types import FloatArray

#: an element of friction: kind, scale, amplitude, growth with load, whether it holds at rest,
#: direction, speed above which it acts, velocities beyond which it is linear; see `FrictionTables`
Element = tuple[float, float, float, float, float, float, float, float, float]
#: directions and how their parameters end
SIDES = (1.0, 'p'), (-1.0, 'n')
ANY = -np.inf, np.inf


class FrictionStream:
    """The friction of all axes, as tables and as torques of what no table describes.

    Of friction that fades as a joint warms up there is what a warm one has, and temperatures are
    those of reference;
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
        load = self._load if any(e[LOAD] for e in elements) else None
        n = self._matrix.shape[1]
        self.tables = FrictionTables(
            self._matrix, straight, np.array(elements).reshape(-1, COLUMNS),
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
    count = len(base.parameters)
    rows = _rows(base, dict(zip(base.parameters, values[:count].tolist(), strict=True)))
    if rows is None:
        return None
    (viscous, offset), found, dry = rows
    for _, addition in additions:
        own = values[count:count + len(addition.parameters)]
        count += len(own)
        if isinstance(addition, LoadDependent):
            found.append((*dry, 0.0, own[0], 0.0, 0.0, 0.0, *ANY))
            continue
        if isinstance(addition, Drift):
            found.append(_slides(*dry, addition.warm * own[0]))
            continue
        sliding = addition.sliding(own, dry[1])
        if sliding is None:
            return None
        for fv, fc, f0, width in sliding:
            viscous, offset = viscous + fv, offset + f0
            found.append(_slides(RAMP, width, fc))
    return (viscous, offset), found


def _rows(
    law: FrictionLaw, of: dict[str, float]
) -> tuple[tuple[float, float], list[Element], tuple[float, float]] | None:
    """Return viscous friction and offset, elements, and kind and scale of the dry friction.

    ``of`` holds the parameters. None for a law without a table.
    """
    straight = of.get('fv', 0.0), of.get('f0', 0.0)
    if isinstance(law, Maxwell):
        amplitudes = [v for p, v in of.items() if p in law.holding]
        return straight, [_holds(STOP, length, a) for length, a in zip(
            law.lengths, amplitudes, strict=True)], (STOP, DRY_LENGTH)
    if isinstance(law, (Coulomb, Dahl)):
        dry = (DAHL, law.length) if isinstance(law, Dahl) else (RAMP, law.width)
        return straight, [_holds(*dry, of['fc'])], dry
    if isinstance(law, Stribeck):
        return straight, [_holds(TANH, law.width, of['fc'] + of['fs']),
                          _holds(TANH, law.speed, -of['fs'], known=both_ways(law.speeds))
                          ], (TANH, law.width)
    if isinstance(law, Asymmetric):
        return straight, [row for side, way in SIDES for row in (
            _slides(LINEAR, 1.0, of[f'fv{way}'], side),
            _holds(RAMP, law.width, of[f'fc{way}'], side))], (RAMP, law.width)
    if isinstance(law, TwoSpeed):
        wide, more = law.steepness, (law.threshold, law.speeds)
        return straight, [row for side, way in SIDES for row in (
            _holds(OPEN, wide, of[f'fc{way}'], side),
            _slides(OPENED, wide, of[f'fv{way}'], side, *more),
            _slides(SQUARE, 1.0, of[f'fq{way}'], side, *more),
            _slides(CUBE, 1.0, of[f'fk{way}'], side, *more))], (TANH, wide)
    return None


def _holds(
    kind: float, scale: float, amplitude: float, side: float = 0.0, known: Range = None
) -> Element:
    return kind, scale, amplitude, 0.0, 1.0, side, 0.0, *(known or ANY)


def _slides(
    kind: float, scale: float, amplitude: float, side: float = 0.0, above: float = 0.0,
    known: Range = None,
) -> Element:
    return kind, scale, amplitude, 0.0, 0.0, side, above, *(known or ANY)
