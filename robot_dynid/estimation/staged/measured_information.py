"""Information of single-joint recordings about base parameters, before any identification.

The joint that moves counts by its effort, the longer the more. Of those at rest the variations
count: what friction takes of them does not average out, neither over time nor configurations.
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

    ``information`` (b, b) of efforts that average out; ``resting`` (n, n, b, b) the integral of
    what the variations of the others tell while each joint moves, for ``seconds`` (n,).
    ``density`` (n,) N m s^0.5 (N s^0.5) of noise that is white from one stretch of time to the
    next, of every joint while it moves, NaN for those that never do; ``held`` (n,) N m (N) what
    friction takes of the effort of joints at rest, NaN where none moved beside.
    """

    information: FloatArray
    density: FloatArray
    held: FloatArray
    resting: FloatArray
    seconds: FloatArray


def measured_information(experiment: Experiment, step: float) -> MeasuredInformation:
    """Return the information in ``experiment``; ``step`` [s] is that of its samples.

    Raises DataError when no joint moves alone.
    """
    model, data = experiment.model, single_joint_data(experiment)
    n, count = model.robot.n, len(model.reduction.names)
    density, held = np.full((2, n), np.nan)
    information, resting = np.zeros((count, count)), np.zeros((n, n, count, count))
    seconds = np.zeros(n)
    for j in sorted({motion.moving for motion, _ in data}):
        found = [(motion, one) for motion, one in data if motion.moving == j]
        motions = tuple(motion for motion, _ in found)
        whole = reduce(Information.merge, [one for _, one in found])
        own, density[j] = _own(model, (motions, whole), j, step)
        free, resting[j], there = _locked(model, (motions, whole), j, step)
        held = np.where(np.isfinite(there), np.fmax(held, there), held)
        information += own + free
        seconds[j] = step * whole.samples
    return MeasuredInformation(information, density, held, resting, seconds)


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
    (gram,) = _grams(reduced, combination)
    return step / density**2 * gram, float(density)


def _locked(
    model: TorqueModel, data: tuple[tuple[LockedJointsMotion, ...], Information], j: int,
    step: float,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the information (b, b) of joints at rest that no friction holds, the integrals
    (n, b, b) of the others, and what friction takes of their effort (n,).
    """
    n, count = model.robot.n, len(model.reduction.names)
    others = np.array([i for i in range(n) if i != j], dtype=int)
    information, resting = np.zeros((count, count)), np.zeros((n, count, count))
    found = np.full(n, np.nan)
    if not len(others):
        return information, resting, found
    reduced, combination = _reduced(model, data, tuple(others.tolist()))
    values = solve(reduced, joint_weights(reduced)).values
    found[others] = coherent(reduced, values)
    noise = np.maximum(residual_noise(reduced, values), 1e-6 * reduced.size(FILTERED))
    for i, gram, white in zip(others, _grams(reduced, combination), noise, strict=True):
        if model.held[i]:
            resting[i] = step * gram
        else:
            information += gram / max(white, 1e-12)**2
    return information, resting, found


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


def _grams(reduced: Information, combination: FloatArray) -> list[FloatArray]:
    """Return the squared regressor (b, b) of every row."""
    found = []
    for row in range(len(reduced.structure)):
        designs = [reduced.expanded(row, batch)[:, :-EXTRA] @ combination
                   for batch in reduced.batches]
        found.append(sum((design.T @ design for design in designs),
                         np.zeros((combination.shape[1],) * 2)))
    return found
