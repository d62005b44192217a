"""Staged identification as data, and the motions to record for what it leaves open.

In a *motion with locked joints* one joint moves, the others are locked. A *stage* names
such motions, the rows (joints whose effort equation is used) and the base parameters it may solve;
what earlier stages found enters as known. Which combinations a stage determines follows from its
structure alone, that is from the regressor with the locked joints exactly at rest, not from the
noise of a recording.
Sources: Lin 1991, section 3.3 (Algorithm 2); Wang et al., Sensors 2025, 25, 5749, sections 3.2, 4.

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
from numpy.typing import NDArray

from robot_dynid.effects import JointFriction
from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.reduction.base import combination_label
from robot_dynid.reduction.numeric import SEED, full_rank
from robot_dynid.robot.model import PRISMATIC, RobotModel
from robot_dynid.types import FloatArray, Samples

#: states per motion at which the structure of a stage is looked at
STAGE_STATES = 24
#: less than this share of a column being new is no excitation: joints are not locked more exactly
NEW_COLUMN_SHARE, DROPPED = 1e-2, 1e-4


@dataclass(frozen=True, eq=False)
class LockedJointsMotion:
    """Joint ``moving`` swings by ``amplitude`` rad (m) while all others are locked.

    ``position`` (n,) rad (m): where the joints are locked; the moving one's centre.
    """

    moving: int
    position: FloatArray
    amplitude: float = 1.0


@dataclass(frozen=True, eq=False)
class Stage:
    """One step of a procedure.

    ``motions`` supply the data; ``rows`` are indices of the joints whose effort equation is used;
    ``parameters`` names of the base parameters that may be solved: what else is still unknown and
    has an effect is fitted along, and forgotten.
    """

    name: str
    motions: tuple[LockedJointsMotion, ...]
    rows: tuple[int, ...]
    parameters: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The directions a stage determines, of f free ones.

    ``nuisance`` and ``solved`` indices of the independent columns among the free ones;
    ``combination`` (s, f) such that the stage determines ``combination @ free parameters``;
    ``present`` (n, b) true where a base parameter has an effect on a row in these motions.
    """

    nuisance: NDArray[np.int64]
    solved: NDArray[np.int64]
    combination: FloatArray
    present: NDArray[np.bool_]

    def without(self, refused: NDArray[np.int64]) -> Decomposition:
        """Return the decomposition with ``refused`` (r,), indices into ``solved``, as nuisance."""
        left = np.setdiff1d(np.arange(len(self.solved)), refused)
        return replace(self, nuisance=np.concatenate([self.nuisance, self.solved[refused]]),
                       solved=self.solved[left], combination=self.combination[left])

    @property
    def fitted(self) -> NDArray[np.int64]:
        """All columns (c,) of the fit: first the nuisance parameters, then those solved for."""
        return np.concatenate([self.nuisance, self.solved])


def single_joint_states(
    robot: RobotModel, motions: Sequence[LockedJointsMotion], seed: int = SEED
) -> Samples:
    """Return STAGE_STATES unrelated states of every motion, the locked joints exactly at rest."""
    rng = np.random.default_rng(seed)
    count = STAGE_STATES * len(motions)
    q = np.repeat([m.position for m in motions], STAGE_STATES, axis=0)
    qd, qdd = np.zeros((2, count, robot.n))
    for i, motion in enumerate(motions):
        rows = slice(i * STAGE_STATES, (i + 1) * STAGE_STATES)
        angle, speed, rate = rng.uniform(-1.0, 1.0, (3, STAGE_STATES))
        q[rows, motion.moving] += motion.amplitude * angle
        qd[rows, motion.moving] = 3.0 * speed
        qdd[rows, motion.moving] = 10.0 * rate
    return Samples(robot.joints, np.arange(float(count)), q, qd, qdd, starts=tuple(range(count)))


def centred_rows(model: TorqueModel, stage: Stage) -> list[int]:
    """Return the rows of which only variations count: joints at rest that friction may hold.

    Such a joint holds any constant load up to its static friction without an effort.
    """
    moving = {m.moving for m in stage.motions}
    return [j for j in stage.rows if j not in moving and model.held[j]]


def _columns(model: TorqueModel, states: Samples) -> FloatArray:
    """Return the base regressor (n, b, N) of states without a past.

    Parameters of friction that only the past tells apart count as independent: a law is chosen so
    that the recordings separate them.
    """
    histories = [block.separable(states) if isinstance(block, JointFriction)
                 else block.history(states) for block in model.blocks]
    return model.assembly.columns_of(states, histories).array(model.robot.rows)


def stage_regressor(model: TorqueModel, stage: Stage) -> FloatArray:
    """Return the base regressor (n, b, N) of the stage's states, zero in rows it does not use."""
    columns = _columns(model, single_joint_states(model.robot, stage.motions))
    by_motion = columns.reshape(*columns.shape[:2], len(stage.motions), STAGE_STATES)
    centred = centred_rows(model, stage)
    by_motion[centred] -= by_motion[centred].mean(axis=3, keepdims=True)
    unused = np.setdiff1d(np.arange(model.robot.n), stage.rows)
    columns[unused] = 0.0
    return columns


