"""The main job: recordings in, identified model out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from robot_dynid.blas import one_blas_thread
from robot_dynid.errors import UsageError
from robot_dynid.estimation import (
    ESTIMATORS,
    Estimate,
    Estimator,
    Feasible,
    FeasibleEstimate,
    InstrumentalVariables,
    RobustLeastSquares,
    SequentialFeasible,
    StagedEstimate,
    StagedLeastSquares,
    Status,
)
from robot_dynid.estimation.experiment import Experiment
from robot_dynid.estimation.feasible.bounds import limits_of
from robot_dynid.estimation.friction_selection.law_selection import AUTO
from robot_dynid.estimation.least_squares import (
    joint_weights,
    solve,
    textbook_covariance,
    weighted_factor,
)
from robot_dynid.estimation.uncertainty.consistency import consistency
from robot_dynid.estimation.uncertainty.held_out import HeldOut, held_out
from robot_dynid.estimation.uncertainty.refusal import refusals, told
from robot_dynid.identification import fit as fitting
from robot_dynid.identification.elastic_joints import with_elastic_joints
from robot_dynid.identification.ellipsoid_bounds import with_collision
from robot_dynid.identification.gears import with_gears
from robot_dynid.identification.recipe import Recipe
from robot_dynid.identification.recordings import Prepared, Recordings
from robot_dynid.identification.reversal_weights import reversal_weights
from robot_dynid.identification.selection import Choice, excerpt
from robot_dynid.identification.sequential_fit import Stopwatch
from robot_dynid.identification.validate import Validation, score
from robot_dynid.identified.caution import REFUSED
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.physical import impossible
from robot_dynid.identified.trained import Extent, Trained
from robot_dynid.identified.uncertainty import DEGREES
from robot_dynid.monitoring.noise_levels import with_noise_levels
from robot_dynid.robot.model import RobotModel
from robot_dynid.types import FloatArray, Progress, RawLog


@dataclass(frozen=True, eq=False)
class IdentificationResult:
    """What came out: the estimate, the model, how it was chosen, and what to know about it.

    ``training`` scores the model on (an excerpt of) the data it was fitted to; ``held_out`` on
    stretches of that data left out of the fit in turn; ``experiment`` keeps the information.
    """

    estimate: Estimate
    model: IdentifiedModel
    experiment: Experiment
    choice: Choice
    held_out: HeldOut
    training: Validation
    warnings: tuple[str, ...]


@one_blas_thread()
def identify(
    robot: RobotModel, logs: Sequence[RawLog], method: str = 'wls', recipe: Recipe | None = None,
    progress: Progress | None = None, clock: Callable[[], float] | None = None,
) -> IdentificationResult:
    """Identify ``robot`` from ``logs``.

    ``logs`` may be any sequence; its recordings are read one at a time, so it may be lazy.
    ``progress`` is told the stage and the fraction done, and may raise Cancelled; ``clock`` [s]
    measures what loops take. Raises
    UsageError (wrong use), DataError (the data does not allow it); poor data is reported in the
    status.
    """
    if method not in ESTIMATORS:
        raise UsageError(f'method {method!r}: choose one of {", ".join(ESTIMATORS)}')
    if not len(logs):
        raise UsageError('no recording to identify from')
    if not robot.drive.kind:
        raise UsageError(
            f'{robot.name}: the kind of its effort is not stated, and a wrong guess would go '
            'unnoticed; put effort_kind: torque, current or gravity_compensated_torque into a '
            'robot YAML (two lines: urdf and effort_kind) and give that')
    recipe = recipe or Recipe()
    fitting.check_sequence(recipe, method)
    recipe = replace(recipe, bounds=with_collision(recipe.bounds, robot))
    if recipe.friction == AUTO and isinstance(ESTIMATORS[method], StagedLeastSquares):
        recipe = replace(recipe, friction='coulomb')  # one joint moves: the others say nothing
    robot = with_elastic_joints(robot, logs, method, recipe)
    limits_of(recipe.bounds, robot, 10 * robot.n)  # refuses them before any data is read
    return _identify(robot, logs, method, recipe, progress or (lambda *_: None),
                     Stopwatch(clock))


def _identify(
    robot: RobotModel, logs: Sequence[RawLog], method: str, recipe: Recipe, progress: Progress,
    watch: Stopwatch,
) -> IdentificationResult:
    progress('reading and repairing the recordings', 0.0)
    logs, first = fitting.begun(robot, logs, recipe, watch)
    recordings = Recordings(robot, logs, recipe)
    part = excerpt(recordings)
    choice = fitting.chosen(robot, part, recipe, first, progress)
    model = choice.structure.torque_model(robot)
    weights = reversal_weights(model, part, choice.preprocessing)
    prepared = Prepared(model.robot, recordings, choice.preprocessing, progress)
    experiment = Experiment.of(model, prepared, weights)
    notes, recorded = prepared.found(recipe)
    progress('fitting', 0.9)
    held = held_out(experiment.information)
    deflected = fitting.compensated(experiment, method, recipe, first, watch)
    original, experiment = experiment, deflected.experiment
    fitted = fitting.settled(_estimator(method, recipe).fit(experiment), deflected)
    estimate, refused = _judged(fitted, experiment, held)
    first_of_all = [told(joint, reason) for joint, reason in refused.items()]
    warnings = [*first_of_all, *robot.warnings, *model.reduction.warnings, *notes,
                *estimate.warnings, *_advice(estimate, choice), *_outside(original, estimate),
                *deflected.warnings]
    extent = Extent.merged(tuple(prepared.extents.values()))
    identified = IdentifiedModel(
        robot=robot, structure=choice.structure.within(extent), reduction=model.reduction,
        values=estimate.values, std=estimate.std,
        control=control_parameters(original), preprocessing=choice.preprocessing,
        method=method, status='; '.join([*first_of_all, *_rest_of(estimate)]),
        provenance={**_provenance(logs, (experiment, estimate), choice, weights),
                    **recorded, **deflected.provenance,
                    **({REFUSED: refused} if refused else {})},
        feasible=getattr(estimate, 'standard', None), residual_models=deflected.models,
        trained=Trained(extent.quantities),
    )
    identified, found = with_gears(identified, logs[0], part, recipe)
    warnings += [*found, *impossible(identified)]
    identified = with_noise_levels(identified, logs)
    progress('scoring', 0.95)
    training = score(identified, part)
    identified = replace(identified, warnings=tuple(warnings), not_identified=tuple(refused))
    return IdentificationResult(estimate, identified, experiment, choice, held, training,
                                tuple(warnings))


def _estimator(method: str, recipe: Recipe) -> Estimator:
    chosen = ESTIMATORS[method]
    if isinstance(chosen, StagedLeastSquares):
        return StagedLeastSquares(recipe.procedure)
    if isinstance(chosen, RobustLeastSquares):
        return replace(chosen, robust=recipe.robust)
    if isinstance(chosen, InstrumentalVariables):
        return replace(chosen, instrument_cutoff=recipe.instrument_cutoff)
    if isinstance(chosen, SequentialFeasible):
        chosen = replace(chosen, sweeps=recipe.sweeps)
    if isinstance(chosen, Feasible):
        return replace(chosen, prior=recipe.prior, prior_weight=recipe.prior_weight,
                       bounds=recipe.bounds)
    return chosen


def _judged(
    estimate: Estimate, experiment: Experiment, held: HeldOut
) -> tuple[Estimate, dict[str, str]]:
    """Mark the joints that are refused, and return why.

    After a staged identification only what a joint does while it moves counts.
    """
    robot, found = experiment.model.robot, None
    if isinstance(estimate, StagedEstimate):
        if estimate.share is not None:
            held = replace(held, share=estimate.share, margin=np.zeros_like(estimate.share))
    else:
        found = consistency(experiment.information)
    rows = refusals(held, found)
    by_joint = {robot.joints[robot.row_joints[row]]: reason for row, reason in rows.items()}
    refused = {joint: by_joint[joint] for joint in robot.joints if joint in by_joint}
    open_or_lost = estimate.status if estimate.not_excited else Status.NOT_IDENTIFIED
    status = open_or_lost if refused else estimate.status
    return replace(estimate, status=status, not_identified=tuple(refused)), refused


def _rest_of(estimate: Estimate) -> list[str]:
    """Return the advice of the fit, beside what is said of refused joints."""
    return [] if estimate.status is Status.NOT_IDENTIFIED else [estimate.status.value]


def _outside(experiment: Experiment, estimate: Estimate) -> list[str]:
    """Return who has effort that nothing explains; joints that rest in turn have mostly noise."""
    if isinstance(estimate, StagedEstimate):
        return []
    return consistency(experiment.information).warnings(experiment.model.robot.row_names)


def _advice(estimate: Estimate, choice: Choice) -> list[str]:
    found = []
    if estimate.not_excited:
        kept = '; what no stage determines keeps its nominal value' \
            if isinstance(estimate, StagedEstimate) else \
            '; what the data leaves open is near the nominal robot' \
            if isinstance(estimate, FeasibleEstimate) else ''
        found.append(f'not excited by the motion: {", ".join(estimate.not_excited)}{kept}; '
                     f'{Status.NOT_EXCITED.value}')
    found += [f'axis {c.axis}: {c.note}; Coulomb friction is kept there: let it move both ways '
              'over most of its range' for c in choice.friction if c.note]
    lag = choice.lag
    if lag is not None and lag.significant:
        applied = choice.preprocessing.effort_lag != 0.0
        side = 'later' if lag.seconds > 0.0 else 'earlier'
        found.append(f'effort is {abs(1e3 * lag.seconds):.2f} +- {1e3 * lag.std:.2f} ms {side} '
                     'than the motion; '
                     f'{"corrected" if applied else "correcting it does not help"}')
    return found


def _provenance(
    logs: Sequence[RawLog], fit: tuple[Experiment, Estimate], choice: Choice, weights: FloatArray
) -> dict[str, Any]:
    experiment, estimate = fit
    sources = getattr(logs, 'sources', None) or [log.source for log in logs]
    found: dict[str, Any] = {'recordings': [str(s) for s in sources],
                             'samples': int(experiment.information.samples),
                             'weights_near_reversals': [float(w) for w in weights],
                             'std_over_textbook': _std_over_textbook(experiment, estimate),
                             DEGREES: estimate.degrees_of_freedom}
    if estimate.details:
        found['estimator'] = dict(estimate.details)
    if isinstance(estimate, StagedEstimate):
        found['stages'] = [stage.plain() for stage in estimate.stages]
    if isinstance(estimate, FeasibleEstimate):
        found['prior_weight'] = estimate.prior_weight
        found['certificate'] = estimate.certificate.plain()
    if choice.cutoffs:
        found['cutoffs_tried'] = [{'cutoff': c, 'held_out_score': s} for c, s in choice.cutoffs]
    if choice.friction:
        found['friction'] = [c.plain() for c in choice.friction]
    if choice.lag is not None:
        found['effort_lag'] = {'seconds': choice.lag.seconds, 'std': choice.lag.std}
    return found


def _std_over_textbook(experiment: Experiment, estimate: Estimate) -> float:
    """Return how many times larger the honest deviations are than those for white residuals."""
    information = experiment.information
    weights = joint_weights(information)
    textbook = textbook_covariance(information, weights, solve(information, weights))
    deviation = np.sqrt(np.diag(textbook))
    known = np.isfinite(estimate.std) & (deviation > 0.0)
    return float(np.median(estimate.std[known] / deviation[known])) if known.any() else 1.0


@one_blas_thread()
def control_parameters(experiment: Experiment) -> FloatArray:
    """Return the base parameters (b,) of nominal inertials with everything else fitted.

    The effort of the nominal links is taken off, and rotors, friction and offsets are fitted to
    the rest: what a careful user gets without identifying any link.
    """
    reduction, robot = experiment.model.reduction, experiment.model.robot
    links = 10 * robot.n
    nominal = reduction.matrix[:, :links] @ robot.nominal.ravel()
    others = reduction.matrix[:, links:]
    tall = weighted_factor(experiment.information, joint_weights(experiment.information))
    design = tall[:, :-1] @ others
    scale = np.linalg.norm(design, axis=0)
    scale[scale == 0.0] = 1.0
    target = tall[:, -1] - tall[:, :-1] @ nominal
    fitted = np.linalg.lstsq(design / scale, target, rcond=1e-9)[0] / scale
    return np.asarray(nominal + others @ fitted)
