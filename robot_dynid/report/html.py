"""The report: one HTML file that needs nothing else, neither network nor other files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from robot_dynid.document import Section
from robot_dynid.files import atomic_write
from robot_dynid.identification.forward_scores import ForwardValidation
from robot_dynid.identification.identify import IdentificationResult
from robot_dynid.identification.validate import Validation
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.report import figures, sections
from robot_dynid.report.categories import categories
from robot_dynid.report.deflection import deflection
from robot_dynid.report.forward_dynamics import forward_dynamics
from robot_dynid.report.friction_curves import friction_curves
from robot_dynid.report.friction_laws import friction_laws
from robot_dynid.report.gears import elastic_joints
from robot_dynid.report.libraries import jinja2
from robot_dynid.report.links import links
from robot_dynid.report.slow_changes import predictions_beside, slow_changes
from robot_dynid.report.torque_ripple import torque_ripple
from robot_dynid.types import RawLog

TEMPLATES = Path(__file__).parent / 'templates'
#: in the head of every report; no other file is replaced by one
MARK = b'<meta name="generator" content="robot_dynid">'


@dataclass(frozen=True)
class Report:
    """A title and sections."""

    title: str
    subtitle: str
    sections: tuple[Section, ...]


def identification_report(
    result: IdentificationResult, logs: Sequence[RawLog], extra: Sequence[Section] = ()
) -> Report:
    """Return the report of an identification; ``extra`` sections follow the summary."""
    model, estimate, training = result.model, result.estimate, result.training
    parts = (
        sections.summary(result), *extra, sections.data(logs, model, result.choice),
        sections.scores(training, 'Prediction of the files of the fit'),
        *predictions_beside(training), *slow_changes(model), *elastic_joints(model),
        *friction_laws(model), *friction_curves(model), sections.parameters(model),
        *sections.method(model), *torque_ripple(model), *deflection(model), *links(model),
        *categories(model),
        *sections.predictions(training, model), sections.residuals(training, model),
    )
    return Report(f'{model.robot.name}: identified dynamics',
                  f'{estimate.method}, {sections.recording_count(logs)} recording(s)', parts)


def model_report(
    model: IdentifiedModel, validation: Validation, logs: Sequence[RawLog],
    extra: Sequence[Section] = (),
) -> Report:
    """Return the report of a saved model on recordings; ``extra`` sections follow the summary."""
    parts = (
        sections.validated(model, validation), *extra, sections.data(logs, model),
        sections.scores(validation, 'Prediction'), *predictions_beside(validation),
        *slow_changes(model), *elastic_joints(model),
        *friction_laws(model), *friction_curves(model), sections.parameters(model),
        *sections.method(model), *torque_ripple(model), *links(model),
        *sections.predictions(validation, model), sections.residuals(validation, model),
    )
    return Report(f'{model.robot.name}: identified dynamics',
                  f'{model.method}, {sections.recording_count(logs)} recording(s)', parts)


def validation_report(
    model: IdentifiedModel, validation: Validation, logs: Sequence[RawLog],
    forward: ForwardValidation | None = None,
) -> Report:
    """Return the report of a validation on recordings the model was not fitted to.

    With ``forward``, scores of forward dynamics follow the summary.
    """
    extra = () if forward is None else (forward_dynamics(model, forward),)
    report = model_report(model, validation, logs, extra)
    return replace(report, title=f'{model.robot.name}: validation of the identified dynamics',
                   subtitle=f'{sections.recording_count(logs)} recording(s) not used for the fit')


def render(report: Report) -> str:
    """Return the report as one HTML document."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, trim_blocks=True,
        lstrip_blocks=True, undefined=jinja2.StrictUndefined)
    style = (TEMPLATES / 'report.css').read_text(encoding='utf-8')
    template = environment.get_template('report.html.j2')
    return template.render(report=report, style=style, script=figures.script())


def write_report(report: Report, path: str | Path, inside: Path | None = None) -> None:
    """Write the report to ``path``, in place of an earlier report only.

    With ``inside``, the file must lie below that folder. Raises UsageError for a path where
    something else is, DynIdError when the file cannot be written.
    """
    atomic_write(path, render(report), MARK, inside)