def _tall(columns: FloatArray) -> FloatArray:
    return columns.transpose(0, 2, 1).reshape(-1, columns.shape[1])


@dataclass(frozen=True, eq=False)
class Free:
    """Unknown part of the base parameters: known + ``directions`` (b, f) @ free parameters.

    ``owners`` (f,) are the base parameters the free ones are named after.
    """

    owners: NDArray[np.int64]
    directions: FloatArray

    @classmethod
    def everything(cls, count: int) -> Free:
        """Return the start: nothing of ``count`` base parameters is known."""
        return cls(np.arange(count), np.eye(count))

    def without(self, found: Decomposition) -> Free:
        """Return the directions free after a stage; its estimate fixes those it solved."""
        left = np.setdiff1d(np.arange(len(self.owners)), found.solved)
        taken = self.directions[:, found.solved] @ found.combination[:, left]
        return Free(self.owners[left], self.directions[:, left] - taken)


def decompose(model: TorqueModel, stage: Stage, free: Free) -> Decomposition:
    """Return the directions that ``stage`` determines among those still ``free``.

    Free columns that the stage may not solve come first in the full-rank decomposition, so that
    nothing of them is left in what it solves.
    """
    columns = stage_regressor(model, stage)
    tall = _tall(columns) @ free.directions
    mine = np.isin(np.array(model.reduction.names)[free.owners], stage.parameters)
    order = np.concatenate([np.flatnonzero(~mine), np.flatnonzero(mine)])
    kept, matrix = full_rank(tall[:, order], NEW_COLUMN_SHARE, DROPPED)
    solved = np.flatnonzero(mine[order[kept]])
    combination = np.zeros((len(solved), len(mine)))
    combination[:, order] = matrix[solved]
    return Decomposition(order[kept[~mine[order[kept]]]], order[kept[solved]], combination,
                         np.any(columns != 0.0, axis=2))


def labels(model: TorqueModel, free: Free, found: Decomposition) -> tuple[str, ...]:
    """Return the combinations of base parameters a stage solves, such as ``Izz3 + Ia3``."""
    names = tuple(model.reduction.names[i] for i in free.owners)
    return tuple(combination_label(row, names, int(own))
                 for row, own in zip(found.combination, found.solved, strict=True))


def excitation_of(model: TorqueModel, stage: Stage) -> tuple[int, float]:
    """Return the number of combinations a stage determines by itself, and their condition.

    That is the condition number of what it fits, with unit columns.
    """
    free = Free.everything(len(model.reduction.names))
    found = decompose(model, stage, free)
    fitted = _tall(stage_regressor(model, stage))[:, found.fitted]
    return len(found.solved), float(np.linalg.cond(fitted / np.linalg.norm(fitted, axis=0)))


def owners(model: TorqueModel) -> NDArray[np.int64]:
    """Return the joint (b,) of every base parameter: the last one whose effort it enters."""
    n = model.robot.n
    return np.asarray(n - 1 - np.argmax(model.structure[::-1], axis=0))


def own_stages(model: TorqueModel, motions: Sequence[LockedJointsMotion]) -> tuple[Stage, ...]:
    """Return the stages in which the effort of the moving joint itself is used, last joint first.

    Raises DataError naming the joint that never moves alone.
    """
    robot = model.robot
    stages = []
    for j in reversed(range(robot.n)):
        own = tuple(m for m in motions if m.moving == j)
        if not own:
            joint = robot.joints[j]
            raise DataError(
                f'stage {joint!r}: there is no stretch in which joint {joint} moves alone while '
                'all others rest; add such a recording, or use another method')
        stages.append(Stage(robot.joints[j], own, (j,), names_from(model, j)))
    return tuple(stages)


def distal_to_proximal(
    model: TorqueModel, motions: Sequence[LockedJointsMotion]
) -> tuple[Stage, ...]:
    """Return two stages per moving joint: its own effort, then that of all locked joints.

    From the last joint to the first; the stages of joint j may solve what belongs to links and
    joints from j outwards. Raises DataError naming the joint that never moves alone.
    Source: Wang et al. 2025, section 4.
    """
    stages = []
    for own in own_stages(model, motions):
        others = tuple(i for i in range(model.robot.n) if i not in own.rows)
        stages += [own, replace(own, name=f'{own.name}, locked rows', rows=others)]
    return tuple(stages)


def body_by_body(model: TorqueModel, motions: Sequence[LockedJointsMotion]) -> tuple[Stage, ...]:
    """Return two stages per composite body, from the last to the first, of its own effort only.

    First its joint moves alone, then joints before it do. Raises DataError naming the joint that
    never moves alone. Source: Lin 1991, Algorithm 2, whose steps for one body are solved together.
    """
    robot = model.robot
    stages = []
    for own in own_stages(model, motions):
        (j,) = own.rows
        before = tuple(m for m in motions if m.moving != j and robot.carried[m.moving, j])
        stages.append(own)
        if before:
            stages.append(replace(own, name=f'body {own.name}', motions=before))
    return tuple(stages)


