"""Break-away is kept where its gain holds on another motion than those it was fitted to.

It acts around reversals only, of which a motion has few, each at a place of its own: what else
depends on the place, such as the pull of cables, looks like it in one motion and not in the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.effects import JointFriction
from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.friction_selection.selection_data import FrictionData, Named
from robot_dynid.estimation.information import RAW, Information, merged_batch
from robot_dynid.estimation.least_squares import (
    joint_weights,
    solve,
    solved_part,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.held_out import falls, folds
from robot_dynid.friction import FrictionLaw
from robot_dynid.friction.law import Compound
from robot_dynid.friction.laws import Breakaway, Stribeck
from robot_dynid.types import FloatArray


def breakaway(law: FrictionLaw) -> tuple[str, ...]:
    """Return the parameters of a law that are friction above that of motion at rest."""
    return tuple(p for p in law.parameters if p in ('fs', 'fb'))


def without_breakaway(named: Named, coulomb: FrictionLaw) -> Named:
    """Return a law without break-away; ``coulomb`` takes the place of Stribeck's."""
    name, law = named
    base, additions = (law.base, law.additions) if isinstance(law, Compound) else (law, ())
    first, *rest = name.split('+')
    if isinstance(base, Stribeck):
        first, base = coulomb.name, coulomb
    kept = [(word, one) for word, one in zip(rest, additions, strict=True)
            if not isinstance(one, Breakaway)]
    for _, one in kept:
        base = base.added(one)
    return '+'.join([first, *(word for word, _ in kept)]), base


def holding(
    data: FrictionData, laws: Sequence[Named], plain: Sequence[Named | None],
    links: FloatArray | None,
) -> list[Named]:
    """Return ``laws``, those whose break-away does not hold on another motion as in ``plain``.

    ``plain`` are the laws without break-away, None on axes whose law is not to be changed;
    ``links`` (n, 10) are standard parameters for laws that depend on the load.
    """
    asked = [axis for axis, own in enumerate(plain) if own is not None]
    if not asked:
        return list(laws)
    friction = JointFriction(data.axes, tuple(law for _, law in laws), data.load(links))
    model = TorqueModel.of(data.model.robot, (*data.model.blocks, friction))
    information = Experiment.of(model, data.recordings).information.distinct
    names, weights = np.array(information.names), joint_weights(information)
    found = list(laws)
    for axis in asked:
        other, law, label = plain[axis], laws[axis][1], data.axes.labels[axis]
        own = [f'{p}{label}' for p in breakaway(law)]
        without = information.about(np.flatnonzero(~np.isin(names, own)))
        rows = data.axes.effort[axis] != 0.0
        refitted = [f'{p}{label}' for p in law.parameters]
        before, after = (np.sqrt(_errors(one, weights, refitted)[:, rows].sum(axis=1))
                         for one in (without, information))
        if other is not None and not falls(after**2, before**2):
            found[axis] = other
    return found


def _errors(
    information: Information, weights: FloatArray, refitted: Sequence[str]
) -> FloatArray:
    """Return the squared errors (f, rows) of the raw effort of each fold of distinct motion.

    Only the parameters named ``refitted`` are left out, too: all others are those of the fit to
    all motions, since fewer may show a law of friction and leave links open. In squares of the
    noise, whose inverse is ``weights`` (rows,); none where nothing can be left out.
    """
    found = []
    values = solve(information, weights).values
    free = np.isin(information.names, refitted)
    for fold in folds(information):
        part = solved_part(
            weighted_factor(information.subset(fold.fitted), weights), free, values)
        energy = information.residual_energy(
            part, RAW, merged_batch([information.batches[i] for i in fold.test]))
        found.append(energy * weights**2)
    return np.array(found).reshape(-1, len(weights))
