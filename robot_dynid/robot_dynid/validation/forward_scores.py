"""Validation of forward dynamics: accelerations and short motions under the measured effort.

This scores the answers of `IdentifiedModel.forward` and `rollout`: links, rotors, gears, and
friction in steady sliding. Position, velocity, acceleration and effort pass the same zero-phase
low-pass.

No model has a smaller error than its inputs. That floor is computed from the recording: its even
and odd rows are two recordings of one motion with independent noise. Half as many samples have
twice the variance below the cut-off, so the difference of their two errors has four times the
variance that noise causes in the error of the whole. The floor does not include errors that
neighbouring rows share, such as rounding at rest or a filter of the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.dynamics.rollout import FEASIBLE
from robot_dynid.errors import DataError, DynIdError, ModelError, reported
from robot_dynid.estimation.experiment import swift
from robot_dynid.identified.caution import require_any_joint, warn
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import definite
from robot_dynid.identified.uses import recordings_for
from robot_dynid.signals.parts import OMITTED_PART, Parts
from robot_dynid.signals.prepare import Preprocessing, moving, prepare, repair
from robot_dynid.signals.stacked import drive_effort, per_joint
from robot_dynid.types import FloatArray, RawLog, Samples, interpolated, take
from robot_dynid.validation.rollout_scores import (
    CONSTANT_VELOCITY,
    CONTROL,
    MODEL,
    RolloutScore,
    Stretches,
    control_model,
)
from robot_dynid.validation.validate import SCORED, Scores, subset_scores

#: lengths of the rollouts [s]
HORIZONS = (0.1, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Accelerations:
    """Accelerations (N, c) [rad/s^2, m/s^2] of joints, then of motors of elastic ones.

    ``measured`` are those of the recording, ``predicted`` those of the model under the measured
    effort, ``control`` those of nominal inertials with fitted friction, None if these allow none.
    ``motion`` (N,) is true where the robot moves, ``near`` (N, c) where a joint is near a
    reversal.
    """

    measured: FloatArray
    predicted: FloatArray
    control: FloatArray | None
    motion: NDArray[np.bool_]
    near: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Horizon:
    """Scores of rollouts of ``seconds`` by predictor: MODEL, CONTROL, CONSTANT_VELOCITY."""

    seconds: float
    scores: dict[str, RolloutScore]


@dataclass(frozen=True, eq=False)
class ForwardValidation:
    """Scores of accelerations by subset and joint, as of `Validation`, and of rollouts.

    ``floor`` (c,) [rad/s^2, m/s^2] is the RMSE that the noise of the recordings causes with any
    model, in the order of the joints of ``model``; NaN if unknown. ``control`` is empty if nominal
    inertials allow no forward dynamics.
    """

    model: Scores
    control: Scores
    floor: FloatArray
    horizons: tuple[Horizon, ...]
    warnings: tuple[str, ...]


@reported
@one_blas_thread()
def validate_forward(model: IdentifiedModel, logs: Sequence[RawLog]) -> ForwardValidation:
    """Score forward dynamics and rollouts of ``model`` on recordings, as `validate` takes them.

    Samples in which the mass matrix is not positive definite do not count. Raises ModelError if
    the model has no forward dynamics, or every joint is refused; DataError or UsageError for
    unusable recordings.
    """
    warn(model)
    require_any_joint(model)
    logs, findings = recordings_for(model, model.robot, Parts.of(logs))
    stride = max(1, -(-(logs.rows if isinstance(logs, Parts) else 0) // SCORED))
    control, reason = control_model(model)
    notes = [reason] if reason else []
    scored, floors, rollouts = list[Accelerations](), list[FloatArray](), list[_Rollouts]()
    for log in logs:
        try:
            repaired = repair(model.robot, log, model.preprocessing.rate)
            settings = model.preprocessing.limited_to(repaired)
            samples = prepare(model.robot, repaired, settings).gridded
        except DataError as error:
            if log.part is None:
                raise
            notes.append(f'{error} ({OMITTED_PART})')
            continue
        scored.append(_accelerations(model, control, samples, stride))
        floors.append(_floor(model, log, settings))
        if model.elastic_joints and samples.external is not None:
            notes.append(f'{log.source}: rollouts of elastic joints take no external wrench: '
                         'there are none along it')
        else:
            rollouts.append(_rollouts(model, control, samples))
    if not scored:
        raise DataError('no recording to validate on')
    left_out = 1.0 - np.mean(np.isfinite(np.concatenate([a.predicted[:, 0] for a in scored])))
    if left_out == 1.0:
        raise ModelError('the mass matrix is not positive definite in any sample of the '
                         f'recordings; {FEASIBLE}')
    if left_out:
        notes.append(f'the mass matrix is not positive definite in {100.0 * left_out:.3g} % of '
                     f'the samples, whose accelerations are not scored; {FEASIBLE}')
    names = model.robot.row_names[:model.robot.coordinates]
    return ForwardValidation(
        _scores(names, scored, lambda a: a.predicted),
        {} if control is None else _scores(names, scored, lambda a: a.control),
        np.sqrt(np.mean(floors, axis=0)), _horizons(rollouts), (*findings, *notes))


def forward_accelerations(model: IdentifiedModel, samples: Samples) -> FloatArray:
    """Return the accelerations (N, c) [rad/s^2, m/s^2] under the filtered effort of samples.

    Those of the joints, then of motors of elastic ones; NaN where the mass matrix is not positive
    definite. Raises ModelError for an impossible gear, or if no acceleration fits the friction.
    """
    robot, external = model.robot, samples.external
    effort = drive_effort(robot, samples)
    (q, theta), (qd, theta_d) = (per_joint(robot, both) for both in (
        samples.position, samples.velocity))
    rows = definite(model, q)
    outside = None if external is None else external[rows]
    accelerations = np.full((len(q), robot.coordinates), np.nan)
    if not model.elastic_joints:
        accelerations[rows] = model.forward(q[rows], qd[rows], effort[rows], outside)
        return accelerations
    links, motors = model.forward_elastic(
        q[rows], qd[rows], effort[rows], theta[rows], theta_d[rows], outside)
    accelerations[rows] = np.hstack([links, motors[:, list(robot.drive.elastic)]])
    return accelerations


def _accelerations(
    model: IdentifiedModel, control: IdentifiedModel | None, samples: Samples, stride: int
) -> Accelerations:
    baseline = None if control is None else forward_accelerations(control, samples)[::stride]
    near = swift(model.robot, samples)[:, :model.robot.coordinates] < 0.5
    return Accelerations(
        samples.acceleration[::stride], forward_accelerations(model, samples)[::stride], baseline,
        moving(samples)[::stride] > 0.5, near[::stride])


def _scores(
    names: Sequence[str], found: Sequence[Accelerations],
    of: Callable[[Accelerations], FloatArray | None],
) -> Scores:
    modelled = np.concatenate([values for one in found if (values := of(one)) is not None])
    rows = np.isfinite(modelled).all(axis=1)
    return subset_scores(
        names, (np.concatenate([one.measured for one in found])[rows], modelled[rows]),
        np.concatenate([one.motion for one in found])[rows],
        np.concatenate([one.near for one in found])[rows])


def _floor(model: IdentifiedModel, log: RawLog, settings: Preprocessing) -> FloatArray:
    """Return the mean squared error (c,) caused by noise, NaN if half of the rows are too few."""
    try:
        even, odd = (prepare(model.robot, repair(
            model.robot, take(log, slice(first, None, 2)), settings.rate), settings).gridded
            for first in range(2))
    except DynIdError:
        return np.full(model.robot.coordinates, np.nan)
    errors = [half.acceleration - forward_accelerations(model, half) for half in (even, odd)]
    moved = np.full_like(errors[0], np.nan)
    for rows in odd.segments:
        time = odd.time[rows]
        inside = (even.time >= time[0]) & (even.time <= time[-1])
        moved[inside] = interpolated(time, errors[1][rows], even.time[inside])
    apart = (errors[0] - moved)[np.isfinite(moved).all(axis=1)]
    return np.asarray(np.mean(apart**2, axis=0)) / 4.0 if len(apart) else np.full(
        model.robot.coordinates, np.nan)


#: mean squared errors (K, 2 n) of rollouts by predictor and horizon
_Rollouts = dict[tuple[str, float], FloatArray]


def _rollouts(
    model: IdentifiedModel, control: IdentifiedModel | None, samples: Samples
) -> _Rollouts:
    """Return the errors of rollouts along samples, up to the longest horizon that fits.

    None for a robot whose joints move others, because rollouts do not support it.
    """
    if model.robot.linkage is not None:
        return {}
    for longest in sorted(HORIZONS, reverse=True):
        stretches = Stretches.along(model.robot, samples, longest)
        if stretches is None:
            continue
        motions = {MODEL: stretches.rollouts(model)}
        if control is not None:
            motions[CONTROL] = stretches.rollouts(control)
        motions[CONSTANT_VELOCITY] = stretches.at_constant_velocity()
        return {(name, seconds): stretches.errors(motion, seconds)
                for name, motion in motions.items() for seconds in HORIZONS if seconds <= longest}
    return {}


def _horizons(found: Iterable[_Rollouts]) -> tuple[Horizon, ...]:
    recordings = list(found)
    horizons = []
    for seconds in HORIZONS:
        scores = {name: RolloutScore.of([one[name, seconds] for one in recordings
                                         if (name, seconds) in one], seconds)
                  for name in (MODEL, CONTROL, CONSTANT_VELOCITY)}
        available = {name: score for name, score in scores.items() if score is not None}
        if available:
            horizons.append(Horizon(seconds, available))
    return tuple(horizons)