PROCEDURES = {'distal-to-proximal': distal_to_proximal, 'body-by-body': body_by_body}


def names_from(model: TorqueModel, joint: int) -> tuple[str, ...]:
    """Return the names of the base parameters of ``joint`` and of all after it."""
    return tuple(np.array(model.reduction.names)[owners(model) >= joint])


#: where another angle of a locked joint is looked for, from the recorded one [rad, m]
TURNS, SHIFTS = (-np.pi / 2, -np.pi / 4, np.pi / 4, np.pi / 2), (-0.2, 0.2)
#: effort of a direction in a swing, over that in a motion of all joints at 1 rad/s, by which it
#: shows
SHOWN_EFFORT_SHARE = 0.1
#: locked joints that are looked for elsewhere at once
MOST_TURNED = 2
#: share of a base parameter in open directions by which it is open
OPEN_STAGE_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class MotionToAdd:
    """A swing of ``motion`` with the ``turned`` joints (index, rad or m) elsewhere.

    ``finds`` are the base parameters that it closes.
    """

    motion: LockedJointsMotion
    turned: Turned
    finds: tuple[str, ...]


def motions_to_add(
    model: TorqueModel, recorded: Sequence[LockedJointsMotion], directions: FloatArray
) -> tuple[tuple[MotionToAdd, ...], tuple[str, ...]]:
    """Return the motions to add, the one that shows most first, and parameters none of them finds.

    ``directions`` (b, f) are those that the ``recorded`` motions leave open.
    """
    reach = np.maximum(model.moderate_effort.max(axis=0), np.finfo(float).tiny)
    basis = np.linalg.qr(reach[:, None] * directions)[0]
    added: list[MotionToAdd] = []
    for count in range(MOST_TURNED + 1):  # as few joints elsewhere as show anything
        candidates, rows = _candidates(model, recorded, count, reach)
        while candidates and basis.shape[1]:
            _, sizes, turned = np.linalg.svd(rows @ basis)
            shown = sizes > SHOWN_EFFORT_SHARE
            clear = np.sum(np.log(np.where(shown, sizes, 1.0)), axis=1)
            best = int(np.lexsort((-clear, -shown.sum(axis=1)))[0])
            number = int(shown[best].sum())
            if not number:
                break
            names = _open(model, basis)
            basis = basis @ turned[best, number:].T
            still = set(_open(model, basis))
            added.append(MotionToAdd(*candidates[best], tuple(
                name for name in names if name not in still)))
    return tuple(added), _open(model, basis)


def _open(model: TorqueModel, basis: FloatArray) -> tuple[str, ...]:
    """Return the base parameters with a share in the ``basis`` (b, f) of open directions."""
    if not basis.shape[1]:
        return ()
    share = np.linalg.norm(basis, axis=1)
    return tuple(name for name, own in zip(model.reduction.names, share, strict=True)
                 if own > OPEN_STAGE_SHARE)


Turned = tuple[tuple[int, float], ...]


def _candidates(
    model: TorqueModel, recorded: Sequence[LockedJointsMotion], count: int, reach: FloatArray
) -> tuple[list[tuple[LockedJointsMotion, Turned]], FloatArray]:
    """Return the recorded motions with ``count`` locked joints elsewhere, and which they are.

    Beside them the effort (C, STAGE_STATES, b) of their moving joints, columns over ``reach``.
    """
    moved: list[tuple[LockedJointsMotion, Turned]] = []
    rows = [np.zeros((0, STAGE_STATES, len(reach)))]
    for motion in recorded:
        ways = list(_elsewhere(model, motion, count))
        if ways:
            stage = Stage('', tuple(there for there, _ in ways), (motion.moving,), ())
            columns = stage_regressor(model, stage)[motion.moving].T / reach
            rows.append(columns.reshape(len(ways), STAGE_STATES, -1) / np.sqrt(STAGE_STATES))
            moved += ways
    return moved, np.concatenate(rows)


def _elsewhere(
    model: TorqueModel, motion: LockedJointsMotion, count: int
) -> Iterator[tuple[LockedJointsMotion, Turned]]:
    """Yield a motion with ``count`` locked joints elsewhere, and which they are."""
    limits = model.robot.limits

    def angles(joint: int) -> list[float]:
        steps = SHIFTS if model.robot.types[joint] == PRISMATIC else TURNS
        return [angle for angle in (float(motion.position[joint]) + step for step in steps)
                if not (angle < limits.lower[joint] or angle > limits.upper[joint])]

    locked = [j for j in range(model.robot.n) if j != motion.moving]
    for joints in combinations(locked, count):
        for turned in product(*map(angles, joints)):
            position = np.array(motion.position)
            position[list(joints)] = turned
            yield replace(motion, position=position), tuple(zip(joints, turned, strict=True))


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
