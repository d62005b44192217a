"""Friction at rest, from when simulated motors break away.

Where the speed of a motor is not told from rest by its noisy encoder, no equation of motion with
its friction counts, and nothing shows how friction falls. When a motor sticks and breaks away
shows in its position all the same: simulations with more or less friction at rest leave other
misfits. So friction is sought by simulation, with all other parameters as they were found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.errors_in_variables.latent_laws import (
    BUILT,
    FALLING,
    FASTEST,
    INSIDE,
    surely_lower,
    with_laws,
)
from robot_dynid.estimation.errors_in_variables.latent_motion import (
    NOTHING,
    LatentProblem,
    LatentState,
    Searched,
)
from robot_dynid.estimation.errors_in_variables.simulated_motion import SimulatedMotion
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.friction_selection.selection_data import Named
from robot_dynid.friction import law_from
from robot_dynid.regressor import JointFriction
from robot_dynid.types import FloatArray, Progress

#: friction at rest over that in motion, and the speed [rad/s, m/s] over which it falls, to begin
#: with: a single start may end in a minimum of its own
EXCESSES, SPEED = (1.5, 2.3), 0.07
#: lowest of such speeds: friction builds up over a part of it
LOWEST = 5.0 * BUILT
#: parameter of a law above the dry friction in motion, and what of it is in Coulomb's parameter
ABOVE = {'stribeck': ('fs', 0.0), 'coulomb+levelling': ('fl', -1.0)}


@dataclass(frozen=True, eq=False)
class Simulated:
    """Friction by simulation: ``state``, and the ``costs`` (groups,) of stretches left out.

    ``values`` (groups, b) are the parameters without each group.
    """

    problem: LatentProblem
    state: LatentState
    costs: FloatArray
    values: FloatArray


def friction_of(model: TorqueModel) -> NDArray[np.bool_]:
    """Return a mask (b,) of the base parameters of friction."""
    names = {name for block in model.blocks if isinstance(block, JointFriction)
             for name in block.names}
    return np.array([name in names for name in model.reduction.names])


def simulated(starts: Sequence[tuple[LatentProblem, LatentState]]) -> Simulated:
    """Return the friction of the likeliest of fits from problems with their starts.

    Raises LinAlgError where all simulations run away.
    """
    fits = []
    for problem, start in starts:
        own = replace(problem, chosen=friction_of(problem.model))
        try:
            motion = SimulatedMotion(own, start.values)
            fits.append((motion, *motion.fit(start)))
        except np.linalg.LinAlgError:
            continue
    if not fits:
        raise np.linalg.LinAlgError
    motion, state, _ = min(fits, key=lambda one: one[2])
    return Simulated(motion.problem, state, *motion.held_out(state))


def possible(problem: LatentProblem) -> bool:
    """Return whether motors turn apart from links, and all their efforts are known."""
    drive = problem.model.robot.drive
    return bool(problem.model.gears) and not drive.torque_sensors and drive.coupling is None


def laws_by_simulation(
    problem: LatentProblem, state: LatentState, chosen: Sequence[Named],
    without: Sequence[Sequence[str]], progress: Progress,
) -> tuple[Named, ...]:
    """Return the laws of all axes, those ``chosen`` or such that fall from rest.

    ``state`` is that of a fit of ``problem``, which has the laws chosen.
    """
    starts, named = [], {}
    for name, path in FALLING.items():
        axes = [i for i, own in enumerate(without) if not set(own) & set(name.split('+'))]
        laws = list(chosen)
        for axis in axes:
            laws[axis] = (name, law_from(name, {'width': BUILT}).reshaped({path: SPEED}))
        other = with_laws(problem, laws, tuple(
            Searched((axis,), path, LOWEST, FASTEST) for axis in axes))
        named[id(other.model)] = laws
        starts += [(other, _risen(problem, other, state, (name, axes, excess)))
                   for excess in EXCESSES if axes]
    progress('choosing friction by simulation', 0.0)
    try:
        before, found = simulated([(problem, state)]), simulated(starts)
    except np.linalg.LinAlgError:
        return tuple(chosen)
    resolved = np.all((found.state.shapes > INSIDE * LOWEST)
                      & (found.state.shapes < FASTEST / INSIDE))
    if not (resolved and surely_lower(found.costs, before.costs)):
        return tuple(chosen)
    laws = named[id(found.problem.model)]
    for one, speed in zip(found.problem.searched, found.state.shapes.tolist(), strict=True):
        (axis,) = one.axes
        laws[axis] = (laws[axis][0], laws[axis][1].reshaped({one.path: speed}))
    return tuple(laws)


def _risen(
    before: LatentProblem, problem: LatentProblem, state: LatentState,
    law: tuple[str, Sequence[int], float],
) -> LatentState:
    """Return a start of ``problem`` whose friction at rest exceeds that in motion.

    ``state`` is that of the problem ``before``, ``law`` its name, the axes, and the excess.
    """
    name, axes, excess = law
    known = dict(zip(before.model.reduction.names, state.values.tolist(), strict=True))
    above, share = ABOVE[name]
    for block in before.model.blocks:
        if isinstance(block, JointFriction):
            for axis in axes:
                label = block.axes.labels[axis]
                moving = known.get(f'fc{label}', 0.0) + known.get(f'fl{label}', 0.0)
                more = (excess - 1.0) * moving
                known[f'fc{label}'] = moving - share * more
                known[f'{above}{label}'] = share * more if share else more
    values = np.array([known.get(one, 0.0) for one in problem.model.reduction.names])
    return replace(state, values=values, shapes=np.full(len(problem.searched), SPEED))


def refined(problem: LatentProblem, state: LatentState) -> Simulated | None:
    """Return friction by simulation where stretches left out are surely better with it.

    ``state`` has the parameters and the motion of another fit. None where nothing is better.
    """
    if not possible(problem) or not falls(problem.model):
        return None
    own = replace(problem, searched=(), chosen=np.zeros_like(problem.chosen))
    try:
        known = SimulatedMotion(own, state.values).held_out(replace(state, shapes=NOTHING))[0]
        found = simulated([(own, start) for start in starts_of(problem, state)])
    except np.linalg.LinAlgError:
        return None
    return found if surely_lower(found.costs, known) else None


def falls(model: TorqueModel) -> bool:
    """Return whether the law of an axis has dry friction that falls from rest."""
    return any(name[:2] in ('fl', 'fs') for name in model.reduction.names)


def starts_of(problem: LatentProblem, state: LatentState) -> list[LatentState]:
    """Return starts with more friction at rest, for all axes whose law falls."""
    found = []
    for excess in EXCESSES:
        start = state
        for name, (above, _) in ABOVE.items():
            names = problem.model.reduction.names
            axes = [i for block in problem.model.blocks if isinstance(block, JointFriction)
                    for i, label in enumerate(block.axes.labels) if f'{above}{label}' in names]
            start = replace(_risen(problem, problem, start, (name, axes, excess)), shapes=NOTHING)
        found.append(start)
    return found
