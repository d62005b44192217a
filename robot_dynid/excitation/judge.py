"""What a robot's candidates are judged by: its base regressor, and predicted efforts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robot_dynid.excitation.design import Judge, Progress, Score, regressor_score
from robot_dynid.excitation.trajectory import Motion
from robot_dynid.experiment import TorqueModel
from robot_dynid.friction import Coulomb
from robot_dynid.model.dynamics import inverse_dynamics, stacked
from robot_dynid.model.robot import RobotModel
from robot_dynid.reduction import reduce_numeric
from robot_dynid.regressor import Block, JointFriction, RigidLinks, RotorInertia, axes_of
from robot_dynid.types import FloatArray, Samples


def robot_judge(
    robot: RobotModel, progress: Progress | None = None, blocks: Sequence[Block] | None = None
) -> Judge:
    """Return the judge of a robot for the parameters of ``blocks`` (default: links, friction).

    Planned excitations look for rotor inertias, too, unless ``blocks`` are given. Efforts are
    predicted where the robot has nominal inertials.
    """
    chosen = _default_blocks(robot) if blocks is None else tuple(blocks)
    kept = reduce_numeric(robot, chosen).kept

    def score(motion: Motion) -> Score:
        samples = Samples(robot.joints, np.arange(float(len(motion.position))), motion.position,
                          motion.velocity, motion.acceleration)
        return regressor_score(stacked(_base_regressor(chosen, kept, samples)))

    def inverse(q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        return inverse_dynamics(robot, q, qd, qdd)

    known = bool(np.any(robot.nominal[:, 0] > 0.0))
    planned = _with_rotors(robot) if blocks is None else chosen
    return Judge(score, inverse if known else None, progress,
                 TorqueModel.of(robot, planned))


def _default_blocks(robot: RobotModel) -> tuple[Block, ...]:
    axes = axes_of(robot)
    return RigidLinks(robot), JointFriction(axes, tuple(Coulomb() for _ in axes.labels))


def _with_rotors(robot: RobotModel) -> tuple[Block, ...]:
    links, friction = _default_blocks(robot)
    return links, RotorInertia(axes_of(robot)), friction


def _base_regressor(
    blocks: Sequence[Block], kept: NDArray[np.int64], samples: Samples
) -> FloatArray:
    """Return the columns ``kept`` (b,) of all blocks, (n, b, N)."""
    parts, first = [], 0
    for block in blocks:
        own = kept[(kept >= first) & (kept < first + len(block.names))] - first
        out = np.zeros((len(samples.joints), len(own), len(samples)))
        block.fill(samples, block.history(samples), own, out)
        parts.append(out)
        first += len(block.names)
    return np.concatenate(parts, axis=1)
