"""Full-rank decomposition of the regressor at random states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from robot_dynid.errors import RobotError
from robot_dynid.model.robot import RobotModel
from robot_dynid.reduction.base import Reduction
from robot_dynid.regressor.block import Block
from robot_dynid.types import FloatArray, Samples

#: a column is dependent when less than this share of its norm is new; rounding leaves about 1e-14
RANK_TOLERANCE = 1e-8
#: coefficients between columns of unit norm below this are rounding
ZERO = 1e-9
SEED = 20250101


def random_states(robot: RobotModel, count: int, rng: np.random.Generator) -> Samples:
    """Return ``count`` unrelated states; every sample is a segment of its own."""
    q, qd, qdd = rng.uniform(-3.0, 3.0, (3, count, robot.n))
    return Samples(joints=robot.joints, time=np.arange(count, dtype=np.float64), position=q,
                   velocity=2.0 * qd, acceleration=4.0 * qdd, starts=tuple(range(count)))


def full_regressor(robot: RobotModel, blocks: Sequence[Block], samples: Samples) -> FloatArray:
    """Return the regressor (n, p, N) of all standard parameters of all blocks."""
    parts = []
    for block in blocks:
        out = np.zeros((robot.n, len(block.names), len(samples)))
        block.fill(samples, block.history(samples), np.arange(len(block.names)), out)
        parts.append(out)
    return np.concatenate(parts, axis=1)


def reduce_numeric(
    robot: RobotModel, blocks: Sequence[Block], rng: np.random.Generator | None = None
) -> Reduction:
    """Return the minimal set: leftmost independent columns, and how the others combine into them.

    Gram-Schmidt with reorthogonalisation, so a dependent column leaves no trace in those after
    it. Raises RobotError when no column moves the robot at all.
    Source: Gautier, Numerical calculation of the base inertial parameters of robots, 1991.
    """
    names = tuple(n for block in blocks for n in block.names)
    generator = rng or np.random.default_rng(SEED)
    samples = random_states(robot, 20 + 3 * len(names) // robot.n, generator)
    columns = full_regressor(robot, blocks, samples)
    tall = np.ascontiguousarray(columns.transpose(1, 0, 2)).reshape(len(names), -1)
    norms = np.linalg.norm(tall, axis=1)
    basis = np.empty((0, tall.shape[1]))
    kept, new = [], np.zeros(len(names))
    for c in np.flatnonzero(norms > RANK_TOLERANCE * norms.max(initial=0.0)):
        column = tall[c] / norms[c]
        for _ in range(2):
            column = column - basis.T @ (basis @ column)
        new[c] = np.linalg.norm(column)
        if new[c] > RANK_TOLERANCE:
            kept.append(int(c))
            basis = np.vstack([basis, column / new[c]])
    if not kept:
        raise RobotError(f'{robot.name}: no parameter influences any joint effort')
    return Reduction(names, np.array(kept), _combination(tall, kept), _gap(new, kept))


def _combination(tall: FloatArray, kept: list[int]) -> FloatArray:
    """Express every column by the kept ones (least squares on the scaled columns)."""
    norms = np.linalg.norm(tall, axis=1)
    norms[norms <= RANK_TOLERANCE * norms.max()] = np.inf  # no effect: no part in any combination
    unit = (tall / norms[:, None]).T
    solution = np.linalg.lstsq(unit[:, kept], unit, rcond=None)[0]
    solution[np.abs(solution) < ZERO] = 0.0
    matrix = solution / norms[kept][:, None] * np.where(np.isfinite(norms), norms, 0.0)
    matrix[:, kept] = np.eye(len(kept))
    return np.asarray(matrix)


def _gap(new: FloatArray, kept: list[int]) -> float:
    dependent = np.delete(new, kept)
    largest = max(float(dependent.max(initial=0.0)), np.finfo(float).eps)
    return float(new[kept].min()) / largest
