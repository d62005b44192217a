"""Reports of an identification, of a model, of a validation: six questions of a reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robot_dynid.document import Chapter, Report, Section, counted
from robot_dynid.identification.identify import IdentificationResult
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.suitability import Verdict
from robot_dynid.report import curves, effects, errors, joints, parameters, provenance, trust
from robot_dynid.report.texts import file_names, with_file_names
from robot_dynid.report.trust import Errors
from robot_dynid.types import RawLog
from robot_dynid.validation.forward_scores import ForwardValidation
from robot_dynid.validation.validate import Validation
from robot_dynid.validation.verdict import judged

GOOD_FOR, JOINTS, SIMULATION, WHERE, PARAMETERS, DATA = QUESTIONS = (
    'What it is good for', 'Joint by joint', 'Simulation', 'Where is the error?', 'Parameters',
    'Data and provenance')
#: recordings whose names stand in the head
MOST_NAMES = 6
#: next actions of a brief document
BRIEF_ACTIONS = 3


def identification_report(
    result: IdentificationResult, logs: Sequence[RawLog], verdict: Verdict | None = None,
    command: Sequence[str] = (),
) -> Report:
    """Return the report of an identification.

    The ``verdict`` leads, that of the result where none is given; ``command`` are the words of the
    command line, if any.
    """
    model, training, unseen = result.model, result.training, result.validation
    held = None if result.estimate.shares is not None else result.held_out
    judging = Errors.of(training, 'fit') if held is None else Errors.of(training, 'held-out', held)
    return _report(
        (model, training), logs, verdict or result.verdict, result.warnings, {
            GOOD_FOR: (trust.summary(result), *(
                trust.scores(model, one, title) for one, title in (
                    (unseen, 'Scores on held-out recordings'),
                    (training, 'Scores on the training recordings')) if one)),
            DATA: (provenance.data(logs, model, result.choice),
                   provenance.excitation(model, result.estimate),
                   provenance.provenance(model, logs, command))},
        Errors.of(unseen, 'held-out') if unseen else judging)


def model_report(
    model: IdentifiedModel, validation: Validation, logs: Sequence[RawLog],
    extra: Sequence[Section] = (), verdict: Verdict | None = None, command: Sequence[str] = (),
) -> Report:
    """Return the report of a saved model on recordings.

    ``extra`` sections follow the summary; other arguments as above.
    """
    return _report(
        (model, validation), logs, verdict or judged(model, validation), validation.warnings, {
            GOOD_FOR: (*extra, trust.scores(model, validation, 'Scores')),
            DATA: (provenance.data(logs, model), provenance.excitation(model),
                   provenance.provenance(model, logs, command))},
        Errors.of(validation, 'prediction'))


def validation_report(
    model: IdentifiedModel, validation: Validation, logs: Sequence[RawLog],
    forward: ForwardValidation | None = None, verdict: Verdict | None = None,
    command: Sequence[str] = (),
) -> Report:
    """Return the report of a validation on recordings the model was not fitted to.

    With ``forward``, scores of forward dynamics follow the summary; other arguments as above.
    """
    extra = () if forward is None else (trust.forward_dynamics(model, forward),)
    verdict = verdict or judged(model, validation, forward=forward)
    validation = replace(validation, warnings=validation_warnings(validation, forward))
    report = model_report(model, validation, logs, extra, verdict, command)
    used = sum(one.source in model.record.recordings for one in provenance.recordings_of(logs))
    origin = f'{used} of them used for the fit' if used else 'not used for the fit'
    return replace(report, title=f'{model.robot.name}: validation of the identified dynamics',
                   subtitle=f'{_arm(model)}; validated on {_named(logs)}, {origin}')


def brief_report(
    model: IdentifiedModel, verdict: Verdict, warnings: Sequence[str]
) -> Report:
    """Return the report for a terminal: verdict, next actions and warnings."""
    return Report(f'{model.robot.name}: identified dynamics', model.method, (Chapter(GOOD_FOR, (
        *verdict.sections(BRIEF_ACTIONS), *trust.warnings(warnings))),))


def validation_warnings(
    validation: Validation, forward: ForwardValidation | None
) -> tuple[str, ...]:
    """Return the warnings of a validation, those of forward dynamics last."""
    more = () if forward is None else forward.warnings
    return tuple(dict.fromkeys((*validation.warnings, *more)))


def _report(
    shown: tuple[IdentifiedModel, Validation], logs: Sequence[RawLog], verdict: Verdict,
    warnings: Sequence[str], own: dict[str, tuple[Section, ...]], found: Errors,
) -> Report:
    """Return the chapters that all of these reports share around their ``own`` sections."""
    model, validation = shown
    names = file_names([*model.record.recordings, *(
        log.source for log in provenance.recordings_of(logs)), *(
        trace.source for trace in validation.traces)])
    suitability, *actions = verdict.sections()
    chapters = {
        GOOD_FOR: (found.added_to(suitability), *actions, *own[GOOD_FOR],
                   *trust.warnings(with_file_names(warnings, names))),
        JOINTS: (*joints.overview(validation, model), *joints.by_joint(validation, model, found),
                 *effects.friction_curves(model)),
        SIMULATION: (curves.horizons(validation, model),),
        WHERE: (*errors.errors(validation, model), errors.residuals(validation, model),
                *effects.predictions_beside(model, validation)),
        PARAMETERS: (*parameters.links(model),
                     *effects.shown(model), *effects.encoders(model),
                     *effects.elastic_joints(model),
                     *parameters.correlations(model), parameters.base_parameters(model),
                     *effects.friction_laws(model), *effects.method(model),
                     *parameters.categories(model)),
        DATA: own[DATA]}
    return Report(f'{model.robot.name}: identified dynamics',
                  f'{_arm(model)}; fitted to {_named(logs)}',
                  tuple(Chapter(title, sections) for title, sections in chapters.items()))


def _arm(model: IdentifiedModel) -> str:
    """Return joints, method and friction laws of a model in words."""
    count = model.robot.n
    return f'{count} joint{"" if count == 1 else "s"}, method {model.method or "unknown"}'


def _named(logs: Sequence[RawLog]) -> str:
    """Return the recordings: their number, names where they are few, and length."""
    recordings = provenance.recordings_of(logs)
    names = list(file_names([one.source for one in recordings]).values())
    few = f' ({", ".join(names)})' if names and len(names) <= MOST_NAMES else ''
    return f'{counted(len(recordings))}{few}'
