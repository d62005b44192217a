"""Identification: from recordings to an identified model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import reported
from robot_dynid.estimation import DEFAULT, ESTIMATORS, Estimate, Estimator, Status
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.friction_selection.law_request import COULOMB
from robot_dynid.estimation.information import Information
from robot_dynid.estimation.least_squares import (
    batch_scores,
    joint_weights,
    solve,
    textbook_covariance,
)
from robot_dynid.estimation.passive_friction import bound_friction
from robot_dynid.estimation.staged.joint_effort import joint_efforts
from robot_dynid.estimation.uncertainty.between_recordings import (
    between_recordings,
    friction_scales,
)
from robot_dynid.estimation.uncertainty.between_recordings import recordings as recordings_of
from robot_dynid.estimation.uncertainty.held_out import (
    HeldOut,
    consistency,
    explained_share,
    refusal_sentences,
    refusals,
)
from robot_dynid.identification.by_recording import Recorded
from robot_dynid.identification.fit import (
    check_sequence,
    choose_feasible,
    control_parameters,
    fit_deflection,
    held_out_in,
    sensor_warnings,
    use_sequential_values,
)
from robot_dynid.identification.gathered import Fit, Gathered, Request, gather
from robot_dynid.identification.gear_effects import allow_for_low_pass, allow_for_other_hysteresis
from robot_dynid.identification.gears import (
    DELAY_FITS,
    LOSES,
    WORSE,
    delays_to_undo,
    joints_to_make_rigid,
    record_gears,
    record_motor_encoders,
)
from robot_dynid.identification.learnt import learn_ripple, learn_slow_changes
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.selection import Choice
from robot_dynid.identification.sequential_fit import Stopwatch
from robot_dynid.identified.error_law import learn_error_law
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import impossible
from robot_dynid.identified.record import CutoffScore, FitRecord, digest_of
from robot_dynid.identified.suitability import Verdict
from robot_dynid.identified.trained import Trained
from robot_dynid.identified.uncertainty import correlation_factor, parameter_variance
from robot_dynid.monitoring.noise_levels import learn_noise_levels, recorded_motions
from robot_dynid.robot.implausible import without_inertials
from robot_dynid.robot.model import POSITION_ERROR, RobotModel
from robot_dynid.robot.serialization import robot_to_plain
from robot_dynid.signals.windows import file_of
from robot_dynid.types import Progress, RawLog
from robot_dynid.validation.contact_scores import on_other_motion
from robot_dynid.validation.evidence import Names
from robot_dynid.validation.validate import Scores, Validation, score, validate
from robot_dynid.validation.verdict import judged


@dataclass(frozen=True, eq=False)
class IdentificationResult:
    """Estimate and model, the choices behind them, and warnings.

    ``training`` scores the model on (an excerpt of) the data it was fitted to; ``held_out`` by
    cross-validation on that data; ``experiment`` holds the information. ``validation`` scores the
    model on recordings it was not fitted to, if any: these then decide the verdict.
    """

    estimate: Estimate
    model: IdentifiedModel
    experiment: Experiment
    choice: Choice
    held_out: HeldOut
    training: Validation
    warnings: tuple[str, ...]
    validation: Validation | None = None

    @cached_property
    def verdict(self) -> Verdict:
        """The uses the model is good for, joint by joint, and what to do next."""
        return self.verdict_with(None)

    def verdict_with(self, names: Names | None) -> Verdict:
        """Return `verdict` with commands that contain the ``names`` of robot and model file."""
        if self.validation is not None:
            return judged(self.model, self.validation, names=names)
        held = None if self.estimate.shares is not None else self.held_out
        return judged(self.model, self.training, held, names=names)


@reported
@one_blas_thread()
def identify(
    robot: RobotModel, logs: Sequence[RawLog], method: str | None = None,
    recipe: Recipe | None = None, progress: Progress | None = None,
    clock: Callable[[], float] | None = None,
) -> IdentificationResult:
    """Identify ``robot`` from ``logs``.

    ``logs`` may be any sequence; its recordings are read one at a time, so it may be lazy. Long
    ones are cut into parts, and choices are made on evenly spaced stretches. ``method`` names an
    estimator; None: that of the recipe, or wls. ``progress`` is called with the stage and the
    fraction done, and may raise Cancelled; ``clock`` [s] measures the loops. Raises UsageError
    (wrong use), DataError (the data does not allow it); poor data is reported in the status.
    """
    recipe, progress, watch = recipe or Recipe(), progress or (lambda *_: None), Stopwatch(clock)
    estimator = recipe.estimator_for(method).for_robot(robot)
    check_sequence(recipe, estimator)

    def fit(robot: RobotModel, estimator: Estimator, recipe: Recipe) -> IdentificationResult:
        gathered = gather(robot, logs, Request(estimator, recipe), progress, watch)
        return fit_gathered(gathered, estimator, recipe, progress, watch)

    return _with_determined_gears(fit, robot, estimator, recipe)


def _with_determined_gears(
    fit: Callable[[RobotModel, Estimator, Recipe], IdentificationResult], robot: RobotModel,
    estimator: Estimator, recipe: Recipe,
) -> IdentificationResult:
    """Return the fit in which only joints are elastic whose stiffness the recordings determine.

    Delays of their link encoders behind those of the motors, unless the recipe gives them, are
    undone. The others are rigid in the dynamics; the causes of their deflection are in the record.
    Without any elastic joint left, a method for elastic joints is replaced by the default one.
    """
    result, notes = fit(robot, estimator, recipe), []
    for _ in range(DELAY_FITS if recipe.encoder_delays is None else 0):
        if delays := delays_to_undo(result.model):
            recipe = replace(recipe, encoder_delays=delays)
            result = fit(robot, estimator, recipe)
            lags = ', '.join(f'{joint} by {1e3 * late:.3g} ms' for joint, late in delays.items())
            notes = [f'link encoders lag those of the motors: {lags}; corrected']
    while reasons := joints_to_make_rigid(result.model):
        left = tuple(j for j in result.model.elastic_joints if j not in reasons)
        estimator = _without_gears(estimator, robot) if not left else estimator
        notes += [f'{joint}: rigid in the dynamics, because {reason}'
                  for joint, reason in reasons.items()]
        recipe = replace(recipe, elastic_joints=left, encoder_delays={
            joint: late for joint, late in (recipe.encoder_delays or {}).items()
            if joint in left})
        result = fit(robot, estimator, recipe)
    near_nominal = result.model.elastic_joints and result.model.feasible is not None
    if near_nominal and not robot.drive.torque_sensors:
        rigid = fit(robot, _without_gears(estimator, robot),
                    replace(recipe, elastic_joints=(), encoder_delays={}))
        result, more = better_on_held_out_motion(result, rigid)
        notes += more
    if not notes:
        return result
    warnings = (*notes, *result.warnings)
    return replace(result, warnings=warnings, model=replace(result.model, warnings=warnings))


def better_on_held_out_motion(
    elastic: IdentificationResult, rigid: IdentificationResult
) -> tuple[IdentificationResult, list[str]]:
    """Return the rigid result, with a note, if the elastic one predicts any joint worse.

    Near the nominal links both are other models than those that `joints_to_make_rigid` compares.
    """
    worse = [joint for joint, soft, stiff in zip(
                 rigid.model.joints, elastic.held_out.raw, rigid.held_out.raw, strict=False)
             if soft > LOSES**2 * stiff]
    if not worse:
        return elastic, []
    return rigid, [f'{", ".join(elastic.model.elastic_joints)}: rigid in the dynamics, because '
                   + WORSE.format(', '.join(worse))]


def _without_gears(estimator: Estimator, robot: RobotModel) -> Estimator:
    """Return the method for rigid joints: the default one for a method of elastic joints."""
    return ESTIMATORS[DEFAULT].for_robot(robot) if estimator.seeks_elastic_joints else estimator


@reported
@one_blas_thread()
def identify_with(
    recorded: Recorded, robot: RobotModel, logs: Sequence[RawLog], method: str | None = None,
    recipe: Recipe | None = None, progress: Progress | None = None,
) -> IdentificationResult:
    """Identify ``robot`` like `identify`, with each recording processed by ``recorded``.

    The model is the same, bit for bit. Also raises UsageError if ``method`` needs the samples
    again.
    """
    recipe, progress = recipe or Recipe(), progress or (lambda *_: None)
    estimator = recipe.estimator_for(method).for_robot(robot)

    def fit(robot: RobotModel, estimator: Estimator, recipe: Recipe) -> IdentificationResult:
        request = Request(estimator, recipe, recorded=recorded)
        gathered = gather(robot, logs, request, progress, Stopwatch(None))
        return fit_gathered(gathered, estimator, recipe, progress, Stopwatch(None))

    return _with_determined_gears(fit, robot, estimator, recipe)


def fit_gathered(
    gathered: Gathered, estimator: Estimator, recipe: Recipe, progress: Progress,
    watch: Stopwatch,
) -> IdentificationResult:
    """Fit gathered recordings, and score the model on their excerpt."""
    experiment, choice, part = gathered.experiment, gathered.choice, gathered.excerpt
    torque_model, alone = experiment.model, estimator.single_joint_motions
    progress('fitting', 0.9)
    estimate, first = estimator.fit(experiment), gathered.sweeps
    if first is None:
        estimator, estimate = choose_feasible(
            estimator, bound_friction(estimate, experiment), experiment, choice)
    held = held_out_in(experiment, estimator, estimate, first)
    deflected = fit_deflection(experiment, (estimator, estimate), recipe, first, watch)
    if first is not None:
        estimate = bound_friction(use_sequential_values(estimate, deflected), experiment)
    if choice.structure.gears:
        for allow in (allow_for_other_hysteresis, allow_for_low_pass):
            estimate = allow(
                estimate, experiment, part, choice.structure, choice.preprocessing)
    # a joint whose motion is recorded alone counts only then: at rest its effort is mostly noise
    counted = joint_efforts(experiment) if alone else experiment.information
    estimate, refused = _mark_refusals(estimate, gathered.robot, held, counted)
    refusal_notes = refusal_sentences(refused)
    robot, extent = gathered.robot, gathered.extent
    model = IdentifiedModel(
        robot=robot, structure=choice.structure.within(extent), reduction=torque_model.reduction,
        values=estimate.values, std=estimate.std,
        control=control_parameters(torque_model, counted),
        correlation_factor=correlation_factor(estimate.covariance, estimate.std),
        preprocessing=choice.preprocessing, method=estimate.method,
        status='; '.join([*refusal_notes, *_advice_of(estimate)]),
        record=replace(_record(gathered.record, experiment, estimate, choice), refused=refused,
                       residual=deflected.record, robot_digest=digest_of(robot_to_plain(robot)),
                       recipe_digest=digest_of(recipe)),
        feasible=estimate.standard, trained=Trained(extent.quantities))
    model = model.with_learnt('residual', deflected.models)
    model, held = _add_expected_error(model, held)
    gathered.release()
    fit = Fit(model, estimate, deflected.warnings)
    for number, (stage, learn) in enumerate(LEARNING.items()):
        progress(stage, 0.91 + 0.04 * number / len(LEARNING))
        fit = learn(fit, gathered, estimator, recipe)
    model, estimate = fit.model, fit.estimate
    warnings = (
        *refusal_notes, *gathered.findings, *robot.warnings, *without_inertials(robot),
        *torque_model.reduction.warnings,
        *gathered.notes, *estimate.warnings, *_advice(estimate, estimator, choice, robot),
        *consistency(counted).warnings(robot.row_names),
        *sensor_warnings(experiment, held, part, choice), *fit.notes, *impossible(model))
    motions = recorded_motions(model, gathered.logs)
    if robot.linkage is None and motions:  # the monitor follows single joints
        model = replace(model, noise_levels=learn_noise_levels(model, motions))

    progress('scoring', 0.95)
    training = score(model, part, in_full=True)
    unseen = held.excess if estimate.shares is None else np.zeros(model.robot.n)
    model, contact = on_other_motion(model, motions, unseen)
    training = replace(training, contact=contact)
    warnings = (*training.remarks, *warnings)
    model = replace(model, warnings=warnings, not_identified=tuple(refused))
    held = _add_reversals(held, training.model)
    model = _add_error_law(model, training)
    if held.baseline is not None:
        held = replace(held, baseline=_add_reversals(held.baseline, training.control))
    return IdentificationResult(estimate, model, experiment, choice, held, training,
                                warnings)


#: learnt from a fitted model and its recordings, in order, by the name of the stage
LEARNING: dict[str, Callable[[Fit, Gathered, Estimator, Recipe], Fit]] = {
    'looking at gears': record_gears, 'looking for torque ripple': learn_ripple,
    'looking for slow changes': learn_slow_changes,
    'looking at motor encoders': record_motor_encoders}


def validate_result(result: IdentificationResult, logs: Sequence[RawLog]) -> IdentificationResult:
    """Return the result with the scores of its model on unseen recordings."""
    validation = validate(result.model, logs)
    return replace(result, validation=validation,
                   warnings=tuple(dict.fromkeys((*result.warnings, *validation.warnings))))


def add_recording_digests(
    result: IdentificationResult, digests: Mapping[str, str]
) -> IdentificationResult:
    """Return the result with the digest of the file of every recording used.

    ``digests`` by file; '' for a recording without one. Copies were omitted, and windows have the
    digest of their whole file.
    """
    record = add_digests(result.model.record, digests)
    return replace(result, model=replace(result.model, record=record))


def with_command(
    result: IdentificationResult, command: Sequence[str]
) -> IdentificationResult:
    """Return the result with the words of the command line that made it."""
    record = replace(result.model.record, command=tuple(command))
    return replace(result, model=replace(result.model, record=record))


def add_digests(record: FitRecord, digests: Mapping[str, str]) -> FitRecord:
    """Return the record with the digest of the file of every recording, '' without one."""
    return replace(record, recording_digests=tuple(
        digests.get(source) or digests.get(file_of(source), '') for source in record.recordings))


def _add_expected_error(model: IdentifiedModel, held: HeldOut) -> tuple[IdentifiedModel, HeldOut]:
    """Return the model and the held-out errors, with the expected error on a new motion."""
    spread = np.zeros(len(held.raw))
    spread[:model.robot.n] = parameter_variance(model)
    left = tuple(np.sqrt(held.filtered[:model.robot.n]).tolist())
    return replace(model, record=replace(model.record, left_over=left)), \
        replace(held, spread=spread)


def _add_reversals(held: HeldOut, scores: Scores) -> HeldOut:
    """Return the held-out errors with those of samples that have less weight in the fit.

    The information has samples near reversals with the weights of the fit, a new motion in full.
    """
    more = np.zeros(len(held.raw))
    errors = np.array([score.rmse for score in scores.get('all', {}).values()])
    more[:len(errors)] = np.maximum(errors**2 - held.fitted[:len(errors)], 0.0)
    return replace(held, raw=held.raw + more, fitted=held.fitted + more)


def _add_error_law(model: IdentifiedModel, training: Validation) -> IdentifiedModel:
    """Return the model with the dependence of the errors of its joints on the motion."""
    n = model.robot.n
    law = learn_error_law(
        (trace.time, (trace.measured - trace.predicted)[:, :n], trace.split.inertia[:, :n],
         trace.near[:, :n])
        for trace in training.traces if trace.split is not None and trace.near is not None)
    return replace(model, record=replace(model.record, error_law=law))


def _mark_refusals(
    estimate: Estimate, robot: RobotModel, held: HeldOut, counted: Information
) -> tuple[Estimate, dict[str, str]]:
    """Return the estimate with refused joints marked, and the reasons.

    `counted` is the information about every effort while it counts.
    """
    served = None
    if estimate.shares is None:
        served = explained_share(counted, estimate.values)
    else:
        held = replace(held, share=estimate.shares, margin=np.zeros_like(estimate.shares))
    reasons = refusals(held, consistency(counted), served)
    by_joint = {robot.joints[robot.row_joints[row]]: reason for row, reason in reasons.items()}
    refused = {joint: by_joint[joint] for joint in robot.joints if joint in by_joint}
    open_or_lost = estimate.status if estimate.not_excited else Status.NOT_IDENTIFIED
    status = open_or_lost if refused else estimate.status
    return replace(estimate, status=status, not_identified=tuple(refused)), refused


def _advice_of(estimate: Estimate) -> list[str]:
    """Return the advice of the fit, except that on refused joints."""
    if estimate.status is Status.NOT_IDENTIFIED:
        return []
    return [estimate.remedy if estimate.status is Status.NOT_EXCITED and estimate.remedy
            else estimate.status.value]


def _advice(
    estimate: Estimate, estimator: Estimator, choice: Choice, robot: RobotModel
) -> list[str]:
    advice = []
    if estimate.not_excited:
        values = f'; {estimator.open_parameters}' if estimator.open_parameters else ''
        advice.append(f'not excited by the motion: {", ".join(estimate.not_excited)}{values}; '
                      f'{estimate.remedy or Status.NOT_EXCITED.value}')
    advice += [f'axis {c.axis}: {c.note}; '
               f'{"Coulomb" if c.law == COULOMB else c.law} friction is used there: move it '
               'both ways over most of its range' for c in choice.friction if c.note]
    lag = choice.lag
    if lag is not None and lag.significant:
        applied = choice.preprocessing.effort_lag != 0.0
        late, than = ('the servos act', 'their commands') if robot.drive.kind == POSITION_ERROR \
            else ('effort is', 'the motion')
        advice.append(f'{late} {lag.words} than {than}; '
                      f'{"corrected" if applied else "correcting it does not help"}')
    return advice


def _record(
    recordings: FitRecord, experiment: Experiment, estimate: Estimate, choice: Choice
) -> FitRecord:
    """Return the record of the recordings, the choices and the fit."""
    weights = experiment.reversal_weights
    return replace(
        recordings, samples=int(experiment.information.samples), details=estimate.details,
        weights_near_reversals=() if weights is None else tuple(weights.tolist()),
        std_over_textbook=_std_over_textbook(experiment, estimate),
        friction_spread=_friction_spread(experiment),
        degrees_of_freedom=float(estimate.degrees_of_freedom),
        cutoffs_tried=tuple(CutoffScore(float(c), float(s)) for c, s in choice.cutoffs),
        friction=choice.friction, effort_lag=choice.lag, passbands=choice.passbands)


def _std_over_textbook(experiment: Experiment, estimate: Estimate) -> float:
    """Return the ratio of the deviations to those for white residuals."""
    information = experiment.information
    weights = joint_weights(information)
    textbook = textbook_covariance(information, weights, solve(information, weights))
    deviation = np.sqrt(np.diag(textbook))
    comparable = np.isfinite(estimate.std) & (deviation > 0.0)
    return float(np.median(estimate.std[comparable]
                           / deviation[comparable])) if comparable.any() else 1.0


def _friction_spread(experiment: Experiment) -> dict[str, float] | None:
    """Return the spread of friction between recordings, by kind; None if unknown."""
    information = experiment.information
    whole = recordings_of(information)
    weights = joint_weights(information)
    solution = solve(information, weights)
    scales = friction_scales(experiment.model, solution.values)
    if scales is None or len(whole) < 2:
        return None
    scores = batch_scores(information, weights, solution)
    return dict(between_recordings(scores, whole, scales).spread)
