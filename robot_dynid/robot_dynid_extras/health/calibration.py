"""Friction of a session: a model brought up to date by a minute of motion, its links unchanged.

Viscous friction, all other friction and the offset of each axis are scaled, by no more than
friction differs from day to day (`FitRecord.daily_spread`). An axis keeps the
friction of the model unless the scales of one half of the motion predict the other better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import listed, number
from robot_dynid.errors import DataError, ModelError, reported
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.information import EXTRA, FILTERED, ONE, Batch
from robot_dynid.estimation.uncertainty.between_recordings import FrictionScales, friction_scales
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uses import recordings_for
from robot_dynid.types import FloatArray, RawLog, frozen
from robot_dynid_extras.health.everyday_motion import EverydayMotion, everyday_motion

#: rounds in which scales and the density of their residuals are found
ROUNDS = 4
#: halves of the motion that are predicted by each other
HALVES = 2
#: beginning of the record of a calibration among the warnings of a model
CALIBRATED = 'friction calibrated'


@dataclass(frozen=True)
class FrictionChange:
    """Change of a ``kind`` of friction of an axis, as a ``share`` with its 95 % half-interval.

    The axis is named after the joints on which it acts. The share of an offset refers to dry
    friction. ``used``: in the calibrated model.
    """

    axis: str
    kind: str
    share: float
    half_interval: float
    used: bool


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrated ``model``, its ``changes``, the ``seconds`` of motion, and warnings."""

    model: IdentifiedModel
    changes: tuple[FrictionChange, ...]
    seconds: float
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Stretch:
    """A batch of motion: its factors, how long (n,) [s] each joint slid, and the step [s]."""

    batch: Batch
    sliding: FloatArray
    step: float


@reported
@one_blas_thread()
def calibrate(model: IdentifiedModel, logs: Sequence[RawLog]) -> Calibration:
    """Return ``model`` with the friction that recordings of a session show.

    Raises ModelError for a model without friction, DataError for recordings that contradict the
    robot, have gaps, or in which no joint slides.
    """
    scales = friction_scales(model.torque_model, model.values)
    if scales is None:
        raise ModelError(f'the model of {model.robot.name} has no friction to calibrate')
    logs, findings = recordings_for(model, model.robot, logs)
    motions = [motion for log in logs if (motion := everyday_motion(model, log)) is not None]
    stretches = [stretch for motion in motions for stretch in _stretches(motion)]
    if len(stretches) < HALVES:
        raise DataError('no joint slides for long: record a minute in which every joint moves '
                        'both ways')
    changes, deviations = _fit(model, scales, stretches)
    used = _improved(model, scales, stretches)
    note = f'{CALIBRATED} by {number(sum(one.seconds for one in motions), 3)} s of motion'
    calibrated = replace(
        model, values=frozen(model.values + scales.directions @ np.where(used, changes, 0.0)),
        warnings=(*(w for w in model.warnings if not w.startswith(CALIBRATED)), note))
    names = np.array(model.torque_model.robot.row_names)
    found = zip(_rows(model, scales), scales.kinds, changes.tolist(),
                (interval_factor(np.inf) * deviations).tolist(), used.tolist(), strict=True)
    return Calibration(calibrated, tuple(FrictionChange(
        listed(names[rows].tolist()), *values) for rows, *values in found),
        sum(one.seconds for one in motions), findings)


def _rows(model: IdentifiedModel, scales: FrictionScales) -> NDArray[np.bool_]:
    """Return a mask (m, n) of the rows on whose effort each scale acts."""
    return np.asarray(np.einsum('nb,bm->mn', model.torque_model.structure,
                                scales.directions != 0.0) > 0)


def _stretches(motion: EverydayMotion) -> list[_Stretch]:
    return [_Stretch(batch, sliding, motion.step) for batch, sliding in zip(
        motion.information.batches, motion.sliding, strict=True)]


def _improved(
    model: IdentifiedModel, scales: FrictionScales, stretches: Sequence[_Stretch]
) -> NDArray[np.bool_]:
    """Return a mask (m,) of the scales with which halves of the motion predict each other better.

    By the mean share of the squared error that is left in the rows of a scale.
    """
    squares = np.zeros((2, len(model.torque_model.structure)))
    halves = np.array_split(np.arange(len(stretches)), HALVES)
    for test in halves:
        rest = [stretches[i] for half in halves if half is not test for i in half]
        changes, _ = _fit(model, scales, rest)
        for i in test:
            for k, values in enumerate((0.0 * changes, changes)):
                squares[k] += [np.sum(left ** 2) for left in _residuals(
                    model, scales, values, stretches[i])[1]]
    tiny = np.finfo(float).tiny
    left = (squares[1] + tiny) / (squares[0] + tiny)
    return np.array([left[rows].mean() < 1.0 for rows in _rows(model, scales)])


def _fit(
    model: IdentifiedModel, scales: FrictionScales, stretches: Sequence[_Stretch]
) -> tuple[FloatArray, FloatArray]:
    """Return the changes (m,) of friction as shares, and their deviations.

    Least squares with the daily spread as prior; a row weighs by the density of what is left of
    its effort at low frequency, because residuals are coloured.
    """
    spread = np.array([model.record.daily_spread(kind, scales.kinds.count(kind))[0]
                       for kind in scales.kinds])
    changes = np.zeros(len(spread))
    covariance = np.diag(spread ** 2)
    for _ in range(ROUNDS):
        density = _density(model, scales, changes, stretches)
        precision, vector = np.diag(1.0 / spread ** 2), np.zeros(len(spread))
        for one in stretches:
            columns, left = _residuals(model, scales, np.zeros(len(spread)), one)
            for of, rest, weight in zip(columns, left, one.step / density, strict=True):
                precision += weight * of.T @ of
                vector += weight * of.T @ rest
        covariance = np.linalg.inv(precision)
        changes = covariance @ vector
    return changes, np.sqrt(np.diag(covariance))


def _density(
    model: IdentifiedModel, scales: FrictionScales, changes: FloatArray,
    stretches: Sequence[_Stretch],
) -> FloatArray:
    """Return the density (n,) [(N m)^2 s] of the residuals; infinite for joints that rest."""
    total, time = np.zeros((2, len(model.torque_model.structure)))
    for one in stretches:
        left = _residuals(model, scales, changes, one)[1]
        total += [(one.step * float(factor[:, ONE - EXTRA] @ rest)) ** 2
                  for factor, rest in zip(one.batch.factors, left, strict=True)]
        time += one.sliding
    known = (time > 0.0) & (total > 0.0)
    return np.where(known, total / np.where(known, time, 1.0), np.inf)


def _residuals(
    model: IdentifiedModel, scales: FrictionScales, changes: FloatArray, stretch: _Stretch
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Return, by row, the columns (k, m) of the changes, and the residual effort (k,)."""
    values = model.values + scales.directions @ changes
    columns, left = [], []
    for factor, own in zip(stretch.batch.factors, model.torque_model.structure, strict=True):
        columns.append(factor[:, :-EXTRA] @ scales.directions[own])
        left.append(factor[:, FILTERED - EXTRA] - factor[:, :-EXTRA] @ values[own])
    return columns, left
