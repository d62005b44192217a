"""Procedures of staged identification, and the motions to record for open parameters.

In a *motion with locked joints* one joint moves, the others are locked. A *stage* consists of such
motions, the rows (joints whose effort equation is used) and the base parameters it may solve, with
the results of earlier stages fixed. The combinations that a stage determines follow from its
structure alone, that is from the regressor with the locked joints exactly at rest, not from the
noise of a recording.

Sources: Lin 1991, section 3.3 (Algorithm 2); Wang et al., Sensors 2025, 25, 5749, sections 3.2, 4.

A base parameter remains open if no recorded position of the locked joints shows it. The motions to
add are recorded ones, the same or with one or two locked joints at other positions, in which the
effort of the moving joint shows open directions; rows in which friction of locked joints may hide
them do not count.
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

#: number of states per motion in which the structure of a stage is evaluated
STAGE_STATES = 24
#: least new share of an excited column: joints are not locked more exactly
NEW_COLUMN_SHARE, DROPPED = 1e-2, 1e-4


@dataclass(frozen=True, eq=False)
class LockedJointsMotion:
    """Joint `moving` swings by `amplitude` rad (m) while all others are locked.

    `position` (n,) rad (m) of the locked joints, and centre of the moving one.
    """

    moving: int
    position: FloatArray
    amplitude: float = 1.0


@dataclass(frozen=True, eq=False)
class Stage:
    """One step of a procedure.

    `motions` supply the data; `rows` are indices of the joints whose effort equation is used;
    `parameters` names of the base parameters that may be solved; other unknown ones with an effect
    are nuisance parameters.
    """

    name: str
    motions: tuple[LockedJointsMotion, ...]
    rows: tuple[int, ...]
    parameters: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Decomposition:
    """The directions that a stage determines, of f free ones.

    `nuisance` and `solved` indices of the independent columns among the free ones; `combination`
    (s, f) such that the stage determines ``combination @ free parameters``; `present` (n, b) True
    where a base parameter acts on a row in these motions.
    """

    nuisance: NDArray[np.int64]
    solved: NDArray[np.int64]
    combination: FloatArray
    present: NDArray[np.bool_]

    def without(self, refused: NDArray[np.int64]) -> Decomposition:
        """Return the decomposition with `refused` (r,), indices into `solved`, as nuisance."""
        left = np.setdiff1d(np.arange(len(self.solved)), refused)
        return replace(self, nuisance=np.concatenate([self.nuisance, self.solved[refused]]),
                       solved=self.solved[left], combination=self.combination[left])

    @property
    def fitted(self) -> NDArray[np.int64]:
        """All columns (c,) of the fit: first the nuisance parameters, then the solved ones."""
        return np.concatenate([self.nuisance, self.solved])


def single_joint_states(
    robot: RobotModel, motions: Sequence[LockedJointsMotion], seed: int = SEED
) -> Samples:
    """Return STAGE_STATES random states of every motion, the locked joints exactly at rest."""
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
    """Return the rows of which only variations count: resting joints that friction may hold.

    Such a joint holds any constant load up to its static friction without effort.
    """
    moving = {m.moving for m in stage.motions}
    return [j for j in stage.rows if j not in moving and model.held[j]]


def _columns(model: TorqueModel, states: Samples) -> FloatArray:
    """Return the base regressor (n, b, N) of states without history.

    Friction parameters that only the history separates count as independent: laws are chosen such
    that the recordings separate them.
    """
    histories = [block.separable(states) if isinstance(block, JointFriction)
                 else block.history(states) for block in model.blocks]
    return model.assembly.columns_of(states, histories).array(model.robot.rows)


def stage_regressor(model: TorqueModel, stage: Stage) -> FloatArray:
    """Return the base regressor (n, b, N) of the states of a stage, zero in unused rows."""
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
    """Unknown part of the base parameters: known + `directions` (b, f) @ free parameters.

    `owners` (f,) are the base parameters that name the free ones.
    """

    owners: NDArray[np.int64]
    directions: FloatArray

    @classmethod
    def everything(cls, count: int) -> Free:
        """Return the start: all of `count` base parameters are free."""
        return cls(np.arange(count), np.eye(count))

    def without(self, solved_parts: Decomposition) -> Free:
        """Return the directions free after a stage, whose estimate fixes the solved ones."""
        left = np.setdiff1d(np.arange(len(self.owners)), solved_parts.solved)
        taken = self.directions[:, solved_parts.solved] @ solved_parts.combination[:, left]
        return Free(self.owners[left], self.directions[:, left] - taken)


def decompose(model: TorqueModel, stage: Stage, free: Free) -> Decomposition:
    """Return the directions that `stage` determines among those still `free`.

    Free columns that the stage may not solve come first in the full-rank decomposition, so that
    the solved ones contain nothing of them.
    """
    columns = stage_regressor(model, stage)
    tall = _tall(columns) @ free.directions
    allowed = np.isin(np.array(model.reduction.names)[free.owners], stage.parameters)
    order = np.concatenate([np.flatnonzero(~allowed), np.flatnonzero(allowed)])
    pivots, matrix = full_rank(tall[:, order], NEW_COLUMN_SHARE, DROPPED)
    solved = np.flatnonzero(allowed[order[pivots]])
    combination = np.zeros((len(solved), len(allowed)))
    combination[:, order] = matrix[solved]
    return Decomposition(order[pivots[~allowed[order[pivots]]]], order[pivots[solved]],
                         combination,
                         np.any(columns != 0.0, axis=2))


def labels(model: TorqueModel, free: Free, parts: Decomposition) -> tuple[str, ...]:
    """Return the labels of the combinations that a stage solves, such as ``Izz3 + Ia3``."""
    names = tuple(model.reduction.names[i] for i in free.owners)
    return tuple(combination_label(row, names, int(pivot))
                 for row, pivot in zip(parts.combination, parts.solved, strict=True))


def excitation_of(model: TorqueModel, stage: Stage) -> tuple[int, float]:
    """Return the number of combinations that a stage determines alone, and their condition number.

    The condition number is that of its columns scaled to unit norm.
    """
    free = Free.everything(len(model.reduction.names))
    parts = decompose(model, stage, free)
    fitted = _tall(stage_regressor(model, stage))[:, parts.fitted]
    return len(parts.solved), float(np.linalg.cond(fitted / np.linalg.norm(fitted, axis=0)))


def owners(model: TorqueModel) -> NDArray[np.int64]:
    """Return the joint (b,) of every base parameter: the last one whose effort it enters."""
    n = model.robot.n
    return np.asarray(n - 1 - np.argmax(model.structure[::-1], axis=0))


def moving_joint_stages(model: TorqueModel, motions: Sequence[LockedJointsMotion]) -> tuple[Stage,
                                                                                            ...]:
    """Return the stages of the effort of the moving joint itself, last joint first.

    Raises DataError naming a joint that never moves alone.
    """
    robot = model.robot
    stages = []
    for j in reversed(range(robot.n)):
        motions_of_joint = tuple(m for m in motions if m.moving == j)
        if not motions_of_joint:
            joint = robot.joints[j]
            raise DataError(
                f'stage {joint!r}: joint {joint} never moves alone while all others rest; add '
                'such a recording, or use another method')
        stages.append(Stage(robot.joints[j], motions_of_joint, (j,), names_from(model, j)))
    return tuple(stages)


def distal_to_proximal(
    model: TorqueModel, motions: Sequence[LockedJointsMotion]
) -> tuple[Stage, ...]:
    """Return two stages per joint, last joint first: its effort, then that of all locked joints.

    The stages of joint j may solve parameters of links and joints from j outwards. Raises
    DataError naming a joint that never moves alone. Source: Wang et al. 2025, section 4.
    """
    stages = []
    for stage in moving_joint_stages(model, motions):
        others = tuple(i for i in range(model.robot.n) if i not in stage.rows)
        stages += [stage, replace(stage, name=f'{stage.name}, locked rows', rows=others)]
    return tuple(stages)


def body_by_body(model: TorqueModel, motions: Sequence[LockedJointsMotion]) -> tuple[Stage, ...]:
    """Return two stages per composite body, last body first, of the effort of its joint only.

    First its joint moves alone, then joints before it do. Raises DataError naming a joint that
    never moves alone. Source: Lin 1991, Algorithm 2, with the steps for one body solved together.
    """
    robot = model.robot
    stages = []
    for stage in moving_joint_stages(model, motions):
        (j,) = stage.rows
        proximal = tuple(m for m in motions if m.moving != j and robot.carried[m.moving, j])
        stages.append(stage)
        if proximal:
            stages.append(replace(stage, name=f'body {stage.name}', motions=proximal))
    return tuple(stages)


PROCEDURES = {'distal-to-proximal': distal_to_proximal, 'body-by-body': body_by_body}


def names_from(model: TorqueModel, joint: int) -> tuple[str, ...]:
    """Return the names of the base parameters of `joint` and of all after it."""
    return tuple(np.array(model.reduction.names)[owners(model) >= joint])


#: other positions tried for a locked joint, relative to the recorded one [rad, m]
TURNS, SHIFTS = (-np.pi / 2, -np.pi / 4, np.pi / 4, np.pi / 2), (-0.2, 0.2)
#: effort of a direction in a swing, relative to that in a motion of all joints at 1 rad/s, above
#: which the swing shows it
SHOWN_EFFORT_SHARE = 0.1
#: largest number of locked joints at other positions
MAX_TURNED = 2
#: share of a base parameter in open directions above which it is open
OPEN_STAGE_SHARE = 1e-6


@dataclass(frozen=True, eq=False)
class MotionToAdd:
    """A swing of `motion` with the `turned` joints (index, rad or m) at other positions.

    `finds` are the base parameters that it determines.
    """

    motion: LockedJointsMotion
    turned: Turned
    finds: tuple[str, ...]


def motions_to_add(
    model: TorqueModel, recorded: Sequence[LockedJointsMotion], directions: FloatArray
) -> tuple[tuple[MotionToAdd, ...], tuple[str, ...]]:
    """Return the motions to add, best one first, and the parameters that remain open.

    `directions` (b, f) are those that the `recorded` motions leave open.
    """
    reach = np.maximum(model.moderate_effort.max(axis=0), np.finfo(float).tiny)
    basis = np.linalg.qr(reach[:, None] * directions)[0]
    added: list[MotionToAdd] = []
    for count in range(MAX_TURNED + 1):  # as few turned joints as possible
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
    """Return the base parameters with a share in the `basis` (b, f) of open directions."""
    if not basis.shape[1]:
        return ()
    share = np.linalg.norm(basis, axis=1)
    return tuple(name for name, size in zip(model.reduction.names, share, strict=True)
                 if size > OPEN_STAGE_SHARE)


Turned = tuple[tuple[int, float], ...]


def _candidates(
    model: TorqueModel, recorded: Sequence[LockedJointsMotion], count: int, reach: FloatArray
) -> tuple[list[tuple[LockedJointsMotion, Turned]], FloatArray]:
    """Return the recorded motions with `count` turned joints, and those joints.

    Also the effort (C, STAGE_STATES, b) of their moving joints, columns over `reach`.
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
    """Yield a motion with `count` locked joints at other positions, and those joints."""
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
    """Return a sentence on what to record in addition to the `recorded` motions.

    `directions` (b, f) are those that are open, see `motions_to_add`.
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
        text = 'record in addition, all other joints locked as before: ' + '; '.join(parts)
    if left:
        text += ('; ' if text else '') + (
            f'for {", ".join(left)} record a motion of several joints: single joints show them '
            'only in the effort of resting joints, where friction hides it')
    return text
