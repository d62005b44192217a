"""Recordings gathered for a fit: choices, information, weights near reversals, an excerpt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from robot_dynid.errors import DataError, UsageError
from robot_dynid.estimation import ESTIMATORS, Estimate, Estimator
from robot_dynid.estimation.experiment import (
    Experiment,
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
    merge_factors,
)
from robot_dynid.estimation.least_squares import joint_weights, solve
from robot_dynid.estimation.uncertainty.held_out import held_out
from robot_dynid.identification.by_recording import AVERAGING, Recorded, ReductionChoices, Survey
from robot_dynid.identification.fit import identify_sweeps
from robot_dynid.identification.gear_effects import omitted_effects
from robot_dynid.identification.recipe import THREE, Recipe
from robot_dynid.identification.recordings import Prepared, Recordings, accepted_kinds
from robot_dynid.identification.selection import (
    Choice,
    Excerpt,
    SingleJointExcerpt,
    between,
    choose,
    choose_gear_effects,
    choose_laws_by_estimator,
)
from robot_dynid.identification.sequential_fit import FrictionStep, Stopwatch
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.record import FitRecord
from robot_dynid.identified.trained import Extent
from robot_dynid.plausibility.gate import plausible_recordings
from robot_dynid.robot.model import RobotModel
from robot_dynid.signals.parts import Parts
from robot_dynid.signals.prepare import Preprocessing, Repaired, prepare, repair
from robot_dynid.signals.windows import apply_windows
from robot_dynid.types import FloatArray, Progress, RawLog, Samples


def choose_elastic_joints(
    robot: RobotModel, logs: Sequence[RawLog], estimator: Estimator, recipe: Recipe
) -> RobotModel:
    """Return the robot with the elastic joints of the recipe, the robot or the data.

    An estimator that seeks elastic joints takes every joint with two usable encoders if none are
    named. Raises UsageError for impossible joints or settings, DataError if there is no
    deflection.
    """
    if recipe.elastic_joints is not None:
        chosen = tuple(sorted({robot.index(name) for name in recipe.elastic_joints}))
    else:
        chosen = robot.drive.elastic
    if estimator.seeks_elastic_joints and not chosen:
        if recipe.elastic_joints is not None:
            raise UsageError(f'method {estimator.name} with no elastic joints: name some in '
                             'elastic_joints')
        chosen = _two_encoders(robot, logs[0])
    if chosen and estimator.single_joint_motions:
        raise UsageError(f'method {estimator.name} is for rigid joints: choose another, '
                         'or give the recipe elastic_joints: []')
    if chosen and recipe.loops == THREE:
        raise UsageError('loops: three learns from the deflection what elastic joints model: '
                         'omit one of them (elastic_joints: [])')
    weight_removed = robot.drive.kind == 'gravity_compensated_torque' and robot.gravity.any()
    if chosen and weight_removed:
        raise UsageError('elastic joints: gravity deflects gears, but effort_kind '
                         'gravity_compensated_torque excludes it from the effort: record the '
                         'whole effort, or give the recipe elastic_joints: []')
    sensors = tuple(j for j in robot.drive.torque_sensors if j in chosen)
    return replace(robot, drive=replace(robot.drive, elastic=chosen, torque_sensors=sensors))


def _two_encoders(robot: RobotModel, log: RawLog) -> tuple[int, ...]:
    """Return the joints with encoders on both sides of the gear; raises DataError for none."""
    repaired = repair(robot, log)
    motors = repaired.parts[0].motor_position if repaired.parts else None
    joints = () if motors is None else tuple(
        int(j) for j in np.flatnonzero(np.isfinite(motors).all(axis=0)))
    if joints:
        return joints
    reasons = [note for note in repaired.notes if 'motor states of' in note]
    reason = reasons[0] if reasons else f'{log.source}: there are no motor states'
    raise DataError(f'{reason}; the method elastic needs the positions of motors and links: '
                    'record the topic motor_states (columns motor_position.<joint>)')


#: least rows for the size of a residual
RESIDUAL_ROWS = 50
#: tolerated growth of the held-out squared error
TOLERATED_GROWTH = 1.01
#: power of the ratio that is applied; one would be generalised least squares, the root was chosen
#: by comparison: with one, the Coulomb friction of the TX40 is off its reference by more than 10 %
WEIGHT_POWER = 0.5


def reversal_weights(
    model: TorqueModel, part: Sequence[Repaired], settings: Preprocessing
) -> FloatArray:
    """Return weights (rows,), at most one, of the equations of a joint near its reversals.

    Dry friction sticks there and no law of the speed describes it, so the residual is larger; the
    weight is the root of the ratio of the residual deviations far from and near reversals,
    estimated from the data (two regimes per joint, half way to generalised least squares). A joint
    whose held-out error over all samples would grow keeps the weight one.
    """
    far, near, counts = _split_reversals(model, [prepare(model.robot, r, settings) for r in part])
    plain = _weighted(far, near, np.ones(model.robot.rows))
    weights = _residual_ratio(plain, far, near, counts)
    weights = _residual_ratio(_weighted(far, near, weights), far, near, counts)
    error = held_out(_weighted(far, near, weights), plain).raw
    worse = error > TOLERATED_GROWTH * held_out(plain).raw
    return np.where(worse, 1.0, weights)


def _split_reversals(
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
    def combine(away: Batch, close: Batch) -> Batch:
        return replace(away, factors=tuple(
            merge_factors([one, weight * other])
            for one, other, weight in zip(away.factors, close.factors, weights, strict=True)))

    assert far.by_motion is not None and near.by_motion is not None
    by_motion = replace(far.by_motion, batches=tuple(
        map(combine, far.by_motion.batches, near.by_motion.batches)))
    return replace(far, batches=tuple(map(combine, far.batches, near.batches)),
                   by_motion=by_motion)


def _residual_ratio(
    information: Information, far: Information, near: Information, counts: NDArray[np.int64]
) -> FloatArray:
    """Return the root of the residual far from reversals over that near them, at most 1."""
    values = solve(information, joint_weights(information)).values
    away, close = (part.residual_energy(values, FILTERED) / np.maximum(count, 1)
                   for part, count in zip((far, near), counts, strict=True))
    enough = (counts.min(axis=0) >= RESIDUAL_ROWS) & (close > 0.0)
    ratio = np.sqrt(away / np.where(enough, close, 1.0))
    return np.where(enough, np.minimum(1.0, ratio) ** WEIGHT_POWER, 1.0)


@dataclass(frozen=True, eq=False)
class Gathered:
    """Recordings as a fit needs them.

    ``experiment`` holds their information about the parameters of the chosen model; ``extent`` is
    that of their motion; ``record`` and ``notes`` describe the processing, ``findings`` those
    about the recordings. ``logs`` are the recordings, or their remaining parts, ``excerpt`` the
    repaired ones that choices were made on; ``sweeps`` the friction of the first of three loops.
    ``release`` frees the memory of prepared recordings.
    """

    robot: RobotModel
    choice: Choice
    experiment: Experiment
    extent: Extent
    record: FitRecord
    notes: tuple[str, ...]
    findings: tuple[str, ...]
    logs: Sequence[RawLog]
    excerpt: Sequence[Repaired]
    sweeps: FrictionStep | None = None
    release: Callable[[], None] = lambda: None


@dataclass(frozen=True, eq=False)
class Fit:
    """An unfinished model, its ``estimate``, and ``notes`` about both."""

    model: IdentifiedModel
    estimate: Estimate
    notes: tuple[str, ...] = ()

    def recorded(self, record: FitRecord, *notes: str) -> Fit:
        """Return it with another ``record`` of the model, and further notes."""
        return replace(self, model=replace(self.model, record=record),
                       notes=(*self.notes, *notes))


@dataclass(frozen=True, eq=False)
class Request:
    """Method and recipe of a fit, and choices made before, if any.

    ``recorded`` processes the recordings, for methods that need their information only; None: this
    process, one after the other, preparing the next one in parallel.
    """

    estimator: Estimator
    recipe: Recipe
    like: ReductionChoices | None = None
    recorded: Recorded | None = None


def gather(
    robot: RobotModel, logs: Sequence[RawLog], request: Request, progress: Progress,
    watch: Stopwatch,
) -> Gathered:
    """Read the recordings: once to choose cut-off, lag and friction, once to reduce them.

    Raises UsageError (wrong use), DataError (unusable recordings).
    """
    estimator, recipe, like, recorded = (
        request.estimator, request.recipe, request.like, request.recorded)
    _check(robot, logs)
    logs = apply_windows(Parts.of(logs), recipe.windows)
    if recorded is not None:
        check_method(estimator, recipe)
        if not isinstance(logs, Parts):
            raise UsageError('workers need recordings that are opened together (a list or Parts), '
                             'not a sequence that reads them one by one')
    recipe.check_robot(robot)
    robot = choose_elastic_joints(robot, logs, estimator, recipe)

    progress('reading and repairing the recordings', 0.0)
    surveys: list[Survey] | None = None
    if recorded is not None and isinstance(logs, Parts):
        surveys, logs = recorded.survey(robot, logs, recipe, progress), recorded.opened
    elif recipe.periodic is not None and isinstance(logs, Parts):
        logs = logs.uncut(AVERAGING)
    logs, findings = plausible_recordings(
        robot, logs, recipe.accept,
        None if surveys is None else [survey.examination for survey in surveys])
    logs, sweeps = identify_sweeps(robot, logs, recipe, watch)
    used = {id(log) for log in logs.recordings} if isinstance(logs, Parts) else set()
    if recipe.periodic is not None and isinstance(logs, Parts):
        logs = logs.uncut(AVERAGING)
    recordings = Recordings(robot, logs, recipe)
    part = recordings.excerpt()
    twice = like is None and estimator.estimates_motion and recipe.chooses_friction(robot)
    early = between(progress, 0.0 if recorded is None else 0.2,
                    0.5 if twice or recorded is not None else 1.0)
    choice = like.choice if like else choose(
        robot, part, recipe, early, sweeps.structure if sweeps else None,
        SingleJointExcerpt if estimator.single_joint_motions else Excerpt)
    if robot.drive.elastic and like is None and not estimator.estimates_motion:
        choice = choose_gear_effects(robot, part, recipe, choice, early)
    if recorded is not None and surveys is not None:
        model = choice.structure.torque_model(robot)
        like = ReductionChoices(choice, _weights(model, part, choice, request))
        reduced = recorded.reduce(robot, [one for one in surveys if id(one.recording) in used],
                                (like, recipe), progress)
        return Gathered(
            robot, choice, Experiment.about(model, reduced.information, like.reversal_weights),
            reduced.extent, reduced.record, reduced.notes, findings, logs, part)
    experiment, prepared = _experiment(recordings, part, choice, request, early)
    if twice:
        choice = choose_laws_by_estimator(estimator, experiment, choice,
                                          recipe.law_requests(robot))
        experiment, prepared = _experiment(recordings, part, choice, request, progress)
    notes, record = prepared.notes_and_record(recipe)
    if robot.drive.elastic and estimator.estimates_motion:
        settings = replace(choice.preprocessing, decimate=False)
        notes = [*notes, *omitted_effects(
            robot, choice.structure, [prepare(robot, one, settings) for one in part],
            estimator.name)]
    return Gathered(
        robot, choice, experiment, Extent.merged(tuple(prepared.extents.values())),
        replace(record, recordings=_sources(logs), accepted=accepted_kinds(recipe, logs)),
        tuple(notes), findings, logs, part, sweeps,
        prepared.cache.clear)


def _experiment(
    recordings: Recordings, part: Sequence[Repaired], choice: Choice, request: Request,
    progress: Progress,
) -> tuple[Experiment, Prepared]:
    """Reduce the recordings with the choices; also return their preparation."""
    model = choice.structure.torque_model(recordings.robot)
    weights = _weights(model, part, choice, request)
    prepared = Prepared(model.robot, recordings, choice.preprocessing, progress,
                        request.estimator.single_joint_motions)
    experiment = Experiment.of(model, prepared, weights)
    return replace(experiment, as_recorded=prepared.as_recorded), prepared


def _weights(
    model: TorqueModel, part: Sequence[Repaired], choice: Choice, request: Request
) -> FloatArray | None:
    """Return the weights (n,) of the equations near reversals; None counts them in full."""
    if request.like is not None:
        return request.like.reversal_weights
    if request.estimator.single_joint_motions:
        return None
    return reversal_weights(model, part, choice.preprocessing)


def check_method(estimator: Estimator, recipe: Recipe | None = None) -> None:
    """Raise UsageError for a fit that needs samples, not only their information.

    With the ``recipe`` used to reduce recordings.
    """
    if not estimator.fits_information:
        able = ', '.join(name for name, one in ESTIMATORS.items() if one.fits_information)
        raise UsageError(f'method {estimator.name} needs the samples of the recordings, which '
                         f'information does not hold: choose one of {able}, or give the '
                         'recordings to identify, without workers')
    if recipe is not None and recipe.loops == THREE:
        raise UsageError('loops: three identifies friction and links from different recordings, '
                         'which information does not separate: identify from the recordings, '
                         'without workers')


def _check(robot: RobotModel, logs: Sequence[RawLog]) -> None:
    """Raise UsageError without recordings, or without the kind of effort."""
    if not len(getattr(logs, 'recordings', logs)):
        raise UsageError('no recording to identify from')
    if not robot.drive.kind:
        raise UsageError(
            f'{robot.name}: the kind of its effort is not stated: put effort_kind: torque, '
            'current, gravity_compensated_torque or position_error into a robot YAML (two lines: '
            'urdf and effort_kind) and give that')


def _sources(logs: Sequence[RawLog]) -> tuple[str, ...]:
    return tuple(str(s) for s in getattr(logs, 'sources', None) or [log.source for log in logs])
