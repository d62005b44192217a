"""Reports of an identification, of a model, of a validation: six questions of a reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from robot_dynid.document import Chapter, Report, Section, counted
from robot_dynid.identification.identify import IdentificationResult
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.suitability import Verdict
from robot_dynid.report import curves, effects, errors, parameters, provenance, trust
from robot_dynid.report.texts import file_names, with_file_names
from robot_dynid.types import RawLog
from robot_dynid.validation.forward_scores import ForwardValidation
from robot_dynid.validation.validate import Validation
from robot_dynid.validation.verdict import judged

TRUST, NEXT, SEE, WHERE, PARAMETERS, DATA = QUESTIONS = (
    'Can I trust it?', 'What next?', 'See it', 'Where is the error?', 'Parameters',
    'Data and provenance')
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
    scores = [(unseen, 'Prediction of recordings that the fit has not seen'),
              (training, 'Prediction of the files of the fit')]
    return _report(
        (model, training), logs, verdict or result.verdict, result.warnings, {
            TRUST: (trust.summary(result), *(
                replace(trust.scores(model, one, title), folded=one is training and bool(unseen))
                for one, title in scores if one)),
            DATA: (provenance.data(logs, model, result.choice),
                   provenance.excitation(model, result.estimate),
                   provenance.provenance(model, logs, command))})


def model_report(
    model: IdentifiedModel, validation: Validation, logs: Sequence[RawLog],
    extra: Sequence[Section] = (), verdict: Verdict | None = None, command: Sequence[str] = (),
) -> Report:
    """Return the report of a saved model on recordings.

    ``extra`` sections follow the summary; other arguments as above.
    """
    return _report(
        (model, validation), logs, verdict or judged(model, validation), validation.warnings, {
            TRUST: (trust.validated(model, validation), *extra,
                    trust.scores(model, validation, 'Prediction')),
            DATA: (provenance.data(logs, model), provenance.excitation(model),
                   provenance.provenance(model, logs, command))})


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
    validation = replace(validation, warnings=_warnings(validation, forward))
    report = model_report(model, validation, logs, extra, verdict, command)
    return replace(report, title=f'{model.robot.name}: validation of the identified dynamics',
                   subtitle=f'{counted(len(provenance.recordings_of(logs)))} not used for the '
                            f'fit, method {model.method}')


def brief_identification(result: IdentificationResult, verdict: Verdict) -> Report:
    """Return an identification in brief, for a terminal: verdict, actions, summary, warnings."""
    return _brief(result.model, verdict, (trust.summary(result),), result.warnings)


def brief_validation(
    model: IdentifiedModel, validation: Validation, forward: ForwardValidation | None,
    verdict: Verdict,
) -> Report:
    """Return a validation in brief, for a terminal: verdict, actions, scores, warnings."""
    own = (trust.validated(model, validation),
           trust.scores(model, validation, 'Prediction', folded=False),
           *effects.predictions_beside(model, validation),
           *(() if forward is None else (trust.forward_dynamics(model, forward),)))
    return _brief(model, verdict, own, _warnings(validation, forward))


def _warnings(validation: Validation, forward: ForwardValidation | None) -> tuple[str, ...]:
    more = () if forward is None else forward.warnings
    return tuple(dict.fromkeys((*validation.warnings, *more)))


def _brief(
    model: IdentifiedModel, verdict: Verdict, own: Sequence[Section], warnings: Sequence[str]
) -> Report:
    return Report(f'{model.robot.name}: identified dynamics', model.method, (Chapter(TRUST, (
        trust.suitability(verdict, own, brief=True), *trust.actions(verdict, BRIEF_ACTIONS), *own,
        *trust.warnings(warnings))),))


def _report(
    shown: tuple[IdentifiedModel, Validation], logs: Sequence[RawLog], verdict: Verdict,
    warnings: Sequence[str], own: dict[str, tuple[Section, ...]],
) -> Report:
    """Return the chapters that all of these reports share around their ``own`` sections."""
    model, validation = shown
    names = file_names([*model.record.recordings, *(
        log.source for log in provenance.recordings_of(logs)), *(
        trace.source for trace in validation.traces)])
    chapters = {
        TRUST: (trust.suitability(verdict, own[TRUST]), *own[TRUST]),
        NEXT: (*trust.actions(verdict), *trust.warnings(with_file_names(warnings, names))),
        SEE: (*curves.predictions(validation, model), *curves.friction_data(validation, model),
              *effects.friction_curves(model), *curves.ripple_data(validation, model)),
        WHERE: (*errors.errors(validation, model), errors.residuals(validation, model),
                *effects.predictions_beside(model, validation)),
        PARAMETERS: (*parameters.links(model), *effects.friction(model),
                     *effects.chosen_effects(model), *effects.elastic_joints(model),
                     *effects.torque_ripple(model), *effects.slow_changes(model),
                     *effects.deflection(model),
                     *parameters.correlations(model), parameters.base_parameters(model),
                     *effects.friction_laws(model), *effects.method(model),
                     *parameters.categories(model)),
        DATA: own[DATA]}
    recordings = counted(len(provenance.recordings_of(logs)))
    return Report(f'{model.robot.name}: identified dynamics',
                  f'{model.method}, {recordings}',
                  tuple(Chapter(title, sections) for title, sections in chapters.items()))
