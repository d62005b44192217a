"""Weights of the equations of a joint near its reversals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.experiment import (
    Regression,
    TorqueModel,
    accumulate,
    batch_samples,
    in_parts,
    swift,
)
from robot_dynid.estimation.information import (
    FILTERED,
    Accumulator,
    Batch,
    Information,
    merged,
)
from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare
from robot_dynid.types import FloatArray, Samples

#: fewer rows than this are too few for the size of a residual
LEAST_ROWS = 50
#: growth of the held-out squared error that is put up with
TOLERATED = 1.01
#: power of the ratio that is applied. One would be generalised least squares; the root was chosen
#: by comparison: with one, the Coulomb friction of the TX40 leaves the 10 % around its reference
SHARE = 0.5


def reversal_weights(
    model: TorqueModel, part: Sequence[Repaired], settings: Preprocessing
) -> FloatArray:
    """Return weights (rows,), at most one, of the equations of a joint near its own reversals.

    Dry friction sticks there and holds what no law of the speed knows, so the residual is larger;
    the weight is the root of the ratio of the residual deviations far from and near reversals,
    estimated from the data itself (two regimes per joint, half way to generalised least squares).
    A joint whose held-out error over all samples would grow keeps the weight one.
    """
    far, near, counts = _apart(model, [prepare(model.robot, r, settings) for r in part])
    plain = _weighted(far, near, np.ones(model.robot.rows))
    weights = _residual_ratio(plain, far, near, counts)
    weights = _residual_ratio(_weighted(far, near, weights), far, near, counts)
    worse = held_out(_weighted(far, near, weights), plain).raw > TOLERATED * held_out(plain).raw
    return np.where(worse, 1.0, weights)


def _apart(
    model: TorqueModel, recordings: Sequence[Samples]
) -> tuple[Information, Information, NDArray[np.int64]]:
    """Return the information of the rows far from reversals, of those near, and their counts.

    The counts are (2, rows); the batches of both are the same stretches of time.
    """
    parts = [Accumulator(model.reduction.names, model.structure, batch_samples(recordings[0]),
                         sum(map(len, recordings))) for _ in range(2)]
    counts = np.zeros((2, model.robot.rows), dtype=np.int64)
    for samples, goes_on in in_parts(recordings):
        far = swift(model.robot, samples)
        regression = Regression(model, samples)
        for k, (part, rows) in enumerate(zip(parts, (far, 1.0 - far), strict=True)):
            part.begin(samples, goes_on)
            counts[k] += np.count_nonzero(rows, axis=0)
            for segment in samples.segments:
                accumulate(regression, segment, part, rows)
    return parts[0].information(), parts[1].information(), counts


def _weighted(far: Information, near: Information, weights: FloatArray) -> Information:
    """Return the information of all rows, those ``near`` reversals times ``weights`` (rows,)."""
    def both(apart: Batch, close: Batch) -> Batch:
        return replace(apart, factors=tuple(
            merged([one, weight * other])
            for one, other, weight in zip(apart.factors, close.factors, weights, strict=True)))

    assert far.by_motion is not None and near.by_motion is not None
    by_motion = replace(far.by_motion, batches=tuple(
        map(both, far.by_motion.batches, near.by_motion.batches)))
    return replace(far, batches=tuple(map(both, far.batches, near.batches)), by_motion=by_motion)


def _residual_ratio(
    information: Information, far: Information, near: Information, counts: NDArray[np.int64]
) -> FloatArray:
    """Return the root of the residual far from reversals over that near them, at most 1."""
    values = solve(information, joint_weights(information)).values
    away, close = (part.residual_energy(values, FILTERED) / np.maximum(count, 1)
                   for part, count in zip((far, near), counts, strict=True))
    known = (counts.min(axis=0) >= LEAST_ROWS) & (close > 0.0)
    ratio = np.sqrt(away / np.where(known, close, 1.0))
    return np.where(known, np.minimum(1.0, ratio) ** SHARE, 1.0)
