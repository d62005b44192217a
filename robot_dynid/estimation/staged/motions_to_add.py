"""Motions to record for what single-joint motions have left open: which joint, locked where.

A base parameter stays open where the locked joints never stood so that a swing shows it. Looked
for are recorded motions, the same or with one locked joint elsewhere, or two, in which the effort
of the moving joint shows directions that are still open; what friction of the locked joints may
hide does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.estimation.staged.procedure import (
    STATES,
    LockedJointsMotion,
    Stage,
    stage_regressor,
)
from robot_dynid.robot.model import PRISMATIC
from robot_dynid.types import FloatArray

#: where another angle of a locked joint is looked for, from the recorded one [rad, m]
TURNS, SHIFTS = (-np.pi / 2, -np.pi / 4, np.pi / 4, np.pi / 2), (-0.2, 0.2)
#: effort of a direction in a swing, over that in a motion of all joints at 1 rad/s, by which it
#: shows
SHOWN = 0.1
#: locked joints that are looked for elsewhere at once
MOST_TURNED = 2
#: share of a base parameter in open directions by which it is open
OPEN_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class MotionToAdd:
    """A swing of ``motion`` with the ``turned`` joints (index, rad or m) elsewhere.

    ``finds`` are the base parameters that it closes.
    """

    motion: LockedJointsMotion
    turned: tuple[tuple[int, float], ...]
    finds: tuple[str, ...]


def motions_to_add(
    model: TorqueModel, recorded: Sequence[LockedJointsMotion], directions: FloatArray
) -> tuple[tuple[MotionToAdd, ...], tuple[str, ...]]:
    """Return the motions to add, the one that shows most first, and parameters none of them finds.

    ``directions`` (b, f) are those that the ``recorded`` motions leave open.
    """
    reach = np.maximum(model.moderate_effort.max(axis=0), np.finfo(float).tiny)
    basis = np.linalg.qr(reach[:, None] * directions)[0]
    found: list[MotionToAdd] = []
    turned = 0  # as few as show anything
    candidates = Candidates.of(model, recorded, turned, reach)
    while basis.shape[1]:
        best = candidates.best(basis)
        if best is None:
            turned += 1
            if turned > MOST_TURNED:
                break
            candidates = Candidates.of(model, recorded, turned, reach)
            continue
        i, left = best
        after = basis @ left
        names = _open(model, basis)
        still = set(_open(model, after))
        found.append(MotionToAdd(candidates.motions[i], candidates.turned[i],
                                 tuple(name for name in names if name not in still)))
        basis = after
    return tuple(found), _open(model, basis)


def _open(model: TorqueModel, basis: FloatArray) -> tuple[str, ...]:
    """Return the base parameters with a share in the ``basis`` (b, f) of open directions."""
    if not basis.shape[1]:
        return ()
    share = np.linalg.norm(basis, axis=1)
    return tuple(name for name, own in zip(model.reduction.names, share, strict=True)
                 if own > OPEN_SHARE)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Motions with ``turned`` joints, and the effort ``rows`` (C, N, b) of their moving joints.

    Columns are divided by the reach of their parameters.
    """

    motions: tuple[LockedJointsMotion, ...]
    turned: tuple[tuple[tuple[int, float], ...], ...]
    rows: FloatArray

    @classmethod
    def of(
        cls, model: TorqueModel, recorded: Sequence[LockedJointsMotion], count: int,
        reach: FloatArray,
    ) -> Candidates:
        """Return the recorded motions with ``count`` locked joints elsewhere; ``reach`` (b,)."""
        motions: list[LockedJointsMotion] = []
        turned: list[tuple[tuple[int, float], ...]] = []
        rows = [np.zeros((0, STATES, len(reach)))]
        for motion in recorded:
            own = list(_elsewhere(model, motion, count))
            if own:
                stage = Stage('', tuple(there for there, _ in own), (motion.moving,), ())
                columns = stage_regressor(model, stage)[motion.moving].T / reach
                rows.append(columns.reshape(len(own), STATES, -1) / np.sqrt(STATES))
                motions += [there for there, _ in own]
                turned += [ways for _, ways in own]
        return cls(tuple(motions), tuple(turned), np.concatenate(rows))

    def best(self, basis: FloatArray) -> tuple[int, FloatArray] | None:
        """Return the motion that shows most of ``basis`` (b, f), and what (f, g) it leaves."""
        if not len(self.rows):
            return None
        _, sizes, turned = np.linalg.svd(self.rows @ basis)
        shown = sizes > SHOWN
        clear = np.sum(np.log(np.where(shown, sizes, 1.0)), axis=1)
        i = int(np.lexsort((-clear, -shown.sum(axis=1)))[0])
        count = int(shown[i].sum())
        return (i, turned[i, count:].T) if count else None


def _elsewhere(
    model: TorqueModel, motion: LockedJointsMotion, count: int
) -> Iterator[tuple[LockedJointsMotion, tuple[tuple[int, float], ...]]]:
    """Yield a motion with ``count`` locked joints elsewhere, and which they are."""
    locked = [j for j in range(model.robot.n) if j != motion.moving]
    for joints in combinations(locked, count):
        for angles in product(*(_angles(model, motion, j) for j in joints)):
            position = np.array(motion.position)
            position[list(joints)] = angles
            yield replace(motion, position=position), tuple(zip(joints, angles, strict=True))


def _angles(model: TorqueModel, motion: LockedJointsMotion, joint: int) -> tuple[float, ...]:
    """Return other angles of a locked joint within its limits."""
    limits, at = model.robot.limits, float(motion.position[joint])
    steps = SHIFTS if model.robot.types[joint] == PRISMATIC else TURNS
    return tuple(at + step for step in steps
                 if not (at + step < limits.lower[joint] or at + step > limits.upper[joint]))


def advice(
    model: TorqueModel, recorded: Sequence[LockedJointsMotion], directions: FloatArray
) -> str:
    """Return in words what to record beside the ``recorded`` motions, see `motions_to_add`.

    ``directions`` (b, f) are those that are left open.
    """
    added, left = motions_to_add(model, recorded, directions)
    joints, types = model.robot.joints, model.robot.types
    parts = []
    for one in added:
        locked = ' and '.join(
            f'{joints[j]} locked at {angle:.2f} {"m" if types[j] == PRISMATIC else "rad"}'
            for j, angle in one.turned)
        closes = f' (for {", ".join(one.finds)})' if one.finds else ''
        how = f'with {locked}' if locked else 'faster or longer'
        parts.append(f'{joints[one.motion.moving]} swinging {how}{closes}')
    text = ''
    if parts:
        text = 'record in addition, all else locked as it was: ' + '; '.join(parts)
    if left:
        text += ('; ' if text else '') + (
            f'for {", ".join(left)} record a motion of several joints: what swings of single ones '
            'show of them is in the effort of joints at rest, where friction hides it')
    return text
