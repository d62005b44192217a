"""Weights of the equations of a joint near its reversals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from robot_dynid.estimation.experiment import Experiment, TorqueModel, swift
from robot_dynid.estimation.information import Information
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
    recordings = [prepare(model.robot, r, settings) for r in part]
    far = np.concatenate([swift(model.robot, s) for s in recordings]) > 0.5
    plain = Experiment.of(model, recordings).information
    weights = _residual_ratio(model, recordings, plain, far)
    weighted = Experiment.of(model, recordings, weights).information
    weights = _residual_ratio(model, recordings, weighted, far)
    weighted = Experiment.of(model, recordings, weights).information
    worse = held_out(weighted, plain).raw > TOLERATED * held_out(plain).raw
    return np.where(worse, 1.0, weights)


def _residual_ratio(
    model: TorqueModel, recordings: Sequence[Samples], information: Information,
    far: NDArray[np.bool_],
) -> FloatArray:
    """Return the root of the residual far from reversals over that near them, at most 1."""
    values = solve(information, joint_weights(information)).values
    residual = np.concatenate([_residual(model, s, values) for s in recordings])
    ratio = np.ones(model.robot.rows)
    for j in range(model.robot.rows):
        rows = far[:, j]
        if min(rows.sum(), (~rows).sum()) >= LEAST_ROWS:
            near = float(np.sqrt(np.mean(residual[~rows, j] ** 2)))
            away = float(np.sqrt(np.mean(residual[rows, j] ** 2)))
            ratio[j] = min(1.0, away / near) ** SHARE if near > 0.0 else 1.0
    return ratio


def _residual(model: TorqueModel, samples: Samples, values: FloatArray) -> FloatArray:
    assert samples.effort is not None
    residual: FloatArray = samples.effort - model.effort(samples, values)
    return residual
