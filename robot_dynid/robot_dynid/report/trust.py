"""Scores of a model beside its verdict: the first chapter of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from robot_dynid import figures
from robot_dynid.document import (
    DASH,
    Card,
    Figure,
    Row,
    Section,
    Table,
    number,
    percent,
)
from robot_dynid.estimation.uncertainty.held_out import HeldOut
from robot_dynid.identification.identify import IdentificationResult
from robot_dynid.identified.model import IdentifiedModel
from robot_dynid.identified.suitability import USES
from robot_dynid.robot.units import effort_unit
from robot_dynid.validation.forward_scores import ForwardValidation, Horizon
from robot_dynid.validation.rollout_scores import CONSTANT_VELOCITY, CONTROL, MODEL
from robot_dynid.validation.validate import NEAR, JointScore, Scores, Validation
from robot_dynid.validation.verdict import relative_errors

POOR_ERROR = 0.5  # relative error from which a joint is pointed out
WARNINGS_SHOWN = 5  # warnings that are shown at once
PARTS = ('motion', 'rest', NEAR)
PART_COLUMNS = ('in motion [%]', 'at rest [%]', 'near reversals [%]')
FORWARD = (
    'Modelled accelerations under the measured effort, compared with the filtered measured ones; '
    'and motions simulated under the measured effort from measured states. Floor: the RMSE that '
    'the noise of the recordings causes with any model. Baseline: URDF inertials with fitted '
    'friction. Constant velocity: joints that continue as they begin. All assume sliding '
    'friction: at rest static friction holds a joint by an unpredictable amount.')
BASELINE = 'Baseline: URDF inertials with fitted friction.'
CROSS_VALIDATED = 'Held-out: each on motion left out of its fit.'
NO_BASELINE = 'No baseline: the robot description has no inertials to compare with.'


@dataclass(frozen=True, eq=False)
class Errors:
    """Relative errors of a model and of the baseline (URDF inertials with fitted friction).

    ``kind`` says of which data, such as 'held-out'; by joint; ``repeated`` (rows,) [N m] are the
    deviations of robot and noise; ``note`` says how errors were cross-validated.
    """

    kind: str
    model: Mapping[str, float]
    baseline: Mapping[str, float]
    scores: Mapping[str, JointScore]
    repeated: Sequence[float] | None = None
    note: str = ''

    @classmethod
    def of(cls, validation: Validation, kind: str, held: HeldOut | None = None) -> Errors:
        """Return the errors on recordings; cross-validated ones where ``held`` out."""
        scores = validation.model['all']
        spread, noise = validation.repeatability, validation.noise
        baseline = relative_errors(
            validation.control.get('all', {}), None if held is None else held.baseline)
        return cls(kind, relative_errors(scores, held), baseline, scores,
                   None if spread is None or noise is None else np.hypot(spread, noise).tolist(),
                   '' if held is None else CROSS_VALIDATED)

    @property
    def cells(self) -> tuple[tuple[str, ...], dict[str, tuple[str, ...]]]:
        """Heads of columns, and cells by joint."""
        heads = (f'{self.kind} error [%]', *(('baseline [%]',) if self.baseline else ()))
        return heads, {joint: (percent(share), *(
            (percent(self.baseline.get(joint)),) if self.baseline else ()))
            for joint, share in self.model.items()}

    def added_to(self, verdict: Section) -> Section:
        """Return the section of a verdict with these errors beside its joints, and as bars."""
        heads, by_joint = self.cells
        none = (DASH,) * len(heads)

        def widened(table: Table) -> Table:
            if table.columns[1:] != USES:
                return table
            return Table(('joint', *heads, *USES), (
                (row.cells[0], *by_joint.get(str(row.cells[0]), none), *row.cells[1:])
                for row in table.rows), table.title, detail=table.detail)

        return replace(verdict, tables=tuple(map(widened, verdict.tables)),
                       figures=(self.figure,))

    @property
    def figure(self) -> Figure:
        """Bars of both errors, and of what the robot does not repeat."""
        sizes = {} if self.repeated is None else {
            joint: repeated * one.relative_error / one.rmse if one.rmse > 0.0 else np.nan
            for repeated, (joint, one) in zip(self.repeated, self.scores.items(), strict=True)}
        words = NO_BASELINE if not self.baseline else (
            'Blue below orange: identifying the links was worth it. '
            f'{BASELINE} {self.note}'.strip())
        return Figure(error_bars({
            f'identified model, {self.kind}': self.model, 'baseline': self.baseline,
            'robot itself and noise': sizes}), f'Relative error of the effort, {self.kind}', words)


def warnings(texts: Sequence[str]) -> tuple[Section, ...]:
    """Return the warnings, folded where they are many."""
    many, texts = len(texts) > WARNINGS_SHOWN, [text.replace(' +- ', ' ± ') for text in texts]
    title = f'{len(texts)} warnings' if many else 'Warnings'
    return (Section(title, warnings=tuple(texts), folded=many),) if texts else ()


def summary(result: IdentificationResult) -> Section:
    """Return the main numbers of a fit, and the errors to expect."""
    estimate, model, held = result.estimate, result.model, result.held_out
    cards = (Card('base parameters', str(len(estimate.values)),
                  f'{estimate.rank} independent'),
             Card('condition number', number(estimate.condition, 3), 'unit columns'),
             Card('samples of the fit', f'{result.experiment.information.samples}'))
    expected = () if estimate.shares is not None else (Table(
        ('joint', 'on held-out motion', 'on a new motion'),
        zip(model.robot.row_names, np.sqrt(held.raw).tolist(), held.promise.tolist()),
        f'Error to expect [{effort_unit(model.robot)}]', folded=True),)
    return Section('The fit', cards=cards, tables=expected, detail=True)


def scores(
    model: IdentifiedModel, validation: Validation, title: str, folded: bool = True
) -> Section:
    """Return the scores of model and control row, joint by joint, motion and rest apart."""
    control = validation.control.get('all', {})
    spread, noise = validation.repeatability, validation.noise
    rows = []
    for i, (joint, score) in enumerate(validation.model['all'].items()):
        rows.append(Row((
            joint, score.rmse,
            *(None if one is None else float(one[i]) for one in (spread, noise)),
            percent(score.nrmse), *_shares(validation.model, validation.control, joint),
            _r_squared(score), ' / '.join(number(q, 2) for q in score.quartiles),
            percent(score.outliers)), 'poor' if score.relative_error > POOR_ERROR else ''))
    units = effort_unit(model.robot)
    columns = ('joint', f'RMSE [{units}]', f'robot itself [{units}]', f'noise [{units}]',
               'RMSE / std [%]', 'error [%]', 'baseline [%]', *PART_COLUMNS,
               'R²', f'quartiles [{units}]', 'outliers [%]')
    text = ('Error: |measured − predicted| / |measured| of the raw effort. '
            f'{BASELINE if control else NO_BASELINE} '
            'At rest the error is mostly unpredictable static friction. Robot itself: RMS '
            'deviation where the motion repeats; noise: that of single samples. No model predicts '
            'better than both together.')
    tables = [Table(columns, rows, 'All scores, joint by joint')]
    if validation.rollout is not None:
        rollout, steady = validation.rollout, validation.steady
        tables.append(_rollouts(model, Horizon(rollout.seconds, {
            MODEL: rollout, **({} if steady is None else {CONSTANT_VELOCITY: steady})})))
    return Section(title, text=text, tables=tuple(tables), folded=folded)


def _r_squared(score: JointScore) -> str:
    """Return R² to three decimals, a dash for a signal that does not vary."""
    return f'{score.r2:.3f}' if np.isfinite(score.r2) else DASH


def _shares(model: Scores, control: Scores, joint: str) -> list[str]:
    """Return the relative errors [%] in all samples, of the control row, and by part."""
    shares = [model['all'].get(joint), control.get('all', {}).get(joint),
              *(model.get(part, {}).get(joint) for part in PARTS)]
    return [DASH if one is None else percent(one.relative_error) for one in shares]


def forward_dynamics(model: IdentifiedModel, found: ForwardValidation) -> Section:
    """Return the section of a validation of forward dynamics."""
    accelerations = Table(
        ('joint', 'RMSE [rad/s², m/s²]', 'floor', 'error [%]', 'baseline [%]', *PART_COLUMNS,
         'R²'),
        ((joint, score.rmse, floor, *_shares(found.model, found.control, joint),
          _r_squared(score)) for (joint, score), floor in zip(
            found.model['all'].items(), found.floor.tolist(), strict=True)), 'Accelerations')
    return Section('Forward dynamics', text=FORWARD, tables=(
        accelerations, *(_rollouts(model, horizon) for horizon in found.horizons)))


def _rollouts(model: IdentifiedModel, horizon: Horizon) -> Table:
    """Return the errors of rollouts of one length by what predicts them."""
    words = {MODEL: '', CONTROL: 'baseline', CONSTANT_VELOCITY: 'constant velocity'}
    scores = {words[name]: one for name, one in horizon.scores.items()}
    model_score = horizon.scores[MODEL]
    ended = f' ({model_score.stopped} of {model_score.count} ended early)' if model_score.stopped \
        else ''
    return Table(
        ('joint', *(word or unit for unit in ('position [mrad, mm]', 'velocity [mrad/s, mm/s]')
                    for word in scores)),
        ((joint, *(1e3 * float(getattr(one, what)[j]) if one.stopped < one.count else None
                   for what in ('position', 'velocity') for one in scores.values()))
         for j, joint in enumerate(model.joints)),
        f'Simulated motions of {horizon.seconds:g} s, RMS over all their samples{ended}')


def error_bars(by_model: Mapping[str, Mapping[str, float]]) -> figures.Spec:
    """Return bars of relative errors by joint, those of each prediction next to the others."""
    colours = (figures.MODEL, figures.CONTROL, figures.MEASURED, *figures.SERIES[3:])
    curves = [figures.bars(list(errors), [100.0 * share for share in errors.values()], name,
                           colours[i % len(colours)])
              for i, (name, errors) in enumerate(by_model.items()) if errors]
    return figures.figure(
        curves, figures.axis(), figures.axis('relative error of the effort [%]',
                                             figures.FROM_ZERO))
