"""Friction of a motion, with its history: of a whole recording, or sample by sample."""

from __future__ import annotations

import numpy as np

from robot_dynid.friction import AxisMotion, Compound, FrictionLaw, Maxwell
from robot_dynid.friction.dahl import Dahl
from robot_dynid.friction.maxwell import DRY_LENGTH
from robot_dynid.identified.live import Live
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.types import FloatArray, Samples


def friction_along(model: IdentifiedModel, motion: Live) -> FloatArray:
    """Return the friction torque (N, n) [N m] of a motion, unfiltered, with its history.

    Where friction grows with load, the acceleration counts as zero.
    """
    friction = model.structure.friction_of(model.torque_model.robot)
    samples = Samples(model.joints, motion.time, motion.position, motion.velocity,
                      np.zeros_like(motion.position), starts=motion.starts)
    torque, first = np.zeros_like(motion.position), 0
    columns = friction.history(samples)
    values = np.array([model.standard[name] for name in friction.names])
    for axis, law in zip(friction.axes.matrix, friction.laws, strict=True):
        own = slice(first, first := first + len(law.parameters))
        torque += (values[own] @ columns[own])[:, None] * axis
    return torque


class Presliding:
    """The states of Dahl's or Maxwell's law on one axis, carried along."""

    def __init__(self, law: Dahl | Maxwell) -> None:
        self._slips = isinstance(law, Maxwell)
        self._count = len(law.lengths) if isinstance(law, Maxwell) else 1
        self._lengths = np.array(
            [*law.lengths, DRY_LENGTH] if isinstance(law, Maxwell) else [law.length])
        self._before = 0.0
        self._all = np.zeros(len(self._lengths))

    @property
    def states(self) -> FloatArray:
        """Those of the law's own parameters."""
        return self._all[:self._count]

    @property
    def dry(self) -> FloatArray:
        """The dry friction (1,) that additions grow with."""
        return self._all[-1:]

    def begin(self, position: float) -> None:
        """Begin relaxed at ``position``."""
        self._before = position
        self._all = np.zeros(len(self._lengths))

    def move(self, position: float) -> None:
        """Move to ``position``, in one direction."""
        travel = (position - self._before) / self._lengths
        self._before = position
        if self._slips:
            self._all = np.minimum(np.maximum(self._all + travel, -1.0), 1.0)
        else:
            side = np.sign(travel)
            self._all = side + (self._all - side) * np.exp(-np.abs(travel))


class FrictionStream:
    """The same for states that come one by one, at a cost that does not grow with time.

    Friction that fades as a joint warms up has faded, and temperatures are those of reference.
    """

    def __init__(self, model: IdentifiedModel) -> None:
        self._model = model
        friction = model.structure.friction_of(model.torque_model.robot)
        self._laws = friction.laws
        self._matrix = friction.axes.matrix
        self._load = friction.load
        self._values = [np.array([model.standard[f'{p}{label}'] for p in law.parameters])
                        for label, law in zip(friction.axes.labels, self._laws, strict=True)]
        self._past = [_presliding(law) for law in self._laws]
        self._carries = any(past is not None for past in self._past)

    def __call__(self, q: FloatArray, qd: FloatArray, fresh: bool) -> FloatArray:
        """Return the friction torque (n,) [N m] of the next state; ``fresh``: nothing before."""
        if not self._carries:
            torque: FloatArray = self._model.friction(q[None], qd[None])[0]
            return torque
        load = None if self._load is None else self._load(
            q[None], qd[None], np.zeros((1, len(q))))[0]
        position, velocity = self._matrix @ q, self._matrix @ qd
        found = np.empty(len(position))
        for i, (law, values, past) in enumerate(
                zip(self._laws, self._values, self._past, strict=True)):
            if past is not None:
                (past.begin if fresh else past.move)(position[i])
            one = slice(i, i + 1)
            motion = AxisMotion(np.zeros(1), position[one], velocity[one],
                                load=None if load is None else load[one])
            found[i] = values @ _columns(law, motion, past)
        return np.asarray(found @ self._matrix)


def _presliding(law: FrictionLaw) -> Presliding | None:
    base = law.base if isinstance(law, Compound) else law
    return Presliding(base) if isinstance(base, (Dahl, Maxwell)) else None


def claims_at_rest(law: FrictionLaw) -> bool:
    """Return whether a law says which way friction holds a resting joint."""
    return _presliding(law) is not None


def _columns(law: FrictionLaw, motion: AxisMotion, past: Presliding | None) -> FloatArray:
    """Return the columns (k,) of one state, with the carried states in place of sliding."""
    if past is None:
        return law.columns(motion)[:, 0]
    own = np.array([motion.velocity[0], *past.states, 1.0])
    if not isinstance(law, Compound):
        return own
    added = [a.columns(motion, past.dry)[:, 0] for _, a in law.additions]
    return np.concatenate([own, *added])
