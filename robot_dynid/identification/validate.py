"""Validation: prediction errors of a model on other data, beside the control row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError, reported
from robot_dynid.estimation.experiment import swift
from robot_dynid.identified.caution import caution
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Outside, measured, sentences
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.residual.deflection import unused
from robot_dynid.signals.parts import LEFT_OUT, Parts
from robot_dynid.signals.prepare import Repaired, moving, prepare, repair
from robot_dynid.signals.repetition import repeatability
from robot_dynid.types import FloatArray, RawLog

NEAR = 'near reversals'
#: rows of recordings of which all samples are scored
SCORED = 400_000
SUBSETS = ('all', 'motion', 'rest', NEAR)


@dataclass(frozen=True)
class JointScore:
    """Prediction of the raw effort of one joint.

    ``rmse`` [N m]; ``nrmse`` = rmse / std(measured); ``relative_error`` = |e| / |measured|;
    ``r2``; ``quartiles`` of the error (25, 50, 75 %) [N m]; ``outliers`` share of errors more
    than 1.5 interquartile ranges outside the quartiles; ``samples``.
    """

    rmse: float
    nrmse: float
    relative_error: float
    r2: float
    quartiles: tuple[float, float, float]
    outliers: float
    samples: int


Scores = dict[str, dict[str, JointScore]]


@dataclass(frozen=True, eq=False)
class Trace:
    """Measured, modelled and control effort (N, n) [N m] of a recording, at its stamps (N,) s.

    Every measured effort stands there once, as it was measured; what is compared with it was
    evaluated at its stamp. ``moving`` (N,) is 1 while any joint moves; ``repeatability`` (n,)
    [N m] the deviation of the robot from itself, where the motion of the recording repeats;
    ``near`` (N, n) is true where a joint is near its own reversal, or held while others move.
    ``remark`` says what of the model could not be used, ``outside`` what was beyond the ranges the
    model was trained in.
    """

    source: str
    time: FloatArray
    measured: FloatArray
    predicted: FloatArray
    control: FloatArray
    moving: FloatArray
    repeatability: FloatArray | None
    near: NDArray[np.bool_] | None = None
    remark: str = ''
    outside: tuple[Outside, ...] = ()


@dataclass(frozen=True, eq=False)
class Validation:
    """Scores by subset (SUBSETS) and joint, for the model and the control row.

    'motion' and 'rest' are those of the whole robot and make up 'all'; 'near reversals' is the
    part of the motion in which dry friction sticks, joint by joint.

    The control row is "nominal inertials + fitted friction": a model that is not better than it
    has taught nothing about the links. A subset without samples is absent.
    """

    model: Scores
    control: Scores
    traces: tuple[Trace, ...]
    warnings: tuple[str, ...]

    @property
    def repeatability(self) -> FloatArray | None:
        """RMS deviation (n,) [N m] of the robot from itself: no model can do better."""
        found = [t.repeatability for t in self.traces if t.repeatability is not None]
        return np.sqrt(np.mean(np.square(found), axis=0)) if found else None


@reported
@one_blas_thread()
def validate(model: IdentifiedModel, logs: Sequence[RawLog]) -> Validation:
    """Score ``model`` on recordings, one in memory at a time, long ones in parts, copies left out.

    Beyond SCORED samples, evenly spaced ones count. Raises DataError or UsageError for unusable
    recordings.
    """
    logs, findings = plausible_recordings(model.robot, Parts.of(logs))
    rows = logs.rows if isinstance(logs, Parts) else 0
    notes: list[str] = []
    found = score(model, _repaired(model, logs, notes), max(1, -(-rows // SCORED)))
    return replace(found, warnings=(*findings, *notes, *found.warnings))


def _repaired(
    model: IdentifiedModel, logs: Iterable[RawLog], notes: list[str]
) -> Iterator[Repaired]:
    """Yield recordings but parts that cannot be used, which go into ``notes``."""
    for log in logs:
        try:
            yield repair(model.robot, log, model.preprocessing.rate)
        except DataError as error:
            if log.part is None:
                raise
            notes.append(f'{error} ({LEFT_OUT})')


@one_blas_thread()
def score(
    model: IdentifiedModel, recordings: Iterable[Repaired], stride: int = 1
) -> Validation:
    """Score ``model`` on every so many (``stride``) samples of repaired recordings."""
    traces, notes = [], list[str]()
    for recording in recordings:
        notes += recording.notes
        try:
            traces.append(_trace(model, recording, stride))
        except DataError as error:
            if recording.place is None:
                raise
            notes.append(f'{error} ({LEFT_OUT})')
    if not traces:
        raise DataError('no recording to validate on')
    if stride > 1:
        notes.append(f'long recordings: one in {stride} samples was scored, evenly spaced')
    notes += [f'{t.source}: {t.remark}' for t in traces if t.remark]
    notes += [f'{t.source}: {sentence}' for t in traces for sentence in sentences(t.outside)]
    return Validation(
        _scores(model.robot.row_names, traces, lambda t: t.predicted),
        _scores(model.robot.row_names, traces, lambda t: t.control),
        tuple(traces), (*notes, *_remarks(model)),
    )


def _trace(model: IdentifiedModel, recording: Repaired, stride: int) -> Trace:
    samples = prepare(model.robot, recording, model.preprocessing)
    assert samples.measured is not None
    own = np.flatnonzero(samples.fresh)[::stride]
    return Trace(
        recording.source, samples.moved.time[own], samples.measured[own],
        model.predicted(samples)[own],
        model.torque_model.effort(samples, model.control)[own], moving(samples)[own],
        repeatability(samples), swift(model.robot, samples)[own] < 0.5,
        unused(model.robot, model.residual_models, samples),
        model.trained.found(model.robot, measured(model.robot, samples)),
    )


def _remarks(model: IdentifiedModel) -> tuple[str, ...]:
    warning = caution(model)
    return (warning,) if warning else ()


def _scores(
    joints: Sequence[str], traces: Sequence[Trace], of: Callable[[Trace], FloatArray]
) -> Scores:
    measured = np.concatenate([t.measured for t in traces])
    modelled = np.concatenate([of(t) for t in traces])
    motion = np.concatenate([t.moving for t in traces]) > 0.5
    near = np.concatenate([np.zeros(t.measured.shape, dtype=bool) if t.near is None else t.near
                           for t in traces])
    found: Scores = {}
    for subset, rows in zip(SUBSETS, (np.ones_like(motion), motion, ~motion, motion[:, None] & near
                                      ), strict=True):
        by_joint = rows.T if rows.ndim == 2 else [rows] * len(joints)
        scored = {joint: joint_score(measured[own, j], modelled[own, j])
                  for j, (joint, own) in enumerate(zip(joints, by_joint, strict=True))
                  if own.any()}
        if scored:
            found[subset] = scored
    return found


def joint_score(measured: FloatArray, modelled: FloatArray) -> JointScore:
    """Score the prediction (N,) of one measured effort (N,) [N m]."""
    error = measured - modelled
    rmse = float(np.sqrt(np.mean(error**2)))
    spread, size = float(np.std(measured)), float(np.sqrt(np.mean(measured**2)))
    low, middle, high = (float(v) for v in np.percentile(error, (25, 50, 75)))
    reach = 1.5 * (high - low)
    outside = (error < low - reach) | (error > high + reach)
    return JointScore(
        rmse=rmse, nrmse=rmse / spread if spread > 0.0 else np.inf,
        relative_error=rmse / size if size > 0.0 else np.inf,
        r2=1.0 - (rmse / spread) ** 2 if spread > 0.0 else -np.inf,
        quartiles=(low, middle, high), outliers=float(np.mean(outside)), samples=len(error),
    )
