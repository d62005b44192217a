"""Full-rank decomposition of the regressor at random states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.effects.effect import Assembly, Effect
from robot_dynid.effects.links import RigidLinks
from robot_dynid.errors import RobotError
from robot_dynid.reduction.base import Reduction, check_size
from robot_dynid.reduction.echelon import row_echelon, row_space
from robot_dynid.reduction.scale import length_of, parameter_sizes
from robot_dynid.robot.model import PRISMATIC, STANDARD_GRAVITY, RobotModel
from robot_dynid.types import FloatArray, Samples

#: singular values above this count; rounding leaves 1e-13, and the smallest of arms in general
#: position is 1e-2. Axes 1e-5 rad from parallel, the rounding of descriptions, leave 1e-4
VISIBLE = 1e-4
#: the least factor between it and any singular value that leaves no doubt
CLEAR = 30.0
SEED = 20250101


def random_states(robot: RobotModel, count: int, rng: np.random.Generator) -> Samples:
    """Return ``count`` unrelated states; every sample is a segment of its own."""
    q, qd, qdd = rng.uniform(-3.0, 3.0, (3, count, robot.coordinates))
    return Samples(joints=robot.joints, time=np.arange(count, dtype=np.float64), position=q,
                   velocity=2.0 * qd, acceleration=4.0 * qdd, starts=tuple(range(count)))


def states_at(robot: RobotModel, speed: float) -> Samples:
    """Return unrelated states at about ``speed`` [rad/s, m/s], root mean square."""
    fast = random_states(robot, 50, np.random.default_rng(0))
    share = speed / float(np.sqrt(np.mean(fast.velocity**2)))
    return replace(fast, velocity=share * fast.velocity, acceleration=share * fast.acceleration)


def full_regressor(robot: RobotModel, blocks: Sequence[Effect], samples: Samples) -> FloatArray:
    """Return the regressor (rows, p, N) of all standard parameters of all blocks."""
    return Assembly.of(blocks).columns_of(samples).array(robot.rows)


def entries(robot: RobotModel, blocks: Sequence[Effect]) -> NDArray[np.bool_]:
    """Return the matrix (rows, p): true where a standard parameter enters an equation."""
    states = random_states(robot, 20, np.random.default_rng(0))
    return np.asarray(np.any(generic_regressor(robot, blocks, states) != 0.0, axis=2))


def generic_regressor(
    robot: RobotModel, blocks: Sequence[Effect], samples: Samples
) -> FloatArray:
    """Return the regressor (rows, p, N) at unrelated states, those with a past independent."""
    histories = [block.generic(samples) for block in blocks]
    return Assembly.of(blocks).columns_of(samples, histories).array(robot.rows)


@one_blas_thread()
def reduce_numeric(
    robot: RobotModel, blocks: Sequence[Effect], rng: np.random.Generator | None = None
) -> Reduction:
    """Return the minimal set: leftmost independent columns, and how the others combine into them.

    The rank is that of the regressor of a robot whose length is one, moved at the pace of its
    pendulum, so it depends neither on the size of the robot nor on the random states. ``gap`` is
    the ratio of the singular values on both sides of it; where one of them is near the bound
    between them (VISIBLE), or the gap below about 1e3, a warning names the doubtful parameters.
    Pivots come from the row space, which does not depend on the states at all; only where the
    rank is in doubt, what the states show of a column counts (row_echelon).
    Raises RobotError when no column moves the robot at all, and as `check_size`.
    Source: Wang, Han, Li, Guo, Lu, Sensors 2025, 25, 5749, section 3.2.
    """
    check_size(robot)
    names = tuple(n for block in blocks for n in block.names)
    generator = rng or np.random.default_rng(SEED)
    count = 20 + 3 * len(names) // robot.rows
    states = paced(robot, random_states(robot, count, generator))
    return reduce_columns(robot, blocks, similar_columns(robot, blocks, states))


@one_blas_thread()
def reduce_columns(
    robot: RobotModel, blocks: Sequence[Effect], columns: FloatArray
) -> Reduction:
    """Return the minimal set of dimensionless ``columns`` (rows, p, N) of all standard parameters.

    Raises RobotError when no column moves the robot at all.
    """
    names = tuple(n for block in blocks for n in block.names)
    tall, sizes = _similar_regressor(robot, blocks, columns)
    values, directions = row_space(tall)
    rank = int(np.count_nonzero(values > VISIBLE))
    if not rank:
        raise RobotError(f'{robot.name}: no parameter influences any joint effort')
    kept, matrix = row_echelon(tall, directions[:rank], sizes)
    beyond = values[rank] if rank < len(values) else 0.0
    gap = float(values[rank - 1] / max(beyond, np.finfo(float).eps))
    doubtful = directions[(values > VISIBLE / CLEAR) & (values < VISIBLE * CLEAR)]
    return Reduction(names, kept, matrix, gap, _doubts(robot.name, names, doubtful, gap))


def _doubts(
    robot: str, names: tuple[str, ...], directions: FloatArray, gap: float
) -> tuple[str, ...]:
    """Return a warning that names the parameters of ``directions`` (k, p), if any."""
    if not len(directions):
        return ()
    found = sorted({names[i] for i in np.argmax(np.abs(directions), axis=1)})
    return (f'{robot}: the number of base parameters is in doubt (gap {gap:.1g}): '
            f'{", ".join(found)} act on the efforts, but hardly; are axes nearly parallel, or '
            'angles of the description rounded (1.57 for pi/2)?',)


def pace_of(robot: RobotModel) -> float:
    """Return the rate [1/s] at which the robot's weight and its inertia matter alike."""
    weight = float(np.linalg.norm(robot.gravity)) or float(np.linalg.norm(STANDARD_GRAVITY))
    return float(0.2 * np.sqrt(weight / length_of(robot)))


def paced(robot: RobotModel, states: Samples) -> Samples:
    """Return states whose lengths count in lengths of the robot, their rates in its pace."""
    pace = pace_of(robot)
    moved = _slides(robot)[[*range(robot.n), *robot.drive.elastic]]
    return replace(states, position=moved * states.position,
                   velocity=pace * moved * states.velocity,
                   acceleration=pace**2 * moved * states.acceleration)


def similar_columns(
    robot: RobotModel, blocks: Sequence[Effect], states: Samples
) -> FloatArray:
    """Return the generic regressor (rows, p, N) with forces turned to torques by the length."""
    columns = generic_regressor(robot, blocks, states)
    return np.asarray(columns * _slides(robot)[[*robot.row_joints], None, None])


def _slides(robot: RobotModel) -> FloatArray:
    return np.where(robot.types == PRISMATIC, length_of(robot), 1.0)


def _similar_regressor(
    robot: RobotModel, blocks: Sequence[Effect], columns: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the dimensionless regressor (n N, p), and the sizes its columns were divided by.

    Lengths count in lengths of the robot, time in such units that its weight and its inertia
    matter alike: robots of the same shape have the same regressor.
    """
    tall = columns.transpose(2, 0, 1).reshape(-1, columns.shape[1]) / np.sqrt(columns[:, 0].size)
    sizes = np.linalg.norm(tall, axis=0)
    sizes[sizes == 0.0] = 1.0
    first = 0
    for block in blocks:
        own = slice(first, first + len(block.names))
        if isinstance(block, RigidLinks):
            sizes[own] = pace_of(robot)**2 * parameter_sizes(robot.n, length_of(robot))
        first = own.stop
    return np.ascontiguousarray(tall / sizes), sizes
