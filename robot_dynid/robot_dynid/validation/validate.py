"""Validation: prediction errors of a model on other data, and those of the control row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import DataError, reported
from robot_dynid.estimation.experiment import swift
from robot_dynid.identified.caution import caution
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.trained import Outside, measured, sentences
from robot_dynid.identified.uses import recordings_for
from robot_dynid.robot.implausible import described, without_inertials
from robot_dynid.signals.averaging import repeatability
from robot_dynid.signals.external import check_external
from robot_dynid.signals.parts import OMITTED_PART, Parts
from robot_dynid.signals.prepare import Repaired, moving, repair
from robot_dynid.types import FloatArray, RawLog, Samples
from robot_dynid.validation.contact_scores import ContactScore, scored_contact
from robot_dynid.validation.effort_parts import EffortParts, effort_parts
from robot_dynid.validation.encoder_steps import step_warning
from robot_dynid.validation.passband import Passbands
from robot_dynid.validation.residual_parts import ResidualParts, residual_parts
from robot_dynid.validation.rollout_scores import (
    OpenLoop,
    OpenLoopErrors,
    OpenLoopMotions,
    RolloutScore,
    rollouts_along,
)
from robot_dynid.validation.slow_changes import SlowChanges

NEAR = 'near reversals'
#: rows up to which all samples of the recordings are scored
SCORED = 400_000
SUBSETS = ('all', 'motion', 'rest', NEAR)


@dataclass(frozen=True)
class JointScore:
    """Prediction of a signal of one joint, such as its raw effort.

    ``rmse`` in the unit of the signal, of efforts [N m]; ``nrmse`` = rmse / std(measured);
    ``relative_error`` = |e| / |measured|; ``r2``; ``quartiles`` of the error (25, 50, 75 %);
    ``outliers`` share of errors more than 1.5 interquartile ranges outside the quartiles;
    ``samples``.
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

    The control is NaN for joints whose nominal links are not described. Every measured effort
    appears once, as measured; the predictions are evaluated at its stamp. ``moving`` (N,) is 1
    while any joint moves; ``repeatability`` and ``noise`` (n,) [N m] are the deviations of the
    robot from itself and of single samples of the effort, if the motion of the recording repeats;
    ``near`` (N, n) is true where a joint is near its own reversal, or held while others move.
    ``remark`` states which part of the model could not be used, ``outside`` what exceeded the
    training range. ``rollouts`` (K, 2 n) are the mean squared errors of simulated motions along
    the recording, ``steady`` those of joints that continue at constant velocity, and ``parts`` the
    parts of the residual, if requested. ``warmed`` and ``adapted`` (N, n) [N m] are the effort
    with friction that warms up, and with all slow changes, None for a model without any.
    ``position`` and ``velocity`` (N, m) [rad, rad/s; m, m/s] are those of the joints at those
    stamps, filtered as for the fit; ``split`` are the parts of the modelled effort by cause, and
    ``open_loop`` simulated motions, if requested; ``waves`` (2, N, n) are phase [rad] and torque
    [N m] of the largest wave of torque ripple of each joint, zero for joints and None for a model
    without.
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
    rollouts: FloatArray | None = None
    steady: FloatArray | None = None
    parts: ResidualParts | None = None
    warmed: FloatArray | None = None
    adapted: FloatArray | None = None
    position: FloatArray | None = None
    velocity: FloatArray | None = None
    split: EffortParts | None = None
    waves: FloatArray | None = None
    noise: FloatArray | None = None
    open_loop: OpenLoopMotions | None = None

    @property
    def friction(self) -> FloatArray | None:
        """The friction part (N, n) [N m] of the modelled effort."""
        return None if self.split is None else self.split.friction


