"""Break-away is kept where its gain holds on another motion than those it was fitted to.

It acts around reversals only, of which a motion has few, each at a place of its own: what else
depends on the place, such as the pull of cables, looks like it in one motion and not in the next.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.friction_selection.selection_data import FrictionData, Named
from robot_dynid.estimation.information import RAW, Information, merged_batch
from robot_dynid.estimation.least_squares import (
    joint_weights,
    solve,
    solved_part,
    weighted_factor,
)
from robot_dynid.friction import FrictionLaw
from robot_dynid.friction.additions import Breakaway
from robot_dynid.friction.law import Compound
from robot_dynid.friction.stribeck import Stribeck
from robot_dynid.regressor import JointFriction
from robot_dynid.signals.repetition import SAME_MOTION, period
from robot_dynid.types import FloatArray, Samples

#: parts of a single recording, each of them a motion: half of one may show a joint turn once
PARTS = 4
#: shares of a motion at which it is compared with another one
LEVELS = np.linspace(0.02, 0.98, 13)


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


def motions(recordings: Sequence[Samples]) -> list[list[slice]]:
    """Return, motion by motion, the stretches of all samples in which it was recorded.

    Recordings of one motion belong together. The PARTS of a single recording that does not repeat
    are as many motions; one that does is one.
    """
    ends = np.cumsum([0, *(len(samples) for samples in recordings)]).tolist()
    if len(recordings) == 1 and not period(recordings[0]):
        cuts = [ends[-1] * k // PARTS for k in range(PARTS + 1)]
        return [[slice(*ends)] for ends in itertools.pairwise(cuts)]
    firsts: list[Samples] = []
    found: list[list[slice]] = []
    for samples, stretch in zip(recordings, map(slice, ends[:-1], ends[1:]), strict=True):
        like = next((i for i, first in enumerate(firsts) if _same(first, samples)), None)
        if like is None:
            firsts.append(samples)
            found.append([stretch])
        else:
            found[like].append(stretch)
    return found


def _same(first: Samples, second: Samples) -> bool:
    """Return whether two recordings are of one motion, whenever each of them began."""
    for own in ('position', 'velocity'):
        one, other = (np.quantile(getattr(s, own), LEVELS, axis=0) for s in (first, second))
        size = np.maximum(one.var(axis=0), 1e-12)
        if np.mean((one - other)**2 / size) > SAME_MOTION:
            return False
    return True


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
    information = Experiment.of(model, data.recordings).information
    left_out = _batches(information, motions(data.recordings))
    names, weights = np.array(information.names), joint_weights(information)
    found = list(laws)
    for axis in asked:
        other, law, label = plain[axis], laws[axis][1], data.axes.labels[axis]
        own = [f'{p}{label}' for p in breakaway(law)]
        without = information.about(np.flatnonzero(~np.isin(names, own)))
        rows = data.axes.effort[axis] != 0.0
        refitted = [f'{p}{label}' for p in law.parameters]
        before, after = (np.sqrt(_errors(one, weights, left_out, refitted)[:, rows].sum(axis=1))
                         for one in (without, information))
        if other is not None and not _lower(before, after):
            found[axis] = other
    return found


def _batches(information: Information, apart: Sequence[Sequence[slice]]) -> list[list[int]]:
    """Return the batches of each motion, those whose middle is in one of its stretches."""
    sizes = np.array([batch.samples for batch in information.batches])
    middle = np.cumsum(sizes) - 0.5 * sizes
    found = [[i for i, at in enumerate(middle) if any(s.start <= at < s.stop for s in own)]
             for own in apart]
    return [own for own in found if own]


def _errors(
    information: Information, weights: FloatArray, left_out: Sequence[Sequence[int]],
    refitted: Sequence[str],
) -> FloatArray:
    """Return the squared errors (m, rows) of the raw effort of each motion left out in turn.

    Only the parameters named ``refitted`` are left out, too: all others are those of the fit to
    all motions, since fewer may show a law of friction and leave links open. In squares of the
    noise, whose inverse is ``weights`` (rows,); none without another motion.
    """
    found = []
    values = solve(information, weights).values
    free = np.isin(information.names, refitted)
    for own in left_out if len(left_out) > 1 else ():
        rest = [i for i in range(len(information.batches)) if i not in own]
        part = solved_part(weighted_factor(information.subset(rest), weights), free, values)
        energy = information.residual_energy(
            part, RAW, merged_batch([information.batches[i] for i in own]))
        found.append(energy * weights**2)
    return np.array(found).reshape(-1, len(weights))


def _lower(before: FloatArray, after: FloatArray) -> bool:
    """Return whether errors (m,) are lower over all motions, and in half of them; none are not.

    By how much is asked where laws are chosen.
    """
    lower = float(np.linalg.norm(after)) < float(np.linalg.norm(before))
    return lower and float(np.mean(after < before)) >= 0.5
