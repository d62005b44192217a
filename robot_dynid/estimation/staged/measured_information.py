"""Information of single-joint recordings about base parameters, before any identification.

The joint that moves counts by its effort, the longer the more. Of those at rest the variations
count, once per motion: what friction takes of them does not average out.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np

from robot_dynid.estimation.experiment import Experiment, TorqueModel
from robot_dynid.estimation.information import EXTRA, FILTERED, Information
from robot_dynid.estimation.least_squares import (
    batch_covariance,
    joint_weights,
    residual_noise,
    solve,
)
from robot_dynid.estimation.staged.procedure import (
    Free,
    LockedJointsMotion,
    Stage,
    centred_rows,
    decompose,
)
from robot_dynid.estimation.staged.single_joint_rows import single_joint_data
from robot_dynid.estimation.staged.stage_fit import coherent
from robot_dynid.types import FloatArray


@dataclass(frozen=True, eq=False)
class MeasuredInformation:
    """Information (b, b) of single-joint motions, and the noise it counts by.

    ``density`` (n,) N m s^0.5 (N s^0.5) of noise that is white from one stretch of time to the
    next, of every joint while it moves, NaN for those that never do; ``held`` (n,) N m (N) what
    friction takes of the effort of joints at rest, NaN where none moved beside.
    """

    information: FloatArray
    density: FloatArray
    held: FloatArray


def measured_information(experiment: Experiment, step: float) -> MeasuredInformation:
    """Return the information in ``experiment``; ``step`` [s] is that of its samples.

    Raises DataError when no joint moves alone.
    """
    model, data = experiment.model, single_joint_data(experiment)
    n, count = model.robot.n, len(model.reduction.names)
    density, held = np.full((2, n), np.nan)
    information = np.zeros((count, count))
    for j in sorted({motion.moving for motion, _ in data}):
        found = [(motion, one) for motion, one in data if motion.moving == j]
        motions = tuple(motion for motion, _ in found)
        whole = reduce(Information.merge, [one for _, one in found])
        own, density[j] = _own(model, (motions, whole), j, step)
        locked, there = _locked(model, (motions, whole), j, step)
        held = np.where(np.isfinite(there), np.fmax(held, there), held)
        information += own + locked
    return MeasuredInformation(information, density, held)


def _own(
    model: TorqueModel, data: tuple[tuple[LockedJointsMotion, ...], Information], j: int,
    step: float,
) -> tuple[FloatArray, float]:
    """Return the information (b, b) of the joint that moves, and the density of its noise."""
    reduced, combination = _reduced(model, data, (j,))
    weights = np.ones(1)
    solution = solve(reduced, weights)
    energy = float(reduced.residual_energy(solution.values, FILTERED)[0])
    variance = energy / max(reduced.samples - solution.rank, 1)
    white = variance * np.sum(solution.root**2, axis=1)
    honest = np.diag(batch_covariance(reduced, weights, solution)[0])
    known = np.isfinite(honest) & (white > 0.0)
    colour = max(float(np.median(honest[known] / white[known])), 1.0) if known.any() else 1.0
    least = (1e-6 * float(reduced.size(FILTERED)[0]))**2
    density = np.sqrt(max(variance * colour * step, least, np.finfo(float).tiny))
    return _gram(reduced, combination, np.array([np.sqrt(step) / density])), float(density)


def _locked(
    model: TorqueModel, data: tuple[tuple[LockedJointsMotion, ...], Information], j: int,
    step: float,
) -> tuple[FloatArray, FloatArray]:
    """Return the information (b, b) of the joints at rest, and what friction takes there (n,)."""
    others = tuple(i for i in range(model.robot.n) if i != j)
    found = np.full(model.robot.n, np.nan)
    if not others:
        return np.zeros((len(model.reduction.names),) * 2), found
    reduced, combination = _reduced(model, data, others)
    values = solve(reduced, joint_weights(reduced)).values
    held = coherent(reduced, values)
    found[list(others)] = held
    noise = np.maximum(residual_noise(reduced, values), 1e-6 * reduced.size(FILTERED))
    weights = 1.0 / np.maximum(np.hypot(noise, held * np.sqrt(reduced.samples)), 1e-12)
    return _gram(reduced, combination, weights), found


def _reduced(
    model: TorqueModel, data: tuple[tuple[LockedJointsMotion, ...], Information],
    rows: tuple[int, ...],
) -> tuple[Information, FloatArray]:
    """Return the information of ``rows`` about what they tell apart, combination (s, b) of all."""
    motions, information = data
    names = model.reduction.names
    stage = Stage('', motions, rows, names)
    found = decompose(model, stage, Free.everything(len(names)))
    directions = np.eye(len(names))[:, found.solved]
    reduced = information.projected(rows, found.present, directions, np.zeros(len(names)),
                                    centred_rows(model, stage))
    return reduced, found.combination


def _gram(
    reduced: Information, combination: FloatArray, weights: FloatArray
) -> FloatArray:
    """Return the information (b, b) with ``weights`` (r,) of the rows."""
    total = np.zeros((combination.shape[1],) * 2)
    for batch in reduced.batches:
        for row, weight in enumerate(weights):
            design = weight * reduced.expanded(row, batch)[:, :-EXTRA] @ combination
            total += design.T @ design
    return total
