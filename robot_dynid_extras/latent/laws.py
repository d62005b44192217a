"""Friction that falls from rest, chosen along with the motion it is seen in.

Where encoders are noisy, the cut-off that suits least squares leaves nothing of how friction
falls, and a motion that was estimated with one law fits no other. So motion and parameters are
estimated with every law, and stretches left out in turn say whether one is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid.effects import JointFriction
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.friction_selection.selection_data import Named
from robot_dynid.estimation.uncertainty.held_out import surely_lower
from robot_dynid.estimation.uncertainty.stretches import stretches
from robot_dynid.friction import law_from
from robot_dynid.friction.law import Path
from robot_dynid.types import FloatArray, Progress
from robot_dynid_extras.latent.motion import (
    LatentFit,
    LatentProblem,
    Searched,
)

#: laws whose dry friction falls from rest, and where they have the speed over which it does
FALLING: dict[str, Path] = {'stribeck': ('speed',), 'coulomb+levelling': ('levelling', 'speed')}
#: that speed [rad/s, m/s] to begin with, the least, and the highest; the least in terms of what
#: encoders tell from rest; and that over which dry friction builds up at rest, any below these
SPEED, LEAST, FASTEST, SEEN, BUILT = 0.1, 0.04, 1.0, 2.0, 2e-3
#: errors of equations as the search begins, in terms of those of the fit with another law: where
#: motion and equations hold each other tightly, the motion keeps to the law that it comes from
LOOSER = 30.0
#: a speed that is sought is found where it is so many times away from its bounds
INSIDE = 1.1
#: rounds in which the motion of a stretch left out follows other parameters
FOLLOWING = 5
#: one-sided level at which a law has to be better
LEVEL = 0.95


@dataclass(frozen=True, eq=False)
class Tried:
    """A fit with laws of friction, and its misfits (groups,) on stretches left out in turn."""

    laws: tuple[Named, ...]
    problem: LatentProblem
    fit: LatentFit
    misfits: FloatArray


def misfits_of(problem: LatentProblem, fit: LatentFit) -> tuple[FloatArray, FloatArray]:
    """Return the misfits (groups,) of groups of stretches with parameters from all others.

    Beside them these parameters (groups, b). Raises LinAlgError where any are not finite.
    """
    misfits, values = [], []
    for group in stretches(len(fit.condensed)):
        without = problem.without(fit.state, group)
        values.append(without.values)
        misfits.append(problem.misfit(without, group, FOLLOWING))
    return finite(np.array(misfits)), finite(np.array(values))


def finite(values: FloatArray) -> FloatArray:
    """Return ``values`` (k,); raises LinAlgError where they are not finite."""
    if not np.all(np.isfinite(values)):
        raise np.linalg.LinAlgError
    return values


def better_laws(
    first: tuple[LatentProblem, LatentFit], chosen: Sequence[Named],
    without: Sequence[Sequence[str]], progress: Progress,
) -> tuple[Named, ...]:
    """Return the laws of all axes, those ``chosen`` or such that fall from rest.

    ``first`` is the fit with those chosen. ``without`` names for every axis the laws and additions
    that are not to be chosen. Raises LinAlgError where the first fit fails.
    """
    problem, fit = first
    misfits, _ = misfits_of(problem, fit)
    best = Tried(tuple(chosen), problem, fit, misfits)
    for name, path in FALLING.items():
        progress('choosing friction along the estimated motion', 0.0)
        axes = [i for i, own in enumerate(without) if not set(own) & set(name.split('+'))]
        try:
            other = _tried(first, chosen, axes, (name, path))
        except np.linalg.LinAlgError:
            continue
        if other is not None and surely_lower(other.misfits, misfits, LEVEL) \
                and np.mean(other.misfits) < np.mean(best.misfits):
            best = other
    return best.laws


def with_laws(model: TorqueModel, laws: Sequence[Named]) -> TorqueModel:
    """Return the model with other laws of friction, one of every axis."""
    blocks = tuple(replace(block, laws=tuple(one for _, one in laws))
                   if isinstance(block, JointFriction) else block for block in model.blocks)
    return TorqueModel.of(model.robot, blocks)


def _tried(
    first: tuple[LatentProblem, LatentFit], chosen: Sequence[Named], axes: Sequence[int],
    law: tuple[str, Path],
) -> Tried | None:
    """Return the fit with a ``law`` on ``axes``, from the motion and parameters of the first.

    Where friction falls below what is seen of it, an axis keeps its law.
    """
    (problem, fit), (name, path) = first, law
    if not axes:
        return None
    own = list(chosen)
    for axis in axes:
        own[axis] = (name, law_from(name, {'width': BUILT}).reshaped({path: SPEED}))
    model = with_laws(problem.model, own)
    known = dict(zip(problem.model.reduction.names, fit.state.values, strict=True))
    low = np.full(len(own), LEAST)
    if len(problem.slowest):
        low = np.maximum(low, SEEN * problem.slowest)
    searched = tuple(Searched((axis,), path, float(low[axis]), FASTEST) for axis in axes)
    speeds = np.array([max(SPEED, one.low) for one in searched])
    other = LatentProblem(model, problem.stretches,
                          np.ones(len(model.reduction.names), dtype=bool), searched,
                          problem.slowest)
    state = replace(fit.state, shapes=speeds, errors=LOOSER * fit.state.errors, values=np.array(
        [known.get(parameter, 0.0) for parameter in model.reduction.names]))
    found = other.fit(state)
    finite(found.state.values)
    resolved = [axis for axis, speed, one in zip(axes, found.state.shapes, searched, strict=True)
                if INSIDE * one.low < speed < one.high / INSIDE]
    if len(resolved) < len(axes):
        return _tried(first, chosen, resolved, law)
    for axis, speed in zip(axes, found.state.shapes.tolist(), strict=True):
        own[axis] = (name, own[axis][1].reshaped({path: speed}))
    return Tried(tuple(own), other, found, misfits_of(other, found)[0])
