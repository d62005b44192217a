"""Staged identification as data: which joint moves where, whose effort is read, what is solved.

In a *motion with locked joints* one joint moves, the others are locked. A *stage* names
such motions, the rows (joints whose effort equation is used) and the base parameters it may solve;
what earlier stages found enters as known. Which combinations a stage determines follows from its
structure alone, that is from the regressor with the locked joints exactly at rest, not from the
noise of a recording.
Sources: Lin 1991, section 3.3 (Algorithm 2); Wang et al., Sensors 2025, 25, 5749, sections 3.2, 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.effects import JointFriction
from robot_dynid.errors import DataError
from robot_dynid.estimation.experiment import TorqueModel
from robot_dynid.reduction.base import combination_label
from robot_dynid.reduction.echelon import full_rank
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Samples

#: states per motion at which the structure of a stage is looked at
STATES = 24
#: less than this share of a column being new is no excitation: joints are not locked more exactly
WEAK, DROPPED = 1e-2, 1e-4
SEED = 20250101


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
    """Return STATES unrelated states of every motion, the locked joints exactly at rest."""
    rng = np.random.default_rng(seed)
    count = STATES * len(motions)
    q = np.repeat([m.position for m in motions], STATES, axis=0)
    qd, qdd = np.zeros((2, count, robot.n))
    for i, motion in enumerate(motions):
        rows = slice(i * STATES, (i + 1) * STATES)
        angle, speed, rate = rng.uniform(-1.0, 1.0, (3, STATES))
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
    by_motion = columns.reshape(*columns.shape[:2], len(stage.motions), STATES)
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
    kept, matrix = full_rank(tall[:, order], WEAK, DROPPED)
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
