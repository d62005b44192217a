"""The modelled effort split by cause: gravity, inertia, friction, other effects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.dynamics import rigid_body
from robot_dynid.effects import JointFriction, RigidLinks, RotorInertia
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.robot.inertia import PARAMETERS
from robot_dynid.types import FloatArray, Samples

#: the causes, in the order in which they are drawn
CAUSES = ('gravity', 'inertia', 'friction', 'other')


@dataclass(frozen=True, eq=False)
class EffortParts:
    """Parts (N, rows) [N m] of a modelled effort, which add up to it.

    ``inertia`` is that of links and rotors with centrifugal and Coriolis effort; ``other`` are
    counterbalances, gear springs and learnt effects.
    """

    gravity: FloatArray
    inertia: FloatArray
    friction: FloatArray
    other: FloatArray

    def part(self, rows: NDArray[np.int64]) -> EffortParts:
        """Return the parts in ``rows`` (M,)."""
        return EffortParts(*(getattr(self, cause)[rows] for cause in CAUSES))


def effort_parts(model: IdentifiedModel, samples: Samples, effort: FloatArray) -> EffortParts:
    """Return the parts of the modelled ``effort`` (N, rows) [N m] at the stamps of the effort."""
    torque = model.torque_model
    kinds = ((RigidLinks, RotorInertia), (JointFriction,))
    rigid, friction = torque.efforts(samples, np.where(
        [torque.base_of(*kind) for kind in kinds], model.values, 0.0))
    # links of the base parameters: those of a feasible fit share some with other effects
    values = dict(zip(model.reduction.standard, model.reduction.standard_values(
        model.values).tolist(), strict=True))
    links = np.array([values[name] for name in RigidLinks(model.robot).names])
    gravity, n = np.zeros_like(effort), model.robot.n
    gravity[:, :n] = rigid_body.gravity_effort(
        model.robot.rigid, samples.moved.position[:, :n], links.reshape(-1, len(PARAMETERS)))
    return EffortParts(gravity, rigid - gravity, friction, effort - rigid - friction)
