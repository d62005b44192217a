"""Models with springs between their links, and a robot with a real gas spring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from robot_dynid.effects.counterbalance import Spring
from robot_dynid.identified.model import IdentifiedModel

#: one of each kind
SPRINGS = (Spring(1, 0.4, 0.6), Spring(0, -1.0, 0.0))


def counterbalanced(
    model: IdentifiedModel, springs: Sequence[Spring] = SPRINGS, torque: float = 30.0
) -> IdentifiedModel:
    """Return a model with ``springs`` of ``torque`` [N m], and more, each."""
    structure = replace(model.structure, chosen={'counterbalance': tuple(springs)})
    reduction = structure.torque_model(model.robot).reduction
    values = model.standard | {
        f'cb{spring.joint + 1}': torque + 10.0 * i for i, spring in enumerate(springs)}
    standard = np.array([values[name] for name in reduction.standard])
    base, none = reduction.base(standard), np.zeros(len(reduction.pivots))
    return replace(model, structure=structure, reduction=reduction, values=base, std=none,
                   control=base, correlation_factor=None,
                   feasible=None if model.feasible is None else standard)
