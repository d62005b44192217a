"""Friction of a session: a model brought up to date by minutes of motion, its links unchanged.

Viscous friction, all other friction and the offset of each axis are scaled, by no more than
friction differs from day to day (`FitRecord.daily_spread`). Parts of the motion are predicted by
the scales fitted to the others: what these leave tells how much noise the fit has to expect, and
an axis keeps the friction of the model unless they reduce its error.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.document import listed, number, percent
from robot_dynid.errors import DataError, ModelError, reported
from robot_dynid.estimation.estimate import interval_factor
from robot_dynid.estimation.information import triangle
from robot_dynid.estimation.uncertainty.between_recordings import friction_scales
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.uses import recordings_for
from robot_dynid.types import FloatArray, RawLog, frozen
from robot_dynid_extras.health.everyday_motion import EverydayMotion, everyday_motion
from robot_dynid_extras.health.recursive_identification import FREE, ROUNDS

#: parts of the motion that are predicted by the others; on a UR10e, 2 and 8 give much the same
PARTS = 4
#: least motion [s]: by 4 to 10 s, joints of a KR300 and a UR10e were predicted up to 15 % worse
LEAST_SECONDS = 15.0
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

    def __str__(self) -> str:
        """Axis, kind, change and interval."""
        return (f'{self.axis} {self.kind} {percent(self.share)} ± '
                f'{percent(self.half_interval)} %')


@dataclass(frozen=True, eq=False)
class Calibration:
    """A calibrated ``model``, its ``changes``, the ``seconds`` of motion, and warnings."""

    model: IdentifiedModel
    changes: tuple[FrictionChange, ...]
    seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """All changes with their intervals: those used, then those that predict no better."""
        used, others = (', '.join(str(one) for one in self.changes if one.used is used)
                        for used in (True, False))
        return '; '.join(filter(None, (used, others and f'predicting no better: {others}')))


class FrictionSession:
    """Friction of a session, as its motion shows it, compared with that of ``model``.

    Of the motion, the last ``latest`` batches of about a second count; all without a limit. Raises
    ModelError for a model without friction.
    """

    def __init__(self, model: IdentifiedModel, latest: int | None = None) -> None:
        scales = friction_scales(model.torque_model, model.values)
        if scales is None:
            raise ModelError(f'the model of {model.robot.name} has no friction to calibrate')
        self.model, self.scales = model, scales
        self._batches: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=latest)

    @one_blas_thread()
    def take(self, motion: EverydayMotion) -> None:
        """Take the next stretch of motion."""
        for batch, sliding in zip(motion.information.batches, motion.sliding, strict=True):
            rows = motion.equations(batch, self.model.values, self.scales.directions)
            self._batches.append((np.stack([triangle(one) for one in rows]), sliding,
                                  motion.step * batch.samples))

    @one_blas_thread()
    def calibrated(self) -> Calibration:
        """Return the model with the friction of the session; raises DataError if it is short."""
        model, scales, seconds = self.model, self.scales, sum(one[2] for one in self._batches)
        if seconds < LEAST_SECONDS:
            raise DataError(f'{number(seconds, 2)} s of motion are too short to calibrate '
                            'friction: move every joint both ways for a minute')
        equations, sliding, _ = map(np.array, zip(*self._batches, strict=True))
        spread = np.array([model.record.daily_spread(kind, scales.kinds.count(kind))[0]
                           for kind in scales.kinds])
        changes, deviations, left = _fit(equations, sliding, spread)
        used = np.array([left[rows].mean() < 1.0 for rows in self._rows])
        shift = scales.directions @ np.where(used, changes, 0.0)
        note = f'{CALIBRATED} by {number(seconds, 3)} s of motion'
        feasible = None if model.feasible is None else frozen(
            model.feasible + model.reduction.standard_values(shift))
        calibrated = replace(
            model, values=frozen(model.values + shift), feasible=feasible,
            warnings=(*(w for w in model.warnings if not w.startswith(CALIBRATED)), note))
        names = np.array(model.torque_model.robot.row_names)
        half = interval_factor(np.inf) * deviations
        found = zip(self._rows, scales.kinds, changes.tolist(), half.tolist(), used.tolist(),
                    strict=True)
        return Calibration(calibrated, tuple(FrictionChange(
            listed(names[rows].tolist()), *values) for rows, *values in found), seconds)

    @property
    def _rows(self) -> NDArray[np.bool_]:
        """Mask (m, n) of the rows on whose effort each scale acts."""
        return np.asarray(np.einsum('nb,bm->mn', self.model.torque_model.structure,
                                    self.scales.directions != 0.0) > 0)


@reported
def calibrate(model: IdentifiedModel, logs: Sequence[RawLog]) -> Calibration:
    """Return ``model`` with the friction that recordings of a session show.

    Raises ModelError for a model without friction, DataError for recordings that contradict the
    robot, have gaps, or in which joints slide for less than LEAST_SECONDS.
    """
    session = FrictionSession(model)
    logs, findings = recordings_for(model, model.robot, logs)
    for log in logs:
        if (motion := everyday_motion(model, log)) is not None:
            session.take(motion)
    return replace(session.calibrated(), warnings=findings)


def _fit(
    equations: FloatArray, sliding: FloatArray, spread: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return changes (m,) of friction as shares, their deviations, and the shares (n,) of errors.

    Least squares of ``equations`` (B, n, m + 2, m + 2) of B batches, with the daily spread (m,) as
    prior. A row weighs by the density of its residuals at low frequency, because they are
    coloured: of parts that are predicted by the others, since a fit leaves too little of what it
    was fitted to; changes FREE times as large then count, lest they pass for noise. The last
    result is the squared error of this prediction, as a share of that without change.
    """
    columns, ones, values = equations[..., :-2], equations[..., -2], equations[..., -1]
    information = np.einsum('bjki,bjkl->bjil', columns, columns)
    vector = np.einsum('bjki,bjk->bji', columns, values)
    everything = np.arange(len(equations))
    parts = np.array_split(everything, PARTS)

    def fitted(batches: NDArray[np.int64], weights: FloatArray, spread: FloatArray
               ) -> tuple[FloatArray, FloatArray]:
        covariance = np.linalg.inv(np.diag(spread ** -2.0) + np.einsum(
            'bjil,j->il', information[batches], weights))
        return covariance @ np.einsum('bji,j->i', vector[batches], weights), covariance

    residuals, time = values, sliding.sum(axis=0)
    for _ in range(1 + ROUNDS):
        total = np.sum(np.einsum('bjk,bjk->bj', ones, residuals) ** 2, axis=0)
        weights = np.where(total > 0.0, time / np.where(total > 0.0, total, 1.0), 0.0)
        residuals = np.concatenate([
            values[part] - columns[part] @ fitted(
                np.setdiff1d(everything, part), weights, FREE * spread)[0] for part in parts])
    changes, covariance = fitted(everything, weights, spread)
    tiny = np.finfo(float).tiny
    before, after = (np.sum(one ** 2, axis=(0, 2)) + tiny for one in (values, residuals))
    return changes, np.sqrt(np.diag(covariance)), after / before