@dataclass(frozen=True, eq=False)
class Validation:
    """Scores by subset (SUBSETS) and joint, for the model and the control row.

    'motion' and 'rest' refer to the whole robot and make up 'all'; 'near reversals' is the part of
    the motion in which dry friction sticks, joint by joint.

    The control row is "nominal inertials + fitted friction", with the torque ripple of the model:
    a model that is not better has learnt nothing about the links. A subset without samples is
    absent.

    ``warm_up`` is the model with friction that follows the dissipated power, and ``adaptive`` also
    with tracked coefficients: they alone use the measured effort, before each sample. Empty for a
    model without. ``contact`` is the score of contact detection, None for models without noise
    levels. ``not_simulated`` states why there is no `open_loop`.
    """

    model: Scores
    control: Scores
    traces: tuple[Trace, ...]
    warnings: tuple[str, ...]
    warm_up: Scores = field(default_factory=dict)
    adaptive: Scores = field(default_factory=dict)
    contact: ContactScore | None = field(default=None, kw_only=True)
    not_simulated: str = field(default='', kw_only=True)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Remarks on single recordings, with their names."""
        return tuple(dict.fromkeys(f'{t.source}: {t.remark}' for t in self.traces if t.remark))

    @property
    def repeatability(self) -> FloatArray | None:
        """RMS deviation (n,) [N m] of the robot from itself: no model can be better."""
        return _pooled([t.repeatability for t in self.traces])

    @property
    def noise(self) -> FloatArray | None:
        """RMS noise (n,) [N m] of single samples of the effort, in addition to `repeatability`."""
        return _pooled([t.noise for t in self.traces])

    @property
    def rollout(self) -> RolloutScore | None:
        """The score of simulated motions; None without any, as for elastic joints."""
        return RolloutScore.of([t.rollouts for t in self.traces if t.rollouts is not None])

    @property
    def open_loop(self) -> OpenLoopErrors | None:
        """Errors of open-loop motions over their horizon, or None."""
        return OpenLoopErrors.of([t.open_loop for t in self.traces if t.open_loop is not None])

    @property
    def steady(self) -> RolloutScore | None:
        """The score of joints that continue at constant velocity, to compare with `rollout`."""
        return RolloutScore.of([t.steady for t in self.traces if t.steady is not None])

    @property
    def parts(self) -> ResidualParts | None:
        """The parts of the residual, None if unknown."""
        return ResidualParts.merged([t.parts for t in self.traces if t.parts is not None])


def _pooled(deviations: Sequence[FloatArray | None]) -> FloatArray | None:
    """Return the root mean square (n,) of the known deviations, None without any."""
    values = [one for one in deviations if one is not None]
    return np.sqrt(np.mean(np.square(values), axis=0)) if values else None


@reported
@one_blas_thread()
def validate(model: IdentifiedModel, logs: Sequence[RawLog]) -> Validation:
    """Score ``model`` on recordings, one in memory at a time, long ones in parts, copies left out.

    Beyond SCORED samples, evenly spaced ones count. Raises DataError or UsageError for unusable
    recordings.
    """
    logs, findings = recordings_for(model, model.robot, Parts.of(logs))
    rows = logs.rows if isinstance(logs, Parts) else 0
    notes: list[str] = []
    steps: dict[str, list[str]] = {}
    contact: list[ContactScore] = []
    scored = score(model, _repaired(model, logs, notes, steps, contact),
                   max(1, -(-rows // SCORED)), True)
    alike = (f'{", ".join(sources)}: {sentence}' for sentence, sources in steps.items())
    return replace(scored, warnings=(*findings, *alike, *notes, *scored.warnings),
                   contact=ContactScore.merged(contact))


def _repaired(
    model: IdentifiedModel, logs: Iterable[RawLog], notes: list[str],
    steps: dict[str, list[str]], contact: list[ContactScore]
) -> Iterator[Repaired]:
    """Yield recordings, except unusable parts, which go into ``notes``.

    Findings about encoder steps go into ``steps``, with their sources; the scores of contact
    detection, which uses the unfiltered measurement, into ``contact``.
    """
    for log in logs:
        warning = step_warning(model, log) if log.part is None else None
        if warning:
            steps.setdefault(warning, []).append(log.source)
        try:
            repaired = repair(model.robot, log, model.preprocessing.rate)
            contact += scored_contact(model, log)
            yield repaired
        except DataError as error:
            if log.part is None:
                raise
            notes.append(f'{error} ({OMITTED_PART})')


@one_blas_thread()
def score(
    model: IdentifiedModel, recordings: Iterable[Repaired], stride: int = 1,
    in_full: bool = False,
) -> Validation:
    """Score ``model`` on every ``stride``-th sample of repaired recordings.

    ``in_full`` also simulates its motion along them, and splits its residual into parts.
    """
    traces, notes, slow = list[Trace](), list[str](), SlowChanges(model)
    simulator = OpenLoop(model) if in_full else None
    for recording in recordings:
        notes += [*recording.notes, *_limited(model, recording)]
        try:
            traces.append(trace_recording(model, recording, (stride, simulator), slow))
        except DataError as error:
            if recording.place is None:
                raise
            notes.append(f'{error} ({OMITTED_PART})')
    if not traces:
        raise DataError('no recording to validate on')
    if stride > 1:
        notes.append(f'long recordings: one in {stride} samples was scored, evenly spaced')
    scored = Validation(
        _scores(model.robot.row_names, traces, lambda t: t.predicted),
        _scores(model.robot.row_names, traces, lambda t: t.control),
        tuple(traces), (),
        *(_scores(model.robot.row_names, traces, of) if slow.any else {} for of in (
            lambda t: t.warmed, lambda t: t.adapted)),
        not_simulated=simulator.reason if simulator else '',
    )
    outside = (f'{t.source}: {sentence}' for t in traces for sentence in sentences(t.outside))
    warning = caution(model)
    return replace(scored, warnings=(
        *notes, *scored.remarks, *outside, *((warning,) if warning else ()),
        *without_inertials(model.robot)))


def _limited(model: IdentifiedModel, recording: Repaired) -> list[str]:
    """Return a note if the recording is too slow for the cut-off of the model."""
    fitted, shown = (settings.cutoff for settings in (
        model.preprocessing, model.preprocessing.limited_to(recording)))
    return [f'{recording.source}: {1.0 / recording.step:.4g} Hz show motion up to {shown:.3g} Hz; '
            f'scored with this cut-off, the model was fitted with {fitted:g} Hz'] \
        if shown < fitted else []


def trace_recording(
    model: IdentifiedModel, recording: Repaired, how: tuple[int, OpenLoop | None],
    slow: SlowChanges,
) -> Trace:
    """Return the trace of a recording; ``how``: stride, and the simulation if in full."""
    stride, simulator = how
    passbands = Passbands.of(model, recording)
    samples = passbands.samples
    assert samples.measured is not None
    rows = np.flatnonzero(samples.fresh)[::stride]

    def with_ripple(of: Samples, effort: FloatArray) -> FloatArray:
        return effort + model.ripple_torque.of_samples(of, effort)

    smooth = model.without_ripple(samples)
    whole = with_ripple(samples, smooth)
    predicted = passbands.merge(
        whole, lambda of: with_ripple(of, model.without_ripple(of)))[rows]
    warmed, adapted = (predicted + more[::stride] for more in slow(recording, samples, smooth)
                       ) if slow.any else (None, None)
    rollouts, steady = rollouts_along(model, samples) if simulator else (None, None)
    control, at_stamps = model.torque_model.effort(samples, model.control), samples.moved
    control = passbands.merge(with_ripple(samples, control), lambda of: with_ripple(
        of, model.torque_model.effort(of, model.control)))
    control[:, ~described(model.robot)[list(model.robot.row_joints)]] = np.nan
    robot, noise = repeatability(samples) or (None, None)
    return Trace(
        recording.source, samples.instants[rows], samples.measured[rows], predicted,
        control[rows], moving(samples)[rows],
        robot, swift(model.robot, samples)[rows] < 0.5,
        '; '.join(filter(None, (
            *(one.note(model.robot, samples) for one in model.learnt_effects.values()),
            check_external(samples, samples.measured - smooth)))),
        model.trained.excesses(model.robot, measured(model.robot, samples)),
        rollouts, steady, residual_parts(model, samples, smooth) if simulator else None,
        warmed, adapted,
        position=at_stamps.position[rows, :model.robot.n],
        velocity=at_stamps.velocity[rows, :model.robot.n],
        split=effort_parts(model, samples, whole).part(rows),
        waves=_largest_waves(model, samples, smooth, rows), noise=noise,
        open_loop=simulator.along(samples) if simulator else None,
    )


def _largest_waves(
    model: IdentifiedModel, samples: Samples, smooth: FloatArray, own: NDArray[np.int64]
) -> FloatArray | None:
    """Return `Trace.waves` in the rows ``own``; ``smooth`` (N, n) is modelled without ripple."""
    if samples.raw_position is None:
        return None
    position, velocity = samples.raw_position[own], samples.at_stamps(samples.velocity)[own]
    waves = np.zeros((2, *position.shape))
    for joint in model.record.ripple:
        j = model.robot.joints.index(joint.joint)
        ripple = model.parts_of('ripple')[j]
        if ripple is not None and joint.waves:
            waves[:, :, j] = ripple.wave(
                joint.waves[0].order, position[:, j], velocity[:, j], smooth[own, j])
    return waves


def _scores(
    joints: Sequence[str], traces: Sequence[Trace], of: Callable[[Trace], FloatArray]
) -> Scores:
    near = np.concatenate([np.zeros(t.measured.shape, dtype=bool) if t.near is None else t.near
                           for t in traces])
    return subset_scores(
        joints, (np.concatenate([t.measured for t in traces]),
                 np.concatenate([of(t) for t in traces])),
        np.concatenate([t.moving for t in traces]) > 0.5, near)


def subset_scores(
    joints: Sequence[str], pair: tuple[FloatArray, FloatArray], motion: NDArray[np.bool_],
    near: NDArray[np.bool_],
) -> Scores:
    """Return the scores of a ``pair``, measured and modelled (N, n), by subset and joint.

    ``motion`` (N,) is true where the robot moves, ``near`` (N, n) where a joint is near a
    reversal. Joints without a model, all NaN, are absent.
    """
    measured, modelled = pair
    scores: Scores = {}
    for subset, rows in zip(SUBSETS, (np.ones_like(motion), motion, ~motion, motion[:, None] & near
                                      ), strict=True):
        by_joint = rows.T if rows.ndim == 2 else [rows] * len(joints)
        scored = {joint: joint_score(measured[joint_mask, j], modelled[joint_mask, j])
                  for j, (joint, joint_mask) in enumerate(zip(joints, by_joint, strict=True))
                  if joint_mask.any() and not np.isnan(modelled[joint_mask, j]).all()}
        if scored:
            scores[subset] = scored
    return scores


def joint_score(measured: FloatArray, modelled: FloatArray) -> JointScore:
    """Score the prediction (N,) of one measured signal (N,), such as effort [N m]."""
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
