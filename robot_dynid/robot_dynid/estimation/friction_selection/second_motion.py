"""Validation of break-away friction on a second motion.

It acts only near reversals, of which a motion has few, each at another position: other effects of
position, such as the pull of cables, look like it in one motion but not in the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.effects import JointFriction
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.friction_selection.selection_data import FrictionData, Named
from robot_dynid.estimation.information import RAW, Information, merge_batches
from robot_dynid.estimation.least_squares import (
    joint_weights,
    solve,
    solve_part,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.held_out import falls, folds
from robot_dynid.friction import FrictionLaw
from robot_dynid.friction.law import Compound
from robot_dynid.friction.laws import Breakaway, Stribeck
from robot_dynid.types import FloatArray


def breakaway(law: FrictionLaw) -> tuple[str, ...]:
    """Return the parameters of a law that are static friction above sliding friction."""
    return tuple(p for p in law.parameters if p in ('fs', 'fb'))


def remove_breakaway(named: Named, coulomb: FrictionLaw) -> Named:
    """Return a law without break-away; `coulomb` replaces Stribeck's."""
    name, law = named
    base, additions = (law.base, law.additions) if isinstance(law, Compound) else (law, ())
    first, *rest = name.split('+')
    if isinstance(base, Stribeck):
        first, base = coulomb.name, coulomb
    others = [(word, one) for word, one in zip(rest, additions, strict=True)
            if not isinstance(one, Breakaway)]
    for _, one in others:
        base = base.added(one)
    return '+'.join([first, *(word for word, _ in others)]), base


def validate_breakaway(
    data: FrictionData, laws: Sequence[Named], plain: Sequence[Named | None],
    links: FloatArray | None,
) -> list[Named]:
    """Return `laws`, with those of `plain` on axes whose break-away fails on another motion.

    `plain` are the laws without break-away, None on axes whose law is fixed; `links` (n, 10) are
    standard parameters for laws that depend on the load.
    """
    asked = [axis for axis, breakaway_names in enumerate(plain) if breakaway_names is not None]
    if not asked:
        return list(laws)
    friction = JointFriction(data.axes, tuple(law for _, law in laws), data.load(links))
    model = TorqueModel.of(data.model.robot, (*data.model.blocks, friction))
    information = Experiment.of(model, data.recordings).information.distinct
    names, weights = np.array(information.names), joint_weights(information)
    accepted = list(laws)
    for axis in asked:
        other, law, label = plain[axis], laws[axis][1], data.axes.labels[axis]
        breakaway_names = [f'{p}{label}' for p in breakaway(law)]
        without = information.about(np.flatnonzero(~np.isin(names, breakaway_names)))
        rows = data.axes.effort[axis] != 0.0
        refitted = [f'{p}{label}' for p in law.parameters]
        error_without, error = (np.sqrt(_errors(one, weights, refitted)[:, rows].sum(axis=1))
                         for one in (without, information))
        if other is not None and not falls(error**2, error_without**2):
            accepted[axis] = other
    return accepted


def _errors(
    information: Information, weights: FloatArray, refitted: Sequence[str]
) -> FloatArray:
    """Return the squared errors (f, rows) of the raw effort of each fold of distinct motion.

    Only the parameters `refitted` are fitted without the fold: fewer motions may determine a
    friction law but not the links. In squares of the noise, the inverse of `weights` (rows,);
    empty if nothing can be left out.
    """
    errors = []
    values = solve(information, weights).values
    free = np.isin(information.names, refitted)
    for fold in folds(information):
        part = solve_part(
            weighted_factor(information.subset(fold.fitted), weights), free, values)
        energy = information.residual_energy(
            part, RAW, merge_batches([information.batches[i] for i in fold.test]))
        errors.append(energy * weights**2)
    return np.array(errors).reshape(-1, len(weights))
